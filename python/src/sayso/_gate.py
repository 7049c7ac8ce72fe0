"""Runs one call: asks if needed, announces it, runs the function with exactly the arguments that were asked about, reports.

Before the function runs, these functions raise a :class:`SaysoError` if it must not run. Once it has started, they raise
:class:`ToolTimedOut`, :class:`SessionStopped` or the function's own exception.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from ._consent import BoundCall, Policy, describe, open_call
from ._core import OpenCall, SessionCore, describe_failure, log
from ._runtime import is_loop_running, run_blocking, runtime, wait_for
from ._text import Text, humanize
from .errors import Cancelled, EventLoopRunning, SaysoError, SessionStopped, ToolTimedOut

T = TypeVar("T")
IsCancelled = Callable[[], bool]


def _never() -> bool:
    return False


async def run_async(
    core: SessionCore,
    call: BoundCall,
    policy: Policy,
    function: Callable[[BoundCall], Awaitable[T]],
    *,
    call_id: str | None = None,
    is_cancelled: IsCancelled = _never,
) -> T:
    """Runs a call in the caller's event loop."""
    opened = await open_async(core, open_call(core, call, policy, call_id))
    await _check_async(core, opened, call, is_cancelled)
    return await finish_async(core, opened, function(call), policy.timeout, _success(policy, call))


async def open_async(core: SessionCore, work: Coroutine[Any, Any, OpenCall]) -> OpenCall:
    """Waits until the call is open: asked about, if needed, and reported.

    If the caller is cancelled meanwhile, the call is abandoned, even if the answer arrives later.
    """
    future = runtime().submit(work)
    try:
        return await asyncio.wrap_future(future)
    except BaseException:
        # The announcement may have succeeded at the same moment. Then the call is closed again; the function does not run.
        future.add_done_callback(lambda done: _abandon(core, done))
        future.cancel()
        raise


def _abandon(core: SessionCore, done: concurrent.futures.Future[OpenCall]) -> None:
    if not done.cancelled() and done.exception() is None:
        _submit_quietly(core.abandon_call(done.result()))


def _submit_quietly(work: Coroutine[Any, Any, None]) -> None:
    try:
        runtime().submit(work)
    except SaysoError as error:
        log.debug("an abandoned call could not be reported: %s", error)


async def _check_async(core: SessionCore, opened: OpenCall, call: BoundCall, is_cancelled: IsCancelled) -> None:
    error = _reason_not_to_run(core, call, is_cancelled)
    if error is not None:
        await _report_async(core.complete(opened, "error", str(error), str(error), is_library_text=True))
        raise error


def _reason_not_to_run(core: SessionCore, call: BoundCall, is_cancelled: IsCancelled) -> SaysoError | None:
    """The last check before the function runs."""
    try:
        if is_cancelled():
            return Cancelled("the call was cancelled before it was made")
        if core.stop_reason is not None:
            return SessionStopped(core.stop_reason)
        call.verify()
    except SaysoError as error:
        return error
    except Exception as error:
        return Cancelled(f"it is not known whether the call was cancelled: {error!r}")
    return None


async def finish_async(
    core: SessionCore, opened: OpenCall, work: Awaitable[T], timeout: float | None = None, success: Text | None = None
) -> T:
    """Awaits a tool and reports its outcome. A stop by the person cancels the tool."""
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    is_stopped = False

    def stop() -> None:
        nonlocal is_stopped
        is_stopped = True
        task.cancel()

    def stop_threadsafe() -> None:
        try:
            loop.call_soon_threadsafe(stop)
        except RuntimeError:
            pass  # The caller's loop has ended, and the tool with it.

    remove = core.on_stop(stop_threadsafe)
    try:
        result = await asyncio.wait_for(task, timeout)
    except asyncio.TimeoutError as error:
        if not task.cancelled():
            await _report_async(_failed(core, opened, error))
            raise
        reason = f"{humanize(opened.tool)} took too long."
        await _report_async(core.complete(opened, "timeout", reason, reason, is_library_text=True))
        raise ToolTimedOut(reason) from None
    except asyncio.CancelledError:
        if is_stopped:
            raise SessionStopped(core.stop_reason or "ended") from None
        # The caller is cancelled: report without awaiting, because this task must end now.
        _submit_quietly(core.abandon_call(opened))
        raise
    except BaseException as error:
        await _report_async(_failed(core, opened, error))
        raise
    finally:
        remove()
    await _report_async(_succeeded(core, opened, success))
    return result


def run_sync(
    core: SessionCore,
    call: BoundCall,
    policy: Policy,
    function: Callable[[BoundCall], T],
    *,
    call_id: str | None = None,
    is_cancelled: IsCancelled = _never,
) -> T:
    """Runs a call in the caller's thread, which must not run an event loop."""
    opened = open_sync(core, open_call(core, call, policy, call_id), call.tool)
    error = _reason_not_to_run(core, call, is_cancelled)
    if error is not None:
        _report_sync(core.complete(opened, "error", str(error), str(error), is_library_text=True))
        raise error
    return finish_sync(core, opened, lambda: function(call), _success(policy, call))


class WaitingCalls:
    """The calls that wait for an answer in threads, which cannot be cancelled themselves."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._futures: set[concurrent.futures.Future[OpenCall]] = set()

    def submit(self, work: Coroutine[Any, Any, OpenCall]) -> concurrent.futures.Future[OpenCall]:
        # Under the lock, so that nobody can hear about the question before it can be cancelled.
        with self._lock:
            future = runtime().submit(work)
            self._futures.add(future)
            return future

    def discard(self, future: concurrent.futures.Future[OpenCall]) -> None:
        with self._lock:
            self._futures.discard(future)

    def cancel_all(self) -> None:
        with self._lock:
            futures = list(self._futures)
        for future in futures:
            future.cancel()


def open_sync(
    core: SessionCore,
    work: Coroutine[Any, Any, OpenCall],
    name: str,
    waiting: WaitingCalls | None = None,
) -> OpenCall:
    """Waits until the call is open: asked about, if needed, and reported. Cancelling what is in `waiting` withdraws its question."""
    if is_loop_running():
        work.close()
        raise EventLoopRunning(f"the tool {name}")
    future = runtime().submit(work) if waiting is None else waiting.submit(work)
    try:
        return wait_for(future)
    except concurrent.futures.CancelledError:
        raise Cancelled("the call was cancelled before it was made") from None
    except BaseException:
        future.add_done_callback(lambda done: _abandon(core, done))
        future.cancel()
        raise
    finally:
        if waiting is not None:
            waiting.discard(future)


def finish_sync(core: SessionCore, opened: OpenCall, function: Callable[[], T], success: Text | None = None) -> T:
    """Runs a function and reports its outcome."""
    try:
        result = function()
    except Exception as error:
        _report_sync(_failed(core, opened, error))
        raise
    except BaseException:
        _submit_quietly(core.abandon_call(opened))
        raise
    _report_sync(_succeeded(core, opened, success))
    return result


def _success(policy: Policy, call: BoundCall) -> Text | None:
    if policy.success is None:
        return None
    try:
        return describe(policy.success, call, policy, default="")
    except SaysoError as error:
        log.warning("the text for the success of %s cannot be used: %s", call.tool, error)
        return None


async def _succeeded(core: SessionCore, opened: OpenCall, success: Text | None) -> None:
    if success is None:
        await core.complete(opened, "success", f"{humanize(opened.tool)} has finished.", is_library_text=True)
    else:
        await core.complete(opened, "success", success)


async def _failed(core: SessionCore, opened: OpenCall, error: BaseException) -> None:
    reason = describe_failure(error)
    summary = f"{humanize(opened.tool)} failed: {reason}" if core.is_english else reason
    await core.complete(opened, "error", summary, reason)


async def _report_async(work: Coroutine[Any, Any, None]) -> None:
    """Reports an outcome.

    If the report fails, the error is logged and not raised, because the tool has already run and the caller would run it again.
    """
    try:
        await asyncio.wrap_future(runtime().submit(work))
    except SaysoError as error:
        log.warning("the outcome of a tool could not be reported: %s", error)


def _report_sync(work: Coroutine[Any, Any, None]) -> None:
    try:
        run_blocking(work)
    except SaysoError as error:
        log.warning("the outcome of a tool could not be reported: %s", error)
