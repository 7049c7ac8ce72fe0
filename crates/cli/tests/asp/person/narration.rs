//! What the person hears.

use serde_json::json;
use testing::messages::REPLY_CAPABILITIES;

use super::{Asked, Listener, World};

/// Runs a whole session, and returns what the seller's person hears in a language.
fn heard_in(world: &World, mut person: Listener) -> (serde_json::Value, Vec<String>) {
    let session = world.negotiate();
    world.buyer.send_ok(&session, "COMMIT", &world.commitment());
    world.seller.wait_for_state(&session, "AGREEING");
    world.seller.send_asking(&session, "ACCEPT", &json!({"referenceId": "cmt_1"}));
    let question = person.wait_for_question();
    person.answer(&question, "accept");
    world.buyer.wait_for_state(&session, "EXECUTING");
    world.seller.wait_until(&session, |view| view["unacknowledged"] == 0);
    world.seller.send_ok(&session, "INFORM", &json!({"informType": "result"}));
    world.seller.wait_until(&session, |view| view["unacknowledged"] == 0);
    world.buyer.send_ok(&session, "INFORM", &json!({"informType": "result"}));
    world.buyer.wait_until(&session, |view| view["unacknowledged"] == 0);
    world.buyer.send_ok(&session, "CLOSE", &json!({"reason": "done"}));
    world.buyer.wait_until(&session, |view| view["unacknowledged"] == 0);
    world.seller.send_ok(&session, "CLOSE", &json!({"reason": "done"}));
    person.wait_for("session.completed");
    (question, person.heard)
}

#[test]
fn every_step_is_heard_once_and_in_order() {
    let world = World::start(Asked::Seller);
    let person = Listener::connect(&world.hub);
    let (question, heard) = heard_in(&world, person);
    println!("{question:#}\n{heard:#?}");
}
