//! One node's membership: drives the state machine with the clock and the database.

use std::collections::HashMap;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use cluster::{
    Action, Input, InstanceId, LeaseToken, Membership, NodeConfig, ShardId, StopReason, TableSnapshot,
};
use seal::{Random, SystemRandom};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::time::Instant;

use super::super::database::PostgresDatabase;
use super::super::lease::ShardLease;
use super::table::{ClusterNode, ClusterTable};

/// A query times out after this fraction of the lease: lease / 3.
const QUERIES_PER_LEASE: u32 = 3;

/// A node of a cluster. Dropping it lets its leases expire.
#[derive(Debug)]
pub struct ClusterMember {
    inputs: UnboundedSender<Input>,
    events: UnboundedReceiver<ClusterEvent>,
    table: watch::Receiver<TableSnapshot>,
}

/// An instruction or a notification for a node.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClusterEvent {
    /// Open the shard's journal with [`PostgresJournal::open_acquired`](crate::PostgresJournal::open_acquired), and start it.
    Start(ShardLease),
    /// Stop the shard and call [`ClusterMember::report_stopped`]. The journal can no longer be written, except with
    /// [`StopReason::GivenAway`], where it stays writable until the shard has stopped.
    Stop(i32, StopReason),
    /// The node has given all its shards away.
    Drained,
    /// The node has left the cluster.
    Left,
    /// A live process uses the node's name.
    NameTaken,
}

impl ClusterMember {
    /// Joins the cluster. Takes ownership of `table`, because each member needs a connection of its own.
    pub fn join(
        database: &PostgresDatabase,
        table: ClusterTable,
        node: ClusterNode,
        lease: Duration,
    ) -> Self {
        let mut instance = [0; 8];
        SystemRandom.fill(&mut instance);
        let instance = InstanceId(instance);
        let (inputs, input_receiver) = unbounded_channel();
        let (event_sender, events) = unbounded_channel();
        let (table_sender, table_receiver) = watch::channel(TableSnapshot::default());
        let state = Membership::new(NodeConfig { name: node.name.clone(), instance, lease });
        let driver = Driver {
            database: database.clone(),
            table: Arc::new(table),
            node: Arc::new(node),
            instance,
            lease,
            state,
            inputs: inputs.downgrade(),
            events: event_sender,
            snapshots: table_sender,
            leases: HashMap::new(),
        };
        database.runtime().spawn(driver.run(input_receiver));
        Self { inputs, events, table: table_receiver }
    }

    /// Waits for the next event. Returns `None` after the node has left. Cancel-safe.
    pub async fn next_event(&mut self) -> Option<ClusterEvent> {
        self.events.recv().await
    }

    /// Reports that the shard has stopped on this node.
    pub fn report_stopped(&self, shard: i32) {
        if let Ok(shard) = u16::try_from(shard) {
            let _ = self.inputs.send(Input::Stopped(ShardId(shard)));
        }
    }

    /// Gives all shards away and acquires no more. [`ClusterEvent::Drained`] follows.
    pub fn drain(&self) {
        let _ = self.inputs.send(Input::Drain);
    }

    /// Gives all shards away and leaves the cluster. [`ClusterEvent::Left`] follows.
    pub fn leave(&self) {
        let _ = self.inputs.send(Input::Leave);
    }

    /// Returns the nodes and shards as of the last heartbeat.
    pub fn table(&self) -> watch::Receiver<TableSnapshot> {
        self.table.clone()
    }
}

struct Driver {
    database: PostgresDatabase,
    table: Arc<ClusterTable>,
    node: Arc<ClusterNode>,
    instance: InstanceId,
    lease: Duration,
    state: Membership,
    /// Weak, so that the driver ends when the member is dropped.
    inputs: tokio::sync::mpsc::WeakUnboundedSender<Input>,
    events: UnboundedSender<ClusterEvent>,
    snapshots: watch::Sender<TableSnapshot>,
    /// The leases of the shards that run on this node.
    leases: HashMap<ShardId, ShardLease>,
}

impl Driver {
    async fn run(mut self, mut inputs: UnboundedReceiver<Input>) {
        let started_at = Instant::now();
        let (answer_sender, mut answers) = unbounded_channel();
        let mut input = Input::Timeout;
        loop {
            self.state.handle(input, started_at.elapsed());
            while let Some(action) = self.state.next_action() {
                match action {
                    Action::Query(id, query) => {
                        let (table, node, instance) = (self.table.clone(), self.node.clone(), self.instance);
                        let (sender, limit) = (answer_sender.clone(), self.lease / QUERIES_PER_LEASE);
                        self.database.runtime().spawn(async move {
                            let answer = table.perform(&node, instance, &query, limit).await;
                            let _ = sender.send(Input::Answer(id, answer));
                        });
                    }
                    Action::Start { shard, token, epoch } => self.start(shard, token, epoch),
                    Action::Stop { shard, reason } => {
                        let lease = self.leases.remove(&shard);
                        if let Some(lease) = lease.filter(|_| reason != StopReason::GivenAway) {
                            let _ = lease.mark_lost();
                        }
                        self.send(ClusterEvent::Stop(i32::from(shard.0), reason));
                    }
                    Action::Drained => self.send(ClusterEvent::Drained),
                    Action::Left => self.send(ClusterEvent::Left),
                    Action::NameTaken => self.send(ClusterEvent::NameTaken),
                }
            }
            self.snapshots.send_if_modified(|table| {
                let is_new = *table != *self.state.table();
                if is_new {
                    table.clone_from(self.state.table());
                }
                is_new
            });
            let Some(deadline) = self.state.next_deadline() else { return };
            let sleep = tokio::time::sleep_until(started_at + deadline);
            input = tokio::select! {
                answer = answers.recv() => match answer {
                    Some(answer) => answer,
                    None => pending().await,
                },
                input = inputs.recv() => match input {
                    Some(input) => input,
                    None => return,
                },
                () = sleep => Input::Timeout,
            };
        }
    }

    fn start(&mut self, shard: ShardId, token: LeaseToken, epoch: i64) {
        let number = i32::from(shard.0);
        let lease = ShardLease::of_cluster_node(&self.database, number, token.to_bytes(), epoch, self.lease);
        let (mut loss, inputs) = (lease.watch_loss(), self.inputs.clone());
        self.database.runtime().spawn(async move {
            if loss.wait_for(|is_lost| *is_lost).await.is_ok()
                && let Some(inputs) = inputs.upgrade()
            {
                let _ = inputs.send(Input::CommitRefused(shard, token));
            }
        });
        self.leases.insert(shard, lease.clone());
        self.send(ClusterEvent::Start(lease));
    }

    fn send(&self, event: ClusterEvent) {
        let _ = self.events.send(event);
    }
}
