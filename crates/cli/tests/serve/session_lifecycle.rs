//! Events, questions and replies of a session over HTTP.

use testing::hub::HubProcess;
use testing::messages::REPLY_CAPABILITIES;

#[test]
fn a_session_runs_from_start_to_end() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let mut stream = client.open_event_stream(&subscription, None);
    let session = client.start_session();
    assert_eq!(stream.next_type(), "session.started");

    let path = |rest: &str| format!("/agent/v1/sessions/{session}/{rest}");
    for chunk in ["Your balance is 12.5", "0 euros. I will s"] {
        assert_eq!(client.post(&path("output"), chunk).status, 200);
    }
    assert_eq!(client.post(&path("output?complete=true"), "end 5.").status, 200);
    assert_eq!(stream.next_type(), "state.changed");
    assert_eq!(stream.next().2["chunk"], "Your balance is 12.50 euros. ");
    assert_eq!(stream.next().2["chunk"], "I will send 5.");
    assert_eq!(stream.next_type(), "state.changed");

    let token = client.ask_confirmation(&session);
    assert_eq!(stream.next().2["to_state"], "awaiting_input");
    let (kind, _, question) = stream.next();
    assert_eq!(
        (kind.as_str(), question["reply_token"].as_str()),
        ("awaiting.confirmation", Some(token.as_str()))
    );
    assert_eq!(client.get(&path(&format!("replies/{token}"))).json_str("status"), "pending");
    assert_eq!(client.reply(&subscription, &token, "accept").status, 204);
    let resolved = client.get(&path(&format!("replies/{token}?wait=10")));
    assert_eq!((resolved.json_str("decision"), resolved.json_str("by")), ("accept".into(), "reply".into()));
    assert_eq!(stream.next().2["extensions"]["sayso"]["decision"], "accept");

    let call = |amount: &str| {
        format!(
            r#"{{"type":"aaep:agent.tool.invoked","tool":"send","tool_call_id":"call_1","risk_level":"high","irreversible":true,"summary_normal":"Sending.","arguments":{{"amount":"{amount}"}}}}"#
        )
    };
    let other_amount = client.post(&path("events"), &call("500.00"));
    assert_eq!(other_amount.status, 422, "{other_amount:?}");
    assert!(other_amount.body.contains("AAEP-4.3.1-3"), "the response names the rule: {}", other_amount.body);
    assert_eq!(client.post(&path("events"), &call("5.00")).status, 200);
    assert_eq!(
        (stream.next_type(), stream.next_type()),
        ("state.changed".into(), "tool.invoked".into()),
        "the hub reports the state calling_tool"
    );
    let last_events = [
        r#"{"type":"aaep:agent.tool.completed","tool":"send","tool_call_id":"call_1","status":"success","summary_normal":"Sent."}"#,
        r#"{"type":"aaep:agent.session.completed","summary_normal":"All done."}"#,
    ];
    let ndjson = client.with_header("Content-Type: application/x-ndjson");
    assert_eq!(ndjson.post(&path("events"), &last_events.join("\n")).status, 200);
    let types = [stream.next_type(), stream.next_type(), stream.next_type()];
    assert_eq!(types, ["tool.completed", "state.changed", "session.completed"]);
    assert_eq!(client.post(&path("events"), last_events[1]).status, 404, "the session is over");
}

#[test]
fn an_agents_wait_ends_with_the_reply() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let _stream = client.open_event_stream(&subscription, None);
    let session = client.start_session();
    let token = client.ask_confirmation(&session);
    let waiting_request = {
        let (client, path) =
            (client.clone(), format!("/agent/v1/sessions/{session}/replies/{token}?wait=30"));
        std::thread::spawn(move || client.get(&path))
    };
    assert_eq!(client.reply(&subscription, &token, "reject").status, 204);
    assert_eq!(waiting_request.join().unwrap().json_str("decision"), "reject");
}

#[test]
fn a_subscription_can_be_renegotiated_and_closed() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let subscription = client.subscribe("{}");
    let mut stream = client.open_event_stream(&subscription, None);
    let renegotiation = format!(
        r#"{{"type":"subscription.renegotiate","subscription_id":"{subscription}","capabilities":{{"preferred_verbosity":"terse"}}}}"#
    );
    let changed = client.post("/aaep/v1/replies", &renegotiation);
    assert_eq!((changed.status, changed.json_str("type")), (200, "subscription.accepted".into()));
    client.start_session();
    assert_eq!(stream.next_type(), "session.started");
    let close = format!(r#"{{"type":"subscription.close","subscription_id":"{subscription}"}}"#);
    assert_eq!(client.post("/aaep/v1/replies", &close).status, 204);
    assert!(stream.is_closed());
    assert_eq!(client.get(&format!("/aaep/v1/events?subscription_id={subscription}")).status, 404);
}

#[test]
fn a_listener_can_stop_the_agent() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let mut stream = client.open_event_stream(&subscription, None);
    let session = client.start_session();
    let token = client.ask_confirmation(&session);
    let stop = format!(
        r#"{{"type":"sayso:session.stop","session_id":"{session}","subscription_id":"{subscription}","timestamp":"2026-11-15T12:00:00Z"}}"#
    );
    assert_eq!(client.post("/aaep/v1/replies", &stop).status, 204);
    while stream.next_type() != "session.cancelled" {}
    let status = client.get(&format!("/agent/v1/sessions/{session}/replies/{token}"));
    assert_eq!(status.json_str("status"), "stopped");
    assert_eq!(client.post(&format!("/agent/v1/sessions/{session}/output"), "more").status, 404);
}

#[test]
fn the_manifest_is_served_and_valid() {
    let hub = HubProcess::start_in_memory();
    let manifest = hub.client().get("/.well-known/aaep-manifest.json");
    assert_eq!(manifest.status, 200);
    let mut tape = aaep::json::Tape::default();
    let mut findings = aaep::rule::Findings::new(aaep::rule::ValidationMode::Strict);
    aaep::check::Validator::new().check(&tape.read(&manifest.body).unwrap(), &mut findings);
    assert_eq!(findings.list(), [], "{}", manifest.body);
}
