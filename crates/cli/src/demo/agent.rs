//! The agent's side of a session: a `sayso` session together with the details of the request.

use std::sync::Arc;

use sayso::{
    Action, Answer, ClarificationAnswer, ClarificationRequest, Error, Granted, Hub, LocalizedText,
    OutputText, Session,
};
use wire::HubHandle;

use super::activity::ActivityTracker;
use super::language::{Language, Phrase, TranslatedText};
use super::phrases;
use super::request::ParsedRequest;
use super::request_details::RequestDetails;

/// The id of the demo agent. No other agent uses it.
pub(crate) const AGENT_ID: &str = "sayso-demo";

/// Connects to a hub in this process.
pub(super) fn connect_in_process(hub_handle: &HubHandle) -> Result<Hub, Error> {
    let hub = Hub::embedded().agent(AGENT_ID).agent_name("Demo assistant");
    hub.agent_version(env!("CARGO_PKG_VERSION")).attach(hub_handle)
}

pub(super) struct DemoAgent {
    pub(super) session: Session,
    pub(super) details: RequestDetails,
    language: Language,
    activity: Arc<ActivityTracker>,
}

impl DemoAgent {
    /// Starts a session for a scenario. The text of the request is not sent to the hub.
    pub(super) async fn start(
        hub: &Hub,
        request: &ParsedRequest,
        user: Option<&str>,
        activity: &Arc<ActivityTracker>,
    ) -> Result<Self, Error> {
        let (language, details) = (request.language, request.details.clone());
        let summary = phrases::session_start_phrase(request.scenario).localize(language, &details);
        let mut builder = hub.session("").summary_instead_of_request(summary).language(language.as_str());
        builder = builder.tools_available(["look_up_balance", "transfer_money"]);
        if let Some(user) = user.filter(|user| !user.is_empty() && user.chars().count() <= 200) {
            builder = builder.person(user);
        }
        Ok(Self { session: builder.start().await?, details, language, activity: activity.clone() })
    }

    /// Returns a phrase in three verbosities, in the session's language and with its translations.
    pub(super) fn localize_phrase(&self, phrase: &Phrase) -> LocalizedText {
        phrase.localize(self.language, &self.details)
    }

    /// Like [`Self::localize_phrase`], but in one verbosity.
    pub(super) fn localize_text(&self, text: &TranslatedText) -> LocalizedText {
        text.localize(self.language, &self.details)
    }

    /// Sends a complete output in the session's language.
    pub(super) async fn output(&self, text: &TranslatedText) -> Result<(), Error> {
        self.session
            .output(OutputText::complete(self.details.fill_template(text.in_language(self.language))))
            .await
    }

    /// Asks for consent. Returns `None` if consent is not given, or if nobody can type an answer any more and the answer timeout
    /// has passed.
    pub(super) async fn ask(&self, action: Action) -> Result<Option<Granted>, Error> {
        let _open = self.activity.track_question();
        tokio::select! {
            answer = self.session.ask(action.answer_timeout(self.activity.answer_timeout())) => match answer? {
                Answer::Granted(granted) => Ok(Some(granted)),
                Answer::Refused(_) => Ok(None),
            },
            () = self.activity.wait_for_unattended_timeout() => Ok(None),
        }
    }

    /// Asks for a clarification. Returns `None` if the answer is not text, or if nobody can type an answer any more and
    /// the answer timeout has passed.
    pub(super) async fn clarify(&self, question: ClarificationRequest) -> Result<Option<String>, Error> {
        let _open = self.activity.track_question();
        tokio::select! {
            answer = self.session.clarify(question.answer_timeout(self.activity.answer_timeout())) => match answer? {
                ClarificationAnswer::Text(text) => Ok(Some(text)),
                _ => Ok(None),
            },
            () = self.activity.wait_for_unattended_timeout() => Ok(None),
        }
    }
}
