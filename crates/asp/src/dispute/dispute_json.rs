//! Disputes and resolutions as JSON.

use seal::json::{JsonValue, JsonWriter, Tape, write_object};

use super::evidence::{Evidence, EvidenceMessage};
use super::record::{Dispute, DisputeReason};
use super::resolution::{Resolution, Resolver, Verdict};
use crate::message::{JsonCodec, MalformedMessage, ObjectReader};

impl Dispute {
    /// Returns the dispute as JSON, with the members that npayload published and ours.
    pub fn to_json(&self) -> String {
        write_object(|writer| {
            self.dispute_id.write(writer.key("disputeId"));
            self.session_id.write(writer.key("sessionId"));
            self.commitment_id.write(writer.key("commitmentId"));
            self.filed_by.write(writer.key("filedBy"));
            self.filed_against.write(writer.key("filedAgainst"));
            self.reason.write(writer.key("reason"));
            self.severity.write(writer.key("severity"));
            if let Some(statement) = &self.statement {
                statement.write(writer.key("statement"));
            }
            self.evidence.write(writer.key("evidence"));
            self.filed_at.write(writer.key("filedAt"));
        })
    }

    /// Parses a dispute. [`Dispute::check`] checks it against the session.
    pub fn parse(json: &str) -> Result<Self, MalformedMessage> {
        parse(json, |object| {
            Ok(Self {
                dispute_id: object.read_member("disputeId")?,
                session_id: object.read_member("sessionId")?,
                commitment_id: object.read_member("commitmentId")?,
                filed_by: object.read_member("filedBy")?,
                filed_against: object.read_member("filedAgainst")?,
                reason: object.read_member("reason")?,
                severity: object.read_member("severity")?,
                statement: object.read_member("statement")?,
                evidence: object.read_member("evidence")?,
                filed_at: object.read_member("filedAt")?,
            })
        })
    }
}

impl Resolution {
    /// Returns the resolution as JSON.
    pub fn to_json(&self) -> String {
        write_object(|writer| {
            self.dispute_id.write(writer.key("disputeId"));
            writer.key("verdict").text(match self.verdict {
                Verdict::Upheld(_) => "upheld",
                Verdict::Dismissed => "dismissed",
                Verdict::Settled => "settled",
                Verdict::Withdrawn => "withdrawn",
            });
            if let Verdict::Upheld(severity) = &self.verdict {
                severity.write(writer.key("severity"));
            }
            writer.key("method").text(match self.resolved_by {
                Resolver::Automatic => "automatic",
                Resolver::Person(_) => "person",
                Resolver::Parties => "parties",
            });
            if let Resolver::Person(name) = &self.resolved_by {
                name.write(writer.key("resolvedBy"));
            }
            self.explanation.write(writer.key("explanation"));
            self.resolved_at.write(writer.key("resolvedAt"));
        })
    }

    /// Parses a resolution.
    pub fn parse(json: &str) -> Result<Self, MalformedMessage> {
        parse(json, |object| {
            let verdict = match object.read_member::<String>("verdict")?.as_str() {
                "upheld" => Verdict::Upheld(object.read_member("severity")?),
                "dismissed" => Verdict::Dismissed,
                "settled" => Verdict::Settled,
                "withdrawn" => Verdict::Withdrawn,
                _ => {
                    let expected = "upheld, dismissed, settled or withdrawn";
                    return Err(MalformedMessage::expected(expected).within("verdict"));
                }
            };
            let resolved_by = match object.read_member::<String>("method")?.as_str() {
                "automatic" => Resolver::Automatic,
                "person" => Resolver::Person(object.read_member("resolvedBy")?),
                "parties" => Resolver::Parties,
                _ => {
                    return Err(MalformedMessage::expected("automatic, person or parties").within("method"));
                }
            };
            Ok(Self {
                dispute_id: object.read_member("disputeId")?,
                verdict,
                resolved_by,
                explanation: object.read_member("explanation")?,
                resolved_at: object.read_member("resolvedAt")?,
            })
        })
    }
}

impl JsonCodec for DisputeReason {
    fn read(value: &JsonValue<'_>) -> Result<Self, MalformedMessage> {
        let known = value.text().and_then(|text| Self::parse(&text));
        known.ok_or_else(|| {
            MalformedMessage::expected(format!("one of {}", Self::ALL.map(Self::as_str).join(", ")))
        })
    }

    fn write(&self, writer: &mut JsonWriter) {
        writer.text(self.as_str());
    }
}

impl JsonCodec for EvidenceMessage {
    fn read(value: &JsonValue<'_>) -> Result<Self, MalformedMessage> {
        let object = ObjectReader::of(value)?;
        Ok(Self { message_id: object.read_member("messageId")?, hash: object.read_member("hash")? })
    }

    fn write(&self, writer: &mut JsonWriter) {
        writer.object(|writer| {
            self.message_id.write(writer.key("messageId"));
            self.hash.write(writer.key("hash"));
        });
    }
}

impl JsonCodec for Evidence {
    fn read(value: &JsonValue<'_>) -> Result<Self, MalformedMessage> {
        let object = ObjectReader::of(value)?;
        let messages: Option<Vec<_>> = object.read_member("messages")?;
        let messages = messages.unwrap_or_default();
        if messages.len() > Self::MAX_MESSAGES {
            let expected = format!("an array of at most {} items", Self::MAX_MESSAGES);
            return Err(MalformedMessage::expected(expected).within("messages"));
        }
        Ok(Self {
            agreed_terms: object.read_member("agreedTerms")?,
            acceptance: object.read_member("acceptance")?,
            delivered_result: object.read_member("deliveredResult")?,
            messages,
        })
    }

    fn write(&self, writer: &mut JsonWriter) {
        writer.object(|writer| {
            self.agreed_terms.write(writer.key("agreedTerms"));
            self.acceptance.write(writer.key("acceptance"));
            if let Some(result) = &self.delivered_result {
                result.write(writer.key("deliveredResult"));
            }
            if !self.messages.is_empty() {
                self.messages.write(writer.key("messages"));
            }
        });
    }
}

fn parse<T>(
    json: &str,
    read: impl FnOnce(&ObjectReader<'_, '_>) -> Result<T, MalformedMessage>,
) -> Result<T, MalformedMessage> {
    let mut tape = Tape::default();
    let doc = tape.read(json).map_err(|error| MalformedMessage::expected(format!("JSON: {error}")))?;
    read(&ObjectReader::of(&doc.root())?)
}
