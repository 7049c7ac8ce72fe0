//! Formats announcements for printing.

use aaep::json::write_object;

use crate::{Announcement, Subscriber};

/// Formats an announcement as lines for a person.
pub(super) fn format_lines(announcement: &Announcement) -> String {
    announcement.lines().flat_map(|line| [line, "\n".to_owned()]).collect()
}

/// Formats an announcement as one JSON object on one line, for programs.
pub(super) fn format_json(announcement: &Announcement, subscriber: &Subscriber) -> String {
    write_object(|writer| {
        writer.key("kind").text(announcement.kind.as_str());
        writer.key("urgency").text(announcement.urgency.as_str());
        writer.key("text").text(&announcement.text);
        if let Some(language) = &announcement.language {
            writer.key("language").text(language);
            writer.key("direction").text(announcement.direction.as_str());
        }
        if let Some(session) = &announcement.session_id {
            writer.key("session_id").text(session.as_str());
        }
        if let Some(number) = announcement.question_number {
            writer.key("question").integer(i64::from(number));
            if let Some(question) = subscriber.questions().find(|question| question.number == number) {
                writer.key("reply_token").text(question.reply_token.as_str());
                if let Some(deadline) = aaep::Timestamp::from_unix_millis(question.deadline) {
                    writer.key("deadline").text(&deadline.to_string());
                }
            }
        }
    }) + "\n"
}
