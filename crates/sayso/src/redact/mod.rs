//! Secrets do not get into what people hear.
//!
//! - `secrets`: what counts as one, and where it begins and ends.
//! - `held`: the same for text that comes in pieces.

mod held;
mod secrets;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use seal::json::Writer;

pub(crate) use held::Held;
pub use secrets::Secrets;

/// Takes secrets out of a text that people will hear.
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
    fn redact<'t>(&self, text: &'t str) -> (Cow<'t, str>, u64);
}

/// Leaves every text as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Untouched;

impl Redact for Untouched {
    fn redact<'t>(&self, text: &'t str) -> (Cow<'t, str>, u64) {
        (text.into(), 0)
    }
}

/// Cleans all texts of a hub's sessions, and counts.
#[derive(Clone)]
pub(crate) struct Cleaner {
    how: Arc<dyn Redact>,
    count: Arc<AtomicU64>,
}

impl Cleaner {
    pub(crate) fn new(how: Arc<dyn Redact>) -> Self {
        Self { how, count: Arc::default() }
    }

    pub(crate) fn clean<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let (text, count) = self.how.redact(text);
        self.count.fetch_add(count, Ordering::Relaxed);
        text
    }

    /// A member of an event that people hear.
    pub(crate) fn write(&self, out: &mut Writer, name: &str, text: &str) {
        out.key(name);
        out.text(&self.clean(text));
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
