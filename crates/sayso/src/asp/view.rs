//! A node's view of a session.

use ::asp::message::{Authenticator, Body, Envelope};
use ::asp::state_machine::State;
use ::asp::{AgentUri, MessageId, Performative, SessionId};
use seal::Timestamp;
use seal::json::{JsonValue, Tape};

use super::error::NodeError;
use super::text;

/// A session as the node sees it.
///
/// ```
/// use sayso::asp::{State, WaitingFor};
/// # testing::asp_example!(url, peer, {
/// # let node = sayso::asp::Node::connect(url).open()?;
/// let session = node.invite(&peer, "40 menus in braille").await?;
/// let view = session.wait_for_delivery().await?;
/// assert_eq!((view.state, view.waiting_for), (State::Invited, WaitingFor::Peer));
/// # });
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionView {
    /// The session.
    pub id: SessionId,
    /// The other agent.
    pub peer: AgentUri,
    /// The name on the other agent's card. Text from another agent can contain anything.
    pub peer_name: String,
    /// Whether this side opened the session.
    pub is_inviter: bool,
    /// What the session is about, as the inviter wrote it.
    pub subject: String,
    /// The state.
    pub state: State,
    /// Who must do something next.
    pub waiting_for: WaitingFor,
    /// The node's own trust in the other agent, from 0 to 100.
    pub peer_trust_score: f64,
    /// The trust level, from 0 to 4.
    pub peer_trust_level: u8,
    /// The deadlines: which timer, and when it expires.
    pub deadlines: Vec<(String, Timestamp)>,
    /// The message that awaits a response within a time, if there is one.
    pub awaited_response: Option<AwaitedResponse>,
    /// The messages, in the order of the chain.
    pub messages: Vec<SessionMessage>,
    /// The position after the last message in this view.
    pub next: usize,
    /// The number of messages in the session.
    pub message_count: usize,
    /// The number of this side's messages that the peer has not acknowledged. They are the last ones.
    pub unacknowledged: usize,
    /// Messages of this side that were rolled back, because the peer refused them or its own message came first. Only
    /// [`AspSession::next_change`](super::AspSession::next_change) knows them.
    pub rolled_back: Vec<MessageId>,
    /// The outcome of the last question to a person.
    pub consent: Option<ConsentStatus>,
    /// Messages of this side that the peer or a person refused since the node started, the latest last.
    pub refusals: Vec<PeerRefusal>,
    /// How the session ended.
    pub outcome: Option<SessionOutcome>,
    pub(super) revision: u64,
    json: String,
}

/// Who must do something next.
///
/// ```
/// assert_ne!(sayso::asp::WaitingFor::Peer, sayso::asp::WaitingFor::You);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitingFor {
    /// This side.
    You,
    /// The other agent.
    Peer,
    /// Either side can act.
    Anyone,
    /// A person who was asked.
    Person,
    /// The delivery of this side's messages.
    Delivery,
    /// Nobody: the session has ended.
    Nothing,
}

/// The outcome of a question to a person.
///
/// ```
/// # fn show(status: &sayso::asp::ConsentStatus) {
/// if status.is_pending() {
///     println!("Somebody is asked about the {}.", status.performative());
/// }
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsentStatus {
    performative: String,
    reply_token: String,
    status: String,
    reason: Option<String>,
}

/// A message whose constraint `maxResponseTimeMs` demands a response within a time. Any message counts as the response.
///
/// ```
/// # fn show(view: &sayso::asp::SessionView) {
/// if let Some(awaited) = view.awaited_response.as_ref().filter(|awaited| awaited.is_overdue) {
///     println!("The answer to {} is late.", awaited.message_id);
/// }
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AwaitedResponse {
    /// The message.
    pub message_id: MessageId,
    /// Whether the peer must respond; otherwise this side must.
    pub is_from_peer: bool,
    /// When the response is or was due. `None` while the session is escalated, because its timers are paused then.
    pub due_at: Option<Timestamp>,
    /// Whether that time has passed.
    pub is_overdue: bool,
}

/// A message that the peer or a person refused.
///
/// ```
/// # fn show(refusal: &sayso::asp::PeerRefusal) {
/// println!("{} was refused: {}", refusal.performative, refusal.reason);
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerRefusal {
    /// The performative of the message.
    pub performative: String,
    /// The code, such as `stale_head`.
    pub code: String,
    /// The reason.
    pub reason: String,
}

/// How a session ended.
///
/// ```
/// use sayso::asp::message::Close;
/// # testing::asp_example!(url, peer, {
/// # let node = sayso::asp::Node::connect(url).open()?;
/// let session = node.invite(&peer, "40 menus in braille").await?;
/// session.send(Close::new("changed my mind")).await?;
/// let outcome = session.view().await?.outcome.unwrap();
/// assert_eq!((outcome.reason.as_str(), outcome.is_broken_by_peer), ("changed my mind", false));
/// # });
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionOutcome {
    /// The reason.
    pub reason: String,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The status of the last commitment, such as `fulfilled`.
    pub commitment_status: Option<String>,
    /// The outcome of each obligation.
    pub obligations: Vec<ObligationResult>,
    /// Whether this side broke the agreement.
    pub is_broken_by_this_side: bool,
    /// Whether the peer broke the agreement.
    pub is_broken_by_peer: bool,
}

/// The outcome of an obligation.
///
/// ```
/// # fn show(obligation: &sayso::asp::ObligationResult) {
/// println!("{}: {} ({})", obligation.party, obligation.action, obligation.outcome);
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObligationResult {
    /// The agent that had to do something.
    pub party: AgentUri,
    /// What it had to do.
    pub action: String,
    /// `kept`, `late`, `broken` or `open`.
    pub outcome: String,
}

/// One message of a session.
///
/// ```
/// # testing::asp_example!(url, peer, {
/// # let node = sayso::asp::Node::connect(url).open()?;
/// let mut session = node.invite(&peer, "40 menus in braille").await?;
/// let invitation = session.next_message().await?.unwrap();
/// assert_eq!(invitation.performative().as_str(), "PROPOSE");
/// assert!(!invitation.is_from(&peer));
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct SessionMessage {
    text: String,
    envelope: Envelope,
}

/// A session in a list.
///
/// ```
/// # testing::asp_example!(url, peer, {
/// # let node = sayso::asp::Node::connect(url).open()?;
/// node.invite(&peer, "40 menus in braille").await?;
/// let open = node.sessions().await?;
/// assert_eq!((open[0].subject.as_str(), open[0].is_inviter), ("40 menus in braille", true));
/// # });
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionSummary {
    /// The session.
    pub id: SessionId,
    /// The other agent.
    pub peer: AgentUri,
    /// The name on the other agent's card.
    pub peer_name: String,
    /// Whether this side opened the session.
    pub is_inviter: bool,
    /// What the session is about, as the inviter wrote it.
    pub subject: String,
    /// The state.
    pub state: State,
    /// The number of messages.
    pub message_count: usize,
    /// When it ended, if it has ended.
    pub ended_at: Option<Timestamp>,
}

impl SessionView {
    /// Returns the view as the JSON that the node sent.
    pub fn as_json(&self) -> &str {
        &self.json
    }

    pub(super) fn parse(json: String) -> Result<Self, NodeError> {
        let view = Self::parse_text(&json).ok_or_else(|| invalid("the session"))?;
        Ok(Self { json, ..view })
    }

    fn parse_text(json: &str) -> Option<Self> {
        let mut tape = Tape::default();
        let doc = tape.read(json).ok()?;
        let root = doc.root();
        let summary = SessionSummary::read(&root)?;
        let trust = root.member("peerTrust")?;
        let mut deadlines = Vec::new();
        for (timer, at) in root.member("deadlines")?.members() {
            deadlines.push((timer.text()?.into_owned(), Timestamp::parse_rfc3339(&at.text()?).ok()?));
        }
        let mut reader = Authenticator::default();
        let mut messages = Vec::new();
        for message in root.member("messages")?.items() {
            let text = message.source().to_owned();
            let envelope = reader.parse_unauthenticated(&text).ok()?;
            messages.push(SessionMessage { text, envelope });
        }
        Some(Self {
            id: summary.id,
            peer: summary.peer,
            peer_name: summary.peer_name,
            is_inviter: summary.is_inviter,
            subject: summary.subject,
            state: summary.state,
            waiting_for: WaitingFor::parse(&text(&root, "waitingFor")?)?,
            peer_trust_score: trust.member("score")?.source().parse().ok()?,
            peer_trust_level: trust.member("level")?.source().parse().ok()?,
            deadlines,
            awaited_response: root
                .member("awaitedResponse")
                .and_then(|awaited| AwaitedResponse::read(&awaited)),
            messages,
            next: count(&root, "next")?,
            message_count: summary.message_count,
            unacknowledged: count(&root, "unacknowledged")?,
            rolled_back: Vec::new(),
            consent: root.member("consent").and_then(|consent| ConsentStatus::read(&consent)),
            refusals: root.member("refusals")?.items().filter_map(|item| PeerRefusal::read(&item)).collect(),
            outcome: root
                .member("outcome")
                .and_then(|outcome| SessionOutcome::read(&outcome, summary.is_inviter)),
            revision: root.member("revision")?.source().parse().ok()?,
            json: String::new(),
        })
    }
}

impl SessionMessage {
    /// Returns the id.
    pub fn id(&self) -> MessageId {
        self.envelope.message_id
    }

    /// Returns the agent that sent the message.
    pub fn sender(&self) -> &AgentUri {
        &self.envelope.sender.agent_id
    }

    /// Returns whether this agent sent the message.
    pub fn is_from(&self, agent: &str) -> bool {
        self.sender().as_str() == agent
    }

    /// Returns the performative.
    pub fn performative(&self) -> Performative {
        self.envelope.performative()
    }

    /// Returns the body.
    pub fn body(&self) -> &Body {
        &self.envelope.body
    }

    /// Returns when the sender signed the message, by its own clock.
    pub fn timestamp(&self) -> &Timestamp {
        &self.envelope.timestamp
    }

    /// Returns the message exactly as it was sent. The node has checked its signature.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl ConsentStatus {
    /// Returns the performative of the message that the person was asked about.
    pub fn performative(&self) -> &str {
        &self.performative
    }

    /// Returns the token that [`SendStatus::AwaitingConsent`](super::SendStatus::AwaitingConsent) contains.
    pub fn reply_token(&self) -> &str {
        &self.reply_token
    }

    /// Returns whether the person has not answered yet.
    pub fn is_pending(&self) -> bool {
        self.status == "awaiting_consent"
    }

    /// Returns whether the person accepted, so that the message was sent.
    pub fn is_accepted(&self) -> bool {
        matches!(self.status.as_str(), "accepted" | "answered")
    }

    /// Returns why the message was not sent.
    pub fn refusal_reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    fn read(value: &JsonValue<'_>) -> Option<Self> {
        Some(Self {
            performative: text(value, "performative")?,
            reply_token: text(value, "reply_token")?,
            status: text(value, "status")?,
            reason: text(value, "reason"),
        })
    }
}

impl SessionOutcome {
    fn read(value: &JsonValue<'_>, is_inviter: bool) -> Option<Self> {
        let own_role = if is_inviter { "inviter" } else { "invited" };
        let broken_by: Vec<_> = value.member("brokenBy")?.items().filter_map(|role| role.text()).collect();
        Some(Self {
            reason: text(value, "reason")?,
            ended_at: text(value, "endedAt").and_then(|time| Timestamp::parse_rfc3339(&time).ok()),
            commitment_status: value.member("commitment").and_then(|commitment| text(&commitment, "status")),
            obligations: value
                .member("obligations")?
                .items()
                .filter_map(|item| ObligationResult::read(&item))
                .collect(),
            is_broken_by_this_side: broken_by.iter().any(|role| role == own_role),
            is_broken_by_peer: broken_by.iter().any(|role| role != own_role),
        })
    }
}

impl AwaitedResponse {
    fn read(value: &JsonValue<'_>) -> Option<Self> {
        Some(Self {
            message_id: MessageId::parse(&text(value, "messageId")?).ok()?,
            is_from_peer: text(value, "from")? == "peer",
            due_at: text(value, "dueAt").and_then(|time| Timestamp::parse_rfc3339(&time).ok()),
            is_overdue: value.member("isOverdue")?.source() == "true",
        })
    }
}

impl ObligationResult {
    fn read(value: &JsonValue<'_>) -> Option<Self> {
        Some(Self {
            party: AgentUri::parse(&text(value, "party")?).ok()?,
            action: text(value, "action")?,
            outcome: text(value, "outcome")?,
        })
    }
}

impl PeerRefusal {
    fn read(value: &JsonValue<'_>) -> Option<Self> {
        Some(Self {
            performative: text(value, "performative")?,
            code: text(value, "code")?,
            reason: text(value, "reason")?,
        })
    }
}

impl SessionSummary {
    pub(super) fn parse_list(json: &str) -> Result<Vec<Self>, NodeError> {
        let mut tape = Tape::default();
        let sessions = tape.read(json).ok().and_then(|doc| {
            let sessions = doc.root().member("sessions")?;
            sessions.items().map(|session| Self::read(&session)).collect()
        });
        sessions.ok_or_else(|| invalid("the list of sessions"))
    }

    fn read(value: &JsonValue<'_>) -> Option<Self> {
        Some(Self {
            id: SessionId::parse(&text(value, "sessionId")?).ok()?,
            peer: AgentUri::parse(&text(value, "peer")?).ok()?,
            peer_name: text(value, "peerName")?,
            is_inviter: text(value, "role")? == "inviter",
            subject: text(value, "subject")?,
            state: State::parse(&text(value, "state")?)?,
            message_count: count(value, "messageCount")?,
            ended_at: text(value, "endedAt").and_then(|time| Timestamp::parse_rfc3339(&time).ok()),
        })
    }
}

impl WaitingFor {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "you" => Self::You,
            "peer" => Self::Peer,
            "anyone" => Self::Anyone,
            "person" => Self::Person,
            "delivery" => Self::Delivery,
            "nothing" => Self::Nothing,
            _ => return None,
        })
    }
}

fn count(value: &JsonValue<'_>, name: &str) -> Option<usize> {
    value.member(name)?.source().parse().ok()
}

fn invalid(what: &str) -> NodeError {
    NodeError::UnexpectedResponse(format!("{what} cannot be read"))
}
