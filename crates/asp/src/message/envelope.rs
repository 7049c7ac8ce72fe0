//! The message envelope: sender, recipient, time, session and chain link.

use std::hash::{Hash, Hasher};

use seal::json::{JsonKind, JsonValue, JsonWriter};
use seal::{Digest, Timestamp, ed25519};

use super::body::Body;
use super::codec::{ExtraMembers, JsonCodec, MalformedMessage, ObjectReader, json_record};
use crate::Performative;
use crate::id::{AgentUri, MessageId, SessionId};

/// A parsed message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Envelope {
    /// `version`
    pub version: ProtocolVersion,
    /// `messageId`
    pub message_id: MessageId,
    /// `sessionId`
    pub session_id: SessionId,
    /// `sequenceNumber`: counts the messages of one sender, starting at 0 (D8).
    pub sequence_number: u64,
    /// `timestamp`
    pub timestamp: Timestamp,
    /// `sender`
    pub sender: Sender,
    /// `recipient`; absent means every participant.
    pub recipient: Option<Recipient>,
    /// `content`, without its body.
    pub content: Content,
    /// `content.body`, whose type depends on `performative`.
    pub body: Body,
    /// `integrity`
    pub integrity: Integrity,
    /// `constraints`
    pub constraints: Option<Constraints>,
    /// Members that ASP does not define.
    pub other: ExtraMembers,
}

pub(super) const KNOWN_MEMBERS: [&str; 11] = [
    "version",
    "messageId",
    "sessionId",
    "sequenceNumber",
    "timestamp",
    "sender",
    "recipient",
    "performative",
    "content",
    "integrity",
    "constraints",
];

impl Envelope {
    /// The member in which a sender states how many tokens it used (D23).
    pub const TOKENS_USED: &'static str = "tokensUsed";

    /// Parses a message of a supported version.
    pub(crate) fn read(value: &JsonValue<'_>) -> Result<Self, MalformedMessage> {
        let object = ObjectReader::of(value)?;
        let version = object.read_member("version")?;
        let performative = object.read_member("performative")?;
        let content =
            value.member("content").ok_or_else(|| MalformedMessage::expected("present").within("content"))?;
        let body = content
            .member("body")
            .ok_or_else(|| MalformedMessage::expected("present").within("body").within("content"))
            .and_then(|body| {
                Body::read(performative, &body).map_err(|error| error.within("body").within("content"))
            })?;
        Ok(Self {
            version,
            message_id: object.read_member("messageId")?,
            session_id: object.read_member("sessionId")?,
            sequence_number: object.read_member("sequenceNumber")?,
            timestamp: object.read_member("timestamp")?,
            sender: object.read_member("sender")?,
            recipient: object.read_member("recipient")?,
            content: Content::read(&content).map_err(|error| error.within("content"))?,
            body,
            integrity: object.read_member("integrity")?,
            constraints: object.read_member("constraints")?,
            other: object.extra_members(&KNOWN_MEMBERS),
        })
    }

    /// Returns the number of tokens that the sender states it used for this message: the member `tokensUsed` (D23). A value
    /// that is not a whole number counts as the maximum.
    pub fn tokens_used(&self) -> Option<u64> {
        let member = self.other.get(Self::TOKENS_USED)?;
        let mut tape = seal::json::Tape::default();
        let tokens = tape.read(member.as_str()).ok().and_then(|doc| u64::read(&doc.root()).ok());
        Some(tokens.unwrap_or(u64::MAX))
    }

    /// Returns the performative.
    pub fn performative(&self) -> Performative {
        self.body.performative()
    }
}

json_record! {
    /// The sender of a message.
    Sender {
        /// The agent.
        "agentId" agent_id: AgentUri,
        /// The organization it belongs to.
        "orgId" org_id: String,
        /// The trust score that the sender states about itself. It has no effect (D20).
        "trustScore" trust_score: TrustScore,
        /// The DPoP proof that binds the message to the sender's key (D16).
        "dpopProof" dpop_proof: String;
    }

    /// The chain link and the signature.
    Integrity {
        /// The hash of the message (D13).
        "hash" hash: Digest,
        /// The hash of the previous message; 64 zeros for the first.
        "previousHash" previous_hash: Digest,
        /// The sender's signature over the text of `hash` (D14).
        "signature" signature: ed25519::Signature;
    }

    /// Constraints on the answer.
    Constraints {
        ;
        /// Maximum time for the answer, in milliseconds (D9).
        "maxResponseTimeMs" max_response_time_ms: DurationMillis,
        /// Maximum number of tokens that the answering side may spend on the answer (D23).
        "maxTokenBudget" max_token_budget: u64,
        /// The trust score that the answering side needs. The receiver of the answer computes it (D20, D23).
        "requiredTrustScore" required_trust_score: TrustScore,
        /// The allowed performatives of the answer (D23).
        "allowedPerformatives" allowed_performatives: Vec<Performative>,
    }
}

impl Constraints {
    /// Parses constraints.
    pub fn parse(json: &str) -> Result<Self, MalformedMessage> {
        let mut tape = seal::json::Tape::default();
        let doc = tape.read(json).map_err(|error| MalformedMessage::expected(format!("JSON: {error}")))?;
        Self::read(&doc.root())
    }

    /// Returns the constraints as JSON.
    pub fn to_json(&self) -> String {
        let mut writer = JsonWriter::default();
        self.write(&mut writer);
        writer.finish()
    }
}

/// `content`, without its body.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Content {
    /// Members other than `mimeType` and `body`.
    pub other: ExtraMembers,
}

impl Content {
    /// The MIME type of sent messages; `application/json` is accepted too.
    pub const MIME_TYPE: &'static str = "application/asp+json";

    pub(crate) fn write(&self, body: &Body, writer: &mut JsonWriter) {
        writer.open_object();
        writer.key("mimeType").text(Self::MIME_TYPE);
        writer.key("body");
        body.write(writer);
        self.other.write(writer, &["mimeType", "body"]);
        writer.close_object();
    }
}

impl Content {
    fn read(value: &JsonValue<'_>) -> Result<Self, MalformedMessage> {
        let object = ObjectReader::of(value)?;
        let mime_type: Option<String> = object.read_member("mimeType")?;
        match mime_type.as_deref() {
            None | Some(Self::MIME_TYPE | "application/json") => {
                Ok(Self { other: object.extra_members(&["mimeType", "body"]) })
            }
            Some(_) => Err(MalformedMessage::expected(format!("{} or application/json", Self::MIME_TYPE))
                .within("mimeType")),
        }
    }
}

/// The recipient. It is accepted as a string or as an object with `agentId`, and written as a string (D18).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Recipient(pub AgentUri);

impl JsonCodec for Recipient {
    fn read(value: &JsonValue<'_>) -> Result<Self, MalformedMessage> {
        match value.kind() {
            JsonKind::Object => ObjectReader::of(value)?.read_member("agentId").map(Self),
            _ => AgentUri::read(value).map(Self),
        }
    }

    fn write(&self, writer: &mut JsonWriter) {
        self.0.write(writer);
    }
}

/// The protocol version. `asp/0.1` is written; `asp/1.0` is accepted too (D18).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProtocolVersion {
    /// `asp/0.1`
    V0_1,
    /// `asp/1.0`
    V1_0,
}

impl JsonCodec for ProtocolVersion {
    fn read(value: &JsonValue<'_>) -> Result<Self, MalformedMessage> {
        match value.text().as_deref() {
            Some("asp/0.1") => Ok(Self::V0_1),
            Some("asp/1.0") => Ok(Self::V1_0),
            _ => Err(MalformedMessage::expected("asp/0.1 or asp/1.0")),
        }
    }

    fn write(&self, writer: &mut JsonWriter) {
        writer.text(match self {
            Self::V0_1 => "asp/0.1",
            Self::V1_0 => "asp/1.0",
        });
    }
}

/// A trust score from 0 to 100.
#[derive(Clone, Copy, Debug)]
pub struct TrustScore(f64);

impl TrustScore {
    /// The highest score.
    pub const MAX: Self = Self(100.0);

    /// Creates a score. Returns `None` unless it is from 0 to 100.
    pub fn new(score: f64) -> Option<Self> {
        (0.0..=100.0).contains(&score).then_some(Self(score))
    }

    /// Creates the score that is nearest to a computed value.
    pub(crate) fn nearest(value: f64) -> Self {
        Self(if value.is_nan() { 0.0 } else { value.clamp(0.0, 100.0) })
    }

    /// Returns the score.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl PartialEq for TrustScore {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for TrustScore {}

impl Hash for TrustScore {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

impl JsonCodec for TrustScore {
    fn read(value: &JsonValue<'_>) -> Result<Self, MalformedMessage> {
        let number = value.as_number().map(|number| number.as_f64());
        number.and_then(Self::new).ok_or_else(|| MalformedMessage::expected("a number from 0 to 100"))
    }

    fn write(&self, writer: &mut JsonWriter) {
        writer.number(self.0);
    }
}

/// A duration in milliseconds, from 1 ms to 366 days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DurationMillis(u64);

impl DurationMillis {
    /// The maximum: 366 days, in milliseconds.
    pub const MAX: u64 = 366 * 86_400_000;

    /// Creates a duration. Returns `None` unless it is from 1 to [`Self::MAX`].
    pub fn new(millis: u64) -> Option<Self> {
        (1..=Self::MAX).contains(&millis).then_some(Self(millis))
    }

    /// Returns the duration in milliseconds.
    pub fn get(self) -> i64 {
        i64::try_from(self.0).unwrap_or(i64::MAX)
    }
}

impl JsonCodec for DurationMillis {
    fn read(value: &JsonValue<'_>) -> Result<Self, MalformedMessage> {
        let malformed =
            || MalformedMessage::expected(format!("a whole number of milliseconds from 1 to {}", Self::MAX));
        u64::read(value).ok().and_then(Self::new).ok_or_else(malformed)
    }

    fn write(&self, writer: &mut JsonWriter) {
        self.0.write(writer);
    }
}

impl JsonCodec for Digest {
    fn read(value: &JsonValue<'_>) -> Result<Self, MalformedMessage> {
        let digest = value.text().and_then(|text| Self::parse(&text));
        digest.ok_or_else(|| MalformedMessage::expected("sha256: and 64 lower-case hexadecimal digits"))
    }

    fn write(&self, writer: &mut JsonWriter) {
        writer.text(&self.to_string());
    }
}

impl JsonCodec for ed25519::Signature {
    fn read(value: &JsonValue<'_>) -> Result<Self, MalformedMessage> {
        let signature = value.text().and_then(|text| Self::parse(&text));
        signature.ok_or_else(|| MalformedMessage::expected("ed25519: and 128 lower-case hexadecimal digits"))
    }

    fn write(&self, writer: &mut JsonWriter) {
        writer.text(&self.to_string());
    }
}
