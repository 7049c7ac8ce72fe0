//! What the hub itself says of questions and states: words for everybody, and in `extensions.sayso` a mark for listeners that know it.
//! An agent cannot say the like: that extension is the hub's alone (`compose`).

use aaep::consent::{Answer, By, Extended, Reminder, Resolution};
use aaep::event::Decision;
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

/// Beside words that only tell a state: who has words of its own for that state needs none of these.
pub(super) const HUBS_WORDS: &str = r#"{"words":"hub"}"#;

/// The agent's state is another one now; `from` is said where it is not the one before.
pub(super) fn state(from: Option<&str>, to: &str) -> String {
    let (terse, normal) = match to {
        "idle" => ("Idle.", "The agent is idle."),
        "thinking" => ("Thinking.", "The agent is thinking."),
        "calling_tool" => ("Using a tool.", "The agent is using a tool."),
        "writing_output" => ("Writing.", "The agent is writing."),
        "awaiting_input" => ("Waiting for an answer.", "The agent waits for an answer."),
        "deciding" => ("Deciding.", "The agent is deciding what to do."),
        "handing_off" => ("Handing over.", "The agent is handing over."),
        _ => ("Under way.", "The agent is under way."),
    };
    state_in_words(from, to, terse, normal)
}

/// Whether that is a state in the hub's words, of those that it says itself.
pub(super) fn is_state(said: &str) -> bool {
    said.starts_with(r#"{"type":"aaep:agent.state.changed","#)
}

/// How a question was resolved, which is the state that its session goes on in.
pub(super) fn resolution(resolution: &Resolution, to: &str) -> String {
    let counts = match &resolution.answer {
        Answer::Decision(Decision::Accept) => " It counts as a yes.",
        Answer::Decision(_) => " It counts as a no.",
        Answer::Response(_) => " The agent takes the answer that it had in mind.",
        _ => "",
    };
    let (terse, normal) = match (resolution.by, &resolution.answer) {
        (By::Reply, Answer::Decision(Decision::Accept)) => ("Accepted.", "A person said yes.".to_owned()),
        (By::Reply, Answer::Decision(_)) => ("Refused.", "A person said no.".to_owned()),
        (By::Reply, _) => ("Answered.", "A person answered.".to_owned()),
        (By::Timeout, _) => ("Not answered in time.", format!("Nobody answered in time.{counts}")),
        (By::Closure, _) => ("Nobody left to answer.", format!("Nobody was left to answer.{counts}")),
        (By::Unreachable, _) => ("Nobody to ask.", format!("Nobody could be asked.{counts}")),
        _ => ("Question withdrawn.", "The question was withdrawn.".to_owned()),
    };
    state_in_words(None, to, terse, &normal)
}

fn state_in_words(from: Option<&str>, to: &str, terse: &str, normal: &str) -> String {
    let mut writer = Writer::default();
    writer.open_object();
    let members = [
        ("type", Some("aaep:agent.state.changed")),
        ("urgency", Some("normal")),
        ("from_state", from),
        ("to_state", Some(to)),
        ("summary_terse", Some(terse)),
        ("summary_normal", Some(normal)),
    ];
    for (name, text) in members.into_iter().filter_map(|(name, text)| Some((name, text?))) {
        writer.key(name);
        writer.text(text);
    }
    writer.key("localization_hints");
    writer.raw(r#"{"primary_language":"en"}"#);
    writer.close_object();
    writer.finish()
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
