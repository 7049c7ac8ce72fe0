"""Builds the bodies of events and questions. All members of AAEP that an agent can set are covered."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from ._agent_api import (
    CancelledBy,
    Choice,
    Clarification,
    Confirmation,
    ErrorCategory,
    HandOff,
    LocalizationHints,
    Producer,
    Progress,
    ProgressUpdated,
    ResponseKind,
    Reversibility,
    Risk,
    SessionCancelled,
    SessionCompleted,
    SessionErrored,
    SessionStart,
    StateChanged,
    Target,
    Urgency,
    Verbosity,
)
from ._json import to_json_value
from ._text import Redactor, Text, concatenate, redact_value, summary_members, text_members, to_text
from .errors import InvalidRequest

if TYPE_CHECKING:
    from ._core import HubCore

CORE_CONTEXT = "https://aaep-protocol.org/context/v1"

State = Literal["idle", "thinking", "calling_tool", "writing_output", "deciding", "handing_off"]
#: The kinds of answers that an agent can permit besides its choices.
ChosenKind = Literal["freetext", "yes_no", "numeric"]
#: The body of a request: the described members, and their translations.
Body = dict[str, Any]


class EventOptions(TypedDict, total=False):
    """Members that every event can have. Those of a tool call apply to all its events."""

    urgency: Urgency
    verbosity: Verbosity
    correlation_id: str
    #: Extensions by prefix, each with the address of its context and its body.
    extensions: Mapping[str, tuple[str, Mapping[str, Any]]]
    #: The `agent_id` of the producer that speaks, if it is not the main one.
    producer: str


def option_members(options: Mapping[str, Any], redact: Redactor) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in options.items():
        if name in ("urgency", "verbosity", "correlation_id", "producer"):
            if value is not None:
                members[name] = value
        elif name == "extensions":
            members["@context"] = [CORE_CONTEXT, *(context for context, _ in value.values())]
            members["extensions"] = {prefix: redact_value(to_json_value(body), redact) for prefix, (_, body) in value.items()}
        else:
            raise InvalidRequest(f"there is no option {name!r}")
    return members


def milliseconds(seconds: float) -> int:
    if not (math.isfinite(seconds) and seconds >= 0):
        raise InvalidRequest("a duration must be a number of seconds that is not negative")
    return round(seconds * 1000)


def whole_seconds(seconds: float) -> int:
    if not (math.isfinite(seconds) and seconds > 0):
        raise InvalidRequest("a time limit must be a positive number of seconds")
    return max(1, math.ceil(seconds))


def session_body(
    hub: HubCore,
    request: str,
    *,
    says: Text | None,
    publish_request: bool,
    person: str | None,
    agent: Producer | str | None,
    language: str | None,
    text_direction: Literal["ltr", "rtl", "auto"] | None,
    available_languages: Iterable[str],
    fallback_languages: Iterable[str],
    script: str | None,
    calendar: str | None,
    expected_duration: float | None,
    tools: Iterable[str],
    states: Mapping[str, Text] | None,
    producers: Iterable[Producer],
    parent: str | None,
    options: Mapping[str, Any],
) -> Body:
    redact = hub.redact
    summary = to_text(says if says is not None else request)
    primary = language or hub.language
    texts = summary_members(summary, redact)
    if publish_request:
        texts |= text_members("request_text", request, redact, summary)
    body: SessionStart = {}
    if person is not None:
        body["requested_by"] = f"user:{person}"
    if expected_duration is not None:
        body["expected_duration_ms"] = milliseconds(expected_duration)
    if tool_names := list(tools):
        body["tools_available"] = tool_names
    hints: LocalizationHints = {"primary_language": primary}
    if text_direction is not None:
        hints["text_direction"] = text_direction
    others = [tag.replace("_", "-") for tag in summary.translations]
    languages = list(available_languages) or ([primary, *others] if others else [])
    if languages:
        hints["available_languages"] = languages
    if fallback := list(fallback_languages):
        hints["fallback_chain"] = fallback
    if script is not None:
        hints["script"] = script
    if calendar is not None:
        hints["calendar"] = calendar
    body["localization_hints"] = hints
    if all_states := {**hub.states, **(states or {})}:
        body["states"] = [{"state": name, "words": _state_words(words, primary, redact)} for name, words in all_states.items()]
    producer: Producer = {**hub.agent}
    if isinstance(agent, str):
        producer["agent_id"] = agent
    elif agent is not None:
        producer.update(agent)
    if producer:
        body["producer"] = producer
    if others_speaking := list(producers):
        body["producers"] = list(others_speaking)
    if parent is not None:
        body["parent"] = parent
    return {**texts, **option_members(options, redact), **body}


def _state_words(words: Text, primary: str, redact: Redactor) -> dict[str, str]:
    localized = to_text(words).map(redact)
    others = {tag.replace("_", "-"): text.normal for tag, text in localized.translations.items()}
    return {primary: localized.normal, **others}


def state_changed(
    state: str, says: Text | None, expected_duration: float | None, options: Mapping[str, Any], redact: Redactor
) -> Body:
    event: StateChanged = {"type": "aaep:agent.state.changed", "to_state": state}
    if expected_duration is not None:
        event["expected_duration_ms"] = milliseconds(expected_duration)
    texts = summary_members(says, redact) if says is not None else {}
    return {**event, **texts, **option_members(options, redact)}


def progress_updated(
    says: Text,
    *,
    percent: float | None = None,
    step: int | None = None,
    total_steps: int | None = None,
    description: str | None = None,
    eta: float | None = None,
    options: Mapping[str, Any] = MappingProxyType({}),
    redact: Redactor,
) -> Body:
    texts = summary_members(says, redact)
    progress: Progress = {"description": redact(description) if description is not None else texts["summary_normal"]}
    if percent is not None:
        progress["percent"] = percent
    if step is not None:
        progress["step"] = step
    if total_steps is not None:
        progress["total_steps"] = total_steps
    event: ProgressUpdated = {"type": "aaep:agent.progress.updated", "progress": progress}
    if eta is not None:
        event["eta_ms"] = milliseconds(eta)
    return {**event, **texts, **option_members(options, redact)}


def tool_members(
    says: Text,
    *,
    description: Text | None,
    args_summary: Text | None,
    expected_duration: float | None,
    risk: Risk,
    irreversible: bool,
    options: Mapping[str, Any],
    redact: Redactor,
) -> dict[str, Any]:
    members: dict[str, Any] = {"risk_level": risk, "irreversible": irreversible, **summary_members(says, redact)}
    if description is not None:
        members |= text_members("description", description, redact, says)
    if args_summary is not None:
        members |= text_members("args_summary", args_summary, redact, says)
    if expected_duration is not None:
        members["expected_duration_ms"] = milliseconds(expected_duration)
    return members | option_members(options, redact)


def confirmation(
    tool: str,
    arguments: Mapping[str, Any],
    *,
    action: Text,
    consequence: Text,
    summary: Text | None,
    risk: Risk,
    reversibility: Reversibility | None,
    answer_timeout: float,
    allowed_replies: Sequence[str],
    extra_context: Mapping[str, Any] | None,
    tool_call_id: str | None,
    options: Mapping[str, Any],
    redact: Redactor,
) -> dict[str, Any]:
    action, consequence = to_text(action).map(redact), to_text(consequence).map(redact)
    unchanged: Redactor = str
    is_irreversible = reversibility == "irreversible"
    # A text that the person agrees to is never shortened; the hub refuses a text that is too long.
    texts = {
        **text_members("action", action, unchanged, limit=None),
        **text_members("consequence", consequence, unchanged, limit=None),
        **summary_members(concatenate(action, consequence) if summary is None else to_text(summary).map(redact), unchanged),
    }
    body: Confirmation = {
        "action": action.normal,
        "consequence": consequence.normal,
        "timeout_seconds": whole_seconds(answer_timeout),
        "default_decision": "reject",
        "risk_level": risk,
        "irreversible": is_irreversible,
        "tool": tool,
        "arguments": arguments,
    }
    if tool_call_id is not None:
        body["tool_call_id"] = tool_call_id
    if reversibility is not None and not is_irreversible:
        body["reversibility"] = reversibility
    if allowed_replies:
        body["allowed_replies"] = list(allowed_replies)
    if extra_context is not None:
        body["extra_context"] = redact_value(to_json_value(extra_context), redact)
    return {**body, **texts, **option_members(options, redact)}


def clarification(
    question: Text,
    *,
    context: Text | None,
    choices: Mapping[str, Text] | None,
    accept: Iterable[ChosenKind],
    default_response: Text | None,
    answer_timeout: float,
    options: Mapping[str, Any],
    redact: Redactor,
) -> dict[str, Any]:
    texts = {**text_members("question", question, redact), **summary_members(question, redact)}
    if context is not None:
        texts |= text_members("context", context, redact, question)
    if default_response is not None:
        texts |= text_members("default_response", default_response, redact, question)
    body: Clarification = {"question": texts["question"], "timeout_seconds": whole_seconds(answer_timeout)}
    translated_choices: dict[str, list[Choice]] = {}
    kinds: list[ResponseKind] = list(accept)
    if choices:
        kinds.append("multiple_choice")
        labels = {value: to_text(label).map(redact) for value, label in choices.items()}
        body["choices"] = [{"value": value, "label": label.normal} for value, label in labels.items()]
        for tag in to_text(question).translations:
            translated = {
                value: (label if not label.translations else label.translations.get(tag)) for value, label in labels.items()
            }
            if all(translated.values()):
                translated_choices[f"choices_{tag}"] = [
                    {"value": value, "label": label.normal} for value, label in translated.items() if label is not None
                ]
    body["accepted_response_kinds"] = kinds or ["freetext"]
    return {**body, **texts, **translated_choices, **option_members(options, redact)}


def hand_off(
    reason: Text,
    *,
    target: Target,
    says: Text | None,
    urgency: Risk | None,
    target_uri: str | None,
    context: Mapping[str, Any] | None,
    timeout: float | None,
    options: Mapping[str, Any],
    redact: Redactor,
) -> Body:
    summary = says if says is not None else reason
    texts = {**text_members("reason", reason, redact, summary), **summary_members(summary, redact)}
    body: HandOff = {"target_kind": target, "reason": texts["reason"]}
    if urgency is not None:
        body["urgency_for_handoff"] = urgency
    if target_uri is not None:
        body["target_uri"] = target_uri
    if context is not None:
        body["packaged_context"] = redact_value(to_json_value(context), redact)
    if timeout is not None:
        body["timeout_seconds"] = whole_seconds(timeout)
    return {**body, **texts, **option_members(options, redact)}


def completed(
    says: Text,
    *,
    output_summary: Text | None,
    result_uri: str | None,
    duration: float,
    tool_calls: int,
    options: Mapping[str, Any],
    redact: Redactor,
) -> dict[str, Any]:
    texts = summary_members(says, redact)
    event: SessionCompleted = {
        "type": "aaep:agent.session.completed",
        "duration_ms": milliseconds(duration),
        "tool_invocations_count": tool_calls,
    }
    if output_summary is not None:
        texts |= text_members("output_summary", output_summary, redact, says)
    if result_uri is not None:
        event["result_uri"] = result_uri
    return {**event, **texts, **option_members(options, redact)}


def errored(
    says: Text,
    *,
    category: ErrorCategory,
    code: str | None,
    help_uri: str | None,
    recoverable: bool | None,
    remediation_hint: Text | None,
    options: Mapping[str, Any],
    redact: Redactor,
) -> dict[str, Any]:
    texts = summary_members(says, redact)
    event: SessionErrored = {
        "type": "aaep:agent.session.errored",
        "error_category": category,
        "recoverable": category in ("transient", "requires_user") if recoverable is None else recoverable,
    }
    if code is not None:
        event["error_code"] = code
    if help_uri is not None:
        event["error_uri"] = help_uri
    if remediation_hint is not None:
        texts |= text_members("remediation_hint", remediation_hint, redact, says)
    return {**event, **texts, **option_members(options, redact)}


def cancelled(
    says: Text,
    *,
    by: CancelledBy,
    reason: str | None,
    partial_result: Text | None,
    options: Mapping[str, Any],
    redact: Redactor,
) -> dict[str, Any]:
    texts = summary_members(says, redact)
    event: SessionCancelled = {"type": "aaep:agent.session.cancelled", "cancelled_by": by}
    if reason is not None:
        event["cancellation_reason"] = reason
    if partial_result is not None:
        texts |= text_members("partial_result", partial_result, redact, says)
    return {**event, **texts, **option_members(options, redact)}
