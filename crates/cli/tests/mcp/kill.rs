//! Whatever is killed or stopped during a question, the server does not see the call without a yes.

use serde_json::json;
use testing::cli::send_signal;
use testing::hub::HubProcess;

use super::support::{Gate, Listener, refusal};

#[test]
fn a_hub_that_is_killed_during_a_question_means_no() {
    let mut hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start(Some(&hub), &[], &[]);
    gate.call(1, "write", &json!({}));
    listener.question();
    hub.kill();
    // Other messages still pass while the gate looks for the hub.
    gate.sync();
    let answer = gate.answer(1);
    assert!(refusal(&answer).contains("hub could not be reached"), "{answer}");
    gate.sync();
    assert!(gate.seen_calls().is_empty());
}

#[test]
fn a_hub_that_comes_back_without_its_memory_means_no_and_the_next_call_is_asked_about() {
    let address = testing::hub::reserved_address();
    let arguments = ["--memory", "--open", "--listen", address.as_str()];
    let mut hub = HubProcess::start(&arguments);
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start(Some(&hub), &[], &[]);
    gate.call(1, "write", &json!({}));
    listener.question();
    hub.kill();
    let hub = HubProcess::start(&arguments);
    let mut listener = Listener::connect(&hub);
    refusal(&gate.answer(1));
    gate.call(2, "write", &json!({}));
    listener.answer("accept");
    assert_eq!(gate.answer(2)["result"]["content"][0]["text"], "write done");
    assert_eq!(gate.seen_calls(), [("write".to_owned(), json!(2))]);
}

#[test]
fn a_gate_that_is_killed_during_a_question_makes_no_call_even_after_a_yes() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start(Some(&hub), &[], &[]);
    gate.call(1, "write", &json!({}));
    let question = listener.question();
    gate.sync();
    gate.kill();
    listener.reply(&question, "accept");
    listener.wait_for("state.changed");
    assert!(gate.seen_calls().is_empty());
}

#[test]
fn a_host_that_goes_away_during_a_question_means_no() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start(Some(&hub), &[], &[]);
    gate.call(1, "write", &json!({}));
    let question = listener.question();
    gate.close_input();
    let answer = gate.answer(1);
    assert!(refusal(&answer).contains("connection was closed"), "{answer}");
    // The question is withdrawn, so a yes comes too late.
    listener.reply(&question, "accept");
    assert_eq!(gate.wait(), Some(0));
    assert!(gate.rest().is_empty());
    assert!(gate.seen_calls().is_empty());
}

#[test]
fn a_server_that_exits_during_a_question_ends_the_gate() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start(Some(&hub), &[], &[]);
    gate.call(1, "write", &json!({}));
    let question = listener.question();
    gate.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "exit", "params": {"code": 9}}));
    assert_eq!(gate.wait(), Some(9));
    listener.reply(&question, "accept");
    assert!(gate.seen_calls().is_empty());
}

#[test]
fn a_gate_that_was_suspended_when_the_answer_came_acts_on_it_after_resuming() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    for (id, decision) in [(1, "accept"), (2, "reject")] {
        let mut gate = Gate::start(Some(&hub), &[], &[]);
        gate.call(id, "write", &json!({}));
        let question = listener.question();
        send_signal(&gate.pid(), "-STOP");
        listener.reply(&question, decision);
        listener.wait_for("state.changed");
        assert!(gate.seen_calls().is_empty());
        send_signal(&gate.pid(), "-CONT");
        let answer = gate.answer(id);
        if decision == "accept" {
            assert_eq!(answer["result"]["content"][0]["text"], "write done");
        } else {
            refusal(&answer);
        }
        assert_eq!(gate.seen_calls().len(), usize::from(decision == "accept"));
    }
}

#[test]
fn a_stopped_hub_does_not_stop_other_messages() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_trusting(Some(&hub), super::support::TRUST, &[]);
    gate.list_tools();
    gate.call(1, "write", &json!({}));
    let question = listener.question();
    hub.signal("-STOP");
    for id in 10..200 {
        gate.call(id, "read", &json!({}));
        assert_eq!(gate.answer(id)["result"]["content"][0]["text"], "read done");
    }
    hub.signal("-CONT");
    listener.reply(&question, "accept");
    assert_eq!(gate.answer(1)["result"]["content"][0]["text"], "write done");
}
