//! Nodes in a simulated world with random failures. No two nodes may write to a shard under one epoch, nothing is
//! acknowledged that is not stored, every question is decided once, and when the failures end, every shard has an owner.
//!
//! A failure prints its seed. `PROPERTY_SEED` sets the first seed, so the printed seed repeats the failure, and
//! `PROPERTY_TIMES` multiplies the number of runs. The same values always run the same seeds.

mod database;
mod process;
mod world;

use std::time::Duration;

use cluster::{Input, ShardId};
use process::LEASE;
use testing::property::{seeds, with_seed};
use world::{LONGEST_DELAY, World};

/// How long failures happen.
const FAULTS: Duration = Duration::from_secs(30);
/// How long it may take, in addition to a lease, until every shard has an owner after the last failure.
const BOUND: Duration = LEASE;

#[test]
fn thousands_of_random_failures_break_nothing() {
    let mut commits = 0;
    let failed = run_seeds(2000, |seed| {
        let world = simulate(seed, true);
        commits += world.database.shards.iter().map(|shard| shard.commit_number).sum::<u64>();
        world.violations
    });
    if let Some((seed, violations)) = failed {
        panic!("seed {seed}: {violations:#?}");
    }
    assert!(commits > 50_000, "only {commits} commits in all runs");
}

#[test]
fn without_fencing_the_simulation_finds_violations() {
    let failed = run_seeds(200, |seed| simulate(seed, false).violations);
    assert!(failed.is_some(), "a cluster that does not check epochs passed");
}

#[test]
fn a_killed_node_is_replaced_within_its_lease_and_a_second() {
    for seed in seeds(200) {
        let mut world = World::new(seed, 3, 16);
        world.run_until(Duration::from_millis(20_000 + seed % 200 * 37));
        let before: Vec<_> = (0..16).map(|shard| world.runners(ShardId(shard))).collect();
        assert!((0..3).all(|node| before.contains(&vec![node])), "seed {seed}: {before:?}");
        let killed_at = world.now;
        world.crash(0, Duration::from_mins(10));
        world.run_until(killed_at + LEASE + Duration::from_secs(1));
        for shard in 0..16 {
            let runners = world.runners(ShardId(shard));
            assert!(runners == [1] || runners == [2], "seed {seed}: shard {shard} runs on {runners:?}");
        }
        assert!(world.violations.is_empty(), "seed {seed}: {:?}", world.violations);
    }
}

#[test]
fn a_node_that_leaves_hands_its_shards_over_before_its_lease_ends() {
    for seed in seeds(200) {
        let mut world = World::new(seed, 3, 16);
        world.run_until(Duration::from_secs(20));
        world.tell_node(1, Input::Leave);
        world.run_until(world.now + LEASE / 2);
        for shard in 0..16 {
            let runners = world.runners(ShardId(shard));
            assert!(runners.len() == 1, "seed {seed}: shard {shard} runs on {runners:?}");
        }
    }
}

#[test]
fn rebalancing_gives_every_node_its_share() {
    for seed in seeds(200) {
        let mut world = World::new(seed, 3, 16);
        // Node 2 joins when the others own everything.
        world.crash(2, Duration::from_secs(10));
        world.run_until(Duration::from_secs(20));
        assert_eq!(owned_by(&world, 2), 0, "seed {seed}: nothing moves by itself");
        world.database.request_rebalance();
        world.run_until(world.now + 2 * LEASE);
        let owned: Vec<_> = (0..3).map(|node| owned_by(&world, node)).collect();
        assert_eq!(owned.iter().sum::<usize>(), 16, "seed {seed}: {owned:?}");
        assert!(owned.iter().all(|count| [5, 6].contains(count)), "seed {seed}: {owned:?}");
        assert!(world.violations.is_empty(), "seed {seed}: {:?}", world.violations);
    }
}

fn owned_by(world: &World, node: usize) -> usize {
    (0..16).filter(|shard| world.runners(ShardId(*shard)) == [node]).count()
}

/// Runs the seeds until one of them fails, and returns it with its violations.
fn run_seeds(count: u64, mut run: impl FnMut(u64) -> Vec<String>) -> Option<(u64, Vec<String>)> {
    seeds(count).find_map(|seed| {
        let violations = with_seed(seed, || run(seed));
        (!violations.is_empty()).then_some((seed, violations))
    })
}

fn simulate(seed: u64, is_fenced: bool) -> World {
    let mut world = World::new(seed, 3, 4);
    world.database.is_fenced = is_fenced;
    world.is_network_faulty = true;
    while world.now < FAULTS {
        let pause = Duration::from_millis(world.random.next_u64() % 4000);
        world.run_until(world.now + pause);
        cause_fault(&mut world);
        if !is_fenced && !world.violations.is_empty() {
            return world;
        }
    }
    world.is_network_faulty = false;
    for process in 0..world.processes.len() {
        world.cut(process, Duration::ZERO, Duration::ZERO);
        world.stop_database(Duration::ZERO);
        if world.processes[process].paused_until.is_some() {
            world.pause(process, Duration::ZERO);
        }
        // A node that an operator has drained would never own anything again.
        world.crash(process, Duration::ZERO);
    }
    // A delayed heartbeat of a process that was killed renews its leases.
    world.run_until(world.now + LONGEST_DELAY);
    world.run_until(world.now + LEASE + BOUND);
    check_owners(seed, &mut world);
    // All questions reach their deadlines, and no core still waits for an answer.
    world.run_until(world.now + Duration::from_secs(30));
    for shard in 0..world.database.shards.len() {
        let overdue = |deadline: &Duration| *deadline + Duration::from_secs(10) < world.now;
        if world.database.shards[shard].ledger.open.values().any(overdue) {
            world.violations.push(format!("shard {shard}: a question is undecided after its deadline"));
        }
    }
    world
}

fn check_owners(seed: u64, world: &mut World) {
    for shard in 0..world.database.shards.len() {
        let id = ShardId(u16::try_from(shard).unwrap());
        let runners = world.runners(id);
        let owner = world.database.owner(shard, world.now).map(str::to_owned);
        let is_owned = runners.iter().any(|index| Some(&world.processes[*index].name) == owner.as_ref());
        if !is_owned || runners.len() != 1 {
            world.violations.push(format!(
                "seed {seed}: shard {shard} belongs to {owner:?} and runs on {runners:?} after all failures ended"
            ));
        }
    }
}

fn cause_fault(world: &mut World) {
    let process = world.random.below(world.processes.len());
    let mut seconds = |max: u64| Duration::from_millis(world.random.next_u64() % (max * 1000));
    let (long, short, other) = (seconds(15), seconds(8), seconds(12));
    match world.random.below(8) {
        0 => world.crash(process, short),
        1 | 2 => world.pause(process, long),
        3 => world.cut(process, long, long),
        4 => {
            // Requests arrive, but their answers are lost, or the other way round.
            let (requests, answers) =
                if world.random.one_in(2) { (Duration::ZERO, other) } else { (other, Duration::ZERO) };
            world.cut(process, requests, answers);
        }
        5 => world.stop_database(short),
        6 => world.database.request_rebalance(),
        _ if world.random.one_in(2) => world.tell_node(process, Input::Leave),
        _ => {
            let name = world.processes[process].name.clone();
            world.database.request_drain(&name);
        }
    }
}
