//! Each limit holds when it is given a small number.

use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

use serde_json::Value;
use tungstenite::Message;

use crate::serve::stdio::Parent;
use crate::serve::unix::Place;
use testing::http::Client;
use testing::hub::Hub;
use testing::messages::{CAN_REPLY, QUESTION};
use testing::messages::{kind, renegotiate};
use testing::unix::UnixClient;
use testing::websocket::Socket;

/// Long enough for any machine, and shorter than what would happen without the limit.
const SOON: Duration = Duration::from_secs(8);
/// Nothing takes longer that comes about at all, however slow the disk.
const PATIENCE: Duration = Duration::from_mins(5);

const STARTED: &str = r#"{"summary_normal":"x","localization_hints":{"primary_language":"en"}}"#;
const END: &str = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
const THINK: &str = r#"{"type":"aaep:agent.state.changed","from_state":"idle","to_state":"thinking"}"#;

fn publish(client: &Client, session: &str, events: &[&str]) -> u16 {
    let path = format!("/agent/v1/sessions/{session}/events");
    client.with("Content-Type: application/x-ndjson").post(&path, &events.join("\n")).status
}

/// Waits for it, and not for ever.
fn until(mut is_so: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + PATIENCE;
    while !is_so() {
        assert!(std::time::Instant::now() < deadline, "it does not come about");
        std::thread::yield_now();
    }
}

/// Whether the other side ends the connection before long, though nothing is sent.
fn ends(stream: &mut std::net::TcpStream) -> bool {
    stream.set_read_timeout(Some(SOON)).unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).is_ok()
}

#[test]
fn http_connections() {
    let hub = Hub::limited(&["--http-connections", "1"]);
    let client = hub.client();
    let mut first = client.connect();
    // Half a request, so that it is known to have come in.
    let head = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", hub.address);
    first.write_all(head.as_bytes()).unwrap();
    first.read_exact(&mut [0; 12]).unwrap();
    assert!(ends(&mut client.connect()), "there is no place for a second");
    first.write_all(head.as_bytes()).unwrap();
    drop(first);
    until(|| client.try_send("GET", "/healthz", "").is_some());
}

#[test]
fn http_sizes() {
    let hub = Hub::limited(&["--http-head-bytes", "256", "--http-headers", "4", "--http-body-bytes", "256"]);
    let client = hub.client();
    assert_eq!(client.with(&format!("X: {}", "y".repeat(300))).get("/healthz").status, 431);
    assert_eq!(client.with("A: 1").get("/healthz").status, 200, "four headers");
    assert_eq!(client.with("A: 1").with("B: 2").get("/healthz").status, 400, "five");
    assert_eq!(client.post("/aaep/v1/replies", &format!("{{{}}}", " ".repeat(254))).status, 204);
    assert_eq!(client.post("/aaep/v1/replies", &format!("{{{}}}", " ".repeat(255))).status, 413);
}

#[test]
fn http_times() {
    let hub = Hub::limited(&["--http-head-time", "100ms"]);
    assert!(ends(&mut hub.client().connect()), "no head");
    // The head has its time: whoever sends it may be slow.
    let hub = Hub::limited(&["--http-body-time", "100ms"]);
    let client = hub.client();
    let head =
        format!("POST /aaep/v1/replies HTTP/1.1\r\nHost: {}\r\nContent-Length: 9\r\n\r\n", hub.address);
    assert!(client.raw(head.as_bytes()).starts_with("HTTP/1.1 408 "), "no body");
    let hub = Hub::limited(&["--http-idle-time", "100ms"]);
    let mut stream = hub.client().connect();
    stream.write_all(format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", hub.address).as_bytes()).unwrap();
    assert!(ends(&mut stream), "nothing follows");
}

#[test]
fn http_answer_time() {
    let hub = Hub::limited(&["--http-answer-time", "100ms"]);
    let mut stream = hub.client().connect();
    // Without the limit it would be 30 seconds.
    stream.set_write_timeout(Some(Duration::from_secs(25))).unwrap();
    let request = format!("GET /.well-known/aaep-manifest.json HTTP/1.1\r\nHost: {}\r\n\r\n", hub.address);
    let many = request.repeat(1000);
    // Answers that nobody takes fill the way back, and then requests fill the way there.
    let error = loop {
        if let Err(error) = stream.write_all(many.as_bytes()) {
            break error;
        }
    };
    assert!(matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error:?}");
}

#[test]
fn http_longest_wait() {
    let hub = Hub::limited(&["--http-longest-wait", "1s"]);
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let _ear = client.listen(&subscription, None);
    let session = client.start();
    let token = client.ask(&session);
    let told = client.get(&format!("/agent/v1/sessions/{session}/replies/{token}?wait=100"));
    assert_eq!(told.text("status"), "pending");
}

#[test]
fn http_heartbeat() {
    let hub = Hub::limited(&["--http-heartbeat", "100ms"]);
    let client = hub.client();
    let mut ear = client.listen(&client.subscribe("{}"), None);
    ear.wait_at_most(SOON);
    while ear.next_line() != ":" {}
}

#[test]
fn messages_on_a_websocket() {
    let hub = Hub::limited(&["--messages-ping-time", "100ms"]);
    let (mut socket, _) = Socket::subscribed(&hub, "{}");
    socket.0.get_ref().set_read_timeout(Some(SOON)).unwrap();
    assert!(matches!(socket.0.read().unwrap(), Message::Ping(_)));
    // Another hub: on this one, who is slow to answer a sign of life is let go before long.
    let hub = Hub::limited(&["--messages-websocket-bytes", "512", "--messages-malformed", "2"]);
    let (mut socket, subscription) = Socket::subscribed(&hub, "{}");
    let fits = renegotiate(&subscription, "{}");
    socket.say(&format!("{fits}{}", " ".repeat(512 - fits.len())));
    assert_eq!(kind(&socket.next()), "subscription.accepted");
    socket.say(&format!("{fits}{}", " ".repeat(513 - fits.len())));
    assert_eq!(socket.code(), 1009);
    let (mut socket, subscription) = Socket::subscribed(&hub, "{}");
    socket.say("1");
    socket.say(&renegotiate(&subscription, "{}"));
    assert_eq!(kind(&socket.next()), "subscription.accepted", "one is borne");
    socket.say("2");
    assert_eq!(socket.code(), 4004);
}

#[test]
fn messages_on_a_unix_socket() {
    let place = Place::new();
    let path = place.path.to_str().unwrap();
    let hub = Hub::limited(&["--unix", path, "--messages-unix-bytes", "512", "--messages-malformed", "1"]);
    for (text, reason) in [("1".to_owned(), "violation"), (format!("{{{}}}", " ".repeat(600)), "too_large")] {
        let mut talk = UnixClient::new(&place.path, true);
        talk.subscribe();
        talk.say(&text);
        assert_eq!(talk.next()["reason_code"], reason);
        assert!(talk.is_over());
    }
    drop(hub);
    let _hub = Hub::limited(&["--unix", path, "--http-head-time", "100ms"]);
    let mut talk = UnixClient::new(&place.path, true);
    talk.stream().set_read_timeout(Some(SOON)).unwrap();
    assert!(talk.is_over(), "nothing was said");
}

#[test]
fn messages_on_stdio() {
    let mut parent = Parent::start(&["--messages-stdio-bytes", "512"]);
    parent.line(&format!("{{{}}}", " ".repeat(600)));
    assert_eq!(parent.next()["error"]["code"], -32600);
    parent.subscribe();
    assert_eq!(parent.end(), Some(0));
}

#[test]
fn hub_counts() {
    let limits = [
        "--hub-sessions",
        "1",
        "--hub-subscriptions",
        "1",
        "--hub-events-in-request",
        "2",
        "--hub-open-in-session",
        "1",
    ];
    let hub = Hub::limited(&limits);
    let client = hub.client();
    client.subscribe("{}");
    let request = testing::messages::request("{}");
    assert_eq!(client.post("/aaep/v1/subscriptions", &request).status, 429);
    let session = client.start();
    assert_eq!(client.post("/agent/v1/sessions", STARTED).status, 429);
    assert_eq!(publish(&client, &session, &[THINK, THINK, THINK]), 400);
    let call = |id: u8| {
        format!(
            r#"{{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_{id}","risk_level":"low","irreversible":false,"summary_normal":"Looking."}}"#
        )
    };
    assert_eq!(publish(&client, &session, &[THINK, &call(1)]), 200);
    assert_eq!(publish(&client, &session, &[&call(2)]), 422);
}

#[test]
fn hub_lease() {
    let hub =
        Hub::limited(&["--hub-lease", "200ms", "--hub-longest-sleep", "10ms", "--hub-requests-in-turn", "1"]);
    let client = hub.client();
    let mut ear = client.listen(&client.subscribe("{}"), None);
    client.start();
    while ear.next_type() != "session.errored" {}
}

#[test]
fn hub_attach_window_resume_window_and_replay() {
    let hub = Hub::limited(&["--hub-attach-window", "0s"]);
    let client = hub.client();
    let path = format!("/aaep/v1/events?subscription_id={}", client.subscribe("{}"));
    assert_eq!(client.get(&path).status, 404, "nobody listens on it, and it has no time to be found");

    let hub = Hub::limited(&["--hub-resume-window", "0s"]);
    let client = hub.client();
    let subscription = client.subscribe("{}");
    let mut ear = client.listen(&subscription, None);
    client.start();
    let (_, first, _) = ear.next();
    drop(ear);
    // When the hub notices that the connection is gone, it is over.
    let path = format!("/aaep/v1/events?subscription_id={subscription}&last_event_id={first}");
    until(|| {
        let mut stream = client.connect();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", hub.address).unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).unwrap();
        head == *b"HTTP/1.1 404"
    });

    let hub = Hub::limited(&["--hub-replay", "2"]);
    let client = hub.client();
    let subscription = client.subscribe("{}");
    let mut ear = client.listen(&subscription, None);
    let session = client.start();
    let (_, first, _) = ear.next();
    drop(ear);
    assert_eq!(publish(&client, &session, &[THINK]), 200);
    for text in ["One. ", "Two. "] {
        assert_eq!(client.post(&format!("/agent/v1/sessions/{session}/output"), text).status, 200);
    }
    let (_, _, event) = client.listen(&subscription, Some(&first)).next();
    assert_eq!(event["from_state"], event["to_state"], "the present state, and not what came first: {event}");
}

#[test]
fn questions() {
    let ask = |client: &Client, session: &str, amount: u8| {
        let question =
            QUESTION.replace("5 euro", &format!("{amount} euro")).replace("5.00", &format!("{amount}.00"));
        client.post(&format!("/agent/v1/sessions/{session}/confirmations"), &question).status
    };
    for limit in ["--questions-open-in-session", "--questions-open-of-agent", "--questions-open-in-all"] {
        let hub = Hub::limited(&[limit, "1"]);
        let client = hub.client();
        let subscription = client.subscribe(CAN_REPLY);
        let _ear = client.listen(&subscription, None);
        let (one, other) = (client.start(), client.start());
        assert_eq!(ask(&client, &one, 1), 201);
        assert_eq!(ask(&client, &one, 2), 429, "{limit}");
        let elsewhere = if limit.ends_with("session") { 201 } else { 429 };
        assert_eq!(ask(&client, &other, 3), elsewhere, "{limit}");
    }
    for (keeps, status) in [("1", 422), ("2", 200)] {
        let hub = Hub::limited(&["--questions-resolved-in-session", keeps]);
        let client = hub.client();
        let subscription = client.subscribe(CAN_REPLY);
        let _ear = client.listen(&subscription, None);
        let session = client.start();
        let first = client.ask(&session);
        assert_eq!(client.reply(&subscription, &first, "accept").status, 204);
        let other = QUESTION.replace("5 euro", "6 euro").replace("5.00", "6.00");
        let asked = client.post(&format!("/agent/v1/sessions/{session}/confirmations"), &other);
        assert_eq!(client.reply(&subscription, &asked.text("reply_token"), "accept").status, 204);
        let call = format!(
            r#"{{"type":"aaep:agent.tool.invoked","tool":"send","tool_call_id":"call_1","risk_level":"high","irreversible":true,"summary_normal":"Sending.","reply_token":"{first}","arguments":{{"amount":"5.00"}}}}"#
        );
        assert_eq!(publish(&client, &session, &[&call]), status, "{keeps} kept");
    }
}

/// The text of the next output.
fn text(ear: &mut testing::http::EventStream) -> String {
    loop {
        let (kind, _, event) = ear.next();
        if kind == "output.streaming" {
            return event["chunk"].as_str().unwrap_or_else(|| panic!("{event}")).to_owned();
        }
    }
}

#[test]
fn shape() {
    let hub = Hub::limited(&["--shape-text-bytes", "64", "--shape-outputs", "1"]);
    let client = hub.client();
    let mut ear = client.listen(&client.subscribe("{}"), None);
    let session = client.start();
    let path = format!("/agent/v1/sessions/{session}/output");
    assert_eq!(client.post(&path, &"word ".repeat(30)).status, 200);
    for _ in 0..2 {
        let heard = text(&mut ear);
        assert!(heard.len() <= 64, "no sentence has ended, but no more is held: {heard}");
    }
    // The rest of it is held, and there is room for one.
    let other = client.start();
    assert_eq!(client.post(&format!("/agent/v1/sessions/{other}/output"), "Not held").status, 200);
    assert_eq!(text(&mut ear), "Not held");

    let hub = Hub::limited(&["--shape-events", "4"]);
    let client = hub.client();
    let mut ear = client.listen(&client.subscribe(r#"{"max_events_per_second":1}"#), None);
    // Many more than are held: on a slow machine some go out meanwhile.
    for _ in 0..40 {
        client.start();
    }
    // It is told why, and then it is over.
    assert!(ear.is_over(), "too much is held for it");
}

#[test]
fn lanes() {
    for limit in [["--lanes-frames", "10"], ["--lanes-bytes", "64KiB"]] {
        let hub = Hub::limited(&[limit[0], limit[1], "--lanes-in-hand", "1"]);
        let client = hub.client();
        let uncut = r#"{"coalesce_boundaries":["none"]}"#;
        let (slow, quick) = (client.subscribe(uncut), client.subscribe(uncut));
        let mut slow = client.listen(&slow, None);
        let mut quick = client.listen(&quick, None);
        let session = client.start();
        let path = format!("/agent/v1/sessions/{session}/output");
        let sentence = format!("{}. ", "word ".repeat(7000));
        for _ in 0..400 {
            assert_eq!(client.post(&path, &sentence).status, 200);
            // To the end of the sentence: who leaves something lying is slow, too.
            while !quick.next().2["chunk"].as_str().is_some_and(|chunk| chunk.ends_with(". ")) {}
        }
        // What the system had taken already comes, and then it is over: not all of it was kept.
        assert!(slow.is_over(), "{limit:?}");
    }
}

#[test]
fn journal_and_retention() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let on_disk = |limits: &[&str]| {
        Hub::start(&[&["--open", "--listen", "127.0.0.1:0", "--data", data], limits].concat())
    };
    let work = |client: &Client| -> u16 {
        let answer = client.post("/agent/v1/sessions", STARTED);
        if answer.status != 201 {
            return answer.status;
        }
        publish(client, &answer.text("session_id"), &[THINK, END])
    };
    // The file may not grow beyond its size: the hub says that it is full.
    let full = on_disk(&["--journal-most-bytes", "256KiB"]);
    until(|| work(&full.client()) != 200);
    assert_eq!(full.client().post("/agent/v1/sessions", STARTED).status, 503);
    drop(full);
    // Looked at before the next hub runs: that one may well clear away in its first moment.
    let before = size(data);
    assert!(before <= 256 * 1024, "{before}");

    // What is too old goes while nothing else happens: who resumes from it is told the present state.
    let hub =
        on_disk(&["--retention-events", "1s", "--retention-every", "100ms", "--retention-step", "1000"]);
    until(|| size(data) <= before / 4 * 3);
    assert_eq!(hub.client().get("/healthz").status, 200);
    drop(hub);

    // With a limit on what is kept, it goes on, for the oldest makes room.
    let keeps =
        ["--journal-most-bytes", "256KiB", "--retention-bytes", "160KiB", "--retention-every", "100ms"];
    let hub = on_disk(&keeps);
    let client = hub.client();
    let mut done = 0;
    until(|| {
        done += usize::from(work(&client) == 200);
        done == 300
    });
    assert!(size(data) <= 256 * 1024, "{}", size(data));
}

#[test]
fn retention_of_keys_and_decisions() {
    let keeps = |time: &str| {
        Hub::limited(&["--retention-keys", time, "--retention-decisions", time, "--retention-every", "100ms"])
    };
    let start = |hub: &Hub| {
        hub.client().with("Idempotency-Key: k").post("/agent/v1/sessions", STARTED).text("session_id")
    };
    let hub = keeps("1h");
    assert_eq!(start(&hub), start(&hub));
    let hub = keeps("1s");
    let first = start(&hub);
    until(|| start(&hub) != first);
    let client = hub.client();

    let subscription = client.subscribe(CAN_REPLY);
    let _ear = client.listen(&subscription, None);
    let session = client.start();
    let token = client.ask(&session);
    assert_eq!(client.reply(&subscription, &token, "reject").status, 204);
    assert_eq!(publish(&client, &session, &[END]), 200);
    let path = format!("/agent/v1/sessions/{session}/replies/{token}");
    until(|| client.get(&path).status == 404);
}

fn size(data: &str) -> u64 {
    std::fs::metadata(format!("{data}/journal.sqlite")).unwrap().len()
}

#[test]
fn threads() {
    let hub = Hub::limited(&["--threads", "1"]);
    let status = std::fs::read_to_string(format!("/proc/{}/status", hub.id())).unwrap_or_default();
    let threads = status.lines().find_map(|line| line.strip_prefix("Threads:")?.trim().parse::<usize>().ok());
    let more = Hub::limited(&["--threads", "9"]);
    let status = std::fs::read_to_string(format!("/proc/{}/status", more.id())).unwrap_or_default();
    let most = status.lines().find_map(|line| line.strip_prefix("Threads:")?.trim().parse::<usize>().ok());
    assert_eq!(threads.map(|count| count + 8), most);
    let _: Value = serde_json::from_str(&hub.client().get("/.well-known/aaep-manifest.json").body).unwrap();
}
