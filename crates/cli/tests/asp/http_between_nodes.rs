//! HTTP between nodes (D29 to D33): the test plays the inviting node and sends raw requests to a real one.

use std::cell::RefCell;
use std::process::Command;

use asp::message::{Authenticator, Body, Close, PinnedCards, Propose, TrustScore};
use asp::session::{ReceiverChecks, SessionRules};
use asp::{AspLimits, Participant, ParticipantConfig, Performative, ProposalId, SessionId};
use node::Identity;
use seal::dpop::{Claims, HttpClaims, create_http_proof};
use seal::json::RawJson;
use seal::{Digest, Jwk, Random, SystemRandom, UnixMillis, base64url};
use testing::cli::{binary, run_sayso};
use testing::http::{TestClient, TestResponse};
use testing::hub::{HubProcess, reserved_address};

/// A node, and the agent that talks to it.
struct Peer {
    node: HubProcess,
    identity: Identity,
    node_identity: Identity,
    /// The node's latest nonce.
    nonce: RefCell<Option<String>>,
    folder: tempfile::TempDir,
}

impl Peer {
    fn start(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let address = reserved_address();
        for (name, agent) in
            [("node", format!("agent://{address}/node")), ("peer", "agent://127.0.0.1:9/peer".to_owned())]
        {
            let run =
                run_sayso(&["asp", "keygen", "--agent", &agent, "--name", name, "--out", &path(name)], "");
            assert_eq!(run.exit_code, 0, "{}", run.stderr);
        }
        std::fs::write(path("peers.txt"), "peer/card.json\n").unwrap();
        let mut command = Command::new(binary());
        command.args(["asp", "serve", "--open", "--memory", "--listen", &address, "--peers", "peers.txt"]);
        command.args(["--identity", "node"]).args(options).current_dir(folder.path());
        Self {
            node: HubProcess::start_command(&mut command),
            identity: Identity::load(&folder.path().join("peer")).unwrap(),
            node_identity: Identity::load(&folder.path().join("node")).unwrap(),
            nonce: RefCell::default(),
            folder,
        }
    }

    /// Sends a request with a proof, and repeats it with the node's nonce if it is asked to.
    fn send(&self, method: &str, path: &str, body: &str) -> TestResponse {
        loop {
            let had_nonce = self.nonce.borrow().is_some();
            let proof = self.proof(method, path, self.nonce.borrow().clone());
            let response = self.send_with(method, path, body, &proof);
            if response.status != 401 || had_nonce {
                return response;
            }
            self.nonce.replace(header(&response, "DPoP-Nonce"));
        }
    }

    fn send_with(&self, method: &str, path: &str, body: &str, proof: &str) -> TestResponse {
        let client = TestClient::new(&self.node.address)
            .with_header(&format!("Authorization: DPoP {}", self.token()))
            .with_header(&format!("DPoP: {proof}"))
            .with_header(&format!("Asp-Agent-Id: {}", self.identity.card.agent_id()));
        let client =
            if body.is_empty() { client } else { client.with_header("Content-Type: application/asp+json") };
        client.send(method, path, body)
    }

    fn token(&self) -> String {
        Jwk::P256(self.identity.keys.dpop.verifying_key().clone()).thumbprint()
    }

    fn proof(&self, method: &str, path: &str, nonce: Option<String>) -> String {
        let mut jti = [0; 16];
        SystemRandom.fill(&mut jti);
        let path = path.split('?').next().unwrap();
        let claims = HttpClaims {
            claims: Claims {
                jti: base64url::encode(&jti),
                htm: method.to_owned(),
                htu: format!("http://{}{path}", self.node.address),
                iat: now().seconds(),
                mh: None,
            },
            nonce,
            ath: Some(base64url::encode(Digest::of(self.token().as_bytes()).as_bytes())),
        };
        create_http_proof(&self.identity.keys.dpop, &claims).unwrap()
    }

    /// Opens a session, and returns this side of it with its id and the invitation.
    fn invite(&self) -> (Participant, SessionId, String) {
        let mut participant = Participant::new(ParticipantConfig {
            card: self.identity.card.clone(),
            keys: self.identity.keys.clone(),
            org_id: "test".to_owned(),
            trust_score: TrustScore::new(0.0).unwrap(),
            pinned_cards: PinnedCards::new([self.node_identity.card.clone()]),
            rules: SessionRules::default(),
            limits: AspLimits::default(),
        })
        .unwrap();
        let id = participant.invite(&self.node_identity.card, now(), &mut SystemRandom).unwrap();
        let proposal = ProposalId::parse("prop_0").unwrap();
        let terms = RawJson::parse("{}").unwrap();
        let text =
            sign(&mut participant, Propose::new(proposal, Propose::INVITATION_TYPE, "two cards", terms));
        (participant, id, text)
    }
}

fn now() -> UnixMillis {
    std::time::SystemTime::now().into()
}

fn sign(participant: &mut Participant, body: impl Into<Body>) -> String {
    let sent =
        participant.send_with(body.into(), None, ReceiverChecks::PASSED, now(), &mut SystemRandom).unwrap();
    sent.text.to_string()
}

fn header(response: &TestResponse, name: &str) -> Option<String> {
    let prefix = format!("{name}: ");
    response.head.lines().find_map(|line| line.strip_prefix(&prefix)).map(str::to_owned)
}

#[test]
fn a_request_needs_a_fresh_proof_with_the_nodes_nonce() {
    let peer = Peer::start(&[]);
    let path = "/v1/asp/sessions/0190a1b2-0000-7000-8000-000000000000";
    let without = TestClient::new(&peer.node.address).get(path);
    assert_eq!(without.status, 401);
    assert!(header(&without, "DPoP-Nonce").is_some(), "{}", without.head);
    let first = peer.send_with("GET", path, "", &peer.proof("GET", path, None));
    assert_eq!(first.status, 401);
    let challenge = header(&first, "WWW-Authenticate").unwrap();
    assert!(challenge.starts_with("DPoP error=\"use_dpop_nonce\""), "{challenge}");
    let nonce = header(&first, "DPoP-Nonce");
    let proof = peer.proof("GET", path, nonce.clone());
    assert_eq!(peer.send_with("GET", path, "", &proof).status, 404);
    for (why, proof) in [
        ("used before", proof),
        ("another method", peer.proof("POST", path, nonce.clone())),
        ("another path", peer.proof("GET", "/v1/asp/sessions", nonce)),
    ] {
        let response = peer.send_with("GET", path, "", &proof);
        let challenge = header(&response, "WWW-Authenticate").unwrap_or_default();
        assert!(challenge.contains("invalid_dpop_proof"), "{why}: {} {challenge}", response.status);
    }
}

#[test]
fn a_stranger_is_refused() {
    let mut peer = Peer::start(&[]);
    let stranger = peer.folder.path().join("stranger");
    let agent = "agent://127.0.0.1:9/stranger";
    let out = stranger.to_str().unwrap();
    assert_eq!(run_sayso(&["asp", "keygen", "--agent", agent, "--name", "x", "--out", out], "").exit_code, 0);
    peer.identity = Identity::load(&stranger).unwrap();
    let (_, _, invitation) = peer.invite();
    let response = peer.send("POST", "/v1/asp/sessions", &invitation);
    assert_eq!((response.status, response.json_str("code")), (403, "unauthorized".to_owned()));
}

#[test]
fn a_message_is_acknowledged_once_stored_and_again_when_repeated() {
    let peer = Peer::start(&[]);
    let (_, id, invitation) = peer.invite();
    let first = peer.send("POST", "/v1/asp/sessions", &invitation);
    assert_eq!((first.status, first.json_str("state")), (201, "INVITED".to_owned()), "{}", first.body);
    assert_eq!(first.json()["sequenceNumber"], 0);
    let again = peer.send("POST", "/v1/asp/sessions", &invitation);
    assert_eq!((again.status, &again.body), (201, &first.body));
    let path = format!("/v1/asp/sessions/{id}/messages/{}", first.json_str("messageId"));
    let stored = peer.send("GET", &path, "");
    assert_eq!((stored.status, stored.body), (200, invitation.clone()));
    let wrong_type = TestClient::new(&peer.node.address)
        .with_header(&format!("Authorization: DPoP {}", peer.token()))
        .with_header(&format!(
            "DPoP: {}",
            peer.proof("POST", "/v1/asp/sessions", peer.nonce.borrow().clone())
        ))
        .with_header("Content-Type: application/json");
    assert_eq!(wrong_type.post("/v1/asp/sessions", &invitation).status, 415);
}

#[test]
fn a_refusal_carries_the_signed_reject() {
    let peer = Peer::start(&[]);
    let (_, id, invitation) = peer.invite();
    assert_eq!(peer.send("POST", "/v1/asp/sessions", &invitation).status, 201);
    // The invitation to another session is authentic, but does not belong here.
    let (_, _, other_invitation) = peer.invite();
    let refused = peer.send("POST", &format!("/v1/asp/sessions/{id}/messages"), &other_invitation);
    assert_eq!((refused.status, refused.json_str("code")), (422, "invalid_state_transition".to_owned()));
    let cards = PinnedCards::new([peer.node_identity.card.clone()]);
    let reject = refused.json_str("reject");
    let reject = Authenticator::default().authenticate(&reject, &cards, &AspLimits::default()).unwrap();
    assert_eq!(reject.envelope.performative(), Performative::Reject);
    let forged = invitation.replace("two cards", "six cards");
    assert_eq!(peer.send("POST", "/v1/asp/sessions", &forged).status, 400);
}

#[test]
fn delete_carries_the_close() {
    let peer = Peer::start(&[]);
    let (mut participant, id, invitation) = peer.invite();
    assert_eq!(peer.send("POST", "/v1/asp/sessions", &invitation).status, 201);
    let path = format!("/v1/asp/sessions/{id}");
    let without_body = peer.send("DELETE", &path, "");
    assert!((400..500).contains(&without_body.status), "{}", without_body.status);
    assert_eq!(peer.send("GET", &path, "").json_str("state"), "INVITED");
    let close = sign(&mut participant, Close::new("changed my mind"));
    let closed = peer.send("DELETE", &path, &close);
    assert_eq!((closed.status, closed.json_str("state")), (200, "CLOSED".to_owned()), "{}", closed.body);
    assert_eq!(peer.send("GET", &path, "").json()["messageCount"], 2);
}

#[test]
fn since_sequence_counts_positions_in_the_chain() {
    let peer = Peer::start(&[]);
    let (mut participant, id, invitation) = peer.invite();
    assert_eq!(peer.send("POST", "/v1/asp/sessions", &invitation).status, 201);
    let close = sign(&mut participant, Close::new("done"));
    let path = format!("/v1/asp/sessions/{id}/messages");
    assert_eq!(peer.send("POST", &path, &close).status, 200);
    let all = peer.send("GET", &path, "").json();
    assert_eq!((all["messages"].as_array().unwrap().len(), &all["messageCount"]), (2, &2.into()));
    assert!(all["cursor"].is_null());
    let page = peer.send("GET", &format!("{path}?limit=1"), "").json();
    assert_eq!((page["messages"].as_array().unwrap().len(), page["cursor"].as_str()), (1, Some("1")));
    for query in ["since_sequence=1", "cursor=1"] {
        let rest = peer.send("GET", &format!("{path}?{query}"), "").json();
        assert_eq!(
            rest["messages"][0],
            serde_json::from_str::<serde_json::Value>(&close).unwrap(),
            "{query}"
        );
    }
    assert_eq!(peer.send("GET", &format!("{path}?since_sequence=x"), "").status, 400);
    // Somebody else's session does not exist.
    let other = format!("/v1/asp/sessions/{}/messages", peer.invite().1);
    assert_eq!(peer.send("GET", &other, "").status, 404);
}

#[test]
fn a_registry_stores_a_card_and_its_successors() {
    let peer = Peer::start(&["--registry"]);
    let client = TestClient::new(&peer.node.address);
    let path = "/v1/asp/agents/peer/card";
    assert_eq!(client.get(path).status, 404);
    let old = peer.identity.card.as_str().to_owned();
    for _ in 0..2 {
        assert_eq!(peer.send("PUT", path, &old).status, 204);
    }
    assert_eq!(client.get(path).body, old);
    assert_eq!(client.send("PUT", path, &old).status, 401, "a registration needs a proof");
    assert_eq!(peer.send("PUT", "/v1/asp/agents/other/card", &old).status, 422);
    assert_eq!(peer.send("PUT", path, &old.replace("\"peer\"", "\"evil\"")).status, 422);
    let folder = |name: &str| peer.folder.path().join(name).to_str().unwrap().to_owned();
    let keygen = |out: &str, more: &[&str]| {
        let arguments =
            ["asp", "keygen", "--agent", "agent://127.0.0.1:9/peer", "--name", "peer", "--out", out];
        let run = run_sayso(&[&arguments[..], more].concat(), "");
        assert_eq!(run.exit_code, 0, "{}", run.stderr);
        Identity::load(out.as_ref()).unwrap().card.as_str().to_owned()
    };
    let register = |identity: &str| {
        let url = format!("http://{}", peer.node.address);
        run_sayso(&["asp", "card", "register", &url, "--identity", identity], "")
    };
    keygen(&folder("impostor"), &[]);
    let refused = register(&folder("impostor"));
    assert_eq!(refused.exit_code, 1);
    assert!(refused.stderr.contains("its key did not sign this one"), "{}", refused.stderr);
    let rotated = keygen(&folder("peer"), &["--rotate"]);
    let registered = register(&folder("peer"));
    assert_eq!(registered.exit_code, 0, "{}", registered.stderr);
    assert_eq!(client.get(path).body, rotated);
    let without_registry = Peer::start(&[]);
    assert_eq!(TestClient::new(&without_registry.node.address).send("PUT", path, &old).status, 405);
}
