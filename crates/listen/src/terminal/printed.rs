//! Announcements as they are printed.

use aaep::json::object;

use crate::{Announcement, Ear};

/// Lines for a person.
pub(super) fn lines(announcement: &Announcement) -> String {
    announcement.lines().flat_map(|line| [line, "\n".to_owned()]).collect()
}

/// One object on one line, for programs.
pub(super) fn json(announcement: &Announcement, ear: &Ear) -> String {
    object(|writer| {
        writer.key("kind").text(announcement.kind.word());
        writer.key("urgency").text(announcement.urgency.as_str());
        writer.key("text").text(&announcement.text);
        if let Some(language) = &announcement.language {
            writer.key("language").text(language);
            writer.key("direction").text(announcement.direction.as_str());
        }
        if let Some(session) = &announcement.session {
            writer.key("session_id").text(session.as_str());
        }
        if let Some(number) = announcement.question {
            writer.key("question").integer(i64::from(number));
            if let Some(question) = ear.questions().find(|question| question.number == number) {
                writer.key("reply_token").text(question.token.as_str());
                if let Some(deadline) = aaep::Timestamp::from_unix_millis(question.deadline) {
                    writer.key("deadline").text(&deadline.to_string());
                }
            }
        }
    }) + "\n"
}
