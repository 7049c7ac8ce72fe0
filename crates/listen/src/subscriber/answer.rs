//! The person's answers to questions, and the outcomes of questions.

use aaep::event::{AgentState, Decision, Event, ResponseKind, StateChanged};
use aaep::message::{
    ClarificationReply, ClarificationResponse, ConfirmationReply, DeadlineExtend, Message, SessionStop,
};
use aaep::{SessionId, Timestamp, consent};
use seal::UnixMillis;

use super::announce::event_announcement;
use super::question::{ListenerQuestion, QuestionBody};
use super::question_call::QuestionCall;
use super::{OVERDUE_GRACE_MS, Subscriber, hub_extension_texts, wording};
use crate::announcement_text::TextPart::{Agent, Composed, Sayso};
use crate::phrases::TypedCommand;
use crate::{Announcement, AnnouncementKind, AnnouncementText, Phrases};

/// Why an answer could not be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnswerError {
    /// No question with that number is open.
    NotOpen,
    /// The person has already answered the question. Only one answer counts.
    AlreadyAnswered,
    /// The question does not accept this answer.
    UnsupportedAnswer,
    /// There is no subscription to reply with.
    NotConnected,
    /// The question's deadline cannot be extended any further.
    ExtensionExhausted,
    /// The hub's manifest is invalid, so only a rejection is sent.
    UntrustedHub,
}

impl AnswerError {
    pub(crate) fn describe(self, phrases: &Phrases) -> &'static str {
        match self {
            Self::NotOpen => phrases.not_open,
            Self::AlreadyAnswered => phrases.already_answered,
            Self::UnsupportedAnswer => phrases.answer_not_accepted,
            Self::NotConnected => phrases.not_connected,
            Self::ExtensionExhausted => phrases.deadline_not_extendable,
            Self::UntrustedHub => phrases.not_trusted,
        }
    }
}

/// For this long after a question closes unexpectedly, an answer without a number is not applied to another question, in
/// milliseconds.
pub(super) const UNEXPECTED_CLOSE_GUARD_MS: i64 = 3000;

impl Subscriber {
    /// Answers a confirmation and returns the message to send. Only one answer is accepted.
    pub fn answer_confirmation(
        &mut self,
        number: u32,
        decision: Decision,
        now: UnixMillis,
    ) -> Result<String, AnswerError> {
        let (index, timestamp) = self.find_answerable(number, now)?;
        if decision != Decision::Reject {
            self.ensure_trusted()?;
        }
        let subscription = self.subscription_id.clone().ok_or(AnswerError::NotConnected)?;
        let question = self.questions.get_mut(index).ok_or(AnswerError::NotOpen)?;
        let QuestionBody::Confirmation { may_accept, may_reject, .. } = question.body else {
            return Err(AnswerError::UnsupportedAnswer);
        };
        let is_allowed = match decision {
            Decision::Accept => may_accept,
            Decision::Reject => may_reject,
            _ => false,
        };
        if !is_allowed {
            return Err(AnswerError::UnsupportedAnswer);
        }
        question.is_answered = true;
        question.decision = Some(decision.clone());
        let reply = ConfirmationReply::new(question.reply_token.clone(), decision, subscription, timestamp);
        self.track_answer_target(now);
        Ok(Message::ConfirmationReply(reply).to_json())
    }

    /// Answers a clarification and returns the message to send. The input is matched against the question's choices by value, label
    /// or number.
    pub fn answer_clarification(
        &mut self,
        number: u32,
        input: &str,
        now: UnixMillis,
    ) -> Result<String, AnswerError> {
        let (index, timestamp) = self.find_answerable(number, now)?;
        self.ensure_trusted()?;
        let subscription = self.subscription_id.clone().ok_or(AnswerError::NotConnected)?;
        let question = self.questions.get_mut(index).ok_or(AnswerError::NotOpen)?;
        let response =
            parse_response(self.phrases, question, input.trim()).ok_or(AnswerError::UnsupportedAnswer)?;
        question.is_answered = true;
        let reply = ClarificationReply::new(question.reply_token.clone(), response, subscription, timestamp);
        self.track_answer_target(now);
        Ok(Message::ClarificationReply(reply).to_json())
    }

    /// Requests as much additional time as the question had at first, and returns the message to send. The hub decides whether to
    /// grant it.
    pub fn request_more_time(&mut self, number: u32, now: UnixMillis) -> Result<String, AnswerError> {
        let (index, timestamp) = self.find_answerable(number, now)?;
        let subscription = self.subscription_id.clone().ok_or(AnswerError::NotConnected)?;
        let question = self.questions.get(index).ok_or(AnswerError::NotOpen)?;
        let deadline =
            consent::extended_deadline(question.asked_at, question.timeout_seconds, question.deadline, None);
        if deadline <= question.deadline {
            return Err(AnswerError::ExtensionExhausted);
        }
        let request = DeadlineExtend::new(question.reply_token.clone(), subscription, timestamp);
        self.record_more_time_request(number, now);
        Ok(Message::DeadlineExtend(request).to_json())
    }

    /// Stops the agent of a session and returns the message to send. From now on, changes of its state are not announced.
    pub fn stop_session(&mut self, session: &SessionId, now: UnixMillis) -> Result<String, AnswerError> {
        let subscription = self.subscription_id.clone().ok_or(AnswerError::NotConnected)?;
        let timestamp = Timestamp::from_unix_millis(now).ok_or(AnswerError::NotConnected)?;
        if let Some(session) = self.session_mut(session) {
            session.is_stopping = true;
            session.held_state = None;
        }
        Ok(Message::SessionStop(SessionStop::new(session.clone(), subscription, timestamp)).to_json())
    }

    /// Reverts an answer that could not be sent, so that the person can answer again.
    pub fn undo_answer(&mut self, number: u32) {
        if let Some(question) = self.questions.iter_mut().find(|question| question.number == number) {
            question.is_answered = false;
            question.decision = None;
        }
        // The person has known this question for a while, so there is no grace time.
        self.track_answer_target(UnixMillis::MIN);
    }

    /// Reopens the answered questions whose outcome is not known, because the connection was lost and the answers may not have
    /// arrived. Returns their numbers. If an answer did arrive, the hub reports the outcome, and a second answer has no effect.
    pub fn undo_unconfirmed_answers(&mut self) -> Vec<u32> {
        let answered = self.questions.iter().filter(|question| question.is_answered);
        let numbers: Vec<u32> = answered.map(|question| question.number).collect();
        for number in &numbers {
            self.undo_answer(*number);
        }
        numbers
    }

    /// Clears requests that did not reach the hub, after the person was informed.
    pub fn clear_pending_requests(&mut self) {
        for question in &mut self.questions {
            question.more_time_reply_due = None;
            question.more_time_notice_due = None;
        }
        for session in &mut self.sessions {
            session.is_stopping = false;
        }
        for (_, handoff) in &mut self.handoffs {
            handoff.is_answered = false;
        }
    }

    /// Returns the only open question, which an answer without a number is for. Returns `None` for a few seconds after a question
    /// closed unexpectedly, because the person may have meant that one.
    pub fn unambiguous_question(&self, now: UnixMillis) -> Option<&ListenerQuestion> {
        let mut open = self.questions.iter().filter(|question| !question.is_answered);
        let only = open.next().filter(|_| open.next().is_none())?;
        let closed_recently =
            self.last_unexpected_close.is_some_and(|at| now.millis_since(at) < UNEXPECTED_CLOSE_GUARD_MS);
        (!closed_recently && only.stale_at.is_none()).then_some(only)
    }

    /// Returns the only one of several open questions that offers this choice, for input without a question number. Returns `None`
    /// if the input could also mean yes or no to a confirmation.
    pub fn unambiguous_question_offering(&self, input: &str, now: UnixMillis) -> Option<&ListenerQuestion> {
        let open = || self.questions.iter().filter(|question| !question.is_answered);
        let closed_recently =
            self.last_unexpected_close.is_some_and(|at| now.millis_since(at) < UNEXPECTED_CLOSE_GUARD_MS);
        if closed_recently || open().any(|question| question.stale_at.is_some()) {
            return None;
        }
        let mut candidates = open().filter(|question| match &question.body {
            QuestionBody::Confirmation { .. } => matches!(input, "1" | "2"),
            QuestionBody::Clarification { .. } => offers_answer(question, input),
        });
        let only = candidates.next().filter(|_| candidates.next().is_none())?;
        matches!(only.body, QuestionBody::Clarification { .. }).then_some(only)
    }

    /// Whether it is too early to answer a question without its number, because the question has just appeared or has just
    /// become the only open one. The answer was probably meant for what the person heard before.
    pub fn has_just_appeared(&self, number: u32, now: UnixMillis) -> bool {
        let opened_at = self.question(number).map(|question| question.opened_at);
        let target_since = self.answer_target.filter(|(target, _)| *target == number).map(|(_, since)| since);
        let grace_ms = i64::try_from(self.preferences.answer_grace.as_millis()).unwrap_or(i64::MAX);
        opened_at.max(target_since).is_some_and(|since| now.millis_since(since) < grace_ms)
    }

    /// Updates which question an answer without a number is for, and since when.
    fn track_answer_target(&mut self, now: UnixMillis) {
        let mut open = self.questions.iter().filter(|question| !question.is_answered);
        let target = open.next().filter(|_| open.next().is_none()).map(|question| question.number);
        if target != self.answer_target.map(|(number, _)| number) {
            self.answer_target = target.map(|number| (number, now));
        }
    }

    fn question(&self, number: u32) -> Option<&ListenerQuestion> {
        self.questions.iter().find(|question| question.number == number)
    }

    fn open_question_count(&self) -> usize {
        self.questions.iter().filter(|question| !question.is_answered).count()
    }

    /// Returns the index of a question that has no answer yet, and the current time by the producer's clock.
    fn find_answerable(&self, number: u32, now: UnixMillis) -> Result<(usize, Timestamp), AnswerError> {
        let index = self.questions.iter().position(|question| question.number == number);
        let index = index.ok_or(AnswerError::NotOpen)?;
        let question = self.questions.get(index).ok_or(AnswerError::NotOpen)?;
        if question.is_answered {
            return Err(AnswerError::AlreadyAnswered);
        }
        Ok((index, Timestamp::from_unix_millis(question.to_producer_time(now)).ok_or(AnswerError::NotOpen)?))
    }

    /// Opens a question, announces it and makes it answerable.
    pub(super) fn open_question(&mut self, mut question: ListenerQuestion, event: &Event, now: UnixMillis) {
        let call =
            Some(event).filter(|_| self.has_hub).and_then(|event| QuestionCall::read(self.phrases, event));
        question.add_hub_facts(self.phrases, &self.identify_agent(event), call);
        let session = self.sessions.iter().find(|session| session.id == question.session_id);
        let manifest = session.and_then(|session| session.manifest.as_ref());
        question.hub_details.extend(manifest.map(|manifest| manifest.describe(self.phrases)));
        if let Some(known) = self.questions.iter().find(|known| known.reply_token == question.reply_token) {
            let text = self.phrases.question_reworded(known.number);
            let mut announcement = event_announcement(event, AnnouncementKind::Error, text);
            announcement.question_number = Some(known.number);
            return self.announce(announcement);
        }
        let session_ended = self.session_mut(&question.session_id).is_some_and(|session| session.is_ended);
        if session_ended || self.closed_reply_tokens.contains(question.reply_token.as_str()) {
            let text = self.phrases.asked_already_decided(&question.agent_name);
            return self.announce(event_announcement(event, AnnouncementKind::Answer, text));
        }
        if self.questions.len() >= self.limits.open_questions {
            self.closed_reply_tokens.insert(question.reply_token.as_str());
            let text = wording::join_sentences(&[
                Sayso(&self.phrases.too_many_questions(&question.agent_name)),
                Sayso(self.phrases.not_answerable_label),
                Agent(question.prompt_text()),
                Composed(&wording::default_outcome_text(self.phrases, &question)),
            ]);
            return self.announce(event_announcement(event, AnnouncementKind::Error, text));
        }
        self.last_question_number += 1;
        if let Some(deadline) = self.take_early_deadline(question.reply_token.as_str()) {
            question.deadline = question.deadline.max(deadline);
        }
        let mut question = question.open(self.last_question_number, now);
        let text = if self.is_replay {
            question.reminders.clear();
            wording::replayed_question_text(self.phrases, &question)
        } else {
            let open = self.open_question_count() + 1;
            wording::question_text(self.phrases, &question, open, now)
        };
        let mut announcement = event_announcement(event, AnnouncementKind::Ask, text);
        announcement.question_number = Some(question.number);
        if let Some(session) = self.session_mut(&question.session_id) {
            session.set_topic(question.prompt_text());
        }
        self.questions.push(question);
        self.track_answer_target(now);
        self.announce(announcement);
    }

    /// Handles an answer in a recording.
    pub(super) fn receive_recorded_reply(&mut self, message: &Message) {
        let (token, decision) = match message {
            Message::ConfirmationReply(reply) => {
                let decision = match &reply.decision {
                    Decision::Accept => self.phrases.was_accepted.to_owned(),
                    Decision::Reject => self.phrases.was_rejected.to_owned(),
                    other => crate::sanitize(other.as_str(), true),
                };
                (reply.reply_token.as_str(), Some(decision))
            }
            Message::ClarificationReply(reply) => (reply.reply_token.as_str(), None),
            _ => return,
        };
        let Some(index) = self.questions.iter().position(|question| question.reply_token.as_str() == token)
        else {
            return;
        };
        let question = self.questions.remove(index);
        self.closed_reply_tokens.insert(token);
        let text = match decision {
            Some(decision) => self.phrases.recorded_answer(question.number, &decision),
            None => self.phrases.recorded_response(question.number),
        };
        self.announce(question_announcement(self.phrases, &question, AnnouncementKind::Answer, text));
    }

    /// Returns an announcement that repeats a question, with its remaining time, or `None` if it is not open.
    pub fn repeat_question(&self, number: u32, now: UnixMillis) -> Option<Announcement> {
        let question = self.question(number)?;
        let text = wording::question_text(self.phrases, question, self.open_question_count(), now);
        Some(self.requested_announcement(question, text))
    }

    /// Returns an announcement of what the question itself does not say.
    pub fn question_details(&self, number: u32, now: UnixMillis) -> Option<Announcement> {
        let question = self.question(number)?;
        let said = wording::question_text(self.phrases, question, self.open_question_count(), now);
        let mut text = wording::question_details(self.phrases, question, &said);
        for line in self.agent_facts(&question.session_id) {
            text.push_line(&line);
        }
        if self.open_question_count() > 1 {
            text.prepend(&format!("{} ", self.phrases.about_question(number)));
        }
        Some(self.requested_announcement(question, text))
    }

    fn requested_announcement(&self, question: &ListenerQuestion, text: AnnouncementText) -> Announcement {
        let mut announcement = question_announcement(self.phrases, question, AnnouncementKind::Ask, text);
        announcement.language.clone_from(&question.language);
        announcement.direction = question.direction.clone();
        announcement.urgency = aaep::event::Urgency::Critical;
        announcement
    }

    /// Whether a question offers this text as a choice.
    pub fn offers_choice(&self, number: u32, text: &str) -> bool {
        self.question(number).is_some_and(|question| find_choice(question, text).is_some())
    }

    /// Returns a sentence that says how to answer a question.
    pub fn answer_instructions(&self, number: u32) -> Option<String> {
        let question = self.question(number)?;
        Some(wording::answer_instructions(self.phrases, question, self.open_question_count()))
    }

    /// Returns the remaining time as text.
    pub fn time_left_text(&self, number: u32, now: UnixMillis) -> Option<String> {
        let question = self.question(number)?;
        Some(wording::duration_text(self.phrases, question.remaining_ms(now)))
    }

    /// Handles what a change of state says about a question's outcome.
    pub(super) fn handle_question_outcome(&mut self, event: &Event, change: &StateChanged, now: UnixMillis) {
        let session = &event.envelope.session_id;
        if let Some((token, decision, by)) = question_outcome(event) {
            self.closed_reply_tokens.insert(&token);
            let index = self.questions.iter().position(|question| question.reply_token.as_str() == token);
            if let Some(index) = index {
                let question = self.questions.remove(index);
                self.record_accepted_call(&question, decision.as_deref(), &by);
                let is_own_stop = by == "cancelled"
                    && self.session_mut(&question.session_id).is_some_and(|session| session.is_stopping);
                if is_own_stop || by == "reply" && self.is_own_response(&question) {
                    return self.close_silently(&question, now);
                }
                let text = self.outcome_text(&question, decision.as_deref(), &by);
                self.close_question(&question, text, now);
            }
            return;
        }
        // With a hub, only the outcome that the hub reports closes a question, because an agent can report any state.
        if self.has_hub && !self.is_replay {
            return;
        }
        // Producers other than the hub do not name the question. It is known only if the session has exactly one.
        let mut open =
            self.questions.iter().enumerate().filter(|(_, question)| question.session_id == *session);
        let stops_waiting =
            change.from_state != change.to_state && change.to_state != AgentState::AwaitingInput;
        if stops_waiting
            && let Some((index, _)) = open.next()
            && open.next().is_none()
        {
            let question = self.questions.remove(index);
            if self.is_own_response(&question) {
                return self.close_silently(&question, now);
            }
            let text = if self.is_replay {
                self.phrases.closed_agent_continues(question.number, &question.agent_name)
            } else if question.is_answered {
                self.about_question(question.number, self.phrases.answer_was_received)
            } else {
                self.phrases.closed_without_own_answer(question.number, &question.agent_name)
            };
            self.close_question(&question, text, now);
        }
    }

    /// Whether the person has answered with words or a choice. They have heard what they answered, so the outcome adds nothing.
    fn is_own_response(&self, question: &ListenerQuestion) -> bool {
        let is_clarification = matches!(question.body, QuestionBody::Clarification { .. });
        is_clarification && question.is_answered && !self.is_replay
    }

    /// Remembers the call of an accepted question, so that the announcement of the call does not repeat the warning.
    fn record_accepted_call(&mut self, question: &ListenerQuestion, decision: Option<&str>, by: &str) {
        let call = question.call.clone().filter(|call| call.is_bound);
        let is_accepted = decision == Some("accept") && by == "reply";
        if let Some(session) = self.session_mut(&question.session_id) {
            session.accepted_call = call.filter(|_| is_accepted);
        }
    }

    fn outcome_text(&self, question: &ListenerQuestion, decision: Option<&str>, by: &str) -> String {
        let phrases = self.phrases;
        let number = question.number;
        let outcome = match decision {
            Some("accept") => phrases.was_accepted,
            Some("reject") => phrases.was_rejected,
            Some(_) | None => phrases.outcome_other,
        };
        match by {
            "reply" if self.is_replay => phrases.recorded_answer(number, outcome),
            // If the decision differs from the answer given here, another listener was first.
            "reply" if question.decision.as_ref().is_some_and(|own| decision != Some(own.as_str())) => {
                phrases.own_answer_too_late(number, outcome)
            }
            "reply" if question.is_answered => self.about_question(
                number,
                match decision {
                    Some("accept") => phrases.accepted,
                    Some("reject") => phrases.rejected,
                    Some(_) | None => phrases.answer_was_received,
                },
            ),
            "reply" => phrases.answered_elsewhere(number, outcome),
            "timeout" => phrases.timed_out(number, outcome),
            "closure" => phrases.no_listener_left(number, outcome),
            "unreachable" => phrases.no_listener_reached(number, outcome),
            "cancelled" => phrases.withdrawn(number),
            _ => phrases.decided(number, outcome),
        }
    }

    /// Returns a text about a question that was just removed. Includes its number if others are open.
    fn about_question(&self, number: u32, text: &str) -> String {
        if self.questions.is_empty() {
            return text.to_owned();
        }
        format!("{} {text}", self.phrases.about_question(number))
    }

    fn close_question(
        &mut self,
        question: &ListenerQuestion,
        text: impl Into<AnnouncementText>,
        now: UnixMillis,
    ) {
        self.close_silently(question, now);
        self.announce(question_announcement(self.phrases, question, AnnouncementKind::Answer, text));
    }

    fn close_silently(&mut self, question: &ListenerQuestion, now: UnixMillis) {
        self.closed_reply_tokens.insert(question.reply_token.as_str());
        if !question.is_answered {
            self.last_unexpected_close = Some(now);
        }
        self.track_answer_target(now);
    }

    /// Closes the questions of a session that the person has stopped, without an announcement.
    pub(super) fn drop_session_questions(&mut self, session: &SessionId, now: UnixMillis) {
        while let Some(index) = self.questions.iter().position(|question| question.session_id == *session) {
            let question = self.questions.remove(index);
            self.close_silently(&question, now);
        }
    }

    /// Closes the questions of a session that ended.
    pub(super) fn close_session_questions(&mut self, session: &SessionId, now: UnixMillis) {
        while let Some(index) = self.questions.iter().position(|question| question.session_id == *session) {
            let question = self.questions.remove(index);
            let text = self.phrases.withdrawn_with_session(question.number);
            self.close_question(&question, text, now);
        }
    }

    /// Announces due reminders and unanswered requests for more time, and closes expired questions.
    pub(super) fn poll_questions(&mut self, now: UnixMillis) {
        self.expire_more_time_requests(now);
        let mut announcements = Vec::new();
        for question in &mut self.questions {
            let due_count = question.reminders.iter().filter(|at| **at <= now).count();
            if due_count > 0 {
                question.reminders.drain(..due_count);
                if !question.is_answered && question.remaining_ms(now) > 0 {
                    let remaining = wording::duration_text(self.phrases, question.remaining_ms(now));
                    let text = self.phrases.reminder(&remaining, question.number);
                    announcements.push(question_announcement(
                        self.phrases,
                        question,
                        AnnouncementKind::Ask,
                        text,
                    ));
                }
            }
        }
        for announcement in announcements {
            self.announce(announcement);
        }
        while let Some(index) =
            self.questions.iter().position(|question| question.stale_at.is_some_and(|at| at <= now))
        {
            let question = self.questions.remove(index);
            let text = self.phrases.outcome_unknown(question.number);
            self.close_question(&question, text, now);
        }
        while let Some(index) = self
            .questions
            .iter()
            .position(|question| now >= question.deadline.saturating_add(OVERDUE_GRACE_MS))
        {
            let question = self.questions.remove(index);
            let time_is_up = self.phrases.time_is_up(question.number);
            let default_outcome = wording::default_outcome_text(self.phrases, &question);
            let text = wording::join_sentences(&[Sayso(&time_is_up), Composed(&default_outcome)]);
            self.close_question(&question, text, now);
        }
    }
}

/// Creates an announcement about a question with sayso's own text.
pub(super) fn question_announcement(
    phrases: &Phrases,
    question: &ListenerQuestion,
    kind: AnnouncementKind,
    text: impl Into<AnnouncementText>,
) -> Announcement {
    let mut announcement = Announcement::new(kind, text);
    announcement.language = Some(phrases.language().into());
    announcement.session_id = Some(question.session_id.clone());
    announcement.question_number = Some(question.number);
    announcement
}

/// Returns the token, the decision and its cause, if the event reports them (decision 15).
fn question_outcome(event: &Event) -> Option<(String, Option<String>, String)> {
    let [token, decision, by] = hub_extension_texts(event, ["reply_token", "decision", "by"]);
    Some((token?, decision, by?))
}

/// Whether the input is one of the question's choices, or a number if the question accepts numbers.
fn offers_answer(question: &ListenerQuestion, input: &str) -> bool {
    let is_number = || input.parse::<f64>().is_ok_and(f64::is_finite);
    find_choice(question, input).is_some() || question.accepts(&ResponseKind::Numeric) && is_number()
}

/// Returns the value of the choice that the input names by value, label or number.
fn find_choice<'q>(question: &'q ListenerQuestion, input: &str) -> Option<&'q str> {
    let QuestionBody::Clarification { choices, .. } = &question.body else { return None };
    if input.is_empty() || !question.accepts(&ResponseKind::MultipleChoice) {
        return None;
    }
    let lower = input.to_lowercase();
    let choice = choices
        .iter()
        .find(|(value, label)| value.to_lowercase() == lower || label.to_lowercase() == lower)
        .or_else(|| choices.get(input.parse::<usize>().ok()?.checked_sub(1)?));
    choice.map(|(value, _)| value.as_str())
}

/// Parses the input as a response of an accepted kind.
fn parse_response(
    phrases: &Phrases,
    question: &ListenerQuestion,
    input: &str,
) -> Option<ClarificationResponse> {
    if input.is_empty() || !matches!(question.body, QuestionBody::Clarification { .. }) {
        return None;
    }
    if let Some(value) = find_choice(question, input) {
        return Some(ClarificationResponse::Text(value.to_owned()));
    }
    let lower = input.to_lowercase();
    if question.accepts(&ResponseKind::YesNo) {
        let normalized = lower.trim_start_matches('¡').trim_end_matches(['.', '!', ',']);
        match (normalized, phrases.parse_command(normalized)) {
            ("true", _) | (_, Some(TypedCommand::Decision { yes: true, .. })) => {
                return Some(ClarificationResponse::YesNo(true));
            }
            ("false", _) | (_, Some(TypedCommand::Decision { yes: false, .. })) => {
                return Some(ClarificationResponse::YesNo(false));
            }
            _ => {}
        }
    }
    if question.accepts(&ResponseKind::Numeric)
        && let Some(number) = input.parse::<f64>().ok().filter(|number| number.is_finite())
    {
        return Some(ClarificationResponse::Number(number));
    }
    question.accepts(&ResponseKind::FreeText).then(|| ClarificationResponse::Text(input.to_owned()))
}
