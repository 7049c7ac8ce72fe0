//! Whatever is killed or suspended during a question, the agent gets no yes that nobody has given.

use serde_json::json;
use testing::hub::HubProcess;

use super::actors::{Gate, Listener, delete_call, once_options, selected};

#[test]
fn a_gate_that_is_killed_during_a_question_answers_nothing_even_after_a_yes() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_turn(&hub);
    gate.request(1, &delete_call(), &once_options());
    let question = listener.next("awaiting.confirmation");
    gate.signal("-KILL");
    assert_eq!(gate.wait(), None);
    listener.decide(&question, "accept");
    gate.wait_until_agent_is_gone();
    assert_eq!(gate.agent.next_line(), "", "the agent gets no answer");
    assert_eq!(gate.editor.next_line(), "", "the editor's dialog is not withdrawn by an answer");
}

#[test]
fn an_editor_that_goes_away_during_a_question_answers_nothing_even_after_a_yes() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_turn(&hub);
    gate.request(1, &delete_call(), &once_options());
    let question = listener.next("awaiting.confirmation");
    gate.editor.close();
    // The agent may still work on what it has read.
    assert_eq!(gate.agent.next_line(), "", "the agent gets the end of its input, and no answer");
    listener.next("state.changed");
    listener.decide(&question, "accept");
    assert_eq!(gate.wait(), Some(128 + 15));
    gate.wait_until_agent_is_gone();
}

#[test]
fn a_gate_that_was_suspended_when_the_answer_came_passes_on_exactly_that_answer() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    for (decision, option) in [("accept", "go"), ("reject", "no")] {
        let mut gate = Gate::start_turn(&hub);
        gate.request(1, &delete_call(), &once_options());
        let question = listener.next("awaiting.confirmation");
        gate.signal("-STOP");
        listener.decide(&question, decision);
        listener.next("state.changed");
        gate.signal("-CONT");
        assert_eq!(gate.agent.next(), selected(1, option));
        assert_eq!(gate.finish(), Some(0));
        listener.next("session.completed");
    }
}

#[test]
fn a_hub_that_is_suspended_during_a_question_leaves_the_dialog() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_turn(&hub);
    gate.request(1, &delete_call(), &once_options());
    let question = listener.next("awaiting.confirmation");
    hub.signal("-STOP");
    let text = json!({"type":"text","text":"Waiting."});
    gate.update("s1", &json!({"sessionUpdate":"agent_message_chunk","content":text}));
    gate.pass_to_agent(&selected(1, "no"));
    hub.signal("-CONT");
    // A late yes is not a second answer: the next line that the agent gets is the editor's.
    listener.decide(&question, "accept");
    listener.next("state.changed");
    gate.pass_to_agent(
        &json!({"jsonrpc":"2.0","id":9,"method":"session/set_mode","params":{"sessionId":"s1","modeId":"x"}}),
    );
    gate.end_turn("s1", "end_turn");
    assert_eq!(gate.finish(), Some(0));
}
