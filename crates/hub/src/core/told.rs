//! What the hub itself says of questions: words for everybody, and in `extensions.sayso` a mark for listeners that know it.
//! An agent cannot say the like: that extension is the hub's alone (`compose`).

use aaep::consent::{Extended, Reminder};
use aaep::json::Writer;
use aaep::{ReplyToken, Timestamp};

/// An event, and what stands beside it in `extensions.sayso`.
pub(super) struct Told {
    pub(super) said: String,
    pub(super) mark: String,
}

/// Little time is left (§6.4.3).
pub(super) fn reminder(reminder: &Reminder) -> Told {
    let left = format!("{} are left to answer.", span(reminder.remaining));
    Told { said: progress(&left, &left, &left), mark: mark(&[("reminds_of", reminder.token.as_str())]) }
}

/// A person has asked for more time, and everybody has it (WCAG 2.2.1).
pub(super) fn more_time(extended: &Extended, now: i64) -> Told {
    moved(&extended.token, extended.deadline, "There is more time to answer", now)
}

/// The same, for who is told of that question only now.
pub(super) fn more_time_before(token: &ReplyToken, deadline: i64, now: i64) -> Told {
    moved(token, deadline, "There is more time for the question that follows", now)
}

fn moved(token: &ReplyToken, deadline: i64, what: &str, now: i64) -> Told {
    let span = span(deadline.saturating_sub(now));
    let until = Timestamp::from_unix_millis(deadline).map(|at| at.to_string()).unwrap_or_default();
    // The day is known to whoever waits for an answer.
    let clock = until.get(11..19).unwrap_or_default();
    Told {
        said: progress(
            &format!("More time: {span}."),
            &format!("{what}: {span} from now."),
            &format!("{what}: {span} from now, until {clock} UTC."),
        ),
        mark: mark(&[("extended", token.as_str()), ("deadline", &until)]),
    }
}

/// The sentences are plain: nothing in them wants escaping.
fn progress(terse: &str, normal: &str, detailed: &str) -> String {
    format!(
        r#"{{"type":"aaep:agent.progress.updated","urgency":"normal","localization_hints":{{"primary_language":"en"}},"progress":{{"description":"{normal}"}},"summary_terse":"{terse}","summary_normal":"{normal}","summary_detailed":"{detailed}"}}"#
    )
}

fn mark(members: &[(&str, &str)]) -> String {
    let mut writer = Writer::default();
    writer.open_object();
    for (name, text) in members {
        writer.key(name);
        writer.text(text);
    }
    writer.close_object();
    writer.finish()
}

/// How long, as people say it; of minutes at most a twentieth more than there is.
fn span(millis: i64) -> String {
    let seconds = millis.max(0).saturating_add(999) / 1000;
    let many =
        |count: i64, word: &str| if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") };
    match (seconds, seconds.saturating_add(5)) {
        (0..=119, _) => many(seconds, "second"),
        (_, longer @ ..=7199) => many(longer / 60, "minute"),
        (_, longer) => many(longer / 3600, "hour"),
    }
}
