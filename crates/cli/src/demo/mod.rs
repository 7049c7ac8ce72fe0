//! The demo's assistant: a scripted bank and household assistant that shows every event there is, by plain words.
//!
//! It is an agent like any other, written with the crate `sayso`: it says what it does, asks before it acts, and waits. Nothing
//! that it says it does is done; its texts say so.
//!
//! - `request`: which scene somebody wants, by its `words`; `named`: how much, to whom and where it says.
//! - `scenes`: the scenes.
//! - `agent`: its side of a session; `stage`: what it is at, for who stands beside it.
//! - `phrases`: all that it says, in three lengths and, by `language`, in three languages.
//! - `http`: `POST /demo`.
//! - `command`: `sayso demo`, with `welcome`, what it says first, and `pace`, for lines that no person types.

mod agent;
mod command;
mod http;
mod language;
mod named;
mod pace;
mod phrases;
mod request;
mod scenes;
mod stage;
mod welcome;
mod words;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot};
use wire::{Bridge, Server};

pub(crate) use agent::AGENT;
use agent::Agent;
pub(crate) use command::{Arguments, run};
use language::Language;
use stage::Stage;

seal::defaults! {
    /// How much the assistant takes on.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Limits {
        /// Sessions at once; whoever wants one more is told that it is busy.
        pub(crate) sessions: usize = 64,
        /// Wishes that wait to be looked at; whoever has one more waits.
        pub(crate) wishes: usize = 16,
        /// How long a person has for an answer, in whole seconds; more can be had.
        pub(crate) time: Duration = Duration::from_mins(2),
    }
}

#[derive(Clone)]
pub(crate) struct Assistant(mpsc::Sender<Wish>);

/// What somebody wants the assistant to do.
struct Wish {
    /// In the person's own words.
    text: String,
    /// Who wants it, if that was said.
    user: Option<String>,
    /// The language to answer in, as a tag; else that of the words.
    language: Option<String>,
    /// Takes the id of the session that began, or why none did.
    begun: oneshot::Sender<Result<String, String>>,
}

impl Assistant {
    /// Asks for something; the id of the session that began, or why none did.
    pub(crate) async fn ask(
        &self,
        text: String,
        user: Option<String>,
        language: Option<String>,
    ) -> Result<String, String> {
        let (begun, session) = oneshot::channel();
        let _ = self.0.send(Wish { text, user, language, begun }).await;
        session.await.unwrap_or_else(|_| Err("The assistant is gone.".to_owned()))
    }

    /// Lets whoever reaches the server ask, by `POST /demo`.
    pub(crate) fn on(self, server: Server) -> Server {
        server
            .with_handler("/demo", Box::new(move |who, body| Box::pin(http::answer(self.clone(), who, body))))
    }
}

/// Starts the assistant; what it is sent, it does.
pub(crate) fn start(bridge: &Bridge, limits: Limits) -> Result<Assistant, String> {
    start_on(bridge, limits, Arc::new(Stage::new(limits.time)))
}

/// The same, with somebody who looks on.
fn start_on(bridge: &Bridge, limits: Limits, stage: Arc<Stage>) -> Result<Assistant, String> {
    let hub = agent::beside(bridge).map_err(|error| error.to_string())?;
    let (sender, mut wishes) = counter(limits);
    tokio::spawn(async move {
        let places = Arc::new(Semaphore::new(limits.sessions));
        while let Some(Wish { text, user, language, begun }) = wishes.recv().await {
            let Ok(place) = places.clone().try_acquire_owned() else {
                let _ = begun.send(Err("The assistant is busy; try again later.".to_owned()));
                continue;
            };
            let (hub, stage) = (hub.clone(), stage.clone());
            tokio::spawn(async move {
                let _here = stage.session();
                let request = request::read(&text, language.as_deref().and_then(Language::of_tag));
                match Agent::begin(&hub, &request, user.as_deref(), &stage).await {
                    Err(error) => drop(begun.send(Err(format!("The assistant cannot begin: {error}.")))),
                    Ok(agent) => {
                        let _ = begun.send(Ok(agent.session.id().to_owned()));
                        // Whoever stops a session, or a hub that cannot go on, ends a scene early; that is told by itself.
                        let _ = scenes::play(agent, request.scene).await;
                    }
                }
                drop(place);
            });
        }
    });
    Ok(Assistant(sender))
}

/// Where wishes wait.
fn counter(limits: Limits) -> (mpsc::Sender<Wish>, mpsc::Receiver<Wish>) {
    mpsc::channel(limits.wishes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_wait_up_to_the_limit() {
        for wishes in [1, Limits::default().wishes] {
            let (sender, mut waiting) = counter(Limits { wishes, ..Limits::default() });
            let wish = || Wish {
                text: String::new(),
                user: None,
                language: None,
                begun: tokio::sync::oneshot::channel().0,
            };
            assert_eq!((0..100).filter(|_| sender.try_send(wish()).is_ok()).count(), wishes);
            assert!(waiting.try_recv().is_ok() && sender.try_send(wish()).is_ok(), "a place is free again");
        }
    }
}
