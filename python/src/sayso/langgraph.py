"""LangGraph: ``tool_node(tools, policies)`` instead of ``ToolNode(tools)``, and :class:`SaysoCallback` for the model's text."""

from __future__ import annotations

from collections.abc import Iterable
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
    **settings: Any,
) -> Any:
    """Returns a `ToolNode` whose tools are gated around their functions."""
    gate = SaysoMiddleware(policies, session=session, default=default, narrates=False)
    return ToolNode(list(tools), wrap_tool_call=gate.wrap_tool_call, awrap_tool_call=gate.awrap_tool_call, **settings)


__all__ = ["SaysoCallback", "guard_tools", "tool_node"]
