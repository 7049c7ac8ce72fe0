//! Formats announcements for printing.

use aaep::json::write_object;
use seal::UnixMillis;

use crate::{Announcement, Phrases, Subscriber};

/// Formats an announcement as lines for a person, with labels in the person's language, and with the time in front if it is given.
pub(super) fn format_lines(announcement: &Announcement, phrases: &Phrases, time: Option<&str>) -> String {
    let start = time.map(|time| format!("{time} ")).unwrap_or_default();
    announcement.lines_in(phrases).flat_map(|line| [start.clone(), line, "\n".to_owned()]).collect()
}

/// Formats an announcement as one JSON object on one line, for programs.
pub(super) fn format_json(announcement: &Announcement, subscriber: &Subscriber, now: UnixMillis) -> String {
    write_object(|writer| {
        if let Some(time) = aaep::Timestamp::from_unix_millis(now) {
            writer.key("time").text(&time.to_string());
        }
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
        if let Some(agent) = &announcement.agent_id {
            writer.key("agent_id").text(agent);
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
        if let Some(link) = &announcement.link {
            writer.key("link").text(link);
        }
    }) + "\n"
}
