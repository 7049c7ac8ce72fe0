//! The assistant's side of a session: what an agent's author has of the crate `sayso`, and what a request named.

use std::sync::Arc;

use sayso::{Action, Answer, Clarified, Error, Granted, Hub, Output, Question, Session, Words};
use wire::Bridge;

use super::language::{Language, Line, Phrase};
use super::named::Named;
use super::phrases;
use super::request::Request;
use super::stage::Stage;

/// As whom it speaks; nobody else has that name.
pub(crate) const AGENT: &str = "sayso-demo";

/// The assistant's way to a hub that runs in this process.
pub(super) fn beside(bridge: &Bridge) -> Result<Hub, Error> {
    Hub::embedded().agent(AGENT).name("Demonstration assistant").beside(bridge)
}

pub(super) struct Agent {
    pub(super) session: Session,
    pub(super) named: Named,
    language: Language,
    stage: Arc<Stage>,
}

impl Agent {
    /// Starts a session for a scene. The request itself is repeated to nobody.
    pub(super) async fn begin(
        hub: &Hub,
        request: &Request,
        user: Option<&str>,
        stage: &Arc<Stage>,
    ) -> Result<Self, Error> {
        let (language, named) = (request.language, request.named.clone());
        let words = phrases::started(request.scene).words(language, &named);
        let mut begin = hub.session("").says_only(words).language(language.tag());
        if let Some(user) = user.filter(|user| !user.is_empty() && user.chars().count() <= 200) {
            begin = begin.person(user);
        }
        Ok(Self { session: begin.start().await?, named, language, stage: stage.clone() })
    }

    /// In three lengths, in the session's language and in the others beside it.
    pub(super) fn words(&self, phrase: &Phrase) -> Words {
        phrase.words(self.language, &self.named)
    }

    /// The same of one length.
    pub(super) fn line(&self, line: &Line) -> Words {
        line.words(self.language, &self.named)
    }

    /// Says its answer, the whole of it, in the session's language.
    pub(super) async fn output(&self, line: &Line) -> Result<(), Error> {
        self.session.output(Output::whole(self.named.fill(line.to(self.language)))).await
    }

    /// Asks, and waits for as long as it takes, or until nobody is left who could answer.
    pub(super) async fn ask(&self, action: Action) -> Result<Option<Granted>, Error> {
        let _open = self.stage.question();
        tokio::select! {
            answer = self.session.ask(action.within(self.stage.time())) => match answer? {
                Answer::Granted(granted) => Ok(Some(granted)),
                Answer::Refused(_) => Ok(None),
            },
            () = self.stage.all_left() => Ok(None),
        }
    }

    /// Asks what was meant; likewise.
    pub(super) async fn clarify(&self, question: Question) -> Result<Option<String>, Error> {
        let _open = self.stage.question();
        tokio::select! {
            meant = self.session.clarify(question.within(self.stage.time())) => match meant? {
                Clarified::Text(text) => Ok(Some(text)),
                _ => Ok(None),
            },
            () = self.stage.all_left() => Ok(None),
        }
    }
}
