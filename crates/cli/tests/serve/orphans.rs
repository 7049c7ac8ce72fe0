//! Answers for agents that are not there: nobody is promised that something is done with them.

use std::path::Path;

use serde_json::{Value, json};

use crate::serve::agent_ws::Agent;
use testing::http::EventStream;
use testing::hub::Hub;
use testing::messages::{CAN_REPLY, QUESTION};

/// Without signs of life, so that who waits in vain learns so.
fn start(folder: &Path) -> Hub {
    let data = folder.to_str().unwrap();
    let more = ["--demo-agent", "--http-heartbeat", "1h"];
    Hub::start(&[&["--open", "--listen", "127.0.0.1:0", "--data", data], &more[..]].concat())
}

/// The next event that is so.
fn until(ear: &mut EventStream, is: impl Fn(&str, &Value) -> bool) -> (String, Value) {
    loop {
        let (kind, id, event) = ear.next();
        if is(&kind, &event) {
            return (id, event);
        }
    }
}

fn decides(event: &Value, token: &str) -> bool {
    event["extensions"]["sayso"]["reply_token"] == json!(token)
        && event["extensions"]["sayso"]["decision"].is_string()
}

#[test]
fn what_the_demos_assistant_asked_is_over_when_its_process_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let mut hub = start(folder.path());
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let mut ear = client.listen(&subscription, None);
    client.post("/demo", r#"{"text":"Send 50 euro to Ben"}"#);
    let (last, asked) = until(&mut ear, |kind, _| kind == "awaiting.confirmation");
    let token = asked["reply_token"].as_str().unwrap();
    hub.kill();

    let hub = start(folder.path());
    let client = hub.client();
    assert_eq!(client.reply(&subscription, token, "accept").status, 204);
    let mut ear = client.listen(&subscription, Some(&last));
    let (_, ended) = until(&mut ear, |kind, _| kind == "session.errored");
    assert_eq!((&ended["error_code"], &ended["error_category"]), (&json!("AGENT_GONE"), &json!("unknown")));
    assert_eq!(ended["summary_normal"], "The agent is gone; its session was ended for it.");
    let metrics = client.get("/metrics").body;
    assert!(!metrics.contains(r#"verdict="taken""#), "{metrics}");
}

#[test]
fn a_yes_to_an_agent_that_is_away_is_told_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let mut hub = start(folder.path());
    let subscription = hub.client().subscribe(CAN_REPLY);
    let mut ear = hub.client().listen(&subscription, None);
    let mut agent = Agent::open(&hub);
    let session = agent.start();
    let tokens = ["Ben", "Cem", "Dot"].map(|name| {
        let mut question: Value = serde_json::from_str(&QUESTION.replace("Ben", name)).unwrap();
        (question["session_id"], question["arguments"]["to"]) = (json!(session), json!(name));
        agent.result("session.ask", &question)["reply_token"].as_str().unwrap().to_owned()
    });
    let [yes, no, later] = &tokens;
    let (mut last, _) = until(&mut ear, |_, event| event["reply_token"] == json!(later));
    hub.kill();

    let hub = start(folder.path());
    let client = hub.client();
    let mut ear = client.listen(&subscription, Some(&last));
    let is_away = |event: &Value| {
        event["summary_normal"].as_str().is_some_and(|said| said.starts_with("The agent is not connected"))
    };
    assert_eq!(client.reply(&subscription, yes, "accept").status, 204);
    until(&mut ear, |_, event| decides(event, yes));
    last = until(&mut ear, |_, event| is_away(event)).0;
    assert!(!last.is_empty());

    // A no needs nobody, and who is back is told itself.
    assert_eq!(client.reply(&subscription, no, "reject").status, 204);
    until(&mut ear, |_, event| decides(event, no));
    let mut agent = Agent::open(&hub);
    agent.result("session.follow", &json!({"session_id": session}));
    assert_eq!(client.reply(&subscription, later, "accept").status, 204);
    let mut told = vec![];
    until(&mut ear, |_, event| {
        assert!(!is_away(event), "{event}");
        decides(event, later)
    });
    agent.result(
        "session.event",
        &json!({"session_id": session, "event": {
            "type": "aaep:agent.session.completed", "summary_normal": "Done."
        }}),
    );
    until(&mut ear, |kind, event| {
        assert!(!is_away(event), "{event}");
        kind == "session.completed"
    });
    for _ in 0..3 {
        told.push(agent.told()["params"]["reply_token"].as_str().unwrap().to_owned());
    }
    told.sort();
    let mut all = tokens.to_vec();
    all.sort();
    assert_eq!(told, all);
}
