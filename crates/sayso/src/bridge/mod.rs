//! A stream of native events, told in the protocol's words.
//!
//! A framework that publishes what it does knows nothing of this crate: a [`Bridge`] takes its stream of events and a function
//! that maps each of them to [`Step`]s, and drives a session from them.
//!
//! ```
//! use futures_util::stream;
//! use sayso::Hub;
//! use sayso::bridge::{Bridge, Ending, Step, Unasked};
//!
//! enum Native {
//!     Asked(&'static str),
//!     ToolCalled(u32, &'static str),
//!     ToolReturned(u32),
//!     Chunk(&'static str),
//!     Over,
//! }
//!
//! # testing::example!({
//! let hub = Hub::embedded().agent("weather").open()?;
//! let events = stream::iter([
//!     Native::Asked("Do I need an umbrella?"),
//!     Native::ToolCalled(1, "weather"),
//!     Native::ToolReturned(1),
//!     Native::Chunk("Yes, ta"),
//!     Native::Chunk("ke one."),
//!     Native::Over,
//! ]);
//! let report = Bridge::new()
//!     .run(events, |event| {
//!         [match event {
//!             Native::Asked(request) => Step::start(hub.session(request)),
//!             Native::ToolCalled(run, tool) => Step::tool(run.to_string(), Unasked::new(tool)),
//!             Native::ToolReturned(run) => Step::done(run.to_string(), "The sky has been looked at."),
//!             Native::Chunk(text) => Step::output(text),
//!             Native::Over => Step::finish("You need an umbrella."),
//!         }]
//!     })
//!     .await;
//! assert_eq!(report.ending, Ending::AsSaid);
//! assert!(report.faults.is_empty());
//! hub.close().await;
//! # });
//! ```
//!
//! - **Order.** Steps are told one after the other, in the order in which they come. A question does not hold up the steps
//!   behind it.
//! - **Consent.** [`Step::ask`] asks; a yes is spent at once, so listeners hear that the tool runs, and only then the reply
//!   handle says [`Allowed`]. Whatever else happens it says [`Denied`]. The native side runs the tool on [`Allowed`] only; a
//!   tool that ends without having been allowed is a [`Fault`]. A question for whose answer nobody waits any more is taken
//!   back.
//! - **Faults.** What breaks a rule, comes too early, too late or twice is not told, is a [`Fault`] for the author, and does
//!   not stop the rest.
//! - **The end.** A session that its own steps have not ended is ended honestly when the stream ends or stalls: its tools and
//!   outputs are closed, and listeners are told that the agent stopped in the middle. A stream of results says why itself:
//!   map an error to [`Step::fail`].
//! - **Stop.** When the person stops the session, the stream is dropped.
//!
//! Inside: `drive` is what happens in an open session; `step`, `reply` and `report` are its words.

mod drive;
mod reply;
mod report;
mod step;

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

pub use futures_core::Stream;
pub use reply::{Allowed, Denied, Gate, Reply};
pub use report::{Ending, Fault, Report};
pub use step::{Step, Unasked};
use tokio::sync::mpsc;

use drive::{Drive, Last};
use report::Notes;
pub(crate) use step::Kind;

use crate::error::Error;
use crate::session::Session;

/// A stream may be silent for so long, while no person is asked.
const SILENCE: Duration = Duration::from_mins(10);

/// After the end so many steps more are looked at, if they are there already.
const AFTERWARDS: usize = 1024;

/// Drives a session from a stream of native events. See [the module](self).
///
/// ```
/// # testing::example!(hub, {
/// use sayso::bridge::{Bridge, Ending, Step};
///
/// let events = futures_util::stream::iter(["It rai", "ns."]);
/// let session = hub.session("How is the weather?").start().await?;
/// let report = Bridge::of(session).run(events, |text| [Step::output(text)]).await;
/// // The stream ended, and nobody said how the session did.
/// assert_eq!(report.ending, Ending::Early);
/// # });
/// ```
#[must_use = "nothing happens before it runs"]
pub struct Bridge {
    session: Option<Session>,
    pub(crate) silence: Duration,
    pub(crate) notes: Notes,
}

impl Bridge {
    /// A bridge whose stream has the session's [start](Step::start) in it.
    pub fn new() -> Self {
        Self { session: None, silence: SILENCE, notes: Notes::new() }
    }

    /// A bridge for a session that has been started.
    pub fn of(session: Session) -> Self {
        Self { session: Some(session), ..Self::new() }
    }

    setters! {
        /// For how long the stream may be silent: ten minutes if nothing is said. While a person is asked the clock stands still.
        silence(limit: Duration) => silence = limit;

        /// Tells every fault at once; the report has them too.
        on_fault(tell: impl FnMut(&Fault) + Send + 'static) => notes.tell = Some(Box::new(tell));
    }

    /// Tells the stream to its end, or to the session's. It needs a runtime of tokio, for its clock.
    ///
    /// ```
    /// # testing::example!(hub, {
    /// use futures_util::stream;
    /// use sayso::bridge::{Bridge, Ending, Step};
    ///
    /// let events = stream::iter([Ok("It rains."), Err("the model is gone")]);
    /// let session = hub.session("How is the weather?").start().await?;
    /// let map = |event| match event {
    ///     Ok(text) => vec![Step::output(text), Step::output_done()],
    ///     Err(why) => vec![Step::fail(why)],
    /// };
    /// assert_eq!(Bridge::of(session).run(events, map).await.ending, Ending::AsSaid);
    /// # });
    /// ```
    pub async fn run<S, I>(self, events: S, map: impl FnMut(S::Item) -> I) -> Report
    where
        S: Stream,
        I: IntoIterator<Item = Step>,
    {
        self.run_steps(Steps { events: pin!(events), map, now: None }).await
    }

    /// The same for steps.
    pub(crate) async fn run_steps(self, mut steps: impl Next) -> Report {
        let Self { session, silence, mut notes } = self;
        let session = match session {
            Some(session) => session,
            None => match begin(&mut steps, silence, &mut notes).await {
                Ok(session) => session,
                Err(ending) => {
                    afterwards(&mut steps, &mut notes, Fault::BeforeStart).await;
                    return notes.report(ending);
                }
            },
        };
        let last = Drive::new(&session, &mut notes).run(&mut steps, silence).await;
        let said = match last {
            Last::Said(ending) => ending.tell(session).await,
            Last::Early => return notes.report(Ending::Early),
            Last::Stalled => return notes.report(Ending::Stalled),
            Last::Stopped(stop) => return notes.report(Ending::Stopped(stop)),
        };
        afterwards(&mut steps, &mut notes, Fault::AfterEnd).await;
        notes.report(match said {
            Ok(()) => Ending::AsSaid,
            Err(Error::Stopped(stop)) => Ending::Stopped(stop),
            Err(error) => Ending::Refused(error),
        })
    }
}

impl Default for Bridge {
    fn default() -> Self {
        Self::new()
    }
}

debug_tuple!(Bridge, session);

/// The session, or how it ended without one.
async fn begin(steps: &mut impl Next, silence: Duration, notes: &mut Notes) -> Result<Session, Ending> {
    loop {
        let Ok(Some(step)) = tokio::time::timeout(silence, steps.next()).await else {
            return Err(Ending::NeverStarted);
        };
        let name = step.name();
        match step.0 {
            Kind::Start(begin) => return begin.start().await.map_err(Ending::NotStarted),
            Kind::Fault(fault) => notes.add(fault),
            _ => notes.add(Fault::BeforeStart(name)),
        }
    }
}

/// What is there already and comes too late.
async fn afterwards(steps: &mut impl Next, notes: &mut Notes, fault: fn(&'static str) -> Fault) {
    for _ in 0..AFTERWARDS {
        let mut next = pin!(steps.next());
        let ready = poll_fn(|context| Poll::Ready(next.as_mut().poll(context))).await;
        let Poll::Ready(Some(step)) = ready else { return };
        let name = step.name();
        notes.add(match step.0 {
            Kind::Fault(fault) => fault,
            _ => fault(name),
        });
    }
}

pub(crate) trait Next {
    /// The next one; none is the end. A future that is dropped loses nothing.
    async fn next(&mut self) -> Option<Step>;
}

impl Next for mpsc::Receiver<Step> {
    async fn next(&mut self) -> Option<Step> {
        self.recv().await
    }
}

struct Steps<'s, S, M, I: IntoIterator> {
    events: Pin<&'s mut S>,
    map: M,
    /// What is left of the event that came last.
    now: Option<I::IntoIter>,
}

impl<S, M, I> Next for Steps<'_, S, M, I>
where
    S: Stream,
    M: FnMut(S::Item) -> I,
    I: IntoIterator<Item = Step>,
{
    async fn next(&mut self) -> Option<Step> {
        loop {
            if let Some(step) = self.now.as_mut().and_then(Iterator::next) {
                return Some(step);
            }
            self.now = None;
            let event = poll_fn(|context| self.events.as_mut().poll_next(context)).await?;
            self.now = Some((self.map)(event).into_iter());
        }
    }
}
