//! What the person hears.

use serde_json::{Value, json};

use testing::terminal::AgentSession;

use super::{AskedSide, Listener, World};

/// Runs a whole session. Returns the question to the seller's person, and everything that they hear.
fn run_session(world: &World, mut person: Listener) -> (Value, Vec<String>) {
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

/// Replaces the buyer's port, which differs in each run.
fn without_port(world: &World, text: &str) -> String {
    let host = world.buyer.agent.trim_start_matches("agent://").trim_end_matches("/buyer");
    text.replace(host, "shop.example")
}

#[test]
fn every_step_is_heard_once_and_in_order() {
    let world = World::start(AskedSide::Seller);
    let (question, heard) = run_session(&world, Listener::connect(&world.hub));
    let heard: Vec<_> = heard.iter().map(|text| without_port(&world, text)).collect();
    assert_eq!(
        heard,
        [
            "Buyer at shop.example invites your agent to talk about 40 brackets. Trust in Buyer is low: there is little history.",
            "Your agent accepts the invitation.",
            "Buyer has proven its identity. The operator of your agent confirmed who Buyer is.",
            "Buyer proposes: 40 brackets for 100 euros.",
            "Buyer makes a binding offer. It waits for your side.",
            "An agreement with Buyer needs your yes or no.",
            "Accepting the binding offer of Buyer.",
            "Agreed: the agreement with Buyer is now binding.",
            "Your agent says that its part is done.",
            "Buyer says that its part is done.",
            "Buyer wants to end the talks.",
            "The talks with Buyer are over. Both sides say that everything is done. You get the 100 euros from escrow.",
        ]
    );
    let text = |name: &str| without_port(&world, question[name].as_str().unwrap());
    assert_eq!(
        text("action"),
        "Accept the binding offer of Buyer at shop.example: 40 brackets. You promise: deliver 40 brackets, by Friday, \
         1 March 2030, 12:00 UTC. Buyer promises: pay 100 euros, by Friday, 15 March 2030, 12:00 UTC."
    );
    assert_eq!(
        text("consequence"),
        "Buyer pays 100 euros into escrow. You get it for keeping your promises. If it is late: 5 percent off per week. \
         If it is not done: the money is returned. Trust in Buyer is low: there is little history. The operator of your \
         agent confirmed who Buyer is."
    );
    assert_eq!((&question["irreversible"], &question["risk_level"]), (&json!(true), &json!("high")));
    assert_eq!(
        (&question["default_decision"], &question["timeout_seconds"]),
        (&json!("reject"), &json!(600))
    );
}

#[test]
fn a_person_hears_everything_in_their_language() {
    for (language, question_start, agreed) in [
        ("es", "Aceptar de Buyer,", "De acuerdo: el acuerdo con Buyer ya obliga a las dos partes."),
        ("yo", "Gba àdéhùn tó de ni", "A ti fohùn ṣọ̀kan: àdéhùn pẹ̀lú Buyer ti de ẹ̀yin méjèèjì báyìí."),
    ] {
        let world = World::start(AskedSide::Seller);
        let capabilities = json!({"supports_confirmation_reply": true, "languages": [language]}).to_string();
        let person = Listener::connect_with(&world.hub, &capabilities);
        let (question, heard) = run_session(&world, person);
        let action = question["action"].as_str().unwrap();
        assert!(action.starts_with(question_start), "{action}");
        assert!(heard.iter().any(|text| text == agreed), "{heard:#?}");
        let english: Vec<_> = heard.iter().filter(|text| text.contains(" the ")).collect();
        assert!(english.is_empty(), "{english:#?}");
    }
}

#[test]
fn a_hub_that_was_away_hears_what_it_missed() {
    let mut world = World::start(AskedSide::Buyer);
    let mut person = Listener::connect(&world.hub);
    // From this event on, the person hears everything, including what the node reports before they are connected again.
    drop(AgentSession::start(world.hub.client()));
    person.wait_for("session.started");
    world.hub.kill();
    let session = world.negotiate();
    world.hub.restart();
    person.reconnect();
    world.buyer.send_asking(&session, "COMMIT", &world.commitment());
    let question = person.wait_for_question();
    assert!(question["action"].as_str().unwrap().starts_with("Make a binding offer to Seller"));
    let proposed = "Your agent proposes: 40 brackets for 100 euros.";
    assert!(person.heard.iter().any(|text| text == proposed), "{:#?}", person.heard);
    let is_invitation = |text: &String| text.starts_with("Your agent invites Seller");
    assert!(person.heard.iter().any(is_invitation), "{:#?}", person.heard);
}
