//! Questions and their answers, more time, and stop.

use serde_json::{Value, json};

use crate::stage::{Stage, can_reply, now, people, question, reply};
use crate::wire::{Kind, Wire};

pub(crate) fn a_yes_is_told_to_everybody(kind: Kind) {
    is_told_to_everybody(kind, "accept");
}

pub(crate) fn a_no_is_told_to_everybody(kind: Kind) {
    is_told_to_everybody(kind, "reject");
}

fn is_told_to_everybody(kind: Kind, decision: &str) {
    let mut stage = Stage::in_memory(kind);
    let (mut wire, id) = stage.subscribed(&can_reply());
    let (mut other, _) = stage.neighbour(&people().ben, &can_reply());
    let (mut observer, _) = stage.neighbour(&people().eve, &json!({}));
    let session = stage.start();
    let token = stage.ask(&session, &question());
    let asked = wire.until_type("awaiting.confirmation");
    let [.., before, asked] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!(before["to_state"], "awaiting_input");
    assert_eq!((&asked["reply_token"], &asked["urgency"]), (&json!(token), &json!("critical")));
    assert_eq!(stage.status(&session, &token)["status"], "pending");
    wire.say(&reply(&id, &token, decision).to_string());
    let told = stage.outcome(&session, &token);
    assert_eq!((&told["decision"], &told["by"]), (&json!(decision), &json!("reply")), "{told}");
    let others: [&mut dyn Wire; 2] = [&mut other, &mut observer];
    for listener in std::iter::once(&mut *wire).chain(others) {
        let resolution = listener.resolution(&token);
        let ours = &resolution["extensions"]["sayso"];
        assert_eq!((&ours["decision"], &ours["by"]), (&json!(decision), &json!("reply")), "{resolution}");
        assert_eq!(resolution["from_state"], "awaiting_input");
    }
    let call = json!({"type": "aaep:agent.tool.invoked", "tool": "send", "tool_call_id": "call_1", "risk_level": "high",
        "irreversible": true, "summary_normal": "Sending.", "arguments": {"amount": "5.00"}});
    let called = stage.agent.post(&format!("/agent/v1/sessions/{session}/events"), &call.to_string());
    assert_eq!(called.status, if decision == "accept" { 200 } else { 422 }, "{called:?}");
    if decision == "accept" {
        assert_eq!(wire.event()["type"], "aaep:agent.tool.invoked");
    }
}

pub(crate) fn what_was_meant_is_answered(kind: Kind) {
    let mut stage = Stage::in_memory(kind);
    let (mut wire, id) = stage.subscribed(&can_reply());
    let session = stage.start();
    let asked = json!({"question": "Which account?", "timeout_seconds": 120, "accepted_response_kinds": ["multiple_choice"],
        "choices": [{"value": "a", "label": "Savings"}, {"value": "b", "label": "Current"}], "summary_normal": "Which account?"});
    let token = stage.ask(&session, &asked);
    assert_eq!(wire.until_type("awaiting.clarification").pop().unwrap()["reply_token"], token.as_str());
    let answer = |response: Value| {
        json!({"type": "clarification.reply", "reply_token": token, "response": response, "subscription_id": id, "timestamp": now()})
            .to_string()
    };
    for wrong in [json!("c"), json!(true), json!(1), json!("")] {
        wire.say(&answer(wrong));
    }
    crate::forgeries::wait_until_heard(&mut *wire, &id);
    assert_eq!(
        stage.status(&session, &token)["status"],
        "pending",
        "what does not fit leaves the question open"
    );
    wire.say(&answer(json!("b")));
    let told = stage.outcome(&session, &token);
    assert_eq!((&told["response"], &told["by"]), (&json!("b"), &json!("reply")), "{told}");
    let resolution = wire.resolution(&token);
    let ours = &resolution["extensions"]["sayso"];
    assert_eq!((&ours["by"], ours.get("decision")), (&json!("reply"), None), "what was meant is no decision");
    assert_eq!(
        (&resolution["from_state"], &resolution["to_state"]),
        (&json!("awaiting_input"), &json!("thinking"))
    );
}

pub(crate) fn more_time_moves_the_deadline(kind: Kind) {
    let mut stage = Stage::in_memory(kind);
    let (mut wire, id) = stage.subscribed(&can_reply());
    let session = stage.start();
    let mut short = question();
    // So long that the wish for more is heard in time on any machine.
    short["timeout_seconds"] = json!(15);
    let token = stage.ask(&session, &short);
    // One that is asked later, lasts as long, and gets no more time says when the first would have been over.
    let mut other = short.clone();
    other["action"] = json!("Send 7 euro to Ben.");
    other["arguments"]["amount"] = json!("7.00");
    let witness = stage.ask(&session, &other);
    wire.until(|event| event["reply_token"] == witness.as_str());
    let more = json!({"type": "sayso:deadline.extend", "reply_token": token, "subscription_id": id, "timestamp": now(), "seconds": 50});
    wire.say(&more.to_string());
    let over = wire.resolution(&witness);
    assert_eq!(over["extensions"]["sayso"]["by"], "timeout", "{over}");
    assert_eq!(stage.status(&session, &token)["status"], "pending", "it has more time");
    wire.say(&reply(&id, &token, "accept").to_string());
    assert_eq!(stage.outcome(&session, &token)["decision"], "accept");
}

pub(crate) fn the_person_stops_the_session(kind: Kind) {
    let mut stage = Stage::in_memory(kind);
    let (mut wire, id) = stage.subscribed(&can_reply());
    let (mut other, _) = stage.neighbour(&people().ben, &json!({}));
    let session = stage.start();
    let token = stage.ask(&session, &question());
    wire.until_type("awaiting.confirmation");
    let stop = json!({"type": "sayso:session.stop", "session_id": session, "subscription_id": id, "timestamp": now()});
    wire.say(&stop.to_string());
    let others: [&mut dyn Wire; 1] = [&mut other];
    for listener in std::iter::once(&mut *wire).chain(others) {
        let last = listener.until_type("session.cancelled").pop().unwrap();
        assert_eq!(last["cancelled_by"], "user");
    }
    assert_eq!(stage.status(&session, &token)["status"], "stopped");
    let more = stage.agent.post(&format!("/agent/v1/sessions/{session}/output"), "more");
    assert_eq!(more.status, 404, "it is over: {more:?}");
}
