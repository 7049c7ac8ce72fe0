"""Strands: ``Agent(tools=guard_tools(tools, policies))``, and :func:`narrate` around ``agent.stream_async(...)``.

The gate is around each tool's `stream`, after all hooks.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from typing import Any

from strands import tool as to_tool
from strands.types.tools import AgentTool

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
    if not isinstance(tool, AgentTool):
        spec = find_spec(tool)
        if spec is not None:
            guard.policies.setdefault(spec.name, spec.policy)
        tool = to_tool(spec.function if spec is not None else tool)
    return _GuardedTool(tool, guard)


class _ToolFailed(Exception):
    """The tool reported an error as its result."""

    def __init__(self, events: list[Any], message: str) -> None:
        super().__init__(message)
        self.events = events


class _GuardedTool(AgentTool):  # type: ignore[misc]
    def __init__(self, tool: Any, guard: Guard) -> None:
        super().__init__()
        self._tool = tool
        self._guard = guard

    @property
    def tool_name(self) -> str:
        return str(self._tool.tool_name)

    @property
    def tool_spec(self) -> Any:
        return self._tool.tool_spec

    @property
    def tool_type(self) -> str:
        return str(self._tool.tool_type)

    async def stream(self, tool_use: Any, invocation_state: dict[str, Any], **kwargs: Any) -> AsyncGenerator[Any, None]:
        async def call(bound: BoundCall) -> list[Any]:
            use = {**tool_use, "input": dict(bound.values)}
            events = [event async for event in self._tool.stream(use, invocation_state, **kwargs)]
            result = _result(events[-1]) if events else {}
            if result.get("status") == "error":
                raise _ToolFailed(events, " ".join(str(part.get("text", "")) for part in result.get("content", [])))
            return events

        def deny(text: str) -> list[Any]:
            return [{"toolUseId": tool_use["toolUseId"], "status": "error", "content": [{"text": text}]}]

        try:
            events = await self._guard.run(self.tool_name, tool_use["input"], call, call_id=tool_use["toolUseId"], deny=deny)
        except _ToolFailed as failure:
            events = failure.events
        for event in events:
            yield event


def _result(event: Any) -> dict[str, Any]:
    """Returns the result that a tool's last event carries."""
    value = getattr(event, "tool_result", event)
    return value if isinstance(value, dict) else {}


async def narrate(events: AsyncIterator[Any], *, session: AnySession | None = None) -> AsyncIterator[Any]:
    """Passes on the events of an agent, and narrates the model's text."""
    narrator = Narrator(session)
    with narrator.narrating():
        async for event in events:
            if isinstance(event, dict):
                if isinstance(event.get("data"), str):
                    narrator.write(event["data"])
                elif "message" in event:
                    narrator.complete()
            yield event


__all__ = ["guard_tools", "narrate"]
