//! Random kills of both nodes under concurrent sessions.

use std::sync::atomic::{AtomicUsize, Ordering};

use testing::random::SplitMix64;

use crate::script::{Script, assert_same_end, run_script};
use crate::test_node::{Storage, TestNode, Transport, poll, start_pair};

const CONCURRENT_SESSIONS: usize = 16;
const DEFAULT_KILLS: usize = 20;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Returns how often to kill.
pub(crate) fn random_kill_count(default: usize) -> usize {
    number("SAYSO_RANDOM_KILLS").map_or(default, |kills| usize::try_from(kills).unwrap())
}

/// Returns the seed of a run.
pub(crate) fn random_seed() -> u64 {
    let process = u64::from(std::process::id());
    number("SAYSO_RANDOM_SEED").unwrap_or_else(|| SplitMix64::new(process).next_u64() >> 32)
}

/// Runs sessions on all threads, one after the other, until both nodes were killed often enough. Every session must end as
/// its script states, on both sides. A kill comes after a random number of messages.
fn survive_random_kills(transport: Transport, kills: usize, seed: u64) {
    println!("seed {seed}, {kills} kills; SAYSO_RANDOM_SEED={seed} repeats them");
    let pair = start_pair(|builder| builder.storage(Storage::Disk).transport(transport));
    let scripts = [
        Script::agreed,
        Script::countered_commitment,
        Script::withdrawn,
        Script::unilateral_close,
        Script::rejected,
    ];
    let (killed, sent, ended) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for thread in 0..CONCURRENT_SESSIONS {
            let (pair, killed, sent, ended) = (&pair, &killed, &sent, &ended);
            scope.spawn(move || {
                let mut random = SplitMix64::new(seed + u64::try_from(thread).unwrap());
                for round in 0.. {
                    let script = random.choose_one(&scripts)(pair).with_subject(&format!("{thread}-{round}"));
                    let session = run_script(pair.each_ref(), &script, |_, _, _| {
                        sent.fetch_add(1, Ordering::Relaxed);
                    });
                    assert_same_end(pair.each_ref(), &script, &session);
                    ended.fetch_add(1, Ordering::Relaxed);
                    if killed.load(Ordering::Relaxed) >= kills {
                        break;
                    }
                }
            });
        }
        let (pair, killed, sent) = (&pair, &killed, &sent);
        scope.spawn(move || {
            let mut random = SplitMix64::new(seed);
            for _ in 0..kills {
                let until = sent.load(Ordering::Relaxed) + random.below(CONCURRENT_SESSIONS);
                poll("the next messages", || (sent.load(Ordering::Relaxed) >= until).then_some(()));
                let node = &pair[random.below(2)];
                node.wait_until_running();
                node.kill();
                killed.fetch_add(1, Ordering::Relaxed);
            }
        });
    });
    pair.iter().for_each(TestNode::wait_until_running);
    let starts: usize = pair.iter().map(TestNode::starts).sum();
    println!("{} sessions ended, {starts} processes", ended.into_inner());
    assert_eq!(starts, 2 + kills);
}

#[test]
fn all_sessions_end_the_same_on_both_sides_after_random_kills() {
    let (kills, seed) = (random_kill_count(DEFAULT_KILLS), random_seed());
    survive_random_kills(Transport::Http, kills, seed);
    survive_random_kills(Transport::WebSocket, kills / 2, seed);
}
