//! What is said of what is heard, with a clock that is made up.
//!
//! - `told`: sessions, states, tools and words; `output`: what an agent writes.
//! - `asked`: questions and answers; `time`: how long there is to answer.
//! - `kept`: limits, gaps and what holds after them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what went wrong by panicking")]

mod asked;
mod kept;
mod output;
mod time;
mod told;

use aaep::event::{Decision, Verbosity};
use proptest::prelude::*;
use seal::UnixMillis;

use super::away::UNSURE;
use super::tell::{PROGRESS, STATE_LASTS};
use super::*;

/// 2026-05-24T14:00:00Z
const NOON: UnixMillis = UnixMillis::new(1_779_631_200_000);

struct Stage {
    ear: Ear,
    now: UnixMillis,
    events: u64,
}

impl Stage {
    fn new() -> Self {
        Self::with(Verbosity::Normal, Limits::default())
    }

    fn with(verbosity: Verbosity, limits: Limits) -> Self {
        let tastes = Tastes { verbosity, ..Tastes::default() };
        let mut ear = Ear::new(tastes, limits);
        ear.subscribe(SubscriptionId::parse("sub_1").unwrap());
        Self { ear, now: NOON, events: 0 }
    }

    /// An event of session 1, with the next id.
    fn event(&mut self, kind: &str, rest: &str) -> String {
        self.event_of("sess_1", kind, rest)
    }

    fn event_of(&mut self, session: &str, kind: &str, rest: &str) -> String {
        self.events += 1;
        let id = self.events;
        let time = aaep::Timestamp::from_unix_millis(self.now).unwrap();
        let rest = if rest.is_empty() { String::new() } else { format!(",{rest}") };
        format!(
            r#"{{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.{kind}","event_id":"evt_{id}","session_id":"{session}","timestamp":"{time}","producer":{{"agent_id":"bank","agent_name":"Bank"}},"localization_hints":{{"primary_language":"en"}}{rest}}}"#
        )
    }

    fn hear(&mut self, kind: &str, rest: &str) -> Vec<String> {
        let event = self.event(kind, rest);
        self.hear_text(&event)
    }

    fn hear_text(&mut self, text: &str) -> Vec<String> {
        self.ear.hear(text, self.now);
        self.said()
    }

    fn said(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(next) = self.ear.next(self.now) {
            lines.extend(next.lines());
        }
        lines
    }

    fn pass(&mut self, millis: i64) -> Vec<String> {
        let until = self.now + millis;
        let mut lines = Vec::new();
        while let Some(due) = self.ear.next_deadline().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            lines.extend(self.said());
        }
        self.now = until;
        lines
    }

    fn ask(&mut self, token: &str) -> Vec<String> {
        self.hear("awaiting.confirmation", &confirmation(token))
    }
}

fn confirmation(token: &str) -> String {
    format!(
        r#""urgency":"critical","action":"Send 5 euro to Ben","consequence":"It is gone.","reply_token":"{token}","timeout_seconds":120,"default_decision":"reject","risk_level":"high","irreversible":true,"summary_normal":"May I pay Ben?""#
    )
}

fn chunk(text: &str, position: usize, complete: bool) -> String {
    let mut writer = aaep::json::Writer::default();
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

/// A question is settled so.
fn settled(token: &str, decision: &str, by: &str) -> String {
    format!(
        r#""from_state":"awaiting_input","to_state":"thinking","extensions":{{"sayso":{{"reply_token":"{token}","decision":"{decision}","by":"{by}"}}}}"#
    )
}
