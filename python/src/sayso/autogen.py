"""AutoGen AgentChat: ``AssistantAgent(..., tools=guard_tools(tools, policies))`` and :func:`run_stream` instead of `agent.run_stream`.

The gate is around each tool's function and knows AutoGen's cancellation token. :func:`run_stream` narrates, and cancels the token
when its caller is cancelled, because AutoGen's own tasks would otherwise go on and run the tool later.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

from autogen_core import CancellationToken
from autogen_core.tools import BaseTool, FunctionTool

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
        spec = find_spec(tool)
        if spec is not None:
            guard.policies.setdefault(spec.name, spec.policy)
        function = spec.function if spec is not None else tool
        tool = FunctionTool(function, (function.__doc__ or function.__name__).strip(), name=spec.name if spec else None)
    return _GuardedTool(tool, guard)


class _GuardedTool(BaseTool[Any, Any]):  # type: ignore[misc]
    """A tool whose `run` asks first. It never raises a refusal, because AutoGen hangs if a tool's workbench raises."""

    def __init__(self, tool: Any, guard: Guard) -> None:
        super().__init__(tool.args_type(), tool.return_type(), tool.name, tool.description)
        self._tool = tool
        self._guard = guard

    @property
    def schema(self) -> Any:
        return self._tool.schema

    def return_value_as_string(self, value: Any) -> str:
        return value if isinstance(value, str) else str(self._tool.return_value_as_string(value))

    async def run(self, args: Any, cancellation_token: CancellationToken) -> Any:
        values = {name: getattr(args, name) for name in type(args).model_fields}

        async def call(bound: BoundCall) -> Any:
            return await self._tool.run(args.model_copy(update=dict(bound.values)), cancellation_token)

        function = getattr(self._tool, "_func", None)
        policy = self._guard.policy_for(self.name, function)
        gate = self._guard.run(self.name, values, call, policy=policy, is_cancelled=cancellation_token.is_cancelled)
        task = asyncio.ensure_future(gate)
        cancellation_token.link_future(task)
        return await task


async def run_stream(
    agent: Any, *, task: Any = None, cancellation_token: CancellationToken | None = None, session: AnySession | None = None
) -> AsyncIterator[Any]:
    """Passes on the messages of an agent or a team, narrates the model's text, and cancels open questions with its caller."""
    narrator = Narrator(session)
    own = CancellationToken()
    if cancellation_token is not None:
        cancellation_token.add_callback(own.cancel)
    has_streamed = False
    try:
        with narrator.narrating():
            async for message in agent.run_stream(task=task, cancellation_token=own):
                kind = type(message).__name__
                if kind == "ModelClientStreamingChunkEvent":
                    has_streamed = True
                    narrator.write(message.content)
                elif kind in ("TextMessage", "ThoughtEvent") and message.source != "user":
                    if not has_streamed:
                        narrator.write(message.content)
                    narrator.complete()
                    has_streamed = False
                elif kind == "ToolCallRequestEvent":
                    narrator.complete()
                    has_streamed = False
                yield message
    finally:
        own.cancel()


__all__ = ["guard_tools", "run_stream"]
