//! Edits of single members. Each edit states whether the event is still valid *by itself* afterwards. Rules about
//! the order of events are not considered here.

use serde_json::{Value, json};

use super::event_writer::{CORE_CONTEXT, OUR_CONTEXT};
use super::mutation::unused_id;
use super::recording_line::{LineKind, RecordingLine};
use super::sample_recording::{SampleRecording, timestamp};
use super::sample_texts::SPOKEN_MEMBERS;

const HOUR_MS: i64 = 3_600_000;

/// A new value for a member, or its removal.
#[derive(Clone, Debug)]
pub(crate) struct MemberEdit {
    pub(crate) pointer: String,
    pub(crate) value: Option<Value>,
    /// Whether the event or reply is still valid by itself.
    pub(crate) is_valid_alone: bool,
}

/// Returns all edits of one line.
pub(crate) fn edits_of_line(recording: &SampleRecording, at: usize) -> Vec<MemberEdit> {
    let line = &recording.lines[at];
    let mut edits = EditList { line, list: Vec::new() };
    edits.add_removals_and_nulls();
    edits.add_unknown_members();
    if line.kind().is_reply() {
        edits.add_reply_edits(recording.handshake_len > 0);
    } else {
        edits.add_envelope_edits();
        edits.add_language_edits();
        edits.add_payload_edits();
        edits.add_extension_edits();
    }
    edits.add_ids_of_other_lines(recording);
    edits.list
}

struct EditList<'l> {
    line: &'l RecordingLine,
    list: Vec<MemberEdit>,
}

impl EditList<'_> {
    fn put(&mut self, pointer: &str, value: Value, is_valid_alone: bool) {
        self.list.push(MemberEdit { pointer: pointer.to_owned(), value: Some(value), is_valid_alone });
    }

    /// Adds several valid values for a member, and one that no version of the protocol knows.
    fn add_known_values(&mut self, pointer: &str, known_values: &[&str]) {
        for value in known_values {
            self.put(pointer, json!(value), true);
        }
        self.put(pointer, json!("purple"), false);
    }

    /// Removes each member, and sets each member to null. Null is valid only for `note`.
    fn add_removals_and_nulls(&mut self) {
        let line = self.line;
        let mut pointers: Vec<String> = line.names().map(|name| format!("/{name}")).collect();
        for parent in ["/producer", "/localization_hints", "/progress", "/extensions/sayso"] {
            let members = line.at(parent).and_then(Value::as_object).into_iter().flatten();
            pointers.extend(members.map(|(name, _)| format!("{parent}/{name}")));
        }
        for pointer in pointers {
            let may_be_null = pointer == "/note";
            let is_valid_alone = may_be_missing(line, &pointer);
            self.list.push(MemberEdit { pointer: pointer.clone(), value: None, is_valid_alone });
            self.put(&pointer, Value::Null, may_be_null);
        }
    }

    /// Adds members that the type does not have. Only an event of an extension may have any.
    fn add_unknown_members(&mut self) {
        let kind = self.line.kind();
        self.put("/colour", json!("purple"), kind == LineKind::Extension);
        self.put("/aaep_mood", json!("purple"), false);
        let has_summaries = kind.is_event() && kind != LineKind::Chunk;
        let has_hints = self.line.has("localization_hints");
        self.put("/summary_normal_yo", json!("Ó dára."), has_summaries && has_hints);
    }

    fn add_envelope_edits(&mut self) {
        let line = self.line;
        let kind = line.kind();
        let is_extended = line.has("extensions") || kind == LineKind::Extension;
        self.put("/@context", json!("https://example.org/context/v1"), false);
        self.put("/@context", json!([OUR_CONTEXT, CORE_CONTEXT]), false);
        self.put("/@context", json!([CORE_CONTEXT]), !is_extended);
        self.put("/@context", json!([CORE_CONTEXT, OUR_CONTEXT]), true);
        self.put("/aaep_version", json!("0.1.0-draft"), true);
        self.put("/aaep_version", json!("9.9.9"), false);
        self.put("/aaep_version", json!("1.0"), false);
        self.put("/type", json!("aaep:agent.purple.flamingo"), false);
        self.put("/type", json!("sayso:something.else"), is_extended);
        if kind != LineKind::Extension {
            let full = line.text("type").replace("aaep:", "https://aaep-protocol.org/types/");
            self.put("/type", json!(full), true);
        }
        self.put("/event_id", unused_id("evt_"), true);
        self.put("/event_id", json!("evt_"), false);
        self.put("/session_id", unused_id("sess_"), true);
        self.put("/session_id", json!("sess-1"), false);
        let next = line.number("sequence_number").map_or(0, |number| number + 1);
        self.put("/sequence_number", json!(next), !(kind == LineKind::Started && next > 0));
        self.put("/sequence_number", json!(-1), false);
        let millis = line.millis();
        self.put("/timestamp", json!(timestamp(millis - HOUR_MS, "Z")), true);
        self.put("/timestamp", json!(timestamp(millis + HOUR_MS, "Z")), true);
        self.put("/timestamp", json!(timestamp(millis + HOUR_MS, "+01:00")), true);
        self.put("/timestamp", json!(timestamp(millis, "4Z")), false);
        self.put("/timestamp", json!("2026-02-30T10:00:00.000Z"), false);
        self.put("/timestamp", json!("1970-01-01T00:00:00.000Z"), false);
        for agent in ["someone", "planner", "payments"] {
            self.put("/producer/agent_id", json!(agent), true);
        }
        self.put("/producer/agent_id", json!(""), false);
        self.put("/producer/agent_id", json!("planner-1.4.2"), false);
        self.put("/producer/colour", json!("purple"), false);
        self.put("/correlation_id", json!("elsewhere"), true);
        self.add_known_values("/verbosity", &["terse", "detailed"]);
        for urgency in ["background", "normal", "critical"] {
            self.put("/urgency", json!(urgency), !kind.is_critical() || urgency == "critical");
        }
        self.put("/urgency", json!("purple"), false);
    }

    fn add_language_edits(&mut self) {
        if !self.line.has("localization_hints") {
            return;
        }
        let is_bidirectional = spoken_texts(self.line).iter().any(|text| has_both_directions(text));
        for direction in ["ltr", "rtl", "auto"] {
            self.put(
                "/localization_hints/text_direction",
                json!(direction),
                !is_bidirectional || direction == "auto",
            );
        }
        self.put("/localization_hints/text_direction", json!("up"), false);
        self.put("/localization_hints/primary_language", json!("fr"), true);
        self.put("/localization_hints/primary_language", json!("english"), false);
        self.put("/localization_hints/language", json!("fr"), false);
    }

    fn add_payload_edits(&mut self) {
        let line = self.line;
        match line.kind() {
            LineKind::Started => self.put("/tools_available", json!(["a", "a"]), false),
            LineKind::Completed => self.put("/duration_ms", json!(86_400_001), false),
            LineKind::Errored => {
                self.add_known_values("/error_category", &["transient", "unknown"]);
                self.put("/error_message", json!("Ó bàjẹ́."), false);
            }
            LineKind::Cancelled => self.add_known_values("/cancelled_by", &["user", "system"]),
            LineKind::State => {
                self.put("/from_state", json!("dreaming"), true);
                self.put("/from_state", json!(""), false);
                for to in ["dreaming", "awaiting_input", "calling_tool"] {
                    self.put("/to_state", json!(to), true);
                }
            }
            LineKind::Progress => {
                self.put("/progress/percent", json!(50), true);
                self.put("/progress/percent", json!(101), false);
                self.put("/progress/step", json!(4), line.at("/progress/total_steps").is_none());
                self.put("/progress", json!({}), false);
            }
            LineKind::ToolInvoked => {
                self.put("/tool", json!("other_tool"), true);
                self.put("/tool", json!("1 tool"), false);
                self.put("/tool_call_id", unused_id("call_"), true);
                self.put("/tool_call_id", json!("toolu_1"), false);
                self.add_known_values("/risk_level", &["low", "medium", "high"]);
                self.put("/irreversible", json!(true), true);
                self.put("/irreversible", json!(false), true);
                self.put("/irreversible", json!("yes"), false);
                self.put("/args_summary", json!("password=hunter2"), false);
            }
            LineKind::ToolCompleted => {
                self.put("/tool", json!("other_tool"), true);
                self.put("/tool_call_id", unused_id("call_"), true);
                self.add_known_values("/status", &["success", "error", "timeout"]);
            }
            LineKind::Chunk => self.add_chunk_edits(),
            LineKind::Confirmation => self.add_confirmation_edits(),
            LineKind::Clarification => self.add_clarification_edits(),
            LineKind::Handoff => {
                self.add_known_values("/target_kind", &["human", "escalation_queue"]);
                self.put("/reason", json!(""), false);
            }
            LineKind::Extension | LineKind::Decision | LineKind::Answer | LineKind::Handshake => {}
        }
    }

    fn add_chunk_edits(&mut self) {
        let line = self.line;
        let position = line.number("position").unwrap_or(0);
        let complete = line.flag("complete") == Some(true);
        let may_be_incomplete = line.has("coalesce_hint") || ends_a_sentence(line.text("chunk"));
        for moved in [position + 1, 0, 7] {
            self.put("/position", json!(moved), true);
        }
        self.put("/position", json!(-1), false);
        self.put("/complete", json!(!complete), !complete || may_be_incomplete);
        self.put("/complete", json!("yes"), false);
        self.put("/chunk", json!(""), true);
        self.put("/chunk", json!(format!("{}.", line.text("chunk"))), true);
        self.put("/output_id", unused_id("out_"), true);
        self.put("/output_id", json!("out-1"), false);
        self.add_known_values("/coalesce_hint", &["word", "completion"]);
        self.put("/content_type", json!("text"), false);
        self.put("/language", json!("english"), false);
    }

    fn add_confirmation_edits(&mut self) {
        let candidates = [
            ("/default_decision", json!("accept")),
            ("/default_decision", json!("reject")),
            ("/risk_level", json!("low")),
            ("/risk_level", json!("medium")),
            ("/risk_level", json!("high")),
            ("/irreversible", json!(true)),
            ("/irreversible", json!(false)),
            ("/reversibility", json!("reversible")),
            ("/reversibility", json!("reversible_with_effort")),
            ("/reversibility", json!("irreversible")),
            ("/allowed_replies", json!(["accept"])),
            ("/allowed_replies", json!(["reject"])),
            ("/allowed_replies", json!(["reject", "maybe"])),
            ("/allowed_replies", json!([])),
        ];
        for (pointer, value) in candidates {
            let mut changed = self.line.clone();
            changed.change(pointer, Some(value.clone()));
            self.put(pointer, value, has_allowed_default(&changed));
        }
        self.put("/default_decision", json!("defer"), false);
        self.put("/action", json!("Nǹkan mìíràn."), true);
        self.put("/action", json!(""), false);
        self.add_token_and_timeout_edits();
    }

    fn add_clarification_edits(&mut self) {
        let has_choices = self.line.has("choices");
        for kind in ["freetext", "yes_no", "numeric"] {
            self.put("/accepted_response_kinds", json!([kind]), true);
        }
        self.put("/accepted_response_kinds", json!(["multiple_choice"]), has_choices);
        self.put("/accepted_response_kinds", json!(["purple"]), false);
        self.put("/choices", json!([{ "value": "one", "label": "Ọ̀kan" }]), false);
        if has_choices {
            self.put("/choices/0/value", json!("other"), true);
            self.put("/choices/1/value", json!("other"), true);
        }
        self.add_token_and_timeout_edits();
    }

    fn add_token_and_timeout_edits(&mut self) {
        self.put("/reply_token", unused_id("rpl_"), true);
        self.put("/reply_token", json!("rpl_a-b"), false);
        for seconds in [1, 2, 86_400] {
            self.put("/timeout_seconds", json!(seconds), true);
        }
        self.put("/timeout_seconds", json!(0), false);
        self.put("/timeout_seconds", json!(86_401), false);
        self.put("/timeout_seconds", json!(1.5), false);
    }

    /// Replaces ids with those of other lines.
    fn add_ids_of_other_lines(&mut self, recording: &SampleRecording) {
        for name in ["event_id", "session_id", "tool_call_id", "reply_token", "output_id"] {
            let Some(own_value) = self.line.get(name) else { continue };
            let mut ids: Vec<_> = recording.lines.iter().filter_map(|line| line.get(name)).collect();
            ids.dedup();
            for id in ids.into_iter().filter(|id| *id != own_value) {
                self.put(&format!("/{name}"), id.clone(), true);
            }
        }
    }

    /// Edits `extensions.sayso`.
    fn add_extension_edits(&mut self) {
        if !self.line.has("extensions") {
            return;
        }
        self.put("/extensions", json!({ "sayso": 7 }), false);
        self.put("/extensions/sayso/reply_token", json!("rpl_a-b"), false);
        self.put("/extensions/aaep", json!({}), false);
        let members: Vec<_> =
            self.line.at("/extensions/sayso").and_then(Value::as_object).into_iter().flatten().collect();
        for (name, _) in members {
            let pointer = format!("/extensions/sayso/{name}");
            match &**name {
                "decision" => self.add_known_values(&pointer, &["accept", "reject"]),
                "by" => self.add_known_values(&pointer, &["reply", "timeout", "closure", "cancelled"]),
                "reply_token" => self.put(&pointer, unused_id("rpl_"), true),
                "parent_session_id" => self.put(&pointer, unused_id("sess_"), true),
                "tool_call_id" => self.put(&pointer, unused_id("call_"), true),
                _ => self.put(&pointer, json!("something_else"), true),
            }
        }
    }

    fn add_reply_edits(&mut self, has_handshake: bool) {
        let line = self.line;
        let is_decision = line.kind() == LineKind::Decision;
        self.put("/reply_token", unused_id("rpl_"), true);
        self.put("/reply_token", json!("rpl_a-b"), false);
        let millis = line.millis();
        self.put("/timestamp", json!(timestamp(millis - HOUR_MS, "123456Z")), true);
        self.put("/timestamp", json!(timestamp(millis + 24 * HOUR_MS, "Z")), true);
        self.put("/timestamp", json!("yesterday"), false);
        self.put("/subscription_id", json!("sub_0ther"), !has_handshake);
        self.put("/subscription_id", json!("sub-1"), false);
        self.put("/modified_action", json!({ "amount": "5.00" }), is_decision);
        self.put("/decided_by", json!(""), false);
        if is_decision {
            self.put("/decision", json!("accept"), true);
            self.put("/decision", json!("reject"), true);
            self.put("/decision", json!("defer"), false);
            self.put("/response", json!(true), false);
        } else {
            for response in [json!("ohùn kan"), json!("savings"), json!(false), json!(3)] {
                self.put("/response", response, true);
            }
            self.put("/response", json!(""), false);
            self.put("/response", json!(["savings"]), false);
            self.put("/confidence", json!(1.5), false);
        }
    }
}

/// Returns the members that each type requires (§4, §6), apart from the envelope.
fn required_members(kind: LineKind) -> &'static [&'static str] {
    match kind {
        LineKind::Started | LineKind::Completed => &["summary_normal"],
        LineKind::Errored => &["error_category", "summary_normal"],
        LineKind::Cancelled => &["cancelled_by", "summary_normal"],
        LineKind::State => &["from_state", "to_state"],
        LineKind::Progress => &["progress"],
        LineKind::ToolInvoked => &["tool", "summary_normal"],
        LineKind::ToolCompleted => &["tool", "status"],
        LineKind::Chunk => &["chunk", "position", "complete"],
        LineKind::Confirmation => {
            &["action", "consequence", "reply_token", "timeout_seconds", "default_decision"]
        }
        LineKind::Clarification => &["question", "reply_token", "timeout_seconds"],
        LineKind::Handoff => &["reason", "target_kind"],
        LineKind::Decision => &["type", "reply_token", "decision", "subscription_id", "timestamp"],
        LineKind::Answer => &["type", "reply_token", "response", "subscription_id", "timestamp"],
        LineKind::Extension | LineKind::Handshake => &[],
    }
}

/// Returns whether a line is valid by itself without the member at `pointer`.
fn may_be_missing(line: &RecordingLine, pointer: &str) -> bool {
    let kind = line.kind();
    let name = pointer.trim_start_matches('/');
    let envelope =
        ["@context", "type", "event_id", "session_id", "timestamp", "producer", "producer/agent_id"];
    if required_members(kind).contains(&name) || kind.is_event() && envelope.contains(&name) {
        return false;
    }
    let spoken = spoken_texts(line);
    match name {
        "urgency" => !kind.is_critical(),
        "localization_hints" | "localization_hints/primary_language" => spoken.is_empty(),
        "localization_hints/text_direction" => !spoken.iter().any(|text| has_both_directions(text)),
        "coalesce_hint" => line.flag("complete") == Some(true) || ends_a_sentence(line.text("chunk")),
        "choices" => {
            let kinds = line.get("accepted_response_kinds").and_then(Value::as_array);
            !kinds.into_iter().flatten().any(|kind| kind == "multiple_choice")
        }
        "progress/percent" | "progress/step" | "progress/total_steps" | "progress/description" => {
            line.get("progress").and_then(Value::as_object).is_some_and(|progress| progress.len() > 1)
        }
        _ => true,
    }
}

/// Returns the texts for people in an event.
fn spoken_texts(line: &RecordingLine) -> Vec<&str> {
    let members = line.names().filter(|name| SPOKEN_MEMBERS.contains(name)).filter_map(|name| line.get(name));
    let labels =
        line.get("choices").and_then(Value::as_array).into_iter().flatten().map(|choice| &choice["label"]);
    let all = members.chain(line.at("/progress/description")).chain(labels);
    all.filter_map(Value::as_str).filter(|text| !text.is_empty()).collect()
}

fn has_both_directions(text: &str) -> bool {
    text.chars().any(|c| c.is_ascii_alphabetic()) && text.chars().any(|c| matches!(c, '\u{621}'..='\u{64A}'))
}

fn ends_a_sentence(chunk: &str) -> bool {
    chunk.is_empty() || chunk.ends_with(['.', '!', '?', '؟'])
}

/// Returns whether a question's default decision is allowed (§6.4.1, C-B5, C-D5).
fn has_allowed_default(line: &RecordingLine) -> bool {
    let irreversible = line.flag("irreversible");
    let reversibility = line.text("reversibility");
    let is_irreversible = irreversible == Some(true) || reversibility == "irreversible";
    let is_contradictory = irreversible == Some(true) && reversibility == "reversible"
        || irreversible == Some(false) && reversibility == "irreversible";
    let default = line.text("default_decision");
    let is_unsafe_default = default == "accept" && is_irreversible && line.text("risk_level") != "low";
    let is_allowed_reply = line.get("allowed_replies").and_then(Value::as_array).is_none_or(|allowed| {
        allowed.iter().all(|reply| reply == "accept" || reply == "reject")
            && allowed.iter().any(|reply| reply == default)
    });
    !is_contradictory && !is_unsafe_default && is_allowed_reply
}
