//! Lanes: one stream for all who want the same and may hear the same.

use std::collections::HashMap;
use std::sync::Arc;

use aaep::message::CognitiveLoad;
use aaep::shape::{self, Out, Shaper, Wants};
use seal::UnixMillis;

use super::Heard;
use crate::command::Output;
use crate::delivery::{Frame, Part, place_id};
use crate::{LaneId, Scope};

#[derive(Default)]
pub(super) struct Lanes {
    limits: shape::Limits,
    streams: HashMap<LaneId, Lane>,
    keys: HashMap<(Arc<Wants>, Arc<Scope>), LaneId>,
    made: u64,
}

struct Lane {
    key: (Arc<Wants>, Arc<Scope>),
    shaper: Shaper<Heard>,
    listeners: usize,
}

impl Lanes {
    pub(super) fn new(limits: shape::Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// A listener joins the lane of those wants and that scope. If there is none, it is made with this shaper, which has
    /// heard what came before. Where the shaper, or the lane that is there, holds something back, a lane is made too: what
    /// a lane holds is not what a newcomer lacks.
    pub(super) fn join(&mut self, wants: &Arc<Wants>, scope: &Arc<Scope>, shaper: Shaper<Heard>) -> LaneId {
        let key = (wants.clone(), scope.clone());
        let known = self.keys.get(&key).copied().filter(|_| shaper.held() == 0);
        if let Some(id) = known
            && let Some(lane) = self.streams.get_mut(&id).filter(|lane| lane.shaper.held() == 0)
        {
            lane.listeners += 1;
            return id;
        }
        let id = self.make(&key, shaper);
        self.keys.insert(key, id);
        id
    }

    /// A listener gets a lane to itself.
    pub(super) fn apart(&mut self, wants: &Arc<Wants>, scope: &Arc<Scope>, shaper: Shaper<Heard>) -> LaneId {
        self.make(&(wants.clone(), scope.clone()), shaper)
    }

    fn make(&mut self, key: &(Arc<Wants>, Arc<Scope>), shaper: Shaper<Heard>) -> LaneId {
        self.made += 1;
        let id = LaneId(self.made);
        self.streams.insert(id, Lane { key: key.clone(), shaper, listeners: 1 });
        id
    }

    /// A listener goes over to the lane of other wants. What was held for it goes with it, and then it has a lane to
    /// itself: what others wait for is not what it lacks.
    pub(super) fn go_over(&mut self, from: LaneId, wants: &Arc<Wants>, scope: &Arc<Scope>) -> LaneId {
        let Some(lane) = self.streams.get(&from) else {
            return self.join(wants, scope, shaper(wants, self.limits));
        };
        let mut shaper = lane.shaper.clone();
        shaper.renegotiate(wants.clone());
        let to = if shaper.oldest().is_some() {
            self.apart(wants, scope, shaper)
        } else {
            self.join(wants, scope, shaper)
        };
        self.leave(from);
        to
    }

    /// A listener leaves; a lane without listeners is no more.
    pub(super) fn leave(&mut self, id: LaneId) {
        let Some(lane) = self.streams.get_mut(&id) else { return };
        lane.listeners -= 1;
        if lane.listeners == 0
            && let Some(lane) = self.streams.remove(&id)
        {
            self.forget(id, &lane);
        }
    }

    fn forget(&mut self, id: LaneId, lane: &Lane) {
        if self.keys.get(&lane.key) == Some(&id) {
            self.keys.remove(&lane.key);
        }
    }

    /// An event goes to every lane on which it may be heard.
    pub(super) fn hear(
        &mut self,
        heard: &Arc<Heard>,
        agent: &str,
        person: Option<&str>,
        now: UnixMillis,
        outputs: &mut Vec<Output>,
    ) {
        for (id, lane) in &mut self.streams {
            if lane.key.1.covers(agent, person) {
                lane.shaper.push_at(heard, heard.frame.position);
                drain(*id, &mut lane.shaper, heard.frame.position, now, outputs);
            }
        }
    }

    /// Whether somebody hears what this agent says for that person.
    pub(super) fn cover(&self, agent: &str, person: Option<&str>) -> bool {
        self.streams.values().any(|lane| lane.key.1.covers(agent, person))
    }

    /// What was held and may leave by now.
    pub(super) fn pull(&mut self, position: u64, now: UnixMillis, outputs: &mut Vec<Output>) {
        for (id, lane) in &mut self.streams {
            if lane.shaper.next_deadline().is_some_and(|at| at <= now) {
                drain(*id, &mut lane.shaper, position, now, outputs);
            }
        }
    }

    pub(super) fn next_deadline(&self) -> Option<UnixMillis> {
        self.streams.values().filter_map(|lane| lane.shaper.next_deadline()).min()
    }

    /// The lanes for which more is held than may be.
    pub(super) fn full(&self) -> Vec<LaneId> {
        self.streams.iter().filter(|(_, lane)| lane.shaper.is_full()).map(|(id, _)| *id).collect()
    }

    pub(super) fn has(&self, wants: &Arc<Wants>, scope: &Arc<Scope>) -> bool {
        self.keys.contains_key(&(wants.clone(), scope.clone()))
    }

    pub(super) fn len(&self) -> usize {
        self.streams.len().max(self.keys.len())
    }

    pub(super) fn clear(&mut self) {
        self.streams.clear();
        self.keys.clear();
    }
}

fn drain(id: LaneId, shaper: &mut Shaper<Heard>, position: u64, now: UnixMillis, outputs: &mut Vec<Output>) {
    while let Some(left) = leave(shaper, position, now) {
        left.frames(|frame| outputs.push(Output::Frame(id, frame)));
    }
}

/// An event that has left a shape.
pub(super) struct Left {
    pub(super) out: Out<Heard>,
    /// The place in the log that had been reached.
    pub(super) position: u64,
    /// Where to resume, if not from the event: what leaves by the clock may leave before what was said first, and is joined
    /// otherwise the next time.
    from: Option<u64>,
}

/// The next event that leaves a shape, when the log has come to that place.
pub(super) fn leave(shaper: &mut Shaper<Heard>, position: u64, now: UnixMillis) -> Option<Left> {
    let out = shaper.pull(now)?;
    let from = Some(resumes_from(shaper, position))
        .filter(|from| *from < position || is_timed(shaper.wants()) && matches!(out, Out::Made(_)));
    Some(Left { out, position, from })
}

impl Left {
    /// The frames that tell of it.
    pub(super) fn frames(&self, mut tell: impl FnMut(Arc<Frame>)) {
        let frame = frame(&self.out, self.position);
        match self.from {
            Some(from) => {
                tell(frame.nameless());
                tell(Arc::new(Frame::mark(&place_id(from))));
            }
            None => tell(frame),
        }
    }
}

/// From where a listener would resume that has been given all that has left a shape. Where nothing depends on the clock,
/// what is held is found again from the end.
pub(super) fn resumes_from(shaper: &Shaper<Heard>, end: u64) -> u64 {
    if !is_timed(shaper.wants()) {
        return end;
    }
    shaper.oldest().map_or(end, |oldest| oldest.saturating_sub(1).min(end))
}

/// The frame of an event: shared if it is as it was committed.
fn frame(out: &Out<Heard>, position: u64) -> Arc<Frame> {
    match out {
        Out::Same(heard) => heard.frame.clone(),
        Out::Made(event) => {
            let (id, session) = (event.envelope.event_id.as_str(), event.envelope.session_id.as_str());
            let frame = Frame::event(id, &event.to_json(), position, out.is_critical());
            Arc::new(frame.of_session(session, Part::of(event)))
        }
    }
}

/// Whether what leaves depends on when it came: then what was merged once is not merged so again.
pub(super) fn is_timed(wants: &Wants) -> bool {
    wants.rate.is_some() || wants.pace_wpm.is_some() || wants.cognitive_load == CognitiveLoad::Low
}

pub(super) fn shaper(wants: &Arc<Wants>, limits: shape::Limits) -> Shaper<Heard> {
    Shaper::new(wants.clone(), limits)
}
