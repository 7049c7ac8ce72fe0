//! Requests to the hub, and what a turn returns.

use aaep::consent::{ConsentMessage, IgnoreReason};
use aaep::json::{Doc, SyntaxError, Tape, TapeWriter};
use aaep::message::{Message, SubscriptionRenegotiate, SubscriptionRequest};
use aaep::{ReplyToken, SessionId, SubscriptionId, UnixMillis};
use seal::Digest;
use serde::{Deserialize, Serialize};

use crate::delivery::Frame;
use crate::encoding::{millis, text_form, text_option};
pub use crate::reply::{
    ClosedItem, EndReason, HandoffOutcome, HandoffResult, HubReply, LimitReached, MalformedRequest,
    QuestionOutcome, ReplacedCallId, Unavailable,
};
use crate::{AgentConnectionId, DeliveryGroupId, ListenerId, Principal};

/// Identifies a request, so that the reply reaches its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RequestId(pub u64);

/// A command for the hub.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum HubCommand {
    /// A `subscription.request`.
    Subscribe {
        /// The message; `None` if it is malformed.
        #[serde(default, with = "text_option")]
        request: Option<Box<SubscriptionRequest>>,
    },
    /// Opens the replica of a subscription in a shard other than its home. Only the front of the shards sends this.
    AddSubscription {
        /// The `subscription.accepted` message of the home.
        accepted: String,
    },
    /// A connection starts to listen on a subscription.
    Attach {
        /// The subscription.
        #[serde(with = "text_form")]
        subscription: SubscriptionId,
        /// The last event that the client received, or its [`ResumeCursor`](crate::ResumeCursor).
        last_event_id: Option<String>,
        /// The connection.
        listener: ListenerId,
    },
    /// Like `Attach`, but replays every open session from its start.
    AttachFromStart {
        /// The subscription.
        #[serde(with = "text_form")]
        subscription: SubscriptionId,
        /// The connection.
        listener: ListenerId,
    },
    /// A connection stops listening.
    Detach {
        /// The connection.
        listener: ListenerId,
        /// Whether it was disconnected because it could not keep up.
        is_too_slow: bool,
    },
    /// The hub shuts down: every connection receives a `subscription.close`.
    ShutDown,
    /// Keeps the journal's main file unchanged, so that `sayso backup` can copy it. Only the hub's own process sends this.
    PauseCheckpoints,
    /// Ends the pause. The reply says whether the file stayed unchanged.
    ResumeCheckpoints,
    /// Replaces the set of valid tokens. Subscriptions with any other token are closed, and later requests with such a
    /// token are refused.
    SetValidTokens {
        /// The principals whose tokens are valid.
        principals: Vec<Principal>,
    },
    /// A browser has signed out. Closes the subscriptions that it opened or attached to.
    EndSignIn {
        /// The hash of the token that the browser signed in with.
        #[serde(with = "text_form")]
        token_digest: Digest,
        /// The id of the sign-in; `None` ends every sign-in with the token.
        id: Option<[u8; 16]>,
    },
    /// A message from a listener.
    SendMessage {
        /// The message.
        message: SubscriberMessage,
    },
    /// Like `SendMessage`, but over the connection of one subscription. A reply that names another subscription has no
    /// effect. The caller must check that other messages are about this subscription.
    SendMessageOnSubscription {
        /// The subscription.
        #[serde(with = "text_form")]
        subscription: SubscriptionId,
        /// The message.
        message: SubscriberMessage,
    },
    /// An agent starts a session.
    Start {
        /// The payload of `agent.session.started`, plus the members `producer`, `producers`, `parent` and
        /// `localization_hints`.
        body: RequestBody,
        /// The request's idempotency key.
        idempotency_key: Option<String>,
    },
    /// Like `Start`, for a session whose parent is in another shard. That shard has already checked it with `CheckParent`.
    /// Only the front of the shards sends this.
    StartWithForeignParent {
        /// The same as in `Start`.
        body: RequestBody,
        /// The request's idempotency key.
        idempotency_key: Option<String>,
    },
    /// Asks whether the sender may start a part of a session. The reply is `Done` if so. Only the front of the shards sends
    /// this.
    CheckParent {
        /// The parent session.
        #[serde(with = "text_form")]
        session: SessionId,
    },
    /// Asks for the stored reply to a request that started a session. The reply is `NotFound` if there is none. Only the
    /// front of the shards sends this.
    FindResponse {
        /// The body of the request.
        body: RequestBody,
        /// The request's idempotency key.
        idempotency_key: String,
    },
    /// An agent publishes its manifest.
    PublishManifest {
        /// The manifest as JSON, or as a compact JWS.
        document: String,
    },
    /// An agent withdraws its manifest.
    DeleteManifest,
    /// Stores the manifest of an agent as another shard has stored it, or deletes it. Only the front of the shards sends this.
    ReplicateManifest {
        /// The agent.
        agent: String,
        /// The manifest as JSON, or as a compact JWS.
        document: Option<String>,
    },
    /// An agent publishes events.
    Publish {
        /// The session.
        #[serde(with = "text_form")]
        session: SessionId,
        /// The events, with type, payload and optionally `producer`.
        events: Vec<RequestBody>,
        /// The request's idempotency key.
        idempotency_key: Option<String>,
    },
    /// An agent streams a part of its output, as the model produces it.
    StreamOutput {
        /// The session.
        #[serde(with = "text_form")]
        session: SessionId,
        /// The id of the output. If absent, the text belongs to the session's output without an id.
        output_id: Option<String>,
        /// The producer that writes. If absent, the session's main producer, or the one that the token joined as.
        producer: Option<String>,
        /// The text.
        text: String,
        /// The language of the text, if it differs from the session's.
        language: Option<String>,
        /// The media type; `text/plain` if absent.
        content_type: Option<String>,
        /// Where the text may be cut after this part; `none` if absent. A part that completes the output always has `completion`.
        coalesce_hint: Option<String>,
        /// Whether this part completes the output.
        complete: bool,
        /// Whether the agent itself reports its state after the output (`stays` in the agent API). If `false`, the hub
        /// sets the state to `thinking`.
        agent_reports_next_state: bool,
        /// The request's idempotency key.
        idempotency_key: Option<String>,
    },
    /// An agent asks a question.
    Ask {
        /// The session.
        #[serde(with = "text_form")]
        session: SessionId,
        /// The payload, plus the members `tool`, `arguments` and optionally `producer`.
        body: RequestBody,
        /// Whether the question is a clarification. Otherwise it is a confirmation.
        is_clarification: bool,
        /// The request's idempotency key.
        idempotency_key: Option<String>,
    },
    /// An agent asks somebody to take over.
    HandOff {
        /// The session.
        #[serde(with = "text_form")]
        session: SessionId,
        /// The payload, plus the member `timeout_seconds`.
        body: RequestBody,
        /// The request's idempotency key.
        idempotency_key: Option<String>,
    },
    /// The owner of a session invites another token to speak in it.
    Invite {
        /// The session.
        #[serde(with = "text_form")]
        session: SessionId,
        /// The member `producer`, and optionally `expires_in_seconds`.
        body: RequestBody,
        /// The request's idempotency key.
        idempotency_key: Option<String>,
    },
    /// A token joins a session that it was invited to.
    Join {
        /// The session.
        #[serde(with = "text_form")]
        session: SessionId,
        /// The member `invitation`, and optionally `producer`.
        body: RequestBody,
        /// The request's idempotency key.
        idempotency_key: Option<String>,
    },
    /// An agent waits for the answer to a question, or for the outcome of a hand-off.
    Wait {
        /// The session.
        #[serde(with = "text_form")]
        session: SessionId,
        /// The question.
        #[serde(with = "text_form")]
        token: ReplyToken,
        /// When the wait ends, in milliseconds since 1970.
        #[serde(with = "millis")]
        until: UnixMillis,
    },
    /// An agent withdraws a question. A confirmation is then rejected, and a clarification gets no answer. Has no effect
    /// if the question is already resolved.
    Withdraw {
        /// The session.
        #[serde(with = "text_form")]
        session: SessionId,
        /// The question.
        #[serde(with = "text_form")]
        token: ReplyToken,
    },
    /// Cancels a pending wait. There is no reply.
    CancelWait {
        /// The request that is waiting.
        request: RequestId,
    },
    /// A command on an agent's connection. From then on, the connection follows the command's session. A connection
    /// that follows a session keeps the session alive, and receives a notice when a question is resolved or the session
    /// ends.
    OnConnection {
        /// The connection.
        connection: AgentConnectionId,
        /// The command.
        command: Box<HubCommand>,
    },
    /// Follows a session and does nothing else. Valid only inside `OnConnection`.
    Follow {
        /// The session.
        #[serde(with = "text_form")]
        session: SessionId,
    },
    /// An agent's connection is closed. There is no reply.
    DisconnectAgent {
        /// The connection.
        connection: AgentConnectionId,
    },
}

impl HubCommand {
    /// Creates a `Subscribe` command; a message of another type counts as malformed.
    pub fn subscribe(message: Option<Message>) -> Self {
        let request = match message {
            Some(Message::SubscriptionRequest(request)) => Some(Box::new(request)),
            _ => None,
        };
        Self::Subscribe { request }
    }

    /// Returns the session that the command names.
    pub fn session(&self) -> Option<&SessionId> {
        match self {
            Self::Publish { session, .. }
            | Self::StreamOutput { session, .. }
            | Self::Ask { session, .. }
            | Self::HandOff { session, .. }
            | Self::Invite { session, .. }
            | Self::Join { session, .. }
            | Self::Wait { session, .. }
            | Self::Withdraw { session, .. }
            | Self::Follow { session }
            | Self::CheckParent { session } => Some(session),
            Self::OnConnection { command, .. } => command.session(),
            _ => None,
        }
    }

    /// Whether the command may be sent again if it is unknown whether it was performed: a second time has no effect, or an
    /// idempotency key prevents it.
    pub fn is_repeatable(&self) -> bool {
        match self {
            Self::Start { idempotency_key, .. }
            | Self::StartWithForeignParent { idempotency_key, .. }
            | Self::Publish { idempotency_key, .. }
            | Self::StreamOutput { idempotency_key, .. }
            | Self::Ask { idempotency_key, .. }
            | Self::HandOff { idempotency_key, .. }
            | Self::Invite { idempotency_key, .. }
            | Self::Join { idempotency_key, .. } => idempotency_key.is_some(),
            // A repeated answer has no effect. More time would be granted twice.
            Self::SendMessage { message } | Self::SendMessageOnSubscription { message, .. } => {
                match message {
                    SubscriberMessage::Consent(Ok(consent)) => consent.is_repeatable(),
                    SubscriberMessage::Consent(Err(_)) => true,
                    _ => false,
                }
            }
            Self::OnConnection { command, .. } => command.is_repeatable(),
            Self::Attach { .. }
            | Self::AttachFromStart { .. }
            | Self::EndSignIn { .. }
            | Self::CheckParent { .. }
            | Self::FindResponse { .. }
            | Self::PublishManifest { .. }
            | Self::DeleteManifest
            | Self::ReplicateManifest { .. }
            | Self::Wait { .. }
            | Self::Withdraw { .. }
            | Self::Follow { .. } => true,
            _ => false,
        }
    }

    /// Whether the sender expects a reply.
    pub fn expects_reply(&self) -> bool {
        !matches!(self, Self::Detach { .. } | Self::CancelWait { .. } | Self::DisconnectAgent { .. })
    }
}

/// The JSON body of an agent's request: text to parse, or a document that is already parsed into a tape.
#[derive(Clone)]
pub enum RequestBody {
    /// Text that has not been parsed.
    Text(String),
    /// A document with its tape; the hub does not parse it.
    Document(Box<TapeWriter>),
}

impl RequestBody {
    pub(crate) fn source(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Document(document) => document.source(),
        }
    }

    pub(crate) fn doc<'d>(&'d self, tape: &'d mut Tape) -> Result<Doc<'d>, SyntaxError> {
        match self {
            Self::Text(text) => tape.read(text),
            Self::Document(document) => document.doc(),
        }
    }
}

impl<T: Into<String>> From<T> for RequestBody {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}

impl std::fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.source().fmt(f)
    }
}

/// A subscriber's message after the handshake. It is parsed where it enters the process.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SubscriberMessage {
    /// Asks to change the subscription.
    Renegotiate(Box<SubscriptionRenegotiate>),
    /// Ends this subscription.
    Close(SubscriptionId),
    /// A reply, a request for more time, or a stop. `Err` says why the message is ignored.
    Consent(Result<Box<ConsentMessage>, IgnoreReason>),
}

impl SubscriberMessage {
    /// Parses a message.
    pub fn parse(text: &str) -> Self {
        Tape::default().read(text).map_or(Self::Consent(Err(IgnoreReason::NotJson)), |doc| Self::read(&doc))
    }

    /// Like [`parse`](Self::parse), for text that is already parsed.
    pub fn read(doc: &Doc<'_>) -> Self {
        match Message::read(doc) {
            Some(Message::SubscriptionRenegotiate(renegotiate)) => Self::Renegotiate(Box::new(renegotiate)),
            Some(Message::SubscriptionClose(close)) => Self::Close(close.subscription_id),
            _ => Self::Consent(ConsentMessage::read(doc).map(Box::new)),
        }
    }
}

/// A message to an agent's connection that is not a reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum AgentNotice {
    /// A question is resolved.
    QuestionResolved {
        /// The session.
        #[serde(with = "text_form")]
        session: SessionId,
        /// The question.
        #[serde(with = "text_form")]
        token: ReplyToken,
        /// How it was resolved.
        outcome: QuestionOutcome,
    },
    /// A hand-off is resolved.
    HandoffResolved {
        /// The session.
        #[serde(with = "text_form")]
        session: SessionId,
        /// The hand-off.
        #[serde(with = "text_form")]
        token: ReplyToken,
        /// How it was resolved.
        outcome: HandoffOutcome,
    },
    /// A session ended for a reason other than a command on this connection.
    SessionEnded {
        /// The session.
        #[serde(with = "text_form")]
        session: SessionId,
        /// Why it ended.
        reason: EndReason,
    },
}

/// One action for the caller of a turn to perform.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TurnOutput {
    /// The reply to a request.
    Reply(RequestId, HubReply),
    /// A notice for an agent's connection. Replies to requests of the same turn come before it.
    Notify(AgentConnectionId, AgentNotice),
    /// A frame for every listener of a delivery group.
    Frame(DeliveryGroupId, std::sync::Arc<Frame>),
    /// A listener joins a delivery group.
    Join {
        /// The listener.
        listener: ListenerId,
        /// The group.
        group: DeliveryGroupId,
        /// Frames for this listener only.
        private_frames: Vec<std::sync::Arc<Frame>>,
        /// The log position from which the client resumes if it disconnects before it has received an event id.
        resume_position: Option<u64>,
        /// For a listener of several shards: the id from which it resumes this shard, until it receives one from it.
        origin_id: Option<Box<str>>,
    },
    /// A listener moves to another delivery group.
    Move(ListenerId, DeliveryGroupId),
    /// A frame for one listener.
    Send(ListenerId, std::sync::Arc<Frame>),
    /// Closes the connection of a listener.
    Close(ListenerId),
    /// A log event for the operator.
    Log(crate::telemetry::LogEvent),
}

/// A command and its sender.
#[derive(Clone, Debug)]
pub struct Request {
    /// Identifies the request.
    pub id: RequestId,
    /// The sender.
    pub principal: Principal,
    /// The command.
    pub command: HubCommand,
}
