//! The real hub in a simulated world with random actions and failures. Nothing may be lost, duplicated, reordered, or
//! done without consent.
//!
//! A failure prints its seed. `PROPERTY_SEED` sets the first seed, so the printed seed repeats the failure, and
//! `PROPERTY_TIMES` multiplies the number of runs. The same values always run the same seeds.

mod actors;
mod ledger;
mod listener;
mod world;

use testing::property::{seeds, with_seed};
use world::SimulatedWorld;

#[test]
fn a_few_listeners_survive_random_failures() {
    run_seeds(40, |seed| simulate(seed, 3, 6, 400));
}

#[test]
fn hundreds_of_listeners_survive_random_failures() {
    run_seeds(2, |seed| simulate(seed, 4, 200, 120));
}

fn run_seeds(count: u64, run: impl Fn(u64)) {
    for seed in seeds(count) {
        with_seed(seed, || run(seed));
    }
}

fn simulate(seed: u64, agents: usize, listeners: usize, steps: usize) {
    let mut world = SimulatedWorld::new(seed);
    world.create_actors(agents, listeners);
    for _ in 0..steps {
        for _ in 0..=world.random.below(3) {
            world.act_as_agent();
            for _ in 0..=listeners / 20 {
                world.act_as_listener();
            }
        }
        let fails = world.random.one_in(50);
        world.disk.fail_writes(fails);
        world.disk.fail_reads(fails && world.random.one_in(2));
        world.turn();
        world.disk.fail_writes(false);
        world.disk.fail_reads(false);
        world.read_all();
        if world.random.one_in(120) {
            world.crash();
        }
        let millis =
            if world.random.one_in(40) { world.random.below(70_000) } else { world.random.below(400) };
        world.advance_time(i64::try_from(millis).unwrap());
    }
    finish(&mut world);
}

/// Checks that all listeners that kept up or reconnected in time received everything. Then disconnects all listeners
/// and checks that the hub keeps no state.
fn finish(world: &mut SimulatedWorld) {
    world.catch_up();
    for subscriber in &world.listeners {
        let (Some(start), Some(_)) = (subscriber.complete_from, &subscriber.connection) else {
            continue;
        };
        for (position, id, body) in &world.ledger.events {
            if *position > start && is_never_merged(body) && world.must_receive(subscriber, body) {
                let (name, state) = (
                    &subscriber.principal.name,
                    (
                        start,
                        subscriber.reads_immediately,
                        subscriber.capabilities_index,
                        &subscriber.attaches,
                    ),
                );
                assert!(subscriber.ids.contains(id), "{name} {state:?} did not receive {position} {body}");
            }
        }
    }
    for id in &world.acknowledged {
        assert!(world.disk.position_of(id).is_some(), "{id} was acknowledged");
    }
    for listener_index in 0..world.listeners.len() {
        if let Some(connection) = world.listeners[listener_index].connection.take() {
            let principal = world.listeners[listener_index].principal.clone();
            let command = hub::command::HubCommand::Detach { listener: connection.id, is_too_slow: false };
            world.queue_request(&principal, command, world::Purpose::Other);
        }
    }
    world.turn();
    world.advance_time(world::LIMITS.lease_ms * 3);
    let debug_text = format!("{:?}", world.core);
    for field in [
        "sessions",
        "subscriptions",
        "listeners",
        "delivery_groups",
        "pending_waits",
        "resume_deadlines",
        "questions",
    ] {
        assert!(debug_text.contains(&format!(" {field}: 0,")), "{debug_text}");
    }
    assert_eq!(world.core.next_deadline(), None);
}

/// Whether an event is never merged with others (§5.6).
fn is_never_merged(body: &str) -> bool {
    !body.contains("agent.output.streaming")
        && (!body.contains("agent.progress.updated") || body.contains("sayso"))
        && (!body.contains("agent.state.changed") || body.contains("reply_token"))
}

impl SimulatedWorld {
    fn must_receive(&self, subscriber: &listener::SimulatedListener, body: &str) -> bool {
        let session_id = crate::support::text_member(body, "session_id");
        let may_answer = subscriber.principal.role.can_answer() && subscriber.capabilities_index < 2;
        let is_question = body.contains("agent.awaiting.");
        let is_covered = self.agents.iter().any(|agent| {
            agent.sessions.iter().any(|session| {
                session.id == session_id
                    && agent
                        .principal
                        .agent_id
                        .as_deref()
                        .is_some_and(|id| subscriber.principal.scope.covers(id, Some(&session.person)))
            })
        });
        is_covered && (!is_question || may_answer)
    }
}
