//! For programs: `--json` and `--auto`.

use serde_json::Value;

use testing::hub::Hub;
use testing::terminal::{Agent, Person};

#[test]
fn each_line_is_an_object() {
    let hub = Hub::open();
    let mut person = Person::listens(&hub.address, &["--json"]);
    person.hears("Listening to");
    let agent = Agent::starts(hub.client());
    let token = agent.asks();
    let lines = person.hears(r#""kind":"ask""#);
    let ask: Value = serde_json::from_str(lines.last().unwrap()).unwrap();
    assert_eq!(ask["reply_token"], token.as_str());
    assert_eq!(ask["question"], 1);
    assert_eq!(ask["urgency"], "critical");
    assert_eq!(ask["session_id"], agent.session.as_str());
    assert_eq!((&ask["language"], &ask["direction"]), (&"en".into(), &"ltr".into()));
    assert!(ask["text"].as_str().unwrap().contains("What it would do: Send 5 euro to Ben."));
    assert!(ask["deadline"].as_str().unwrap().ends_with('Z'));
    person.types("no");
    let lines = person.hears("counts");
    assert!(lines.iter().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{lines:#?}");
}

#[test]
fn questions_are_answered_without_a_person() {
    for (auto, decision) in [("accept", "accept"), ("reject", "reject")] {
        let hub = Hub::open();
        let mut person = Person::is_there(&hub.address, &["--auto", auto]);
        let agent = Agent::starts(hub.client());
        let token = agent.asks();
        let told = agent.waits(&token, 30);
        assert!(told.contains(&format!(r#""decision":"{decision}","by":"reply""#)), "{told}");
        person.hears("answer: Without a person, question 1 is answered");
        person.hears("answer: Your answer to question 1 counts");
    }
}

#[test]
fn with_auto_none_nothing_is_answered() {
    let hub = Hub::open();
    let mut person = Person::is_there(&hub.address, &["--auto", "none"]);
    let agent = Agent::starts(hub.client());
    let token = agent.asks();
    person.hears("ask: Type");
    person.types("yes");
    person.hears("error: With --auto none nothing is answered. Nothing was sent.");
    assert_eq!(agent.waits(&token, 0), r#"{"status":"pending"}"#);
}
