//! The hub, its journal, its clock and all actors, driven by random numbers.

use std::collections::{HashMap, HashSet};

use aaep::event::Producer;
use hub::command::{HubCommand, HubReply, Request, RequestId, TurnOutput};
use hub::delivery::{DeliveryLimits, DeliveryQueue};
use hub::{Core, DeliveryGroupId, HubLimits, ListenerId, Principal};
use seal::UnixMillis;

use crate::simulation::ledger::LedgerChecker;
use crate::simulation::listener::SimulatedListener;
use crate::support::{FaultyJournal, START};
use testing::random::SplitMix64;

pub(crate) struct SimulatedWorld {
    pub(crate) core: Core,
    pub(crate) disk: FaultyJournal,
    pub(crate) ledger: LedgerChecker,
    pub(crate) random: SplitMix64,
    pub(crate) now: UnixMillis,
    pub(crate) listeners: Vec<SimulatedListener>,
    pub(crate) agents: Vec<SimulatedAgent>,
    pub(crate) queues: HashMap<DeliveryGroupId, DeliveryQueue>,
    /// Requests without a reply, their purpose, and the time by which they must get a reply.
    pending: HashMap<RequestId, (Purpose, UnixMillis)>,
    queued_requests: Vec<Request>,
    last_number: u64,
    /// The ids of events that the hub confirmed as stored.
    pub(crate) acknowledged: HashSet<String>,
    pub(crate) turns: usize,
    pub(crate) crashes: usize,
}

pub(crate) struct SimulatedAgent {
    pub(crate) principal: Principal,
    pub(crate) sessions: Vec<SimulatedSession>,
    pub(crate) calls: u64,
}

/// A session as its agent sees it.
#[derive(Clone)]
pub(crate) struct SimulatedSession {
    pub(crate) id: String,
    pub(crate) person: String,
    /// The tokens of its questions, and the amount in each question.
    pub(crate) questions: Vec<(String, String)>,
}

/// The purpose of a request. Each number is the index of a listener or an agent.
#[derive(Clone, Debug)]
pub(crate) enum Purpose {
    Subscribe(usize),
    Attach(usize, ListenerId),
    /// The agent, and the person that the session is for.
    Start(usize, String),
    /// The agent, its session, and the amount in the question.
    Ask(usize, String, String),
    Publish,
    Close(usize),
    Other,
}

pub(crate) const LIMITS: HubLimits = HubLimits {
    sessions: 64,
    sessions_per_principal: 64,
    subscriptions: 10_000,
    subscriptions_per_principal: 1_000,
    criticals_per_minute: 10_000,
    total_criticals_per_minute: 10_000,
    questions_per_minute: 1_000,
    total_questions_per_minute: 10_000,
    events_per_request: 100,
    bytes_per_request: 1 << 20,
    bytes_per_turn: 4_096,
    bytes_per_minute: 64 << 20,
    shared_member_chars: 256,
    shared_object_bytes: 2_048,
    producers_per_session: 4,
    invitation_lifetime_ms: 600_000,
    idempotency_key_chars: 256,
    manifests: 16,
    manifest_bytes: 4_096,
    open_items_per_session: 16,
    questions: aaep::consent::ConsentLimits {
        max_open_per_session: 4,
        max_open_per_agent: 8,
        max_open_total: 64,
        max_resolved_per_session: 64,
        max_consent_age_ms: 600_000,
    },
    handoffs: hub::HandoffLimits {
        timeout_ms: 60_000,
        max_timeout_ms: 600_000,
        max_open_per_agent: 8,
        max_open_total: 64,
        max_context_bytes: 4_096,
    },
    arguments: hub::ArgumentLimits { max_bytes: 32 * 1024, max_text_chars: 1_000 },
    lease_ms: 60_000,
    max_lease_ms: 24 * 60 * 60 * 1000,
    attach_window_ms: 30_000,
    resume_window_ms: 30_000,
    max_replay_events: 400,
    max_replay_bytes: 8 * 1024 * 1024,
    max_wait_ms: 300_000,
    waits_per_principal: 1_024,
    followers_per_session: 16,
    shaping: aaep::shaping::ShaperLimits {
        max_text_bytes: 16_384,
        max_held_outputs: 1_024,
        max_held_events: 10_000,
    },
    requests_per_turn: 1_024,
    max_sleep_ms: 1_000,
    retention: journal::Retention {
        max_event_age_ms: None,
        max_decision_age_ms: None,
        max_idempotency_key_age_ms: None,
        max_idempotency_keys_per_principal: None,
        max_bytes: None,
        max_rows_per_step: 200,
    },
    trim_interval_ms: 60_000,
};

const QUEUE_LIMITS: DeliveryLimits =
    DeliveryLimits { frames: 300, bytes: 1024 * 1024, merge_above_frames: 100 };

impl SimulatedWorld {
    pub(crate) fn new(seed: u64) -> Self {
        let disk = FaultyJournal::default();
        let mut random = SplitMix64::new(seed);
        Self {
            core: core(&disk, &mut random, START),
            disk,
            ledger: LedgerChecker::default(),
            random,
            now: START,
            listeners: Vec::new(),
            agents: Vec::new(),
            queues: HashMap::new(),
            pending: HashMap::new(),
            queued_requests: Vec::new(),
            last_number: 0,
            acknowledged: HashSet::new(),
            turns: 0,
            crashes: 0,
        }
    }

    pub(crate) fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Adds a request to the next turn.
    pub(crate) fn queue_request(&mut self, principal: &Principal, command: HubCommand, purpose: Purpose) {
        let id = RequestId(self.next_number());
        let until = if let HubCommand::Wait { until, .. } = &command { *until } else { self.now };
        if !matches!(command, HubCommand::Detach { .. }) {
            self.pending.insert(id, (purpose, until));
        }
        self.queued_requests.push(Request { id, principal: principal.clone(), command });
    }

    pub(crate) fn turn(&mut self) {
        let requests = std::mem::take(&mut self.queued_requests);
        self.turns += 1;
        let mut outputs = self.core.run_turn(requests, self.now);
        self.ledger.check_writes(&self.disk);
        while self.core.has_queued_requests() {
            outputs.extend(self.core.run_turn([], self.now));
            self.ledger.check_writes(&self.disk);
        }
        for output in outputs {
            self.perform(output);
        }
        for subscriber in self.listeners.iter_mut().filter(|subscriber| subscriber.reads_immediately) {
            subscriber.read_frames(usize::MAX, &self.queues);
        }
        let overdue = self.pending.iter().find(|(_, (_, until))| *until <= self.now);
        assert!(overdue.is_none(), "no reply to {overdue:?}");
    }

    /// Advances the time, and runs a turn at every deadline.
    pub(crate) fn advance_time(&mut self, millis: i64) {
        let until = self.now + millis;
        let mut turns_at_instant = 0;
        while let Some(at) = self.core.next_deadline().filter(|at| *at <= until) {
            turns_at_instant = if at > self.now { 0 } else { turns_at_instant + 1 };
            assert!(turns_at_instant < 20, "too many turns at one instant: {:?}", self.core);
            self.now = self.now.max(at);
            self.turn();
        }
        self.now = until;
    }

    /// Restarts the hub; all connections and pending requests are lost.
    pub(crate) fn crash(&mut self) {
        self.crashes += 1;
        self.pending.clear();
        self.queued_requests.clear();
        self.core = core(&self.disk, &mut self.random, self.now);
        self.queues.clear();
        for subscriber in &mut self.listeners {
            if subscriber.connection.take().is_some() {
                subscriber.lost_at = self.now;
            }
        }
        for id in &self.acknowledged {
            assert!(self.disk.position_of(id).is_some(), "{id} was acknowledged");
        }
    }

    fn perform(&mut self, output: TurnOutput) {
        let end = self.ledger.events.len() as u64;
        match output {
            TurnOutput::Reply(id, reply) => {
                let (purpose, _) = self.pending.remove(&id).expect("one reply per request");
                self.handle_reply(purpose, &reply);
            }
            TurnOutput::Frame(group, frame) => {
                for subscriber in &mut self.listeners {
                    if subscriber.connection.as_ref().is_some_and(|connection| connection.group == group) {
                        subscriber.record_critical(&frame);
                    }
                }
                self.queue(group).push(frame);
            }
            TurnOutput::Join { listener, group, private_frames, resume_position, .. } => {
                self.queue(group);
                let joining = self.pending.values().find_map(|(purpose, _)| match purpose {
                    Purpose::Attach(subscriber, id) if *id == listener => Some(*subscriber),
                    _ => None,
                });
                let (Some(subscriber), Some(queue)) = (joining, self.queues.get(&group)) else {
                    panic!("no pending attach for this listener");
                };
                self.listeners[subscriber].attach(
                    listener,
                    group,
                    queue,
                    private_frames,
                    resume_position,
                    end,
                );
            }
            TurnOutput::Move(listener, group) => {
                self.queue(group);
                for connection in
                    self.listeners.iter_mut().filter_map(|subscriber| subscriber.connection.as_mut())
                {
                    if connection.id == listener {
                        connection.cursor.move_to(&self.queues[&connection.group], &self.queues[&group]);
                        connection.group = group;
                    }
                }
            }
            TurnOutput::Log(hub::telemetry::LogEvent::HubEventRejected { session, rules }) => {
                panic!("an event of the hub was rejected in {session}: {rules:?}");
            }
            TurnOutput::Send(..) | TurnOutput::Log(_) => {}
            TurnOutput::Close(listener) => {
                for subscriber in &mut self.listeners {
                    if subscriber.connection.as_ref().is_some_and(|connection| connection.id == listener) {
                        subscriber.connection = None;
                        subscriber.lost_at = self.now;
                    }
                }
            }
            _ => panic!("unknown output"),
        }
    }

    fn queue(&mut self, id: DeliveryGroupId) -> &mut DeliveryQueue {
        self.queues.entry(id).or_insert_with(|| DeliveryQueue::new(QUEUE_LIMITS))
    }

    fn handle_reply(&mut self, purpose: Purpose, reply: &HubReply) {
        match (purpose, reply) {
            (Purpose::Subscribe(subscriber), HubReply::Subscribed { accepted, .. }) => {
                self.listeners[subscriber].subscription = Some(accepted.subscription_id.to_string());
                self.listeners[subscriber].lost_at = self.now;
                self.listeners[subscriber].is_closing = false;
            }
            (Purpose::Attach(subscriber, _), HubReply::NotFound) => {
                let subscriber = &mut self.listeners[subscriber];
                let overdue = self.now - subscriber.lost_at >= LIMITS.resume_window_ms;
                let may_be_closed = overdue || subscriber.is_closing;
                assert!(
                    may_be_closed,
                    "the hub refused a listener that reconnected in time: {:?}",
                    subscriber.attaches
                );
                (subscriber.subscription, subscriber.last_id, subscriber.complete_from) = (None, None, None);
            }
            (
                Purpose::Close(subscriber),
                HubReply::Done | HubReply::NotFound | HubReply::SubscriptionRejected(_),
            ) => {
                let subscriber = &mut self.listeners[subscriber];
                (subscriber.subscription, subscriber.last_id, subscriber.complete_from) = (None, None, None);
            }
            (Purpose::Start(agent, person), HubReply::SessionStarted { session_id }) => {
                let session = SimulatedSession { id: session_id.to_string(), person, questions: Vec::new() };
                self.agents[agent].sessions.push(session);
            }
            (Purpose::Ask(agent, session_id, amount), HubReply::QuestionOpened { reply_token, .. }) => {
                let mut sessions = self.agents[agent].sessions.iter_mut();
                if let Some(session) = sessions.find(|session| session.id == session_id) {
                    session.questions.push((reply_token.to_string(), amount));
                }
            }
            (Purpose::Publish, HubReply::EventsPublished { event_ids, .. }) => {
                for id in event_ids {
                    let id = id.to_string();
                    assert!(self.disk.position_of(&id).is_some(), "{id} is acknowledged but not stored");
                    self.acknowledged.insert(id);
                }
            }
            (_, HubReply::Forbidden) => panic!("an actor exceeded its role"),
            _ => {}
        }
    }
}

fn core(disk: &FaultyJournal, random: &mut SplitMix64, now: UnixMillis) -> Core {
    let mut random = SplitMix64::new(random.next_u64());
    let fill = move |bytes: &mut [u8]| bytes.fill_with(|| random.next_u64().to_le_bytes()[0]);
    Core::new(Box::new(disk.clone()), Producer::new("hub"), LIMITS, fill, now).unwrap()
}
