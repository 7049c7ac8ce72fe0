//! Lanes: one stream for all who want the same and may hear the same.

use std::collections::HashMap;
use std::sync::Arc;

use aaep::shape::{self, Out, Shaper, Wants};

use super::Heard;
use crate::command::Output;
use crate::delivery::Frame;
use crate::{LaneId, Scope};

#[derive(Default)]
pub(super) struct Lanes {
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
    /// A listener joins the lane of those wants and that scope. If there is none, it is made with this shaper, which has
    /// heard what came before.
    pub(super) fn join(
        &mut self,
        wants: &Arc<Wants>,
        scope: &Arc<Scope>,
        shaper: impl FnOnce() -> Shaper<Heard>,
    ) -> LaneId {
        let key = (wants.clone(), scope.clone());
        let id = *self.keys.entry(key.clone()).or_insert_with(|| {
            self.made += 1;
            LaneId(self.made)
        });
        let lane = self.streams.entry(id).or_insert_with(|| Lane { key, shaper: shaper(), listeners: 0 });
        lane.listeners += 1;
        id
    }

    /// A listener leaves; a lane without listeners is no more.
    pub(super) fn leave(&mut self, id: LaneId) {
        let Some(lane) = self.streams.get_mut(&id) else { return };
        lane.listeners -= 1;
        if lane.listeners == 0
            && let Some(lane) = self.streams.remove(&id)
        {
            self.keys.remove(&lane.key);
        }
    }

    /// An event goes to every lane on which it may be heard.
    pub(super) fn hear(
        &mut self,
        heard: &Arc<Heard>,
        agent: &str,
        person: Option<&str>,
        now: i64,
        outputs: &mut Vec<Output>,
    ) {
        for (id, lane) in &mut self.streams {
            if lane.key.1.covers(agent, person) {
                lane.shaper.push(heard);
                drain(*id, &mut lane.shaper, heard.frame.position, now, outputs);
            }
        }
    }

    /// What was held and may leave by now.
    pub(super) fn pull(&mut self, now: i64, outputs: &mut Vec<Output>) {
        for (id, lane) in &mut self.streams {
            if lane.shaper.next_deadline().is_some_and(|at| at <= now) {
                drain(*id, &mut lane.shaper, 0, now, outputs);
            }
        }
    }

    pub(super) fn next_deadline(&self) -> Option<i64> {
        self.streams.values().filter_map(|lane| lane.shaper.next_deadline()).min()
    }

    pub(super) fn clear(&mut self) {
        self.streams.clear();
        self.keys.clear();
    }
}

fn drain(id: LaneId, shaper: &mut Shaper<Heard>, position: u64, now: i64, outputs: &mut Vec<Output>) {
    while let Some(out) = shaper.pull(now) {
        outputs.push(Output::Frame(id, frame(&out, position)));
    }
}

/// The frame of an event: shared if it is as it was committed.
pub(super) fn frame(out: &Out<Heard>, position: u64) -> Arc<Frame> {
    match out {
        Out::Same(heard) => heard.frame.clone(),
        Out::Made(event) => {
            let (id, session) = (event.envelope.event_id.as_str(), event.envelope.session_id.as_str());
            let frame = Frame::event(id, &event.to_json(), position, out.is_critical());
            Arc::new(frame.of_session(session, event.envelope.event_type.is_terminal()))
        }
    }
}

pub(super) fn shaper(wants: &Arc<Wants>) -> Shaper<Heard> {
    Shaper::new(wants.clone(), shape::Limits::default())
}
