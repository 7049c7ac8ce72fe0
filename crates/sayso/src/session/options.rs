//! Members that every event can have, whatever it says.

use std::sync::Arc;

use aaep::event::{CORE_CONTEXT, Urgency, Verbosity};
use seal::json::Scribe;

use crate::argument::Bound;
use crate::error::Error;
use crate::member;
use crate::redact::Cleaner;

/// Members that every event can have (§3.3, §3.4): of all events of a session, by
/// [`SessionBuilder::options`](crate::SessionBuilder::options), or of some of them, by [`Session::with`](crate::Session::with).
/// The hub writes output and the changes of state that follow from it by itself: they have none of these.
///
/// ```
/// # testing::example!(hub, {
/// use sayso::{EventOptions, Urgency};
/// let traced = EventOptions::new().correlation_id("trace-7");
/// let session = hub.session("Pay Ben.").options(traced.clone()).start().await?;
/// session.with(traced.urgency(Urgency::Background))?.think("Looking for Ben's account.").await?;
/// # session.cancel("Nothing was sent.").await?;
/// # });
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing by itself"]
pub struct EventOptions {
    verbosity: Option<Verbosity>,
    urgency: Option<Urgency>,
    correlation_id: Option<String>,
    extensions: Vec<Extension>,
}

#[derive(Clone, Debug)]
struct Extension {
    prefix: String,
    context: String,
    body: Bound,
}

impl EventOptions {
    /// None of them.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// For which verbosity the texts are written.
        verbosity(verbosity: Verbosity) => verbosity = Some(verbosity);

        /// How urgent the events are; normal if not set. Events that the protocol makes critical stay so.
        urgency(urgency: Urgency) => urgency = Some(urgency);

        /// Ties the events to a trace elsewhere.
        correlation_id(id: impl Into<String>) => correlation_id = Some(id.into());
    }

    /// Data of an extension: its prefix, the URI of its context, and an object. Secrets are taken out of its texts.
    pub fn extension(
        mut self,
        prefix: impl Into<String>,
        context: impl Into<String>,
        body: impl Into<Bound>,
    ) -> Self {
        self.extensions.push(Extension { prefix: prefix.into(), context: context.into(), body: body.into() });
        self
    }

    pub(crate) fn render(self, cleaner: &Cleaner) -> Result<Rendered, Error> {
        let mut out = Scribe::default();
        out.open_object();
        if !self.extensions.is_empty() {
            let contexts = self.extensions.iter().map(|extension| extension.context.as_str());
            member::texts(&mut out, "@context", std::iter::once(CORE_CONTEXT).chain(contexts));
        }
        member::optional_text(&mut out, "verbosity", self.verbosity.as_ref().map(Verbosity::as_str));
        member::optional_text(&mut out, "correlation_id", self.correlation_id.as_deref());
        if !self.extensions.is_empty() {
            out.key("extensions").open_object();
            for Extension { prefix, body, .. } in self.extensions {
                member::json(&mut out, &prefix, &body.finish()?, cleaner);
            }
            out.close_object();
        }
        out.close_object();
        Ok(Rendered { urgency: self.urgency, members: Arc::new(out) })
    }
}

/// The same, ready to be written into every event.
#[derive(Clone, Debug)]
pub(crate) struct Rendered {
    urgency: Option<Urgency>,
    /// An object.
    members: Arc<Scribe>,
}

impl Rendered {
    /// Writes the members. An event that the protocol makes critical has its urgency from the hub.
    pub(crate) fn write(&self, is_critical: bool, out: &mut Scribe) {
        if !is_critical {
            member::text(out, "urgency", self.urgency.as_ref().map_or("normal", Urgency::as_str));
        }
        self.write_members(out);
    }

    /// Writes all members but the urgency.
    pub(crate) fn write_members(&self, out: &mut Scribe) {
        member::copy_members(out, &self.members);
    }
}
