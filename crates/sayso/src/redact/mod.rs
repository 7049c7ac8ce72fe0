//! Secrets do not get into what people hear.
//!
//! - `secrets`: the redactor for whole texts; the patterns are in `aaep::secret`.
//! - `held`: the same for text that arrives in pieces.

mod held;
mod secrets;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use seal::json::Scribe;

use crate::desk::LONGEST;

pub(crate) use held::Held;
pub use secrets::Secrets;

/// Takes secrets out of a text that people will hear.
///
/// It is asked in the middle of an event, while other sessions of the hub wait: it should be quick, and must not speak through
/// a session of the same hub, which would wait for itself.
///
/// ```
/// use std::borrow::Cow;
/// /// Nothing with the name of the project in it is told.
/// struct Project;
/// impl sayso::Redact for Project {
///     fn redact<'t>(&self, text: &'t str) -> (Cow<'t, str>, u64) {
///         match text.matches("Bluebird").count() {
///             0 => (text.into(), 0),
///             count => (text.replace("Bluebird", "the project").into(), count as u64),
///         }
///     }
/// }
/// assert_eq!(sayso::Redact::redact(&Project, "Open Bluebird.").0, "Open the project.");
/// ```
pub trait Redact: Send + Sync {
    /// The text without secrets, and how many there were.
    ///
    /// ```
    /// use sayso::{Redact, Secrets};
    /// assert_eq!(Secrets.redact("The password: hunter2"), ("The password: [redacted]".into(), 1));
    /// ```
    fn redact<'t>(&self, text: &'t str) -> (Cow<'t, str>, u64);
}

/// Leaves every text as it is.
///
/// ```
/// use sayso::{Redact, Untouched};
/// assert_eq!(Untouched.redact("password: hunter2"), ("password: hunter2".into(), 0));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Untouched;

impl Redact for Untouched {
    fn redact<'t>(&self, text: &'t str) -> (Cow<'t, str>, u64) {
        (text.into(), 0)
    }
}

/// Cleans all texts of a hub or of one of its sessions, and counts.
#[derive(Clone)]
pub(crate) struct Cleaner {
    how: Arc<dyn Redact>,
    /// Of the whole hub.
    all: Arc<AtomicU64>,
    count: Arc<AtomicU64>,
}

impl Cleaner {
    pub(crate) fn new(how: Arc<dyn Redact>) -> Self {
        let all = Arc::<AtomicU64>::default();
        Self { how, count: all.clone(), all }
    }

    /// For one session, which counts for itself too.
    pub(crate) fn of_session(&self) -> Self {
        Self { count: Arc::default(), ..self.clone() }
    }

    pub(crate) fn clean<'t>(&self, text: &'t str) -> Cow<'t, str> {
        // The desk refuses it as it is.
        if text.len() > LONGEST {
            return text.into();
        }
        let (text, count) = self.how.redact(text);
        if count > 0 {
            self.count.fetch_add(count, Ordering::Relaxed);
            if !Arc::ptr_eq(&self.count, &self.all) {
                self.all.fetch_add(count, Ordering::Relaxed);
            }
        }
        text
    }

    /// A member of an event that people hear.
    pub(crate) fn write(&self, out: &mut Scribe, name: &str, text: &str) {
        out.key(name).text(&self.clean(text));
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Cleaner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secrets", self.count())
    }
}
