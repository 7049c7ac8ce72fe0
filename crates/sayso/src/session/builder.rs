//! A session that has not begun.

use std::time::Duration;

use aaep::event::TextDirection;
use aaep::shape::is_right_to_left;
use seal::json::Scribe;

use super::Session;
use super::options::{EventOptions, Rendered};
use crate::error::Error;
use crate::hub::Hub;
use crate::member::{self, Document};
use crate::redact::Cleaner;
use crate::words::Words;

/// A session that has not begun, made by [`Hub::session`].
///
/// ```
/// # testing::example!(hub, {
/// let session = hub.session("Paga a Ben.").says("Pago a Ben.").person("ana").language("es").start().await?;
/// # session.cancel("No he pagado.").await?;
/// # });
/// ```
#[derive(Debug)]
#[must_use = "it begins when it is started"]
pub struct SessionBuilder {
    hub: Hub,
    request: String,
    words: Option<Words>,
    quotes_request: bool,
    person: Option<String>,
    agent: Option<String>,
    expected_duration: Option<Duration>,
    tools: Vec<String>,
    hints: Hints,
    options: EventOptions,
}

/// What is said of the session's languages (§11.1).
#[derive(Debug, Default)]
struct Hints {
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
            words: None,
            quotes_request: true,
            person: None,
            agent: None,
            expected_duration: None,
            tools: Vec::new(),
            hints: Hints::default(),
            options: EventOptions::default(),
        }
    }

    /// What the agent will do. The request itself is not published, because it may hold what others should not hear.
    pub fn says_only(mut self, words: impl Into<Words>) -> Self {
        self.quotes_request = false;
        self.says(words)
    }

    setters! {
        /// What the agent will do, in its own words; the request itself if not set.
        says(words: impl Into<Words>) => words = Some(words.into());

        /// The person that the session is for. Where listeners have scopes, only those of this person hear it.
        person(name: impl Into<String>) => person = Some(name.into());

        /// The agent that speaks, where the token does not say so.
        agent(id: impl Into<String>) => agent = Some(id.into());

        /// How long the session should take.
        expected_duration(duration: Duration) => expected_duration = Some(duration);

        /// The tools that the agent may use, by their names.
        tools_available(tools: impl IntoIterator<Item = impl Into<String>>) => tools = strings(tools);

        /// The language of the session, as a tag like `es` or `yo`; other languages stand beside it in [`Words`].
        language(tag: impl Into<String>) => hints.language = Some(tag.into());

        /// The direction of the session's text; that of its language if not set.
        text_direction(direction: TextDirection) => hints.direction = Some(direction);

        /// The languages that the session can be heard in; those of its first [`Words`] if not set.
        available_languages(tags: impl IntoIterator<Item = impl Into<String>>) => hints.available = strings(tags);

        /// The languages to try, in this order, for a listener that knows none of the session's.
        fallback_languages(tags: impl IntoIterator<Item = impl Into<String>>) => hints.fallback = strings(tags);

        /// The script of the session's text, like `Latn` (ISO 15924).
        script(script: impl Into<String>) => hints.script = Some(script.into());

        /// The calendar of the session's dates, like `gregory`.
        calendar(calendar: impl Into<String>) => hints.calendar = Some(calendar.into());

        /// Members of all events of the session.
        options(options: EventOptions) => options = options;
    }

    /// Begins the session.
    pub async fn start(mut self) -> Result<Session, Error> {
        let cleaner = self.hub.cleaner.of_session();
        let options = std::mem::take(&mut self.options).render(&cleaner)?;
        let body = self.body(&cleaner, &options);
        let started = self.hub.orders.start(body, cleaner.clone()).await?;
        Ok(Session::new(started, cleaner, options, self.primary_language()))
    }

    fn primary_language(&self) -> &str {
        self.hints.language.as_deref().unwrap_or(&self.hub.language)
    }

    /// The request as the hub takes it.
    fn body(&self, cleaner: &Cleaner, options: &Rendered) -> Document {
        let mut out = Document::default();
        out.open_object();
        let request = Words::new(self.request.as_str());
        let words = self.words.as_ref().unwrap_or(&request);
        words.write(&mut out, cleaner);
        options.write(false, &mut out);
        if self.quotes_request {
            words.write_beside(&mut out, cleaner, "request_text", &request);
        }
        if let Some(person) = &self.person {
            member::text(&mut out, "requested_by", &format!("user:{person}"));
        }
        member::optional_millis(&mut out, "expected_duration_ms", self.expected_duration);
        member::texts(&mut out, "tools_available", self.tools.iter().map(String::as_str));
        self.write_hints(&mut out, words);
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

    fn write_hints(&self, out: &mut Scribe, words: &Words) {
        let (hints, language) = (&self.hints, self.primary_language());
        out.key("localization_hints").open_object();
        member::text(out, "primary_language", language);
        let direction = hints.direction.as_ref().map(TextDirection::as_str);
        let direction = direction.or(is_right_to_left(language).then_some("rtl"));
        member::optional_text(out, "text_direction", direction);
        if hints.available.is_empty() {
            let others = words.languages().filter(|tag| !tag.eq_ignore_ascii_case(language));
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

fn strings(texts: impl IntoIterator<Item = impl Into<String>>) -> Vec<String> {
    texts.into_iter().map(Into::into).collect()
}
