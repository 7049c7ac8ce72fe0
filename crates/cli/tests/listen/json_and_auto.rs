//! Options for programs: `--json` and `--auto`.

use serde_json::Value;

use testing::hub::HubProcess;
use testing::terminal::{AgentSession, ListenProcess};

#[test]
fn with_json_each_line_is_an_object() {
    let hub = HubProcess::start_in_memory();
    let mut person = ListenProcess::start(&hub.address, &["--json"]);
    person.read_until("Listening to");
    let agent = AgentSession::start(hub.client());
    let token = agent.ask_confirmation();
    let lines = person.read_until(r#""kind":"ask""#);
    let ask: Value = serde_json::from_str(lines.last().unwrap()).unwrap();
    assert_eq!(ask["reply_token"], token.as_str());
    assert_eq!(ask["question"], 1);
    assert_eq!(ask["urgency"], "critical");
    assert_eq!(ask["session_id"], agent.session_id.as_str());
    assert_eq!((&ask["language"], &ask["direction"]), (&"en".into(), &"ltr".into()));
    assert!(ask["text"].as_str().unwrap().contains("local: Send 5 euros to Ben."));
    assert!(ask["deadline"].as_str().unwrap().ends_with('Z'));
    person.type_line("no");
    let lines = person.read_until("Rejected.");
    assert!(lines.iter().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{lines:#?}");
}

#[test]
fn auto_answers_questions_without_a_person() {
    for (auto, decision, outcome) in [("accept", "accept", "Accepted."), ("reject", "reject", "Rejected.")] {
        let hub = HubProcess::start_in_memory();
        let mut person = ListenProcess::start_connected(&hub.address, &["--auto", auto]);
        let agent = AgentSession::start(hub.client());
        let token = agent.ask_confirmation();
        let reply = agent.wait_for_reply(&token, 30);
        assert!(reply.contains(&format!(r#""decision":"{decision}","by":"reply""#)), "{reply}");
        person.read_until("answer: Question 1 was answered automatically");
        person.read_until(&format!("answer: {outcome}"));
    }
}

#[test]
fn with_auto_none_no_question_is_answered() {
    let hub = HubProcess::start_in_memory();
    let mut person = ListenProcess::start_connected(&hub.address, &["--auto", "none"]);
    let agent = AgentSession::start(hub.client());
    let token = agent.ask_confirmation();
    person.read_until("ask: Yes or no?");
    person.type_line("yes");
    person.read_until("error: With --auto none, no question is answered. Nothing was sent.");
    assert_eq!(agent.wait_for_reply(&token, 0), r#"{"status":"pending"}"#);
}
