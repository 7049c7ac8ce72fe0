"""Anthropic SDK: ``client.beta.messages.tool_runner(tools=guard_tools(tools, policies), ...)``.

The gate is around each tool's function. :func:`narrate` passes on the messages or streams of a tool runner and narrates their text.
In a loop of your own, call ``await tool.call(block.input)`` of a gated tool.

Server tools (web search, code execution) run at the provider, so they are not gated.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

from anthropic import beta_async_tool, beta_tool
from anthropic.lib.tools import BetaAsyncFunctionTool, BetaFunctionTool, ToolError

from ._adapter import AnySession, BoundCall, Guard, Narrator, Policies
from ._consent import ASK, Policy
from ._tool import find_spec


def guard_tools(
    tools: Iterable[Any],
    policies: Policies | None = None,
    *,
    session: AnySession | None = None,
    default: Policy = ASK,
    asynchronous: bool = True,
) -> list[Any]:
    """Returns gated tools from functions and tools of the SDK. Use `asynchronous=False` for the blocking client."""
    guard = Guard(policies, session=session, default=default)
    return [_guard_tool(tool, guard, asynchronous) for tool in tools]


def _deny(text: str) -> Any:
    raise ToolError(text)


def _guard_tool(tool: Any, guard: Guard, asynchronous: bool) -> Any:
    if isinstance(tool, dict):
        return tool
    if not isinstance(tool, BetaFunctionTool | BetaAsyncFunctionTool):
        spec = find_spec(tool)
        if spec is not None:
            guard.policies.setdefault(spec.name, spec.policy)
        wrapped = guard.wrap(tool, asynchronous=asynchronous, deny=_deny)
        return beta_async_tool(wrapped) if inspect.iscoroutinefunction(wrapped) else beta_tool(wrapped)
    guarded = copy.copy(tool)
    validated = tool._func_with_validate
    if isinstance(tool, BetaAsyncFunctionTool):

        async def run(**values: Any) -> Any:
            async def call(bound: BoundCall) -> Any:
                return await validated(**bound.values)

            return await guard.run(tool.name, values, call, policy=guard.policy_for(tool.name, tool.func), deny=_deny)

        guarded._func_with_validate = run
    else:

        def run_blocking(**values: Any) -> Any:
            policy = guard.policy_for(tool.name, tool.func)
            return guard.run_blocking(tool.name, values, lambda bound: validated(**bound.values), policy=policy, deny=_deny)

        guarded._func_with_validate = run_blocking
    return guarded


async def narrate(runner: AsyncIterator[Any], *, session: AnySession | None = None) -> AsyncIterator[Any]:
    """Passes on what an asynchronous tool runner yields, messages or streams, and narrates the model's text."""
    narrator = Narrator(session)
    with narrator.narrating():
        async for item in runner:
            if hasattr(item, "text_stream"):
                async for text in item.text_stream:
                    narrator.write(text)
            else:
                _write(narrator, item)
            narrator.complete()
            yield item


def narrate_blocking(runner: Iterator[Any], *, session: AnySession | None = None) -> Iterator[Any]:
    """The same for a blocking tool runner."""
    narrator = Narrator(session)
    with narrator.narrating():
        for item in runner:
            if hasattr(item, "text_stream"):
                for text in item.text_stream:
                    narrator.write(text)
            else:
                _write(narrator, item)
            narrator.complete()
            yield item


def _write(narrator: Narrator, message: Any) -> None:
    for block in message.content:
        if block.type == "text":
            narrator.write(block.text)


__all__ = ["guard_tools", "narrate", "narrate_blocking"]
