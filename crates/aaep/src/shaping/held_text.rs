//! The text of one output, held until it can be split.

use std::sync::Arc;

use super::code_spans::{self, CodeContext};
use super::held_event::{
    OutgoingEvent, assign_text_id, code_point_count, has_same_attributes, update_direction,
};
use super::text_boundaries::{self, CutGranularity, CutSearch, PendingText, contains_blank_line};
use crate::event::{CoalesceHint, Event, OutputStreaming, Payload};
use crate::id::OutputId;
use seal::{Digest, Timestamp};

/// How text is split for one subscription.
#[derive(Clone, Debug)]
pub(super) struct CutSettings {
    pub(super) granularity: CutGranularity,
    /// Maximum number of bytes in one event.
    pub(super) max_bytes: usize,
    pub(super) cuts_sentences: bool,
    pub(super) cuts_paragraphs: bool,
    /// Whether the hint of a chunk is trusted to describe its end.
    pub(super) trusts_hints: bool,
    /// The digest of the subscription's negotiated terms. It is part of the id of every rewritten event,
    /// so that listeners with different terms get different ids.
    pub(super) terms_digest: Digest,
}

/// The held text of one output.
#[derive(Clone, Debug)]
pub(super) struct HeldText<T> {
    output: Option<OutputId>,
    agent: Box<str>,
    held: String,
    /// The length of the held text in characters.
    length: u64,
    /// The position of the first held character.
    position: u64,
    context: CodeContext,
    /// Whether a new cut is possible only after a chunk that passes
    /// [`text_boundaries::may_create_cut`].
    needs_boundary_character: bool,
    /// The chunk that starts where the held text starts.
    first: Option<Arc<T>>,
    /// The latest chunk.
    last: Arc<T>,
    /// The offset of the latest chunk in the held text; `None` if its start is no longer held.
    last_offset: Option<usize>,
    /// A lower bound of the log position of the chunk at the start of the held text.
    pub(super) first_log_position: u64,
}

/// Most sentences have fewer bytes, so the buffer rarely has to grow.
const INITIAL_CAPACITY: usize = 256;

impl<T: AsRef<Event>> HeldText<T> {
    pub(super) fn new(source: &Arc<T>, chunk: &OutputStreaming, first_log_position: u64) -> Self {
        Self {
            output: chunk.output_id.clone(),
            agent: (**source).as_ref().envelope.producer.agent_id.as_str().into(),
            held: String::with_capacity(INITIAL_CAPACITY),
            length: 0,
            position: chunk.position,
            context: CodeContext::default(),
            needs_boundary_character: true,
            first: None,
            last: Arc::clone(source),
            last_offset: None,
            first_log_position,
        }
    }

    pub(super) fn belongs_to(&self, event: &Event, chunk: &OutputStreaming) -> bool {
        self.output == chunk.output_id
            && (self.output.is_some() || *self.agent == *event.envelope.producer.agent_id)
    }

    /// Returns whether no text is held and no code fence is open.
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty() && self.context.fence.is_none()
    }

    /// Returns whether the held text starts with the latest chunk or inside it.
    pub(super) fn starts_in_latest_chunk(&self) -> bool {
        self.last_offset.is_none_or(|offset| offset == 0)
    }

    /// Restarts the search for cuts after the boundaries changed.
    pub(super) fn reset_search(&mut self) {
        self.needs_boundary_character = false;
    }

    /// Adds the next chunk, and releases the text up to the last boundary.
    pub(super) fn push_chunk(
        &mut self,
        source: &Arc<T>,
        chunk: &OutputStreaming,
        cut_settings: &CutSettings,
        released: &mut Vec<OutgoingEvent<T>>,
    ) {
        let event = (**source).as_ref();
        let time = event.envelope.timestamp;
        let expected = self.position + self.length;
        if expected != chunk.position || !has_same_attributes((*self.last).as_ref(), event) {
            self.flush(cut_settings, time, released);
            self.position = chunk.position;
        }
        self.last_offset = Some(self.held.len());
        if self.held.is_empty() {
            self.first = Some(Arc::clone(source));
        }
        self.last = Arc::clone(source);
        self.held.push_str(&chunk.chunk);
        self.length += code_point_count(&chunk.chunk);
        if text_boundaries::may_create_cut(&chunk.chunk, cut_settings.granularity) {
            self.needs_boundary_character = false;
        }
        self.release_cuts(chunk.complete, cut_settings, time, released);
        if chunk.complete {
            released.push(self.release(self.held.len(), CoalesceHint::Completion, true, cut_settings, time));
        } else if cut_settings.trusts_hints
            && matches!(chunk.coalesce_hint, Some(CoalesceHint::Sentence | CoalesceHint::Paragraph))
        {
            self.flush(cut_settings, time, released);
        }
    }

    /// Releases all held text, even if it does not end at a boundary.
    pub(super) fn flush(
        &mut self,
        cut_settings: &CutSettings,
        time: Timestamp,
        released: &mut Vec<OutgoingEvent<T>>,
    ) {
        self.release_cuts(false, cut_settings, time, released);
        if !self.held.is_empty() {
            released.push(self.release(self.held.len(), CoalesceHint::None, false, cut_settings, time));
        }
    }

    /// Releases the held text if it is complete. This is called when the agent continues with
    /// something else.
    pub(super) fn flush_complete(
        &mut self,
        cut_settings: &CutSettings,
        time: Timestamp,
        released: &mut Vec<OutgoingEvent<T>>,
    ) {
        if !self.held.is_empty()
            && self.pending_text(self.held.len(), false).is_complete(cut_settings.granularity)
        {
            let hint = self.boundary_hint(self.held.len(), cut_settings);
            released.push(self.release(self.held.len(), hint, false, cut_settings, time));
        }
    }

    fn pending_text(&self, length: usize, is_ended: bool) -> PendingText<'_> {
        let event = (*self.last).as_ref();
        let language = match &event.payload {
            Payload::OutputStreaming(chunk) => chunk.language.as_deref(),
            _ => None,
        };
        let hints = event.envelope.localization_hints.as_ref();
        let language = language.or_else(|| hints?.primary_language.as_deref()).unwrap_or_default();
        PendingText {
            text: self.held.get(..length).unwrap_or(&self.held),
            context: self.context,
            language,
            is_ended,
        }
    }

    /// Releases the text up to the last cut.
    fn release_cuts(
        &mut self,
        is_ended: bool,
        cut_settings: &CutSettings,
        time: Timestamp,
        released: &mut Vec<OutgoingEvent<T>>,
    ) {
        loop {
            let exceeds_limit = self.held.len() > cut_settings.max_bytes;
            if self.needs_boundary_character && !exceeds_limit && !is_ended {
                return;
            }
            // The search ignores text beyond the limit. Otherwise the cuts would depend on how the
            // text is divided into chunks.
            let length = if exceeds_limit {
                self.held.floor_char_boundary(cut_settings.max_bytes)
            } else {
                self.held.len()
            };
            let pending = self.pending_text(length, is_ended && !exceeds_limit);
            let (at, hint) = match pending.first_cut(cut_settings.granularity) {
                CutSearch::At(at) => (at, self.boundary_hint(at, cut_settings)),
                CutSearch::Nothing { .. } if exceeds_limit => (pending.forced_cut(), CoalesceHint::None),
                CutSearch::Nothing { needs_boundary_character } => {
                    self.needs_boundary_character = needs_boundary_character;
                    return;
                }
            };
            if at == 0 {
                // The limit is smaller than one character.
                self.needs_boundary_character = true;
                return;
            }
            released.push(self.release(at, hint, false, cut_settings, time));
            self.needs_boundary_character = false;
        }
    }

    /// Returns the widest requested boundary at this position.
    fn boundary_hint(&self, at: usize, cut_settings: &CutSettings) -> CoalesceHint {
        let before = &self.held[..at];
        let space = &before[before.trim_end().len()..];
        match cut_settings.granularity {
            _ if cut_settings.cuts_paragraphs && contains_blank_line(space) => CoalesceHint::Paragraph,
            CutGranularity::Word
                if cut_settings.cuts_sentences
                    && self.pending_text(self.held.len(), false).ends_sentence(at) =>
            {
                CoalesceHint::Sentence
            }
            CutGranularity::Word => CoalesceHint::Word,
            CutGranularity::Sentence => CoalesceHint::Sentence,
            CutGranularity::Paragraph => CoalesceHint::Paragraph,
            CutGranularity::Completion => CoalesceHint::None,
        }
    }

    /// Releases the first `at` bytes of the held text.
    fn release(
        &mut self,
        at: usize,
        hint: CoalesceHint,
        is_complete: bool,
        cut_settings: &CutSettings,
        time: Timestamp,
    ) -> OutgoingEvent<T> {
        self.context = code_spans::context_after(&self.held[..at], self.context);
        let text = &self.held[..at];
        let (position, length) = (self.position, code_point_count(text));
        self.position += length;
        self.length -= length;
        let unchanged = self.first.take().filter(|source| match &(**source).as_ref().payload {
            Payload::OutputStreaming(chunk) => {
                chunk.chunk == *text
                    && chunk.position == position
                    && chunk.complete == is_complete
                    && chunk.coalesce_hint.as_ref() == Some(&hint)
            }
            _ => false,
        });
        let text = if unchanged.is_none() { text.to_owned() } else { String::new() };
        // `drain` keeps the buffer's capacity for the next text.
        self.held.drain(..at);
        self.last_offset = self.last_offset.and_then(|last| last.checked_sub(at));
        if self.last_offset == Some(0) && !self.held.is_empty() {
            self.first = Some(Arc::clone(&self.last));
        }
        if let Some(source) = unchanged {
            return OutgoingEvent::Unchanged(source);
        }
        let Event { envelope, payload } = (*self.last).as_ref();
        let payload = match payload {
            Payload::OutputStreaming(last) => Payload::OutputStreaming(OutputStreaming {
                chunk: text,
                position,
                complete: is_complete,
                coalesce_hint: Some(hint),
                output_id: last.output_id.clone(),
                content_type: last.content_type.clone(),
                language: last.language.clone(),
                other: last.other.clone(),
            }),
            // Unreachable, because only output is held.
            other => other.clone(),
        };
        let mut event = Event { envelope: envelope.clone(), payload };
        event.envelope.timestamp = time;
        update_direction(&mut event);
        assign_text_id(&mut event, &cut_settings.terms_digest);
        OutgoingEvent::Rewritten(Box::new(event))
    }
}
