//! A layer around any agent that is a tower service. Each request becomes a session with a start and exactly one end.
//!
//! ```
//! use sayso::middleware::{SessionLayer, ServeError};
//! use tower::{ServiceBuilder, ServiceExt, service_fn};
//!
//! /// Returns the day of the week.
//! #[sayso::tool(action = "Look at the calendar.")]
//! async fn today() -> Result<&'static str, std::io::Error> {
//!     Ok("Sunday")
//! }
//!
//! # testing::run_example!({
//! let hub = sayso::Hub::embedded().agent("calendar").open()?;
//! let agent = service_fn(|_request: String| async { today().await.map_err(|error| error.to_string()) });
//! // The session is announced with the text of the request.
//! let layer = SessionLayer::new(hub.clone(), |request: &String| request.clone());
//! let agent = ServiceBuilder::new().layer(layer).service(agent);
//! assert_eq!(agent.oneshot("What day is it?".to_owned()).await, Ok("Sunday"));
//! hub.close().await;
//! # });
//! ```

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

pub use tower_layer::Layer;
pub use tower_service::Service;

pub use crate::session::SessionEnding;

use crate::current_session::within;
use crate::error::Error;
use crate::hub::Hub;
use crate::session::SessionBuilder;

/// Describes the requests and responses of a service. A function that turns a request into a text is enough: then a success
/// finishes the session, and an error fails it with the error's text.
///
/// ```
/// use sayso::middleware::{DescribeRequest, SessionEnding};
/// use sayso::{Hub, SessionBuilder};
///
/// struct Calendar;
///
/// impl DescribeRequest<String, String, String> for Calendar {
///     fn session_for(&self, hub: &Hub, request: &String) -> SessionBuilder {
///         hub.session(request).says("Looking at your calendar.").language("en")
///     }
///
///     fn ending(&self, outcome: Result<&String, &String>) -> SessionEnding {
///         match outcome {
///             Ok(day) => SessionEnding::Finished(format!("It is {day}.").into()),
///             Err(error) => SessionEnding::Failed(error.as_str().into()),
///         }
///     }
/// }
/// # let _ = Calendar;
/// ```
pub trait DescribeRequest<Request, Response, E> {
    /// Returns a builder for the session of a request, with what the person asked for and, if needed, the person and the language.
    fn session_for(&self, hub: &Hub, request: &Request) -> SessionBuilder;

    /// Returns how the session ends.
    fn ending(&self, outcome: Result<&Response, &E>) -> SessionEnding;
}

impl<F, Request, Response, E> DescribeRequest<Request, Response, E> for F
where
    F: Fn(&Request) -> String,
    E: fmt::Display,
{
    fn session_for(&self, hub: &Hub, request: &Request) -> SessionBuilder {
        hub.session(self(request))
    }

    fn ending(&self, outcome: Result<&Response, &E>) -> SessionEnding {
        match outcome {
            Ok(_) => SessionEnding::Finished("It is done.".into()),
            Err(error) => SessionEnding::Failed(error.to_string().into()),
        }
    }
}

/// The reason why a request has no response.
///
/// ```
/// use sayso::{Error, StopReason, middleware::ServeError};
/// let stopped = ServeError::<String>::Session(Error::Stopped(StopReason::Person));
/// assert_eq!(stopped.to_string(), "the person stopped the session");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError<E> {
    /// The session failed: it could not start (the service was not called), it was stopped (the service's work was dropped), or
    /// its end could not be reported.
    #[error(transparent)]
    Session(Error),
    /// The service failed. Listeners were informed.
    #[error("{0}")]
    Service(E),
}

/// A layer that opens a session for each request to a service.
///
/// ```
/// let hub = sayso::Hub::embedded().open()?;
/// let layer = sayso::middleware::SessionLayer::new(hub, |request: &String| request.clone());
/// # let _ = layer;
/// # Ok::<(), sayso::Error>(())
/// ```
#[derive(Debug)]
pub struct SessionLayer<D> {
    hub: Hub,
    describer: Arc<D>,
}

impl<D> SessionLayer<D> {
    /// Creates a layer that reports to this hub and describes requests with `describer`.
    pub fn new(hub: Hub, describer: D) -> Self {
        Self { hub, describer: Arc::new(describer) }
    }
}

impl<D> Clone for SessionLayer<D> {
    fn clone(&self) -> Self {
        Self { hub: self.hub.clone(), describer: self.describer.clone() }
    }
}

impl<S, D> Layer<S> for SessionLayer<D> {
    type Service = SessionService<S, D>;

    fn layer(&self, inner: S) -> Self::Service {
        SessionService { inner, hub: self.hub.clone(), describer: self.describer.clone() }
    }
}

/// A service that opens a session for each request and passes it to the tools inside (see [`within`]). The session ends with
/// the service's response. If the person stops the session first, the service's work is dropped. If the response's future is dropped
/// or panics, the session ends as abandoned.
///
/// ```
/// use sayso::middleware::SessionLayer;
/// use tower_layer::Layer;
/// # let hub = sayso::Hub::embedded().open()?;
/// let agent = tower::service_fn(|request: String| async move { Ok::<_, String>(request.len()) });
/// let service = SessionLayer::new(hub, |request: &String| request.clone()).layer(agent);
/// # let _ = service;
/// # Ok::<(), sayso::Error>(())
/// ```
#[derive(Debug)]
pub struct SessionService<S, D> {
    inner: S,
    hub: Hub,
    describer: Arc<D>,
}

impl<S: Clone, D> Clone for SessionService<S, D> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), hub: self.hub.clone(), describer: self.describer.clone() }
    }
}

/// The future of a response.
///
/// ```
/// use sayso::middleware::{SessionLayer, ResponseFuture};
/// use tower::{Layer, Service};
/// # let hub = sayso::Hub::embedded().open()?;
/// let agent = tower::service_fn(|request: String| async move { Ok::<_, String>(request.len()) });
/// let mut service = SessionLayer::new(hub, |request: &String| request.clone()).layer(agent);
/// // Nothing is announced until it is awaited.
/// let response: ResponseFuture<usize, String> = service.call("Count me.".to_owned());
/// # drop(response);
/// # Ok::<(), sayso::Error>(())
/// ```
pub type ResponseFuture<Response, E> = Pin<Box<dyn Future<Output = Result<Response, ServeError<E>>> + Send>>;

impl<S, D, Request> Service<Request> for SessionService<S, D>
where
    S: Service<Request> + Clone + Send + 'static,
    S::Future: Send,
    S::Response: Send,
    S::Error: Send,
    D: DescribeRequest<Request, S::Response, S::Error> + Send + Sync + 'static,
    Request: Send + 'static,
{
    type Response = S::Response;
    type Error = ServeError<S::Error>;
    type Future = ResponseFuture<S::Response, S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context).map_err(ServeError::Service)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        // `poll_ready` was called on the current instance, so that one serves the request. The clone is not ready yet.
        let next = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, next);
        Box::pin(serve(ready, self.hub.clone(), self.describer.clone(), request))
    }
}

/// Serves one request. The session lives in this future, so dropping the future ends the session.
async fn serve<S, D, Request>(
    mut service: S,
    hub: Hub,
    describer: Arc<D>,
    request: Request,
) -> Result<S::Response, ServeError<S::Error>>
where
    S: Service<Request>,
    D: DescribeRequest<Request, S::Response, S::Error>,
{
    let session = describer.session_for(&hub, &request).start().await.map_err(ServeError::Session)?;
    let work = within(&session, async move { service.call(request).await });
    let outcome = tokio::select! {
        biased;
        stop = session.stopped() => return Err(ServeError::Session(Error::Stopped(stop))),
        outcome = work => outcome,
    };
    let ended = describer.ending(outcome.as_ref()).end_session(session).await;
    match (outcome, ended) {
        // If the session was stopped, that is reported even if the service then failed because its tools were stopped.
        (_, Err(error @ Error::Stopped(_))) | (Ok(_), Err(error)) => Err(ServeError::Session(error)),
        (Err(error), _) => Err(ServeError::Service(error)),
        (Ok(response), Ok(())) => Ok(response),
    }
}
