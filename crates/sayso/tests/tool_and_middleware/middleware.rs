//! The middleware for agents that are tower services.

use std::future::pending;
use std::time::Duration;

use sayso::middleware::{DescribeRequest, ServeError, SessionEnding, SessionLayer};
use sayso::{
    CallError, Error, HandOff, HandOffOutcome, HandOffTarget, Hub, SessionBuilder, StopReason, current,
};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};

use crate::support::fixture::{HubFixture, event_kinds};

#[derive(Clone, Debug, PartialEq)]
enum ServiceError {
    Refused,
    Other(String),
}

impl std::fmt::Display for ServiceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused => f.write_str("You said no."),
            Self::Other(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for ServiceError {}

impl From<CallError<String>> for ServiceError {
    fn from(error: CallError<String>) -> Self {
        match error {
            CallError::Refused(_) => Self::Refused,
            other => Self::Other(other.to_string()),
        }
    }
}

#[sayso::tool(irreversible, action = "Pay {amount} to Ben.", consequence = "The money is gone.")]
async fn pay(amount: u32) -> Result<u32, String> {
    Ok(amount)
}

/// An agent whose behaviour the request selects.
async fn agent(request: &'static str) -> Result<u32, ServiceError> {
    match request {
        "pay" => Ok(pay(5).await?),
        "think" => {
            current().unwrap().think("Hm.").await.unwrap();
            Ok(0)
        }
        "hand off" => {
            let hand_off = HandOff::new(HandOffTarget::Human, "The refund needs a person.");
            match current().unwrap().hand_off(hand_off).await.unwrap() {
                HandOffOutcome::Acknowledged { note, .. } => Err(ServiceError::Other(note.unwrap())),
                other => Err(ServiceError::Other(format!("{other:?}"))),
            }
        }
        "panic" => panic!("on purpose"),
        "wait" => {
            current().unwrap().think("Waiting.").await.unwrap();
            pending().await
        }
        other => Err(ServiceError::Other(format!("There is no way to {other}."))),
    }
}

/// Describes requests and results of the agent.
struct BankDescriber;

impl DescribeRequest<&'static str, u32, ServiceError> for BankDescriber {
    fn session_for(&self, hub: &Hub, request: &&'static str) -> SessionBuilder {
        hub.session(*request).says(format!("I will {request}."))
    }

    fn ending(&self, outcome: Result<&u32, &ServiceError>) -> SessionEnding {
        match outcome {
            Ok(amount) => SessionEnding::Finished(format!("Paid {amount}.").into()),
            Err(error @ ServiceError::Refused) => SessionEnding::Cancelled(error.to_string().into()),
            Err(error) => SessionEnding::Failed(error.to_string().into()),
        }
    }
}

fn layer(hub: &Hub) -> SessionLayer<BankDescriber> {
    SessionLayer::new(hub.clone(), BankDescriber)
}

pub(crate) async fn a_request_runs_in_a_session_that_its_tools_use(mut fixture: HubFixture) {
    // The session must reach the agent through the inner layer, which limits concurrency.
    let mut service =
        ServiceBuilder::new().layer(layer(&fixture.hub)).concurrency_limit(1).service(service_fn(agent));
    let (paid, question) =
        tokio::join!(service.ready().await.unwrap().call("pay"), fixture.listener.decide_next("accept"));
    assert_eq!(paid, Ok(5));
    assert_eq!(question["action"], "Pay 5 to Ben.");
    let events = fixture.listener.events_until("session.completed").await;
    assert!(event_kinds(&events).contains(&"tool.completed success".to_owned()), "{events:?}");
    assert_eq!(events.last().unwrap()["summary_normal"], "Paid 5.");
    assert_eq!(events.last().unwrap()["session_id"], question["session_id"]);
    let (refused, _) =
        tokio::join!(service.ready().await.unwrap().call("pay"), fixture.listener.decide_next("reject"));
    assert_eq!(refused, Err(ServeError::Service(ServiceError::Refused)));
    let events = fixture.listener.events_until("session.cancelled").await;
    assert_eq!(events.last().unwrap()["summary_normal"], "You said no.");
    assert!(!event_kinds(&events).contains(&"tool.invoked".to_owned()), "{events:?}");
}

pub(crate) async fn a_failed_request_is_reported_as_failed(mut fixture: HubFixture) {
    let service = ServiceBuilder::new().layer(layer(&fixture.hub)).service(service_fn(agent));
    let failed = service.oneshot("fly").await;
    assert_eq!(failed, Err(ServeError::Service(ServiceError::Other("There is no way to fly.".to_owned()))));
    let events = fixture.listener.events_until("session.errored").await;
    assert_eq!(events[0]["summary_normal"], "I will fly.");
    assert_eq!(events.last().unwrap()["summary_normal"], "There is no way to fly.");
}

pub(crate) async fn a_function_can_describe_requests(mut fixture: HubFixture) {
    let describe = |request: &&'static str| format!("Please {request}.");
    let layer = SessionLayer::new(fixture.hub.clone(), describe);
    let service = ServiceBuilder::new().layer(layer).service(service_fn(agent));
    assert_eq!(service.clone().oneshot("think").await, Ok(0));
    let events = fixture.listener.events_until("session.completed").await;
    assert_eq!(events[0]["request_text"], "Please think.");
    assert!(service.oneshot("fly").await.is_err());
    let events = fixture.listener.events_until("session.errored").await;
    assert_eq!(events.last().unwrap()["summary_normal"], "There is no way to fly.");
}

pub(crate) async fn a_stop_request_drops_the_request(mut fixture: HubFixture) {
    let service = ServiceBuilder::new().layer(layer(&fixture.hub)).service(service_fn(agent));
    let stopping = async {
        let events = fixture.listener.events_until("state.changed").await;
        fixture.listener.stop_session(events[0]["session_id"].as_str().unwrap()).await;
        fixture.listener.events_until("session.cancelled").await
    };
    let (stopped, events) = tokio::join!(service.clone().oneshot("wait"), stopping);
    assert_eq!(stopped, Err(ServeError::Session(Error::Stopped(StopReason::Person))));
    assert_eq!(events.last().unwrap()["cancelled_by"], "user");
    // The same holds while a tool waits for consent, although the service would report a failure.
    let stopping = async {
        let events = fixture.listener.events_until("awaiting.confirmation").await;
        fixture.listener.stop_session(events[0]["session_id"].as_str().unwrap()).await;
    };
    let (stopped, ()) = tokio::join!(service.oneshot("pay"), stopping);
    assert_eq!(stopped, Err(ServeError::Session(Error::Stopped(StopReason::Person))));
}

pub(crate) async fn a_request_can_hand_off_and_learns_the_outcome(mut fixture: HubFixture) {
    let service = ServiceBuilder::new().layer(layer(&fixture.hub)).service(service_fn(agent));
    let answering = fixture.listener.answer_next_hand_off("acknowledge", Some("I will call."));
    let (failed, _) = tokio::join!(service.oneshot("hand off"), answering);
    assert_eq!(failed, Err(ServeError::Service(ServiceError::Other("I will call.".to_owned()))));
}

pub(crate) async fn a_dropped_request_ends_its_session_with_an_error(mut fixture: HubFixture) {
    let service = ServiceBuilder::new().layer(layer(&fixture.hub)).service(service_fn(agent));
    // A request that is never polled starts no session.
    drop(service.clone().call("wait"));
    tokio::select! {
        _ = service.oneshot("wait") => panic!("it does not end"),
        _ = fixture.listener.events_until("state.changed") => {}
    }
    let events = fixture.listener.events_until("session.errored").await;
    assert_eq!(events.last().unwrap()["error_code"], "AGENT_LEFT");
}

pub(crate) async fn an_outer_timeout_ends_the_session_with_an_error(mut fixture: HubFixture) {
    let service = ServiceBuilder::new()
        // Long enough for the session to start on any machine.
        .timeout(Duration::from_secs(5))
        .layer(layer(&fixture.hub))
        .service(service_fn(agent));
    let error = service.oneshot("wait").await.unwrap_err();
    assert!(error.is::<tower::timeout::error::Elapsed>(), "{error}");
    let events = fixture.listener.events_until("session.errored").await;
    assert_eq!(events.last().unwrap()["error_code"], "AGENT_LEFT");
}

pub(crate) async fn a_panic_in_the_service_is_reported(mut fixture: HubFixture) {
    let service = ServiceBuilder::new().layer(layer(&fixture.hub)).service(service_fn(agent));
    let broken = tokio::spawn(service.clone().oneshot("panic"));
    assert!(broken.await.unwrap_err().is_panic());
    let events = fixture.listener.events_until("session.errored").await;
    assert_eq!(events.last().unwrap()["error_code"], "AGENT_PANICKED");
    assert_eq!(service.oneshot("think").await, Ok(0));
}

pub(crate) async fn concurrent_requests_have_their_own_sessions_and_respect_the_concurrency_limit(
    mut fixture: HubFixture,
) {
    let service =
        ServiceBuilder::new().layer(layer(&fixture.hub)).concurrency_limit(2).service(service_fn(agent));
    let (mut one, mut other, mut third) = (service.clone(), service.clone(), service);
    let first = tokio::spawn(one.ready().await.unwrap().call("wait"));
    let second = tokio::spawn(other.ready().await.unwrap().call("wait"));
    let mut waiting = Vec::new();
    while waiting.len() < 2 {
        waiting.extend(fixture.listener.events_until("state.changed").await.pop());
    }
    assert_ne!(waiting[0]["session_id"], waiting[1]["session_id"]);
    // A third request has to wait until one of the two has ended.
    assert!(futures_util::FutureExt::now_or_never(third.ready()).is_none());
    for event in waiting {
        fixture.listener.stop_session(event["session_id"].as_str().unwrap()).await;
    }
    assert_eq!(first.await.unwrap(), Err(ServeError::Session(Error::Stopped(StopReason::Person))));
    assert_eq!(third.ready().await.unwrap().call("think").await, Ok(0));
    second.await.unwrap().unwrap_err();
}

pub(crate) async fn a_session_that_cannot_start_runs_nothing(fixture: HubFixture) {
    let describe = |_: &&'static str| String::new();
    let layer = SessionLayer::new(fixture.hub.clone(), describe);
    let never = service_fn(async |_: &'static str| -> Result<(), ServiceError> { panic!("it must not run") });
    let refused = ServiceBuilder::new().layer(layer).service(never).oneshot("pay").await.unwrap_err();
    assert!(matches!(refused, ServeError::Session(Error::RuleViolations(_))), "{refused}");
}
