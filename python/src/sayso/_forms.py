"""Gives one implementation of a method its blocking and its awaited form.

An implementation returns work for the background loop. Both forms have its parameters and its documentation.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from ._runtime import run_awaiting, run_blocking

if TYPE_CHECKING:
    from typing import Concatenate

S = TypeVar("S")
P = ParamSpec("P")
R = TypeVar("R")
V = TypeVar("V")

#: What an implementation returns: a coroutine for the background loop, with this result.
Work = Coroutine[Any, Any, R]


def blocking(method: Callable[Concatenate[S, P], Work[R]]) -> Callable[Concatenate[S, P], R]:
    """Returns a method that waits for the work of another one. In a thread that runs an event loop it is refused."""

    @functools.wraps(method)
    def run(session: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return run_blocking(method(session, *args, **kwargs))

    return _document(run)


def awaited(method: Callable[Concatenate[S, P], Work[R]]) -> Callable[Concatenate[S, P], Work[R]]:
    """Returns a method that awaits the work of another one. Cancelling the caller cancels the work."""

    @functools.wraps(method)
    async def run(session: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await run_awaiting(method(session, *args, **kwargs))

    return _document(run)


def converted(method: Callable[Concatenate[S, P], R], convert: Callable[[R], V]) -> Callable[Concatenate[S, P], V]:
    """Returns a method that converts the result of another one."""

    @functools.wraps(method)
    def run(session: S, /, *args: P.args, **kwargs: P.kwargs) -> V:
        return convert(method(session, *args, **kwargs))

    return _document(run)


F = TypeVar("F", bound=Callable[..., Any])


def _document(run: F) -> F:
    """Gives a form the public name of its implementation, and lets `help` show the result of the work instead of the work."""
    run.__name__ = run.__name__.removeprefix("_")
    signature = inspect.signature(run)
    result = str(signature.return_annotation)
    if result.startswith("Work["):
        run.__signature__ = signature.replace(return_annotation=result[5:-1])  # type: ignore[attr-defined]
    return run
