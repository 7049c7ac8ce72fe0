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
    /// How long the producer may take to answer, and to send an event that must follow.
    pub(super) patience: Duration,
}

/// One conversation with the producer, and what is wrong with it.
pub(super) struct Conversation {
    /// What the conversation is for. It is part of the name that findings have.
    pub(super) name: &'static str,
    connection: DirectConnection,
    /// How long the producer may take.
    pub(super) patience: Duration,
    accepted: Option<Box<SubscriptionAccepted>>,
    checker: ReplayChecker,
    tape: Tape,
    /// Everything that was exchanged, one message per line. Forged replies are left out, because they break rules on purpose.
    lines: Vec<String>,
    findings: Vec<CheckFinding>,
    /// Received events that were not returned yet.
    backlog: VecDeque<ReceivedEvent>,
    /// Until when events may arrive that the producer sent before it knew that the subscription was closed.
    in_flight_until: Option<Instant>,
}

/// How long events may be on their way, after the subscription was closed.
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

/// What the check needs to know about an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ReceivedEvent {
    pub(super) kind: String,
    pub(super) session: String,
    pub(super) reply_token: Option<String>,
    pub(super) from_state: Option<String>,
    /// The text of a progress update.
    pub(super) description: Option<String>,
}

/// How a wait for an event ended.
pub(super) enum Arrival {
    Event(ReceivedEvent),
    /// Nothing arrived in time.
    Silence,
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
            patience: target.patience,
            accepted: None,
            checker: ReplayChecker::new(),
            tape: Tape::default(),
            lines: Vec::new(),
            findings: Vec::new(),
            backlog: VecDeque::new(),
            in_flight_until: None,
        })
    }

    /// Does not check these rules, because this conversation does not show what they need.
    pub(super) fn without_rules(mut self, rules: &[Rule]) -> Self {
        self.checker = self.checker.without(rules);
        self
    }

    /// Sends a lawful subscription request.
    pub(super) async fn subscribe(&mut self, request: &str) -> Result<SubscribeAnswer, ConnectionError> {
        self.record(request);
        self.send_request(request).await
    }

    /// Sends a subscription request that breaks a rule.
    pub(super) async fn subscribe_unlawfully(
        &mut self,
        request: &str,
    ) -> Result<SubscribeAnswer, ConnectionError> {
        self.send_request(request).await
    }

    async fn send_request(&mut self, request: &str) -> Result<SubscribeAnswer, ConnectionError> {
        let answer = match self.connection.subscribe(request).await {
            Ok(answer) => answer,
            // The connection was closed instead of an answer.
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

    /// Sends a lawful message.
    pub(super) async fn send(&mut self, message: &str) -> Result<Option<Acknowledgement>, ConnectionError> {
        self.record(message);
        self.connection.send(message).await
    }

    /// Sends a message that breaks a rule on purpose.
    pub(super) async fn send_unlawfully(
        &mut self,
        message: &str,
    ) -> Result<Option<Acknowledgement>, ConnectionError> {
        self.connection.send(message).await
    }

    /// Changes the subscription without changing any term, and waits for the answer. Whatever was sent before on this
    /// connection has been handled then. Returns whether the producer answered.
    pub(super) async fn renegotiate(&mut self, capabilities: Capabilities) -> Result<bool, ConnectionError> {
        let Some(subscription) = self.subscription_id().cloned() else { return Ok(false) };
        let message = SubscriptionRenegotiate::new(subscription, capabilities);
        self.send(&Message::SubscriptionRenegotiate(message).to_json()).await?;
        let deadline = Instant::now() + self.patience;
        loop {
            let Ok(received) = timeout_at(deadline, self.connection.next()).await else { return Ok(false) };
            let Some(text) = received? else { return Ok(false) };
            match self.take_in(&text) {
                TakenIn::Answer => return Ok(true),
                TakenIn::Closed => return Ok(false),
                TakenIn::Event(event) => self.backlog.push_back(event),
                TakenIn::Nothing => {}
            }
        }
    }

    /// Closes the subscription, and checks that no event follows until the producer falls silent or closes the connection.
    pub(super) async fn close(&mut self, quiet: Duration) -> Result<(), ConnectionError> {
        let Some(subscription) = self.subscription_id().cloned() else { return Ok(()) };
        self.send(&close_message(&subscription)).await?;
        self.in_flight_until = Some(Instant::now() + IN_FLIGHT_TIME);
        // The recording checker reports later events.
        while let Arrival::Event(_) = self.receive(quiet).await? {}
        Ok(())
    }

    /// Waits for the next event.
    pub(super) async fn receive(&mut self, patience: Duration) -> Result<Arrival, ConnectionError> {
        if let Some(event) = self.backlog.pop_front() {
            return Ok(Arrival::Event(event));
        }
        let deadline = Instant::now() + patience;
        loop {
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
            match self.take_in(&text) {
                TakenIn::Event(event) => return Ok(Arrival::Event(event)),
                TakenIn::Closed => return Ok(Arrival::Closed),
                TakenIn::Answer | TakenIn::Nothing => {}
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
    fn take_in(&mut self, text: &str) -> TakenIn {
        if text.trim_ascii().is_empty() {
            return TakenIn::Nothing;
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
        if event.as_ref().is_some_and(|event| matches!(event.kind.as_str(), "sayso:gap" | "sayso:place")) {
            return TakenIn::Nothing;
        }
        if self.in_flight_until.is_none_or(|until| Instant::now() >= until) {
            self.record(text);
        }
        match event {
            None => TakenIn::Nothing,
            Some(event) => match event.kind.as_str() {
                "subscription.close" => TakenIn::Closed,
                "subscription.accepted" | "subscription.rejected" => TakenIn::Answer,
                _ => TakenIn::Event(event),
            },
        }
    }

    /// Adds a line to the recording and checks it.
    fn record(&mut self, text: &str) {
        self.lines.push(text.replace(['\r', '\n'], " "));
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

    /// The number of messages in both directions.
    pub(super) fn message_count(&self) -> u64 {
        self.lines.len() as u64
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
        // A session may outlast the check. A request without an answer is a finding.
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

/// What a received message is.
enum TakenIn {
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
