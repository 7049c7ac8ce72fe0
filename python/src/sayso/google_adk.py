"""Google ADK: ``LlmAgent(tools=guard_tools(tools, policies))``, and :func:`narrate` around ``runner.run_async(...)``.

The gate is around each tool's `run_async`, after all plugins and callbacks. Toolsets (MCP, OpenAPI) are opened by ADK itself;
pass the tools of ``await toolset.get_tools()`` to gate them. Built-in tools of Gemini run at the provider, so they are not gated.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Iterable
from typing import Any

from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool

from ._adapter import AnySession, BoundCall, Guard, Narrator, Policies
from ._consent import ASK, Policy
from ._tool import find_spec


def guard_tools(
    tools: Iterable[Any],
    policies: Policies | None = None,
    *,
    session: AnySession | None = None,
    default: Policy = ASK,
) -> list[Any]:
    """Returns gated copies of tools or functions."""
    guard = Guard(policies, session=session, default=default)
    return [_guard_tool(tool, guard) for tool in tools]


def _guard_tool(tool: Any, guard: Guard) -> Any:
    if not isinstance(tool, BaseTool):
        if not callable(tool):
            raise TypeError(f"{type(tool).__name__} cannot be gated; pass the tools of `await toolset.get_tools()`")
        spec = find_spec(tool)
        if spec is not None:
            guard.policies.setdefault(spec.name, spec.policy)
        tool = FunctionTool(spec.function if spec is not None else tool)
    guarded = copy.copy(tool)

    async def run_async(*, args: dict[str, Any], tool_context: Any) -> Any:
        async def call(bound: BoundCall) -> Any:
            return await tool.run_async(args=dict(bound.values), tool_context=tool_context)

        call_id = getattr(tool_context, "function_call_id", None)
        return await guard.run(tool.name, args, call, call_id=call_id, deny=lambda text: {"error": text})

    guarded.run_async = run_async
    return guarded


async def narrate(events: AsyncIterator[Any], *, session: AnySession | None = None) -> AsyncIterator[Any]:
    """Passes on the events of a run, and narrates the model's text. A text that was streamed is not repeated."""
    narrator = Narrator(session)
    has_streamed = False
    with narrator.narrating():
        async for event in events:
            parts = (event.content.parts or []) if event.content is not None else []
            text = "".join(part.text or "" for part in parts if not getattr(part, "thought", False))
            is_partial = bool(getattr(event, "partial", False))
            if text and event.author != "user" and (is_partial or not has_streamed):
                narrator.write(text)
            has_streamed = is_partial or (has_streamed and not text)
            if not is_partial:
                narrator.complete()
                has_streamed = False
            if event.error_code or event.error_message:
                narrator.error(Exception(event.error_message or event.error_code))
            yield event


__all__ = ["guard_tools", "narrate"]
