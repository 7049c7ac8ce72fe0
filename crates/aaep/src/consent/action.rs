//! The exact action that a confirmation covers (decision 6).

use seal::{CanonicalError, Digest, canonicalize_exact};
use thiserror::Error;

use crate::json::{JsonWriter, SyntaxError, Tape};

/// A tool call, identified by a digest of its tool and arguments: SHA-256 of the canonical form
/// (RFC 8785) of `{"tool":…,"arguments":…}`.
///
/// The question carries the digest as `extensions.sayso.action_digest`, the receipt contains it,
/// and the actual call must match it.
///
/// ```
/// use aaep::consent::BoundAction;
/// let asked = BoundAction::new("transfer", r#"{"to":"Ben","amount":500}"#).unwrap();
/// let same = BoundAction::new("transfer", r#"{ "amount": 5e2, "to": "\u0042en" }"#).unwrap();
/// let different = BoundAction::new("transfer", r#"{"to":"Ben","amount":5000}"#).unwrap();
/// assert_eq!(asked.digest(), same.digest());
/// assert_ne!(asked.digest(), different.digest());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundAction {
    digest: Digest,
}

impl BoundAction {
    /// Creates an action from a tool and its arguments, which can be any JSON value with a
    /// canonical form.
    pub fn new(tool: &str, arguments: &str) -> Result<Self, ActionError> {
        let mut tape = Tape::default();
        tape.read(arguments)?;
        let mut writer = JsonWriter::with_capacity(tool.len() + arguments.len() + 32);
        writer.open_object();
        writer.key("tool").text(tool);
        writer.key("arguments").raw(arguments);
        writer.close_object();
        let text = writer.finish();
        let doc = tape.read(&text)?;
        let canonical = canonicalize_exact(&doc.root())?;
        Ok(Self { digest: Digest::of(canonical.as_bytes()) })
    }

    /// Returns the digest.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

/// Why an action cannot be created from the arguments.
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
