//! An agent's side of a session, by the hub's own commands.

use std::sync::Arc;
use std::time::Duration;

use aaep::json::Tape;
use hub::command::{Answer, Command};
use hub::{Principal, Role};
use wire::Bridge;

use super::draft::Draft;
use super::language::{Language, Line, Phrase};
use super::named::Named;
use super::phrases;
use super::request::Request;
use super::stage::Stage;

/// The agent's id, on all that it says.
/// As whom it speaks; nobody else has that name.
pub(crate) const AGENT: &str = "sayso-demo";
/// How long one wait for an answer lasts; after it comes the next.
const WAIT: Duration = Duration::from_mins(1);

/// Why a scene cannot go on: its session is over, or the hub refuses.
#[derive(Debug)]
pub(super) struct Over;

/// What came of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answered {
    /// Accepted, or answered so.
    Yes(String),
    /// Refused, or nobody said anything.
    No,
}

/// A session under way.
pub(super) struct Agent {
    bridge: Bridge,
    who: Principal,
    session: String,
    language: Language,
    named: Named,
    stage: Arc<Stage>,
}

impl Agent {
    /// Starts a session for a scene, or says why it cannot.
    pub(super) async fn begin(
        bridge: Bridge,
        request: &Request,
        user: Option<&str>,
        stage: &Arc<Stage>,
    ) -> Result<Self, String> {
        let who = Principal {
            name: AGENT.into(),
            role: Role::Agent,
            agent_id: Some(AGENT.into()),
            scope: Arc::default(),
            open: false,
            token: None,
        };
        let (language, named) = (request.language, request.named.clone());
        let mut started = Draft::payload(language, &named)
            .summary(phrases::started(request.scene))
            .text("urgency", "normal")
            .raw("producer", r#"{"agent_id":"sayso-demo","agent_name":"Demonstration assistant"}"#)
            .raw("localization_hints", &language.hints());
        if let Some(user) = user.filter(|user| !user.is_empty() && user.chars().count() <= 200) {
            started = started.text("requested_by", &format!("user:{user}"));
        }
        let text = started.finish();
        match bridge.ask(who.clone(), Command::Start { text, key: None }).await {
            Answer::Made(json) => {
                let session = member(&json, "session_id").ok_or("The hub gave no session.")?;
                Ok(Self { bridge, who, session, language, named, stage: stage.clone() })
            }
            Answer::Full(why) | Answer::Unavailable(why) => Err(why),
            other => Err(format!("The hub did not start a session: {other:?}")),
        }
    }

    pub(super) fn session(&self) -> &str {
        &self.session
    }

    /// An event in the making, in the session's language.
    pub(super) fn event(&self, kind: &str) -> Draft<'_> {
        Draft::event(kind, self.language, &self.named)
    }

    /// How long a person has for an answer, in seconds.
    pub(super) fn time(&self) -> String {
        self.stage.seconds().to_string()
    }

    /// The payload of a question in the making.
    pub(super) fn question(&self) -> Draft<'_> {
        Draft::payload(self.language, &self.named)
    }

    /// Says an event.
    pub(super) async fn say(&self, event: Draft<'_>) -> Result<(), Over> {
        let (session, events) = (self.session.clone(), vec![event.finish()]);
        self.done(Command::Publish { session, events, key: None }).await
    }

    /// Is in that state from now on.
    pub(super) async fn be(&self, state: &str, phrase: &Phrase) -> Result<(), Over> {
        self.say(self.event("state.changed").text("to_state", state).summary(phrase)).await
    }

    /// What was named.
    pub(super) fn named(&self) -> &Named {
        &self.named
    }

    /// Says its answer, the whole of it, with what was named.
    pub(super) async fn output(&self, line: &Line, named: &Named) -> Result<(), Over> {
        let output = self
            .event("output.streaming")
            .text("chunk", &named.fill(line.to(self.language)))
            .text("language", self.language.tag())
            .raw("position", "0")
            .raw("complete", "true")
            .text("coalesce_hint", "completion");
        self.say(output).await
    }

    /// Asks, and waits for as long as it takes, or until nobody is left who could answer.
    pub(super) async fn ask(&self, question: Draft<'_>, clarify: bool) -> Result<Answered, Over> {
        let mut all_left = std::pin::pin!(self.stage.all_left());
        let mut left = false;
        let (session, text) = (self.session.clone(), question.finish());
        let asked = self.bridge.ask(self.who.clone(), Command::Ask { session, text, clarify, key: None });
        let Answer::Made(json) = asked.await else { return Err(Over) };
        let token = member(&json, "reply_token").ok_or(Over)?;
        let _open = self.stage.question();
        loop {
            let (session, token) = (self.session.clone(), token.clone());
            let until = wire::clock().saturating_add(i64::try_from(WAIT.as_millis()).unwrap_or(0));
            let wait = Command::Wait { session: session.clone(), token: token.clone(), until };
            let answer = tokio::select! {
                answer = self.bridge.ask(self.who.clone(), wait) => answer,
                () = &mut all_left, if !left => {
                    left = true;
                    self.bridge.ask(self.who.clone(), Command::Withdraw { session, token }).await
                }
            };
            let Answer::Found(json) = answer else { return Err(Over) };
            match member(&json, "status").as_deref() {
                Some("pending") => {}
                Some("resolved") => {
                    let by_reply = member(&json, "by").as_deref() == Some("reply");
                    let yes = clarify || member(&json, "decision").as_deref() == Some("accept");
                    let said = member(&json, "response").unwrap_or_default();
                    return Ok(if by_reply && yes { Answered::Yes(said) } else { Answered::No });
                }
                _ => return Err(Over),
            }
        }
    }

    async fn done(&self, command: Command) -> Result<(), Over> {
        match self.bridge.ask(self.who.clone(), command).await {
            Answer::Made(_) | Answer::Found(_) | Answer::Done => Ok(()),
            _ => Err(Over),
        }
    }
}

fn member(json: &str, name: &str) -> Option<String> {
    let mut tape = Tape::default();
    Some(tape.read(json).ok()?.root().member(name)?.text()?.into_owned())
}
