//! Agents that hang up and come back.

use serde_json::{Value, json};

use super::{Agent, CALL, event, question, start, stop, with_key};
use testing::hub::Hub;
use testing::messages::{CAN_REPLY, QUESTION};

#[test]
fn nothing_is_lost_between_two_connections() {
    let hub = Hub::open();
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let _ear = client.listen(&subscription, None);
    let mut agent = Agent::open(&hub);
    let session = agent.start();
    let first = agent.ask(&session);
    let another = QUESTION.replace("Ben", "Cleo").replace("5.00", "6.00");
    let mut another: Value = serde_json::from_str(&another).unwrap();
    another["session_id"] = session.as_str().into();
    let second = agent.result("session.ask", &another)["reply_token"].clone();
    drop(agent);
    client.reply(&subscription, &first, "accept");
    let mut agent = Agent::open(&hub);
    agent.result("session.follow", &json!({"session_id": session}));
    let told = agent.told();
    assert_eq!(
        (&told["params"]["reply_token"], &told["params"]["decision"]),
        (&json!(first), &json!("accept")),
        "what was answered meanwhile"
    );
    client.reply(&subscription, second.as_str().unwrap(), "reject");
    assert_eq!(agent.told()["params"]["reply_token"], second, "and what is answered now");
    drop(agent);
    stop(&client, &subscription, &session);
    let mut agent = Agent::open(&hub);
    assert_eq!(agent.error("session.follow", &json!({"session_id": session}))["code"], -32004);
    assert_eq!(agent.told()["params"], json!({"session_id": session, "reason": "user"}));
}

#[test]
fn the_same_key_does_the_same_thing_once_across_connections_and_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let mut hub = Hub::on_disk(folder.path());
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let _ear = client.listen(&subscription, None);
    let mut agent = Agent::open(&hub);
    let started = agent.result("session.start", &with_key(start(), "start"));
    let session = started["session_id"].as_str().unwrap().to_owned();
    let ask = with_key(question(&session), "ask");
    let asked = agent.result("session.ask", &ask);
    let token = asked["reply_token"].as_str().unwrap().to_owned();
    drop(agent);
    let mut agent = Agent::open(&hub);
    assert_eq!(agent.result("session.start", &with_key(start(), "start")), started);
    assert_eq!(agent.result("session.ask", &ask), asked);
    assert!(agent.told.is_empty(), "{:?}", agent.told);
    client.reply(&subscription, &token, "accept");
    assert_eq!(agent.told()["params"]["decision"], "accept");
    let mut other = ask.clone();
    other["timeout_seconds"] = 90.into();
    assert_eq!(agent.error("session.ask", &other)["code"], -32009);
    hub.kill();
    drop(agent);

    let hub = Hub::on_disk(folder.path());
    let mut agent = Agent::open(&hub);
    assert_eq!(agent.result("session.start", &with_key(start(), "start")), started);
    assert_eq!(agent.told()["params"]["reply_token"], json!(token), "it is followed again");
    assert_eq!(agent.result("session.ask", &ask), asked);
    assert_eq!(agent.told()["params"]["decision"], "accept", "and whoever asks again is told again");
    agent.result("session.event", &with_key(event(&session, CALL), "call"));
    agent.result("session.event", &with_key(event(&session, CALL), "call"));
    let again = agent.error("session.event", &event(&session, &CALL.replace("call_1", "call_2")));
    assert_eq!(again["code"], -32022, "a yes is spent once");
}

#[test]
fn who_hangs_up_waits_no_more() {
    let hub = Hub::open();
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let _ear = client.listen(&subscription, None);
    let session = client.start();
    let token = client.ask(&session);
    // More than one principal may have open at once.
    for _ in 0..1_100 {
        use std::io::Write;
        let path = format!("/agent/v1/sessions/{session}/replies/{token}?wait=300");
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", hub.address);
        client.connect().write_all(request.as_bytes()).unwrap();
    }
    let path = format!("/agent/v1/sessions/{session}/replies/{token}?wait=1");
    let until = std::time::Instant::now() + std::time::Duration::from_mins(2);
    while client.get(&path).status == 429 {
        assert!(std::time::Instant::now() < until, "they are still waited for");
    }
}
