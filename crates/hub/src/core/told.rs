//! What the hub itself says of questions and states: words for everybody, and in `extensions.sayso` a mark for listeners that know it.
//! An agent cannot say the like: that extension is the hub's alone (`compose`).

use aaep::consent::{Answer, By, Extended, Reminder, Resolution};
use aaep::event::{Decision, State};
use aaep::json::{Tape, Writer};
use aaep::{ReplyToken, Timestamp};
use seal::UnixMillis;

use super::tongues;

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
pub(super) fn more_time(extended: &Extended, now: UnixMillis) -> Told {
    moved(&extended.token, extended.deadline, "There is more time to answer", now)
}

/// The same, for who is told of that question only now.
pub(super) fn more_time_before(token: &ReplyToken, deadline: UnixMillis, now: UnixMillis) -> Told {
    moved(token, deadline, "There is more time for the question that follows", now)
}

fn moved(token: &ReplyToken, deadline: UnixMillis, what: &str, now: UnixMillis) -> Told {
    let span = span(deadline.millis_since(now));
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

/// A change of state for which an agent has no words, in the hub's: somebody may hear it (§9.3.1).
pub(super) fn state_without_words(event: &str) -> Option<String> {
    // Hardly any other event is looked at closely.
    if event.len() > BARE || !event.contains("agent.state.changed") || event.contains("summary_") {
        return None;
    }
    let mut tape = Tape::default();
    let doc = tape.read(event).ok()?;
    let (mut from, mut to) = (None, None);
    for (name, value) in doc.root().members() {
        match &*name.text()? {
            "type" if value.is("aaep:agent.state.changed") => {}
            "urgency" if value.is("normal") => {}
            "from_state" => from = Some(value.text()?),
            "to_state" => to = Some(value.text()?),
            _ => return None,
        }
    }
    tongues::known_state(from.as_deref().map(State::of).as_ref(), &State::of(&to?))
}

/// An event that says of a state no more than which it is has no more bytes.
const BARE: usize = 192;

/// Whether that is a state in the hub's words, of those that it says itself.
pub(super) fn is_state(said: &str) -> bool {
    said.starts_with(r#"{"type":"aaep:agent.state.changed","#)
}

/// How a question was resolved, which is the state that its session goes on in.
pub(super) fn resolution(resolution: &Resolution, to: &State) -> String {
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
    let mut writer = Writer::default();
    writer.open_object();
    for (name, text) in [
        ("type", "aaep:agent.state.changed"),
        ("urgency", "normal"),
        ("to_state", to.as_str()),
        ("summary_terse", terse),
        ("summary_normal", &normal),
    ] {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_state_without_words_is_told_in_the_hubs() {
        let said = state_without_words(
            r#"{"type":"aaep:agent.state.changed","urgency":"normal","to_state":"thinking"}"#,
        );
        let said = said.unwrap();
        assert!(
            said.contains(r#""to_state":"thinking""#) && said.contains("The agent is thinking."),
            "{said}"
        );
        assert!(said.contains(r#""summary_terse_es":"Pensando.""#) && !said.contains("from_state"), "{said}");
        let left = r#"{"type":"aaep:agent.state.changed","from_state":"idle","to_state":"deciding"}"#;
        assert!(state_without_words(left).unwrap().contains(r#""from_state":"idle""#));
        for other in [
            r#"{"type":"aaep:agent.state.changed","to_state":"thinking","summary_normal":"Thinking."}"#,
            r#"{"type":"aaep:agent.state.changed","to_state":"thinking","localization_hints":{"primary_language":"de"}}"#,
            r#"{"type":"aaep:agent.state.changed","to_state":"thinking","urgency":"background"}"#,
            r#"{"type":"aaep:agent.state.changed","to_state":"dreaming"}"#,
            r#"{"type":"aaep:agent.state.changed","to_state":7}"#,
            r#"{"type":"aaep:agent.state.changed"}"#,
            r#"{"type":"aaep:agent.tool.invoked","tool":"agent.state.changed","to_state":"thinking"}"#,
            "agent.state.changed",
        ] {
            assert_eq!(state_without_words(other), None, "{other}");
        }
    }
}
