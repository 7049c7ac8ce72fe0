//! Sessions, woven into one recording.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::choices::Choices;
use super::line::Line;
use super::scribe::{Members, SUBSCRIPTION, Scribe, Voice, sentence};
use super::track::{Draft, Pace, Track};

/// Ten o'clock on the 24th of May 2026, in milliseconds since the first (see [`Line::millis`]).
const MORNING: i64 = (24 * 24 + 10) * 3_600_000;

/// A lawful recording.
#[derive(Clone, Debug)]
pub(crate) struct Recording {
    pub(crate) lines: Vec<Line>,
    /// So many of the first lines are the handshake.
    pub(crate) head: usize,
}

impl Recording {
    /// One to three sessions, interleaved, under a handshake or without one.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        // What happens, and how it is woven: decisions of their own, so that neither uses up the other's.
        let (story, weave) = bytes.split_at(bytes.len() * 2 / 3);
        let (mut scribe, mut choices) = (Scribe::new(story), Choices::new(weave));
        let lines = if choices.rarely(3) { handshake() } else { Vec::new() };
        let head = lines.len();
        let mut loom = Loom { lines, ..Loom::default() };
        let mut ids: Vec<String> = Vec::new();
        let mut sessions = Vec::new();
        for _ in 0..=choices.below(3) {
            let id = scribe.id("sess_");
            let parent = ids.last().filter(|_| choices.flip()).cloned();
            if choices.rarely(3) {
                loom.numbers.insert(id.clone(), 0);
            }
            sessions.push(session(&mut scribe, &mut choices, &id, parent.as_deref()));
            ids.push(id);
        }
        for draft in interleaved(&mut choices, sessions) {
            loom.weave(&mut choices, draft);
        }
        Self { lines: loom.lines, head }
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        self.lines.iter().map(Line::to_json).collect()
    }
}

/// One session, by one producer or two.
fn session(scribe: &mut Scribe<'_>, choices: &mut Choices<'_>, id: &str, parent: Option<&str>) -> Vec<Draft> {
    let agents: &[&'static str] = if choices.rarely(3) { &["planner", "payments"] } else { &["planner"] };
    let voice = |agent| Voice { session: id.to_owned(), agent };
    let end = choices.of(&["completed", "errored", "cancelled"]);
    let tracks: Vec<_> = agents
        .iter()
        .map(|agent| {
            let mut track = Track::new(voice(agent), agents.len() > 1);
            for _ in 0..scribe.choices.below(4) {
                track.work(scribe);
            }
            if end != "completed" && scribe.choices.rarely(4) {
                track.ask_in_vain(scribe);
            }
            track.drafts
        })
        .collect();
    let ours = parent.map(|parent| json!({ "parent_session_id": parent }));
    let opening = opening(scribe);
    let started = scribe.event(&voice("planner"), "aaep:agent.session.started", opening, ours);
    let closing = closing(scribe, end);
    let ended = scribe.event(&voice("planner"), &format!("aaep:agent.session.{end}"), closing, None);
    let soon = |line| Draft { line, pace: Pace::Soon };
    let mut drafts = vec![soon(started)];
    drafts.extend(interleaved(choices, tracks));
    drafts.push(soon(ended));
    drafts
}

fn opening(scribe: &mut Scribe<'_>) -> Members {
    if scribe.choices.flip() {
        return Vec::new();
    }
    vec![
        ("expected_duration_ms", json!(90_000)),
        ("requested_by", json!("user:folakẹ́")),
        ("request_text", sentence(2)),
        ("tools_available", json!(["fetch_balance", "search.web"])),
    ]
}

fn closing(scribe: &mut Scribe<'_>, end: &str) -> Members {
    let full = scribe.choices.flip();
    match end {
        "errored" if full => vec![
            (
                "error_category",
                json!(scribe.choices.of(&["transient", "permanent", "requires_user", "unknown"])),
            ),
            ("error_code", json!("AUTH_FAILED")),
            ("error_uri", json!("https://example.org/errors/1")),
            ("recoverable", json!(true)),
            ("remediation_hint", sentence(0)),
        ],
        "errored" => vec![("error_category", json!("unknown"))],
        "cancelled" if full => vec![
            ("cancelled_by", json!(scribe.choices.of(&["user", "producer", "timeout", "system"]))),
            ("cancellation_reason", json!("user_pressed_escape")),
            ("partial_result", sentence(0)),
        ],
        "cancelled" => vec![("cancelled_by", json!("user"))],
        _ if full => vec![
            ("duration_ms", json!(4200)),
            ("tool_invocations_count", json!(2)),
            ("output_summary", sentence(1)),
            ("result_uri", json!("https://example.org/results/1")),
        ],
        _ => Vec::new(),
    }
}

/// A subscriber that can take everything, and is given it.
fn handshake() -> Vec<Line> {
    let capabilities = json!({
        "supports_confirmation_reply": true, "supports_clarification_reply": true,
        "coalesce_boundaries": ["none", "word", "sentence", "paragraph", "completion"],
    });
    vec![
        Line::new([
            ("type", json!("subscription.request")),
            ("aaep_version", json!("1.0.0")),
            ("subscriber_id", json!("screen-reader")),
            ("capabilities", capabilities.clone()),
        ]),
        Line::new([
            ("type", json!("subscription.accepted")),
            ("subscription_id", json!(SUBSCRIPTION)),
            ("aaep_version", json!("1.0.0")),
            ("producer", json!({ "agent_id": "planner" })),
            ("honored_capabilities", capabilities),
        ]),
    ]
}

/// The strands in one row, each in its own order.
fn interleaved(choices: &mut Choices<'_>, strands: Vec<Vec<Draft>>) -> Vec<Draft> {
    let mut strands: Vec<_> = strands.into_iter().map(|strand| strand.into_iter().peekable()).collect();
    let mut row = Vec::new();
    loop {
        strands.retain_mut(|strand| strand.peek().is_some());
        if strands.is_empty() {
            return row;
        }
        let which = choices.below(strands.len());
        row.extend(strands[which].next());
    }
}

/// Gives lines their times and numbers.
#[derive(Default)]
struct Loom {
    lines: Vec<Line>,
    elapsed: i64,
    /// Where each question stands.
    asked: HashMap<String, usize>,
    /// The next number of each session that has numbers.
    numbers: HashMap<String, u64>,
}

impl Loom {
    fn weave(&mut self, choices: &mut Choices<'_>, draft: Draft) {
        self.elapsed += choices.of(&[1, 0, 0, 7, 250, 1500]);
        let Draft { mut line, pace } = draft;
        match &pace {
            Pace::Soon | Pace::Settles(_) => {}
            Pace::Answers(token) => self.elapsed = self.elapsed.max(self.asked_at(token) + 1),
            Pace::Expires(token) => {
                let timeout = self.lines[self.asked[token]].number("timeout_seconds").unwrap_or(0);
                self.elapsed = self.elapsed.max(self.asked_at(token) + timeout * 1000);
            }
        }
        line.set("timestamp", json!(clock(choices, MORNING + self.elapsed)));
        if line.kind().is_question() {
            self.asked.insert(line.text("reply_token").to_owned(), self.lines.len());
        }
        if let Pace::Settles(token) = &pace {
            self.grant_time(choices, token);
        }
        if let Some(next) = self.numbers.get_mut(line.session()) {
            line.set("sequence_number", json!(*next));
            *next += 1;
        }
        self.lines.push(line);
    }

    fn asked_at(&self, token: &str) -> i64 {
        self.lines[self.asked[token]].millis() - MORNING
    }

    /// A question that was answered had at least twice the time that it took, so that no countdown was due.
    fn grant_time(&mut self, choices: &mut Choices<'_>, token: &str) {
        let took = self.elapsed - self.asked_at(token);
        let seconds = (took / 1000 + 1) * 2 + i64::from(u8::try_from(choices.below(40)).unwrap_or(0));
        self.lines[self.asked[token]].set("timeout_seconds", Value::from(seconds));
    }
}

/// A time of the day, in one of the forms that §3.2.5 allows.
pub(crate) fn clock(choices: &mut Choices<'_>, millis: i64) -> String {
    match choices.below(6) {
        4 => timestamp(millis, "000Z"),
        5 => timestamp(millis + 3_600_000, "+01:00"),
        _ => timestamp(millis, "Z"),
    }
}

/// The inverse of [`Line::millis`], for days of May 2026.
pub(crate) fn timestamp(millis: i64, tail: &str) -> String {
    let (days, of_day) = (millis / 86_400_000, millis % 86_400_000);
    let (hour, minute, second) = (of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1000 % 60);
    format!("2026-05-{days:02}T{hour:02}:{minute:02}:{second:02}.{:03}{tail}", of_day % 1000)
}
