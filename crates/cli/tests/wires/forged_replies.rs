//! Replies that must have no effect on any transport. The sender does not learn the reason (C-D1).

use serde_json::{Value, json};

use crate::fixture::{TransportFixture, now, question, reply, reply_capabilities, test_tokens, timestamp_in};
use crate::transport::{ListenerConnection, TransportKind};
use testing::messages::subscription_renegotiate;

/// Waits until the hub has processed all earlier messages of this connection, by sending a renegotiation and waiting for the
/// response.
pub(crate) fn wait_until_processed(connection: &mut dyn ListenerConnection, id: &str) {
    assert_eq!(connection.request(&subscription_renegotiate(id, "{}"))["type"], "subscription.accepted");
}

pub(crate) fn forged_replies_have_no_effect(kind: TransportKind) {
    let mut fixture = TransportFixture::in_memory(kind);
    let (mut connection, id) = fixture.connect_and_subscribe(&reply_capabilities());
    let (_other, other_id) = fixture.connect_sse_listener(&test_tokens().ben, &reply_capabilities());
    let (_second, second_id) = fixture.connect_same_user(&reply_capabilities());
    let session = fixture.start_session();
    let token = fixture.ask(&session, &question());
    connection.events_until_type("awaiting.confirmation");
    let valid = reply(&id, &token, "accept");
    let with = |name: &str, value: Value| {
        let mut forged = valid.clone();
        forged[name] = value;
        forged.to_string()
    };
    let without = |name: &str| {
        let mut forged = valid.clone();
        forged.as_object_mut().unwrap().remove(name);
        forged.to_string()
    };
    let mut forgeries = vec![
        ("an unknown token", with("reply_token", json!("rpl_00000000000000000000000000000000"))),
        ("an empty token", with("reply_token", json!("rpl_"))),
        ("another listener's subscription", with("subscription_id", json!(other_id))),
        ("an unknown subscription", with("subscription_id", json!("sub_00000000000000000000000000000000"))),
        ("no subscription", without("subscription_id")),
        ("an extra key", with("sure", json!(true))),
        ("an additional session id", with("session_id", json!(session))),
        ("an unknown decision", with("decision", json!("yes"))),
        ("a capitalized decision", with("decision", json!("Accept"))),
        ("a decision that is not a string", with("decision", json!(true))),
        ("no decision", without("decision")),
        ("no timestamp", without("timestamp")),
        ("an invalid timestamp", with("timestamp", json!("now"))),
        ("a timestamp after the deadline", with("timestamp", json!(timestamp_in(3600)))),
        ("another type", with("type", json!("aaep:confirmation.reply"))),
        ("a duplicate key", valid.to_string().replacen('{', r#"{"decision":"reject","#, 1)),
        (
            "a clarification",
            json!({"type": "clarification.reply", "reply_token": token, "response": "accept", "subscription_id": id, "timestamp": now()}).to_string(),
        ),
        (
            "a stop of an unknown session",
            json!({"type": "sayso:session.stop", "session_id": "sess_0", "subscription_id": id, "timestamp": now()}).to_string(),
        ),
        (
            "a stop from another listener's subscription",
            json!({"type": "sayso:session.stop", "session_id": session, "subscription_id": other_id, "timestamp": now()}).to_string(),
        ),
    ];
    if kind != TransportKind::Sse {
        forgeries.push(("the subscription of another connection", with("subscription_id", json!(second_id))));
    }
    for (description, forged) in forgeries {
        connection.send(&forged);
        wait_until_processed(&mut *connection, &id);
        assert_eq!(
            fixture.question_status(&session, &token)["status"],
            "pending",
            "{description} had an effect"
        );
    }
    connection.send(&valid.to_string());
    let outcome = fixture.wait_for_outcome(&session, &token);
    assert_eq!((&outcome["decision"], &outcome["by"]), (&json!("accept"), &json!("reply")), "{outcome}");
    // Replies with the old token do not affect a question of another session.
    let other_session = fixture.start_session();
    let other_token = fixture.ask(&other_session, &question());
    connection.send(&reply(&id, &token, "reject").to_string());
    wait_until_processed(&mut *connection, &id);
    assert_eq!(
        fixture.question_status(&other_session, &other_token)["status"],
        "pending",
        "a token is valid only in its own session"
    );
}

pub(crate) fn only_the_first_reply_counts(kind: TransportKind) {
    let mut fixture = TransportFixture::in_memory(kind);
    let (mut connection, id) = fixture.connect_and_subscribe(&reply_capabilities());
    let (mut other, other_id) = fixture.connect_sse_listener(&test_tokens().ben, &reply_capabilities());
    let session = fixture.start_session();
    let token = fixture.ask(&session, &question());
    connection.events_until_type("awaiting.confirmation");
    connection.send(&reply(&id, &token, "reject").to_string());
    connection.send(&reply(&id, &token, "accept").to_string());
    wait_until_processed(&mut *connection, &id);
    other.send(&reply(&other_id, &token, "accept").to_string());
    let outcome = fixture.wait_for_outcome(&session, &token);
    assert_eq!(outcome["decision"], "reject", "the first reply counts");
    fixture.publish(&session, &[json!({"type": "aaep:agent.session.completed", "summary_normal": "Done."})]);
    let events = connection.events_until_type("session.completed");
    let resolved =
        events.iter().filter(|event| event["extensions"]["sayso"]["reply_token"] == token.as_str());
    assert_eq!(resolved.count(), 1, "the resolution is announced once: {events:?}");
    assert_eq!(fixture.question_status(&session, &token)["decision"], "reject");
}

pub(crate) fn a_late_reply_is_ignored(kind: TransportKind) {
    let mut fixture = TransportFixture::in_memory(kind);
    let (mut connection, id) = fixture.connect_and_subscribe(&reply_capabilities());
    let session = fixture.start_session();
    let mut short_question = question();
    short_question["timeout_seconds"] = json!(1);
    let token = fixture.ask(&session, &short_question);
    let early_reply = reply(&id, &token, "accept");
    let expired = connection.wait_for_resolution(&token);
    let extension_data = &expired["extensions"]["sayso"];
    assert_eq!((&extension_data["decision"], &extension_data["by"]), (&json!("reject"), &json!("timeout")));
    // A reply that claims an earlier time is also late.
    connection.send(&early_reply.to_string());
    connection.send(&reply(&id, &token, "accept").to_string());
    wait_until_processed(&mut *connection, &id);
    let outcome = fixture.wait_for_outcome(&session, &token);
    assert_eq!((&outcome["decision"], &outcome["by"]), (&json!("reject"), &json!("timeout")));
}

pub(crate) fn an_observer_cannot_reply(kind: TransportKind) {
    let mut fixture = TransportFixture::in_memory(kind);
    // If the transport has no tokens, the observer uses HTTP to reply to a question that this connection receives.
    let (mut connection, id) = fixture.connect_and_subscribe(&reply_capabilities());
    let observer_kind = if kind.has_tokens() { kind } else { TransportKind::Sse };
    let mut eve = observer_kind.connect(&mut fixture.hub, &test_tokens().eve).unwrap();
    let response = eve.subscribe(&crate::fixture::subscription_request(&reply_capabilities()));
    let observer_id = crate::fixture::accepted_subscription_id(&response);
    assert_eq!(
        response["honored_capabilities"]["supports_confirmation_reply"], false,
        "the response must say that the observer cannot reply: {response}"
    );
    let session = fixture.start_session();
    let token = fixture.ask(&session, &question());
    connection.events_until_type("awaiting.confirmation");
    for subscription in [&observer_id, &id] {
        eve.send(&reply(subscription, &token, "accept").to_string());
    }
    let stop = json!({"type": "sayso:session.stop", "session_id": session, "subscription_id": observer_id, "timestamp": now()});
    eve.send(&stop.to_string());
    wait_until_processed(&mut *eve, &observer_id);
    assert_eq!(fixture.question_status(&session, &token)["status"], "pending");
    connection.send(&reply(&id, &token, "reject").to_string());
    assert_eq!(fixture.wait_for_outcome(&session, &token)["decision"], "reject");
}
