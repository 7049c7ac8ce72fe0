"""Sessions for programs with an event loop (:class:`AsyncSession`) and without one (:class:`Session`).

Both are thin forms of one implementation on the background loop. A method of :class:`Session` waits, the same method of
:class:`AsyncSession` is awaited.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from . import _events as events
from . import _gate
from ._consent import BoundCall, Granted, Policy, Template, bind, start_granted
from ._consent import ask as ask_consent
from ._core import OpenCall, SessionCore, describe_failure, log
from ._current import CurrentSession
from ._events import ErrorCategory, EventOptions, ResponseKind, Reversibility, Risk, State, Target
from ._runtime import is_loop_running, run_awaiting, run_blocking
from ._text import Text, humanize
from .errors import EventLoopRunning, InvalidRequest, SaysoError, SessionStopped, Unanswered

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

T = TypeVar("T")
Answer = str | bool | float


@dataclass(frozen=True)
class HandOffOutcome:
    """What became of a hand-off: `acknowledged`, `rejected`, `timeout`, `unreachable` or `withdrawn`."""

    outcome: str
    note: str | None = None
    principal: str | None = None

    @property
    def is_acknowledged(self) -> bool:
        return self.outcome == "acknowledged"


@dataclass(frozen=True)
class Invitation:
    """An invitation for another token to speak as one producer of a session. It works once."""

    session_id: str
    producer: str
    invitation: str
    expires_at: str


class _SessionBase:
    """What both forms share: everything that does not wait."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        #: The final report, if the agent wants another one than the default.
        self._current = CurrentSession(core)

    @property
    def id(self) -> str:
        return self._core.id

    @property
    def is_stopped(self) -> bool:
        """Whether the session is over although the agent has not ended it."""
        return self._core.stop_reason is not None

    @property
    def stop_reason(self) -> str | None:
        return self._core.stop_reason

    @property
    def is_ended(self) -> bool:
        return self._core.is_ended or self.is_stopped

    def as_current(self) -> CurrentSession:
        """Returns a block in which this is the current session, for a thread that did not inherit it."""
        return CurrentSession(self._core)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"

    # The bodies of events

    def _state(
        self, state: str, says: Text | None, expected_duration: float | None, options: Mapping[str, Any]
    ) -> Coroutine[Any, Any, None]:
        event = events.state_changed(state, says, expected_duration, options, self._core.hub.redact)
        return self._core.send(event)

    def _progress(self, says: Text, options: Mapping[str, Any], **numbers: Any) -> Coroutine[Any, Any, None]:
        event = events.progress_updated(says, options=options, redact=self._core.hub.redact, **numbers)
        return self._core.send(event)

    def _raw_event(self, event: Mapping[str, Any]) -> Coroutine[Any, Any, None]:
        return self._core.send(self._core.redacted(dict(event)))

    async def _ask(self, tool: str, arguments: Mapping[str, Any], policy: Policy, tool_call_id: str | None) -> Granted:
        return await ask_consent(self._core, bind(tool, arguments, policy.skip), policy, tool_call_id)

    async def _clarify(self, body: Mapping[str, Any]) -> Answer:
        answer = await self._core.ask("session.clarify", body)
        response = answer.get("response")
        if isinstance(response, str | bool | int | float):
            return float(response) if isinstance(response, int) and not isinstance(response, bool) else response
        raise Unanswered(str(answer.get("by")))

    def _clarification(self, question: Text, options: Mapping[str, Any], **members: Any) -> Coroutine[Any, Any, Answer]:
        return self._clarify(events.clarification(question, options=options, redact=self._core.hub.redact, **members))

    async def _hand_off(self, body: Mapping[str, Any]) -> HandOffOutcome:
        answer = await self._core.ask("session.hand_off", body)
        note, principal = answer.get("note"), answer.get("principal")
        return HandOffOutcome(
            str(answer.get("outcome")),
            note if isinstance(note, str) else None,
            principal if isinstance(principal, str) else None,
        )

    def _hand_off_body(self, reason: Text, options: Mapping[str, Any], **members: Any) -> dict[str, Any]:
        return events.hand_off(reason, options=options, redact=self._core.hub.redact, **members)

    def _tool_opening(
        self, tool: str, says: Text | None, options: Mapping[str, Any], tool_call_id: str | None, **members: Any
    ) -> Coroutine[Any, Any, OpenCall]:
        announced = events.tool_members(
            says if says is not None else f"{humanize(tool)}.",
            irreversible=False,
            options=options,
            redact=self._core.hub.redact,
            **members,
        )
        return self._core.invoke(tool, announced, tool_call_id)

    def _finish(self, says: Text | None, options: Mapping[str, Any], **members: Any) -> Coroutine[Any, Any, None]:
        core = self._core
        event = events.completed(
            says if says is not None else "The task is done.",
            duration=max(0.0, _now() - core.started_at),
            tool_calls=core.call_count,
            options=options,
            redact=core.hub.redact,
            **members,
        )
        return self._end(event, says is None)

    def _fail(self, says: Text, options: Mapping[str, Any], **members: Any) -> Coroutine[Any, Any, None]:
        return self._end(events.errored(says, options=options, redact=self._core.hub.redact, **members), False)

    def _cancel(self, says: Text | None, options: Mapping[str, Any], **members: Any) -> Coroutine[Any, Any, None]:
        text = says if says is not None else "The agent was interrupted."
        event = events.cancelled(text, options=options, redact=self._core.hub.redact, **members)
        return self._end(event, says is None)

    def _end(self, event: dict[str, Any], is_library_text: bool) -> Coroutine[Any, Any, None]:
        if is_library_text and not self._core.is_english:
            event["localization_hints"] = {"primary_language": "en"}
        return self._core.end(event)

    def _end_with(self, error: BaseException | None) -> Coroutine[Any, Any, None]:
        """Returns the end of a session whose block ended with this exception."""
        if error is None:
            return self._finish(None, {}, output_summary=None, result_uri=None)
        if isinstance(error, Exception) and not isinstance(error, asyncio.CancelledError):
            if isinstance(error, SaysoError) and not isinstance(error, InvalidRequest | SessionStopped):
                return self._cancel(f"Nothing more was done: {error}.", {}, by="producer", reason=None, partial_result=None)
            return self._fail(
                describe_failure(error),
                {},
                category="unknown",
                code=None,
                help_uri=None,
                recoverable=None,
                remediation_hint=None,
            )
        return self._cancel(None, {}, by="producer", reason="interrupted", partial_result=None)

    async def _invite(self, producer: str, expires_in: float | None) -> Invitation:
        body: dict[str, Any] = {"producer": producer}
        if expires_in is not None:
            body["expires_in_seconds"] = events.whole_seconds(expires_in)
        result = await self._core._call("session.invite", body)
        return Invitation(*(str(result.get(name)) for name in ("session_id", "producer", "invitation", "expires_at")))

    def _as_producer(self, agent_id: str) -> SessionCore:
        core = SessionCore(self._core.hub, self._core.id, self._core.is_english, agent_id)
        self._core.add_part(core)
        return core


def _now() -> float:
    import time

    return time.monotonic()


def _policy(
    action: Template | None,
    consequence: Template | None,
    irreversible: bool,
    risk: Risk | None,
    reversibility: Reversibility | None,
    question: Template | None,
    answer_timeout: float,
    allowed_replies: Iterable[str],
    extra_context: Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> Policy:
    return Policy(
        action=action,
        consequence=consequence,
        irreversible=irreversible,
        risk=risk,
        ask=True,
        reversibility=reversibility,
        question=question,
        answer_timeout=answer_timeout,
        allowed_replies=tuple(allowed_replies),
        extra_context=extra_context,
        options=options,
    )


class AsyncToolCall:
    """An announced tool call. Leaving the block reports its outcome, unless it is already reported."""

    def __init__(self, core: SessionCore, opening: Coroutine[Any, Any, OpenCall]) -> None:
        self._core = core
        self._opening = opening
        self._call: OpenCall | None = None

    async def __aenter__(self) -> Self:
        self._call = await _gate.announce_async(self._core, self._opening)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._call is not None
        if isinstance(error, asyncio.CancelledError):
            _gate._submit_quietly(self._core.abandon_call(self._call))
        else:
            await _gate._report_async(_outcome(self._core, self._call, error))

    async def succeed(self, says: Text) -> None:
        """Reports that the tool succeeded."""
        assert self._call is not None
        await run_awaiting(self._core.complete(self._call, "success", says))

    async def fail(self, says: Text, reason: Text | None = None) -> None:
        """Reports that the tool failed."""
        assert self._call is not None
        await run_awaiting(self._core.complete(self._call, "error", says, reason if reason is not None else says))


class ToolCall:
    """An announced tool call. Leaving the block reports its outcome, unless it is already reported."""

    def __init__(self, core: SessionCore, opening: Coroutine[Any, Any, OpenCall], tool: str) -> None:
        self._core = core
        self._opening = opening
        self._tool = tool
        self._call: OpenCall | None = None

    def __enter__(self) -> Self:
        self._call = _gate.announce_sync(self._core, self._opening, self._tool)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._call is not None
        _gate._report_sync(_outcome(self._core, self._call, error))

    def succeed(self, says: Text) -> None:
        """Reports that the tool succeeded."""
        assert self._call is not None
        run_blocking(self._core.complete(self._call, "success", says))

    def fail(self, says: Text, reason: Text | None = None) -> None:
        """Reports that the tool failed."""
        assert self._call is not None
        run_blocking(self._core.complete(self._call, "error", says, reason if reason is not None else says))


async def _outcome(core: SessionCore, call: OpenCall, error: BaseException | None) -> None:
    if error is None:
        await _gate._succeeded(core, call, None)
    elif isinstance(error, Exception):
        await _gate._failed(core, call, error)
    else:
        await core.abandon_call(call)


async def _announce_granted_async(core: SessionCore, granted: Granted, tool_call_id: str | None) -> tuple[OpenCall, BoundCall]:
    async def announce() -> OpenCall:
        return (await start_granted(core, granted, tool_call_id))[0]

    return await _gate.announce_async(core, announce()), granted._call


class AsyncSession(_SessionBase):
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

    # Reports

    async def think(self, says: Text, *, expected_duration: float | None = None, **options: Unpack[EventOptions]) -> None:
        """Reports that the agent is thinking."""
        await run_awaiting(self._state("thinking", says, expected_duration, options))

    async def decide(self, says: Text, *, expected_duration: float | None = None, **options: Unpack[EventOptions]) -> None:
        """Reports that the agent is deciding."""
        await run_awaiting(self._state("deciding", says, expected_duration, options))

    async def change_state(
        self,
        state: State | str,
        says: Text | None = None,
        *,
        expected_duration: float | None = None,
        **options: Unpack[EventOptions],
    ) -> None:
        """Reports a state of AAEP, or one of the agent's own states."""
        await run_awaiting(self._state(state, says, expected_duration, options))

    async def progress(
        self,
        says: Text,
        *,
        percent: float | None = None,
        step: int | None = None,
        total_steps: int | None = None,
        description: str | None = None,
        eta: float | None = None,
        **options: Unpack[EventOptions],
    ) -> None:
        """Reports progress. `eta` is in seconds."""
        numbers = {"percent": percent, "step": step, "total_steps": total_steps, "description": description, "eta": eta}
        await run_awaiting(self._progress(says, options, **numbers))

    async def event(self, event: Mapping[str, Any]) -> None:
        """Reports an event of the agent API. Secrets are removed from its texts."""
        await run_awaiting(self._raw_event(event))

    # Output

    async def say(
        self,
        text: str | Iterable[str] | AsyncIterable[str],
        *,
        output_id: str | None = None,
        language: str | None = None,
        content_type: str | None = None,
    ) -> None:
        """Writes an output: a text, or a stream of pieces such as a model's tokens. Returns when the output is complete."""
        if isinstance(text, str):
            await self.write(text, complete=True, output_id=output_id, language=language, content_type=content_type)
            return
        if isinstance(text, AsyncIterable):
            async for piece in text:
                await self.write(piece, output_id=output_id, language=language, content_type=content_type)
        else:
            for piece in text:
                await self.write(piece, output_id=output_id, language=language, content_type=content_type)
        await self.write("", complete=True, output_id=output_id, language=language, content_type=content_type)

    async def write(
        self,
        piece: str,
        *,
        complete: bool = False,
        output_id: str | None = None,
        language: str | None = None,
        content_type: str | None = None,
    ) -> None:
        """Writes a piece of an output. `complete` ends the output."""
        if not complete and self._core.feed(piece, output_id, language, content_type):
            return
        work = self._core.write(piece, complete=complete, output_id=output_id, language=language, content_type=content_type)
        await run_awaiting(work)

    # Questions

    async def ask(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        action: Template | None = None,
        consequence: Template | None = None,
        irreversible: bool = False,
        risk: Risk | None = None,
        reversibility: Reversibility | None = None,
        question: Template | None = None,
        answer_timeout: float = 300.0,
        allowed_replies: Iterable[str] = (),
        extra_context: Mapping[str, Any] | None = None,
        tool_call_id: str | None = None,
        **options: Unpack[EventOptions],
    ) -> Granted:
        """Asks the person about a call. Raises :class:`sayso.Refused` unless a person said yes to exactly this call."""
        terms = _policy(
            action,
            consequence,
            irreversible,
            risk,
            reversibility,
            question,
            answer_timeout,
            allowed_replies,
            extra_context,
            options,
        )
        return await run_awaiting(self._ask(tool, arguments, terms, tool_call_id))

    async def call(self, granted: Granted, function: Callable[..., Awaitable[T]], *, tool_call_id: str | None = None) -> T:
        """Makes a call that a person allowed. The function gets the arguments that were asked about, by name."""
        opened, call = await _announce_granted_async(self._core, granted, tool_call_id)
        return await _gate.finish_async(self._core, opened, function(**call.values))

    async def clarify(
        self,
        question: Text,
        *,
        context: Text | None = None,
        choices: Mapping[str, Text] | None = None,
        accept: Iterable[ResponseKind] = (),
        default_response: Text | None = None,
        answer_timeout: float = 300.0,
        **options: Unpack[EventOptions],
    ) -> Answer:
        """Asks what the person wants. Returns a text, the value of a choice, yes or no, or a number.

        Raises :class:`sayso.Unanswered` if there is no answer and no default.
        """
        work = self._clarification(
            question,
            options,
            context=context,
            choices=choices,
            accept=accept,
            default_response=default_response,
            answer_timeout=answer_timeout,
        )
        return await run_awaiting(work)

    async def hand_off(
        self,
        reason: Text,
        *,
        target: Target = "human",
        says: Text | None = None,
        urgency_for_handoff: Risk | None = None,
        target_uri: str | None = None,
        context: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        **options: Unpack[EventOptions],
    ) -> HandOffOutcome:
        """Asks somebody to take over, and waits for the outcome. If it is acknowledged, finish the session."""
        body = self._hand_off_body(
            reason,
            options,
            target=target,
            says=says,
            urgency=urgency_for_handoff,
            target_uri=target_uri,
            context=context,
            timeout=timeout,
        )
        return await run_awaiting(self._hand_off(body))

    # Tools

    def tool(
        self,
        tool: str,
        says: Text | None = None,
        *,
        description: Text | None = None,
        args_summary: Text | None = None,
        expected_duration: float | None = None,
        risk: Risk = "low",
        tool_call_id: str | None = None,
        **options: Unpack[EventOptions],
    ) -> AsyncToolCall:
        """Returns a block that announces a harmless tool call and reports its outcome. A call of high risk needs consent."""
        opening = self._tool_opening(
            tool,
            says,
            options,
            tool_call_id,
            description=description,
            args_summary=args_summary,
            expected_duration=expected_duration,
            risk=risk,
        )
        return AsyncToolCall(self._core, opening)

    # The end

    async def finish(
        self,
        says: Text,
        *,
        output_summary: Text | None = None,
        result_uri: str | None = None,
        **options: Unpack[EventOptions],
    ) -> None:
        """Ends the session: the task is done."""
        await run_awaiting(self._finish(says, options, output_summary=output_summary, result_uri=result_uri))

    async def fail(
        self,
        says: Text,
        *,
        category: ErrorCategory = "unknown",
        code: str | None = None,
        help_uri: str | None = None,
        recoverable: bool | None = None,
        remediation_hint: Text | None = None,
        **options: Unpack[EventOptions],
    ) -> None:
        """Ends the session: the task failed."""
        work = self._fail(
            says,
            options,
            category=category,
            code=code,
            help_uri=help_uri,
            recoverable=recoverable,
            remediation_hint=remediation_hint,
        )
        await run_awaiting(work)

    async def cancel(
        self,
        says: Text,
        *,
        by: str = "producer",
        reason: str | None = None,
        partial_result: Text | None = None,
        **options: Unpack[EventOptions],
    ) -> None:
        """Ends the session before the task is done."""
        await run_awaiting(self._cancel(says, options, by=by, reason=reason, partial_result=partial_result))

    # Several agents

    def as_producer(self, agent_id: str) -> AsyncSession:
        """Returns this session as another of its producers. The session is ended by its main producer."""
        return AsyncSession(self._as_producer(agent_id))

    async def invite(self, producer: str, *, expires_in: float | None = None) -> Invitation:
        """Invites another token to speak as one producer of this session."""
        return await run_awaiting(self._invite(producer, expires_in))


class Session(_SessionBase):
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

    # Reports

    def think(self, says: Text, *, expected_duration: float | None = None, **options: Unpack[EventOptions]) -> None:
        """Reports that the agent is thinking."""
        run_blocking(self._state("thinking", says, expected_duration, options))

    def decide(self, says: Text, *, expected_duration: float | None = None, **options: Unpack[EventOptions]) -> None:
        """Reports that the agent is deciding."""
        run_blocking(self._state("deciding", says, expected_duration, options))

    def change_state(
        self,
        state: State | str,
        says: Text | None = None,
        *,
        expected_duration: float | None = None,
        **options: Unpack[EventOptions],
    ) -> None:
        """Reports a state of AAEP, or one of the agent's own states."""
        run_blocking(self._state(state, says, expected_duration, options))

    def progress(
        self,
        says: Text,
        *,
        percent: float | None = None,
        step: int | None = None,
        total_steps: int | None = None,
        description: str | None = None,
        eta: float | None = None,
        **options: Unpack[EventOptions],
    ) -> None:
        """Reports progress. `eta` is in seconds."""
        numbers = {"percent": percent, "step": step, "total_steps": total_steps, "description": description, "eta": eta}
        run_blocking(self._progress(says, options, **numbers))

    def event(self, event: Mapping[str, Any]) -> None:
        """Reports an event of the agent API. Secrets are removed from its texts."""
        run_blocking(self._raw_event(event))

    # Output

    def say(
        self,
        text: str | Iterable[str],
        *,
        output_id: str | None = None,
        language: str | None = None,
        content_type: str | None = None,
    ) -> None:
        """Writes an output: a text, or a stream of pieces such as a model's tokens. Returns when the output is complete."""
        if isinstance(text, str):
            self.write(text, complete=True, output_id=output_id, language=language, content_type=content_type)
            return
        for piece in text:
            self.write(piece, output_id=output_id, language=language, content_type=content_type)
        self.write("", complete=True, output_id=output_id, language=language, content_type=content_type)

    def write(
        self,
        piece: str,
        *,
        complete: bool = False,
        output_id: str | None = None,
        language: str | None = None,
        content_type: str | None = None,
    ) -> None:
        """Writes a piece of an output. `complete` ends the output."""
        if not complete and self._core.feed(piece, output_id, language, content_type):
            return
        work = self._core.write(piece, complete=complete, output_id=output_id, language=language, content_type=content_type)
        run_blocking(work)

    # Questions

    def ask(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        action: Template | None = None,
        consequence: Template | None = None,
        irreversible: bool = False,
        risk: Risk | None = None,
        reversibility: Reversibility | None = None,
        question: Template | None = None,
        answer_timeout: float = 300.0,
        allowed_replies: Iterable[str] = (),
        extra_context: Mapping[str, Any] | None = None,
        tool_call_id: str | None = None,
        **options: Unpack[EventOptions],
    ) -> Granted:
        """Asks the person about a call. Raises :class:`sayso.Refused` unless a person said yes to exactly this call."""
        terms = _policy(
            action,
            consequence,
            irreversible,
            risk,
            reversibility,
            question,
            answer_timeout,
            allowed_replies,
            extra_context,
            options,
        )
        return run_blocking(self._ask(tool, arguments, terms, tool_call_id))

    def call(self, granted: Granted, function: Callable[..., T], *, tool_call_id: str | None = None) -> T:
        """Makes a call that a person allowed. The function gets the arguments that were asked about, by name."""
        if is_loop_running():
            raise EventLoopRunning("call")
        opened, call = run_blocking(start_granted(self._core, granted, tool_call_id))
        return _gate.finish_sync(self._core, opened, lambda: function(**call.values))

    def clarify(
        self,
        question: Text,
        *,
        context: Text | None = None,
        choices: Mapping[str, Text] | None = None,
        accept: Iterable[ResponseKind] = (),
        default_response: Text | None = None,
        answer_timeout: float = 300.0,
        **options: Unpack[EventOptions],
    ) -> Answer:
        """Asks what the person wants. Returns a text, the value of a choice, yes or no, or a number.

        Raises :class:`sayso.Unanswered` if there is no answer and no default.
        """
        work = self._clarification(
            question,
            options,
            context=context,
            choices=choices,
            accept=accept,
            default_response=default_response,
            answer_timeout=answer_timeout,
        )
        return run_blocking(work)

    def hand_off(
        self,
        reason: Text,
        *,
        target: Target = "human",
        says: Text | None = None,
        urgency_for_handoff: Risk | None = None,
        target_uri: str | None = None,
        context: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        **options: Unpack[EventOptions],
    ) -> HandOffOutcome:
        """Asks somebody to take over, and waits for the outcome. If it is acknowledged, finish the session."""
        body = self._hand_off_body(
            reason,
            options,
            target=target,
            says=says,
            urgency=urgency_for_handoff,
            target_uri=target_uri,
            context=context,
            timeout=timeout,
        )
        return run_blocking(self._hand_off(body))

    # Tools

    def tool(
        self,
        tool: str,
        says: Text | None = None,
        *,
        description: Text | None = None,
        args_summary: Text | None = None,
        expected_duration: float | None = None,
        risk: Risk = "low",
        tool_call_id: str | None = None,
        **options: Unpack[EventOptions],
    ) -> ToolCall:
        """Returns a block that announces a harmless tool call and reports its outcome. A call of high risk needs consent."""
        opening = self._tool_opening(
            tool,
            says,
            options,
            tool_call_id,
            description=description,
            args_summary=args_summary,
            expected_duration=expected_duration,
            risk=risk,
        )
        return ToolCall(self._core, opening, tool)

    # The end

    def finish(
        self,
        says: Text,
        *,
        output_summary: Text | None = None,
        result_uri: str | None = None,
        **options: Unpack[EventOptions],
    ) -> None:
        """Ends the session: the task is done."""
        run_blocking(self._finish(says, options, output_summary=output_summary, result_uri=result_uri))

    def fail(
        self,
        says: Text,
        *,
        category: ErrorCategory = "unknown",
        code: str | None = None,
        help_uri: str | None = None,
        recoverable: bool | None = None,
        remediation_hint: Text | None = None,
        **options: Unpack[EventOptions],
    ) -> None:
        """Ends the session: the task failed."""
        work = self._fail(
            says,
            options,
            category=category,
            code=code,
            help_uri=help_uri,
            recoverable=recoverable,
            remediation_hint=remediation_hint,
        )
        run_blocking(work)

    def cancel(
        self,
        says: Text,
        *,
        by: str = "producer",
        reason: str | None = None,
        partial_result: Text | None = None,
        **options: Unpack[EventOptions],
    ) -> None:
        """Ends the session before the task is done."""
        run_blocking(self._cancel(says, options, by=by, reason=reason, partial_result=partial_result))

    # Several agents

    def as_producer(self, agent_id: str) -> Session:
        """Returns this session as another of its producers. The session is ended by its main producer."""
        return Session(self._as_producer(agent_id))

    def invite(self, producer: str, *, expires_in: float | None = None) -> Invitation:
        """Invites another token to speak as one producer of this session."""
        return run_blocking(self._invite(producer, expires_in))
