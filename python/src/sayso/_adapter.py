"""Shared code of all adapters for agent frameworks.

The gate is around the tool's own function: it asks about exactly the arguments with which the function is about to run, after all
hooks and middleware of the framework. It never raises a refusal into a framework, because several frameworks then run other tools
of the same step; it returns a text that the model understands instead.

A tool that the author did not declare is asked about (:data:`sayso.ASK`). Declare harmless tools with :data:`sayso.HARMLESS`, or
set another default.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from typing import Any, TypeVar

from ._consent import ASK, BoundCall, Policy, bind, describe_for_model, open_call
from ._core import OpenCall, OutputPiece, SessionCore, describe_failure, log
from ._current import CurrentSession, current_core, find_current_core
from ._events import progress_updated
from ._gate import (
    IsCancelled,
    WaitingCalls,
    _check_async,
    _never,
    _reason_not_to_run,
    _report_sync,
    _success,
    finish_async,
    finish_sync,
    open_async,
    open_sync,
)
from ._runtime import is_loop_running, runtime
from ._session import AsyncSession, Session
from ._tool import Signature, find_spec
from .errors import Cancelled, SaysoError

T = TypeVar("T")

AnySession = Session | AsyncSession
Policies = Mapping[str, Policy]
#: Converts the text of a denial to what the framework expects as the tool's result.
Deny = Callable[[str], Any]


def _as_text(text: str) -> Any:
    return text


class Guard:
    """Gates and narrates the tools of one agent."""

    def __init__(self, policies: Policies | None = None, *, session: AnySession | None = None, default: Policy = ASK) -> None:
        self.policies = dict(policies or {})
        self.default = default
        self._core = session._core if session is not None else find_current_core()
        #: Incremented when a run is cancelled: calls that began before are no longer made.
        self._cancelled_runs = 0
        self._waiting = WaitingCalls()

    @property
    def core(self) -> SessionCore:
        """The session of this guard, else the current session."""
        return self._core if self._core is not None else current_core()

    def policy_for(self, name: str, function: Any = None) -> Policy:
        """Returns the policy of a tool: declared here, else by `@sayso.tool`, else the default."""
        if name in self.policies:
            return self.policies[name]
        spec = find_spec(function)
        return spec.policy if spec is not None else self.default

    def cancel_open_calls(self) -> None:
        """Makes sure that no call that is waiting for an answer is made, however late the answer is."""
        self._cancelled_runs += 1
        self._waiting.cancel_all()

    async def run_in_thread(self, function: Callable[[], T]) -> T:
        """Runs a blocking agent in a thread. If the caller is cancelled, questions that are open in threads are withdrawn."""
        try:
            return await asyncio.to_thread(function)
        except asyncio.CancelledError:
            self.cancel_open_calls()
            raise

    async def run(
        self,
        name: str,
        values: Mapping[str, Any],
        function: Callable[[BoundCall], Awaitable[Any]],
        *,
        policy: Policy | None = None,
        call_id: str | None = None,
        is_cancelled: IsCancelled = _never,
        deny: Deny = _as_text,
    ) -> Any:
        """Runs a call in the caller's event loop. Returns the denial if it may not run, and raises only what the tool raises."""
        rules = policy if policy is not None else self.policy_for(name)
        run = self._cancelled_runs
        try:
            core = self.core
            call = bind(name, values, rules.skip)
            opened = await open_async(core, open_call(core, call, rules, call_id))
            await _check_async(core, opened, call, lambda: is_cancelled() or run != self._cancelled_runs)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            return deny(_denial(name, error))
        with CurrentSession(core):
            return await finish_async(core, opened, function(call), rules.timeout, _success(rules, call))

    def run_blocking(
        self,
        name: str,
        values: Mapping[str, Any],
        function: Callable[[BoundCall], Any],
        *,
        policy: Policy | None = None,
        call_id: str | None = None,
        is_cancelled: IsCancelled = _never,
        deny: Deny = _as_text,
    ) -> Any:
        """Runs a call in the caller's thread. In a thread with an event loop it is denied, because it would block the loop."""
        rules = policy if policy is not None else self.policy_for(name)
        run = self._cancelled_runs
        try:
            core = self.core
            call = bind(name, values, rules.skip)
            opened = open_sync(core, open_call(core, call, rules, call_id), name, self._waiting)
            failure = _reason_not_to_run(core, call, lambda: is_cancelled() or run != self._cancelled_runs)
            if failure is not None:
                _report_sync(core.complete(opened, "error", str(failure), str(failure), is_library_text=True))
                return deny(_denial(name, failure))
        except Exception as error:
            return deny(_denial(name, error))
        with CurrentSession(core):
            return finish_sync(core, opened, lambda: function(call), _success(rules, call))

    def wrap(
        self,
        function: Callable[..., Any],
        name: str | None = None,
        *,
        asynchronous: bool = False,
        deny: Deny = _as_text,
        policy: Policy | None = None,
    ) -> Callable[..., Any]:
        """Returns a function with the same signature that is gated. `asynchronous` turns `def` into `async def`."""
        spec = find_spec(function)
        target = spec.function if spec is not None else function
        tool_name: str = name or (spec.name if spec is not None else str(getattr(target, "__name__", "tool")))
        rules = policy if policy is not None else self.policy_for(tool_name, function)
        signature = Signature(target)
        is_async = inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(getattr(target, "__call__", None))  # noqa: B004

        if is_async or asynchronous:

            @functools.wraps(target)
            async def run(*args: Any, **kwargs: Any) -> Any:
                async def call(bound: BoundCall) -> Any:
                    if is_async:
                        return await signature.call(target, bound.values)
                    return await asyncio.to_thread(signature.call, target, bound.values)

                return await self.run(tool_name, signature.by_name(args, kwargs), call, policy=rules, deny=deny)

            return run

        @functools.wraps(target)
        def run_blocking(*args: Any, **kwargs: Any) -> Any:
            return self.run_blocking(
                tool_name,
                signature.by_name(args, kwargs),
                lambda bound: signature.call(target, bound.values),
                policy=rules,
                deny=deny,
            )

        return run_blocking


def _denial(name: str, error: BaseException) -> str:
    if not isinstance(error, SaysoError):
        log.warning("the gate of %s failed, so the tool was not run", name, exc_info=error)
        return describe_for_model(Cancelled("consent could not be asked for"))
    return describe_for_model(error)


class Narrator:
    """Writes a model's text to a session as it arrives. Failures are logged, because narration must not stop the agent.

    It never waits, so it can be used in callbacks with and without an event loop.
    """

    def __init__(self, session: AnySession | None = None, *, content_type: str | None = "text/markdown") -> None:
        self._core = session._core if session is not None else find_current_core()
        self._content_type = content_type

    @property
    def core(self) -> SessionCore | None:
        return self._core if self._core is not None else find_current_core()

    def write(self, piece: str) -> None:
        """Writes a piece of the model's text."""
        if piece:
            self._submit(lambda core: core.write(OutputPiece(piece, content_type=self._content_type)))

    def complete(self) -> None:
        """Ends the text, if there was any."""
        self._submit(lambda core: core.complete_outputs())

    def error(self, error: BaseException) -> None:
        """Reports an error of the model or of the framework, without ending the session."""

        async def report(core: SessionCore) -> None:
            reason = describe_failure(error)
            says = f"Something went wrong: {reason}" if core.is_english else reason
            await core.send(progress_updated(says, redact=core.hub.redact))

        self._submit(report)

    @contextlib.contextmanager
    def narrating(self) -> Iterator[None]:
        """Completes the text at the end of the block, and reports the error that ended it. A cancellation is not an error."""
        try:
            yield
        except Exception as error:
            self.error(error)
            raise
        finally:
            self.complete()

    def _submit(self, work: Callable[[SessionCore], Coroutine[Any, Any, None]]) -> None:
        core = self.core
        if core is None:
            return
        try:
            runtime().submit(self._quietly(work(core)))
        except SaysoError as error:
            log.debug("narration failed: %s", error)

    @staticmethod
    async def _quietly(work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except SaysoError as error:
            log.debug("narration failed: %s", error)


__all__ = ["AnySession", "BoundCall", "Deny", "Guard", "Narrator", "OpenCall", "Policies", "is_loop_running"]
