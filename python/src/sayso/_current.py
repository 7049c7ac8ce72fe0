"""The current session of a context."""

from __future__ import annotations

from contextvars import ContextVar

from ._core import SessionCore
from .errors import NoSession

_current: ContextVar[SessionCore | None] = ContextVar("sayso_session", default=None)


def current_core() -> SessionCore:
    """Returns the current session, or raises :class:`NoSession`."""
    core = _current.get()
    if core is None:
        raise NoSession
    return core


def find_current_core() -> SessionCore | None:
    return _current.get()


def set_current(core: SessionCore | None) -> object:
    return _current.set(core)


class CurrentSession:
    """Makes a session the current one of this context until the block ends."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._previous: SessionCore | None = None

    def __enter__(self) -> None:
        self._previous = _current.get()
        _current.set(self._core)

    def __exit__(self, *_: object) -> None:
        _current.set(self._previous)
