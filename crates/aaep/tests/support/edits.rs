//! Changes of single members, each with whether the event is still lawful *by itself* afterwards. What it then means
//! for the order of things is not decided here.

use serde_json::{Value, json};

use super::line::{Kind, Line};
use super::mutation::fresh;
use super::recording::{Recording, timestamp};
use super::scribe::{CORE_CONTEXT, OUR_CONTEXT};
use super::words::SPOKEN;

const HOUR: i64 = 3_600_000;

/// Another value for a member, or none.
#[derive(Clone, Debug)]
pub(crate) struct Edit {
    pub(crate) pointer: String,
    pub(crate) value: Option<Value>,
    /// The event or reply is lawful by itself with it.
    pub(crate) sound: bool,
}

/// All edits of one line.
pub(crate) fn of(recording: &Recording, at: usize) -> Vec<Edit> {
    let line = &recording.lines[at];
    let mut edits = Edits { line, list: Vec::new() };
    edits.drops();
    edits.strangers();
    if line.kind().is_reply() {
        edits.reply(recording.head > 0);
    } else {
        edits.envelope();
        edits.language();
        edits.of_kind();
        edits.extension();
    }
    edits.others_ids(recording);
    edits.list
}

struct Edits<'l> {
    line: &'l Line,
    list: Vec<Edit>,
}

impl Edits<'_> {
    fn put(&mut self, pointer: &str, value: Value, sound: bool) {
        self.list.push(Edit { pointer: pointer.to_owned(), value: Some(value), sound });
    }

    /// Several words for a member, all sound, and one that no version knows.
    fn words(&mut self, pointer: &str, words: &[&str]) {
        for word in words {
            self.put(pointer, json!(word), true);
        }
        self.put(pointer, json!("purple"), false);
    }

    /// Every member missing, and every member null, which no member may be.
    fn drops(&mut self) {
        let line = self.line;
        let mut pointers: Vec<String> = line.names().map(|name| format!("/{name}")).collect();
        for parent in ["/producer", "/localization_hints", "/progress", "/extensions/sayso"] {
            let members = line.at(parent).and_then(Value::as_object).into_iter().flatten();
            pointers.extend(members.map(|(name, _)| format!("{parent}/{name}")));
        }
        for pointer in pointers {
            let free = pointer == "/note";
            let sound = may_be_missing(line, &pointer);
            self.list.push(Edit { pointer: pointer.clone(), value: None, sound });
            self.put(&pointer, Value::Null, free);
        }
    }

    /// Members that the type does not have: only an extension's own event may hold any.
    fn strangers(&mut self) {
        let kind = self.line.kind();
        self.put("/colour", json!("purple"), kind == Kind::Extension);
        self.put("/aaep_mood", json!("purple"), false);
        let has_summaries = kind.is_event() && kind != Kind::Chunk;
        let has_hints = self.line.has("localization_hints");
        self.put("/summary_normal_yo", json!("Ó dára."), has_summaries && has_hints);
    }

    fn envelope(&mut self) {
        let line = self.line;
        let kind = line.kind();
        let ours = line.has("extensions") || kind == Kind::Extension;
        self.put("/@context", json!("https://example.org/context/v1"), false);
        self.put("/@context", json!([OUR_CONTEXT, CORE_CONTEXT]), false);
        self.put("/@context", json!([CORE_CONTEXT]), !ours);
        self.put("/@context", json!([CORE_CONTEXT, OUR_CONTEXT]), true);
        self.put("/aaep_version", json!("0.1.0-draft"), true);
        self.put("/aaep_version", json!("9.9.9"), false);
        self.put("/aaep_version", json!("1.0"), false);
        self.put("/type", json!("aaep:agent.purple.flamingo"), false);
        self.put("/type", json!("sayso:something.else"), ours);
        if kind != Kind::Extension {
            let full = line.text("type").replace("aaep:", "https://aaep-protocol.org/types/");
            self.put("/type", json!(full), true);
        }
        self.put("/event_id", fresh("evt_"), true);
        self.put("/event_id", json!("evt_"), false);
        self.put("/session_id", fresh("sess_"), true);
        self.put("/session_id", json!("sess-1"), false);
        let next = line.number("sequence_number").map_or(0, |number| number + 1);
        self.put("/sequence_number", json!(next), !(kind == Kind::Started && next > 0));
        self.put("/sequence_number", json!(-1), false);
        let now = line.millis();
        self.put("/timestamp", json!(timestamp(now - HOUR, "Z")), true);
        self.put("/timestamp", json!(timestamp(now + HOUR, "Z")), true);
        self.put("/timestamp", json!(timestamp(now + HOUR, "+01:00")), true);
        self.put("/timestamp", json!(timestamp(now, "4Z")), false);
        self.put("/timestamp", json!("2026-02-30T10:00:00.000Z"), false);
        self.put("/timestamp", json!("1970-01-01T00:00:00.000Z"), false);
        for agent in ["someone", "planner", "payments"] {
            self.put("/producer/agent_id", json!(agent), true);
        }
        self.put("/producer/agent_id", json!(""), false);
        self.put("/producer/agent_id", json!("planner-1.4.2"), false);
        self.put("/producer/colour", json!("purple"), false);
        self.put("/correlation_id", json!("elsewhere"), true);
        self.words("/verbosity", &["terse", "detailed"]);
        for urgency in ["background", "normal", "critical"] {
            self.put("/urgency", json!(urgency), !kind.is_critical() || urgency == "critical");
        }
        self.put("/urgency", json!("purple"), false);
    }

    fn language(&mut self) {
        if !self.line.has("localization_hints") {
            return;
        }
        let mixed = spoken_in(self.line).iter().any(|text| runs_both_ways(text));
        for direction in ["ltr", "rtl", "auto"] {
            self.put("/localization_hints/text_direction", json!(direction), !mixed || direction == "auto");
        }
        self.put("/localization_hints/text_direction", json!("up"), false);
        self.put("/localization_hints/primary_language", json!("fr"), true);
        self.put("/localization_hints/primary_language", json!("english"), false);
        self.put("/localization_hints/language", json!("fr"), false);
    }

    fn of_kind(&mut self) {
        let line = self.line;
        match line.kind() {
            Kind::Started => self.put("/tools_available", json!(["a", "a"]), false),
            Kind::Completed => self.put("/duration_ms", json!(86_400_001), false),
            Kind::Errored => {
                self.words("/error_category", &["transient", "unknown"]);
                self.put("/error_message", json!("Ó bàjẹ́."), false);
            }
            Kind::Cancelled => self.words("/cancelled_by", &["user", "system"]),
            Kind::State => {
                self.put("/from_state", json!("dreaming"), true);
                self.put("/from_state", json!(""), false);
                for to in ["dreaming", "awaiting_input", "calling_tool"] {
                    self.put("/to_state", json!(to), true);
                }
            }
            Kind::Progress => {
                self.put("/progress/percent", json!(50), true);
                self.put("/progress/percent", json!(101), false);
                self.put("/progress/step", json!(4), line.at("/progress/total_steps").is_none());
                self.put("/progress", json!({}), false);
            }
            Kind::Invoked => {
                self.put("/tool", json!("other_tool"), true);
                self.put("/tool", json!("1 tool"), false);
                self.put("/tool_call_id", fresh("call_"), true);
                self.put("/tool_call_id", json!("toolu_1"), false);
                self.words("/risk_level", &["low", "medium", "high"]);
                self.put("/irreversible", json!(true), true);
                self.put("/irreversible", json!(false), true);
                self.put("/irreversible", json!("yes"), false);
                self.put("/args_summary", json!("password=hunter2"), false);
            }
            Kind::Done => {
                self.put("/tool", json!("other_tool"), true);
                self.put("/tool_call_id", fresh("call_"), true);
                self.words("/status", &["success", "error", "timeout"]);
            }
            Kind::Chunk => self.chunk(),
            Kind::Confirmation => self.confirmation(),
            Kind::Clarification => self.clarification(),
            Kind::Handoff => {
                self.words("/target_kind", &["human", "escalation_queue"]);
                self.put("/reason", json!(""), false);
            }
            Kind::Extension | Kind::Decision | Kind::Answer | Kind::Handshake => {}
        }
    }

    fn chunk(&mut self) {
        let line = self.line;
        let position = line.number("position").unwrap_or(0);
        let complete = line.flag("complete") == Some(true);
        let can_be_cut = line.has("coalesce_hint") || ends_a_sentence(line.text("chunk"));
        for moved in [position + 1, 0, 7] {
            self.put("/position", json!(moved), true);
        }
        self.put("/position", json!(-1), false);
        self.put("/complete", json!(!complete), !complete || can_be_cut);
        self.put("/complete", json!("yes"), false);
        self.put("/chunk", json!(""), true);
        self.put("/chunk", json!(format!("{}.", line.text("chunk"))), true);
        self.put("/output_id", fresh("out_"), true);
        self.put("/output_id", json!("out-1"), false);
        self.words("/coalesce_hint", &["word", "completion"]);
        self.put("/content_type", json!("text"), false);
        self.put("/language", json!("english"), false);
    }

    fn confirmation(&mut self) {
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
            self.put(pointer, value, is_safe(&changed));
        }
        self.put("/default_decision", json!("defer"), false);
        self.put("/action", json!("Nǹkan mìíràn."), true);
        self.put("/action", json!(""), false);
        self.token_and_timeout();
    }

    fn clarification(&mut self) {
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
        self.token_and_timeout();
    }

    fn token_and_timeout(&mut self) {
        self.put("/reply_token", fresh("rpl_"), true);
        self.put("/reply_token", json!("rpl_a-b"), false);
        for seconds in [1, 2, 86_400] {
            self.put("/timeout_seconds", json!(seconds), true);
        }
        self.put("/timeout_seconds", json!(0), false);
        self.put("/timeout_seconds", json!(86_401), false);
        self.put("/timeout_seconds", json!(1.5), false);
    }

    /// Ids that belong to other lines.
    fn others_ids(&mut self, recording: &Recording) {
        for name in ["event_id", "session_id", "tool_call_id", "reply_token", "output_id"] {
            let Some(own) = self.line.get(name) else { continue };
            let mut ids: Vec<_> = recording.lines.iter().filter_map(|line| line.get(name)).collect();
            ids.dedup();
            for id in ids.into_iter().filter(|id| *id != own) {
                self.put(&format!("/{name}"), id.clone(), true);
            }
        }
    }

    /// What `extensions.sayso` tells.
    fn extension(&mut self) {
        if !self.line.has("extensions") {
            return;
        }
        self.put("/extensions", json!({ "sayso": 7 }), false);
        self.put("/extensions/sayso/reply_token", json!("rpl_a-b"), false);
        self.put("/extensions/aaep", json!({}), false);
        let names: Vec<_> =
            self.line.at("/extensions/sayso").and_then(Value::as_object).into_iter().flatten().collect();
        for (name, _) in names {
            let pointer = format!("/extensions/sayso/{name}");
            match &**name {
                "decision" => self.words(&pointer, &["accept", "reject"]),
                "by" => self.words(&pointer, &["reply", "timeout", "closure", "cancelled"]),
                "reply_token" => self.put(&pointer, fresh("rpl_"), true),
                "parent_session_id" => self.put(&pointer, fresh("sess_"), true),
                "tool_call_id" => self.put(&pointer, fresh("call_"), true),
                _ => self.put(&pointer, json!("something_else"), true),
            }
        }
    }

    fn reply(&mut self, handshake: bool) {
        let line = self.line;
        let decision = line.kind() == Kind::Decision;
        self.put("/reply_token", fresh("rpl_"), true);
        self.put("/reply_token", json!("rpl_a-b"), false);
        let now = line.millis();
        self.put("/timestamp", json!(timestamp(now - HOUR, "123456Z")), true);
        self.put("/timestamp", json!(timestamp(now + 24 * HOUR, "Z")), true);
        self.put("/timestamp", json!("yesterday"), false);
        self.put("/subscription_id", json!("sub_0ther"), !handshake);
        self.put("/subscription_id", json!("sub-1"), false);
        self.put("/modified_action", json!({ "amount": "5.00" }), decision);
        self.put("/decided_by", json!(""), false);
        if decision {
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

/// What each type requires (§4, §6), beside the envelope.
fn required(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Started | Kind::Completed => &["summary_normal"],
        Kind::Errored => &["error_category", "summary_normal"],
        Kind::Cancelled => &["cancelled_by", "summary_normal"],
        Kind::State => &["from_state", "to_state"],
        Kind::Progress => &["progress"],
        Kind::Invoked => &["tool", "summary_normal"],
        Kind::Done => &["tool", "status"],
        Kind::Chunk => &["chunk", "position", "complete"],
        Kind::Confirmation => {
            &["action", "consequence", "reply_token", "timeout_seconds", "default_decision"]
        }
        Kind::Clarification => &["question", "reply_token", "timeout_seconds"],
        Kind::Handoff => &["reason", "target_kind"],
        Kind::Decision => &["type", "reply_token", "decision", "subscription_id", "timestamp"],
        Kind::Answer => &["type", "reply_token", "response", "subscription_id", "timestamp"],
        Kind::Extension | Kind::Handshake => &[],
    }
}

/// Whether a line is lawful by itself without that member.
fn may_be_missing(line: &Line, pointer: &str) -> bool {
    let kind = line.kind();
    let name = pointer.trim_start_matches('/');
    let envelope =
        ["@context", "type", "event_id", "session_id", "timestamp", "producer", "producer/agent_id"];
    if required(kind).contains(&name) || kind.is_event() && envelope.contains(&name) {
        return false;
    }
    let spoken = spoken_in(line);
    match name {
        "urgency" => !kind.is_critical(),
        "localization_hints" | "localization_hints/primary_language" => spoken.is_empty(),
        "localization_hints/text_direction" => !spoken.iter().any(|text| runs_both_ways(text)),
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

/// The texts for people in an event.
fn spoken_in(line: &Line) -> Vec<&str> {
    let own = line.names().filter(|name| SPOKEN.contains(name)).filter_map(|name| line.get(name));
    let labels = line.get("choices").and_then(Value::as_array).into_iter().flatten().map(|it| &it["label"]);
    let all = own.chain(line.at("/progress/description")).chain(labels);
    all.filter_map(Value::as_str).filter(|text| !text.is_empty()).collect()
}

fn runs_both_ways(text: &str) -> bool {
    text.chars().any(|c| c.is_ascii_alphabetic()) && text.chars().any(|c| matches!(c, '\u{621}'..='\u{64A}'))
}

fn ends_a_sentence(chunk: &str) -> bool {
    chunk.is_empty() || chunk.ends_with(['.', '!', '?', '؟'])
}

/// Whether silence may mean what a question says it means (§6.4.1, C-B5, C-D5).
fn is_safe(line: &Line) -> bool {
    let flag = line.flag("irreversible");
    let reversibility = line.text("reversibility");
    let irreversible = flag == Some(true) || reversibility == "irreversible";
    let contradicts = flag == Some(true) && reversibility == "reversible"
        || flag == Some(false) && reversibility == "irreversible";
    let default = line.text("default_decision");
    let risky_default = default == "accept" && irreversible && line.text("risk_level") != "low";
    let allowed = line.get("allowed_replies").and_then(Value::as_array).is_none_or(|allowed| {
        allowed.iter().all(|word| word == "accept" || word == "reject")
            && allowed.iter().any(|it| it == default)
    });
    !contradicts && !risky_default && allowed
}
