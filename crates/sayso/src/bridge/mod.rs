//! An adapter for frameworks that publish their events as a stream.
//!
//! The framework needs no knowledge of this crate. An [`EventBridge`] takes its stream of events and a function that maps each event
//! to [`AgentStep`]s, and drives a session from them.
//!
//! ```
//! use futures_util::stream;
//! use sayso::Hub;
//! use sayso::bridge::{AgentStep, BridgeEnding, EventBridge, UnconfirmedCall};
//!
//! enum FrameworkEvent {
//!     Requested(&'static str),
//!     ToolCalled(u32, &'static str),
//!     ToolReturned(u32),
//!     Chunk(&'static str),
//!     Finished,
//! }
//!
//! # testing::run_example!({
//! let hub = Hub::embedded().agent("weather").open()?;
//! let events = stream::iter([
//!     FrameworkEvent::Requested("Do I need an umbrella?"),
//!     FrameworkEvent::ToolCalled(1, "weather"),
//!     FrameworkEvent::ToolReturned(1),
//!     FrameworkEvent::Chunk("Yes, ta"),
//!     FrameworkEvent::Chunk("ke one."),
//!     FrameworkEvent::Finished,
//! ]);
//! let report = EventBridge::new()
//!     .run(events, |event| {
//!         [match event {
//!             FrameworkEvent::Requested(request) => AgentStep::start(hub.session(request)),
//!             FrameworkEvent::ToolCalled(run, tool) => AgentStep::tool(run.to_string(), UnconfirmedCall::new(tool)),
//!             FrameworkEvent::ToolReturned(run) => AgentStep::tool_succeeded(run.to_string(), "The forecast is here."),
//!             FrameworkEvent::Chunk(text) => AgentStep::output(text),
//!             FrameworkEvent::Finished => AgentStep::finish("You need an umbrella."),
//!         }]
//!     })
//!     .await;
//! assert_eq!(report.ending, BridgeEnding::ByAgent);
//! assert!(report.faults.is_empty());
//! hub.close().await;
//! # });
//! ```
//!
//! - **Order.** Steps are reported one after the other, in the order in which they arrive. An open question does not delay later
//!   steps.
//! - **Consent.** [`AgentStep::ask`] asks the person. A yes is spent immediately: the call is announced, and only then is the answer a
//!   [`Permission`]. In every other case it is a [`Denial`]. The framework must run the tool only with a [`Permission`]; a tool that
//!   ends without one is a [`BridgeFault`]. A question whose answer nobody is waiting for is withdrawn.
//! - **Faults.** A step that violates a rule, is repeated, or comes too early or too late is not reported to listeners. It is a
//!   [`BridgeFault`] for the author, and the session continues.
//! - **End.** If the stream ends or stalls before the session was ended, its tools and outputs are closed and listeners hear that the
//!   agent stopped before it was done. For a stream of results, map an error to [`AgentStep::fail`].
//! - **Stop.** When the person stops the session, the stream is dropped.
//!
//! Internally, `driver` drives an open session; `step`, `answer_channel` and `report` define its inputs and outputs.

mod answer_channel;
mod driver;
mod report;
mod step;

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

pub use answer_channel::{AnswerSender, Denial, PendingAnswer, Permission};
pub use futures_core::Stream;
pub use report::{BridgeEnding, BridgeFault, BridgeReport};
pub use step::{AgentStep, UnconfirmedCall};
use tokio::sync::mpsc;

use driver::{DriverEnd, SessionDriver};
use report::FaultLog;
pub(crate) use step::StepKind;

use crate::error::Error;
use crate::session::Session;

/// How long a stream may be silent while no question is open.
const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_mins(10);

/// The maximum number of remaining steps that are reported as faults after the bridge has ended.
const MAX_REMAINING_STEPS: usize = 1024;

/// Drives a session from a stream of framework events. See [the module](self).
///
/// ```
/// # testing::run_example!(hub, {
/// use sayso::bridge::{AgentStep, BridgeEnding, EventBridge};
///
/// let events = futures_util::stream::iter(["It is rai", "ning."]);
/// let session = hub.session("What is the weather?").start().await?;
/// let report = EventBridge::with_session(session).run(events, |text| [AgentStep::output(text)]).await;
/// // The stream ended without a step that ends the session.
/// assert_eq!(report.ending, BridgeEnding::StreamEnded);
/// # });
/// ```
#[must_use = "nothing happens until `run` is called"]
pub struct EventBridge {
    session: Option<Session>,
    pub(crate) idle_timeout: Duration,
    pub(crate) fault_log: FaultLog,
}

impl EventBridge {
    /// Creates a bridge whose stream [starts](AgentStep::start) the session.
    pub fn new() -> Self {
        Self { session: None, idle_timeout: DEFAULT_IDLE_TIMEOUT, fault_log: FaultLog::new() }
    }

    /// Creates a bridge for a session that has already started.
    pub fn with_session(session: Session) -> Self {
        Self { session: Some(session), ..Self::new() }
    }

    setters! {
        /// Sets how long the stream may be silent. The default is ten minutes. Time during which a question is open does not count.
        idle_timeout(timeout: Duration) => idle_timeout = timeout;

        /// Calls a function for each fault as soon as it occurs. The report contains all faults too.
        on_fault(callback: impl FnMut(&BridgeFault) + Send + 'static) => fault_log.on_fault = Some(Box::new(callback));
    }

    /// Runs until the stream or the session ends. It needs a tokio runtime with a timer.
    ///
    /// ```
    /// # testing::run_example!(hub, {
    /// use futures_util::stream;
    /// use sayso::bridge::{AgentStep, BridgeEnding, EventBridge};
    ///
    /// let events = stream::iter([Ok("It is raining."), Err("The model is not available.")]);
    /// let session = hub.session("What is the weather?").start().await?;
    /// let map = |event| match event {
    ///     Ok(text) => vec![AgentStep::output(text), AgentStep::finish_output()],
    ///     Err(error) => vec![AgentStep::fail(error)],
    /// };
    /// assert_eq!(EventBridge::with_session(session).run(events, map).await.ending, BridgeEnding::ByAgent);
    /// # });
    /// ```
    pub async fn run<S, I>(self, events: S, map: impl FnMut(S::Item) -> I) -> BridgeReport
    where
        S: Stream,
        I: IntoIterator<Item = AgentStep>,
    {
        self.run_steps(MappedSteps { events: pin!(events), map, current: None }).await
    }

    /// Runs the bridge on a source of steps.
    pub(crate) async fn run_steps(self, mut steps: impl StepSource) -> BridgeReport {
        let Self { session, idle_timeout, mut fault_log } = self;
        let session = match session {
            Some(session) => session,
            None => match wait_for_start(&mut steps, idle_timeout, &mut fault_log).await {
                Ok(session) => session,
                Err(ending) => {
                    report_remaining_steps(&mut steps, &mut fault_log, BridgeFault::BeforeStart).await;
                    return fault_log.into_report(ending);
                }
            },
        };
        let end = SessionDriver::new(&session, &mut fault_log).run(&mut steps, idle_timeout).await;
        let result = match end {
            DriverEnd::ByStep(ending) => ending.end_session(session).await,
            DriverEnd::StreamEnded => return fault_log.into_report(BridgeEnding::StreamEnded),
            DriverEnd::Stalled => return fault_log.into_report(BridgeEnding::Stalled),
            DriverEnd::Stopped(stop) => return fault_log.into_report(BridgeEnding::Stopped(stop)),
        };
        report_remaining_steps(&mut steps, &mut fault_log, BridgeFault::AfterEnd).await;
        fault_log.into_report(match result {
            Ok(()) => BridgeEnding::ByAgent,
            Err(Error::Stopped(stop)) => BridgeEnding::Stopped(stop),
            Err(error) => BridgeEnding::FinalEventRejected(error),
        })
    }
}

impl Default for EventBridge {
    fn default() -> Self {
        Self::new()
    }
}

debug_tuple!(EventBridge, session);

/// Waits for the step that starts the session. Returns how the bridge ended if there is none.
async fn wait_for_start(
    steps: &mut impl StepSource,
    idle_timeout: Duration,
    fault_log: &mut FaultLog,
) -> Result<Session, BridgeEnding> {
    loop {
        let Ok(Some(step)) = tokio::time::timeout(idle_timeout, steps.next()).await else {
            return Err(BridgeEnding::NeverStarted);
        };
        let name = step.name();
        match step.0 {
            StepKind::Start(builder) => return builder.start().await.map_err(BridgeEnding::StartFailed),
            StepKind::Fault(fault) => fault_log.add(fault),
            _ => fault_log.add(BridgeFault::BeforeStart(name)),
        }
    }
}

/// Reports the remaining steps that are ready as faults, without waiting for more.
async fn report_remaining_steps(
    steps: &mut impl StepSource,
    fault_log: &mut FaultLog,
    to_fault: fn(&'static str) -> BridgeFault,
) {
    for _ in 0..MAX_REMAINING_STEPS {
        let mut next = pin!(steps.next());
        let ready = poll_fn(|context| Poll::Ready(next.as_mut().poll(context))).await;
        let Poll::Ready(Some(step)) = ready else { return };
        let name = step.name();
        fault_log.add(match step.0 {
            StepKind::Fault(fault) => fault,
            _ => to_fault(name),
        });
    }
}

pub(crate) trait StepSource {
    /// Returns the next step, or `None` at the end. It is cancel-safe.
    async fn next(&mut self) -> Option<AgentStep>;
}

impl StepSource for mpsc::Receiver<AgentStep> {
    async fn next(&mut self) -> Option<AgentStep> {
        self.recv().await
    }
}

struct MappedSteps<'s, S, M, I: IntoIterator> {
    events: Pin<&'s mut S>,
    map: M,
    /// The remaining steps of the last event.
    current: Option<I::IntoIter>,
}

impl<S, M, I> StepSource for MappedSteps<'_, S, M, I>
where
    S: Stream,
    M: FnMut(S::Item) -> I,
    I: IntoIterator<Item = AgentStep>,
{
    async fn next(&mut self) -> Option<AgentStep> {
        loop {
            if let Some(step) = self.current.as_mut().and_then(Iterator::next) {
                return Some(step);
            }
            self.current = None;
            let event = poll_fn(|context| self.events.as_mut().poll_next(context)).await?;
            self.current = Some((self.map)(event).into_iter());
        }
    }
}
