"""CrewAI: ``Agent(tools=gate.tools(tools), ...)`` with ``gate = Gate(policies)``, then ``gate.kickoff(agent_or_crew, ...)``.

The gate is around each tool's function. CrewAI's own hooks are not a gate: an exception in one lets the tool run. CrewAI runs tools in
threads, which nobody can cancel; :meth:`Gate.kickoff_async` withdraws their questions when its caller is cancelled.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from crewai.events import LLMCallCompletedEvent, LLMCallFailedEvent, LLMStreamChunkEvent, crewai_event_bus
from crewai.tools import BaseTool
from crewai.tools import tool as to_tool

from ._adapter import AnySession, Guard, Narrator, Policies
from ._consent import ASK, Policy
from ._tool import find_spec


class Gate:
    """Gates and narrates an agent or a crew."""

    def __init__(self, policies: Policies | None = None, *, session: AnySession | None = None, default: Policy = ASK) -> None:
        self._guard = Guard(policies, session=session, default=default)
        self._narrator = Narrator(session)

    def tools(self, tools: Iterable[Any]) -> list[Any]:
        """Returns gated copies of tools or functions."""
        return [self._guard_tool(tool) for tool in tools]

    def _guard_tool(self, tool: Any) -> Any:
        if not isinstance(tool, BaseTool):
            spec = find_spec(tool)
            if spec is not None:
                self._guard.policies.setdefault(spec.name, spec.policy)
            function = spec.function if spec is not None else tool
            tool = to_tool(spec.name if spec is not None else function.__name__)(function)
        policy = self._guard.policy_for(tool.name)
        function = getattr(tool, "func", None)
        if function is not None:
            return tool.model_copy(update={"func": self._guard.wrap(function, tool.name, policy=policy)})
        guarded = tool.model_copy()
        run = self._guard.wrap(tool._run, tool.name, policy=policy)
        members = {"_run": lambda self, *args, **kwargs: run(*args, **kwargs), "__module__": type(tool).__module__}
        guarded.__class__ = type(f"Guarded{type(tool).__name__}", (type(tool),), members)
        return guarded

    def kickoff(self, runnable: Any, *args: Any, **kwargs: Any) -> Any:
        """Runs `runnable.kickoff(...)` in this thread and narrates what the model writes."""
        has_streamed = False
        with crewai_event_bus.scoped_handlers():

            @crewai_event_bus.on(LLMStreamChunkEvent)  # type: ignore[untyped-decorator, unused-ignore]
            def narrate_chunk(source: Any, event: Any) -> None:
                nonlocal has_streamed
                # Chunks also carry the JSON of tool calls, which is not for people.
                if event.tool_call is None and event.chunk:
                    has_streamed = True
                    self._narrator.write(event.chunk)

            @crewai_event_bus.on(LLMCallCompletedEvent)  # type: ignore[untyped-decorator, unused-ignore]
            def narrate(source: Any, event: Any) -> None:
                nonlocal has_streamed
                if isinstance(event.response, str) and not has_streamed:
                    self._narrator.write(event.response)
                has_streamed = False
                self._narrator.complete()

            @crewai_event_bus.on(LLMCallFailedEvent)  # type: ignore[untyped-decorator, unused-ignore]
            def narrate_error(source: Any, event: Any) -> None:
                nonlocal has_streamed
                has_streamed = False
                self._narrator.complete()
                self._narrator.error(Exception(event.error))

            try:
                return runnable.kickoff(*args, **kwargs)
            finally:
                flush = getattr(crewai_event_bus, "flush", None)
                if callable(flush):
                    flush()

    async def kickoff_async(self, runnable: Any, *args: Any, **kwargs: Any) -> Any:
        """Runs :meth:`kickoff` in a thread. If the caller is cancelled, open questions are withdrawn and no tool runs later."""
        return await self._guard.run_in_thread(lambda: self.kickoff(runnable, *args, **kwargs))


__all__ = ["Gate"]
