"""Semantic Kernel: call ``guard_kernel(kernel, policies)`` after all plugins are added, and narrate with :func:`narrate`.

The gate is around each function's own method, so it asks about the arguments after all filters, for automatic calls and for
`kernel.invoke`. Policies are looked up by `plugin-function`, then by the name of the function.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from semantic_kernel.functions.kernel_function_from_method import KernelFunctionFromMethod

from ._adapter import AnySession, Guard, Narrator, Policies
from ._consent import ASK, Policy


def guard_kernel(
    kernel: Any, policies: Policies | None = None, *, session: AnySession | None = None, default: Policy = ASK
) -> Any:
    """Gates every native function of a kernel, in place. Functions that are prompts are not gated; they call the model."""
    guard = Guard(policies, session=session, default=default)
    for plugin in kernel.plugins.values():
        for name, function in list(plugin.functions.items()):
            plugin.functions[name] = _guard_function(function, guard)
    return kernel


def _guard_function(function: Any, guard: Guard) -> Any:
    if not isinstance(function, KernelFunctionFromMethod):
        return function
    qualified = function.fully_qualified_name
    if qualified in guard.policies:
        guard.policies.setdefault(function.name, guard.policies[qualified])
    guarded = function.model_copy()
    guarded.method = guard.wrap(function.method, function.name, asynchronous=True)
    if function.stream_method is not None:
        # A generator would run after the gate; its values are collected by the method instead.
        guarded.stream_method = None
    return guarded


async def narrate(messages: AsyncIterator[Any], *, session: AnySession | None = None) -> AsyncIterator[Any]:
    """Passes on the messages of `agent.invoke_stream(...)`, and narrates the model's text."""
    narrator = Narrator(session)
    with narrator.narrating():
        async for item in messages:
            message = getattr(item, "message", item)
            narrator.write(getattr(message, "content", "") or "")
            yield item


__all__ = ["guard_kernel", "narrate"]
