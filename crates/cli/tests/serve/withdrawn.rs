//! An agent takes a question back.

use serde_json::json;

use crate::serve::agent_ws::Agent;
use testing::cli::token;
use testing::hub::Hub;
use testing::messages::CAN_REPLY;

#[test]
fn a_question_that_is_taken_back_is_refused_and_everybody_is_told() {
    let hub = Hub::open();
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let mut ear = client.listen(&subscription, None);
    let session = client.start();
    let question = client.ask(&session);
    let path = format!("/agent/v1/sessions/{session}/replies/{question}");
    let withdrawn = client.send("DELETE", &path, "");
    assert_eq!((withdrawn.status, withdrawn.text("decision")), (200, "reject".to_owned()));
    assert_eq!(withdrawn.text("by"), "cancelled");
    while ear.next_type() != "awaiting.confirmation" {}
    let (_, _, told) = ear.next();
    assert_eq!(
        (&told["to_state"], &told["extensions"]["sayso"]["by"]),
        (&json!("thinking"), &json!("cancelled"))
    );
    // A yes that comes too late is none.
    client.reply(&subscription, &question, "accept");
    assert_eq!(client.get(&path).text("by"), "cancelled");
    // Once more is the same again, and what was answered stays so.
    assert_eq!(client.send("DELETE", &path, "").text("by"), "cancelled");
    let answered = client.ask(&session);
    client.reply(&subscription, &answered, "accept");
    let path = format!("/agent/v1/sessions/{session}/replies/{answered}");
    assert_eq!(client.get(&format!("{path}?wait=30")).text("decision"), "accept");
    assert_eq!(client.send("DELETE", &path, "").text("decision"), "accept");
}

#[test]
fn nobody_takes_back_what_another_has_asked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens").to_str().unwrap().to_owned();
    let bank = token(&file, &["--role", "agent", "--name", "bank", "--agent-id", "bank"]);
    let shop = token(&file, &["--role", "agent", "--name", "shop", "--agent-id", "shop"]);
    let ada = token(&file, &["--role", "listener", "--name", "ada"]);
    let hub = Hub::start(&["--memory", "--listen", "127.0.0.1:0", "--tokens", &file]);
    let (bank, shop, ada) =
        (hub.client().bearer(&bank), hub.client().bearer(&shop), hub.client().bearer(&ada));
    let _ear = ada.listen(&ada.subscribe(CAN_REPLY), None);
    let (session, other) = (bank.start(), shop.start());
    let question = bank.ask(&session);
    for (client, session) in [(&shop, &session), (&shop, &other), (&ada, &session)] {
        let path = format!("/agent/v1/sessions/{session}/replies/{question}");
        assert!(matches!(client.send("DELETE", &path, "").status, 403 | 404));
    }
    let path = format!("/agent/v1/sessions/{session}/replies/{question}");
    assert_eq!(bank.get(&path).text("status"), "pending");
    assert_eq!(bank.send("DELETE", &format!("{path}?now=1"), "").status, 400);
    assert_eq!(bank.send("PUT", &path, "").status, 405);
}

#[test]
fn the_same_on_a_websocket() {
    let hub = Hub::open();
    let client = hub.client();
    let _ear = client.listen(&client.subscribe(CAN_REPLY), None);
    let mut agent = Agent::open(&hub);
    let session = agent.start();
    let question = agent.ask(&session);
    let parameters = json!({"session_id": session, "reply_token": question});
    assert_eq!(agent.result("session.withdraw", &parameters)["by"], "cancelled");
    let told = agent.told();
    assert_eq!((&told["method"], &told["params"]["by"]), (&json!("session.resolved"), &json!("cancelled")));
}
