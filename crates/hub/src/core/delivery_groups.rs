//! Delivery groups: one stream for all listeners with the same terms and scope.

use std::collections::HashMap;
use std::sync::Arc;

use aaep::message::CognitiveLoad;
use aaep::shaping::{self, OutgoingEvent, Shaper, ShapingTerms};
use seal::UnixMillis;

use super::CommittedEvent;
use crate::command::TurnOutput;
use crate::delivery::{Frame, OrderingClass, position_to_id};
use crate::{DeliveryGroupId, Scope};

#[derive(Default)]
pub(super) struct DeliveryGroups {
    limits: shaping::ShaperLimits,
    groups: HashMap<DeliveryGroupId, DeliveryGroup>,
    by_key: HashMap<(Arc<ShapingTerms>, Arc<Scope>), DeliveryGroupId>,
    last_id: u64,
}

struct DeliveryGroup {
    key: (Arc<ShapingTerms>, Arc<Scope>),
    shaper: Shaper<CommittedEvent>,
    listener_count: usize,
}

impl DeliveryGroups {
    /// Creates the groups of a shard. Their ids are unique among all shards.
    pub(super) fn new(limits: shaping::ShaperLimits, shard: u16) -> Self {
        Self { limits, last_id: DeliveryGroupId::first_of(shard).0, ..Self::default() }
    }

    /// Adds a listener to the group with these terms and this scope. If there is no such group, creates it with
    /// `shaper`, which has already processed earlier events. Also creates a new group if `shaper` or the existing group
    /// holds events back, because the held events of the two differ.
    pub(super) fn join(
        &mut self,
        shaping_terms: &Arc<ShapingTerms>,
        scope: &Arc<Scope>,
        shaper: Shaper<CommittedEvent>,
    ) -> DeliveryGroupId {
        let key = (shaping_terms.clone(), scope.clone());
        let existing = self.by_key.get(&key).copied().filter(|_| shaper.held_count() == 0);
        if let Some(id) = existing
            && let Some(group) = self.groups.get_mut(&id).filter(|group| group.shaper.held_count() == 0)
        {
            group.listener_count += 1;
            return id;
        }
        let id = self.create(&key, shaper);
        self.by_key.insert(key, id);
        id
    }

    /// Creates a group for one listener only.
    pub(super) fn create_private(
        &mut self,
        shaping_terms: &Arc<ShapingTerms>,
        scope: &Arc<Scope>,
        shaper: Shaper<CommittedEvent>,
    ) -> DeliveryGroupId {
        self.create(&(shaping_terms.clone(), scope.clone()), shaper)
    }

    fn create(
        &mut self,
        key: &(Arc<ShapingTerms>, Arc<Scope>),
        shaper: Shaper<CommittedEvent>,
    ) -> DeliveryGroupId {
        self.last_id += 1;
        let id = DeliveryGroupId(self.last_id);
        self.groups.insert(id, DeliveryGroup { key: key.clone(), shaper, listener_count: 1 });
        id
    }

    /// Moves a listener to the group of its new terms. If the old group holds events back, the listener gets its own
    /// group with these events, because no other listener with the new terms waits for them.
    pub(super) fn move_listener(
        &mut self,
        from: DeliveryGroupId,
        shaping_terms: &Arc<ShapingTerms>,
        scope: &Arc<Scope>,
    ) -> DeliveryGroupId {
        let Some(group) = self.groups.get(&from) else {
            return self.join(shaping_terms, scope, new_shaper(shaping_terms, self.limits));
        };
        let mut shaper = group.shaper.clone();
        shaper.renegotiate(shaping_terms.clone());
        let to = if shaper.oldest_position().is_some() {
            self.create_private(shaping_terms, scope, shaper)
        } else {
            self.join(shaping_terms, scope, shaper)
        };
        self.leave(from);
        to
    }

    /// Removes a listener from its group. A group without listeners is deleted.
    pub(super) fn leave(&mut self, id: DeliveryGroupId) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        group.listener_count -= 1;
        if group.listener_count == 0
            && let Some(group) = self.groups.remove(&id)
        {
            self.remove_key(id, &group);
        }
    }

    fn remove_key(&mut self, id: DeliveryGroupId, group: &DeliveryGroup) {
        if self.by_key.get(&group.key) == Some(&id) {
            self.by_key.remove(&group.key);
        }
    }

    /// Sends an event to every group whose scope covers it.
    pub(super) fn publish(
        &mut self,
        committed: &Arc<CommittedEvent>,
        agent: &str,
        person: Option<&str>,
        now: UnixMillis,
        outputs: &mut Vec<TurnOutput>,
    ) {
        for (id, group) in &mut self.groups {
            if group.key.1.covers(agent, person) {
                group.shaper.push_at(committed, committed.frame.position);
                drain(*id, &mut group.shaper, committed.frame.position, now, outputs);
            }
        }
    }

    /// Whether any listener receives events of this agent for this person.
    pub(super) fn has_listener_for(&self, agent: &str, person: Option<&str>) -> bool {
        self.groups.values().any(|group| group.key.1.covers(agent, person))
    }

    /// Sends held events that are due.
    pub(super) fn flush_due(&mut self, position: u64, now: UnixMillis, outputs: &mut Vec<TurnOutput>) {
        for (id, group) in &mut self.groups {
            if group.shaper.next_deadline().is_some_and(|at| at <= now) {
                drain(*id, &mut group.shaper, position, now, outputs);
            }
        }
    }

    pub(super) fn next_deadline(&self) -> Option<UnixMillis> {
        self.groups.values().filter_map(|group| group.shaper.next_deadline()).min()
    }

    /// Returns the groups that hold more events than allowed.
    pub(super) fn groups_over_limit(&self) -> Vec<DeliveryGroupId> {
        self.groups.iter().filter(|(_, group)| group.shaper.is_over_limit()).map(|(id, _)| *id).collect()
    }

    pub(super) fn contains(&self, shaping_terms: &Arc<ShapingTerms>, scope: &Arc<Scope>) -> bool {
        self.by_key.contains_key(&(shaping_terms.clone(), scope.clone()))
    }

    /// Returns the number of groups. Leftover keys without a group are counted too, so that tests notice them.
    pub(super) fn len(&self) -> usize {
        self.groups.len().max(self.by_key.len())
    }

    pub(super) fn clear(&mut self) {
        self.groups.clear();
        self.by_key.clear();
    }
}

fn drain(
    id: DeliveryGroupId,
    shaper: &mut Shaper<CommittedEvent>,
    position: u64,
    now: UnixMillis,
    outputs: &mut Vec<TurnOutput>,
) {
    while let Some(shaped) = next_shaped_event(shaper, position, now) {
        shaped.for_each_frame(|frame| outputs.push(TurnOutput::Frame(id, frame)));
    }
}

/// An event that has left a shaper.
pub(super) struct ShapedEvent {
    pub(super) out: OutgoingEvent<CommittedEvent>,
    /// The log position when the event left the shaper.
    pub(super) position: u64,
    /// The log position to resume from, if clients cannot resume from the event itself. With time-dependent terms, an
    /// event may leave before earlier events, and a replay may merge it differently.
    resume_position: Option<u64>,
}

/// Returns the next event that leaves a shaper, at this log position.
pub(super) fn next_shaped_event(
    shaper: &mut Shaper<CommittedEvent>,
    position: u64,
    now: UnixMillis,
) -> Option<ShapedEvent> {
    let out = shaper.pull(now)?;
    let from = Some(resume_position(shaper, position)).filter(|from| {
        *from < position || is_time_dependent(shaper.terms()) && matches!(out, OutgoingEvent::Rewritten(_))
    });
    Some(ShapedEvent { out, position, resume_position: from })
}

impl ShapedEvent {
    /// Calls `send` with each frame for the event.
    pub(super) fn for_each_frame(&self, mut send: impl FnMut(Arc<Frame>)) {
        let frame = frame_of(&self.out, self.position);
        match self.resume_position {
            Some(from) => {
                send(frame.without_id());
                send(Arc::new(Frame::resume_position(&position_to_id(from))));
            }
            None => send(frame),
        }
    }
}

/// Returns the log position to resume from, for a listener that received everything the shaper released. If the terms
/// do not depend on time, this is the end of the log, because a replay holds the same events back again.
pub(super) fn resume_position(shaper: &Shaper<CommittedEvent>, end: u64) -> u64 {
    if !is_time_dependent(shaper.terms()) {
        return end;
    }
    shaper.oldest_position().map_or(end, |oldest| oldest.saturating_sub(1).min(end))
}

/// Returns the frame of an event; the committed frame is shared if the event is unchanged.
fn frame_of(out: &OutgoingEvent<CommittedEvent>, position: u64) -> Arc<Frame> {
    match out {
        OutgoingEvent::Unchanged(committed) => committed.frame.clone(),
        OutgoingEvent::Rewritten(event) => {
            let (id, session) = (event.envelope.event_id.as_str(), event.envelope.session_id.as_str());
            let frame = Frame::event(id, &event.to_json(), position, out.is_critical());
            Arc::new(frame.with_session(session, OrderingClass::of(event)))
        }
    }
}

/// Whether the output depends on when events arrive. If so, a replay would merge events differently.
pub(super) fn is_time_dependent(shaping_terms: &ShapingTerms) -> bool {
    shaping_terms.max_events_per_second.is_some()
        || shaping_terms.pace_wpm.is_some()
        || shaping_terms.cognitive_load == CognitiveLoad::Low
}

pub(super) fn new_shaper(
    shaping_terms: &Arc<ShapingTerms>,
    limits: shaping::ShaperLimits,
) -> Shaper<CommittedEvent> {
    Shaper::new(shaping_terms.clone(), limits)
}
