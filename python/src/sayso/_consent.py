"""Consent as a value: what a call would do, and a person's yes to exactly that call."""

from __future__ import annotations

import copy
import re
import string
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import _events as events
from ._agent_api import Reversibility, Risk
from ._core import OpenCall, SessionCore
from ._json import canonical_json, digest, to_json_value
from ._text import LocalizedText, Text, humanize, sentence, to_text
from .errors import ConsentMismatch, ConsentUsed, InvalidRequest, Refused, SessionStopped

#: How long a person has to answer, in seconds.
DEFAULT_ANSWER_TIMEOUT = 300.0

#: A text with `{names}` of arguments, or a function that gets the arguments by name.
Template = Text | Callable[..., Text]


@dataclass(frozen=True)
class Policy:
    """What listeners hear about the calls of a tool, and whether a person is asked first.

    A person is asked if the call is ``irreversible``, has the risk ``high``, or if ``ask`` is true.
    """

    #: What a call does, such as ``"Send {amount} euros to {to}."``. Arguments that it does not name are added to the question.
    action: Template | None = None
    #: The consequence of a call. The default says that it cannot be undone, if that is true.
    consequence: Template | None = None
    irreversible: bool = False
    #: The default is ``high`` for calls that need consent and ``low`` for all others.
    risk: Risk | None = None
    ask: bool = False
    reversibility: Reversibility | None = None
    #: The summary of the question, if it is not the action and its consequence.
    question: Template | None = None
    #: The report on success.
    success: Template | None = None
    description: Text | None = None
    args_summary: Template | None = None
    expected_duration: float | None = None
    #: Arguments that are neither bound nor copied, because they do not affect what is done, such as a connection.
    skip: Collection[str] = ()
    #: Arguments that are bound, but not read to the person unless a text names them.
    confidential: Collection[str] = ()
    answer_timeout: float = DEFAULT_ANSWER_TIMEOUT
    #: The time limit of an asynchronous tool, in seconds.
    timeout: float | None = None
    allowed_replies: Sequence[str] = ()
    extra_context: Mapping[str, Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def needs_consent(self) -> bool:
        return self.irreversible or self.ask or self.risk == "high" or self.reversibility == "irreversible"

    @property
    def effective_risk(self) -> Risk:
        return self.risk or ("high" if self.needs_consent else "low")

    @property
    def is_irreversible(self) -> bool:
        return self.irreversible or self.reversibility == "irreversible"


#: A tool that is announced and runs without a question.
HARMLESS = Policy()
#: A tool about which nothing is known: the person is asked.
ASK = Policy(ask=True, risk="high")


@dataclass(frozen=True)
class BoundCall:
    """A tool and a private copy of the arguments with which it will run."""

    tool: str
    #: The values with which the function runs. Nobody else holds them.
    values: Mapping[str, Any]
    #: The values to which the answer is bound, as JSON.
    arguments: Mapping[str, Any]
    digest: str
    skip: Collection[str]

    def verify(self) -> None:
        """Raises :class:`ConsentMismatch` if the values are no longer those that were asked about."""
        if _bind_values(self.tool, self.values, self.skip)[1] != self.digest:
            raise ConsentMismatch("the arguments changed after the question; ask again")


def bind(tool: str, values: Mapping[str, Any], skip: Collection[str] = ()) -> BoundCall:
    """Copies the arguments of a call deeply and computes its digest."""
    try:
        own = {name: value if name in skip else copy.deepcopy(value) for name, value in values.items()}
    except Exception as error:
        raise InvalidRequest(f"an argument cannot be copied: {error}; list it in `skip` if it does not matter") from error
    arguments, value_digest = _bind_values(tool, own, skip)
    return BoundCall(tool, own, arguments, value_digest, skip)


def _bind_values(tool: str, values: Mapping[str, Any], skip: Collection[str]) -> tuple[dict[str, Any], str]:
    arguments = {name: to_json_value(value) for name, value in values.items() if name not in skip}
    return arguments, digest(tool, arguments)


class Granted:
    """A person's yes to one call. It can be used once, and only in its session."""

    def __init__(self, core: SessionCore, call: BoundCall, members: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        self._core = core
        self._call = call
        self._members = members
        self._lock = threading.Lock()
        self._is_used = False
        #: The hub's signed record of the answer.
        self.receipt: Mapping[str, Any] = answer.get("receipt") or {}
        self.receipt_signature: str | None = answer.get("receipt_signature")

    @property
    def tool(self) -> str:
        return self._call.tool

    @property
    def arguments(self) -> dict[str, Any]:
        """A copy of the arguments, as JSON values."""
        return copy.deepcopy(dict(self._call.arguments))

    @property
    def digest(self) -> str:
        """The digest of the tool and its arguments, which the receipt names."""
        return self._call.digest

    @property
    def is_used(self) -> bool:
        return self._is_used

    def __repr__(self) -> str:
        return f"<Granted {self.tool} {self.digest}{' used' if self._is_used else ''}>"

    def _use(self, core: SessionCore) -> BoundCall:
        if core is not self._core:
            raise ConsentMismatch("the consent was given in another session")
        with self._lock:
            if self._is_used:
                raise ConsentUsed
            self._is_used = True
        self._call.verify()
        return self._call


async def ask(core: SessionCore, call: BoundCall, policy: Policy, call_id: str | None = None) -> Granted:
    """Asks the person. Raises :class:`Refused` unless a person said yes to exactly this call."""
    action = describe(policy.action, call, policy, default=f"{humanize(call.tool)}.", adds_unmentioned=True)
    default_consequence = "It cannot be undone." if policy.is_irreversible else "The tool runs with these arguments."
    consequence = describe(policy.consequence, call, policy, default=default_consequence)
    summary = None if policy.question is None else describe(policy.question, call, policy, default="")
    body = events.confirmation(
        call.tool,
        call.arguments,
        action=action,
        consequence=consequence,
        summary=summary,
        risk=policy.effective_risk,
        reversibility="irreversible" if policy.is_irreversible else policy.reversibility,
        answer_timeout=policy.answer_timeout,
        allowed_replies=policy.allowed_replies,
        extra_context=policy.extra_context,
        tool_call_id=call_id,
        options=policy.options,
        redact=core.hub.redact,
    )
    answer = await core.ask("session.ask", body)
    receipt = answer.get("receipt")
    receipt = receipt if isinstance(receipt, Mapping) else {}
    by = str(answer.get("by"))
    # The default decision is reject, so an acceptance that no person sent does not count.
    if answer.get("status") != "resolved" or answer.get("decision") != "accept" or by != "reply":
        raise Refused(
            by,
            modified=receipt.get("modified") is True,
            receipt=receipt,
            signature=answer.get("receipt_signature"),
        )
    expected = {
        "type": "sayso:receipt",
        "decision": "accept",
        "by": "reply",
        "session_id": core.id,
        "reply_token": answer.get("reply_token"),
        "action_digest": call.digest,
    }
    if any(receipt.get(name) != value for name, value in expected.items()):
        raise ConsentMismatch("the hub's receipt is not a yes to this action in this session")
    return Granted(core, call, announcement(core, call, policy), answer)


def announcement(core: SessionCore, call: BoundCall, policy: Policy) -> dict[str, Any]:
    """Returns the members of the event that announces a call."""
    says = describe(policy.action, call, policy, default=f"{humanize(call.tool)}.")
    args_summary = None if policy.args_summary is None else describe(policy.args_summary, call, policy, default="")
    members = events.tool_members(
        LocalizedText(says.normal, translations={tag: LocalizedText(text.normal) for tag, text in says.translations.items()}),
        description=policy.description,
        args_summary=args_summary,
        expected_duration=policy.expected_duration,
        risk=policy.effective_risk,
        irreversible=policy.is_irreversible,
        options=policy.options,
        redact=core.hub.redact,
    )
    if policy.needs_consent:
        members["arguments"] = call.arguments
    return members


async def start_granted(core: SessionCore, granted: Granted, call_id: str | None) -> tuple[OpenCall, BoundCall]:
    """Announces a call that a person allowed. The hub checks the consent once more, and refuses the event if it does not fit."""
    call = granted._use(core)
    return await core.invoke(call.tool, granted._members, call_id), call


async def open_call(core: SessionCore, call: BoundCall, policy: Policy, call_id: str | None) -> OpenCall:
    """Asks if needed, and announces the call. When it returns, the call may be made."""
    if policy.needs_consent:
        own_id = core.new_call_id(call_id)
        granted = await ask(core, call, policy, own_id)
        if core.stop_reason is not None:
            raise SessionStopped(core.stop_reason)
        return (await start_granted(core, granted, own_id))[0]
    return await core.invoke(call.tool, announcement(core, call, policy), call_id)


def describe(
    template: Template | None, call: BoundCall, policy: Policy, *, default: str, adds_unmentioned: bool = False
) -> LocalizedText:
    """Fills in a template. Texts that a function returns are used as they are."""
    shown = {name: value for name, value in call.values.items() if name not in policy.skip}
    if callable(template):
        return to_text(template(**copy.deepcopy(shown)))
    text = to_text(default if template is None else template)
    # A default contains the tool's name, which is not a template.
    filled = text if template is None else text.map(lambda form: _fill(form, shown))
    if not adds_unmentioned:
        return filled
    mentioned = set(_names(text)) if template is not None else set()
    if policy.consequence is not None and not callable(policy.consequence):
        mentioned |= set(_names(to_text(policy.consequence)))
    unmentioned = [
        f"{name}: {canonical_json(value)}"
        for name, value in call.arguments.items()
        if name not in mentioned and name not in policy.confidential
    ]
    if not unmentioned:
        return filled
    return filled.map(lambda form: f"{form} ({', '.join(unmentioned)})")


def _fill(form: str, values: Mapping[str, Any]) -> str:
    try:
        return form.format_map(values)
    except Exception as error:
        raise InvalidRequest(f"the text {form!r} does not fit the arguments: {error!r}") from error


def _names(text: LocalizedText) -> Iterable[str]:
    """Returns the arguments that every language of a text mentions."""
    forms = [text.normal, *(translation.normal for translation in text.translations.values())]
    sets = [{re.split(r"[.\[]", name)[0] for _, name, _, _ in string.Formatter().parse(form) if name} for form in forms]
    return set.intersection(*sets)


def describe_for_model(error: BaseException) -> str:
    """Returns a denial as a text that a model understands."""
    reason = sentence(str(error) or type(error).__name__)
    return f"{reason} The tool was not run. Do not call it again for this request unless the person asks for it."


__all__ = [
    "ASK",
    "HARMLESS",
    "BoundCall",
    "Granted",
    "Policy",
    "Template",
    "announcement",
    "ask",
    "bind",
    "describe_for_model",
    "open_call",
    "start_granted",
]
