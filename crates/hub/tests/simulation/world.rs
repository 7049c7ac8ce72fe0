//! The hub, its disk, its clock and everybody around it, moved by chance.

use std::collections::{HashMap, HashSet};

use aaep::event::Producer;
use hub::command::{Command, Output, Reply, Request, RequestId};
use hub::delivery::{Lane, LaneLimits};
use hub::{Core, LaneId, Limits, ListenerId, Principal};
use seal::UnixMillis;

use crate::simulation::ear::Ear;
use crate::simulation::ledger::Ledger;
use crate::support::{Disk, START};
use testing::random::Random;

pub(crate) struct World {
    pub(crate) core: Core,
    pub(crate) disk: Disk,
    pub(crate) ledger: Ledger,
    pub(crate) chance: Random,
    pub(crate) now: UnixMillis,
    pub(crate) ears: Vec<Ear>,
    pub(crate) agents: Vec<Agent>,
    pub(crate) lanes: HashMap<LaneId, Lane>,
    /// Questions that are not answered yet, and until when they must be.
    open: HashMap<RequestId, (Purpose, UnixMillis)>,
    inbox: Vec<Request>,
    numbers: u64,
    pub(crate) acknowledged: HashSet<String>,
    pub(crate) turns: usize,
    pub(crate) crashes: usize,
}

pub(crate) struct Agent {
    pub(crate) who: Principal,
    pub(crate) sessions: Vec<Talk>,
    pub(crate) calls: u64,
}

/// A session as its agent sees it.
#[derive(Clone)]
pub(crate) struct Talk {
    pub(crate) id: String,
    pub(crate) person: String,
    /// The tokens that it was given, and the amount that each was about.
    pub(crate) asked: Vec<(String, String)>,
}

/// What a request was for.
#[derive(Clone, Debug)]
pub(crate) enum Purpose {
    Subscribe(usize),
    Attach(usize, ListenerId),
    Start(usize, String),
    Ask(usize, String, String),
    Publish,
    Close(usize),
    Other,
}

pub(crate) const LIMITS: Limits = Limits {
    sessions: 64,
    subscriptions: 10_000,
    subscriptions_per_principal: 1_000,
    criticals_per_minute: 10_000,
    questions_per_minute: 1_000,
    events_in_request: 100,
    open_in_session: 16,
    questions: aaep::consent::Limits {
        open_in_session: 4,
        open_of_agent: 8,
        open_in_all: 64,
        resolved_in_session: 64,
    },
    lease: 60_000,
    attach_window: 30_000,
    resume_window: 30_000,
    replay: 400,
    longest_wait: 300_000,
    waits_of_principal: 1_024,
    followers: 16,
    shape: aaep::shape::Limits { text: 16_384, outputs: 1_024, events: 10_000 },
    requests_in_turn: 1_024,
    longest_sleep: 1_000,
    retention: journal::Retention { events: None, decisions: None, keys: None, bytes: None, step: 200 },
    trim_every: 60_000,
};

const LANE: LaneLimits = LaneLimits { frames: 300, bytes: 1024 * 1024, merge: 100 };

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let disk = Disk::default();
        let mut chance = Random::new(seed);
        Self {
            core: core(&disk, &mut chance, START),
            disk,
            ledger: Ledger::default(),
            chance,
            now: START,
            ears: Vec::new(),
            agents: Vec::new(),
            lanes: HashMap::new(),
            open: HashMap::new(),
            inbox: Vec::new(),
            numbers: 0,
            acknowledged: HashSet::new(),
            turns: 0,
            crashes: 0,
        }
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Puts a request into the next turn.
    pub(crate) fn ask(&mut self, who: &Principal, command: Command, purpose: Purpose) {
        let id = RequestId(self.number());
        let until = if let Command::Wait { until, .. } = &command { *until } else { self.now };
        if !matches!(command, Command::Detached { .. }) {
            self.open.insert(id, (purpose, until));
        }
        self.inbox.push(Request { id, who: who.clone(), command });
    }

    pub(crate) fn turn(&mut self) {
        let requests = std::mem::take(&mut self.inbox);
        self.turns += 1;
        let outputs = self.core.turn(requests, self.now);
        self.ledger.watch(&self.disk);
        for output in outputs {
            self.perform(output);
        }
        for ear in self.ears.iter_mut().filter(|ear| ear.is_prompt) {
            ear.reads(usize::MAX, &self.lanes);
        }
        let late = self.open.iter().find(|(_, (_, until))| *until <= self.now);
        assert!(late.is_none(), "nobody answered {late:?}");
    }

    /// Lets time pass; at every deadline something happens.
    pub(crate) fn pass(&mut self, millis: i64) {
        let until = self.now + millis;
        let mut at_once = 0;
        while let Some(at) = self.core.next_deadline().filter(|at| *at <= until) {
            at_once = if at > self.now { 0 } else { at_once + 1 };
            assert!(at_once < 20, "turn after turn at one instant: {:?}", self.core);
            self.now = self.now.max(at);
            self.turn();
        }
        self.now = until;
    }

    /// The hub is gone, and everybody's connection and open request with it.
    pub(crate) fn crash(&mut self) {
        self.crashes += 1;
        self.open.clear();
        self.inbox.clear();
        self.core = core(&self.disk, &mut self.chance, self.now);
        self.lanes.clear();
        for ear in &mut self.ears {
            if ear.line.take().is_some() {
                ear.lost_at = self.now;
            }
        }
        for id in &self.acknowledged {
            assert!(self.disk.position_of(id).is_some(), "{id} was acknowledged");
        }
    }

    fn perform(&mut self, output: Output) {
        let end = self.ledger.events.len() as u64;
        match output {
            Output::Reply(id, answer) => {
                let (purpose, _) = self.open.remove(&id).expect("one answer, to who asked");
                self.answered(purpose, &answer);
            }
            Output::Frame(lane, frame) => {
                for ear in &mut self.ears {
                    if ear.line.as_ref().is_some_and(|line| line.lane == lane) {
                        ear.pushed(&frame);
                    }
                }
                self.lane(lane).push(frame);
            }
            Output::Join { listener, lane, own, from } => {
                self.lane(lane);
                let joins = self.open.values().find_map(|(purpose, _)| match purpose {
                    Purpose::Attach(ear, of) if *of == listener => Some(*ear),
                    _ => None,
                });
                let (Some(ear), Some(shared)) = (joins, self.lanes.get(&lane)) else {
                    panic!("nobody attached");
                };
                self.ears[ear].joins(listener, lane, shared, own, from, end);
            }
            Output::Move(listener, lane) => {
                self.lane(lane);
                for line in self.ears.iter_mut().filter_map(|ear| ear.line.as_mut()) {
                    if line.id == listener {
                        line.cursor.go_over(&self.lanes[&line.lane], &self.lanes[&lane]);
                        line.lane = lane;
                    }
                }
            }
            Output::Note(hub::watch::Note::Unsaid { session, rules }) => {
                panic!("the hub's own words were refused in {session}: {rules:?}");
            }
            Output::Give(..) | Output::Note(_) => {}
            Output::Close(listener) => {
                for ear in &mut self.ears {
                    if ear.line.as_ref().is_some_and(|line| line.id == listener) {
                        ear.line = None;
                        ear.lost_at = self.now;
                    }
                }
            }
            _ => panic!("unknown output"),
        }
    }

    fn lane(&mut self, id: LaneId) -> &mut Lane {
        self.lanes.entry(id).or_insert_with(|| Lane::new(LANE))
    }

    fn answered(&mut self, purpose: Purpose, answer: &Reply) {
        match (purpose, answer) {
            (Purpose::Subscribe(ear), Reply::Subscribed { accepted, .. }) => {
                self.ears[ear].subscription = Some(accepted.subscription_id.to_string());
                self.ears[ear].lost_at = self.now;
                self.ears[ear].closes = false;
            }
            (Purpose::Attach(ear, _), Reply::NotFound) => {
                let ear = &mut self.ears[ear];
                let late = self.now - ear.lost_at >= LIMITS.resume_window;
                let known = late || ear.closes;
                assert!(known, "it came back in time: {:?}", ear.joined);
                (ear.subscription, ear.last, ear.whole_from) = (None, None, None);
            }
            (Purpose::Close(ear), Reply::Done | Reply::NotFound | Reply::SubscriptionRejected(_)) => {
                let ear = &mut self.ears[ear];
                (ear.subscription, ear.last, ear.whole_from) = (None, None, None);
            }
            (Purpose::Start(agent, person), Reply::SessionStarted { session_id }) => {
                let talk = Talk { id: session_id.to_string(), person, asked: Vec::new() };
                self.agents[agent].sessions.push(talk);
            }
            (Purpose::Ask(agent, session, amount), Reply::QuestionOpened { reply_token, .. }) => {
                let mut talks = self.agents[agent].sessions.iter_mut();
                if let Some(talk) = talks.find(|talk| talk.id == session) {
                    talk.asked.push((reply_token.to_string(), amount));
                }
            }
            (Purpose::Publish, Reply::EventsPublished { event_ids }) => {
                for id in event_ids {
                    let id = id.to_string();
                    assert!(self.disk.position_of(&id).is_some(), "{id} is acknowledged and on no disk");
                    self.acknowledged.insert(id);
                }
            }
            (_, Reply::Forbidden) => panic!("everybody does what is his to do"),
            _ => {}
        }
    }
}

fn core(disk: &Disk, chance: &mut Random, now: UnixMillis) -> Core {
    let mut random = Random::new(chance.next());
    let fill = move |bytes: &mut [u8]| bytes.fill_with(|| random.next().to_le_bytes()[0]);
    Core::new(Box::new(disk.clone()), Producer::new("hub"), LIMITS, fill, now).unwrap()
}
