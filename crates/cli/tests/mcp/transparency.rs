//! Everything except gated calls passes byte for byte, and never waits for a question.

use serde_json::json;
use testing::hub::HubProcess;

use super::support::{Gate, Listener, TRUST};

#[test]
fn everything_else_passes_byte_for_byte_in_both_directions() {
    let mut gate = Gate::start(None, &[], &["garbage"]);
    // All output of the server is passed on.
    assert_eq!(gate.next_line(), b"Server started! {not json\n");
    assert_eq!(gate.next_line(), b"\"just a text\"\n");
    assert_eq!(gate.next_line(), b"{\"jsonrpc\":\"2.0\",\"id\":999,\"result\":{\"never\":\"asked\"}}\n");
    assert_eq!(gate.next_line(), b"\xff\xfe{\"bytes\"}\n");
    let lines: [&[u8]; 10] = [
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"x\":1.0,  \"y\":[ ]}}\n",
        b"  {\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\",\"unknown\":{\"a\":1,\"a\":2}}\r\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"method\":\"server/discover\",\"_meta\":{\"k\":\"\\u00e9\"}}\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":2.5,\"method\":\"subscriptions/listen\",\"params\":null}\n",
        b"{\"id\":77,\"result\":{\"roots\":[]}}\n",
        b"{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":4711}}\n",
        b"[{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"},{\"method\":\"notifications/x\"}]\n",
        b"\n",
        b"17\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":12345678901234567890,\"method\":\"big\"}\n",
    ];
    for line in lines {
        gate.send_raw(line);
    }
    gate.sync();
    let seen = gate.seen_raw();
    let expected = lines.concat();
    assert!(seen.starts_with(&expected), "{}", String::from_utf8_lossy(&seen));
}

#[test]
fn a_last_line_without_a_line_break_passes() {
    let mut gate = Gate::start(None, &[], &[]);
    gate.send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
    gate.close_input();
    assert_eq!(gate.answer(1)["result"]["echo"], json!(null));
    assert_eq!(gate.wait(), Some(0));
    assert_eq!(gate.seen_raw(), b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
}

#[test]
fn nothing_waits_behind_a_question() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_trusting(Some(&hub), TRUST, &[]);
    gate.list_tools();
    gate.call(1, "delete", &json!({"path": "a"}));
    let question = listener.question();
    gate.call(2, "delete", &json!({"path": "b"}));
    let second = listener.question();
    // Both questions are open. Other messages and calls of trusted tools pass.
    gate.call("3", "read", &json!({}));
    assert_eq!(gate.answer("3")["result"]["content"][0]["text"], "read done");
    gate.sync();
    // The second question is answered first.
    listener.reply(&second, "accept");
    assert_eq!(gate.answer(2)["result"]["content"][0]["text"], "delete done");
    listener.reply(&question, "reject");
    assert_eq!(gate.answer(1)["result"]["isError"], true);
    gate.sync();
    assert_eq!(gate.seen_calls(), [("read".to_owned(), json!("3")), ("delete".to_owned(), json!(2))]);
}

#[test]
fn a_huge_line_from_the_server_passes_and_one_from_the_host_is_refused() {
    let mut gate = Gate::start(None, &[], &["huge"]);
    let line = gate.next_line();
    assert_eq!(line.len(), "{\"jsonrpc\":\"2.0\",\"method\":\"huge\",\"params\":\"\"}\n".len() + (65 << 20));
    let mut long =
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"read\",\"x\":\""
            .to_vec();
    long.resize(gate::mcp::limits::MAX_LINE_BYTES + 100_000, b'x');
    long.extend_from_slice(b"\"}}\n");
    gate.send_raw(&long);
    let refused = gate.next();
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    gate.sync();
    assert!(gate.seen_calls().is_empty());
    assert!(gate.seen_raw().len() < 1000);
}

#[test]
fn a_narrated_call_of_a_trusted_tool_passes_unchanged_and_is_heard_without_secrets() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_trusting(Some(&hub), TRUST, &[]);
    gate.list_tools();
    let line = b"{\"jsonrpc\":\"2.0\", \"id\":\"a\",\"method\":\"tools/call\",\"params\":{\"name\":\"read\",\"arguments\":{\"password\":\"hunter2\"},\"extra\":1}}\n";
    gate.send_raw(line);
    gate.answer("a");
    let invoked = listener.wait_for("tool.invoked");
    assert_eq!(invoked["tool"], "files.read");
    assert!(!invoked.to_string().contains("hunter2"), "{invoked}");
    assert_eq!(invoked["summary_normal"], "Using the tool read of files.");
    let completed = listener.wait_for("tool.completed");
    assert_eq!(
        (completed["status"].as_str(), completed["summary_normal"].as_str()),
        (Some("success"), Some("It has finished: read done"))
    );
    assert!(gate.seen_raw().ends_with(line));
    // A tool that fails is announced as failed.
    let trust_in_fail = "[servers.files]\nallow = [\"fail\"]\n";
    let mut gate = Gate::start_trusting(Some(&hub), trust_in_fail, &[]);
    gate.list_tools();
    gate.call(1, "fail", &json!({}));
    gate.answer(1);
    let completed = listener.wait_for("tool.completed");
    assert_eq!(
        (completed["status"].as_str(), completed["error_message"].as_str()),
        (Some("error"), Some("no such file"))
    );
}

#[test]
fn the_gate_starts_the_server_without_waiting_for_the_hub() {
    // Nothing listens at the hub's address. Messages pass, and a trusted tool works.
    let mut gate = Gate::start_trusting(None, TRUST, &[]);
    gate.list_tools();
    gate.call(1, "read", &json!({}));
    assert_eq!(gate.answer(1)["result"]["content"][0]["text"], "read done");
    gate.close_input();
    assert_eq!(gate.wait(), Some(0));
}
