//! The life-cycle callbacks of agent frameworks, reported as protocol events.
//!
//! A framework that supports callbacks takes a [`Callbacks`]. [`SessionReporter`] implements it and reports a session:
//!
//! | callback | event |
//! |---|---|
//! | [`on_chain_start`](Callbacks::on_chain_start) | `session.started` |
//! | [`on_llm_start`](Callbacks::on_llm_start) | `state.changed` to thinking; inside a tool, `progress.updated` |
//! | [`on_llm_new_token`](Callbacks::on_llm_new_token) | `output.streaming`, in the chunks that listeners asked for |
//! | [`on_tool_start`](Callbacks::on_tool_start) | `awaiting.confirmation` where consent is needed; then `tool.invoked` |
//! | [`on_tool_end`](Callbacks::on_tool_end) | `tool.completed` with success |
//! | [`on_tool_error`](Callbacks::on_tool_error) | `tool.completed` with an error |
//! | [`on_chain_end`](Callbacks::on_chain_end) | `session.completed` |
//! | [`on_chain_error`](Callbacks::on_chain_error) | `session.errored` |
//!
//! [`SessionReporter::hand_off`] asks somebody else to take over and returns the outcome.
//!
//! ```
//! use sayso::Hub;
//! use sayso::bridge::{BridgeEnding, UnconfirmedCall};
//! use sayso::callbacks::{Callbacks, SessionReporterBuilder};
//!
//! # testing::run_example!({
//! let hub = Hub::embedded().agent("weather").open()?;
//! let (reporter, task) =
//!     SessionReporterBuilder::new(&hub).plan_calls(|tool, _| UnconfirmedCall::new(tool).into()).open();
//! let task = tokio::spawn(task);
//!
//! // This is what the framework does.
//! reporter.on_chain_start("c1", "Do I need an umbrella?")?;
//! reporter.on_llm_start("m1", "You are a helpful assistant.")?;
//! if reporter.on_tool_start("t1", "weather", "Oslo").await.is_ok() {
//!     reporter.on_tool_end("t1", "rain")?;
//! }
//! reporter.on_llm_new_token("m2", "Yes, take one.")?;
//! reporter.on_chain_end("c1", "You need an umbrella.")?;
//!
//! let report = task.await.expect("the task does not panic");
//! assert_eq!((report.ending, report.faults), (BridgeEnding::ByAgent, vec![]));
//! hub.close().await;
//! # });
//! ```
//!
//! # Which callbacks wait
//!
//! All callbacks except one are only added to a queue. They never wait or block, and may be called from any thread and outside any
//! runtime. They return [`Error::Stopped`] if the session is over; it says whether the person stopped it, and the framework should
//! then give up. They return [`Error::LimitReached`] if [`CALLBACK_QUEUE_CAPACITY`] callbacks are waiting, or too many chains are
//! open. Callbacks are reported in the order in which they were made. The [report](crate::bridge::BridgeReport) lists those that the
//! hub rejected, and [`SessionReporterBuilder::on_fault`] reports each fault as soon as it occurs.
//!
//! The exception is [`on_tool_start`](Callbacks::on_tool_start). It returns a [`PendingAnswer`], which is awaited, or waited for
//! on a thread without a runtime. The tool may run only if the answer is a [`Permission`]. By then listeners have heard
//! `tool.invoked` and, if there was one, the question before it. No other callback emits `tool.invoked`, so it is never sent
//! before the answer.
//!
//! # Frameworks with faulty callbacks
//!
//! Callbacks can be repeated, out of order or missing. Runs are matched by their ids. An end without a start, a second end, or the
//! end of a tool that was not allowed is a [`BridgeFault`](crate::bridge::BridgeFault) and is not reported to listeners. A tool
//! that never ends is closed with the session, and listeners hear that its outcome is unknown. If the chain never ends, the session
//! ends when the last [`SessionReporter`] is dropped, or after [`SessionReporterBuilder::idle_timeout`]. Nested chains are not
//! reported.

mod reporter;

pub use reporter::{
    CALLBACK_QUEUE_CAPACITY, ReporterTask, SessionReporter, SessionReporterBuilder, ToolPlan,
};

use crate::bridge::{PendingAnswer, Permission};
use crate::error::Error;

/// The callbacks that a framework makes. Each one carries the id of its run. The default implementation of a callback does nothing;
/// only `on_tool_start` has none, because no default answer would be right.
///
/// ```
/// use sayso::Error;
/// use sayso::bridge::{PendingAnswer, Permission};
/// use sayso::callbacks::{Callbacks, SessionReporter};
///
/// /// Logs which tools are used, and reports everything.
/// struct LoggingReporter(SessionReporter);
///
/// impl Callbacks for LoggingReporter {
///     fn on_tool_start(&self, run: &str, tool: &str, input: &str) -> PendingAnswer<Permission> {
///         eprintln!("{run}: {tool}");
///         self.0.on_tool_start(run, tool, input)
///     }
///     fn on_tool_end(&self, run: &str, output: &str) -> Result<(), Error> {
///         self.0.on_tool_end(run, output)
///     }
///     // And so on.
/// }
/// ```
#[allow(unused_variables, reason = "the default implementation of a callback does nothing")]
pub trait Callbacks: Send + Sync {
    /// A chain or an agent starts, with the person's request.
    fn on_chain_start(&self, run: &str, request: &str) -> Result<(), Error> {
        Ok(())
    }

    /// The chain has done its task.
    fn on_chain_end(&self, run: &str, output: &str) -> Result<(), Error> {
        Ok(())
    }

    /// The chain failed.
    fn on_chain_error(&self, run: &str, error: &str) -> Result<(), Error> {
        Ok(())
    }

    /// A model is called. Its prompt is not reported.
    fn on_llm_start(&self, run: &str, prompt: &str) -> Result<(), Error> {
        Ok(())
    }

    /// A model returned a piece of text.
    fn on_llm_new_token(&self, run: &str, token: &str) -> Result<(), Error> {
        Ok(())
    }

    /// A tool is about to run. It may run only if the answer is a [`Permission`].
    fn on_tool_start(&self, run: &str, tool: &str, input: &str) -> PendingAnswer<Permission>;

    /// A tool succeeded.
    fn on_tool_end(&self, run: &str, output: &str) -> Result<(), Error> {
        Ok(())
    }

    /// A tool failed.
    fn on_tool_error(&self, run: &str, error: &str) -> Result<(), Error> {
        Ok(())
    }
}
