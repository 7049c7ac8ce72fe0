//! The exact action that a confirmation covers (decision 6).

pub use seal::ActionError;
use seal::Digest;

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
        Ok(Self { digest: seal::action_digest(tool, arguments)? })
    }

    /// Returns the digest.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}
