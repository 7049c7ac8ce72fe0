//! `--otlp-listen`: reports over OpenTelemetry.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use testing::http::{TestClient, TestResponse};
use testing::hub::HubProcess;
use testing::messages::{REPLY_CAPABILITIES, short_type};
use testing::websocket::WebSocketClient;

const TRACE: &str = "0102030405060708090a0b0c0d0e0f10";

struct Receiver {
    hub: HubProcess,
    address: String,
    listener: WebSocketClient,
}

impl Receiver {
    fn start(options: &[&str]) -> Self {
        let hub = HubProcess::start_in_memory_with(&[&["--otlp-listen", "127.0.0.1:0"], options].concat());
        let line =
            hub.startup_lines.iter().find_map(|line| line.strip_prefix("receiving OpenTelemetry on http://"));
        let address = line.expect("the address").to_owned();
        let (listener, _) = WebSocketClient::connect_and_subscribe(&hub, REPLY_CAPABILITIES);
        Self { hub, address, listener }
    }

    fn client(&self) -> TestClient {
        TestClient::new(&self.address).with_header("Content-Type: application/json")
    }

    fn send_spans(&self, spans: &Value) -> TestResponse {
        self.client().post("/v1/traces", &trace_request(spans).to_string())
    }

    /// Sends spans that must all be accepted.
    fn accept_spans(&self, spans: &Value) {
        let response = self.send_spans(spans);
        assert_eq!((response.status, response.body.as_str()), (200, "{}"), "{response:?}");
    }

    fn next(&mut self, kind: &str) -> Value {
        loop {
            let event = self.listener.next();
            if short_type(&event) == kind {
                return event;
            }
        }
    }

    /// Returns the events up to and including the next end of a session.
    fn collect_session(&mut self) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            events.push(self.listener.next());
            if short_type(events.last().unwrap()) == "session.completed" {
                return events;
            }
        }
    }
}

fn trace_request(spans: &Value) -> Value {
    let resource = json!({"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]});
    json!({"resourceSpans":[{"resource":resource,"scopeSpans":[{"scope":{"name":"x"},"spans":spans}]}]})
}

fn attributes(members: &[(&str, &str)]) -> Value {
    members.iter().map(|(key, value)| json!({"key":key,"value":{"stringValue":value}})).collect()
}

fn span(id: u64, end: u64, members: &[(&str, &str)]) -> Value {
    json!({
        "traceId": TRACE, "spanId": format!("{id:016x}"), "name": "a span",
        "startTimeUnixNano": "1000000000", "endTimeUnixNano": (1_000_000_000 + end * 1_000_000).to_string(),
        "attributes": attributes(members),
    })
}

fn tool_span(id: u64, end: u64, name: &str) -> Value {
    span(id, end, &[("gen_ai.operation.name", "execute_tool"), ("gen_ai.tool.name", name)])
}

fn texts(events: &[Value], kind: &str) -> Vec<String> {
    events
        .iter()
        .filter(|event| short_type(event) == kind)
        .map(|event| event["summary_normal"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn spans_are_heard_as_reports_after_the_fact() {
    let mut receiver = Receiver::start(&["--otlp-quiet-time", "1s"]);
    let tool = span(
        2,
        20,
        &[
            ("gen_ai.operation.name", "execute_tool"),
            ("gen_ai.tool.name", "delete_files"),
            ("gen_ai.tool.call.arguments", r#"{"path":"/"}"#),
            ("gen_ai.tool.call.result", "3 files deleted"),
        ],
    );
    let mut failed = tool_span(3, 30, "send_mail");
    failed["status"] = json!({"code":2,"message":"no network"});
    let messages = r#"[{"role":"assistant","parts":[{"type":"reasoning","content":"hm"},{"type":"text","content":"All is done."}],"finish_reason":"stop"}]"#;
    let chat = span(4, 40, &[("gen_ai.operation.name", "chat"), ("gen_ai.output.messages", messages)]);
    let agent = span(1, 50, &[("gen_ai.operation.name", "invoke_agent"), ("gen_ai.agent.name", "Clerk")]);
    let other = span(9, 60, &[("http.request.method", "GET")]);
    // The batch is not in order.
    receiver.accept_spans(&json!([agent, other, chat, failed, tool]));
    let events = receiver.collect_session();
    let started = events.iter().find(|event| short_type(event) == "session.started").unwrap();
    assert!(
        started["summary_normal"].as_str().unwrap().starts_with("Reports about shop, after the fact."),
        "{started}"
    );
    assert_eq!(
        texts(&events, "tool.invoked"),
        [
            "Reported afterwards: delete_files was used, and nobody was asked here.",
            "Reported afterwards: send_mail was used, and nobody was asked here."
        ]
    );
    assert_eq!(texts(&events, "tool.completed"), ["3 files deleted", "send_mail failed: no network"]);
    assert_eq!(texts(&events, "progress.updated"), ["Reported afterwards: Clerk has finished."]);
    assert_eq!(texts(&events, "session.completed"), ["No further reports for 1 seconds."]);
    let output: String = events.iter().filter_map(|event| event["chunk"].as_str()).collect();
    assert_eq!(output, "All is done.");
    // No consent is stated or asked for, whatever the call was.
    for event in events.iter().filter(|event| short_type(event) == "tool.invoked") {
        assert!(event.get("risk_level").is_none() && event.get("irreversible").is_none(), "{event}");
        assert_eq!(event["extensions"]["opentelemetry"]["after_the_fact"], true);
        assert_eq!(event["extensions"]["opentelemetry"]["trace_id"], TRACE);
    }
    assert!(events.iter().all(|event| !short_type(event).contains("awaiting")));
    let completed = events.iter().find(|event| short_type(event) == "tool.completed").unwrap();
    assert_eq!(completed["duration_ms"], 20);
    let call = events.iter().find(|event| short_type(event) == "tool.invoked").unwrap();
    assert_eq!(call["args_summary"], r#"{"path":"/"}"#);
}

#[test]
fn repeated_and_late_spans_are_heard_once_and_in_their_session() {
    let mut receiver = Receiver::start(&["--otlp-quiet-time", "4m"]);
    receiver.accept_spans(&json!([tool_span(1, 10, "first")]));
    receiver.accept_spans(&json!([tool_span(1, 10, "first"), tool_span(2, 20, "second")]));
    // The parent comes last and names the conversation; a later trace of the same conversation follows.
    let parent = span(3, 30, &[("gen_ai.operation.name", "invoke_agent"), ("gen_ai.conversation.id", "c1")]);
    receiver.accept_spans(&json!([parent]));
    let mut next_turn = tool_span(4, 40, "third");
    next_turn["traceId"] = "ff".repeat(16).into();
    next_turn["attributes"]
        .as_array_mut()
        .unwrap()
        .push(attributes(&[("gen_ai.conversation.id", "c1")])[0].clone());
    receiver.accept_spans(&json!([next_turn]));
    let mut late = tool_span(5, 5, "late");
    late["traceId"] = "ff".repeat(16).into();
    receiver.accept_spans(&json!([late]));
    receiver.hub.signal("-TERM");
    let events = receiver.collect_session();
    let tools: Vec<_> = events
        .iter()
        .filter(|event| short_type(event) == "tool.invoked")
        .map(|event| event["tool"].as_str().unwrap())
        .collect();
    assert_eq!(tools, ["first", "second", "third", "late"]);
    assert_eq!(texts(&events, "session.started").len(), 1);
    assert_eq!(texts(&events, "session.completed"), ["The hub stops, so no further reports follow."]);
}

#[test]
fn invalid_spans_are_counted_and_the_others_are_heard() {
    let mut receiver = Receiver::start(&["--otlp-records", "5"]);
    let mut zero = tool_span(1, 10, "zero");
    zero["traceId"] = "00".repeat(16).into();
    let mut short = tool_span(2, 10, "short");
    short["spanId"] = "abcd".into();
    let mut backwards = tool_span(3, 10, "backwards");
    backwards["endTimeUnixNano"] = "1".into();
    let mut not_hex = tool_span(4, 10, "not hex");
    not_hex["traceId"] = "zz".repeat(16).into();
    let response = receiver.send_spans(&json!([
        zero,
        short,
        backwards,
        not_hex,
        tool_span(5, 10, "good"),
        tool_span(6, 10, "too many")
    ]));
    assert_eq!(response.status, 200);
    assert_eq!(response.json()["partialSuccess"]["rejectedSpans"], "5", "{response:?}");
    assert!(!response.json()["partialSuccess"]["errorMessage"].as_str().unwrap().is_empty());
    assert_eq!(receiver.next("tool.invoked")["tool"], "good");
}

#[test]
fn logs_are_heard_and_a_text_that_a_span_also_has_is_heard_once() {
    let mut receiver = Receiver::start(&["--otlp-quiet-time", "1s"]);
    let messages = r#"[{"role":"assistant","parts":[{"type":"text","content":"Hello."}]}]"#;
    receiver.accept_spans(&json!([span(
        1,
        10,
        &[("gen_ai.operation.name", "chat"), ("gen_ai.output.messages", messages)]
    )]));
    let record = |name: &str, attributes: Value, body: Value| json!({"timeUnixNano":"2000000000","eventName":name,"traceId":TRACE,"spanId":format!("{:016x}", 1),"attributes":attributes,"body":body});
    let details = record(
        "gen_ai.client.inference.operation.details",
        attributes(&[("gen_ai.output.messages", messages)]),
        Value::Null,
    );
    let message = json!({"kvlistValue":{"values":[{"key":"content","value":{"stringValue":"Bye."}}]}});
    let choice = record(
        "gen_ai.choice",
        json!([]),
        json!({"kvlistValue":{"values":[{"key":"message","value":message}]}}),
    );
    let unrelated = record("", json!([]), json!({"stringValue":"starting up"}));
    let body = json!({"resourceLogs":[{"scopeLogs":[{"logRecords":[details, choice, unrelated]}]}]});
    let response = receiver.client().post("/v1/logs", &body.to_string());
    assert_eq!((response.status, response.body.as_str()), (200, "{}"), "{response:?}");
    let events = receiver.collect_session();
    let chunks: Vec<_> =
        events.iter().filter_map(|event| event["chunk"].as_str()).filter(|text| !text.is_empty()).collect();
    assert_eq!(chunks, ["Hello.", "Bye."]);
}

/// Encodes a protobuf field with a length.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut length = Vec::new();
    let mut rest = content.len();
    while rest >= 0x80 {
        length.push(u8::try_from(rest & 0x7f).unwrap() | 0x80);
        rest >>= 7;
    }
    length.push(u8::try_from(rest).unwrap());
    [&[number << 3 | 2], length.as_slice(), content].concat()
}

fn fixed64(number: u8, value: u64) -> Vec<u8> {
    [&[number << 3 | 1], value.to_le_bytes().as_slice()].concat()
}

fn protobuf_tool_span(name: &str) -> Vec<u8> {
    let attribute = |key: &str, value: &str| {
        field(9, &[field(1, key.as_bytes()), field(2, &field(1, value.as_bytes()))].concat())
    };
    let span = [
        field(1, &[7; 16]),
        field(2, &[8; 8]),
        field(5, b"execute_tool"),
        fixed64(7, 1_000_000_000),
        fixed64(8, 2_000_000_000),
        attribute("gen_ai.operation.name", "execute_tool"),
        attribute("gen_ai.tool.name", name),
        // A field that the receiver does not know.
        fixed64(60 % 16, 5),
    ]
    .concat();
    field(1, &field(2, &field(2, &span)))
}

fn post_bytes(address: &str, headers: &str, body: &[u8]) -> String {
    let head = format!(
        "POST /v1/traces HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    TestClient::new(address).send_raw(&[head.as_bytes(), body].concat())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut child =
        Command::new("gzip").arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    child.wait_with_output().unwrap().stdout
}

#[test]
fn protobuf_is_accepted_with_and_without_gzip() {
    let mut receiver = Receiver::start(&[]);
    let body = protobuf_tool_span("fetch");
    let headers = "Content-Type: application/x-protobuf\r\n";
    let response = post_bytes(&receiver.address, headers, &body);
    assert!(
        response.starts_with("HTTP/1.1 200") && response.contains("Content-Type: application/x-protobuf"),
        "{response}"
    );
    assert_eq!(receiver.next("tool.completed")["duration_ms"], 1000);
    let compressed = gzip(&protobuf_tool_span("fetch"));
    let headers = "Content-Type: application/x-protobuf\r\nContent-Encoding: gzip\r\n";
    assert!(post_bytes(&receiver.address, headers, &compressed).starts_with("HTTP/1.1 200"));
    let compressed = gzip(trace_request(&json!([tool_span(1, 1, "store")])).to_string().as_bytes());
    let headers = "Content-Type: application/json\r\nContent-Encoding: gzip\r\n";
    assert!(post_bytes(&receiver.address, headers, &compressed).starts_with("HTTP/1.1 200"));
    // The compressed protobuf was a repetition.
    assert_eq!(receiver.next("tool.invoked")["tool"], "store");
}

#[test]
fn requests_that_are_too_large_or_malformed_are_refused() {
    let receiver = Receiver::start(&["--otlp-body-bytes", "2KiB"]);
    let (json, protobuf) = ("Content-Type: application/json\r\n", "Content-Type: application/x-protobuf\r\n");
    let send = |headers: &str, body: &[u8]| post_bytes(&receiver.address, headers, body)[9..12].to_owned();
    assert_eq!(send(json, b"{"), "400");
    assert_eq!(send(json, b"[]"), "400");
    assert_eq!(send(json, &[0xff]), "400");
    assert_eq!(send(protobuf, &[0xff; 20]), "400");
    assert_eq!(send("Content-Type: text/plain\r\n", b"{}"), "415");
    assert_eq!(send(&format!("{json}Content-Encoding: br\r\n"), b"{}"), "415");
    assert_eq!(send(&format!("{json}Content-Encoding: gzip\r\n"), b"{}"), "400");
    assert_eq!(send(json, &[b' '; 3000]), "413");
    // A small body that decompresses to a large one.
    assert_eq!(send(&format!("{json}Content-Encoding: gzip\r\n"), &gzip(&vec![b' '; 100_000])), "413");
    assert_eq!(receiver.client().get("/v1/traces").status, 405);
    assert_eq!(receiver.client().post("/v1/metrics", "{}").status, 404);
    assert_eq!(receiver.client().post("/agent/v1/sessions", "{}").status, 404);
    assert_eq!(receiver.client().post("/v1/traces", "{}").status, 200);
    let error = receiver.client().post("/v1/traces", "{");
    assert_eq!(error.json()["code"], 3, "{error:?}");
}

#[test]
fn a_token_of_an_agent_is_needed_as_for_the_agent_api() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    let new_token = |arguments: &[&str]| {
        let arguments = [&["token", "new", "--tokens", tokens.to_str().unwrap()], arguments].concat();
        let output = testing::cli::run_sayso(&arguments, "");
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
        output.stdout.lines().find(|line| line.starts_with("sayso_")).expect("a token").trim().to_owned()
    };
    let agent = new_token(&["--role", "agent", "--name", "shop", "--agent-id", "shop"]);
    let listener = new_token(&["--role", "listener", "--name", "ana"]);
    let hub = HubProcess::start(&[
        "--memory",
        "--tokens",
        tokens.to_str().unwrap(),
        "--listen",
        "127.0.0.1:0",
        "--otlp-listen",
        "127.0.0.1:0",
    ]);
    let line =
        hub.startup_lines.iter().find_map(|line| line.strip_prefix("receiving OpenTelemetry on http://"));
    let client = TestClient::new(line.unwrap()).with_header("Content-Type: application/json");
    let body = trace_request(&json!([tool_span(1, 1, "store")])).to_string();
    assert_eq!(client.post("/v1/traces", &body).status, 401);
    assert_eq!(client.with_bearer("sayso_wrong").post("/v1/traces", &body).status, 401);
    assert_eq!(client.with_bearer(&listener).post("/v1/traces", &body).status, 403);
    assert_eq!(client.with_bearer(&agent).post("/v1/traces", &body).status, 200);
}

#[test]
fn a_public_address_needs_tls() {
    let output = testing::cli::run_sayso(&["serve", "--memory", "--otlp-listen", "0.0.0.0:0"], "");
    assert_eq!(output.exit_code, 2);
    assert!(output.stderr.contains("0.0.0.0:0 can be reached from other machines"), "{}", output.stderr);
}

#[test]
fn one_session_more_than_allowed_ends_the_quietest() {
    let mut receiver = Receiver::start(&["--otlp-sessions", "1", "--otlp-quiet-time", "4m"]);
    receiver.accept_spans(&json!([tool_span(1, 1, "first")]));
    let mut other = tool_span(1, 1, "second");
    other["traceId"] = "ee".repeat(16).into();
    receiver.accept_spans(&json!([other]));
    let ended = receiver.next("session.completed");
    assert_eq!(ended["summary_normal"], "Too many sessions report at the same time, so this one ends.");
    assert_eq!(receiver.next("tool.invoked")["tool"], "second");
}

#[test]
#[ignore = "needs OpenTelemetry's SDK for Python; run by cargo xtask gates --only otlp"]
fn the_python_sdk_is_heard_with_and_without_compression() {
    let python = std::env::var_os("OTLP_PYTHON").expect("OTLP_PYTHON is a Python that has the SDK");
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/serve/otlp_report.py");
    for compression in ["none", "gzip"] {
        let mut receiver = Receiver::start(&["--otlp-quiet-time", "2s"]);
        let run = Command::new(&python)
            .arg(&script)
            .arg(format!("http://{}", receiver.address))
            .arg(compression)
            .status();
        assert!(run.unwrap().success());
        let events = receiver.collect_session();
        assert_eq!(
            texts(&events, "tool.completed"),
            ["look_up has finished.", "refund failed: the bank is closed"]
        );
        let mut steps = texts(&events, "progress.updated");
        steps.sort();
        assert_eq!(
            steps,
            ["Reported afterwards: Clerk has finished.", "Reported afterwards: The model model-1 answered."]
        );
        let output: String = events.iter().filter_map(|event| event["chunk"].as_str()).collect();
        assert_eq!(output, "The refund failed.");
        assert_eq!(texts(&events, "session.started").len(), 1);
    }
}
