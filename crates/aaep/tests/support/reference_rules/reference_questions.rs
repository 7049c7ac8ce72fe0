//! Questions, their answers, and which events the answers permit (chapters 4 and 6; decision 15).

use std::collections::HashSet;

use serde_json::Value;

use super::{ReferenceState, ReferenceStates};
use crate::support::recording_line::{LineKind, RecordingLine};

/// Returns whether every question is asked, answered, reported and acted on as the protocol requires.
pub(crate) fn follows_question_rules(lines: &[RecordingLine]) -> bool {
    let mut questions = ReferenceQuestions::default();
    lines.iter().all(|line| questions.accepts_line(line))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ReferenceStatus {
    Open,
    Accepted { by_default: bool },
    Refused,
    Answered,
}

struct ReferenceQuestion<'l> {
    line: &'l RecordingLine,
    status: ReferenceStatus,
    /// Whether the recorded reply was in time. `None` if there is no reply.
    reply_in_time: Option<bool>,
    /// Whether the reply accepted a modified action. The producer decides whether that counts (§6.3.2).
    is_modified: bool,
    is_reported: bool,
    is_spent: bool,
    /// Whether the question counts as accepted only because the producer continued without a recorded reply. A reply
    /// that is recorded later overrides this.
    is_presumed: bool,
    /// When the producer acted on the presumed acceptance, in milliseconds.
    acted_at: Option<i64>,
}

#[derive(Default)]
struct ReferenceQuestions<'l> {
    questions: Vec<ReferenceQuestion<'l>>,
    states: ReferenceStates<'l>,
    tokens: HashSet<&'l str>,
}

impl<'l> ReferenceQuestions<'l> {
    fn accepts_line(&mut self, line: &'l RecordingLine) -> bool {
        if line.kind() == LineKind::Handshake {
            return true;
        }
        if line.kind().is_reply() {
            return self.handle_reply(line);
        }
        for question in self.session_questions(line).filter(|question| question.is_expired_at(line)) {
            question.status = question.default_status();
        }
        let before = self.states.apply(line);
        match line.kind() {
            LineKind::Confirmation | LineKind::Clarification => self.handle_question(line),
            LineKind::State => self.handle_state_change(line, before),
            LineKind::Handoff => {
                self.mark_reported(line);
                true
            }
            LineKind::ToolInvoked => self.handle_invocation(line),
            LineKind::Completed | LineKind::Errored | LineKind::Cancelled => self.handle_session_end(line),
            _ => true,
        }
    }

    fn session_questions(
        &mut self,
        line: &'l RecordingLine,
    ) -> impl Iterator<Item = &mut ReferenceQuestion<'l>> {
        self.questions.iter_mut().filter(|question| question.line.session() == line.session())
    }

    /// A question needs a new token and must not repeat an action that is being asked about (§6.2.2, §6.1).
    fn handle_question(&mut self, line: &'l RecordingLine) -> bool {
        let is_duplicate = line.kind() == LineKind::Confirmation
            && self.session_questions(line).any(|question| {
                question.status == ReferenceStatus::Open
                    && question.line.agent() == line.agent()
                    && question.line.text("action") == line.text("action")
            });
        self.questions.push(ReferenceQuestion {
            line,
            status: ReferenceStatus::Open,
            reply_in_time: None,
            is_modified: false,
            is_reported: false,
            is_spent: false,
            is_presumed: false,
            acted_at: None,
        });
        self.tokens.insert(line.text("reply_token")) && !is_duplicate
    }

    /// Handles a reply (§6.3.4, §6.5.5). Duplicate and late replies have no effect and break no rule.
    fn handle_reply(&mut self, line: &'l RecordingLine) -> bool {
        let token = line.text("reply_token");
        let Some(question) =
            self.questions.iter_mut().rev().find(|question| question.line.text("reply_token") == token)
        else {
            return false;
        };
        if question.status != ReferenceStatus::Open && !question.is_presumed {
            return true;
        }
        let is_in_time = line.millis() < question.deadline();
        question.reply_in_time = Some(is_in_time);
        if !is_in_time {
            return true;
        }
        if (question.line.kind() == LineKind::Confirmation) != (line.kind() == LineKind::Decision) {
            return false;
        }
        if line.kind() == LineKind::Answer {
            question.status = ReferenceStatus::Answered;
            return response_fits(question.line, line.get("response"));
        }
        let decision = line.text("decision");
        question.is_presumed = false;
        if let Some(acted_at) = question.acted_at {
            return decision == "accept" && !line.has("modified_action") && line.millis() <= acted_at;
        }
        question.is_modified = decision == "accept" && line.has("modified_action");
        question.status = match decision {
            "accept" if !line.has("modified_action") => ReferenceStatus::Accepted { by_default: false },
            _ => ReferenceStatus::Refused,
        };
        let allowed = question.line.get("allowed_replies").and_then(Value::as_array);
        allowed.is_none_or(|allowed| allowed.iter().any(|reply| reply == decision))
    }

    /// Handles a state change. A state change reports how a question was resolved, or resolves the question because
    /// the producer continues.
    fn handle_state_change(&mut self, line: &'l RecordingLine, before: ReferenceState<'l>) -> bool {
        let to = line.text("to_state");
        let reported_token = line.text_at("/extensions/sayso/reply_token");
        if let Some(token) = reported_token {
            let mut matching =
                self.session_questions(line).filter(|question| question.line.text("reply_token") == token);
            return matching.next().is_none_or(|question| {
                let holds = question.apply_reported_resolution(line);
                question.is_reported |= question.status != ReferenceStatus::Open;
                holds
            });
        }
        let earlier_states = [Some(line.text("from_state")), before.reported, before.implied];
        let leaves_awaiting_input =
            earlier_states.contains(&Some("awaiting_input")) && to != "awaiting_input";
        for question in self
            .session_questions(line)
            .filter(|question| leaves_awaiting_input && question.line.agent() == line.agent())
        {
            question.resolve_by_continuing(to);
        }
        self.mark_reported(line);
        true
    }

    /// Marks the producer's own resolved questions as reported, because the producer continued.
    fn mark_reported(&mut self, line: &'l RecordingLine) {
        for question in self.session_questions(line).filter(|question| question.line.agent() == line.agent())
        {
            question.is_reported |= question.status != ReferenceStatus::Open;
        }
    }

    /// Handles the end of a session. A completed session must have reported the outcome of every
    /// question, or have acted on it. Any end invalidates the tokens of open questions (§6.2.2).
    fn handle_session_end(&mut self, line: &'l RecordingLine) -> bool {
        let is_completed = line.kind() == LineKind::Completed;
        let holds = !is_completed
            || self.session_questions(line).all(|question| question.is_reported || question.is_spent);
        for question in
            self.session_questions(line).filter(|question| question.status == ReferenceStatus::Open)
        {
            question.status = question.refused_status();
        }
        holds
    }

    /// Handles a tool invocation (§2.3.5, §4.3.1, §4.5.3). A dangerous call spends an acceptance. A call that
    /// was refused or is being asked about is not allowed.
    fn handle_invocation(&mut self, line: &'l RecordingLine) -> bool {
        let irreversible = line.flag("irreversible") == Some(true);
        let holds = if irreversible || line.text("risk_level") == "high" {
            let accepted = self.session_questions(line).filter(|question| question.covers(line));
            match accepted.max_by_key(|question| {
                let matches_reversibility = !(irreversible && question.declares_reversible());
                (
                    matches_reversibility,
                    !question.was_accepted_by_default() && !question.is_presumed,
                    question.line.agent() == line.agent(),
                )
            }) {
                Some(question) => {
                    question.is_spent = true;
                    if question.is_presumed {
                        question.acted_at = Some(line.millis());
                    }
                    !(irreversible && (question.was_accepted_by_default() || question.declares_reversible()))
                }
                None => false,
            }
        } else {
            let is_covered = self.session_questions(line).any(|question| question.covers(line));
            !self.session_questions(line).any(|question| question.forbids(line, is_covered))
        };
        for question in self.session_questions(line) {
            question.is_reported |= matches!(question.status, ReferenceStatus::Accepted { .. });
        }
        holds
    }
}

impl ReferenceQuestion<'_> {
    fn deadline(&self) -> i64 {
        self.line.millis() + self.line.number("timeout_seconds").unwrap_or(0) * 1000
    }

    fn is_expired_at(&self, line: &RecordingLine) -> bool {
        self.status == ReferenceStatus::Open && line.millis() >= self.deadline()
    }

    fn is_confirmation(&self) -> bool {
        self.line.kind() == LineKind::Confirmation
    }

    /// Returns the status of a question that was not accepted. A clarification counts as answered.
    fn refused_status(&self) -> ReferenceStatus {
        if self.is_confirmation() { ReferenceStatus::Refused } else { ReferenceStatus::Answered }
    }

    fn default_status(&self) -> ReferenceStatus {
        let accept = self.line.text("default_decision") == "accept";
        if accept { ReferenceStatus::Accepted { by_default: true } } else { self.refused_status() }
    }

    fn was_accepted_by_default(&self) -> bool {
        self.status == ReferenceStatus::Accepted { by_default: true }
    }

    /// Returns whether the resolution that an event reports agrees with what happened (decision 15). If nothing
    /// certain is known about the answer yet, adopts the reported resolution.
    fn apply_reported_resolution(&mut self, line: &RecordingLine) -> bool {
        let by = line.text_at("/extensions/sayso/by");
        let decision = line.text_at("/extensions/sayso/decision");
        let accepted = decision == Some("accept");
        let was_accepted = matches!(self.status, ReferenceStatus::Accepted { .. });
        let is_early_timeout = by == Some("timeout") && line.millis() < self.deadline();
        let differs_from_default = self.is_confirmation()
            && matches!(by, Some("timeout" | "closure" | "unreachable"))
            && accepted != (self.default_status() == ReferenceStatus::Accepted { by_default: true });
        let differs_from_reply = self.reply_in_time == Some(true)
            && !self.is_modified
            && decision.is_some()
            && accepted != was_accepted;
        let is_late_reply = self.reply_in_time == Some(false) && by == Some("reply") && accepted;
        if self.acted_at.is_some() {
            return accepted && by == Some("reply");
        }
        if self.status == ReferenceStatus::Open
            || self.is_presumed
            || self.reply_in_time.is_none() && by == Some("reply")
        {
            let by_default = by != Some("reply");
            self.status =
                if accepted { ReferenceStatus::Accepted { by_default } } else { self.refused_status() };
        }
        !(is_early_timeout || differs_from_default || differs_from_reply || is_late_reply)
    }

    /// Resolves an open question because the producer continued. The question counts as accepted if the new state is
    /// `calling_tool` and no reply is recorded, and otherwise as refused.
    fn resolve_by_continuing(&mut self, to: &str) {
        if self.status != ReferenceStatus::Open {
            return;
        }
        let accepted = self.is_confirmation() && to == "calling_tool" && self.reply_in_time.is_none();
        self.status =
            if accepted { ReferenceStatus::Accepted { by_default: false } } else { self.refused_status() };
        self.is_presumed = accepted;
    }

    /// Returns whether the question states that the action can be undone (C-B5).
    fn declares_reversible(&self) -> bool {
        match self.line.flag("irreversible") {
            Some(irreversible) => !irreversible,
            None => self.line.text("reversibility") == "reversible",
        }
    }

    fn sayso_text(&self, member: &str) -> Option<&str> {
        self.line.text_at(&format!("/extensions/sayso/{member}"))
    }

    /// Returns whether this is an unspent acceptance of this call. Only what the question specifies about the call is
    /// compared.
    fn covers(&self, call: &RecordingLine) -> bool {
        let digest = call.text_at("/extensions/sayso/action_digest");
        matches!(self.status, ReferenceStatus::Accepted { .. })
            && self.is_confirmation()
            && !self.is_spent
            && self.sayso_text("tool").is_none_or(|tool| tool == call.text("tool"))
            && self.sayso_text("tool_call_id").is_none_or(|id| id == call.text("tool_call_id"))
            && self.sayso_text("action_digest").is_none_or(|bound| digest == Some(bound))
    }

    /// Returns whether the question forbids a call, because the question is still open or was refused. `is_covered`
    /// says whether another question covers the call.
    fn forbids(&self, call: &RecordingLine, is_covered: bool) -> bool {
        let names_tool = self.sayso_text("tool") == Some(call.text("tool"));
        let digest = call.text_at("/extensions/sayso/action_digest");
        let names_this_call =
            self.sayso_text("tool_call_id").is_some_and(|id| id == call.text("tool_call_id"))
                || self.sayso_text("action_digest").is_some_and(|bound| digest == Some(bound));
        match self.status {
            _ if !self.is_confirmation() => false,
            ReferenceStatus::Open => names_tool,
            ReferenceStatus::Refused if self.is_reported => names_this_call && !is_covered,
            ReferenceStatus::Refused => names_tool || self.line.agent() == call.agent(),
            _ => false,
        }
    }
}

/// Returns whether a response is of a kind that the question accepts (§6.5.2, C-D6).
fn response_fits(question: &RecordingLine, response: Option<&Value>) -> bool {
    let kinds = question.get("accepted_response_kinds").and_then(Value::as_array);
    let accepts_kind = |kind: &str| kinds.is_some_and(|kinds| kinds.iter().any(|accepted| accepted == kind));
    let choices = question.get("choices").and_then(Value::as_array);
    match response {
        Some(Value::Bool(_)) => accepts_kind("yes_no"),
        Some(Value::Number(_)) => accepts_kind("numeric"),
        Some(Value::String(text)) => {
            let is_choice =
                choices.is_some_and(|choices| choices.iter().any(|choice| choice["value"] == **text));
            kinds.is_none() || accepts_kind("freetext") || accepts_kind("multiple_choice") && is_choice
        }
        _ => false,
    }
}
