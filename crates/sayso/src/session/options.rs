//! Optional members that any event can have.

use std::sync::Arc;

use aaep::event::{CORE_CONTEXT, Urgency, Verbosity};
use seal::json::TapeWriter;

use crate::argument::JsonText;
use crate::error::Error;
use crate::member;
use crate::redact::CountingRedactor;

/// Optional members that any event can have (§3.3, §3.4). [`SessionBuilder::options`](crate::SessionBuilder::options) sets them
/// for a whole session, [`Session::with_options`](crate::Session::with_options) for some of its events. Output events and the
/// state changes that follow from them are written by the hub and have none of these members.
///
/// ```
/// # testing::run_example!(hub, {
/// use sayso::{EventOptions, Urgency};
/// let traced = EventOptions::new().correlation_id("trace-7");
/// let session = hub.session("Pay Ben.").options(traced.clone()).start().await?;
/// session.with_options(traced.urgency(Urgency::Background))?.think("Looking for Ben's account.").await?;
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
    body: JsonText,
}

impl EventOptions {
    /// Returns options without any members.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// Sets the verbosity for which the texts are written.
        verbosity(verbosity: Verbosity) => verbosity = Some(verbosity);

        /// Sets the urgency of the events. The default is normal. Events that the protocol makes critical stay critical.
        urgency(urgency: Urgency) => urgency = Some(urgency);

        /// Sets an id that links the events to a trace elsewhere.
        correlation_id(id: impl Into<String>) => correlation_id = Some(id.into());
    }

    /// Adds data of an extension: its prefix, the URI of its context, and an object. Secrets are removed from its texts.
    pub fn extension(
        mut self,
        prefix: impl Into<String>,
        context: impl Into<String>,
        body: impl Into<JsonText>,
    ) -> Self {
        self.extensions.push(Extension { prefix: prefix.into(), context: context.into(), body: body.into() });
        self
    }

    pub(crate) fn render(self, redactor: &CountingRedactor) -> Result<RenderedOptions, Error> {
        let mut out = TapeWriter::default();
        out.open_object();
        let has_extensions = !self.extensions.is_empty();
        if has_extensions {
            let contexts = self.extensions.iter().map(|extension| extension.context.as_str());
            member::texts(&mut out, "@context", std::iter::once(CORE_CONTEXT).chain(contexts));
        }
        member::optional_text(&mut out, "verbosity", self.verbosity.as_ref().map(Verbosity::as_str));
        member::optional_text(&mut out, "correlation_id", self.correlation_id.as_deref());
        if has_extensions {
            out.key("extensions").open_object();
            for Extension { prefix, body, .. } in self.extensions {
                member::json(&mut out, &prefix, &body.into_json()?, redactor);
            }
            out.close_object();
        }
        out.close_object();
        Ok(RenderedOptions { urgency: self.urgency, members: Arc::new(out), has_extensions })
    }
}

/// Options that are already rendered as JSON members for every event.
#[derive(Clone, Debug)]
pub(crate) struct RenderedOptions {
    urgency: Option<Urgency>,
    /// The members, as one JSON object.
    members: Arc<TapeWriter>,
    has_extensions: bool,
}

impl RenderedOptions {
    /// Writes all members. The urgency is omitted for events that the protocol makes critical, because the hub sets it.
    pub(crate) fn write_with_urgency(&self, is_critical: bool, out: &mut TapeWriter) {
        if !is_critical {
            member::text(out, "urgency", self.urgency.as_ref().map_or("normal", Urgency::as_str));
        }
        self.write_members(out);
    }

    /// Whether an event with these options can be merged with a later one: it is not critical, and has no data of extensions, which would
    /// be lost.
    pub(crate) fn allow_merging(&self) -> bool {
        self.urgency != Some(Urgency::Critical) && !self.has_extensions
    }

    /// Writes all members except the urgency.
    pub(crate) fn write_members(&self, out: &mut TapeWriter) {
        member::copy_members(out, &self.members);
    }
}
