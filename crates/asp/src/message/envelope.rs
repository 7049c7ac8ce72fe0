//! The envelope: who says what to whom, when, in which session, and after what.

use std::hash::{Hash, Hasher};

use seal::json::{Kind, Value, Writer};
use seal::{Digest, Timestamp, ed25519};

use super::body::Body;
use super::part::{Malformed, Object, Others, Part, part};
use crate::Performative;
use crate::id::{AgentUri, MessageId, SessionId};

/// A message as it was read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Envelope {
    /// `version`
    pub version: Version,
    /// `messageId`
    pub message_id: MessageId,
    /// `sessionId`
    pub session_id: SessionId,
    /// `sequenceNumber`: counts per sender, from 0 in steps of 1 (D8).
    pub sequence_number: u64,
    /// `timestamp`
    pub timestamp: Timestamp,
    /// `sender`
    pub sender: Sender,
    /// `recipient`; absent means everybody in the session.
    pub recipient: Option<Recipient>,
    /// `content`, but for its body.
    pub content: Content,
    /// `content.body`, by `performative`.
    pub body: Body,
    /// `integrity`
    pub integrity: Integrity,
    /// `constraints`
    pub constraints: Option<Constraints>,
    /// Members that ASP does not name.
    pub other: Others,
}

pub(super) const KNOWN: [&str; 11] = [
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
    /// Reads a message of any version that is understood here.
    pub(crate) fn read(value: &Value<'_>) -> Result<Self, Malformed> {
        let object = Object::of(value)?;
        let version = object.take("version")?;
        let performative = object.take("performative")?;
        let content = value.member("content").ok_or_else(|| Malformed::new("there").under("content"))?;
        let body = content
            .member("body")
            .ok_or_else(|| Malformed::new("there").under("body").under("content"))
            .and_then(|body| {
                Body::read(performative, &body).map_err(|wrong| wrong.under("body").under("content"))
            })?;
        Ok(Self {
            version,
            message_id: object.take("messageId")?,
            session_id: object.take("sessionId")?,
            sequence_number: object.take("sequenceNumber")?,
            timestamp: object.take("timestamp")?,
            sender: object.take("sender")?,
            recipient: object.take("recipient")?,
            content: Content::read(&content).map_err(|wrong| wrong.under("content"))?,
            body,
            integrity: object.take("integrity")?,
            constraints: object.take("constraints")?,
            other: object.others(&KNOWN),
        })
    }

    /// What the message does.
    pub fn performative(&self) -> Performative {
        self.body.performative()
    }
}

part! {
    /// Who sends.
    Sender {
        /// The agent.
        "agentId" agent_id: AgentUri,
        /// The organisation that it belongs to.
        "orgId" org_id: String,
        /// What the sender says of its own trust; it decides nothing (D20).
        "trustScore" trust_score: TrustScore,
        /// The DPoP proof that ties the message to the sender's key (D16).
        "dpopProof" dpop_proof: String;
    }

    /// The chain and the signature.
    Integrity {
        /// The hash of the message (D13).
        "hash" hash: Digest,
        /// The hash of the message before it, 64 zeros for the first.
        "previousHash" previous_hash: Digest,
        /// The sender's signature over the text of `hash` (D14).
        "signature" signature: ed25519::Signature;
    }

    /// What the sender asks of the answer.
    Constraints {
        ;
        /// How many milliseconds the answer may take (D9).
        "maxResponseTimeMs" max_response_time_ms: Millis,
        /// How many tokens the answer may cost.
        "maxTokenBudget" max_token_budget: u64,
        /// How much trust the answering side needs; kept, not judged (D20).
        "requiredTrustScore" required_trust_score: TrustScore,
        /// What the answer may be; kept, not judged.
        "allowedPerformatives" allowed_performatives: Vec<Performative>,
    }
}

/// `content`, but for its body.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Content {
    /// Members other than `mimeType` and `body`.
    pub other: Others,
}

impl Content {
    /// What we write; `application/json` is read too.
    pub const MIME_TYPE: &'static str = "application/asp+json";

    pub(crate) fn write(&self, body: &Body, writer: &mut Writer) {
        writer.open_object();
        writer.key("mimeType").text(Self::MIME_TYPE);
        writer.key("body");
        body.write(writer);
        self.other.write(writer, &["mimeType", "body"]);
        writer.close_object();
    }
}

impl Content {
    fn read(value: &Value<'_>) -> Result<Self, Malformed> {
        let object = Object::of(value)?;
        let mime_type: Option<String> = object.take("mimeType")?;
        match mime_type.as_deref() {
            None | Some(Self::MIME_TYPE | "application/json") => {
                Ok(Self { other: object.others(&["mimeType", "body"]) })
            }
            Some(_) => {
                Err(Malformed::new(format!("{} or application/json", Self::MIME_TYPE)).under("mimeType"))
            }
        }
    }
}

/// Who is meant: read as a string or as an object with `agentId`, written as a string (D18).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Recipient(pub AgentUri);

impl Part for Recipient {
    fn read(value: &Value<'_>) -> Result<Self, Malformed> {
        match value.kind() {
            Kind::Object => Object::of(value)?.take("agentId").map(Self),
            _ => AgentUri::read(value).map(Self),
        }
    }

    fn write(&self, writer: &mut Writer) {
        self.0.write(writer);
    }
}

/// The version of the protocol: `asp/0.1` is written, `asp/1.0` is read too (D18).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// `asp/0.1`
    V0_1,
    /// `asp/1.0`
    V1_0,
}

impl Part for Version {
    fn read(value: &Value<'_>) -> Result<Self, Malformed> {
        match value.text().as_deref() {
            Some("asp/0.1") => Ok(Self::V0_1),
            Some("asp/1.0") => Ok(Self::V1_0),
            _ => Err(Malformed::new("asp/0.1, or asp/1.0")),
        }
    }

    fn write(&self, writer: &mut Writer) {
        writer.text(match self {
            Self::V0_1 => "asp/0.1",
            Self::V1_0 => "asp/1.0",
        });
    }
}

/// A trust score: 0 to 100.
#[derive(Clone, Copy, Debug)]
pub struct TrustScore(f64);

impl TrustScore {
    /// Takes 0 to 100.
    pub fn new(score: f64) -> Option<Self> {
        (0.0..=100.0).contains(&score).then_some(Self(score))
    }

    /// The number.
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

impl Part for TrustScore {
    fn read(value: &Value<'_>) -> Result<Self, Malformed> {
        let number = value.number().map(|number| number.as_f64());
        number.and_then(Self::new).ok_or_else(|| Malformed::new("a number from 0 to 100"))
    }

    fn write(&self, writer: &mut Writer) {
        writer.number(self.0);
    }
}

/// A time span in milliseconds: at least one, at most a year.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(u64);

impl Millis {
    /// The longest: 366 days.
    pub const LONGEST: u64 = 366 * 86_400_000;

    /// Takes 1 to [`Self::LONGEST`].
    pub fn new(millis: u64) -> Option<Self> {
        (1..=Self::LONGEST).contains(&millis).then_some(Self(millis))
    }

    /// The number.
    pub fn get(self) -> i64 {
        i64::try_from(self.0).unwrap_or(i64::MAX)
    }
}

impl Part for Millis {
    fn read(value: &Value<'_>) -> Result<Self, Malformed> {
        let wanted = || Malformed::new(format!("whole milliseconds, 1 to {}", Self::LONGEST));
        u64::read(value).ok().and_then(Self::new).ok_or_else(wanted)
    }

    fn write(&self, writer: &mut Writer) {
        self.0.write(writer);
    }
}

impl Part for Digest {
    fn read(value: &Value<'_>) -> Result<Self, Malformed> {
        let read = value.text().and_then(|text| Self::parse(&text));
        read.ok_or_else(|| Malformed::new("sha256: and 64 lower-case hexadecimal digits"))
    }

    fn write(&self, writer: &mut Writer) {
        writer.text(&self.to_string());
    }
}

impl Part for ed25519::Signature {
    fn read(value: &Value<'_>) -> Result<Self, Malformed> {
        let read = value.text().and_then(|text| Self::parse(&text));
        read.ok_or_else(|| Malformed::new("ed25519: and 128 lower-case hexadecimal digits"))
    }

    fn write(&self, writer: &mut Writer) {
        writer.text(&self.to_string());
    }
}
