//! What the hub tells of the time that a question has. Its words are for everybody; here it is known by its marks in
//! `extensions.sayso`, which no agent can set, and said in the words of the question.

use aaep::Timestamp;
use aaep::event::{Event, Payload};
use seal::UnixMillis;

use super::answer::about;
use super::{Ear, hub_texts, words};
use crate::Kind;

/// After the wish for more time, so long is waited for the hub's word before the person is told that there is none.
const WISHED: i64 = 10_000;

enum Mark {
    /// The question of this token can be answered until then, by the hub's clock.
    MoreTime(String, UnixMillis),
    /// Little time is left for the question of this token.
    Reminder(String),
}

impl Mark {
    fn of(event: &Event) -> Option<Self> {
        let Payload::ProgressUpdated(_) = &event.payload else { return None };
        let [reminds_of, extended, deadline] = hub_texts(event, ["reminds_of", "extended", "deadline"]);
        if let Some(token) = reminds_of {
            return Some(Self::Reminder(token));
        }
        let deadline = Timestamp::parse_rfc3339(&deadline?).ok()?;
        Some(Self::MoreTime(extended?, deadline.unix_millis()))
    }
}

impl Ear {
    /// Takes an event that only tells of a question's time; says whether it was one.
    pub(super) fn takes_time(&mut self, event: &Event, now: UnixMillis) -> bool {
        match Mark::of(event) {
            // It is said here by this clock, and in the words of the question.
            Some(Mark::Reminder(token)) => self.questions.iter().any(|it| it.token.as_str() == token),
            Some(Mark::MoreTime(token, deadline)) => {
                self.has_more_time(token, deadline, event.envelope.timestamp.unix_millis(), now);
                true
            }
            None => false,
        }
    }

    fn has_more_time(&mut self, token: String, deadline: UnixMillis, told: UnixMillis, now: UnixMillis) {
        let Some(question) = self.questions.iter_mut().find(|it| it.token.as_str() == token) else {
            // Who joins late is told so in front of the question.
            if !self.closed.contains(&token) {
                self.moved.retain(|(known, _)| *known != token);
                if self.moved.len() >= self.limits.questions {
                    self.moved.pop_front();
                }
                self.moved.push_back((token, deadline));
            }
            return;
        };
        question.wished = None;
        if !question.moved(deadline, told, now) || question.is_answered {
            return;
        }
        let number = question.number;
        let text = if self.history {
            self.phrases.more_time_was_given(number)
        } else {
            let left = words::duration(self.phrases, question.remaining(now));
            self.phrases.more_time_had(number, &left)
        };
        let announcement = about(self.phrases, question, Kind::Ask, text);
        self.say(announcement);
    }

    /// The deadline that was told of a question before the question itself.
    pub(super) fn told_deadline(&mut self, token: &str) -> Option<UnixMillis> {
        let at = self.moved.iter().position(|(known, _)| known == token)?;
        self.moved.remove(at).map(|(_, deadline)| deadline)
    }

    /// The person has asked for more time: the hub's word is waited for.
    pub(super) fn wished(&mut self, number: u32, now: UnixMillis) {
        if let Some(question) = self.questions.iter_mut().find(|question| question.number == number) {
            question.wished = Some(now.saturating_add(WISHED));
        }
    }

    /// Wishes for more time that the hub has not heard of, or not granted.
    pub(super) fn wake_wishes(&mut self, now: UnixMillis) {
        let mut said = Vec::new();
        for question in &mut self.questions {
            if question.wished.take_if(|until| *until <= now).is_some() && !question.is_answered {
                let left = words::duration(self.phrases, question.remaining(now));
                let text = self.phrases.more_time_not_given(question.number, &left);
                said.push(about(self.phrases, question, Kind::Ask, text));
            }
        }
        for announcement in said {
            self.say(announcement);
        }
    }
}
