//! The script of one producer in a session: consecutive blocks of events, each valid at its position.

use serde_json::{Value, json};

use super::event_writer::{EventWriter, PayloadFields, ProducerIdentity, fragment, sentence};
use super::recording_line::RecordingLine;

/// A line that has no timestamp yet.
pub(crate) struct DraftLine {
    pub(crate) line: RecordingLine,
    pub(crate) timing: LineTiming,
}

/// When a line may occur, in addition to following the previous line.
pub(crate) enum LineTiming {
    /// Shortly after the previous line.
    Soon,
    /// A reply, after the question with this token and before its deadline.
    Reply(String),
    /// The event after a reply, before the question's deadline.
    AfterReply(String),
    /// The event that reports that a question timed out.
    AfterTimeout(String),
}

/// How a question ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum QuestionEnding {
    AcceptAndAct,
    AcceptOnly,
    Reject,
    Timeout,
    /// Open until the session fails or is cancelled.
    Never,
}

/// How risky an action is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RiskKind {
    LowRisk,
    HighRisk,
    Irreversible,
}

/// A confirmation that a script asks for.
struct ScriptedQuestion {
    token: String,
    risk: RiskKind,
    tool: String,
    call: Option<String>,
    digest: Option<&'static str>,
    accept_by_default: bool,
}

impl ScriptedQuestion {
    /// Returns the `sayso` extension that says what the question is about: nothing, the tool, the call, or the exact
    /// action.
    fn subject(&self, writer: &mut EventWriter<'_>) -> Option<Value> {
        if let Some(digest) = self.digest {
            return Some(json!({ "tool": self.tool, "action_digest": digest }));
        }
        match (writer.choices.below(3), &self.call) {
            (0, _) => None,
            (1, Some(call)) => Some(json!({ "tool": self.tool, "tool_call_id": call })),
            _ => Some(json!({ "tool": self.tool })),
        }
    }
}

pub(crate) struct ProducerScript {
    identity: ProducerIdentity,
    state: String,
    percent: u64,
    /// Whether every call must have an id, because another producer calls tools in the same session.
    requires_call_ids: bool,
    had_unnamed_output: bool,
    pub(crate) drafts: Vec<DraftLine>,
}

impl ProducerScript {
    pub(crate) fn new(identity: ProducerIdentity, requires_call_ids: bool) -> Self {
        Self {
            identity,
            state: "idle".to_owned(),
            percent: 0,
            requires_call_ids,
            had_unnamed_output: false,
            drafts: Vec::new(),
        }
    }

    /// Adds one block of work.
    pub(crate) fn add_block(&mut self, writer: &mut EventWriter<'_>) {
        match writer.choices.below(8) {
            0 => self.think(writer),
            1 => self.report_progress(writer),
            2 => self.call_tools(writer),
            3 => self.stream_outputs(writer),
            4 | 5 => self.request_confirmation(writer, false),
            6 => self.request_clarification(writer),
            _ => match writer.choices.below(3) {
                0 => self.hand_off(writer),
                1 => self.emit_note(writer),
                _ => self.call_tools(writer),
            },
        }
    }

    /// Asks a question that stays open until the session fails or is cancelled.
    pub(crate) fn ask_without_answer(&mut self, writer: &mut EventWriter<'_>) {
        self.request_confirmation(writer, true);
    }

    fn emit(
        &mut self,
        writer: &mut EventWriter<'_>,
        name: &str,
        payload: PayloadFields,
        sayso_extension: Option<Value>,
        timing: LineTiming,
    ) {
        let line = writer.event(&self.identity, name, payload, sayso_extension);
        self.drafts.push(DraftLine { line, timing });
    }

    fn change_state(&mut self, writer: &mut EventWriter<'_>, to: &str) {
        self.change_state_with(writer, to, None, LineTiming::Soon);
    }

    /// Emits `agent.state.changed`, unless the agent is already in that state.
    fn change_state_with(
        &mut self,
        writer: &mut EventWriter<'_>,
        to: &str,
        sayso_extension: Option<Value>,
        timing: LineTiming,
    ) {
        if self.state == to {
            return;
        }
        let mut payload = vec![("from_state", json!(self.state)), ("to_state", json!(to))];
        if writer.choices.one_in(4) {
            payload.push(("expected_duration_ms", json!(1500)));
        }
        to.clone_into(&mut self.state);
        self.emit(writer, "aaep:agent.state.changed", payload, sayso_extension, timing);
    }

    fn think(&mut self, writer: &mut EventWriter<'_>) {
        let to = writer.choices.pick(&["thinking", "deciding", "idle", "ronú jinlẹ̀"]);
        self.change_state(writer, to);
    }

    fn resume_thinking(&mut self, writer: &mut EventWriter<'_>) {
        let to = writer.choices.pick(&["thinking", "deciding"]);
        self.change_state(writer, to);
    }

    fn report_progress(&mut self, writer: &mut EventWriter<'_>) {
        self.percent = if self.percent > 90 { 0 } else { self.percent + 5 };
        let (progress, has_eta) = match writer.choices.below(3) {
            0 => (json!({ "percent": self.percent }), false),
            1 => (json!({ "step": 1, "total_steps": 3, "description": sentence(0) }), true),
            _ => (json!({ "percent": self.percent, "description": sentence(1) }), true),
        };
        let mut payload = vec![("progress", progress)];
        if has_eta {
            payload.push(("eta_ms", json!(60_000)));
        }
        self.emit(writer, "aaep:agent.progress.updated", payload, None, LineTiming::Soon);
    }

    /// Calls harmless tools. If the calls have ids, several can run at the same time.
    fn call_tools(&mut self, writer: &mut EventWriter<'_>) {
        self.change_state(writer, "calling_tool");
        let has_call_ids = self.requires_call_ids || writer.choices.flip();
        let mut running = Vec::new();
        for _ in 0..=writer.choices.below(3) {
            if !has_call_ids || writer.choices.flip() {
                self.complete_random_tool(writer, &mut running);
            }
            let tool = writer.choices.pick(&["fetch_balance", "search.web", "_calc-1"]).to_owned();
            let call = has_call_ids.then(|| writer.id("call_"));
            let mut payload = vec![("tool", json!(tool))];
            match writer.choices.below(4) {
                0 => payload.push(("risk_level", json!(writer.choices.pick(&["low", "medium"])))),
                1 => payload.push(("irreversible", json!(false))),
                2 => payload.extend([("description", sentence(0)), ("args_summary", sentence(1))]),
                _ => {}
            }
            if let Some(call) = &call {
                payload.push(("tool_call_id", json!(call)));
            }
            self.emit(writer, "aaep:agent.tool.invoked", payload, None, LineTiming::Soon);
            running.push((tool, call));
            if writer.choices.one_in(5) {
                self.report_progress(writer);
            }
        }
        while !running.is_empty() {
            self.complete_random_tool(writer, &mut running);
        }
        if writer.choices.flip() {
            self.resume_thinking(writer);
        }
    }

    fn complete_random_tool(
        &mut self,
        writer: &mut EventWriter<'_>,
        running: &mut Vec<(String, Option<String>)>,
    ) {
        if running.is_empty() {
            return;
        }
        let (tool, call) = running.remove(writer.choices.below(running.len()));
        self.complete_tool(writer, &tool, call.as_deref());
    }

    fn complete_tool(&mut self, writer: &mut EventWriter<'_>, tool: &str, call: Option<&str>) {
        let status = writer.choices.pick(&["success", "success", "error", "timeout"]);
        let mut payload = vec![("tool", json!(tool)), ("status", json!(status))];
        if status != "success" {
            payload.push(("error_message", sentence(1)));
        }
        if let Some(call) = call {
            payload.push(("tool_call_id", json!(call)));
        }
        if writer.choices.one_in(3) {
            payload.push(("duration_ms", json!(400)));
        }
        self.emit(writer, "aaep:agent.tool.completed", payload, None, LineTiming::Soon);
    }

    /// Streams one or two outputs with interleaved chunks. An output without an id is streamed alone, and only once
    /// per script.
    fn stream_outputs(&mut self, writer: &mut EventWriter<'_>) {
        self.change_state(writer, "writing_output");
        let is_unnamed = !self.had_unnamed_output && writer.choices.flip();
        self.had_unnamed_output |= is_unnamed;
        let mut open: Vec<_> = match (is_unnamed, writer.choices.flip()) {
            (true, _) => vec![None],
            (false, true) => vec![Some(writer.id("out_")), Some(writer.id("out_"))],
            (false, false) => vec![Some(writer.id("out_"))],
        }
        .into_iter()
        .map(|id| (id, 0))
        .collect();
        while !open.is_empty() {
            let which = writer.choices.below(open.len());
            let complete = writer.choices.below(3) == 0;
            let (id, position) = &mut open[which];
            let length = self.emit_chunk(writer, id.as_deref(), *position, complete);
            *position += length;
            if complete {
                open.remove(which);
            }
        }
        if writer.choices.flip() {
            self.resume_thinking(writer);
        }
    }

    /// Emits a chunk. Returns its length in code points.
    fn emit_chunk(
        &mut self,
        writer: &mut EventWriter<'_>,
        id: Option<&str>,
        position: usize,
        complete: bool,
    ) -> usize {
        let which = writer.choices.below(3);
        let (chunk, needs_hint) = match writer.choices.below(4) {
            0 | 1 => (fragment(which), true),
            2 => (sentence(which), false),
            _ => (json!(""), false),
        };
        let mut payload =
            vec![("chunk", chunk), ("position", json!(position)), ("complete", json!(complete))];
        if needs_hint && !complete || writer.choices.flip() {
            let hint = writer.choices.pick(&["word", "sentence", "none", "paragraph", "completion"]);
            payload.push(("coalesce_hint", json!(hint)));
        }
        if let Some(id) = id {
            payload.push(("output_id", json!(id)));
        }
        if writer.choices.one_in(4) {
            payload.extend([("content_type", json!("text/markdown")), ("language", json!("yo-NG"))]);
        }
        self.emit(writer, "aaep:agent.output.streaming", payload, None, LineTiming::Soon);
        self.drafts.last().map_or(0, |draft| draft.line.text("chunk").chars().count())
    }

    fn hand_off(&mut self, writer: &mut EventWriter<'_>) {
        // A handoff implies the state `handing_off` (C-B7), but the first state change of a session must be from
        // `idle`.
        if self.state == "idle" || writer.choices.flip() {
            self.change_state(writer, "handing_off");
        }
        let mut payload = vec![
            ("reason", sentence(0)),
            ("target_kind", json!(writer.choices.pick(&["human", "specialist_agent", "escalation_queue"]))),
        ];
        if writer.choices.flip() {
            payload.push(("target_uri", json!("queue://customer-service/advisor")));
            payload.push(("packaged_context", json!({ "amount": "500.00" })));
            payload.push(("urgency_for_handoff", json!("high")));
        }
        self.emit(writer, "aaep:agent.handoff.requested", payload, None, LineTiming::Soon);
        "handing_off".clone_into(&mut self.state);
        self.resume_thinking(writer);
    }

    /// Emits an event of the `sayso` extension, with a member of its own (C-G6).
    fn emit_note(&mut self, writer: &mut EventWriter<'_>) {
        self.emit(
            writer,
            "sayso:note.written",
            vec![("note", json!({ "pinned": true }))],
            None,
            LineTiming::Soon,
        );
    }

    fn request_confirmation(&mut self, writer: &mut EventWriter<'_>, is_unanswered: bool) {
        self.change_state(writer, "awaiting_input");
        let question = self.ask(writer);
        if writer.choices.one_in(4) {
            self.report_progress(writer);
        }
        let ending = match writer.choices.below(5) {
            _ if is_unanswered => QuestionEnding::Never,
            0 | 1 => QuestionEnding::AcceptAndAct,
            2 => QuestionEnding::Reject,
            3 => QuestionEnding::Timeout,
            _ => QuestionEnding::AcceptOnly,
        };
        let is_accepted = match ending {
            QuestionEnding::Never => return,
            QuestionEnding::AcceptAndAct | QuestionEnding::AcceptOnly => true,
            QuestionEnding::Reject => false,
            QuestionEnding::Timeout => question.accept_by_default,
        };
        let is_performed = is_accepted && ending != QuestionEnding::AcceptOnly;
        let decision = if is_accepted { "accept" } else { "reject" };
        let by = if ending == QuestionEnding::Timeout {
            "timeout"
        } else {
            let line = writer.reply("confirmation.reply", &question.token, ("decision", json!(decision)));
            self.drafts.push(DraftLine { line, timing: LineTiming::Reply(question.token.clone()) });
            "reply"
        };
        let resolution = writer
            .choices
            .flip()
            .then(|| json!({ "reply_token": question.token, "decision": decision, "by": by }));
        let to = if is_performed { "calling_tool" } else { writer.choices.pick(&["thinking", "deciding"]) };
        let token = question.token.clone();
        let timing =
            if by == "timeout" { LineTiming::AfterTimeout(token) } else { LineTiming::AfterReply(token) };
        self.change_state_with(writer, to, resolution, timing);
        if is_performed {
            self.invoke_accepted_tool(writer, &question);
        }
    }

    /// Asks about a tool that no other block uses.
    fn ask(&mut self, writer: &mut EventWriter<'_>) -> ScriptedQuestion {
        let risk = writer.choices.pick(&[RiskKind::Irreversible, RiskKind::HighRisk, RiskKind::LowRisk]);
        let question = ScriptedQuestion {
            token: writer.id("rpl_"),
            risk,
            tool: writer.id("transfer_"),
            call: (self.requires_call_ids || writer.choices.flip()).then(|| writer.id("call_")),
            digest: writer.choices.one_in(3).then_some("sha256-2c91a7b4"),
            accept_by_default: risk == RiskKind::LowRisk && writer.choices.flip(),
        };
        let mut payload = vec![
            ("action", sentence(0)),
            ("consequence", sentence(1)),
            ("reply_token", json!(question.token)),
            ("timeout_seconds", json!(1 + writer.choices.below(60))),
            ("default_decision", json!(if question.accept_by_default { "accept" } else { "reject" })),
        ];
        match risk {
            RiskKind::LowRisk if writer.choices.flip() => {
                payload.push(("risk_level", json!(writer.choices.pick(&["low", "medium"]))));
                payload.push(("reversibility", json!("reversible")));
            }
            RiskKind::LowRisk => {}
            RiskKind::HighRisk => {
                payload.extend([("risk_level", json!("high")), ("irreversible", json!(false))]);
                payload.push(("reversibility", json!("reversible_with_effort")));
            }
            RiskKind::Irreversible => {
                payload.push(("irreversible", json!(true)));
                payload.push(("reversibility", json!("irreversible")));
                if writer.choices.flip() {
                    payload.push(("risk_level", json!(writer.choices.pick(&["high", "medium"]))));
                }
            }
        }
        if writer.choices.one_in(3) {
            payload.push(("allowed_replies", json!(["accept", "reject"])));
            payload.push(("extra_context", json!({ "amount": "500.00" })));
        }
        let sayso_extension = question.subject(writer);
        self.emit(writer, "aaep:agent.awaiting.confirmation", payload, sayso_extension, LineTiming::Soon);
        question
    }

    /// Invokes the accepted tool.
    fn invoke_accepted_tool(&mut self, writer: &mut EventWriter<'_>, question: &ScriptedQuestion) {
        let mut payload = vec![("tool", json!(question.tool))];
        match question.risk {
            RiskKind::LowRisk => {}
            RiskKind::HighRisk => payload.push(("risk_level", json!("high"))),
            RiskKind::Irreversible => payload.push(("irreversible", json!(true))),
        }
        if let Some(call) = &question.call {
            payload.push(("tool_call_id", json!(call)));
        }
        let sayso_extension = question.digest.map(|digest| json!({ "action_digest": digest }));
        self.emit(writer, "aaep:agent.tool.invoked", payload, sayso_extension, LineTiming::Soon);
        self.complete_tool(writer, &question.tool, question.call.as_deref());
        self.resume_thinking(writer);
    }

    fn request_clarification(&mut self, writer: &mut EventWriter<'_>) {
        self.change_state(writer, "awaiting_input");
        let token = writer.id("rpl_");
        let choices = json!([
            { "value": "checking", "label": sentence(0) },
            { "value": "savings", "label": sentence(1) },
        ]);
        let (kinds, choices, answer) = match writer.choices.below(7) {
            0 => (None, None, json!("the first, ẹ ṣé 😀")),
            1 => (Some(json!(["freetext"])), None, json!("ekeji")),
            2 => (Some(json!(["yes_no"])), None, json!(true)),
            3 => (Some(json!(["numeric"])), None, json!(12.5)),
            4 => (Some(json!(["multiple_choice"])), Some(choices), json!("savings")),
            5 => (Some(json!(["freetext", "multiple_choice"])), Some(choices), json!("neither")),
            _ => (None, Some(choices), json!("checking")),
        };
        let mut payload = vec![
            ("question", sentence(2)),
            ("reply_token", json!(token)),
            ("timeout_seconds", json!(1 + writer.choices.below(60))),
        ];
        payload.extend(kinds.map(|kinds| ("accepted_response_kinds", kinds)));
        payload.extend(choices.map(|choices| ("choices", choices)));
        if writer.choices.one_in(3) {
            payload.extend([("context", sentence(0)), ("default_response", sentence(1))]);
        }
        self.emit(writer, "aaep:agent.awaiting.clarification", payload, None, LineTiming::Soon);
        let by = if writer.choices.one_in(4) {
            "timeout"
        } else {
            let line = writer.reply("clarification.reply", &token, ("response", answer));
            self.drafts.push(DraftLine { line, timing: LineTiming::Reply(token.clone()) });
            "reply"
        };
        let resolution = writer.choices.flip().then(|| json!({ "reply_token": token, "by": by }));
        let to = writer.choices.pick(&["thinking", "deciding"]);
        let timing =
            if by == "timeout" { LineTiming::AfterTimeout(token) } else { LineTiming::AfterReply(token) };
        self.change_state_with(writer, to, resolution, timing);
    }
}
