//! Redaction: secrets are removed from everything that people hear.
//!
//! - `secrets`: the redactor for whole texts. The patterns are in `aaep::secret`.
//! - `stream`: redaction of text that arrives in pieces.

mod secrets;
mod stream;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use seal::json::TapeWriter;

use crate::dispatcher::MAX_EVENT_BYTES;

pub use secrets::SecretRedactor;
pub(crate) use stream::StreamRedactor;

/// Removes secrets from a text that people will hear.
///
/// Other sessions of the hub may wait while it runs, so it should be fast. It must not use a session of the
/// same hub, because that would deadlock.
///
/// ```
/// use std::borrow::Cow;
/// /// Hides the name of a project.
/// struct ProjectRedactor;
/// impl sayso::Redact for ProjectRedactor {
///     fn redact<'t>(&self, text: &'t str) -> (Cow<'t, str>, u64) {
///         match text.matches("Bluebird").count() {
///             0 => (text.into(), 0),
///             count => (text.replace("Bluebird", "the project").into(), count as u64),
///         }
///     }
/// }
/// assert_eq!(sayso::Redact::redact(&ProjectRedactor, "Open Bluebird.").0, "Open the project.");
/// ```
pub trait Redact: Send + Sync {
    /// Returns the text without secrets, and how many were removed.
    ///
    /// ```
    /// use sayso::{Redact, SecretRedactor};
    /// assert_eq!(SecretRedactor.redact("The password: hunter2"), ("The password: [redacted]".into(), 1));
    /// ```
    fn redact<'t>(&self, text: &'t str) -> (Cow<'t, str>, u64);
}

/// A redactor that leaves every text unchanged.
///
/// ```
/// use sayso::{Redact, NoRedaction};
/// assert_eq!(NoRedaction.redact("password: hunter2"), ("password: hunter2".into(), 0));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRedaction;

impl Redact for NoRedaction {
    fn redact<'t>(&self, text: &'t str) -> (Cow<'t, str>, u64) {
        (text.into(), 0)
    }
}

/// Redacts all texts of a hub or of one of its sessions, and counts the removed secrets.
#[derive(Clone)]
pub(crate) struct CountingRedactor {
    redactor: Arc<dyn Redact>,
    /// The count for the hub, which includes all its sessions.
    hub_count: Arc<AtomicU64>,
    count: Arc<AtomicU64>,
}

impl CountingRedactor {
    pub(crate) fn new(redactor: Arc<dyn Redact>) -> Self {
        let hub_count = Arc::<AtomicU64>::default();
        Self { redactor, count: hub_count.clone(), hub_count }
    }

    /// Returns a redactor for one session. It counts for the session and for the hub.
    pub(crate) fn for_session(&self) -> Self {
        Self { count: Arc::default(), ..self.clone() }
    }

    pub(crate) fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        // The dispatcher rejects a text of this size anyway.
        if text.len() > MAX_EVENT_BYTES {
            return text.into();
        }
        let (text, count) = self.redactor.redact(text);
        if count > 0 {
            self.count.fetch_add(count, Ordering::Relaxed);
            if !Arc::ptr_eq(&self.count, &self.hub_count) {
                self.hub_count.fetch_add(count, Ordering::Relaxed);
            }
        }
        text
    }

    /// Writes a member with a redacted text.
    pub(crate) fn write(&self, out: &mut TapeWriter, name: &str, text: &str) {
        out.key(name).text(&self.redact(text));
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for CountingRedactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secrets", self.count())
    }
}
