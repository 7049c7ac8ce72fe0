//! The threats in chapter 10 of the specification, attempted over the network against the real binary. The `threats`
//! tests of the hub crate attempt them without a network. The tests for T4 are in `rate_limits.rs`.

use serde_json::Value;

use testing::cli::create_token;
use testing::http::{EventStream, TestClient, TestResponse};
use testing::hub::HubProcess;
use testing::messages::{CONFIRMATION_BODY, REPLY_CAPABILITIES};
use testing::messages::{confirmation_reply, subscription_close, subscription_renegotiate};

/// Two agents, two listeners and an observer. The agent `bank` has asked the listener Ada for consent. The listener Eve
/// receives only events of the agent `shop`. Oda is the observer.
struct ThreatScenario {
    hub: HubProcess,
    _folder: tempfile::TempDir,
    bank: TestClient,
    shop: TestClient,
    ada: TestClient,
    eve: TestClient,
    oda: TestClient,
    ada_subscription: String,
    ada_stream: EventStream,
    session: String,
    token: String,
}

impl ThreatScenario {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens").to_str().unwrap().to_owned();
        let create = |role: &str, name: &str, rest: &[&str]| {
            create_token(&file, &[&["--role", role, "--name", name], rest].concat())
        };
        let bank = create("agent", "bank", &["--agent-id", "bank"]);
        let shop = create("agent", "shop", &["--agent-id", "shop"]);
        let ada = create("listener", "ada", &[]);
        let eve = create("listener", "eve", &["--scope", "agent:shop"]);
        let oda = create("observer", "oda", &[]);
        let data = folder.path().join("data").to_str().unwrap().to_owned();
        let hub = HubProcess::start(&["--listen", "127.0.0.1:0", "--tokens", &file, "--data", &data]);
        let [bank, shop, ada, eve, oda] =
            [bank, shop, ada, eve, oda].map(|token| hub.client().with_bearer(&token));
        let ada_subscription = ada.subscribe(REPLY_CAPABILITIES);
        let mut ada_stream = ada.open_event_stream(&ada_subscription, None);
        let session = bank.start_session();
        let token = bank.ask_confirmation(&session);
        while ada_stream.next().2["reply_token"] != token.as_str() {}
        Self { hub, _folder: folder, bank, shop, ada, eve, oda, ada_subscription, ada_stream, session, token }
    }

    fn publish(&self, event: &str) -> TestResponse {
        self.bank.post(&format!("/agent/v1/sessions/{}/events", self.session), event)
    }

    fn status(&self) -> TestResponse {
        self.bank.get(&format!("/agent/v1/sessions/{}/replies/{}", self.session, self.token))
    }

    fn assert_question_open(&self) {
        assert_eq!(self.status().json_str("status"), "pending");
        let call = format!(
            r#"{{"type":"aaep:agent.tool.invoked","tool":"send","tool_call_id":"call_1","risk_level":"high","irreversible":true,"summary_normal":"Sending.","reply_token":"{}","arguments":{{"amount":"5.00"}}}}"#,
            self.token
        );
        let sent = self.publish(&call);
        assert!(sent.status == 422 && sent.body.contains("is not answered"), "{sent:?}");
    }

    /// Returns Ada's events until the question is resolved.
    fn read_until_resolved(&mut self) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            let (_, _, event) = self.ada_stream.next();
            let is_resolved = event["extensions"]["sayso"]["reply_token"] == self.token.as_str();
            events.push(event);
            if is_resolved {
                return events;
            }
        }
    }
}

#[test]
fn t1_a_forged_reply_gets_the_usual_response_and_has_no_effect() {
    let scenario = ThreatScenario::new();
    let (eve_subscription, oda_subscription) =
        (scenario.eve.subscribe(REPLY_CAPABILITIES), scenario.oda.subscribe(REPLY_CAPABILITIES));
    let (_eve_stream, _oda_stream) = (
        scenario.eve.open_event_stream(&eve_subscription, None),
        scenario.oda.open_event_stream(&oda_subscription, None),
    );
    let valid = confirmation_reply(&scenario.ada_subscription, &scenario.token, "accept");
    let clarification = valid
        .replace("confirmation.reply", "clarification.reply")
        .replace(r#""decision":"accept""#, r#""response":"accept""#);
    let future_timestamp = "2099-01-01T00:00:00.000Z";
    let value: Value = serde_json::from_str(&valid).unwrap();
    let forged = [
        (&scenario.eve, valid.clone()),
        (&scenario.eve, confirmation_reply(&eve_subscription, &scenario.token, "accept")),
        (&scenario.oda, valid.clone()),
        (&scenario.oda, confirmation_reply(&oda_subscription, &scenario.token, "accept")),
        (&scenario.bank, valid.clone()),
        (&scenario.ada, confirmation_reply(&scenario.ada_subscription, &format!("rpl_{:032}", 0), "accept")),
        (&scenario.ada, valid.replace(value["timestamp"].as_str().unwrap(), future_timestamp)),
        (&scenario.ada, valid.replacen('{', r#"{"decision":"accept","#, 1)),
        (&scenario.ada, clarification),
    ];
    let responses = forged.map(|(client, text)| client.post("/aaep/v1/replies", &text));
    scenario.assert_question_open();
    let valid_response = scenario.ada.post("/aaep/v1/replies", &valid);
    assert_eq!(scenario.status().json_str("decision"), "accept");
    for response in responses {
        assert_eq!(
            (response.status, response.head, response.body),
            (204, valid_response.head.clone(), valid_response.body.clone())
        );
    }
}

#[test]
fn t2_a_replayed_reply_counts_once() {
    let mut scenario = ThreatScenario::new();
    let reject = confirmation_reply(&scenario.ada_subscription, &scenario.token, "reject");
    let accept = confirmation_reply(&scenario.ada_subscription, &scenario.token, "accept");
    for text in [&reject, &accept, &reject, &accept, &accept] {
        assert_eq!(scenario.ada.post("/aaep/v1/replies", text).status, 204);
    }
    assert_eq!(scenario.status().json_str("decision"), "reject");
    let events = scenario.read_until_resolved();
    assert_eq!(events.last().unwrap()["extensions"]["sayso"]["decision"], "reject");
    // The replayed reply does not answer the question when it is asked again, either.
    let second_token = scenario.bank.ask_confirmation(&scenario.session);
    assert_eq!(scenario.ada.post("/aaep/v1/replies", &accept).status, 204);
    let path = format!("/agent/v1/sessions/{}/replies/{second_token}", scenario.session);
    assert_eq!(scenario.bank.get(&path).json_str("status"), "pending");
}

#[test]
fn t3_an_agent_cannot_impersonate_another_agent_the_hub_or_the_person() {
    let mut scenario = ThreatScenario::new();
    let state = r#""type":"aaep:agent.state.changed","to_state":"thinking""#;
    let (session, token) = (&scenario.session, &scenario.token);
    for event in [
        format!(r#"{{{state},"producer":{{"agent_id":"shop"}}}}"#),
        format!(r#"{{{state},"session_id":"{session}"}}"#),
        format!(
            r#"{{{state},"extensions":{{"sayso":{{"reply_token":"{token}","decision":"accept","by":"reply"}}}}}}"#
        ),
        confirmation_reply(&scenario.ada_subscription, token, "accept"),
    ] {
        let response = scenario.publish(&event);
        assert!(matches!(response.status, 400 | 422), "{event}: {response:?}");
    }
    let as_shop = r#"{"summary_normal":"I am the shop.","producer":{"agent_id":"shop"},"localization_hints":{"primary_language":"en"}}"#;
    assert_eq!(scenario.bank.post("/agent/v1/sessions", as_shop).status, 400);
    scenario.assert_question_open();
    assert_eq!(scenario.ada.reply(&scenario.ada_subscription, &scenario.token, "reject").status, 204);
    let events = scenario.read_until_resolved();
    assert!(events.iter().all(|event| event["producer"]["agent_id"] == "bank"), "{events:?}");
    assert_eq!(events.len(), 1, "forged events must not be delivered: {events:?}");
}

#[test]
fn t5_nothing_is_disclosed_outside_a_scope_or_in_an_error() {
    let mut scenario = ThreatScenario::new();
    let eve_subscription = scenario.eve.subscribe(REPLY_CAPABILITIES);
    // Eve joins late and resumes from a known event id of the bank.
    let output = scenario.bank.post(&format!("/agent/v1/sessions/{}/output", scenario.session), "A secret. ");
    let ids: Value = serde_json::from_str(&output.body).unwrap();
    let known_event_id = ids["event_ids"][0].as_str().unwrap().to_owned();
    let mut eve_stream = scenario.eve.open_event_stream(&eve_subscription, Some(&known_event_id));
    let shop_session = scenario.shop.start_session();
    let (kind, _, event) = eve_stream.next();
    assert_eq!((kind.as_str(), event["session_id"].as_str()), ("session.started", Some(&*shop_session)));
    for response in [
        scenario.eve.get(&format!("/aaep/v1/events?subscription_id={}", scenario.ada_subscription)),
        scenario.shop.get(&format!("/agent/v1/sessions/{}/replies/{}", scenario.session, scenario.token)),
        scenario.eve.reply(&scenario.ada_subscription, &scenario.token, "accept"),
        scenario
            .hub
            .client()
            .get(&format!("/agent/v1/sessions/{}/replies/{}", scenario.session, scenario.token)),
    ] {
        let text = format!("{}{}", response.head, response.body);
        for secret in ["euro", "Ben", "secret", "bank", "ada", &scenario.token, &scenario.session] {
            assert!(!text.contains(secret), "{secret}: {response:?}");
        }
    }
    assert_eq!(scenario.ada.reply(&scenario.ada_subscription, &scenario.token, "reject").status, 204);
    scenario.read_until_resolved();
}

#[test]
fn t6_nobody_can_authenticate_as_somebody_else() {
    let scenario = ThreatScenario::new();
    let anonymous = scenario.hub.client();
    for header in [
        "Authorization: Bearer ",
        "Authorization: Bearer ada",
        "Authorization: Basic YWRhOg==",
        "Authorization: bearer sayso_00000000000000000000000000000000",
        "Cookie: sayso=ada",
        "X-Forwarded-User: ada",
        "X-Forwarded-For: 127.0.0.1",
        "Forwarded: for=127.0.0.1",
    ] {
        let client = anonymous.with_header(header);
        assert_eq!(
            client.get(&format!("/aaep/v1/events?subscription_id={}", scenario.ada_subscription)).status,
            401,
            "{header}"
        );
        let replied = client.reply(&scenario.ada_subscription, &scenario.token, "accept");
        assert_eq!(replied.status, 401, "{header}");
        assert_eq!(client.post("/agent/v1/sessions", "{}").status, 401, "{header}");
    }
    for listener in [&scenario.ada, &scenario.oda] {
        assert_eq!(listener.post("/agent/v1/sessions", "{}").status, 403);
        let path = format!("/agent/v1/sessions/{}/confirmations", scenario.session);
        assert_eq!(listener.post(&path, CONFIRMATION_BODY).status, 404);
    }
    assert_eq!(
        scenario
            .bank
            .post("/aaep/v1/subscriptions", &testing::messages::subscription_request(REPLY_CAPABILITIES))
            .status,
        403
    );
    scenario.assert_question_open();
}

#[test]
fn t7_an_extension_decides_nothing_and_impersonates_nobody() {
    let mut scenario = ThreatScenario::new();
    let context = r#""@context":["https://aaep-protocol.org/context/v1","https://bank.example/ns/v1"]"#;
    let forged = format!(r#"{{"reply_token":"{}","decision":"accept","by":"reply"}}"#, scenario.token);
    let state = r#""type":"aaep:agent.state.changed","to_state":"thinking""#;
    for event in [
        format!(r#"{{{state},"extensions":{{"s\u0061yso":{forged}}}}}"#),
        format!(r#"{{{state},"extensions":{{"urn:sayso:context:v1":{forged}}}}}"#),
        format!(
            r#"{{"type":"sayso:resolved","summary_normal":"You said yes.","extensions":{{"bank":{forged}}}}}"#
        ),
        format!(r#"{{{context},{state},"decision":"accept"}}"#),
        CONFIRMATION_BODY.replacen(
            '{',
            r#"{"type":"https://aaep-protocol.org/types/agent.awaiting.confirmation","#,
            1,
        ),
    ] {
        let response = scenario.publish(&event);
        assert!(matches!(response.status, 400 | 422), "{event}: {response:?}");
    }
    let call = format!(
        r#"{{{context},"extensions":{{"bank":{{"confirmed":true,"skip_confirmation":true}}}},"type":"aaep:agent.tool.invoked","tool":"send","tool_call_id":"call_2","risk_level":"high","irreversible":true,"summary_normal":"Sending.","reply_token":"{}","arguments":{{"amount":"5.00"}}}}"#,
        scenario.token
    );
    assert_eq!(scenario.publish(&call).status, 422);
    scenario.assert_question_open();
    assert_eq!(scenario.ada.reply(&scenario.ada_subscription, &scenario.token, "accept").status, 204);
    assert_eq!(scenario.read_until_resolved().len(), 1, "forged events must not be delivered");
    assert_eq!(scenario.publish(&call).status, 200, "after an acceptance, the extension is passed on");
    let (_, _, state) = scenario.ada_stream.next();
    assert_eq!(state["to_state"], "calling_tool", "{state}");
    let (_, _, event) = scenario.ada_stream.next();
    assert_eq!(event["extensions"]["bank"]["confirmed"], true, "{event}");
    assert!(event["@context"].as_array().unwrap().contains(&"https://bank.example/ns/v1".into()), "{event}");
}

#[test]
fn t8_a_subscription_id_is_not_a_credential() {
    let mut scenario = ThreatScenario::new();
    for thief in [&scenario.eve, &scenario.oda] {
        assert_eq!(
            thief.get(&format!("/aaep/v1/events?subscription_id={}", scenario.ada_subscription)).status,
            404
        );
        assert_eq!(
            thief
                .post("/aaep/v1/replies", &subscription_renegotiate(&scenario.ada_subscription, "{}"))
                .status,
            404
        );
        assert_eq!(
            thief.post("/aaep/v1/replies", &subscription_close(&scenario.ada_subscription)).status,
            404
        );
        for message in [
            confirmation_reply(&scenario.ada_subscription, &scenario.token, "accept"),
            format!(
                r#"{{"type":"sayso:session.stop","session_id":"{}","subscription_id":"{}","timestamp":"2026-11-15T12:00:00Z"}}"#,
                scenario.session, scenario.ada_subscription
            ),
            format!(
                r#"{{"type":"sayso:deadline.extend","reply_token":"{}","subscription_id":"{}","timestamp":"2026-11-15T12:00:00Z"}}"#,
                scenario.token, scenario.ada_subscription
            ),
        ] {
            assert_eq!(thief.post("/aaep/v1/replies", &message).status, 204);
        }
    }
    scenario.assert_question_open();
    assert_eq!(
        scenario.ada.reply(&scenario.ada_subscription, &scenario.token, "reject").status,
        204,
        "Ada's subscription is unaffected"
    );
    assert_eq!(scenario.read_until_resolved().len(), 1);
}

#[test]
fn a_page_of_another_origin_can_neither_read_nor_reply() {
    let scenario = ThreatScenario::new();
    for origin in ["https://evil.example", "null", "http://127.0.0.1", "http://localhost:1"] {
        let page = scenario.ada.with_header(&format!("Origin: {origin}"));
        let text_page = page.with_header("Content-Type: text/plain");
        let assert_refused = |response: &TestResponse| {
            assert_eq!(response.status, 403, "{origin}: {response:?}");
            assert!(!response.head.to_lowercase().contains("access-control-"), "{response:?}");
        };
        for client in [&page, &text_page] {
            assert_refused(&client.reply(&scenario.ada_subscription, &scenario.token, "accept"));
        }
        assert_refused(&page.send("OPTIONS", "/aaep/v1/replies", ""));
        assert_refused(&page.get("/.well-known/aaep-manifest.json"));
        assert_refused(&page.get(&format!("/aaep/v1/events?subscription_id={}", scenario.ada_subscription)));
    }
    scenario.assert_question_open();
}
