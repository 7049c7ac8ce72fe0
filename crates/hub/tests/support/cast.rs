//! Who is on the stage, what they say, and how it is read.

use std::fmt::Debug;
use std::str::FromStr;
use std::sync::Arc;

use hub::command::{Command, Reply, SubscriberMessage};
use hub::{Principal, Role, Scope};

pub(crate) fn agent(name: &str) -> Principal {
    Principal {
        name: name.into(),
        role: Role::Agent,
        agent_id: Some(name.into()),
        scope: Arc::default(),
        open: false,
        token: None,
    }
}

pub(crate) fn listener(name: &str, scope: &[&str]) -> Principal {
    let mut covered = Scope::default();
    for part in scope {
        covered.add(part).unwrap();
    }
    Principal {
        name: name.into(),
        role: Role::Listener,
        agent_id: None,
        scope: Arc::new(covered),
        open: false,
        token: None,
    }
}

pub(crate) fn observer(name: &str) -> Principal {
    Principal { role: Role::Observer, ..listener(name, &[]) }
}

/// An id of that text.
pub(crate) fn id<T: FromStr<Err: Debug>>(text: &str) -> T {
    text.parse().unwrap()
}

/// A request for a subscription.
pub(crate) fn subscribe(text: &str) -> Command {
    Command::subscribe(aaep::message::Message::parse(text))
}

/// A message of a listener.
pub(crate) fn say(text: &str) -> Command {
    Command::Say { message: SubscriberMessage::parse(text) }
}

/// The body of a reply that is no failure.
#[allow(clippy::needless_pass_by_value, reason = "every caller has one to give away")]
pub(crate) fn json(reply: Reply) -> String {
    reply.to_json().unwrap_or_else(|| panic!("{reply:?}"))
}

/// The text of a member.
pub(crate) fn text_of(json: &str, name: &str) -> String {
    let mut tape = aaep::json::Tape::default();
    let doc = tape.read(json).unwrap();
    doc.root()
        .member(name)
        .and_then(|member| member.text())
        .unwrap_or_else(|| panic!("no {name} in {json}"))
        .into()
}

/// The types of events, without their beginning.
pub(crate) fn types(events: &[String]) -> Vec<String> {
    events.iter().map(|event| text_of(event, "type").replace("aaep:agent.", "")).collect()
}

pub(crate) const REPLIES: &str = r#"{"supports_confirmation_reply":true,"supports_clarification_reply":true,"supported_conformance_levels":[1,2,3]}"#;

pub(crate) const TRANSFER: &str = r#"{"action":"Transfer 500 euro to Ben.","consequence":"It cannot be undone.","irreversible":true,"risk_level":"high","timeout_seconds":180,"default_decision":"reject","summary_normal":"May I transfer 500 euro to Ben?","tool":"transfer","arguments":{"amount":"500.00","to":"Ben"}}"#;

pub(crate) const THINK: &str =
    r#"{"type":"aaep:agent.state.changed","from_state":"idle","to_state":"thinking"}"#;

pub(crate) fn call(token: &str, amount: &str) -> String {
    format!(
        r#"{{"type":"aaep:agent.tool.invoked","tool":"transfer","tool_call_id":"call_1","risk_level":"high","irreversible":true,"summary_normal":"Transferring.","reply_token":"{token}","arguments":{{"amount":"{amount}","to":"Ben"}}}}"#
    )
}
