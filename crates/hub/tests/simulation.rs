//! The real hub in a simulated world: chance decides who does what when, and what breaks; nothing may be lost, doubled,
//! disordered, or done without consent.
//!
//! A failure prints its seed. `PROPERTY_SEED` begins elsewhere, `PROPERTY_TIMES` makes more runs.

mod cast;
mod ear;
mod ledger;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use world::World;

#[test]
fn few_listeners_in_a_bad_world() {
    runs(40, |seed| simulate(seed, 3, 6, 400));
}

#[test]
fn hundreds_of_listeners_in_a_bad_world() {
    runs(2, |seed| simulate(seed, 4, 200, 120));
}

fn runs(count: u64, run: impl Fn(u64)) {
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok()).unwrap_or(1);
    let first = number("PROPERTY_SEED").wrapping_mul(1_000_003);
    for seed in first..first + count * number("PROPERTY_TIMES") {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(seed))) {
            eprintln!("the seed was {seed}");
            resume_unwind(panic);
        }
    }
}

fn simulate(seed: u64, agents: usize, ears: usize, steps: usize) {
    let mut world = World::new(seed);
    world.gather(agents, ears);
    for _ in 0..steps {
        for _ in 0..=world.chance.below(3) {
            world.an_agent_acts();
            for _ in 0..=ears / 20 {
                world.an_ear_acts();
            }
        }
        let broken = world.chance.one_in(50);
        world.disk.fill(broken);
        world.disk.fail(broken && world.chance.one_in(2));
        world.turn();
        world.disk.fill(false);
        world.disk.fail(false);
        world.everybody_reads();
        if world.chance.one_in(120) {
            world.crash();
        }
        let millis =
            if world.chance.one_in(40) { world.chance.below(70_000) } else { world.chance.below(400) };
        world.pass(i64::try_from(millis).unwrap());
    }
    finish(&mut world);
}

/// Those who kept up, or came back in time, have heard all that was for them; then everybody goes, and nothing is left.
fn finish(world: &mut World) {
    world.catch_up();
    for ear in &world.ears {
        let (Some(from), Some(_)) = (ear.whole_from, &ear.line) else {
            continue;
        };
        for (position, id, body) in &world.ledger.events {
            if *position > from && is_fixed(body) && world.is_for(ear, body) {
                let (name, from) = (&ear.who.name, (from, ear.is_prompt, ear.capabilities, &ear.joined));
                assert!(ear.ids.contains(id), "{name} {from:?} never heard {position} {body}");
            }
        }
    }
    for id in &world.acknowledged {
        assert!(world.disk.position_of(id).is_some(), "{id} was acknowledged");
    }
    for ear in 0..world.ears.len() {
        if let Some(line) = world.ears[ear].line.take() {
            let who = world.ears[ear].who.clone();
            let command = hub::command::Command::Detached { listener: line.id, too_slow: false };
            world.ask(&who, command, world::Purpose::Other);
        }
    }
    world.turn();
    world.pass(world::LIMITS.lease * 3);
    let left = format!("{:?}", world.core);
    for part in ["sessions", "subscriptions", "listeners", "lanes", "waiting", "lost", "questions"] {
        assert!(left.contains(&format!(" {part}: 0,")), "{left}");
    }
    assert_eq!(world.core.next_deadline(), None);
}

/// Events that are never joined with others (§5.6).
fn is_fixed(body: &str) -> bool {
    !body.contains("agent.output.streaming")
        && (!body.contains("agent.progress.updated") || body.contains("sayso"))
        && (!body.contains("agent.state.changed") || body.contains("reply_token"))
}

impl World {
    fn is_for(&self, ear: &ear::Ear, body: &str) -> bool {
        let session = crate::support::text_of(body, "session_id");
        let answers = ear.who.role.answers() && ear.capabilities < 2;
        let question = body.contains("agent.awaiting.");
        let covered = self.agents.iter().any(|agent| {
            agent.sessions.iter().any(|talk| {
                talk.id == session
                    && agent
                        .who
                        .agent_id
                        .as_deref()
                        .is_some_and(|id| ear.who.scope.covers(id, Some(&talk.person)))
            })
        });
        covered && (!question || answers)
    }
}
