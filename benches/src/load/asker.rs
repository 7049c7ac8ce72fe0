//! An agent that asks and waits, and a person who answers.

use std::time::Duration;

use seal::UnixMillis;

use super::agent::member;
use super::{Agent, Hub, Server, micros, question};

/// An agent with a session of its own, and a subscription that answers.
#[derive(Debug)]
pub struct Asker {
    address: String,
    asks: Agent,
    waits: Agent,
    answers: Agent,
    session: String,
    subscription: String,
}

/// The times of one question, stamps all.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// The question was sent: its stamp.
    pub sent: u64,
    /// The agent was told that it is stored.
    pub stored: u64,
    /// The person's answer was sent.
    pub answered: u64,
    /// The agent's wait ended.
    pub woken: u64,
}

impl Asker {
    /// Its session in this hub; the subscription must be one that is listened on.
    pub fn new(hub: &Hub, subscription: &str) -> Self {
        let mut asks = hub.agent();
        let session = hub.open_session(&mut asks);
        let (waits, answers) = (hub.agent(), hub.agent());
        let address = hub.address().to_owned();
        Self { address, asks, waits, answers, session, subscription: subscription.to_owned() }
    }

    /// Asks; after that time, in which it is heard and the agent begins to wait, the person says no.
    pub fn ask(&mut self, think: Duration) -> Asked {
        let Self { address, session, subscription, .. } = self;
        let sent = micros();
        let made = self.asks.post(&format!("/agent/v1/sessions/{session}/confirmations"), &question(sent));
        let stored = micros();
        let token = member(&made, "reply_token");
        let wait = format!("/agent/v1/sessions/{session}/replies/{token}?wait=60");
        self.waits.send(&Agent::request(address, "GET", &wait, ""));
        std::thread::sleep(think);
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let at = seal::Timestamp::from_unix_millis(UnixMillis::new(i64::try_from(now.as_millis()).unwrap()))
            .unwrap();
        let reply = format!(
            r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"reject","subscription_id":"{subscription}","timestamp":"{at}"}}"#
        );
        let answered = micros();
        self.answers.send(&Agent::request(address, "POST", "/aaep/v1/replies", &reply));
        let told = self.waits.answer();
        let woken = micros();
        assert!(told.contains(r#""by":"reply""#), "{told}");
        self.answers.answer();
        Asked { sent, stored, answered, woken }
    }
}
