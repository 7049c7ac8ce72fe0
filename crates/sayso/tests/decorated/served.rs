//! What an author of an agent that is a tower service can rely on.

use std::future::pending;
use std::time::Duration;

use sayso::middleware::{Ending, HeardLayer, InWords, ServeError};
use sayso::{CallError, Error, Hub, SessionBuilder, Stop, current};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};

use crate::support::stage::{Stage, told};

#[derive(Clone, Debug, PartialEq)]
enum Wrong {
    Refused,
    Other(String),
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused => f.write_str("You said no."),
            Self::Other(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Wrong {}

impl From<CallError<String>> for Wrong {
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

/// An agent that does what it is told.
async fn agent(request: &'static str) -> Result<u32, Wrong> {
    match request {
        "pay" => Ok(pay(5).await?),
        "think" => {
            current().unwrap().think("Hm.").await.unwrap();
            Ok(0)
        }
        "panic" => panic!("on purpose"),
        "wait" => {
            current().unwrap().think("Waiting.").await.unwrap();
            pending().await
        }
        other => Err(Wrong::Other(format!("There is no way to {other}."))),
    }
}

/// Puts it into words.
struct Bank;

impl InWords<&'static str, u32, Wrong> for Bank {
    fn begin(&self, hub: &Hub, request: &&'static str) -> SessionBuilder {
        hub.session(*request).says(format!("I will {request}."))
    }

    fn ending(&self, outcome: Result<&u32, &Wrong>) -> Ending {
        match outcome {
            Ok(amount) => Ending::Finished(format!("Paid {amount}.").into()),
            Err(why @ Wrong::Refused) => Ending::Cancelled(why.to_string().into()),
            Err(why) => Ending::Failed(why.to_string().into()),
        }
    }
}

fn layer(hub: &Hub) -> HeardLayer<Bank> {
    HeardLayer::new(hub.clone(), Bank)
}

pub(crate) async fn a_request_is_a_session_and_its_tools_ask_through_it(mut stage: Stage) {
    // Two layers, and the session goes through the one inside.
    let mut service =
        ServiceBuilder::new().layer(layer(&stage.hub)).concurrency_limit(1).service(service_fn(agent));
    let (paid, asked) =
        tokio::join!(service.ready().await.unwrap().call("pay"), stage.person.decides("accept"));
    assert_eq!(paid, Ok(5));
    assert_eq!(asked["action"], "Pay 5 to Ben.");
    let heard = stage.person.hears_until("session.completed").await;
    assert!(told(&heard).contains(&"tool.completed success".to_owned()), "{heard:?}");
    assert_eq!(heard.last().unwrap()["summary_normal"], "Paid 5.");
    assert_eq!(heard.last().unwrap()["session_id"], asked["session_id"]);
    let (refused, _) =
        tokio::join!(service.ready().await.unwrap().call("pay"), stage.person.decides("reject"));
    assert_eq!(refused, Err(ServeError::Service(Wrong::Refused)));
    let heard = stage.person.hears_until("session.cancelled").await;
    assert_eq!(heard.last().unwrap()["summary_normal"], "You said no.");
    assert!(!told(&heard).contains(&"tool.invoked".to_owned()), "{heard:?}");
}

pub(crate) async fn what_fails_is_told_as_failed(mut stage: Stage) {
    let service = ServiceBuilder::new().layer(layer(&stage.hub)).service(service_fn(agent));
    let failed = service.oneshot("fly").await;
    assert_eq!(failed, Err(ServeError::Service(Wrong::Other("There is no way to fly.".to_owned()))));
    let heard = stage.person.hears_until("session.errored").await;
    assert_eq!(heard[0]["summary_normal"], "I will fly.");
    assert_eq!(heard.last().unwrap()["summary_normal"], "There is no way to fly.");
}

pub(crate) async fn a_function_is_words_enough(mut stage: Stage) {
    let words = |request: &&'static str| format!("Please {request}.");
    let layer = HeardLayer::new(stage.hub.clone(), words);
    let service = ServiceBuilder::new().layer(layer).service(service_fn(agent));
    assert_eq!(service.clone().oneshot("think").await, Ok(0));
    let heard = stage.person.hears_until("session.completed").await;
    assert_eq!(heard[0]["request_text"], "Please think.");
    assert!(service.oneshot("fly").await.is_err());
    let heard = stage.person.hears_until("session.errored").await;
    assert_eq!(heard.last().unwrap()["summary_normal"], "There is no way to fly.");
}

pub(crate) async fn the_persons_stop_drops_the_work(mut stage: Stage) {
    let service = ServiceBuilder::new().layer(layer(&stage.hub)).service(service_fn(agent));
    let person = async {
        let heard = stage.person.hears_until("state.changed").await;
        stage.person.stops(heard[0]["session_id"].as_str().unwrap()).await;
        stage.person.hears_until("session.cancelled").await
    };
    let (stopped, heard) = tokio::join!(service.clone().oneshot("wait"), person);
    assert_eq!(stopped, Err(ServeError::Session(Error::Stopped(Stop::Person))));
    assert_eq!(heard.last().unwrap()["cancelled_by"], "user");
    // So it is when a tool asks, though the service would say that it failed.
    let person = async {
        let heard = stage.person.hears_until("awaiting.confirmation").await;
        stage.person.stops(heard[0]["session_id"].as_str().unwrap()).await;
    };
    let (stopped, ()) = tokio::join!(service.oneshot("pay"), person);
    assert_eq!(stopped, Err(ServeError::Session(Error::Stopped(Stop::Person))));
}

pub(crate) async fn a_dropped_request_is_left_in_the_middle(mut stage: Stage) {
    let service = ServiceBuilder::new().layer(layer(&stage.hub)).service(service_fn(agent));
    // One that was never polled was never heard.
    drop(service.clone().call("wait"));
    tokio::select! {
        _ = service.oneshot("wait") => panic!("it does not end"),
        _ = stage.person.hears_until("state.changed") => {}
    }
    let heard = stage.person.hears_until("session.errored").await;
    assert_eq!(heard.last().unwrap()["error_code"], "AGENT_LEFT");
}

pub(crate) async fn a_timeout_around_it_leaves_it_in_the_middle(mut stage: Stage) {
    let service = ServiceBuilder::new()
        // Long enough for the session to begin on any machine.
        .timeout(Duration::from_secs(5))
        .layer(layer(&stage.hub))
        .service(service_fn(agent));
    let late = service.oneshot("wait").await.unwrap_err();
    assert!(late.is::<tower::timeout::error::Elapsed>(), "{late}");
    let heard = stage.person.hears_until("session.errored").await;
    assert_eq!(heard.last().unwrap()["error_code"], "AGENT_LEFT");
}

pub(crate) async fn a_panic_in_the_service_is_told(mut stage: Stage) {
    let service = ServiceBuilder::new().layer(layer(&stage.hub)).service(service_fn(agent));
    let broken = tokio::spawn(service.clone().oneshot("panic"));
    assert!(broken.await.unwrap_err().is_panic());
    let heard = stage.person.hears_until("session.errored").await;
    assert_eq!(heard.last().unwrap()["error_code"], "AGENT_PANICKED");
    assert_eq!(service.oneshot("think").await, Ok(0));
}

pub(crate) async fn requests_at_once_have_a_session_each_and_wait_for_room(mut stage: Stage) {
    let service =
        ServiceBuilder::new().layer(layer(&stage.hub)).concurrency_limit(2).service(service_fn(agent));
    let (mut one, mut other, mut third) = (service.clone(), service.clone(), service);
    let first = tokio::spawn(one.ready().await.unwrap().call("wait"));
    let second = tokio::spawn(other.ready().await.unwrap().call("wait"));
    let mut waiting = Vec::new();
    while waiting.len() < 2 {
        waiting.extend(stage.person.hears_until("state.changed").await.pop());
    }
    assert_ne!(waiting[0]["session_id"], waiting[1]["session_id"]);
    // There is no room for a third, until one of them is gone.
    assert!(futures_util::FutureExt::now_or_never(third.ready()).is_none());
    for event in waiting {
        stage.person.stops(event["session_id"].as_str().unwrap()).await;
    }
    assert_eq!(first.await.unwrap(), Err(ServeError::Session(Error::Stopped(Stop::Person))));
    assert_eq!(third.ready().await.unwrap().call("think").await, Ok(0));
    second.await.unwrap().unwrap_err();
}

pub(crate) async fn a_session_that_cannot_begin_lets_nothing_happen(stage: Stage) {
    let words = |_: &&'static str| String::new();
    let layer = HeardLayer::new(stage.hub.clone(), words);
    let never = service_fn(async |_: &'static str| -> Result<(), Wrong> { panic!("it must not run") });
    let refused = ServiceBuilder::new().layer(layer).service(never).oneshot("pay").await.unwrap_err();
    assert!(matches!(refused, ServeError::Session(Error::Unlawful(_))), "{refused}");
}
