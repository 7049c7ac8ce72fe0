"""Builds the bodies of events and questions. All members of AAEP that an agent can set are covered."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from ._json import to_json_value
from ._text import Redactor, Text, concatenate, redact_value, summary_members, text_members, to_text
from .errors import InvalidRequest

if TYPE_CHECKING:
    from ._core import HubCore

CORE_CONTEXT = "https://aaep-protocol.org/context/v1"

Risk = Literal["low", "medium", "high"]
State = Literal["idle", "thinking", "calling_tool", "writing_output", "deciding", "handing_off"]
ErrorCategory = Literal["transient", "permanent", "requires_user", "unknown"]
Target = Literal["human", "specialist_agent", "escalation_queue"]
Reversibility = Literal["reversible", "reversible_with_effort", "irreversible"]
ResponseKind = Literal["freetext", "yes_no", "numeric"]


class Producer(TypedDict, total=False):
    """An agent. Only `agent_id` is required."""

    agent_id: str
    agent_name: str
    agent_version: str
    model: str
    manifest_uri: str


class EventOptions(TypedDict, total=False):
    """Members that every event can have."""

    urgency: Literal["background", "normal", "critical"]
    verbosity: Literal["terse", "normal", "detailed"]
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
    agent: Mapping[str, str] | str | None,
    language: str | None,
    text_direction: Literal["ltr", "rtl", "auto"] | None,
    available_languages: Iterable[str],
    fallback_languages: Iterable[str],
    script: str | None,
    calendar: str | None,
    expected_duration: float | None,
    tools: Iterable[str],
    states: Mapping[str, Text] | None,
    producers: Iterable[Mapping[str, str]],
    parent: str | None,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    redact = hub.redact
    summary = to_text(says if says is not None else request)
    primary = language or hub.language
    body: dict[str, Any] = {**summary_members(summary, redact), **option_members(options, redact)}
    if publish_request:
        body |= text_members("request_text", request, redact, summary)
    if person is not None:
        body["requested_by"] = f"user:{person}"
    if expected_duration is not None:
        body["expected_duration_ms"] = milliseconds(expected_duration)
    if tool_names := list(tools):
        body["tools_available"] = tool_names
    hints: dict[str, Any] = {"primary_language": primary}
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
    producer = {**hub.agent, **({"agent_id": agent} if isinstance(agent, str) else dict(agent or {}))}
    if producer:
        body["producer"] = producer
    if others_speaking := [dict(other) for other in producers]:
        body["producers"] = others_speaking
    if parent is not None:
        body["parent"] = parent
    return body


def _state_words(words: Text, primary: str, redact: Redactor) -> dict[str, str]:
    localized = to_text(words).map(redact)
    others = {tag.replace("_", "-"): text.normal for tag, text in localized.translations.items()}
    return {primary: localized.normal, **others}


def state_changed(
    state: str, says: Text | None, expected_duration: float | None, options: Mapping[str, Any], redact: Redactor
) -> dict[str, Any]:
    event: dict[str, Any] = {"type": "aaep:agent.state.changed", "to_state": state}
    if says is not None:
        event |= summary_members(says, redact)
    if expected_duration is not None:
        event["expected_duration_ms"] = milliseconds(expected_duration)
    return event | option_members(options, redact)


def progress_updated(
    says: Text,
    *,
    percent: float | None,
    step: int | None,
    total_steps: int | None,
    description: str | None,
    eta: float | None,
    options: Mapping[str, Any],
    redact: Redactor,
) -> dict[str, Any]:
    summary = summary_members(says, redact)
    described = redact(description) if description is not None else summary["summary_normal"]
    progress: dict[str, Any] = {"description": described}
    for name, value in (("percent", percent), ("step", step), ("total_steps", total_steps)):
        if value is not None:
            progress[name] = value
    event: dict[str, Any] = {"type": "aaep:agent.progress.updated", "progress": progress, **summary}
    if eta is not None:
        event["eta_ms"] = milliseconds(eta)
    return event | option_members(options, redact)


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
    # What the person agrees to is never shortened; the hub refuses a text that is too long.
    body: dict[str, Any] = {
        **text_members("action", action, unchanged, limit=None),
        **text_members("consequence", consequence, unchanged, limit=None),
        **summary_members(concatenate(action, consequence) if summary is None else to_text(summary).map(redact), unchanged),
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
    return body | option_members(options, redact)


def clarification(
    question: Text,
    *,
    context: Text | None,
    choices: Mapping[str, Text] | None,
    accept: Iterable[ResponseKind],
    default_response: Text | None,
    answer_timeout: float,
    options: Mapping[str, Any],
    redact: Redactor,
) -> dict[str, Any]:
    body: dict[str, Any] = {
        **text_members("question", question, redact),
        **summary_members(question, redact),
        "timeout_seconds": whole_seconds(answer_timeout),
    }
    if context is not None:
        body |= text_members("context", context, redact, question)
    if default_response is not None:
        body |= text_members("default_response", default_response, redact, question)
    kinds: list[str] = list(accept)
    if choices:
        kinds.append("multiple_choice")
        labels = {value: to_text(label).map(redact) for value, label in choices.items()}
        body["choices"] = [{"value": value, "label": label.normal} for value, label in labels.items()]
        for tag in to_text(question).translations:
            translated = {
                value: (label if not label.translations else label.translations.get(tag)) for value, label in labels.items()
            }
            if all(translated.values()):
                body[f"choices_{tag}"] = [
                    {"value": value, "label": label.normal} for value, label in translated.items() if label is not None
                ]
    body["accepted_response_kinds"] = kinds or ["freetext"]
    return body | option_members(options, redact)


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
) -> dict[str, Any]:
    summary = says if says is not None else reason
    body: dict[str, Any] = {
        "target_kind": target,
        **text_members("reason", reason, redact, summary),
        **summary_members(summary, redact),
    }
    if urgency is not None:
        body["urgency_for_handoff"] = urgency
    if target_uri is not None:
        body["target_uri"] = target_uri
    if context is not None:
        body["packaged_context"] = redact_value(to_json_value(context), redact)
    if timeout is not None:
        body["timeout_seconds"] = whole_seconds(timeout)
    return body | option_members(options, redact)


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
    event: dict[str, Any] = {
        "type": "aaep:agent.session.completed",
        **summary_members(says, redact),
        "duration_ms": milliseconds(duration),
        "tool_invocations_count": tool_calls,
    }
    if output_summary is not None:
        event |= text_members("output_summary", output_summary, redact, says)
    if result_uri is not None:
        event["result_uri"] = result_uri
    return event | option_members(options, redact)


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
    event: dict[str, Any] = {
        "type": "aaep:agent.session.errored",
        "error_category": category,
        **summary_members(says, redact),
        "recoverable": category in ("transient", "requires_user") if recoverable is None else recoverable,
    }
    if code is not None:
        event["error_code"] = code
    if help_uri is not None:
        event["error_uri"] = help_uri
    if remediation_hint is not None:
        event |= text_members("remediation_hint", remediation_hint, redact, says)
    return event | option_members(options, redact)


def cancelled(
    says: Text,
    *,
    by: str,
    reason: str | None,
    partial_result: Text | None,
    options: Mapping[str, Any],
    redact: Redactor,
) -> dict[str, Any]:
    event: dict[str, Any] = {
        "type": "aaep:agent.session.cancelled",
        "cancelled_by": by,
        **summary_members(says, redact),
    }
    if reason is not None:
        event["cancellation_reason"] = reason
    if partial_result is not None:
        event |= text_members("partial_result", partial_result, redact, says)
    return event | option_members(options, redact)
