//! The durable facts of a node, and their form in the journal.
//!
//! Each ASP session is a session of the journal. Its facts are the journal's events, in order. Facts about peers are events
//! of one more journal session, [`NODE_SESSION`], which never ends.

use std::sync::Arc;

use asp::state_machine::Role;
use asp::{AgentCard, CommitmentId, MessageId, SessionId, StoredStep};
use seal::json::{JsonValue, JsonWriter, Tape, write_object};
use seal::{Digest, UnixMillis};
use thiserror::Error;

/// The journal session of the facts that belong to no ASP session.
pub(crate) const NODE_SESSION: &str = "asp-node";

/// The facts about a session that are known from its first message.
#[derive(Clone, Debug)]
pub(crate) struct SessionInfo {
    pub(crate) id: SessionId,
    /// Our card when the session began.
    pub(crate) own: Arc<AgentCard>,
    /// The peer's card when the session began. Its keys verify the peer's messages of this session.
    pub(crate) peer: Arc<AgentCard>,
    /// The role of this node's agent.
    pub(crate) role: Role,
    /// What the session is about, from the invitation.
    pub(crate) subject: String,
}

/// One durable fact of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SessionRecord {
    /// A step of the participant.
    Step(StoredStep),
    /// A person is asked about a message before it is sent.
    ConsentAsked(ConsentRequest),
    /// The person was asked, and this is the result. Anything but `accept` means no.
    ConsentResolved { request: String, outcome: ConsentOutcome },
    /// Our message cannot be delivered, and the node has stopped trying.
    DeliveryAbandoned { message: MessageId },
    /// A session of the hub tells a person about this one. A later one replaces it.
    NarrationStarted { hub_session: String },
    /// Our agent could not accept this commitment, because the peer's money does not cover its escrow.
    EscrowUnfunded { commitment: CommitmentId },
}

/// A message that waits for a person's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConsentRequest {
    /// The id of the request, in the journal only.
    pub(crate) id: String,
    /// The performative of the message, or `ESCALATE` for an escalation of our agent.
    pub(crate) performative: String,
    /// The exact body, without `consent`.
    pub(crate) body: String,
    /// The session of the hub that asks, and its reply token.
    pub(crate) hub_session: String,
    pub(crate) reply_token: String,
    /// When the question expires, by the hub's clock. Old records have none.
    pub(crate) deadline: Option<UnixMillis>,
    /// How many tokens the agent used for the message.
    pub(crate) tokens_used: Option<u64>,
}

/// The result of asking a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConsentOutcome {
    /// The person accepted. The receipt is signed by the hub.
    Accepted { receipt: String, signature: String },
    /// The person answered a question in words, for example about an escalation.
    Answered { response: String, receipt: String, signature: String },
    /// No, for this reason.
    Refused { reason: String },
}

/// One durable fact about a peer, or about the node as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NodeRecord {
    /// A card was pinned on first contact with its agent, or replaced by its signed successor.
    CardPinned { card: String },
    /// A card was registered. A later one of the same agent replaces it.
    CardRegistered { card: String },
    /// A trust event about a peer, as `asp::trust` writes it.
    Trust { event: String },
    /// An entry of the escrow ledger, as `asp::escrow` writes it.
    Ledger { entry: String },
    /// A dispute was filed or resolved, as `asp::dispute` writes it.
    Dispute { record: String },
    /// A session has ended: its entry in the list of ended sessions, as the agent's program gets it.
    SessionEnded { id: SessionId, summary: String },
}

/// Why a stored fact cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the stored record {0}")]
pub(crate) struct RecordError(pub(crate) &'static str);

impl SessionInfo {
    pub(crate) fn to_json(&self) -> String {
        write_object(|writer| {
            writer.key("own").raw(self.own.as_str());
            writer.key("peer").raw(self.peer.as_str());
            writer.key("role").text(role_name(self.role));
            writer.key("subject").text(&self.subject);
        })
    }

    pub(crate) fn parse(id: SessionId, json: &str) -> Result<Self, RecordError> {
        let malformed = || RecordError("of a session is malformed");
        let mut tape = Tape::default();
        let doc = tape.read(json).map_err(|_| malformed())?;
        let root = doc.root();
        let card = |name| {
            let card = root.member(name).and_then(|card| AgentCard::parse(card.source()).ok());
            card.map(Arc::new).ok_or_else(malformed)
        };
        let role = match text(&root, "role").as_deref() {
            Some("inviter") => Role::Inviter,
            Some("invited") => Role::Invited,
            _ => return Err(malformed()),
        };
        let subject = text(&root, "subject").unwrap_or_default();
        Ok(Self { id, own: card("own")?, peer: card("peer")?, role, subject })
    }
}

/// Returns the name of a role in records and in the API.
pub(crate) fn role_name(role: Role) -> &'static str {
    match role {
        Role::Inviter => "inviter",
        Role::Invited => "invited",
    }
}

impl SessionRecord {
    pub(crate) fn to_json(&self) -> String {
        write_object(|writer| match self {
            Self::Step(step) => write_step(step, writer),
            Self::ConsentAsked(request) => member(writer, "consent_asked").object(|writer| {
                writer.text_members([
                    ("id", &*request.id),
                    ("performative", &request.performative),
                    ("hub_session", &request.hub_session),
                    ("reply_token", &request.reply_token),
                ]);
                if let Some(deadline) = request.deadline {
                    writer.key("deadline").integer(deadline.get());
                }
                if let Some(tokens) = request.tokens_used {
                    writer.key("tokens_used").raw(&tokens.to_string());
                }
                writer.key("body").raw(&request.body);
            }),
            Self::ConsentResolved { request, outcome } => {
                member(writer, "consent_resolved").object(|writer| {
                    writer.key("request").text(request);
                    outcome.write(writer);
                });
            }
            Self::DeliveryAbandoned { message } => {
                member(writer, "delivery_abandoned").text(&message.to_string());
            }
            Self::NarrationStarted { hub_session } => member(writer, "narration_started").text(hub_session),
            Self::EscrowUnfunded { commitment } => {
                member(writer, "escrow_unfunded").text(commitment.as_str());
            }
        })
    }

    pub(crate) fn parse(json: &str) -> Result<Self, RecordError> {
        let malformed = || RecordError("of a session's event is malformed");
        let mut tape = Tape::default();
        let doc = tape.read(json).map_err(|_| malformed())?;
        let (kind, value) = doc.root().members().next().ok_or_else(malformed)?;
        let message = || {
            let id = value.text().and_then(|text| MessageId::parse(&text).ok());
            id.ok_or_else(malformed)
        };
        match kind.text().as_deref() {
            Some("consent_asked") => {
                ConsentRequest::read(&value).map(Self::ConsentAsked).ok_or_else(malformed)
            }
            Some("consent_resolved") => {
                let request = text(&value, "request").ok_or_else(malformed)?;
                Ok(Self::ConsentResolved { request, outcome: ConsentOutcome::read(&value) })
            }
            Some("delivery_abandoned") => Ok(Self::DeliveryAbandoned { message: message()? }),
            Some("narration_started") => {
                let hub_session = value.text().ok_or_else(malformed)?.into_owned();
                Ok(Self::NarrationStarted { hub_session })
            }
            Some("escrow_unfunded") => {
                let commitment = value.text().and_then(|id| CommitmentId::parse(&id).ok());
                Ok(Self::EscrowUnfunded { commitment: commitment.ok_or_else(malformed)? })
            }
            Some(kind) => read_step(kind, &value).map(Self::Step).ok_or_else(malformed),
            None => Err(malformed()),
        }
    }
}

/// Writes a step. A message is stored as it is, because its bytes are signed.
fn write_step(step: &StoredStep, writer: &mut JsonWriter) {
    match step {
        StoredStep::Sent { text } => member(writer, "sent").raw(text),
        StoredStep::Received { text } => member(writer, "received").raw(text),
        StoredStep::RolledBack { reject_text } => member(writer, "rolled_back").raw(reject_text),
        StoredStep::Settled { message_id } => member(writer, "settled").text(&message_id.to_string()),
        StoredStep::Superseded { message_id } => member(writer, "superseded").text(&message_id.to_string()),
        StoredStep::TimersExpired { at } => member(writer, "timers_expired").integer(at.get()),
        StoredStep::Refused { hash, at } => member(writer, "refused").object(|writer| {
            writer.key("hash").text(&hash.to_string());
            writer.key("at").integer(at.get());
        }),
        StoredStep::ChainBroken { text, at } => member(writer, "chain_broken").object(|writer| {
            writer.key("message").raw(text);
            writer.key("at").integer(at.get());
        }),
        // The journal's session itself says that the session was opened, and with whom.
        _ => {}
    }
}

fn read_step(kind: &str, value: &JsonValue<'_>) -> Option<StoredStep> {
    let time = |value: &JsonValue<'_>| Some(UnixMillis::new(value.as_number()?.as_i64()?));
    Some(match kind {
        "sent" => StoredStep::Sent { text: value.source().into() },
        "received" => StoredStep::Received { text: value.source().into() },
        "rolled_back" => StoredStep::RolledBack { reject_text: value.source().into() },
        "settled" => StoredStep::Settled { message_id: MessageId::parse(&value.text()?).ok()? },
        "superseded" => StoredStep::Superseded { message_id: MessageId::parse(&value.text()?).ok()? },
        "timers_expired" => StoredStep::TimersExpired { at: time(value)? },
        "refused" => StoredStep::Refused {
            hash: Digest::parse(&value.member("hash")?.text()?)?,
            at: time(&value.member("at")?)?,
        },
        "chain_broken" => StoredStep::ChainBroken {
            text: value.member("message")?.source().into(),
            at: time(&value.member("at")?)?,
        },
        _ => return None,
    })
}

impl ConsentRequest {
    fn read(value: &JsonValue<'_>) -> Option<Self> {
        Some(Self {
            id: text(value, "id")?,
            performative: text(value, "performative")?,
            body: value.member("body")?.source().to_owned(),
            hub_session: text(value, "hub_session")?,
            reply_token: text(value, "reply_token")?,
            deadline: value
                .member("deadline")
                .and_then(|deadline| Some(UnixMillis::new(deadline.as_number()?.as_i64()?))),
            tokens_used: value
                .member("tokens_used")
                .and_then(|tokens| u64::try_from(tokens.as_number()?.as_i64()?).ok()),
        })
    }
}

impl ConsentOutcome {
    fn write(&self, writer: &mut JsonWriter) {
        match self {
            Self::Accepted { receipt, signature } => {
                writer.key("accepted").raw(receipt);
                writer.key("signature").text(signature);
            }
            Self::Answered { response, receipt, signature } => {
                writer.key("response").text(response);
                writer.key("answered").raw(receipt);
                writer.key("signature").text(signature);
            }
            Self::Refused { reason } => writer.key("refused").text(reason),
        }
    }

    /// Reads an outcome. What cannot be read is a no.
    fn read(value: &JsonValue<'_>) -> Self {
        let signature = || text(value, "signature").unwrap_or_default();
        let receipt = |name| value.member(name).map(|receipt| receipt.source().to_owned());
        if let Some(receipt) = receipt("accepted") {
            return Self::Accepted { receipt, signature: signature() };
        }
        if let (Some(receipt), Some(response)) = (receipt("answered"), text(value, "response")) {
            return Self::Answered { response, receipt, signature: signature() };
        }
        Self::Refused { reason: text(value, "refused").unwrap_or_default() }
    }
}

impl NodeRecord {
    pub(crate) fn to_json(&self) -> String {
        write_object(|writer| match self {
            Self::CardPinned { card } => member(writer, "card_pinned").raw(card),
            Self::CardRegistered { card } => member(writer, "card_registered").raw(card),
            Self::Trust { event } => member(writer, "trust").raw(event),
            Self::Ledger { entry } => member(writer, "ledger").raw(entry),
            Self::Dispute { record } => member(writer, "dispute").raw(record),
            Self::SessionEnded { summary, .. } => member(writer, "session_ended").raw(summary),
        })
    }

    pub(crate) fn parse(json: &str) -> Result<Self, RecordError> {
        let malformed = || RecordError("of the node is malformed");
        let mut tape = Tape::default();
        let doc = tape.read(json).map_err(|_| malformed())?;
        let (kind, value) = doc.root().members().next().ok_or_else(malformed)?;
        let source = value.source().to_owned();
        match kind.text().as_deref() {
            Some("card_pinned") => Ok(Self::CardPinned { card: source }),
            Some("card_registered") => Ok(Self::CardRegistered { card: source }),
            Some("trust") => Ok(Self::Trust { event: source }),
            Some("ledger") => Ok(Self::Ledger { entry: source }),
            Some("dispute") => Ok(Self::Dispute { record: source }),
            Some("session_ended") => {
                let id = text(&value, "sessionId").and_then(|id| SessionId::parse(&id).ok());
                Ok(Self::SessionEnded { id: id.ok_or_else(malformed)?, summary: source })
            }
            _ => Err(malformed()),
        }
    }
}

fn member<'w>(writer: &'w mut JsonWriter, kind: &str) -> &'w mut JsonWriter {
    writer.key(kind)
}

fn text(value: &JsonValue<'_>, name: &str) -> Option<String> {
    Some(value.member(name)?.text()?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_narration_and_questions_are_read_back() {
        let request = ConsentRequest {
            id: "msg_1".to_owned(),
            performative: "COMMIT".to_owned(),
            body: r#"{"commitmentId":"cmt_1"}"#.to_owned(),
            hub_session: "sess_1".to_owned(),
            reply_token: "rpl_1".to_owned(),
            deadline: Some(UnixMillis::new(1_800_000_000_000)),
            tokens_used: Some(1_200),
        };
        let narration = SessionRecord::NarrationStarted { hub_session: "sess_1".to_owned() };
        let unfunded = SessionRecord::EscrowUnfunded {
            commitment: CommitmentId::parse("cmt_1").unwrap_or_else(|_| panic!()),
        };
        for record in [SessionRecord::ConsentAsked(request.clone()), narration, unfunded] {
            assert_eq!(SessionRecord::parse(&record.to_json()).ok(), Some(record));
        }
        // A record from before questions had deadlines.
        let old = r#"{"consent_asked":{"id":"msg_1","performative":"COMMIT","hub_session":"sess_1","reply_token":"rpl_1","body":{"commitmentId":"cmt_1"}}}"#;
        let expected =
            SessionRecord::ConsentAsked(ConsentRequest { deadline: None, tokens_used: None, ..request });
        assert_eq!(SessionRecord::parse(old).ok(), Some(expected));
    }
}
