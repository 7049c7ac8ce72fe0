//! Events out of what an agent says: the type and payload are its own, the envelope is the hub's.

use std::borrow::Cow;

use aaep::check::is_of_both_directions;
use aaep::consent::By;
use aaep::event::{EventType, State};
use aaep::json::{Kept, Kind, Scribe, Value};
use aaep::{ReplyToken, Timestamp};
use seal::{Digest, UnixMillis};
use thiserror::Error;

/// What the hub puts around a payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp<'s> {
    pub(crate) event_id: &'s str,
    pub(crate) session_id: &'s str,
    pub(crate) timestamp: &'s str,
    pub(crate) producer: &'s Kept,
    /// The question that is asked, if it is one: its type and its token are the hub's.
    pub(crate) question: Option<(&'s EventType, &'s str)>,
    /// The session's own localization hints, for events that bring none.
    pub(crate) hints: Option<&'s Kept>,
    /// The state that the session is in, for state changes that do not say what they leave.
    pub(crate) state: Option<&'s State>,
}

/// Why something is no event of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotAnEvent {
    /// Not an object, or without a type.
    #[error("an event is a JSON object with a type")]
    Form,
    /// This member is the hub's to set.
    #[error("{0} is set by the hub; send the type and the payload only")]
    Ours(String),
}

const CORE: &str = "https://aaep-protocol.org/context/v1";
const SAYSO: &str = "urn:sayso:context:v1";
/// The extension that is the hub's alone.
const SAYSO_EXTENSION: &str = "extensions.sayso";

/// What the hub writes into `extensions.sayso`: marks for listeners that know it. An agent cannot write there.
#[derive(Clone, Debug)]
pub(crate) enum SaysoExtension<'e> {
    /// The words only tell the state; a listener that has its own words for it needs none of these. With `gap`, the listener
    /// has missed something.
    HubWords { gap: bool },
    /// The call that a question or an event is bound to.
    Call { tool: &'e str, digest: Option<Digest> },
    /// The event reminds of this question.
    ReminderOf(ReplyToken),
    /// The question has more time.
    MoreTime { token: ReplyToken, deadline: UnixMillis },
    /// The question is resolved.
    Resolved { token: ReplyToken, decision: Option<&'static str>, by: By },
}

impl SaysoExtension<'_> {
    fn write(&self, out: &mut Scribe) {
        out.open_object();
        match self {
            Self::HubWords { gap } => {
                if *gap {
                    out.plain_key("gap");
                    out.boolean(true);
                }
                out.plain("words", "hub");
            }
            Self::Call { tool, digest } => {
                text(out, "tool", tool);
                if let Some(digest) = digest {
                    text(out, "action_digest", &digest.to_string());
                }
            }
            Self::ReminderOf(token) => text(out, "reminds_of", token.as_str()),
            Self::MoreTime { token, deadline } => {
                text(out, "extended", token.as_str());
                let deadline = Timestamp::from_unix_millis(*deadline).map(|at| at.to_string());
                text(out, "deadline", &deadline.unwrap_or_default());
            }
            Self::Resolved { token, decision, by } => {
                text(out, "reply_token", token.as_str());
                if let Some(decision) = decision {
                    out.plain("decision", decision);
                }
                out.plain("by", by.as_str());
            }
        }
        out.close_object();
    }
}

/// Writes a member whose name needs no escapes.
pub(crate) fn text(out: &mut Scribe, name: &str, value: &str) {
    out.plain_key(name);
    out.text(value);
}

/// Puts the envelope around what was said, members in the advised order. `hidden` are members that are for the hub alone. The
/// event comes with its tape, so that it need not be read again. Returns whether it is critical.
pub(crate) fn event(
    said: &Value<'_>,
    stamp: &Stamp<'_>,
    extension: Option<&SaysoExtension<'_>>,
    hidden: &[&str],
    out: &mut Scribe,
) -> Result<bool, NotAnEvent> {
    let brought = Brought::of(said);
    let kind = match stamp.question {
        Some((kind, _)) => Some(Cow::Borrowed(kind.as_str())),
        None => brought.kind.and_then(|kind| kind.text()),
    };
    let kind = kind.ok_or(NotAnEvent::Form)?;
    if let Some(name) = brought.ours {
        return Err(NotAnEvent::Ours(name));
    }
    // Else an agent could say that a person has accepted (design, decision 15).
    if brought
        .extensions
        .iter()
        .flat_map(Value::members)
        .any(|(name, _)| name.text().is_some_and(|name| is_sayso(&name)))
    {
        return Err(NotAnEvent::Ours(SAYSO_EXTENSION.to_owned()));
    }
    if kind.split_once(':').is_some_and(|(prefix, _)| prefix == "sayso") || is_sayso(&kind) {
        return Err(NotAnEvent::Ours(format!("the type {kind}")));
    }
    let event_type = EventType::of(&kind);
    out.clear();
    out.open_object();
    out.plain_key("@context");
    context(brought.context, extension.is_some(), out);
    out.plain("aaep_version", "1.0.0");
    out.plain_key("type");
    out.text(&kind);
    for (name, text) in
        [("event_id", stamp.event_id), ("session_id", stamp.session_id), ("timestamp", stamp.timestamp)]
    {
        out.plain(name, text);
    }
    out.plain_key("producer");
    out.copy(&stamp.producer.doc().root());
    as_brought("verbosity", brought.verbosity, out);
    match brought.urgency {
        None if event_type.is_critical() => out.plain("urgency", "critical"),
        urgency => as_brought("urgency", urgency, out),
    }
    hints(said, brought.hints, stamp.hints, out);
    as_brought("correlation_id", brought.correlation, out);
    if let (EventType::StateChanged, false, Some(state)) = (&event_type, brought.from_state, stamp.state) {
        out.plain_key("from_state");
        out.text(state.as_str());
    }
    if let Some((_, token)) = stamp.question {
        out.plain("reply_token", token);
    }
    for (key, value) in said.members() {
        let name = key.text().unwrap_or_default();
        if Place::of(&name) != Place::Payload || hidden.contains(&&*name) {
            continue;
        }
        out.copy_key(&key);
        out.copy(&value);
    }
    extensions(brought.extensions, extension, out);
    out.close_object();
    // SSE and JSON Lines want an event on one line.
    out.on_one_line();
    debug_assert!(out.is_as_read(), "{}", out.source());
    Ok(event_type.is_critical() || brought.urgency.is_some_and(|urgency| urgency.is("critical")))
}

/// Where a member that an agent brings belongs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Context,
    Type,
    Verbosity,
    Urgency,
    Hints,
    Correlation,
    Extensions,
    /// Only the hub sets it.
    Ours,
    Payload,
}

impl Place {
    fn of(name: &str) -> Self {
        match name {
            "@context" => Self::Context,
            "type" => Self::Type,
            "verbosity" => Self::Verbosity,
            "urgency" => Self::Urgency,
            "localization_hints" => Self::Hints,
            "correlation_id" => Self::Correlation,
            "extensions" => Self::Extensions,
            "aaep_version" | "event_id" | "session_id" | "sequence_number" | "timestamp" | "producer" => {
                Self::Ours
            }
            _ => Self::Payload,
        }
    }
}

/// What an agent brings beside the payload; of several of one name the last.
#[derive(Default)]
struct Brought<'d> {
    context: Option<Value<'d>>,
    kind: Option<Value<'d>>,
    verbosity: Option<Value<'d>>,
    urgency: Option<Value<'d>>,
    hints: Option<Value<'d>>,
    correlation: Option<Value<'d>>,
    extensions: Option<Value<'d>>,
    /// It says which state it leaves.
    from_state: bool,
    /// The first that is the hub's to set.
    ours: Option<String>,
}

impl<'d> Brought<'d> {
    fn of(said: &Value<'d>) -> Self {
        let mut brought = Self::default();
        for (name, value) in said.members() {
            let name = name.text().unwrap_or_default();
            let slot = match Place::of(&name) {
                Place::Context => &mut brought.context,
                Place::Type => &mut brought.kind,
                Place::Verbosity => &mut brought.verbosity,
                Place::Urgency => &mut brought.urgency,
                Place::Hints => &mut brought.hints,
                Place::Correlation => &mut brought.correlation,
                Place::Extensions => &mut brought.extensions,
                Place::Ours => {
                    brought.ours.get_or_insert_with(|| name.into_owned());
                    continue;
                }
                Place::Payload => {
                    brought.from_state |= name == "from_state";
                    continue;
                }
            };
            *slot = Some(value);
        }
        brought
    }
}

fn as_brought(name: &str, value: Option<Value<'_>>, out: &mut Scribe) {
    if let Some(value) = value {
        out.plain_key(name);
        out.copy(&value);
    }
}

/// The hints that the agent brought, or the session's own. Text of both directions says so (§11.4.2), unless the agent
/// itself has given this event a direction.
fn hints(said: &Value<'_>, brought: Option<Value<'_>>, of_session: Option<&Kept>, out: &mut Scribe) {
    let Some(hints) = brought.or(of_session.map(|hints| hints.doc().root())) else { return };
    out.plain_key("localization_hints");
    let of_both = hints.kind() == Kind::Object
        && (brought.is_none() || hints.member("text_direction").is_none())
        && may_have_both_directions(said.source())
        && has_both_directions(said);
    if !of_both {
        return out.copy(&hints);
    }
    out.open_object();
    for (name, value) in hints.members().filter(|(name, _)| !name.is("text_direction")) {
        out.copy_key(&name);
        out.copy(&value);
    }
    out.plain("text_direction", "auto");
    out.close_object();
}

/// Letters that run from right to left are not ASCII, unless they are escaped.
fn may_have_both_directions(json: &str) -> bool {
    !json.is_ascii() || json.contains("\\u")
}

fn has_both_directions(value: &Value<'_>) -> bool {
    match value.kind() {
        Kind::Object => value.members().any(|(_, member)| has_both_directions(&member)),
        Kind::Array => value.items().any(|item| has_both_directions(&item)),
        _ => value.text().is_some_and(|text| is_of_both_directions(&text)),
    }
}

/// The agent's own extensions, and sayso's where the hub has something to say.
fn extensions(brought: Option<Value<'_>>, ours: Option<&SaysoExtension<'_>>, out: &mut Scribe) {
    match (ours, brought) {
        (None, None) => {}
        (None, Some(brought)) => {
            out.plain_key("extensions");
            out.copy(&brought);
        }
        (Some(ours), brought) => {
            out.plain_key("extensions");
            out.open_object();
            for (name, value) in brought.iter().flat_map(Value::members) {
                out.copy_key(&name);
                out.copy(&value);
            }
            out.plain_key("sayso");
            ours.write(out);
            out.close_object();
        }
    }
}

/// The agent's own contexts, or the core's, with sayso's where something of sayso stands in the event.
fn context(brought: Option<Value<'_>>, has_extension: bool, out: &mut Scribe) {
    if !has_extension {
        return match brought {
            Some(brought) => out.copy(&brought),
            None => out.text(CORE),
        };
    }
    out.open_array();
    match brought {
        None => out.text(CORE),
        Some(list) if list.kind() == Kind::Array => {
            for one in list.items().filter(|one| !one.is(SAYSO)) {
                out.copy(&one);
            }
        }
        Some(one) => out.copy(&one),
    }
    out.text(SAYSO);
    out.close_array();
}

/// Whether a name means sayso's own extension.
fn is_sayso(name: &str) -> bool {
    name == "sayso" || name.starts_with("urn:sayso:")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn composed(said: &str) -> Result<String, NotAnEvent> {
        composed_with(said, None)
    }

    const CALL: SaysoExtension<'_> = SaysoExtension::Call { tool: "x", digest: None };

    fn composed_with(said: &str, extension: Option<&SaysoExtension<'_>>) -> Result<String, NotAnEvent> {
        let (producer, hints) = (
            Kept::read(r#"{"agent_id":"bank"}"#).unwrap(),
            Kept::read(r#"{"primary_language":"en"}"#).unwrap(),
        );
        let stamp = Stamp {
            event_id: "evt_1",
            session_id: "sess_1",
            timestamp: "2026-05-24T14:22:11.000Z",
            producer: &producer,
            question: None,
            hints: Some(&hints),
            state: Some(&State::Thinking),
        };
        let mut scribe = Scribe::default();
        event(&Kept::read(said).unwrap().doc().root(), &stamp, extension, &[], &mut scribe)?;
        Ok(scribe.doc().unwrap().source().to_owned())
    }

    #[test]
    fn the_envelope_is_the_hubs_and_the_payload_the_agents() {
        let text =
            composed("{\"type\":\"aaep:agent.tool.invoked\",\n \"tool\":\"fetch\",\"summary_normal\":\"a\"}")
                .unwrap();
        assert_eq!(
            text,
            r#"{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0","type":"aaep:agent.tool.invoked","event_id":"evt_1","session_id":"sess_1","timestamp":"2026-05-24T14:22:11.000Z","producer":{"agent_id":"bank"},"localization_hints":{"primary_language":"en"},"tool":"fetch","summary_normal":"a"}"#
        );
    }

    #[test]
    fn critical_types_are_so_and_states_know_where_they_come_from() {
        let text = composed(r#"{"type":"aaep:agent.session.errored","error":"x"}"#).unwrap();
        assert!(text.contains(r#""urgency":"critical""#));
        let text = composed(r#"{"type":"aaep:agent.state.changed","to_state":"calling_tool"}"#).unwrap();
        assert!(text.contains(r#""from_state":"thinking","to_state":"calling_tool""#));
    }

    #[test]
    fn text_of_both_directions_says_so() {
        let hints = |said: &str| {
            let text = composed(&format!(r#"{{"type":"aaep:agent.tool.invoked",{said}}}"#)).unwrap();
            Kept::read(&text).unwrap().doc().root().member("localization_hints").unwrap().source().to_owned()
        };
        let auto = r#"{"primary_language":"en","text_direction":"auto"}"#;
        assert_eq!(hints(r#""summary_normal":"Mail from محمد.""#), auto);
        assert_eq!(hints(r#""progress":{"description":"Mail from \u0645."}"#), auto);
        assert_eq!(
            hints(r#""localization_hints":{"primary_language":"ar"},"summary_normal":"بريد من Ben.""#),
            r#"{"primary_language":"ar","text_direction":"auto"}"#
        );
        for one in [r#""summary_normal":"Größe.""#, r#""summary_normal":"مرحبا""#] {
            assert_eq!(hints(one), r#"{"primary_language":"en"}"#);
        }
        // What the agent says of this very event is its own affair, and is judged as such.
        let said = r#"{"primary_language":"en","text_direction":"ltr"}"#;
        assert_eq!(
            hints(&format!(r#""localization_hints":{said},"summary_normal":"Mail from محمد.""#)),
            said
        );
    }

    #[test]
    fn nobody_sets_what_is_the_hubs() {
        for name in ["aaep_version", "event_id", "session_id", "sequence_number", "timestamp", "producer"] {
            let said = format!(r#"{{"type":"aaep:agent.tool.invoked","{name}":1}}"#);
            assert_eq!(composed(&said), Err(NotAnEvent::Ours(name.to_owned())));
        }
        let forged = r#"{"type":"aaep:agent.tool.invoked","extensions":{"sayso":{"decision":"accept"}}}"#;
        assert_eq!(composed(forged), Err(NotAnEvent::Ours(SAYSO_EXTENSION.to_owned())));
        for kind in ["sayso:resolved", "urn:sayso:context:v1#resolved"] {
            assert!(matches!(composed(&format!(r#"{{"type":"{kind}"}}"#)), Err(NotAnEvent::Ours(_))));
        }
        assert_eq!(composed("[]"), Err(NotAnEvent::Form));
        assert_eq!(composed("{}"), Err(NotAnEvent::Form));
    }

    #[test]
    fn what_sayso_adds_is_declared_beside_what_the_agent_declares() {
        for (brought, expected) in [
            (r#""a""#, r#"["a","urn:sayso:context:v1"]"#),
            (r#"["a","b"]"#, r#"["a","b","urn:sayso:context:v1"]"#),
            (r#"["a","urn:sayso:context:v1","b"]"#, r#"["a","b","urn:sayso:context:v1"]"#),
        ] {
            let said = format!(r#"{{"type":"aaep:agent.tool.invoked","@context":{brought}}}"#);
            let text = composed_with(&said, Some(&CALL)).unwrap();
            assert!(text.starts_with(&format!(r#"{{"@context":{expected},"#)), "{text}");
        }
    }

    #[test]
    fn what_sayso_adds_is_declared() {
        let text = composed_with(r#"{"type":"aaep:agent.tool.invoked"}"#, Some(&CALL)).unwrap();
        assert!(
            text.starts_with(
                r#"{"@context":["https://aaep-protocol.org/context/v1","urn:sayso:context:v1"]"#
            )
        );
        assert!(text.ends_with(r#""extensions":{"sayso":{"tool":"x"}}}"#));
    }
}
