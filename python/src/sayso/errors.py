"""Exceptions.

If calling a function decorated with ``@sayso.tool`` raises a :class:`SaysoError` from the gate, the function did not run. A failure
after it ran, such as an outcome that could not be reported, is logged and never raised, because a caller would repeat the call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class SaysoError(Exception):
    """The base class of all exceptions of this package."""


class HubUnreachable(SaysoError):
    """The hub cannot be reached, or did not answer in time."""


class UntrustedHub(SaysoError):
    """The server cannot prove that it is the hub: a certificate that is not trusted, or a socket of another user."""


class MalformedResponse(SaysoError):
    """The hub's response is not a valid message of the agent API, so it counts as no answer."""


class AccessDenied(SaysoError):
    """The token is missing or does not permit the request."""


class InvalidRequest(SaysoError):
    """An argument or a setting cannot be used."""


class LimitReached(SaysoError):
    """A limit on size, number or rate is reached."""


class StorageFailed(SaysoError):
    """The hub could not store the request, so it has no effect."""


@dataclass(frozen=True)
class Finding:
    """A violated protocol rule."""

    rule: str
    pointer: str
    message: str


class RuleViolations(SaysoError):
    """The request violates protocol rules. Nothing was applied."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        listed = "; ".join(f"{finding.rule} {finding.pointer}: {finding.message}" for finding in findings)
        super().__init__(f"protocol rules are violated; nothing was applied: {listed}")


class SessionStopped(SaysoError):
    """The session is over, so the call cannot be made.

    ``reason`` is ``user`` if the person stopped it, ``gone`` if its lease expired, ``closed`` if this program ended it, or
    ``ended`` if the reason is unknown.
    """

    _TEXTS: Mapping[str, str] = {
        "user": "the person stopped the session",
        "gone": "the hub ended the session because the agent was silent for too long",
        "closed": "the session is already over",
    }

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(self._TEXTS.get(reason, "the session is over"))


class NoSession(SaysoError):
    """There is no current session; wrap the call in ``with sayso.session(...)``."""

    def __init__(self) -> None:
        super().__init__("there is no current session; wrap the call in `with sayso.session(...)`")


class EventLoopRunning(SaysoError):
    """A blocking call was made in a thread that runs an event loop. Use the form with ``async`` or another thread."""

    def __init__(self, name: str = "this call") -> None:
        super().__init__(
            f"{name} would block the running event loop; use `async with sayso.session(...)` and `await`, or call it in a thread"
        )


class ConsentError(SaysoError):
    """There is no valid consent for a call, so it was not made."""


class Refused(ConsentError):
    """The person said no, or nobody answered, which counts as no.

    ``by`` is ``reply`` (a person refused), ``timeout``, ``closure`` (the last listener left), ``unreachable`` (there was nobody
    to ask) or ``cancelled`` (the question was withdrawn). ``modified`` is true if the person accepted only a different action.
    """

    _TEXTS: Mapping[str, str] = {
        "reply": "the person refused",
        "timeout": "nobody answered in time",
        "closure": "everybody who could have answered has disconnected",
        "unreachable": "nobody could be asked",
        "cancelled": "the question was withdrawn",
    }

    def __init__(
        self, by: str, *, modified: bool = False, receipt: Mapping[str, Any] | None = None, signature: str | None = None
    ) -> None:
        self.by = by
        self.modified = modified
        self.receipt = receipt
        self.receipt_signature = signature
        text = "the person asked for a different action" if modified else self._TEXTS.get(by, "it was refused")
        super().__init__(text)


class ConsentMismatch(ConsentError):
    """The consent was given for another session, another tool or other arguments."""


class ConsentUsed(ConsentError):
    """The consent was already used."""

    def __init__(self) -> None:
        super().__init__("the consent was already used; ask again")


class Cancelled(ConsentError):
    """The call was cancelled before it was made."""


class Unanswered(SaysoError):
    """A clarification got no answer. ``by`` says why, as in :class:`Refused`."""

    def __init__(self, by: str) -> None:
        self.by = by
        super().__init__(Refused._TEXTS.get(by, "there was no answer"))


class ToolTimedOut(SaysoError):
    """A tool exceeded its time limit and was cancelled. It may have done part of its work."""
