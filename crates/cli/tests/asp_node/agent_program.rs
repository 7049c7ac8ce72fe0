//! What the agent's program can state and see: constraints, tokens, disputes and ended sessions, over HTTP and with the commands.

use serde_json::{Value, json};
use testing::cli::{CommandOutput, run_sayso};
use testing::http::TestResponse;

use crate::policies::{deliver, introduce, proposal};
use crate::test_node::{NodeBuilder, Storage, TestNode, View, start_builders, start_pair, timestamp_in};

/// Runs a command of `sayso asp` with a node.
fn run(node: &TestNode, arguments: &[&str]) -> CommandOutput {
    let url = format!("http://{}", node.address);
    run_sayso(&[&["asp"], arguments, &["--node", &url]].concat(), "")
}

/// Runs a command that must succeed, and returns what it prints.
#[track_caller]
fn printed(node: &TestNode, arguments: &[&str]) -> String {
    let output = run(node, arguments);
    assert_eq!(output.exit_code, 0, "{arguments:?}: {}", output.stderr);
    output.stdout
}

fn post(node: &TestNode, session: &str, request: &Value) -> TestResponse {
    let path = format!("/agent/v1/asp/sessions/{session}/messages");
    node.try_send("POST", &path, &request.to_string()).unwrap()
}

const QUERY: &str = r#"{"queryId":"qry_1","queryType":"question","subject":"when?"}"#;

#[test]
fn a_token_budget_limits_the_tokens_that_an_answer_states() {
    let pair = start_pair(|builder| builder);
    let [buyer, press] = &pair;
    let session = introduce(&pair);
    printed(
        buyer,
        &["send", &session, "QUERY", QUERY, "--constraints", r#"{"maxTokenBudget":1000}"#, "--wait"],
    );
    press.wait_for(&session, "the question", |view| view.state() == "CONVERSING");
    let answer = |tokens: Value| {
        let body = json!({"informType": "answer", "inReplyTo": "qry_1", "data": {"when": "tomorrow"}});
        post(press, &session, &json!({"performative": "INFORM", "body": body, "tokensUsed": tokens}))
    };
    let refused = answer(json!(1001));
    assert_eq!((refused.status, refused.json_str("code")), (422, "budget_exceeded".to_owned()));
    for malformed in [json!(-1), json!(1.5), json!("1"), json!(1_u64 << 53), Value::Null] {
        assert_eq!(answer(malformed.clone()).status, 400, "{malformed}");
    }
    assert_eq!(answer(json!(1000)).status, 200);
    let view = buyer.wait_for(&session, "the answer", |view| view.message_count() == 6);
    assert_eq!(view.messages().last().unwrap()["tokensUsed"], 1000, "the other side can check it");
    // The command states it, too.
    let body = r#"{"subject":"the weather"}"#;
    printed(
        press,
        &[
            "send",
            &session,
            "QUERY",
            &QUERY.replace("qry_1", "qry_2"),
            "--constraints",
            r#"{"maxTokenBudget":50}"#,
            "--wait",
        ],
    );
    let over = run(buyer, &["send", &session, "OBSERVE", body, "--tokens-used", "51"]);
    assert_eq!(over.exit_code, 1, "{}", over.stderr);
    assert!(over.stderr.contains("budget_exceeded"), "{}", over.stderr);
    printed(buyer, &["send", &session, "OBSERVE", body, "--tokens-used", "50", "--wait"]);
}

#[test]
fn the_command_sends_constraints_and_refuses_malformed_ones() {
    let pair = start_pair(|builder| builder);
    let [buyer, press] = &pair;
    let session = introduce(&pair);
    for constraints in ["[]", "{\"maxTokenBudget\":-1}", "x"] {
        let output = run(buyer, &["send", &session, "QUERY", QUERY, "--constraints", constraints]);
        assert_eq!(output.exit_code, 2, "{constraints}: {}", output.stderr);
        assert!(output.stderr.contains("constraints"), "{}", output.stderr);
    }
    let allowed = r#"{"allowedPerformatives":["OBSERVE"],"maxResponseTimeMs":600000}"#;
    printed(buyer, &["send", &session, "QUERY", QUERY, "--constraints", allowed, "--wait"]);
    let view = press.wait_for(&session, "the question", |view| view.state() == "CONVERSING");
    assert_eq!(view.0["awaitedResponse"]["from"], "you");
    let refused = press.try_post_message(&session, "CLARIFY", &json!({"inReplyTo": "qry_1", "answer": "no"}));
    assert_eq!(refused.unwrap().json_str("code"), "policy_violation");
    deliver(&pair, 1, &session, "OBSERVE", &json!({"subject": "tomorrow"}));
}

/// Brings a session to an agreement in which the press has something to do.
fn agree(pair: &[TestNode; 2]) -> String {
    let session = introduce(pair);
    deliver(pair, 0, &session, "PROPOSE", &proposal("prop_1"));
    let obligation =
        json!({"party": pair[1].agent, "action": "print 40 menus", "deadline": timestamp_in(3600)});
    let commitment = json!({"commitmentId": "cmt_1", "terms": {"obligations": [obligation]}});
    deliver(pair, 0, &session, "COMMIT", &commitment);
    deliver(pair, 1, &session, "ACCEPT", &json!({"referenceId": "cmt_1"}));
    session
}

#[test]
fn disputes_are_filed_listed_and_decided_with_the_command() {
    let pair = start_pair(|builder| builder);
    let [buyer, press] = &pair;
    let session = agree(&pair);
    assert_eq!(printed(buyer, &["dispute", "list", &session]), "");
    // The node refuses a complaint that the transcript contradicts.
    let refused = run(buyer, &["dispute", "file", &session, "deadline-passed"]);
    assert_eq!(refused.exit_code, 1, "{}", refused.stderr);
    assert!(refused.stderr.contains("no deadline of the accused agent has passed"), "{}", refused.stderr);
    for arguments in [&["dispute", "file", &*session, "bad-mood"][..], &["dispute", "show", "dispute"]] {
        assert_eq!(run(buyer, arguments).exit_code, 2, "{arguments:?}");
    }
    let file = ["dispute", "file", &session, "terms-changed", "--severity", "4", "--statement", "80 menus!"];
    let filed = printed(buyer, &file);
    let id = filed.split(' ').next().unwrap().to_owned();
    let expected =
        format!("{id} terms-changed about cmt_1 against {}, severity 4: waiting for a person\n", press.agent);
    assert_eq!(filed, expected);
    assert_eq!(printed(buyer, &["dispute", "show", &id]), expected);
    assert_eq!(printed(buyer, &["dispute", "list", &session]), expected);
    let json: Value = serde_json::from_str(&printed(buyer, &["dispute", "show", &id, "--json"])).unwrap();
    assert_eq!(
        (&json["status"], &json["dispute"]["statement"]),
        (&json!("awaiting_person"), &json!("80 menus!"))
    );
    // The decision is never more severe than the complaint.
    let resolve = |arguments: &[&str]| run(buyer, &[&["dispute", "resolve", &*id][..], arguments].concat());
    assert_eq!(resolve(&["upheld", "--severity", "5"]).exit_code, 1);
    let upheld = resolve(&["upheld", "--severity", "2", "--explanation", "the press changed the number"]);
    assert!(
        upheld.stdout.ends_with("upheld with severity 2: the press changed the number\n"),
        "{} {}",
        upheld.stdout,
        upheld.stderr
    );
    assert_eq!(resolve(&["withdrawn"]).exit_code, 1, "a dispute ends once");
    assert!(printed(buyer, &["trust", &press.agent]).contains("disputes that it lost: 1"));
}

#[test]
fn ended_sessions_are_listed_the_latest_first() {
    let pair = start_builders(["buyer", "press"].map(|name| NodeBuilder::new(name).storage(Storage::Disk)));
    let buyer = &pair[0];
    let ended = |query: &str| -> Vec<String> {
        let response = buyer.get(&format!("/agent/v1/asp/sessions?ended=true{query}"));
        assert_eq!(response.status, 200, "{response:?}");
        let sessions = response.json()["sessions"].as_array().unwrap().clone();
        sessions.iter().map(|session| session["sessionId"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ended(""), [""; 0]);
    let empty = run(buyer, &["show", "--ended"]);
    assert_eq!((empty.exit_code, &*empty.stdout), (0, ""));
    let mut sessions: Vec<_> = (1..=3)
        .map(|number| {
            let session = introduce(&pair);
            deliver(&pair, 0, &session, "CLOSE", &json!({"reason": format!("reason {number}")}));
            buyer.wait_for(&session, "the end", |view| view.is_terminal() && view.is_acknowledged());
            session
        })
        .collect();
    let open = introduce(&pair);
    sessions.reverse();
    for _ in 0..2 {
        assert_eq!(ended(""), sessions);
        assert_eq!(ended("&limit=1"), sessions[..1]);
        assert_eq!(ended(&format!("&limit=1&before={}", sessions[0])), sessions[1..2]);
        assert_eq!(ended(&format!("&before={}", sessions[2])), [""; 0]);
        assert_eq!(ended(&format!("&before={open}")), [""; 0], "an open session is not in the list");
        buyer.restart();
    }
    let entry = buyer.get("/agent/v1/asp/sessions?ended=true").json()["sessions"][0].clone();
    assert_eq!((&entry["state"], &entry["reason"]), (&json!("CLOSED"), &json!("reason 3")));
    assert!(entry["endedAt"].is_string() && entry["messageCount"] == 5, "{entry}");
    for query in ["ended=yes", "ended=true&before=x", "ended=true&limit=-1"] {
        assert_eq!(buyer.get(&format!("/agent/v1/asp/sessions?{query}")).status, 400, "{query}");
    }
    let lines = printed(buyer, &["show", "--ended"]);
    let ids: Vec<_> = lines.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(ids, sessions);
    let list = printed(buyer, &["show"]);
    assert!(list.starts_with(&open) && list.lines().count() == 1, "{list}");
}

#[test]
fn the_list_of_ended_sessions_is_limited() {
    let policy = "[limits]\nlisted_ended_sessions = 2\nretry_delay_ms = 20\ninvitations_per_minute = [99, 99, 99, 99, 99]\n\
        messages_per_minute = [999, 999, 999, 999, 999]\n[escrow]\n";
    let pair = start_pair(|builder| builder.storage(Storage::Disk).policy(policy));
    let sessions: Vec<_> = (0..3)
        .map(|_| {
            let session = introduce(&pair);
            deliver(&pair, 0, &session, "CLOSE", &json!({"reason": "done"}));
            pair[0].wait_for(&session, "the end", View::is_acknowledged);
            session
        })
        .collect();
    for _ in 0..2 {
        let list = pair[0].get("/agent/v1/asp/sessions?ended=true").json();
        let ids: Vec<_> =
            list["sessions"].as_array().unwrap().iter().map(|entry| &entry["sessionId"]).collect();
        assert_eq!(ids, [sessions[2].as_str(), &sessions[1]]);
        pair[0].restart();
    }
}
