"""The methods of a session, each implemented once. `_session.py` gives them their blocking and their awaited form."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from . import _events as events
from ._agent_api import CancelledBy, CoalesceHint, ErrorCategory, InvitationRequest, Reversibility, Risk, Target
from ._consent import Granted, Policy, Template, bind
from ._consent import ask as ask_consent
from ._core import OutputPiece, SessionCore, describe_failure
from ._current import CurrentSession
from ._events import ChosenKind, EventOptions, State
from ._forms import Work
from ._text import Text, humanize
from ._tool_call import ToolOpening
from .errors import InvalidRequest, SaysoError, SessionStopped, Unanswered

if TYPE_CHECKING:
    from typing_extensions import Unpack

Answer = str | bool | float


@dataclass(frozen=True)
class HandOffOutcome:
    """The outcome of a hand-off: `acknowledged`, `rejected`, `timeout`, `unreachable` or `withdrawn`."""

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


class OutputOptions(TypedDict, total=False):
    """Which output a text belongs to, and what it is."""

    output_id: str | None
    language: str | None
    content_type: str | None
    #: What ends with each piece. The end of an output always has `completion`. End the piece with a space or a line break: a last
    #: word may be the start of a secret, so it waits for the next piece, and then the piece has no hint.
    coalesce_hint: CoalesceHint | None


class SessionMethods:
    """One session. Bodies are built at once; what is returned runs on the background loop."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core
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

    # Reports

    def _think(self, says: Text, *, expected_duration: float | None = None, **options: Unpack[EventOptions]) -> Work[None]:
        """Reports that the agent is thinking."""
        return self._change_state("thinking", says, expected_duration=expected_duration, **options)

    def _decide(self, says: Text, *, expected_duration: float | None = None, **options: Unpack[EventOptions]) -> Work[None]:
        """Reports that the agent is deciding."""
        return self._change_state("deciding", says, expected_duration=expected_duration, **options)

    def _change_state(
        self,
        state: State | str,
        says: Text | None = None,
        *,
        expected_duration: float | None = None,
        **options: Unpack[EventOptions],
    ) -> Work[None]:
        """Reports a state of AAEP, or one of the agent's own states."""
        return self._core.send(events.state_changed(state, says, expected_duration, options, self._core.hub.redact))

    def _progress(
        self,
        says: Text,
        *,
        percent: float | None = None,
        step: int | None = None,
        total_steps: int | None = None,
        description: str | None = None,
        eta: float | None = None,
        **options: Unpack[EventOptions],
    ) -> Work[None]:
        """Reports progress. `eta` is in seconds."""
        event = events.progress_updated(
            says,
            percent=percent,
            step=step,
            total_steps=total_steps,
            description=description,
            eta=eta,
            options=options,
            redact=self._core.hub.redact,
        )
        return self._core.send(event)

    def _event(self, event: Mapping[str, Any]) -> Work[None]:
        """Reports an event of the agent API. Secrets are removed from its texts."""
        return self._core.send(self._core.redacted(dict(event)))

    # Output

    def _feed(self, piece: str, **options: Unpack[OutputOptions]) -> bool:
        return self._core.feed(OutputPiece(piece, **options))

    def _write(self, piece: str, *, complete: bool, stays: bool, **options: Unpack[OutputOptions]) -> Work[None]:
        return self._core.write(OutputPiece(piece, **options), complete=complete, stays=stays)

    # Questions

    def _ask(
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
    ) -> Work[Granted]:
        """Asks the person about a call. Raises :class:`sayso.Refused` unless a person said yes to exactly this call."""
        policy = Policy(
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
        return ask_consent(self._core, bind(tool, arguments), policy, tool_call_id)

    def _clarify(
        self,
        question: Text,
        *,
        context: Text | None = None,
        choices: Mapping[str, Text] | None = None,
        accept: Iterable[ChosenKind] = (),
        default_response: Text | None = None,
        answer_timeout: float = 300.0,
        **options: Unpack[EventOptions],
    ) -> Work[Answer]:
        """Asks what the person wants. Returns a text, the value of a choice, yes or no, or a number.

        Raises :class:`sayso.Unanswered` if there is no answer and no default.
        """
        body = events.clarification(
            question,
            context=context,
            choices=choices,
            accept=accept,
            default_response=default_response,
            answer_timeout=answer_timeout,
            options=options,
            redact=self._core.hub.redact,
        )

        async def ask() -> Answer:
            answer = await self._core.ask("session.clarify", body)
            response = answer.get("response")
            if isinstance(response, str | bool | int | float):
                return float(response) if isinstance(response, int) and not isinstance(response, bool) else response
            raise Unanswered(str(answer.get("by")))

        return ask()

    def _hand_off(
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
    ) -> Work[HandOffOutcome]:
        """Asks somebody to take over, and waits for the outcome. If it is acknowledged, finish the session."""
        body = events.hand_off(
            reason,
            target=target,
            says=says,
            urgency=urgency_for_handoff,
            target_uri=target_uri,
            context=context,
            timeout=timeout,
            options=options,
            redact=self._core.hub.redact,
        )

        async def ask() -> HandOffOutcome:
            answer = await self._core.ask("session.hand_off", body)
            return HandOffOutcome(answer["outcome"], answer.get("note"), answer.get("principal"))

        return ask()

    # Tools

    def _tool(
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
    ) -> ToolOpening:
        """Returns a block that announces a harmless tool call and reports its outcome. A call of high risk needs consent."""
        members = events.tool_members(
            says if says is not None else f"{humanize(tool)}.",
            description=description,
            args_summary=args_summary,
            expected_duration=expected_duration,
            risk=risk,
            irreversible=False,
            options=options,
            redact=self._core.hub.redact,
        )
        return ToolOpening(self._core, tool, self._core.invoke(tool, members, tool_call_id))

    # The end

    def _finish(
        self,
        says: Text,
        *,
        output_summary: Text | None = None,
        result_uri: str | None = None,
        **options: Unpack[EventOptions],
    ) -> Work[None]:
        """Ends the session: the task is done."""
        return self._core.end(self._completed(says, options, output_summary=output_summary, result_uri=result_uri))

    def _completed(
        self, says: Text, options: EventOptions, *, output_summary: Text | None = None, result_uri: str | None = None
    ) -> events.Body:
        core = self._core
        return events.completed(
            says,
            output_summary=output_summary,
            result_uri=result_uri,
            duration=max(0.0, time.monotonic() - core.started_at),
            tool_calls=core.total_call_count,
            options=options,
            redact=core.hub.redact,
        )

    def _fail(
        self,
        says: Text,
        *,
        category: ErrorCategory = "unknown",
        code: str | None = None,
        help_uri: str | None = None,
        recoverable: bool | None = None,
        remediation_hint: Text | None = None,
        **options: Unpack[EventOptions],
    ) -> Work[None]:
        """Ends the session: the task failed."""
        event = events.errored(
            says,
            category=category,
            code=code,
            help_uri=help_uri,
            recoverable=recoverable,
            remediation_hint=remediation_hint,
            options=options,
            redact=self._core.hub.redact,
        )
        return self._core.end(event)

    def _cancel(
        self,
        says: Text,
        *,
        by: CancelledBy = "producer",
        reason: str | None = None,
        partial_result: Text | None = None,
        **options: Unpack[EventOptions],
    ) -> Work[None]:
        """Ends the session before the task is done."""
        event = events.cancelled(
            says, by=by, reason=reason, partial_result=partial_result, options=options, redact=self._core.hub.redact
        )
        return self._core.end(event)

    def _end_with(self, error: BaseException | None) -> Work[None]:
        """Returns the end of a session whose block ended with this exception."""
        core = self._core
        if error is None:
            return core.end(self._completed("The task is done.", {}), is_library_text=True)
        if isinstance(error, Exception) and not isinstance(error, asyncio.CancelledError):
            if isinstance(error, SaysoError) and not isinstance(error, InvalidRequest | SessionStopped):
                return self._cancel(f"Nothing more was done: {error}.")
            return self._fail(describe_failure(error))
        event = events.cancelled(
            "The agent was interrupted.",
            by="producer",
            reason="interrupted",
            partial_result=None,
            options={},
            redact=core.hub.redact,
        )
        return core.end(event, is_library_text=True)

    # Several agents

    def _as_producer(self, agent_id: str) -> SessionCore:
        """Returns this session as another of its producers. The session is ended by its main producer."""
        return self._core.add_producer(agent_id)

    def _invite(self, producer: str, *, expires_in: float | None = None) -> Work[Invitation]:
        """Invites another token to speak as one producer of this session."""
        body: InvitationRequest = {"producer": producer}
        if expires_in is not None:
            body["expires_in_seconds"] = events.whole_seconds(expires_in)

        async def invite() -> Invitation:
            result = await self._core.call("session.invite", body)
            return Invitation(result["session_id"], result["producer"], result["invitation"], result["expires_at"])

        return invite()
