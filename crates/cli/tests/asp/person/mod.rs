//! A person in the loop: two real nodes, a real hub, and a person who listens and answers.

mod answers;
mod disputes;
mod hostile_hub;
mod interruptions;
mod narration;
mod reloads;

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;
use testing::cli::{binary, run_sayso, write_private_file};
use testing::http::{EventStream, TestClient, TestResponse};
use testing::hub::{HubProcess, reserved_address};
use testing::messages::REPLY_CAPABILITIES;

const RECEIPT_KEY_PATH: &str = "/.well-known/sayso-receipt-key.json";

/// The side whose person is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AskedSide {
    Buyer,
    Seller,
}

/// Two nodes and a hub on loopback.
pub(super) struct World {
    pub(super) buyer: TestNode,
    pub(super) seller: TestNode,
    pub(super) hub: TestHub,
    folder: TempDir,
}

/// A hub that can be killed and started again at the same address.
pub(super) struct TestHub {
    pub(super) address: String,
    data: String,
    process: Option<HubProcess>,
}

impl TestHub {
    fn start(folder: &Path) -> Self {
        let data = folder.join("hub").to_str().unwrap().to_owned();
        let mut hub = Self { address: reserved_address(), data, process: None };
        hub.restart();
        hub
    }

    pub(super) fn kill(&mut self) {
        self.process.take().unwrap().kill();
    }

    /// Removes the keys of a stopped hub. The next start creates new ones.
    pub(super) fn lose_keys(&self) {
        for file in ["manifest.key", "manifest.jwk"] {
            std::fs::remove_file(Path::new(&self.data).join(file)).unwrap();
        }
    }

    pub(super) fn restart(&mut self) {
        let arguments = ["--open", "--listen", &self.address, "--data", &self.data];
        self.process = Some(HubProcess::start(&arguments));
    }

    pub(super) fn client(&self) -> TestClient {
        TestClient::new(&self.address)
    }

    fn receipt_key(&self) -> seal::es256::VerifyingKey {
        let text = self.client().get(RECEIPT_KEY_PATH).body;
        match seal::Jwk::read(&aaep::json::OwnedDoc::read(&text).unwrap().doc().root()).unwrap() {
            seal::Jwk::P256(key) => key,
            other => panic!("{other:?}"),
        }
    }
}

/// A node that can be killed and started again at the same address.
pub(super) struct TestNode {
    pub(super) agent: String,
    arguments: Vec<String>,
    process: Option<HubProcess>,
    address: String,
}

impl TestNode {
    fn new(folder: &Path, name: &str) -> Self {
        let address = reserved_address();
        let agent = format!("agent://{address}/{}", name.to_lowercase());
        let path = |part: &str| folder.join(format!("{name}-{part}")).to_str().unwrap().to_owned();
        let identity = path("identity");
        let run = run_sayso(&["asp", "keygen", "--agent", &agent, "--name", name, "--out", &identity], "");
        assert_eq!(run.exit_code, 0, "{}", run.stderr);
        let peers = folder.join("peers.txt").to_str().unwrap().to_owned();
        let arguments = [
            "--open",
            "--listen",
            &address,
            "--identity",
            &identity,
            "--data",
            &path("data"),
            "--peers",
            &peers,
        ];
        Self { agent, arguments: arguments.map(str::to_owned).into(), process: None, address }
    }

    pub(super) fn restart(&mut self) {
        let mut command = Command::new(binary());
        command.args(["asp", "serve"]).args(&self.arguments);
        self.process = Some(HubProcess::start_command(&mut command));
    }

    pub(super) fn kill(&mut self) {
        self.process.take().unwrap().kill();
    }

    /// Makes the node read its policy and its list of peers again.
    pub(super) fn reload(&self) {
        self.process.as_ref().unwrap().signal("-HUP");
    }

    pub(super) fn client(&self) -> TestClient {
        TestClient::new(&self.address)
    }

    pub(super) fn send(&self, session: &str, performative: &str, body: &Value) -> TestResponse {
        let message = json!({"performative": performative, "body": body}).to_string();
        self.client().post(&format!("/agent/v1/asp/sessions/{session}/messages"), &message)
    }

    /// Sends a message that needs no person.
    pub(super) fn send_ok(&self, session: &str, performative: &str, body: &Value) {
        let response = self.send(session, performative, body);
        assert_eq!(response.status, 200, "{response:?}");
    }

    /// Asks the person about a message.
    pub(super) fn send_asking(&self, session: &str, performative: &str, body: &Value) -> String {
        let response = self.send(session, performative, body);
        assert_eq!((response.status, response.json_str("status")), (202, "awaiting_consent".to_owned()));
        response.json_str("reply_token")
    }

    pub(super) fn view(&self, session: &str) -> Value {
        self.client().get(&format!("/agent/v1/asp/sessions/{session}")).json()
    }

    /// Waits until the session meets the condition, and returns it. Each request waits for a change.
    pub(super) fn wait_until(&self, session: &str, is_expected: impl Fn(&Value) -> bool) -> Value {
        let mut after = 0;
        // A session that is over answers at once, so the number of attempts is no measure.
        let give_up_at = std::time::Instant::now() + testing::http::TIMEOUT;
        while std::time::Instant::now() < give_up_at {
            let path = format!("/agent/v1/asp/sessions/{session}?after={after}&wait=1");
            let view = self.client().get(&path).json();
            if is_expected(&view) {
                return self.view(session);
            }
            after = view["messageCount"].as_u64().unwrap_or(0);
        }
        panic!("{}", self.view(session));
    }

    pub(super) fn wait_for_state(&self, session: &str, state: &str) -> Value {
        self.wait_until(session, |view| view["state"] == state)
    }

    /// Waits until the person's answer has had its effect, and returns its status.
    pub(super) fn wait_for_consent(&self, session: &str) -> Value {
        let view = self.wait_until(session, |view| view["consent"]["status"] != "awaiting_consent");
        view["consent"].clone()
    }

    /// Returns whether a message that binds was sent or received.
    pub(super) fn has_binding_message(&self, session: &str) -> bool {
        let view = self.view(session);
        let messages = view["messages"].as_array().unwrap();
        messages.iter().any(|message| {
            let is_commit = message["performative"] == "COMMIT";
            let reference = message["content"]["body"]["referenceId"].as_str().unwrap_or_default();
            is_commit || message["performative"] == "ACCEPT" && reference.starts_with("cmt_")
        })
    }
}

impl World {
    /// Starts both nodes. The person of one side is asked.
    pub(super) fn start(asked: AskedSide) -> Self {
        Self::start_with(asked, "", |hub| hub.address.clone())
    }

    /// Starts both nodes. `policy` is a part of their policy, and `hub_address` is where it finds the hub.
    pub(super) fn start_with(
        asked: AskedSide,
        policy: &str,
        hub_address: impl FnOnce(&TestHub) -> String,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let hub = TestHub::start(folder.path());
        let mut buyer = TestNode::new(folder.path(), "Buyer");
        let mut seller = TestNode::new(folder.path(), "Seller");
        write_private_file(
            &folder.path().join("peers.txt"),
            "Buyer-identity/card.json\nSeller-identity/card.json\n",
        );
        let deposit = format!(r#"{{ agent = "{}", amount = "5000.00", currency = "EUR" }}"#, buyer.agent);
        let ceilings = r#"["5000", "5000", "5000", "5000", "5000"]"#;
        let policy = format!("[escrow]\ndeposits = [{deposit}]\nceilings = {ceilings}\n{policy}");
        let policy_file = folder.path().join("policy.toml");
        write_private_file(&policy_file, &policy);
        for node in [&mut buyer, &mut seller] {
            node.arguments.extend(["--policy", policy_file.to_str().unwrap()].map(str::to_owned));
        }
        let node = if asked == AskedSide::Buyer { &mut buyer } else { &mut seller };
        let url = format!("http://{}", hub_address(&hub));
        node.arguments.extend(["--hub", &url].map(str::to_owned));
        buyer.restart();
        seller.restart();
        Self { buyer, seller, hub, folder }
    }

    /// Revokes an agent's card in the policy file of both nodes.
    pub(super) fn revoke(&self, agent: &str) {
        let path = self.folder.path().join("policy.toml");
        let policy = std::fs::read_to_string(&path).unwrap();
        write_private_file(&path, &format!("{policy}\n[cards]\nrevoked = [\"{agent}\"]\n"));
    }

    /// Replaces the list of cards that the operator of both nodes pins.
    pub(super) fn pin(&self, cards: &str) {
        write_private_file(&self.folder.path().join("peers.txt"), cards);
    }

    /// Opens a session, up to the buyer's proposal.
    pub(super) fn negotiate(&self) -> String {
        let request = json!({"peer": self.seller.agent, "subject": "40 brackets", "terms": {}}).to_string();
        let response = self.buyer.client().post("/agent/v1/asp/sessions", &request);
        assert_eq!(response.status, 201, "{response:?}");
        let session = response.json_str("sessionId");
        let view = self.buyer.wait_until(&session, |view| view["unacknowledged"] == 0);
        let invitation = &view["messages"][0]["content"]["body"]["proposalId"];
        self.seller.send_ok(&session, "ACCEPT", &json!({"referenceId": invitation}));
        self.buyer.wait_until(&session, |view| view["state"] == "INTRODUCED" && view["unacknowledged"] == 0);
        self.seller.wait_until(&session, |view| view["state"] == "INTRODUCED" && view["unacknowledged"] == 0);
        let terms = json!({"price": "100.00", "currency": "EUR"});
        let proposal =
            json!({"proposalId": "prop_1", "type": "purchase", "subject": "40 brackets", "terms": terms});
        self.buyer.send_ok(&session, "PROPOSE", &proposal);
        self.seller.wait_for_state(&session, "CONVERSING");
        self.buyer.wait_until(&session, |view| view["unacknowledged"] == 0);
        session
    }

    /// A commitment with obligations for both sides.
    pub(super) fn commitment(&self) -> Value {
        json!({
            "commitmentId": "cmt_1",
            "terms": {
                "obligations": [
                    {"party": self.seller.agent, "action": "deliver 40 brackets", "deadline": "2030-03-01T12:00:00Z",
                     "verificationMethod": "the delivery note"},
                    {"party": self.buyer.agent, "action": "pay 100 euros", "deadline": "2030-03-15T12:00:00Z"},
                ],
                "penalties": {"lateFulfillment": "5 percent off per week", "nonDelivery": "the money is returned"},
            },
            "escrow": {"amount": "100.00", "currency": "EUR"},
        })
    }

    /// Checks that both sides have the same transcript, that it verifies, and returns its messages.
    pub(super) fn verified_transcript(&self, session: &str) -> Vec<Value> {
        let path = format!("/agent/v1/asp/sessions/{session}/transcript");
        let transcript = self.buyer.client().get(&path).body;
        assert_eq!(transcript, self.seller.client().get(&path).body, "both sides have the same transcript");
        let cards = self.buyer.client().get(&format!("/agent/v1/asp/sessions/{session}/cards")).body;
        let file = |name: &str, text: &str| {
            let path = self.folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let files = [
            file("hub.jwk", &self.hub.client().get(RECEIPT_KEY_PATH).body),
            file("cards.jsonl", &cards),
            file("transcript.jsonl", &transcript),
        ];
        let [key, cards, transcript_file] = files.each_ref().map(String::as_str);
        let run = run_sayso(&["asp", "verify", "--hub-key", key, "--cards", cards, transcript_file], "");
        assert_eq!(run.exit_code, 0, "{}{}", run.stdout, run.stderr);
        transcript.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Verifies the consent of the only message with this performative that can have one, with the hub's key.
    pub(super) fn verify_consent(
        &self,
        session: &str,
        performative: &str,
    ) -> Result<(), asp::consent::ConsentError> {
        let path = format!("/agent/v1/asp/sessions/{session}/transcript");
        let transcript = self.buyer.client().get(&path).body;
        let mut reader = asp::message::Authenticator::default();
        let envelopes: Vec<_> =
            transcript.lines().map(|line| reader.parse_unauthenticated(line).unwrap()).collect();
        let commitment = envelopes.iter().find_map(|envelope| match &envelope.body {
            asp::message::Body::Commit(commit) => Some(commit),
            _ => None,
        });
        let binding = envelopes.iter().filter(|envelope| {
            envelope.body.performative().as_str() == performative
                && asp::consent::tool(&envelope.body).is_some()
        });
        let binding: Vec<_> = binding.collect();
        assert_eq!(binding.len(), 1, "{transcript}");
        asp::consent::verify_message(binding[0], commitment, &[self.hub.receipt_key()]).map(drop)
    }
}

/// A person who listens to the hub.
pub(super) struct Listener {
    client: TestClient,
    subscription: String,
    stream: EventStream,
    last_event_id: String,
    /// The node's announcements so far.
    pub(super) heard: Vec<String>,
}

impl Listener {
    pub(super) fn connect(hub: &TestHub) -> Self {
        Self::connect_with(hub, REPLY_CAPABILITIES)
    }

    pub(super) fn connect_with(hub: &TestHub, capabilities: &str) -> Self {
        let client = hub.client();
        let subscription = client.subscribe(capabilities);
        let stream = client.open_event_stream(&subscription, None);
        Self { client, subscription, stream, last_event_id: String::new(), heard: Vec::new() }
    }

    /// Connects again after the last event that was heard.
    pub(super) fn reconnect(&mut self) {
        self.stream = self.client.open_event_stream(&self.subscription, Some(&self.last_event_id));
        self.heard.clear();
    }

    /// Listens until an event of this type.
    pub(super) fn wait_for(&mut self, expected_type: &str) -> Value {
        self.wait_until(expected_type, |event| testing::messages::short_type(event) == expected_type)
    }

    /// Listens until an event with this summary.
    pub(super) fn wait_for_text(&mut self, text: &str) -> Value {
        self.wait_until(text, |event| event["summary_normal"] == text)
    }

    fn wait_until(&mut self, expected: &str, is_expected: impl Fn(&Value) -> bool) -> Value {
        let give_up_at = std::time::Instant::now() + testing::http::TIMEOUT;
        loop {
            let line = self.stream.next_line();
            // The hub also sends comments that keep the connection open.
            assert!(std::time::Instant::now() < give_up_at, "no {expected} after {:#?}", self.heard);
            if let Some(id) = line.strip_prefix("id: ") {
                id.clone_into(&mut self.last_event_id);
            }
            let Some(data) = line.strip_prefix("data: ") else { continue };
            let event: Value = serde_json::from_str(data).unwrap();
            // The hub itself adds changes of state.
            let is_from_node = testing::messages::short_type(&event) != "state.changed";
            if let Some(text) = event["summary_normal"].as_str().filter(|_| is_from_node) {
                self.heard.push(text.to_owned());
            }
            if is_expected(&event) {
                return event;
            }
        }
    }

    pub(super) fn wait_for_question(&mut self) -> Value {
        self.wait_for("awaiting.confirmation")
    }

    pub(super) fn answer(&self, question: &Value, decision: &str) {
        let token = question["reply_token"].as_str().unwrap();
        let response = self.client.reply(&self.subscription, token, decision);
        assert!(response.status < 300, "{response:?}");
    }

    /// Answers a question that may be closed.
    pub(super) fn try_answer(&self, question: &Value, decision: &str) {
        let token = question["reply_token"].as_str().unwrap();
        self.client.reply(&self.subscription, token, decision);
    }

    pub(super) fn clarify(&self, question: &Value, answer: &str) {
        self.send(&json!({"type": "clarification.reply", "reply_token": question["reply_token"], "response": answer}));
    }

    /// Stops the session of a question or event.
    pub(super) fn stop_session(&self, event: &Value) {
        self.send(&json!({"type": "sayso:session.stop", "session_id": event["session_id"]}));
    }

    fn send(&self, message: &Value) {
        let mut message = message.clone();
        let now = seal::Timestamp::from_unix_millis(std::time::SystemTime::now().into()).unwrap();
        message["timestamp"] = now.to_string().into();
        message["subscription_id"] = self.subscription.as_str().into();
        let response = self.client.post("/aaep/v1/replies", &message.to_string());
        assert!(response.status < 300, "{message}: {response:?}");
    }
}
