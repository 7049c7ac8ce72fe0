//! Announcements as they are printed.

use aaep::json::Writer;

use crate::{Announcement, Ear};

/// Lines for a person.
pub(super) fn lines(announcement: &Announcement) -> String {
    announcement.lines().flat_map(|line| [line, "\n".to_owned()]).collect()
}

/// One object on one line, for programs.
pub(super) fn json(announcement: &Announcement, ear: &Ear) -> String {
    let mut writer = Writer::default();
    writer.open_object();
    let mut member = |name: &str, text: &str| {
        writer.key(name).text(text);
    };
    member("kind", announcement.kind.word());
    member("urgency", announcement.urgency.as_str());
    member("text", &announcement.text);
    if let Some(language) = &announcement.language {
        member("language", language);
        member("direction", announcement.direction.as_str());
    }
    if let Some(session) = &announcement.session {
        member("session_id", session.as_str());
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
    writer.close_object();
    let mut line = writer.finish();
    line.push('\n');
    line
}
