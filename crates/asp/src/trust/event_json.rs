//! The stored form of trust events.

use seal::UnixMillis;
use seal::json::{JsonValue, JsonWriter, Tape, write_object};

use super::event::{TrustEvent, TrustEventKind, TrustEventName};
use crate::id::{AgentUri, CommitmentId, DisputeId};
use crate::message::{JsonCodec, MalformedMessage, ObjectReader, TrustScore};

impl TrustEvent {
    /// Returns the event as JSON.
    pub fn to_json(&self) -> String {
        write_object(|writer| {
            writer.key("type").text(self.kind.name().as_str());
            self.peer.write(writer.key("peer"));
            self.at.write(writer.key("atMs"));
            if let Some(session_id) = &self.session_id {
                session_id.write(writer.key("sessionId"));
            }
            self.kind.write_members(writer);
        })
    }

    /// Parses an event. Unknown members are ignored.
    pub fn parse(json: &str) -> Result<Self, MalformedMessage> {
        let mut tape = Tape::default();
        let doc = tape.read(json).map_err(|error| MalformedMessage::expected(format!("JSON: {error}")))?;
        Self::read(&doc.root())
    }

    /// Reads an event from a parsed document.
    pub fn read(value: &JsonValue<'_>) -> Result<Self, MalformedMessage> {
        let object = ObjectReader::of(value)?;
        let name: TrustEventName = object.read_member("type")?;
        let kind = TrustEventKind::read(name, &object)?;
        if kind.name() != name {
            return Err(MalformedMessage::expected(kind.name().as_str()).within("type"));
        }
        Ok(Self {
            peer: object.read_member("peer")?,
            at: object.read_member("atMs")?,
            session_id: object.read_member("sessionId")?,
            kind,
        })
    }
}

impl TrustEventKind {
    fn write_members(&self, writer: &mut JsonWriter) {
        match self {
            Self::MessageAnswered { response_ms, limit_ms } => {
                response_ms.write(writer.key("responseMs"));
                limit_ms.write(writer.key("limitMs"));
            }
            Self::CommitmentKept(id)
            | Self::CommitmentLate(id)
            | Self::CommitmentBroken(id)
            | Self::EscrowFunded(id)
            | Self::EscrowUnfunded(id)
            | Self::EscrowForfeited(id) => id.write(writer.key("commitmentId")),
            Self::DisputeLost { dispute_id, severity } => {
                dispute_id.write(writer.key("disputeId"));
                severity.write(writer.key("severity"));
            }
            Self::EndorsementReceived { endorser, endorser_score, is_same_organization } => {
                endorser.write(writer.key("endorser"));
                endorser_score.write(writer.key("endorserScore"));
                is_same_organization.write(writer.key("sameOrganization"));
            }
            Self::SessionCompleted
            | Self::SessionClosed
            | Self::SessionAbandoned
            | Self::ResponseMissed
            | Self::ProtocolViolation
            | Self::ChainBroken
            | Self::AuthenticationFailed
            | Self::CardPinned
            | Self::CardTrustedOnFirstUse
            | Self::CardRotated
            | Self::CardMismatched
            | Self::CardRevoked => {}
        }
    }

    fn read(name: TrustEventName, object: &ObjectReader<'_, '_>) -> Result<Self, MalformedMessage> {
        let commitment = || object.read_member::<CommitmentId>("commitmentId");
        Ok(match name {
            TrustEventName::SessionCompleted => Self::SessionCompleted,
            TrustEventName::SessionClosed => Self::SessionClosed,
            TrustEventName::SessionAbandoned => Self::SessionAbandoned,
            TrustEventName::MessageAnswered | TrustEventName::MessageAnsweredLate => Self::MessageAnswered {
                response_ms: object.read_member("responseMs")?,
                limit_ms: object.read_member("limitMs")?,
            },
            TrustEventName::ResponseMissed => Self::ResponseMissed,
            TrustEventName::CommitmentKept => Self::CommitmentKept(commitment()?),
            TrustEventName::CommitmentLate => Self::CommitmentLate(commitment()?),
            TrustEventName::CommitmentBroken => Self::CommitmentBroken(commitment()?),
            TrustEventName::DisputeLost => Self::DisputeLost {
                dispute_id: object.read_member::<DisputeId>("disputeId")?,
                severity: object.read_member("severity")?,
            },
            TrustEventName::ProtocolViolation => Self::ProtocolViolation,
            TrustEventName::ChainBroken => Self::ChainBroken,
            TrustEventName::AuthenticationFailed => Self::AuthenticationFailed,
            TrustEventName::CardPinned => Self::CardPinned,
            TrustEventName::CardTrustedOnFirstUse => Self::CardTrustedOnFirstUse,
            TrustEventName::CardRotated => Self::CardRotated,
            TrustEventName::CardMismatched => Self::CardMismatched,
            TrustEventName::CardRevoked => Self::CardRevoked,
            TrustEventName::EscrowFunded => Self::EscrowFunded(commitment()?),
            TrustEventName::EscrowUnfunded => Self::EscrowUnfunded(commitment()?),
            TrustEventName::EscrowForfeited => Self::EscrowForfeited(commitment()?),
            TrustEventName::EndorsementReceived => Self::EndorsementReceived {
                endorser: object.read_member::<AgentUri>("endorser")?,
                endorser_score: object.read_member::<TrustScore>("endorserScore")?,
                is_same_organization: object.read_member("sameOrganization")?,
            },
        })
    }
}

impl JsonCodec for TrustEventName {
    fn read(value: &JsonValue<'_>) -> Result<Self, MalformedMessage> {
        let known = value.text().and_then(|text| Self::parse(&text));
        known.ok_or_else(|| MalformedMessage::expected("the name of a trust event"))
    }

    fn write(&self, writer: &mut JsonWriter) {
        writer.text(self.as_str());
    }
}

/// A point in time in stored records: milliseconds since 1970.
impl JsonCodec for UnixMillis {
    fn read(value: &JsonValue<'_>) -> Result<Self, MalformedMessage> {
        let millis = value.as_number().and_then(|number| number.as_i64());
        millis.map(Self::new).ok_or_else(|| MalformedMessage::expected("milliseconds since 1970"))
    }

    fn write(&self, writer: &mut JsonWriter) {
        writer.integer(self.get());
    }
}
