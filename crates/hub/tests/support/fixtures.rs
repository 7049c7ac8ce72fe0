//! Principals, payloads and helpers for tests.

use std::fmt::Debug;
use std::str::FromStr;
use std::sync::Arc;

use hub::command::{HubCommand, HubReply, SubscriberMessage};
use hub::{Principal, Role, Scope};

pub(crate) fn agent(name: &str) -> Principal {
    Principal {
        name: name.into(),
        role: Role::Agent,
        agent_id: Some(name.into()),
        scope: Arc::default(),
        is_local: false,
        token_digest: None,
        expires_at: None,
        sign_in: None,
        naming: hub::AgentNaming::SelfDeclared,
    }
}

pub(crate) fn listener(name: &str, scope: &[&str]) -> Principal {
    let mut parsed_scope = Scope::default();
    for entry in scope {
        parsed_scope.add(entry).unwrap();
    }
    Principal {
        name: name.into(),
        role: Role::Listener,
        agent_id: None,
        scope: Arc::new(parsed_scope),
        is_local: false,
        token_digest: None,
        expires_at: None,
        sign_in: None,
        naming: hub::AgentNaming::SelfDeclared,
    }
}

pub(crate) fn observer(name: &str) -> Principal {
    Principal { role: Role::Observer, ..listener(name, &[]) }
}

/// Parses an id.
pub(crate) fn id<T: FromStr<Err: Debug>>(text: &str) -> T {
    text.parse().unwrap()
}

/// Creates the command for a subscription request.
pub(crate) fn subscribe(text: &str) -> HubCommand {
    HubCommand::subscribe(aaep::message::Message::parse(text))
}

/// Creates the command for a message from a listener.
pub(crate) fn send_message(text: &str) -> HubCommand {
    HubCommand::SendMessage { message: SubscriberMessage::parse(text) }
}

/// Returns the JSON of a reply; panics if it is a failure.
#[allow(clippy::needless_pass_by_value, reason = "every caller owns the reply")]
pub(crate) fn reply_json(reply: HubReply) -> String {
    reply.to_json().unwrap_or_else(|| panic!("{reply:?}"))
}

/// Returns the text of a member of the top-level object.
pub(crate) fn text_member(json: &str, name: &str) -> String {
    let mut tape = aaep::json::Tape::default();
    let doc = tape.read(json).unwrap();
    doc.root()
        .member(name)
        .and_then(|member| member.text())
        .unwrap_or_else(|| panic!("no {name} in {json}"))
        .into()
}

/// Returns the event types without the prefix `aaep:agent.`.
pub(crate) fn event_types(events: &[String]) -> Vec<String> {
    events.iter().map(|event| text_member(event, "type").replace("aaep:agent.", "")).collect()
}

pub(crate) const REPLY_CAPABILITIES: &str = r#"{"supports_confirmation_reply":true,"supports_clarification_reply":true,"supported_conformance_levels":[1,2,3]}"#;

pub(crate) const TRANSFER: &str = r#"{"action":"Transfer 500 euros to Ben.","consequence":"It cannot be undone.","irreversible":true,"risk_level":"high","timeout_seconds":180,"default_decision":"reject","summary_normal":"May I transfer 500 euros to Ben?","tool":"transfer","arguments":{"amount":"500.00","to":"Ben"}}"#;

pub(crate) const THINK: &str =
    r#"{"type":"aaep:agent.state.changed","from_state":"idle","to_state":"thinking"}"#;

pub(crate) fn tool_invoked(token: &str, amount: &str) -> String {
    format!(
        r#"{{"type":"aaep:agent.tool.invoked","tool":"transfer","tool_call_id":"call_1","risk_level":"high","irreversible":true,"summary_normal":"Transferring.","reply_token":"{token}","arguments":{{"amount":"{amount}","to":"Ben"}}}}"#
    )
}
