//! Builds events from agents' requests: the agent supplies type and payload, the hub supplies the envelope.

use std::borrow::Cow;

use aaep::check::has_mixed_direction;
use aaep::consent::ResolvedBy;
use aaep::event::{AgentState, EventType, StateDefinition};
use aaep::json::{JsonKind, JsonValue, OwnedDoc, TapeWriter};
use aaep::{ReplyToken, Timestamp, ToolCallId};
use seal::{Digest, UnixMillis};
use thiserror::Error;

use crate::command::HandoffResult;
use crate::core::SuppliedSummary;

/// The values that the hub writes into the envelope.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EnvelopeFields<'s> {
    pub(crate) event_id: &'s str,
    pub(crate) session_id: &'s str,
    pub(crate) timestamp: &'s str,
    pub(crate) producer: &'s OwnedDoc,
    /// The type and reply token, if the event is a question; the hub sets both.
    pub(crate) question: Option<(&'s EventType, &'s str)>,
    /// The session's localization hints, for events that have none.
    pub(crate) hints: Option<&'s OwnedDoc>,
    /// The language of text whose language neither the event nor the session states.
    pub(crate) default_language: &'s str,
    /// The producer's current state, for state changes without a `from_state`.
    pub(crate) state: Option<&'s AgentState>,
    /// The states that the agent's author defined.
    pub(crate) own_states: &'s [StateDefinition],
    /// The session's correlation id, for events that have none.
    pub(crate) correlation_id: Option<&'s str>,
    /// What listeners learn about the producer and the session in `extensions.sayso`.
    pub(crate) marks: HubMarks<'s>,
    /// The summary, if the event has none.
    pub(crate) summary: Option<&'s SuppliedSummary>,
}

/// Members of `extensions.sayso` that do not depend on the kind of event.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HubMarks<'s> {
    /// The session's main producer, if another producer speaks. Listeners in the scope of the main producer receive the
    /// event.
    pub(crate) main_producer: Option<&'s str>,
    /// Whether the producer's name is verified, as in [`AgentVerification`].
    pub(crate) has_verified_name: bool,
    /// The parent of the session (§A.9, C-A13).
    pub(crate) parent_session_id: Option<&'s str>,
}

/// The member of `extensions.sayso` that names the session's main producer.
pub(crate) const MAIN_PRODUCER: &str = "main_producer";

impl HubMarks<'_> {
    fn is_empty(&self) -> bool {
        self.main_producer.is_none() && !self.has_verified_name && self.parent_session_id.is_none()
    }

    /// Writes the members into an open object.
    fn write(&self, out: &mut TapeWriter) {
        if self.has_verified_name {
            out.plain_key("verified_name");
            out.boolean(true);
        }
        if let Some(main_producer) = self.main_producer {
            write_text(out, MAIN_PRODUCER, main_producer);
        }
        if let Some(parent) = self.parent_session_id {
            write_text(out, "parent_session_id", parent);
        }
    }
}

/// Why a JSON value is not an event that an agent may send.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidEvent {
    /// It is not an object, or it has no type.
    #[error("an event must be a JSON object with a type")]
    NotTypedObject,
    /// Only the hub may set this member.
    #[error("{0} is set by the hub; send only the type and the payload")]
    ReservedMember(String),
    /// Only the hub may send events of this type.
    #[error("the event type {0} is reserved for the hub")]
    ReservedType(String),
}

const AAEP_CONTEXT: &str = "https://aaep-protocol.org/context/v1";
const SAYSO_CONTEXT: &str = "urn:sayso:context:v1";
/// The extension that only the hub may write.
const SAYSO_EXTENSION: &str = "extensions.sayso";

/// The member of the extension that says that the hub ended a session, and its values.
pub(crate) const ENDED_BY: &str = "ended_by";
pub(crate) const ENDED_BY_USER: &str = "user";
pub(crate) const ENDED_BY_HUB: &str = "hub";

/// The content of `extensions.sayso`, for listeners that understand it. Agents cannot write it.
#[derive(Clone, Debug)]
pub(crate) enum SaysoExtension<'e> {
    /// The hub wrote the event's text, which only describes the state. A listener that has its own phrases for states
    /// can ignore the text. The JSON member is `"text_by": "hub"`.
    HubText,
    /// The event reports the current state of a session to one listener.
    CurrentState(SessionSnapshot),
    /// The call that a question or an event is bound to. A question contains the arguments, so that people can hear what
    /// they permit.
    Call { tool: &'e str, call_id: Option<ToolCallId>, digest: Option<Digest>, arguments: Option<OwnedDoc> },
    /// The verified manifest of the session's agent.
    Manifest(ManifestNote),
    /// The hub ended the session. `by` says for whom: `user` for a person who stopped it, `hub` if the agent disappeared.
    SessionEnded { by: &'static str },
    /// The event is a reminder of this question.
    ReminderOf(ReplyToken),
    /// The question's deadline was extended.
    DeadlineExtended { token: ReplyToken, deadline: UnixMillis },
    /// The event asks somebody to take over, until the deadline.
    HandoffRequested { token: ReplyToken, deadline: UnixMillis },
    /// The hand-off was resolved.
    HandoffResolved {
        token: ReplyToken,
        result: HandoffResult,
        note: Option<String>,
        /// The hash of the subscription that answered, so that its listener knows that its answer counted.
        replier: Option<Digest>,
    },
    /// The question was resolved. `by` says how.
    Resolved { token: ReplyToken, decision: Option<&'static str>, by: ResolvedBy },
}

impl SaysoExtension<'_> {
    /// Writes the members into an open object.
    fn write_members(&self, out: &mut TapeWriter) {
        match self {
            Self::HubText => out.plain_member("text_by", "hub"),
            Self::CurrentState(snapshot) => snapshot.write(out),
            Self::Call { tool, call_id, digest, arguments } => {
                write_text(out, "tool", tool);
                if let Some(call_id) = call_id {
                    write_text(out, "tool_call_id", call_id.as_str());
                }
                if let Some(digest) = digest {
                    write_text(out, "action_digest", &digest.to_string());
                }
                if let Some(arguments) = arguments {
                    out.plain_key("arguments");
                    out.copy(&arguments.doc().root());
                }
            }
            Self::Manifest(manifest) => manifest.write(out),
            Self::SessionEnded { by } => out.plain_member(ENDED_BY, by),
            Self::ReminderOf(token) => write_text(out, "reminds_of", token.as_str()),
            Self::DeadlineExtended { token, deadline } => {
                write_text(out, "extended", token.as_str());
                let deadline = Timestamp::from_unix_millis(*deadline).map(|at| at.to_string());
                write_text(out, "deadline", &deadline.unwrap_or_default());
            }
            Self::HandoffRequested { token, deadline } => {
                out.plain_key("handoff");
                out.open_object();
                write_text(out, "reply_token", token.as_str());
                let deadline = Timestamp::from_unix_millis(*deadline).map(|at| at.to_string());
                write_text(out, "deadline", &deadline.unwrap_or_default());
                out.close_object();
            }
            Self::HandoffResolved { token, result, note, replier } => {
                out.plain_key("handoff");
                out.open_object();
                write_text(out, "reply_token", token.as_str());
                out.plain_member("outcome", result.as_str());
                if let Some(note) = note {
                    write_text(out, "note", note);
                }
                if let Some(replier) = replier {
                    write_text(out, "replier", &replier.to_string());
                }
                out.close_object();
            }
            Self::Resolved { token, decision, by } => {
                write_text(out, "reply_token", token.as_str());
                if let Some(decision) = decision {
                    out.plain_member("decision", decision);
                }
                out.plain_member("by", by.as_str());
            }
        }
    }
}

/// The state of a session, for a listener that joins late.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionSnapshot {
    /// Whether the hub wrote the event's text.
    pub(crate) is_hub_text: bool,
    /// Whether the listener missed events.
    pub(crate) has_gap: bool,
    /// The agent's text at the start of the session, in the listener's language.
    pub(crate) about: Option<String>,
}

impl SessionSnapshot {
    fn write(&self, out: &mut TapeWriter) {
        if self.has_gap {
            out.plain_key("gap");
            out.boolean(true);
        }
        if let Some(about) = &self.about {
            write_text(out, "about", about);
        }
        if self.is_hub_text {
            out.plain_member("text_by", "hub");
        }
    }
}

/// The verified facts about a session's agent.
#[derive(Clone, Debug, Default)]
pub(crate) struct AgentVerification {
    /// Whether the agent's name is verified: its token contains the name, or a verified manifest does, or the agent is
    /// part of the program that runs the hub.
    pub(crate) has_verified_name: bool,
    /// The agent's manifest, if it is verified: configured by the operator, or signed with a trusted key.
    pub(crate) manifest: Option<ManifestNote>,
}

/// The facts about an agent from its verified manifest.
#[derive(Clone, Debug)]
pub(crate) struct ManifestNote {
    /// What verified the manifest: `signature` or `hub`.
    pub(crate) verified_by: &'static str,
    pub(crate) contact: Option<String>,
}

impl ManifestNote {
    /// Writes the members into an open object.
    fn write(&self, out: &mut TapeWriter) {
        out.plain_key("manifest");
        out.open_object();
        out.plain_member("verified_by", self.verified_by);
        if let Some(contact) = &self.contact {
            write_text(out, "contact", contact);
        }
        out.close_object();
    }
}

/// Writes a member whose name needs no escaping.
pub(crate) fn write_text(out: &mut TapeWriter, name: &str, value: &str) {
    out.plain_key(name);
    out.text(value);
}

/// Writes the event with its envelope, with the members in the order that the specification recommends. Leaves out the
/// members named in `hidden`, which are meant only for the hub. The writer also builds the tape, so the event need not
/// be parsed again. Returns whether the event is critical.
pub(crate) fn write_event(
    body: &JsonValue<'_>,
    envelope: &EnvelopeFields<'_>,
    extension: Option<&SaysoExtension<'_>>,
    hidden: &[&str],
    out: &mut TapeWriter,
) -> Result<bool, InvalidEvent> {
    let members = AgentMembers::of(body);
    let kind = match envelope.question {
        Some((kind, _)) => Some(Cow::Borrowed(kind.as_str())),
        None => members.kind.and_then(|kind| kind.text()),
    };
    let kind = kind.ok_or(InvalidEvent::NotTypedObject)?;
    if let Some(name) = members.reserved {
        return Err(InvalidEvent::ReservedMember(name));
    }
    // An agent that could write this extension could forge a person's acceptance (decision 15).
    if members
        .extensions
        .iter()
        .flat_map(JsonValue::members)
        .any(|(name, _)| name.text().is_some_and(|name| is_sayso(&name)))
    {
        return Err(InvalidEvent::ReservedMember(SAYSO_EXTENSION.to_owned()));
    }
    if kind.split_once(':').is_some_and(|(prefix, _)| prefix == "sayso") || is_sayso(&kind) {
        return Err(InvalidEvent::ReservedType(kind.into_owned()));
    }
    let event_type = EventType::parse(&kind);
    let own_states = relevant_states(&event_type, body, envelope.own_states);
    out.clear();
    out.open_object();
    out.plain_key("@context");
    let has_extension = extension.is_some() || !own_states.is_empty() || !envelope.marks.is_empty();
    write_context(members.context, has_extension, out);
    out.plain_member("aaep_version", "1.0.0");
    out.plain_key("type");
    out.text(&kind);
    for (name, text) in [
        ("event_id", envelope.event_id),
        ("session_id", envelope.session_id),
        ("timestamp", envelope.timestamp),
    ] {
        out.plain_member(name, text);
    }
    out.plain_key("producer");
    out.copy(&envelope.producer.doc().root());
    copy_member("verbosity", members.verbosity, out);
    match (members.urgency, recommended_urgency(&event_type)) {
        (None, Some(urgency)) => out.plain_member("urgency", urgency),
        (urgency, _) => copy_member("urgency", urgency, out),
    }
    write_hints(body, members.hints, envelope, out);
    match (members.correlation, envelope.correlation_id) {
        (None, Some(id)) => write_text(out, "correlation_id", id),
        (given, _) => copy_member("correlation_id", given, out),
    }
    if let (EventType::StateChanged, false, Some(state)) =
        (&event_type, members.has_from_state && !hidden.contains(&"from_state"), envelope.state)
    {
        out.plain_key("from_state");
        out.text(state.as_str());
    }
    if let Some((_, token)) = envelope.question {
        out.plain_member("reply_token", token);
    }
    let has_state_words = match (&event_type, members.has_summary, own_states) {
        (EventType::StateChanged, false, [state]) => {
            write_state_words(state, &primary_language(members.hints, envelope), out)
        }
        _ => false,
    };
    if let (false, Some(summary)) = (has_state_words, envelope.summary) {
        summary.write(out);
    }
    for (key, value) in body.members() {
        let name = key.text().unwrap_or_default();
        if MemberKind::of(&name) != MemberKind::Payload || hidden.contains(&&*name) {
            continue;
        }
        out.copy_key(&key);
        match replacement_call_id(&name, &value) {
            Some(id) => out.text(id.as_str()),
            None => out.copy(&value),
        }
    }
    write_extensions(members.extensions, extension, own_states, &envelope.marks, out);
    out.close_object();
    // SSE and JSON Lines need each event on one line.
    out.replace_line_breaks();
    debug_assert!(out.matches_reparse(), "{}", out.source());
    Ok(event_type.is_critical() || members.urgency.is_some_and(|urgency| urgency.is_text("critical")))
}

/// Returns the urgency of an event whose agent states none (§3.3.2). An extension defines the urgency of its own types.
fn recommended_urgency(event_type: &EventType) -> Option<&'static str> {
    match event_type {
        EventType::StateChanged | EventType::ProgressUpdated => Some("background"),
        known if known.is_critical() => Some("critical"),
        EventType::Other(_) => None,
        _ => Some("normal"),
    }
}

/// The part of an event that a member belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MemberKind {
    Context,
    Type,
    Verbosity,
    Urgency,
    Hints,
    Correlation,
    Extensions,
    /// The agent names one of the session's producers; the hub writes the producer.
    Producer,
    /// Only the hub may set it.
    Reserved,
    Payload,
}

impl MemberKind {
    fn of(name: &str) -> Self {
        match name {
            "@context" => Self::Context,
            "type" => Self::Type,
            "verbosity" => Self::Verbosity,
            "urgency" => Self::Urgency,
            "localization_hints" => Self::Hints,
            "correlation_id" => Self::Correlation,
            "extensions" => Self::Extensions,
            "producer" => Self::Producer,
            "aaep_version" | "event_id" | "session_id" | "sequence_number" | "timestamp" => Self::Reserved,
            _ => Self::Payload,
        }
    }
}

/// An agent's members other than the payload. If a name occurs more than once, the last member counts.
#[derive(Default)]
struct AgentMembers<'d> {
    context: Option<JsonValue<'d>>,
    kind: Option<JsonValue<'d>>,
    verbosity: Option<JsonValue<'d>>,
    urgency: Option<JsonValue<'d>>,
    hints: Option<JsonValue<'d>>,
    correlation: Option<JsonValue<'d>>,
    extensions: Option<JsonValue<'d>>,
    /// Whether the payload has a `from_state`.
    has_from_state: bool,
    /// Whether the payload has a summary of any length.
    has_summary: bool,
    /// The first member that only the hub may set.
    reserved: Option<String>,
}

impl<'d> AgentMembers<'d> {
    fn of(body: &JsonValue<'d>) -> Self {
        let mut members = Self::default();
        for (name, value) in body.members() {
            let name = name.text().unwrap_or_default();
            let slot = match MemberKind::of(&name) {
                MemberKind::Context => &mut members.context,
                MemberKind::Type => &mut members.kind,
                MemberKind::Verbosity => &mut members.verbosity,
                MemberKind::Urgency => &mut members.urgency,
                MemberKind::Hints => &mut members.hints,
                MemberKind::Correlation => &mut members.correlation,
                MemberKind::Extensions => &mut members.extensions,
                MemberKind::Producer => continue,
                MemberKind::Reserved => {
                    members.reserved.get_or_insert_with(|| name.into_owned());
                    continue;
                }
                MemberKind::Payload => {
                    members.has_from_state |= name == "from_state";
                    members.has_summary |= name.starts_with("summary_");
                    continue;
                }
            };
            *slot = Some(value);
        }
        members
    }
}

fn copy_member(name: &str, value: Option<JsonValue<'_>>, out: &mut TapeWriter) {
    if let Some(value) = value {
        out.plain_key(name);
        out.copy(&value);
    }
}

/// Returns the id that replaces the value of the member `tool_call_id`; `None` for other members, and for an id that
/// AAEP allows.
fn replacement_call_id(name: &str, value: &JsonValue<'_>) -> Option<ToolCallId> {
    if name == "tool_call_id" { foreign_call_id(value).map(|(_, id)| id) } else { None }
}

/// Returns a framework's own id of a call, and the id that replaces it; `None` if AAEP allows the id, or if the value is
/// neither a string nor a number.
pub(crate) fn foreign_call_id<'d>(value: &JsonValue<'d>) -> Option<(Cow<'d, str>, ToolCallId)> {
    let name = given_call_id(value)?;
    let id = ToolCallId::from_foreign(&name)?;
    (id.as_str() != name).then_some((name, id))
}

/// Returns the id of a call in events, for the id that an agent uses; `None` if the value is empty, or neither a string nor
/// a number.
pub(crate) fn call_id(value: &JsonValue<'_>) -> Option<ToolCallId> {
    ToolCallId::from_foreign(&given_call_id(value)?)
}

fn given_call_id<'d>(value: &JsonValue<'d>) -> Option<Cow<'d, str>> {
    match value.kind() {
        JsonKind::Number => Some(Cow::Borrowed(value.source())),
        _ => value.text(),
    }
}

/// Writes the event's localization hints, or else the session's. If they do not state a language, the session's is
/// used, or else the default. Text with both directions gets `text_direction: auto` (§11.4.2), whatever direction the
/// agent stated.
fn write_hints(
    body: &JsonValue<'_>,
    event_hints: Option<JsonValue<'_>>,
    envelope: &EnvelopeFields<'_>,
    out: &mut TapeWriter,
) {
    let session_hints = envelope.hints.map(|hints| hints.doc().root());
    out.plain_key("localization_hints");
    let hints = event_hints.or(session_hints);
    if let Some(hints) = hints
        && hints.kind() != JsonKind::Object
    {
        return out.copy(&hints);
    }
    let needs_language = hints.is_none_or(|hints| hints.member("primary_language").is_none());
    let needs_auto = may_have_both_directions(body.source()) && has_both_directions(body);
    if let (Some(hints), false, false) = (hints, needs_language, needs_auto) {
        return out.copy(&hints);
    }
    out.open_object();
    if needs_language {
        write_text(out, "primary_language", &primary_language(None, envelope));
    }
    for (name, value) in hints.iter().flat_map(JsonValue::members) {
        if !(needs_auto && name.is_text("text_direction")) {
            out.copy_key(&name);
            out.copy(&value);
        }
    }
    if needs_auto {
        out.plain_member("text_direction", "auto");
    }
    out.close_object();
}

/// Returns the language of the event's text: the event's, or else the session's, or else the default.
pub(crate) fn primary_language<'e>(
    event_hints: Option<JsonValue<'e>>,
    envelope: &EnvelopeFields<'e>,
) -> Cow<'e, str> {
    let session_hints = envelope.hints.map(|hints| hints.doc().root());
    let language = |hints: JsonValue<'e>| hints.member("primary_language")?.text();
    let stated = event_hints.and_then(language).or_else(|| session_hints.and_then(language));
    stated.unwrap_or(Cow::Borrowed(envelope.default_language))
}

/// Returns the author's states that an event carries for its listeners: all of them when the session starts, and the
/// state that a state change enters, so that a listener that joins late needs no earlier event.
fn relevant_states<'s>(
    event_type: &EventType,
    body: &JsonValue<'_>,
    own_states: &'s [StateDefinition],
) -> &'s [StateDefinition] {
    match event_type {
        EventType::SessionStarted => own_states,
        EventType::StateChanged if !own_states.is_empty() => {
            let to_state = body.member("to_state");
            let is_entered = |own: &StateDefinition| to_state.is_some_and(|to| to.is_text(&own.state));
            own_states.iter().find(|own| is_entered(own)).map_or(&[], std::slice::from_ref)
        }
        _ => &[],
    }
}

/// Writes the words of a state as the event's summary, with their translations, if they exist in the event's language.
/// Returns whether they do.
fn write_state_words(state: &StateDefinition, language: &str, out: &mut TapeWriter) -> bool {
    let Some((primary, words)) = state.words_in(&[language]) else { return false };
    write_text(out, "summary_normal", words);
    for (tag, words) in state.words.iter().filter(|(tag, _)| tag != primary) {
        let suffix = tag.to_ascii_lowercase().replace('-', "_");
        out.key(&format!("summary_normal_{suffix}")).text(words);
    }
    true
}

/// A quick check without parsing. Right-to-left letters are not ASCII, unless they are escaped.
fn may_have_both_directions(json: &str) -> bool {
    !json.is_ascii() || json.contains("\\u")
}

fn has_both_directions(value: &JsonValue<'_>) -> bool {
    match value.kind() {
        JsonKind::Object => value.members().any(|(_, member)| has_both_directions(&member)),
        JsonKind::Array => value.items().any(|item| has_both_directions(&item)),
        _ => value.text().is_some_and(|text| has_mixed_direction(&text)),
    }
}

/// Writes the agent's extensions, plus `sayso` if the hub has something to add.
fn write_extensions(
    from_agent: Option<JsonValue<'_>>,
    sayso: Option<&SaysoExtension<'_>>,
    own_states: &[StateDefinition],
    marks: &HubMarks<'_>,
    out: &mut TapeWriter,
) {
    if sayso.is_none() && own_states.is_empty() && marks.is_empty() {
        return copy_member("extensions", from_agent, out);
    }
    out.plain_key("extensions");
    out.open_object();
    for (name, value) in from_agent.iter().flat_map(JsonValue::members) {
        out.copy_key(&name);
        out.copy(&value);
    }
    out.plain_key("sayso");
    out.open_object();
    if let Some(sayso) = sayso {
        sayso.write_members(out);
    }
    if !own_states.is_empty() {
        out.plain_key("states");
        out.array(|out| own_states.iter().for_each(|state| state.write(out)));
    }
    marks.write(out);
    out.close_object();
    out.close_object();
}

/// Writes the agent's contexts, or the AAEP context. Adds sayso's context if the event has a sayso extension.
fn write_context(from_agent: Option<JsonValue<'_>>, has_extension: bool, out: &mut TapeWriter) {
    if !has_extension {
        return match from_agent {
            Some(from_agent) => out.copy(&from_agent),
            None => out.text(AAEP_CONTEXT),
        };
    }
    out.open_array();
    match from_agent {
        None => out.text(AAEP_CONTEXT),
        Some(list) if list.kind() == JsonKind::Array => {
            for context in list.items().filter(|context| !context.is_text(SAYSO_CONTEXT)) {
                out.copy(&context);
            }
        }
        Some(context) => out.copy(&context),
    }
    out.text(SAYSO_CONTEXT);
    out.close_array();
}

/// Whether a name belongs to the sayso extension.
fn is_sayso(name: &str) -> bool {
    name == "sayso" || name.starts_with("urn:sayso:")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compose(body: &str) -> Result<String, InvalidEvent> {
        compose_with(body, None)
    }

    const CALL: SaysoExtension<'_> =
        SaysoExtension::Call { tool: "x", call_id: None, digest: None, arguments: None };

    fn compose_with(body: &str, extension: Option<&SaysoExtension<'_>>) -> Result<String, InvalidEvent> {
        compose_with_marks(body, extension, HubMarks::default())
    }

    fn compose_with_marks(
        body: &str,
        extension: Option<&SaysoExtension<'_>>,
        marks: HubMarks<'_>,
    ) -> Result<String, InvalidEvent> {
        let (producer, hints) = (
            OwnedDoc::read(r#"{"agent_id":"bank"}"#).unwrap(),
            OwnedDoc::read(r#"{"primary_language":"en"}"#).unwrap(),
        );
        let envelope = EnvelopeFields {
            event_id: "evt_1",
            session_id: "sess_1",
            timestamp: "2026-05-24T14:22:11.000Z",
            producer: &producer,
            question: None,
            hints: Some(&hints),
            default_language: "en",
            state: Some(&AgentState::Thinking),
            own_states: &[StateDefinition::new("comparing")
                .with_words("es", "Comparando.")
                .with_words("en", "Comparing prices.")],
            correlation_id: None,
            marks,
            summary: None,
        };
        let mut writer = TapeWriter::default();
        write_event(&OwnedDoc::read(body).unwrap().doc().root(), &envelope, extension, &[], &mut writer)?;
        Ok(writer.doc().unwrap().source().to_owned())
    }

    #[test]
    fn the_hub_writes_the_envelope_and_the_agent_the_payload() {
        let text =
            compose("{\"type\":\"aaep:agent.tool.invoked\",\n \"tool\":\"fetch\",\"summary_normal\":\"a\"}")
                .unwrap();
        assert_eq!(
            text,
            r#"{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0","type":"aaep:agent.tool.invoked","event_id":"evt_1","session_id":"sess_1","timestamp":"2026-05-24T14:22:11.000Z","producer":{"agent_id":"bank"},"urgency":"normal","localization_hints":{"primary_language":"en"},"tool":"fetch","summary_normal":"a"}"#
        );
    }

    #[test]
    fn an_event_without_an_urgency_gets_the_recommended_one() {
        for (body, urgency) in [
            (r#"{"type":"aaep:agent.progress.updated"}"#, Some("background")),
            (r#"{"type":"aaep:agent.state.changed","to_state":"deciding"}"#, Some("background")),
            (r#"{"type":"aaep:agent.session.completed"}"#, Some("normal")),
            (r#"{"type":"aaep:agent.handoff.requested"}"#, Some("critical")),
            (r#"{"type":"aaep:agent.progress.updated","urgency":"normal"}"#, Some("normal")),
            (r#"{"type":"https://acme.example/v1/alarm"}"#, None),
        ] {
            let event = OwnedDoc::read(&compose(body).unwrap()).unwrap();
            let actual = event.doc().root().member("urgency").and_then(|urgency| urgency.text());
            assert_eq!(actual.as_deref(), urgency, "{body}");
        }
    }

    #[test]
    fn critical_types_get_urgency_and_state_changes_get_from_state() {
        let text = compose(r#"{"type":"aaep:agent.session.errored","error":"x"}"#).unwrap();
        assert!(text.contains(r#""urgency":"critical""#));
        let text = compose(r#"{"type":"aaep:agent.state.changed","to_state":"calling_tool"}"#).unwrap();
        assert!(text.contains(r#""from_state":"thinking","to_state":"calling_tool""#));
    }

    #[test]
    fn the_words_of_an_own_state_reach_listeners() {
        let states =
            r#""states":[{"state":"comparing","words":{"es":"Comparando.","en":"Comparing prices."}}]"#;
        let text = compose(r#"{"type":"aaep:agent.state.changed","to_state":"comparing"}"#).unwrap();
        assert!(
            text.contains(r#""summary_normal":"Comparing prices.","summary_normal_es":"Comparando.""#),
            "{text}"
        );
        assert!(text.ends_with(&format!(r#""extensions":{{"sayso":{{{states}}}}}}}"#)), "{text}");
        assert!(text.contains(SAYSO_CONTEXT), "{text}");
        let own_text =
            r#"{"type":"aaep:agent.state.changed","to_state":"comparing","summary_normal":"Ten shops."}"#;
        let text = compose(own_text).unwrap();
        assert!(text.contains(r#""summary_normal":"Ten shops.""#) && text.contains(states), "{text}");
        assert!(!text.contains("summary_normal_es"), "{text}");
        let german = r#"{"type":"aaep:agent.state.changed","to_state":"comparing","localization_hints":{"primary_language":"de"}}"#;
        let text = compose(german).unwrap();
        assert!(!text.contains("summary_normal") && text.contains(states), "{text}");
        let other = compose(r#"{"type":"aaep:agent.state.changed","to_state":"thinking"}"#).unwrap();
        assert!(!other.contains("sayso"), "{other}");
        let marks = HubMarks { has_verified_name: true, ..HubMarks::default() };
        let started = compose_with_marks(r#"{"type":"aaep:agent.session.started"}"#, None, marks).unwrap();
        assert!(started.contains(&format!(r#""sayso":{{{states},"verified_name":true}}"#)), "{started}");
    }

    #[test]
    fn text_with_both_directions_gets_direction_auto() {
        let hints = |body: &str| {
            let text = compose(&format!(r#"{{"type":"aaep:agent.tool.invoked",{body}}}"#)).unwrap();
            OwnedDoc::read(&text)
                .unwrap()
                .doc()
                .root()
                .member("localization_hints")
                .unwrap()
                .source()
                .to_owned()
        };
        let auto = r#"{"primary_language":"en","text_direction":"auto"}"#;
        assert_eq!(hints(r#""summary_normal":"Mail from محمد.""#), auto);
        assert_eq!(hints(r#""progress":{"description":"Mail from \u0645."}"#), auto);
        assert_eq!(
            hints(r#""localization_hints":{"primary_language":"ar"},"summary_normal":"بريد من Ben.""#),
            r#"{"primary_language":"ar","text_direction":"auto"}"#
        );
        for payload in [r#""summary_normal":"Größe.""#, r#""summary_normal":"مرحبا""#] {
            assert_eq!(hints(payload), r#"{"primary_language":"en"}"#);
        }
        let own_hints = r#"{"primary_language":"en","text_direction":"ltr"}"#;
        assert_eq!(
            hints(&format!(r#""localization_hints":{own_hints},"summary_normal":"Mail from محمد.""#)),
            auto,
            "no single direction fits"
        );
        assert_eq!(
            hints(&format!(r#""localization_hints":{own_hints},"summary_normal":"Mail from Ben.""#)),
            own_hints
        );
    }

    #[test]
    fn hints_without_a_language_inherit_that_of_the_session() {
        let event = r#"{"type":"aaep:agent.tool.invoked","localization_hints":{"script":"Latn"}}"#;
        let text = compose(event).unwrap();
        assert!(text.contains(r#""localization_hints":{"primary_language":"en","script":"Latn"}"#), "{text}");
        let malformed = compose(r#"{"type":"aaep:agent.tool.invoked","localization_hints":7}"#).unwrap();
        assert!(malformed.contains(r#""localization_hints":7"#), "the rules report it: {malformed}");
    }

    #[test]
    fn a_call_id_of_a_framework_is_replaced_and_a_valid_one_is_kept() {
        let id = |given: &str| {
            let event = format!(r#"{{"type":"aaep:agent.tool.invoked","tool_call_id":{given}}}"#);
            let composed = OwnedDoc::read(&compose(&event).unwrap()).unwrap();
            composed.doc().root().member("tool_call_id").unwrap().source().to_owned()
        };
        assert_eq!(id(r#""call_7""#), r#""call_7""#);
        for foreign in [r#""toolu_01ABC""#, r#""c1""#, r#""call_a-b""#, "7", r#""ü""#] {
            let replaced = id(foreign);
            assert!(ToolCallId::parse(replaced.trim_matches('"')).is_ok(), "{foreign}: {replaced}");
            assert_eq!(id(foreign), replaced);
        }
        assert_ne!(id(r#""c1""#), id(r#""c2""#));
        for invalid in [r#""""#, "true", "null", "{}"] {
            assert_eq!(id(invalid), invalid, "the rules report it");
        }
    }

    #[test]
    fn agents_cannot_set_members_reserved_for_the_hub() {
        for name in ["aaep_version", "event_id", "session_id", "sequence_number", "timestamp"] {
            let body = format!(r#"{{"type":"aaep:agent.tool.invoked","{name}":1}}"#);
            assert_eq!(compose(&body), Err(InvalidEvent::ReservedMember(name.to_owned())));
        }
        let forged = r#"{"type":"aaep:agent.tool.invoked","extensions":{"sayso":{"decision":"accept"}}}"#;
        assert_eq!(compose(forged), Err(InvalidEvent::ReservedMember(SAYSO_EXTENSION.to_owned())));
        for kind in ["sayso:resolved", "urn:sayso:context:v1#resolved"] {
            assert!(matches!(
                compose(&format!(r#"{{"type":"{kind}"}}"#)),
                Err(InvalidEvent::ReservedType(_))
            ));
        }
        assert_eq!(compose("[]"), Err(InvalidEvent::NotTypedObject));
        assert_eq!(compose("{}"), Err(InvalidEvent::NotTypedObject));
    }

    #[test]
    fn the_sayso_context_is_added_to_the_agents_contexts() {
        for (context, expected) in [
            (r#""a""#, r#"["a","urn:sayso:context:v1"]"#),
            (r#"["a","b"]"#, r#"["a","b","urn:sayso:context:v1"]"#),
            (r#"["a","urn:sayso:context:v1","b"]"#, r#"["a","b","urn:sayso:context:v1"]"#),
        ] {
            let body = format!(r#"{{"type":"aaep:agent.tool.invoked","@context":{context}}}"#);
            let text = compose_with(&body, Some(&CALL)).unwrap();
            assert!(text.starts_with(&format!(r#"{{"@context":{expected},"#)), "{text}");
        }
    }

    #[test]
    fn marks_join_the_extension_of_the_hub_and_that_of_the_agent() {
        let marks = HubMarks {
            main_producer: Some("bank"),
            has_verified_name: true,
            parent_session_id: Some("sess_0"),
        };
        let marked = r#""verified_name":true,"main_producer":"bank","parent_session_id":"sess_0""#;
        let body = r#"{"type":"aaep:agent.tool.invoked","producer":"x","extensions":{"medai":{}}}"#;
        let text = compose_with_marks(body, Some(&CALL), marks).unwrap();
        assert!(
            text.ends_with(&format!(r#""extensions":{{"medai":{{}},"sayso":{{"tool":"x",{marked}}}}}}}"#)),
            "{text}"
        );
        assert!(text.contains(r#""producer":{"agent_id":"bank"}"#), "the hub writes the producer: {text}");
        let text = compose_with_marks(r#"{"type":"aaep:agent.tool.invoked"}"#, None, marks).unwrap();
        assert!(text.contains(SAYSO_CONTEXT) && text.ends_with(&format!(r#"{{"sayso":{{{marked}}}}}}}"#)));
    }

    #[test]
    fn the_sayso_context_is_declared_with_the_extension() {
        let text = compose_with(r#"{"type":"aaep:agent.tool.invoked"}"#, Some(&CALL)).unwrap();
        assert!(
            text.starts_with(
                r#"{"@context":["https://aaep-protocol.org/context/v1","urn:sayso:context:v1"]"#
            )
        );
        assert!(text.ends_with(r#""extensions":{"sayso":{"tool":"x"}}}"#));
    }
}
