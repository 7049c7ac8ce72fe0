//! Tests of announcements with a simulated clock.
//!
//! - `sessions_and_states`: sessions, states, tools and languages; `output_streaming`: an agent's output; `markdown_outputs`:
//!   outputs in Markdown.
//! - `questions`: questions and answers; `bound_calls`: the calls that they are about; `deadlines`: the time to answer.
//! - `limits_and_gaps`: limits, gaps and recovery.
//! - `short_sentences`: nothing is announced twice.
//! - `every_field`: where each optional field is heard; `estimates_and_facts`: durations, `details`, `tools` and summaries.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod bound_calls;
mod deadlines;
mod estimates_and_facts;
mod every_field;
mod limits_and_gaps;
mod markdown_outputs;
mod output_streaming;
mod questions;
mod sessions_and_states;
mod short_sentences;

use aaep::event::{Decision, Verbosity};
use proptest::prelude::*;
use seal::UnixMillis;

use super::announce::{PROGRESS_INTERVAL_MS, STATE_HOLD_MS};
use super::gap_recovery::GAP_RECOVERY_WINDOW_MS;
use super::*;

/// 2026-05-24T14:00:00Z
const START_TIME: UnixMillis = UnixMillis::new(1_779_631_200_000);

struct SubscriberHarness {
    subscriber: Subscriber,
    now: UnixMillis,
    event_count: u64,
}

impl SubscriberHarness {
    fn new() -> Self {
        Self::with(Verbosity::Normal, SubscriberLimits::default())
    }

    fn with(verbosity: Verbosity, limits: SubscriberLimits) -> Self {
        let preferences = Preferences { verbosity, ..Preferences::default() };
        let mut subscriber = Subscriber::new(preferences, limits);
        subscriber.set_subscription(SubscriptionId::parse("sub_1").unwrap());
        Self { subscriber, now: START_TIME, event_count: 0 }
    }

    /// Creates an event of session 1 with the next id.
    fn event(&mut self, kind: &str, rest: &str) -> String {
        self.event_in_session("sess_1", kind, rest)
    }

    fn event_in_session(&mut self, session: &str, kind: &str, rest: &str) -> String {
        self.event_count += 1;
        let id = self.event_count;
        let time = aaep::Timestamp::from_unix_millis(self.now).unwrap();
        let rest = if rest.is_empty() { String::new() } else { format!(",{rest}") };
        format!(
            r#"{{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.{kind}","event_id":"evt_{id}","session_id":"{session}","timestamp":"{time}","producer":{{"agent_id":"bank","agent_name":"Bank"}},"localization_hints":{{"primary_language":"en"}}{rest}}}"#
        )
    }

    fn receive(&mut self, kind: &str, rest: &str) -> Vec<String> {
        let event = self.event(kind, rest);
        self.receive_text(&event)
    }

    fn receive_text(&mut self, text: &str) -> Vec<String> {
        self.subscriber.receive(text, self.now);
        self.drain_lines()
    }

    fn drain_lines(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(next) = self.subscriber.next_announcement(self.now) {
            lines.extend(next.lines());
        }
        lines
    }

    fn advance(&mut self, millis: i64) -> Vec<String> {
        let until = self.now + millis;
        let mut lines = Vec::new();
        while let Some(due) = self.subscriber.next_deadline().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            lines.extend(self.drain_lines());
        }
        self.now = until;
        lines
    }

    fn ask_confirmation(&mut self, token: &str) -> Vec<String> {
        self.receive("awaiting.confirmation", &confirmation(token))
    }
}

fn confirmation(token: &str) -> String {
    format!(
        r#""urgency":"critical","action":"Send 5 euros to Ben","consequence":"It is gone.","reply_token":"{token}","timeout_seconds":120,"default_decision":"reject","risk_level":"high","irreversible":true,"summary_normal":"May I pay Ben?""#
    )
}

fn chunk(text: &str, position: usize, complete: bool) -> String {
    let mut writer = aaep::json::JsonWriter::default();
    writer.open_object();
    writer.key("chunk").text(text);
    writer.key("position").integer(i64::try_from(position).unwrap());
    writer.key("complete").boolean(complete);
    writer.key("output_id").text("out_1");
    writer.key("coalesce_hint").text("none");
    writer.close_object();
    let text = writer.finish();
    text[1..text.len() - 1].to_owned()
}

/// Creates the members of a state change that reports a question's outcome.
fn resolution(token: &str, decision: &str, by: &str) -> String {
    format!(
        r#""from_state":"awaiting_input","to_state":"thinking","extensions":{{"sayso":{{"reply_token":"{token}","decision":"{decision}","by":"{by}"}}}}"#
    )
}
