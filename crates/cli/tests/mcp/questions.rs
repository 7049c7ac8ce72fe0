//! Which calls need a question, and what a yes or a no does.

use serde_json::{Value, json};
use testing::hub::HubProcess;

use super::support::{Gate, Listener, TRUST, refusal};

#[test]
fn a_call_is_made_only_after_a_yes_to_server_tool_and_arguments() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start(Some(&hub), &[], &[]);
    gate.list_tools();
    gate.call(1, "delete", &json!({"path": "/tmp/x", "recursive": true}));
    let question = listener.question();
    assert_eq!(question["action"], "Use delete of the server files. path: /tmp/x. recursive: yes.");
    assert_eq!(question["consequence"], "The server says that this tool may destroy or overwrite something.");
    assert_eq!((&question["risk_level"], &question["irreversible"]), (&json!("high"), &json!(true)));
    gate.sync();
    assert!(gate.seen_calls().is_empty());
    listener.reply(&question, "accept");
    assert_eq!(gate.answer(1)["result"]["content"][0]["text"], "delete done");
    assert_eq!(gate.seen_calls(), [("delete".to_owned(), json!(1))]);
    let invoked = listener.wait_for("tool.invoked");
    assert_eq!((&invoked["tool"], &invoked["irreversible"]), (&json!("files.delete"), &json!(true)));
    assert_eq!(listener.wait_for("tool.completed")["status"], "success");
    // The yes was for that call. A call with other arguments needs another yes.
    gate.call(2, "delete", &json!({"path": "/tmp/y", "recursive": true}));
    listener.answer("reject");
    let answer = gate.answer(2);
    let sentence = refusal(&answer);
    assert_eq!(
        sentence,
        "delete of files was not called: the person refused. Do not call it again with these arguments unless the person asks for it."
    );
    // The same call again also needs another yes.
    gate.call(3, "delete", &json!({"recursive": true, "path": "/tmp/x"}));
    listener.answer("reject");
    refusal(&gate.answer(3));
    gate.sync();
    assert_eq!(gate.seen_calls().len(), 1);
}

#[test]
fn untrusted_annotations_can_only_add_questions() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    // The server says that all its tools only read.
    let mut gate = Gate::start(Some(&hub), &[], &["lie"]);
    gate.list_tools();
    gate.call(1, "delete", &json!({}));
    let question = listener.question();
    assert!(question["consequence"].as_str().unwrap().contains("nobody has confirmed"), "{question}");
    listener.reply(&question, "reject");
    refusal(&gate.answer(1));
    assert!(gate.seen_calls().is_empty());
    // Unknown and unannotated tools are asked about, even if the server is trusted.
    let mut gate = Gate::start_trusting(Some(&hub), TRUST, &["no-annotations"]);
    gate.call(1, "read", &json!({}));
    assert!(listener.answer("reject")["consequence"].as_str().unwrap().contains("has not described"));
    refusal(&gate.answer(1));
    gate.list_tools();
    gate.call(2, "read", &json!({}));
    assert!(listener.answer("reject")["consequence"].as_str().unwrap().contains("does not say what"));
    refusal(&gate.answer(2));
    assert!(gate.seen_calls().is_empty());
}

#[test]
fn a_tool_that_was_redefined_is_asked_about_even_after_a_restart() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_trusting(Some(&hub), TRUST, &["redefine"]);
    gate.list_tools();
    gate.call(1, "read", &json!({}));
    assert_eq!(gate.answer(1)["result"]["content"][0]["text"], "read done");
    // The second list describes the tool differently.
    gate.list_tools();
    gate.call(2, "read", &json!({}));
    assert!(listener.question()["consequence"].as_str().unwrap().contains("has changed"));
    gate.close_input();
    assert_eq!(gate.wait(), Some(0));
    // The pinned definition is stored, so another process notices the change, too.
    let folder = std::mem::replace(&mut gate.folder, tempfile::tempdir().unwrap());
    drop(gate);
    let trust = folder.path().join("trust.toml");
    let mut gate = Gate::start_in(folder, Some(&hub), &["--trust", trust.to_str().unwrap()], &["redefine"]);
    gate.list_tools();
    gate.list_tools();
    gate.call(1, "read", &json!({}));
    let question = listener.question();
    assert!(question["consequence"].as_str().unwrap().contains("has changed"), "{question}");
    // A yes pins the new definition.
    listener.reply(&question, "accept");
    gate.answer(1);
    gate.call(2, "read", &json!({"again": true}));
    assert_eq!(gate.answer(2)["result"]["content"][0]["text"], "read done");
    assert_eq!(gate.seen_calls().len(), 3);
}

#[test]
fn without_a_hub_or_a_listener_a_call_is_refused_with_a_sentence() {
    let mut gate = Gate::start(None, &[], &[]);
    gate.list_tools();
    gate.call(1, "delete", &json!({}));
    let answer = gate.answer(1);
    assert!(refusal(&answer).contains("sayso's hub could not be reached"), "{answer}");
    let hub = HubProcess::start_in_memory();
    let mut gate = Gate::start(Some(&hub), &[], &[]);
    gate.call(1, "delete", &json!({}));
    let answer = gate.answer(1);
    assert!(refusal(&answer).contains("nobody could be asked"), "{answer}");
    gate.sync();
    assert!(gate.seen_calls().is_empty());
}

#[test]
fn a_call_that_the_host_cancels_is_never_made_and_a_late_yes_counts_once() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start(Some(&hub), &[], &[]);
    gate.list_tools();
    let arguments = json!({"path": "x"});
    gate.call(1, "delete", &arguments);
    let question = listener.question();
    gate.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}));
    listener.wait_for_text("no longer waits");
    listener.reply(&question, "accept");
    listener.wait_for_text("Your yes is kept for 5 minutes");
    gate.sync();
    assert!(gate.seen_calls().is_empty());
    // The identical call uses the yes, which is announced. The server has not seen the cancellation of a call that it never got.
    gate.call(2, "delete", &arguments);
    assert_eq!(gate.answer(2)["result"]["content"][0]["text"], "delete done");
    listener.wait_for_text("Your earlier yes is used");
    assert_eq!(listener.wait_for("tool.invoked")["tool"], "files.delete");
    assert!(!String::from_utf8(gate.seen_raw()).unwrap().contains("cancelled"));
    // It counts only once.
    gate.call(3, "delete", &arguments);
    listener.answer("reject");
    refusal(&gate.answer(3));
    assert_eq!(gate.seen_calls(), [("delete".to_owned(), json!(2))]);
}

#[test]
fn a_late_yes_does_not_count_for_other_arguments() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start(Some(&hub), &[], &[]);
    gate.call(1, "delete", &json!({"path": "x"}));
    let question = listener.question();
    gate.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}));
    listener.wait_for_text("no longer waits");
    listener.reply(&question, "accept");
    listener.wait_for_text("Your yes is kept");
    for (id, tool, arguments) in [(2, "delete", json!({"path": "y"})), (3, "write", json!({"path": "x"}))] {
        gate.call(id, tool, &arguments);
        listener.answer("reject");
        refusal(&gate.answer(id));
    }
    assert!(gate.seen_calls().is_empty());
}

#[test]
fn a_retry_joins_the_open_question_and_the_call_is_made_once() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start(Some(&hub), &[], &[]);
    gate.call(1, "delete", &json!({"path": "x", "n": 1}));
    let question = listener.question();
    // The same arguments in another notation, under another id.
    gate.send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":\"two\",\"method\":\"tools/call\",\"params\":{\"arguments\":{\"n\":1.0,\"path\":\"\\u0078\"},\"name\":\"delete\"}}\n");
    gate.sync();
    listener.reply(&question, "accept");
    let first = gate.next();
    let second = gate.next();
    let ids = [&first["id"], &second["id"]];
    assert!(ids.contains(&&json!(1)) && ids.contains(&&json!("two")), "{first} {second}");
    assert_eq!(first["result"], second["result"]);
    assert_eq!(gate.seen_calls(), [("delete".to_owned(), json!("two"))]);
}

#[test]
fn progress_is_sent_only_where_the_host_gave_a_token() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start(Some(&hub), &[], &[]);
    let call = |id: u32, meta: &Value| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "delete", "arguments": {"n": id}, "_meta": meta}});
    gate.send(&call(1, &json!({"progressToken": 7})));
    let progress = gate.next();
    assert_eq!(
        (&progress["method"], &progress["params"]["progressToken"]),
        (&json!("notifications/progress"), &json!(7))
    );
    // The tool's own progress may start at 0, and must not go back.
    assert!(progress["params"]["progress"].as_f64().unwrap() < 0.0, "{progress}");
    gate.send(&call(2, &json!({"other": 7})));
    listener.answer("reject");
    listener.answer("reject");
    let answers = [gate.next(), gate.next()];
    assert!(answers.iter().all(|answer| answer["result"]["isError"] == true), "{answers:?}");
}

#[test]
fn a_call_that_needs_input_is_asked_about_once() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start(Some(&hub), &[], &[]);
    let call = |id: u32, path: &str, more: Value| {
        let mut params = json!({"name": "input", "arguments": {"path": path}});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    let retry = json!({"inputResponses": {"q": {"action": "accept"}}, "requestState": "state-1"});
    gate.send(&call(1, "a", json!({})));
    listener.answer("accept");
    assert_eq!(gate.answer(1)["result"]["resultType"], "input_required");
    listener.wait_for_text("needs more information");
    // The retry with changed arguments, or with another state, needs another yes.
    gate.send(&call(2, "b", retry.clone()));
    listener.answer("reject");
    refusal(&gate.answer(2));
    gate.send(&call(3, "a", json!({"inputResponses": {}, "requestState": "forged"})));
    listener.answer("reject");
    refusal(&gate.answer(3));
    // The real retry needs no other yes. To listeners, it is still the same call, which completes only now.
    gate.send(&call(4, "a", retry.clone()));
    assert_eq!(gate.answer(4)["result"]["content"][0]["text"], "input done");
    let completed = loop {
        let event = listener.next();
        assert_ne!(event["type"], "aaep:agent.tool.invoked", "{event}");
        if event["type"] == "aaep:agent.tool.completed" {
            break event;
        }
    };
    assert_eq!(completed["status"], "success");
    // A retry counts once.
    gate.send(&call(5, "a", retry));
    listener.answer("reject");
    refusal(&gate.answer(5));
    assert_eq!(gate.seen_calls(), [("input".to_owned(), json!(1)), ("input".to_owned(), json!(4))]);
}

#[test]
fn a_task_is_not_announced_as_done_before_it_is() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start(Some(&hub), &[], &[]);
    gate.call(1, "task", &json!({}));
    listener.answer("accept");
    assert_eq!(gate.answer(1)["result"]["resultType"], "task");
    listener.wait_for_text("has not finished yet");
    gate.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tasks/get", "params": {"taskId": "task-1"}}));
    assert_eq!(gate.answer(2)["result"]["status"], "completed");
    assert_eq!(listener.wait_for("tool.completed")["status"], "success");
}

#[test]
fn gated_calls_in_a_batch_are_held_and_the_host_gets_one_batch() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_trusting(Some(&hub), TRUST, &[]);
    gate.list_tools();
    let call = |id: u32, tool: &str| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {}}});
    // A batch without a gated call passes unchanged.
    gate.send(&json!([call(1, "read"), {"jsonrpc": "2.0", "id": 2, "method": "ping"}]));
    let answers = gate.next();
    assert_eq!(answers.as_array().unwrap().len(), 2, "{answers}");
    gate.send(&json!([call(3, "delete"), call(4, "read"), {"jsonrpc": "2.0", "method": "notifications/x"}, {"jsonrpc": "2.0", "id": 5, "method": "ping"}, call(6, "write")]));
    listener.answer("accept");
    listener.answer("reject");
    let answers = gate.next();
    let answers = answers.as_array().unwrap();
    let mut ids: Vec<_> = answers.iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [3, 4, 5, 6]);
    let find = |id| answers.iter().find(|answer| answer["id"] == id).unwrap();
    assert_eq!(find(3)["result"]["content"][0]["text"], "delete done");
    refusal(find(6));
    let tools: Vec<_> = gate.seen_calls().into_iter().map(|(tool, _)| tool).collect();
    assert_eq!(tools, ["read", "read", "delete"]);
}

#[test]
fn a_person_who_stops_the_session_stops_running_calls_and_is_asked_before_it_goes_on() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate =
        Gate::start_trusting(Some(&hub), "[servers.files]\nannotations = true\nallow = [\"silent\"]\n", &[]);
    gate.list_tools();
    gate.call(1, "silent", &json!({}));
    let session = listener.wait_for("tool.invoked")["session_id"].clone();
    listener.stop(&session);
    let answer = gate.answer(1);
    assert!(refusal(&answer).contains("The person stopped this work"), "{answer}");
    // A tool that passed before now needs a yes.
    gate.call(2, "read", &json!({}));
    assert!(listener.answer("accept")["consequence"].as_str().unwrap().contains("You stopped"));
    gate.answer(2);
    gate.call(3, "read", &json!({"n": 3}));
    gate.answer(3);
    assert!(String::from_utf8(gate.seen_raw()).unwrap().contains("notifications/cancelled"));
}

#[test]
fn an_elicitation_goes_to_host_and_listener_and_the_first_answer_counts() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start(Some(&hub), &["--elicit"], &[]);
    let request = json!({"message": "Who are you?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}});
    gate.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "elicit", "params": {"request": request}}));
    assert_eq!(gate.next()["method"], "elicitation/create");
    gate.answer(1);
    let question = listener.clarify(&json!(true));
    assert!(question["question"].as_str().unwrap().contains("Who are you?"), "{question}");
    listener.clarify(&json!("Ana"));
    // The host closes its dialog. Its own answer would come too late and is withheld.
    let cancelled = gate.next();
    assert_eq!(
        (&cancelled["method"], &cancelled["params"]["requestId"]),
        (&json!("notifications/cancelled"), &json!("e1"))
    );
    gate.send(
        &json!({"jsonrpc": "2.0", "id": "e1", "result": {"action": "accept", "content": {"name": "Host"}}}),
    );
    gate.sync();
    let seen = String::from_utf8(gate.seen_raw()).unwrap();
    assert!(seen.contains(r#""action":"accept","content":{"name":"Ana"}"#), "{seen}");
    assert!(!seen.contains("Host"), "{seen}");
    // If the host answers first, the question is withdrawn.
    gate.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "elicit", "params": {"request": request}}));
    gate.answer(2);
    listener.wait_for("awaiting.clarification");
    gate.send(&json!({"jsonrpc": "2.0", "id": "e1", "result": {"action": "decline"}}));
    listener.wait_for("state.changed");
    gate.sync();
    assert!(String::from_utf8(gate.seen_raw()).unwrap().contains("decline"));
}

#[test]
fn a_page_that_the_server_wants_opened_can_be_agreed_to_or_refused_by_a_listener() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    for (id, is_yes, action) in [(1, true, "accept"), (2, false, "decline")] {
        let mut gate = Gate::start(Some(&hub), &["--elicit"], &[]);
        let request = json!({
            "mode": "url", "elicitationId": "x1", "url": "https://pay.example/\u{202e}1", "message": "Please pay."
        });
        gate.send(&json!({"jsonrpc": "2.0", "id": id, "method": "elicit", "params": {"request": request}}));
        gate.answer(id);
        let question = listener.clarify(&json!(is_yes));
        let text = question["question"].as_str().unwrap();
        assert!(text.contains("https://pay.example/") && text.contains("Please pay."), "{text}");
        assert!(!text.contains('\u{202e}'), "{text:?}");
        assert_eq!(gate.next()["method"], "notifications/cancelled");
        gate.sync();
        let seen = String::from_utf8(gate.seen_raw()).unwrap();
        assert!(seen.contains(&format!(r#""id":"e1","result":{{"action":"{action}"}}"#)), "{seen}");
    }
}

#[test]
fn tools_on_each_page_of_a_list_are_known_when_the_host_has_read_that_page() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_trusting(Some(&hub), TRUST, &["pages"]);
    let list = |gate: &mut Gate, id: &str, params: &Value| {
        gate.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": params}));
        gate.answer(id)["result"].clone()
    };
    let names = |page: &Value| {
        let tools = page["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let first = list(&mut gate, "first", &json!({}));
    assert_eq!(
        (names(&first), &first["nextCursor"]),
        (vec!["delete".into(), "write".into(), "read".into()], &json!("3"))
    );
    // `input` only reads, too, but is on the second page.
    gate.call(1, "read", &json!({}));
    assert_eq!(gate.answer(1)["result"]["content"][0]["text"], "read done");
    gate.call(2, "input", &json!({}));
    let question = listener.answer("reject");
    assert!(question["consequence"].as_str().unwrap().contains("has not described this tool"), "{question}");
    refusal(&gate.answer(2));
    let second = list(&mut gate, "second", &json!({"cursor": "3"}));
    assert_eq!(names(&second)[0], "input");
    for (id, tool) in [(3, "input"), (4, "read")] {
        gate.call(id, tool, &json!({}));
        assert!(gate.answer(id)["result"]["isError"].is_null(), "{tool} needs no question");
    }
    assert_eq!(gate.seen_calls().len(), 3);
}
