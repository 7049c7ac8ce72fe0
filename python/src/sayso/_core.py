"""Hubs and sessions, as they run on the background loop.

The public classes in `_hub.py` and `_session.py` submit work to that loop and wait for it or await it.
"""

from __future__ import annotations

import asyncio
import collections
import hashlib
import logging
import os
import re
import ssl
import time
import uuid
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, cast, overload

from ._address import find_address
from ._agent_api import (
    TOOL_CALL_ID_PATTERN,
    CoalesceHint,
    EventsAccepted,
    Invitation,
    Joined,
    JoinRequest,
    LocalizationHints,
    Method,
    Producer,
    QuestionOpened,
    Resolved,
    SessionStarted,
    ToolCompleted,
    ToolStatus,
)
from ._connection import Connection, Transport
from ._redact import StreamRedactor, redact
from ._rpc import Params, QuestionMethod
from ._runtime import runtime
from ._text import Text, cut, humanize, redact_value, summary_members, text_members
from .errors import (
    ConsentError,
    HubUnreachable,
    InvalidRequest,
    MalformedResponse,
    SaysoError,
    SessionStopped,
)

log = logging.getLogger("sayso")

#: An output waits for the hub when this many characters are not sent yet.
MAX_UNSENT_CHARS = 64 * 1024

#: How many answers are kept that arrive before their question is known.
MAX_EARLY_ANSWERS = 256

_CALL_ID = re.compile(TOOL_CALL_ID_PATTERN)
#: The member of an answer that decides a question of each kind. A clarification can end without one.
_DECIDING_MEMBERS = {"session.ask": "decision", "session.hand_off": "outcome"}
#: The members of :class:`EventOptions` in an event. They apply to all events of a call.
_CALL_OPTIONS = ("urgency", "verbosity", "correlation_id", "@context", "extensions", "producer")
_LIBRARY_HINTS: LocalizationHints = {"primary_language": "en"}


class HubCore:
    """A hub: its connection and its open sessions."""

    def __init__(
        self,
        url: str | None,
        token: str | None,
        *,
        agent: Producer | None,
        language: str | None,
        ca_file: str | None,
        connect_timeout: float,
        transport: Transport,
        redactor: Callable[[str], str] | None,
        manifest: Mapping[str, Any] | str | None,
        states: Mapping[str, Text] | None,
    ) -> None:
        self.pid = os.getpid()
        self.address = find_address(url)
        self.agent: Producer = agent if agent is not None else {}
        self.language = language or "en"
        self.states = dict(states or {})
        self.removed_secrets = 0
        self._custom_redactor = redactor
        tls = ssl.create_default_context(cafile=ca_file) if self.address.tls else None
        self.sessions: dict[str, SessionCore] = {}
        self.connection = Connection(
            self.address, token, tls, connect_timeout, transport, self._handle_notification, lambda: list(self.sessions)
        )
        self._manifest = manifest
        self._has_published = False
        if manifest is not None:
            self.connection.on_connect = lambda: [("agent.manifest", {"manifest": manifest})]
        runtime().at_exit(self.abandon_sessions)

    def redact(self, text: str) -> str:
        if self._custom_redactor is not None:
            return self._custom_redactor(text)
        clean, count = redact(text)
        self.removed_secrets += count
        return clean

    @overload
    async def call(self, method: Literal["session.start"], params: Params) -> SessionStarted: ...

    @overload
    async def call(self, method: Literal["session.join"], params: Params) -> Joined: ...

    @overload
    async def call(self, method: Method, params: Params) -> Any: ...

    async def call(self, method: Method, params: Params) -> Any:
        if self._manifest is not None and not self._has_published:
            await self.connection.call("agent.manifest", {"manifest": self._manifest})
            self._has_published = True
        return await self.connection.call(method, params)

    async def start(self, body: Mapping[str, Any], is_english: bool) -> SessionCore:
        """Starts a session. If the caller is cancelled before the hub answers, the session is ended once it has started."""
        work = asyncio.ensure_future(self.call("session.start", body))
        try:
            result = await asyncio.shield(work)
        except asyncio.CancelledError:
            runtime().spawn(self._end_unwanted(work, is_english))
            raise
        if result["session_id"] in self.sessions:
            raise MalformedResponse("the hub gave two sessions the same id")
        return self._open(result["session_id"], is_english)

    def _open(self, session_id: str, is_english: bool, producer: str | None = None) -> SessionCore:
        session = SessionCore(self, session_id, is_english, producer)
        self.sessions[session.id] = session
        return session

    async def _end_unwanted(self, work: asyncio.Future[SessionStarted], is_english: bool) -> None:
        await self._open((await work)["session_id"], is_english).abandon()

    async def join(self, session_id: str, invitation: str, producer: Producer | None) -> SessionCore:
        body: JoinRequest = {"invitation": invitation}
        if producer:
            body["producer"] = cast("Mapping[str, Any]", producer)
        result = await self.call("session.join", {"session_id": session_id, **body})
        return self._open(result["session_id"], True, result["producer"])

    def _handle_notification(self, method: str, params: dict[str, Any]) -> None:
        if method == "connection.lost":
            for session in list(self.sessions.values()):
                session.lose_connection(params["error"])
            return
        found = self.sessions.get(str(params.get("session_id")))
        if found is not None:
            found.handle_notification(method, params)

    async def abandon_sessions(self) -> None:
        """Ends all sessions, because the program ends."""
        sessions = list(self.sessions.values())
        await asyncio.gather(*(session.abandon() for session in sessions), return_exceptions=True)
        await self.connection.close()


@dataclass
class OpenCall:
    """An announced tool call whose outcome is not reported yet."""

    tool: str
    id: str
    #: The members of the announcement that the report of the outcome repeats.
    options: Mapping[str, Any] = field(default_factory=dict)
    started_at: float = field(default_factory=time.monotonic)
    is_open: bool = True


class OutputPiece(NamedTuple):
    """A piece of an output, as the agent writes it."""

    text: str
    output_id: str | None = None
    language: str | None = None
    content_type: str | None = None
    #: What ends with this piece.
    coalesce_hint: CoalesceHint | None = None


@dataclass
class _Output:
    id: str | None
    redactor: StreamRedactor
    language: str | None = None
    content_type: str | None = None
    #: The parts that are not sent yet. Nothing is added to a part with a hint, because the hint is about its end.
    unsent: list[tuple[str, CoalesceHint | None]] = field(default_factory=list)
    has_begun: bool = False

    @property
    def unsent_chars(self) -> int:
        return sum(len(text) for text, _ in self.unsent)

    def push(self, text: str, complete: bool, hint: CoalesceHint | None) -> None:
        clean = self.redactor.push(text, complete)
        if not clean:
            return
        # If the end of the piece is held back, the hint would be about another place.
        hint = hint if self.redactor.is_empty else None
        if self.unsent and self.unsent[-1][1] is None:
            self.unsent[-1] = (self.unsent[-1][0] + clean, hint)
        else:
            self.unsent.append((clean, hint))


class SessionCore:
    """One session. It serialises events and output, so listeners hear them in the order in which the agent reports them."""

    def __init__(self, hub: HubCore, session_id: str, is_english: bool, producer: str | None = None) -> None:
        self.hub = hub
        self.id = session_id
        self.is_english = is_english
        self.producer = producer
        self.stop_reason: str | None = None
        self.is_ended = False
        self.calls: dict[str, OpenCall] = {}
        self.call_count = 0
        self.started_at = time.monotonic()
        self._lock = asyncio.Lock()
        self._loop = runtime().loop
        self._answers: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._early_answers: dict[str, dict[str, Any]] = {}
        self._asking: set[asyncio.Future[QuestionOpened]] = set()
        self._open_questions: set[str] = set()
        self._withdrawals: set[asyncio.Task[None]] = set()
        #: The tokens of all questions. An answer to one of them is never an answer to a later question.
        self._reply_tokens: set[str] = set()
        #: How often the connection was lost for good, and why the last time.
        self._losses = 0
        self._last_loss: SaysoError | None = None
        self._outputs: dict[str | None, _Output] = {}
        self._output_count = 0
        self._pump_task: asyncio.Task[None] | None = None
        self._pump_error: SaysoError | None = None
        #: Pieces from other threads that the background loop has not taken yet.
        self._fed: collections.deque[OutputPiece] = collections.deque()
        self._fed_chars = 0
        self._is_feed_scheduled = False
        self._stop_callbacks: dict[object, Callable[[], None]] = {}
        #: The cores of the session's other producers.
        self._other_producers: list[SessionCore] = []

    @property
    def total_call_count(self) -> int:
        """How many calls all producers of this program have announced in the session."""
        return self.call_count + sum(core.total_call_count for core in self._other_producers)

    def add_producer(self, agent_id: str) -> SessionCore:
        """Returns a core with which another producer of this session speaks. It gets the same notifications."""
        core = SessionCore(self.hub, self.id, self.is_english, agent_id)
        self._other_producers.append(core)
        return core

    # Notifications

    def handle_notification(self, method: str, params: dict[str, Any]) -> None:
        for producer in self._other_producers:
            producer.handle_notification(method, params)
        if method == "session.stopped":
            self.stop(str(params.get("reason") or "ended"))
        elif method in ("session.resolved", "question.lost"):
            token = str(params.get("reply_token"))
            future = self._answers.get(token)
            if future is None:
                # The answer can arrive before the response that names the question.
                if self._asking and len(self._early_answers) < MAX_EARLY_ANSWERS:
                    self._early_answers.setdefault(token, params)
            elif not future.done():
                future.set_result(params)

    def stop(self, reason: str) -> None:
        """Records that the session is over. Everything that waits for a person fails."""
        if self.stop_reason is not None:
            return
        self.stop_reason = reason
        if self.hub.sessions.get(self.id) is self:
            del self.hub.sessions[self.id]
        for future in self._answers.values():
            if not future.done():
                future.set_exception(SessionStopped(reason))
        for callback in list(self._stop_callbacks.values()):
            callback()

    def lose_connection(self, error: SaysoError) -> None:
        """The hub could not be reached before the timeout. Open questions count as not answered."""
        self._losses += 1
        self._last_loss = error
        for producer in self._other_producers:
            producer.lose_connection(error)
        for future in self._answers.values():
            if not future.done():
                future.set_exception(error)

    def on_stop(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Registers a callback for a stop by the person or the hub. Returns a function that removes it."""
        key = object()
        self._stop_callbacks[key] = callback
        if self.stop_reason is not None:
            callback()
        return lambda: self._stop_callbacks.pop(key, None) and None

    def check_open(self) -> None:
        if self.hub.pid != os.getpid():
            raise HubUnreachable("this process was forked from the one that started the session; start a new session")
        if self.stop_reason is not None:
            raise SessionStopped(self.stop_reason)
        if self.is_ended:
            raise SessionStopped("closed")

    # Events

    async def send(self, *events: Mapping[str, Any]) -> None:
        """Reports events, after all output that was written before them."""
        self.check_open()
        async with self._lock:
            await self._flush_locked()
            await self.call("session.event", {"events": [self._with_producer(event) for event in events]})

    def _with_producer(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        return event if self.producer is None or "producer" in event else {**event, "producer": self.producer}

    @overload
    async def call(self, method: Literal["session.event", "session.output"], params: Params) -> EventsAccepted: ...

    @overload
    async def call(self, method: QuestionMethod, params: Params) -> QuestionOpened: ...

    @overload
    async def call(self, method: Literal["session.invite"], params: Params) -> Invitation: ...

    async def call(self, method: Method, params: Params) -> Any:
        """Calls a method for this session. A session that is over is noticed here."""
        try:
            return await self.hub.call(method, {"session_id": self.id, **params})
        except SessionStopped as error:
            # The reason arrives as a notification after the response.
            await asyncio.sleep(0)
            self.stop(self.stop_reason or ("closed" if self.is_ended else error.reason))
            raise SessionStopped(self.stop_reason or error.reason) from None

    # Output

    async def write(self, piece: OutputPiece, *, complete: bool = False, stays: bool = False) -> None:
        """Writes a piece of output. Returns before the hub has it, unless much is unsent or the output is complete.

        With `stays`, the end of the output does not change the agent's state.
        """
        self.check_open()
        if stays and not complete:
            raise InvalidRequest("`stays` is about the end of an output, so it needs `complete`")
        self._raise_pump_error()
        output = self._append(piece, complete)
        if complete:
            del self._outputs[piece.output_id]
            async with self._lock:
                await self._flush_locked()
                if output.unsent or output.has_begun:
                    await self._send_output(output, complete=True, stays=stays)
            return
        self._start_pump()
        if output.unsent_chars > MAX_UNSENT_CHARS and self._pump_task is not None:
            await asyncio.shield(self._pump_task)
            self._raise_pump_error()

    def feed(self, piece: OutputPiece) -> bool:
        """Takes a piece of output from any thread, without waiting. Returns false if too much is unsent: then use `write`."""
        self.check_open()
        self._raise_pump_error()
        if self._fed_chars > MAX_UNSENT_CHARS:
            return False
        self._fed_chars += len(piece.text)
        self._fed.append(piece)
        if not self._is_feed_scheduled:
            self._is_feed_scheduled = True
            runtime().call_soon(self._take_fed)
        return True

    def _take_fed(self) -> None:
        self._is_feed_scheduled = False
        while self._fed:
            self._append(self._fed.popleft(), False)
        self._start_pump()

    def _append(self, piece: OutputPiece, complete: bool) -> _Output:
        output_id = piece.output_id
        output = self._outputs.get(output_id)
        if output is None:
            output = _Output(output_id, StreamRedactor(self.hub.redact), piece.language, piece.content_type)
            if output_id is None:
                self._output_count += 1
                prefix = "" if self.producer is None else hashlib.sha256(self.producer.encode()).hexdigest()[:8]
                output.id = f"out_{prefix}{self._output_count}"
            self._outputs[output_id] = output
        output.push(piece.text, complete, piece.coalesce_hint)
        return output

    def _start_pump(self) -> None:
        if self._pump_task is None or self._pump_task.done():
            self._pump_task = self._loop.create_task(self._pump())

    async def complete_outputs(self) -> None:
        """Completes every output that is open."""
        for output_id in list(self._outputs):
            await self.write(OutputPiece("", output_id), complete=True)

    def _raise_pump_error(self) -> None:
        if self._pump_error is not None:
            error, self._pump_error = self._pump_error, None
            raise error

    async def _pump(self) -> None:
        """Sends what is unsent. Pieces that arrive during a request are sent together."""
        try:
            self._fed_chars = 0
            while any(output.unsent for output in self._outputs.values()):
                async with self._lock:
                    await self._flush_locked()
                self._fed_chars = sum(output.unsent_chars for output in self._outputs.values())
        except SaysoError as error:
            self._pump_error = error
            for output in self._outputs.values():
                output.unsent = []

    async def _flush_locked(self) -> None:
        for output in list(self._outputs.values()):
            if output.unsent:
                await self._send_output(output)

    async def _send_output(self, output: _Output, *, complete: bool = False, stays: bool = False) -> None:
        parts, output.unsent = output.unsent or [("", None)], []
        for text, hint in parts[:-1]:
            await self._send_part(output, text, {} if hint is None else {"coalesce_hint": hint})
        text, hint = parts[-1]
        members: dict[str, Any] = {}
        if hint is not None and not complete:
            members["coalesce_hint"] = hint
        if complete:
            members["complete"] = True
        if stays:
            members["stays"] = True
        await self._send_part(output, text, members)

    async def _send_part(self, output: _Output, text: str, members: Mapping[str, Any]) -> None:
        params: dict[str, Any] = {"text": text, "output_id": output.id, **members}
        if self.producer is not None:
            params["producer"] = self.producer
        if output.language is not None:
            params["language"] = output.language
        if output.content_type is not None:
            params["content_type"] = output.content_type
        output.has_begun = True
        await self.call("session.output", params)

    # Questions

    async def ask(self, method: QuestionMethod, body: Mapping[str, Any]) -> Resolved:
        """Asks, and waits for the answer. If the caller is cancelled, the question is withdrawn."""
        self.check_open()
        losses = self._losses
        async with self._lock:
            await self._flush_locked()
            work = asyncio.ensure_future(self.call(method, self._with_producer(body)))
            self._asking.add(work)
            try:
                result = await asyncio.shield(work)
            except asyncio.CancelledError:
                self._start_withdrawal(self._withdraw_when_asked(work))
                raise
            finally:
                self._asking.discard(work)
        token = result["reply_token"]
        early = self._early_answers.pop(token, None)
        if not self._asking:
            self._early_answers.clear()
        if token in self._reply_tokens:
            raise MalformedResponse("the hub gave two questions the same reply token")
        self._reply_tokens.add(token)
        self._open_questions.add(token)
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[token] = future
        if early is not None:
            future.set_result(early)
        elif self.stop_reason is not None:
            future.set_exception(SessionStopped(self.stop_reason))
        elif self._losses != losses and self._last_loss is not None:
            # Nobody would deliver the answer.
            future.set_exception(self._last_loss)
        try:
            answer = await future
        except asyncio.CancelledError:
            self._start_withdrawal(self._withdraw(token))
            raise
        except (HubUnreachable, MalformedResponse):
            # The question may still be open at the hub. It is withdrawn as soon as the hub can be reached, so that nobody
            # answers it in vain.
            self._start_withdrawal(self._withdraw(token))
            raise
        finally:
            self._answers.pop(token, None)
        self._open_questions.discard(token)
        if "error" in answer and isinstance(answer["error"], SaysoError):
            raise answer["error"]
        if answer.get("status") == "stopped":
            self.stop("user")
            raise SessionStopped("user")
        if method in _DECIDING_MEMBERS and _DECIDING_MEMBERS[method] not in answer:
            raise MalformedResponse(f"the answer has no {_DECIDING_MEMBERS[method]}")
        return cast("Resolved", answer)

    def _start_withdrawal(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._withdrawals.add(task)
        task.add_done_callback(self._end_withdrawal)

    def _end_withdrawal(self, task: asyncio.Task[None]) -> None:
        self._withdrawals.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.debug("a question could not be withdrawn: %s", error)

    async def _withdraw_all(self) -> None:
        """Withdraws all questions of all producers, and waits for withdrawals that have started."""
        for core in (self, *self._other_producers):
            if core._withdrawals:
                await asyncio.wait(set(core._withdrawals))
            for token in list(core._open_questions):
                await core._withdraw(token)

    async def _withdraw_when_asked(self, work: asyncio.Future[QuestionOpened]) -> None:
        await self._withdraw((await work)["reply_token"])

    async def _withdraw(self, token: str) -> None:
        try:
            await self.hub.call("session.withdraw", {"session_id": self.id, "reply_token": token})
        except SaysoError as error:
            log.debug("a question could not be withdrawn: %s", error)
        self._open_questions.discard(token)

    # Tool calls

    def new_call_id(self, given: str | None) -> str:
        if given is None:
            return "call_" + uuid.uuid4().hex
        if _CALL_ID.fullmatch(given):
            return given
        return "call_" + hashlib.sha256(given.encode("utf-8", "replace")).hexdigest()[:32]

    async def invoke(self, tool: str, members: Mapping[str, Any], call_id: str | None) -> OpenCall:
        """Announces a call. If the caller is cancelled in the meantime, the call is reported as abandoned."""
        options = {name: members[name] for name in _CALL_OPTIONS if name in members}
        call = OpenCall(tool, self.new_call_id(call_id), options)
        if call.id in self.calls:
            # A model may repeat an id, for example when a framework retries a step.
            call.id = self.new_call_id(None)
        event = {"type": "aaep:agent.tool.invoked", "tool": tool, "tool_call_id": call.id, **members}
        work = asyncio.ensure_future(self.send(event))
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            runtime().spawn(self._abandon_when_announced(work, call))
            raise
        self.calls[call.id] = call
        self.call_count += 1
        return call

    async def _abandon_when_announced(self, work: asyncio.Future[None], call: OpenCall) -> None:
        await work
        await self.abandon_call(call)

    async def complete(
        self, call: OpenCall, status: ToolStatus, summary: Text, error: Text | None = None, *, is_library_text: bool = False
    ) -> None:
        """Reports the outcome of a call, once."""
        if not call.is_open:
            return
        call.is_open = False
        self.calls.pop(call.id, None)
        event: ToolCompleted = {
            "type": "aaep:agent.tool.completed",
            "tool": call.tool,
            "tool_call_id": call.id,
            "status": status,
            "duration_ms": max(0, round((time.monotonic() - call.started_at) * 1000)),
        }
        if is_library_text and not self.is_english:
            event["localization_hints"] = _LIBRARY_HINTS
        texts = summary_members(summary, self.hub.redact)
        if error is not None:
            texts |= text_members("error_message", error, self.hub.redact, summary)
        await self.send({**event, **texts, **call.options})

    async def abandon_call(self, call: OpenCall) -> None:
        """Reports that the agent abandoned a call."""
        reason = f"{humanize(call.tool)} was abandoned before it finished."
        try:
            await self.complete(call, "timeout", reason, reason, is_library_text=True)
        except SaysoError as error:
            log.debug("an abandoned call could not be reported: %s", error)

    # The end

    async def end(self, event: Mapping[str, Any], *, is_library_text: bool = False) -> None:
        """Ends the session with a final event. Open questions are refused, and open calls and outputs are closed."""
        if self.stop_reason is not None or self.is_ended:
            return
        try:
            await self.complete_outputs()
        except SaysoError as error:
            log.debug("an output could not be completed: %s", error)
        for call in list(self.calls.values()):
            await self.abandon_call(call)
        # A caller may have been cancelled whose question is not withdrawn yet. The hub does not end a session with an open question.
        await self._withdraw_all()
        if self.stop_reason is not None:
            return
        async with self._lock:
            self.is_ended = True
            try:
                hints = {"localization_hints": _LIBRARY_HINTS} if is_library_text and not self.is_english else {}
                await self.call("session.event", {"event": self._with_producer({**event, **hints})})
            finally:
                if self.hub.sessions.get(self.id) is self:
                    del self.hub.sessions[self.id]
                for producer in self._other_producers:
                    producer.stop("closed")
                for future in self._answers.values():
                    if not future.done():
                        future.set_exception(SessionStopped("closed"))

    async def abandon(self) -> None:
        """Ends a session whose program stops without ending it."""
        summary = "The agent stopped in the middle of its work, so its session was ended."
        event = {
            "type": "aaep:agent.session.errored",
            "error_category": "unknown",
            "error_code": "AGENT_LEFT",
            "recoverable": False,
            "summary_normal": summary,
        }
        try:
            await self.end(event, is_library_text=True)
        except SaysoError as error:
            log.debug("an abandoned session could not be ended: %s", error)

    def redacted(self, value: Any) -> Any:
        return redact_value(value, self.hub.redact)


def describe_failure(error: BaseException) -> str:
    """Returns an exception as a short text for people."""
    if isinstance(error, asyncio.CancelledError):
        return "It was cancelled."
    return cut(str(error).strip() or type(error).__name__)


__all__ = ["ConsentError", "HubCore", "InvalidRequest", "OpenCall", "SessionCore", "describe_failure", "log"]
