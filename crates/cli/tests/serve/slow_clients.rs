//! Clients that send slowly, too much or nothing, and clients that do not read. Each loses only its own connection, and no
//! other client is affected.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use testing::http::TestClient;
use testing::hub::HubProcess;
use testing::messages::REPLY_CAPABILITIES;
use testing::messages::subscription_renegotiate;

/// Sends the beginning, then one byte of the rest whenever nothing arrives for 200 ms. Returns everything received before
/// the hub closed the connection.
fn send_slowly(client: &TestClient, beginning: &str, rest: &str) -> String {
    let mut stream = client.connect();
    stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    stream.write_all(beginning.as_bytes()).unwrap();
    let (mut response, mut buffer) = (Vec::new(), [0; 1024]);
    let deadline = Instant::now() + Duration::from_mins(2);
    for byte in rest.bytes().cycle() {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => response.extend_from_slice(&buffer[..read]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
        assert!(Instant::now() < deadline, "the client was not disconnected");
        // If the write fails, the next read reports it.
        let _ = stream.write_all(&[byte]);
    }
    String::from_utf8_lossy(&response).into_owned()
}

#[test]
fn slow_and_silent_clients_are_disconnected_while_others_are_served() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let host = format!("Host: {}\r\n", hub.address);
    let silent: Vec<TcpStream> = (0..300).map(|_| client.connect()).collect();
    let post_head = format!("POST /agent/v1/sessions HTTP/1.1\r\n{host}");
    let long_request = format!("{post_head}Content-Length: 100000\r\n\r\n{{");
    let chunked_request = format!("{post_head}Transfer-Encoding: chunked\r\n\r\n");
    std::thread::scope(|scope| {
        let head = scope.spawn(|| send_slowly(&client, "GET /healthz HTTP/1.1\r\nX-Slow: ", "x"));
        let line = scope.spawn(|| send_slowly(&client, "", "GET"));
        let body = scope.spawn(|| send_slowly(&client, &long_request, " "));
        let chunks = scope.spawn(|| send_slowly(&client, &chunked_request, "1\r\n \r\n"));
        let session = client.start_session();
        assert_eq!(client.post(&format!("/agent/v1/sessions/{session}/output"), "Hello.").status, 200);
        for slow in [head, line] {
            let response = slow.join().unwrap();
            assert_eq!(response, "", "an incomplete head gets no response");
        }
        for slow in [body, chunks] {
            let response = slow.join().unwrap();
            assert!(response.starts_with("HTTP/1.1 408 "), "{response}");
        }
    });
    for mut stream in silent {
        assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0, "a silent connection is closed");
    }
    assert_eq!(client.get("/healthz").status, 200);
}

#[cfg(target_os = "linux")]
#[test]
fn a_million_headers_cost_one_connection_and_little_memory() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let before = peak_memory_kib(&hub);
    for line in ["X: y\r\n", "X-A-Longer-Name: and a longer value that takes up more bytes\r\n", "\r\n \t"] {
        let mut stream = client.connect();
        let head = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n", hub.address);
        stream.write_all(head.as_bytes()).unwrap();
        let block = line.repeat(1_000);
        // More than a million headers, because the system's buffers accept some before the hub reads.
        let sent = (0..50_000).take_while(|_| stream.write_all(block.as_bytes()).is_ok()).count();
        assert!(sent < 50_000, "the hub read everything instead of closing the connection");
        let mut response = Vec::new();
        let _ = stream.read_to_end(&mut response);
        // If the connection is closed while data is being written, the response may be lost.
        let response = String::from_utf8_lossy(&response);
        let is_expected = ["HTTP/1.1 400 ", "HTTP/1.1 431 "].iter().any(|start| response.starts_with(start));
        assert!(response.is_empty() || is_expected || line.starts_with('\r'), "{response}");
    }
    assert_eq!(client.get("/healthz").status, 200);
    assert!(peak_memory_kib(&hub) < before + 64 * 1024, "{before} {}", peak_memory_kib(&hub));
}

/// Returns the hub's peak memory, in KiB.
#[cfg(target_os = "linux")]
fn peak_memory_kib(hub: &HubProcess) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", hub.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn oversized_bodies_are_refused_in_any_framing() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let host = format!("Host: {}\r\n", hub.address);
    let session = client.start_session();
    for path in [
        "/aaep/v1/replies",
        "/aaep/v1/subscriptions",
        "/agent/v1/sessions",
        &format!("/agent/v1/sessions/{session}/output"),
    ] {
        for length in ["1114113", "18446744073709551615"] {
            let response = client.send_raw(
                format!("POST {path} HTTP/1.1\r\n{host}Content-Length: {length}\r\n\r\n").as_bytes(),
            );
            assert!(response.starts_with("HTTP/1.1 413 "), "{path} {length}: {response}");
        }
        for length in ["18446744073709551616", "-1", "0x10", "1e3", "+5", "5, 5"] {
            let response = client.send_raw(
                format!("POST {path} HTTP/1.1\r\n{host}Content-Length: {length}\r\n\r\n").as_bytes(),
            );
            assert!(response.starts_with("HTTP/1.1 400 "), "{path} {length}: {response}");
        }
        let mut stream = client.connect();
        stream
            .write_all(format!("POST {path} HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n").as_bytes())
            .unwrap();
        let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
        let sent = (0..1_000).take_while(|_| stream.write_all(chunk.as_bytes()).is_ok()).count();
        assert!(sent < 1_000, "{path}: the hub read everything instead of closing the connection");
    }
    // A large body below the limit is accepted.
    let text = "a ".repeat(400_000);
    assert_eq!(client.post(&format!("/agent/v1/sessions/{session}/output"), &text).status, 200);
}

#[test]
fn a_half_closed_connection_gets_its_response_and_a_truncated_request_has_no_effect() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let _events = client.open_event_stream(&subscription, None);
    let session = client.start_session();
    let token = client.ask_confirmation(&session);
    let host = format!("Host: {}\r\n", hub.address);
    let mut stream = client.connect();
    stream.write_all(format!("GET /healthz HTTP/1.1\r\n{host}\r\n").as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    // Even a reply that lacks only its last byte has no effect.
    let reply = testing::messages::confirmation_reply(&subscription, &token, "accept");
    for missing_bytes in [1, reply.len() / 2, reply.len()] {
        let mut stream = client.connect();
        let head = format!("POST /aaep/v1/replies HTTP/1.1\r\n{host}Content-Length: {}\r\n\r\n", reply.len());
        stream.write_all((head + &reply[..reply.len() - missing_bytes]).as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        assert_eq!(response, "");
    }
    let path = format!("/agent/v1/sessions/{session}/replies/{token}");
    assert_eq!(client.get(&path).json_str("status"), "pending");
}

#[test]
fn a_listener_that_never_reads_is_disconnected_and_delays_nobody() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let stalled = client.open_event_stream(&subscription, None);
    let other_subscription = client.subscribe(REPLY_CAPABILITIES);
    let mut events = client.open_event_stream(&other_subscription, None);
    let session = client.start_session();
    let ndjson = client.with_header("Content-Type: application/x-ndjson");
    // Tool calls are never coalesced.
    let summary = "Looking. ".repeat(100);
    let call = |number: usize| {
        format!(
            r#"{{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_{number}","risk_level":"low","summary_normal":"{summary}"}}
{{"type":"aaep:agent.tool.completed","tool":"look","tool_call_id":"call_{number}","status":"success","summary_normal":"{summary}"}}"#
        )
    };
    let mut batches = 0;
    // After the hub has closed the subscription of the stalled listener, a renegotiation fails.
    while client.post("/aaep/v1/replies", &subscription_renegotiate(&subscription, "{}")).status == 200 {
        let batch: Vec<_> = (0..250).map(|number| call(batches * 250 + number)).collect();
        let response = ndjson.post(&format!("/agent/v1/sessions/{session}/events"), &batch.join("\n"));
        assert_eq!(response.status, 200, "{response:?}");
        batches += 1;
        assert!(batches < 100, "the client was not disconnected");
        let mut completed = 0;
        while completed < 250 {
            completed += usize::from(events.next_type() == "tool.completed");
        }
    }
    assert!(batches > 1, "the hub must tolerate a short delay");
    assert_eq!(client.get(&format!("/aaep/v1/events?subscription_id={subscription}")).status, 404);
    drop(stalled);
    let token = client.ask_confirmation(&session);
    assert_eq!(client.reply(&other_subscription, &token, "reject").status, 204);
}
