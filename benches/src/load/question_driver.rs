//! An agent that asks questions, and a person who answers.

use std::time::Duration;

use seal::UnixMillis;

use super::keep_alive_client::json_member;
use super::{BenchHub, KeepAliveClient, Server, elapsed_micros, question};

/// An agent with its own session, and a person who answers through a subscription.
#[derive(Debug)]
pub struct QuestionDriver {
    address: String,
    ask_client: KeepAliveClient,
    wait_client: KeepAliveClient,
    reply_client: KeepAliveClient,
    session: String,
    subscription: String,
}

/// The times of one question, in microseconds since the benchmark program started.
#[derive(Clone, Copy, Debug)]
pub struct QuestionTimes {
    /// When the question was sent. The question's text contains this time, to match it with its delivery.
    pub sent: u64,
    /// When the agent received the response that confirms the question was stored.
    pub stored: u64,
    /// When the person's answer was sent.
    pub answered: u64,
    /// When the agent's wait ended.
    pub woken: u64,
}

impl QuestionDriver {
    /// Opens a session in this hub. The subscription must have a connected listener.
    pub fn new(hub: &BenchHub, subscription: &str) -> Self {
        let mut ask_client = hub.connect();
        let session = hub.open_session(&mut ask_client);
        let (wait_client, reply_client) = (hub.connect(), hub.connect());
        let address = hub.address().to_owned();
        Self {
            address,
            ask_client,
            wait_client,
            reply_client,
            session,
            subscription: subscription.to_owned(),
        }
    }

    /// Asks a question, and rejects it after `think_time`. In that time, the question is delivered and the agent starts to wait.
    pub fn ask(&mut self, think_time: Duration) -> QuestionTimes {
        let Self { address, session, subscription, .. } = self;
        let sent = elapsed_micros();
        let created =
            self.ask_client.post(&format!("/agent/v1/sessions/{session}/confirmations"), &question(sent));
        let stored = elapsed_micros();
        let token = json_member(&created, "reply_token");
        let wait = format!("/agent/v1/sessions/{session}/replies/{token}?wait=60");
        self.wait_client.send(&KeepAliveClient::request(address, "GET", &wait, ""));
        std::thread::sleep(think_time);
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let timestamp =
            seal::Timestamp::from_unix_millis(UnixMillis::new(i64::try_from(now.as_millis()).unwrap()))
                .unwrap();
        let reply = format!(
            r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"reject","subscription_id":"{subscription}","timestamp":"{timestamp}"}}"#
        );
        let answered = elapsed_micros();
        self.reply_client.send(&KeepAliveClient::request(address, "POST", "/aaep/v1/replies", &reply));
        let resolution = self.wait_client.read_response();
        let woken = elapsed_micros();
        assert!(resolution.contains(r#""by":"reply""#), "{resolution}");
        self.reply_client.read_response();
        QuestionTimes { sent, stored, answered, woken }
    }
}
