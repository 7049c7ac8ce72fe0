//! A peer whose requests the test writes itself, with its own keys.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use asp::message::{Body, PinnedCards, TrustScore};
use asp::session::{ReceiverChecks, SessionRules};
use asp::{
    AgentCard, AgentEndpoints, AgentProfile, AgentUri, AspLimits, ConformanceLevel, Participant,
    ParticipantConfig, Performative, ReceiveOutcome, SentMessage,
};
use seal::dpop::{Claims, HttpClaims, create_http_proof};
use seal::{AgentKeys, Digest, Jwk, SystemRandom, UnixMillis, base64url};
use testing::http::{TestClient, TestResponse};

use crate::test_node::TestNode;

pub(crate) const SESSIONS: &str = "/v1/asp/sessions";
pub(crate) const ASP_JSON: &str = "Content-Type: application/asp+json";

/// A peer without a node.
pub(crate) struct RawPeer {
    pub(crate) card: AgentCard,
    pub(crate) keys: AgentKeys,
    folder: tempfile::TempDir,
}

pub(crate) fn now() -> UnixMillis {
    std::time::SystemTime::now().into()
}

fn profile(agent: &str) -> AgentProfile {
    AgentProfile {
        agent_id: AgentUri::parse(agent).unwrap(),
        name: "A raw peer".to_owned(),
        description: String::new(),
        organization: "org:raw".to_owned(),
        capabilities: vec!["test.anything".to_owned()],
        level: ConformanceLevel::Full,
        endpoints: AgentEndpoints::default(),
        max_transaction_value: None,
        currency: None,
    }
}

/// Returns the access token of the holder of these keys.
pub(crate) fn access_token(keys: &AgentKeys) -> String {
    Jwk::P256(keys.dpop.verifying_key().clone()).thumbprint()
}

pub(crate) fn token_hash(token: &str) -> String {
    base64url::encode(Digest::of(token.as_bytes()).as_bytes())
}

impl RawPeer {
    /// An agent whose address nobody answers.
    pub(crate) fn new(name: &str) -> Self {
        Self::with_agent(&format!("agent://127.0.0.1:1/{name}"))
    }

    pub(crate) fn with_agent(agent: &str) -> Self {
        let keys = AgentKeys::generate(&mut SystemRandom);
        Self::with_card(AgentCard::sign(&profile(agent), &keys).unwrap(), keys)
    }

    fn with_card(card: AgentCard, keys: AgentKeys) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("card.json"), card.as_str()).unwrap();
        Self { card, keys, folder }
    }

    /// The same agent with new keys, in a card that the old key signed.
    pub(crate) fn rotate(&self) -> Self {
        let keys = AgentKeys::generate(&mut SystemRandom);
        let card = AgentCard::rotate(&profile(self.card.agent_id().as_str()), &self.keys, &keys).unwrap();
        Self::with_card(card, keys)
    }

    pub(crate) fn card_file(&self) -> PathBuf {
        self.folder.path().join("card.json")
    }

    /// Returns the claims of a valid proof, with the node's current nonce.
    pub(crate) fn claims(&self, node: &TestNode, method: &str, path: &str) -> HttpClaims {
        let challenge = Self::send_with_headers(node, "GET", "/v1/asp/sessions/x", &[], "");
        assert_eq!(challenge.status, 401, "{challenge:?}");
        HttpClaims {
            claims: Claims {
                jti: uuid(),
                htm: method.to_owned(),
                htu: format!("http://{}{}", node.address, path.split('?').next().unwrap()),
                iat: now().seconds(),
                mh: None,
            },
            nonce: Some(header(&challenge, "DPoP-Nonce").unwrap()),
            ath: Some(token_hash(&access_token(&self.keys))),
        }
    }

    pub(crate) fn authorization(&self) -> String {
        format!("Authorization: DPoP {}", access_token(&self.keys))
    }

    /// Returns the headers of a request with this proof.
    pub(crate) fn headers(&self, claims: &HttpClaims) -> Vec<String> {
        let proof = create_http_proof(&self.keys.dpop, claims).unwrap();
        let agent = format!("Asp-Agent-Id: {}", self.card.agent_id());
        vec![self.authorization(), format!("DPoP: {proof}"), agent, ASP_JSON.to_owned()]
    }

    pub(crate) fn send_with_headers(
        node: &TestNode,
        method: &str,
        path: &str,
        headers: &[String],
        body: &str,
    ) -> TestResponse {
        let client = headers.iter().fold(node.client(), |client, header| client.with_header(header));
        client.send(method, path, body)
    }

    /// Sends a request with a valid proof.
    pub(crate) fn send(&self, node: &TestNode, method: &str, path: &str, body: &str) -> TestResponse {
        let headers = self.headers(&self.claims(node, method, path));
        Self::send_with_headers(node, method, path, &headers, body)
    }

    pub(crate) fn get(&self, node: &TestNode, path: &str) -> TestResponse {
        self.send(node, "GET", path, "")
    }

    /// Returns a client whose next request has a valid proof.
    pub(crate) fn client(&self, node: &TestNode, method: &str, path: &str) -> TestClient {
        let headers = self.headers(&self.claims(node, method, path));
        headers.iter().fold(node.client(), |client, header| client.with_header(header))
    }

    /// Prepares a session with a node, in which this peer invites.
    pub(crate) fn session(&self, node: &TestNode) -> RawSession {
        let card = AgentCard::parse(&std::fs::read_to_string(node.card_path()).unwrap()).unwrap();
        let mut participant = Participant::new(ParticipantConfig {
            card: self.card.clone(),
            keys: self.keys.clone(),
            org_id: "org:raw".to_owned(),
            trust_score: TrustScore::new(0.0).unwrap(),
            pinned_cards: PinnedCards::new([card.clone()]),
            rules: SessionRules::default(),
            limits: AspLimits { max_message_bytes: 1 << 24, ..AspLimits::default() },
        })
        .unwrap();
        let id = participant.invite(&card, now(), &mut SystemRandom).unwrap().to_string();
        RawSession { participant, id }
    }

    /// Opens a session with a node.
    pub(crate) fn open_session(&self, node: &TestNode) -> RawSession {
        let mut session = self.session(node);
        let invitation = session.invitation("a talk");
        let response = self.send(node, "POST", SESSIONS, &invitation.text);
        assert_eq!(response.status, 201, "{response:?}");
        session.participant.settle(invitation.message_id);
        session
    }

    /// Opens a session and brings it to CONVERSING. The peer reads the node's messages with GET.
    pub(crate) fn open_conversation(&self, node: &TestNode) -> RawSession {
        let mut session = self.open_session(node);
        let invitation = format!("prop_{}", session.id);
        node.send(&session.id, "ACCEPT", &serde_json::json!({"referenceId": invitation}));
        session.catch_up(self, node);
        let identity = format!(r#"{{"informType":"identity","card":{}}}"#, self.card.as_str());
        session.send(self, node, Performative::Inform, &identity);
        session.catch_up(self, node);
        session
    }
}

/// A session of a raw peer, which invited a node.
pub(crate) struct RawSession {
    pub(crate) participant: Participant,
    pub(crate) id: String,
}

impl RawSession {
    pub(crate) fn messages_path(&self) -> String {
        format!("{SESSIONS}/{}/messages", self.id)
    }

    pub(crate) fn invitation(&mut self, subject: &str) -> SentMessage {
        let body = serde_json::json!({"proposalId": format!("prop_{}", self.id), "type": "session-invitation",
            "subject": subject, "terms": {}, "validUntil": crate::test_node::timestamp_in(600)});
        self.sign(Performative::Propose, &body.to_string())
    }

    /// Signs a message and appends it to the peer's own transcript.
    pub(crate) fn sign(&mut self, performative: Performative, body: &str) -> SentMessage {
        let body = Body::parse(performative, body).unwrap();
        self.participant.send(body, now(), &mut SystemRandom).unwrap()
    }

    /// Sends a message, which the node must accept.
    pub(crate) fn send(&mut self, peer: &RawPeer, node: &TestNode, performative: Performative, body: &str) {
        let sent = self.sign(performative, body);
        let response = peer.send(node, "POST", &self.messages_path(), &sent.text);
        assert_eq!(response.status, 200, "{response:?}");
        self.participant.settle(sent.message_id);
    }

    /// Receives the messages that the node has and the peer has not.
    pub(crate) fn catch_up(&mut self, peer: &RawPeer, node: &TestNode) {
        let known = self.participant.record().unwrap().transcript().len();
        let path = format!("{}?since_sequence={known}", self.messages_path());
        let response = peer.get(node, &path);
        for message in response.json()["messages"].as_array().unwrap() {
            // The text must be the signed one, so it is cut out of the response.
            let id = message["messageId"].as_str().unwrap();
            let text = peer.get(node, &format!("{}/{id}", self.messages_path())).body;
            let outcome =
                self.participant.receive(&text, ReceiverChecks::PASSED, now(), &mut SystemRandom).unwrap();
            assert!(matches!(outcome, ReceiveOutcome::Accepted { .. }), "{outcome:?}");
        }
    }
}

/// Returns a header of a response.
pub(crate) fn header(response: &TestResponse, name: &str) -> Option<String> {
    let prefix = format!("{}: ", name.to_ascii_lowercase());
    let line = response.head.lines().find(|line| line.to_ascii_lowercase().starts_with(&prefix))?;
    Some(line[prefix.len()..].to_owned())
}

pub(crate) fn uuid() -> String {
    asp::MessageId::generate(now(), &mut SystemRandom).to_string()
}

/// Serves a card at the address of its agent. The card can be replaced.
pub(crate) struct CardServer {
    pub(crate) address: String,
    card: Arc<Mutex<String>>,
}

impl CardServer {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let card = Arc::new(Mutex::new(String::new()));
        let served = card.clone();
        std::thread::spawn(move || {
            for mut client in listener.incoming().map_while(Result::ok) {
                let mut request = Vec::new();
                let mut byte = [0];
                while !request.ends_with(b"\r\n\r\n") && client.read(&mut byte).is_ok_and(|count| count > 0) {
                    request.push(byte[0]);
                }
                let card = served.lock().unwrap().clone();
                let _ = write!(
                    client,
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{card}",
                    card.len()
                );
            }
        });
        Self { address, card }
    }

    pub(crate) fn agent(&self) -> String {
        format!("agent://{}/raw", self.address)
    }

    pub(crate) fn publish(&self, card: &str) {
        card.clone_into(&mut self.card.lock().unwrap());
    }
}
