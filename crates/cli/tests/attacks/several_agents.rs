//! Attacks by agents that share a session: a token that was not invited, a stolen, used or expired invitation, words in
//! another agent's mouth, and another agent's consent.

use serde_json::{Value, json};
use testing::cli::create_token;
use testing::http::{EventStream, TestClient, TestResponse};
use testing::hub::HubProcess;
use testing::messages::{CONFIRMATION_BODY, REPLY_CAPABILITIES};

const THINKING: &str = r#"{"type":"aaep:agent.state.changed","to_state":"thinking"}"#;
const CALL: &str = r#"{"type":"aaep:agent.tool.invoked","tool":"send","tool_call_id":"call_1","risk_level":"high","irreversible":true,"summary_normal":"Sending.","arguments":{"amount":"5.00"}}"#;
const NO_INVITATION: &str = "There is no such invitation, or it is used up, expired or for another agent.";

/// A hub on which `bank` has started a session with the producers `helper` and `scribe`. `eve` is an agent that the bank
/// did not invite.
struct Scenario {
    hub: HubProcess,
    bank: TestClient,
    helper: TestClient,
    eve: TestClient,
    ada: TestClient,
    subscription: String,
    stream: EventStream,
    session: String,
    folder: tempfile::TempDir,
}

impl Scenario {
    fn new() -> Self {
        Self::with_arguments(&[])
    }

    fn with_arguments(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let tokens = folder.path().join("tokens").to_str().unwrap().to_owned();
        let agent = |name| create_token(&tokens, &["--role", "agent", "--name", name, "--agent-id", name]);
        let agents = ["bank", "helper", "eve"].map(agent);
        let ada = create_token(&tokens, &["--role", "listener", "--name", "ada", "--scope", "agent:bank"]);
        let data = folder.path().join("data").to_str().unwrap().to_owned();
        let base =
            ["--listen", "127.0.0.1:0", "--data", &data, "--tokens", &tokens, "--http-heartbeat", "1h"];
        let hub = HubProcess::start(&[&base[..], arguments].concat());
        let [bank, helper, eve] = agents.map(|token| hub.client().with_bearer(&token));
        let ada = hub.client().with_bearer(&ada);
        let subscription = ada.subscribe(REPLY_CAPABILITIES);
        let stream = ada.open_event_stream(&subscription, None);
        let body = json!({"summary_normal": "Paying.", "producers": [{"agent_id": "helper"}, {"agent_id": "scribe"}]});
        let session = bank.post("/agent/v1/sessions", &body.to_string()).json_str("session_id");
        Self { hub, bank, helper, eve, ada, subscription, stream, session, folder }
    }

    fn path(&self, rest: &str) -> String {
        format!("/agent/v1/sessions/{}/{rest}", self.session)
    }

    fn invite(&self, body: &Value) -> TestResponse {
        self.bank.post(&self.path("invitations"), &body.to_string())
    }

    fn join(&self, agent: &TestClient, secret: &str) -> TestResponse {
        agent.post(&self.path("join"), &json!({"invitation": secret}).to_string())
    }

    fn publish(&self, agent: &TestClient, event: &str) -> TestResponse {
        agent.post(&self.path("events"), event)
    }

    /// Makes the helper join.
    fn add_helper(&self) {
        let secret = self.invite(&json!({"producer": "helper"})).json_str("invitation");
        assert_eq!(self.join(&self.helper, &secret).status, 200);
    }

    /// Asks a question as this agent, lets Ada accept it, and returns its token.
    fn accepted_question(&self, agent: &TestClient) -> String {
        let question = agent.ask_confirmation(&self.session);
        self.ada.reply(&self.subscription, &question, "accept");
        assert_eq!(agent.get(&self.path(&format!("replies/{question}"))).json_str("decision"), "accept");
        question
    }

    /// Reads events until the next one of this type.
    fn next_of_type(&mut self, wanted: &str) -> Value {
        loop {
            let (kind, _, event) = self.stream.next();
            if kind == wanted {
                return event;
            }
        }
    }
}

fn message(response: &TestResponse) -> String {
    assert_eq!(response.status, 422, "{response:?}");
    let problem: Value = serde_json::from_str(&response.body).unwrap();
    problem["findings"][0]["message"].as_str().unwrap().to_owned()
}

#[test]
fn a_token_that_was_not_invited_can_learn_and_do_nothing() {
    let scenario = Scenario::new();
    let secret = scenario.invite(&json!({"producer": "helper"})).json_str("invitation");
    let unknown_session = "/agent/v1/sessions/sess_00000000000000000000000000000000";
    let (eve, session) = (&scenario.eve, &scenario.path("")[..]);
    let compare = |rest: &str, body: &str| {
        let real = eve.post(&format!("{session}{rest}"), body);
        let unknown = eve.post(&format!("{unknown_session}/{rest}"), body);
        assert_eq!((real.status, &real.body), (404, &unknown.body), "{rest} reveals that the session exists");
    };
    compare("events", THINKING);
    compare("output?producer=helper", "Text.");
    compare("confirmations", CONFIRMATION_BODY);
    compare("invitations", r#"{"producer":"eve"}"#);
    compare("join", r#"{"invitation":"inv_00000000000000000000000000000000"}"#);
    // A stolen invitation is useless, because it is for another agent.
    compare("join", &json!({"invitation": secret}).to_string());
    compare("join", &json!({"invitation": secret, "producer": {"agent_id": "helper"}}).to_string());
    assert_eq!(
        scenario.ada.post(&scenario.path("join"), &json!({"invitation": secret}).to_string()).status,
        403
    );
    assert_eq!(scenario.join(&scenario.helper, &secret).status, 200, "the theft did not use it up");
}

#[test]
fn an_invitation_works_once_until_it_expires_or_is_replaced() {
    let scenario = Scenario::with_arguments(&["--hub-invitation-lifetime", "1s"]);
    let expiry = |invitation: &TestResponse| {
        seal::Timestamp::parse(&invitation.json_str("expires_at")).unwrap().unix_millis()
    };
    let long = scenario.invite(&json!({"producer": "scribe", "expires_in_seconds": 3600}));
    for invalid in [json!(0), json!(-1), json!(1.5), json!("60")] {
        assert_eq!(
            scenario.invite(&json!({"producer": "helper", "expires_in_seconds": invalid})).status,
            400
        );
    }
    let expired = scenario.invite(&json!({"producer": "helper"}));
    assert!(expiry(&long) <= expiry(&expired), "no invitation lives longer than the limit");
    // The expiry of a new invitation shows the hub's clock.
    while expiry(&scenario.invite(&json!({"producer": "scribe"}))).millis_since(expiry(&expired)) < 1000 {}
    let refused = scenario.join(&scenario.helper, &expired.json_str("invitation"));
    assert_eq!((refused.status, refused.json_str("title")), (404, NO_INVITATION.to_owned()));

    let scenario = Scenario::new();
    let replaced = scenario.invite(&json!({"producer": "helper"})).json_str("invitation");
    let valid = scenario.invite(&json!({"producer": "helper"})).json_str("invitation");
    assert_eq!(scenario.join(&scenario.helper, &replaced).status, 404, "a newer invitation replaced it");
    assert_eq!(scenario.join(&scenario.helper, &valid).status, 200);
    let spent = scenario.join(&scenario.helper, &valid);
    assert_eq!((spent.status, spent.json_str("title")), (404, NO_INVITATION.to_owned()));
    assert!(message(&scenario.invite(&json!({"producer": "helper"}))).contains("has already joined"));
    assert!(message(&scenario.invite(&json!({"producer": "bank"}))).contains("is the main producer"));
    assert!(message(&scenario.invite(&json!({"producer": "sayso-hub"}))).contains("reserved for the hub"));
    // The journal holds only the hash of an invitation.
    let unused = scenario.invite(&json!({"producer": "scribe"})).json_str("invitation");
    let files = std::fs::read_dir(scenario.folder.path().join("data")).unwrap();
    for file in files.map(|file| file.unwrap().path()).filter(|path| path.is_file()) {
        let bytes = std::fs::read(&file).unwrap();
        let found = bytes.windows(unused.len()).any(|window| window == unused.as_bytes());
        assert!(!found, "{} contains the invitation", file.display());
    }
}

#[test]
fn a_joined_token_speaks_only_as_its_own_producer() {
    let mut scenario = Scenario::new();
    scenario.add_helper();
    for other in ["bank", "scribe"] {
        let event = THINKING.replacen('{', &format!(r#"{{"producer":"{other}","#), 1);
        assert!(message(&scenario.publish(&scenario.helper, &event)).contains(r#"speaks only as "helper""#));
        let output = scenario.helper.post(&scenario.path(&format!("output?producer={other}")), "Text.");
        assert!(message(&output).contains(r#"speaks only as "helper""#));
        let question = CONFIRMATION_BODY.replacen('{', &format!(r#"{{"producer":"{other}","#), 1);
        let question = scenario.helper.post(&scenario.path("confirmations"), &question);
        assert!(message(&question).contains(r#"speaks only as "helper""#));
    }
    // The owner no longer speaks as the helper, and the helper neither ends the session nor invites others.
    let as_helper = THINKING.replacen('{', r#"{"producer":"helper","#, 1);
    assert!(message(&scenario.publish(&scenario.bank, &as_helper)).contains("joins by an invitation"));
    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    assert!(message(&scenario.publish(&scenario.helper, end)).contains("only the main producer"));
    let invite = scenario.helper.post(&scenario.path("invitations"), r#"{"producer":"eve"}"#);
    assert_eq!(invite.status, 403, "{invite:?}");
    // The helper's events are marked as its own.
    assert_eq!(scenario.publish(&scenario.helper, THINKING).status, 200);
    let event = scenario.next_of_type("state.changed");
    assert_eq!(
        (&event["producer"]["agent_id"], &event["extensions"]["sayso"]["main_producer"]),
        (&json!("helper"), &json!("bank"))
    );
    assert!(event["extensions"]["sayso"].get("verified_name").is_none(), "{event}");
}

#[test]
fn a_joined_token_cannot_finish_the_calls_and_outputs_of_others() {
    let scenario = Scenario::new();
    scenario.add_helper();
    let call = r#"{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_7","summary_normal":"Looking."}"#;
    assert_eq!(scenario.publish(&scenario.bank, call).status, 200);
    let done = r#"{"type":"aaep:agent.tool.completed","tool":"look","tool_call_id":"call_7","status":"success","summary_normal":"All is well."}"#;
    assert!(message(&scenario.publish(&scenario.helper, done)).contains(r#""bank" made this call"#));
    assert_eq!(scenario.publish(&scenario.bank, done).status, 200);
    let output = scenario.path("output?output_id=out_1");
    assert_eq!(scenario.bank.post(&output, "Pay ").status, 200);
    assert!(message(&scenario.helper.post(&output, "Eve.")).contains(r#""bank" writes this output"#));
    assert_eq!(scenario.bank.post(&output, "Ben.").status, 200);
}

#[test]
fn an_answer_covers_no_call_by_another_agent_in_the_session() {
    let scenario = Scenario::new();
    scenario.add_helper();
    let question = scenario.accepted_question(&scenario.bank);
    let with_token = CALL.replacen('{', &format!(r#"{{"reply_token":"{question}","#), 1);
    for call in [CALL, &with_token] {
        let refused = message(&scenario.publish(&scenario.helper, call));
        assert!(refused.contains("nobody was asked"), "{refused}");
    }
    // The same holds for a producer that the owner speaks as.
    let as_scribe = CALL.replacen('{', r#"{"producer":"scribe","#, 1);
    assert!(message(&scenario.publish(&scenario.bank, &as_scribe)).contains("nobody was asked"));
    assert_eq!(scenario.publish(&scenario.bank, CALL).status, 200, "the answer was not used up");
    // The owner cannot use the consent of the agent that joined, or learn about or withdraw its question.
    let question = scenario.accepted_question(&scenario.helper);
    let second_call = CALL.replace("call_1", "call_2");
    assert_eq!(scenario.publish(&scenario.bank, &second_call).status, 422);
    let reply = scenario.path(&format!("replies/{question}"));
    for response in [scenario.bank.get(&reply), scenario.bank.send("DELETE", &reply, "")] {
        assert_eq!(
            (response.status, response.json_str("title")),
            (404, "The session has no such question.".to_owned())
        );
    }
    assert_eq!(scenario.publish(&scenario.helper, &second_call).status, 200);
}

#[test]
fn a_refused_call_tells_an_agent_nothing_about_the_questions_of_another() {
    let scenario = Scenario::new();
    scenario.add_helper();
    let attempt = || message(&scenario.publish(&scenario.helper, CALL));
    let before = attempt();
    assert!(before.contains("nobody was asked"), "{before}");
    let question = scenario.bank.ask_confirmation(&scenario.session);
    assert_eq!(attempt(), before, "while it is open");
    scenario.ada.reply(&scenario.subscription, &question, "reject");
    assert_eq!(
        scenario.bank.get(&scenario.path(&format!("replies/{question}"))).json_str("decision"),
        "reject"
    );
    assert_eq!(attempt(), before, "after a no");
    scenario.accepted_question(&scenario.bank);
    assert_eq!(attempt(), before, "after a yes");
}

#[test]
fn an_idempotency_key_of_one_request_does_not_answer_another_kind() {
    let scenario = Scenario::new();
    let keyed = scenario.bank.with_header("Idempotency-Key: k1");
    let body = r#"{"producer":"helper"}"#;
    assert_eq!(keyed.post(&scenario.path("invitations"), body).status, 201);
    for other in ["events", "handoffs"] {
        assert_eq!(keyed.post(&scenario.path(other), body).status, 409, "{other}");
    }
}

#[test]
fn an_agent_cannot_speak_as_the_agent_of_another_token() {
    let scenario = Scenario::new();
    let body = json!({"summary_normal": "Paying.", "producers": [{"agent_id": "eve", "agent_name": "Eve"}]});
    let session = scenario.bank.post("/agent/v1/sessions", &body.to_string()).json_str("session_id");
    let event = THINKING.replacen('{', r#"{"producer":"eve","#, 1);
    let refused = message(&scenario.bank.post(&format!("/agent/v1/sessions/{session}/events"), &event));
    assert!(refused.contains(r#"only the token that joins by an invitation speaks as "eve""#), "{refused}");
}

#[test]
fn a_producer_that_has_spoken_cannot_be_given_to_another_token() {
    let scenario = Scenario::new();
    let as_scribe = THINKING.replacen('{', r#"{"producer":"scribe","#, 1);
    assert_eq!(scenario.publish(&scenario.bank, &as_scribe).status, 200);
    assert!(message(&scenario.invite(&json!({"producer": "scribe"}))).contains("has already spoken"));
}

#[test]
fn a_listeners_scope_applies_to_the_main_agent_even_if_another_agent_speaks() {
    let mut scenario = Scenario::new();
    let tokens = scenario.folder.path().join("tokens").to_str().unwrap().to_owned();
    let olga = create_token(&tokens, &["--role", "listener", "--name", "olga", "--scope", "agent:helper"]);
    scenario.hub.signal("-HUP");
    scenario.hub.wait_for_log("reload");
    scenario.add_helper();
    assert_eq!(scenario.publish(&scenario.helper, THINKING).status, 200);
    let event = scenario.next_of_type("state.changed");
    let first = event["event_id"].as_str().unwrap().to_owned();
    assert_eq!(
        scenario
            .publish(&scenario.helper, r#"{"type":"aaep:agent.state.changed","to_state":"deciding"}"#)
            .status,
        200
    );
    // Both resume after the first event. Ada, whose scope is the bank, gets the second one. Olga gets only the session that
    // the helper itself starts.
    let olga = scenario.hub.client().with_bearer(&olga);
    let own_session = scenario.helper.start_session();
    let mut olga_stream = olga.open_event_stream(&olga.subscribe(REPLY_CAPABILITIES), Some(&first));
    let (kind, _, event) = olga_stream.next();
    assert_eq!((kind.as_str(), event["session_id"].as_str()), ("session.started", Some(&*own_session)));
    let mut ada_stream = scenario.ada.open_event_stream(&scenario.subscription, Some(&first));
    let (_, _, event) = ada_stream.next();
    assert_eq!((&event["producer"]["agent_id"], &event["to_state"]), (&json!("helper"), &json!("deciding")));
}

#[test]
fn only_an_owned_or_joined_session_can_be_a_parent() {
    let scenario = Scenario::new();
    let start = |agent: &TestClient| {
        let body = json!({"summary_normal": "Helping.", "parent": scenario.session});
        agent.post("/agent/v1/sessions", &body.to_string())
    };
    let unknown = json!({"summary_normal": "Helping.", "parent": "sess_00000000000000000000000000000000"});
    let unknown = scenario.helper.post("/agent/v1/sessions", &unknown.to_string());
    let refused = start(&scenario.helper);
    assert_eq!((refused.status, refused.body), (404, unknown.body));
    scenario.add_helper();
    assert_eq!(start(&scenario.helper).status, 201);
    assert_eq!(start(&scenario.eve).status, 404);
}
