"""Pydantic AI: ``Agent(model, tools=..., capabilities=[..., Sayso(policies)])``.

:class:`Sayso` wraps the agent's toolset, so it asks about the arguments after all hooks of other capabilities. For text by
tokens, pass the events of ``agent.run_stream_events(...)`` to :func:`narrate`.

Native tools of a provider run there, so they are not gated.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.toolsets import WrapperToolset

from ._adapter import AnySession, BoundCall, Guard, Narrator, Policies
from ._consent import ASK, Policy


class Sayso(AbstractCapability):  # type: ignore[misc]
    """Asks before dangerous tools run, and reports all calls."""

    def __init__(self, policies: Policies | None = None, *, session: AnySession | None = None, default: Policy = ASK) -> None:
        self._guard = Guard(policies, session=session, default=default)

    def get_wrapper_toolset(self, toolset: Any) -> Any:
        return guard_toolset(toolset, self._guard)


def guard_toolset(toolset: Any, guard: Guard) -> Any:
    """Returns a toolset whose calls are gated."""

    class Guarded(WrapperToolset):  # type: ignore[misc]
        async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
            async def call(bound: BoundCall) -> Any:
                return await self.wrapped.call_tool(name, dict(bound.values), ctx, tool)

            return await guard.run(name, tool_args, call, call_id=getattr(ctx, "tool_call_id", None))

    return Guarded(toolset)


async def narrate(events: AsyncIterator[Any], *, session: AnySession | None = None) -> AsyncIterator[Any]:
    """Passes on the events of a run, and narrates the model's text."""
    narrator = Narrator(session)
    with narrator.narrating():
        async for event in events:
            kind = getattr(event, "event_kind", "")
            if kind == "part_start":
                narrator.complete()
                if event.part.part_kind == "text":
                    narrator.write(event.part.content)
            elif kind == "part_delta" and getattr(event.delta, "part_delta_kind", "") == "text":
                narrator.write(event.delta.content_delta)
            elif kind == "function_tool_call":
                narrator.complete()
            yield event


__all__ = ["Sayso", "guard_toolset", "narrate"]
