//! Answers that must not count, and do not, whatever wire they come on. None of them is told why (C-D1).

use serde_json::{Value, json};

use crate::stage::{Stage, after, can_reply, now, people, question, reply};
use crate::wire::{Kind, Wire};
use testing::messages::renegotiate;

/// What was said before on this wire has been heard: answers come in order.
pub(crate) fn wait_until_heard(wire: &mut dyn Wire, id: &str) {
    assert_eq!(wire.ask(&renegotiate(id, "{}"))["type"], "subscription.accepted");
}

pub(crate) fn no_forgery_has_an_effect(kind: Kind) {
    let mut stage = Stage::in_memory(kind);
    let (mut wire, id) = stage.subscribed(&can_reply());
    let (_other, others) = stage.neighbour(&people().ben, &can_reply());
    let (_twin, twins) = stage.same_person(&can_reply());
    let session = stage.start();
    let token = stage.ask(&session, &question());
    wire.until_type("awaiting.confirmation");
    let good = reply(&id, &token, "accept");
    let with = |name: &str, value: Value| {
        let mut forged = good.clone();
        forged[name] = value;
        forged.to_string()
    };
    let without = |name: &str| {
        let mut forged = good.clone();
        forged.as_object_mut().unwrap().remove(name);
        forged.to_string()
    };
    let mut forgeries = vec![
        ("an unknown token", with("reply_token", json!("rpl_00000000000000000000000000000000"))),
        ("no token at all", with("reply_token", json!("rpl_"))),
        ("another's subscription", with("subscription_id", json!(others))),
        ("an unknown subscription", with("subscription_id", json!("sub_00000000000000000000000000000000"))),
        ("no subscription", without("subscription_id")),
        ("an extra key", with("sure", json!(true))),
        ("a session beside it", with("session_id", json!(session))),
        ("another word", with("decision", json!("yes"))),
        ("a word in capitals", with("decision", json!("Accept"))),
        ("no word", with("decision", json!(true))),
        ("no decision", without("decision")),
        ("no time", without("timestamp")),
        ("a time that is none", with("timestamp", json!("now"))),
        ("a time after the deadline", with("timestamp", json!(after(3600)))),
        ("another type", with("type", json!("aaep:confirmation.reply"))),
        ("a doubled key", good.to_string().replacen('{', r#"{"decision":"reject","#, 1)),
        (
            "a clarification",
            json!({"type": "clarification.reply", "reply_token": token, "response": "accept", "subscription_id": id, "timestamp": now()}).to_string(),
        ),
        (
            "the stop of a session that is not there",
            json!({"type": "sayso:session.stop", "session_id": "sess_0", "subscription_id": id, "timestamp": now()}).to_string(),
        ),
        (
            "the stop by another's subscription",
            json!({"type": "sayso:session.stop", "session_id": session, "subscription_id": others, "timestamp": now()}).to_string(),
        ),
    ];
    if kind != Kind::Sse {
        forgeries.push(("the subscription of another connection", with("subscription_id", json!(twins))));
    }
    for (what, forged) in forgeries {
        wire.say(&forged);
        wait_until_heard(&mut *wire, &id);
        assert_eq!(stage.status(&session, &token)["status"], "pending", "{what} had an effect");
    }
    wire.say(&good.to_string());
    let told = stage.outcome(&session, &token);
    assert_eq!((&told["decision"], &told["by"]), (&json!("accept"), &json!("reply")), "{told}");
    // A question of a session that is over, and of another session that is not.
    let other_session = stage.start();
    let other_token = stage.ask(&other_session, &question());
    wire.say(&reply(&id, &token, "reject").to_string());
    wait_until_heard(&mut *wire, &id);
    assert_eq!(
        stage.status(&other_session, &other_token)["status"],
        "pending",
        "a token is of its own session"
    );
}

pub(crate) fn an_answer_counts_once(kind: Kind) {
    let mut stage = Stage::in_memory(kind);
    let (mut wire, id) = stage.subscribed(&can_reply());
    let (mut other, others) = stage.neighbour(&people().ben, &can_reply());
    let session = stage.start();
    let token = stage.ask(&session, &question());
    wire.until_type("awaiting.confirmation");
    wire.say(&reply(&id, &token, "reject").to_string());
    wire.say(&reply(&id, &token, "accept").to_string());
    wait_until_heard(&mut *wire, &id);
    other.say(&reply(&others, &token, "accept").to_string());
    let told = stage.outcome(&session, &token);
    assert_eq!(told["decision"], "reject", "the first counts");
    stage.publish(&session, &[json!({"type": "aaep:agent.session.completed", "summary_normal": "Done."})]);
    let heard = wire.until_type("session.completed");
    let resolved = heard.iter().filter(|event| event["extensions"]["sayso"]["reply_token"] == token.as_str());
    assert_eq!(resolved.count(), 1, "and is told once: {heard:?}");
    assert_eq!(stage.status(&session, &token)["decision"], "reject");
}

pub(crate) fn an_answer_that_is_late_does_not_count(kind: Kind) {
    let mut stage = Stage::in_memory(kind);
    let (mut wire, id) = stage.subscribed(&can_reply());
    let session = stage.start();
    let mut short = question();
    short["timeout_seconds"] = json!(1);
    let token = stage.ask(&session, &short);
    let early = reply(&id, &token, "accept");
    let over = wire.resolution(&token);
    let ours = &over["extensions"]["sayso"];
    assert_eq!((&ours["decision"], &ours["by"]), (&json!("reject"), &json!("timeout")));
    // Also one that says it was decided in time.
    wire.say(&early.to_string());
    wire.say(&reply(&id, &token, "accept").to_string());
    wait_until_heard(&mut *wire, &id);
    let told = stage.outcome(&session, &token);
    assert_eq!((&told["decision"], &told["by"]), (&json!("reject"), &json!("timeout")));
}

pub(crate) fn who_only_observes_does_not_answer(kind: Kind) {
    let mut stage = Stage::in_memory(kind);
    // Where the wire has no tokens, the observer comes over HTTP to a question that is heard on the wire.
    let (mut wire, id) = stage.subscribed(&can_reply());
    let observing = if kind.has_tokens() { kind } else { Kind::Sse };
    let mut eve = observing.connect(&mut stage.hub, &people().eve).unwrap();
    let answer = eve.subscribe(&crate::stage::request(&can_reply()));
    let hers = crate::stage::accepted(&answer);
    assert_eq!(answer["honored_capabilities"]["supports_confirmation_reply"], false, "it is told: {answer}");
    let session = stage.start();
    let token = stage.ask(&session, &question());
    wire.until_type("awaiting.confirmation");
    for subscription in [&hers, &id] {
        eve.say(&reply(subscription, &token, "accept").to_string());
    }
    let stop = json!({"type": "sayso:session.stop", "session_id": session, "subscription_id": hers, "timestamp": now()});
    eve.say(&stop.to_string());
    wait_until_heard(&mut *eve, &hers);
    assert_eq!(stage.status(&session, &token)["status"], "pending");
    wire.say(&reply(&id, &token, "reject").to_string());
    assert_eq!(stage.outcome(&session, &token)["decision"], "reject");
}
