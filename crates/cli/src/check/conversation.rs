//! One subscription of the check: sends, receives, and checks everything that was exchanged, as `sayso validate` does.

use std::collections::VecDeque;
use std::time::Duration;

use aaep::json::Tape;
use aaep::message::{Capabilities, Message, SubscriptionAccepted, SubscriptionRenegotiate};
use aaep::rule::{Rule, Severity};
use listen::client::{Acknowledgement, Address, ConnectionError, DirectConnection, close_message};
use tokio::time::{Instant, timeout_at};

use super::behaviour::Behaviour;
use crate::replay::checker::ReplayChecker;
use crate::validate::item_reader::RecordingItem;

/// The producer that is checked.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) address: Address,
    /// Maximum time for an answer, or for an event that must follow.
    pub(super) response_timeout: Duration,
}

/// One conversation with the producer, and the findings about it.
pub(super) struct Conversation {
    /// What the conversation is for. It is part of the label under which findings are reported.
    pub(super) name: &'static str,
    connection: DirectConnection,
    /// Maximum time for an answer, or for an event that must follow.
    pub(super) response_timeout: Duration,
    accepted: Option<Box<SubscriptionAccepted>>,
    checker: ReplayChecker,
    tape: Tape,
    /// The exchanged messages, one per line, except those that break rules on purpose, and events in flight after a close.
    lines: Vec<String>,
    recorded_bytes: usize,
    findings: Vec<CheckFinding>,
    /// Received events that were not returned yet.
    backlog: VecDeque<ReceivedEvent>,
    /// End of the grace period for events that the producer sent before it saw the close.
    in_flight_until: Option<Instant>,
}

/// Maximum number of messages of one conversation.
const MAX_MESSAGES: usize = 100_000;
/// Maximum size of the messages of one conversation, in bytes.
const MAX_RECORDED_BYTES: usize = 16 * 1024 * 1024;

/// Grace period for events in flight after the subscription was closed.
const IN_FLIGHT_TIME: Duration = Duration::from_secs(2);

/// A finding at a line of a conversation.
pub(super) struct CheckFinding {
    pub(super) line: u64,
    pub(super) rule: &'static str,
    pub(super) severity: Severity,
    pub(super) pointer: String,
    pub(super) message: String,
    pub(super) event_id: Option<String>,
}

/// The parts of an event that the check needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ReceivedEvent {
    pub(super) kind: String,
    pub(super) session: String,
    pub(super) reply_token: Option<String>,
    pub(super) from_state: Option<String>,
    /// The text of a progress update.
    pub(super) description: Option<String>,
}

/// The result of waiting for an event.
pub(super) enum Arrival {
    Event(ReceivedEvent),
    /// Nothing arrived in time.
    Silence,
    /// The producer sent more messages, or more bytes, than one conversation may have. Nothing more is read.
    TooMuch,
    /// The producer closed the connection or the subscription.
    Closed,
}

/// How the producer answered a subscription request.
pub(super) enum SubscribeAnswer {
    Accepted(Box<SubscriptionAccepted>),
    /// It refused with `subscription.rejected`.
    Rejected(aaep::message::SubscriptionRejected),
    /// Something else, such as an HTTP error, or nothing.
    Other(Option<String>),
}

impl Conversation {
    /// Connects. Fails if the producer cannot be reached.
    pub(super) async fn open(name: &'static str, target: &Target) -> Result<Self, ConnectionError> {
        Ok(Self {
            name,
            connection: DirectConnection::open(&target.address).await?,
            response_timeout: target.response_timeout,
            accepted: None,
            checker: ReplayChecker::new(),
            tape: Tape::default(),
            lines: Vec::new(),
            recorded_bytes: 0,
            findings: Vec::new(),
            backlog: VecDeque::new(),
            in_flight_until: None,
        })
    }

    /// Disables these rules, because this conversation does not contain the messages that they depend on.
    pub(super) fn without_rules(mut self, rules: &[Rule]) -> Self {
        self.checker = self.checker.without(rules);
        self
    }

    /// Sends a valid subscription request, and records it.
    pub(super) async fn subscribe(&mut self, request: &str) -> Result<SubscribeAnswer, ConnectionError> {
        self.record(request);
        self.send_request(request).await
    }

    /// Sends a subscription request that is not recorded, because it breaks a rule on purpose.
    pub(super) async fn subscribe_unrecorded(
        &mut self,
        request: &str,
    ) -> Result<SubscribeAnswer, ConnectionError> {
        self.send_request(request).await
    }

    async fn send_request(&mut self, request: &str) -> Result<SubscribeAnswer, ConnectionError> {
        let answer = match self.connection.subscribe(request).await {
            Ok(answer) => answer,
            // The producer closed the connection instead of answering.
            Err(
                ConnectionError::ClosedBeforeResponse
                | ConnectionError::ConnectionReset
                | ConnectionError::ClosedByHub,
            ) => None,
            Err(error) => return Err(error),
        };
        let Some(text) = answer else { return Ok(SubscribeAnswer::Other(None)) };
        Ok(match Message::parse(&text) {
            Some(Message::SubscriptionAccepted(accepted)) => {
                self.record(&text);
                self.accepted = Some(Box::new(accepted.clone()));
                SubscribeAnswer::Accepted(Box::new(accepted))
            }
            Some(Message::SubscriptionRejected(rejected)) => {
                self.record(&text);
                SubscribeAnswer::Rejected(rejected)
            }
            _ => SubscribeAnswer::Other(Some(text)),
        })
    }

    /// The accepted subscription's id.
    pub(super) fn subscription_id(&self) -> Option<&aaep::SubscriptionId> {
        self.accepted.as_deref().map(|accepted| &accepted.subscription_id)
    }

    /// Sends a valid message.
    pub(super) async fn send(&mut self, message: &str) -> Result<Option<Acknowledgement>, ConnectionError> {
        self.record(message);
        self.connection.send(message).await
    }

    /// Sends a message that breaks a rule on purpose.
    pub(super) async fn send_invalid(
        &mut self,
        message: &str,
    ) -> Result<Option<Acknowledgement>, ConnectionError> {
        self.connection.send(message).await
    }

    /// Renegotiates with unchanged terms and waits for the answer. After that, everything sent earlier on this connection has been
    /// handled. Returns whether the producer answered.
    pub(super) async fn renegotiate(&mut self, capabilities: Capabilities) -> Result<bool, ConnectionError> {
        let Some(subscription) = self.subscription_id().cloned() else { return Ok(false) };
        let message = SubscriptionRenegotiate::new(subscription, capabilities);
        self.send(&Message::SubscriptionRenegotiate(message).to_json()).await?;
        let deadline = Instant::now() + self.response_timeout;
        loop {
            if self.is_full() {
                return Ok(false);
            }
            let Ok(received) = timeout_at(deadline, self.connection.next()).await else { return Ok(false) };
            let Some(text) = received? else { return Ok(false) };
            match self.process_message(&text) {
                MessageKind::Answer => return Ok(true),
                MessageKind::Closed => return Ok(false),
                MessageKind::Event(event) => self.backlog.push_back(event),
                MessageKind::Nothing => {}
            }
        }
    }

    /// Closes the subscription, then reads until the producer is silent or disconnects, and reports any event sent after the close.
    pub(super) async fn close(&mut self, quiet: Duration) -> Result<(), ConnectionError> {
        let Some(subscription) = self.subscription_id().cloned() else { return Ok(()) };
        self.send(&close_message(&subscription)).await?;
        self.in_flight_until = Some(Instant::now() + IN_FLIGHT_TIME);
        // The recording checker reports later events.
        while let Arrival::Event(_) = self.receive(quiet).await? {}
        Ok(())
    }

    /// Waits for the next event.
    pub(super) async fn receive(&mut self, response_timeout: Duration) -> Result<Arrival, ConnectionError> {
        if let Some(event) = self.backlog.pop_front() {
            return Ok(Arrival::Event(event));
        }
        let deadline = Instant::now() + response_timeout;
        loop {
            if self.is_full() {
                return Ok(Arrival::TooMuch);
            }
            let Ok(received) = timeout_at(deadline, self.connection.next()).await else {
                return Ok(Arrival::Silence);
            };
            let text = match received {
                Ok(Some(text)) => text,
                Ok(None) | Err(ConnectionError::ClosedInResponse | ConnectionError::ConnectionReset) => {
                    return Ok(Arrival::Closed);
                }
                Err(error) => return Err(error),
            };
            match self.process_message(&text) {
                MessageKind::Event(event) => return Ok(Arrival::Event(event)),
                MessageKind::Closed => return Ok(Arrival::Closed),
                MessageKind::Answer | MessageKind::Nothing => {}
            }
        }
    }

    /// Puts events back, so that they are received again, before all others.
    pub(super) fn put_back(&mut self, events: Vec<ReceivedEvent>) {
        for event in events.into_iter().rev() {
            self.backlog.push_front(event);
        }
    }

    /// Records and checks a received message.
    fn process_message(&mut self, text: &str) -> MessageKind {
        if text.trim_ascii().is_empty() {
            return MessageKind::Nothing;
        }
        let mut tape = Tape::default();
        let event = tape.read(text).ok().and_then(|doc| {
            let root = doc.root();
            let member = |name: &str| Some(root.member(name)?.text()?.into_owned());
            let progress =
                root.member("progress").and_then(|progress| progress.member("description")?.text());
            Some(ReceivedEvent {
                kind: member("type")?,
                session: member("session_id").unwrap_or_default(),
                reply_token: member("reply_token"),
                from_state: member("from_state"),
                description: progress.map(std::borrow::Cow::into_owned),
            })
        });
        // sayso's own messages about the stream are not part of AAEP.
        if event.as_ref().is_some_and(|event| matches!(event.kind.as_str(), "sayso:gap" | "sayso:position")) {
            return MessageKind::Nothing;
        }
        if self.in_flight_until.is_none_or(|until| Instant::now() >= until) {
            self.record(text);
        }
        match event {
            None => MessageKind::Nothing,
            Some(event) => match event.kind.as_str() {
                "subscription.close" => MessageKind::Closed,
                "subscription.accepted" | "subscription.rejected" => MessageKind::Answer,
                _ => MessageKind::Event(event),
            },
        }
    }

    /// Adds a line to the recording and checks it.
    fn record(&mut self, text: &str) {
        self.lines.push(text.replace(['\r', '\n'], " "));
        self.recorded_bytes += text.len();
        let line = self.lines.len() as u64;
        let item = RecordingItem { line, bytes: Ok(text.as_bytes().to_vec()) };
        let (checked, findings) = self.checker.check_item(&item, &mut self.tape);
        let event_id = match checked {
            aaep::check::CheckedDocument::Event(event) => event.event_id.map(std::borrow::Cow::into_owned),
            _ => None,
        };
        self.findings.extend(findings.into_iter().map(|finding| CheckFinding {
            line,
            rule: finding.rule.id(),
            severity: finding.severity,
            message: finding.message(),
            pointer: finding.pointer,
            event_id: event_id.clone(),
        }));
    }

    /// Whether nothing more is read, so that a producer that never stops sending cannot fill the memory.
    fn is_full(&self) -> bool {
        self.lines.len() >= MAX_MESSAGES || self.recorded_bytes >= MAX_RECORDED_BYTES
    }

    /// Reports behaviour that breaks a requirement, at the last line of the recording.
    pub(super) fn report(&mut self, behaviour: Behaviour, actual: &str) {
        self.findings.push(CheckFinding {
            line: (self.lines.len() as u64).max(1),
            rule: behaviour.id(),
            severity: behaviour.severity(),
            pointer: String::new(),
            message: format!("{actual}; {}", behaviour.sentence()),
            event_id: None,
        });
    }

    /// Ends the check of this conversation.
    pub(super) fn finish(self) -> FinishedConversation {
        let Self { name, checker, lines, mut findings, .. } = self;
        let events = checker.events;
        let (unfinished, sessions) = if lines.is_empty() { (Vec::new(), 0) } else { checker.finish() };
        // A session may outlast the check. An unanswered request is a finding.
        let unfinished =
            unfinished.into_iter().filter(|(_, finding)| finding.rule != Rule::ONE_START_ONE_END);
        findings.extend(unfinished.map(|(line, finding)| CheckFinding {
            line,
            rule: finding.rule.id(),
            severity: Severity::Error,
            message: finding.message(),
            pointer: finding.pointer,
            event_id: None,
        }));
        FinishedConversation { name, lines, findings, events, sessions }
    }
}

/// The kind of a received message.
enum MessageKind {
    Event(ReceivedEvent),
    /// The answer to a renegotiation.
    Answer,
    Closed,
    Nothing,
}

/// The result of a conversation.
pub(super) struct FinishedConversation {
    pub(super) name: &'static str,
    pub(super) lines: Vec<String>,
    pub(super) findings: Vec<CheckFinding>,
    pub(super) events: u64,
    pub(super) sessions: u64,
}
