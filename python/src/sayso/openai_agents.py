"""OpenAI Agents SDK: ``Agent(tools=guard_tools(tools, policies))``, with one of these to narrate the model::

    async for event in narrate(Runner.run_streamed(agent, "Tidy up.").stream_events()): ...

    with SaysoHooks() as hooks:
        result = await Runner.run(agent, "Tidy up.", hooks=hooks)

The gate is around the function of each tool, after guardrails and hooks.

The SDK turns an error of a tool into a text for the model, and hides the error. People hear that the tool failed. To let them hear why,
create the tool with ``failure_error_function=None``; then the error also ends the run. With a function of your own, a failed call is
reported as successful.

Hosted tools and hosted MCP servers run at the provider, so they are not gated.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import AsyncIterator, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from agents import FunctionTool, RunHooks, function_tool

from ._adapter import AnySession, BoundCall, Guard, Narrator, Policies
from ._consent import ASK, Policy
from ._tool import find_spec

if TYPE_CHECKING:
    from typing_extensions import Self


#: The text that the SDK returns for an error of a tool without a `failure_error_function`.
_HIDDEN_ERROR = "An error occurred while running the tool. Please try again."


class _HiddenToolError(Exception):
    """Raised inside the gate, so that a call is reported as failed whose error the SDK has hidden."""


def guard_tools(
    tools: Iterable[Any],
    policies: Policies | None = None,
    *,
    session: AnySession | None = None,
    default: Policy = ASK,
) -> list[Any]:
    """Returns gated copies of tools or functions. Tools that run at the provider are returned unchanged."""
    guard = Guard(policies, session=session, default=default)
    return [_guard_tool(tool, guard) for tool in tools]


def _guard_tool(tool: Any, guard: Guard) -> Any:
    spec = find_spec(tool)
    if spec is not None:
        guard.policies.setdefault(spec.name, spec.policy)
        tool = function_tool(spec.function, name_override=spec.name)
    elif callable(tool) and not isinstance(tool, FunctionTool):
        tool = function_tool(tool)
    if not isinstance(tool, FunctionTool):
        return tool

    async def invoke(context: Any, arguments: str) -> Any:
        try:
            values = json.loads(arguments) if arguments else {}
            values = values if isinstance(values, dict) else {"input": values}
        except ValueError:
            # The framework reports broken arguments itself, without running the function.
            return await tool.on_invoke_tool(context, arguments)

        async def call(bound: BoundCall) -> Any:
            # With `needs_approval`, the framework has parsed the arguments before the gate. The function must get the gate's.
            if getattr(context, "_function_tool_arguments", None) is not None:
                context._function_tool_arguments = None
            result = await original(context, json.dumps(dict(bound.values)))
            if result == _HIDDEN_ERROR:
                raise _HiddenToolError("An error occurred while running the tool.")
            return result

        try:
            return await guard.run(tool.name, values, call, call_id=getattr(context, "tool_call_id", None))
        except _HiddenToolError:
            return _HIDDEN_ERROR

    original = tool.on_invoke_tool
    return dataclasses.replace(tool, on_invoke_tool=invoke)


class SaysoHooks(RunHooks):  # type: ignore[misc]
    """Narrates the model's text when each response is complete. Its block reports the error that ends the run."""

    def __init__(self, session: AnySession | None = None) -> None:
        self._narrator = Narrator(session)
        self._block = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._block.enter_context(self._narrator.narrating())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._block.__exit__(kind, error, trace)

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        for item in response.output:
            for part in getattr(item, "content", None) or []:
                self._narrator.write(getattr(part, "text", None) or "")
        self._narrator.complete()


async def narrate(events: AsyncIterator[Any], *, session: AnySession | None = None) -> AsyncIterator[Any]:
    """Passes on the events of `result.stream_events()`, and narrates the model's text as it arrives."""
    narrator = Narrator(session)
    with narrator.narrating():
        async for event in events:
            if event.type == "raw_response_event":
                kind = getattr(event.data, "type", "")
                if kind == "response.output_text.delta":
                    narrator.write(event.data.delta)
                elif kind in ("response.output_text.done", "response.completed"):
                    narrator.complete()
            yield event


__all__ = ["SaysoHooks", "guard_tools", "narrate"]
