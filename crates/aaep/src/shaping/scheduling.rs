//! Scheduling of held events: they stay in order, are merged where possible, and get the time at
//! which they are sent.

use unicode_segmentation::UnicodeSegmentation;

use super::held_event::{HeldEvent, MergeKind, MergeResult, OutgoingEvent, with_timestamp};
use super::rate_limiter::OutgoingKind;
use super::session_buffer::SessionBuffer;
use super::shaper::Shaper;
use crate::event::{Event, Payload};
use crate::id::SessionId;
use seal::{Timestamp, UnixMillis};

impl<T: AsRef<Event>> Shaper<T> {
    /// Appends an event to the queue, or merges it with a held event.
    pub(super) fn enqueue(&mut self, held: HeldEvent<T>) {
        if !self.rate_limiter.can_hold() {
            return self.ready.push_back(held);
        }
        if self.single.is_none() && self.queue.len() == 0 {
            self.single = Some(held);
            return;
        }
        if let Some(first) = self.single.take() {
            self.enqueue_unmerged(first);
        }
        if let Some(held) = self.try_merge(held) {
            self.enqueue_unmerged(held);
        }
    }

    /// Merges an event with a held event of its session. Returns the event if it could not be
    /// merged.
    fn try_merge(&mut self, held: HeldEvent<T>) -> Option<HeldEvent<T>> {
        if held.kind == MergeKind::Fixed {
            return Some(held);
        }
        let Some(buffer) = self.sessions.get_mut(&held.outgoing.event().envelope.session_id) else {
            return Some(held);
        };
        for index in (0..buffer.queued_ids.len()).rev() {
            let Some(number) = buffer.queued_ids.get(index).copied() else { continue };
            let Some(earlier) = self.queue.get_mut(number) else { continue };
            match earlier.merge_with(&held, self.cut_settings.max_bytes, &self.cut_settings.terms_digest) {
                MergeResult::Merged(outgoing) => {
                    earlier.outgoing = outgoing;
                    return None;
                }
                MergeResult::Cancelled => {
                    self.queue.take(number);
                    buffer.queued_ids.remove(index);
                    return None;
                }
                MergeResult::Independent => {}
                MergeResult::Blocking => break,
            }
        }
        Some(held)
    }

    /// Moves the single held event to the queue, because another event of its session affects it.
    pub(super) fn enqueue_single(&mut self, session: &SessionId) {
        if self.single.as_ref().is_some_and(|held| held.outgoing.event().envelope.session_id == *session)
            && let Some(held) = self.single.take()
        {
            self.enqueue_unmerged(held);
        }
    }

    pub(super) fn enqueue_unmerged(&mut self, mut held: HeldEvent<T>) {
        held.was_delayed = true;
        let session = held.outgoing.event().envelope.session_id.clone();
        let number = self.queue.push(held);
        self.sessions.entry(session).or_default().queued_ids.push_back(number);
    }

    /// Returns the number and the kind of the queued event that may be sent first, and its earliest
    /// time. Events may overtake paced text of other sessions, but never an event of their own
    /// session.
    pub(super) fn next_queued(&self, now: UnixMillis) -> Option<(u64, OutgoingKind, UnixMillis)> {
        let mut best: Option<(u64, OutgoingKind, UnixMillis)> = None;
        for (number, held) in self.queue.iter() {
            let buffer = self.sessions.get(&held.outgoing.event().envelope.session_id);
            if buffer.is_some_and(|buffer| buffer.queued_ids.front() != Some(&number)) {
                continue;
            }
            let is_mergeable = self.rate_limiter.may_reorder()
                && buffer.into_iter().flat_map(|buffer| buffer.queued_ids.iter().skip(1)).all(|later| {
                    self.queue.get(*later).is_none_or(|later| held.kind.is_mergeable_before(later.kind))
                });
            let kind = outgoing_kind(held, is_mergeable);
            let at = self.rate_limiter.earliest_send_time(kind);
            if best.is_none_or(|(_, _, earliest)| at < earliest) {
                best = Some((number, kind, at));
            }
            if at <= now || !self.rate_limiter.may_reorder() {
                break;
            }
        }
        best
    }

    pub(super) fn dequeue(&mut self, number: u64) -> Option<HeldEvent<T>> {
        let held = self.queue.take(number)?;
        if let Some(buffer) = self.sessions.get_mut(&held.outgoing.event().envelope.session_id) {
            buffer.queued_ids.pop_front();
        }
        Some(held)
    }

    /// Records that an event is sent, and returns it.
    pub(super) fn release(
        &mut self,
        held: HeldEvent<T>,
        kind: OutgoingKind,
        now: UnixMillis,
    ) -> OutgoingEvent<T> {
        let words = || match &held.outgoing.event().payload {
            Payload::OutputStreaming(chunk) => chunk.chunk.unicode_words().count(),
            _ => 0,
        };
        self.rate_limiter.record_sent(kind, words, now);
        self.finalize(held, now)
    }

    /// Returns the event to send. Its timestamp becomes the time of sending if it was delayed, or was
    /// overtaken by a later event of its session.
    pub(super) fn finalize(&mut self, held: HeldEvent<T>, now: UnixMillis) -> OutgoingEvent<T> {
        if self.sessions.is_empty() && !held.was_delayed {
            return held.outgoing;
        }
        let envelope = &held.outgoing.event().envelope;
        let own_time = envelope.timestamp;
        let last = self.sessions.get(&envelope.session_id).and_then(|buffer| buffer.last_timestamp);
        let was_overtaken = last.is_some_and(|last| own_time.cmp_instant(&last).is_lt());
        if !held.was_delayed && !was_overtaken {
            self.record_timestamp(&held.outgoing, own_time);
            return held.outgoing;
        }
        let sent = Timestamp::from_unix_millis(now).unwrap_or(own_time);
        let time = [last, Some(sent)]
            .into_iter()
            .flatten()
            .fold(own_time, |a, b| if b.cmp_instant(&a).is_gt() { b } else { a });
        if time == own_time {
            self.record_timestamp(&held.outgoing, own_time);
            return held.outgoing;
        }
        if !self.sessions.contains_key(&envelope.session_id) && !envelope.event_type.is_terminal() {
            self.sessions.insert(envelope.session_id.clone(), SessionBuffer::default());
        }
        let outgoing = with_timestamp(held.outgoing, time);
        let envelope = &outgoing.event().envelope;
        let is_terminal = envelope.event_type.is_terminal();
        if let Some(buffer) = self.sessions.get_mut(&envelope.session_id) {
            buffer.last_timestamp = Some(time);
            if buffer.is_idle() && (is_terminal || buffer.is_ended) {
                self.sessions.remove(&envelope.session_id);
            }
        }
        outgoing
    }

    /// Records that an event was sent with its own timestamp. Later events have later timestamps, so
    /// an idle session can be forgotten.
    fn record_timestamp(&mut self, outgoing: &OutgoingEvent<T>, time: Timestamp) {
        let session = &outgoing.event().envelope.session_id;
        let Some(buffer) = self.sessions.get_mut(session) else { return };
        buffer.last_timestamp = Some(time);
        if buffer.is_idle() {
            self.sessions.remove(session);
        }
    }

    /// Forgets a session for which nothing is held and nothing was sent.
    pub(super) fn forget_idle(&mut self, session: &SessionId) {
        if self
            .sessions
            .get(session)
            .is_some_and(|buffer| buffer.is_idle() && buffer.last_timestamp.is_none())
        {
            self.sessions.remove(session);
        }
    }
}

pub(super) fn outgoing_kind<T>(held: &HeldEvent<T>, is_mergeable: bool) -> OutgoingKind {
    OutgoingKind {
        is_text: held.kind == MergeKind::Text,
        is_mergeable: held.kind != MergeKind::Fixed && is_mergeable,
    }
}
