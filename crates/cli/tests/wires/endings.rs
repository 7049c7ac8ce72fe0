//! How it ends, when not by the listener's own wish; and the signs that it has not.

use serde_json::json;

use crate::sse::Listener;
use crate::stage::{Stage, can_reply, people, question, reply, request};
use crate::wire::{Back, Heard, Kind, Sign, Wire};
use testing::http::Client;
use testing::messages::{close, renegotiate};

pub(crate) fn the_hub_stops_and_the_question_stays_open(kind: Kind) {
    let mut stage = Stage::on_disk(kind);
    let (mut wire, mut id) = stage.subscribed(&can_reply());
    let session = stage.start();
    let token = stage.ask(&session, &question());
    wire.until_type("awaiting.confirmation");
    stage.hub.ask_to_stop();
    let last = wire.message();
    assert_eq!((&last["type"], &last["subscription_id"]), (&json!("subscription.close"), &json!(id)));
    assert_eq!(last["reason_code"], "producer_shutdown", "{last}");
    assert_eq!(stage.hub.exit_code(), Some(0));
    assert_eq!(wire.sign(), kind.pick(Sign::End, Sign::Code(1001), Sign::End, Sign::End));
    stage.start_again();
    assert_eq!(stage.status(&session, &token)["status"], "pending");
    if let Back::Afresh(new) = wire.come_back(&mut stage.hub, &request(&can_reply())) {
        wire.until(|event| event["reply_token"] == token.as_str());
        id = new;
    }
    wire.say(&reply(&id, &token, "accept").to_string());
    assert_eq!(stage.outcome(&session, &token)["decision"], "accept");
    assert_eq!(wire.resolution(&token)["extensions"]["sayso"]["decision"], "accept");
}

pub(crate) fn a_lost_connection_is_a_closure(kind: Kind) {
    let mut stage = Stage::in_memory(kind);
    let (mut wire, _) = stage.subscribed(&can_reply());
    let session = stage.start();
    let token = stage.ask(&session, &question());
    wire.until_type("awaiting.confirmation");
    if !wire.lose() {
        drop(wire);
        assert_eq!(stage.hub.exit_code(), Some(0), "it ends with the one who started it");
        return;
    }
    let told = stage.outcome(&session, &token);
    assert_eq!((&told["decision"], &told["by"]), (&json!("reject"), &json!("closure")), "{told}");
}

pub(crate) fn another_connection_takes_over(kind: Kind) {
    let mut stage = Stage::in_memory(kind);
    let (mut wire, id) = stage.subscribed(&can_reply());
    let path = format!("/aaep/v1/events?subscription_id={id}");
    if !kind.has_tokens() {
        // Nobody with a token is the one who speaks there.
        assert_eq!(Client::of(&stage.hub.address).bearer(&people().ada).get(&path).status, 404);
        return;
    }
    let mut second = Listener::new(&stage.hub.address, &people().ada);
    second.take_over(&id);
    let last = wire.message();
    assert_eq!(
        (&last["type"], &last["reason_code"]),
        (&json!("subscription.close"), &json!("replaced")),
        "{last}"
    );
    assert_eq!(wire.sign(), kind.pick(Sign::End, Sign::Code(4000), Sign::End, Sign::Stays));
    stage.start();
    assert_eq!((&mut second as &mut dyn Wire).event()["type"], "aaep:agent.session.started");
}

pub(crate) fn what_is_no_message_is_borne_for_a_while(kind: Kind) {
    let mut stage = Stage::in_memory(kind);
    let (mut wire, id) = stage.subscribed(&can_reply());
    // On HTTP a request may speak for any subscription of its sender; elsewhere for that of its connection only.
    let (mut other, others): (Box<dyn Wire>, _) = if kind == Kind::Sse {
        let (other, others) = stage.neighbour(&people().ben, &json!({}));
        (Box::new(other), others)
    } else {
        stage.same_person(&json!({}))
    };
    let client = Client::of(&stage.hub.address).bearer(&people().ada);
    let bad = [
        "null".to_owned(),
        "{".to_owned(),
        "[]".to_owned(),
        r#"{"type":7}"#.to_owned(),
        request(&json!({})),
        close(&others),
        renegotiate(&others, "{}"),
    ];
    let one_more = |wire: &mut dyn Wire, text: &str| match kind {
        Kind::Sse => {
            let answer = client.post("/aaep/v1/replies", text);
            assert!(matches!(answer.status, 204 | 400 | 404), "{text}: {answer:?}");
        }
        Kind::Stdio => {
            let answer = wire.subscribe(&request(&json!({})));
            assert_eq!(answer["code"], -32602, "one at a time");
            if text != "{" {
                wire.say(text);
            }
        }
        _ => wire.say(text),
    };
    for text in &bad {
        one_more(&mut *wire, text);
    }
    assert_eq!(wire.ask(&renegotiate(&id, "{}"))["type"], "subscription.accepted", "seven are borne");
    one_more(&mut *wire, "null");
    if matches!(kind, Kind::Lines | Kind::Counted) {
        assert_eq!(wire.message()["reason_code"], "violation");
    }
    if !matches!(kind, Kind::Sse | Kind::Stdio) {
        assert_eq!(wire.sign(), kind.pick(Sign::End, Sign::Code(4004), Sign::End, Sign::Stays));
        assert_eq!(client.get(&format!("/aaep/v1/events?subscription_id={id}")).status, 404);
    }
    stage.start();
    assert_eq!(other.event()["type"], "aaep:agent.session.started", "the other's is untouched");
    if matches!(kind, Kind::Sse | Kind::Stdio) {
        assert_eq!(wire.event()["type"], "aaep:agent.session.started", "each was answered");
    }
}

/// §8.3: a megabyte is carried, and the wire need not take twice as much.
pub(crate) fn a_message_that_is_too_long_is_not_taken(kind: Kind) {
    let mut stage = Stage::in_memory(kind);
    let (mut wire, id) = stage.subscribed(&can_reply());
    let padded = |length| format!("{}{}", renegotiate(&id, "{}"), " ".repeat(length));
    assert_eq!(wire.ask(&padded(1024 * 1024))["type"], "subscription.accepted");
    let too_long = 2 * 1024 * 1024;
    match kind {
        Kind::Sse => {
            let client = Client::of(&stage.hub.address);
            let head = format!(
                "POST /aaep/v1/replies HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Length: {too_long}\r\n\r\n",
                stage.hub.address,
                people().ada
            );
            let answer = client.raw(head.as_bytes());
            assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
            stage.start();
            assert_eq!(wire.event()["type"], "aaep:agent.session.started", "the stream stays");
        }
        Kind::Stdio => {
            assert_eq!(wire.ask(&padded(too_long))["code"], -32600);
            assert_eq!(wire.sign(), Sign::Stays);
        }
        _ => {
            wire.say(&padded(too_long));
            if kind != Kind::WebSocket {
                assert_eq!(wire.message()["reason_code"], "too_large");
            }
            assert_eq!(wire.sign(), kind.pick(Sign::End, Sign::Code(1009), Sign::End, Sign::Stays));
        }
    }
}

pub(crate) fn there_are_signs_of_life(kind: Kind) {
    let mut stage = Stage::in_memory(kind);
    let (mut wire, _) = stage.subscribed(&can_reply());
    assert_eq!(wire.is_alive(), !matches!(kind, Kind::Lines | Kind::Counted));
    stage.start();
    loop {
        match wire.next() {
            Heard::Alive => {}
            Heard::Event(event) => return assert_eq!(event["type"], "aaep:agent.session.started"),
            other => panic!("{other:?}"),
        }
    }
}
