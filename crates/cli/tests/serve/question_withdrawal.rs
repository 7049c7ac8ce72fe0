//! An agent withdraws a question.

use serde_json::json;

use crate::serve::agent_websocket::AgentWebSocket;
use testing::cli::create_token;
use testing::hub::HubProcess;
use testing::messages::REPLY_CAPABILITIES;

#[test]
fn a_withdrawn_question_is_rejected_and_announced() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let mut stream = client.open_event_stream(&subscription, None);
    let session = client.start_session();
    let token = client.ask_confirmation(&session);
    let path = format!("/agent/v1/sessions/{session}/replies/{token}");
    let withdrawn = client.send("DELETE", &path, "");
    assert_eq!((withdrawn.status, withdrawn.json_str("decision")), (200, "reject".to_owned()));
    // `by` says how the question was resolved, not who resolved it.
    assert_eq!(withdrawn.json_str("by"), "cancelled");
    while stream.next_type() != "awaiting.confirmation" {}
    let (_, _, resolution) = stream.next();
    assert_eq!(
        (&resolution["to_state"], &resolution["extensions"]["sayso"]["by"]),
        (&json!("thinking"), &json!("cancelled"))
    );
    // An accept after the withdrawal is ignored.
    client.reply(&subscription, &token, "accept");
    assert_eq!(client.get(&path).json_str("by"), "cancelled");
    // A second withdrawal has the same result, and an answered question stays answered.
    assert_eq!(client.send("DELETE", &path, "").json_str("by"), "cancelled");
    let answered_token = client.ask_confirmation(&session);
    client.reply(&subscription, &answered_token, "accept");
    let path = format!("/agent/v1/sessions/{session}/replies/{answered_token}");
    assert_eq!(client.get(&format!("{path}?wait=30")).json_str("decision"), "accept");
    assert_eq!(client.send("DELETE", &path, "").json_str("decision"), "accept");
}

#[test]
fn an_agent_cannot_withdraw_another_agents_question() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens").to_str().unwrap().to_owned();
    let bank = create_token(&file, &["--role", "agent", "--name", "bank", "--agent-id", "bank"]);
    let shop = create_token(&file, &["--role", "agent", "--name", "shop", "--agent-id", "shop"]);
    let ada = create_token(&file, &["--role", "listener", "--name", "ada"]);
    let hub = HubProcess::start(&["--memory", "--listen", "127.0.0.1:0", "--tokens", &file]);
    let (bank, shop, ada) =
        (hub.client().with_bearer(&bank), hub.client().with_bearer(&shop), hub.client().with_bearer(&ada));
    let _stream = ada.open_event_stream(&ada.subscribe(REPLY_CAPABILITIES), None);
    let (session, other_session) = (bank.start_session(), shop.start_session());
    let token = bank.ask_confirmation(&session);
    for (client, session) in [(&shop, &session), (&shop, &other_session), (&ada, &session)] {
        let path = format!("/agent/v1/sessions/{session}/replies/{token}");
        assert!(matches!(client.send("DELETE", &path, "").status, 403 | 404));
    }
    let path = format!("/agent/v1/sessions/{session}/replies/{token}");
    assert_eq!(bank.get(&path).json_str("status"), "pending");
    assert_eq!(bank.send("DELETE", &format!("{path}?now=1"), "").status, 400);
    assert_eq!(bank.send("PUT", &path, "").status, 405);
}

#[test]
fn a_question_can_be_withdrawn_over_a_websocket() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let _stream = client.open_event_stream(&client.subscribe(REPLY_CAPABILITIES), None);
    let mut agent = AgentWebSocket::open(&hub);
    let session = agent.start_session();
    let token = agent.ask(&session);
    let params = json!({"session_id": session, "reply_token": token});
    assert_eq!(agent.call_ok("session.withdraw", &params)["by"], "cancelled");
    let notification = agent.next_notification();
    assert_eq!(
        (&notification["method"], &notification["params"]["by"]),
        (&json!("session.resolved"), &json!("cancelled"))
    );
}
