//! One process: the node's state machine, and a core for each shard that it runs.

use std::collections::BTreeMap;
use std::time::Duration;

use cluster::{InstanceId, LeaseToken, Membership, NodeConfig, ShardId};
use testing::random::SplitMix64;

use super::database::{Entry, JournalAnswer, JournalQuery, Ledger};

pub(super) const LEASE: Duration = Duration::from_secs(5);

pub(super) struct Process {
    pub(super) name: String,
    /// Counts the starts, so that messages to an earlier process are recognized.
    pub(super) run: u64,
    pub(super) node: Membership,
    pub(super) clock: Clock,
    pub(super) cores: BTreeMap<ShardId, Core>,
    pub(super) is_up: bool,
    pub(super) has_left: bool,
    /// While it is paused, messages wait.
    pub(super) paused_until: Option<Duration>,
    /// The end of the time during which its messages to and from the database are lost.
    pub(super) cut: (Duration, Duration),
}

/// A clock with an offset that runs a little too fast or too slow.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    offset: Duration,
    per_mille: u32,
    /// How far its time of day is from the others'.
    skew: Duration,
}

impl Clock {
    pub(super) fn new(random: &mut SplitMix64) -> Self {
        Self {
            offset: Duration::from_millis(random.next_u64() % 1_000_000),
            per_mille: 980 + u32::try_from(random.below(41)).unwrap(),
            skew: Duration::from_millis(random.next_u64() % 300),
        }
    }

    pub(super) fn read(&self, now: Duration) -> Duration {
        self.offset + now * self.per_mille / 1000
    }

    /// Returns the moment at which the clock shows this time, or one just after.
    pub(super) fn when(&self, local: Duration) -> Duration {
        local.saturating_sub(self.offset) * 1000 / self.per_mille + Duration::from_micros(1)
    }

    pub(super) fn time_of_day(&self, now: Duration) -> Duration {
        now + self.skew
    }
}

/// The core of one shard: it commits, and reports the outcome only when it is certain.
pub(super) struct Core {
    pub(super) token: LeaseToken,
    epoch: i64,
    commit_number: u64,
    ledger: Ledger,
    state: CoreState,
    /// Identifies the query whose answer is awaited.
    pub(super) query: u64,
}

enum CoreState {
    Loading,
    Idle,
    Committing(Vec<Entry>),
    /// The outcome of the commit is unknown.
    Confirming(Vec<Entry>),
}

/// The next step of a core after an answer.
pub(super) enum CoreStep {
    Nothing,
    /// The entries are stored, so clients get an acknowledgement and listeners the events.
    Acknowledge(Vec<Entry>),
    Send(JournalQuery),
    /// Another node owns the shard.
    Refused,
}

impl Process {
    pub(super) fn new(index: usize, run: u64, clock: Clock) -> Self {
        let name = format!("node-{index}");
        let instance = instance(index, run);
        let node = Membership::new(NodeConfig { name: name.clone(), instance, lease: LEASE });
        Self {
            name,
            run,
            node,
            clock,
            cores: BTreeMap::new(),
            is_up: true,
            has_left: false,
            paused_until: None,
            cut: (Duration::ZERO, Duration::ZERO),
        }
    }
}

/// Returns the instance of a process that was started for the `run`th time.
pub(super) fn instance(index: usize, run: u64) -> InstanceId {
    InstanceId((u64::try_from(index).unwrap() * 1_000_000 + run).to_be_bytes())
}

impl Core {
    pub(super) fn new(token: LeaseToken, epoch: i64) -> Self {
        Self {
            token,
            epoch,
            commit_number: 0,
            ledger: Ledger::default(),
            state: CoreState::Loading,
            query: 0,
        }
    }

    pub(super) fn is_running(&self) -> bool {
        !matches!(self.state, CoreState::Loading)
    }

    /// Starts a commit of something random, if no other one is under way: an event, a question, an answer, or decisions on
    /// questions whose deadlines have passed.
    pub(super) fn act(
        &mut self,
        random: &mut SplitMix64,
        next_id: &mut u64,
        time_of_day: Duration,
    ) -> Option<JournalQuery> {
        if !matches!(self.state, CoreState::Idle) {
            return None;
        }
        let mut entries: Vec<_> = self
            .ledger
            .open
            .iter()
            .filter(|(_, deadline)| time_of_day >= **deadline)
            .map(|(question, _)| Entry::Decided { question: *question, is_yes: false })
            .collect();
        if entries.is_empty() {
            *next_id += 1;
            let answered = self.ledger.open.keys().next().copied().filter(|_| random.one_in(3));
            entries.push(match answered {
                Some(question) => Entry::Decided { question, is_yes: true },
                None if random.one_in(3) => {
                    let wait = Duration::from_millis(random.next_u64() % 20_000);
                    Entry::Asked { question: *next_id, deadline: time_of_day + wait }
                }
                None => Entry::Event { id: *next_id },
            });
        }
        self.state = CoreState::Committing(entries.clone());
        Some(self.commit(entries))
    }

    fn commit(&self, entries: Vec<Entry>) -> JournalQuery {
        JournalQuery::Commit { epoch: self.epoch, number: self.commit_number + 1, entries }
    }

    pub(super) fn handle(&mut self, answer: JournalAnswer) -> CoreStep {
        let state = std::mem::replace(&mut self.state, CoreState::Idle);
        match (state, answer) {
            (_, JournalAnswer::Refused) => CoreStep::Refused,
            (CoreState::Loading, JournalAnswer::Loaded { commit_number, ledger }) => {
                self.commit_number = commit_number;
                self.ledger = ledger;
                CoreStep::Nothing
            }
            (CoreState::Committing(entries), JournalAnswer::Stored) => self.stored(entries),
            (CoreState::Confirming(entries), JournalAnswer::Confirmed { epoch, commit_number }) => {
                self.epoch = epoch;
                if commit_number == self.commit_number + 1 {
                    return self.stored(entries);
                }
                let query = self.commit(entries.clone());
                self.state = CoreState::Committing(entries);
                CoreStep::Send(query)
            }
            (state, _) => {
                self.state = state;
                CoreStep::Nothing
            }
        }
    }

    /// Handles that there is no answer: loads again, or finds out whether the commit is stored.
    pub(super) fn handle_silence(&mut self) -> CoreStep {
        match std::mem::replace(&mut self.state, CoreState::Loading) {
            CoreState::Loading => CoreStep::Send(JournalQuery::Load),
            CoreState::Idle => {
                self.state = CoreState::Idle;
                CoreStep::Nothing
            }
            CoreState::Committing(entries) | CoreState::Confirming(entries) => {
                self.state = CoreState::Confirming(entries);
                CoreStep::Send(JournalQuery::Confirm)
            }
        }
    }

    fn stored(&mut self, entries: Vec<Entry>) -> CoreStep {
        self.commit_number += 1;
        for entry in &entries {
            self.ledger.apply(*entry).unwrap();
        }
        CoreStep::Acknowledge(entries)
    }
}
