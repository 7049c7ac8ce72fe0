"""smolagents: ``gate = Gate(policies)``, ``ToolCallingAgent(tools=gate.tools(tools), ...)``, then ``gate.run(agent, task)``.

The gate is around each tool's `forward`, so it also holds for tools that a `CodeAgent` calls from its code. The tool
`final_answer`, which the agent adds itself, is not gated. Code that a `CodeAgent` writes and that does not call a tool is not gated either; use a
sandbox for it.

smolagents runs tools in threads, which nobody can cancel. :meth:`Gate.run_async` withdraws their questions when its caller is
cancelled.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from smolagents import Tool
from smolagents import tool as to_tool

from ._adapter import AnySession, Guard, Narrator, Policies
from ._consent import ASK, Policy
from ._tool import find_spec


class Gate:
    """Gates and narrates one agent."""

    def __init__(self, policies: Policies | None = None, *, session: AnySession | None = None, default: Policy = ASK) -> None:
        self._guard = Guard(policies, session=session, default=default)
        self._narrator = Narrator(session)

    def tools(self, tools: Iterable[Any]) -> list[Any]:
        """Returns gated copies of tools or functions."""
        return [self._guard_tool(tool) for tool in tools]

    def _guard_tool(self, tool: Any) -> Any:
        if not isinstance(tool, Tool):
            spec = find_spec(tool)
            if spec is not None:
                self._guard.policies.setdefault(spec.name, spec.policy)
            tool = to_tool(spec.function if spec is not None else tool)
        guarded = copy.copy(tool)
        names = list(tool.inputs)

        def forward(*args: Any, **kwargs: Any) -> Any:
            if len(args) > len(names):
                raise TypeError(f"{tool.name} takes {len(names)} arguments")
            values = {**dict(zip(names, args, strict=False)), **kwargs}
            return self._guard.run_blocking(tool.name, values, lambda bound: tool.forward(**bound.values))

        guarded.forward = forward
        return guarded

    def run(self, agent: Any, task: str, **settings: Any) -> Any:
        """Runs an agent in this thread, narrates it, and returns its answer."""
        answer = None
        has_streamed = False
        with self._narrator.narrating():
            for step in agent.run(task, stream=True, **settings):
                kind = type(step).__name__
                if kind == "ChatMessageStreamDelta":
                    if isinstance(step.content, str):
                        has_streamed = has_streamed or bool(step.content)
                        self._narrator.write(step.content)
                elif kind == "ActionStep":
                    if not has_streamed and isinstance(step.model_output, str):
                        self._narrator.write(step.model_output)
                    has_streamed = False
                    self._narrator.complete()
                    if step.error is not None:
                        self._narrator.error(Exception(str(step.error)))
                elif kind == "FinalAnswerStep":
                    answer = step.output
                    if isinstance(answer, str):
                        self._narrator.write(answer)
                        self._narrator.complete()
        return answer

    async def run_async(self, agent: Any, task: str, **settings: Any) -> Any:
        """Runs an agent in a thread. If the caller is cancelled, open questions are withdrawn and no tool runs later."""
        return await self._guard.run_in_thread(lambda: self.run(agent, task, **settings))


__all__ = ["Gate"]
