//! A hub for tests: it writes nothing down, commits at once, and says what happened.

use std::hash::{BuildHasherDefault, DefaultHasher};

use aaep::consent::{
    Call, Decided, Ignored, Limits, Link, NotAsked, NotGranted, Outcome, Questions, Resolution, Said, Sender,
};
use aaep::event::Event;
use aaep::{ReplyToken, SessionId, SubscriptionId, Timestamp};
use seal::UnixMillis;
use serde_json::{Value, json};

pub(crate) type Book = Questions<BuildHasherDefault<DefaultHasher>>;

/// When the questions of tests are asked: 2026-05-24T14:22:11Z.
pub(crate) const T0: UnixMillis = UnixMillis::new(1_779_632_531_000);
pub(crate) const SESSION: &str = "sess_2c91a7b4d23f1e88";
pub(crate) const OTHER_SESSION: &str = "sess_77777777d23f1e88";

pub(crate) struct Hub {
    pub(crate) book: Book,
}

impl Hub {
    /// A hub to which these people listen, each over the subscription `sub_NAME`.
    pub(crate) fn with(listeners: &[&str]) -> Self {
        let mut book = Questions::new(Limits::default(), BuildHasherDefault::default());
        for name in listeners {
            assert!(book.subscription_opened(&sub(name), name));
        }
        Self { book }
    }

    /// Asks these people.
    pub(crate) fn try_ask(
        &mut self,
        event: &Value,
        whom: &[&str],
        now: UnixMillis,
    ) -> Result<Vec<Outcome>, NotAsked> {
        let decided = self.book.ask(&parsed(event), whom.iter().map(|name| sub(name)), now)?;
        Ok(self.commit(decided))
    }

    pub(crate) fn ask(&mut self, event: &Value, whom: &[&str]) -> Vec<Outcome> {
        let now = parsed(event).envelope.timestamp.unix_millis();
        self.try_ask(event, whom, now).expect("a lawful question")
    }

    /// Somebody says something over HTTP.
    pub(crate) fn say(&mut self, who: &str, text: &str, now: UnixMillis) -> Result<Vec<Outcome>, Ignored> {
        let decided = decide(&mut self.book, who, text, now)?;
        Ok(self.commit(decided))
    }

    /// The answer of somebody who is entitled, now.
    pub(crate) fn answer(
        &mut self,
        who: &str,
        token: u8,
        decision: &str,
        now: UnixMillis,
    ) -> Result<Resolution, Ignored> {
        self.say(who, &reply(token, who, decision, now), now).map(|outcomes| resolution(&outcomes))
    }

    pub(crate) fn wake(&mut self, now: UnixMillis) -> Vec<Outcome> {
        let decided = self.book.wake(now);
        self.commit(decided)
    }

    pub(crate) fn spend(&mut self, call: &Call<'_>) -> Result<Vec<Outcome>, NotGranted> {
        let decided = self.book.spend(call)?;
        Ok(self.commit(decided))
    }

    pub(crate) fn commit(&mut self, decided: Decided) -> Vec<Outcome> {
        let outcomes = decided.outcomes().to_vec();
        self.book.commit(decided);
        outcomes
    }
}

/// What somebody says over HTTP comes to, before it is committed.
pub(crate) fn decide(book: &mut Book, who: &str, text: &str, now: UnixMillis) -> Result<Decided, Ignored> {
    let sender = Sender { principal: who, link: Link::Shared };
    match Said::parse(text)? {
        Said::Reply(reply) => book.hear(&reply, &sender, now),
        Said::Stop(stop) => book.stop(&stop, &sender, true, now),
        _ => panic!("a new kind of message"),
    }
}

/// The one resolution among the outcomes.
pub(crate) fn resolution(outcomes: &[Outcome]) -> Resolution {
    let found = resolutions(outcomes);
    assert_eq!(found.len(), 1, "{outcomes:?}");
    found[0].clone()
}

pub(crate) fn resolutions(outcomes: &[Outcome]) -> Vec<Resolution> {
    let resolved = |outcome: &Outcome| match outcome {
        Outcome::Resolved(resolution) => Some((**resolution).clone()),
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

pub(crate) fn stamp(millis: i64) -> String {
    Timestamp::from_unix_millis(UnixMillis::new(millis)).unwrap().to_string()
}

pub(crate) fn parsed(event: &Value) -> Event {
    Event::parse(&event.to_string()).unwrap()
}

/// A lawful question about something irreversible and of high risk: 180 seconds, then reject.
pub(crate) fn confirmation(n: u8) -> Value {
    json!({
        "@context": "https://aaep-protocol.org/context/v1",
        "aaep_version": "1.0.0",
        "type": "aaep:agent.awaiting.confirmation",
        "event_id": format!("evt_8a3f5b22c91e4d{n:02x}"),
        "session_id": SESSION,
        "timestamp": stamp(T0.get()),
        "producer": {"agent_id": "bank"},
        "urgency": "critical",
        "localization_hints": {"primary_language": "en"},
        "summary_normal": "May I send it?",
        "action": format!("Send 500 euro to person {n}."),
        "consequence": "It cannot be undone.",
        "reply_token": token(n).as_str(),
        "timeout_seconds": 180,
        "default_decision": "reject",
        "irreversible": true,
        "reversibility": "irreversible",
        "risk_level": "high",
    })
}

/// A lawful question about something harmless: 30 seconds, then accept.
pub(crate) fn harmless(n: u8) -> Value {
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

/// A lawful question about what was meant: 120 seconds.
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

/// The same with other members; `null` takes one away.
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

/// The question bound to an action.
pub(crate) fn bound(event: Value, tool: &str, arguments: &str) -> Value {
    let digest = aaep::consent::Action::new(tool, arguments).unwrap().digest().to_string();
    with(
        event,
        &json!({
            "@context": ["https://aaep-protocol.org/context/v1", "urn:sayso:context:v1"],
            "extensions": {"sayso": {"action_digest": digest, "tool": tool}},
        }),
    )
}

pub(crate) fn reply(n: u8, who: &str, decision: &str, at: UnixMillis) -> String {
    reply_with(n, who, decision, at, &json!({}))
}

pub(crate) fn reply_with(n: u8, who: &str, decision: &str, at: UnixMillis, edits: &Value) -> String {
    let reply = json!({
        "type": "confirmation.reply", "reply_token": token(n).as_str(), "decision": decision,
        "subscription_id": sub(who).as_str(), "timestamp": stamp(at.get()),
    });
    with(reply, edits).to_string()
}

pub(crate) fn response(n: u8, who: &str, response: &Value, at: UnixMillis) -> String {
    let reply = json!({
        "type": "clarification.reply", "reply_token": token(n).as_str(), "response": response,
        "subscription_id": sub(who).as_str(), "timestamp": stamp(at.get()),
    });
    reply.to_string()
}

pub(crate) fn extend(n: u8, who: &str, seconds: Option<u64>, at: UnixMillis) -> String {
    let wish = json!({
        "type": "sayso:deadline.extend", "reply_token": token(n).as_str(),
        "subscription_id": sub(who).as_str(), "timestamp": stamp(at.get()),
    });
    with(wish, &json!({"seconds": seconds})).to_string()
}

pub(crate) fn stop(who: &str, at: UnixMillis) -> String {
    json!({
        "type": "sayso:session.stop", "session_id": SESSION, "subscription_id": sub(who).as_str(),
        "timestamp": stamp(at.get()), "reason": "Enough.",
    })
    .to_string()
}

/// An irreversible call that names its question.
pub(crate) fn call<'c>(
    session: &'c SessionId,
    token: Option<&'c ReplyToken>,
    arguments: Option<&'c str>,
) -> Call<'c> {
    Call { session, token, tool: "transfer", call: None, arguments, irreversible: true }
}
