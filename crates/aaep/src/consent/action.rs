//! The exact action that an answer is bound to (design, decision 6).

use std::fmt;

use seal::{Digest, NotCanonical, canonical};

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
        tape.read(arguments).map_err(NotAnAction::Json)?;
        let mut writer = Writer::with_capacity(tool.len() + arguments.len() + 32);
        writer.open_object();
        writer.key("tool");
        writer.text(tool);
        writer.key("arguments");
        writer.raw(arguments);
        writer.close_object();
        let text = writer.finish();
        let doc = tape.read(&text).map_err(NotAnAction::Json)?;
        let form = canonical(&doc.root()).map_err(NotAnAction::NotCanonical)?;
        Ok(Self { digest: Digest::of(form.as_bytes()) })
    }

    /// Its digest.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

/// Arguments that no answer can be bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotAnAction {
    /// They are no JSON.
    Json(SyntaxError),
    /// They mean different things to different readers.
    NotCanonical(NotCanonical),
}

impl fmt::Display for NotAnAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(error) => error.fmt(f),
            Self::NotCanonical(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NotAnAction {}
