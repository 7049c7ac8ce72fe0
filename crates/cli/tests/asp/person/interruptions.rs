//! Crashes while a question is open.

use serde_json::json;

use super::{AskedSide, Listener, World};

const SHORT_TIMEOUT: &str = "[consent]\ntimeout_seconds = 2";

#[test]
fn an_unreachable_hub_means_no() {
    let mut world = World::start_with(AskedSide::Buyer, SHORT_TIMEOUT, |hub| hub.address.clone());
    let mut person = Listener::connect(&world.hub);
    let session = world.negotiate();
    world.buyer.send_asking(&session, "COMMIT", &world.commitment());
    person.wait_for_question();
    world.hub.kill();
    let consent = world.buyer.wait_for_consent(&session);
    let reason = consent["reason"].as_str().unwrap();
    assert!(reason.starts_with("there is no answer: the hub cannot be reached:"), "{reason}");
    world.hub.restart();
    assert!(!world.buyer.has_binding_message(&session));
    world.seller.send_ok(&session, "CLOSE", &json!({"reason": "no offer"}));
    world.buyer.wait_for_state(&session, "CLOSED");
    assert!(!world.verified_transcript(&session).iter().any(|message| message["performative"] == "COMMIT"));
}

#[test]
fn a_question_survives_a_crash_of_the_hub() {
    let mut world = World::start(AskedSide::Buyer);
    let mut person = Listener::connect(&world.hub);
    let session = world.negotiate();
    world.buyer.send_asking(&session, "COMMIT", &world.commitment());
    let question = person.wait_for_question();
    world.hub.kill();
    world.hub.restart();
    person.answer(&question, "accept");
    world.seller.wait_for_state(&session, "AGREEING");
    world.verify_consent(&session, "COMMIT").unwrap();
}

#[test]
fn an_answer_counts_once_although_the_node_crashed_while_it_was_given() {
    let mut world = World::start(AskedSide::Buyer);
    let mut person = Listener::connect(&world.hub);
    let session = world.negotiate();
    world.buyer.send_asking(&session, "COMMIT", &world.commitment());
    let question = person.wait_for_question();
    world.buyer.kill();
    person.answer(&question, "accept");
    world.buyer.restart();
    world.seller.wait_for_state(&session, "AGREEING");
    world.buyer.wait_until(&session, |view| view["unacknowledged"] == 0);
    world.buyer.kill();
    world.buyer.restart();
    world.seller.send_ok(&session, "ACCEPT", &json!({"referenceId": "cmt_1"}));
    world.buyer.wait_for_state(&session, "EXECUTING");
    world.seller.wait_until(&session, |view| view["unacknowledged"] == 0);
    let transcript = world.verified_transcript(&session);
    let commits = transcript.iter().filter(|message| message["performative"] == "COMMIT").count();
    assert_eq!(commits, 1);
    world.verify_consent(&session, "COMMIT").unwrap();
    // The same session of the hub continues after both restarts, and nothing is announced twice.
    let agreed = person.wait_for_text("Agreed: the agreement with Seller is now binding.");
    assert_eq!(agreed["session_id"], question["session_id"]);
    let calls = [
        "Sending the binding offer to Seller.",
        "The binding offer is sent. Seller has not accepted it yet.",
    ];
    for text in calls {
        assert_eq!(person.heard.iter().filter(|heard| *heard == text).count(), 1, "{:#?}", person.heard);
    }
}

#[test]
fn a_no_counts_although_the_node_crashed_while_it_was_given() {
    let mut world = World::start(AskedSide::Seller);
    let mut person = Listener::connect(&world.hub);
    let session = world.negotiate();
    world.buyer.send_ok(&session, "COMMIT", &world.commitment());
    world.seller.wait_for_state(&session, "AGREEING");
    world.seller.send_asking(&session, "ACCEPT", &json!({"referenceId": "cmt_1"}));
    let question = person.wait_for_question();
    world.seller.kill();
    person.answer(&question, "reject");
    world.seller.restart();
    assert_eq!(world.seller.wait_for_consent(&session)["reason"], "the person said no");
    assert_eq!(world.seller.view(&session)["state"], "AGREEING");
}

#[test]
fn a_decision_about_an_escalation_survives_a_crash_of_the_node() {
    let mut world = World::start(AskedSide::Buyer);
    let mut person = Listener::connect(&world.hub);
    let session = world.negotiate();
    world.buyer.send_ok(&session, "ESCALATE", &json!({"reason": "The price is high", "urgency": "low"}));
    let question = person.wait_for("awaiting.clarification");
    world.buyer.kill();
    person.clarify(&question, "At most 90 euros.");
    world.buyer.restart();
    let view = world.seller.wait_until(&session, |view| {
        view["messages"]
            .as_array()
            .unwrap()
            .iter()
            .any(|message| message["content"]["body"]["informType"] == "resolution")
    });
    let messages = view["messages"].as_array().unwrap();
    let resolution = &messages.last().unwrap()["content"]["body"];
    assert_eq!(resolution["data"]["decision"], "At most 90 euros.");
    // After another crash, the person is not asked again, and the decision is sent once.
    world.buyer.wait_until(&session, |view| view["unacknowledged"] == 0);
    world.buyer.kill();
    world.buyer.restart();
    world.buyer.send_ok(&session, "CLOSE", &json!({"reason": "enough"}));
    world.seller.wait_for_state(&session, "CLOSED");
    world.buyer.wait_until(&session, |view| view["unacknowledged"] == 0);
    let transcript = world.verified_transcript(&session);
    let resolutions =
        transcript.iter().filter(|message| message["content"]["body"]["informType"] == "resolution");
    assert_eq!(resolutions.count(), 1);
}

#[test]
fn nobody_is_asked_after_the_hubs_key_has_changed() {
    let mut world = World::start(AskedSide::Buyer);
    let mut person = Listener::connect(&world.hub);
    let session = world.negotiate();
    world.buyer.send_asking(&session, "COMMIT", &world.commitment());
    let question = person.wait_for_question();
    person.answer(&question, "reject");
    world.buyer.wait_for_consent(&session);
    world.hub.kill();
    world.hub.lose_keys();
    world.hub.restart();
    let refused = world.buyer.send(&session, "COMMIT", &world.commitment());
    assert_eq!(refused.status, 422, "{refused:?}");
    assert!(refused.json_str("reason").contains("its receipt key has changed"), "{refused:?}");
    // The operator restarts the node if that is expected.
    world.buyer.kill();
    world.buyer.restart();
    let mut person = Listener::connect(&world.hub);
    world.buyer.send_asking(&session, "COMMIT", &world.commitment());
    let question = person.wait_for_question();
    person.answer(&question, "accept");
    world.seller.wait_for_state(&session, "AGREEING");
}
