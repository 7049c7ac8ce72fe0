//! Three nodes that all serve, and a primary with a synchronous standby: agents and listeners use all nodes while one thing
//! after another fails.
//!
//! `CLUSTER_FAULTS=200` sets the number of faults (20 by default), `PROPERTY_SEED` their seed, and `CLUSTER_LEASE=5s` the
//! lease, which bounds the time of a failover.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use testing::random::SplitMix64;

use super::listener::PersistentListener;
use super::*;
use crate::serve::random_kills::{AcknowledgedState, assert_acknowledged, run_step};

#[test]
fn nothing_acknowledged_is_lost_whatever_fails() {
    if !testing::postgres::is_installed("nothing_acknowledged_is_lost_whatever_fails") {
        return;
    }
    let number = |name: &str, default: u64| {
        std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
    };
    let (faults, seed) = (number("CLUSTER_FAULTS", 20), number("PROPERTY_SEED", 11));
    let lease = std::env::var("CLUSTER_LEASE").unwrap_or_else(|_| "3s".to_owned());
    println!("{faults} faults, seed {seed}, lease {lease}");
    let mut campaign = Campaign::new(seed, &lease);
    for round in 0..faults {
        campaign.run_round(round);
    }
    campaign.check();
    campaign.check_deadlines();
    campaign.check_calls();
    println!("the listener has resumed {} times", campaign.listener.resumes());
    let slowest = campaign.failovers.iter().max().copied().unwrap_or_default();
    println!("{} failovers after SIGKILL, the slowest took {slowest:?}", campaign.failovers.len());
    let (events, accepts) = (campaign.events, campaign.accepts);
    println!("{events} events and {accepts} accepts were acknowledged");
    assert!(events > usize::try_from(faults).unwrap(), "too little was acknowledged for a meaningful test");
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Kill,
    Pause,
    /// Connections to the database are closed, and new ones refused.
    CutFromDatabase,
    /// Connections to the database stay open, but nothing arrives until other nodes own the shards. Then everything arrives.
    StallDatabase,
    /// The database performs what the node sends, but its answers are lost.
    LoseAnswers,
    CutFromNodes,
    /// Connections from other nodes stay open, but nothing arrives.
    StallNodes,
    LosePrimary,
}

const FAULTS: [Fault; 8] = [
    Fault::Kill,
    Fault::Pause,
    Fault::CutFromDatabase,
    Fault::StallDatabase,
    Fault::LoseAnswers,
    Fault::CutFromNodes,
    Fault::StallNodes,
    Fault::LosePrimary,
];

/// How many answers of the database are lost at a time, at least. A node has a connection for its leases and one for the tokens, so
/// one of the answers belongs to a shard.
const LOST_ANSWERS: usize = 3;

const SYNCHRONOUS: &str = "synchronous_standby_names=standby";

/// How many events are acknowledged before a fault, at most, and after it, at least.
const EVENTS_AROUND_FAULT: usize = 12;

const STEP_PAUSE: Duration = Duration::from_millis(40);

/// A person for each agent.
const PEOPLE: [&str; 3] = ["ada", "ben", "marisol"];

/// How often a check is repeated. Data that is really lost stays lost.
const MAX_FAILURES: u32 = 3;

/// A question that nobody answers in time.
pub(super) const SHORT_QUESTION: &str = r#"{"action":"Send 5 euros to Ben.","consequence":"It cannot be undone.","irreversible":true,"risk_level":"high","timeout_seconds":10,"default_decision":"reject","summary_normal":"May I?","tool":"send","arguments":{"amount":"6.00"}}"#;

struct Campaign {
    random: SplitMix64,
    primary: PostgresServer,
    standby: PostgresServer,
    nodes: Vec<TestNode>,
    /// Hears everything from the beginning to the end.
    listener: PersistentListener,
    /// One per node.
    agents: Vec<Agent>,
    /// A session in each shard.
    probes: Vec<String>,
    /// Sessions with questions that nobody answers, and their tokens.
    unanswered: Vec<(String, String)>,
    events: usize,
    accepts: usize,
    /// From SIGKILL until every shard of the node accepted an event elsewhere.
    failovers: Vec<Duration>,
}

/// An agent with one session, a person who answers it, and what they know is stored.
#[derive(Default)]
pub(super) struct Agent {
    pub(super) session: String,
    subscription: String,
    first_event_id: String,
    pub(super) acknowledged: AcknowledgedState,
}

impl Agent {
    pub(super) fn start((client, person): (&TestClient, &str)) -> Self {
        let subscription = client.subscribe(REPLY_CAPABILITIES);
        let mut stream = client.open_event_stream(&subscription, None);
        // Each agent acts for another person, so the sessions are in different shards.
        let body = format!(r#"{{"summary_normal":"Moving money.","requested_by":"user:{person}"}}"#);
        let session = client.post("/agent/v1/sessions", &body).json_str("session_id");
        loop {
            let (kind, id, event) = stream.next();
            if kind == "session.started" && event["session_id"] == session.as_str() {
                let acknowledged = AcknowledgedState::default();
                return Self { session, subscription, first_event_id: id, acknowledged };
            }
        }
    }

    /// Works until the flag is set. After a failure, goes on with the next node.
    pub(super) fn work(
        &mut self,
        clients: &[TestClient],
        first: usize,
        is_over: &AtomicBool,
        count: &AtomicUsize,
    ) {
        let mut node = first;
        while !is_over.load(Ordering::SeqCst) {
            let before = self.acknowledged.events.len();
            let client = &clients[node % clients.len()];
            if run_step(client, &self.session, &self.subscription, &mut self.acknowledged).is_none() {
                node += 1;
            }
            // A listener that resumes gets a limited number of events, and then a message about the gap.
            std::thread::sleep(STEP_PAUSE);
            count.fetch_add(self.acknowledged.events.len() - before, Ordering::SeqCst);
        }
    }

    /// Asserts that the listener has heard everything acknowledged once, and in the order of the session. If the listener is behind, a
    /// question overtakes progress and takes the calls before it along, so each kind has an order of its own.
    pub(super) fn assert_heard_by(&self, listener: &PersistentListener) {
        listener.assert_heard(&self.session, &self.acknowledged.events);
        listener.assert_heard(&self.session, &self.acknowledged.call_events);
    }

    /// Asserts that everything acknowledged is there once, and that a listener that resumes gets it once.
    pub(super) fn assert_nothing_is_lost(&self, client: &TestClient) {
        let Self { session, subscription, first_event_id, acknowledged } = self;
        repeat(|| assert_acknowledged(client, session, subscription, first_event_id, acknowledged));
    }
}

impl Campaign {
    fn new(seed: u64, lease: &str) -> Self {
        let mut primary = PostgresServer::start();
        let standby = primary.start_standby("standby", &[SYNCHRONOUS]);
        primary.restart_with(&[SYNCHRONOUS]);
        let mut arguments = vec![
            "--open",
            "--journal-lease",
            lease,
            "--journal-replicas",
            "1",
            "--questions-open-per-agent",
            "4096",
        ];
        arguments.extend([
            "--hub-questions-per-minute",
            "1000000",
            "--hub-total-questions-per-minute",
            "1000000",
            // The listener must hear each event. One that is far behind gets only the latest progress.
            "--delivery-merge-threshold",
            "9000",
        ]);
        let nodes = start_nodes(&primary, &["a", "b", "c"], &arguments);
        let listener = PersistentListener::start(nodes.iter().map(TestNode::client).collect());
        Self {
            random: SplitMix64::new(seed),
            primary,
            standby,
            nodes,
            listener,
            agents: Vec::new(),
            probes: Vec::new(),
            unanswered: Vec::new(),
            events: 0,
            accepts: 0,
            failovers: Vec::new(),
        }
    }

    fn run_round(&mut self, round: u64) {
        let (fault, target) = (*self.random.choose_one(&FAULTS), self.random.below(3));
        println!("round {round}: {fault:?} {}", self.nodes[target].name);
        self.check();
        if round.is_multiple_of(3) {
            self.start_agents();
        }
        let clients: Vec<_> = self.nodes.iter().map(TestNode::client).collect();
        let (is_over, count) = (AtomicBool::new(false), AtomicUsize::new(0));
        let fault_after = self.random.below(EVENTS_AROUND_FAULT) + 1;
        let mut agents = std::mem::take(&mut self.agents);
        let result = std::thread::scope(|scope| {
            for (index, agent) in agents.iter_mut().enumerate() {
                let (clients, is_over, count) = (&clients, &is_over, &count);
                scope.spawn(move || agent.work(clients, index, is_over, count));
            }
            let result = catch_unwind(AssertUnwindSafe(|| {
                wait_until("events are acknowledged", || count.load(Ordering::SeqCst) >= fault_after);
                self.inject(fault, target);
                let before = count.load(Ordering::SeqCst);
                let is_served = || count.load(Ordering::SeqCst) >= before + EVENTS_AROUND_FAULT;
                wait_until("events are acknowledged after the fault", is_served);
                self.nodes[target].internal_link.restore();
            }));
            is_over.store(true, Ordering::SeqCst);
            result
        });
        self.agents = agents;
        self.events += count.into_inner();
        if let Err(failure) = result {
            resume_unwind(failure);
        }
    }

    fn inject(&mut self, fault: Fault, target: usize) {
        let name = self.nodes[target].name;
        match fault {
            Fault::Kill => {
                let owned = format!("SELECT id FROM sayso.shard WHERE owner = '{name}' ORDER BY id");
                let owned = self.primary.sql(&owned);
                let killed_at = Instant::now();
                self.nodes[target].kill();
                let other = self.nodes[(target + 1) % 3].client();
                for shard in owned.lines().map(|line| line.parse::<usize>().unwrap()) {
                    let path = format!("/agent/v1/sessions/{}/events", self.probes[shard]);
                    let event = r#"{"type":"aaep:agent.progress.updated","progress":{"percent":5},"summary_normal":"Working."}"#;
                    wait_until("a shard is taken over", || {
                        other.try_send("POST", &path, event).is_some_and(|response| response.status == 200)
                    });
                }
                self.failovers.push(killed_at.elapsed());
            }
            Fault::Pause => {
                self.nodes[target].signal("-STOP");
                wait_until("the shards are taken over", || owned_by(&self.primary, name) == 0);
                self.nodes[target].signal("-CONT");
                self.wait_until_node_is_ready(target);
            }
            Fault::CutFromDatabase => {
                self.nodes[target].database_link.refuse_connections(true);
                self.nodes[target].database_link.cut();
                wait_until("the shards are taken over", || owned_by(&self.primary, name) == 0);
                self.nodes[target].database_link.refuse_connections(false);
                self.wait_until_node_is_ready(target);
            }
            Fault::StallDatabase => {
                self.nodes[target].database_link.stall();
                wait_until("the shards are taken over", || owned_by(&self.primary, name) == 0);
                self.nodes[target].database_link.end_stall();
                self.wait_until_node_is_ready(target);
            }
            Fault::LoseAnswers => {
                let link = &self.nodes[target].database_link;
                link.withhold_answers();
                for _ in 0..LOST_ANSWERS {
                    link.wait_until_withheld();
                }
                link.cut();
                self.wait_until_node_is_ready(target);
            }
            Fault::CutFromNodes => self.nodes[target].internal_link.cut(),
            Fault::StallNodes => self.nodes[target].internal_link.stall(),
            Fault::LosePrimary => {
                self.primary.kill();
                self.standby.promote();
                for node in &self.nodes {
                    node.database_link.redirect(&self.standby.socket());
                    node.database_link.cut();
                }
                // Until there is another standby, every commit waits.
                let standby = self.standby.start_standby("standby", &[SYNCHRONOUS]);
                self.primary = std::mem::replace(&mut self.standby, standby);
            }
        }
    }

    /// Waits until a node that has lost its shards serves again, without a restart.
    fn wait_until_node_is_ready(&mut self, target: usize) {
        let node = &mut self.nodes[target];
        wait_until("the node serves again", || {
            assert!(node.is_running(), "a node that lost its shards continues");
            node.is_ready()
        });
    }

    /// Starts a session for each agent, and distributes the shards, because a node that has lost its shards gets none back.
    fn start_agents(&mut self) {
        let accepts: usize = self.agents.iter().map(|agent| agent.acknowledged.accepted_count()).sum();
        self.accepts += accepts;
        rebalance(&self.primary, &mut self.nodes);
        let clients: Vec<_> = self.nodes.iter().map(TestNode::client).collect();
        self.probes = repeat(|| start_sessions(&clients[0], SHARDS));
        self.agents = repeat(|| clients.iter().zip(PEOPLE).map(Agent::start).collect());
        for client in &clients {
            self.unanswered.push(repeat(|| {
                let session = client.start_session();
                let path = format!("/agent/v1/sessions/{session}/confirmations");
                let asked = client.post(&path, SHORT_QUESTION);
                assert_eq!(asked.status, 201, "{asked:?}");
                (session, asked.json_str("reply_token"))
            }));
        }
    }

    /// Asserts that everything acknowledged is there, on another node than before.
    fn check(&mut self) {
        for node in &mut self.nodes {
            if !node.is_running() {
                node.run();
            }
        }
        wait_until_ready(&mut self.nodes);
        let first = self.random.below(3);
        let agents = std::mem::take(&mut self.agents);
        for (index, agent) in agents.iter().enumerate() {
            let client = self.nodes[(first + index) % 3].client();
            agent.assert_nothing_is_lost(&client);
            agent.assert_heard_by(&self.listener);
        }
        self.agents = agents;
    }

    /// Asserts that every question whose deadline has passed was decided once, with its default.
    fn check_deadlines(&self) {
        let client = self.nodes[0].client();
        for (session, token) in &self.unanswered {
            repeat(|| {
                assert_eq!(client.get(&reply_path(session, token)).json_str("decision"), "reject");
            });
            let announcements = announcements_of_default(session);
            assert_eq!(self.primary.sql(&announcements), "1", "{token}");
        }
        assert!(!self.unanswered.is_empty());
    }

    /// Asserts that the ledger has an accepted question before each tool call, which was used for this call only.
    fn check_calls(&self) {
        let counts = self.primary.sql(COUNT_CALLS);
        println!("calls, those without an earlier accepted question, used acceptances: {counts}");
        let counts: Vec<usize> = counts.split('|').map(|count| count.parse().unwrap()).collect();
        let [calls, unfounded, used] = counts[..] else { panic!("{counts:?}") };
        assert!(calls > 0, "too little was done for a meaningful test");
        assert_eq!((unfounded, used), (0, calls));
    }
}

/// Counts all tool calls, those without an accepted question that was asked and answered earlier and used for this call, and the
/// acceptances that were used.
const COUNT_CALLS: &str = "
WITH event AS (
    SELECT shard, session, position, at, convert_from(body, 'UTF8')::jsonb AS body FROM sayso.event),
calls AS (
    SELECT shard, session, position, at, body->'extensions'->'sayso'->>'action_digest' AS call FROM event
    WHERE body->>'type' = 'aaep:agent.tool.invoked'),
accepted AS (
    SELECT question.shard, question.session, asked.position, decided, spent, convert_from(question.call, 'UTF8') AS call
    FROM sayso.question JOIN event AS asked ON asked.shard = question.shard AND asked.session = question.session
    AND asked.body->>'type' = 'aaep:agent.awaiting.confirmation'
    AND asked.body->>'reply_token' = convert_from(question.token, 'UTF8')
    WHERE convert_from(decision, 'UTF8') = 'accept' AND convert_from(decided_by, 'UTF8') = 'reply')
SELECT (SELECT count(*) FROM calls),
    (SELECT count(*) FROM calls WHERE 1 <> (SELECT count(*) FROM accepted
        WHERE accepted.shard = calls.shard AND accepted.session = calls.session AND accepted.call = calls.call
        AND accepted.position < calls.position AND accepted.decided <= calls.at AND accepted.spent = calls.at)),
    (SELECT count(*) FROM sayso.question WHERE spent IS NOT NULL)";

/// Runs an action again if it fails, because on a busy machine, a node can lose its lease without a fault.
pub(super) fn repeat<T>(action: impl Fn() -> T) -> T {
    let mut failures = 0;
    loop {
        match catch_unwind(AssertUnwindSafe(&action)) {
            Ok(result) => return result,
            Err(failure) if failures == MAX_FAILURES => resume_unwind(failure),
            Err(_) => failures += 1,
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Returns SQL that counts how often the default decision of the session's question was announced.
pub(super) fn announcements_of_default(session: &str) -> String {
    format!(
        "SELECT count(*) FROM sayso.event
         JOIN sayso.session ON session.shard = event.shard AND session.number = event.session
         WHERE session.id = '{session}' AND convert_from(body, 'UTF8') LIKE '%Nobody answered in time.%'"
    )
}
