//! Nothing that people or agents say appears in the log or the metrics, except at the trace level.

use serde_json::json;

use testing::cli::create_token;
use testing::http::TestClient;
use testing::hub::HubProcess;

pub(super) const SECRET: &str = "Xylophon";

/// Sends many kinds of requests, with the secret in every free-text field.
pub(super) fn send_requests_with_secret(agent: &TestClient, listener: &TestClient) {
    let request = json!({
        "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": SECRET, "subscriber_name": SECRET,
        "capabilities": {"supports_confirmation_reply": true, "supports_clarification_reply": true},
        "auth": {"token": SECRET},
    });
    let accepted = listener.post("/aaep/v1/subscriptions", &request.to_string());
    let subscription = accepted.json_str("subscription_id");
    let mut stream = listener.open_event_stream(&subscription, None);
    let keyed = agent
        .with_header(&format!("Idempotency-Key: {SECRET}"))
        .with_header(&format!("User-Agent: {SECRET}"));
    let started = json!({
        "summary_normal": SECRET, "summary_terse": SECRET, "requested_by": format!("user:{SECRET}"),
        "localization_hints": {"primary_language": "en"},
    });
    let session = keyed.post("/agent/v1/sessions", &started.to_string()).json_str("session_id");
    let path = |rest: &str| format!("/agent/v1/sessions/{session}/{rest}");
    let output = agent.post(&path("output?complete=true"), &format!("I know {SECRET}. "));
    assert_eq!(output.status, 200, "{output:?}");
    let question = json!({
        "action": SECRET, "consequence": SECRET, "irreversible": true, "risk_level": "high", "timeout_seconds": 120,
        "default_decision": "reject", "summary_normal": SECRET, "tool": SECRET, "arguments": {SECRET: SECRET},
    });
    let token = agent.post(&path("confirmations"), &question.to_string()).json_str("reply_token");
    // An unknown token, invalid JSON, a valid reply, and a late one.
    listener.reply(&subscription, SECRET, SECRET);
    listener.post("/aaep/v1/replies", SECRET);
    listener.reply(&subscription, &token, "accept");
    listener.reply(&subscription, &token, SECRET);
    assert_eq!(agent.get(&path(&format!("replies/{token}?wait=10"))).json_str("decision"), "accept");
    let call = json!({
        "type": "aaep:agent.tool.invoked", "tool": SECRET, "tool_call_id": format!("call_{SECRET}"), "risk_level": "high",
        "irreversible": true, "summary_normal": SECRET, "arguments": {SECRET: SECRET},
    });
    let called = agent.post(&path("events"), &call.to_string());
    assert_eq!(called.status, 200, "{called:?}");
    let completed = json!({
        "type": "aaep:agent.tool.completed", "tool": SECRET, "tool_call_id": format!("call_{SECRET}"),
        "status": "success", "summary_normal": SECRET,
    });
    let completed = agent.post(&path("events"), &completed.to_string());
    assert_eq!(completed.status, 200, "{completed:?}");
    let question = json!({"question": SECRET, "summary_normal": SECRET, "timeout_seconds": 120});
    let token = agent.post(&path("clarifications"), &question.to_string()).json_str("reply_token");
    let reply = json!({
        "type": "clarification.reply", "reply_token": token, "response": SECRET, "subscription_id": subscription,
        "timestamp": "2026-11-15T12:00:00Z",
    });
    listener.post("/aaep/v1/replies", &reply.to_string());
    for invalid in [
        json!({"type": SECRET}),
        json!({"type": "aaep:agent.tool.completed", "tool": SECRET, "status": SECRET}),
    ] {
        assert_eq!(agent.post(&path("events"), &invalid.to_string()).status, 422);
    }
    agent.post(&path("events"), SECRET);
    agent.get(&format!("/{SECRET}?{SECRET}={SECRET}"));
    agent.get(&format!("/agent/v1/sessions/{SECRET}/replies/{SECRET}"));
    agent.with_bearer(SECRET).get(&format!("/aaep/v1/events?subscription_id={SECRET}"));
    agent.send_raw(format!("GET /{SECRET} {SECRET}\r\n\r\n").as_bytes());
    let stop = json!({
        "type": "sayso:session.stop", "session_id": session, "subscription_id": subscription, "reason": SECRET,
        "timestamp": "2026-11-15T12:00:00Z",
    });
    assert_eq!(listener.post("/aaep/v1/replies", &stop.to_string()).status, 204);
    while stream.next_type() != "session.cancelled" {}
}

/// Runs a hub with these arguments, sends it the requests, and returns its log and its metrics.
fn run_and_collect(arguments: &[&str]) -> (Vec<String>, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens").to_str().unwrap().to_owned();
    let agent = create_token(&file, &["--role", "agent", "--name", "bank", "--agent-id", "bank"]);
    let listener = create_token(&file, &["--role", "listener", "--name", SECRET]);
    let admin = create_token(&file, &["--role", "admin", "--name", "admin"]);
    let hub =
        HubProcess::start(&[&["--memory", "--listen", "127.0.0.1:0", "--tokens", &file], arguments].concat());
    let client = hub.client();
    send_requests_with_secret(&client.with_bearer(&agent), &client.with_bearer(&listener));
    let page = client.with_bearer(&admin).get("/metrics").body;
    let startup_lines = hub.startup_lines.clone();
    let lines: Vec<String> = startup_lines.into_iter().chain(hub.stop_and_collect_log()).collect();
    for secret in [&agent, &listener, &admin] {
        assert!(!lines.iter().any(|line| line.contains(secret)), "a token is in the log: {lines:#?}");
    }
    (lines, page)
}

#[test]
fn no_user_text_is_in_the_log_or_the_metrics() {
    for level in ["error", "warn", "info", "debug"] {
        for format in ["text", "json"] {
            let (lines, page) = run_and_collect(&["--log-level", level, "--log-format", format]);
            for line in lines.iter().map(String::as_str).chain(page.lines()) {
                assert!(!line.contains(SECRET), "{level} {format}: {line}");
            }
            let min_lines = if level == "info" || level == "debug" { 10 } else { 0 };
            assert!(lines.len() >= min_lines && page.len() > 1000, "too little output to check: {lines:#?}");
        }
    }
}

#[test]
fn trace_logs_user_text_after_a_warning() {
    let (lines, page) = run_and_collect(&["--log-level", "trace"]);
    let warning = lines.iter().position(|line| line.starts_with("WARNING: --log-level trace"));
    let first_command = lines.iter().position(|line| line.contains(" trace command "));
    assert!(warning.unwrap() < first_command.unwrap(), "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains(" trace command ") && line.contains(SECRET)), "{lines:#?}");
    assert!(!page.contains(SECRET));
}
