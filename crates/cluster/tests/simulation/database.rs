//! The shared database: the table of nodes and shards, and the ledger of each shard.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cluster::{Answer, LeaseToken, NodeEntry, Query, ShardEntry, ShardId, ShardOwner, TableSnapshot};

/// A database that performs one transaction at a time. Its clock is the simulation's, plus an offset.
pub(super) struct Database {
    /// Whether commits check the epoch. Switched off only to show that the simulation notices it.
    pub(super) is_fenced: bool,
    pub(super) shards: Vec<ShardRow>,
    nodes: BTreeMap<String, NodeRow>,
    rebalance_requests: i64,
    /// Violations of what must always hold.
    pub(super) violations: Vec<String>,
}

#[derive(Clone, Default)]
pub(super) struct ShardRow {
    epoch: i64,
    owner: Option<(String, LeaseToken)>,
    lease_until: Duration,
    pub(super) commit_number: u64,
    pub(super) ledger: Ledger,
    /// The acquisition whose commits were accepted under each epoch.
    writers: BTreeMap<i64, LeaseToken>,
}

/// Everything that the commits of a shard have stored.
#[derive(Clone, Default)]
pub(super) struct Ledger {
    pub(super) events: BTreeSet<u64>,
    /// Undecided questions with their deadlines.
    pub(super) open: BTreeMap<u64, Duration>,
    pub(super) decided: BTreeMap<u64, bool>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Entry {
    Event { id: u64 },
    Asked { question: u64, deadline: Duration },
    Decided { question: u64, is_yes: bool },
}

struct NodeRow {
    instance: cluster::InstanceId,
    until: Duration,
    is_draining: bool,
    drain_requested: bool,
}

/// A query of a shard's journal.
#[derive(Clone, Debug)]
pub(super) enum JournalQuery {
    /// Reads the ledger.
    Load,
    /// Writes entries, if the epoch is still this one.
    Commit { epoch: i64, number: u64, entries: Vec<Entry> },
    /// Raises the epoch, if the acquisition is still this one, to find out the outcome of an earlier commit.
    Confirm,
}

#[derive(Clone)]
pub(super) enum JournalAnswer {
    Loaded { commit_number: u64, ledger: Ledger },
    Stored,
    Refused,
    Confirmed { epoch: i64, commit_number: u64 },
}

impl Database {
    pub(super) fn new(shards: u16) -> Self {
        Self {
            is_fenced: true,
            shards: vec![ShardRow::default(); usize::from(shards)],
            nodes: BTreeMap::new(),
            rebalance_requests: 0,
            violations: Vec::new(),
        }
    }

    pub(super) fn request_rebalance(&mut self) {
        self.rebalance_requests += 1;
    }

    pub(super) fn request_drain(&mut self, node: &str) {
        if let Some(row) = self.nodes.get_mut(node) {
            row.drain_requested = true;
        }
    }

    pub(super) fn owner(&self, shard: usize, now: Duration) -> Option<&str> {
        let row = &self.shards[shard];
        row.owner.as_ref().filter(|_| now < row.lease_until).map(|(name, _)| name.as_str())
    }

    pub(super) fn perform(
        &mut self,
        name: &str,
        instance: cluster::InstanceId,
        query: &Query,
        now: Duration,
    ) -> Answer {
        match query {
            Query::Heartbeat { renew, is_draining, lease } => {
                let row = self.nodes.get(name);
                if row.is_some_and(|row| row.instance != instance && now < row.until) {
                    return Answer::NameTaken;
                }
                let drain_requested = row.is_some_and(|row| row.instance == instance && row.drain_requested);
                let row =
                    NodeRow { instance, until: now + *lease, is_draining: *is_draining, drain_requested };
                self.nodes.insert(name.to_owned(), row);
                let mut renewed = Vec::new();
                for (shard, token) in renew {
                    let row = &mut self.shards[usize::from(shard.0)];
                    if row.owner.as_ref().is_some_and(|(_, owner)| owner == token) {
                        row.lease_until = now + *lease;
                        renewed.push(*shard);
                    }
                }
                Answer::Heartbeat { renewed, table: self.table(now) }
            }
            Query::Acquire { shards, token, lease } => {
                let mut acquired = Vec::new();
                for (shard, expected_epoch) in shards {
                    let row = &mut self.shards[usize::from(shard.0)];
                    let is_own = row.owner.as_ref().is_some_and(|(_, owner)| owner.instance == instance);
                    let is_free = row.owner.is_none() || now >= row.lease_until;
                    if row.epoch == *expected_epoch && (is_free || is_own) {
                        row.epoch += 1;
                        row.owner = Some((name.to_owned(), *token));
                        row.lease_until = now + *lease;
                        acquired.push((*shard, row.epoch));
                    }
                }
                Answer::Acquired(acquired)
            }
            Query::Release { shard, token } => {
                let row = &mut self.shards[usize::from(shard.0)];
                if row.owner.as_ref().is_some_and(|(_, owner)| owner == token) {
                    row.epoch += 1;
                    row.owner = None;
                }
                Answer::Done
            }
            Query::Leave => {
                self.nodes.retain(|_, row| row.instance != instance);
                Answer::Done
            }
        }
    }

    fn table(&self, now: Duration) -> TableSnapshot {
        let nodes = self.nodes.iter().map(|(name, row)| NodeEntry {
            name: name.clone(),
            instance: row.instance,
            address: name.clone(),
            remaining: row.until.saturating_sub(now),
            is_draining: row.is_draining,
            drain_requested: row.drain_requested,
        });
        let shards = self.shards.iter().enumerate().map(|(number, row)| ShardEntry {
            shard: ShardId(u16::try_from(number).unwrap()),
            epoch: row.epoch,
            owner: row.owner.clone().map(|(name, token)| ShardOwner {
                address: name.clone(),
                name,
                token: Some(token),
            }),
            remaining: row.owner.as_ref().map_or(Duration::ZERO, |_| row.lease_until.saturating_sub(now)),
        });
        TableSnapshot {
            nodes: nodes.collect(),
            shards: shards.collect(),
            rebalance_requests: self.rebalance_requests,
        }
    }

    pub(super) fn perform_journal(
        &mut self,
        shard: ShardId,
        token: LeaseToken,
        query: &JournalQuery,
        lease: Duration,
        now: Duration,
    ) -> JournalAnswer {
        let row = &mut self.shards[usize::from(shard.0)];
        match query {
            JournalQuery::Load => {
                JournalAnswer::Loaded { commit_number: row.commit_number, ledger: row.ledger.clone() }
            }
            JournalQuery::Confirm => {
                if row.owner.as_ref().is_none_or(|(_, owner)| *owner != token) {
                    return JournalAnswer::Refused;
                }
                row.epoch += 1;
                row.lease_until = now + lease;
                JournalAnswer::Confirmed { epoch: row.epoch, commit_number: row.commit_number }
            }
            JournalQuery::Commit { epoch, number, entries } => {
                if row.epoch != *epoch && self.is_fenced {
                    return JournalAnswer::Refused;
                }
                let mut violations = Vec::new();
                if *row.writers.entry(*epoch).or_insert(token) != token {
                    violations.push(format!("shard {shard}: two owners wrote under epoch {epoch}"));
                }
                if *number != row.commit_number + 1 {
                    violations.push(format!("shard {shard}: commit {number} after {}", row.commit_number));
                }
                row.commit_number = *number;
                for entry in entries {
                    row.ledger.apply(*entry).unwrap_or_else(|problem| {
                        violations.push(format!("shard {shard}, {entry:?}: {problem}"));
                    });
                }
                self.violations.append(&mut violations);
                JournalAnswer::Stored
            }
        }
    }
}

impl Ledger {
    pub(super) fn apply(&mut self, entry: Entry) -> Result<(), &'static str> {
        match entry {
            Entry::Event { id } if !self.events.insert(id) => Err("stored twice"),
            Entry::Asked { question, deadline } => {
                self.open.insert(question, deadline).map_or(Ok(()), |_| Err("asked twice"))
            }
            Entry::Decided { question, is_yes } => {
                let was_open = self.open.remove(&question).is_some();
                let was_decided = self.decided.insert(question, is_yes).is_some();
                if was_open && !was_decided { Ok(()) } else { Err("decided twice") }
            }
            Entry::Event { .. } => Ok(()),
        }
    }
}
