//! Several nodes share the shards of a database.

use std::collections::BTreeMap;
use std::time::Instant;

use cluster::StopReason;
use journal::{ClusterEvent, ClusterMember, ClusterNode, SharedTexts};
use tokio::runtime::Runtime;

use super::*;

const SHARDS: u16 = 8;
/// Long enough for a busy machine.
const LEASE: Duration = Duration::from_secs(5);
const LIMIT: Duration = Duration::from_mins(1);

/// A node with the journals of the shards that it owns.
struct TestNode {
    database: PostgresDatabase,
    member: ClusterMember,
    journals: BTreeMap<i32, PostgresJournal>,
    has_left: bool,
}

impl TestNode {
    fn join(address: &str, name: &str) -> Self {
        let database = open_database(address).unwrap();
        let table = ClusterTable::open(&database, SHARDS).unwrap();
        let node = ClusterNode { name: name.to_owned(), address: format!("{name}:1") };
        let member = ClusterMember::join(&database, table, node, LEASE);
        Self { database, member, journals: BTreeMap::new(), has_left: false }
    }

    fn handle(&mut self, event: ClusterEvent) {
        match event {
            ClusterEvent::Start(lease) => {
                let shard = lease.shard();
                let journal = PostgresJournal::open_acquired(lease).unwrap();
                assert!(self.journals.insert(shard, journal).is_none(), "shard {shard} was started twice");
            }
            ClusterEvent::Stop(shard, _) => {
                self.journals.remove(&shard);
                self.member.report_stopped(shard);
            }
            ClusterEvent::Left => self.has_left = true,
            ClusterEvent::Drained => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Handles the events of the nodes until the condition holds.
fn run_until(nodes: &mut [TestNode], mut condition: impl FnMut(&[TestNode]) -> bool) {
    let runtime = runtime();
    let deadline = Instant::now() + LIMIT;
    while !condition(nodes) {
        let counts: Vec<_> = nodes.iter().map(|node| node.journals.len()).collect();
        assert!(Instant::now() < deadline, "the nodes own {counts:?} shards");
        for node in &mut *nodes {
            let event =
                async { tokio::time::timeout(Duration::from_millis(5), node.member.next_event()).await };
            if let Ok(Some(event)) = runtime.block_on(event) {
                node.handle(event);
            }
        }
    }
}

/// Lets two nodes share the shards evenly. On a busy machine, one of them can be late; then the other one has taken all shards.
fn join_two(server: &PostgresServer) -> Vec<TestNode> {
    let mut nodes: Vec<_> = ["a", "b"].map(|name| TestNode::join(&server.address(), name)).into();
    let table = ClusterTable::open_existing(&open_database(&server.address()).unwrap()).unwrap().unwrap();
    run_until(&mut nodes, |nodes| {
        counts(nodes).iter().sum::<usize>() == usize::from(SHARDS) && table.read().unwrap().nodes.len() == 2
    });
    if counts(&nodes) != [4, 4] {
        table.request_rebalance().unwrap();
    }
    run_until(&mut nodes, |nodes| counts(nodes) == [4, 4]);
    nodes
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

fn counts(nodes: &[TestNode]) -> Vec<usize> {
    nodes.iter().map(|node| node.journals.len()).collect()
}

#[test]
fn the_shards_of_a_lost_node_go_to_the_others_and_it_can_write_nothing_more() {
    let Some(server) = start_server() else { return };
    let mut nodes = join_two(&server);
    for (shard, journal) in nodes.iter_mut().flat_map(|node| &mut node.journals) {
        journal.commit(&[session_opened("s"), event(1, "s", &format!("{shard}"))]).unwrap();
    }
    // Dropping the member stops its heartbeats, but its journals do not know it.
    let TestNode { database, member, mut journals, .. } = nodes.remove(0);
    drop(member);
    run_until(&mut nodes, |nodes| counts(nodes) == [8]);
    for (shard, journal) in &mut journals {
        let result = journal.commit(&[event(2, "s", "late")]);
        assert!(matches!(result, Err(JournalError::OwnershipLost { .. })), "shard {shard}: {result:?}");
    }
    drop((journals, database));
    for (shard, journal) in &mut nodes[0].journals {
        assert_eq!(event_ids(journal), [format!("{shard}")]);
        journal.commit(&[event(2, "s", "next")]).unwrap();
    }
}

#[test]
fn a_node_that_leaves_hands_its_shards_over_and_disappears() {
    let Some(server) = start_server() else { return };
    let mut nodes = join_two(&server);
    nodes[0].member.leave();
    run_until(&mut nodes, |nodes| nodes[0].has_left && counts(nodes) == [0, 8]);
    assert_eq!(server.sql("SELECT string_agg(name, ',') FROM sayso.node"), "b");
    assert_eq!(nodes[0].database.settings().to_string().matches("geheim").count(), 0);
}

#[test]
fn operators_can_drain_a_node_and_distribute_the_shards_again() {
    let Some(server) = start_server() else { return };
    let mut nodes = join_two(&server);
    let table = ClusterTable::open_existing(&open_database(&server.address()).unwrap()).unwrap().unwrap();
    assert!(!table.request_drain("c").unwrap());
    assert!(table.request_drain("b").unwrap());
    run_until(&mut nodes, |nodes| counts(nodes) == [8, 0]);
    nodes.push(TestNode::join(&server.address(), "c"));
    run_until(&mut nodes, |_| table.read().unwrap().nodes.iter().any(|node| node.name == "c"));
    table.request_rebalance().unwrap();
    run_until(&mut nodes, |nodes| counts(nodes) == [4, 0, 4]);
    let snapshot = table.read().unwrap();
    let owners: Vec<_> = snapshot.shards.iter().filter_map(|shard| shard.owner.as_ref()).collect();
    assert_eq!(owners.len(), 8);
    assert!(owners.iter().all(|owner| owner.address == format!("{}:1", owner.name)), "{owners:?}");
}

#[test]
fn a_commit_that_another_owner_refuses_stops_the_shard() {
    let Some(server) = start_server() else { return };
    let mut nodes = vec![TestNode::join(&server.address(), "a")];
    run_until(&mut nodes, |nodes| counts(nodes) == [8]);
    server.sql("UPDATE sayso.shard SET epoch = epoch + 1, owner = 'x', instance = 'x', lease_until = clock_timestamp() + interval '1 hour' WHERE id = 3");
    let journal = nodes[0].journals.get_mut(&3).unwrap();
    assert!(matches!(journal.commit(&[session_opened("s")]), Err(JournalError::OwnershipLost { shard: 3 })));
    let event = runtime().block_on(nodes[0].member.next_event());
    assert!(matches!(event, Some(ClusterEvent::Stop(3, StopReason::Taken))), "{event:?}");
}

#[test]
fn the_number_of_shards_is_fixed_by_the_first_node() {
    let Some(server) = start_server() else { return };
    let database = open_database(&server.address()).unwrap();
    assert!(ClusterTable::open_existing(&database).unwrap().is_none());
    ClusterTable::open(&database, 8).unwrap();
    ClusterTable::open(&database, 8).unwrap();
    let error = ClusterTable::open(&database, 4).unwrap_err();
    assert!(matches!(error, JournalError::ShardCount { stored: 8, configured: 4 }), "{error:?}");
    assert_eq!(server.sql("SELECT count(*) FROM sayso.shard"), "8");
}

#[test]
fn a_shared_text_is_changed_only_from_the_version_that_was_read() {
    let Some(server) = start_server() else { return };
    let mut texts = SharedTexts::new(&open_database(&server.address()).unwrap());
    assert_eq!(texts.read("tokens", None).unwrap(), None);
    assert!(texts.replace("tokens", "one", None).unwrap());
    assert!(!texts.replace("tokens", "two", None).unwrap(), "it exists");
    let one = texts.read("tokens", None).unwrap().unwrap();
    assert_eq!((one.content.as_str(), one.version), ("one", 1));
    assert!(texts.replace("tokens", "two", Some(1)).unwrap());
    assert!(!texts.replace("tokens", "three", Some(1)).unwrap(), "somebody else was faster");
    assert_eq!(texts.read("tokens", Some(1)).unwrap().unwrap().content, "two");
    assert_eq!(texts.read("tokens", Some(2)).unwrap(), None, "nothing is new");
}
