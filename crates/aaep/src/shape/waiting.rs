//! What waits for the gate: in order, joined where it can be, and with the time of its sending.

use unicode_segmentation::UnicodeSegmentation;

use super::gate::Leaving;
use super::held::{Held, Kind, Out, Relation, stamped};
use super::lane::Lane;
use super::shaper::Shaper;
use crate::event::{Event, Payload};
use crate::id::SessionId;
use seal::{Timestamp, UnixMillis};

impl<T: AsRef<Event>> Shaper<T> {
    /// Puts an event behind those that wait, or joins it with one of them.
    pub(super) fn enqueue(&mut self, held: Held<T>) {
        if !self.gate.holds() {
            return self.ready.push_back(held);
        }
        if self.alone.is_none() && self.queue.len() == 0 {
            self.alone = Some(held);
            return;
        }
        if let Some(first) = self.alone.take() {
            self.index(first);
        }
        if let Some(held) = self.join(held) {
            self.index(held);
        }
    }

    /// Joins an event with a held one of its session; gives it back if there is none to join it with.
    fn join(&mut self, held: Held<T>) -> Option<Held<T>> {
        if held.kind == Kind::Fixed {
            return Some(held);
        }
        let Some(lane) = self.lanes.get_mut(&held.out.event().envelope.session_id) else { return Some(held) };
        for at in (0..lane.queued.len()).rev() {
            let Some(number) = lane.queued.get(at).copied() else { continue };
            let Some(earlier) = self.queue.get_mut(number) else { continue };
            match earlier.relation(&held, self.cutter.limit, &self.cutter.key) {
                Relation::Joined(out) => {
                    earlier.out = out;
                    return None;
                }
                Relation::Nothing => {
                    self.queue.take(number);
                    lane.queued.remove(at);
                    return None;
                }
                Relation::Apart => {}
                Relation::Before => break,
            }
        }
        Some(held)
    }

    /// The one event that waits gets its place in its session, because another one concerns it.
    pub(super) fn index_alone(&mut self, session: &SessionId) {
        if self.alone.as_ref().is_some_and(|held| held.out.event().envelope.session_id == *session)
            && let Some(held) = self.alone.take()
        {
            self.index(held);
        }
    }

    pub(super) fn index(&mut self, mut held: Held<T>) {
        held.waited = true;
        let session = held.out.event().envelope.session_id.clone();
        let number = self.queue.push(held);
        self.lanes.entry(session).or_default().queued.push_back(number);
    }

    /// The event of the queue that may leave first, and when. Where text is paced, others may pass it, but never one
    /// of their own session.
    pub(super) fn next_of_queue(&self, now: UnixMillis) -> Option<(u64, Leaving, UnixMillis)> {
        let mut best: Option<(u64, Leaving, UnixMillis)> = None;
        for (number, held) in self.queue.iter() {
            let lane = self.lanes.get(&held.out.event().envelope.session_id);
            if lane.is_some_and(|lane| lane.queued.front() != Some(&number)) {
                continue;
            }
            let open = self.gate.is_choosy()
                && lane.into_iter().flat_map(|lane| lane.queued.iter().skip(1)).all(|later| {
                    self.queue.get(*later).is_none_or(|later| held.kind.stays_open_before(later.kind))
                });
            let leaving = leaving(held, open);
            let at = self.gate.opens_at(leaving);
            if best.is_none_or(|(_, _, earliest)| at < earliest) {
                best = Some((number, leaving, at));
            }
            if at <= now || !self.gate.is_choosy() {
                break;
            }
        }
        best
    }

    pub(super) fn unqueue(&mut self, number: u64) -> Option<Held<T>> {
        let held = self.queue.take(number)?;
        if let Some(lane) = self.lanes.get_mut(&held.out.event().envelope.session_id) {
            lane.queued.pop_front();
        }
        Some(held)
    }

    /// Passes the gate.
    pub(super) fn leave(&mut self, held: Held<T>, leaving: Leaving, now: UnixMillis) -> Out<T> {
        let words = || match &held.out.event().payload {
            Payload::OutputStreaming(chunk) => chunk.chunk.unicode_words().count(),
            _ => 0,
        };
        self.gate.pass(leaving, words, now);
        self.depart(held, now)
    }

    /// Gives an event the time of its sending if it waited, or if one of its session that is later has left before it.
    pub(super) fn depart(&mut self, held: Held<T>, now: UnixMillis) -> Out<T> {
        if self.lanes.is_empty() && !held.waited {
            return held.out;
        }
        let envelope = &held.out.event().envelope;
        let own = envelope.timestamp;
        let last = self.lanes.get(&envelope.session_id).and_then(|lane| lane.last);
        let overtaken = last.is_some_and(|last| own.cmp_instant(&last).is_lt());
        if !held.waited && !overtaken {
            self.note_time(&held.out, own);
            return held.out;
        }
        let sent = Timestamp::from_unix_millis(now).unwrap_or(own);
        let time = [last, Some(sent)]
            .into_iter()
            .flatten()
            .fold(own, |a, b| if b.cmp_instant(&a).is_gt() { b } else { a });
        if time == own {
            self.note_time(&held.out, own);
            return held.out;
        }
        if !self.lanes.contains_key(&envelope.session_id) && !envelope.event_type.is_terminal() {
            self.lanes.insert(envelope.session_id.clone(), Lane::default());
        }
        let out = stamped(held.out, time);
        let envelope = &out.event().envelope;
        let ends = envelope.event_type.is_terminal();
        if let Some(lane) = self.lanes.get_mut(&envelope.session_id) {
            lane.last = Some(time);
            if lane.is_idle() && (ends || lane.ended) {
                self.lanes.remove(&envelope.session_id);
            }
        }
        out
    }

    /// An event left with its own time: later ones have later times, so that an idle lane can go.
    fn note_time(&mut self, out: &Out<T>, time: Timestamp) {
        let session = &out.event().envelope.session_id;
        let Some(lane) = self.lanes.get_mut(session) else { return };
        lane.last = Some(time);
        if lane.is_idle() {
            self.lanes.remove(session);
        }
    }

    /// A lane that was made for nothing, or is over.
    pub(super) fn forget_idle(&mut self, session: &SessionId) {
        if self.lanes.get(session).is_some_and(|lane| lane.is_idle() && lane.last.is_none()) {
            self.lanes.remove(session);
        }
    }
}

pub(super) fn leaving<T>(held: &Held<T>, open: bool) -> Leaving {
    Leaving { is_text: held.kind == Kind::Text, is_open: held.kind != Kind::Fixed && open }
}
