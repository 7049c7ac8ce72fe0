//! Crashes at every step of a complete session. Afterwards, the session has ended the same way on both sides, and no message is lost or duplicated.

use crate::script::{BUYER, PRESS, Script, assert_same_end, run_script};
use crate::test_node::{NodeBuilder, Storage, TestNode, Transport, start_builders};

/// The crash points of a node (`crates/node/src/crash_point.rs`), each with the number of passes after which a process aborts
/// if it does so after every start. A process that always aborted before its first store or acknowledgement would never get
/// any further, so it completes one first.
pub(crate) const CRASH_POINTS: [(&str, usize); 8] = [
    ("request.before", 2),
    ("request.after", 1),
    ("store.before", 2),
    ("store.after", 1),
    ("deliver.before", 2),
    ("deliver.after", 2),
    ("receive.before", 2),
    ("receive.after", 2),
];

/// Starts a pair of durable nodes, of which one crashes.
fn start_crashing(
    role: usize,
    transport: Transport,
    crash: impl Fn(NodeBuilder) -> NodeBuilder,
) -> [TestNode; 2] {
    let mut builders = [NodeBuilder::new("buyer"), NodeBuilder::new("press")]
        .map(|builder| builder.storage(Storage::Disk).transport(transport));
    builders[role] = crash(builders[role].clone());
    start_builders(builders)
}

/// Runs the complete session with a node that crashes whenever it has passed a point this many times since its start. Returns how
/// often it crashed.
fn run_with_repeated_crashes(role: usize, transport: Transport, point: &str, passes: usize) -> usize {
    let pair =
        start_crashing(role, transport, |builder| builder.crash_always_at(&format!("{point}:{passes}")));
    let script = Script::agreed(&pair);
    let session = run_script(pair.each_ref(), &script, |_, _, _| {});
    assert_same_end(pair.each_ref(), &script, &session);
    pair[role].starts() - 1
}

fn crash_everywhere(role: usize, transport: Transport) {
    std::thread::scope(|scope| {
        for (point, passes) in CRASH_POINTS {
            scope.spawn(move || {
                let crashes = run_with_repeated_crashes(role, transport, point, passes);
                // The buyer's program makes seven requests, and each side sends at least eight messages.
                let expected = if passes == 1 { 7 } else { 3 };
                assert!(crashes >= expected, "{point}: only {crashes} crashes");
            });
        }
    });
}

#[test]
fn a_buyer_that_crashes_at_every_step_loses_and_duplicates_nothing() {
    crash_everywhere(BUYER, Transport::Http);
}

#[test]
fn a_press_that_crashes_at_every_step_loses_and_duplicates_nothing() {
    crash_everywhere(PRESS, Transport::Http);
}

#[test]
fn nodes_that_crash_at_every_store_lose_and_duplicate_nothing_over_websocket() {
    for role in [BUYER, PRESS] {
        assert!(run_with_repeated_crashes(role, Transport::WebSocket, "store.after", 1) >= 8);
    }
}

#[test]
fn both_nodes_can_crash_after_every_store() {
    let builders = [NodeBuilder::new("buyer"), NodeBuilder::new("press")]
        .map(|builder| builder.storage(Storage::Disk).crash_always_at("store.after:1"));
    let pair = start_builders(builders);
    let script = Script::agreed(&pair);
    let session = run_script(pair.each_ref(), &script, |_, _, _| {});
    assert_same_end(pair.each_ref(), &script, &session);
}

/// Kills a node with SIGKILL after each message: at once, or after the other side has acknowledged it.
fn kill_after_each_message(role: usize, waits_for_acknowledgement: bool) {
    let pair = start_crashing(role, Transport::Http, |builder| builder);
    let script = Script::agreed(&pair);
    let session = run_script(pair.each_ref(), &script, |session, sender, position| {
        if waits_for_acknowledgement {
            pair[sender].wait_for(session, "the acknowledgement", |view| {
                view.message_count() >= position && view.is_acknowledged()
            });
        }
        pair[role].restart();
    });
    assert_same_end(pair.each_ref(), &script, &session);
    assert!(pair[role].starts() > 15);
}

#[test]
fn a_node_that_is_killed_right_after_each_message_loses_and_duplicates_nothing() {
    std::thread::scope(|scope| {
        for role in [BUYER, PRESS] {
            scope.spawn(move || kill_after_each_message(role, false));
        }
    });
}

#[test]
fn a_node_that_is_killed_after_each_acknowledgement_loses_and_duplicates_nothing() {
    std::thread::scope(|scope| {
        for role in [BUYER, PRESS] {
            scope.spawn(move || kill_after_each_message(role, true));
        }
    });
}

/// Crashes once in each session, at every pass of every point. `SAYSO_CRASH_MATRIX=full` tests every pass, otherwise a few.
#[test]
fn one_crash_at_any_point_of_a_session_loses_and_duplicates_nothing() {
    let is_full = std::env::var("SAYSO_CRASH_MATRIX").is_ok_and(|value| value == "full");
    let stride = if is_full { 1 } else { 7 };
    let (mut offset, mut sessions, mut crashes) = (0, 0, 0);
    for role in [BUYER, PRESS] {
        for (point, _) in CRASH_POINTS {
            offset += 1;
            for pass in (1 + offset % stride..).step_by(stride) {
                let pair = start_crashing(role, Transport::Http, |builder| {
                    builder.crash_at(&format!("{point}:{pass}"))
                });
                let script = Script::agreed(&pair);
                let session = run_script(pair.each_ref(), &script, |_, _, _| {});
                assert_same_end(pair.each_ref(), &script, &session);
                sessions += 1;
                crashes += pair[role].starts() - 1;
                // The session does not pass the point that often.
                if pair[role].starts() == 1 {
                    break;
                }
            }
        }
    }
    println!("{sessions} sessions, {crashes} crashes");
    assert!(crashes >= CRASH_POINTS.len());
}
