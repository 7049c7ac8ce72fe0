"""Blocks around tool calls that need no consent."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING

from . import _gate
from ._core import OpenCall, SessionCore
from ._forms import Work, awaited, blocking
from ._text import Text

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class ToolOpening:
    """A tool call that is announced when its block is entered."""

    core: SessionCore
    tool: str
    work: Work[OpenCall]


class _ToolCallBase:
    """The shared part of both forms."""

    def __init__(self, opening: ToolOpening) -> None:
        self._opening = opening
        self._core = opening.core
        self._call: OpenCall | None = None

    def _succeed(self, says: Text) -> Work[None]:
        """Reports that the tool succeeded."""
        assert self._call is not None
        return self._core.complete(self._call, "success", says)

    def _fail(self, says: Text, reason: Text | None = None) -> Work[None]:
        """Reports that the tool failed."""
        assert self._call is not None
        return self._core.complete(self._call, "error", says, reason if reason is not None else says)

    async def _outcome(self, error: BaseException | None) -> None:
        assert self._call is not None
        if error is None:
            await _gate._succeeded(self._core, self._call, None)
        elif isinstance(error, Exception):
            await _gate._failed(self._core, self._call, error)
        else:
            await self._core.abandon_call(self._call)


class AsyncToolCall(_ToolCallBase):
    """An announced tool call. Leaving the block reports its outcome, unless it is already reported."""

    async def __aenter__(self) -> Self:
        self._call = await _gate.open_async(self._core, self._opening.work)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._call is not None
        if isinstance(error, asyncio.CancelledError):
            _gate._submit_quietly(self._core.abandon_call(self._call))
        else:
            await _gate._report_async(self._outcome(error))

    succeed = awaited(_ToolCallBase._succeed)
    fail = awaited(_ToolCallBase._fail)


class ToolCall(_ToolCallBase):
    """An announced tool call. Leaving the block reports its outcome, unless it is already reported."""

    def __enter__(self) -> Self:
        self._call = _gate.open_sync(self._core, self._opening.work, self._opening.tool)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        _gate._report_sync(self._outcome(error))

    succeed = blocking(_ToolCallBase._succeed)
    fail = blocking(_ToolCallBase._fail)
