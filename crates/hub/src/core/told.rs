//! What the hub itself says of questions and states: words for everybody, and in `extensions.sayso` a mark for listeners that know it.
//! An agent cannot say the like: that extension is the hub's alone (`compose`).

use aaep::consent::{Answer, By, Extended, Reminder, Resolution};
use aaep::event::{Decision, EventType, State};
use aaep::json::{Doc, Scribe};
use aaep::{ReplyToken, Timestamp};
use seal::UnixMillis;

use super::room::Room;
use super::tongues;
use crate::compose::{SaysoExtension, text};
use crate::reply::answer_word;

/// An event that the hub says itself, without its envelope. It is written with its tape, so it is not read again.
pub(super) struct OwnEvent {
    pub(super) payload: Scribe,
    pub(super) extension: Option<SaysoExtension<'static>>,
}

impl OwnEvent {
    /// Writes an event. The first of its languages is that of its texts; without one, they are in the session's.
    pub(super) fn new(
        mut payload: Scribe,
        kind: &EventType,
        languages: &[&str],
        members: impl FnOnce(&mut Scribe),
    ) -> Self {
        payload.open_object();
        payload.plain("type", kind.as_str());
        members(&mut payload);
        if let Some(first) = languages.first() {
            payload.plain_key("localization_hints");
            payload.open_object();
            payload.plain("primary_language", first);
            if languages.len() > 1 {
                payload.plain_key("available_languages");
                payload.open_array();
                for language in languages {
                    payload.text(language);
                }
                payload.close_array();
            }
            payload.close_object();
        }
        payload.close_object();
        Self { payload, extension: None }
    }

    pub(super) fn with(self, extension: SaysoExtension<'static>) -> Self {
        Self { extension: Some(extension), ..self }
    }
}

/// Little time is left (§6.4.3).
pub(super) fn reminder(reminder: &Reminder) -> OwnEvent {
    let left = format!("{} are left to answer.", span(reminder.remaining));
    progress([&left; 3]).with(SaysoExtension::ReminderOf(reminder.token.clone()))
}

/// A person has asked for more time, and everybody has it (WCAG 2.2.1).
pub(super) fn more_time(extended: &Extended, now: UnixMillis) -> OwnEvent {
    moved(&extended.token, extended.deadline, "There is more time to answer", now)
}

/// The same, for who is told of that question only now.
pub(super) fn more_time_before(token: &ReplyToken, deadline: UnixMillis, now: UnixMillis) -> OwnEvent {
    moved(token, deadline, "There is more time for the question that follows", now)
}

fn moved(token: &ReplyToken, deadline: UnixMillis, what: &str, now: UnixMillis) -> OwnEvent {
    let span = span(deadline.millis_since(now));
    let until = Timestamp::from_unix_millis(deadline).map(|at| at.to_string()).unwrap_or_default();
    // The day is known to whoever waits for an answer.
    let clock = until.get(11..19).unwrap_or_default();
    progress([
        &format!("More time: {span}."),
        &format!("{what}: {span} from now."),
        &format!("{what}: {span} from now, until {clock} UTC."),
    ])
    .with(SaysoExtension::MoreTime { token: token.clone(), deadline })
}

/// A change of state for which an agent has no words, in the hub's: somebody may hear it (§9.3.1).
pub(super) fn state_without_words(doc: &Doc<'_>, room: &mut Room) -> Option<OwnEvent> {
    // Hardly any other event is looked at closely.
    let event = doc.source();
    if event.len() > BARE || !event.contains("agent.state.changed") || event.contains("summary_") {
        return None;
    }
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
    tongues::known_state(room, from.as_deref().map(State::of).as_ref(), &State::of(&to?))
}

/// An event that says of a state no more than which it is has no more bytes.
const BARE: usize = 192;

/// How a question was resolved, which is the state that its session goes on in.
pub(super) fn resolution(resolution: &Resolution, to: &State) -> OwnEvent {
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
    // What was meant is no decision; that it was said is what listeners are told (decision 15).
    let decision = matches!(resolution.answer, Answer::Decision(_)).then(|| answer_word(&resolution.answer));
    // That the person stopped the session is the next thing that everybody hears.
    let by = if resolution.by == By::Stopped { By::Cancelled } else { resolution.by };
    OwnEvent::new(Scribe::default(), &EventType::StateChanged, &["en"], |out| {
        text(out, "urgency", "normal");
        text(out, "to_state", to.as_str());
        text(out, "summary_terse", terse);
        text(out, "summary_normal", &normal);
    })
    .with(SaysoExtension::Resolved { token: resolution.token.clone(), decision, by })
}

fn progress([terse, normal, detailed]: [&str; 3]) -> OwnEvent {
    OwnEvent::new(Scribe::default(), &EventType::ProgressUpdated, &["en"], |out| {
        text(out, "urgency", "normal");
        out.plain_key("progress");
        out.open_object();
        text(out, "description", normal);
        out.close_object();
        text(out, "summary_terse", terse);
        text(out, "summary_normal", normal);
        text(out, "summary_detailed", detailed);
    })
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
    use aaep::json::Kept;

    use super::*;

    #[test]
    fn only_a_state_without_words_is_told_in_the_hubs() {
        let in_hubs_words = |event: &str| {
            let kept = Kept::read(event).unwrap();
            let own = state_without_words(&kept.doc(), &mut Room::default())?;
            Some(own.payload.source().to_owned())
        };
        let said =
            in_hubs_words(r#"{"type":"aaep:agent.state.changed","urgency":"normal","to_state":"thinking"}"#);
        let said = said.unwrap();
        assert!(
            said.contains(r#""to_state":"thinking""#) && said.contains("The agent is thinking."),
            "{said}"
        );
        assert!(said.contains(r#""summary_terse_es":"Pensando.""#) && !said.contains("from_state"), "{said}");
        let left = r#"{"type":"aaep:agent.state.changed","from_state":"idle","to_state":"deciding"}"#;
        assert!(in_hubs_words(left).unwrap().contains(r#""from_state":"idle""#));
        for other in [
            r#"{"type":"aaep:agent.state.changed","to_state":"thinking","summary_normal":"Thinking."}"#,
            r#"{"type":"aaep:agent.state.changed","to_state":"thinking","localization_hints":{"primary_language":"de"}}"#,
            r#"{"type":"aaep:agent.state.changed","to_state":"thinking","urgency":"background"}"#,
            r#"{"type":"aaep:agent.state.changed","to_state":"dreaming"}"#,
            r#"{"type":"aaep:agent.state.changed","to_state":7}"#,
            r#"{"type":"aaep:agent.state.changed"}"#,
            r#"{"type":"aaep:agent.tool.invoked","tool":"agent.state.changed","to_state":"thinking"}"#,
            r#""agent.state.changed""#,
        ] {
            assert_eq!(in_hubs_words(other), None, "{other}");
        }
    }
}
