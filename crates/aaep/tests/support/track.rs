//! What one producer does in a session: blocks of events, one after another, each lawful where it stands.

use serde_json::{Value, json};

use super::line::Line;
use super::scribe::{Members, Scribe, Voice, piece, sentence};

/// A line that waits for its time.
pub(crate) struct Draft {
    pub(crate) line: Line,
    pub(crate) pace: Pace,
}

/// When a line may stand, beyond following the one before it.
pub(crate) enum Pace {
    Soon,
    /// A reply, after its question and in time.
    Answers(String),
    /// The event after a reply; the question's time is not over yet.
    Settles(String),
    /// The event that shows that a question's time is over.
    Expires(String),
}

/// How a question ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    AcceptAndAct,
    AcceptOnly,
    Reject,
    Timeout,
    /// Open until the session fails or is stopped.
    Never,
}

/// How much the person has to lose.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Danger {
    Mild,
    HighRisk,
    Irreversible,
}

/// A confirmation, as its block goes on.
struct Asked {
    token: String,
    danger: Danger,
    tool: String,
    call: Option<String>,
    digest: Option<&'static str>,
    accept_by_default: bool,
}

impl Asked {
    /// What the question says it is about: nothing, the tool, the call, or the exact action.
    fn about(&self, scribe: &mut Scribe<'_>) -> Option<Value> {
        if let Some(digest) = self.digest {
            return Some(json!({ "tool": self.tool, "action_digest": digest }));
        }
        match (scribe.choices.below(3), &self.call) {
            (0, _) => None,
            (1, Some(call)) => Some(json!({ "tool": self.tool, "tool_call_id": call })),
            _ => Some(json!({ "tool": self.tool })),
        }
    }
}

pub(crate) struct Track {
    voice: Voice,
    state: String,
    percent: u64,
    /// Calls carry ids: always where several tools could run at once.
    with_ids: bool,
    nameless_output_is_over: bool,
    pub(crate) drafts: Vec<Draft>,
}

impl Track {
    pub(crate) fn new(voice: Voice, with_ids: bool) -> Self {
        Self {
            voice,
            state: "idle".to_owned(),
            percent: 0,
            with_ids,
            nameless_output_is_over: false,
            drafts: Vec::new(),
        }
    }

    /// One block of work.
    pub(crate) fn work(&mut self, scribe: &mut Scribe<'_>) {
        match scribe.choices.below(8) {
            0 => self.think(scribe),
            1 => self.progress(scribe),
            2 => self.tools(scribe),
            3 => self.outputs(scribe),
            4 | 5 => self.confirmation(scribe, false),
            6 => self.clarification(scribe),
            _ => match scribe.choices.below(3) {
                0 => self.handoff(scribe),
                1 => self.note(scribe),
                _ => self.tools(scribe),
            },
        }
    }

    /// A question that stays open until the session fails or is stopped.
    pub(crate) fn ask_in_vain(&mut self, scribe: &mut Scribe<'_>) {
        self.confirmation(scribe, true);
    }

    fn say(
        &mut self,
        scribe: &mut Scribe<'_>,
        name: &str,
        payload: Members,
        ours: Option<Value>,
        pace: Pace,
    ) {
        let line = scribe.event(&self.voice, name, payload, ours);
        self.drafts.push(Draft { line, pace });
    }

    fn go(&mut self, scribe: &mut Scribe<'_>, to: &str) {
        self.settle(scribe, to, None, Pace::Soon);
    }

    /// `agent.state.changed`, unless the agent is there already and nothing waits to be shown.
    fn settle(&mut self, scribe: &mut Scribe<'_>, to: &str, ours: Option<Value>, pace: Pace) {
        if self.state == to {
            return;
        }
        let mut payload = vec![("from_state", json!(self.state)), ("to_state", json!(to))];
        if scribe.choices.rarely(4) {
            payload.push(("expected_duration_ms", json!(1500)));
        }
        to.clone_into(&mut self.state);
        self.say(scribe, "aaep:agent.state.changed", payload, ours, pace);
    }

    fn think(&mut self, scribe: &mut Scribe<'_>) {
        let to = scribe.choices.of(&["thinking", "deciding", "idle", "ronú jinlẹ̀"]);
        self.go(scribe, to);
    }

    fn rest(&mut self, scribe: &mut Scribe<'_>) {
        let to = scribe.choices.of(&["thinking", "deciding"]);
        self.go(scribe, to);
    }

    fn progress(&mut self, scribe: &mut Scribe<'_>) {
        self.percent = if self.percent > 90 { 0 } else { self.percent + 5 };
        let (progress, eta) = match scribe.choices.below(3) {
            0 => (json!({ "percent": self.percent }), false),
            1 => (json!({ "step": 1, "total_steps": 3, "description": sentence(0) }), true),
            _ => (json!({ "percent": self.percent, "description": sentence(1) }), true),
        };
        let mut payload = vec![("progress", progress)];
        if eta {
            payload.push(("eta_ms", json!(60_000)));
        }
        self.say(scribe, "aaep:agent.progress.updated", payload, None, Pace::Soon);
    }

    /// Harmless tools, several at once where they have ids.
    fn tools(&mut self, scribe: &mut Scribe<'_>) {
        self.go(scribe, "calling_tool");
        let with_ids = self.with_ids || scribe.choices.flip();
        let mut running = Vec::new();
        for _ in 0..=scribe.choices.below(3) {
            if !with_ids || scribe.choices.flip() {
                self.complete_one(scribe, &mut running);
            }
            let tool = scribe.choices.of(&["fetch_balance", "search.web", "_calc-1"]).to_owned();
            let call = with_ids.then(|| scribe.id("call_"));
            let mut payload = vec![("tool", json!(tool))];
            match scribe.choices.below(4) {
                0 => payload.push(("risk_level", json!(scribe.choices.of(&["low", "medium"])))),
                1 => payload.push(("irreversible", json!(false))),
                2 => payload.extend([("description", sentence(0)), ("args_summary", sentence(1))]),
                _ => {}
            }
            if let Some(call) = &call {
                payload.push(("tool_call_id", json!(call)));
            }
            self.say(scribe, "aaep:agent.tool.invoked", payload, None, Pace::Soon);
            running.push((tool, call));
            if scribe.choices.rarely(5) {
                self.progress(scribe);
            }
        }
        while !running.is_empty() {
            self.complete_one(scribe, &mut running);
        }
        if scribe.choices.flip() {
            self.rest(scribe);
        }
    }

    fn complete_one(&mut self, scribe: &mut Scribe<'_>, running: &mut Vec<(String, Option<String>)>) {
        if running.is_empty() {
            return;
        }
        let (tool, call) = running.remove(scribe.choices.below(running.len()));
        self.completed(scribe, &tool, call.as_deref());
    }

    fn completed(&mut self, scribe: &mut Scribe<'_>, tool: &str, call: Option<&str>) {
        let status = scribe.choices.of(&["success", "success", "error", "timeout"]);
        let mut payload = vec![("tool", json!(tool)), ("status", json!(status))];
        if status != "success" {
            payload.push(("error_message", sentence(1)));
        }
        if let Some(call) = call {
            payload.push(("tool_call_id", json!(call)));
        }
        if scribe.choices.rarely(3) {
            payload.push(("duration_ms", json!(400)));
        }
        self.say(scribe, "aaep:agent.tool.completed", payload, None, Pace::Soon);
    }

    /// One or two outputs, their chunks mixed; one without an id comes once and alone.
    fn outputs(&mut self, scribe: &mut Scribe<'_>) {
        self.go(scribe, "writing_output");
        let nameless = !self.nameless_output_is_over && scribe.choices.flip();
        self.nameless_output_is_over |= nameless;
        let mut open: Vec<_> = match (nameless, scribe.choices.flip()) {
            (true, _) => vec![None],
            (false, true) => vec![Some(scribe.id("out_")), Some(scribe.id("out_"))],
            (false, false) => vec![Some(scribe.id("out_"))],
        }
        .into_iter()
        .map(|id| (id, 0))
        .collect();
        while !open.is_empty() {
            let which = scribe.choices.below(open.len());
            let complete = scribe.choices.below(3) == 0;
            let (id, position) = &mut open[which];
            let length = self.chunk(scribe, id.as_deref(), *position, complete);
            *position += length;
            if complete {
                open.remove(which);
            }
        }
        if scribe.choices.flip() {
            self.rest(scribe);
        }
    }

    /// Says a chunk; returns its length in code points.
    fn chunk(&mut self, scribe: &mut Scribe<'_>, id: Option<&str>, position: usize, complete: bool) -> usize {
        let which = scribe.choices.below(3);
        let (chunk, must_hint) = match scribe.choices.below(4) {
            0 | 1 => (piece(which), true),
            2 => (sentence(which), false),
            _ => (json!(""), false),
        };
        let mut payload =
            vec![("chunk", chunk), ("position", json!(position)), ("complete", json!(complete))];
        if must_hint && !complete || scribe.choices.flip() {
            let hint = scribe.choices.of(&["word", "sentence", "none", "paragraph", "completion"]);
            payload.push(("coalesce_hint", json!(hint)));
        }
        if let Some(id) = id {
            payload.push(("output_id", json!(id)));
        }
        if scribe.choices.rarely(4) {
            payload.extend([("content_type", json!("text/markdown")), ("language", json!("yo-NG"))]);
        }
        self.say(scribe, "aaep:agent.output.streaming", payload, None, Pace::Soon);
        self.drafts.last().map_or(0, |draft| draft.line.text("chunk").chars().count())
    }

    fn handoff(&mut self, scribe: &mut Scribe<'_>) {
        // The handoff implies the state too (C-B7), but the first change of a session comes from idle.
        if self.state == "idle" || scribe.choices.flip() {
            self.go(scribe, "handing_off");
        }
        let mut payload = vec![
            ("reason", sentence(0)),
            ("target_kind", json!(scribe.choices.of(&["human", "specialist_agent", "escalation_queue"]))),
        ];
        if scribe.choices.flip() {
            payload.push(("target_uri", json!("queue://customer-service/advisor")));
            payload.push(("packaged_context", json!({ "amount": "500.00" })));
            payload.push(("urgency_for_handoff", json!("high")));
        }
        self.say(scribe, "aaep:agent.handoff.requested", payload, None, Pace::Soon);
        "handing_off".clone_into(&mut self.state);
        self.rest(scribe);
    }

    /// An event of our own extension, with a member of its own (C-G6).
    fn note(&mut self, scribe: &mut Scribe<'_>) {
        self.say(scribe, "sayso:note.written", vec![("note", json!({ "pinned": true }))], None, Pace::Soon);
    }

    fn confirmation(&mut self, scribe: &mut Scribe<'_>, in_vain: bool) {
        self.go(scribe, "awaiting_input");
        let asked = self.ask(scribe);
        if scribe.choices.rarely(4) {
            self.progress(scribe);
        }
        let outcome = match scribe.choices.below(5) {
            _ if in_vain => Outcome::Never,
            0 | 1 => Outcome::AcceptAndAct,
            2 => Outcome::Reject,
            3 => Outcome::Timeout,
            _ => Outcome::AcceptOnly,
        };
        let accepted = match outcome {
            Outcome::Never => return,
            Outcome::AcceptAndAct | Outcome::AcceptOnly => true,
            Outcome::Reject => false,
            Outcome::Timeout => asked.accept_by_default,
        };
        let act = accepted && outcome != Outcome::AcceptOnly;
        let word = if accepted { "accept" } else { "reject" };
        let by = if outcome == Outcome::Timeout {
            "timeout"
        } else {
            let line = scribe.reply("confirmation.reply", &asked.token, ("decision", json!(word)));
            self.drafts.push(Draft { line, pace: Pace::Answers(asked.token.clone()) });
            "reply"
        };
        let told =
            scribe.choices.flip().then(|| json!({ "reply_token": asked.token, "decision": word, "by": by }));
        let to = if act { "calling_tool" } else { scribe.choices.of(&["thinking", "deciding"]) };
        let token = asked.token.clone();
        let pace = if by == "timeout" { Pace::Expires(token) } else { Pace::Settles(token) };
        self.settle(scribe, to, told, pace);
        if act {
            self.act(scribe, &asked);
        }
    }

    /// Asks about a tool that nobody else uses.
    fn ask(&mut self, scribe: &mut Scribe<'_>) -> Asked {
        let danger = scribe.choices.of(&[Danger::Irreversible, Danger::HighRisk, Danger::Mild]);
        let asked = Asked {
            token: scribe.id("rpl_"),
            danger,
            tool: scribe.id("transfer_"),
            call: (self.with_ids || scribe.choices.flip()).then(|| scribe.id("call_")),
            digest: scribe.choices.rarely(3).then_some("sha256-2c91a7b4"),
            accept_by_default: danger == Danger::Mild && scribe.choices.flip(),
        };
        let mut payload = vec![
            ("action", sentence(0)),
            ("consequence", sentence(1)),
            ("reply_token", json!(asked.token)),
            ("timeout_seconds", json!(1 + scribe.choices.below(60))),
            ("default_decision", json!(if asked.accept_by_default { "accept" } else { "reject" })),
        ];
        match danger {
            Danger::Mild if scribe.choices.flip() => {
                payload.push(("risk_level", json!(scribe.choices.of(&["low", "medium"]))));
                payload.push(("reversibility", json!("reversible")));
            }
            Danger::Mild => {}
            Danger::HighRisk => {
                payload.extend([("risk_level", json!("high")), ("irreversible", json!(false))]);
                payload.push(("reversibility", json!("reversible_with_effort")));
            }
            Danger::Irreversible => {
                payload.push(("irreversible", json!(true)));
                payload.push(("reversibility", json!("irreversible")));
                if scribe.choices.flip() {
                    payload.push(("risk_level", json!(scribe.choices.of(&["high", "medium"]))));
                }
            }
        }
        if scribe.choices.rarely(3) {
            payload.push(("allowed_replies", json!(["accept", "reject"])));
            payload.push(("extra_context", json!({ "amount": "500.00" })));
        }
        let ours = asked.about(scribe);
        self.say(scribe, "aaep:agent.awaiting.confirmation", payload, ours, Pace::Soon);
        asked
    }

    /// Does what was accepted.
    fn act(&mut self, scribe: &mut Scribe<'_>, asked: &Asked) {
        let mut payload = vec![("tool", json!(asked.tool))];
        match asked.danger {
            Danger::Mild => {}
            Danger::HighRisk => payload.push(("risk_level", json!("high"))),
            Danger::Irreversible => payload.push(("irreversible", json!(true))),
        }
        if let Some(call) = &asked.call {
            payload.push(("tool_call_id", json!(call)));
        }
        let ours = asked.digest.map(|digest| json!({ "action_digest": digest }));
        self.say(scribe, "aaep:agent.tool.invoked", payload, ours, Pace::Soon);
        self.completed(scribe, &asked.tool, asked.call.as_deref());
        self.rest(scribe);
    }

    fn clarification(&mut self, scribe: &mut Scribe<'_>) {
        self.go(scribe, "awaiting_input");
        let token = scribe.id("rpl_");
        let choices = json!([
            { "value": "checking", "label": sentence(0) },
            { "value": "savings", "label": sentence(1) },
        ]);
        let (kinds, choices, answer) = match scribe.choices.below(7) {
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
            ("timeout_seconds", json!(1 + scribe.choices.below(60))),
        ];
        payload.extend(kinds.map(|kinds| ("accepted_response_kinds", kinds)));
        payload.extend(choices.map(|choices| ("choices", choices)));
        if scribe.choices.rarely(3) {
            payload.extend([("context", sentence(0)), ("default_response", sentence(1))]);
        }
        self.say(scribe, "aaep:agent.awaiting.clarification", payload, None, Pace::Soon);
        let by = if scribe.choices.rarely(4) {
            "timeout"
        } else {
            let line = scribe.reply("clarification.reply", &token, ("response", answer));
            self.drafts.push(Draft { line, pace: Pace::Answers(token.clone()) });
            "reply"
        };
        let told = scribe.choices.flip().then(|| json!({ "reply_token": token, "by": by }));
        let to = scribe.choices.of(&["thinking", "deciding"]);
        let pace = if by == "timeout" { Pace::Expires(token) } else { Pace::Settles(token) };
        self.settle(scribe, to, told, pace);
    }
}
