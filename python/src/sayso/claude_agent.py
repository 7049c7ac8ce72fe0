"""Claude Agent SDK: :func:`gate_options` for the tools of Claude Code, and :func:`guard_tools` for your own.

- :func:`guard_tools` is around the handler of each tool that you pass to `create_sdk_mcp_server`, so it asks about the arguments with
  which the handler runs.
- :func:`gate_options` asks in a `PreToolUse` hook, for tools that Claude Code runs itself, such as `Bash`. A failing hook blocks the
  call. Claude Code runs all hooks at the same time, and another one can replace the arguments. So `can_use_tool`, which Claude Code
  calls after all hooks, checks that the arguments are those that the person allowed. Use `ClaudeSDKClient`, or `query` with a stream of
  prompts, because the SDK calls `can_use_tool` only there.
- :func:`narrate` passes on messages and narrates the model's text.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Iterable
from typing import Any

from claude_agent_sdk import (
    ClaudeAgentOptions,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    SdkMcpTool,
    ToolPermissionContext,
)

from ._adapter import AnySession, BoundCall, Guard, Narrator, Policies
from ._consent import ASK, Policy, bind, describe_for_model, open_call
from ._core import OpenCall, SessionCore, log
from ._gate import _report_async, open_async
from .errors import ConsentMismatch, SaysoError

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


def gate_options(
    options: ClaudeAgentOptions,
    policies: Policies | None = None,
    *,
    session: AnySession | None = None,
    default: Policy = ASK,
    matcher: str | None = None,
) -> ClaudeAgentOptions:
    """Returns options with a gate before every tool, in addition to the options' own hooks and `can_use_tool`."""
    gate = _Gate(Guard(policies, session=session, default=default), options.can_use_tool)
    own = {
        "PreToolUse": HookMatcher(matcher=matcher, hooks=[gate.before], timeout=HOOK_TIMEOUT_SECONDS, on_failure="block"),
        "PostToolUse": HookMatcher(matcher=matcher, hooks=[gate.after]),
        "PostToolUseFailure": HookMatcher(matcher=matcher, hooks=[gate.after]),
    }
    hooks: dict[Any, list[Any]] = {**(options.hooks or {})}
    for event, matcher_of_event in own.items():
        hooks[event] = [*hooks.get(event, []), matcher_of_event]
    return dataclasses.replace(options, hooks=hooks, can_use_tool=gate.check)


class _Gate:
    """Asks before a tool of Claude Code runs, checks the arguments after all hooks, and reports the outcome."""

    def __init__(self, guard: Guard, can_use_tool: Any) -> None:
        self._guard = guard
        self._can_use_tool = can_use_tool
        #: The calls that are announced and not finished, by the id of the tool's use.
        self._opened: dict[str, tuple[SessionCore, OpenCall]] = {}
        #: The calls that a person allowed and that are not checked yet.
        self._allowed: dict[str, BoundCall] = {}

    async def before(self, data: Any, tool_use_id: str | None, context: Any) -> Any:
        name = str(data["tool_name"])
        policy = self._guard.policy_for(name)
        try:
            core = self._guard.core
            call = bind(name, data["tool_input"], policy.skip)
            opened = await open_async(core, open_call(core, call, policy, tool_use_id))
        except asyncio.CancelledError:
            raise
        except SaysoError as error:
            return _decision("deny", describe_for_model(error))
        except Exception:
            return _decision("deny", "Consent could not be asked for. The tool was not run.")
        id = tool_use_id or call.digest
        self._opened[id] = core, opened
        if not policy.needs_consent:
            return {}
        self._allowed[id] = call
        # "ask" lets Claude Code call `check` with the arguments that it will use, even for a tool that is always allowed.
        return _decision("ask", "The person agreed to these arguments.", dict(call.values))

    async def check(self, name: str, arguments: dict[str, Any], context: ToolPermissionContext) -> Any:
        """The last check before the tool runs."""
        call = self._allowed.pop(context.tool_use_id or "", None)
        if call is None:
            if self._can_use_tool is not None:
                return await self._can_use_tool(name, arguments, context)
            return PermissionResultDeny(message=f"{name} is not an allowed tool.")
        try:
            if bind(name, arguments, call.skip).digest == call.digest:
                return PermissionResultAllow(updated_input=dict(call.values))
        except SaysoError as error:
            log.debug("the arguments of a call cannot be compared: %s", error)
        mismatch = ConsentMismatch("a hook changed the arguments after the person agreed to others")
        await self._finish(context.tool_use_id, str(mismatch))
        return PermissionResultDeny(message=describe_for_model(mismatch))

    async def after(self, data: Any, tool_use_id: str | None, context: Any) -> Any:
        is_failure = data.get("hook_event_name") == "PostToolUseFailure"
        await self._finish(tool_use_id, str(data.get("error") or "It failed.") if is_failure else None)
        return {}

    async def _finish(self, tool_use_id: str | None, failure: str | None) -> None:
        found = self._opened.pop(tool_use_id or "", None)
        if found is None:
            return
        core, call = found
        if failure is not None:
            await _report_async(core.complete(call, "error", failure, failure))
        else:
            await _report_async(core.complete(call, "success", f"{call.tool} has finished.", is_library_text=True))


def _decision(decision: str, reason: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
    output: dict[str, Any] = {
        "hookEventName": "PreToolUse",
        "permissionDecision": decision,
        "permissionDecisionReason": reason,
    }
    if arguments is not None:
        output["updatedInput"] = arguments
    return {"hookSpecificOutput": output}


async def narrate(messages: AsyncIterator[Any], *, session: AnySession | None = None) -> AsyncIterator[Any]:
    """Passes on the messages of the SDK, and narrates the model's text: by tokens with `include_partial_messages=True`."""
    narrator = Narrator(session)
    has_streamed = False
    with narrator.narrating():
        async for message in messages:
            kind = type(message).__name__
            if kind == "StreamEvent":
                delta = message.event.get("delta") or {}
                if delta.get("type") == "text_delta":
                    has_streamed = True
                    narrator.write(delta.get("text", ""))
            elif kind == "AssistantMessage" and message.error is None:
                for block in message.content:
                    if type(block).__name__ == "TextBlock" and not has_streamed:
                        narrator.write(block.text)
                narrator.complete()
                has_streamed = False
            elif kind == "ResultMessage" and message.is_error:
                narrator.error(Exception(message.result or "; ".join(message.errors or []) or message.subtype))
            yield message


__all__ = ["gate_options", "guard_tools", "narrate"]
