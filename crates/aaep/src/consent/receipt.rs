//! Receipts: resolutions in canonical form, ready to be signed.

use seal::{Digest, Timestamp, UnixMillis, canonicalize};

use crate::event::Decision;
use crate::id::{EventId, ReplyToken, SessionId, SubscriptionId};
use crate::json::{JsonValue, Tape, write_object};
use crate::message::ClarificationResponse;
use crate::record::FieldValue;

use super::{QuestionAnswer, Resolution, ResolvedBy};

const TYPE: &str = "sayso:receipt";

/// Proof of how a question was resolved. Its text is canonical JSON (RFC 8785), so its digest is
/// well defined and anybody can verify a signature over it.
#[derive(Clone, Debug, PartialEq)]
pub struct Receipt {
    resolution: Resolution,
    text: String,
}

impl Receipt {
    pub(super) fn from_resolution(resolution: Resolution) -> Self {
        let text = write(&resolution);
        let canonical = Tape::default().read(&text).ok().and_then(|doc| canonicalize(&doc.root()).ok());
        Self { resolution, text: canonical.unwrap_or(text) }
    }

    /// Parses a receipt. Returns `None` unless the text is byte for byte what
    /// [`to_json`](Self::to_json) writes.
    pub fn parse(text: &str) -> Option<Self> {
        let mut tape = Tape::default();
        let doc = tape.read(text).ok()?;
        let receipt = Self::from_resolution(read(doc.root())?);
        (receipt.text == text).then_some(receipt)
    }

    /// Returns the receipt for the agent, without the subscription that the reply came from. The
    /// agent does not need the subscription's id, and could use it to forge a reply.
    #[must_use]
    pub fn without_subscription(self) -> Self {
        if self.resolution.subscription_id.is_none() {
            return self;
        }
        Self::from_resolution(Resolution { subscription_id: None, ..self.resolution })
    }

    /// Returns the canonical text, which is stored, signed and hashed.
    pub fn to_json(&self) -> &str {
        &self.text
    }

    /// Returns the digest of the text.
    pub fn digest(&self) -> Digest {
        Digest::of(self.text.as_bytes())
    }

    /// Returns the resolution.
    pub fn resolution(&self) -> &Resolution {
        &self.resolution
    }
}

fn write(resolution: &Resolution) -> String {
    write_object(|writer| {
        writer.key("type").text(TYPE);
        writer.key("reply_token").text(resolution.token.as_str());
        writer.key("session_id").text(resolution.session_id.as_str());
        writer.key("agent_id").text(&resolution.agent_id);
        writer.key("event_id").text(resolution.event_id.as_str());
        writer.key("by").text(resolution.resolved_by.as_str());
        writer.key("asked_at").text(&format_time(resolution.asked_at));
        writer.key("deadline").text(&format_time(resolution.deadline));
        writer.key("resolved_at").text(&format_time(resolution.resolved_at));
        let optional = [
            ("action_digest", resolution.action_digest.map(|digest| digest.to_string())),
            ("expires_at", resolution.expires_at.map(format_time)),
            ("replied_at", resolution.replied_at.map(|at| at.to_string())),
            ("subscription_id", resolution.subscription_id.as_ref().map(ToString::to_string)),
            ("principal", resolution.principal.as_ref().map(ToString::to_string)),
            ("decided_by", resolution.decided_by.as_ref().map(ToString::to_string)),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                writer.key(name).text(&value);
            }
        }
        match &resolution.answer {
            QuestionAnswer::Decision(decision) => writer.key("decision").text(decision.as_str()),
            QuestionAnswer::Response(response) => response.write_member("response", writer),
            QuestionAnswer::Unavailable => {}
        }
        if resolution.modified {
            writer.key("modified").boolean(true);
        }
    })
}

fn read(root: JsonValue<'_>) -> Option<Resolution> {
    if root.member("type")?.text()? != TYPE {
        return None;
    }
    let text = |name: &str| root.member(name).and_then(|value| String::read(value));
    let answer = match (text("decision"), root.member("response")) {
        (Some(decision), None) => QuestionAnswer::Decision(Decision::parse(&decision)),
        (None, Some(response)) => QuestionAnswer::Response(ClarificationResponse::read(response)?),
        (None, None) => QuestionAnswer::Unavailable,
        _ => return None,
    };
    let millis = |name: &str| Some(Timestamp::parse(&text(name)?).ok()?.unix_millis());
    Some(Resolution {
        token: ReplyToken::parse(&text("reply_token")?).ok()?,
        session_id: SessionId::parse(&text("session_id")?).ok()?,
        agent_id: text("agent_id")?.into(),
        event_id: EventId::parse(&text("event_id")?).ok()?,
        action_digest: text("action_digest").and_then(|digest| Digest::parse(&digest)),
        answer,
        modified: root.member("modified").and_then(|value| value.as_bool()).unwrap_or(false),
        resolved_by: ResolvedBy::parse(&text("by")?)?,
        asked_at: millis("asked_at")?,
        deadline: millis("deadline")?,
        resolved_at: millis("resolved_at")?,
        expires_at: text("expires_at").and_then(|at| Some(Timestamp::parse(&at).ok()?.unix_millis())),
        replied_at: text("replied_at").and_then(|at| Timestamp::parse_rfc3339(&at).ok()),
        subscription_id: text("subscription_id").and_then(|id| SubscriptionId::parse(&id).ok()),
        principal: text("principal").map(Into::into),
        decided_by: text("decided_by").map(Into::into),
    })
}

/// Formats a time, clamped to the years 0 to 9999.
fn format_time(at: UnixMillis) -> String {
    let at = at.clamp(UnixMillis::new(-62_167_219_200_000), UnixMillis::new(253_402_300_799_999));
    Timestamp::from_unix_millis(at).map(|time| time.to_string()).unwrap_or_default()
}
