"""Sessions for programs with an event loop (:class:`AsyncSession`) and without one (:class:`Session`).

Each method is implemented once, in :class:`SessionMethods`. A method of :class:`Session` waits for it, the same method of
:class:`AsyncSession` is awaited. Only what takes a stream or a function differs between the two.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from . import _gate
from ._consent import Granted, start_granted
from ._core import OpenCall, log
from ._forms import awaited, blocking, converted
from ._runtime import is_loop_running, run_awaiting, run_blocking
from ._session_methods import Answer, HandOffOutcome, Invitation, OutputOptions, SessionMethods
from ._tool_call import AsyncToolCall, ToolCall
from .errors import EventLoopRunning, SaysoError

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

T = TypeVar("T")


class AsyncSession(SessionMethods):
    """A session for programs with an event loop: ``async with sayso.session("Paying bills") as s:``."""

    async def __aenter__(self) -> Self:
        self._current.__enter__()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._current.__exit__()
        if self.is_ended:
            return
        try:
            await asyncio.shield(asyncio.ensure_future(run_awaiting(self._end_with(error))))
        except SaysoError as failure:
            log.warning("the session %s could not be ended: %s", self.id, failure)

    think = awaited(SessionMethods._think)
    decide = awaited(SessionMethods._decide)
    change_state = awaited(SessionMethods._change_state)
    progress = awaited(SessionMethods._progress)
    event = awaited(SessionMethods._event)
    ask = awaited(SessionMethods._ask)
    clarify = awaited(SessionMethods._clarify)
    hand_off = awaited(SessionMethods._hand_off)
    tool = converted(SessionMethods._tool, AsyncToolCall)
    finish = awaited(SessionMethods._finish)
    fail = awaited(SessionMethods._fail)
    cancel = awaited(SessionMethods._cancel)
    as_producer = converted(SessionMethods._as_producer, lambda core: AsyncSession(core))
    invite = awaited(SessionMethods._invite)

    async def say(
        self, text: str | Iterable[str] | AsyncIterable[str], *, stays: bool = False, **options: Unpack[OutputOptions]
    ) -> None:
        """Writes an output: a text, or a stream of pieces such as a model's tokens. Returns when the output is complete.

        With ``stays``, the hub does not report that the agent is thinking again. Report the next state yourself.
        """
        if isinstance(text, str):
            await self.write(text, complete=True, stays=stays, **options)
            return
        if isinstance(text, AsyncIterable):
            async for piece in text:
                await self.write(piece, **options)
        else:
            for piece in text:
                await self.write(piece, **options)
        await self.write("", complete=True, stays=stays, **options)

    async def write(
        self, piece: str, *, complete: bool = False, stays: bool = False, **options: Unpack[OutputOptions]
    ) -> None:
        """Writes a piece of an output. `complete` ends the output; `stays` is as in :meth:`say`."""
        if complete or stays or not self._feed(piece, **options):
            await run_awaiting(self._write(piece, complete=complete, stays=stays, **options))

    async def call(self, granted: Granted, function: Callable[..., Awaitable[T]], *, tool_call_id: str | None = None) -> T:
        """Makes a call that a person allowed. The function gets the arguments that were asked about, by name."""

        async def announce() -> OpenCall:
            return (await start_granted(self._core, granted, tool_call_id))[0]

        opened = await _gate.open_async(self._core, announce())
        return await _gate.finish_async(self._core, opened, function(**granted._call.values))


class Session(SessionMethods):
    """A session for programs without an event loop: ``with sayso.session("Paying bills") as s:``."""

    def __enter__(self) -> Self:
        self._current.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._current.__exit__()
        if self.is_ended:
            return
        try:
            run_blocking(self._end_with(error))
        except SaysoError as failure:
            log.warning("the session %s could not be ended: %s", self.id, failure)

    think = blocking(SessionMethods._think)
    decide = blocking(SessionMethods._decide)
    change_state = blocking(SessionMethods._change_state)
    progress = blocking(SessionMethods._progress)
    event = blocking(SessionMethods._event)
    ask = blocking(SessionMethods._ask)
    clarify = blocking(SessionMethods._clarify)
    hand_off = blocking(SessionMethods._hand_off)
    tool = converted(SessionMethods._tool, ToolCall)
    finish = blocking(SessionMethods._finish)
    fail = blocking(SessionMethods._fail)
    cancel = blocking(SessionMethods._cancel)
    as_producer = converted(SessionMethods._as_producer, lambda core: Session(core))
    invite = blocking(SessionMethods._invite)

    def say(self, text: str | Iterable[str], *, stays: bool = False, **options: Unpack[OutputOptions]) -> None:
        """Writes an output: a text, or a stream of pieces such as a model's tokens. Returns when the output is complete.

        With ``stays``, the hub does not report that the agent is thinking again. Report the next state yourself.
        """
        if isinstance(text, str):
            self.write(text, complete=True, stays=stays, **options)
            return
        for piece in text:
            self.write(piece, **options)
        self.write("", complete=True, stays=stays, **options)

    def write(self, piece: str, *, complete: bool = False, stays: bool = False, **options: Unpack[OutputOptions]) -> None:
        """Writes a piece of an output. `complete` ends the output; `stays` is as in :meth:`say`."""
        if complete or stays or not self._feed(piece, **options):
            run_blocking(self._write(piece, complete=complete, stays=stays, **options))

    def call(self, granted: Granted, function: Callable[..., T], *, tool_call_id: str | None = None) -> T:
        """Makes a call that a person allowed. The function gets the arguments that were asked about, by name."""
        if is_loop_running():
            raise EventLoopRunning("call")
        opened, call = run_blocking(start_granted(self._core, granted, tool_call_id))
        return _gate.finish_sync(self._core, opened, lambda: function(**call.values))


__all__ = ["Answer", "AsyncSession", "AsyncToolCall", "HandOffOutcome", "Invitation", "Session", "ToolCall"]
