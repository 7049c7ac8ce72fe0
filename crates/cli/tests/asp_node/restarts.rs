//! What a node keeps over a restart: deadlines, and sessions that began with earlier keys.

use crate::script::{BUYER, PRESS, Script, assert_same_end, run_script};
use crate::test_node::{Storage, Transport, View, poll, start_pair, timestamp_in};

#[test]
fn a_deadline_that_passed_while_the_node_was_down_has_passed() {
    let [buyer, press] = start_pair(|builder| builder.storage(Storage::Disk));
    let valid_until = timestamp_in(2);
    let response = buyer.try_invite(&press.agent, "a talk", 2).unwrap();
    let session = response.json_str("sessionId");
    press.wait_for(&session, "the invitation", |view| view.state() == "INVITED");
    let [buyer, press] = [buyer, press].map(|node| {
        node.restart_with(|builder| {
            poll("the deadline", || (timestamp_in(-1) > valid_until).then_some(()));
            builder
        })
    });
    for node in [&buyer, &press] {
        let view = node.wait_for(&session, "the timeout", View::is_terminal);
        assert_eq!(view.0["outcome"]["reason"], "timeout: the invitation timer expired");
    }
    assert_eq!(buyer.transcript(&session), press.transcript(&session));
}

/// Replaces the buyer's keys in the middle of a session.
fn rotate_keys(transport: Transport) {
    let pair = start_pair(|builder| builder.storage(Storage::Disk).transport(transport));
    let script = Script::agreed(&pair);
    let session = run_script(pair.each_ref(), &script, |_, _, position| {
        if position == 6 || position == 11 {
            pair[BUYER].builder.keygen(pair[BUYER].folder.path(), &["--rotate"]);
            pair[BUYER].restart();
        }
    });
    assert_same_end(pair.each_ref(), &script, &session);
    // The next session uses the new keys.
    let script = Script::agreed(&pair).with_subject("with new keys");
    let next = run_script(pair.each_ref(), &script, |_, _, _| {});
    assert_same_end(pair.each_ref(), &script, &next);
    assert_ne!(pair[PRESS].cards(&session), pair[PRESS].cards(&next));
}

#[test]
fn a_session_continues_after_a_key_rotation_over_http() {
    rotate_keys(Transport::Http);
}

#[test]
fn a_session_continues_after_a_key_rotation_over_websocket() {
    rotate_keys(Transport::WebSocket);
}
