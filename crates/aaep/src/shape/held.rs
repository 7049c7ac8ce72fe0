//! An event on its way out.

use std::sync::Arc;

use seal::{Digest, Timestamp};

use crate::check::is_of_both_directions;
use crate::event::{Event, LocalizationHints, OutputStreaming, Payload, State, TextDirection, Urgency};
use crate::id::EventId;

/// An event for the subscription.
#[derive(Debug)]
pub enum Out<T> {
    /// The event as it was committed: its bytes can be shared.
    Same(Arc<T>),
    /// An event that was made for this shape: merged, in other words, or with another time.
    Made(Box<Event>),
}

impl<T: AsRef<Event>> Out<T> {
    /// The event.
    pub fn event(&self) -> &Event {
        match self {
            Self::Same(event) => (**event).as_ref(),
            Self::Made(event) => event,
        }
    }

    /// Whether it is critical: it must not wait, here or further on (§5.5.4).
    pub fn is_critical(&self) -> bool {
        is_critical(self.event())
    }
}

impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Same(event) => Self::Same(Arc::clone(event)),
            Self::Made(event) => Self::Made(event.clone()),
        }
    }
}

/// Whether an event is critical, by its type or by what it says (C-A8).
pub(super) fn is_critical(event: &Event) -> bool {
    event.envelope.event_type.is_critical() || event.envelope.urgency == Some(Urgency::Critical)
}

/// An event that waits, and how it can be joined with others of its session.
#[derive(Clone, Debug)]
pub(super) struct Held<T> {
    pub(super) out: Out<T>,
    pub(super) kind: Kind,
    /// The time of sending is its time, because it did not leave when it could have.
    pub(super) waited: bool,
    /// The place of the first event that is in it.
    pub(super) since: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Stays as it is and where it is.
    Fixed,
    Text,
    Progress,
    State,
}

impl Kind {
    /// Whether an event could still be joined with one that comes, though this one is held behind it.
    pub(super) fn stays_open_before(self, later: Self) -> bool {
        match self {
            Self::Fixed => false,
            Self::Text => matches!(later, Self::Text | Self::Progress),
            Self::Progress => later != Self::Fixed,
            Self::State => matches!(later, Self::State | Self::Progress),
        }
    }

    /// Lifecycle, tools, questions, what leads into and out of them, and strangers are never joined (§5.6, C-C19). Nor
    /// is what carries an extension, which would be lost; that the words are the hub's is as true of what was joined.
    pub(super) fn of(event: &Event) -> Self {
        let extended = event.envelope.extensions.as_ref().is_some_and(|it| it.as_str() != HUBS_WORDS);
        if extended && !matches!(event.payload, Payload::OutputStreaming(_)) {
            return Self::Fixed;
        }
        match &event.payload {
            Payload::OutputStreaming(_) => Self::Text,
            Payload::ProgressUpdated(_) => Self::Progress,
            Payload::StateChanged(change)
                if change.from_state != State::AwaitingInput && change.to_state != State::AwaitingInput =>
            {
                Self::State
            }
            _ => Self::Fixed,
        }
    }
}

/// The extension of a state that a hub tells in words of its own.
const HUBS_WORDS: &str = r#"{"sayso":{"words":"hub"}}"#;

/// Whether an event is the change of state that leads this producer to a question.
pub(super) fn leads_to_question(event: &Event, agent_id: &str) -> bool {
    matches!(&event.payload, Payload::StateChanged(change) if change.to_state == State::AwaitingInput)
        && event.envelope.producer.agent_id == agent_id
}

/// What one held event is for a later one of its session.
pub(super) enum Relation<T> {
    /// They become this one.
    Joined(Out<T>),
    /// They cancel each other out: the agent is where it was.
    Nothing,
    /// Their order means nothing.
    Apart,
    /// The later one stays behind it.
    Before,
}

impl<T: AsRef<Event>> Held<T> {
    pub(super) fn new(out: Out<T>, since: u64) -> Self {
        let kind = Kind::of(out.event());
        Self { out, kind, waited: false, since }
    }

    /// What this one is for `later`; text of at most `limit` bytes is joined.
    pub(super) fn relation(&self, later: &Self, limit: usize, key: &Digest) -> Relation<T> {
        let (first, last) = (self.out.event(), later.out.event());
        let same_agent = first.envelope.producer.agent_id == last.envelope.producer.agent_id;
        match (self.kind, later.kind) {
            (Kind::Text, Kind::Text) => joined_text(first, last, limit, key),
            (Kind::Progress, Kind::Progress) if same_agent => Relation::Joined(later.out.clone()),
            (Kind::State, Kind::State) if same_agent => joined_state(first, last, key),
            (Kind::Progress, Kind::Progress | Kind::Text | Kind::State)
            | (Kind::Text | Kind::State, Kind::Progress)
            | (Kind::State, Kind::State) => Relation::Apart,
            _ => Relation::Before,
        }
    }
}

/// Two pieces of output: the position of the first, the end and the hint of the last.
fn joined_text<T>(first: &Event, last: &Event, limit: usize, key: &Digest) -> Relation<T> {
    let (Payload::OutputStreaming(before), Payload::OutputStreaming(after)) = (&first.payload, &last.payload)
    else {
        return Relation::Before;
    };
    if !same_output(first, before, last, after) {
        return Relation::Apart;
    }
    let next = before.position + count(&before.chunk);
    if next != after.position || before.chunk.len() + after.chunk.len() > limit || !same_voice(first, last) {
        return Relation::Before;
    }
    let mut event = last.clone();
    if let Payload::OutputStreaming(chunk) = &mut event.payload {
        chunk.chunk.insert_str(0, &before.chunk);
        chunk.position = before.position;
    }
    if direction(first) == Some(&TextDirection::Auto) {
        set_auto(&mut event);
    }
    settle_direction(&mut event);
    name_text(&mut event, key);
    Relation::Joined(Out::Made(Box::new(event)))
}

/// Two changes of state: from where the first left to where the last went.
fn joined_state<T>(first: &Event, last: &Event, key: &Digest) -> Relation<T> {
    let (Payload::StateChanged(before), Payload::StateChanged(after)) = (&first.payload, &last.payload)
    else {
        return Relation::Before;
    };
    if before.from_state == after.to_state {
        return Relation::Nothing;
    }
    let mut event = last.clone();
    if let Payload::StateChanged(change) = &mut event.payload {
        change.from_state.clone_from(&before.from_state);
    }
    event.envelope.sequence_number = None;
    event.envelope.event_id = made_id(&[
        b"state",
        first.envelope.event_id.as_str().as_bytes(),
        last.envelope.event_id.as_str().as_bytes(),
        key.as_bytes(),
    ]);
    Relation::Joined(Out::Made(Box::new(event)))
}

fn same_output(first: &Event, before: &OutputStreaming, last: &Event, after: &OutputStreaming) -> bool {
    before.output_id == after.output_id
        && (before.output_id.is_some() || first.envelope.producer.agent_id == last.envelope.producer.agent_id)
}

/// Whether two pieces of one output can stand in one event: who speaks, in which language, with which extensions and
/// strangers is the same.
pub(super) fn same_voice(first: &Event, last: &Event) -> bool {
    let (Payload::OutputStreaming(before), Payload::OutputStreaming(after)) = (&first.payload, &last.payload)
    else {
        return false;
    };
    let (a, b) = (&first.envelope, &last.envelope);
    a.producer == b.producer
        && same_hints(a.localization_hints.as_deref(), b.localization_hints.as_deref())
        && a.extensions == b.extensions
        && a.context == b.context
        && a.aaep_version == b.aaep_version
        && before.content_type == after.content_type
        && before.language == after.language
        && before.other == after.other
}

/// The direction aside, which is settled when the text is known.
fn same_hints(first: Option<&LocalizationHints>, last: Option<&LocalizationHints>) -> bool {
    match (first, last) {
        (Some(a), Some(b)) => {
            a.primary_language == b.primary_language
                && a.available_languages == b.available_languages
                && a.fallback_chain == b.fallback_chain
                && a.script == b.script
                && a.calendar == b.calendar
                && a.other == b.other
        }
        (None, None) => true,
        _ => false,
    }
}

fn direction(event: &Event) -> Option<&TextDirection> {
    event.envelope.localization_hints.as_ref()?.text_direction.as_ref()
}

fn set_auto(event: &mut Event) {
    let hints = event.envelope.localization_hints.get_or_insert_with(|| LocalizationHints::new().into());
    Arc::make_mut(hints).text_direction = Some(TextDirection::Auto);
}

/// Text in which pieces of both directions have met says so (§11.4.2).
pub(super) fn settle_direction(event: &mut Event) {
    let Payload::OutputStreaming(chunk) = &event.payload else { return };
    if direction(event) != Some(&TextDirection::Auto) && is_of_both_directions(&chunk.chunk) {
        set_auto(event);
    }
}

/// Gives a piece of output its id: the same for the same range of the same output in the same shape, also after a crash.
pub(super) fn name_text(event: &mut Event, key: &Digest) {
    let Payload::OutputStreaming(chunk) = &event.payload else { return };
    let output = chunk.output_id.as_ref().map_or("", |id| id.as_str());
    let end = chunk.position + count(&chunk.chunk);
    event.envelope.event_id = made_id(&[
        b"text",
        event.envelope.session_id.as_str().as_bytes(),
        output.as_bytes(),
        event.envelope.producer.agent_id.as_bytes(),
        &chunk.position.to_be_bytes(),
        &end.to_be_bytes(),
        &[u8::from(chunk.complete)],
        key.as_bytes(),
    ]);
    event.envelope.sequence_number = None;
}

/// The event with another time.
pub(super) fn stamped<T: AsRef<Event>>(out: Out<T>, time: Timestamp) -> Out<T> {
    let mut event = match out {
        Out::Same(event) => Box::new((*event).as_ref().clone()),
        Out::Made(event) => event,
    };
    event.envelope.timestamp = time;
    Out::Made(event)
}

/// How many code points a text has (C-B11).
pub(super) fn count(text: &str) -> u64 {
    u64::try_from(text.chars().count()).unwrap_or(u64::MAX)
}

fn made_id(parts: &[&[u8]]) -> EventId {
    let mut lengths = [[0; 8]; 8];
    for (length, part) in lengths.iter_mut().zip(parts) {
        *length = (part.len() as u64).to_be_bytes();
    }
    let pieces = parts.iter().zip(&lengths).flat_map(|(part, length)| [&length[..], part]);
    let digest = Digest::of_all(pieces);
    EventId::generate(&mut |bytes: &mut [u8]| {
        for (byte, of_digest) in bytes.iter_mut().zip(digest.as_bytes()) {
            *byte = *of_digest;
        }
    })
}
