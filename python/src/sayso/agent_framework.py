"""Microsoft Agent Framework: ``Agent(client=..., tools=guard_tools(tools, policies))`` and ``narrate(agent.run(..., stream=True))``.

The gate is around each tool's function, so it asks about the arguments after all function middleware. Hosted tools run at the
provider, so they are not gated.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Iterable
from typing import Any

from agent_framework import FunctionTool
from agent_framework import tool as to_tool

from ._adapter import AnySession, Guard, Narrator, Policies
from ._consent import ASK, Policy
from ._tool import find_spec


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
    if not isinstance(tool, FunctionTool):
        if not callable(tool):
            return tool
        spec = find_spec(tool)
        if spec is not None:
            guard.policies.setdefault(spec.name, spec.policy)
        # sayso asks, so the framework need not.
        tool = to_tool(spec.function if spec is not None else tool, approval_mode="never_require")
    if tool.func is None:
        return tool
    guarded = copy.copy(tool)
    guarded.func = guard.wrap(tool.func, tool.name, asynchronous=True)
    return guarded


async def narrate(updates: AsyncIterator[Any], *, session: AnySession | None = None) -> AsyncIterator[Any]:
    """Passes on the updates of `agent.run(..., stream=True)`, and narrates the model's text."""
    narrator = Narrator(session)
    has_text = False
    with narrator.narrating():
        async for update in updates:
            text = getattr(update, "text", "") or ""
            if text:
                has_text = True
                narrator.write(text)
            elif has_text:
                narrator.complete()
                has_text = False
            yield update


__all__ = ["guard_tools", "narrate"]
