//! A hub of either kind, and a person who listens to it.

use std::hash::RandomState;
use std::time::Duration;

use aaep::check::{Checked, Validator};
use aaep::json::Tape;
use aaep::recording::{Limits, Place, Recording, Sequence};
use aaep::rule::{Face, Findings, Severity};

use futures_util::{SinkExt, StreamExt};
use sayso::{Hub, Session};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::{ClientRequestBuilder, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

/// Long enough for any machine; who waits for longer has found a fault.
const PATIENCE: Duration = Duration::from_mins(2);

#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Embedded,
    Client,
}

pub(crate) struct Stage {
    pub(crate) hub: Hub,
    /// The hub itself, where `hub` is the way to it.
    inside: Option<Hub>,
    pub(crate) person: Person,
}

impl Stage {
    pub(crate) async fn new(kind: Kind) -> Self {
        let inside = Hub::embedded().agent("bank").name("Your bank").listen("127.0.0.1:0").open().unwrap();
        let address = inside.address().unwrap().to_string();
        let person = Person::listen(&address).await;
        match kind {
            Kind::Embedded => Self { hub: inside, inside: None, person },
            Kind::Client => {
                let hub = Hub::connect(format!("http://{address}")).name("Your bank").open().await.unwrap();
                Self { hub, inside: Some(inside), person }
            }
        }
    }

    pub(crate) async fn session(&mut self) -> Session {
        let session = self.hub.session("Pay Ben.").start().await.unwrap();
        assert_eq!(self.person.hears().await["type"], "aaep:agent.session.started");
        session
    }

    /// What the hub of this stage can be reached under by others.
    pub(crate) fn address(&self) -> String {
        let hub = self.inside.as_ref().unwrap_or(&self.hub);
        hub.address().unwrap().to_string()
    }
}

/// Somebody who hears everything and answers.
pub(crate) struct Person {
    socket: WebSocketStream<TcpStream>,
    subscription: String,
    judge: Judge,
}

/// Looks at everything that is heard, with the strict face.
struct Judge {
    validator: Validator,
    recording: Recording<RandomState>,
    excused: Vec<&'static str>,
    /// The events so far, where they are judged at the end.
    deferred: Option<Vec<(Value, String)>>,
}

/// Warnings for which the crate is not to blame: how many lengths a text has is its author's to say, and the hub sets no
/// urgency on what it says itself.
const EXCUSED: [&str; 2] = ["AAEP-2.2.8-2", "AAEP-3.3.2-2"];

impl Judge {
    fn new() -> Self {
        let recording = Recording::new(Sequence::Auto, Limits::default(), RandomState::new());
        Self { validator: Validator::new(), recording, excused: EXCUSED.to_vec(), deferred: None }
    }

    fn hears(&mut self, event: &Value, text: &str) {
        match &mut self.deferred {
            None => self.judge(text),
            Some(events) => {
                let at = if is_text(event) { overtaken_by(event, events) } else { None };
                events.insert(at.unwrap_or(events.len()), (event.clone(), text.to_owned()));
            }
        }
    }

    fn judge(&mut self, text: &str) {
        let mut tape = Tape::default();
        let doc = tape.read(text).unwrap();
        let mut findings = Findings::new(Face::Strict);
        if let Checked::Event(step) = self.validator.check(&doc, &mut findings) {
            self.recording.event(&step.borrow(), Place::default(), &mut findings);
        }
        let mut findings = findings.take();
        findings.retain(|one| !self.excused.contains(&one.rule.id()) || one.severity == Severity::Error);
        let found: Vec<_> = findings.iter().map(|one| (one.rule.id(), one.message())).collect();
        assert!(found.is_empty(), "{text} is not lawful: {found:?}");
    }
}

fn is_text(event: &Value) -> bool {
    ["aaep:agent.output.streaming", "aaep:agent.progress.updated"].iter().any(|kind| event["type"] == *kind)
}

/// Where this text or progress was emitted, if a question overtook it: before the first later event of its session.
fn overtaken_by(text: &Value, events: &[(Value, String)]) -> Option<usize> {
    let is_later = |(event, _): &(Value, String)| {
        event["session_id"] == text["session_id"] && event["timestamp"].as_str() > text["timestamp"].as_str()
    };
    let is_question = |(event, _): &(Value, String)| event["reply_token"].is_string();
    let overtaken = events.iter().any(|event| is_later(event) && is_question(event));
    events.iter().position(is_later).filter(|_| overtaken)
}

impl Person {
    pub(crate) async fn listen(address: &str) -> Self {
        Self::listen_in(address, "en").await
    }

    pub(crate) async fn listen_in(address: &str, language: &str) -> Self {
        let uri = format!("ws://{address}/aaep/v1/ws").parse().unwrap();
        let wanted = ClientRequestBuilder::new(uri).with_sub_protocol("aaep.v1");
        let stream = TcpStream::connect(address).await.unwrap();
        let (socket, _) = client_async(wanted, stream).await.unwrap();
        let mut person = Self { socket, subscription: String::new(), judge: Judge::new() };
        let capabilities = json!({
            "supports_confirmation_reply": true, "supports_clarification_reply": true, "verbosity": "detailed",
            "languages": [language],
        });
        person
            .says(&json!({
                "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "person",
                "capabilities": capabilities,
            }))
            .await;
        let accepted = person.hears().await;
        accepted["subscription_id"].as_str().unwrap().clone_into(&mut person.subscription);
        person
    }

    /// Passes over warnings of this rule.
    pub(crate) fn excuses(&mut self, rule: &'static str) {
        self.judge.excused.push(rule);
    }

    /// Judges the events only in [`judges`](Self::judges), each at the place where it was emitted: while a listener is behind,
    /// a question overtakes text and progress of its session.
    pub(crate) fn defers(&mut self) {
        self.judge.deferred = Some(Vec::new());
    }

    pub(crate) fn judges(&mut self) {
        for (_, text) in self.judge.deferred.take().unwrap_or_default() {
            self.judge.judge(&text);
        }
    }

    pub(crate) async fn hears(&mut self) -> Value {
        let until = tokio::time::Instant::now() + PATIENCE;
        loop {
            let next = tokio::time::timeout_at(until, self.socket.next()).await;
            match next.expect("something is to be heard").unwrap().unwrap() {
                Message::Text(text) => {
                    let event = serde_json::from_str(&text).unwrap();
                    self.judge.hears(&event, &text);
                    return event;
                }
                Message::Close(frame) => panic!("the hub is gone: {frame:?}"),
                _ => {}
            }
        }
    }

    /// Everything up to the first event of that type, which is the last.
    pub(crate) async fn hears_until(&mut self, kind: &str) -> Vec<Value> {
        let mut heard = Vec::new();
        loop {
            let event = self.hears().await;
            let is = event["type"] == format!("aaep:agent.{kind}");
            heard.push(event);
            if is {
                return heard;
            }
        }
    }

    pub(crate) async fn says(&mut self, message: &Value) {
        self.socket.send(Message::text(message.to_string())).await.unwrap();
    }

    /// Waits for a question, and answers it.
    pub(crate) async fn decides(&mut self, decision: &str) -> Value {
        let asked = self.hears_until("awaiting.confirmation").await.pop().unwrap();
        self.answers(&asked, decision).await;
        asked
    }

    pub(crate) async fn answers(&mut self, asked: &Value, decision: &str) {
        self.says(&json!({
            "type": "confirmation.reply", "reply_token": asked["reply_token"], "decision": decision,
            "subscription_id": self.subscription, "timestamp": now(),
        }))
        .await;
    }

    pub(crate) async fn explains(&mut self, response: Value) {
        let asked = self.hears_until("awaiting.clarification").await.pop().unwrap();
        self.clarifies(&asked, response).await;
    }

    pub(crate) async fn clarifies(&mut self, asked: &Value, response: Value) {
        self.says(&json!({
            "type": "clarification.reply", "reply_token": asked["reply_token"], "response": response,
            "subscription_id": self.subscription, "timestamp": now(),
        }))
        .await;
    }

    pub(crate) async fn stops(&mut self, session: &str) {
        let stop = json!({
            "type": "sayso:session.stop", "session_id": session, "subscription_id": self.subscription,
            "timestamp": now(),
        });
        self.says(&stop).await;
    }
}

fn now() -> String {
    seal::Timestamp::from_unix_millis(std::time::SystemTime::now().into()).unwrap().to_string()
}

/// The types of events, and of changes of state where they go.
pub(crate) fn told(events: &[Value]) -> Vec<String> {
    let told = |event: &Value| {
        let kind = event["type"].as_str().unwrap().trim_start_matches("aaep:agent.");
        match (kind, event["status"].as_str()) {
            ("state.changed", _) => event["to_state"].as_str().unwrap().to_owned(),
            (kind, Some(status)) => format!("{kind} {status}"),
            (kind, None) => kind.to_owned(),
        }
    };
    events.iter().map(told).collect()
}
