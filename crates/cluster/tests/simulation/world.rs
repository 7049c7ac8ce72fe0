//! The processes, the database, and the network between them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cluster::{Action, Answer, Input, LeaseToken, Query, QueryId, ShardId};
use testing::random::SplitMix64;

use super::database::{Database, Entry, JournalAnswer, JournalQuery};
use super::process::{Clock, Core, CoreStep, LEASE, Process};

/// How long a core waits for the answer to a query of its journal.
const JOURNAL_TIMEOUT: Duration = Duration::from_millis(1500);

/// The longest time that a message is on its way.
pub(super) const LONGEST_DELAY: Duration = Duration::from_secs(12);

pub(super) struct World {
    pub(super) random: SplitMix64,
    pub(super) now: Duration,
    pub(super) database: Database,
    pub(super) processes: Vec<Process>,
    /// The end of the time during which the database does not answer.
    database_down_until: Duration,
    /// Whether individual messages are lost or delayed.
    pub(super) is_network_faulty: bool,
    events: BTreeMap<(Duration, u64), Event>,
    last_event: u64,
    last_id: u64,
    /// The entries that a process has acknowledged.
    acknowledged: BTreeSet<(ShardId, u64)>,
    pub(super) violations: Vec<String>,
}

enum Event {
    /// The node's deadline may have passed.
    NodeTimeout {
        process: usize,
        run: u64,
    },
    NodeQuery {
        process: usize,
        run: u64,
        id: QueryId,
        query: Query,
    },
    NodeAnswer {
        process: usize,
        run: u64,
        id: QueryId,
        answer: Answer,
    },
    JournalQuery {
        core: CoreAddress,
        query: JournalQuery,
    },
    JournalAnswer {
        core: CoreAddress,
        answer: JournalAnswer,
    },
    JournalSilence {
        core: CoreAddress,
    },
    CoreActs {
        process: usize,
        run: u64,
        shard: ShardId,
        token: LeaseToken,
    },
    Restart {
        process: usize,
    },
}

/// The core that an answer from the journal goes to, and the query that it answers.
#[derive(Clone, Copy)]
struct CoreAddress {
    process: usize,
    run: u64,
    shard: ShardId,
    token: LeaseToken,
    query: u64,
}

impl World {
    pub(super) fn new(seed: u64, processes: usize, shards: u16) -> Self {
        let mut random = SplitMix64::new(seed);
        let clocks: Vec<_> = (0..processes).map(|_| Clock::new(&mut random)).collect();
        let mut world = Self {
            random,
            now: Duration::ZERO,
            database: Database::new(shards),
            processes: clocks
                .into_iter()
                .enumerate()
                .map(|(index, clock)| Process::new(index, 0, clock))
                .collect(),
            database_down_until: Duration::ZERO,
            is_network_faulty: false,
            events: BTreeMap::new(),
            last_event: 0,
            last_id: 0,
            acknowledged: BTreeSet::new(),
            violations: Vec::new(),
        };
        for process in 0..processes {
            world.schedule(Duration::ZERO, Event::NodeTimeout { process, run: 0 });
        }
        world
    }

    /// Runs everything that happens until this moment.
    pub(super) fn run_until(&mut self, end: Duration) {
        while let Some(entry) = self.events.first_entry() {
            let at = entry.key().0;
            if at > end {
                break;
            }
            let event = entry.remove();
            self.now = self.now.max(at);
            self.perform(event);
        }
        self.now = end;
    }

    pub(super) fn crash(&mut self, process: usize, restart_after: Duration) {
        self.processes[process].is_up = false;
        self.processes[process].cores.clear();
        self.schedule(restart_after, Event::Restart { process });
    }

    /// Stops the process as SIGSTOP does, and continues it later.
    pub(super) fn pause(&mut self, process: usize, duration: Duration) {
        self.processes[process].paused_until = Some(self.now + duration);
    }

    /// Loses the messages to the database, those from it, or both.
    pub(super) fn cut(&mut self, process: usize, requests: Duration, answers: Duration) {
        self.processes[process].cut = (self.now + requests, self.now + answers);
    }

    pub(super) fn stop_database(&mut self, duration: Duration) {
        self.database_down_until = self.now + duration;
    }

    pub(super) fn tell_node(&mut self, process: usize, input: Input) {
        if self.processes[process].is_up
            && self.processes[process].paused_until.is_none_or(|until| until <= self.now)
        {
            self.handle_input(process, input);
        }
    }

    /// Returns the processes that run each shard.
    pub(super) fn runners(&self, shard: ShardId) -> Vec<usize> {
        let runs =
            |process: &Process| process.is_up && process.cores.get(&shard).is_some_and(Core::is_running);
        (0..self.processes.len()).filter(|index| runs(&self.processes[*index])).collect()
    }

    fn schedule(&mut self, delay: Duration, event: Event) {
        self.last_event += 1;
        self.events.insert((self.now + delay, self.last_event), event);
    }

    fn delay(&mut self) -> Duration {
        let is_long = self.is_network_faulty && self.random.one_in(40);
        let max = if is_long { LONGEST_DELAY } else { Duration::from_millis(30) };
        Duration::from_micros(500 + self.random.next_u64() % u64::try_from(max.as_micros()).unwrap())
    }

    fn is_lost(&mut self) -> bool {
        self.is_network_faulty && self.random.one_in(50)
    }

    fn perform(&mut self, event: Event) {
        let (process, run) = match &event {
            Event::Restart { process } => {
                let process = *process;
                return self.restart(process);
            }
            // The database receives these, whatever became of the process.
            Event::NodeQuery { process, run, id, query } => {
                let (process, run, id) = (*process, *run, *id);
                return self.perform_query(process, run, id, query);
            }
            Event::JournalQuery { core, query } => return self.perform_journal_query(*core, query),
            Event::NodeTimeout { process, run }
            | Event::NodeAnswer { process, run, .. }
            | Event::CoreActs { process, run, .. } => (*process, *run),
            Event::JournalAnswer { core, .. } | Event::JournalSilence { core } => (core.process, core.run),
        };
        let target = &mut self.processes[process];
        if !target.is_up || target.run != run {
            return;
        }
        if let Some(until) = target.paused_until {
            if self.now < until {
                // The order of the messages is kept, because later events have higher numbers.
                let delay = until.saturating_sub(self.now);
                return self.schedule(delay, event);
            }
            target.paused_until = None;
        }
        match event {
            Event::NodeTimeout { .. } => self.handle_input(process, Input::Timeout),
            Event::NodeAnswer { id, answer, .. } => self.handle_input(process, Input::Answer(id, answer)),
            Event::CoreActs { shard, token, .. } => self.act(process, shard, token),
            Event::JournalAnswer { core, answer } => self.handle_journal(core, Some(answer)),
            Event::JournalSilence { core } => self.handle_journal(core, None),
            Event::NodeQuery { .. } | Event::JournalQuery { .. } | Event::Restart { .. } => {}
        }
    }

    fn restart(&mut self, index: usize) {
        let previous = &self.processes[index];
        if previous.is_up && !previous.has_left {
            return;
        }
        self.processes[index] = Process::new(index, previous.run + 1, previous.clock);
        let run = self.processes[index].run;
        self.schedule(Duration::ZERO, Event::NodeTimeout { process: index, run });
    }

    fn perform_query(&mut self, index: usize, run: u64, id: QueryId, query: &Query) {
        let process = &self.processes[index];
        let instance = super::process::instance(index, run);
        if self.now < self.database_down_until || self.now < process.cut.0 || self.is_lost() {
            return;
        }
        let name = self.processes[index].name.clone();
        let answer = self.database.perform(&name, instance, query, self.now);
        if self.now < self.processes[index].cut.1 || self.is_lost() {
            return;
        }
        let delay = self.delay();
        self.schedule(delay, Event::NodeAnswer { process: index, run, id, answer });
    }

    fn perform_journal_query(&mut self, core: CoreAddress, query: &JournalQuery) {
        if self.now < self.database_down_until
            || self.now < self.processes[core.process].cut.0
            || self.is_lost()
        {
            return;
        }
        let answer = self.database.perform_journal(core.shard, core.token, query, LEASE, self.now);
        self.violations.append(&mut self.database.violations);
        if self.now < self.processes[core.process].cut.1 || self.is_lost() {
            return;
        }
        let delay = self.delay();
        self.schedule(delay, Event::JournalAnswer { core, answer });
    }

    fn handle_input(&mut self, index: usize, input: Input) {
        let process = &mut self.processes[index];
        let now = process.clock.read(self.now);
        process.node.handle(input, now);
        let mut stopped = Vec::new();
        while let Some(action) = self.processes[index].node.next_action() {
            let run = self.processes[index].run;
            match action {
                Action::Query(id, query) => {
                    // A connection may break before or after the database has the query.
                    if self.is_network_faulty && self.random.one_in(40) {
                        let (delay, answer) = (self.delay(), Answer::Failed);
                        self.schedule(delay, Event::NodeAnswer { process: index, run, id, answer });
                    }
                    let delay = self.delay();
                    self.schedule(delay, Event::NodeQuery { process: index, run, id, query });
                }
                Action::Start { shard, token, epoch } => {
                    if self.processes[index].cores.insert(shard, Core::new(token, epoch)).is_some() {
                        self.violations.push(format!("shard {shard} runs twice on one node"));
                    }
                    self.send_journal_query(index, shard, JournalQuery::Load);
                    self.schedule_act(index, shard, token);
                }
                Action::Stop { shard, .. } => {
                    self.processes[index].cores.remove(&shard);
                    stopped.push(shard);
                }
                Action::Left => {
                    self.processes[index].is_up = false;
                    self.processes[index].has_left = true;
                    let restart_after = Duration::from_millis(self.random.next_u64() % 5_000);
                    self.schedule(restart_after, Event::Restart { process: index });
                }
                // A delayed heartbeat of an earlier process can keep the name in use. A supervisor starts the node again.
                Action::NameTaken => self.crash(index, Duration::ZERO),
                Action::Drained => {}
            }
        }
        for shard in stopped {
            self.handle_input(index, Input::Stopped(shard));
        }
        let process = &self.processes[index];
        if let Some(deadline) = process.node.next_deadline() {
            let delay = process.clock.when(deadline).saturating_sub(self.now).max(Duration::from_micros(1));
            let run = process.run;
            self.schedule(delay, Event::NodeTimeout { process: index, run });
        }
    }

    fn schedule_act(&mut self, process: usize, shard: ShardId, token: LeaseToken) {
        let run = self.processes[process].run;
        let pause = Duration::from_millis(200 + self.random.next_u64() % 1500);
        self.schedule(pause, Event::CoreActs { process, run, shard, token });
    }

    fn act(&mut self, index: usize, shard: ShardId, token: LeaseToken) {
        let process = &mut self.processes[index];
        let time_of_day = process.clock.time_of_day(self.now);
        let Some(core) = process.cores.get_mut(&shard).filter(|core| core.token == token) else { return };
        if let Some(query) = core.act(&mut self.random, &mut self.last_id, time_of_day) {
            self.send_journal_query(index, shard, query);
        }
        self.schedule_act(index, shard, token);
    }

    fn send_journal_query(&mut self, index: usize, shard: ShardId, query: JournalQuery) {
        let process = &mut self.processes[index];
        let Some(core) = process.cores.get_mut(&shard) else { return };
        core.query += 1;
        let address =
            CoreAddress { process: index, run: process.run, shard, token: core.token, query: core.query };
        let delay = self.delay();
        self.schedule(delay, Event::JournalQuery { core: address, query });
        self.schedule(JOURNAL_TIMEOUT, Event::JournalSilence { core: address });
    }

    fn handle_journal(&mut self, address: CoreAddress, answer: Option<JournalAnswer>) {
        let process = &mut self.processes[address.process];
        let Some(core) = process.cores.get_mut(&address.shard) else { return };
        if core.token != address.token || core.query != address.query {
            return;
        }
        let step = match answer {
            Some(answer) => core.handle(answer),
            None => core.handle_silence(),
        };
        // A late timeout of this query means nothing any more.
        core.query += 1;
        match step {
            CoreStep::Nothing => {}
            CoreStep::Acknowledge(entries) => self.acknowledge(address.shard, &entries),
            CoreStep::Send(query) => self.send_journal_query(address.process, address.shard, query),
            CoreStep::Refused => {
                self.handle_input(address.process, Input::CommitRefused(address.shard, address.token));
            }
        }
    }

    /// Acknowledges the entries to a client.
    fn acknowledge(&mut self, shard: ShardId, entries: &[Entry]) {
        let ledger = &self.database.shards[usize::from(shard.0)].ledger;
        for entry in entries {
            let (id, is_stored) = match *entry {
                Entry::Event { id } => (id, ledger.events.contains(&id)),
                Entry::Asked { question, .. } => {
                    let is_known =
                        ledger.open.contains_key(&question) || ledger.decided.contains_key(&question);
                    (question, is_known)
                }
                Entry::Decided { question, is_yes } => {
                    (question + 1_000_000_000, ledger.decided.get(&question) == Some(&is_yes))
                }
            };
            if !is_stored {
                self.violations.push(format!("shard {shard}: {entry:?} was acknowledged but is not stored"));
            }
            if !self.acknowledged.insert((shard, id)) {
                self.violations.push(format!("shard {shard}: {entry:?} was acknowledged twice"));
            }
        }
    }
}
