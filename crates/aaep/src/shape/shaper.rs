//! One subscription's view of all sessions.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use seal::UnixMillis;

use super::cut::Grain;
use super::gate::Gate;
use super::held::{Held, Kind, Out, is_critical, leads_to_question};
use super::lane::Lane;
use super::queue::Queue;
use super::text::{Cutter, Text};
use super::waiting::leaving;
use super::{Limits, Wants, words};
use crate::event::{Event, EventType, OutputStreaming, Payload};
use crate::id::SessionId;
use crate::message::{Boundary, EventFilters};

/// Shapes the events of many sessions for one subscription.
///
/// Give it every event that is committed, in that order, with [`push`](Self::push); then drain [`pull`](Self::pull)
/// until it says nothing. Do the same, without a push, when [`next_deadline`](Self::next_deadline) has come. Neither
/// calling too early nor too late nor twice does harm. `T` is whatever the caller keeps of an event beside its value:
/// its bytes, its place in the log.
///
/// ```
/// use std::sync::Arc;
/// use aaep::{Received, UnixMillis, event::Event, shape::{Limits, Out, Shaper, Wants}};
/// let text = r#"{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.state.changed",
///   "event_id":"evt_1","session_id":"sess_1","timestamp":"2026-05-24T14:22:11.342Z",
///   "producer":{"agent_id":"bank"},"from_state":"idle","to_state":"thinking"}"#;
/// let event = Arc::new(Received::<Event>::parse(text).unwrap());
/// let now = UnixMillis::default();
/// let mut shaper = Shaper::new(Arc::new(Wants::default()), Limits::default());
/// shaper.push(&event);
/// assert!(matches!(shaper.pull(now), Some(Out::Same(same)) if Arc::ptr_eq(&same, &event)));
/// assert!(shaper.pull(now).is_none() && shaper.next_deadline().is_none());
/// ```
#[derive(Clone, Debug)]
pub struct Shaper<T> {
    wants: Arc<Wants>,
    limits: Limits,
    /// Which of the twelve types the filters let through.
    lets_through: [bool; EventType::CORE.len()],
    pub(super) cutter: Cutter,
    /// Output comes as the agent cut it.
    uncut: bool,
    pub(super) gate: Gate,
    /// What leaves at the next pull, whatever the gate says.
    pub(super) ready: VecDeque<Held<T>>,
    /// The only event that waits for the gate: most leave before there is a second, and so need no lane.
    pub(super) alone: Option<Held<T>>,
    pub(super) queue: Queue<T>,
    pub(super) lanes: HashMap<SessionId, Lane<T>>,
    /// Outputs of which text is held.
    texts: usize,
    /// The place of what is pushed.
    place: u64,
    /// Everything comes through in the words in which it came.
    verbatim: bool,
    /// Room for what leaves an output; empty between two events.
    leaving: Vec<Out<T>>,
}

impl<T: AsRef<Event>> Shaper<T> {
    /// Begins with nothing held.
    pub fn new(wants: Arc<Wants>, limits: Limits) -> Self {
        let limits = Limits { text: limits.text.clamp(1, Limits::default().text), ..limits };
        Self {
            lets_through: lets_through(&wants),
            cutter: cutter(&wants, limits),
            uncut: wants.grain().is_none(),
            gate: Gate::new(&wants),
            wants,
            limits,
            ready: VecDeque::new(),
            alone: None,
            queue: Queue::default(),
            lanes: HashMap::new(),
            texts: 0,
            place: 0,
            verbatim: false,
            leaving: Vec::new(),
        }
    }

    /// A queue for a reader that does not keep up (C-C18). Everything comes through as it is and waits until it is pulled,
    /// which can be at any time; meanwhile it is joined with what waits already, just as a rate would join it.
    pub fn backlog(limits: Limits) -> Self {
        let mut filters = EventFilters::new();
        filters.include = Some(vec!["*".to_owned()]);
        let wants = Wants {
            boundaries: vec![Boundary::None],
            filters,
            confirmations: true,
            clarifications: true,
            ..Wants::default()
        };
        let gate = Gate::by_hand(&wants);
        Self { gate, verbatim: true, ..Self::new(Arc::new(wants), limits) }
    }

    /// For who hears a producer that shapes already: output that is said to end with a sentence or a paragraph is not held
    /// to see what follows.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use aaep::{Received, UnixMillis, event::Event, shape::{Limits, Shaper, Wants}};
    /// let text = r#"{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.output.streaming",
    ///   "event_id":"evt_1","session_id":"sess_1","timestamp":"2026-05-24T14:22:11.342Z",
    ///   "producer":{"agent_id":"bank"},"chunk":"Done.","position":0,"complete":false,"coalesce_hint":"sentence"}"#;
    /// let event = Arc::new(Received::<Event>::parse(text).unwrap());
    /// let now = UnixMillis::default();
    /// let mut shaper = Shaper::new(Arc::new(Wants::default()), Limits::default());
    /// shaper.push(&event);
    /// assert!(shaper.pull(now).is_none());
    /// let mut shaper = Shaper::new(Arc::new(Wants::default()), Limits::default()).trusting();
    /// shaper.push(&event);
    /// assert!(shaper.pull(now).is_some());
    /// ```
    #[must_use]
    pub fn trusting(mut self) -> Self {
        self.cutter.trusts = true;
        self
    }

    /// Takes new terms, for every event that comes from now on (§5.7.2). What is held stays held, and leaves by the new
    /// rate.
    pub fn renegotiate(&mut self, wants: Arc<Wants>) {
        self.lets_through = lets_through(&wants);
        self.cutter = Cutter { trusts: self.cutter.trusts, ..cutter(&wants, self.limits) };
        self.uncut = wants.grain().is_none();
        self.gate.renew(&wants);
        self.wants = wants;
        for text in self.lanes.values_mut().flat_map(|lane| &mut lane.texts) {
            text.unsettle();
        }
    }

    /// What is wanted.
    pub fn wants(&self) -> &Arc<Wants> {
        &self.wants
    }

    /// Takes the next committed event, and notes its place in the caller's log for [`oldest`](Self::oldest).
    pub fn push_at(&mut self, event: &Arc<T>, place: u64) {
        self.place = place;
        self.push(event);
    }

    /// The first place of which something has not left yet: text that waits for its boundary counts. It may be one
    /// too early, never too late.
    pub fn oldest(&self) -> Option<u64> {
        let ready = self.ready.iter().map(|held| held.since);
        let queued = self.queue.iter().next().map(|(_, held)| held.since);
        let texts = self.lanes.values().flat_map(|lane| &lane.texts).filter(|text| !text.is_empty());
        let alone = self.alone.as_ref().map(|held| held.since);
        ready.chain(queued).chain(alone).chain(texts.map(|text| text.since)).min()
    }

    /// What waits for its turn, in no certain order; text that waits for its boundary is not among it.
    pub fn waiting(&self) -> impl Iterator<Item = &Out<T>> {
        let queued = self.queue.iter().map(|(_, held)| held);
        self.ready.iter().chain(&self.alone).chain(queued).map(|held| &held.out)
    }

    /// Takes the next committed event.
    pub fn push(&mut self, event: &Arc<T>) {
        let value = (**event).as_ref();
        let critical = is_critical(value);
        if critical || value.envelope.event_type.is_terminal() {
            self.index_alone(&value.envelope.session_id);
        }
        if !self.lanes.is_empty() {
            self.turn(value);
        }
        if !self.is_wanted(value, critical) {
            return self.pass_over(value);
        }
        if critical {
            return self.push_critical(event);
        }
        if let Payload::OutputStreaming(chunk) = &value.payload
            && self.hears(value, chunk)
        {
            return self.push_text(event, chunk);
        }
        let out = self.in_words(event);
        self.enqueue(Held::new(out, self.place));
    }

    /// The next event that may leave at this time; drain it until there is none.
    pub fn pull(&mut self, now: UnixMillis) -> Option<Out<T>> {
        if let Some(held) = self.ready.pop_front() {
            return Some(self.depart(held, now));
        }
        if let Some(mut held) = self.alone.take() {
            let leaving = leaving(&held, true);
            if self.gate.opens_at(leaving) <= now {
                return Some(self.leave(held, leaving, now));
            }
            held.waited = true;
            self.alone = Some(held);
            return None;
        }
        let (number, leaving, at) = self.next_of_queue(now)?;
        if at > now {
            return None;
        }
        let held = self.unqueue(number)?;
        Some(self.leave(held, leaving, now))
    }

    /// When the next event may leave, if nothing else comes; nothing if none is waiting for time to pass.
    pub fn next_deadline(&self) -> Option<UnixMillis> {
        if !self.ready.is_empty() {
            return Some(UnixMillis::MIN);
        }
        if let Some(held) = &self.alone {
            return Some(self.gate.opens_at(leaving(held, true)));
        }
        self.next_of_queue(UnixMillis::MIN).map(|(_, _, at)| at)
    }

    /// How many events wait for the rate or the pace.
    pub fn held(&self) -> usize {
        self.queue.len() + usize::from(self.alone.is_some())
    }

    /// How many events would leave if nothing held them.
    pub fn waits(&self) -> usize {
        self.held() + self.ready.len()
    }

    /// More is held than the limit allows: the subscription should be closed (C-C18). Nothing has been lost.
    pub fn is_full(&self) -> bool {
        self.held() > self.limits.events
    }

    /// Filters, except for criticals (C-C5); and no question for who cannot answer it (C-C1).
    fn is_wanted(&self, event: &Event, critical: bool) -> bool {
        let event_type = &event.envelope.event_type;
        match event_type {
            EventType::AwaitingConfirmation if !self.wants.confirmations => false,
            EventType::AwaitingClarification if !self.wants.clarifications => false,
            _ if critical => true,
            EventType::Other(name) => self.wants.filters.lets_through(name),
            core => EventType::CORE
                .iter()
                .zip(self.lets_through)
                .any(|(known, lets_through)| lets_through && known == core),
        }
    }

    /// A session goes on, or ends: text that is whole, or will not go on, is not held any longer.
    fn turn(&mut self, event: &Event) {
        let ends = event.envelope.event_type.is_terminal();
        if !ends && matches!(event.payload, Payload::OutputStreaming(_) | Payload::ProgressUpdated(_)) {
            return;
        }
        let Some(lane) = self.lanes.get_mut(&event.envelope.session_id) else { return };
        lane.ended |= ends;
        let since = lane.texts.iter().map(|text| text.since).min().unwrap_or(self.place);
        let mut leave = Vec::new();
        for text in &mut lane.texts {
            if ends {
                text.empty(&self.cutter, event.envelope.timestamp, &mut leave);
            } else {
                text.pause(&self.cutter, event.envelope.timestamp, &mut leave);
            }
        }
        let before = lane.texts.len();
        lane.texts.retain(|text| !ends && !text.is_empty());
        self.texts -= before - lane.texts.len();
        for out in leave {
            self.enqueue(Held::new(out, since));
        }
    }

    /// An event that is not for this subscription.
    fn pass_over(&mut self, event: &Event) {
        if event.envelope.event_type.is_terminal()
            && self.lanes.get(&event.envelope.session_id).is_some_and(Lane::is_idle)
        {
            self.lanes.remove(&event.envelope.session_id);
        }
    }

    /// In front of a critical event goes what tells the state of its session: it would be a lie after it, and a
    /// question without its session, or before a tool that it then seems to allow, would mislead. Text and progress
    /// that wait stay behind a question whose state is among what goes in front; behind anything else they would
    /// change the state that it implies (C-B7), or follow an end.
    fn push_critical(&mut self, event: &Arc<T>) {
        let value = (**event).as_ref();
        let session = &value.envelope.session_id;
        let is_text = matches!(value.payload, Payload::OutputStreaming(_));
        if is_text {
            self.release_texts(value);
        }
        let all = !self.shows_question(value);
        if let Some(lane) = self.lanes.get_mut(session) {
            let queue = &mut self.queue;
            let ready = &mut self.ready;
            lane.queued.retain(|number| {
                let stays = !all
                    && queue
                        .get(*number)
                        .is_some_and(|held| matches!(held.kind, Kind::Text | Kind::Progress));
                if !stays && let Some(mut held) = queue.take(*number) {
                    held.waited = true;
                    ready.push_back(held);
                }
                stays
            });
        }
        let out = self.in_words(event);
        self.ready.push_back(Held::new(out, self.place));
    }

    /// Whether an event is a question, and the change of state into it is held.
    fn shows_question(&self, event: &Event) -> bool {
        let envelope = &event.envelope;
        matches!(event.payload, Payload::AwaitingConfirmation(_) | Payload::AwaitingClarification(_))
            && self.lanes.get(&envelope.session_id).is_some_and(|lane| {
                let held = lane.queued.iter().rev().filter_map(|number| self.queue.get(*number));
                held.map(|held| held.out.event())
                    .any(|earlier| leads_to_question(earlier, &envelope.producer.agent_id))
            })
    }

    /// Whether a chunk is for the cutter: where output comes as it is, only to empty what was held before.
    fn hears(&self, event: &Event, chunk: &OutputStreaming) -> bool {
        !self.uncut
            || self
                .lanes
                .get(&event.envelope.session_id)
                .is_some_and(|lane| lane.texts.iter().any(|text| text.is_of(event, chunk)))
    }

    fn push_text(&mut self, event: &Arc<T>, chunk: &OutputStreaming) {
        let value = (**event).as_ref();
        let session = &value.envelope.session_id;
        if !self.lanes.contains_key(session) {
            self.lanes.insert(session.clone(), Lane::default());
        }
        let Some(lane) = self.lanes.get_mut(session) else { return };
        let at = lane.texts.iter().position(|text| text.is_of(value, chunk)).unwrap_or_else(|| {
            lane.texts.push(Text::new(event, chunk, self.place));
            self.texts += 1;
            lane.texts.len() - 1
        });
        let (mut leave, mut since) = (std::mem::take(&mut self.leaving), self.place);
        if let Some(text) = lane.texts.get_mut(at) {
            since = if text.is_empty() { self.place } else { text.since };
            text.take(event, chunk, &self.cutter, &mut leave);
            if self.uncut || self.texts > self.limits.outputs {
                text.empty(&self.cutter, value.envelope.timestamp, &mut leave);
            }
            text.since = if text.begins_with_last() { self.place } else { since };
            if chunk.complete || text.is_empty() || self.uncut {
                lane.texts.swap_remove(at);
                self.texts -= 1;
            }
        }
        if leave.is_empty() {
            self.forget_idle(session);
        }
        for out in leave.drain(..) {
            self.enqueue(Held::new(out, since));
        }
        self.leaving = leave;
    }

    /// Releases the text that is held of the output that a critical chunk belongs to.
    fn release_texts(&mut self, event: &Event) {
        let Some(lane) = self.lanes.get_mut(&event.envelope.session_id) else { return };
        let since = lane.texts.iter().map(|text| text.since).min().unwrap_or(self.place);
        let mut leave = Vec::new();
        for text in &mut lane.texts {
            text.empty(&self.cutter, event.envelope.timestamp, &mut leave);
        }
        self.texts -= lane.texts.len();
        lane.texts.clear();
        for out in leave {
            self.enqueue(Held::new(out, since));
        }
    }

    fn in_words(&self, event: &Arc<T>) -> Out<T> {
        if self.verbatim {
            return Out::Same(Arc::clone(event));
        }
        match words::chosen((**event).as_ref(), &self.wants) {
            Some(other) => Out::Made(Box::new(other)),
            None => Out::Same(Arc::clone(event)),
        }
    }
}

fn cutter(wants: &Wants, limits: Limits) -> Cutter {
    Cutter {
        grain: wants.grain().unwrap_or(Grain::Completion),
        limit: limits.text,
        sentences: wants.boundaries.contains(&Boundary::Sentence),
        paragraphs: wants.boundaries.contains(&Boundary::Paragraph),
        trusts: false,
        key: wants.key(),
    }
}

fn lets_through(wants: &Wants) -> [bool; EventType::CORE.len()] {
    let mut through = [false; EventType::CORE.len()];
    for (lets, core) in through.iter_mut().zip(EventType::CORE) {
        *lets = wants.filters.lets_through(core.as_str());
    }
    through
}
