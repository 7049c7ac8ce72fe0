//! Outgoing events, and the merging of held events.

use std::sync::Arc;

use seal::{Digest, Timestamp};

use crate::check::has_mixed_direction;
use crate::event::{AgentState, Event, LocalizationHints, OutputStreaming, Payload, TextDirection, Urgency};
use crate::id::EventId;

/// An event for the subscription.
#[derive(Debug)]
pub enum OutgoingEvent<T> {
    /// The event as committed. Its bytes can be shared between subscriptions.
    Unchanged(Arc<T>),
    /// An event that shaping changed. It was merged, localized, or got another timestamp.
    Rewritten(Box<Event>),
}

impl<T: AsRef<Event>> OutgoingEvent<T> {
    /// Returns the event.
    pub fn event(&self) -> &Event {
        match self {
            Self::Unchanged(event) => (**event).as_ref(),
            Self::Rewritten(event) => event,
        }
    }

    /// Returns whether the event is critical and must not be delayed (§5.5.4).
    pub fn is_critical(&self) -> bool {
        is_critical(self.event())
    }
}

impl<T> Clone for OutgoingEvent<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Unchanged(event) => Self::Unchanged(Arc::clone(event)),
            Self::Rewritten(event) => Self::Rewritten(event.clone()),
        }
    }
}

/// Returns whether an event is critical by its type or its urgency (C-A8).
pub(super) fn is_critical(event: &Event) -> bool {
    event.envelope.event_type.is_critical() || event.envelope.urgency == Some(Urgency::Critical)
}

/// A held event, and how it can be merged with others of its session.
#[derive(Clone, Debug)]
pub(super) struct HeldEvent<T> {
    pub(super) outgoing: OutgoingEvent<T>,
    pub(super) kind: MergeKind,
    /// Whether the event was delayed. If so, its timestamp becomes the time at which it is sent.
    pub(super) was_delayed: bool,
    /// The log position of the first event that was merged into this event.
    pub(super) first_log_position: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MergeKind {
    /// Never merged or moved.
    Fixed,
    Text,
    Progress,
    State,
}

impl MergeKind {
    /// Returns whether an event of this kind can still be merged with a new event, although an
    /// event of the kind `later` is held after it.
    pub(super) fn is_mergeable_before(self, later: Self) -> bool {
        match self {
            Self::Fixed => false,
            Self::Text => matches!(later, Self::Text | Self::Progress),
            Self::Progress => later != Self::Fixed,
            Self::State => matches!(later, Self::State | Self::Progress),
        }
    }

    /// Returns the kind of an event. Lifecycle events, tools, questions, the state changes around
    /// them, and unknown events are never merged (§5.6, C-C19). Events with extensions are not
    /// merged either, because the extensions would be lost. There are two exceptions. Chunks of
    /// output are merged if they have the same extensions. The extension that marks the hub's own
    /// text also applies to the merged event.
    pub(super) fn of(event: &Event) -> Self {
        let has_extensions =
            event.envelope.extensions.as_ref().is_some_and(|it| it.as_str() != HUB_TEXT_EXTENSION);
        if has_extensions && !matches!(event.payload, Payload::OutputStreaming(_)) {
            return Self::Fixed;
        }
        match &event.payload {
            Payload::OutputStreaming(_) => Self::Text,
            Payload::ProgressUpdated(_) => Self::Progress,
            Payload::StateChanged(change)
                if change.from_state != AgentState::AwaitingInput
                    && change.to_state != AgentState::AwaitingInput =>
            {
                Self::State
            }
            _ => Self::Fixed,
        }
    }
}

/// The extension of a state change whose text was written by the hub.
const HUB_TEXT_EXTENSION: &str = r#"{"sayso":{"text_by":"hub"}}"#;

/// Returns whether an event is the state change before a question of this producer.
pub(super) fn leads_to_question(event: &Event, agent_id: &str) -> bool {
    matches!(&event.payload, Payload::StateChanged(change) if change.to_state == AgentState::AwaitingInput)
        && event.envelope.producer.agent_id == agent_id
}

/// The result of an attempt to merge a held event with a later event of its session.
pub(super) enum MergeResult<T> {
    /// The merged event, which replaces the two events.
    Merged(OutgoingEvent<T>),
    /// The two events cancel each other out, because the agent is back in its former state.
    Cancelled,
    /// The order of the two events does not matter.
    Independent,
    /// The later event must not overtake the held event.
    Blocking,
}

impl<T: AsRef<Event>> HeldEvent<T> {
    pub(super) fn new(outgoing: OutgoingEvent<T>, first_log_position: u64) -> Self {
        let kind = MergeKind::of(outgoing.event());
        Self { outgoing, kind, was_delayed: false, first_log_position }
    }

    /// Merges this event with a later event, if possible. Text is merged up to `limit` bytes.
    pub(super) fn merge_with(&self, later: &Self, limit: usize, terms_digest: &Digest) -> MergeResult<T> {
        let (first, last) = (self.outgoing.event(), later.outgoing.event());
        let is_same_agent = first.envelope.producer.agent_id == last.envelope.producer.agent_id;
        match (self.kind, later.kind) {
            (MergeKind::Text, MergeKind::Text) => merge_text(first, last, limit, terms_digest),
            (MergeKind::Progress, MergeKind::Progress) if is_same_agent => {
                MergeResult::Merged(later.outgoing.clone())
            }
            (MergeKind::State, MergeKind::State) if is_same_agent => merge_state(first, last, terms_digest),
            (MergeKind::Progress, MergeKind::Progress | MergeKind::Text | MergeKind::State)
            | (MergeKind::Text | MergeKind::State, MergeKind::Progress)
            | (MergeKind::State, MergeKind::State) => MergeResult::Independent,
            _ => MergeResult::Blocking,
        }
    }
}

/// Merges two chunks of output. The result has the position of the first chunk, and the `complete`
/// flag and the hint of the last chunk.
fn merge_text<T>(first: &Event, last: &Event, limit: usize, terms_digest: &Digest) -> MergeResult<T> {
    let (Payload::OutputStreaming(before), Payload::OutputStreaming(after)) = (&first.payload, &last.payload)
    else {
        return MergeResult::Blocking;
    };
    if !is_same_output(first, before, last, after) {
        return MergeResult::Independent;
    }
    let next = before.position + code_point_count(&before.chunk);
    if next != after.position
        || before.chunk.len() + after.chunk.len() > limit
        || !has_same_attributes(first, last)
    {
        return MergeResult::Blocking;
    }
    let mut event = last.clone();
    if let Payload::OutputStreaming(chunk) = &mut event.payload {
        chunk.chunk.insert_str(0, &before.chunk);
        chunk.position = before.position;
    }
    if direction(first) == Some(&TextDirection::Auto) {
        set_auto_direction(&mut event);
    }
    update_direction(&mut event);
    assign_text_id(&mut event, terms_digest);
    MergeResult::Merged(OutgoingEvent::Rewritten(Box::new(event)))
}

/// Merges two state changes. The result has the first `from_state` and the last `to_state`.
fn merge_state<T>(first: &Event, last: &Event, terms_digest: &Digest) -> MergeResult<T> {
    let (Payload::StateChanged(before), Payload::StateChanged(after)) = (&first.payload, &last.payload)
    else {
        return MergeResult::Blocking;
    };
    if before.from_state == after.to_state {
        return MergeResult::Cancelled;
    }
    let mut event = last.clone();
    if let Payload::StateChanged(change) = &mut event.payload {
        change.from_state.clone_from(&before.from_state);
    }
    event.envelope.sequence_number = None;
    event.envelope.event_id = derive_event_id(&[
        b"state",
        first.envelope.event_id.as_str().as_bytes(),
        last.envelope.event_id.as_str().as_bytes(),
        terms_digest.as_bytes(),
    ]);
    MergeResult::Merged(OutgoingEvent::Rewritten(Box::new(event)))
}

fn is_same_output(first: &Event, before: &OutputStreaming, last: &Event, after: &OutputStreaming) -> bool {
    before.output_id == after.output_id
        && (before.output_id.is_some() || first.envelope.producer.agent_id == last.envelope.producer.agent_id)
}

/// Returns whether two chunks of one output can become one event, because they have the same
/// producer, language, extensions and unknown members.
pub(super) fn has_same_attributes(first: &Event, last: &Event) -> bool {
    let (Payload::OutputStreaming(before), Payload::OutputStreaming(after)) = (&first.payload, &last.payload)
    else {
        return false;
    };
    let (a, b) = (&first.envelope, &last.envelope);
    a.producer == b.producer
        && have_same_hints(a.localization_hints.as_deref(), b.localization_hints.as_deref())
        && a.extensions == b.extensions
        && a.context == b.context
        && a.aaep_version == b.aaep_version
        && before.content_type == after.content_type
        && before.language == after.language
        && before.other == after.other
}

/// Compares hints without the direction, which is set when the text is complete.
fn have_same_hints(first: Option<&LocalizationHints>, last: Option<&LocalizationHints>) -> bool {
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

fn set_auto_direction(event: &mut Event) {
    let hints = event.envelope.localization_hints.get_or_insert_with(|| LocalizationHints::new().into());
    Arc::make_mut(hints).text_direction = Some(TextDirection::Auto);
}

/// Sets the direction `auto` on text that mixes directions (§11.4.2).
pub(super) fn update_direction(event: &mut Event) {
    let Payload::OutputStreaming(chunk) = &event.payload else { return };
    if direction(event) != Some(&TextDirection::Auto) && has_mixed_direction(&chunk.chunk) {
        set_auto_direction(event);
    }
}

/// Assigns the id of a chunk. The id depends only on the output, the range and the terms, so it is
/// the same after a crash.
pub(super) fn assign_text_id(event: &mut Event, terms_digest: &Digest) {
    let Payload::OutputStreaming(chunk) = &event.payload else { return };
    let output = chunk.output_id.as_ref().map_or("", |id| id.as_str());
    let end = chunk.position + code_point_count(&chunk.chunk);
    event.envelope.event_id = derive_event_id(&[
        b"text",
        event.envelope.session_id.as_str().as_bytes(),
        output.as_bytes(),
        event.envelope.producer.agent_id.as_bytes(),
        &chunk.position.to_be_bytes(),
        &end.to_be_bytes(),
        &[u8::from(chunk.complete)],
        terms_digest.as_bytes(),
    ]);
    event.envelope.sequence_number = None;
}

/// Returns the event with another timestamp.
pub(super) fn with_timestamp<T: AsRef<Event>>(
    outgoing: OutgoingEvent<T>,
    time: Timestamp,
) -> OutgoingEvent<T> {
    let mut event = match outgoing {
        OutgoingEvent::Unchanged(event) => Box::new((*event).as_ref().clone()),
        OutgoingEvent::Rewritten(event) => event,
    };
    event.envelope.timestamp = time;
    OutgoingEvent::Rewritten(event)
}

/// Returns the number of code points (C-B11).
pub(super) fn code_point_count(text: &str) -> u64 {
    u64::try_from(text.chars().count()).unwrap_or(u64::MAX)
}

fn derive_event_id(parts: &[&[u8]]) -> EventId {
    let mut lengths = [[0; 8]; 8];
    for (length, part) in lengths.iter_mut().zip(parts) {
        *length = (part.len() as u64).to_be_bytes();
    }
    let sections = parts.iter().zip(&lengths).flat_map(|(part, length)| [&length[..], part]);
    let digest = Digest::of_parts(sections);
    EventId::generate(&mut |bytes: &mut [u8]| {
        for (byte, digest_byte) in bytes.iter_mut().zip(digest.as_bytes()) {
            *byte = *digest_byte;
        }
    })
}
