//! Handles the hub's notices about the deadline of a question. The text of a notice is generic, so this module reads the members
//! in `extensions.sayso`, which no agent can set, and announces the notice with the question's number.

use aaep::Timestamp;
use aaep::event::{Event, Payload};
use seal::UnixMillis;

use super::answer::question_announcement;
use super::{Subscriber, hub_extension_texts, wording};
use crate::AnnouncementKind;

/// How long to wait for the hub's response to a request for more time, in milliseconds. After that, the person hears that it
/// was not granted.
const MORE_TIME_REPLY_TIMEOUT_MS: i64 = 10_000;
/// If the hub has not responded after this time, the person hears that more time was requested, in milliseconds.
const MORE_TIME_NOTICE_DELAY_MS: i64 = 1000;

enum DeadlineNotice {
    /// The question with this token can be answered until this time, by the hub's clock.
    Extended(String, UnixMillis),
    /// Little time remains for the question with this token.
    Reminder(String),
}

impl DeadlineNotice {
    fn from_event(event: &Event) -> Option<Self> {
        let Payload::ProgressUpdated(_) = &event.payload else { return None };
        let [reminds_of, extended, deadline] =
            hub_extension_texts(event, ["reminds_of", "extended", "deadline"]);
        if let Some(token) = reminds_of {
            return Some(Self::Reminder(token));
        }
        let deadline = Timestamp::parse_rfc3339(&deadline?).ok()?;
        Some(Self::Extended(extended?, deadline.unix_millis()))
    }
}

impl Subscriber {
    /// Handles a notice about the deadline of a question. Returns whether the event needs no announcement of its own.
    pub(super) fn handle_deadline_notice(&mut self, event: &Event, now: UnixMillis) -> bool {
        match DeadlineNotice::from_event(event) {
            // The listener announces the remaining time itself, by the local clock.
            Some(DeadlineNotice::Reminder(token)) => {
                self.questions.iter().any(|question| question.reply_token.as_str() == token)
            }
            Some(DeadlineNotice::Extended(token, deadline)) => {
                self.apply_deadline_extension(token, deadline, event.envelope.timestamp.unix_millis(), now);
                true
            }
            None => false,
        }
    }

    fn apply_deadline_extension(
        &mut self,
        token: String,
        deadline: UnixMillis,
        sent_at: UnixMillis,
        now: UnixMillis,
    ) {
        let Some(question) =
            self.questions.iter_mut().find(|question| question.reply_token.as_str() == token)
        else {
            // A late joiner receives the extension before the question.
            if !self.closed_reply_tokens.contains(&token) {
                self.early_deadlines.retain(|(known, _)| *known != token);
                if self.early_deadlines.len() >= self.limits.open_questions {
                    self.early_deadlines.pop_front();
                }
                self.early_deadlines.push_back((token, deadline));
            }
            return;
        };
        question.more_time_reply_due = None;
        question.more_time_notice_due = None;
        if !question.extend_deadline(deadline, sent_at, now) || question.is_answered {
            return;
        }
        let number = question.number;
        let text = if self.is_replay {
            self.phrases.more_time_added(number)
        } else {
            let remaining = wording::duration_text(self.phrases, question.remaining_ms(now));
            self.phrases.more_time_granted(number, &remaining)
        };
        let announcement = question_announcement(self.phrases, question, AnnouncementKind::Ask, text);
        self.announce(announcement);
    }

    /// Takes the extended deadline of a question, if it arrived before the question.
    pub(super) fn take_early_deadline(&mut self, token: &str) -> Option<UnixMillis> {
        let index = self.early_deadlines.iter().position(|(known, _)| known == token)?;
        self.early_deadlines.remove(index).map(|(_, deadline)| deadline)
    }

    /// Records that the person requested more time and the hub's response is pending.
    pub(super) fn record_more_time_request(&mut self, number: u32, now: UnixMillis) {
        if let Some(question) = self.questions.iter_mut().find(|question| question.number == number) {
            question.more_time_reply_due = Some(now.saturating_add(MORE_TIME_REPLY_TIMEOUT_MS));
            question.more_time_notice_due = Some(now.saturating_add(MORE_TIME_NOTICE_DELAY_MS));
        }
    }

    /// Announces the requests for more time that the hub has not answered yet, or not in time.
    pub(super) fn expire_more_time_requests(&mut self, now: UnixMillis) {
        let mut announcements = Vec::new();
        for question in &mut self.questions {
            if question.more_time_notice_due.take_if(|due| *due <= now).is_some() && !question.is_answered {
                announcements.push(question_announcement(
                    self.phrases,
                    question,
                    AnnouncementKind::Ask,
                    self.phrases.more_time_requested,
                ));
            }
            if question.more_time_reply_due.take_if(|due| *due <= now).is_some() && !question.is_answered {
                let remaining = wording::duration_text(self.phrases, question.remaining_ms(now));
                let text = self.phrases.more_time_not_granted(question.number, &remaining);
                announcements.push(question_announcement(
                    self.phrases,
                    question,
                    AnnouncementKind::Ask,
                    text,
                ));
            }
        }
        for announcement in announcements {
            self.announce(announcement);
        }
    }
}
