//! Receipts: a resolution in canonical form, for whoever keeps the book to sign.

use seal::{Digest, Timestamp, UnixMillis, canonical};

use crate::event::Decision;
use crate::id::{EventId, ReplyToken, SessionId, SubscriptionId};
use crate::json::{Kind, Tape, Value, object};
use crate::message::Response;
use crate::record::Part;

use super::{Answer, By, Resolution};

const TYPE: &str = "sayso:receipt";

/// What attests how a question was resolved, and the action that it was about: canonical JSON (RFC 8785), so that its
/// digest means something and a signature over it can be checked by anybody.
#[derive(Clone, Debug, PartialEq)]
pub struct Receipt {
    resolution: Resolution,
    text: String,
}

impl Receipt {
    pub(super) fn of(resolution: Resolution) -> Self {
        let text = write(&resolution);
        let form = Tape::default().read(&text).ok().and_then(|doc| canonical(&doc.root()).ok());
        Self { resolution, text: form.unwrap_or(text) }
    }

    /// Reads one; nothing unless it is, byte for byte, what [`to_json`](Self::to_json) writes.
    pub fn parse(text: &str) -> Option<Self> {
        let mut tape = Tape::default();
        let doc = tape.read(text).ok()?;
        let receipt = Self::of(read(doc.root())?);
        (receipt.text == text).then_some(receipt)
    }

    /// Its canonical text: what is stored, signed and hashed.
    pub fn to_json(&self) -> &str {
        &self.text
    }

    /// The digest of its text.
    pub fn digest(&self) -> Digest {
        Digest::of(self.text.as_bytes())
    }

    /// What it attests.
    pub fn resolution(&self) -> &Resolution {
        &self.resolution
    }
}

fn write(resolution: &Resolution) -> String {
    object(|writer| {
        writer.key("type").text(TYPE);
        writer.key("reply_token").text(resolution.token.as_str());
        writer.key("session_id").text(resolution.session.as_str());
        writer.key("agent_id").text(&resolution.agent);
        writer.key("event_id").text(resolution.event.as_str());
        writer.key("by").text(resolution.by.as_str());
        writer.key("asked_at").text(&time(resolution.asked));
        writer.key("deadline").text(&time(resolution.deadline));
        writer.key("resolved_at").text(&time(resolution.at));
        let optional = [
            ("action_digest", resolution.action_digest.map(|digest| digest.to_string())),
            ("replied_at", resolution.replied.map(|at| at.to_string())),
            ("subscription_id", resolution.subscription.as_ref().map(ToString::to_string)),
            ("principal", resolution.principal.as_ref().map(ToString::to_string)),
            ("decided_by", resolution.decided_by.as_ref().map(ToString::to_string)),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                writer.key(name).text(&value);
            }
        }
        match &resolution.answer {
            Answer::Decision(decision) => writer.key("decision").text(decision.as_str()),
            Answer::Response(response) => response.write_member("response", writer),
            Answer::Unavailable => {}
        }
        if resolution.modified {
            writer.key("modified").boolean(true);
        }
    })
}

fn read(root: Value<'_>) -> Option<Resolution> {
    if root.kind() != Kind::Object || root.member("type")?.text()? != TYPE {
        return None;
    }
    let text = |name: &str| root.member(name).and_then(|value| String::read(value));
    let answer = match (text("decision"), root.member("response")) {
        (Some(decision), None) => Answer::Decision(Decision::of(&decision)),
        (None, Some(response)) => Answer::Response(Response::read(response)?),
        (None, None) => Answer::Unavailable,
        _ => return None,
    };
    let millis = |name: &str| Some(Timestamp::parse(&text(name)?).ok()?.unix_millis());
    Some(Resolution {
        token: ReplyToken::parse(&text("reply_token")?).ok()?,
        session: SessionId::parse(&text("session_id")?).ok()?,
        agent: text("agent_id")?.into(),
        event: EventId::parse(&text("event_id")?).ok()?,
        action_digest: text("action_digest").and_then(|digest| Digest::parse(&digest)),
        answer,
        modified: root.member("modified").and_then(|value| value.boolean()).unwrap_or(false),
        by: By::parse(&text("by")?)?,
        asked: millis("asked_at")?,
        deadline: millis("deadline")?,
        at: millis("resolved_at")?,
        replied: text("replied_at").and_then(|at| Timestamp::parse_rfc3339(&at).ok()),
        subscription: text("subscription_id").and_then(|id| SubscriptionId::parse(&id).ok()),
        principal: text("principal").map(Into::into),
        decided_by: text("decided_by").map(Into::into),
    })
}

/// A time as text, or the nearest that can be written.
fn time(at: UnixMillis) -> String {
    let at = at.clamp(UnixMillis::new(-62_167_219_200_000), UnixMillis::new(253_402_300_799_999));
    Timestamp::from_unix_millis(at).map(|time| time.to_string()).unwrap_or_default()
}
