//! A gate that is not told where its hub is.

use serde_json::json;

use super::support::{Gate, Listener, refusal};
use crate::personal_hub::User;

#[test]
fn without_an_address_the_gate_asks_through_the_personal_hub() {
    let user = User::new();
    let mut gate = Gate::start_for_user(&user);
    gate.call(1, "write", &json!({}));
    let answer = gate.answer(1);
    assert!(refusal(&answer).contains("hub could not be reached"), "{answer}");
    // The personal hub may start after the gate.
    let hub = user.serve(&[]);
    let mut listener = Listener::connect(&hub);
    gate.call(2, "write", &json!({"n": 2}));
    listener.answer("reject");
    refusal(&gate.answer(2));
    gate.call(3, "write", &json!({"n": 3}));
    listener.answer("accept");
    assert_eq!(gate.answer(3)["result"]["content"][0]["text"], "write done");
    assert_eq!(gate.seen_calls(), [("write".to_owned(), json!(3))]);
}
