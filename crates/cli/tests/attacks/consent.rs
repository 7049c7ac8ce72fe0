//! Attempts to start a dangerous call without a person's consent to exactly that call.

use std::cell::RefCell;

use serde_json::{Value, json};

use testing::http::{EventStream, TestClient, TestResponse};
use testing::hub::HubProcess;
use testing::messages::REPLY_CAPABILITIES;

use crate::serve::agent_websocket::AgentWebSocket;

/// A hub, an agent with a session, and possibly a listener that can answer.
struct Scenario {
    hub: HubProcess,
    client: TestClient,
    /// The agent's WebSocket. Without it, the agent uses HTTP.
    socket: Option<RefCell<AgentWebSocket>>,
    session: String,
    /// The listener's subscription id and event stream.
    listener: Option<(String, EventStream)>,
}

impl Scenario {
    fn without_listener() -> Self {
        Self::start(&[], false)
    }

    fn with_listener() -> Self {
        Self::start(&[], true)
    }

    /// Returns a scenario with an agent that uses HTTP, and one with an agent that uses a WebSocket.
    fn with_listener_and_each_transport() -> [Self; 2] {
        let mut over_websocket = Self::with_listener();
        over_websocket.socket = Some(RefCell::new(AgentWebSocket::open(&over_websocket.hub)));
        [Self::with_listener(), over_websocket]
    }

    fn start(arguments: &[&str], has_listener: bool) -> Self {
        let hub = HubProcess::start_in_memory_with(arguments);
        let client = hub.client();
        let listener = has_listener.then(|| {
            let subscription = client.subscribe(REPLY_CAPABILITIES);
            let stream = client.open_event_stream(&subscription, None);
            (subscription, stream)
        });
        let session = client.start_session();
        Self { hub, client, socket: None, session, listener }
    }

    /// Asks about a dangerous call. `changes` replaces members of the question, and `null` removes one.
    fn ask(&self, changes: &Value) -> TestResponse {
        let body = apply_changes(
            &json!({
                "summary_normal": "May I send 5 euros to Ben?", "action": "Send 5 euros to Ben.",
                "consequence": "The money is gone.", "timeout_seconds": 120, "default_decision": "reject",
                "risk_level": "high", "irreversible": true, "tool": "send",
                "arguments": {"amount": 5, "to": "Ben"},
            }),
            changes,
        );
        self.ask_text(&body.to_string())
    }

    fn ask_text(&self, body: &str) -> TestResponse {
        if let Some(socket) = &self.socket {
            let params = body.replacen('{', &format!(r#"{{"session_id":"{}","#, self.session), 1);
            return over_websocket(socket, "session.ask", &params, 201);
        }
        self.client.post(&format!("/agent/v1/sessions/{}/confirmations", self.session), body)
    }

    /// Asks as `ask` does, and accepts as the listener. Returns the reply token.
    fn ask_and_accept(&self, changes: &Value) -> String {
        let token = self.ask(changes).json_str("reply_token");
        let (subscription, _) = self.listener.as_ref().unwrap();
        assert_eq!(self.client.reply(subscription, &token, "accept").status, 204);
        assert_eq!(self.wait_for_outcome(&token)["decision"], "accept");
        token
    }

    /// Waits for the outcome of a question.
    fn wait_for_outcome(&self, token: &str) -> Value {
        let path = format!("/agent/v1/sessions/{}/replies/{token}?wait=60", self.session);
        serde_json::from_str(&self.client.get(&path).body).unwrap()
    }

    /// Starts the dangerous call. `changes` replaces members of the event, and `null` removes one.
    fn call(&self, token: &str, changes: &Value) -> TestResponse {
        let event = json!({
            "type": "aaep:agent.tool.invoked", "tool": "send", "tool_call_id": "call_1", "risk_level": "high",
            "irreversible": true, "summary_normal": "Sending.", "reply_token": token,
            "arguments": {"amount": 5, "to": "Ben"},
        });
        self.publish(&apply_changes(&event, changes).to_string())
    }

    fn publish(&self, event: &str) -> TestResponse {
        if let Some(socket) = &self.socket {
            let params = format!(r#"{{"session_id":"{}","event":{event}}}"#, self.session);
            return over_websocket(socket, "session.event", &params, 200);
        }
        self.client.post(&format!("/agent/v1/sessions/{}/events", self.session), event)
    }
}

/// Calls a method on a WebSocket. Returns the response that HTTP would give; `success` is its status if the call succeeds.
fn over_websocket(
    socket: &RefCell<AgentWebSocket>,
    method: &str,
    params: &str,
    success: u16,
) -> TestResponse {
    let response = socket.borrow_mut().call_with_text(method, params);
    let error = response.get("error");
    let status = match error.map(|error| error["data"]["status"].as_u64()) {
        None => success,
        Some(status) => status.map_or(400, |status| u16::try_from(status).unwrap()),
    };
    TestResponse { status, head: String::new(), body: error.unwrap_or(&response["result"]).to_string() }
}

fn apply_changes(base: &Value, changes: &Value) -> Value {
    let mut members = base.as_object().unwrap().clone();
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            members.remove(name);
        } else {
            members.insert(name.clone(), value.clone());
        }
    }
    Value::Object(members)
}

fn assert_refused(response: &TestResponse, reason: &str) {
    assert!(response.status == 422 && response.body.contains(reason), "{response:?}");
}

#[test]
fn an_honest_call_after_an_accepted_question_is_allowed_once() {
    for scenario in Scenario::with_listener_and_each_transport() {
        let token = scenario.ask_and_accept(&json!({}));
        assert_eq!(scenario.call(&token, &json!({})).status, 200);
        assert_refused(&scenario.call(&token, &json!({"tool_call_id": "call_2"})), "AAEP-4.3.1-3");
    }
}

#[test]
fn a_refused_call_says_nobody_was_asked_only_if_nobody_was() {
    for scenario in Scenario::with_listener_and_each_transport() {
        let without_token = |changes: &Value| {
            let mut changes = changes.clone();
            changes["reply_token"] = Value::Null;
            scenario.call("", &changes)
        };
        assert_refused(&without_token(&json!({})), "nobody was asked");
        let token = scenario.ask_and_accept(&json!({}));
        assert_refused(
            &without_token(&json!({"tool": "sned"})),
            r#"the consent was for the tool \"send\"; this call is of \"sned\""#,
        );
        let as_text = json!({"arguments": {"amount": "5.0", "to": "Ben"}});
        assert_refused(&without_token(&as_text), r#"the consent was for amount 5; this call has \"5.0\""#);
        assert_eq!(scenario.call(&token, &json!({})).status, 200);
        for again in [
            without_token(&json!({"tool_call_id": "call_2"})),
            scenario.call(&token, &json!({"tool_call_id": "call_2"})),
        ] {
            assert_refused(&again, "this answer was already used for a call");
        }
    }
}

#[test]
fn an_answer_permits_one_call_even_if_the_call_needs_no_consent() {
    for scenario in Scenario::with_listener_and_each_transport() {
        let token = scenario.ask_and_accept(&json!({}));
        let harmless = json!({"risk_level": "low", "irreversible": false});
        assert_eq!(scenario.call(&token, &harmless).status, 200);
        assert_refused(&scenario.call(&token, &json!({"tool_call_id": "call_2"})), "already used");
    }
}

#[test]
fn an_idempotency_key_never_answers_a_different_output_request() {
    let scenario = Scenario::without_listener();
    let write = |key: &str, query: &str, text: &str| {
        let client = scenario.client.with_header(&format!("Idempotency-Key: {key}"));
        client.post(&format!("/agent/v1/sessions/{}/output{query}", scenario.session), text)
    };
    let pairs = [
        (("?output_id=out_1&complete=true", "0abc. "), ("?output_id=out_11&complete=true", "abc. ")),
        (
            ("?output_id=out_2&complete=true&language=es", "Hola. "),
            ("?output_id=out_2&complete=true", "Hola. \0es"),
        ),
        (
            ("?output_id=out_3&complete=true&stays=true", "Done. "),
            ("?output_id=out_3&complete=true", "Done. "),
        ),
    ];
    for (number, ((query, text), (other_query, other_text))) in pairs.into_iter().enumerate() {
        let key = format!("key{number}");
        let first = write(&key, query, text);
        assert_eq!(first.status, 200, "{first:?}");
        assert_eq!(write(&key, query, text).body, first.body, "the same request again");
        assert_eq!(write(&key, other_query, other_text).status, 409, "{other_query}");
    }
}

#[test]
fn silence_is_never_consent_to_a_high_risk() {
    let with_listener = Scenario::with_listener_and_each_transport();
    for scenario in with_listener.into_iter().chain([Scenario::without_listener()]) {
        let reversible_high_risk = json!({"irreversible": false, "default_decision": "accept"});
        assert_refused(&scenario.ask(&reversible_high_risk), "AAEP-6.4.1-4");
    }
}

#[test]
fn a_default_of_accept_covers_no_dangerous_call() {
    let scenario = Scenario::without_listener();
    let harmless = json!({"irreversible": false, "risk_level": "low", "default_decision": "accept"});
    let token = scenario.ask(&harmless).json_str("reply_token");
    let outcome = scenario.wait_for_outcome(&token);
    assert_eq!((&outcome["decision"], &outcome["by"]), (&json!("accept"), &json!("unreachable")));
    for changes in [json!({}), json!({"irreversible": false}), json!({"risk_level": "low"})] {
        assert_refused(&scenario.call(&token, &changes), "nobody answered");
    }
    assert_eq!(scenario.call(&token, &json!({"irreversible": false, "risk_level": "low"})).status, 200);
}

#[test]
fn consent_covers_only_the_risk_that_the_person_heard() {
    for scenario in Scenario::with_listener_and_each_transport() {
        for question in
            [json!({"risk_level": "low"}), json!({"risk_level": "medium"}), json!({"risk_level": null})]
        {
            let token = scenario.ask_and_accept(&question);
            assert_refused(&scenario.call(&token, &json!({})), "not told that the risk is high");
        }
        for question in [json!({"irreversible": false}), json!({"irreversible": null})] {
            let token = scenario.ask_and_accept(&question);
            assert_refused(&scenario.call(&token, &json!({})), "not told that the action cannot be undone");
        }
    }
}

#[test]
fn a_question_without_tool_and_arguments_covers_no_dangerous_call() {
    for scenario in Scenario::with_listener_and_each_transport() {
        for unbound in [json!({"tool": null, "arguments": null}), json!({"arguments": null})] {
            let question = apply_changes(&unbound, &json!({"action": "Water the plants."}));
            let token = scenario.ask_and_accept(&question);
            for arguments in [json!({"amount": 5_000_000}), Value::Null] {
                let call = scenario.call(&token, &json!({"arguments": arguments}));
                assert_refused(&call, "named no tool and arguments");
            }
        }
    }
}

#[test]
fn listeners_receive_the_arguments_that_an_answer_is_bound_to() {
    let mut scenario = Scenario::with_listener();
    scenario.ask(&json!({"arguments": {"amount": 5_000_000, "to": "Ben", "password": "hunter2"}}));
    let (_, stream) = scenario.listener.as_mut().unwrap();
    let question = loop {
        let (_, _, event) = stream.next();
        if event["type"] == "aaep:agent.awaiting.confirmation" {
            break event;
        }
    };
    let binding = &question["extensions"]["sayso"];
    let expected = json!({"amount": 5_000_000, "to": "Ben", "password": "[redacted]"});
    assert_eq!((&binding["tool"], &binding["arguments"]), (&json!("send"), &expected));
    assert!(question.get("arguments").is_none(), "{question}");
}

#[test]
fn arguments_that_are_too_long_to_be_heard_are_refused() {
    let limits = ["--questions-argument-bytes", "64", "--questions-argument-characters", "16"];
    let scenario = Scenario::start(&limits, true);
    let items: Vec<u32> = (100..200).collect();
    let text = "x".repeat(10_000);
    for arguments in [json!({"items": items}), json!({"text": text}), json!({&text: 1})] {
        for danger in [json!({}), json!({"irreversible": false}), json!({"risk_level": "low"})] {
            let refused = scenario.ask(&apply_changes(&danger, &json!({"arguments": arguments})));
            assert!(refused.status == 400 && refused.body.contains("at most 64 bytes"), "{refused:?}");
        }
    }
    // A question that permits nothing dangerous may be shortened for listeners. The answer is bound to the complete text.
    let harmless = json!({"risk_level": "low", "irreversible": false});
    let token = scenario.ask_and_accept(&apply_changes(&harmless, &json!({"arguments": {"text": text}})));
    assert_refused(&scenario.call(&token, &json!({"arguments": {"text": text}})), "can be undone");
    let call = apply_changes(&harmless, &json!({"arguments": {"text": text}}));
    assert_eq!(scenario.call(&token, &call).status, 200);
}

#[test]
fn listeners_receive_the_whole_text_of_a_dangerous_argument() {
    let mut scenario = Scenario::with_listener();
    let command = format!("{}; rm -rf ~", "echo ok; ".repeat(3_000));
    let token = scenario.ask_and_accept(&json!({"arguments": {"command": command}}));
    let (_, stream) = scenario.listener.as_mut().unwrap();
    let question = loop {
        let (_, _, event) = stream.next();
        if event["type"] == "aaep:agent.awaiting.confirmation" {
            break event;
        }
    };
    assert_eq!(question["extensions"]["sayso"]["arguments"], json!({"command": command}));
    let other = json!({"arguments": {"command": format!("{command} now")}});
    assert_refused(&scenario.call(&token, &other), "differs after the first 27010 characters");
    assert_eq!(scenario.call(&token, &json!({"arguments": {"command": command}})).status, 200);
}

#[test]
fn an_agent_cannot_leave_awaiting_input_while_its_question_is_open() {
    let scenario = Scenario::with_listener();
    let token = scenario.ask(&json!({})).json_str("reply_token");
    let change =
        |to: &str| scenario.publish(&json!({"type": "aaep:agent.state.changed", "to_state": to}).to_string());
    for to in ["thinking", "idle", "calling_tool", "comparing_offers"] {
        assert_refused(&change(to), "withdraw the question first");
    }
    let with_text = json!({
        "type": "aaep:agent.state.changed", "from_state": "awaiting_input", "to_state": "thinking",
        "summary_normal": "A person said yes.",
    });
    assert_refused(&scenario.publish(&with_text.to_string()), "withdraw the question first");
    assert_eq!(change("awaiting_input").status, 200);
    let path = format!("/agent/v1/sessions/{}/replies/{token}", scenario.session);
    assert_eq!(scenario.client.send("DELETE", &path, "").status, 200);
    assert_eq!(change("idle").status, 200);
}

#[test]
fn consent_expires() {
    let scenario = Scenario::start(&["--questions-consent-lifetime", "1s"], true);
    let token = scenario.ask_and_accept(&json!({}));
    // Two seconds have passed when this question times out.
    let question = json!({"timeout_seconds": 2, "tool": null, "arguments": null, "action": "Wait."});
    let other_token = scenario.ask(&question).json_str("reply_token");
    assert_eq!(scenario.wait_for_outcome(&other_token)["by"], "timeout");
    assert_refused(&scenario.call(&token, &json!({})), "has expired");
}

#[test]
fn a_member_that_binds_a_call_is_refused_if_it_is_given_twice() {
    for scenario in Scenario::with_listener_and_each_transport() {
        let question = |extra: &str| {
            format!(
                r#"{{"summary_normal":"May I?","action":"Send 5 euros.","consequence":"It is gone.","timeout_seconds":120,"default_decision":"reject","risk_level":"high","irreversible":true,"tool":"send","arguments":{{"amount":5}}{extra}}}"#
            )
        };
        for (name, extra) in
            [("arguments", r#","arguments":{"amount":5000000}"#), ("tool", r#","tool":"wipe_disk""#)]
        {
            let refused = scenario.ask_text(&question(extra));
            assert!(refused.status == 400 && refused.body.contains("twice"), "{name}: {refused:?}");
        }
        let token = scenario.ask_and_accept(&json!({}));
        for (name, extra) in [
            ("arguments", r#","arguments":{"amount":5000000}"#),
            ("tool", r#","tool":"wipe_disk""#),
            ("reply_token", r#","reply_token":"rpl_1""#),
        ] {
            let refused = scenario.publish(&format!(
                r#"{{"type":"aaep:agent.tool.invoked","tool":"send","tool_call_id":"call_1","risk_level":"high","irreversible":true,"summary_normal":"Sending.","reply_token":"{token}","arguments":{{"amount":5,"to":"Ben"}}{extra}}}"#
            ));
            assert!(refused.status == 400 && refused.body.contains("twice"), "{name}: {refused:?}");
        }
        assert_eq!(scenario.call(&token, &json!({})).status, 200, "the consent was not spent");
    }
}

/// Numbers that a double cannot hold exactly.
const ROUNDED_NUMBERS: [&str; 5] = [
    "9007199254740993.0",
    "10000000000000000000001.0",
    "0.1000000000000000055",
    "1e-400",
    "9007199254740993",
];

#[test]
fn numbers_that_a_double_would_round_cannot_be_bound() {
    for scenario in Scenario::with_listener_and_each_transport() {
        let question = |amount: &str| {
            format!(
                r#"{{"summary_normal":"May I?","action":"Send {amount}.","consequence":"It is gone.","timeout_seconds":120,"default_decision":"reject","risk_level":"high","irreversible":true,"tool":"send","arguments":{{"amount":{amount}}}}}"#
            )
        };
        for amount in ROUNDED_NUMBERS {
            let refused = scenario.ask_text(&question(amount));
            assert!(
                refused.status == 400 && refused.body.contains("write it as a string"),
                "{amount}: {refused:?}"
            );
        }
        // A call with such a number is refused too, whatever the person agreed to.
        let token = scenario.ask_and_accept(&json!({"arguments": {"amount": 9_007_199_254_740_992_u64}}));
        let call = |amount: &str| {
            scenario.publish(&format!(
                r#"{{"type":"aaep:agent.tool.invoked","tool":"send","tool_call_id":"call_1","risk_level":"high","irreversible":true,"summary_normal":"Sending.","reply_token":"{token}","arguments":{{"amount":{amount}}}}}"#
            ))
        };
        for amount in ROUNDED_NUMBERS {
            let refused = call(amount);
            let is_refused = [400, 422].contains(&refused.status);
            assert!(is_refused && refused.body.contains("write it as a string"), "{amount}: {refused:?}");
        }
        assert_eq!(call("9007199254740992").status, 200, "the consent was not spent");
        for amount in ["9007199254740992", "0.10", "5e2", "1.25"] {
            let opened = scenario.ask_text(&question(amount));
            assert_eq!(opened.status, 201, "{amount}: {opened:?}");
        }
    }
}
