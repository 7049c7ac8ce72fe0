//! Each limit holds when it is set to a small value.

use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

use serde_json::Value;
use tungstenite::Message;

use crate::serve::stdio::StdioClient;
use crate::serve::unix::UnixSocketDir;
use testing::http::{EventStream, TestClient};
use testing::hub::HubProcess;
use testing::messages::{CONFIRMATION_BODY, REPLY_CAPABILITIES};
use testing::messages::{short_type, subscription_renegotiate};
use testing::unix::UnixSocketClient;
use testing::websocket::WebSocketClient;

/// Long enough for any machine, and shorter than the default of every timeout that these tests shorten.
const SHORT_TIMEOUT: Duration = Duration::from_secs(8);
/// Longer than any successful operation should take, even on a slow disk.
const LONG_TIMEOUT: Duration = Duration::from_mins(5);

const START_BODY: &str = r#"{"summary_normal":"x","localization_hints":{"primary_language":"en"}}"#;
const SESSION_COMPLETED: &str = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
const THINKING: &str = r#"{"type":"aaep:agent.state.changed","from_state":"idle","to_state":"thinking"}"#;

fn publish(client: &TestClient, session: &str, events: &[&str]) -> u16 {
    let path = format!("/agent/v1/sessions/{session}/events");
    client.with_header("Content-Type: application/x-ndjson").post(&path, &events.join("\n")).status
}

/// Waits until the condition holds, at most `LONG_TIMEOUT`.
fn wait_until(mut condition: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + LONG_TIMEOUT;
    while !condition() {
        assert!(std::time::Instant::now() < deadline, "the condition did not become true in time");
        std::thread::yield_now();
    }
}

/// Whether the hub closes the connection within `SHORT_TIMEOUT` if the client sends nothing.
fn is_closed_soon(stream: &mut std::net::TcpStream) -> bool {
    stream.set_read_timeout(Some(SHORT_TIMEOUT)).unwrap();
    let mut received = Vec::new();
    stream.read_to_end(&mut received).is_ok()
}

#[test]
fn the_connection_limit_holds() {
    let hub = HubProcess::start_in_memory_with(&["--http-connections", "1"]);
    let client = hub.client();
    let mut first = client.connect();
    // Once the response starts, the hub has accepted the connection.
    let head = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", hub.address);
    first.write_all(head.as_bytes()).unwrap();
    first.read_exact(&mut [0; 12]).unwrap();
    assert!(is_closed_soon(&mut client.connect()), "a second connection must be closed");
    first.write_all(head.as_bytes()).unwrap();
    drop(first);
    wait_until(|| client.try_send("GET", "/healthz", "").is_some());
}

#[test]
fn http_size_limits_hold() {
    let hub = HubProcess::start_in_memory_with(&[
        "--http-head-bytes",
        "256",
        "--http-headers",
        "4",
        "--http-body-bytes",
        "256",
    ]);
    let client = hub.client();
    assert_eq!(client.with_header(&format!("X: {}", "y".repeat(300))).get("/healthz").status, 431);
    assert_eq!(client.with_header("A: 1").get("/healthz").status, 200, "four headers");
    assert_eq!(client.with_header("A: 1").with_header("B: 2").get("/healthz").status, 400, "five headers");
    assert_eq!(client.post("/aaep/v1/replies", &format!("{{{}}}", " ".repeat(254))).status, 204);
    assert_eq!(client.post("/aaep/v1/replies", &format!("{{{}}}", " ".repeat(255))).status, 413);
}

#[test]
fn http_timeouts_hold() {
    let hub = HubProcess::start_in_memory_with(&["--http-head-timeout", "100ms"]);
    assert!(is_closed_soon(&mut hub.client().connect()), "a connection that sends no head must be closed");
    // The head timeout keeps its default, because a slow machine needs time to send the head.
    let hub = HubProcess::start_in_memory_with(&["--http-body-timeout", "100ms"]);
    let client = hub.client();
    let head =
        format!("POST /aaep/v1/replies HTTP/1.1\r\nHost: {}\r\nContent-Length: 9\r\n\r\n", hub.address);
    assert!(
        client.send_raw(head.as_bytes()).starts_with("HTTP/1.1 408 "),
        "a request that sends no body must be refused"
    );
    let hub = HubProcess::start_in_memory_with(&["--http-idle-timeout", "100ms"]);
    let mut stream = hub.client().connect();
    stream.write_all(format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", hub.address).as_bytes()).unwrap();
    assert!(is_closed_soon(&mut stream), "a connection that sends no second request must be closed");
}

#[test]
fn the_response_write_timeout_holds() {
    let hub = HubProcess::start_in_memory_with(&["--http-response-timeout", "100ms"]);
    let mut stream = hub.client().connect();
    // Shorter than the default response timeout of 30 seconds.
    stream.set_write_timeout(Some(Duration::from_secs(25))).unwrap();
    let request = format!("GET /.well-known/aaep-manifest.json HTTP/1.1\r\nHost: {}\r\n\r\n", hub.address);
    let requests = request.repeat(1000);
    // Unread responses fill the buffers in one direction, then requests fill them in the other.
    let error = loop {
        if let Err(error) = stream.write_all(requests.as_bytes()) {
            break error;
        }
    };
    assert!(matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error:?}");
}

#[test]
fn the_maximum_wait_holds() {
    let hub = HubProcess::start_in_memory_with(&["--http-max-wait", "1s"]);
    let client = hub.client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let _stream = client.open_event_stream(&subscription, None);
    let session = client.start_session();
    let token = client.ask_confirmation(&session);
    let status = client.get(&format!("/agent/v1/sessions/{session}/replies/{token}?wait=100"));
    assert_eq!(status.json_str("status"), "pending");
}

#[test]
fn the_heartbeat_interval_holds() {
    let hub = HubProcess::start_in_memory_with(&["--http-heartbeat", "100ms"]);
    let client = hub.client();
    let mut stream = client.open_event_stream(&client.subscribe("{}"), None);
    stream.set_read_timeout(SHORT_TIMEOUT);
    while stream.next_line() != ":" {}
}

#[test]
fn message_limits_hold_on_a_websocket() {
    let hub = HubProcess::start_in_memory_with(&["--messages-ping-interval", "100ms"]);
    let (mut socket, _) = WebSocketClient::connect_and_subscribe(&hub, "{}");
    socket.0.get_ref().set_read_timeout(Some(SHORT_TIMEOUT)).unwrap();
    assert!(matches!(socket.0.read().unwrap(), Message::Ping(_)));
    // A new hub, because the first one disconnects clients that are slow to answer a ping.
    let hub =
        HubProcess::start_in_memory_with(&["--messages-websocket-bytes", "512", "--messages-malformed", "2"]);
    let (mut socket, subscription) = WebSocketClient::connect_and_subscribe(&hub, "{}");
    let message = subscription_renegotiate(&subscription, "{}");
    socket.send(&format!("{message}{}", " ".repeat(512 - message.len())));
    assert_eq!(short_type(&socket.next()), "subscription.accepted");
    socket.send(&format!("{message}{}", " ".repeat(513 - message.len())));
    assert_eq!(socket.into_close_code(), 1009);
    let (mut socket, subscription) = WebSocketClient::connect_and_subscribe(&hub, "{}");
    socket.send("1");
    socket.send(&subscription_renegotiate(&subscription, "{}"));
    assert_eq!(short_type(&socket.next()), "subscription.accepted", "one malformed message is tolerated");
    socket.send("2");
    assert_eq!(socket.into_close_code(), 4004);
}

#[test]
fn message_limits_hold_on_a_unix_socket() {
    let socket_dir = UnixSocketDir::new();
    let path = socket_dir.path.to_str().unwrap();
    let hub = HubProcess::start_in_memory_with(&[
        "--unix",
        path,
        "--messages-unix-bytes",
        "512",
        "--messages-malformed",
        "1",
    ]);
    for (text, reason) in [("1".to_owned(), "violation"), (format!("{{{}}}", " ".repeat(600)), "too_large")] {
        let mut client = UnixSocketClient::new(&socket_dir.path, true);
        client.subscribe();
        client.send(&text);
        assert_eq!(client.next()["reason_code"], reason);
        assert!(client.is_closed());
    }
    drop(hub);
    let _hub = HubProcess::start_in_memory_with(&["--unix", path, "--http-head-timeout", "100ms"]);
    let mut client = UnixSocketClient::new(&socket_dir.path, true);
    client.stream().set_read_timeout(Some(SHORT_TIMEOUT)).unwrap();
    assert!(client.is_closed(), "a connection that sends no message must be closed");
}

#[test]
fn message_limits_hold_on_stdio() {
    let mut client = StdioClient::start(&["--messages-stdio-bytes", "512"]);
    client.send_line(&format!("{{{}}}", " ".repeat(600)));
    assert_eq!(client.next()["error"]["code"], -32600);
    client.subscribe();
    assert_eq!(client.close_and_wait(), Some(0));
}

#[test]
fn hub_count_limits_hold() {
    let limits = [
        "--hub-sessions",
        "1",
        "--hub-subscriptions",
        "1",
        "--hub-events-per-request",
        "2",
        "--hub-open-items-per-session",
        "1",
    ];
    let hub = HubProcess::start_in_memory_with(&limits);
    let client = hub.client();
    client.subscribe("{}");
    let request = testing::messages::subscription_request("{}");
    assert_eq!(client.post("/aaep/v1/subscriptions", &request).status, 429);
    let session = client.start_session();
    assert_eq!(client.post("/agent/v1/sessions", START_BODY).status, 429);
    assert_eq!(publish(&client, &session, &[THINKING, THINKING, THINKING]), 400);
    let call = |id: u8| {
        format!(
            r#"{{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_{id}","risk_level":"low","irreversible":false,"summary_normal":"Looking."}}"#
        )
    };
    assert_eq!(publish(&client, &session, &[THINKING, &call(1)]), 200);
    assert_eq!(publish(&client, &session, &[&call(2)]), 422);
}

#[test]
fn an_expired_lease_ends_the_session() {
    let hub = HubProcess::start_in_memory_with(&[
        "--hub-lease",
        "200ms",
        "--hub-max-sleep",
        "10ms",
        "--hub-requests-per-batch",
        "1",
    ]);
    let client = hub.client();
    let mut stream = client.open_event_stream(&client.subscribe("{}"), None);
    client.start_session();
    while stream.next_type() != "session.errored" {}
}

#[test]
fn a_session_has_the_lease_that_its_agent_asks_for_up_to_the_maximum() {
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        HubProcess::start(&[
            "--open",
            "--listen",
            "127.0.0.1:0",
            "--data",
            folder.path().to_str().unwrap(),
            "--hub-lease",
            "200ms",
            "--hub-max-sleep",
            "10ms",
        ])
    };
    let hub = start();
    let client = hub.client();
    let start_session = |client: &TestClient, lease: &str| {
        let body = format!(r#"{{"summary_normal":"Thinking.","lease_seconds":{lease}}}"#);
        client.post("/agent/v1/sessions", &body)
    };
    let patient = start_session(&client, "3600").json_str("session_id");
    for invalid in ["0", "-1", "1.5", "\"5\"", "null", "1e3"] {
        assert_eq!(start_session(&client, invalid).status, 400, "{invalid}");
    }
    let mut stream = client.open_event_stream(&client.subscribe("{}"), None);
    let end_of_a_session_with_the_default = |client: &TestClient, stream: &mut EventStream| {
        let short = client.start_session();
        loop {
            let (kind, _, event) = stream.next();
            if kind == "session.errored" {
                assert_eq!(event["session_id"], short);
                return;
            }
        }
    };
    end_of_a_session_with_the_default(&client, &mut stream);
    let thinking = r#"{"type":"aaep:agent.state.changed","to_state":"thinking"}"#;
    let publish =
        |client: &TestClient| client.post(&format!("/agent/v1/sessions/{patient}/events"), thinking).status;
    assert_eq!(publish(&client), 200);
    drop(hub);
    // The lease survives a restart, and an event renews it.
    let hub = start();
    let client = hub.client();
    let mut stream = client.open_event_stream(&client.subscribe("{}"), None);
    end_of_a_session_with_the_default(&client, &mut stream);
    assert_eq!(publish(&client), 200);
    end_of_a_session_with_the_default(&client, &mut stream);
    assert_eq!(publish(&client), 200);

    let hub = HubProcess::start_in_memory_with(&["--hub-max-lease", "200ms", "--hub-max-sleep", "10ms"]);
    let client = hub.client();
    let mut stream = client.open_event_stream(&client.subscribe("{}"), None);
    assert_eq!(start_session(&client, "99999999999999999999").status, 201);
    while stream.next_type() != "session.errored" {}
}

#[test]
fn attach_window_resume_window_and_replay_limits_hold() {
    let hub = HubProcess::start_in_memory_with(&["--hub-attach-window", "0s"]);
    let client = hub.client();
    let path = format!("/aaep/v1/events?subscription_id={}", client.subscribe("{}"));
    assert_eq!(client.get(&path).status, 404, "no stream was opened within the attach window");

    let hub = HubProcess::start_in_memory_with(&["--hub-resume-window", "0s"]);
    let client = hub.client();
    let subscription = client.subscribe("{}");
    let mut stream = client.open_event_stream(&subscription, None);
    client.start_session();
    let (_, first_event_id, _) = stream.next();
    drop(stream);
    // Once the hub notices that the connection is gone, the subscription ends.
    let path = format!("/aaep/v1/events?subscription_id={subscription}&last_event_id={first_event_id}");
    wait_until(|| {
        let mut stream = client.connect();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", hub.address).unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).unwrap();
        head == *b"HTTP/1.1 404"
    });

    let hub = HubProcess::start_in_memory_with(&["--hub-replay", "2"]);
    let client = hub.client();
    let subscription = client.subscribe("{}");
    let mut stream = client.open_event_stream(&subscription, None);
    let session = client.start_session();
    let (_, first_event_id, _) = stream.next();
    drop(stream);
    assert_eq!(publish(&client, &session, &[THINKING]), 200);
    for text in ["One. ", "Two. "] {
        assert_eq!(client.post(&format!("/agent/v1/sessions/{session}/output"), text).status, 200);
    }
    let (_, _, event) = client.open_event_stream(&subscription, Some(&first_event_id)).next();
    assert_eq!(event["from_state"], event["to_state"], "the current state and not the first events: {event}");
}

#[test]
fn question_limits_hold() {
    let ask = |client: &TestClient, session: &str, amount: u8| {
        let question = CONFIRMATION_BODY
            .replace("5 euros", &format!("{amount} euros"))
            .replace("5.00", &format!("{amount}.00"));
        client.post(&format!("/agent/v1/sessions/{session}/confirmations"), &question).status
    };
    for limit in ["--questions-open-per-session", "--questions-open-per-agent", "--questions-open-total"] {
        let hub = HubProcess::start_in_memory_with(&[limit, "1"]);
        let client = hub.client();
        let subscription = client.subscribe(REPLY_CAPABILITIES);
        let _stream = client.open_event_stream(&subscription, None);
        let (first_session, second_session) = (client.start_session(), client.start_session());
        assert_eq!(ask(&client, &first_session, 1), 201);
        assert_eq!(ask(&client, &first_session, 2), 429, "{limit}");
        let second_status = if limit.ends_with("session") { 201 } else { 429 };
        assert_eq!(ask(&client, &second_session, 3), second_status, "{limit}");
    }
    for (retained, status) in [("1", 422), ("2", 200)] {
        let hub = HubProcess::start_in_memory_with(&["--questions-resolved-per-session", retained]);
        let client = hub.client();
        let subscription = client.subscribe(REPLY_CAPABILITIES);
        let _stream = client.open_event_stream(&subscription, None);
        let session = client.start_session();
        let first_token = client.ask_confirmation(&session);
        assert_eq!(client.reply(&subscription, &first_token, "accept").status, 204);
        let second_question = CONFIRMATION_BODY.replace("5 euros", "6 euros").replace("5.00", "6.00");
        let asked = client.post(&format!("/agent/v1/sessions/{session}/confirmations"), &second_question);
        assert_eq!(client.reply(&subscription, &asked.json_str("reply_token"), "accept").status, 204);
        let call = format!(
            r#"{{"type":"aaep:agent.tool.invoked","tool":"send","tool_call_id":"call_1","risk_level":"high","irreversible":true,"summary_normal":"Sending.","reply_token":"{first_token}","arguments":{{"amount":"5.00"}}}}"#
        );
        assert_eq!(publish(&client, &session, &[&call]), status, "{retained} retained");
    }
}

/// Returns the text of the next output event.
fn next_output_text(stream: &mut testing::http::EventStream) -> String {
    loop {
        let (kind, _, event) = stream.next();
        if kind == "output.streaming" {
            return event["chunk"].as_str().unwrap_or_else(|| panic!("{event}")).to_owned();
        }
    }
}

#[test]
fn shaping_limits_hold() {
    let hub = HubProcess::start_in_memory_with(&["--shape-text-bytes", "64", "--shape-outputs", "1"]);
    let client = hub.client();
    let mut stream = client.open_event_stream(&client.subscribe("{}"), None);
    let session = client.start_session();
    let path = format!("/agent/v1/sessions/{session}/output");
    assert_eq!(client.post(&path, &"word ".repeat(30)).status, 200);
    for _ in 0..2 {
        let output = next_output_text(&mut stream);
        assert!(output.len() <= 64, "at most 64 bytes are held, even without a sentence end: {output}");
    }
    // The rest of the text is held. Only one output may be held at a time.
    let other_session = client.start_session();
    assert_eq!(client.post(&format!("/agent/v1/sessions/{other_session}/output"), "Not held").status, 200);
    assert_eq!(next_output_text(&mut stream), "Not held");

    let hub = HubProcess::start_in_memory_with(&["--shape-events", "4"]);
    let client = hub.client();
    let mut stream = client.open_event_stream(&client.subscribe(r#"{"max_events_per_second":1}"#), None);
    // Many more events than may be held, because a slow machine delivers some of them in the meantime.
    for _ in 0..40 {
        client.start_session();
    }
    // The listener receives the reason, and then the stream ends.
    assert!(stream.is_closed(), "the stream must end when too many events are held");
}

#[test]
fn delivery_queue_limits_hold() {
    for limit in [["--delivery-frames", "10"], ["--delivery-bytes", "64KiB"]] {
        let hub = HubProcess::start_in_memory_with(&[limit[0], limit[1], "--delivery-in-flight-bytes", "1"]);
        let client = hub.client();
        let capabilities = r#"{"coalesce_boundaries":["none"]}"#;
        let (slow_subscription, quick_subscription) =
            (client.subscribe(capabilities), client.subscribe(capabilities));
        let mut slow = client.open_event_stream(&slow_subscription, None);
        let mut quick = client.open_event_stream(&quick_subscription, None);
        let session = client.start_session();
        let path = format!("/agent/v1/sessions/{session}/output");
        let sentence = format!("{}. ", "word ".repeat(7000));
        for _ in 0..400 {
            assert_eq!(client.post(&path, &sentence).status, 200);
            // Reads to the end of the sentence, because unread data would make this listener slow, too.
            while !quick.next().2["chunk"].as_str().is_some_and(|chunk| chunk.ends_with(". ")) {}
        }
        // The listener receives what the operating system buffered. Then the stream ends, because the hub discarded
        // the rest.
        assert!(slow.is_closed(), "{limit:?}");
    }
}

#[test]
fn journal_size_and_retention_limits_hold() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let on_disk = |limits: &[&str]| {
        HubProcess::start(&[&["--open", "--listen", "127.0.0.1:0", "--data", data], limits].concat())
    };
    let run_session = |client: &TestClient| -> u16 {
        let response = client.post("/agent/v1/sessions", START_BODY);
        if response.status != 201 {
            return response.status;
        }
        publish(client, &response.json_str("session_id"), &[THINKING, SESSION_COMPLETED])
    };
    // The file must not grow beyond this size, and the hub reports that it is full.
    let full_hub = on_disk(&["--journal-max-bytes", "256KiB", "--retention-bytes", "none"]);
    wait_until(|| run_session(&full_hub.client()) != 200);
    // A single event may still fit where a whole session does not.
    wait_until(|| full_hub.client().post("/agent/v1/sessions", START_BODY).status == 503);
    drop(full_hub);
    // Measured before the next hub runs, because that hub may delete old events immediately.
    let full_size = size(data);
    assert!(full_size <= 256 * 1024, "{full_size}");

    // Old events are removed without any other activity.
    let hub = on_disk(&[
        "--retention-events",
        "1s",
        "--retention-interval",
        "100ms",
        "--retention-rows-per-step",
        "1000",
    ]);
    wait_until(|| size(data) <= full_size / 4 * 3);
    assert_eq!(hub.client().get("/healthz").status, 200);
    drop(hub);

    // With a limit on retained bytes the hub continues, because it removes the oldest events.
    let limits =
        ["--journal-max-bytes", "256KiB", "--retention-bytes", "160KiB", "--retention-interval", "100ms"];
    let hub = on_disk(&limits);
    let client = hub.client();
    let mut completed_sessions = 0;
    wait_until(|| {
        completed_sessions += usize::from(run_session(&client) == 200);
        completed_sessions == 300
    });
    assert!(size(data) <= 256 * 1024, "{}", size(data));
}

#[test]
fn idempotency_keys_and_decisions_expire() {
    let start_hub = |retention: &str| {
        HubProcess::start_in_memory_with(&[
            "--retention-keys",
            retention,
            "--retention-decisions",
            retention,
            "--retention-interval",
            "100ms",
        ])
    };
    let start_session = |hub: &HubProcess| {
        hub.client()
            .with_header("Idempotency-Key: k")
            .post("/agent/v1/sessions", START_BODY)
            .json_str("session_id")
    };
    let hub = start_hub("1h");
    assert_eq!(start_session(&hub), start_session(&hub));
    let hub = start_hub("1s");
    let first_session = start_session(&hub);
    wait_until(|| start_session(&hub) != first_session);
    let client = hub.client();

    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let _stream = client.open_event_stream(&subscription, None);
    let session = client.start_session();
    let token = client.ask_confirmation(&session);
    assert_eq!(client.reply(&subscription, &token, "reject").status, 204);
    assert_eq!(publish(&client, &session, &[SESSION_COMPLETED]), 200);
    let path = format!("/agent/v1/sessions/{session}/replies/{token}");
    wait_until(|| client.get(&path).status == 404);
}

/// Returns the size of the journal file.
fn size(data: &str) -> u64 {
    std::fs::metadata(format!("{data}/journal.sqlite")).unwrap().len()
}

#[test]
fn the_thread_count_is_configurable() {
    let hub = HubProcess::start_in_memory_with(&["--threads", "1"]);
    let status = std::fs::read_to_string(format!("/proc/{}/status", hub.pid())).unwrap_or_default();
    let threads = status.lines().find_map(|line| line.strip_prefix("Threads:")?.trim().parse::<usize>().ok());
    let hub_with_nine_threads = HubProcess::start_in_memory_with(&["--threads", "9"]);
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", hub_with_nine_threads.pid())).unwrap_or_default();
    let threads_of_second_hub =
        status.lines().find_map(|line| line.strip_prefix("Threads:")?.trim().parse::<usize>().ok());
    assert_eq!(threads.map(|count| count + 8), threads_of_second_hub);
    let _: Value = serde_json::from_str(&hub.client().get("/.well-known/aaep-manifest.json").body).unwrap();
}
