//! A hub for tests. It persists nothing, commits every change immediately, and returns the outcomes.

use std::hash::{BuildHasherDefault, DefaultHasher};

use aaep::consent::{
    AskError, ConsentLimits, ConsentMessage, ConsentOutcome, GuardedCall, IgnoreReason, MessageSender,
    QuestionRegistry, ReplyChannel, Resolution, SpendError, StagedChange,
};
use aaep::event::Event;
use aaep::{ReplyToken, SessionId, SubscriptionId, Timestamp};
use seal::UnixMillis;
use serde_json::{Value, json};

pub(crate) type TestRegistry = QuestionRegistry<BuildHasherDefault<DefaultHasher>>;

/// The time at which tests ask their questions, 2026-05-24T14:22:11Z.
pub(crate) const T0: UnixMillis = UnixMillis::new(1_779_632_531_000);
/// The default of `ConsentLimits::max_consent_age_ms`.
pub(crate) const MAX_CONSENT_AGE_MS: i64 = 600_000;
pub(crate) const SESSION: &str = "sess_2c91a7b4d23f1e88";
pub(crate) const OTHER_SESSION: &str = "sess_77777777d23f1e88";

pub(crate) struct ConsentHub {
    pub(crate) registry: TestRegistry,
}

impl ConsentHub {
    /// Creates a hub with these listeners. Each one has the subscription `sub_NAME`.
    pub(crate) fn with_listeners(listeners: &[&str]) -> Self {
        let mut registry = QuestionRegistry::new(ConsentLimits::default(), BuildHasherDefault::default());
        for name in listeners {
            assert!(registry.subscription_opened(&sub(name), name));
        }
        Self { registry }
    }

    /// Asks the listeners a question.
    pub(crate) fn try_ask(
        &mut self,
        event: &Value,
        listeners: &[&str],
        now: UnixMillis,
    ) -> Result<Vec<ConsentOutcome>, AskError> {
        let staged = self.registry.ask(&parse_event(event), listeners.iter().map(|name| sub(name)), now)?;
        Ok(self.commit(staged))
    }

    pub(crate) fn ask(&mut self, event: &Value, listeners: &[&str]) -> Vec<ConsentOutcome> {
        let now = parse_event(event).envelope.timestamp.unix_millis();
        self.try_ask(event, listeners, now).expect("a valid question")
    }

    /// Sends a message over the shared HTTP channel.
    pub(crate) fn send(
        &mut self,
        listener: &str,
        text: &str,
        now: UnixMillis,
    ) -> Result<Vec<ConsentOutcome>, IgnoreReason> {
        let staged = stage_message(&mut self.registry, listener, text, now)?;
        Ok(self.commit(staged))
    }

    /// Sends a listener's decision and returns the resolution of the question.
    pub(crate) fn answer(
        &mut self,
        listener: &str,
        token: u8,
        decision: &str,
        now: UnixMillis,
    ) -> Result<Resolution, IgnoreReason> {
        self.send(listener, &reply(token, listener, decision, now), now).map(|outcomes| resolution(&outcomes))
    }

    /// Handles everything that is due at this time: reminders, deadlines and the ends of resume windows.
    pub(crate) fn wake(&mut self, now: UnixMillis) -> Vec<ConsentOutcome> {
        let staged = self.registry.handle_deadlines(now);
        self.commit(staged)
    }

    pub(crate) fn spend(&mut self, call: &GuardedCall<'_>) -> Result<Vec<ConsentOutcome>, SpendError> {
        let staged = self.registry.spend(call, T0 + 1)?;
        Ok(self.commit(staged))
    }

    pub(crate) fn commit(&mut self, staged: StagedChange) -> Vec<ConsentOutcome> {
        let outcomes = staged.outcomes().to_vec();
        self.registry.commit(staged);
        outcomes
    }
}

/// Stages a message that was sent over HTTP, without committing it.
pub(crate) fn stage_message(
    registry: &mut TestRegistry,
    listener: &str,
    text: &str,
    now: UnixMillis,
) -> Result<StagedChange, IgnoreReason> {
    let sender = MessageSender { principal: listener, channel: ReplyChannel::Shared };
    match ConsentMessage::parse(text)? {
        ConsentMessage::Reply(reply) => registry.handle_reply(&reply, &sender, now),
        ConsentMessage::Stop(stop) => registry.stop_session(&stop, &sender, true, now),
        _ => panic!("unexpected kind of message"),
    }
}

/// Returns the only resolution among the outcomes.
pub(crate) fn resolution(outcomes: &[ConsentOutcome]) -> Resolution {
    let found = resolutions(outcomes);
    assert_eq!(found.len(), 1, "{outcomes:?}");
    found[0].clone()
}

pub(crate) fn resolutions(outcomes: &[ConsentOutcome]) -> Vec<Resolution> {
    let resolved = |outcome: &ConsentOutcome| match outcome {
        ConsentOutcome::Resolved(resolution) => Some((**resolution).clone()),
        _ => None,
    };
    outcomes.iter().filter_map(resolved).collect()
}

pub(crate) fn sub(name: &str) -> SubscriptionId {
    SubscriptionId::parse(&format!("sub_{name}")).unwrap()
}

pub(crate) fn session() -> SessionId {
    SessionId::parse(SESSION).unwrap()
}

pub(crate) fn token(n: u8) -> ReplyToken {
    ReplyToken::parse(&format!("rpl_{}", format!("{n:02x}").repeat(16))).unwrap()
}

pub(crate) fn format_timestamp(millis: i64) -> String {
    Timestamp::from_unix_millis(UnixMillis::new(millis)).unwrap().to_string()
}

pub(crate) fn parse_event(event: &Value) -> Event {
    Event::parse(&event.to_string()).unwrap()
}

/// A valid question about an irreversible high-risk action. After 180 seconds, it is rejected by default.
pub(crate) fn confirmation(n: u8) -> Value {
    json!({
        "@context": "https://aaep-protocol.org/context/v1",
        "aaep_version": "1.0.0",
        "type": "aaep:agent.awaiting.confirmation",
        "event_id": format!("evt_8a3f5b22c91e4d{n:02x}"),
        "session_id": SESSION,
        "timestamp": format_timestamp(T0.get()),
        "producer": {"agent_id": "bank"},
        "urgency": "critical",
        "localization_hints": {"primary_language": "en"},
        "summary_normal": "May I send it?",
        "action": format!("Send 500 euros to person {n}."),
        "consequence": "It cannot be undone.",
        "reply_token": token(n).as_str(),
        "timeout_seconds": 180,
        "default_decision": "reject",
        "irreversible": true,
        "reversibility": "irreversible",
        "risk_level": "high",
    })
}

/// A valid question about a harmless action. After 30 seconds, it is accepted by default.
pub(crate) fn harmless_confirmation(n: u8) -> Value {
    let event = with(
        confirmation(n),
        &json!({
            "timeout_seconds": 30, "default_decision": "accept", "irreversible": false, "reversibility": "reversible",
            "risk_level": "low", "consequence": "It can be undone.",
        }),
    );
    assert_eq!(event["default_decision"], "accept");
    event
}

/// A valid clarification with a timeout of 120 seconds.
pub(crate) fn clarification(n: u8) -> Value {
    let mut event = confirmation(n);
    let members = event.as_object_mut().unwrap();
    for name in ["action", "consequence", "default_decision", "irreversible", "reversibility", "risk_level"] {
        members.remove(name);
    }
    with(
        event,
        &json!({
            "type": "aaep:agent.awaiting.clarification", "question": "To whom?", "timeout_seconds": 120,
        }),
    )
}

/// Returns the event with edited members. The value `null` removes a member.
pub(crate) fn with(mut event: Value, edits: &Value) -> Value {
    let members = event.as_object_mut().unwrap();
    for (name, value) in edits.as_object().unwrap() {
        if value.is_null() {
            members.remove(name);
        } else {
            members.insert(name.clone(), value.clone());
        }
    }
    event
}

/// Returns the question bound to an action.
pub(crate) fn bound(event: Value, tool: &str, arguments: &str) -> Value {
    let digest = aaep::consent::BoundAction::new(tool, arguments).unwrap().digest().to_string();
    with(
        event,
        &json!({
            "@context": ["https://aaep-protocol.org/context/v1", "urn:sayso:context:v1"],
            "extensions": {"sayso": {"action_digest": digest, "tool": tool}},
        }),
    )
}

pub(crate) fn reply(n: u8, listener: &str, decision: &str, at: UnixMillis) -> String {
    reply_with(n, listener, decision, at, &json!({}))
}

pub(crate) fn reply_with(n: u8, listener: &str, decision: &str, at: UnixMillis, edits: &Value) -> String {
    let reply = json!({
        "type": "confirmation.reply", "reply_token": token(n).as_str(), "decision": decision,
        "subscription_id": sub(listener).as_str(), "timestamp": format_timestamp(at.get()),
    });
    with(reply, edits).to_string()
}

pub(crate) fn response(n: u8, listener: &str, response: &Value, at: UnixMillis) -> String {
    let reply = json!({
        "type": "clarification.reply", "reply_token": token(n).as_str(), "response": response,
        "subscription_id": sub(listener).as_str(), "timestamp": format_timestamp(at.get()),
    });
    reply.to_string()
}

pub(crate) fn extend_request(n: u8, listener: &str, seconds: Option<u64>, at: UnixMillis) -> String {
    let request = json!({
        "type": "sayso:deadline.extend", "reply_token": token(n).as_str(),
        "subscription_id": sub(listener).as_str(), "timestamp": format_timestamp(at.get()),
    });
    with(request, &json!({"seconds": seconds})).to_string()
}

pub(crate) fn stop_request(listener: &str, at: UnixMillis) -> String {
    json!({
        "type": "sayso:session.stop", "session_id": SESSION, "subscription_id": sub(listener).as_str(),
        "timestamp": format_timestamp(at.get()), "reason": "Enough.",
    })
    .to_string()
}

/// An irreversible high-risk call. `arguments` defaults to `{}`.
pub(crate) fn call<'c>(
    session: &'c SessionId,
    token: Option<&'c ReplyToken>,
    arguments: Option<&'c str>,
) -> GuardedCall<'c> {
    GuardedCall {
        session_id: session,
        agent_id: "bank",
        token,
        tool: "transfer",
        call_id: None,
        arguments: arguments.or(Some("{}")),
        irreversible: true,
        high_risk: true,
    }
}
