//! What happens when a part fails or misbehaves. The gate never answers a request that nobody has answered.

use serde_json::json;
use testing::hub::{HubProcess, reserved_address};

use super::actors::{Gate, Listener, delete_call, once_options, selected};

#[test]
fn without_a_hub_the_editors_dialog_remains_and_this_is_announced_once() {
    let mut gate = Gate::start(&format!("http://{}", reserved_address()), &[]);
    gate.initialize();
    for round in 1..4 {
        gate.prompt("s1", "Clean up.");
        gate.request(round, &delete_call(), &once_options());
        gate.pass_to_agent(&selected(round, "go"));
        gate.end_turn("s1", "end_turn");
    }
    assert_eq!(gate.finish(), Some(0));
    let log = gate.log();
    assert_eq!(log.matches("nothing is heard, and only the editor asks").count(), 1, "{log}");
}

#[test]
fn a_hub_that_is_killed_during_a_question_leaves_the_dialog() {
    let mut hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_turn(&hub);
    gate.request(1, &delete_call(), &once_options());
    listener.next("awaiting.confirmation");
    hub.kill();
    // Everything still passes.
    gate.update(
        "s1",
        &json!({"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Waiting."}}),
    );
    gate.pass_to_agent(&selected(1, "no"));
    gate.end_turn("s1", "end_turn");
    assert_eq!(gate.finish(), Some(0));
}

#[test]
fn a_hub_with_a_journal_that_comes_back_still_takes_the_answer() {
    let (data, address) = (tempfile::tempdir().unwrap(), reserved_address());
    let arguments = ["--open", "--listen", &address, "--data", data.path().to_str().unwrap()];
    let mut hub = HubProcess::start(&arguments);
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_turn(&hub);
    gate.request(1, &delete_call(), &once_options());
    let question = listener.next("awaiting.confirmation");
    hub.kill();
    drop(listener);
    let hub = HubProcess::start(&arguments);
    // Nobody listened when the hub came back, so the question is refused without a person. That does not count as an answer.
    let mut listener = Listener::connect(&hub);
    listener.decide(&question, "accept");
    gate.pass_to_agent(&selected(1, "no"));
    assert_eq!(gate.finish(), Some(0));
}

#[test]
fn an_agent_that_is_killed_ends_the_gate_with_its_code_and_leaves_nothing_behind() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_turn(&hub);
    gate.request(1, &delete_call(), &once_options());
    let question = listener.next("awaiting.confirmation");
    gate.signal_agent("-KILL");
    assert_eq!(gate.wait(), Some(128 + 9));
    gate.wait_until_agent_is_gone();
    let failed = listener.next("session.errored");
    assert_eq!(failed["summary_normal"], "The agent exited with code 137.");
    listener.decide(&question, "accept");
}

#[test]
fn an_agent_that_does_not_exit_by_itself_ends_when_the_editor_is_gone() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_turn(&hub);
    gate.request(1, &delete_call(), &once_options());
    listener.next("awaiting.confirmation");
    gate.editor.close();
    assert_eq!(gate.wait(), Some(128 + 15));
    gate.wait_until_agent_is_gone();
    assert_eq!(listener.next("session.completed")["summary_normal"], "The editor closed the session.");
}

#[test]
fn a_signal_reaches_the_agent_and_its_code_comes_back() {
    let hub = HubProcess::start_in_memory();
    for (signal, code) in [("-TERM", 143), ("-INT", 130), ("-HUP", 129)] {
        let mut gate = Gate::start_turn(&hub);
        gate.signal(signal);
        assert_eq!(gate.wait(), Some(code));
        gate.wait_until_agent_is_gone();
    }
}

#[test]
fn a_gate_that_is_killed_leaves_no_process_behind() {
    let hub = HubProcess::start_in_memory();
    let mut gate = Gate::start_turn(&hub);
    gate.signal("-KILL");
    assert_eq!(gate.wait(), None);
    gate.wait_until_agent_is_gone();
}

#[test]
fn an_agent_that_cannot_be_started_is_an_error_of_the_command() {
    let output = testing::cli::run_sayso(&["acp", "--hub", "http://127.0.0.1:1", "--", "/no/such/agent"], "");
    assert_eq!(output.exit_code, 2);
    assert!(output.stderr.contains("cannot run \"/no/such/agent\""), "{}", output.stderr);
    assert!(output.stdout.is_empty());
    assert_eq!(testing::cli::run_sayso(&["acp"], "").exit_code, 2);
}

#[test]
fn lines_of_any_form_and_size_pass_unchanged() {
    let hub = HubProcess::start_in_memory();
    let mut gate = Gate::start_turn(&hub);
    let huge = format!(
        r#"{{"jsonrpc":"2.0","id":5,"method":"session/request_permission","params":"{}"}}"#,
        "x".repeat(9 << 20)
    );
    let lines: &[&[u8]] = &[
        b"not json at all\n",
        b"\n",
        b"[1,2]\n",
        b"{\"jsonrpc\":\"2.0\",  \"method\":\"_vendor/thing\", \"params\":{\"a\":1,\"a\":2}}\r\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"fs/read_text_file\",\"params\":{\"sessionId\":\"s1\",\"path\":\"/x\"}}\n",
        b"{\"id\":{\"no\":\"id\"},\"method\":\"session/request_permission\"}\n",
        b"{\"id\":4,\"method\":\"session/request_permission\",\"params\":{\"sessionId\":\"s1\",\"toolCall\":{\"toolCallId\":\"a\"},\"options\":[{\"optionId\":\"go\",\"name\":\"a\",\"kind\":\"allow_once\"},{\"optionId\":\"go\",\"name\":\"b\",\"kind\":\"reject_once\"}]}}\n",
        &[0xff, 0xfe, 0x00, b'\n'],
        huge.as_bytes(),
        b"\n",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s1\",\"update\":{\"sessionUpdate\":\"news\"}}}\n",
    ];
    let all = lines.concat();
    // The pipes are smaller than the lines, so somebody must read while the test writes.
    let (agent, editor) = (&mut gate.agent, &mut gate.editor);
    std::thread::scope(|scope| {
        scope.spawn(|| agent.send_raw(&all));
        assert!(editor.read_exact(all.len()) == all, "the editor gets other bytes");
    });
    assert_eq!(gate.finish(), Some(0));
}

#[test]
fn a_request_with_duplicate_names_or_too_many_options_is_left_to_the_editor() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_turn(&hub);
    let duplicate = r#"{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1","title":"ls","title":"rm","kind":"execute"},"options":[{"optionId":"go","name":"Yes","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]}}"#;
    gate.agent.send_raw(format!("{duplicate}\n").as_bytes());
    assert_eq!(gate.editor.next_line(), format!("{duplicate}\n"));
    let option = |number: usize| json!({"optionId":number.to_string(),"name":"Yes","kind":"allow_once"});
    let options: Vec<_> = (0..17).map(option).collect();
    gate.request(2, &delete_call(), &options.into());
    gate.pass_to_agent(&selected(1, "no"));
    gate.pass_to_agent(&selected(2, "0"));
    assert_eq!(gate.finish(), Some(0));
    let events = listener.collect_until("session.completed");
    assert!(events.iter().all(|event| !event["type"].as_str().unwrap().contains("awaiting")), "{events:?}");
}

#[test]
fn a_large_input_is_asked_by_its_digest() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_turn(&hub);
    let call = json!({"toolCallId":"t1","title":"Write a.txt","kind":"edit","rawInput":{"text":"a".repeat(100_000)}});
    gate.request(1, &call, &once_options());
    let question = listener.next("awaiting.confirmation");
    assert_eq!(question["action"], "Change files: Write a.txt.");
    let arguments = &question["extensions"]["sayso"]["arguments"];
    assert!(arguments["input_sha256"].as_str().unwrap().starts_with("sha256:"), "{arguments}");
    listener.decide(&question, "accept");
    assert_eq!(gate.agent.next(), selected(1, "go"));
    assert!(gate.folder().exists());
    gate.agent.close();
}
