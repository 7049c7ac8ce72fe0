//! Attacks on the receiver of OpenTelemetry reports.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use testing::cli::create_token;
use testing::http::TestClient;
use testing::hub::HubProcess;
use testing::messages::{REPLY_CAPABILITIES, short_type};

fn receiver_address(hub: &HubProcess) -> String {
    let line =
        hub.startup_lines.iter().find_map(|line| line.strip_prefix("receiving OpenTelemetry on http://"));
    line.expect("the address").to_owned()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut child =
        Command::new("gzip").arg("-9c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || input.write_all(bytes).unwrap());
        let mut compressed = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut compressed).unwrap();
        assert!(child.wait().unwrap().success());
        compressed
    })
}

/// Sends a compressed report and returns the status.
fn send_compressed(address: &str, media_type: &str, body: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /v1/traces HTTP/1.1\r\nHost: {address}\r\nContent-Type: {media_type}\r\nContent-Encoding: gzip\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response.split(' ').nth(1).unwrap().to_owned()
}

/// Returns a protobuf field with a length.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    let mut length = content.len();
    while length > 0x7f {
        bytes.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
        length >>= 7;
    }
    bytes.push(u8::try_from(length).unwrap());
    bytes.extend(content);
    bytes
}

/// Returns the largest amount of memory that the hub has used, in bytes.
fn peak_memory(hub: &HubProcess) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", hub.pid())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
fn a_small_report_does_not_need_a_large_multiple_of_its_memory() {
    let hub = HubProcess::start_in_memory_with(&["--otlp-listen", "127.0.0.1:0"]);
    let address = receiver_address(&hub);
    // Nearly 4 MiB of empty spans, and of empty attributes of one span.
    let spans = field(1, &field(2, &[0x12, 0x00].repeat(2_000_000)));
    let attributes = field(1, &field(2, &field(2, &[0x4a, 0x00].repeat(2_000_000))));
    let json_spans =
        format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{}}{}]}}]}}]}}"#, ",{}".repeat(1_300_000));
    for (media_type, body) in [
        ("application/x-protobuf", &spans[..]),
        ("application/x-protobuf", &attributes),
        ("application/json", json_spans.as_bytes()),
    ] {
        let compressed = gzip(body);
        assert!(compressed.len() < 20_000, "{} bytes", compressed.len());
        let before = peak_memory(&hub);
        assert_eq!(send_compressed(&address, media_type, &compressed), "413");
        let used = peak_memory(&hub) - before;
        assert!(used < 100 * 1024 * 1024, "{media_type}: {used} bytes for {}", compressed.len());
    }
}

fn tool_span(trace: u8, span: u8) -> Value {
    let attribute = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let attributes =
        json!([attribute("gen_ai.operation.name", "execute_tool"), attribute("gen_ai.tool.name", "look_up")]);
    json!({
        "traceId": format!("{trace:02x}").repeat(16), "spanId": format!("{span:02x}").repeat(8), "name": "a span",
        "startTimeUnixNano": "1000000000", "endTimeUnixNano": "2000000000", "attributes": attributes,
    })
}

#[test]
fn one_token_cannot_end_the_reported_sessions_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens").to_str().unwrap().to_owned();
    let agent = |name| create_token(&tokens, &["--role", "agent", "--name", name, "--agent-id", name]);
    let (bank, evil) = (agent("bank"), agent("evil"));
    let ada = create_token(&tokens, &["--role", "listener", "--name", "ada", "--scope", "agent:bank"]);
    let hub = HubProcess::start(&[
        "--memory",
        "--listen",
        "127.0.0.1:0",
        "--tokens",
        &tokens,
        "--otlp-listen",
        "127.0.0.1:0",
        "--otlp-sessions",
        "4",
        "--otlp-quiet-time",
        "4m",
    ]);
    let ada = hub.client().with_bearer(&ada);
    let mut stream = ada.open_event_stream(&ada.subscribe(REPLY_CAPABILITIES), None);
    let client = TestClient::new(&receiver_address(&hub)).with_header("Content-Type: application/json");
    let report = |token: &str, trace, span| {
        let spans = json!({"resourceSpans": [{"scopeSpans": [{"spans": [tool_span(trace, span)]}]}]});
        let response = client.with_bearer(token).post("/v1/traces", &spans.to_string());
        assert_eq!((response.status, response.body.as_str()), (200, "{}"), "{response:?}");
    };
    report(&bank, 1, 1);
    for trace in 2..20 {
        report(&evil, trace, 1);
    }
    report(&bank, 1, 2);
    let mut types = Vec::new();
    while types.iter().filter(|kind| *kind == "tool.completed").count() < 2 {
        types.push(short_type(&stream.next().2).to_owned());
    }
    assert_eq!(types.iter().filter(|kind| *kind == "session.started").count(), 1, "{types:?}");
    assert!(!types.contains(&"session.completed".to_owned()), "{types:?}");
}
