//! Sessions, interleaved into one recording.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::byte_choices::RandomChoices;
use super::event_writer::{EventWriter, PayloadFields, ProducerIdentity, SUBSCRIPTION, sentence};
use super::producer_script::{DraftLine, LineTiming, ProducerScript};
use super::recording_line::RecordingLine;

/// 10:00 on 24 May 2026, in milliseconds since 30 April 2026, 00:00 (see [`RecordingLine::millis`]).
const START_MS: i64 = (24 * 24 + 10) * 3_600_000;

/// A valid recording.
#[derive(Clone, Debug)]
pub(crate) struct SampleRecording {
    pub(crate) lines: Vec<RecordingLine>,
    /// The number of lines at the start that form the handshake.
    pub(crate) handshake_len: usize,
}

impl SampleRecording {
    /// Generates one to three interleaved sessions, with or without a handshake.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        // Content and interleaving draw from separate bytes, so that neither uses up the bytes of the other.
        let (content_bytes, order_bytes) = bytes.split_at(bytes.len() * 2 / 3);
        let (mut writer, mut choices) = (EventWriter::new(content_bytes), RandomChoices::new(order_bytes));
        let lines = if choices.one_in(3) { handshake() } else { Vec::new() };
        let handshake_len = lines.len();
        let mut builder = RecordingBuilder { lines, ..RecordingBuilder::default() };
        let mut ids: Vec<String> = Vec::new();
        let mut sessions = Vec::new();
        for _ in 0..=choices.below(3) {
            let id = writer.id("sess_");
            let parent = ids.last().filter(|_| choices.flip()).cloned();
            if choices.one_in(3) {
                builder.next_numbers.insert(id.clone(), 0);
            }
            sessions.push(session(&mut writer, &mut choices, &id, parent.as_deref()));
            ids.push(id);
        }
        for draft in interleave(&mut choices, sessions) {
            builder.append(&mut choices, draft);
        }
        Self { lines: builder.lines, handshake_len }
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        self.lines.iter().map(RecordingLine::to_json).collect()
    }
}

/// Generates one session, by one producer or two.
fn session(
    writer: &mut EventWriter<'_>,
    choices: &mut RandomChoices<'_>,
    id: &str,
    parent: Option<&str>,
) -> Vec<DraftLine> {
    let agents: &[&'static str] = if choices.one_in(3) { &["planner", "payments"] } else { &["planner"] };
    let identity = |agent| ProducerIdentity { session: id.to_owned(), agent };
    let end = choices.pick(&["completed", "errored", "cancelled"]);
    let scripts: Vec<_> = agents
        .iter()
        .map(|agent| {
            let mut script = ProducerScript::new(identity(agent), agents.len() > 1);
            for _ in 0..writer.choices.below(4) {
                script.add_block(writer);
            }
            if end != "completed" && writer.choices.one_in(4) {
                script.ask_without_answer(writer);
            }
            script.drafts
        })
        .collect();
    let sayso_extension = parent.map(|parent| json!({ "parent_session_id": parent }));
    let opening = opening_payload(writer);
    let started = writer.event(&identity("planner"), "aaep:agent.session.started", opening, sayso_extension);
    let closing = closing_payload(writer, end);
    let ended = writer.event(&identity("planner"), &format!("aaep:agent.session.{end}"), closing, None);
    let soon = |line| DraftLine { line, timing: LineTiming::Soon };
    let mut drafts = vec![soon(started)];
    drafts.extend(interleave(choices, scripts));
    drafts.push(soon(ended));
    drafts
}

fn opening_payload(writer: &mut EventWriter<'_>) -> PayloadFields {
    if writer.choices.flip() {
        return Vec::new();
    }
    vec![
        ("expected_duration_ms", json!(90_000)),
        ("requested_by", json!("user:folakẹ́")),
        ("request_text", sentence(2)),
        ("tools_available", json!(["fetch_balance", "search.web"])),
    ]
}

fn closing_payload(writer: &mut EventWriter<'_>, end: &str) -> PayloadFields {
    let with_all_members = writer.choices.flip();
    match end {
        "errored" if with_all_members => vec![
            (
                "error_category",
                json!(writer.choices.pick(&["transient", "permanent", "requires_user", "unknown"])),
            ),
            ("error_code", json!("AUTH_FAILED")),
            ("error_uri", json!("https://example.org/errors/1")),
            ("recoverable", json!(true)),
            ("remediation_hint", sentence(0)),
        ],
        "errored" => vec![("error_category", json!("unknown"))],
        "cancelled" if with_all_members => vec![
            ("cancelled_by", json!(writer.choices.pick(&["user", "producer", "timeout", "system"]))),
            ("cancellation_reason", json!("user_pressed_escape")),
            ("partial_result", sentence(0)),
        ],
        "cancelled" => vec![("cancelled_by", json!("user"))],
        _ if with_all_members => vec![
            ("duration_ms", json!(4200)),
            ("tool_invocations_count", json!(2)),
            ("output_summary", sentence(1)),
            ("result_uri", json!("https://example.org/results/1")),
        ],
        _ => Vec::new(),
    }
}

/// Returns the handshake of a subscriber that supports everything and is granted everything.
fn handshake() -> Vec<RecordingLine> {
    let capabilities = json!({
        "supports_confirmation_reply": true, "supports_clarification_reply": true,
        "coalesce_boundaries": ["none", "word", "sentence", "paragraph", "completion"],
    });
    vec![
        RecordingLine::new([
            ("type", json!("subscription.request")),
            ("aaep_version", json!("1.0.0")),
            ("subscriber_id", json!("screen-reader")),
            ("capabilities", capabilities.clone()),
        ]),
        RecordingLine::new([
            ("type", json!("subscription.accepted")),
            ("subscription_id", json!(SUBSCRIPTION)),
            ("aaep_version", json!("1.0.0")),
            ("producer", json!({ "agent_id": "planner" })),
            ("honored_capabilities", capabilities),
        ]),
    ]
}

/// Merges the sequences at random. The order within each sequence stays the same.
fn interleave(choices: &mut RandomChoices<'_>, sequences: Vec<Vec<DraftLine>>) -> Vec<DraftLine> {
    let mut sequences: Vec<_> =
        sequences.into_iter().map(|sequence| sequence.into_iter().peekable()).collect();
    let mut merged = Vec::new();
    loop {
        sequences.retain_mut(|sequence| sequence.peek().is_some());
        if sequences.is_empty() {
            return merged;
        }
        let index = choices.below(sequences.len());
        merged.extend(sequences[index].next());
    }
}

/// Gives lines their timestamps and sequence numbers.
#[derive(Default)]
struct RecordingBuilder {
    lines: Vec<RecordingLine>,
    elapsed_ms: i64,
    /// The line index of each question.
    question_lines: HashMap<String, usize>,
    /// The next sequence number of each session that has sequence numbers.
    next_numbers: HashMap<String, u64>,
}

impl RecordingBuilder {
    fn append(&mut self, choices: &mut RandomChoices<'_>, draft: DraftLine) {
        self.elapsed_ms += choices.pick(&[1, 0, 0, 7, 250, 1500]);
        let DraftLine { mut line, timing } = draft;
        match &timing {
            LineTiming::Soon | LineTiming::AfterReply(_) => {}
            LineTiming::Reply(token) => self.elapsed_ms = self.elapsed_ms.max(self.asked_at(token) + 1),
            LineTiming::AfterTimeout(token) => {
                let timeout = self.lines[self.question_lines[token]].number("timeout_seconds").unwrap_or(0);
                self.elapsed_ms = self.elapsed_ms.max(self.asked_at(token) + timeout * 1000);
            }
        }
        line.set("timestamp", json!(random_timestamp(choices, START_MS + self.elapsed_ms)));
        if line.kind().is_question() {
            self.question_lines.insert(line.text("reply_token").to_owned(), self.lines.len());
        }
        if let LineTiming::AfterReply(token) = &timing {
            self.set_sufficient_timeout(choices, token);
        }
        if let Some(next) = self.next_numbers.get_mut(line.session()) {
            line.set("sequence_number", json!(*next));
            *next += 1;
        }
        self.lines.push(line);
    }

    fn asked_at(&self, token: &str) -> i64 {
        self.lines[self.question_lines[token]].millis() - START_MS
    }

    /// Gives an answered question a timeout of at least twice the time that the answer took, so that no reminder was
    /// due before the answer.
    fn set_sufficient_timeout(&mut self, choices: &mut RandomChoices<'_>, token: &str) {
        let took_ms = self.elapsed_ms - self.asked_at(token);
        let seconds = (took_ms / 1000 + 1) * 2 + i64::from(u8::try_from(choices.below(40)).unwrap_or(0));
        self.lines[self.question_lines[token]].set("timeout_seconds", Value::from(seconds));
    }
}

/// Formats a time in one of the forms that §3.2.5 allows.
pub(crate) fn random_timestamp(choices: &mut RandomChoices<'_>, millis: i64) -> String {
    match choices.below(6) {
        4 => timestamp(millis, "000Z"),
        5 => timestamp(millis + 3_600_000, "+01:00"),
        _ => timestamp(millis, "Z"),
    }
}

/// Formats milliseconds since 30 April 2026, 00:00 as a timestamp in May 2026, the inverse of
/// [`RecordingLine::millis`].
pub(crate) fn timestamp(millis: i64, suffix: &str) -> String {
    let (days, millis_of_day) = (millis / 86_400_000, millis % 86_400_000);
    let (hour, minute, second) =
        (millis_of_day / 3_600_000, millis_of_day / 60_000 % 60, millis_of_day / 1000 % 60);
    format!("2026-05-{days:02}T{hour:02}:{minute:02}:{second:02}.{:03}{suffix}", millis_of_day % 1000)
}
