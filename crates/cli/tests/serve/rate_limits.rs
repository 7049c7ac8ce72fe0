//! Floods: each client has its own limits, gets a clear refusal, and does not use up the limits of others.

use testing::cli::create_token;
use testing::http::TestClient;
use testing::hub::HubProcess;
use testing::messages::{CONFIRMATION_BODY, REPLY_CAPABILITIES};
use testing::messages::{subscription_close, subscription_request};

/// A hub with two agents and two listeners.
struct FloodScenario {
    hub: HubProcess,
    _folder: tempfile::TempDir,
    /// The tokens of the agents `bank` and `shop` and of the listeners Ada and Eve.
    tokens: [String; 4],
}

impl FloodScenario {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens").to_str().unwrap().to_owned();
        let agent = |name| create_token(&file, &["--role", "agent", "--name", name, "--agent-id", name]);
        let listener = |name| create_token(&file, &["--role", "listener", "--name", name]);
        let tokens = [agent("bank"), agent("shop"), listener("ada"), listener("eve")];
        // The long resume window keeps subscriptions without a stream until the test ends, even on a slow machine.
        let hub = HubProcess::start(&[
            "--memory",
            "--listen",
            "127.0.0.1:0",
            "--tokens",
            &file,
            "--hub-resume-window",
            "1h",
        ]);
        Self { hub, _folder: folder, tokens }
    }

    fn all_clients(&self) -> [TestClient; 4] {
        self.tokens.each_ref().map(|token| self.hub.client().with_bearer(token))
    }
}

#[test]
fn one_listener_cannot_take_all_subscriptions() {
    let scenario = FloodScenario::new();
    let [_, _, ada, eve] = scenario.all_clients();
    let mut last_subscription = String::new();
    for _ in 0..1_000 {
        last_subscription = eve.subscribe("{}");
    }
    let refused = eve.post("/aaep/v1/subscriptions", &subscription_request("{}"));
    assert_eq!((refused.status, refused.json_str("type")), (429, "subscription.rejected".into()));
    assert_eq!(refused.json_str("reason_code"), "rate_limit");
    assert!(refused.json_str("reason_message").contains("too many subscriptions"), "{refused:?}");
    ada.subscribe(REPLY_CAPABILITIES);
    assert_eq!(eve.post("/aaep/v1/replies", &subscription_close(&last_subscription)).status, 204);
    eve.subscribe("{}");
}

#[test]
fn an_agents_open_questions_are_limited() {
    let scenario = FloodScenario::new();
    let [bank, shop, ada, _] = scenario.all_clients();
    let subscription = ada.subscribe(REPLY_CAPABILITIES);
    let _stream = ada.open_event_stream(&subscription, None);
    let ask = |client: &TestClient, session: &str, number: usize| {
        let question = CONFIRMATION_BODY
            .replace("5 euros", &format!("{number} euros"))
            .replace("5.00", &format!("{number}.00"));
        client.post(&format!("/agent/v1/sessions/{session}/confirmations"), &question)
    };
    for _ in 0..4 {
        let session = bank.start_session();
        for number in 0..16 {
            assert_eq!(ask(&bank, &session, number).status, 201);
        }
        let refused = ask(&bank, &session, 16);
        assert_eq!(refused.status, 429, "{refused:?}");
        assert!(refused.json_str("title").contains("questions"), "{refused:?}");
    }
    let session = bank.start_session();
    let refused = ask(&bank, &session, 1);
    assert_eq!(refused.status, 429, "64 questions of one agent: {refused:?}");
    let session = shop.start_session();
    let asked = ask(&shop, &session, 1);
    assert_eq!(asked.status, 201, "another agent may ask: {asked:?}");
    assert_eq!(ada.reply(&subscription, &asked.json_str("reply_token"), "accept").status, 204);
    let path = format!("/agent/v1/sessions/{session}/replies/{}", asked.json_str("reply_token"));
    assert_eq!(shop.get(&path).json_str("decision"), "accept");
}

#[test]
fn critical_events_are_rate_limited() {
    let scenario = FloodScenario::new();
    let [bank, shop, ada, _] = scenario.all_clients();
    let subscription = ada.subscribe(REPLY_CAPABILITIES);
    let mut stream = ada.open_event_stream(&subscription, None);
    let (session, other_session) = (bank.start_session(), shop.start_session());
    let publish = |client: &TestClient, session: &str, body: &str| {
        client
            .with_header("Content-Type: application/x-ndjson")
            .post(&format!("/agent/v1/sessions/{session}/events"), body)
    };
    let critical = r#"{"type":"aaep:agent.progress.updated","urgency":"critical","progress":{"percent":5},"summary_normal":"Look!"}"#;
    let normal = critical.replace(r#""urgency":"critical","#, "");
    assert_eq!(publish(&bank, &session, &[critical; 60].join("\n")).status, 200);
    // The limit may reset once, if a minute ends during the test.
    let refused = (0..3)
        .map(|_| publish(&bank, &session, &[critical; 60].join("\n")))
        .find(|response| response.status != 200);
    let refused = refused.expect("a refused request");
    assert_eq!(refused.status, 429, "{refused:?}");
    assert!(refused.json_str("title").contains("60 critical events in a minute"), "{refused:?}");
    assert_eq!(publish(&bank, &session, &normal).status, 200);
    assert_eq!(publish(&shop, &other_session, critical).status, 200);
    let token = bank.ask_confirmation(&session);
    loop {
        let (_, _, event) = stream.next();
        if event["reply_token"] == token.as_str() {
            break;
        }
    }
}
