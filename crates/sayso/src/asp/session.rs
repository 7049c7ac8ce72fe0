//! One session of a node.

use std::collections::VecDeque;
use std::time::Duration;

use ::asp::message::{Body, Constraints};
use ::asp::state_machine::State;
use ::asp::{MessageId, Performative, SessionId};
use http::Method;
use seal::json::{Tape, write_object};

use super::connection::Connection;
use super::error::NodeError;
use super::view::{ConsentStatus, SessionMessage, SessionView, WaitingFor};
use super::{Node, object};

/// How long one request waits for a change. The node permits up to 5 minutes.
const POLL_TIME: Duration = Duration::from_mins(1);

/// One session with another agent.
///
/// ```
/// # testing::asp_example!(url, peer, {
/// # let node = sayso::asp::Node::connect(url).open()?;
/// let session = node.invite(&peer, "40 menus in braille").await?;
/// let view = session.view().await?;
/// assert_eq!((view.peer.as_str(), view.subject.as_str()), (peer.as_str(), "40 menus in braille"));
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct AspSession {
    pub(super) connection: Connection,
    id: SessionId,
    state: State,
    /// The number of messages that both sides have. They are never rolled back.
    settled: usize,
    /// The messages after the settled ones that the caller knows.
    known: Vec<MessageId>,
    /// The revision of the latest view, if it contained the latest message.
    revision: Option<u64>,
    /// Messages that [`Self::next_message`] has not returned yet.
    queue: VecDeque<SessionMessage>,
    is_over: bool,
}

/// The outcome of sending a message.
///
/// ```
/// use sayso::asp::message::Close;
/// use sayso::asp::{SendStatus, State};
/// # testing::asp_example!(url, peer, {
/// # let node = sayso::asp::Node::connect(url).open()?;
/// let session = node.invite(&peer, "40 menus in braille").await?;
/// let sent = session.send(Close::new("changed my mind")).await?;
/// assert!(matches!(sent, SendStatus::Sent { state: State::Closed, .. }));
/// # });
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendStatus {
    /// The message is stored, and the node delivers it.
    Sent {
        /// Its id.
        message_id: MessageId,
        /// Its number among the messages of this side.
        sequence_number: u64,
        /// The state of the session after it.
        state: State,
    },
    /// A person is asked first. The message is sent only after a yes; see [`AspSession::wait_for_consent`].
    AwaitingConsent {
        /// Identifies the question.
        reply_token: String,
    },
}

/// A message to send with [`AspSession::send_message`].
///
/// ```
/// use sayso::asp::NewMessage;
/// use sayso::asp::message::{Constraints, DurationMillis};
/// let mut constraints = Constraints::new();
/// constraints.max_response_time_ms = DurationMillis::new(60_000);
/// let query = r#"{"queryId":"qry_1","queryType":"question","subject":"When?"}"#;
/// let message = NewMessage::from_json(sayso::asp::Performative::Query, query).constraints(constraints).tokens_used(1200);
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is sent until the message is passed to `send_message`"]
pub struct NewMessage {
    performative: Performative,
    body: String,
    constraints: Option<Constraints>,
    tokens_used: Option<u64>,
}

impl NewMessage {
    /// Creates a message with this body.
    pub fn new(body: impl Into<Body>) -> Self {
        let body = body.into();
        Self::from_json(body.performative(), body.to_json())
    }

    /// Creates a message with a JSON object as its body.
    pub fn from_json(performative: Performative, body: impl Into<String>) -> Self {
        Self { performative, body: body.into(), constraints: None, tokens_used: None }
    }

    setters! {
        /// Sets constraints on the answer. A message about which a person is asked cannot have any.
        constraints(constraints: Constraints) => constraints = Some(constraints);

        /// States how many tokens the agent used for this message. `maxTokenBudget` of the message that it answers limits them.
        tokens_used(tokens: u64) => tokens_used = Some(tokens);
    }

    fn to_json(&self) -> Result<String, NodeError> {
        let body = object(&self.body, "the body")?;
        Ok(write_object(|writer| {
            writer.key("performative").text(self.performative.as_str());
            writer.key("body").raw(body);
            if let Some(constraints) = &self.constraints {
                writer.key("constraints").raw(&constraints.to_json());
            }
            if let Some(tokens) = self.tokens_used {
                writer.key("tokensUsed").raw(&tokens.to_string());
            }
        }))
    }
}

impl AspSession {
    pub(super) fn new(connection: Connection, id: SessionId) -> Self {
        Self {
            connection,
            id,
            state: State::Idle,
            settled: 0,
            known: Vec::new(),
            revision: None,
            queue: VecDeque::new(),
            is_over: false,
        }
    }

    /// Returns the id.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Returns the state as of the latest change that this value has seen.
    pub fn state(&self) -> State {
        self.state
    }

    /// Returns the session as it is now, with its first messages: at most 200 of them.
    pub async fn view(&self) -> Result<SessionView, NodeError> {
        self.fetch("", None).await
    }

    /// Returns the session as it is now, with its messages from this position on.
    pub async fn view_after(&self, position: usize) -> Result<SessionView, NodeError> {
        self.fetch(&format!("?after={position}"), None).await
    }

    /// Sends a message. The node fills in ids, links, proofs and the signature.
    pub async fn send(&self, body: impl Into<Body>) -> Result<SendStatus, NodeError> {
        self.send_message(&NewMessage::new(body)).await
    }

    /// Like [`Self::send`], with the body as a JSON object.
    pub async fn send_json(&self, performative: Performative, body: &str) -> Result<SendStatus, NodeError> {
        self.send_message(&NewMessage::from_json(performative, body)).await
    }

    /// Like [`Self::send`], with constraints on the answer, or with the number of tokens that the message used.
    pub async fn send_message(&self, message: &NewMessage) -> Result<SendStatus, NodeError> {
        let request = message.to_json()?;
        let path = format!("{}/messages", self.path());
        let (status, response) =
            self.connection.request_with_status(Method::POST, &path, Some(request), None).await?;
        parse_send_status(status, &response)
            .ok_or_else(|| NodeError::UnexpectedResponse("it has no message id".to_owned()))
    }

    /// Waits until the person has answered, and returns the outcome of the question.
    pub async fn wait_for_consent(&self, reply_token: &str) -> Result<ConsentStatus, NodeError> {
        let mut query = String::new();
        loop {
            let view = self.fetch(&query, Some(POLL_TIME)).await?;
            match view.consent {
                Some(consent) if consent.reply_token() != reply_token => {
                    return Err(NodeError::UnexpectedResponse("another question was asked since".to_owned()));
                }
                Some(consent) if !consent.is_pending() => return Ok(consent),
                Some(_) => {}
                None => return Err(NodeError::UnexpectedResponse("nobody was asked".to_owned())),
            }
            query = format!("?after={}&revision={}", view.message_count, view.revision);
        }
    }

    /// Waits until the peer has stored this side's messages or the node has given up. Returns the session as it is then.
    pub async fn wait_for_delivery(&self) -> Result<SessionView, NodeError> {
        let mut query = String::new();
        loop {
            let view = self.fetch(&query, Some(POLL_TIME)).await?;
            let is_waiting = view.unacknowledged > 0
                && matches!(view.waiting_for, WaitingFor::Delivery | WaitingFor::Person);
            if !is_waiting {
                return Ok(view);
            }
            query = format!("?after={}&revision={}", view.message_count, view.revision);
        }
    }

    /// Waits for the next message of either side. Returns `None` when the session has ended. The first call starts with the
    /// first message. A message from this side that lost a race against one from the peer can be followed by another one at
    /// the same position.
    pub async fn next_message(&mut self) -> Result<Option<SessionMessage>, NodeError> {
        loop {
            if let Some(message) = self.queue.pop_front() {
                return Ok(Some(message));
            }
            if self.is_over {
                return Ok(None);
            }
            let view = self.next_change().await?;
            self.queue.extend(view.messages);
        }
    }

    /// Waits for the next change: a message, another state, a person's answer, a delivery or a refusal. The messages in the
    /// view are those that this value has not returned before. The first call returns the session as it is now. After the end,
    /// returns the last view again.
    pub async fn next_change(&mut self) -> Result<SessionView, NodeError> {
        let revision = self.revision.map(|revision| format!("&revision={revision}")).unwrap_or_default();
        // Messages that the other side has not acknowledged are fetched again, because they can be rolled back.
        let after = self.settled;
        let mut view = self.fetch(&format!("?after={after}{revision}"), Some(POLL_TIME)).await?;
        let is_last_page = view.next >= view.message_count;
        let ids: Vec<_> = view.messages.iter().map(SessionMessage::id).collect();
        let known = std::mem::take(&mut self.known);
        if is_last_page {
            view.rolled_back = known.iter().filter(|id| !ids.contains(id)).copied().collect();
        }
        view.messages.retain(|message| !known.contains(&message.id()));
        self.settled = view.next.min(view.message_count.saturating_sub(view.unacknowledged)).max(after);
        self.known = ids.into_iter().skip(self.settled.saturating_sub(after)).collect();
        self.revision = is_last_page.then_some(view.revision);
        self.state = view.state;
        self.is_over = is_last_page && view.state.is_terminal();
        Ok(view)
    }

    /// Returns all messages exactly as they were sent, one per line, as `sayso asp verify` reads them.
    pub async fn transcript(&self) -> Result<String, NodeError> {
        self.connection.request(Method::GET, &format!("{}/transcript", self.path()), None, None).await
    }

    /// Returns the cards of both sides, one per line, as `sayso asp verify --cards` reads them.
    pub async fn cards(&self) -> Result<String, NodeError> {
        self.connection.request(Method::GET, &format!("{}/cards", self.path()), None, None).await
    }

    pub(super) fn path(&self) -> String {
        format!("/agent/v1/asp/sessions/{}", self.id)
    }

    async fn fetch(&self, query: &str, wait: Option<Duration>) -> Result<SessionView, NodeError> {
        let wait_text = match wait {
            Some(wait) if !query.is_empty() => format!("&wait={}", wait.as_secs()),
            _ => String::new(),
        };
        let path = format!("{}{query}{wait_text}", self.path());
        SessionView::parse(self.connection.request(Method::GET, &path, None, wait).await?)
    }
}

impl Node {
    /// Waits until a peer opens a session that is not among `known`, checking once per second, and returns it.
    pub async fn next_invitation(&self, known: &[SessionId]) -> Result<AspSession, NodeError> {
        loop {
            for summary in self.sessions().await? {
                if !summary.is_inviter && !known.contains(&summary.id) {
                    return Ok(AspSession::new(self.connection.clone(), summary.id));
                }
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

fn parse_send_status(status: u16, response: &str) -> Option<SendStatus> {
    let mut tape = Tape::default();
    let doc = tape.read(response).ok()?;
    let root = doc.root();
    let text = |name: &str| root.member(name).and_then(|value| value.text());
    if status == 202 {
        return Some(SendStatus::AwaitingConsent { reply_token: text("reply_token")?.into_owned() });
    }
    Some(SendStatus::Sent {
        message_id: MessageId::parse(&text("messageId")?).ok()?,
        sequence_number: root.member("sequenceNumber")?.source().parse().ok()?,
        state: State::parse(&text("state")?)?,
    })
}
