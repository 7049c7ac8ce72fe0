//! The hub's replies, and their JSON form.
//!
//! The JSON form is defined here and not in `wire`, because the journal stores it. A request that is repeated with its
//! idempotency key gets the same text again, even from a later version of the hub. Only `HubReply::from_journal` and
//! `core::restore` parse the JSON form.

use std::fmt;
use std::sync::Arc;

use aaep::consent::{ActionError, AskError, QuestionAnswer, Receipt, Resolution, ResolvedBy};
use aaep::event::{AgentState, Decision, InvalidStates};
use aaep::json::{JsonValue, JsonWriter, SyntaxError, Tape};
use aaep::manifest::ManifestError;
use aaep::message::{ClarificationResponse, Message, SubscriptionAccepted, SubscriptionRejected};
use aaep::rule::Finding;
use aaep::{ReplyToken, SessionId, Timestamp, ToolCallId, UnixMillis};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::compose::InvalidEvent;
use crate::encoding::{error_as_text, findings, millis, text_form};

/// The hub's reply to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum HubReply {
    /// The subscription is open.
    Subscribed {
        /// The `subscription.accepted` message.
        #[serde(with = "text_form")]
        accepted: Box<SubscriptionAccepted>,
        /// Whether the hub sends resume positions, on transports that do not send an id with each event.
        sends_resume_positions: bool,
    },
    /// The subscription has new terms.
    Renegotiated(#[serde(with = "text_form")] Box<SubscriptionAccepted>),
    /// The subscription is rejected.
    SubscriptionRejected(#[serde(with = "text_form")] Box<SubscriptionRejected>),
    /// The request is done, and there is nothing to return.
    Done,
    /// The session has started.
    SessionStarted {
        /// Its id.
        #[serde(with = "text_form")]
        session_id: SessionId,
    },
    /// The manifest is published.
    ManifestPublished {
        /// The agent.
        agent_id: Arc<str>,
        /// The address of the manifest, if the hub knows its own address.
        manifest_uri: Option<String>,
        /// Whether it is signed with a key that the operator trusts.
        is_verified: bool,
    },
    /// Another token may join the session.
    InvitationCreated {
        /// The session.
        #[serde(with = "text_form")]
        session_id: SessionId,
        /// The producer that the token will speak as.
        producer: Box<str>,
        /// The secret that permits one token to join.
        secret: Box<str>,
        /// When the invitation expires.
        #[serde(with = "millis")]
        expires_at: UnixMillis,
    },
    /// The token may speak in the session.
    SessionJoined {
        /// The session.
        #[serde(with = "text_form")]
        session_id: SessionId,
        /// The producer that the token speaks as.
        producer: Box<str>,
    },
    /// The connection now follows the session.
    SessionFollowed {
        /// Its id.
        #[serde(with = "text_form")]
        session_id: SessionId,
        /// Its current state.
        #[serde(with = "text_form")]
        state: AgentState,
    },
    /// The events are stored.
    EventsPublished {
        /// Their ids, in the order of the request.
        event_ids: Vec<Arc<str>>,
        /// The call ids of the request that AAEP does not allow.
        replaced_call_ids: Vec<ReplacedCallId>,
        /// The items that the hub closed because an event of the request ended the session.
        closed: Vec<ClosedItem>,
    },
    /// The question is open.
    QuestionOpened {
        /// The token that identifies the question.
        #[serde(with = "text_form")]
        reply_token: ReplyToken,
        /// When the question expires.
        #[serde(with = "millis")]
        deadline: UnixMillis,
    },
    /// The question is still open.
    QuestionPending,
    /// The question is resolved.
    QuestionResolved(QuestionOutcome),
    /// The hand-off is resolved.
    HandoffResolved(HandoffOutcome),
    /// The request breaks rules; nothing was applied.
    RuleViolations(#[serde(with = "findings")] Vec<Finding>),
    /// The request is malformed.
    Malformed(MalformedRequest),
    /// The requested session or subscription does not exist, or it belongs to another principal. Both cases look the
    /// same, so that nobody learns about other principals' sessions.
    NotFound,
    /// The invitation does not exist, is used up or expired, or is for another agent. All cases look the same.
    InvitationNotFound,
    /// The principal's own session has ended.
    SessionEnded,
    /// The principal's own session has no such question.
    QuestionNotFound,
    /// The principal is not allowed to do this.
    Forbidden,
    /// The idempotency key was already used with another request.
    Conflict,
    /// A limit is reached.
    LimitReached(LimitReached),
    /// The hub cannot serve the request now; nothing was applied.
    Unavailable(Unavailable),
}

impl HubReply {
    /// Returns the reply as JSON; `None` for failures and for replies without a body.
    pub fn to_json(&self) -> Option<String> {
        let mut writer = JsonWriter::default();
        writer.open_object();
        match self {
            Self::Subscribed { accepted, .. } | Self::Renegotiated(accepted) => {
                return Some(Message::SubscriptionAccepted((**accepted).clone()).to_json());
            }
            Self::SubscriptionRejected(rejected) => {
                return Some(Message::SubscriptionRejected((**rejected).clone()).to_json());
            }
            Self::SessionStarted { session_id } => write_text(&mut writer, "session_id", session_id.as_str()),
            Self::ManifestPublished { agent_id, manifest_uri, is_verified } => {
                write_text(&mut writer, "agent_id", agent_id);
                if let Some(uri) = manifest_uri {
                    write_text(&mut writer, "manifest_uri", uri);
                }
                writer.key("verified");
                writer.boolean(*is_verified);
            }
            Self::InvitationCreated { session_id, producer, secret, expires_at } => {
                write_text(&mut writer, "session_id", session_id.as_str());
                write_text(&mut writer, "producer", producer);
                write_text(&mut writer, "invitation", secret);
                let expires_at = Timestamp::from_unix_millis(*expires_at).map(|at| at.to_string());
                write_text(&mut writer, "expires_at", &expires_at.unwrap_or_default());
            }
            Self::SessionJoined { session_id, producer } => {
                write_text(&mut writer, "session_id", session_id.as_str());
                write_text(&mut writer, "producer", producer);
            }
            Self::SessionFollowed { session_id, state } => {
                write_text(&mut writer, "session_id", session_id.as_str());
                write_text(&mut writer, "state", state.as_str());
            }
            Self::EventsPublished { event_ids, replaced_call_ids, closed } => {
                writer.key("event_ids").array(|writer| {
                    for id in event_ids {
                        writer.text(id);
                    }
                });
                if !replaced_call_ids.is_empty() {
                    writer.key("tool_call_ids").object(|writer| {
                        for replaced in replaced_call_ids {
                            write_text(writer, &replaced.given, replaced.id.as_str());
                        }
                    });
                }
                if !closed.is_empty() {
                    writer.key("closed").array(|writer| {
                        for item in closed {
                            writer.object(|writer| item.write(writer));
                        }
                    });
                }
            }
            Self::QuestionOpened { reply_token, deadline } => {
                write_text(&mut writer, "reply_token", reply_token.as_str());
                let deadline = Timestamp::from_unix_millis(*deadline).map(|at| at.to_string());
                write_text(&mut writer, "deadline", &deadline.unwrap_or_default());
            }
            Self::QuestionPending => write_text(&mut writer, "status", "pending"),
            Self::QuestionResolved(outcome) => outcome.write(&mut writer),
            Self::HandoffResolved(outcome) => outcome.write(&mut writer),
            _ => return None,
        }
        writer.close_object();
        Some(writer.finish())
    }

    /// Reads the reply that the journal stored for an idempotency key.
    pub(crate) fn from_journal(json: &[u8]) -> Option<Self> {
        let mut tape = Tape::default();
        let doc = tape.read(std::str::from_utf8(json).ok()?).ok()?;
        let root = doc.root();
        if let Some(ids) = root.member("event_ids") {
            let event_ids = ids.items().map(|id| Some(Arc::from(&*id.text()?))).collect::<Option<_>>()?;
            let replaced = |(given, id): (JsonValue<'_>, JsonValue<'_>)| {
                Some(ReplacedCallId {
                    given: given.text()?.as_ref().into(),
                    id: ToolCallId::parse(&id.text()?).ok()?,
                })
            };
            let call_ids = root.member("tool_call_ids");
            let closed = root.member("closed");
            return Some(Self::EventsPublished {
                event_ids,
                replaced_call_ids: call_ids
                    .iter()
                    .flat_map(JsonValue::members)
                    .map(replaced)
                    .collect::<Option<_>>()?,
                closed: closed
                    .iter()
                    .flat_map(JsonValue::items)
                    .map(|item| ClosedItem::read(&item))
                    .collect::<Option<_>>()?,
            });
        }
        if let Some(token) = root.member("reply_token") {
            let deadline = Timestamp::parse(&root.member("deadline")?.text()?);
            // Times beyond the year 9999 have no text form.
            let deadline = deadline.map_or(UnixMillis::MAX, |at| at.unix_millis());
            return Some(Self::QuestionOpened {
                reply_token: ReplyToken::parse(&token.text()?).ok()?,
                deadline,
            });
        }
        let session_id = SessionId::parse(&root.member("session_id")?.text()?).ok()?;
        let Some(producer) = root.member("producer") else {
            return Some(Self::SessionStarted { session_id });
        };
        let producer = producer.text()?.as_ref().into();
        Some(match root.member("invitation") {
            None => Self::SessionJoined { session_id, producer },
            Some(secret) => {
                let expires_at = Timestamp::parse(&root.member("expires_at")?.text()?);
                Self::InvitationCreated {
                    session_id,
                    producer,
                    secret: secret.text()?.as_ref().into(),
                    expires_at: expires_at.map_or(UnixMillis::MAX, |at| at.unix_millis()),
                }
            }
        })
    }
}

/// A call id that AAEP does not allow, and the id that replaces it in events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplacedCallId {
    /// The id that the agent uses.
    pub given: Box<str>,
    /// The id in events.
    #[serde(with = "text_form")]
    pub id: ToolCallId,
}

/// A tool call or an output that was still open when the agent ended its session. The hub closed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClosedItem {
    /// A tool call.
    Tool {
        /// The tool.
        tool: Box<str>,
        /// The call's id in events, if it has one.
        call_id: Option<Box<str>>,
        /// The event that closed it.
        event_id: Arc<str>,
    },
    /// An output.
    Output {
        /// The output's id, if it has one.
        output_id: Option<Box<str>>,
        /// The event that closed it.
        event_id: Arc<str>,
    },
}

impl ClosedItem {
    fn write(&self, writer: &mut JsonWriter) {
        let (kind, members, event_id) = match self {
            Self::Tool { tool, call_id, event_id } => {
                ("tool", [("tool", Some(tool)), ("tool_call_id", call_id.as_ref())], event_id)
            }
            Self::Output { output_id, event_id } => {
                ("output", [("output_id", output_id.as_ref()), ("", None)], event_id)
            }
        };
        write_text(writer, "kind", kind);
        for (name, value) in members {
            if let Some(value) = value {
                write_text(writer, name, value);
            }
        }
        write_text(writer, "event_id", event_id);
    }

    fn read(item: &JsonValue<'_>) -> Option<Self> {
        let text = |name| item.member(name).and_then(|value| value.text());
        let boxed = |name| text(name).map(|text| text.as_ref().into());
        let event_id = Arc::from(&*text("event_id")?);
        match &*text("kind")? {
            "tool" => Some(Self::Tool { tool: boxed("tool")?, call_id: boxed("tool_call_id"), event_id }),
            "output" => Some(Self::Output { output_id: boxed("output_id"), event_id }),
            _ => None,
        }
    }
}

/// A voided consent is recorded in the ledger as spent. This text is stored instead of the call.
pub(crate) const VOID_CALL: &str = "void";

/// How a question was resolved, for its agent.
#[derive(Clone, Debug, PartialEq)]
pub struct QuestionOutcome {
    /// The answer that counts.
    pub answer: QuestionAnswer,
    /// What resolved the question.
    pub by: ResolvedBy,
    /// The receipt without the replier's subscription, which agents must not know. `None` if the consent was voided, or
    /// if the journal holds the receipt in a format that this version cannot read.
    pub receipt: Option<Arc<Receipt>>,
    /// The hub's signature over the canonical text of `receipt`: a detached JWS. The hub's thread leaves it empty, because
    /// signing takes longer than the rest of the turn. `wire` adds it where the outcome leaves the hub, if the hub has a key.
    pub receipt_signature: Option<Arc<str>>,
}

impl QuestionOutcome {
    /// Creates the outcome of a resolution.
    pub(crate) fn from_resolution(resolution: &Resolution) -> Self {
        Self {
            answer: resolution.answer.clone(),
            by: resolution.resolved_by,
            receipt: Some(Arc::new(resolution.receipt().without_subscription())),
            receipt_signature: None,
        }
    }

    /// Creates the outcome of a stored decision. A decision with an unreadable receipt counts as a rejection. So does one
    /// that was voided because the journal was restored from a backup: the agent must ask again.
    pub(crate) fn from_stored(decision: &journal::stored::StoredDecision) -> Self {
        let is_void = decision.spent_on.as_ref().is_some_and(|spent| spent.call == VOID_CALL.as_bytes());
        if is_void {
            let answer = QuestionAnswer::Decision(Decision::Reject);
            return Self { answer, by: ResolvedBy::Cancelled, receipt: None, receipt_signature: None };
        }
        let receipt = std::str::from_utf8(&decision.receipt).ok().and_then(Receipt::parse);
        match receipt {
            Some(receipt) => Self {
                answer: receipt.resolution().answer.clone(),
                by: receipt.resolution().resolved_by,
                receipt: Some(Arc::new(receipt.without_subscription())),
                receipt_signature: None,
            },
            None => Self {
                answer: QuestionAnswer::Decision(Decision::Reject),
                by: ResolvedBy::parse(&decision.decided_by).unwrap_or(ResolvedBy::Cancelled),
                receipt: None,
                receipt_signature: None,
            },
        }
    }

    /// Whether the question was closed because the person stopped the session. A stored decision without a readable
    /// receipt counts as a rejection, so it is never reported as a stop.
    pub fn is_stopped(&self) -> bool {
        self.receipt.is_some() && self.by == ResolvedBy::Stopped
    }

    /// Writes the members into an open object.
    pub fn write(&self, writer: &mut JsonWriter) {
        write_text(writer, "status", if self.is_stopped() { "stopped" } else { "resolved" });
        match &self.answer {
            QuestionAnswer::Decision(_) => write_text(writer, "decision", answer_code(&self.answer)),
            QuestionAnswer::Response(ClarificationResponse::Text(text)) => {
                write_text(writer, "response", text);
            }
            QuestionAnswer::Response(ClarificationResponse::YesNo(yes)) => {
                writer.key("response");
                writer.boolean(*yes);
            }
            QuestionAnswer::Response(ClarificationResponse::Number(number)) => {
                writer.key("response");
                writer.raw(seal::format_number(*number).as_deref().unwrap_or("null"));
            }
            _ => {}
        }
        write_text(writer, "by", self.by.as_str());
        if let Some(receipt) = &self.receipt {
            writer.key("receipt");
            writer.raw(receipt.to_json());
        }
        if let Some(signature) = &self.receipt_signature {
            write_text(writer, "receipt_signature", signature);
        }
    }
}

seal::string_enum! {
    /// How a hand-off was resolved.
    HandoffResult {
        /// Somebody took over.
        Acknowledged "acknowledged",
        /// Somebody who could take over refused.
        Rejected "rejected",
        /// Nobody answered in time.
        Timeout "timeout",
        /// There was nobody who could take over.
        Unreachable "unreachable",
        /// The agent withdrew it, its session ended, or the hub was restored from a backup.
        Withdrawn "withdrawn",
    }
}

/// The outcome of a hand-off, for its agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandoffOutcome {
    /// How it was resolved.
    #[serde(with = "text_form")]
    pub result: HandoffResult,
    /// A message from the person who answered.
    pub note: Option<String>,
    /// The name of the token that answered.
    pub principal: Option<Arc<str>>,
}

impl HandoffOutcome {
    /// Creates the outcome of a hand-off that nobody answered.
    pub(crate) fn of(result: HandoffResult) -> Self {
        Self { result, note: None, principal: None }
    }

    /// Writes the members into an open object.
    pub fn write(&self, writer: &mut JsonWriter) {
        write_text(writer, "status", "resolved");
        write_text(writer, "outcome", self.result.as_str());
        if let Some(note) = &self.note {
            write_text(writer, "note", note);
        }
        if let Some(principal) = &self.principal {
            write_text(writer, "principal", principal);
        }
    }

    /// Returns the form that the journal stores.
    pub(crate) fn to_journal(&self) -> String {
        let mut writer = JsonWriter::default();
        writer.object(|writer| self.write(writer));
        writer.finish()
    }

    /// Reads the form that the journal stores.
    pub(crate) fn from_journal(json: &str) -> Option<Self> {
        let mut tape = Tape::default();
        let doc = tape.read(json).ok()?;
        let text = |name| doc.root().member(name).and_then(|value| value.text());
        Some(Self {
            result: HandoffResult::parse(&text("outcome")?)?,
            note: text("note").map(std::borrow::Cow::into_owned),
            principal: text("principal").map(|name| Arc::from(&*name)),
        })
    }
}

/// Returns the code of an answer in the ledger. The codes of decisions are also sent to agents and listeners.
pub(crate) fn answer_code(answer: &QuestionAnswer) -> &'static str {
    match answer {
        QuestionAnswer::Decision(Decision::Accept) => "accept",
        QuestionAnswer::Decision(_) => "reject",
        QuestionAnswer::Response(_) => "answered",
        _ => "unavailable",
    }
}

fn write_text(writer: &mut JsonWriter, name: &str, value: &str) {
    writer.key(name);
    writer.text(value);
}

/// Why a request is malformed.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum MalformedRequest {
    /// The body is not JSON.
    #[error("the body is not JSON: {0}")]
    InvalidJson(#[source] SyntaxError),
    /// The body is not an event that an agent may publish.
    #[error(transparent)]
    InvalidEvent(InvalidEvent),
    /// The event has an unknown type, or its payload does not fit its type.
    #[error("the event has an unknown type or an invalid payload")]
    UnknownEvent,
    /// The event is a question. Nobody could answer a question that is published as an event.
    #[error(
        "a question cannot be published as an event; send it to the session's route confirmations or clarifications"
    )]
    QuestionPublished,
    /// No digest can be computed for the call in a question or an event.
    #[error("{0}")]
    InvalidAction(ActionError),
    /// The request has this member, but no tool.
    #[error("a request with {member} must also name the tool{}", suggest_instead("tool", misspelled.as_deref()))]
    NoTool {
        /// The member that needs a tool.
        member: &'static str,
        /// The member that is probably meant to be the tool.
        misspelled: Option<String>,
    },
    /// One event of several is malformed.
    #[error("event {number} of {count}: {reason}")]
    EventOfBatch {
        /// The number of the event, from 1.
        number: usize,
        /// The number of events in the request.
        count: usize,
        /// Why it is malformed.
        reason: Box<MalformedRequest>,
    },
    /// The `tool_call_id` of a question is not an id.
    #[error("tool_call_id must be a non-empty string, or a number")]
    InvalidCallId,
    /// The request has this member twice.
    #[error("{0} is given twice")]
    DuplicateMember(&'static str),
    /// The arguments are too long for a person to listen to.
    #[error("the arguments are too long for a person to listen to; they may have at most {max} bytes")]
    ArgumentsTooLong {
        /// Maximum size in bytes.
        max: usize,
    },
    /// The idempotency key is too long.
    #[error("an idempotency key may have at most {max} characters")]
    IdempotencyKeyTooLong {
        /// Maximum number of characters.
        max: usize,
    },
    /// The events of the request are too large with their envelopes.
    #[error(
        "the events of a request may have at most {max} bytes with their envelopes; send fewer events at a time"
    )]
    ComposedTooLarge {
        /// Maximum size in bytes.
        max: usize,
    },
    /// A name or a value in an object that is copied into every event is too long.
    #[error("every name and every value in {object} may have at most {max} characters")]
    SharedMemberTooLong {
        /// The object.
        object: &'static str,
        /// Maximum number of characters.
        max: usize,
    },
    /// An object that is copied into every event is too large.
    #[error("{object} may have at most {max} bytes")]
    SharedObjectTooLarge {
        /// The object.
        object: &'static str,
        /// Maximum size in bytes.
        max: usize,
    },
    /// The request has no events, or too many.
    #[error("a request must have 1 to {max} events")]
    EventCount {
        /// Maximum number of events in a request.
        max: usize,
    },
    /// The body that starts a session is not an object.
    #[error("the body must be a JSON object")]
    SessionNotObject,
    /// The question is not an object.
    #[error("the question must be a JSON object")]
    QuestionNotObject,
    /// The producer is not an object, or it names another agent.
    #[error("producer must be an object, and its agent_id must be the token's")]
    InvalidProducer,
    /// The states that the author defines are invalid.
    #[error(transparent)]
    InvalidStates(InvalidStates),
    /// The hand-off is not an object.
    #[error("the hand-off must be a JSON object")]
    HandoffNotObject,
    /// The time for a hand-off is not a number, or too long.
    #[error("timeout_seconds of a hand-off must be a whole number from 1 to {max_seconds}")]
    HandoffTimeout {
        /// The longest time in seconds.
        max_seconds: i64,
    },
    /// The context of a hand-off is too large.
    #[error("packaged_context may have at most {max} bytes")]
    HandoffContextTooLarge {
        /// Maximum size in bytes.
        max: usize,
    },
    /// The document is not a valid manifest, or its signature is not trusted.
    #[error("the manifest {0}")]
    InvalidManifest(Box<ManifestError>),
    /// The manifest is too large.
    #[error("a manifest may have at most {max} bytes")]
    ManifestTooLarge {
        /// Maximum size in bytes.
        max: usize,
    },
    /// The manifest and the token name different agents.
    #[error("the agent_id of the manifest must be the token's")]
    ManifestOfOtherAgent,
    /// The operator has configured a manifest for the agent.
    #[error("the operator of the hub has set the manifest of this agent")]
    ManifestConfigured,
    /// The agent's name in the manifest cannot be used.
    #[error("the agent_name of the manifest must have a visible character and at most {max} characters")]
    ManifestName {
        /// Maximum number of characters.
        max: usize,
    },
    /// The session would have too many producers.
    #[error("a session may have at most {max} producers")]
    TooManyProducers {
        /// The limit.
        max: usize,
    },
    /// The request to join a session has no invitation.
    #[error("invitation is required; it is a string that starts with inv_")]
    NoInvitation,
    /// The lifetime of an invitation is not a number of seconds.
    #[error("expires_in_seconds must be a whole number above 0")]
    InvalidLifetime,
    /// The lease of a session is not a number of seconds.
    #[error("lease_seconds must be a whole number above 0")]
    InvalidLease,
    /// The parent of a session is not a session id.
    #[error("parent must be the id of a session")]
    InvalidParent,
    /// The question is invalid.
    #[error("{0}")]
    InvalidQuestion(AskError),
    /// A part of an output has no text and does not complete the output.
    #[error("text is empty; send text, or set complete to true")]
    NoText,
    /// The message is not a `subscription.request`.
    #[error("the message is not a subscription.request")]
    NotSubscriptionRequest,
    /// An [`OnConnection`](crate::command::HubCommand::OnConnection) command contains another one.
    #[error("OnConnection commands cannot be nested")]
    NestedConnection,
    /// The reason, as another node of the cluster states it.
    #[error("{0}")]
    Forwarded(String),
}

fn suggest_instead(known: &str, misspelled: Option<&str>) -> String {
    misspelled.map(|name| format!("; did you mean {known} instead of {name:?}?")).unwrap_or_default()
}

/// The limit that a request would exceed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LimitReached {
    /// Open sessions.
    #[error("too many sessions are open; try again later")]
    Sessions,
    /// Open sessions of one token.
    #[error("a token may have at most {max} open sessions; end one of them first")]
    SessionsPerPrincipal {
        /// The limit.
        max: usize,
    },
    /// Bytes that one token publishes, per minute.
    #[error("a token may publish at most {max} bytes in a minute; nothing was published, try again later")]
    BytesPerMinute {
        /// The limit.
        max: usize,
    },
    /// Open subscriptions.
    #[error("too many subscriptions are open; try again later")]
    Subscriptions,
    /// Questions from one agent to one person, per minute.
    #[error(
        "an agent may ask a person at most {max} questions in a minute; the question was not asked, try again later"
    )]
    QuestionsPerMinute {
        /// The limit.
        max: usize,
    },
    /// Questions from all agents to one person, per minute.
    #[error(
        "all agents together may ask a person at most {max} questions in a minute; the question was not asked, try again later"
    )]
    TotalQuestionsPerMinute {
        /// The limit.
        max: usize,
    },
    /// Critical events of one agent for one person, per minute.
    #[error(
        "an agent may publish at most {max} critical events in a minute; nothing was published, try again later"
    )]
    CriticalsPerMinute {
        /// The limit.
        max: usize,
    },
    /// Critical events of all agents for one person, per minute.
    #[error(
        "all agents together may publish at most {max} critical events for a person in a minute; nothing was published, try again later"
    )]
    TotalCriticalsPerMinute {
        /// The limit.
        max: usize,
    },
    /// Open questions.
    #[error("{0}")]
    Questions(AskError),
    /// Pending waits of one principal.
    #[error("too many requests with this token are waiting for an answer; wait until one of them has ended")]
    Waits,
    /// Open hand-offs of one session.
    #[error("the session already has an open hand-off; wait for its outcome, or withdraw it")]
    HandoffsPerSession,
    /// Open hand-offs of one agent.
    #[error("an agent may have at most {max} open hand-offs; wait for the outcome of one of them")]
    HandoffsPerAgent {
        /// The limit.
        max: usize,
    },
    /// Open hand-offs.
    #[error("too many hand-offs are open; try again later")]
    Handoffs,
    /// Manifests that agents publish.
    #[error("the hub publishes at most {max} manifests of agents")]
    Manifests {
        /// The limit.
        max: usize,
    },
    /// Agent connections that follow one session.
    #[error("too many connections follow this session; close one of them first")]
    Followers,
    /// The reason, as another node of the cluster states it.
    #[error("{0}")]
    Forwarded(String),
}

/// Why the hub cannot serve the request now.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// The state could not be rebuilt after a failed write.
    #[error("the journal cannot be read: {0}")]
    RebuildFailed(#[source] Arc<journal::JournalError>),
    /// The turn could not be written.
    #[error("the request could not be stored: {0}")]
    WriteFailed(#[source] Arc<journal::JournalError>),
    /// The journal could not be read.
    #[error("{0}")]
    ReadFailed(#[source] Arc<journal::JournalError>),
    /// The hub is shutting down.
    #[error("the hub is shutting down")]
    Stopping,
    /// No node of the cluster serves the shard at the moment, or it cannot be reached. Nothing was applied.
    #[error("no node of the cluster can serve this request at the moment; nothing was applied, try again")]
    NoOwner,
    /// The node that served the shard was lost before it replied.
    #[error("the node of the cluster that served this request was lost; the request may have been applied")]
    OutcomeUnknown,
    /// The reason, as another node of the cluster states it.
    #[error("{0}")]
    Forwarded(String),
}

error_as_text!(MalformedRequest, LimitReached, Unavailable);

impl PartialEq for Unavailable {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl From<journal::JournalError> for HubReply {
    fn from(error: journal::JournalError) -> Self {
        Self::Unavailable(Unavailable::ReadFailed(Arc::new(error)))
    }
}

impl From<SyntaxError> for HubReply {
    fn from(error: SyntaxError) -> Self {
        Self::Malformed(MalformedRequest::InvalidJson(error))
    }
}

impl From<MalformedRequest> for HubReply {
    fn from(reason: MalformedRequest) -> Self {
        Self::Malformed(reason)
    }
}

impl From<LimitReached> for HubReply {
    fn from(limit: LimitReached) -> Self {
        Self::LimitReached(limit)
    }
}

/// Why a session ended, for connections that did not end it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum EndReason {
    /// A person stopped it.
    User,
    /// Its agent cancelled it.
    Producer,
    /// It timed out.
    Timeout,
    /// The system cancelled it.
    System,
    /// Its agent disappeared.
    AgentGone,
    /// It completed.
    Completed,
    /// It failed.
    Errored,
    /// The reason is unknown, for example because the last event is no longer stored.
    #[serde(other)]
    Unknown,
}

impl EndReason {
    /// Returns the code of the reason in notices.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Producer => "producer",
            Self::Timeout => "timeout",
            Self::System => "system",
            Self::AgentGone => "gone",
            Self::Completed => "completed",
            Self::Errored => "errored",
            Self::Unknown => "ended",
        }
    }
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
