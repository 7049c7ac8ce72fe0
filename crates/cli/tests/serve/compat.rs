//! `--compat`: the dialect of AAEP's own packages, and that nobody speaks it who was not asked for it.

use std::process::Command;

use serde_json::Value;

use testing::cli::token;
use testing::http::{Client, EventStream};
use testing::hub::Hub;
use testing::messages::CAN_REPLY;
use testing::messages::{kind, reply, request};
use testing::websocket::Socket;

pub(crate) const HELLO: &str = r#"{"kind":"user_input","text":"Hello"}"#;

fn compat() -> Hub {
    // Signs of life would keep a test waiting that waits in vain.
    Hub::limited(&["--compat", "--http-heartbeat", "1h", "--messages-ping-time", "1h"])
}

/// A stream of the dialect, after its head.
pub(crate) fn stream(client: &Client) -> EventStream {
    client.stream("/events")
}

pub(crate) fn decision(client: &Client, session: &str, token: &str) -> (String, String) {
    let answer = client.get(&format!("/agent/v1/sessions/{session}/replies/{token}?wait=40"));
    (answer.text("decision"), answer.text("by"))
}

/// The same without a subscription, as `aaep-cli-debug` sends it.
pub(crate) fn bare(reply: &str) -> String {
    let mut value: Value = serde_json::from_str(reply).unwrap();
    value.as_object_mut().unwrap().remove("subscription_id");
    value.to_string()
}

#[test]
fn without_the_flag_nothing_of_the_dialect_is_known() {
    let hub = Hub::limited(&["--http-heartbeat", "1h", "--messages-ping-time", "1h"]);
    let client = hub.client();
    assert_eq!(client.get("/events").status, 404);
    for path in ["/messages", "/sessions", "/demo"] {
        for body in [HELLO, r#"{"user_message":"Hello","text":"Hello"}"#, &request("{}")] {
            assert_eq!(client.post(path, body).status, 404, "{path}");
        }
    }
    assert_eq!(Socket::connect(&hub, &[]).err(), Some(400), "without a subprotocol");
    // On a WebSocket as it should be, the first message is a handshake, and not a wish.
    let mut socket = Socket::open(&hub);
    socket.say(HELLO);
    assert_eq!(socket.code(), 4004);
}

#[test]
fn without_the_flag_a_reply_speaks_for_its_own_subscription_only() {
    let hub = Hub::open();
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let _ear = client.listen(&subscription, None);
    let (mut socket, _) = Socket::subscribed(&hub, CAN_REPLY);
    let session = client.start();
    let asked = client.ask(&session);
    let invented = reply("sub_0123456789abcdef", &asked, "accept");
    for text in [&invented, &bare(&invented)] {
        assert_eq!(client.post("/aaep/v1/replies", text).status, 204);
        socket.say(text);
    }
    // What the socket said is heard before its next message is answered.
    socket.say(r#"{"type":"subscription.renegotiate","subscription_id":"sub_1","capabilities":{}}"#);
    let open = client.get(&format!("/agent/v1/sessions/{session}/replies/{asked}"));
    assert_eq!(open.text("status"), "pending");
    client.reply(&subscription, &asked, "reject");
    assert_eq!(decision(&client, &session, &asked), ("reject".to_owned(), "reply".to_owned()));
}

#[test]
fn it_is_for_loopback_only_and_says_what_it_does() {
    let refused = Command::new(env!("CARGO_BIN_EXE_sayso"))
        .args(["serve", "--compat", "--memory", "--listen", "0.0.0.0:0"])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--compat takes answers"));
    assert!(compat().said.iter().any(|line| line.starts_with("warning: --compat")));
}

#[test]
fn a_stream_hears_without_asking_and_each_start_twice() {
    let hub = compat();
    let client = hub.client();
    let mut ear = stream(&client);
    let session = client.start();
    let mut line = || loop {
        // A comment is a sign of life.
        let line = ear.next_line();
        if !line.is_empty() && !line.starts_with(':') {
            return line;
        }
    };
    let first = line();
    assert!(first.starts_with("data: {"), "unnamed, without an id: {first}");
    assert_eq!(line(), first, "the suite skips the first");
    client.post(
        &format!("/agent/v1/sessions/{session}/events"),
        r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#,
    );
    assert_eq!(ear.next_type(), "session.completed");
}

#[test]
fn a_stream_that_comes_late_is_told_the_running_session_from_its_start() {
    let hub = compat();
    let client = hub.client();
    let over = client.start();
    let path = |session: &str| format!("/agent/v1/sessions/{session}/events");
    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    let session = client.start();
    assert_eq!(client.post(&path(&over), end).status, 200);
    let state = r#"{"type":"aaep:agent.state.changed","to_state":"thinking","summary_normal":"Thinking."}"#;
    assert_eq!(client.post(&path(&session), state).status, 200);
    let mut ear = stream(&client);
    let told: Vec<_> = (0..3).map(|_| ear.next().2).collect();
    assert!(told.iter().all(|event| event["session_id"] == session.as_str()), "{told:?}");
    assert_eq!(
        told.iter().map(kind).collect::<Vec<_>>(),
        ["session.started", "session.started", "state.changed"]
    );
    assert_eq!(told[2]["summary_normal"], "Thinking.", "as it was said");
    assert_eq!(client.post(&path(&session), end).status, 200);
    assert_eq!(ear.next_type(), "session.completed");
}

#[test]
fn replies_need_no_subscription_and_speak_for_the_stream_that_was_told() {
    let hub = compat();
    let client = hub.client();
    let mut ear = stream(&client);
    let session = client.start();
    for (text, wanted) in [("accept", bare as fn(&str) -> String), ("reject", str::to_owned)]
        .map(|(word, form)| (form(&reply("sub_0123456789abcdef", "TOKEN", word)), word))
    {
        let asked = client.ask(&session);
        while ear.next().2["reply_token"] != asked.as_str() {}
        let said = text.replace("TOKEN", &asked);
        assert_eq!(client.post("/messages", &said).status, 200, "{said}");
        assert_eq!(decision(&client, &session, &asked), (wanted.to_owned(), "reply".to_owned()));
        assert_eq!(client.post("/messages", &said).status, 200, "again, and in vain");
    }
    for odd in ["[]", "1", "{}", r#"{"type":"confirmation.reply"}"#] {
        assert_eq!(client.post("/messages", odd).status, 200, "{odd}");
    }
    assert_eq!(client.post("/messages", "{").status, 400);
}

#[test]
fn nobody_answers_who_was_not_told() {
    let hub = compat();
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let _ear = client.listen(&subscription, None);
    let session = client.start();
    let asked = client.ask(&session);
    let said = bare(&reply("sub_1", &asked, "accept"));
    assert_eq!(client.post("/messages", &said).status, 200);
    let open = client.get(&format!("/agent/v1/sessions/{session}/replies/{asked}"));
    assert_eq!(open.text("status"), "pending", "there is no stream of the dialect");
}

#[test]
fn whoever_needs_a_token_needs_it_here_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens").to_str().unwrap().to_owned();
    let observer = token(&file, &["--role", "observer", "--name", "onlooker"]);
    let agent = token(&file, &["--role", "agent", "--name", "bank", "--agent-id", "bank"]);
    let listener = token(&file, &["--role", "listener", "--name", "marisol"]);
    let hub = Hub::start(&["--memory", "--tokens", &file, "--compat", "--listen", "127.0.0.1:0"]);
    let nobody = hub.client();
    for (method, path) in [("GET", "/events"), ("POST", "/messages"), ("POST", "/sessions")] {
        assert_eq!(nobody.send(method, path, "{}").status, 401, "{path}");
    }
    let (observer, agent) = (nobody.bearer(&observer), nobody.bearer(&agent));
    let mut told = stream(&nobody.bearer(&listener));
    let mut hears = stream(&observer);
    let session = agent.start();
    let asked = agent.ask(&session);
    while told.next().2["reply_token"] != asked.as_str() {}
    assert_eq!(hears.next_type(), "session.started");
    observer.post("/messages", &bare(&reply("sub_1", &asked, "accept")));
    agent.post("/messages", &bare(&reply("sub_1", &asked, "accept")));
    assert_eq!(observer.post("/messages", HELLO).status, 403);
    let open = agent.get(&format!("/agent/v1/sessions/{session}/replies/{asked}"));
    assert_eq!(open.text("status"), "pending");
}

#[test]
fn who_hangs_up_leaves_no_question_open() {
    let hub = compat();
    let client = hub.client();
    let mut ear = stream(&client);
    let session = client.start();
    let asked = client.ask(&session);
    while ear.next().2["reply_token"] != asked.as_str() {}
    drop(ear);
    assert_eq!(decision(&client, &session, &asked).0, "reject");
}

#[test]
fn a_handshake_gives_a_stream_other_terms() {
    let hub = compat();
    let client = hub.client();
    let mut ear = stream(&client);
    let session = client.start();
    let asked = client.ask(&session);
    while ear.next().2["reply_token"] != asked.as_str() {}
    let filters =
        r#"{"supports_confirmation_reply":true,"event_filters":{"exclude":["aaep:agent.state.*"]}}"#;
    assert_eq!(client.post("/messages", &request(filters)).status, 200);
    let (kind, _, accepted) = ear.next();
    assert_eq!(kind, "subscription.accepted", "the very next message");
    assert_eq!(accepted["honored_capabilities"]["supports_confirmation_reply"], true);
    assert_eq!(client.post("/messages", testing::messages::FROM_THE_FUTURE).status, 200);
    let (kind, _, rejected) = ear.next();
    assert_eq!(
        (kind.as_str(), &rejected["reason_code"]),
        ("subscription.rejected", &"version_unsupported".into())
    );
    // The question was not forgotten over it, and what comes now comes by the new terms.
    client.post("/messages", &bare(&reply("sub_1", &asked, "accept")));
    assert_eq!(decision(&client, &session, &asked).0, "accept");
    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    assert_eq!(client.post(&format!("/agent/v1/sessions/{session}/events"), end).status, 200);
    assert_eq!(ear.next_type(), "session.completed", "no state was told");
    client.start();
    assert_eq!(ear.next_type(), "session.started");
    let other = client.start();
    assert_eq!(ear.next().2["session_id"], other.as_str(), "a start is told once by whoever shook hands");
}

#[test]
fn who_was_asked_can_answer_whatever_terms_it_takes_later() {
    let hub = compat();
    let client = hub.client();
    let mut ear = stream(&client);
    let mut socket = Socket::connect(&hub, &[]).unwrap();
    for over_http in [true, false] {
        let session = client.start();
        let asked = client.ask(&session);
        while ear.next().2["reply_token"] != asked.as_str() {}
        while socket.next()["reply_token"] != asked.as_str() {}
        let said = bare(&reply("sub_1", &asked, "accept"));
        // Terms that can answer nothing.
        client.post("/messages", &request("{}"));
        while ear.next_type() != "subscription.accepted" {}
        socket.say(&request("{}"));
        while kind(&socket.next()) != "subscription.accepted" {}
        if over_http {
            client.post("/messages", &said);
        } else {
            socket.say(&said);
        }
        assert_eq!(decision(&client, &session, &asked), ("accept".to_owned(), "reply".to_owned()));
        // Nobody is left who could answer, and that is known as soon as the answer was heard.
        let mut by = String::new();
        while by != "unreachable" {
            let asked = client.ask(&session);
            by = decision(&client, &session, &asked).1;
            assert!(["unreachable", "closure"].contains(&by.as_str()), "{by}");
        }
        ear = stream(&client);
        socket = Socket::connect(&hub, &[]).unwrap();
    }
}

#[test]
fn pages_of_another_origin_are_not_let_in() {
    let hub = compat();
    let page = hub.client().with("Origin: http://pages.example");
    for (method, path) in [("GET", "/events"), ("POST", "/messages"), ("POST", "/sessions")] {
        assert_eq!(page.send(method, path, HELLO).status, 403, "{path}");
    }
    assert_eq!(Socket::connect(&hub, &[("Origin", "http://pages.example")]).err(), Some(403));
}

#[test]
fn a_hub_that_stops_says_so() {
    let mut hub = compat();
    let mut ear = stream(&hub.client());
    assert_eq!(hub.stop(), 0);
    let (kind, _, last) = ear.next();
    assert_eq!((kind.as_str(), &last["reason_code"]), ("subscription.close", &"producer_shutdown".into()));
    assert!(ear.is_over());
}

#[test]
fn a_socket_without_a_subprotocol_does_the_same() {
    let hub = compat();
    let client = hub.client();
    let mut socket = Socket::connect(&hub, &[]).unwrap();
    socket.say(r#"{"kind":"user_input","text":"Transfer it"}"#);
    let first = socket.next();
    assert_eq!((kind(&first), &socket.next()), ("session.started", &first));
    let asked = loop {
        let event = socket.next();
        if kind(&event) == "awaiting.confirmation" {
            break event["reply_token"].as_str().unwrap().to_owned();
        }
    };
    socket.say(&bare(&reply("sub_1", &asked, "accept")));
    let mut told = Vec::new();
    while told.last().is_none_or(|last| last != "session.completed") {
        told.push(kind(&socket.next()).to_owned());
    }
    assert!(told.contains(&"tool.invoked".to_owned()), "{told:?}");
    socket.say(&request(r#"{"max_events_per_second":5}"#));
    assert_eq!(kind(&socket.next()), "subscription.accepted");
    client.start();
    assert_eq!(kind(&socket.next()), "session.started");
    // Who asks for the subprotocol gets all of it.
    let (_strict, _) = Socket::subscribed(&hub, "{}");
}

#[test]
fn a_wish_starts_a_session_for_who_made_it() {
    let hub = compat();
    let client = hub.client();
    let mut ear = stream(&client);
    assert_eq!(client.post("/sessions", r#"{"user_message":""}"#).status, 400);
    let session = client.post("/sessions", r#"{"user_message":"Hello","user_id":"marisol"}"#);
    let started = ear.next().2;
    assert_eq!((session.status, started["session_id"].as_str()), (201, Some(&*session.text("session_id"))));
    assert_eq!(started["requested_by"], "user:marisol");
}
