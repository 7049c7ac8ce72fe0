"""Claude Agent SDK: ``ClaudeAgentOptions(hooks=hooks(policies))`` for the tools of Claude Code, and :func:`guard_tools` for your own.

- :func:`guard_tools` is around the handler of each tool that you pass to `create_sdk_mcp_server`, so it asks about the arguments with
  which the handler runs.
- :func:`hooks` asks in `PreToolUse`, for tools that Claude Code runs itself, such as `Bash`. A failing hook blocks the call. Another
  hook's `updatedInput` is applied after it, so do not combine it with hooks that change arguments.
- :func:`narrate` passes on messages and narrates the model's text.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Iterable
from typing import Any

from claude_agent_sdk import HookMatcher, SdkMcpTool

from ._adapter import AnySession, BoundCall, Guard, Narrator, Policies
from ._consent import ASK, Policy, bind, describe_for_model, open_call
from ._core import OpenCall, SessionCore
from ._gate import _report_async, announce_async
from .errors import SaysoError

#: Claude Code waits this long for a hook, in seconds. It must be longer than a person may take to answer.
HOOK_TIMEOUT_SECONDS = 3600.0


def guard_tools(
    tools: Iterable[SdkMcpTool[Any]],
    policies: Policies | None = None,
    *,
    session: AnySession | None = None,
    default: Policy = ASK,
) -> list[SdkMcpTool[Any]]:
    """Returns gated copies of tools for `create_sdk_mcp_server`."""
    guard = Guard(policies, session=session, default=default)

    def wrap(tool: SdkMcpTool[Any]) -> SdkMcpTool[Any]:
        async def handler(arguments: Any) -> Any:
            async def call(bound: BoundCall) -> Any:
                return await tool.handler(dict(bound.values))

            return await guard.run(tool.name, dict(arguments), call, deny=_denial)

        return dataclasses.replace(tool, handler=handler)

    return [wrap(tool) for tool in tools]


def _denial(text: str) -> Any:
    return {"content": [{"type": "text", "text": text}], "is_error": True}


def hooks(
    policies: Policies | None = None,
    *,
    session: AnySession | None = None,
    default: Policy = ASK,
    matcher: str | None = None,
) -> dict[str, list[Any]]:
    """Returns hooks that ask before a tool of Claude Code runs, and report its outcome."""
    guard = Guard(policies, session=session, default=default)
    opened: dict[str, tuple[SessionCore, OpenCall]] = {}

    async def before(data: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        name = str(data["tool_name"])
        policy = guard.policy_for(name)
        try:
            core = guard.core
            call = bind(name, data["tool_input"], policy.skip)
            opened[tool_use_id or call.digest] = core, await announce_async(core, open_call(core, call, policy, tool_use_id))
        except asyncio.CancelledError:
            raise
        except SaysoError as error:
            return _decision("deny", describe_for_model(error))
        except Exception:
            return _decision("deny", "Consent could not be asked for. The tool was not run.")
        # With consent, Claude Code need not ask again.
        return _decision("allow", "The person agreed.") if policy.needs_consent else {}

    async def after(data: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        found = opened.pop(tool_use_id or "", None)
        if found is not None:
            core, call = found
            if data.get("hook_event_name") == "PostToolUseFailure":
                reason = str(data.get("error") or "It failed.")
                await _report_async(core.complete(call, "error", reason, reason))
            else:
                await _report_async(core.complete(call, "success", f"{call.tool} has finished.", is_library_text=True))
        return {}

    return {
        "PreToolUse": [HookMatcher(matcher=matcher, hooks=[before], timeout=HOOK_TIMEOUT_SECONDS, on_failure="block")],
        "PostToolUse": [HookMatcher(matcher=matcher, hooks=[after])],
        "PostToolUseFailure": [HookMatcher(matcher=matcher, hooks=[after])],
    }


def _decision(decision: str, reason: str) -> dict[str, Any]:
    output = {"hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": reason}
    return {"hookSpecificOutput": output}


async def narrate(messages: AsyncIterator[Any], *, session: AnySession | None = None) -> AsyncIterator[Any]:
    """Passes on the messages of the SDK, and narrates the model's text: by tokens with `include_partial_messages=True`."""
    narrator = Narrator(session)
    has_streamed = False
    async for message in messages:
        kind = type(message).__name__
        if kind == "StreamEvent":
            delta = message.event.get("delta") or {}
            if delta.get("type") == "text_delta":
                has_streamed = True
                narrator.write(delta.get("text", ""))
        elif kind == "AssistantMessage":
            for block in message.content:
                if type(block).__name__ == "TextBlock" and not has_streamed:
                    narrator.write(block.text)
            narrator.complete()
            has_streamed = False
        yield message
    narrator.complete()


__all__ = ["guard_tools", "hooks", "narrate"]
