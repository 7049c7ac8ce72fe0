//! Single rules of the state machine.

use std::time::Duration;

use cluster::{
    Action, Answer, Input, InstanceId, LeaseToken, Membership, NodeConfig, NodeEntry, Query, QueryId,
    ShardEntry, ShardId, ShardOwner, StopReason, TableSnapshot,
};

const LEASE: Duration = Duration::from_secs(6);
const ME: InstanceId = InstanceId([1; 8]);

fn node() -> Membership {
    Membership::new(NodeConfig { name: "a".to_owned(), instance: ME, lease: LEASE })
}

/// A time of the test.
fn at(seconds: u64) -> Duration {
    START + Duration::from_secs(seconds)
}

fn actions(node: &mut Membership) -> Vec<Action> {
    std::iter::from_fn(|| node.next_action()).collect()
}

fn only_query(node: &mut Membership) -> (QueryId, Query) {
    match actions(node).as_slice() {
        [Action::Query(id, query)] => (*id, query.clone()),
        other => panic!("{other:?}"),
    }
}

fn table(shards: Vec<ShardEntry>) -> TableSnapshot {
    let me = NodeEntry {
        name: "a".to_owned(),
        instance: ME,
        address: String::new(),
        remaining: LEASE,
        is_draining: false,
        drain_requested: false,
    };
    TableSnapshot { nodes: vec![me], shards, rebalance_requests: 0 }
}

fn free_shard(number: u16) -> ShardEntry {
    ShardEntry { shard: ShardId(number), epoch: 3, owner: None, remaining: Duration::ZERO }
}

fn owned_shard(number: u16, token: LeaseToken, remaining: Duration) -> ShardEntry {
    let owner = ShardOwner { name: "x".to_owned(), address: String::new(), token: Some(token) };
    ShardEntry { shard: ShardId(number), epoch: 3, owner: Some(owner), remaining }
}

/// When the tests begin: a node that has just started acquires nothing.
const START: Duration = Duration::from_secs(100);

/// When its first heartbeat was answered.
const JOINED: Duration = Duration::from_secs(99);

/// A node that has asked to acquire the free shard 0 at second 0 of the test.
fn acquiring() -> Membership {
    let mut node = node();
    node.handle(Input::Timeout, JOINED);
    let (id, _) = only_query(&mut node);
    let heartbeat = || Answer::Heartbeat { renewed: Vec::new(), table: table(vec![free_shard(0)]) };
    node.handle(Input::Answer(id, heartbeat()), JOINED);
    assert_eq!(actions(&mut node), []);
    node.handle(Input::Timeout, START);
    let (id, _) = only_query(&mut node);
    node.handle(Input::Answer(id, heartbeat()), START);
    node
}

/// A node that has acquired shard 0 at second 0 of the test.
fn owner() -> (Membership, LeaseToken) {
    let mut node = acquiring();
    let (id, query) = only_query(&mut node);
    let Query::Acquire { shards, token, .. } = query else { panic!("{query:?}") };
    assert_eq!(shards, [(ShardId(0), 3)]);
    node.handle(Input::Answer(id, Answer::Acquired(vec![(ShardId(0), 4)])), START);
    assert_eq!(actions(&mut node), [Action::Start { shard: ShardId(0), token, epoch: 4 }]);
    (node, token)
}

/// Returns whether the node stops its shard.
fn stops(node: &mut Membership) -> bool {
    actions(node).iter().any(|action| matches!(action, Action::Stop { .. }))
}

#[test]
fn a_lease_counts_from_when_the_renewal_was_sent() {
    let (mut node, token) = owner();
    node.handle(Input::Timeout, at(1));
    let (id, query) = only_query(&mut node);
    assert!(matches!(query, Query::Heartbeat { renew, .. } if renew == [(ShardId(0), token)]));
    let answer = Answer::Heartbeat { renewed: vec![ShardId(0)], table: table(Vec::new()) };
    node.handle(Input::Answer(id, answer), at(2));
    // Without another renewal, the shard stops when the lease ends.
    let just_before = at(6) + Duration::from_millis(999);
    node.handle(Input::Timeout, just_before);
    assert!(!stops(&mut node));
    node.handle(Input::Timeout, at(1) + LEASE);
    assert!(stops(&mut node));
}

#[test]
fn a_paused_owner_stops_before_it_looks_at_the_answers_that_wait() {
    let (mut node, token) = owner();
    node.handle(Input::Timeout, at(1));
    let (id, _) = only_query(&mut node);
    let table = table(vec![owned_shard(0, token, Duration::from_secs(3))]);
    node.handle(Input::Answer(id, Answer::Heartbeat { renewed: vec![ShardId(0)], table }), at(60));
    let stop = Action::Stop { shard: ShardId(0), reason: StopReason::LeaseEnded };
    assert_eq!(actions(&mut node).first(), Some(&stop));
    node.handle(Input::Timeout, at(60) + LEASE);
    assert!(!stops(&mut node), "the lease was not renewed");
}

#[test]
fn a_shard_is_not_started_again_before_it_has_stopped() {
    let (mut node, token) = owner();
    node.handle(Input::CommitRefused(ShardId(0), token), at(1));
    let taken = actions(&mut node);
    assert_eq!(taken[0], Action::Stop { shard: ShardId(0), reason: StopReason::Taken });
    let Action::Query(id, _) = taken[1] else { panic!("{taken:?}") };
    let free = || Answer::Heartbeat { renewed: Vec::new(), table: table(vec![free_shard(0)]) };
    node.handle(Input::Answer(id, free()), at(1));
    assert_eq!(actions(&mut node), []);
    node.handle(Input::Stopped(ShardId(0)), at(2));
    let (id, _) = only_query(&mut node);
    node.handle(Input::Answer(id, free()), at(2));
    assert!(matches!(only_query(&mut node).1, Query::Acquire { .. }));
}

#[test]
fn a_refused_commit_of_an_earlier_acquisition_changes_nothing() {
    let (mut node, token) = owner();
    let earlier = LeaseToken { number: token.number - 1, ..token };
    node.handle(Input::CommitRefused(ShardId(0), earlier), at(1));
    assert!(!stops(&mut node));
}

#[test]
fn a_heartbeat_from_before_the_acquisition_does_not_end_it() {
    let mut node = acquiring();
    let (acquisition, _) = only_query(&mut node);
    node.handle(Input::TableChanged, at(1));
    let (heartbeat, _) = only_query(&mut node);
    node.handle(Input::Answer(acquisition, Answer::Acquired(vec![(ShardId(0), 4)])), at(1));
    // The database performed this heartbeat before the acquisition.
    let answer = Answer::Heartbeat { renewed: Vec::new(), table: table(vec![free_shard(0)]) };
    node.handle(Input::Answer(heartbeat, answer), at(1));
    assert!(!stops(&mut node));
}

#[test]
fn an_acquisition_whose_answer_was_lost_is_repeated() {
    let mut node = acquiring();
    let (id, query) = only_query(&mut node);
    let Query::Acquire { token, .. } = query else { panic!("{query:?}") };
    node.handle(Input::Answer(id, Answer::Failed), at(1));
    let (id, _) = only_query(&mut node);
    let own = table(vec![owned_shard(0, token, Duration::from_secs(5))]);
    node.handle(Input::Answer(id, Answer::Heartbeat { renewed: Vec::new(), table: own }), at(1));
    let (_, query) = only_query(&mut node);
    assert!(matches!(query, Query::Acquire { token: next, .. } if next != token), "{query:?}");
}

#[test]
fn a_node_that_leaves_waits_until_its_shards_have_stopped_and_are_released() {
    let (mut node, token) = owner();
    node.handle(Input::Leave, at(1));
    let stop = Action::Stop { shard: ShardId(0), reason: StopReason::GivenAway };
    assert_eq!(actions(&mut node).first(), Some(&stop));
    node.handle(Input::Stopped(ShardId(0)), at(1));
    let (release, query) = only_query(&mut node);
    assert_eq!(query, Query::Release { shard: ShardId(0), token });
    node.handle(Input::Answer(release, Answer::Done), at(1));
    let (leave, query) = only_query(&mut node);
    assert_eq!(query, Query::Leave);
    node.handle(Input::Answer(leave, Answer::Done), at(1));
    assert_eq!(actions(&mut node), [Action::Left]);
    assert_eq!(node.next_deadline(), None);
}

#[test]
fn a_name_in_use_is_waited_for_and_then_refused() {
    let mut node = node();
    let mut now = Duration::ZERO;
    loop {
        node.handle(Input::Timeout, now);
        match actions(&mut node).as_slice() {
            [Action::Query(id, Query::Heartbeat { .. })] => {
                node.handle(Input::Answer(*id, Answer::NameTaken), now);
            }
            [] => {}
            other => panic!("{other:?}"),
        }
        if let Some(action) = node.next_action() {
            assert_eq!(action, Action::NameTaken);
            break;
        }
        now = node.next_deadline().unwrap();
    }
    assert!(now >= LEASE && now < 3 * LEASE, "{now:?}");
}
