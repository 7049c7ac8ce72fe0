//! The person's answers, and the answers that the harness gets.

use serde_json::json;

use super::*;

#[test]
fn the_answer_to_a_permission_request_is_the_persons() {
    let fixture = HookFixture::start();
    let mut listener = fixture.listen();
    for (decision, expected) in
        [("accept", allowed()), ("reject", denied("Not permitted: the user said no."))]
    {
        let hook = fixture.spawn(&["claude"], &permission_request("rm -r build"));
        let question = listener.wait_for("awaiting.confirmation");
        assert_eq!(question["action"], "Run: rm -r build.");
        assert_eq!(question["consequence"], "It deletes files.");
        assert_eq!((&question["irreversible"], &question["risk_level"]), (&json!(true), &json!("high")));
        assert_eq!(question["default_decision"], "reject");
        // The agent's description of the command has no effect, so it is no part of the call that the answer permits.
        assert_eq!(question["extensions"]["sayso"]["arguments"], json!({"command": "rm -r build"}));
        fixture.answer(&listener, question["reply_token"].as_str().unwrap(), decision);
        assert_eq!(hook.finish(), expected);
        if decision == "accept" {
            // The yes is used for exactly this call.
            let call = listener.wait_for("tool.invoked");
            assert_eq!((&call["tool"], &call["irreversible"]), (&json!("Bash"), &json!(true)));
        }
    }
}

#[test]
fn a_question_is_heard_in_the_language_of_the_listener() {
    for (language, action, consequence, started) in [
        ("es", "Ejecutar: rm a.", "Borra archivos.", "Trabajando en shop."),
        ("yo", "Ṣe àṣẹ yìí: rm a.", "Ó ń pa fáìlì rẹ́.", "Ó ń ṣiṣẹ́ nínú shop."),
        ("fr", "Run: rm a.", "It deletes files.", "Working in shop."),
    ] {
        let fixture = HookFixture::start();
        let capabilities = json!({"supports_confirmation_reply": true, "languages": [language]});
        let mut listener = fixture.listen_with(&capabilities.to_string());
        let hook = fixture.spawn(&["claude"], &permission_request("rm a"));
        assert_eq!(listener.wait_for("session.started")["summary_normal"], started);
        let question = listener.wait_for("awaiting.confirmation");
        assert_eq!((&question["action"], &question["consequence"]), (&json!(action), &json!(consequence)));
        fixture.answer(&listener, question["reply_token"].as_str().unwrap(), "reject");
        assert_eq!(hook.finish(), denied("Not permitted: the user said no."));
    }
}

#[test]
fn a_call_is_asked_about_before_it_is_made_if_all_calls_are_gated() {
    let fixture = HookFixture::start();
    let mut listener = fixture.listen();
    for (decision, expected) in [
        ("accept", pre_tool("allow", "A person permitted this call through sayso.")),
        ("reject", pre_tool("deny", "Not permitted: the user said no.")),
    ] {
        let id = format!("toolu_{decision}");
        let hook = fixture.spawn(&["claude", "--gate", "all"], &bash_event("PreToolUse", "ls", &id));
        let token = listener.wait_for_question();
        fixture.answer(&listener, &token, decision);
        assert_eq!(hook.finish(), expected);
    }
    // Nobody is asked twice: the harness's own request about the same call gets the same answer.
    assert_eq!(fixture.run(&permission_request("ls")), allowed());
}

#[test]
fn only_risky_calls_are_asked_about_if_those_are_gated() {
    let fixture = HookFixture::start();
    let mut listener = fixture.listen();
    let run = |command: &str, id: &str| {
        fixture.spawn(&["claude", "--gate", "risky"], &bash_event("PreToolUse", command, id))
    };
    assert_eq!(run("ls | head -3", "toolu_1").finish(), json!({}));
    let hook = run("ls; rm a", "toolu_2");
    let token = listener.wait_for_question();
    fixture.answer(&listener, &token, "reject");
    assert_eq!(hook.finish(), pre_tool("deny", "Not permitted: the user said no."));
    assert_eq!(
        fixture.run(&bash_event("PreToolUse", "rm a", "toolu_3")),
        json!({}),
        "only requests are gated"
    );
}

#[test]
fn a_call_that_nobody_answers_is_refused_before_the_deadline() {
    let fixture = HookFixture::start();
    let mut listener = fixture.listen();
    let arguments = ["claude", "--gate", "all", "--deadline", "5"];
    let request = fixture.spawn(&arguments, &permission_request("rm a"));
    let call = fixture.spawn(&arguments, &bash_event("PreToolUse", "rm b", "toolu_1"));
    assert_eq!(request.finish(), denied("Not permitted: nobody answered in time."));
    assert_eq!(call.finish(), pre_tool("deny", "Not permitted: nobody answered in time."));
    listener.wait_for_question();
}

#[test]
fn a_late_yes_permits_nothing() {
    let fixture = HookFixture::start();
    let mut listener = fixture.listen();
    let mut hook = fixture.spawn(&["claude"], &permission_request("rm -r build"));
    let token = listener.wait_for_question();
    hook.child.kill().unwrap();
    hook.child.wait().unwrap();
    fixture.answer(&listener, &token, "accept");
    // A person is asked again about the same call later.
    let hook = fixture.spawn(&["claude"], &permission_request("rm -r build"));
    let second = listener.wait_for_question();
    assert_ne!(second, token);
    fixture.answer(&listener, &token, "accept");
    fixture.answer(&listener, &second, "reject");
    assert_eq!(hook.finish(), denied("Not permitted: the user said no."));
}

#[test]
fn the_agent_is_interrupted_if_the_person_stops_the_session() {
    let fixture = HookFixture::start();
    let mut listener = fixture.listen();
    let hook = fixture.spawn(&["claude"], &permission_request("rm a"));
    let question = listener.wait_for("awaiting.confirmation");
    let stop = json!({
        "type": "sayso:session.stop", "session_id": question["session_id"],
        "subscription_id": listener.subscription, "timestamp": seal_timestamp()
    });
    assert_eq!(fixture.hub.client().post("/aaep/v1/replies", &stop.to_string()).status, 204);
    let mut expected = denied("Not permitted: the user stopped this session. Do not go on.");
    expected["hookSpecificOutput"]["decision"]["interrupt"] = json!(true);
    assert_eq!(hook.finish(), expected);
}

#[test]
fn input_that_a_server_requests_is_requested_from_the_person() {
    let fixture = HookFixture::start();
    let mut listener = fixture.listen();
    let elicitation = event(
        "Elicitation",
        json!({
            "mcp_server_name": "shop", "message": "Proceed?", "mode": "form",
            "requested_schema": {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
        }),
    );
    let hook = fixture.spawn(&["claude"], &elicitation);
    let question = listener.wait_for("awaiting.clarification");
    assert_eq!(question["question"], "The server shop asks: Proceed?");
    let timestamp = seal_timestamp();
    let reply = json!({
        "type": "clarification.reply", "reply_token": question["reply_token"], "response": true,
        "subscription_id": listener.subscription, "timestamp": timestamp
    });
    assert_eq!(fixture.hub.client().post("/aaep/v1/replies", &reply.to_string()).status, 204);
    assert_eq!(
        hook.finish(),
        json!({"hookSpecificOutput": {"hookEventName": "Elicitation", "action": "accept", "content": {"ok": true}}})
    );
}

fn seal_timestamp() -> String {
    let reply: Value =
        serde_json::from_str(&testing::messages::confirmation_reply("sub_1", "rpl_1", "accept")).unwrap();
    reply["timestamp"].as_str().unwrap().to_owned()
}
