//! The digest of a tool call. A question to a person carries it, the receipt of the answer contains it, and the actual call
//! must match it.

use thiserror::Error;

use crate::json::{JsonWriter, SyntaxError, Tape};
use crate::{CanonicalError, Digest, canonicalize_exact};

/// Why a tool call has no digest.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ActionError {
    /// The arguments are not JSON.
    #[error(transparent)]
    Json(#[from] SyntaxError),
    /// The arguments have no canonical form, so parsers could disagree about them, or two different
    /// calls could have the same digest.
    #[error(transparent)]
    NotCanonical(#[from] CanonicalError),
}

/// Returns the digest of a tool call: SHA-256 of the canonical form (RFC 8785) of `{"tool":…,"arguments":…}`. The arguments
/// can be any JSON value with a canonical form.
///
/// ```
/// let digest = seal::action_digest("transfer", r#"{"to":"Ben","amount":500}"#).unwrap();
/// assert_eq!(seal::action_digest("transfer", r#"{ "amount": 5e2, "to": "\u0042en" }"#), Ok(digest));
/// assert_ne!(seal::action_digest("transfer", r#"{"to":"Ben","amount":5000}"#), Ok(digest));
/// ```
pub fn action_digest(tool: &str, arguments: &str) -> Result<Digest, ActionError> {
    let mut tape = Tape::default();
    tape.read(arguments)?;
    let mut writer = JsonWriter::with_capacity(tool.len() + arguments.len() + 32);
    writer.open_object();
    writer.key("tool").text(tool);
    writer.key("arguments").raw(arguments);
    writer.close_object();
    let text = writer.finish();
    let doc = tape.read(&text)?;
    Ok(Digest::of(canonicalize_exact(&doc.root())?.as_bytes()))
}
