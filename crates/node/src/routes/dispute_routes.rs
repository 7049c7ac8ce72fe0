//! Reads the requests of the agent's own program about disputes.

use asp::MessageId;
use asp::dispute::{DisputeReason, Severity, Verdict};
use seal::json::{JsonValue, Tape};
use wire::http::HttpResponse;

use super::responses::malformed;
use crate::disputes::DisputeRequest;

/// Reads a complaint.
pub(super) fn read_dispute(body: &str) -> Result<DisputeRequest, HttpResponse> {
    let mut tape = Tape::default();
    let doc = tape.read(body).map_err(|error| malformed(&format!("The body is not JSON: {error}.")))?;
    let root = doc.root();
    let reason = root.member("reason").and_then(|value| DisputeReason::parse(&value.text()?));
    let names = DisputeReason::ALL.map(DisputeReason::as_str).join(", ");
    let reason = reason.ok_or_else(|| malformed(&format!("reason must be one of {names}.")))?;
    let messages = root.member("messages").map(|list| {
        list.items().map(|id| MessageId::parse(&id.text()?).ok()).collect::<Option<Vec<MessageId>>>()
    });
    Ok(DisputeRequest {
        reason,
        severity: read_severity(&root).unwrap_or(Severity::MODERATE),
        statement: root.member("statement").and_then(|value| Some(value.text()?.into_owned())),
        messages: messages
            .unwrap_or(Some(Vec::new()))
            .ok_or_else(|| malformed("messages must be a list of ids."))?,
    })
}

/// Reads how a dispute ends. Returns `None` if the person must be asked again.
pub(super) fn read_verdict(body: &str) -> Result<Option<(Verdict, String)>, HttpResponse> {
    let mut tape = Tape::default();
    let doc = tape.read(body).map_err(|error| malformed(&format!("The body is not JSON: {error}.")))?;
    let root = doc.root();
    let verdict = match root.member("verdict").and_then(|value| value.text()).as_deref() {
        Some("upheld") => Verdict::Upheld(read_severity(&root).unwrap_or(Severity::MODERATE)),
        Some("dismissed") => Verdict::Dismissed,
        Some("settled") => Verdict::Settled,
        Some("withdrawn") => Verdict::Withdrawn,
        Some("ask_again") => return Ok(None),
        _ => return Err(malformed("verdict must be upheld, dismissed, settled, withdrawn or ask_again.")),
    };
    let explanation = root.member("explanation").and_then(|value| Some(value.text()?.into_owned()));
    Ok(Some((verdict, explanation.unwrap_or_default())))
}

fn read_severity(root: &JsonValue<'_>) -> Option<Severity> {
    let number = root.member("severity")?.as_number()?.as_i64()?;
    Severity::new(u8::try_from(number).ok()?)
}
