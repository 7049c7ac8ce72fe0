//! A policy that changes while a question is open: revoked and pinned cards.

use serde_json::json;

use super::{AskedSide, Listener, World};

const REVOKED: &str = "the card of the other side is revoked, so nothing is sent to it";

#[test]
fn a_question_is_withdrawn_when_the_card_of_the_other_side_is_revoked() {
    let world = World::start(AskedSide::Buyer);
    let mut person = Listener::connect(&world.hub);
    let session = world.negotiate();
    world.buyer.send_asking(&session, "COMMIT", &world.commitment());
    let question = person.wait_for_question();
    world.revoke(&world.seller.agent);
    world.buyer.reload();
    let consent = world.buyer.wait_for_consent(&session);
    assert_eq!((&consent["status"], &consent["reason"]), (&json!("refused"), &json!(REVOKED)));
    // A late yes has no effect, and nothing else is sent either.
    person.try_answer(&question, "accept");
    let refused = world.buyer.send(&session, "COMMIT", &world.commitment());
    assert_eq!((refused.status, refused.json_str("code")), (422, "unauthorized".to_owned()));
    assert!(!world.buyer.has_binding_message(&session) && !world.seller.has_binding_message(&session));
}

#[test]
fn a_yes_that_arrives_after_the_revocation_sends_no_commit() {
    let mut world = World::start(AskedSide::Buyer);
    let mut person = Listener::connect(&world.hub);
    let session = world.negotiate();
    world.buyer.send_asking(&session, "COMMIT", &world.commitment());
    let question = person.wait_for_question();
    // The person says yes while the node is down, so the node finds the yes and the revocation together.
    world.buyer.kill();
    person.answer(&question, "accept");
    world.revoke(&world.seller.agent);
    world.buyer.restart();
    let consent = world.buyer.wait_for_consent(&session);
    assert_eq!((&consent["status"], &consent["reason"]), (&json!("refused"), &json!(REVOKED)));
    assert!(!world.buyer.has_binding_message(&session) && !world.seller.has_binding_message(&session));
}

#[test]
fn a_yes_that_arrives_after_the_revocation_accepts_no_commitment() {
    let mut world = World::start(AskedSide::Seller);
    let mut person = Listener::connect(&world.hub);
    let session = world.negotiate();
    world.buyer.send_ok(&session, "COMMIT", &world.commitment());
    world.seller.wait_for_state(&session, "AGREEING");
    world.seller.send_asking(&session, "ACCEPT", &json!({"referenceId": "cmt_1"}));
    let question = person.wait_for_question();
    world.seller.kill();
    person.answer(&question, "accept");
    world.revoke(&world.buyer.agent);
    world.seller.restart();
    let consent = world.seller.wait_for_consent(&session);
    assert_eq!((&consent["status"], &consent["reason"]), (&json!("refused"), &json!(REVOKED)));
    assert_eq!(world.seller.view(&session)["state"], "AGREEING");
    assert_eq!(world.buyer.view(&session)["state"], "AGREEING");
}

#[test]
fn a_question_says_whether_the_operator_pins_the_card_now() {
    let mut world = World::start(AskedSide::Buyer);
    // The buyer meets the seller without a pinned card.
    world.buyer.kill();
    world.buyer.arguments.push("--trust-on-first-use".to_owned());
    world.pin("Buyer-identity/card.json\n");
    world.buyer.restart();
    let mut person = Listener::connect(&world.hub);
    let session = world.negotiate();
    let mut ask = |world: &World, expected: &str| {
        world.buyer.send_asking(&session, "COMMIT", &world.commitment());
        let question = person.wait_for_question();
        person.answer(&question, "reject");
        world.buyer.wait_for_consent(&session);
        question.to_string().contains(expected)
    };
    assert!(ask(&world, "Nobody confirmed who Seller is"));
    world.pin("Buyer-identity/card.json\nSeller-identity/card.json\n");
    world.buyer.reload();
    let trust = format!("/agent/v1/asp/trust?agent={}", world.seller.agent);
    let is_pinned = || world.buyer.client().get(&trust).body.contains("\"card_pinned\"");
    let give_up_at = std::time::Instant::now() + testing::http::TIMEOUT;
    while !is_pinned() {
        assert!(std::time::Instant::now() < give_up_at, "the card is not pinned");
        std::thread::yield_now();
    }
    assert!(ask(&world, "The operator of your agent confirmed who Seller is"));
}
