//! What a node keeps over a restart: deadlines, and sessions that began with earlier keys. Deadlines while the hub does not answer.

use serde_json::json;

use crate::script::{BUYER, PRESS, Script, assert_same_end, run_script};
use crate::test_node::{
    NodeBuilder, POLL_INTERVAL, Storage, Transport, View, poll, start_builders, start_pair, timestamp_in,
};

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

/// A hub that accepts connections and never answers.
fn silent_hub() -> (std::net::TcpListener, String) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

#[test]
fn a_session_that_waits_for_the_hub_does_not_delay_the_deadlines_of_others() {
    let (_listener, hub) = silent_hub();
    let builders = [
        NodeBuilder::new("buyer").argument("--hub").argument(&format!("http://{hub}")),
        NodeBuilder::new("press"),
    ];
    let pair = start_builders(builders);
    // On a slow machine, the hub's time may be over before the other deadline. Then the next attempt decides.
    let is_handled_in_time = (0..5).any(|attempt| {
        let talk = format!("talk {attempt}");
        let request = json!({"peer": pair[1].agent, "subject": talk, "terms": {"proposed_duration": 2},
            "validUntil": timestamp_in(600)});
        let opened = pair[0].try_send("POST", "/agent/v1/asp/sessions", &request.to_string()).unwrap();
        let waiting = opened.json_str("sessionId");
        pair[1].wait_for(&waiting, "the invitation", |view| view.state() == "INVITED");
        pair[1].send(&waiting, "ACCEPT", &json!({"referenceId": format!("prop_{waiting}")}));
        pair[0].wait_for(&waiting, "the introduction", |view| {
            view.state() == "INTRODUCED" && view.is_acknowledged()
        });
        pair[0].send(&waiting, "OBSERVE", &json!({"subject": "the paper"}));
        let other = pair[0].try_invite(&pair[1].agent, "another talk", 3).unwrap().json_str("sessionId");
        std::thread::scope(|scope| {
            // While the hub is asked, the deadline of this session passes, and then that of the other one.
            let asking = scope.spawn(|| {
                let commitment = json!({"commitmentId": "cmt_1", "terms": {"obligations": [
                    {"party": pair[1].agent, "action": "print", "deadline": timestamp_in(3600)}]}});
                pair[0].try_post_message(&waiting, "COMMIT", &commitment).unwrap()
            });
            // The list shows what was handled, and asks for nothing to be handled.
            let is_over = || {
                let list = pair[0].get("/agent/v1/asp/sessions").json();
                let sessions = list["sessions"].as_array().unwrap();
                sessions.iter().all(|entry| entry["sessionId"] != *other || entry["state"] == "FAILED")
            };
            while !asking.is_finished() {
                if is_over() {
                    return true;
                }
                std::thread::sleep(POLL_INTERVAL);
            }
            assert_eq!(asking.join().unwrap().status, 422);
            false
        })
    });
    assert!(is_handled_in_time);
}
