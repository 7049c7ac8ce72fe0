//! Those who send slowly, too much, or nothing, and those who do not read: each loses its own connection, and nobody else
//! notices.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use testing::http::Client;
use testing::hub::Hub;
use testing::messages::CAN_REPLY;
use testing::messages::renegotiate;

/// Sends the beginning, then a byte of the rest whenever nothing has come back for a while; returns what came before the
/// other side ended it.
fn dribble(client: &Client, beginning: &str, rest: &str) -> String {
    let mut stream = client.connect();
    stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    stream.write_all(beginning.as_bytes()).unwrap();
    let (mut answer, mut buffer) = (Vec::new(), [0; 1024]);
    let until = Instant::now() + Duration::from_mins(2);
    for byte in rest.bytes().cycle() {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => answer.extend_from_slice(&buffer[..read]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
        assert!(Instant::now() < until, "it is borne for ever");
        // What the other side no longer takes is noticed by reading.
        let _ = stream.write_all(&[byte]);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn slow_senders_and_silent_ones_are_let_go_while_others_are_served() {
    let hub = Hub::open();
    let client = hub.client();
    let host = format!("Host: {}\r\n", hub.address);
    let silent: Vec<TcpStream> = (0..300).map(|_| client.connect()).collect();
    let post = format!("POST /agent/v1/sessions HTTP/1.1\r\n{host}");
    let long = format!("{post}Content-Length: 100000\r\n\r\n{{");
    let chunked = format!("{post}Transfer-Encoding: chunked\r\n\r\n");
    std::thread::scope(|scope| {
        let head = scope.spawn(|| dribble(&client, "GET /healthz HTTP/1.1\r\nX-Slow: ", "x"));
        let line = scope.spawn(|| dribble(&client, "", "GET"));
        let body = scope.spawn(|| dribble(&client, &long, " "));
        let chunks = scope.spawn(|| dribble(&client, &chunked, "1\r\n \r\n"));
        let session = client.start();
        assert_eq!(client.post(&format!("/agent/v1/sessions/{session}/output"), "Hello.").status, 200);
        for slow in [head, line] {
            let said = slow.join().unwrap();
            assert_eq!(said, "", "a head that never was gets no answer");
        }
        for slow in [body, chunks] {
            let said = slow.join().unwrap();
            assert!(said.starts_with("HTTP/1.1 408 "), "{said}");
        }
    });
    for mut stream in silent {
        assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0, "a connection on which nothing is said ends");
    }
    assert_eq!(client.get("/healthz").status, 200);
}

#[cfg(target_os = "linux")]
#[test]
fn a_million_headers_cost_one_connection_and_no_memory() {
    let hub = Hub::open();
    let client = hub.client();
    let before = memory(&hub);
    for line in ["X: y\r\n", "X-A-Longer-Name: and a longer value, for the sake of its bytes\r\n", "\r\n \t"]
    {
        let mut stream = client.connect();
        let head = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n", hub.address);
        stream.write_all(head.as_bytes()).unwrap();
        let block = line.repeat(1_000);
        // A million and more: what the system's buffers take before anybody looks is none of the hub's.
        let sent = (0..50_000).take_while(|_| stream.write_all(block.as_bytes()).is_ok()).count();
        assert!(sent < 50_000, "it is not read to its end");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        // A connection that is ended while it is written to may take its answer with it.
        let answer = String::from_utf8_lossy(&answer);
        let known = ["HTTP/1.1 400 ", "HTTP/1.1 431 "].iter().any(|start| answer.starts_with(start));
        assert!(answer.is_empty() || known || line.starts_with('\r'), "{answer}");
    }
    assert_eq!(client.get("/healthz").status, 200);
    assert!(memory(&hub) < before + 64 * 1024, "{before} {}", memory(&hub));
}

#[cfg(target_os = "linux")]
/// The most memory that it ever had, in KiB.
fn memory(hub: &Hub) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", hub.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn bodies_that_are_too_long_are_refused_however_they_are_framed() {
    let hub = Hub::open();
    let client = hub.client();
    let host = format!("Host: {}\r\n", hub.address);
    let session = client.start();
    for path in [
        "/aaep/v1/replies",
        "/aaep/v1/subscriptions",
        "/agent/v1/sessions",
        &format!("/agent/v1/sessions/{session}/output"),
    ] {
        for length in ["1114113", "18446744073709551615"] {
            let said = client
                .raw(format!("POST {path} HTTP/1.1\r\n{host}Content-Length: {length}\r\n\r\n").as_bytes());
            assert!(said.starts_with("HTTP/1.1 413 "), "{path} {length}: {said}");
        }
        for length in ["18446744073709551616", "-1", "0x10", "1e3", "+5", "5, 5"] {
            let said = client
                .raw(format!("POST {path} HTTP/1.1\r\n{host}Content-Length: {length}\r\n\r\n").as_bytes());
            assert!(said.starts_with("HTTP/1.1 400 "), "{path} {length}: {said}");
        }
        let mut stream = client.connect();
        stream
            .write_all(format!("POST {path} HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n").as_bytes())
            .unwrap();
        let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
        let sent = (0..1_000).take_while(|_| stream.write_all(chunk.as_bytes()).is_ok()).count();
        assert!(sent < 1_000, "{path}: it is not read to its end");
    }
    // The longest that is taken.
    let text = "a ".repeat(400_000);
    assert_eq!(client.post(&format!("/agent/v1/sessions/{session}/output"), &text).status, 200);
}

#[test]
fn a_connection_that_is_half_closed_gets_its_answer_and_one_cut_off_changes_nothing() {
    let hub = Hub::open();
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let _ear = client.listen(&subscription, None);
    let session = client.start();
    let token = client.ask(&session);
    let host = format!("Host: {}\r\n", hub.address);
    let mut stream = client.connect();
    stream.write_all(format!("GET /healthz HTTP/1.1\r\n{host}\r\n").as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    // A reply that is whole but for its last byte is no reply.
    let reply = testing::messages::reply(&subscription, &token, "accept");
    for cut in [1, reply.len() / 2, reply.len()] {
        let mut stream = client.connect();
        let head = format!("POST /aaep/v1/replies HTTP/1.1\r\n{host}Content-Length: {}\r\n\r\n", reply.len());
        stream.write_all((head + &reply[..reply.len() - cut]).as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "");
    }
    let path = format!("/agent/v1/sessions/{session}/replies/{token}");
    assert_eq!(client.get(&path).text("status"), "pending");
}

#[test]
fn a_listener_that_never_reads_is_let_go_and_holds_up_nobody() {
    let hub = Hub::open();
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let stalled = client.listen(&subscription, None);
    let other = client.subscribe(CAN_REPLY);
    let mut ear = client.listen(&other, None);
    let session = client.start();
    let many = client.with("Content-Type: application/x-ndjson");
    // Calls are never merged with each other, whoever waits for them.
    let summary = "Looking. ".repeat(100);
    let call = |number: usize| {
        format!(
            r#"{{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_{number}","risk_level":"low","summary_normal":"{summary}"}}
{{"type":"aaep:agent.tool.completed","tool":"look","tool_call_id":"call_{number}","status":"success","summary_normal":"{summary}"}}"#
        )
    };
    let mut batches = 0;
    // It is closed as too slow: then its terms cannot be changed any more.
    while client.post("/aaep/v1/replies", &renegotiate(&subscription, "{}")).status == 200 {
        let batch: Vec<_> = (0..250).map(|number| call(batches * 250 + number)).collect();
        let answer = many.post(&format!("/agent/v1/sessions/{session}/events"), &batch.join("\n"));
        assert_eq!(answer.status, 200, "{answer:?}");
        batches += 1;
        assert!(batches < 100, "it is borne for ever");
        let mut heard = 0;
        while heard < 250 {
            heard += usize::from(ear.next_type() == "tool.completed");
        }
    }
    assert!(batches > 1, "a moment's pause is borne");
    assert_eq!(client.get(&format!("/aaep/v1/events?subscription_id={subscription}")).status, 404);
    drop(stalled);
    let token = client.ask(&session);
    assert_eq!(client.reply(&other, &token, "reject").status, 204);
}
