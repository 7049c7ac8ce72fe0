//! A hub of either kind with a listener.

use std::hash::RandomState;
use std::time::Duration;

use aaep::check::{CheckedDocument, Validator};
use aaep::json::Tape;
use aaep::recording::{InputPosition, RecordingChecker, RecordingLimits, SequenceMode};
use aaep::rule::{Findings, Severity, ValidationMode};

use futures_util::{SinkExt, StreamExt};
use sayso::{Hub, Session};
use seal::es256::SigningKey;
use seal::{Jwk, SystemRandom};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::{ClientRequestBuilder, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

/// A time limit that is long enough on any machine. A longer wait means that the awaited event never comes.
const TEST_TIMEOUT: Duration = Duration::from_mins(2);

#[derive(Clone, Copy)]
pub(crate) enum HubKind {
    Embedded,
    Remote,
}

pub(crate) struct HubFixture {
    pub(crate) hub: Hub,
    /// The hub itself, if `hub` is only a client of it.
    embedded: Option<Hub>,
    pub(crate) listener: TestListener,
    /// The key with which the hub signs receipts.
    pub(crate) receipt_key: Jwk,
}

impl HubFixture {
    pub(crate) async fn new(kind: HubKind) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key_file = folder.path().join("receipts.key");
        let key = SigningKey::generate(&mut SystemRandom);
        key.save(&key_file).unwrap();
        let receipt_key = Jwk::P256(key.verifying_key().clone());
        let builder = Hub::embedded().agent("bank").agent_name("Your bank").receipt_key(key_file);
        let embedded = builder.listen("127.0.0.1:0").open().unwrap();
        let address = embedded.address().unwrap().to_string();
        let listener = TestListener::listen(&address).await;
        match kind {
            HubKind::Embedded => Self { hub: embedded, embedded: None, listener, receipt_key },
            HubKind::Remote => {
                let hub =
                    Hub::connect(format!("http://{address}")).agent_name("Your bank").open().await.unwrap();
                Self { hub, embedded: Some(embedded), listener, receipt_key }
            }
        }
    }

    /// Starts a session and waits until the listener has received its first event.
    pub(crate) async fn session(&mut self) -> Session {
        let session = self.hub.session("Pay Ben.").start().await.unwrap();
        assert_eq!(self.listener.next_event().await["type"], "aaep:agent.session.started");
        session
    }

    /// Returns the address under which other clients reach the hub.
    pub(crate) fn address(&self) -> String {
        let hub = self.embedded.as_ref().unwrap_or(&self.hub);
        hub.address().unwrap().to_string()
    }
}

/// A listener that receives every event and can answer questions.
pub(crate) struct TestListener {
    socket: WebSocketStream<TcpStream>,
    subscription: String,
    checker: EventChecker,
}

/// Validates every received event in strict mode, immediately or at the end.
struct EventChecker {
    validator: Validator,
    recording: RecordingChecker<RandomState>,
    ignored_rules: Vec<&'static str>,
    /// The events received so far, in the order in which they were emitted, if they are checked at the end.
    deferred: Option<Vec<(Value, String)>>,
}

/// Warnings that the crate cannot avoid: the agent's author decides how many summary lengths a text has, and the hub sets no urgency
/// on its own events.
const IGNORED_RULES: [&str; 2] = ["AAEP-2.2.8-2", "AAEP-3.3.2-2"];

impl EventChecker {
    fn new() -> Self {
        let recording =
            RecordingChecker::new(SequenceMode::Auto, RecordingLimits::default(), RandomState::new());
        Self { validator: Validator::new(), recording, ignored_rules: IGNORED_RULES.to_vec(), deferred: None }
    }

    fn observe(&mut self, event: &Value, text: &str) {
        match &mut self.deferred {
            None => self.check(text),
            Some(events) => {
                let index = if is_output_or_progress(event) { emission_index(event, events) } else { None };
                events.insert(index.unwrap_or(events.len()), (event.clone(), text.to_owned()));
            }
        }
    }

    fn check(&mut self, text: &str) {
        let mut tape = Tape::default();
        let doc = tape.read(text).unwrap();
        let mut findings = Findings::new(ValidationMode::Strict);
        if let CheckedDocument::Event(event) = self.validator.check(&doc, &mut findings) {
            self.recording.check_event(&event.borrow(), InputPosition::default(), &mut findings);
        }
        let mut findings = findings.take();
        findings.retain(|finding| {
            !self.ignored_rules.contains(&finding.rule.id()) || finding.severity == Severity::Error
        });
        let violations: Vec<_> =
            findings.iter().map(|finding| (finding.rule.id(), finding.message())).collect();
        assert!(violations.is_empty(), "{text} violates rules: {violations:?}");
    }
}

fn is_output_or_progress(event: &Value) -> bool {
    ["aaep:agent.output.streaming", "aaep:agent.progress.updated"].iter().any(|kind| event["type"] == *kind)
}

/// If a question overtook this output or progress event, returns the index of the first event of its session that was emitted
/// later.
fn emission_index(overtaken: &Value, events: &[(Value, String)]) -> Option<usize> {
    let is_later = |(event, _): &(Value, String)| {
        event["session_id"] == overtaken["session_id"]
            && event["timestamp"].as_str() > overtaken["timestamp"].as_str()
    };
    let is_question = |(event, _): &(Value, String)| event["reply_token"].is_string();
    let is_overtaken = events.iter().any(|event| is_later(event) && is_question(event));
    events.iter().position(is_later).filter(|_| is_overtaken)
}

impl TestListener {
    pub(crate) async fn listen(address: &str) -> Self {
        Self::listen_in_language(address, "en").await
    }

    pub(crate) async fn listen_in_language(address: &str, language: &str) -> Self {
        Self::listen_with(address, language, &["sentence", "completion"]).await
    }

    /// Connects a listener that receives output as the agent wrote it.
    pub(crate) async fn listen_to_uncut_output(address: &str) -> Self {
        Self::listen_with(address, "en", &["none"]).await
    }

    async fn listen_with(address: &str, language: &str, boundaries: &[&str]) -> Self {
        let uri = format!("ws://{address}/aaep/v1/ws").parse().unwrap();
        let request = ClientRequestBuilder::new(uri).with_sub_protocol("aaep.v1");
        let stream = TcpStream::connect(address).await.unwrap();
        let (socket, _) = client_async(request, stream).await.unwrap();
        let mut listener = Self { socket, subscription: String::new(), checker: EventChecker::new() };
        let capabilities = json!({
            "supports_confirmation_reply": true, "supports_clarification_reply": true, "verbosity": "detailed",
            "languages": [language], "coalesce_boundaries": boundaries, "sayso": {"handoffs": true},
        });
        listener
            .send(&json!({
                "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "person",
                "capabilities": capabilities,
            }))
            .await;
        let accepted = listener.next_event().await;
        accepted["subscription_id"].as_str().unwrap().clone_into(&mut listener.subscription);
        listener
    }

    /// Ignores warnings of this rule.
    pub(crate) fn ignore_rule(&mut self, rule: &'static str) {
        self.checker.ignored_rules.push(rule);
    }

    /// Defers the checks to [`check_deferred`](Self::check_deferred), which checks the events in the order in which they were
    /// emitted. While a listener is behind, a question overtakes output and progress of its session.
    pub(crate) fn defer_checks(&mut self) {
        self.checker.deferred = Some(Vec::new());
    }

    pub(crate) fn check_deferred(&mut self) {
        for (_, text) in self.checker.deferred.take().unwrap_or_default() {
            self.checker.check(&text);
        }
    }

    pub(crate) async fn next_event(&mut self) -> Value {
        let deadline = tokio::time::Instant::now() + TEST_TIMEOUT;
        loop {
            let next = tokio::time::timeout_at(deadline, self.socket.next()).await;
            match next.expect("an event arrives in time").unwrap().unwrap() {
                Message::Text(text) => {
                    let event = serde_json::from_str(&text).unwrap();
                    self.checker.observe(&event, &text);
                    return event;
                }
                Message::Close(frame) => panic!("the hub closed the connection: {frame:?}"),
                _ => {}
            }
        }
    }

    /// Returns all events up to and including the first one of this type.
    pub(crate) async fn events_until(&mut self, kind: &str) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            let event = self.next_event().await;
            let is_last = event["type"] == format!("aaep:agent.{kind}");
            events.push(event);
            if is_last {
                return events;
            }
        }
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.socket.send(Message::text(message.to_string())).await.unwrap();
    }

    /// Waits for a confirmation question and answers it.
    pub(crate) async fn decide_next(&mut self, decision: &str) -> Value {
        let question = self.events_until("awaiting.confirmation").await.pop().unwrap();
        self.decide(&question, decision).await;
        question
    }

    pub(crate) async fn decide(&mut self, question: &Value, decision: &str) {
        self.send(&json!({
            "type": "confirmation.reply", "reply_token": question["reply_token"], "decision": decision,
            "subscription_id": self.subscription, "timestamp": now(),
        }))
        .await;
    }

    /// Accepts a question, but for a different action.
    pub(crate) async fn accept_modified(&mut self, question: &Value, modified_action: &Value) {
        self.send(&json!({
            "type": "confirmation.reply", "reply_token": question["reply_token"], "decision": "accept",
            "modified_action": modified_action, "subscription_id": self.subscription, "timestamp": now(),
        }))
        .await;
    }

    pub(crate) async fn clarify_next(&mut self, response: Value) {
        let question = self.events_until("awaiting.clarification").await.pop().unwrap();
        self.clarify(&question, response).await;
    }

    pub(crate) async fn clarify(&mut self, question: &Value, response: Value) {
        self.send(&json!({
            "type": "clarification.reply", "reply_token": question["reply_token"], "response": response,
            "subscription_id": self.subscription, "timestamp": now(),
        }))
        .await;
    }

    /// Waits for a hand-off and answers it with `acknowledge` or `reject`. Returns the hand-off.
    pub(crate) async fn answer_next_hand_off(&mut self, kind: &str, note: Option<&str>) -> Value {
        let request = self.events_until("handoff.requested").await.pop().unwrap();
        let mut answer = json!({
            "type": format!("sayso:handoff.{kind}"), "subscription_id": self.subscription, "timestamp": now(),
            "reply_token": request["extensions"]["sayso"]["handoff"]["reply_token"],
        });
        if let Some(note) = note {
            answer["note"] = json!(note);
        }
        self.send(&answer).await;
        request
    }

    pub(crate) async fn stop_session(&mut self, session: &str) {
        let stop = json!({
            "type": "sayso:session.stop", "session_id": session, "subscription_id": self.subscription,
            "timestamp": now(),
        });
        self.send(&stop).await;
    }
}

fn now() -> String {
    seal::Timestamp::from_unix_millis(std::time::SystemTime::now().into()).unwrap().to_string()
}

/// Returns the type of each event, or the new state for state changes, followed by the status, if there is one.
pub(crate) fn event_kinds(events: &[Value]) -> Vec<String> {
    let kind_of = |event: &Value| {
        let kind = event["type"].as_str().unwrap().trim_start_matches("aaep:agent.");
        match (kind, event["status"].as_str()) {
            ("state.changed", _) => event["to_state"].as_str().unwrap().to_owned(),
            (kind, Some(status)) => format!("{kind} {status}"),
            (kind, None) => kind.to_owned(),
        }
    };
    events.iter().map(kind_of).collect()
}
