//! The shaper: one subscription's view of all sessions.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use seal::UnixMillis;

use super::held_event::{HeldEvent, MergeKind, OutgoingEvent, is_critical, leads_to_question};
use super::held_text::{CutSettings, HeldText};
use super::queue::HeldQueue;
use super::rate_limiter::RateLimiter;
use super::scheduling::outgoing_kind;
use super::session_buffer::SessionBuffer;
use super::text_boundaries::CutGranularity;
use super::{ShaperLimits, ShapingTerms, localization};
use crate::event::{Event, EventType, HandoffRequested, OutputStreaming, Payload};
use crate::id::SessionId;
use crate::message::{Boundary, EventFilters};

/// Shapes the events of many sessions for one subscription.
///
/// Pass every committed event in order to [`push`](Self::push), then call [`pull`](Self::pull) until
/// it returns `None`. Also call `pull` at [`next_deadline`](Self::next_deadline). Calling too early,
/// too late or twice is harmless. `T` is the caller's type for an event. It can also contain the
/// event's bytes or its log position.
///
/// ```
/// use std::sync::Arc;
/// use aaep::{ParsedDocument, UnixMillis, event::Event};
/// use aaep::shaping::{OutgoingEvent, Shaper, ShaperLimits, ShapingTerms};
/// let text = r#"{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.state.changed",
///   "event_id":"evt_1","session_id":"sess_1","timestamp":"2026-05-24T14:22:11.342Z",
///   "producer":{"agent_id":"bank"},"from_state":"idle","to_state":"thinking"}"#;
/// let event = Arc::new(ParsedDocument::<Event>::parse(text).unwrap());
/// let now = UnixMillis::default();
/// let mut shaper = Shaper::new(Arc::new(ShapingTerms::default()), ShaperLimits::default());
/// shaper.push(&event);
/// assert!(matches!(shaper.pull(now), Some(OutgoingEvent::Unchanged(same)) if Arc::ptr_eq(&same, &event)));
/// assert!(shaper.pull(now).is_none() && shaper.next_deadline().is_none());
/// ```
#[derive(Clone, Debug)]
pub struct Shaper<T> {
    terms: Arc<ShapingTerms>,
    limits: ShaperLimits,
    /// Which of the twelve core types the filters allow.
    allowed_core_types: [bool; EventType::CORE.len()],
    pub(super) cut_settings: CutSettings,
    /// Whether output is passed on in the agent's own chunks.
    passes_output_uncut: bool,
    pub(super) rate_limiter: RateLimiter,
    /// Events that are sent at the next pull, regardless of the rate.
    pub(super) ready: VecDeque<HeldEvent<T>>,
    /// The held event, if only one event is held. Most events are sent before the next event
    /// arrives, so they need no session buffer.
    pub(super) single: Option<HeldEvent<T>>,
    pub(super) queue: HeldQueue<T>,
    pub(super) sessions: HashMap<SessionId, SessionBuffer<T>>,
    /// The number of outputs with held text.
    held_text_count: usize,
    /// The log position of the event being pushed.
    log_position: u64,
    /// Whether events are passed on without localization.
    is_verbatim: bool,
    /// A reusable buffer for text that is released from an output. It is empty between two events.
    release_buffer: Vec<OutgoingEvent<T>>,
}

impl<T: AsRef<Event>> Shaper<T> {
    /// Creates a shaper that holds nothing.
    pub fn new(terms: Arc<ShapingTerms>, limits: ShaperLimits) -> Self {
        let limits = ShaperLimits {
            max_text_bytes: limits.max_text_bytes.clamp(1, ShaperLimits::default().max_text_bytes),
            ..limits
        };
        Self {
            allowed_core_types: allowed_core_types(&terms),
            cut_settings: build_cut_settings(&terms, limits),
            passes_output_uncut: terms.cut_granularity().is_none(),
            rate_limiter: RateLimiter::new(&terms),
            terms,
            limits,
            ready: VecDeque::new(),
            single: None,
            queue: HeldQueue::default(),
            sessions: HashMap::new(),
            held_text_count: 0,
            log_position: 0,
            is_verbatim: false,
            release_buffer: Vec::new(),
        }
    }

    /// Creates a shaper that only queues events for a slow reader (C-C18). It neither filters nor
    /// localizes them. Events wait for the next pull, which may come at any time. Until then they
    /// are merged with other held events, as under a rate limit.
    pub fn for_backlog(limits: ShaperLimits) -> Self {
        let mut filters = EventFilters::new();
        filters.include = Some(vec!["*".to_owned()]);
        let terms = ShapingTerms {
            boundaries: vec![Boundary::None],
            filters,
            answers_confirmations: true,
            answers_clarifications: true,
            ..ShapingTerms::default()
        };
        let rate_limiter = RateLimiter::for_backlog(&terms);
        Self { rate_limiter, is_verbatim: true, ..Self::new(Arc::new(terms), limits) }
    }

    /// Trusts the hints of a producer that already shapes its output. A chunk with the hint
    /// `sentence` or `paragraph` is not held.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use aaep::{ParsedDocument, UnixMillis, event::Event, shaping::{Shaper, ShaperLimits, ShapingTerms}};
    /// let text = r#"{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.output.streaming",
    ///   "event_id":"evt_1","session_id":"sess_1","timestamp":"2026-05-24T14:22:11.342Z",
    ///   "producer":{"agent_id":"bank"},"chunk":"Done.","position":0,"complete":false,"coalesce_hint":"sentence"}"#;
    /// let event = Arc::new(ParsedDocument::<Event>::parse(text).unwrap());
    /// let now = UnixMillis::default();
    /// let terms = Arc::new(ShapingTerms::default());
    /// let mut shaper = Shaper::new(terms.clone(), ShaperLimits::default());
    /// shaper.push(&event);
    /// assert!(shaper.pull(now).is_none());
    /// let mut shaper = Shaper::new(terms, ShaperLimits::default()).trust_hints();
    /// shaper.push(&event);
    /// assert!(shaper.pull(now).is_some());
    /// ```
    #[must_use]
    pub fn trust_hints(mut self) -> Self {
        self.cut_settings.trusts_hints = true;
        self
    }

    /// Applies new terms to all later events (§5.7.2). Held events stay held and are sent at the
    /// new rate.
    pub fn renegotiate(&mut self, terms: Arc<ShapingTerms>) {
        self.allowed_core_types = allowed_core_types(&terms);
        self.cut_settings = CutSettings {
            trusts_hints: self.cut_settings.trusts_hints,
            ..build_cut_settings(&terms, self.limits)
        };
        self.passes_output_uncut = terms.cut_granularity().is_none();
        self.rate_limiter.update_terms(&terms);
        self.terms = terms;
        for text in self.sessions.values_mut().flat_map(|buffer| &mut buffer.texts) {
            text.reset_search();
        }
    }

    /// Returns the terms.
    pub fn terms(&self) -> &Arc<ShapingTerms> {
        &self.terms
    }

    /// Adds the next committed event with its position in the caller's log, for
    /// [`oldest_position`](Self::oldest_position).
    pub fn push_at(&mut self, event: &Arc<T>, position: u64) {
        self.log_position = position;
        self.push(event);
    }

    /// Returns the position of the first event that has not been sent completely, including text
    /// that waits for a boundary. The result may be earlier than necessary, but never later.
    pub fn oldest_position(&self) -> Option<u64> {
        let ready = self.ready.iter().map(|held| held.first_log_position);
        let queued = self.queue.iter().next().map(|(_, held)| held.first_log_position);
        let texts = self.sessions.values().flat_map(|buffer| &buffer.texts).filter(|text| !text.is_empty());
        let single = self.single.as_ref().map(|held| held.first_log_position);
        ready.chain(queued).chain(single).chain(texts.map(|text| text.first_log_position)).min()
    }

    /// Returns the held events in no particular order, without text that waits for a boundary.
    pub fn queued_events(&self) -> impl Iterator<Item = &OutgoingEvent<T>> {
        let queued = self.queue.iter().map(|(_, held)| held);
        self.ready.iter().chain(&self.single).chain(queued).map(|held| &held.outgoing)
    }

    /// Adds the next committed event.
    pub fn push(&mut self, event: &Arc<T>) {
        let value = (**event).as_ref();
        let is_critical = is_critical(value);
        if is_critical || value.envelope.event_type.is_terminal() {
            self.enqueue_single(&value.envelope.session_id);
        }
        if !self.sessions.is_empty() {
            self.release_finished_text(value);
        }
        if !self.is_wanted(value, is_critical) {
            return self.skip_event(value);
        }
        if is_critical {
            return self.push_critical(event);
        }
        if let Payload::OutputStreaming(chunk) = &value.payload
            && self.needs_cutting(value, chunk)
        {
            return self.push_text(event, chunk);
        }
        let outgoing = self.localize(event);
        self.enqueue(HeldEvent::new(outgoing, self.log_position));
    }

    /// Returns the next event that may be sent now. Call it until it returns `None`.
    pub fn pull(&mut self, now: UnixMillis) -> Option<OutgoingEvent<T>> {
        if let Some(held) = self.ready.pop_front() {
            return Some(self.finalize(held, now));
        }
        if let Some(mut held) = self.single.take() {
            let kind = outgoing_kind(&held, true);
            if self.rate_limiter.earliest_send_time(kind) <= now {
                return Some(self.release(held, kind, now));
            }
            held.was_delayed = true;
            self.single = Some(held);
            return None;
        }
        let (number, kind, at) = self.next_queued(now)?;
        if at > now {
            return None;
        }
        let held = self.dequeue(number)?;
        Some(self.release(held, kind, now))
    }

    /// Returns when the next event may be sent if no other event arrives; `None` if no event can be
    /// sent without further input.
    pub fn next_deadline(&self) -> Option<UnixMillis> {
        if !self.ready.is_empty() {
            return Some(UnixMillis::MIN);
        }
        if let Some(held) = &self.single {
            return Some(self.rate_limiter.earliest_send_time(outgoing_kind(held, true)));
        }
        self.next_queued(UnixMillis::MIN).map(|(_, _, at)| at)
    }

    /// Returns the number of events that are held because of the rate (events per second) or the pace
    /// (words per minute).
    pub fn held_count(&self) -> usize {
        self.queue.len() + usize::from(self.single.is_some())
    }

    /// Returns the number of events that have not been pulled yet, without text that waits for a
    /// boundary.
    pub fn pending_count(&self) -> usize {
        self.held_count() + self.ready.len()
    }

    /// Returns whether more events are held than allowed. If so, the subscription should be closed
    /// (C-C18). No event has been lost.
    pub fn is_over_limit(&self) -> bool {
        self.held_count() > self.limits.max_held_events
    }

    /// Returns whether the subscription receives an event. The filters do not apply to critical
    /// events (C-C5). Questions that the subscriber cannot answer are withheld (C-C1).
    fn is_wanted(&self, event: &Event, is_critical: bool) -> bool {
        let event_type = &event.envelope.event_type;
        match event_type {
            EventType::AwaitingConfirmation if !self.terms.answers_confirmations => false,
            EventType::AwaitingClarification if !self.terms.answers_clarifications => false,
            _ if is_critical => true,
            EventType::Other(name) => self.terms.filters.allows(name),
            core_type => EventType::CORE
                .iter()
                .zip(self.allowed_core_types)
                .any(|(known, is_allowed)| is_allowed && known == core_type),
        }
    }

    /// Releases complete text when the session continues with another event, and all text when the
    /// session ends.
    fn release_finished_text(&mut self, event: &Event) {
        let is_terminal = event.envelope.event_type.is_terminal();
        if !is_terminal && matches!(event.payload, Payload::OutputStreaming(_) | Payload::ProgressUpdated(_))
        {
            return;
        }
        let Some(buffer) = self.sessions.get_mut(&event.envelope.session_id) else { return };
        buffer.is_ended |= is_terminal;
        let first_log_position =
            buffer.texts.iter().map(|text| text.first_log_position).min().unwrap_or(self.log_position);
        let mut released = Vec::new();
        for text in &mut buffer.texts {
            if is_terminal {
                text.flush(&self.cut_settings, event.envelope.timestamp, &mut released);
            } else {
                text.flush_complete(&self.cut_settings, event.envelope.timestamp, &mut released);
            }
        }
        let text_count = buffer.texts.len();
        buffer.texts.retain(|text| !is_terminal && !text.is_empty());
        self.held_text_count -= text_count - buffer.texts.len();
        for outgoing in released {
            self.enqueue(HeldEvent::new(outgoing, first_log_position));
        }
    }

    /// Handles an event that this subscription does not receive.
    fn skip_event(&mut self, event: &Event) {
        if event.envelope.event_type.is_terminal()
            && self.sessions.get(&event.envelope.session_id).is_some_and(SessionBuffer::is_idle)
        {
            self.sessions.remove(&event.envelope.session_id);
        }
    }

    /// Sends a critical event at the next pull, after the held events about its session's state.
    /// Those events would be misleading after it. For example, a tool call after a question would
    /// look as if the answer had allowed it.
    ///
    /// If the event is a question and the state change that leads to it is still held, held text and
    /// progress stay queued and follow the question. In all other cases they are sent before the
    /// critical event: after it, they would imply another state (C-B7), or follow the end of the
    /// session.
    fn push_critical(&mut self, event: &Arc<T>) {
        let value = (**event).as_ref();
        let session = &value.envelope.session_id;
        let is_text = matches!(value.payload, Payload::OutputStreaming(_));
        if is_text {
            self.release_texts(value);
        }
        let releases_all = !self.question_state_is_held(value);
        if let Some(buffer) = self.sessions.get_mut(session) {
            let queue = &mut self.queue;
            let ready = &mut self.ready;
            buffer.queued_ids.retain(|number| {
                let stays_queued = !releases_all
                    && queue
                        .get(*number)
                        .is_some_and(|held| matches!(held.kind, MergeKind::Text | MergeKind::Progress));
                if !stays_queued && let Some(mut held) = queue.take(*number) {
                    held.was_delayed = true;
                    ready.push_back(held);
                }
                stays_queued
            });
        }
        let mut outgoing = self.localize(event);
        if let Payload::HandoffRequested(HandoffRequested { packaged_context: Some(_), .. }) = &value.payload
            && !self.terms.reads_handoff_context
        {
            outgoing = without_handoff_context(&outgoing);
        }
        self.ready.push_back(HeldEvent::new(outgoing, self.log_position));
    }

    /// Returns whether an event is a question and the state change that leads to it is held.
    fn question_state_is_held(&self, event: &Event) -> bool {
        let envelope = &event.envelope;
        matches!(event.payload, Payload::AwaitingConfirmation(_) | Payload::AwaitingClarification(_))
            && self.sessions.get(&envelope.session_id).is_some_and(|buffer| {
                let held = buffer.queued_ids.iter().rev().filter_map(|number| self.queue.get(*number));
                held.map(|held| held.outgoing.event())
                    .any(|earlier| leads_to_question(earlier, &envelope.producer.agent_id))
            })
    }

    /// Returns whether a chunk must be cut. If output is passed on in the agent's
    /// own chunks, this is necessary only while earlier text of the output is held.
    fn needs_cutting(&self, event: &Event, chunk: &OutputStreaming) -> bool {
        !self.passes_output_uncut
            || self
                .sessions
                .get(&event.envelope.session_id)
                .is_some_and(|buffer| buffer.texts.iter().any(|text| text.belongs_to(event, chunk)))
    }

    fn push_text(&mut self, event: &Arc<T>, chunk: &OutputStreaming) {
        let value = (**event).as_ref();
        let session = &value.envelope.session_id;
        if !self.sessions.contains_key(session) {
            self.sessions.insert(session.clone(), SessionBuffer::default());
        }
        let Some(buffer) = self.sessions.get_mut(session) else { return };
        let index = buffer.texts.iter().position(|text| text.belongs_to(value, chunk)).unwrap_or_else(|| {
            buffer.texts.push(HeldText::new(event, chunk, self.log_position));
            self.held_text_count += 1;
            buffer.texts.len() - 1
        });
        let (mut released, mut first_log_position) =
            (std::mem::take(&mut self.release_buffer), self.log_position);
        if let Some(text) = buffer.texts.get_mut(index) {
            first_log_position = if text.is_empty() { self.log_position } else { text.first_log_position };
            text.push_chunk(event, chunk, &self.cut_settings, &mut released);
            if self.passes_output_uncut || self.held_text_count > self.limits.max_held_outputs {
                text.flush(&self.cut_settings, value.envelope.timestamp, &mut released);
            }
            text.first_log_position =
                if text.starts_in_latest_chunk() { self.log_position } else { first_log_position };
            if chunk.complete || text.is_empty() || self.passes_output_uncut {
                buffer.texts.swap_remove(index);
                self.held_text_count -= 1;
            }
        }
        if released.is_empty() {
            self.forget_idle(session);
        }
        for outgoing in released.drain(..) {
            self.enqueue(HeldEvent::new(outgoing, first_log_position));
        }
        self.release_buffer = released;
    }

    /// Releases the held text of the session before a critical chunk.
    fn release_texts(&mut self, event: &Event) {
        let Some(buffer) = self.sessions.get_mut(&event.envelope.session_id) else { return };
        let first_log_position =
            buffer.texts.iter().map(|text| text.first_log_position).min().unwrap_or(self.log_position);
        let mut released = Vec::new();
        for text in &mut buffer.texts {
            text.flush(&self.cut_settings, event.envelope.timestamp, &mut released);
        }
        self.held_text_count -= buffer.texts.len();
        buffer.texts.clear();
        for outgoing in released {
            self.enqueue(HeldEvent::new(outgoing, first_log_position));
        }
    }

    fn localize(&self, event: &Arc<T>) -> OutgoingEvent<T> {
        if self.is_verbatim {
            return OutgoingEvent::Unchanged(Arc::clone(event));
        }
        match localization::localize((**event).as_ref(), &self.terms) {
            Some(localized) => OutgoingEvent::Rewritten(Box::new(localized)),
            None => OutgoingEvent::Unchanged(Arc::clone(event)),
        }
    }
}

/// Returns a hand-off without the context that is meant for the person who takes over.
fn without_handoff_context<T: AsRef<Event>>(outgoing: &OutgoingEvent<T>) -> OutgoingEvent<T> {
    let mut event = outgoing.event().clone();
    if let Payload::HandoffRequested(request) = &mut event.payload {
        request.packaged_context = None;
    }
    OutgoingEvent::Rewritten(Box::new(event))
}

fn build_cut_settings(terms: &ShapingTerms, limits: ShaperLimits) -> CutSettings {
    CutSettings {
        granularity: terms.cut_granularity().unwrap_or(CutGranularity::Completion),
        max_bytes: limits.max_text_bytes,
        cuts_sentences: terms.boundaries.contains(&Boundary::Sentence),
        cuts_paragraphs: terms.boundaries.contains(&Boundary::Paragraph),
        trusts_hints: false,
        terms_digest: terms.digest(),
    }
}

fn allowed_core_types(terms: &ShapingTerms) -> [bool; EventType::CORE.len()] {
    let mut allowed = [false; EventType::CORE.len()];
    for (is_allowed, core_type) in allowed.iter_mut().zip(EventType::CORE) {
        *is_allowed = terms.filters.allows(core_type.as_str());
    }
    allowed
}
