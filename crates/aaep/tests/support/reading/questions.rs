//! Questions, their answers, and what may be done after them (digest, sections 4 and 7; design, decision 15).

use std::collections::HashSet;

use serde_json::Value;

use super::{State, States};
use crate::support::line::{Kind, Line};

/// Whether every question is asked, answered, shown and acted upon as the protocol wants.
pub(crate) fn questions_hold(lines: &[Line]) -> bool {
    let mut book = Book::default();
    lines.iter().all(|line| book.takes(line))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    Open,
    Accepted { by_silence: bool },
    Refused,
    Answered,
}

struct Question<'l> {
    line: &'l Line,
    status: Status,
    /// A reply stands in the recording, in time or too late.
    reply: Option<bool>,
    /// The reply accepted something else: whether that counts is the producer's to say (§6.3.2).
    modified: bool,
    shown: bool,
    spent: bool,
    /// Accepted only because the producer went on and no reply is recorded; one that is recorded later overrules it.
    presumed: bool,
    /// When it was acted on by that presumption.
    acted: Option<i64>,
}

#[derive(Default)]
struct Book<'l> {
    questions: Vec<Question<'l>>,
    states: States<'l>,
    tokens: HashSet<&'l str>,
}

impl<'l> Book<'l> {
    fn takes(&mut self, line: &'l Line) -> bool {
        if line.kind() == Kind::Handshake {
            return true;
        }
        if line.kind().is_reply() {
            return self.reply(line);
        }
        for question in self.of_session(line).filter(|question| question.is_over_at(line)) {
            question.status = question.default();
        }
        let before = self.states.pass(line);
        match line.kind() {
            Kind::Confirmation | Kind::Clarification => self.asked(line),
            Kind::State => self.state(line, before),
            Kind::Handoff => {
                self.show(line);
                true
            }
            Kind::Invoked => self.invoked(line),
            Kind::Completed | Kind::Errored | Kind::Cancelled => self.ended(line),
            _ => true,
        }
    }

    fn of_session(&mut self, line: &'l Line) -> impl Iterator<Item = &mut Question<'l>> {
        self.questions.iter_mut().filter(|question| question.line.session() == line.session())
    }

    /// §6.2.2, §6.1: a new token, and not the same action while it is being asked about.
    fn asked(&mut self, line: &'l Line) -> bool {
        let twice = line.kind() == Kind::Confirmation
            && self.of_session(line).any(|question| {
                question.status == Status::Open
                    && question.line.agent() == line.agent()
                    && question.line.text("action") == line.text("action")
            });
        self.questions.push(Question {
            line,
            status: Status::Open,
            reply: None,
            modified: false,
            shown: false,
            spent: false,
            presumed: false,
            acted: None,
        });
        self.tokens.insert(line.text("reply_token")) && !twice
    }

    /// §6.3.4, §6.5.5. What comes twice or too late has no effect, and is nobody's fault.
    fn reply(&mut self, line: &'l Line) -> bool {
        let token = line.text("reply_token");
        let Some(question) = self.questions.iter_mut().rev().find(|it| it.line.text("reply_token") == token)
        else {
            return false;
        };
        if question.status != Status::Open && !question.presumed {
            return true;
        }
        let in_time = line.millis() < question.deadline();
        question.reply = Some(in_time);
        if !in_time {
            return true;
        }
        if (question.line.kind() == Kind::Confirmation) != (line.kind() == Kind::Decision) {
            return false;
        }
        if line.kind() == Kind::Answer {
            question.status = Status::Answered;
            return fits(question.line, line.get("response"));
        }
        let decision = line.text("decision");
        question.presumed = false;
        if let Some(acted) = question.acted {
            return decision == "accept" && !line.has("modified_action") && line.millis() <= acted;
        }
        question.modified = decision == "accept" && line.has("modified_action");
        question.status = match decision {
            "accept" if !line.has("modified_action") => Status::Accepted { by_silence: false },
            _ => Status::Refused,
        };
        let allowed = question.line.get("allowed_replies").and_then(Value::as_array);
        allowed.is_none_or(|allowed| allowed.iter().any(|word| word == decision))
    }

    /// It tells how a question was resolved, or resolves by going on, and shows what is resolved.
    fn state(&mut self, line: &'l Line, before: State<'l>) -> bool {
        let to = line.text("to_state");
        let told = line.text_at("/extensions/sayso/reply_token");
        if let Some(token) = told {
            let mut asked = self.of_session(line).filter(|it| it.line.text("reply_token") == token);
            return asked.next().is_none_or(|question| {
                let holds = question.told(line);
                question.shown |= question.status != Status::Open;
                holds
            });
        }
        let was = [Some(line.text("from_state")), before.said, before.implied];
        let leaves = was.contains(&Some("awaiting_input")) && to != "awaiting_input";
        for question in self.of_session(line).filter(|it| leaves && it.line.agent() == line.agent()) {
            question.passed_over(to);
        }
        self.show(line);
        true
    }

    /// A producer that goes on shows what has come of its own questions.
    fn show(&mut self, line: &'l Line) {
        for question in self.of_session(line).filter(|question| question.line.agent() == line.agent()) {
            question.shown |= question.status != Status::Open;
        }
    }

    /// A session that ends well has shown how every question ended; any end lets the open ones' tokens die (§6.2.2).
    fn ended(&mut self, line: &'l Line) -> bool {
        let well = line.kind() == Kind::Completed;
        let holds = !well || self.of_session(line).all(|question| question.shown || question.spent);
        for question in self.of_session(line).filter(|question| question.status == Status::Open) {
            question.status = question.refusal();
        }
        holds
    }

    /// §2.3.5, §4.3.1, §4.5.3: what is dangerous spends an acceptance; what was refused, or is being asked about, is
    /// not done.
    fn invoked(&mut self, line: &'l Line) -> bool {
        let irreversible = line.flag("irreversible") == Some(true);
        let holds = if irreversible || line.text("risk_level") == "high" {
            let accepted = self.of_session(line).filter(|question| question.covers(line));
            match accepted.max_by_key(|it| {
                let true_to_it = !(irreversible && it.says_reversible());
                (true_to_it, !it.by_silence() && !it.presumed, it.line.agent() == line.agent())
            }) {
                Some(question) => {
                    question.spent = true;
                    if question.presumed {
                        question.acted = Some(line.millis());
                    }
                    !(irreversible && (question.by_silence() || question.says_reversible()))
                }
                None => false,
            }
        } else {
            let accepted = self.of_session(line).any(|question| question.covers(line));
            !self.of_session(line).any(|question| question.forbids(line, accepted))
        };
        for question in self.of_session(line) {
            question.shown |= matches!(question.status, Status::Accepted { .. });
        }
        holds
    }
}

impl Question<'_> {
    fn deadline(&self) -> i64 {
        self.line.millis() + self.line.number("timeout_seconds").unwrap_or(0) * 1000
    }

    fn is_over_at(&self, line: &Line) -> bool {
        self.status == Status::Open && line.millis() >= self.deadline()
    }

    fn is_confirmation(&self) -> bool {
        self.line.kind() == Kind::Confirmation
    }

    fn refusal(&self) -> Status {
        if self.is_confirmation() { Status::Refused } else { Status::Answered }
    }

    fn default(&self) -> Status {
        let accept = self.line.text("default_decision") == "accept";
        if accept { Status::Accepted { by_silence: true } } else { self.refusal() }
    }

    fn by_silence(&self) -> bool {
        self.status == Status::Accepted { by_silence: true }
    }

    /// Whether what an event tells of this question agrees with what happened (design, decision 15).
    fn told(&mut self, line: &Line) -> bool {
        let by = line.text_at("/extensions/sayso/by");
        let decision = line.text_at("/extensions/sayso/decision");
        let accepted = decision == Some("accept");
        let was_accepted = matches!(self.status, Status::Accepted { .. });
        let too_early = by == Some("timeout") && line.millis() < self.deadline();
        let not_the_default = self.is_confirmation()
            && matches!(by, Some("timeout" | "closure" | "unreachable"))
            && accepted != (self.default() == Status::Accepted { by_silence: true });
        let another_reply =
            self.reply == Some(true) && !self.modified && decision.is_some() && accepted != was_accepted;
        let too_late = self.reply == Some(false) && by == Some("reply") && accepted;
        if self.acted.is_some() {
            return accepted && by == Some("reply");
        }
        if self.status == Status::Open || self.presumed || self.reply.is_none() && by == Some("reply") {
            let by_silence = by != Some("reply");
            self.status = if accepted { Status::Accepted { by_silence } } else { self.refusal() };
        }
        !(too_early || not_the_default || another_reply || too_late)
    }

    /// Going on to calling_tool counts as accepted where no reply is recorded.
    fn passed_over(&mut self, to: &str) {
        if self.status != Status::Open {
            return;
        }
        let accepted = self.is_confirmation() && to == "calling_tool" && self.reply.is_none();
        self.status = if accepted { Status::Accepted { by_silence: false } } else { self.refusal() };
        self.presumed = accepted;
    }

    /// The person was told that it can be undone (C-B5).
    fn says_reversible(&self) -> bool {
        match self.line.flag("irreversible") {
            Some(irreversible) => !irreversible,
            None => self.line.text("reversibility") == "reversible",
        }
    }

    fn names(&self, member: &str) -> Option<&str> {
        self.line.text_at(&format!("/extensions/sayso/{member}"))
    }

    /// An acceptance of this very call, as far as the question says.
    fn covers(&self, call: &Line) -> bool {
        let digest = call.text_at("/extensions/sayso/action_digest");
        matches!(self.status, Status::Accepted { .. })
            && self.is_confirmation()
            && !self.spent
            && self.names("tool").is_none_or(|tool| tool == call.text("tool"))
            && self.names("tool_call_id").is_none_or(|id| id == call.text("tool_call_id"))
            && self.names("action_digest").is_none_or(|named| digest == Some(named))
    }

    fn forbids(&self, call: &Line, accepted: bool) -> bool {
        let named = self.names("tool") == Some(call.text("tool"));
        let digest = call.text_at("/extensions/sayso/action_digest");
        let very_call = self.names("tool_call_id").is_some_and(|id| id == call.text("tool_call_id"))
            || self.names("action_digest").is_some_and(|named| digest == Some(named));
        match self.status {
            _ if !self.is_confirmation() => false,
            Status::Open => named,
            Status::Refused if self.shown => very_call && !accepted,
            Status::Refused => named || self.line.agent() == call.agent(),
            _ => false,
        }
    }
}

/// Whether a response is of a kind that the question takes (§6.5.2, C-D6).
fn fits(question: &Line, response: Option<&Value>) -> bool {
    let kinds = question.get("accepted_response_kinds").and_then(Value::as_array);
    let takes = |kind: &str| kinds.is_some_and(|kinds| kinds.iter().any(|it| it == kind));
    let choices = question.get("choices").and_then(Value::as_array);
    match response {
        Some(Value::Bool(_)) => takes("yes_no"),
        Some(Value::Number(_)) => takes("numeric"),
        Some(Value::String(text)) => {
            let chosen = choices.is_some_and(|choices| choices.iter().any(|it| it["value"] == **text));
            kinds.is_none() || takes("freetext") || takes("multiple_choice") && chosen
        }
        _ => false,
    }
}
