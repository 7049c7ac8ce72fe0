//! A session before its start.

use std::time::Duration;

use aaep::event::TextDirection;
use aaep::shaping::is_right_to_left;
use seal::json::TapeWriter;

use super::Session;
use super::options::{EventOptions, RenderedOptions};
use crate::error::Error;
use crate::hub::Hub;
use crate::localized_text::LocalizedText;
use crate::member::{self, Document};
use crate::redact::CountingRedactor;

/// A builder for a session, created by [`Hub::session`].
///
/// ```
/// # testing::run_example!(hub, {
/// let session = hub.session("Paga a Ben.").says("Pago a Ben.").person("ana").language("es").start().await?;
/// # session.cancel("No he pagado.").await?;
/// # });
/// ```
#[derive(Debug)]
#[must_use = "the session does not start until `start` is called"]
pub struct SessionBuilder {
    hub: Hub,
    request: String,
    summary: Option<LocalizedText>,
    publishes_request: bool,
    person: Option<String>,
    agent: Option<String>,
    expected_duration: Option<Duration>,
    tools: Vec<String>,
    hints: LocalizationHints,
    options: EventOptions,
}

/// The session's language and text settings (§11.1).
#[derive(Debug, Default)]
struct LocalizationHints {
    language: Option<String>,
    direction: Option<TextDirection>,
    available: Vec<String>,
    fallback: Vec<String>,
    script: Option<String>,
    calendar: Option<String>,
}

impl SessionBuilder {
    pub(crate) fn new(hub: Hub, request: String) -> Self {
        Self {
            hub,
            request,
            summary: None,
            publishes_request: true,
            person: None,
            agent: None,
            expected_duration: None,
            tools: Vec::new(),
            hints: LocalizationHints::default(),
            options: EventOptions::default(),
        }
    }

    /// Sets the text that says what the agent will do, and does not publish the request, which may contain something private.
    pub fn says_instead_of_request(mut self, summary: impl Into<LocalizedText>) -> Self {
        self.publishes_request = false;
        self.says(summary)
    }

    setters! {
        /// Sets the text that says what the agent will do. The default is the request itself.
        says(summary: impl Into<LocalizedText>) => summary = Some(summary.into());

        /// Sets the person that the session is for. If listeners have scopes, only those of this person hear it.
        person(name: impl Into<String>) => person = Some(name.into());

        /// Sets the agent's id, if the token does not determine it.
        agent(id: impl Into<String>) => agent = Some(id.into());

        /// Sets how long the session is expected to take.
        expected_duration(duration: Duration) => expected_duration = Some(duration);

        /// Sets the names of the tools that the agent may use.
        tools_available(tools: impl IntoIterator<Item = impl Into<String>>) => tools = collect_strings(tools);

        /// Sets the session's language, as a tag such as `es` or `yo`. [`LocalizedText`] adds other languages.
        language(tag: impl Into<String>) => hints.language = Some(tag.into());

        /// Sets the direction of the session's text. The default follows from the language.
        text_direction(direction: TextDirection) => hints.direction = Some(direction);

        /// Sets the languages in which the session is available. The default is the session's language and those of the text that
        /// [`says`](Self::says) sets.
        available_languages(tags: impl IntoIterator<Item = impl Into<String>>) => hints.available = collect_strings(tags);

        /// Sets the languages to try, in this order, for a listener that knows none of the session's languages.
        fallback_languages(tags: impl IntoIterator<Item = impl Into<String>>) => hints.fallback = collect_strings(tags);

        /// Sets the script of the session's text, such as `Latn` (ISO 15924).
        script(script: impl Into<String>) => hints.script = Some(script.into());

        /// Sets the calendar of the session's dates, such as `gregory`.
        calendar(calendar: impl Into<String>) => hints.calendar = Some(calendar.into());

        /// Sets optional members for all events of the session.
        options(options: EventOptions) => options = options;
    }

    /// Starts the session.
    pub async fn start(mut self) -> Result<Session, Error> {
        let redactor = self.hub.redactor.for_session();
        let options = std::mem::take(&mut self.options).render(&redactor)?;
        let body = self.to_request_body(&redactor, &options);
        let open_session = self.hub.commands.start(body, redactor.clone()).await?;
        Ok(Session::new(open_session, redactor, options, self.primary_language()))
    }

    fn primary_language(&self) -> &str {
        self.hints.language.as_deref().unwrap_or(&self.hub.language)
    }

    /// Returns the body of the request that starts the session.
    fn to_request_body(&self, redactor: &CountingRedactor, options: &RenderedOptions) -> Document {
        let mut out = Document::default();
        out.open_object();
        let request = LocalizedText::new(self.request.as_str());
        let summary = self.summary.as_ref().unwrap_or(&request);
        summary.write_summaries(&mut out, redactor);
        options.write_with_urgency(false, &mut out);
        if self.publishes_request {
            summary.write_related(&mut out, redactor, "request_text", &request);
        }
        if let Some(person) = &self.person {
            member::text(&mut out, "requested_by", &format!("user:{person}"));
        }
        member::optional_millis(&mut out, "expected_duration_ms", self.expected_duration);
        member::texts(&mut out, "tools_available", self.tools.iter().map(String::as_str));
        self.write_hints(&mut out, summary);
        let producer = &self.hub.producer;
        let members = [("agent_id", self.agent.as_deref())].into_iter().chain(producer.members());
        let mut members = members.filter_map(|(name, text)| Some((name, text?))).peekable();
        if members.peek().is_some() {
            out.key("producer").open_object();
            members.for_each(|(name, text)| member::text(&mut out, name, text));
            out.close_object();
        }
        out.close_object();
        out
    }

    fn write_hints(&self, out: &mut TapeWriter, summary: &LocalizedText) {
        let (hints, language) = (&self.hints, self.primary_language());
        out.key("localization_hints").open_object();
        member::text(out, "primary_language", language);
        let direction = hints.direction.as_ref().map(TextDirection::as_str);
        let direction = direction.or(is_right_to_left(language).then_some("rtl"));
        member::optional_text(out, "text_direction", direction);
        if hints.available.is_empty() {
            let others = summary.languages().filter(|tag| !tag.eq_ignore_ascii_case(language));
            let all: Vec<_> = std::iter::once(language).chain(others).collect();
            member::texts(out, "available_languages", all.iter().copied().filter(|_| all.len() > 1));
        } else {
            member::texts(out, "available_languages", hints.available.iter().map(String::as_str));
        }
        member::texts(out, "fallback_chain", hints.fallback.iter().map(String::as_str));
        member::optional_text(out, "script", hints.script.as_deref());
        member::optional_text(out, "calendar", hints.calendar.as_deref());
        out.close_object();
    }
}

fn collect_strings(texts: impl IntoIterator<Item = impl Into<String>>) -> Vec<String> {
    texts.into_iter().map(Into::into).collect()
}
