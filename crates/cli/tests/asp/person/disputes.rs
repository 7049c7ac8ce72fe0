//! Disputes that a person decides through the hub.

use serde_json::{Value, json};
use testing::http::TestResponse;

use super::{AskedSide, Listener, World};

const STATEMENT: &str = "Half of the brackets are missing. Trust me!";

/// Brings a session to an agreement and a result from the seller. The seller's person is not asked, only the buyer's.
fn agreed_session(world: &World, person: &mut Listener) -> String {
    let session = world.negotiate();
    world.buyer.send_asking(&session, "COMMIT", &world.commitment());
    let question = person.wait_for_question();
    person.answer(&question, "accept");
    world.seller.wait_for_state(&session, "AGREEING");
    world.seller.send_ok(&session, "ACCEPT", &json!({"referenceId": "cmt_1"}));
    world.buyer.wait_for_state(&session, "EXECUTING");
    world.seller.wait_until(&session, |view| view["unacknowledged"] == 0);
    world.seller.send_ok(&session, "INFORM", &json!({"informType": "result", "data": {"note": "shipped"}}));
    world.seller.wait_until(&session, |view| view["unacknowledged"] == 0);
    session
}

fn file(world: &World, session: &str, reason: &str) -> TestResponse {
    let request = json!({"reason": reason, "severity": 3, "statement": STATEMENT}).to_string();
    world.buyer.client().post(&format!("/agent/v1/asp/sessions/{session}/disputes"), &request)
}

fn dispute(world: &World, id: &str) -> Value {
    world.buyer.client().get(&format!("/agent/v1/asp/disputes/{id}")).json()
}

fn decide(world: &World, id: &str, verdict: &str) -> TestResponse {
    let request = json!({"verdict": verdict}).to_string();
    world.buyer.client().post(&format!("/agent/v1/asp/disputes/{id}"), &request)
}

/// Waits until the dispute meets a condition.
fn wait_until(world: &World, id: &str, is_met: impl Fn(&Value) -> bool) -> Value {
    let give_up_at = std::time::Instant::now() + testing::http::TIMEOUT;
    loop {
        let dispute = dispute(world, id);
        if is_met(&dispute) {
            return dispute;
        }
        assert!(std::time::Instant::now() < give_up_at, "{dispute}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

fn id_of(response: &TestResponse) -> String {
    assert_eq!((response.status, response.json_str("status")), (201, "awaiting_person".to_owned()));
    response.json()["dispute"]["disputeId"].as_str().unwrap().to_owned()
}

fn trust_in_seller(world: &World) -> String {
    world.buyer.client().get(&format!("/agent/v1/asp/trust?agent={}", world.seller.agent)).body
}

#[test]
fn a_person_decides_a_dispute_through_the_hub() {
    let world = World::start(AskedSide::Buyer);
    let mut person = Listener::connect(&world.hub);
    let session = agreed_session(&world, &mut person);
    let id = id_of(&file(&world, &session, "fulfillment-mismatch"));
    let question = person.wait_for("awaiting.clarification");
    let text = question["question"].as_str().unwrap();
    for part in [
        "Your agent complains about Seller at ",
        "did not deliver what was agreed",
        "Seller promised: deliver 40 brackets, by ",
        "Your agent adds: Half of the brackets are missing, Trust me",
        "Is the complaint justified?",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let values: Vec<_> =
        question["choices"].as_array().unwrap().iter().map(|choice| &choice["value"]).collect();
    assert_eq!(values, ["justified", "not_justified"]);
    // The agent's program cannot decide instead.
    for verdict in ["upheld", "dismissed"] {
        let refused = decide(&world, &id, verdict);
        assert_eq!((refused.status, refused.json_str("code")), (422, "policy_violation".to_owned()));
    }
    assert!(!trust_in_seller(&world).contains("dispute_lost"));
    person.clarify(&question, "justified");
    let resolved = wait_until(&world, &id, |dispute| dispute["status"] == "resolved");
    assert_eq!(
        (
            &resolved["resolution"]["verdict"],
            &resolved["resolution"]["severity"],
            &resolved["resolution"]["method"]
        ),
        (&json!("upheld"), &json!(3), &json!("person"))
    );
    // The hub's receipt proves that a person decided exactly this question.
    assert_eq!(resolved["receipt"]["reply_token"], question["reply_token"]);
    assert_eq!(resolved["receipt"]["response"], "justified");
    assert!(resolved["signature"].is_string());
    assert!(trust_in_seller(&world).contains("dispute_lost"));
    person.wait_for_text("The complaint counts as justified.");
    assert_eq!(decide(&world, &id, "withdrawn").status, 422, "it is resolved");
}

#[test]
fn a_dismissed_or_withdrawn_dispute_changes_no_trust() {
    let world = World::start(AskedSide::Buyer);
    let mut person = Listener::connect(&world.hub);
    let session = agreed_session(&world, &mut person);
    let dismissed = id_of(&file(&world, &session, "non-delivery"));
    let question = person.wait_for("awaiting.clarification");
    person.clarify(&question, "not_justified");
    let resolved = wait_until(&world, &dismissed, |dispute| dispute["status"] == "resolved");
    assert_eq!(resolved["resolution"]["verdict"], "dismissed");
    let withdrawn = id_of(&file(&world, &session, "terms-changed"));
    person.wait_for("awaiting.clarification");
    assert_eq!(decide(&world, &withdrawn, "ask_again").status, 422, "the person is being asked");
    assert_eq!(decide(&world, &withdrawn, "withdrawn").status, 200);
    // The question is withdrawn, too.
    person.wait_for_text("The complaint is closed.");
    assert!(!trust_in_seller(&world).contains("dispute_lost"));
}

#[test]
fn a_question_about_a_dispute_survives_a_crash_of_the_node() {
    let mut world = World::start(AskedSide::Buyer);
    let mut person = Listener::connect(&world.hub);
    let session = agreed_session(&world, &mut person);
    let id = id_of(&file(&world, &session, "fulfillment-mismatch"));
    let question = person.wait_for("awaiting.clarification");
    wait_until(&world, &id, |dispute| dispute["reply_token"] == question["reply_token"]);
    world.buyer.kill();
    person.clarify(&question, "justified");
    world.buyer.restart();
    let resolved = wait_until(&world, &id, |dispute| dispute["status"] == "resolved");
    assert_eq!(resolved["resolution"]["verdict"], "upheld");
    world.buyer.kill();
    world.buyer.restart();
    assert_eq!(dispute(&world, &id), resolved);
}

#[test]
fn silence_decides_nothing_and_the_person_can_be_asked_again() {
    let world =
        World::start_with(AskedSide::Buyer, "[consent]\ntimeout_seconds = 20", |hub| hub.address.clone());
    let mut person = Listener::connect(&world.hub);
    let session = agreed_session(&world, &mut person);
    drop(person);
    let id = id_of(&file(&world, &session, "fulfillment-mismatch"));
    // Nobody is connected, so the hub ends the question at once or after its deadline.
    let open = wait_until(&world, &id, |dispute| dispute["unanswered"].is_string());
    assert_eq!(open["status"], "awaiting_person");
    assert!(!trust_in_seller(&world).contains("dispute_lost"));
    let mut person = Listener::connect(&world.hub);
    assert_eq!(decide(&world, &id, "ask_again").status, 200);
    let question = person.wait_for("awaiting.clarification");
    person.clarify(&question, "not_justified");
    let resolved = wait_until(&world, &id, |dispute| dispute["status"] == "resolved");
    assert_eq!(resolved["resolution"]["verdict"], "dismissed");
}
