//! A session before its start.

use std::time::Duration;

use aaep::event::TextDirection;
use aaep::shaping::is_right_to_left;
use seal::json::TapeWriter;

use super::Session;
#[cfg(doc)]
use super::StateChange;
use super::options::{EventOptions, RenderedOptions};
use super::producers::Producer;
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
    progress_interval: Option<Duration>,
    tools: Vec<String>,
    states: Vec<(String, LocalizedText)>,
    hints: LocalizationHints,
    options: EventOptions,
    producers: Vec<Producer>,
    parent: Option<String>,
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
            states: hub.states.to_vec(),
            hub,
            request,
            summary: None,
            publishes_request: true,
            person: None,
            agent: None,
            expected_duration: None,
            progress_interval: None,
            tools: Vec::new(),
            hints: LocalizationHints::default(),
            options: EventOptions::default(),
            producers: Vec::new(),
            parent: None,
        }
    }

    /// Adds another agent that speaks in the session. [`Session::producer`] speaks as this agent, and [`Session::invite`] lets
    /// another token do so.
    pub fn producer(mut self, producer: impl Into<Producer>) -> Self {
        self.producers.push(producer.into());
        self
    }

    /// Makes the session a part of another one, which this agent started or joined. Listeners hear that the two belong together.
    /// If no [`person`](Self::person) is set, the session is for the person of its parent. The end of the parent does not end
    /// this session.
    ///
    /// ```
    /// # testing::run_example!(hub, session, {
    /// let part = hub.session("Find a train.").parent(&session).start().await?;
    /// part.finish("There is one at nine.").await?;
    /// # session.finish("The trip is planned.").await?;
    /// # });
    /// ```
    pub fn parent(self, session: &Session) -> Self {
        self.parent_id(session.id())
    }

    /// Like [`parent`](Self::parent), for a parent that another process of this agent started.
    pub fn parent_id(mut self, session_id: impl Into<String>) -> Self {
        self.parent = Some(session_id.into());
        self
    }

    /// Sets the text that says what the agent will do, and does not publish the request, which may contain something private.
    pub fn summary_instead_of_request(mut self, summary: impl Into<LocalizedText>) -> Self {
        self.publishes_request = false;
        self.says(summary)
    }

    /// Defines a state of your own, with words for it: a short sentence such as `Comparing prices.`, in the session's language
    /// and optionally in others. Listeners hear the words when the session enters the state with [`StateChange::custom`].
    /// There can be up to 32 states; a name has at most 64 characters, and its words at most 256 in each language.
    ///
    /// ```
    /// # testing::run_example!(hub, {
    /// use sayso::{LocalizedText, StateChange};
    /// let words = LocalizedText::new("Comparing prices.").in_language("es", "Comparando precios.");
    /// let session = hub.session("Buy a lamp.").state("comparing_prices", words).start().await?;
    /// session.change_state(StateChange::custom("comparing_prices")).await?;
    /// # session.cancel("Nothing was bought.").await?;
    /// # });
    /// ```
    pub fn state(mut self, name: impl Into<String>, words: impl Into<LocalizedText>) -> Self {
        let name = name.into();
        self.states.retain(|(known, _)| *known != name);
        self.states.push((name, words.into()));
        self
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

        /// Sets the shortest time between two progress updates that differ by less than five percent and have the same words. The default
        /// is one second, the maximum one hour; zero sends every update. [`Session::progress`] explains it.
        progress_interval(interval: Duration) => progress_interval = Some(interval);

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
        let session = Session::new(open_session, redactor, options, self.primary_language());
        let progress_interval = self.progress_interval.unwrap_or(session.progress_interval);
        Ok(Session { states: self.states.into(), progress_interval, ..session })
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
            summary.write_companion_text(&mut out, redactor, "request_text", &request);
        }
        if let Some(person) = &self.person {
            member::text(&mut out, "requested_by", &format!("user:{person}"));
        }
        member::optional_millis(&mut out, "expected_duration_ms", self.expected_duration);
        member::texts(&mut out, "tools_available", self.tools.iter().map(String::as_str));
        self.write_hints(&mut out, summary);
        self.write_states(&mut out, redactor);
        let producer = &self.hub.producer;
        let members = [("agent_id", self.agent.as_deref())].into_iter().chain(producer.members());
        let mut members = members.filter_map(|(name, text)| Some((name, text?))).peekable();
        if members.peek().is_some() {
            out.key("producer").open_object();
            members.for_each(|(name, text)| member::text(&mut out, name, text));
            out.close_object();
        }
        if !self.producers.is_empty() {
            out.key("producers").array(|out| {
                for producer in &self.producers {
                    out.object(|out| producer.write(out));
                }
            });
        }
        member::optional_text(&mut out, "parent", self.parent.as_deref());
        out.close_object();
        out
    }

    fn write_states(&self, out: &mut TapeWriter, redactor: &CountingRedactor) {
        let write_words = |out: &mut TapeWriter, tag: &str, words: &str| redactor.write(out, tag, words);
        crate::hub::write_states(out, &self.states, self.primary_language(), write_words);
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
