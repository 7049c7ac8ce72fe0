//! Who may answer a permission request, and what an answer covers.

use serde_json::{Value, json};
use testing::hub::HubProcess;

use super::actors::{
    Gate, Listener, always_options, cancel_request, delete_call, once_options, permission_request, selected,
};

fn resolved(listener: &mut Listener, question: &Value) -> Value {
    let token = question["reply_token"].clone();
    listener.wait_for("state.changed", |event| event["extensions"]["sayso"]["reply_token"] == token)
}

#[test]
fn a_listener_says_yes_and_the_agent_gets_the_option_that_allows_once() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_turn(&hub);
    gate.request(7, &delete_call(), &once_options());
    let question = listener.next("awaiting.confirmation");
    assert_eq!(question["action"], "Run: rm -r build.");
    assert_eq!(question["extensions"]["sayso"]["arguments"], json!({"command":"rm -r build"}));
    assert_eq!(question["producer"]["agent_name"], "Tidy");
    listener.decide(&question, "accept");
    // The call is announced before the agent gets its answer.
    let call = listener.next("tool.invoked");
    assert_eq!(
        (&call["risk_level"], &call["summary_normal"]),
        (&json!("high"), &json!("Running: rm -r build."))
    );
    assert_eq!(gate.agent.next(), selected(7, "go"));
    assert_eq!(gate.editor.next(), cancel_request(7));
    // The editor's later answer is dropped; the next message is not.
    gate.editor.select(7, "no");
    gate.update("s1", &json!({"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed","rawOutput":"gone"}));
    let done = listener.next("tool.completed");
    assert_eq!((&done["status"], &done["summary_normal"]), (&json!("success"), &json!("gone")));
    gate.pass_to_agent(
        &json!({"jsonrpc":"2.0","id":9,"method":"session/set_mode","params":{"sessionId":"s1","modeId":"x"}}),
    );
    gate.end_turn("s1", "end_turn");
    assert_eq!(gate.finish(), Some(0));
    let completed = listener.next("session.completed");
    assert_eq!(completed["summary_normal"], "The editor closed the session.");
}

#[test]
fn a_listener_says_no_and_the_agent_gets_the_option_that_rejects_once() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_turn(&hub);
    gate.request("req-1", &delete_call(), &once_options());
    let question = listener.next("awaiting.confirmation");
    listener.decide(&question, "reject");
    assert_eq!(gate.agent.next(), selected("req-1", "no"));
    assert_eq!(gate.editor.next(), cancel_request("req-1"));
    gate.editor.select("req-1", "go");
    gate.update("s1", &json!({"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"failed"}));
    gate.end_turn("s1", "end_turn");
    assert_eq!(gate.finish(), Some(0));
    let events = listener.collect_until("session.completed");
    assert!(events.iter().all(|event| event["type"] != "aaep:agent.tool.invoked"), "{events:?}");
}

#[test]
fn the_editor_answers_first_and_the_question_is_withdrawn() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_turn(&hub);
    gate.request(1, &delete_call(), &once_options());
    let question = listener.next("awaiting.confirmation");
    gate.pass_to_agent(&selected(1, "go"));
    let outcome = resolved(&mut listener, &question);
    assert_eq!(outcome["extensions"]["sayso"]["by"], "cancelled", "{outcome}");
    // A late yes does nothing.
    listener.decide(&question, "accept");
    let call = listener.next("tool.invoked");
    assert_eq!(call["summary_normal"], "Running: rm -r build. Allowed in the editor.");
    assert_ne!(call["risk_level"], "high");
    gate.pass_to_agent(
        &json!({"jsonrpc":"2.0","id":9,"method":"session/set_mode","params":{"sessionId":"s1","modeId":"x"}}),
    );
    gate.pass_to_editor(&json!({"jsonrpc":"2.0","id":9,"result":{}}));
    assert_eq!(gate.finish(), Some(0));
}

#[test]
fn the_editor_refuses_and_listeners_hear_it() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_turn(&hub);
    gate.request(1, &delete_call(), &once_options());
    listener.next("awaiting.confirmation");
    gate.pass_to_agent(&selected(1, "no"));
    let refused = listener.next("progress.updated");
    assert_eq!(refused["summary_normal"], "Refused in the editor. Run: rm -r build.");
    gate.update("s1", &json!({"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"failed"}));
    assert_eq!(gate.finish(), Some(0));
    let events = listener.collect_until("session.completed");
    assert!(events.iter().all(|event| event["type"] != "aaep:agent.tool.invoked"), "{events:?}");
}

#[test]
fn exactly_one_of_two_simultaneous_answers_reaches_the_agent() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_turn(&hub);
    for round in 0..20 {
        gate.request(round, &delete_call(), &once_options());
        let question = listener.next("awaiting.confirmation");
        listener.decide(&question, "reject");
        gate.editor.select(round, "go");
        // The editor's next request ends this round: everything before it belongs to this round.
        let marker = json!({"jsonrpc":"2.0","id":format!("b{round}"),"method":"session/list","params":{}});
        gate.editor.send(&marker);
        let mut answers = Vec::new();
        loop {
            let message = gate.agent.next();
            if message["method"] == "session/list" {
                break;
            }
            answers.push(message);
        }
        if answers.is_empty() {
            // The editor's answer was dropped, and the listener's is on its way.
            answers.push(gate.agent.next());
        }
        assert_eq!(answers.len(), 1, "{answers:?}");
        let is_editors = answers[0] == selected(round, "go");
        assert!(is_editors || answers[0] == selected(round, "no"), "{answers:?}");
        if !is_editors {
            assert_eq!(gate.editor.next(), cancel_request(round));
        }
    }
    assert_eq!(gate.finish(), Some(0));
}

#[test]
fn always_options_are_offered_as_choices_and_only_a_choice_selects_one() {
    for (choice, option) in [("option_1", "forever"), ("option_2", "go"), ("option_3", "no")] {
        let hub = HubProcess::start_in_memory();
        let mut listener = Listener::connect(&hub);
        let mut gate = Gate::start_turn(&hub);
        gate.request(1, &delete_call(), &always_options());
        let question = listener.next("awaiting.clarification");
        assert_eq!(question["question"], "The agent asks for permission. Run: rm -r build.");
        assert_eq!(
            question["choices"],
            json!([
                {"value":"option_1","label":"Always allow: Allow for this session"},
                {"value":"option_2","label":"Allow once: Allow"},
                {"value":"option_3","label":"Reject once: Reject"},
            ])
        );
        assert_eq!(question["extensions"]["sayso"]["arguments"], json!({"command":"rm -r build"}));
        listener.choose(&question, choice);
        assert_eq!(gate.agent.next(), selected(1, option));
        assert_eq!(gate.editor.next(), cancel_request(1));
        assert_eq!(gate.finish(), Some(0));
    }
}

#[test]
fn an_answer_that_is_not_an_offered_option_does_not_count_and_the_dialog_remains() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_turn(&hub);
    gate.request(1, &delete_call(), &always_options());
    let question = listener.next("awaiting.clarification");
    for answer in ["forever", "go", "option_4", ""] {
        listener.choose(&question, answer);
    }
    // However the hub handles these answers, the agent gets only the editor's answer.
    gate.pass_to_agent(&selected(1, "no"));
    // The editor may answer with anything; that is between it and the agent.
    gate.request(2, &delete_call(), &once_options());
    listener.next("awaiting.confirmation");
    gate.pass_to_agent(&selected(2, "no-such-option"));
    assert_eq!(gate.finish(), Some(0));
}

#[test]
fn options_without_reject_once_are_offered_as_choices_too() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_turn(&hub);
    let options = json!([{"optionId":"go","name":"Yes","kind":"allow_once"},{"optionId":"never","name":"No","kind":"reject_always"}]);
    gate.request(1, &delete_call(), &options);
    let question = listener.next("awaiting.clarification");
    assert_eq!(question["choices"][1]["label"], "Always reject: No");
    gate.pass_to_agent(&selected(1, "never"));
    assert_eq!(gate.finish(), Some(0));
}

#[test]
fn a_cancelled_turn_withdraws_the_question_and_the_editor_answers_the_agent() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_turn(&hub);
    gate.request(1, &delete_call(), &once_options());
    let question = listener.next("awaiting.confirmation");
    gate.pass_to_agent(&json!({"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s1"}}));
    assert_eq!(resolved(&mut listener, &question)["extensions"]["sayso"]["by"], "cancelled");
    listener.decide(&question, "accept");
    gate.pass_to_agent(&json!({"jsonrpc":"2.0","id":1,"result":{"outcome":{"outcome":"cancelled"}}}));
    gate.end_turn("s1", "cancelled");
    let idle = listener.wait_for("state.changed", |event| event["to_state"] == "idle");
    assert_eq!(idle["summary_normal"], "The turn was cancelled.");
    assert_eq!(gate.finish(), Some(0));
}

#[test]
fn a_request_that_the_agent_withdraws_is_withdrawn_at_the_hub() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_turn(&hub);
    gate.request(1, &delete_call(), &once_options());
    let question = listener.next("awaiting.confirmation");
    gate.pass_to_editor(&cancel_request(1));
    assert_eq!(resolved(&mut listener, &question)["extensions"]["sayso"]["by"], "cancelled");
    gate.pass_to_agent(&json!({"jsonrpc":"2.0","id":1,"error":{"code":-32800,"message":"cancelled"}}));
    assert_eq!(gate.finish(), Some(0));
}

#[test]
fn a_person_who_stops_the_session_cancels_the_turn() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_turn(&hub);
    gate.request(1, &delete_call(), &once_options());
    let question = listener.next("awaiting.confirmation");
    listener.stop(question["session_id"].as_str().unwrap());
    assert_eq!(
        gate.agent.next(),
        json!({"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s1"}})
    );
    assert_eq!(
        gate.agent.next(),
        json!({"jsonrpc":"2.0","id":1,"result":{"outcome":{"outcome":"cancelled"}}})
    );
    assert_eq!(gate.editor.next(), cancel_request(1));
    gate.editor.select(1, "go");
    // The rest of the turn is not heard, the next turn is.
    gate.update(
        "s1",
        &json!({"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Stopped."}}),
    );
    gate.end_turn("s1", "cancelled");
    gate.prompt("s1", "Go on.");
    let started = listener.next("session.started");
    assert_eq!(started["summary_normal"], "Working on: Go on.");
    assert_eq!(gate.finish(), Some(0));
}

#[test]
fn a_call_that_changes_while_the_person_is_asked_is_left_to_the_editor() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_turn(&hub);
    gate.request(1, &delete_call(), &once_options());
    let question = listener.next("awaiting.confirmation");
    let change =
        json!({"sessionUpdate":"tool_call_update","toolCallId":"t1","rawInput":{"command":"rm -r /"}});
    gate.update("s1", &change);
    let alarm = listener.wait_for("tool.completed", |event| event["status"] == "error");
    assert_eq!(
        alarm["summary_normal"],
        "Warning! While you were being asked, the agent changed the call (command). It is now: Running: rm -r /. Your answer no longer counts; answer in the editor."
    );
    assert_eq!(resolved(&mut listener, &question)["extensions"]["sayso"]["by"], "cancelled");
    listener.decide(&question, "accept");
    gate.pass_to_agent(&selected(1, "no"));
    assert_eq!(gate.finish(), Some(0));
}

#[test]
fn a_call_that_changes_after_a_yes_is_announced_as_an_alarm() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_turn(&hub);
    gate.request(1, &delete_call(), &once_options());
    let question = listener.next("awaiting.confirmation");
    listener.decide(&question, "accept");
    gate.agent.next();
    gate.editor.next();
    let change = json!({"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"in_progress","rawInput":{"command":"rm -r build","cwd":"/"}});
    gate.update("s1", &change);
    let alarm = listener.wait_for("tool.completed", |event| event["status"] == "error");
    let text = alarm["summary_normal"].as_str().unwrap();
    assert!(text.starts_with("Warning! After the call was allowed, the agent changed it (cwd)."), "{text}");
    assert_eq!(gate.finish(), Some(0));
}

#[test]
fn a_call_without_input_is_bound_to_its_title() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_turn(&hub);
    let call =
        json!({"toolCallId":"t1","title":"touch marker","kind":"execute","status":"pending","locations":[]});
    gate.request(1, &call, &once_options());
    let question = listener.next("awaiting.confirmation");
    assert_eq!(question["action"], "Run: touch marker.");
    assert_eq!(question["extensions"]["sayso"]["arguments"], json!({"title":"touch marker"}));
    listener.decide(&question, "accept");
    assert_eq!(gate.agent.next(), selected(1, "go"));
    gate.editor.next();
    let change = json!({"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed","title":"rm marker"});
    gate.update("s1", &change);
    let alarm = listener.wait_for("tool.completed", |event| event["status"] == "error");
    assert!(alarm["summary_normal"].as_str().unwrap().contains("its title"), "{alarm}");
    assert_eq!(gate.finish(), Some(0));
}

#[test]
fn a_refused_call_that_runs_anyway_is_announced_as_an_alarm() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_turn(&hub);
    gate.request(1, &delete_call(), &once_options());
    let question = listener.next("awaiting.confirmation");
    listener.decide(&question, "reject");
    gate.agent.next();
    gate.editor.next();
    gate.update("s1", &json!({"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed"}));
    let alarm = listener.wait_for("tool.completed", |event| event["status"] == "error");
    assert_eq!(
        alarm["summary_normal"],
        "Warning! The agent did it although it was refused. Running: rm -r build."
    );
    assert_eq!(gate.finish(), Some(0));
}

#[test]
fn several_sessions_and_requests_are_independent() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_turn(&hub);
    gate.prompt("s2", "Tidy the other folder.");
    gate.pass_to_editor(&permission_request("s1", 1, &delete_call(), &once_options()));
    let first = listener.next("awaiting.confirmation");
    gate.pass_to_editor(&permission_request("s2", 2, &delete_call(), &once_options()));
    let second = listener.next("awaiting.confirmation");
    assert_ne!(first["session_id"], second["session_id"]);
    listener.decide(&second, "accept");
    assert_eq!(gate.agent.next(), selected(2, "go"));
    assert_eq!(gate.editor.next(), cancel_request(2));
    listener.decide(&first, "reject");
    assert_eq!(gate.agent.next(), selected(1, "no"));
    assert_eq!(gate.editor.next(), cancel_request(1));
    assert_eq!(gate.finish(), Some(0));
}

#[test]
fn an_id_that_is_used_twice_is_left_to_the_editor() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_turn(&hub);
    gate.request(1, &delete_call(), &once_options());
    let question = listener.next("awaiting.confirmation");
    gate.request(1, &json!({"toolCallId":"t2","title":"Another call"}), &once_options());
    assert_eq!(resolved(&mut listener, &question)["extensions"]["sayso"]["by"], "cancelled");
    listener.decide(&question, "accept");
    gate.pass_to_agent(&selected(1, "no"));
    gate.pass_to_agent(&selected(1, "no"));
    assert_eq!(gate.finish(), Some(0));
}

#[test]
fn without_a_listener_the_editors_dialog_remains() {
    let hub = HubProcess::start_in_memory();
    for options in [once_options(), always_options()] {
        let mut gate = Gate::start_turn(&hub);
        gate.request(1, &delete_call(), &options);
        gate.wait_for_log("no answer from a listener (nobody could be asked); the editor's dialog remains");
        gate.pass_to_agent(&selected(1, "go"));
        assert_eq!(gate.finish(), Some(0));
    }
}

#[test]
fn a_listener_that_leaves_gives_no_answer() {
    let hub = HubProcess::start_in_memory_with(&["--hub-resume-window", "1s"]);
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_turn(&hub);
    gate.request(1, &delete_call(), &once_options());
    listener.next("awaiting.confirmation");
    drop(listener);
    gate.wait_for_log("no answer from a listener (everybody who could have answered has disconnected)");
    gate.pass_to_agent(&selected(1, "go"));
    assert_eq!(gate.finish(), Some(0));
}
