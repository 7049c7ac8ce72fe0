//! What an agent says is heard, what it asks is answered.

use testing::hub::Hub;
use testing::messages::CAN_REPLY;

#[test]
fn a_session_from_its_start_to_its_end() {
    let hub = Hub::open();
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let mut ear = client.listen(&subscription, None);
    let session = client.start();
    assert_eq!(ear.next_type(), "session.started");

    let path = |rest: &str| format!("/agent/v1/sessions/{session}/{rest}");
    for piece in ["Your balance is 12.5", "0 euro. I will s"] {
        assert_eq!(client.post(&path("output"), piece).status, 200);
    }
    assert_eq!(client.post(&path("output?complete=true"), "end 5.").status, 200);
    assert_eq!(ear.next_type(), "state.changed");
    assert_eq!(ear.next().2["chunk"], "Your balance is 12.50 euro. ");
    assert_eq!(ear.next().2["chunk"], "I will send 5.");
    assert_eq!(ear.next_type(), "state.changed");

    let token = client.ask(&session);
    assert_eq!(ear.next().2["to_state"], "awaiting_input");
    let (kind, _, question) = ear.next();
    assert_eq!(
        (kind.as_str(), question["reply_token"].as_str()),
        ("awaiting.confirmation", Some(token.as_str()))
    );
    assert_eq!(client.get(&path(&format!("replies/{token}"))).text("status"), "pending");
    assert_eq!(client.reply(&subscription, &token, "accept").status, 204);
    let resolved = client.get(&path(&format!("replies/{token}?wait=10")));
    assert_eq!((resolved.text("decision"), resolved.text("by")), ("accept".into(), "reply".into()));
    assert_eq!(ear.next().2["extensions"]["sayso"]["decision"], "accept");

    let call = |amount: &str| {
        format!(
            r#"{{"type":"aaep:agent.tool.invoked","tool":"send","tool_call_id":"call_1","risk_level":"high","irreversible":true,"summary_normal":"Sending.","arguments":{{"amount":"{amount}"}}}}"#
        )
    };
    let other = client.post(&path("events"), &call("500.00"));
    assert_eq!(other.status, 422, "{other:?}");
    assert!(other.body.contains("AAEP-4.3.1-3"), "the rule is named: {}", other.body);
    assert_eq!(client.post(&path("events"), &call("5.00")).status, 200);
    assert_eq!(ear.next_type(), "tool.invoked");
    let rest = [
        r#"{"type":"aaep:agent.tool.completed","tool":"send","tool_call_id":"call_1","status":"success","summary_normal":"Sent."}"#,
        r#"{"type":"aaep:agent.session.completed","summary_normal":"All done."}"#,
    ];
    let many = client.with("Content-Type: application/x-ndjson");
    assert_eq!(many.post(&path("events"), &rest.join("\n")).status, 200);
    assert_eq!((ear.next_type(), ear.next_type()), ("tool.completed".into(), "session.completed".into()));
    assert_eq!(client.post(&path("events"), rest[1]).status, 404, "it is over");
}

#[test]
fn an_agents_wait_ends_with_the_answer() {
    let hub = Hub::open();
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let _ear = client.listen(&subscription, None);
    let session = client.start();
    let token = client.ask(&session);
    let waiting = {
        let (client, path) =
            (client.clone(), format!("/agent/v1/sessions/{session}/replies/{token}?wait=30"));
        std::thread::spawn(move || client.get(&path))
    };
    assert_eq!(client.reply(&subscription, &token, "reject").status, 204);
    assert_eq!(waiting.join().unwrap().text("decision"), "reject");
}

#[test]
fn terms_can_be_changed_and_a_subscription_closed() {
    let hub = Hub::open();
    let client = hub.client();
    let subscription = client.subscribe("{}");
    let mut ear = client.listen(&subscription, None);
    let wish = format!(
        r#"{{"type":"subscription.renegotiate","subscription_id":"{subscription}","capabilities":{{"preferred_verbosity":"terse"}}}}"#
    );
    let changed = client.post("/aaep/v1/replies", &wish);
    assert_eq!((changed.status, changed.text("type")), (200, "subscription.accepted".into()));
    client.start();
    assert_eq!(ear.next_type(), "session.started");
    let close = format!(r#"{{"type":"subscription.close","subscription_id":"{subscription}"}}"#);
    assert_eq!(client.post("/aaep/v1/replies", &close).status, 204);
    assert!(ear.is_over());
    assert_eq!(client.get(&format!("/aaep/v1/events?subscription_id={subscription}")).status, 404);
}

#[test]
fn the_person_can_stop_the_agent() {
    let hub = Hub::open();
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let mut ear = client.listen(&subscription, None);
    let session = client.start();
    let token = client.ask(&session);
    let stop = format!(
        r#"{{"type":"sayso:session.stop","session_id":"{session}","subscription_id":"{subscription}","timestamp":"2026-11-15T12:00:00Z"}}"#
    );
    assert_eq!(client.post("/aaep/v1/replies", &stop).status, 204);
    let mut heard = Vec::new();
    while heard.last().is_none_or(|kind| kind != "session.cancelled") {
        heard.push(ear.next_type());
    }
    let told = client.get(&format!("/agent/v1/sessions/{session}/replies/{token}"));
    assert_eq!(told.text("status"), "stopped");
    assert_eq!(client.post(&format!("/agent/v1/sessions/{session}/output"), "more").status, 404);
}

#[test]
fn the_manifest_is_where_it_should_be_and_lawful() {
    let hub = Hub::open();
    let manifest = hub.client().get("/.well-known/aaep-manifest.json");
    assert_eq!(manifest.status, 200);
    let mut tape = aaep::json::Tape::default();
    let mut findings = aaep::rule::Findings::new(aaep::rule::Face::Strict);
    aaep::check::Validator::new().check(&tape.read(&manifest.body).unwrap(), &mut findings);
    assert_eq!(findings.list(), [], "{}", manifest.body);
}
