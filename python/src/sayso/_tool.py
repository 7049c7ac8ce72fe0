"""The decorator `@sayso.tool`: a function that asks, announces itself and reports its outcome."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar, cast, overload

from . import _gate
from ._agent_api import Reversibility, Risk
from ._consent import DEFAULT_ANSWER_TIMEOUT, BoundCall, Policy, Template, bind
from ._current import current_core
from ._text import Text

P = ParamSpec("P")
R = TypeVar("R")

#: The attribute by which adapters recognise a decorated function.
ATTRIBUTE = "__sayso_tool__"


@dataclass(frozen=True)
class ToolSpec:
    """The facts about a decorated function that an adapter needs."""

    name: str
    policy: Policy
    function: Callable[..., Any]


class Signature:
    """Converts positional and keyword arguments to arguments by name, and back."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._signature = inspect.signature(function)
        kinds = {parameter.kind: name for name, parameter in self._signature.parameters.items()}
        self._rest = kinds.get(inspect.Parameter.VAR_KEYWORD)

    def by_name(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        values = dict(bound.arguments)
        if self._rest is not None:
            rest = values.pop(self._rest)
            if clash := set(rest) & set(values):
                raise TypeError(f"the arguments {sorted(clash)} are given twice")
            values |= rest
        return values

    def call(self, function: Callable[..., Any], values: Mapping[str, Any]) -> Any:
        """Calls a function with arguments by name."""
        args: list[Any] = []
        kwargs = dict(values)
        for name, parameter in self._signature.parameters.items():
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                if name not in kwargs:
                    break
                args.append(kwargs.pop(name))
            elif parameter.kind == parameter.VAR_POSITIONAL:
                args.extend(kwargs.pop(name, ()))
        return function(*args, **kwargs)


@overload
def tool(function: Callable[P, R], /) -> Callable[P, R]: ...


@overload
def tool(
    *,
    name: str | None = None,
    action: Template | None = None,
    consequence: Template | None = None,
    irreversible: bool = False,
    risk: Risk | None = None,
    ask: bool = False,
    reversibility: Reversibility | None = None,
    question: Template | None = None,
    success: Template | None = None,
    description: Text | None = None,
    args_summary: Template | None = None,
    expected_duration: float | None = None,
    skip: Collection[str] = (),
    confidential: Collection[str] = (),
    answer_timeout: float = DEFAULT_ANSWER_TIMEOUT,
    timeout: float | None = None,
    allowed_replies: Sequence[str] = (),
    extra_context: Mapping[str, Any] | None = None,
    policy: Policy | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    policy: Policy | None = None,
    **settings: Any,
) -> Any:
    """Makes a function ask a person before it runs, if it is dangerous, and report what it does.

    Works on functions with ``def`` and with ``async def``. The function runs with a private copy of exactly the arguments that
    the person was asked about. Without a yes it does not run, and the call raises a :class:`sayso.SaysoError` that says why.
    """
    if function is None:
        return lambda function: tool_with_policy(function, name, policy or Policy(**settings))
    return tool_with_policy(function, name, policy or Policy(**settings))


def tool_with_policy(function: Callable[P, R], name: str | None, policy: Policy) -> Callable[P, R]:
    """Decorates a function."""
    target = cast("Callable[..., Any]", function)
    tool_name = name or target.__name__
    signature = Signature(target)

    def bind_call(args: Sequence[Any], kwargs: Mapping[str, Any]) -> BoundCall:
        return bind(tool_name, signature.by_name(args, kwargs), policy.skip)

    if inspect.isasyncgenfunction(target) or inspect.isgeneratorfunction(target):
        raise TypeError("a generator cannot be a tool: it would run after the report that it has finished")
    if inspect.iscoroutinefunction(target):

        @functools.wraps(target)
        async def run_async(*args: Any, **kwargs: Any) -> Any:
            core = current_core()
            call = bind_call(args, kwargs)
            return await _gate.run_async(core, call, policy, lambda call: signature.call(target, call.values))

        wrapper: Callable[..., Any] = run_async
    else:

        @functools.wraps(target)
        def run_sync(*args: Any, **kwargs: Any) -> Any:
            core = current_core()
            call = bind_call(args, kwargs)
            return _gate.run_sync(core, call, policy, lambda call: signature.call(target, call.values))

        wrapper = run_sync
    setattr(wrapper, ATTRIBUTE, ToolSpec(tool_name, policy, target))
    return cast("Callable[P, R]", wrapper)


def find_spec(function: Any) -> ToolSpec | None:
    """Returns the specification of a decorated function."""
    spec = getattr(function, ATTRIBUTE, None)
    return spec if isinstance(spec, ToolSpec) else None
