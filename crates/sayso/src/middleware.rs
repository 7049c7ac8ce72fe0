//! Around any agent that is a tower service: each request is a session, which is heard from its start to one honest end.
//!
//! ```
//! use sayso::middleware::{HeardLayer, ServeError};
//! use tower::{ServiceBuilder, ServiceExt, service_fn};
//!
//! /// Says what day it is.
//! #[sayso::tool(action = "Look at the calendar.")]
//! async fn today() -> Result<&'static str, std::io::Error> {
//!     Ok("Sunday")
//! }
//!
//! # testing::example!({
//! let hub = sayso::Hub::embedded().agent("calendar").open()?;
//! let agent = service_fn(|_request: String| async { today().await.map_err(|why| why.to_string()) });
//! // The request is what the person hears of it.
//! let layer = HeardLayer::new(hub.clone(), |request: &String| request.clone());
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

pub use crate::session::Ending;

use crate::ambient::within;
use crate::error::Error;
use crate::hub::Hub;
use crate::session::SessionBuilder;

/// How a service's requests and outcomes are put into words. A function from a request to its words is enough: then what
/// succeeds is finished, and what fails has failed for the error's reason.
///
/// ```
/// use sayso::middleware::{Ending, InWords};
/// use sayso::{Hub, SessionBuilder};
///
/// struct Calendar;
///
/// impl InWords<String, String, String> for Calendar {
///     fn begin(&self, hub: &Hub, request: &String) -> SessionBuilder {
///         hub.session(request).says("Looking at your calendar.").language("en")
///     }
///
///     fn ending(&self, outcome: Result<&String, &String>) -> Ending {
///         match outcome {
///             Ok(day) => Ending::Finished(format!("It is {day}.").into()),
///             Err(why) => Ending::Failed(why.as_str().into()),
///         }
///     }
/// }
/// # let _ = Calendar;
/// ```
pub trait InWords<Request, Response, E> {
    /// The session for a request: what the person asked, and if you like for whom and in which language.
    fn begin(&self, hub: &Hub, request: &Request) -> SessionBuilder;

    /// What came of it.
    fn ending(&self, outcome: Result<&Response, &E>) -> Ending;
}

impl<F, Request, Response, E> InWords<Request, Response, E> for F
where
    F: Fn(&Request) -> String,
    E: fmt::Display,
{
    fn begin(&self, hub: &Hub, request: &Request) -> SessionBuilder {
        hub.session(self(request))
    }

    fn ending(&self, outcome: Result<&Response, &E>) -> Ending {
        match outcome {
            Ok(_) => Ending::Finished("It is done.".into()),
            Err(error) => Ending::Failed(error.to_string().into()),
        }
    }
}

/// Why a request has no response.
///
/// ```
/// use sayso::{Error, Stop, middleware::ServeError};
/// let stopped = ServeError::<String>::Session(Error::Stopped(Stop::Person));
/// assert_eq!(stopped.to_string(), "the person stopped the session");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError<E> {
    /// The session could not begin, so the service was not called; or it was stopped, so the service's work was dropped; or
    /// its end could not be told.
    #[error(transparent)]
    Session(Error),
    /// The service failed; listeners have been told.
    #[error("{0}")]
    Service(E),
}

/// Lets the requests of a service be heard.
///
/// ```
/// let hub = sayso::Hub::embedded().open()?;
/// let layer = sayso::middleware::HeardLayer::new(hub, |request: &String| request.clone());
/// # let _ = layer;
/// # Ok::<(), sayso::Error>(())
/// ```
#[derive(Debug)]
pub struct HeardLayer<W> {
    hub: Hub,
    words: Arc<W>,
}

impl<W> HeardLayer<W> {
    /// Heard at this hub, in these words.
    pub fn new(hub: Hub, words: W) -> Self {
        Self { hub, words: Arc::new(words) }
    }
}

impl<W> Clone for HeardLayer<W> {
    fn clone(&self) -> Self {
        Self { hub: self.hub.clone(), words: self.words.clone() }
    }
}

impl<S, W> Layer<S> for HeardLayer<W> {
    type Service = Heard<S, W>;

    fn layer(&self, inner: S) -> Self::Service {
        Heard { inner, hub: self.hub.clone(), words: self.words.clone() }
    }
}

/// A service whose requests are heard. For each it starts a session, carries it to the tools inside (see
/// [`within`]), and ends it as the request ends: by what the service answered, by the person's stop, which drops
/// the service's work, or, if the response's future is dropped or panics, as left in the middle.
///
/// ```
/// use sayso::middleware::HeardLayer;
/// use tower_layer::Layer;
/// # let hub = sayso::Hub::embedded().open()?;
/// let agent = tower::service_fn(|request: String| async move { Ok::<_, String>(request.len()) });
/// let heard = HeardLayer::new(hub, |request: &String| request.clone()).layer(agent);
/// # let _ = heard;
/// # Ok::<(), sayso::Error>(())
/// ```
#[derive(Debug)]
pub struct Heard<S, W> {
    inner: S,
    hub: Hub,
    words: Arc<W>,
}

impl<S: Clone, W> Clone for Heard<S, W> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), hub: self.hub.clone(), words: self.words.clone() }
    }
}

/// The way to a response.
///
/// ```
/// use sayso::middleware::{HeardLayer, Serving};
/// use tower::{Layer, Service};
/// # let hub = sayso::Hub::embedded().open()?;
/// let agent = tower::service_fn(|request: String| async move { Ok::<_, String>(request.len()) });
/// let mut heard = HeardLayer::new(hub, |request: &String| request.clone()).layer(agent);
/// // Nothing is heard of it before it is awaited.
/// let serving: Serving<usize, String> = heard.call("Count me.".to_owned());
/// # drop(serving);
/// # Ok::<(), sayso::Error>(())
/// ```
pub type Serving<Response, E> = Pin<Box<dyn Future<Output = Result<Response, ServeError<E>>> + Send>>;

impl<S, W, Request> Service<Request> for Heard<S, W>
where
    S: Service<Request> + Clone + Send + 'static,
    S::Future: Send,
    S::Response: Send,
    S::Error: Send,
    W: InWords<Request, S::Response, S::Error> + Send + Sync + 'static,
    Request: Send + 'static,
{
    type Response = S::Response;
    type Error = ServeError<S::Error>;
    type Future = Serving<S::Response, S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context).map_err(ServeError::Service)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        // The one that said it is ready is the one that is called; its copy has to become so first.
        let next = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, next);
        Box::pin(serve(ready, self.hub.clone(), self.words.clone(), request))
    }
}

/// The session lives in here: whatever becomes of this future ends it.
async fn serve<S, W, Request>(
    mut service: S,
    hub: Hub,
    words: Arc<W>,
    request: Request,
) -> Result<S::Response, ServeError<S::Error>>
where
    S: Service<Request>,
    W: InWords<Request, S::Response, S::Error>,
{
    let session = words.begin(&hub, &request).start().await.map_err(ServeError::Session)?;
    let work = within(&session, async move { service.call(request).await });
    let outcome = tokio::select! {
        biased;
        stop = session.stopped() => return Err(ServeError::Session(Error::Stopped(stop))),
        outcome = work => outcome,
    };
    let told = words.ending(outcome.as_ref()).tell(session).await;
    match (outcome, told) {
        // A service whose tools were stopped may well say that it failed; that it was stopped is the truth.
        (_, Err(error @ Error::Stopped(_))) | (Ok(_), Err(error)) => Err(ServeError::Session(error)),
        (Err(error), _) => Err(ServeError::Service(error)),
        (Ok(response), Ok(())) => Ok(response),
    }
}
