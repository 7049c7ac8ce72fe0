//! The demo agent: a scripted assistant that shows every event type.
//!
//! It is an ordinary agent, written with the `sayso` crate: it reports what it does, and asks before it acts. All its
//! actions are fake, and its texts say so.
//!
//! - `request`: finds the scenario for a request, with `tokenizer`; `request_details`: the amount, recipient and place in a request.
//! - `scenarios`: the scripted scenarios, one for each kind of request.
//! - `agent`: the agent's side of a session; `activity`: running sessions and open questions, for `sayso demo`.
//! - `phrases`: all texts, in three verbosities and, with `language`, in three languages.
//! - `http`: `POST /demo`.
//! - `command`: `sayso demo`, with `welcome`, its introduction, and `input_pacer`, for input from a pipe.

mod activity;
mod agent;
mod command;
mod http;
mod input_pacer;
mod language;
mod phrases;
mod request;
mod request_details;
mod scenarios;
mod tokenizer;
mod welcome;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot};
use wire::{HubHandle, Server};

use activity::ActivityTracker;
pub(crate) use agent::AGENT_ID;
use agent::DemoAgent;
pub(crate) use command::{Arguments, run};
use language::Language;

seal::defaults! {
    /// Limits of the demo agent.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct DemoLimits {
        /// Maximum number of concurrent sessions. Beyond it, requests are refused.
        pub(crate) sessions: usize = 64,
        /// Maximum number of queued requests. Beyond it, the sender waits.
        pub(crate) queued_requests: usize = 16,
        /// How long a person has to answer, in whole seconds. The deadline can be extended.
        pub(crate) answer_timeout: Duration = Duration::from_mins(2),
    }
}

/// A handle to the running demo agent.
#[derive(Clone)]
pub(crate) struct Assistant(mpsc::Sender<AssistantRequest>);

/// A request to the demo agent.
struct AssistantRequest {
    /// The text that the person typed.
    text: String,
    /// The person, if known.
    user: Option<String>,
    /// The language tag to answer in. If `None`, the language of the text is used.
    language: Option<String>,
    /// Receives the id of the new session, or the reason why no session was started.
    started: oneshot::Sender<Result<String, String>>,
}

impl Assistant {
    /// Starts a session for a request. Returns the session's id, or the reason why no session was started.
    pub(crate) async fn start_session(
        &self,
        text: String,
        user: Option<String>,
        language: Option<String>,
    ) -> Result<String, String> {
        let (started, session) = oneshot::channel();
        let _ = self.0.send(AssistantRequest { text, user, language, started }).await;
        session.await.unwrap_or_else(|_| Err("The assistant has stopped.".to_owned()))
    }

    /// Registers the route `POST /demo`.
    pub(crate) fn register(self, server: Server) -> Server {
        server.with_handler(
            "/demo",
            Box::new(move |principal, body| Box::pin(http::handle_request(self.clone(), principal, body))),
        )
    }
}

/// Starts the demo agent.
pub(crate) fn start(hub_handle: &HubHandle, limits: DemoLimits) -> Result<Assistant, String> {
    start_with_activity(hub_handle, limits, Arc::new(ActivityTracker::new(limits.answer_timeout)))
}

/// Like [`start`], with a given activity tracker.
fn start_with_activity(
    hub_handle: &HubHandle,
    limits: DemoLimits,
    activity: Arc<ActivityTracker>,
) -> Result<Assistant, String> {
    let hub = agent::connect_in_process(hub_handle).map_err(|error| error.to_string())?;
    let (sender, mut requests) = request_channel(limits);
    tokio::spawn(async move {
        let session_permits = Arc::new(Semaphore::new(limits.sessions));
        while let Some(AssistantRequest { text, user, language, started }) = requests.recv().await {
            let Ok(permit) = session_permits.clone().try_acquire_owned() else {
                let _ = started.send(Err("The assistant is busy; try again later.".to_owned()));
                continue;
            };
            let (hub, activity) = (hub.clone(), activity.clone());
            tokio::spawn(async move {
                let _running = activity.track_session();
                let request = request::parse_request(&text, language.as_deref().and_then(Language::from_tag));
                match DemoAgent::start(&hub, &request, user.as_deref(), &activity).await {
                    Err(error) => {
                        drop(started.send(Err(format!("The assistant could not start a session: {error}."))));
                    }
                    Ok(agent) => {
                        let _ = started.send(Ok(agent.session.id().to_owned()));
                        // A scenario ends early if the person stops the session or the hub fails; both are reported elsewhere.
                        let _ = scenarios::run_scenario(agent, request.scenario).await;
                    }
                }
                drop(permit);
            });
        }
    });
    Ok(Assistant(sender))
}

/// Creates the queue of requests.
fn request_channel(limits: DemoLimits) -> (mpsc::Sender<AssistantRequest>, mpsc::Receiver<AssistantRequest>) {
    mpsc::channel(limits.queued_requests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_queue_up_to_the_limit() {
        for limit in [1, DemoLimits::default().queued_requests] {
            let (sender, mut receiver) =
                request_channel(DemoLimits { queued_requests: limit, ..DemoLimits::default() });
            let request = || AssistantRequest {
                text: String::new(),
                user: None,
                language: None,
                started: tokio::sync::oneshot::channel().0,
            };
            assert_eq!((0..100).filter(|_| sender.try_send(request()).is_ok()).count(), limit);
            assert!(
                receiver.try_recv().is_ok() && sender.try_send(request()).is_ok(),
                "after one request was received, one more can be sent"
            );
        }
    }
}
