//! Events that the hub creates about questions and states. They contain text for every listener, and data in
//! `extensions.sayso` for listeners that understand it. Agents cannot forge them, because `compose` rejects that
//! extension in agents' events.

use std::sync::Arc;

use aaep::consent::{DeadlineExtended, QuestionAnswer, Reminder, Resolution, ResolvedBy};
use aaep::event::{AgentState, Decision, EventType};
use aaep::json::{Doc, TapeWriter};
use aaep::{ReplyToken, Timestamp};
use seal::UnixMillis;

use super::hub_messages;
use super::scratch::ScratchBuffers;
use crate::compose::{SaysoExtension, write_text};
use crate::reply::answer_code;

/// An event that the hub creates, without its envelope. The writer also builds the tape, so the event is not parsed
/// again.
pub(super) struct HubEvent {
    pub(super) payload: TapeWriter,
    pub(super) extension: Option<SaysoExtension<'static>>,
    /// The producer that the event is about; the session's main producer if absent.
    pub(super) producer: Option<Arc<str>>,
}

impl HubEvent {
    /// Creates an event. Its texts are in the first of the languages, or in the session's language if the list is empty.
    pub(super) fn new(
        mut payload: TapeWriter,
        kind: &EventType,
        languages: &[&str],
        members: impl FnOnce(&mut TapeWriter),
    ) -> Self {
        payload.open_object();
        payload.plain_member("type", kind.as_str());
        members(&mut payload);
        if let Some(first) = languages.first() {
            payload.plain_key("localization_hints");
            payload.open_object();
            payload.plain_member("primary_language", first);
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
        Self { payload, extension: None, producer: None }
    }

    /// Sets the producer that the event is about.
    pub(super) fn with_producer(self, producer: impl Into<Arc<str>>) -> Self {
        Self { producer: Some(producer.into()), ..self }
    }

    pub(super) fn with_extension(self, extension: SaysoExtension<'static>) -> Self {
        Self { extension: Some(extension), ..self }
    }
}

/// Creates a reminder of the time that is left to answer (§6.4.3).
pub(super) fn reminder_event(reminder: &Reminder) -> HubEvent {
    let text = format!("You have {} left to answer.", format_duration(reminder.remaining_ms));
    progress_event([&text; 3]).with_extension(SaysoExtension::ReminderOf(reminder.token.clone()))
}

/// Creates the event that reports an extended deadline. When one person asks for more time, everyone gets it (WCAG
/// 2.2.1).
pub(super) fn deadline_extended_event(extended: &DeadlineExtended, now: UnixMillis) -> HubEvent {
    deadline_event(&extended.token, extended.deadline, "There is more time to answer", now)
}

/// Like [`deadline_extended_event`], but for a listener that receives the question after this event.
pub(super) fn deadline_notice_preceding_question(
    token: &ReplyToken,
    deadline: UnixMillis,
    now: UnixMillis,
) -> HubEvent {
    deadline_event(token, deadline, "There is more time for the next question", now)
}

fn deadline_event(token: &ReplyToken, deadline: UnixMillis, announcement: &str, now: UnixMillis) -> HubEvent {
    let span = format_duration(deadline.millis_since(now));
    let until = Timestamp::from_unix_millis(deadline).map(|at| at.to_string()).unwrap_or_default();
    // A time without a date is enough, because the deadline is near.
    let clock = until.get(11..19).unwrap_or_default();
    progress_event([
        &format!("More time: {span}."),
        &format!("{announcement}: {span}."),
        &format!("{announcement}: {span}, until {clock} UTC."),
    ])
    .with_extension(SaysoExtension::DeadlineExtended { token: token.clone(), deadline })
}

/// Adds the hub's texts to an agent's state change without a summary, because listeners need a text (§9.3.1). Leaves out
/// its `from_state` if the hub replaces it. Returns `None` for any other event.
pub(super) fn complete_bare_state_change(
    doc: &Doc<'_>,
    replaces_from_state: bool,
    scratch: &mut ScratchBuffers,
) -> Option<HubEvent> {
    // A quick check, because few events qualify.
    let event = doc.source();
    if event.len() > MAX_BARE_STATE_CHANGE_BYTES
        || !event.contains("agent.state.changed")
        || event.contains("summary_")
    {
        return None;
    }
    let (mut from, mut to) = (None, None);
    for (name, value) in doc.root().members() {
        match &*name.text()? {
            "type" if value.is_text("aaep:agent.state.changed") => {}
            "urgency" if value.is_text("normal") => {}
            "producer" => {}
            "from_state" if replaces_from_state => {}
            "from_state" => from = Some(value.text()?),
            "to_state" => to = Some(value.text()?),
            _ => return None,
        }
    }
    hub_messages::standard_state_changed_event(
        scratch,
        from.as_deref().map(AgentState::parse).as_ref(),
        &AgentState::parse(&to?),
    )
}

/// Maximum size of a state change that contains only the state, in bytes.
const MAX_BARE_STATE_CHANGE_BYTES: usize = 192;

/// Creates the event about a resolved question. It is the state change with which the session continues.
pub(super) fn resolution_event(resolution: &Resolution, to: &AgentState) -> HubEvent {
    let effect = match &resolution.answer {
        QuestionAnswer::Decision(Decision::Accept) => " The action will be performed.",
        QuestionAnswer::Decision(_) => " The action will not be performed.",
        QuestionAnswer::Response(_) => " The agent will use its default answer.",
        _ => "",
    };
    let (terse, normal) = match (resolution.resolved_by, &resolution.answer) {
        (ResolvedBy::Reply, QuestionAnswer::Decision(Decision::Accept)) => {
            ("Accepted.", "A person said yes.".to_owned())
        }
        (ResolvedBy::Reply, QuestionAnswer::Decision(_)) => ("Refused.", "A person said no.".to_owned()),
        (ResolvedBy::Reply, _) => ("Answered.", "A person answered.".to_owned()),
        (ResolvedBy::Timeout, _) => ("Not answered in time.", format!("Nobody answered in time.{effect}")),
        (ResolvedBy::Closure, _) => ("Nobody left to answer.", format!("Nobody was left to answer.{effect}")),
        (ResolvedBy::Unreachable, _) => ("Nobody to ask.", format!("Nobody could be asked.{effect}")),
        _ => ("Question withdrawn.", "The question was withdrawn.".to_owned()),
    };
    // The answer to a clarification is not a decision; listeners learn only that it was answered (decision 15).
    let decision =
        matches!(resolution.answer, QuestionAnswer::Decision(_)).then(|| answer_code(&resolution.answer));
    // A stop is reported as a withdrawal, because the next event says that the person stopped the session.
    let by = if resolution.resolved_by == ResolvedBy::Stopped {
        ResolvedBy::Cancelled
    } else {
        resolution.resolved_by
    };
    HubEvent::new(TapeWriter::default(), &EventType::StateChanged, &["en"], |out| {
        write_text(out, "urgency", "normal");
        write_text(out, "to_state", to.as_str());
        write_text(out, "summary_terse", terse);
        write_text(out, "summary_normal", &normal);
    })
    .with_extension(SaysoExtension::Resolved { token: resolution.token.clone(), decision, by })
}

fn progress_event([terse, normal, detailed]: [&str; 3]) -> HubEvent {
    HubEvent::new(TapeWriter::default(), &EventType::ProgressUpdated, &["en"], |out| {
        write_text(out, "urgency", "normal");
        out.plain_key("progress");
        out.open_object();
        write_text(out, "description", normal);
        out.close_object();
        write_text(out, "summary_terse", terse);
        write_text(out, "summary_normal", normal);
        write_text(out, "summary_detailed", detailed);
    })
}

/// Formats a duration for people. From two minutes on, it adds 5 seconds and truncates to whole minutes or hours, so
/// the text overstates the time by at most 5 seconds.
fn format_duration(millis: i64) -> String {
    let seconds = millis.max(0).saturating_add(999) / 1000;
    let plural =
        |count: i64, word: &str| if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") };
    match (seconds, seconds.saturating_add(5)) {
        (0..=119, _) => plural(seconds, "second"),
        (_, longer @ ..=7199) => plural(longer / 60, "minute"),
        (_, longer) => plural(longer / 3600, "hour"),
    }
}

#[cfg(test)]
mod tests {
    use aaep::json::OwnedDoc;

    use super::*;

    #[test]
    fn only_a_bare_state_change_gets_the_hubs_text() {
        let with_hub_text = |event: &str| {
            let document = OwnedDoc::read(event).unwrap();
            let event = complete_bare_state_change(&document.doc(), false, &mut ScratchBuffers::default())?;
            Some(event.payload.source().to_owned())
        };
        let text =
            with_hub_text(r#"{"type":"aaep:agent.state.changed","urgency":"normal","to_state":"thinking"}"#);
        let text = text.unwrap();
        assert!(
            text.contains(r#""to_state":"thinking""#) && text.contains("The agent is thinking."),
            "{text}"
        );
        assert!(text.contains(r#""summary_terse_es":"Pensando.""#) && !text.contains("from_state"), "{text}");
        let with_from_state =
            r#"{"type":"aaep:agent.state.changed","from_state":"idle","to_state":"deciding"}"#;
        assert!(with_hub_text(with_from_state).unwrap().contains(r#""from_state":"idle""#));
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
            assert_eq!(with_hub_text(other), None, "{other}");
        }
    }
}
