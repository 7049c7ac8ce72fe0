//! The exact action that an answer is bound to (design, decision 6).

use seal::{Digest, NotCanonical, canonical};
use thiserror::Error;

use crate::json::{SyntaxError, Tape, Writer};

/// A tool and its arguments, as one value with one digest: SHA-256 over the canonical form (RFC 8785) of
/// `{"tool":…,"arguments":…}`.
///
/// The question carries the digest as `extensions.sayso.action_digest`, the receipt names it, and the call that is made
/// must have it.
///
/// ```
/// use aaep::consent::Action;
/// let asked = Action::new("transfer", r#"{"to":"Ben","amount":500}"#).unwrap();
/// let same = Action::new("transfer", r#"{ "amount": 5e2, "to": "\u0042en" }"#).unwrap();
/// let other = Action::new("transfer", r#"{"to":"Ben","amount":5000}"#).unwrap();
/// assert_eq!(asked.digest(), same.digest());
/// assert_ne!(asked.digest(), other.digest());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    digest: Digest,
}

impl Action {
    /// Takes a tool and its arguments, which are any JSON value that has a canonical form.
    pub fn new(tool: &str, arguments: &str) -> Result<Self, NotAnAction> {
        let mut tape = Tape::default();
        tape.read(arguments)?;
        let mut writer = Writer::with_capacity(tool.len() + arguments.len() + 32);
        writer.open_object();
        writer.key("tool").text(tool);
        writer.key("arguments").raw(arguments);
        writer.close_object();
        let text = writer.finish();
        let doc = tape.read(&text)?;
        let form = canonical(&doc.root())?;
        Ok(Self { digest: Digest::of(form.as_bytes()) })
    }

    /// Its digest.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

/// Arguments that no answer can be bound to.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NotAnAction {
    /// They are no JSON.
    #[error(transparent)]
    Json(#[from] SyntaxError),
    /// They mean different things to different readers.
    #[error(transparent)]
    NotCanonical(#[from] NotCanonical),
}
