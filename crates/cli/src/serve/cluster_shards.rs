//! Runs the shards of a node that has joined its cluster: starts those that it acquires, stops those that it gives away or
//! loses, and tells the router where the others run.

use std::sync::Arc;
use std::time::Duration;

use cluster::{StopReason, TableSnapshot};
use journal::{ClusterEvent, ClusterMember, PostgresJournal, ShardLease};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use wire::cluster::{ShardRouter, ShardStop};

use super::core_factory::CoreFactory;
use super::database_journal::OwnershipEnd;
use crate::output::print_stderr;

/// How long a stopping node waits for other nodes to take its shards.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// How long it then waits to be removed from the table. If the database does not answer, its entry ends by itself.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);

/// The shards of a node.
pub(super) struct NodeShards {
    name: String,
    member: ClusterMember,
    router: ShardRouter,
    table: watch::Receiver<TableSnapshot>,
    /// One queue for each shard, so that what happens to it happens in order.
    queues: Vec<UnboundedSender<ShardStep>>,
    /// Where each shard runs, as the router was told last. `None` if it runs here, or nothing was told.
    places: Vec<Option<Place>>,
    stopped: UnboundedReceiver<u16>,
}

/// What a node must know, apart from its shards.
enum NodeEvent {
    TableRead,
    Drained,
    Left,
    NameTaken,
}

/// A step in the life of one shard on this node.
enum ShardStep {
    Start(ShardLease),
    Stop(ShardStop),
    Move(Place),
}

/// Where a shard runs that does not run here.
#[derive(Clone, PartialEq, Eq)]
enum Place {
    Nowhere,
    Node { name: String, address: String },
}

impl NodeShards {
    /// Creates the queues. Must be called within a runtime.
    pub(super) fn new(
        name: String,
        member: ClusterMember,
        shards: u16,
        router: &ShardRouter,
        factory: &Arc<CoreFactory>,
    ) -> Self {
        let (stopped_sender, stopped) = unbounded_channel();
        let start_queue = |index: u16| {
            let (sender, receiver) = unbounded_channel();
            let shard = LocalShard { index, router: router.clone(), factory: factory.clone() };
            tokio::spawn(shard.run(receiver, stopped_sender.clone()));
            sender
        };
        let queues: Vec<_> = (0..shards).map(start_queue).collect();
        let table = member.table();
        let places = vec![None; queues.len()];
        let mut node = Self { name, member, router: router.clone(), table, queues, places, stopped };
        node.update_places();
        node
    }

    /// Runs the node until it must stop, and returns why. Cancel-safe.
    pub(super) async fn run(&mut self) -> OwnershipEnd {
        loop {
            match self.next_event().await {
                Some(NodeEvent::Drained) => return OwnershipEnd::GivenAway,
                Some(NodeEvent::NameTaken) => {
                    return OwnershipEnd::Lost("another node uses the name of this one; give each node its own name with --cluster-node".to_owned());
                }
                Some(NodeEvent::TableRead) => {}
                Some(NodeEvent::Left) | None => {
                    return OwnershipEnd::Lost("this node is no longer in its cluster".to_owned());
                }
            }
        }
    }

    /// Gives all shards away, and waits until other nodes have taken them, if there are any. Then forwards requests until the
    /// delay since the call is over, or `end_delay` completes.
    pub(super) async fn drain(&mut self, delay: Duration, end_delay: impl Future<Output = ()>) {
        let delay = tokio::time::sleep(delay);
        self.member.drain();
        let drained = async {
            while !self.has_given_all_away() {
                if self.next_event().await.is_none() {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, drained).await;
        if !self.has_other_nodes() {
            // No load balancer can send the requests to another node.
            return;
        }
        let follow_shards = async {
            while self.next_event().await.is_some() {}
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = delay => {}
            () = end_delay => {}
            () = follow_shards => {}
        }
    }

    /// Leaves the cluster.
    pub(super) async fn leave(&mut self) {
        self.member.leave();
        let left = async { while !matches!(self.next_event().await, None | Some(NodeEvent::Left)) {} };
        let _ = tokio::time::timeout(LEAVE_TIMEOUT, left).await;
    }

    /// Whether another node can take shards.
    fn has_other_nodes(&self) -> bool {
        self.table.borrow().nodes.iter().any(|node| node.name != self.name && node.can_own())
    }

    /// Whether every shard runs on another node or, if there is no other node, none runs here.
    fn has_given_all_away(&self) -> bool {
        let has_others = self.has_other_nodes();
        let table = self.table.borrow();
        let is_elsewhere = |entry: &cluster::ShardEntry| {
            !entry.is_free() && entry.owner.as_ref().is_some_and(|owner| owner.name != self.name)
        };
        let is_here =
            |entry: &cluster::ShardEntry| entry.owner.as_ref().is_some_and(|owner| owner.name == self.name);
        if has_others { table.shards.iter().all(is_elsewhere) } else { !table.shards.iter().any(is_here) }
    }

    /// Starts and stops shards until there is an event for the node. Returns `None` after it has left. Cancel-safe.
    async fn next_event(&mut self) -> Option<NodeEvent> {
        loop {
            tokio::select! {
                event = self.member.next_event() => {
                    match event? {
                        ClusterEvent::Start(lease) => self.start(lease),
                        ClusterEvent::Stop(shard, reason) => self.stop(shard, reason),
                        ClusterEvent::Drained => return Some(NodeEvent::Drained),
                        ClusterEvent::Left => return Some(NodeEvent::Left),
                        ClusterEvent::NameTaken => return Some(NodeEvent::NameTaken),
                        _ => {}
                    }
                }
                Some(shard) = self.stopped.recv() => self.member.report_stopped(i32::from(shard)),
                Ok(()) = self.table.changed() => {
                    self.update_places();
                    return Some(NodeEvent::TableRead);
                }
            }
        }
    }

    fn start(&mut self, lease: ShardLease) {
        let shard = usize::try_from(lease.shard()).unwrap_or(usize::MAX);
        self.send(shard, ShardStep::Start(lease));
    }

    fn stop(&mut self, shard: i32, reason: StopReason) {
        let reason = match reason {
            StopReason::GivenAway => ShardStop::GivenAway,
            StopReason::LeaseEnded | StopReason::Taken => ShardStop::Lost,
        };
        self.send(usize::try_from(shard).unwrap_or(usize::MAX), ShardStep::Stop(reason));
    }

    fn send(&mut self, shard: usize, step: ShardStep) {
        if let Some(place) = self.places.get_mut(shard) {
            *place = None;
        }
        if let Some(queue) = self.queues.get(shard) {
            let _ = queue.send(step);
        }
    }

    /// Tells the router where the shards of the other nodes run.
    fn update_places(&mut self) {
        let table = self.table.borrow_and_update();
        for entry in &table.shards {
            self.router.set_epoch(entry.shard.0, u64::try_from(entry.epoch).unwrap_or(0));
            let shard = usize::from(entry.shard.0);
            let (Some(queue), Some(known)) = (self.queues.get(shard), self.places.get_mut(shard)) else {
                continue;
            };
            let place = match entry.owner.as_ref().filter(|_| !entry.is_free()) {
                Some(owner) if owner.name == self.name => continue,
                // A hub without a cluster has no address.
                Some(owner) if !owner.address.is_empty() => {
                    Place::Node { name: owner.name.clone(), address: owner.address.clone() }
                }
                _ => Place::Nowhere,
            };
            if known.as_ref() != Some(&place) {
                *known = Some(place.clone());
                let _ = queue.send(ShardStep::Move(place));
            }
        }
    }
}

/// One shard, as far as it concerns this node.
struct LocalShard {
    index: u16,
    router: ShardRouter,
    factory: Arc<CoreFactory>,
}

impl LocalShard {
    async fn run(self, mut steps: UnboundedReceiver<ShardStep>, stopped: UnboundedSender<u16>) {
        // Whether the shard has been started at the member's request, and the member has not yet been told that it has
        // stopped. Each start is followed by one report.
        let mut is_started = false;
        while let Some(step) = steps.recv().await {
            match step {
                ShardStep::Start(lease) => {
                    let (router, factory) = (self.router.clone(), self.factory.clone());
                    let start = move || start(&router, &factory, lease);
                    let result = tokio::task::spawn_blocking(start).await;
                    match result.map_err(|error| error.to_string()).flatten() {
                        Ok(()) => is_started = true,
                        Err(error) => {
                            let index = self.index;
                            print_stderr(&format!(
                                "warning: shard {index} cannot start on this node: {error}"
                            ));
                            let _ = stopped.send(index);
                        }
                    }
                }
                ShardStep::Stop(reason) => {
                    self.stop(reason).await;
                    if std::mem::take(&mut is_started) {
                        let _ = stopped.send(self.index);
                    }
                }
                // The table was read before the shard was acquired.
                ShardStep::Move(_) if is_started => {}
                ShardStep::Move(Place::Node { name, address }) => {
                    let (router, index) = (self.router.clone(), self.index);
                    // The router waits while another shard starts or stops.
                    let _ = tokio::task::spawn_blocking(move || router.run_at(index, &name, &address)).await;
                }
                ShardStep::Move(Place::Nowhere) => self.stop(ShardStop::Lost).await,
            }
        }
    }

    async fn stop(&self, reason: ShardStop) {
        let (router, index) = (self.router.clone(), self.index);
        let _ = tokio::task::spawn_blocking(move || router.stop(index, reason)).await;
    }
}

/// Opens the journal of a shard that this node has acquired, and runs it.
fn start(router: &ShardRouter, factory: &CoreFactory, lease: ShardLease) -> Result<(), String> {
    let shard = u16::try_from(lease.shard()).map_err(|error| error.to_string())?;
    let journal = PostgresJournal::open_acquired(lease).map_err(|error| error.to_string())?;
    let core = factory.create(shard, Box::new(journal))?;
    router.run_here(shard, core).map_err(|error| error.to_string())
}
