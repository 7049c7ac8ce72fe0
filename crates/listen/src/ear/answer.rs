//! What the person says to questions and sessions, and what becomes of questions.

use aaep::event::{Decision, Event, ResponseKind, State, StateChanged};
use aaep::message::{ClarificationReply, ConfirmationReply, DeadlineExtend, Message, Response, SessionStop};
use aaep::{SessionId, Timestamp, consent};
use seal::UnixMillis;

use super::question::{Question, Subject};
use super::tell::spoken;
use super::{Ear, OVERDUE, hub_texts, words};
use crate::phrases::Command;
use crate::{Announcement, Kind, Phrases};

/// Why an answer was not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotAnswered {
    /// No question of that number is open.
    NotOpen,
    /// It was answered before; one answer is all that counts.
    Twice,
    /// The question takes no such answer.
    NotTaken,
    /// There is no subscription to answer for.
    NotConnected,
    /// The question has all the time that it can have.
    NoMoreTime,
    /// Who asks is not who it should be, so that only a no is sent.
    NotTrusted,
}

impl NotAnswered {
    pub(crate) fn why(self, phrases: &Phrases) -> &'static str {
        match self {
            Self::NotOpen => phrases.not_open,
            Self::Twice => phrases.answered_twice,
            Self::NotTaken => phrases.not_taken,
            Self::NotConnected => phrases.not_connected,
            Self::NoMoreTime => phrases.no_more_time,
            Self::NotTrusted => phrases.not_trusted,
        }
    }
}

/// After a question went away by itself, an answer that names no question is not taken for another one.
pub(super) const SURPRISE: i64 = 3000;

impl Ear {
    /// Answers a confirmation: the message to send. It is given once.
    pub fn decide(
        &mut self,
        number: u32,
        decision: Decision,
        now: UnixMillis,
    ) -> Result<String, NotAnswered> {
        let (at, timestamp) = self.answerable(number, now)?;
        if decision != Decision::Reject {
            self.trusts()?;
        }
        let subscription = self.subscription.clone().ok_or(NotAnswered::NotConnected)?;
        let question = self.questions.get_mut(at).ok_or(NotAnswered::NotOpen)?;
        let Subject::Confirmation { allowed, .. } = &question.subject else {
            return Err(NotAnswered::NotTaken);
        };
        let taken = match decision {
            Decision::Accept => allowed.0,
            Decision::Reject => allowed.1,
            _ => false,
        };
        if !taken {
            return Err(NotAnswered::NotTaken);
        }
        question.is_answered = true;
        question.said = Some(decision.clone());
        let reply = ConfirmationReply::new(question.token.clone(), decision, subscription, timestamp);
        Ok(Message::ConfirmationReply(reply).to_json())
    }

    /// Answers a clarification: the message to send. A text is matched against the question's choices, by value, label or
    /// number.
    pub fn respond(&mut self, number: u32, said: &str, now: UnixMillis) -> Result<String, NotAnswered> {
        let (at, timestamp) = self.answerable(number, now)?;
        self.trusts()?;
        let subscription = self.subscription.clone().ok_or(NotAnswered::NotConnected)?;
        let question = self.questions.get_mut(at).ok_or(NotAnswered::NotOpen)?;
        let response = response(self.phrases, question, said.trim()).ok_or(NotAnswered::NotTaken)?;
        question.is_answered = true;
        let reply = ClarificationReply::new(question.token.clone(), response, subscription, timestamp);
        Ok(Message::ClarificationReply(reply).to_json())
    }

    /// Asks for more time, as much again as the question had at first: the message to send. It is had once the hub says so.
    pub fn more_time(&mut self, number: u32, now: UnixMillis) -> Result<String, NotAnswered> {
        let (at, timestamp) = self.answerable(number, now)?;
        let subscription = self.subscription.clone().ok_or(NotAnswered::NotConnected)?;
        let question = self.questions.get(at).ok_or(NotAnswered::NotOpen)?;
        let deadline = consent::extended(question.asked, question.timeout_seconds, question.deadline, None);
        if deadline <= question.deadline {
            return Err(NotAnswered::NoMoreTime);
        }
        let wish = DeadlineExtend::new(question.token.clone(), subscription, timestamp);
        self.wished(number, now);
        Ok(Message::DeadlineExtend(wish).to_json())
    }

    /// Stops a session's agent: the message to send. What it does until then is not told any more.
    pub fn stop(&mut self, session: &SessionId, now: UnixMillis) -> Result<String, NotAnswered> {
        let subscription = self.subscription.clone().ok_or(NotAnswered::NotConnected)?;
        let timestamp = Timestamp::from_unix_millis(now).ok_or(NotAnswered::NotConnected)?;
        if let Some(session) = self.session(session) {
            session.stopping = true;
            session.held_state = None;
        }
        Ok(Message::SessionStop(SessionStop::new(session.clone(), subscription, timestamp)).to_json())
    }

    /// Takes an answer back that could not be sent, so that it can be given again.
    pub fn not_sent(&mut self, number: u32) {
        if let Some(question) = self.questions.iter_mut().find(|question| question.number == number) {
            question.is_answered = false;
            question.said = None;
        }
    }

    /// What was wished for did not reach the hub, and the person was told: nothing will come of it.
    pub fn wish_not_sent(&mut self) {
        for question in &mut self.questions {
            question.wished = None;
        }
        for session in &mut self.sessions {
            session.stopping = false;
        }
    }

    /// The question that an answer without a number is for: the only one, if nothing else could have been meant. A question
    /// that went away a moment ago could.
    pub fn only_question(&self, now: UnixMillis) -> Option<&Question> {
        let mut open = self.questions.iter().filter(|question| !question.is_answered);
        let only = open.next().filter(|_| open.next().is_none())?;
        let surprised = self.surprised.is_some_and(|at| now.millis_since(at) < SURPRISE);
        (!surprised && only.unsure.is_none()).then_some(only)
    }

    /// The question that a choice without a number is for, where several are open: the only one that offers it, if nothing else
    /// could have been meant. Where a number could also be a yes or a no, it is for none.
    pub fn only_question_that_offers(&self, said: &str, now: UnixMillis) -> Option<&Question> {
        let open = || self.questions.iter().filter(|question| !question.is_answered);
        let surprised = self.surprised.is_some_and(|at| now.millis_since(at) < SURPRISE);
        if surprised || open().any(|question| question.unsure.is_some()) {
            return None;
        }
        let mut fits = open().filter(|question| match &question.subject {
            Subject::Confirmation { .. } => matches!(said, "1" | "2"),
            Subject::Clarification { .. } => offers(question, said),
        });
        let only = fits.next().filter(|_| fits.next().is_none())?;
        matches!(only.subject, Subject::Clarification { .. }).then_some(only)
    }

    fn question(&self, number: u32) -> Option<&Question> {
        self.questions.iter().find(|question| question.number == number)
    }

    fn open_questions(&self) -> usize {
        self.questions.iter().filter(|question| !question.is_answered).count()
    }

    fn answerable(&self, number: u32, now: UnixMillis) -> Result<(usize, Timestamp), NotAnswered> {
        let at = self.questions.iter().position(|question| question.number == number);
        let at = at.ok_or(NotAnswered::NotOpen)?;
        let question = self.questions.get(at).ok_or(NotAnswered::NotOpen)?;
        if question.is_answered {
            return Err(NotAnswered::Twice);
        }
        Ok((at, Timestamp::from_unix_millis(question.by_producer(now)).ok_or(NotAnswered::NotOpen)?))
    }

    /// A question comes: it is said, and can be answered from now on.
    pub(super) fn open(&mut self, mut question: Question, event: &Event, now: UnixMillis) {
        if let Some(known) = self.questions.iter().find(|known| known.token == question.token) {
            let text = self.phrases.came_again(known.number);
            let mut again = spoken(self.phrases, event, Kind::Error, text);
            again.question = Some(known.number);
            return self.say(again);
        }
        let over = self.session(&question.session).is_some_and(|session| session.ended);
        if over || self.closed.contains(question.token.as_str()) {
            let text = self.phrases.asked_settled(&question.agent);
            return self.say(spoken(self.phrases, event, Kind::Answer, text));
        }
        if self.questions.len() >= self.limits.questions {
            self.closed.insert(question.token.as_str());
            let text = words::sentences(&[
                &self.phrases.asks_too_much(&question.agent),
                self.phrases.not_answered_here,
                question.what(),
                &words::without_answer(self.phrases, &question),
            ]);
            return self.say(spoken(self.phrases, event, Kind::Error, text));
        }
        self.questions_known += 1;
        if let Some(deadline) = self.told_deadline(question.token.as_str()) {
            question.deadline = question.deadline.max(deadline);
        }
        let mut question = question.opened(self.questions_known, now);
        let text = if self.history {
            question.reminders.clear();
            words::past_question(self.phrases, &question, &self.tastes.verbosity)
        } else {
            let open = self.open_questions() + 1;
            words::question(self.phrases, &question, open, &self.tastes.verbosity, now)
        };
        let mut announcement = spoken(self.phrases, event, Kind::Ask, text);
        announcement.question = Some(question.number);
        if let Some(session) = self.session(&question.session) {
            session.is_about(question.what());
        }
        self.questions.push(question);
        self.say(announcement);
    }

    /// An answer that stands in a recording.
    pub(super) fn hear_answer(&mut self, message: &Message) {
        let (token, what) = match message {
            Message::ConfirmationReply(reply) => {
                let how = match &reply.decision {
                    Decision::Accept => self.phrases.was_accepted.to_owned(),
                    Decision::Reject => self.phrases.was_rejected.to_owned(),
                    other => crate::plain(other.as_str(), true),
                };
                (reply.reply_token.as_str(), how)
            }
            Message::ClarificationReply(reply) => {
                (reply.reply_token.as_str(), self.phrases.was_in_words.to_owned())
            }
            _ => return,
        };
        let Some(at) = self.questions.iter().position(|question| question.token.as_str() == token) else {
            return;
        };
        let question = self.questions.remove(at);
        self.closed.insert(token);
        let text = self.phrases.was_answered(question.number, &what);
        self.say(about(self.phrases, &question, Kind::Answer, text));
    }

    /// A question again, as it stands now; nothing if it is not open.
    pub fn repeat(&self, number: u32, now: UnixMillis) -> Option<Announcement> {
        let question = self.question(number)?;
        let mut again = about(
            self.phrases,
            question,
            Kind::Ask,
            words::question(self.phrases, question, self.open_questions(), &self.tastes.verbosity, now),
        );
        again.language.clone_from(&question.language);
        again.quotes.clone_from(&question.quotes);
        again.direction = question.direction.clone();
        again.urgency = aaep::event::Urgency::Critical;
        Some(again)
    }

    /// What else there is to know of a question.
    pub fn details(&self, number: u32, now: UnixMillis) -> Option<Announcement> {
        let mut all = self.repeat(number, now)?;
        let question = self.question(number)?;
        for line in &question.details {
            if !all.text.contains(line.as_str()) {
                all.text.push('\n');
                all.text.push_str(line);
            }
        }
        Some(all)
    }

    /// How much time is left, in words.
    pub fn time_left(&self, number: u32, now: UnixMillis) -> Option<String> {
        let question = self.question(number)?;
        Some(words::duration(self.phrases, question.remaining(now)))
    }

    /// Notes what a change of state says about a question.
    pub(super) fn settle(&mut self, event: &Event, change: &StateChanged, now: UnixMillis) {
        let session = &event.envelope.session_id;
        if let Some((token, decision, by)) = outcome(event) {
            self.closed.insert(&token);
            let at = self.questions.iter().position(|question| question.token.as_str() == token);
            if let Some(at) = at {
                let question = self.questions.remove(at);
                let text = settled(self.phrases, &question, decision.as_deref(), &by, self.history);
                self.closes(&question, text, now);
            }
            return;
        }
        // Other producers do not say which question it was: only where there is one can it be known.
        let mut open = self.questions.iter().enumerate().filter(|(_, question)| question.session == *session);
        let leaves = change.from_state != change.to_state && change.to_state != State::AwaitingInput;
        if leaves
            && let Some((at, _)) = open.next()
            && open.next().is_none()
        {
            let question = self.questions.remove(at);
            let text = if self.history {
                self.phrases.closed_goes_on(question.number, &question.agent)
            } else if question.is_answered {
                self.phrases.yours_was_taken(question.number)
            } else {
                self.phrases.closed_without_you(question.number, &question.agent)
            };
            self.closes(&question, text, now);
        }
    }

    fn closes(&mut self, question: &Question, text: String, now: UnixMillis) {
        self.closed.insert(question.token.as_str());
        if !question.is_answered {
            self.surprised = Some(now);
        }
        self.say(about(self.phrases, question, Kind::Answer, text));
    }

    /// A session is over, and its questions with it.
    pub(super) fn withdraw_all(&mut self, session: &SessionId, now: UnixMillis) {
        while let Some(at) = self.questions.iter().position(|question| question.session == *session) {
            let question = self.questions.remove(at);
            let text = self.phrases.withdrawn_with_session(question.number);
            self.closes(&question, text, now);
        }
    }

    /// Reminders of time, and questions that are over.
    pub(super) fn wake_questions(&mut self, now: UnixMillis) {
        self.wake_wishes(now);
        let mut said = Vec::new();
        for question in &mut self.questions {
            let passed = question.reminders.iter().filter(|at| **at <= now).count();
            if passed > 0 {
                question.reminders.drain(..passed);
                if !question.is_answered && question.remaining(now) > 0 {
                    let left = words::duration(self.phrases, question.remaining(now));
                    let text = self.phrases.reminder(&left, question.number);
                    said.push(about(self.phrases, question, Kind::Ask, text));
                }
            }
        }
        for announcement in said {
            self.say(announcement);
        }
        while let Some(at) =
            self.questions.iter().position(|question| question.unsure.is_some_and(|until| until <= now))
        {
            let question = self.questions.remove(at);
            let text = self.phrases.unheard(question.number);
            self.closes(&question, text, now);
        }
        while let Some(at) =
            self.questions.iter().position(|question| now >= question.deadline.saturating_add(OVERDUE))
        {
            let question = self.questions.remove(at);
            let over = self.phrases.time_over(question.number);
            let text = words::sentences(&[&over, &words::without_answer(self.phrases, &question)]);
            self.closes(&question, text, now);
        }
    }
}

/// An announcement about a question, in sayso's own words.
pub(super) fn about(phrases: &Phrases, question: &Question, kind: Kind, text: String) -> Announcement {
    let mut announcement = Announcement::own(kind, text);
    announcement.language = Some(phrases.language().into());
    announcement.session = Some(question.session.clone());
    announcement.question = Some(question.number);
    announcement
}

/// The token, the decision and its cause, where the event tells them (design, decision 15).
fn outcome(event: &Event) -> Option<(String, Option<String>, String)> {
    let [token, decision, by] = hub_texts(event, ["reply_token", "decision", "by"]);
    Some((token?, decision, by?))
}

fn settled(
    phrases: &Phrases,
    question: &Question,
    decision: Option<&str>,
    by: &str,
    history: bool,
) -> String {
    let number = question.number;
    let outcome = match decision {
        Some("accept") => phrases.outcome_accept,
        Some("reject") => phrases.outcome_reject,
        Some(_) | None => phrases.outcome_other,
    };
    match by {
        "reply" if history => phrases.counted(number, outcome),
        // Somebody else was quicker, if it became something else than what was said here.
        "reply" if question.said.as_ref().is_some_and(|said| decision != Some(said.as_str())) => {
            phrases.too_late(number, outcome)
        }
        "reply" if question.is_answered => phrases.yours_counts(number, outcome),
        "reply" => phrases.answered_elsewhere(number, outcome),
        "timeout" => phrases.nobody_in_time(number, outcome),
        "closure" => phrases.nobody_left(number, outcome),
        "unreachable" => phrases.nobody_reached(number, outcome),
        "cancelled" => phrases.withdrawn(number, outcome),
        _ => phrases.settled(number, outcome),
    }
}

/// Whether a text is one of the question's choices, or a number where it wants one.
fn offers(question: &Question, said: &str) -> bool {
    let is_number = || said.parse::<f64>().is_ok_and(f64::is_finite);
    choice(question, said).is_some() || question.takes(&ResponseKind::Numeric) && is_number()
}

/// The value of the choice that a text names, by value, label or number.
fn choice<'q>(question: &'q Question, said: &str) -> Option<&'q str> {
    let Subject::Clarification { choices, .. } = &question.subject else { return None };
    if said.is_empty() || !question.takes(&ResponseKind::MultipleChoice) {
        return None;
    }
    let lower = said.to_lowercase();
    let named = choices
        .iter()
        .find(|(value, label)| value.to_lowercase() == lower || label.to_lowercase() == lower)
        .or_else(|| choices.get(said.parse::<usize>().ok()?.checked_sub(1)?));
    named.map(|(value, _)| value.as_str())
}

/// An answer of a kind that the question takes; nothing if it is none.
fn response(phrases: &Phrases, question: &Question, said: &str) -> Option<Response> {
    if said.is_empty() || !matches!(question.subject, Subject::Clarification { .. }) {
        return None;
    }
    if let Some(value) = choice(question, said) {
        return Some(Response::Text(value.to_owned()));
    }
    let lower = said.to_lowercase();
    if question.takes(&ResponseKind::YesNo) {
        let words = lower.trim_start_matches('¡').trim_end_matches(['.', '!', ',']);
        match (words, phrases.command(words)) {
            ("true", _) | (_, Some(Command::Decision { yes: true, .. })) => {
                return Some(Response::YesNo(true));
            }
            ("false", _) | (_, Some(Command::Decision { yes: false, .. })) => {
                return Some(Response::YesNo(false));
            }
            _ => {}
        }
    }
    if question.takes(&ResponseKind::Numeric)
        && let Some(number) = said.parse::<f64>().ok().filter(|number| number.is_finite())
    {
        return Some(Response::Number(number));
    }
    question.takes(&ResponseKind::FreeText).then(|| Response::Text(said.to_owned()))
}
