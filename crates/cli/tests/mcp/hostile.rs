//! A hostile host and a hostile server: no trick makes the server see a call without a yes.

use serde_json::{Value, json};
use testing::hub::HubProcess;

use super::support::{Gate, Listener, TRUST, refusal};

const CALL: &str = r#""method":"tools/call","params":{"name":"write","arguments":{"path":"x"}}"#;

#[test]
fn messages_that_servers_could_read_differently_are_not_passed_on() {
    let mut gate = Gate::start_trusting(None, TRUST, &[]);
    gate.list_tools();
    let before = gate.seen_raw();
    let lines = [
        // A member twice: some parsers use the first, some the last.
        format!(r#"{{"jsonrpc":"2.0","id":1,{CALL},"method":"ping"}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping",{CALL}}}"#),
        // Another case: some parsers ignore case.
        r#"{"jsonrpc":"2.0","id":1,"Method":"tools/call","params":{"name":"write"}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","METHOD":"tools/call","params":{"name":"write"}}"#
            .to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","Name":"write"}}"#
            .to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","name":"write"}}"#
            .to_owned(),
        // Extensions of JSON that some parsers accept.
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write","arguments":{"x":NaN}}}"#
            .to_owned(),
        format!(r#"{{"jsonrpc":"2.0","id":1,{CALL},}}"#),
        format!("\u{feff}{{\"jsonrpc\":\"2.0\",\"id\":1,{CALL}}}"),
        format!(r#"{{"jsonrpc":"2.0","id":1,{CALL}}} {{"jsonrpc":"2.0","id":2,"method":"ping"}}"#),
        // A carriage return, at which some servers split lines.
        format!("{{\"x\":\r{{\"jsonrpc\":\"2.0\",\"id\":1,{CALL}}}\r}}"),
        // A batch in a batch.
        format!(r#"[[{{"jsonrpc":"2.0","id":1,{CALL}}}]]"#),
        // No usable id.
        format!(r#"{{"jsonrpc":"2.0","id":null,{CALL}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":[1],{CALL}}}"#),
        // No usable parameters.
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["write"]}"#.to_owned(),
    ];
    for line in lines {
        gate.send_raw(format!("{line}\n").as_bytes());
        let answer = gate.next();
        assert!(
            answer["error"]["message"].as_str().is_some_and(|text| text.starts_with("sayso: ")),
            "{line}: {answer}"
        );
    }
    // Invalid UTF-8.
    gate.send_raw(&[b"{\"jsonrpc\":\"2.0\",\"id\":1,\"x\":\"\xff\",", CALL.as_bytes(), b"}\n"].concat());
    assert_eq!(gate.next()["error"]["code"], -32700);
    // A call without an id cannot be answered.
    gate.send_raw(format!("{{\"jsonrpc\":\"2.0\",{CALL}}}\n").as_bytes());
    gate.sync();
    let after = gate.seen_raw();
    let new = after.strip_prefix(&before[..]).unwrap();
    let new: Value = serde_json::from_slice(new)
        .unwrap_or_else(|_| panic!("more than one message: {}", String::from_utf8_lossy(new)));
    assert_eq!(new, json!({"id": "sync", "jsonrpc": "2.0", "method": "ping"}));
}

#[test]
fn escaped_names_are_recognized() {
    let mut gate = Gate::start(None, &[], &[]);
    gate.send_raw(br#"{"jsonrpc":"2.0","id":1,"\u006dethod":"tools\/call","params":{"n\u0061me":"write","arguments":{}}}"#);
    gate.send_raw(b"\n");
    refusal(&gate.answer(1));
    gate.sync();
    assert!(gate.seen_calls().is_empty());
}

#[test]
fn ambiguous_and_oversized_arguments_are_refused() {
    let hub = HubProcess::start_in_memory();
    let _listener = Listener::connect(&hub);
    let mut gate = Gate::start(Some(&hub), &[], &[]);
    for (arguments, expected) in [
        (r#"{"a":1,"a":2}"#.to_owned(), "ambiguous"),
        (r#"{"a":90071992547409931}"#.to_owned(), "ambiguous"),
        (
            format!(r#"{{"a":"{}"}}"#, "x".repeat(gate::mcp::limits::MAX_QUESTION_ARGUMENT_BYTES)),
            "longer than",
        ),
    ] {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"write","arguments":{arguments}}}}}"#
        );
        gate.send_raw(format!("{line}\n").as_bytes());
        let answer = gate.answer(1);
        assert!(refusal(&answer).contains(expected), "{answer}");
    }
    gate.sync();
    assert!(gate.seen_calls().is_empty());
}

#[test]
fn an_id_that_is_in_use_is_refused() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start(Some(&hub), &[], &[]);
    gate.call(1, "write", &json!({"n": 1}));
    let question = listener.question();
    gate.call(1, "delete", &json!({"n": 2}));
    assert_eq!(gate.answer(1)["error"]["code"], -32600);
    gate.send(&json!([
        {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "delete", "arguments": {"n": 5}}},
        {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "write", "arguments": {"n": 5}}},
    ]));
    let second = listener.question();
    assert_eq!(second["action"], "Use delete of the server files. n: 5.");
    listener.reply(&second, "reject");
    listener.reply(&question, "accept");
    gate.answer(1);
    gate.sync();
    assert_eq!(gate.seen_calls(), [("write".to_owned(), json!(1))]);
}

#[test]
fn a_server_cannot_answer_a_call_that_it_has_not_received() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start(Some(&hub), &[], &["answer-first"]);
    gate.call(1, "write", &json!({}));
    let question = listener.question();
    gate.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "forge", "params": {"id": 1}}));
    gate.answer(2);
    listener.wait_for_text("answered a call that it has not received");
    listener.reply(&question, "reject");
    let answer = gate.next();
    assert_eq!(answer["id"], 1);
    refusal(&answer);
}

#[test]
fn after_a_list_change_calls_need_consent_until_the_tools_are_listed_again() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let folder = tempfile::tempdir().unwrap();
    let trust = Gate::write_trust(&folder, TRUST);
    // Announces a change as soon as its tools are requested.
    let script = r#"import sys, json
for line in sys.stdin:
    m = json.loads(line)
    if m["method"] == "tools/list":
        tools = [{"name": "read", "annotations": {"readOnlyHint": True}}]
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": {"tools": tools}}))
        if m.get("params"):
            print(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": {"content": []}}))
    sys.stdout.flush()
"#;
    let mut gate = Gate::start_command(folder, Some(&hub), &["--trust", &trust], &["python3", "-c", script]);
    gate.list_tools();
    gate.call(1, "read", &json!({}));
    assert_eq!(gate.answer(1)["result"]["content"], json!([]));
    gate.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"cursor": "x"}}));
    gate.answer(2);
    assert_eq!(gate.next()["method"], "notifications/tools/list_changed");
    gate.call(3, "read", &json!({}));
    listener.answer("reject");
    refusal(&gate.answer(3));
    gate.list_tools();
    gate.call(4, "read", &json!({}));
    assert_eq!(gate.answer(4)["result"]["content"], json!([]));
}

#[test]
fn too_many_questions_are_refused() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start(Some(&hub), &[], &[]);
    let limit = gate::mcp::limits::MAX_OPEN_QUESTIONS;
    for id in 0..=limit {
        gate.call(id, "write", &json!({"n": id}));
    }
    let answer = gate.next();
    assert_eq!(answer["id"], limit);
    assert!(refusal(&answer).contains("already waiting"), "{answer}");
    // The same call again and again is limited, too.
    for id in 0..gate::mcp::limits::MAX_WAITERS_PER_QUESTION {
        gate.call(format!("again {id}"), "write", &json!({"n": 0}));
    }
    let answer = gate.next();
    assert_eq!(answer["id"], format!("again {}", gate::mcp::limits::MAX_WAITERS_PER_QUESTION - 1));
    assert!(refusal(&answer).contains("too many times"), "{answer}");
    listener.question();
    gate.sync();
    assert!(gate.seen_calls().is_empty());
}

#[test]
fn a_trust_file_with_a_mistake_or_that_others_can_change_stops_the_gate() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = Gate::write_trust(&folder, "[servers.files]\nallowed = [\"read\"]\n");
    let run = |path: &str| testing::cli::run_sayso(&["mcp", "--trust", path, "--", "true"], "");
    let output = run(&path);
    assert_eq!(output.exit_code, 2);
    assert!(output.stderr.contains("servers.files.allowed is unknown"), "{}", output.stderr);
    Gate::write_trust(&folder, TRUST);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    let output = run(&path);
    assert!(
        output.exit_code == 2 && output.stderr.contains("can be changed by other users"),
        "{}",
        output.stderr
    );
    let output = run("no/such/file");
    assert!(
        output.exit_code == 2 && output.stderr.contains("cannot read the trust file"),
        "{}",
        output.stderr
    );
}
