"""LangGraph: ``tool_node(tools, policies)`` instead of ``ToolNode(tools)``, and :class:`SaysoCallback` for the model's text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from langgraph.prebuilt import ToolNode

from ._adapter import AnySession, Policies
from ._consent import ASK, Policy
from .langchain import SaysoCallback, SaysoMiddleware, guard_tools


def tool_node(
    tools: Iterable[Any],
    policies: Policies | None = None,
    *,
    session: AnySession | None = None,
    default: Policy = ASK,
    wrap_tool_call: Callable[[Any, Callable[[Any], Any]], Any] | None = None,
    awrap_tool_call: Callable[[Any, Callable[[Any], Awaitable[Any]]], Awaitable[Any]] | None = None,
    **settings: Any,
) -> Any:
    """Returns a `ToolNode` whose tools are gated around their functions, after your own wrappers of calls."""
    gate = SaysoMiddleware(policies, session=session, default=default, narrates=False)

    def wrap(request: Any, execute: Callable[[Any], Any]) -> Any:
        if wrap_tool_call is None:
            return gate.wrap_tool_call(request, execute)
        return gate.wrap_tool_call(request, lambda gated: wrap_tool_call(gated, execute))

    async def awrap(request: Any, execute: Callable[[Any], Awaitable[Any]]) -> Any:
        if awrap_tool_call is not None:
            return await gate.awrap_tool_call(request, lambda gated: awrap_tool_call(gated, execute))
        if wrap_tool_call is not None:
            raise TypeError("this node runs asynchronously, so it needs `awrap_tool_call`")
        return await gate.awrap_tool_call(request, execute)

    return ToolNode(list(tools), wrap_tool_call=wrap, awrap_tool_call=awrap, **settings)


__all__ = ["SaysoCallback", "guard_tools", "tool_node"]
