"""The event loop on which the package talks to hubs.

All input and output happens on one background thread per process. Programs with and without an event loop of their own use the
same implementation: a blocking call waits for the background loop, and a coroutine awaits it. A sayso call therefore never blocks
the loop that makes it, and one hub can serve several loops and threads.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from .errors import EventLoopRunning, HubUnreachable

T = TypeVar("T")

#: How long the end of the interpreter waits for open sessions to be ended, in seconds.
EXIT_TIMEOUT_SECONDS = 2.0

#: How long one wait lasts, in seconds. Python handles a signal only when the main thread runs, and the signal does not always wake it.
WAIT_SECONDS = 0.5


class Runtime:
    """A background thread with an event loop."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.is_shut_down = False
        self._exit_callbacks: list[Callable[[], Awaitable[None]]] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._thread = threading.Thread(target=self._run, name="sayso", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def submit(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Starts work on the background loop."""
        if self.is_shut_down or self.pid != os.getpid():
            work.close()
            raise HubUnreachable("the interpreter is shutting down, or this process was forked")
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Calls a function on the background loop, after everything that was submitted before."""
        if self.is_shut_down or self.pid != os.getpid():
            raise HubUnreachable("the interpreter is shutting down, or this process was forked")
        self.loop.call_soon_threadsafe(callback)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Starts work on the background loop that nobody waits for. Call it on that loop."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finish)

    def _finish(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()

    def at_exit(self, callback: Callable[[], Awaitable[None]]) -> None:
        """Registers work for the end of the interpreter."""
        self._exit_callbacks.append(callback)

    def shut_down(self) -> None:
        """Ends what is open. After that, nothing can be asked any more, so nothing irreversible runs."""
        if self.is_shut_down or self.pid != os.getpid():
            return

        async def finish() -> None:
            await asyncio.gather(*(callback() for callback in self._exit_callbacks), return_exceptions=True)

        future = asyncio.run_coroutine_threadsafe(finish(), self.loop)
        self.is_shut_down = True
        try:
            future.result(EXIT_TIMEOUT_SECONDS)
        except BaseException:
            future.cancel()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(EXIT_TIMEOUT_SECONDS)


_lock = threading.Lock()
_current: Runtime | None = None


def runtime() -> Runtime:
    """Returns the runtime of this process. A forked child gets its own."""
    global _current
    with _lock:
        if _current is None or _current.pid != os.getpid():
            _current = Runtime()
        return _current


@atexit.register
def _shut_down() -> None:
    if _current is not None:
        _current.shut_down()


def is_loop_running() -> bool:
    """Returns whether this thread runs an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def wait_for(future: concurrent.futures.Future[T]) -> T:
    """Waits for a result. A signal such as Ctrl-C ends the wait, even if another thread received it."""
    while True:
        try:
            return future.result(WAIT_SECONDS)
        except concurrent.futures.TimeoutError:
            # The work itself may have ended with this error.
            if future.done():
                return future.result()


def run_blocking(work: Coroutine[Any, Any, T], name: str = "this call") -> T:
    """Runs work on the background loop and waits for it. Refuses to block a running event loop."""
    if is_loop_running():
        work.close()
        raise EventLoopRunning(name)
    future = runtime().submit(work)
    try:
        return wait_for(future)
    except concurrent.futures.CancelledError:
        raise HubUnreachable("the interpreter is shutting down") from None
    except BaseException:
        # For example KeyboardInterrupt: the work is cancelled, which withdraws an open question.
        future.cancel()
        raise


async def run_awaiting(work: Coroutine[Any, Any, T]) -> T:
    """Runs work on the background loop and awaits it in the caller's loop. Cancelling the caller cancels the work."""
    return await asyncio.wrap_future(runtime().submit(work))
