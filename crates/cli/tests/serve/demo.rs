//! The demo's assistant: what it says is lawful, shows every event, and does nothing without a yes.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::hub::{CAN_REPLY, Client, Ear, Hub};
use crate::messages::{kind, reply};
use crate::sayso::sayso;

const WISHES: [&str; 12] = [
    "Hello",
    "What is my balance?",
    "Transfer 250 euros to Ben",
    "Book a room",
    "Send an e-mail to Ada",
    "Delete a record",
    "How is the weather?",
    "Explain it at length",
    "Use a tool that does not exist",
    "Escalate to a human",
    "Fail",
    "Begin something and cancel it",
];

fn demo() -> Hub {
    // Signs of life would keep a test waiting that waits in vain.
    Hub::limited(&["--demo-agent", "--http-heartbeat", "1h"])
}

/// One wish, from its start to its end, with every question answered so.
fn play(client: &Client, subscription: &str, ear: &mut Ear, wish: &str, decision: &str) -> Vec<Value> {
    let answer = client.post("/demo", &format!(r#"{{"text":"{wish}"}}"#));
    assert_eq!(answer.status, 201, "{answer:?}");
    let session = answer.text("session_id");
    let mut told = Vec::new();
    loop {
        let event = ear.next().2;
        assert_eq!(event["session_id"], session.as_str());
        let asked = event["reply_token"].as_str().map(str::to_owned);
        let (asks, last) =
            (kind(&event).to_owned(), kind(&event).starts_with("session.") && !told.is_empty());
        told.push(event);
        match (asks.as_str(), asked) {
            ("awaiting.confirmation", Some(token)) => {
                assert_eq!(client.reply(subscription, &token, decision).status, 204);
            }
            ("awaiting.clarification", Some(token)) => {
                let said = reply(subscription, &token, "accept")
                    .replace("confirmation", "clarification")
                    .replace(r#""decision":"accept""#, r#""response":"Lagos""#);
                assert_eq!(client.post("/aaep/v1/replies", &said).status, 204);
            }
            _ => {}
        }
        if last {
            return told;
        }
    }
}

fn all(decision: &str) -> Vec<Vec<Value>> {
    let hub = demo();
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let mut ear = client.listen(&subscription, None);
    WISHES.map(|wish| play(&client, &subscription, &mut ear, wish, decision)).into()
}

#[test]
fn every_event_is_shown_and_all_of_it_is_lawful() {
    for decision in ["accept", "reject"] {
        let told = all(decision).concat();
        let kinds: BTreeSet<_> = told.iter().map(kind).collect();
        assert_eq!(kinds.len(), 12, "{kinds:?}");
        let lines: Vec<_> = told.iter().map(Value::to_string).collect();
        let judged = sayso(&["validate", "--sequence", "always"], lines.join("\n"));
        assert_eq!(judged.code, 0, "{}{}", judged.out, judged.err);
        assert!(judged.summary().contains("12 sessions: 0 errors"), "{}", judged.out);
    }
}

#[test]
fn nothing_is_done_without_a_yes() {
    let acts = |told: &[Value]| told.iter().filter(|event| kind(event) == "tool.invoked").count();
    let asks = |told: &[Value]| told.iter().any(|event| kind(event) == "awaiting.confirmation");
    for (decision, calls) in [("accept", 1), ("reject", 0)] {
        let asked: Vec<_> = all(decision).into_iter().filter(|told| asks(told)).collect();
        assert_eq!(asked.len(), 4);
        for told in asked {
            assert_eq!(acts(&told), calls, "{told:?}");
        }
    }
}

#[test]
fn what_it_says_has_three_lengths_and_repeats_nothing_that_was_said_to_it() {
    let hub = demo();
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let mut ear = client.listen(&subscription, None);
    let told = play(&client, &subscription, &mut ear, "Call a tool with api_key=sk-test-12345", "reject");
    assert!(!Value::from(told).to_string().contains("12345"));
    for (verbosity, word) in
        [("terse", "Balance."), ("normal", "Looking up the balance of the demonstration account.")]
    {
        let subscription = client.subscribe(&format!(r#"{{"preferred_verbosity":"{verbosity}"}}"#));
        let mut ear = client.listen(&subscription, None);
        let told = play(&client, &subscription, &mut ear, "balance", "reject");
        assert!(told[0].to_string().contains(word), "{verbosity}: {}", told[0]);
    }
}

#[test]
fn it_speaks_english_spanish_and_yoruba() {
    let hub = demo();
    let client = hub.client();
    for (language, word) in
        [("en", "Looking up the balance"), ("es", "Consultando el saldo"), ("yo", "iye owó")]
    {
        let subscription = client.subscribe(&format!(r#"{{"languages":["{language}"]}}"#));
        let mut ear = client.listen(&subscription, None);
        let told = play(&client, &subscription, &mut ear, "balance", "reject");
        assert!(told[0]["summary_normal"].as_str().unwrap().contains(word), "{}", told[0]);
    }
    // The answer itself is in the language of the request.
    let subscription = client.subscribe("{}");
    let mut ear = client.listen(&subscription, None);
    let told = play(&client, &subscription, &mut ear, "¿Cuál es mi saldo?", "reject");
    let output = told.iter().find(|event| kind(event) == "output.streaming").unwrap();
    assert!(output["chunk"].as_str().unwrap().starts_with("La cuenta de demostración"), "{output}");
}

#[test]
fn it_wants_to_be_asked_for_something() {
    let hub = demo();
    for odd in ["", "[]", "{}", r#"{"text":" "}"#, r#"{"text":1}"#] {
        assert_eq!(hub.client().post("/demo", odd).status, 400, "{odd}");
    }
    assert_eq!(hub.client().get("/events").status, 404, "it is no part of the dialect");
}
