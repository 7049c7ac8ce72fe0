//! The state machine of one node.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::balance;
use crate::{Answer, InstanceId, LeaseToken, Query, QueryId, ShardEntry, ShardId, TableSnapshot};

/// Leases are renewed after at most this part of their time, and an answer is awaited as long.
const RENEWALS_PER_LEASE: u32 = 3;
/// A node looks at the table at least this often, so that it soon notices shards that were released.
const MAX_PAUSE: Duration = Duration::from_millis(500);
/// After a heartbeat without an answer, the next one follows after this part of the lease.
const RETRIES_PER_LEASE: u32 = 10;
/// A shard that stays free for this part of the lease is acquired even by nodes that have their fair share.
const PATIENCE_PER_LEASE: u32 = 2;
/// A node acquires nothing during this time after its start, or during a tenth of a short lease.
const SETTLING_TIME: Duration = Duration::from_millis(500);
/// A process that starts under a name that is still in use waits for this many leases, because the name may belong to an
/// earlier process that was killed.
const LEASES_TO_WAIT_FOR_NAME: u32 = 2;
/// Pause between two heartbeats, if the second one is early because a lease of another node ends.
const MIN_PAUSE: Duration = Duration::from_millis(20);

/// The identity of a node and the time of its leases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeConfig {
    /// The name of the node, which is unique in the cluster.
    pub name: String,
    /// A random number of this process.
    pub instance: InstanceId,
    /// How long another node must wait before it may acquire a shard of this node, if this node does not renew the lease.
    pub lease: Duration,
}

/// An input of [`Membership::handle`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Only time has passed.
    Timeout,
    /// The answer to a query, or that there will be none.
    Answer(QueryId, Answer),
    /// The database refused a commit of this acquisition, so another node owns the shard.
    CommitRefused(ShardId, LeaseToken),
    /// The shard no longer runs on this node: [`Action::Stop`] was performed, or the shard could not be started.
    Stopped(ShardId),
    /// A hint that the table has changed. Without it, the node notices a change with its next heartbeat.
    TableChanged,
    /// Asks the node to give all its shards away but stay in the cluster.
    Drain,
    /// Asks the node to give all its shards away and leave the cluster.
    Leave,
}

/// An output of [`Membership::next_action`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a query, and pass its answer to [`Membership::handle`].
    Query(QueryId, Query),
    /// Start the shard: open its journal under this epoch.
    Start {
        /// The shard.
        shard: ShardId,
        /// The token of the acquisition.
        token: LeaseToken,
        /// The epoch that every commit checks.
        epoch: i64,
    },
    /// Stop the shard, send nothing on its behalf after that, and report [`Input::Stopped`].
    Stop {
        /// The shard.
        shard: ShardId,
        /// The reason.
        reason: StopReason,
    },
    /// The node has released all its shards after [`Input::Drain`] or a request from an operator.
    Drained,
    /// The node has left the cluster after [`Input::Leave`].
    Left,
    /// A live process uses this node's name, so this node cannot join the cluster.
    NameTaken,
}

/// Why a shard stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The lease was not renewed in time. Another node may have acquired the shard.
    LeaseEnded,
    /// Another node has acquired the shard.
    Taken,
    /// The node gives the shard away.
    GivenAway,
}

/// The ownership of one shard, as this node knows it.
///
/// ```text
///  (none) ── Acquired ──> Owned ── given away ──> Stopping ── Stopped ──> Releasing ── Done ──> (none)
///                           └─ lease ended, taken ──> Lost ── Stopped ──> (none)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holding {
    Owned {
        token: LeaseToken,
        valid_until: Duration,
    },
    /// The caller stops the shard. The lease is renewed until then.
    Stopping {
        token: LeaseToken,
        valid_until: Duration,
    },
    /// The caller stops the shard, which this node no longer owns.
    Lost,
    Releasing {
        token: LeaseToken,
        valid_until: Duration,
        /// `None` if the last attempt failed; the next one follows with the next heartbeat.
        query: Option<QueryId>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    Draining,
    Drained,
    Leaving,
    /// The node was removed from the table, or never entered it.
    Gone,
}

#[derive(Clone, Copy, Debug)]
struct PendingQuery {
    id: QueryId,
    sent_at: Duration,
}

/// One node of a cluster. See the crate's documentation for how to drive it.
#[derive(Debug)]
pub struct Membership {
    config: NodeConfig,
    phase: Phase,
    holdings: BTreeMap<ShardId, Holding>,
    heartbeat: Option<PendingQuery>,
    heartbeat_at: Duration,
    /// The leases that the pending heartbeat renews.
    renewed: Vec<(ShardId, LeaseToken)>,
    acquisition: Option<(PendingQuery, LeaseToken)>,
    leaving: Option<QueryId>,
    table: TableSnapshot,
    /// When each free shard was first seen free.
    free_since: BTreeMap<ShardId, Duration>,
    /// Shards that this node gave away, with the time until which it leaves them to others.
    given_away: BTreeMap<ShardId, Duration>,
    /// When the first heartbeat was sent.
    started_at: Option<Duration>,
    /// The requests to rebalance that this node has followed. `None` before the first heartbeat.
    rebalanced: Option<i64>,
    last_query: u64,
    last_lease: u64,
    actions: VecDeque<Action>,
}

impl Membership {
    /// Creates a node that owns nothing. It sends its first heartbeat at the first [`Input::Timeout`].
    pub fn new(config: NodeConfig) -> Self {
        Self {
            config,
            phase: Phase::Running,
            holdings: BTreeMap::new(),
            heartbeat: None,
            heartbeat_at: Duration::ZERO,
            renewed: Vec::new(),
            acquisition: None,
            leaving: None,
            table: TableSnapshot::default(),
            free_since: BTreeMap::new(),
            given_away: BTreeMap::new(),
            started_at: None,
            rebalanced: None,
            last_query: 0,
            last_lease: 0,
            actions: VecDeque::new(),
        }
    }

    /// Returns the table as of the last answered heartbeat.
    pub fn table(&self) -> &TableSnapshot {
        &self.table
    }

    /// Returns the next action to perform.
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Returns when to call [`handle`](Self::handle) with [`Input::Timeout`]. `None` after the node has left.
    pub fn next_deadline(&self) -> Option<Duration> {
        if self.phase == Phase::Gone {
            return None;
        }
        let heartbeat =
            self.heartbeat.map_or(self.heartbeat_at, |pending| pending.sent_at + self.answer_timeout());
        let acquisition = self.acquisition.map(|(pending, _)| pending.sent_at + self.answer_timeout());
        let leases = self.holdings.values().filter_map(|holding| match holding {
            Holding::Owned { valid_until, .. }
            | Holding::Stopping { valid_until, .. }
            | Holding::Releasing { valid_until, .. } => Some(*valid_until),
            Holding::Lost => None,
        });
        leases.chain(acquisition).chain([heartbeat]).min()
    }

    /// Handles an input at this time.
    pub fn handle(&mut self, input: Input, now: Duration) {
        if self.phase == Phase::Gone {
            return;
        }
        // A process that was paused learns first that its leases have ended.
        self.end_leases(now);
        match input {
            Input::Timeout => {}
            Input::Answer(id, answer) => self.handle_answer(id, answer, now),
            Input::CommitRefused(shard, token) => {
                if self.token(shard) == Some(token) {
                    self.lose(shard, StopReason::Taken);
                }
            }
            Input::Stopped(shard) => self.handle_stopped(shard, now),
            Input::TableChanged => self.heartbeat_at = self.heartbeat_at.min(now),
            Input::Drain => self.start_draining(Phase::Draining),
            Input::Leave => self.start_draining(Phase::Leaving),
        }
        self.expire_queries(now);
        if self.heartbeat.is_none() && now >= self.heartbeat_at && self.phase != Phase::Gone {
            self.send_heartbeat(now);
        }
        self.finish_draining();
    }

    fn handle_answer(&mut self, id: QueryId, answer: Answer, now: Duration) {
        if let Some(pending) = self.heartbeat.take_if(|pending| pending.id == id) {
            return self.handle_heartbeat(pending, answer, now);
        }
        if let Some((pending, token)) = self.acquisition.take_if(|(pending, _)| pending.id == id) {
            match answer {
                Answer::Acquired(shards) => self.handle_acquired(&shards, token, pending, now),
                // The next heartbeat shows what was acquired.
                _ => self.heartbeat_at = self.heartbeat_at.min(now + self.config.lease / RETRIES_PER_LEASE),
            }
            return;
        }
        if self.leaving == Some(id) {
            self.phase = Phase::Gone;
            self.actions.push_back(Action::Left);
            return;
        }
        let releasing = self.holdings.iter_mut().find(
            |(_, holding)| matches!(holding, Holding::Releasing { query: Some(query), .. } if *query == id),
        );
        match (releasing, answer) {
            (Some((_, Holding::Releasing { query, .. })), Answer::Failed) => *query = None,
            (Some((shard, _)), _) => {
                let shard = *shard;
                self.holdings.remove(&shard);
            }
            (None, _) => {}
        }
    }

    fn handle_heartbeat(&mut self, pending: PendingQuery, answer: Answer, now: Duration) {
        let sent = std::mem::take(&mut self.renewed);
        let (renewed, table) = match answer {
            Answer::Heartbeat { renewed, table } => (renewed, table),
            // The process that used the name before may have been killed.
            Answer::NameTaken
                if self.rebalanced.is_none()
                    && self.started_at.is_some_and(|started_at| {
                        now < started_at + self.config.lease * LEASES_TO_WAIT_FOR_NAME
                    }) =>
            {
                self.heartbeat_at = now + self.config.lease / RETRIES_PER_LEASE;
                return;
            }
            Answer::NameTaken => {
                for shard in self.holdings.keys().copied().collect::<Vec<_>>() {
                    self.lose(shard, StopReason::Taken);
                }
                self.phase = Phase::Gone;
                self.actions.push_back(Action::NameTaken);
                return;
            }
            _ => {
                self.heartbeat_at = now + self.config.lease / RETRIES_PER_LEASE;
                return;
            }
        };
        for (shard, token) in sent {
            if self.token(shard) != Some(token) {
                continue;
            }
            // The database renewed the lease after the query was sent.
            let end = pending.sent_at + self.config.lease;
            match self.holdings.get_mut(&shard) {
                Some(Holding::Owned { valid_until, .. } | Holding::Stopping { valid_until, .. })
                    if renewed.contains(&shard) =>
                {
                    *valid_until = (*valid_until).max(end);
                }
                _ => self.lose(shard, StopReason::Taken),
            }
        }
        self.heartbeat_at = pending.sent_at + self.pause();
        // As soon as a lease of another node ends, its shards are free.
        let ends =
            table.shards.iter().filter(|entry| !entry.is_free() && !self.holdings.contains_key(&entry.shard));
        if let Some(first) = ends.map(|entry| entry.remaining).min() {
            let early = (pending.sent_at + first).max(now) + MIN_PAUSE;
            self.heartbeat_at = self.heartbeat_at.min(early);
        }
        self.table = table;
        self.observe_free_shards(now);
        if self.is_asked_to_drain() {
            self.start_draining(Phase::Draining);
        }
        self.retry_releases(now);
        self.rebalance();
        self.acquire_shards(now);
        // An answer that took long must not delay the next renewal.
        self.heartbeat_at = self.heartbeat_at.max(now);
    }

    fn handle_acquired(
        &mut self,
        shards: &[(ShardId, i64)],
        token: LeaseToken,
        pending: PendingQuery,
        now: Duration,
    ) {
        let valid_until = pending.sent_at + self.config.lease;
        for (shard, epoch) in shards {
            self.free_since.remove(shard);
            if self.holdings.contains_key(shard) {
                continue;
            }
            if now >= valid_until {
                // The lease ended while the answer was on its way. The next heartbeat acquires the shard again.
                continue;
            }
            self.holdings.insert(*shard, Holding::Owned { token, valid_until });
            self.actions.push_back(Action::Start { shard: *shard, token, epoch: *epoch });
            if self.phase != Phase::Running {
                self.give_away(*shard);
            }
        }
        // Another node was faster with the rest, so the table is out of date.
        self.heartbeat_at = self.heartbeat_at.min(now + MIN_PAUSE);
    }

    fn handle_stopped(&mut self, shard: ShardId, now: Duration) {
        match self.holdings.get(&shard) {
            Some(Holding::Owned { token, valid_until } | Holding::Stopping { token, valid_until }) => {
                let (token, valid_until) = (*token, *valid_until);
                self.release(shard, token, valid_until, now);
            }
            Some(Holding::Lost) => {
                self.holdings.remove(&shard);
            }
            Some(Holding::Releasing { .. }) | None => {}
        }
    }

    fn release(&mut self, shard: ShardId, token: LeaseToken, valid_until: Duration, now: Duration) {
        self.given_away.insert(shard, now + self.config.lease);
        let query = (now < valid_until).then(|| self.send(Query::Release { shard, token }));
        self.holdings.insert(shard, Holding::Releasing { token, valid_until, query });
    }

    fn retry_releases(&mut self, now: Duration) {
        let failed: Vec<_> = self
            .holdings
            .iter()
            .filter_map(|(shard, holding)| match holding {
                Holding::Releasing { token, valid_until, query: None } => {
                    Some((*shard, *token, *valid_until))
                }
                _ => None,
            })
            .collect();
        for (shard, token, valid_until) in failed {
            self.release(shard, token, valid_until, now);
        }
    }

    /// Ends the leases that were not renewed in time, and gives up releasing what has ended by itself.
    fn end_leases(&mut self, now: Duration) {
        let ended: Vec<_> = self
            .holdings
            .iter()
            .filter_map(|(shard, holding)| match holding {
                Holding::Owned { valid_until, .. }
                | Holding::Stopping { valid_until, .. }
                | Holding::Releasing { valid_until, .. } => (now >= *valid_until).then_some(*shard),
                Holding::Lost => None,
            })
            .collect();
        for shard in ended {
            self.lose(shard, StopReason::LeaseEnded);
        }
    }

    /// Notes that this node no longer owns the shard.
    fn lose(&mut self, shard: ShardId, reason: StopReason) {
        match self.holdings.get_mut(&shard) {
            Some(holding @ Holding::Owned { .. }) => {
                *holding = Holding::Lost;
                self.actions.push_back(Action::Stop { shard, reason });
            }
            // The caller was asked to stop it before.
            Some(holding @ Holding::Stopping { .. }) => *holding = Holding::Lost,
            Some(Holding::Releasing { .. }) => {
                self.holdings.remove(&shard);
            }
            Some(Holding::Lost) | None => {}
        }
    }

    fn give_away(&mut self, shard: ShardId) {
        if let Some(holding) = self.holdings.get_mut(&shard)
            && let Holding::Owned { token, valid_until } = *holding
        {
            *holding = Holding::Stopping { token, valid_until };
            self.actions.push_back(Action::Stop { shard, reason: StopReason::GivenAway });
        }
    }

    fn owned(&self) -> Vec<ShardId> {
        let is_owned = |holding: &Holding| matches!(holding, Holding::Owned { .. });
        self.holdings.iter().filter(|(_, holding)| is_owned(holding)).map(|(shard, _)| *shard).collect()
    }

    fn token(&self, shard: ShardId) -> Option<LeaseToken> {
        match self.holdings.get(&shard)? {
            Holding::Owned { token, .. }
            | Holding::Stopping { token, .. }
            | Holding::Releasing { token, .. } => Some(*token),
            Holding::Lost => None,
        }
    }

    fn observe_free_shards(&mut self, now: Duration) {
        let free: Vec<_> =
            self.table.shards.iter().filter(|entry| entry.is_free()).map(|entry| entry.shard).collect();
        self.free_since.retain(|shard, _| free.contains(shard));
        self.given_away.retain(|_, until| now < *until);
        for shard in free {
            self.free_since.entry(shard).or_insert(now);
        }
    }

    /// Acquires free shards up to the fair share, and further ones that no other node has acquired for some time.
    fn acquire_shards(&mut self, now: Duration) {
        if self.phase != Phase::Running || self.acquisition.is_some() {
            return;
        }
        // Nodes that start together must know each other before they share the shards.
        let settling_time = SETTLING_TIME.min(self.config.lease / RETRIES_PER_LEASE);
        let settled_at = self.started_at.unwrap_or(now) + settling_time;
        if now < settled_at {
            self.heartbeat_at = self.heartbeat_at.min(settled_at);
            return;
        }
        let instance = self.config.instance;
        let can_acquire = |entry: &&ShardEntry| {
            let token = entry.owner.as_ref().and_then(|owner| owner.token);
            // An earlier acquisition whose answer was lost is repeated.
            let is_own = token.is_some_and(|token| token.instance == instance);
            let is_left_to_others =
                self.holdings.contains_key(&entry.shard) || self.given_away.contains_key(&entry.shard);
            (entry.is_free() || is_own) && !is_left_to_others
        };
        let mut candidates: Vec<_> = self.table.shards.iter().filter(can_acquire).collect();
        let name = &self.config.name;
        candidates.sort_by_key(|entry| {
            let is_preferred = balance::is_preferred(&self.table, name, entry.shard);
            (!is_preferred, std::cmp::Reverse(balance::preference(name, entry.shard)))
        });
        let patience = self.config.lease / PATIENCE_PER_LEASE;
        let mut room = balance::fair_share(&self.table, name).saturating_sub(self.owned().len());
        let mut chosen = Vec::new();
        for entry in candidates {
            let free_since = self.free_since.get(&entry.shard).copied().unwrap_or(now);
            if room > 0 {
                room -= 1;
            } else if now < free_since + patience {
                continue;
            }
            chosen.push((entry.shard, entry.epoch));
        }
        if chosen.is_empty() {
            if let Some(first) = self.free_since.values().map(|since| *since + patience).min() {
                self.heartbeat_at = self.heartbeat_at.min(first.max(now + MIN_PAUSE));
            }
            return;
        }
        self.last_lease += 1;
        let token = LeaseToken { instance, number: self.last_lease };
        let id = self.send(Query::Acquire { shards: chosen, token, lease: self.config.lease });
        self.acquisition = Some((PendingQuery { id, sent_at: now }, token));
    }

    /// Gives shards away if an operator has asked for an even distribution.
    fn rebalance(&mut self) {
        let requests = self.table.rebalance_requests;
        let previous = self.rebalanced.replace(requests);
        if previous.is_none_or(|previous| previous >= requests) {
            return;
        }
        let mut owned = self.owned();
        let excess = owned.len().saturating_sub(balance::fair_share(&self.table, &self.config.name));
        owned.sort_by_key(|shard| {
            let is_preferred = balance::is_preferred(&self.table, &self.config.name, *shard);
            (is_preferred, balance::preference(&self.config.name, *shard))
        });
        for shard in owned.into_iter().take(excess) {
            self.give_away(shard);
        }
    }

    fn is_asked_to_drain(&self) -> bool {
        let own = self.table.nodes.iter().find(|node| node.instance == self.config.instance);
        own.is_some_and(|node| node.drain_requested)
    }

    fn start_draining(&mut self, phase: Phase) {
        if !matches!(
            (self.phase, phase),
            (Phase::Running, _) | (Phase::Draining | Phase::Drained, Phase::Leaving)
        ) {
            return;
        }
        self.phase = phase;
        // The other nodes stop counting on this one at once.
        self.heartbeat_at = Duration::ZERO;
        for shard in self.owned() {
            self.give_away(shard);
        }
    }

    /// Reports that nothing is left to release, and leaves if that was asked for.
    fn finish_draining(&mut self) {
        if !self.holdings.is_empty() || self.acquisition.is_some() {
            return;
        }
        match self.phase {
            Phase::Draining => {
                self.phase = Phase::Drained;
                self.actions.push_back(Action::Drained);
            }
            Phase::Leaving if self.leaving.is_none() => self.leaving = Some(self.send(Query::Leave)),
            _ => {}
        }
    }

    fn expire_queries(&mut self, now: Duration) {
        let limit = self.answer_timeout();
        if self.heartbeat.take_if(|pending| now >= pending.sent_at + limit).is_some() {
            self.renewed.clear();
            self.heartbeat_at = now;
        }
        self.acquisition.take_if(|(pending, _)| now >= pending.sent_at + limit);
    }

    /// The time between two heartbeats.
    fn pause(&self) -> Duration {
        (self.config.lease / RENEWALS_PER_LEASE).min(MAX_PAUSE)
    }

    /// How long a node waits for an answer before it asks again.
    fn answer_timeout(&self) -> Duration {
        self.config.lease / RENEWALS_PER_LEASE
    }

    fn send_heartbeat(&mut self, now: Duration) {
        self.started_at.get_or_insert(now);
        // A node that leaves must not enter the table again.
        if self.leaving.is_some() {
            self.heartbeat_at = now + self.config.lease;
            return;
        }
        let renewable = |(shard, holding): (&ShardId, &Holding)| match holding {
            Holding::Owned { token, .. } | Holding::Stopping { token, .. } => Some((*shard, *token)),
            Holding::Lost | Holding::Releasing { .. } => None,
        };
        self.renewed = self.holdings.iter().filter_map(renewable).collect();
        let query = Query::Heartbeat {
            renew: self.renewed.clone(),
            is_draining: self.phase != Phase::Running,
            lease: self.config.lease,
        };
        let id = self.send(query);
        self.heartbeat = Some(PendingQuery { id, sent_at: now });
        self.heartbeat_at = now + self.pause();
    }

    fn send(&mut self, query: Query) -> QueryId {
        self.last_query += 1;
        let id = QueryId(self.last_query);
        self.actions.push_back(Action::Query(id, query));
        id
    }
}
