//! The life-cycle callbacks that agent frameworks know, told in the protocol's words.
//!
//! A framework that calls back takes a [`Callbacks`]; [`Narrator`] is the one that tells a session. Each callback is one row:
//!
//! | callback | what listeners hear |
//! |---|---|
//! | [`on_chain_start`](Callbacks::on_chain_start) | `session.started` |
//! | [`on_llm_start`](Callbacks::on_llm_start) | `state.changed` to thinking; inside a tool, `progress.updated` |
//! | [`on_llm_new_token`](Callbacks::on_llm_new_token) | `output.streaming`, in the pieces that they want |
//! | [`on_tool_start`](Callbacks::on_tool_start) | `awaiting.confirmation` where consent is needed; then `tool.invoked` |
//! | [`on_tool_end`](Callbacks::on_tool_end) | `tool.completed` with success |
//! | [`on_tool_error`](Callbacks::on_tool_error) | `tool.completed` with an error |
//! | [`on_chain_end`](Callbacks::on_chain_end) | `session.completed` |
//! | [`on_chain_error`](Callbacks::on_chain_error) | `session.errored` |
//!
//! ```
//! use sayso::Hub;
//! use sayso::bridge::{Ending, Unasked};
//! use sayso::callbacks::{Callbacks, Narration};
//!
//! # testing::example!({
//! let hub = Hub::embedded().agent("weather").open()?;
//! let (narrator, telling) = Narration::on(&hub).tools(|tool, _| Unasked::new(tool).into()).open();
//! let telling = tokio::spawn(telling);
//!
//! // This is what the framework does.
//! narrator.on_chain_start("c1", "Do I need an umbrella?")?;
//! narrator.on_llm_start("m1", "You are a helpful assistant.")?;
//! if narrator.on_tool_start("t1", "weather", "Oslo").await.is_ok() {
//!     narrator.on_tool_end("t1", "rain")?;
//! }
//! narrator.on_llm_new_token("m2", "Yes, take one.")?;
//! narrator.on_chain_end("c1", "You need an umbrella.")?;
//!
//! let report = telling.await.expect("it does not panic");
//! assert_eq!((report.ending, report.faults), (Ending::AsSaid, vec![]));
//! hub.close().await;
//! # });
//! ```
//!
//! # What is synchronous
//!
//! All callbacks but one only hand over: they never wait and never block, may be called from any thread and outside any
//! runtime, and return an error if nothing could be handed over: the session is over ([`Error::Stopped`] says whether the
//! person stopped it, and a framework should give up then), or [`QUEUE`] callbacks wait to be told. What is handed over is told
//! in the order in which it was. Whether the hub took it, the [report](crate::bridge::Report) says, and
//! [`Narration::on_fault`] at once.
//!
//! [`on_tool_start`](Callbacks::on_tool_start) is the gate. It returns a [`Gate`], which is awaited, or waited for on a thread
//! that has no runtime. The tool may run when it gives [`Allowed`]; listeners have heard `tool.invoked` then, and before it
//! the question, where there is one. Whatever else it gives, the tool must not run. Nothing else emits `tool.invoked`, so none
//! is told before the answer.
//!
//! # What frameworks get wrong
//!
//! Callbacks come twice, out of order, or never. Runs are matched by their ids. An end without a start, a second end, or the
//! end of a tool that was not allowed is a [`Fault`](crate::bridge::Fault) and is not told. A tool that never ends is closed
//! with the session, and listeners are told that its end is not known. If the chain never ends, the session does when the
//! last [`Narrator`] is dropped, or after [`Narration::silence`]. A chain inside the chain is not told.

mod narrator;

pub use narrator::{Narration, Narrator, Plan, QUEUE, Telling};

use crate::bridge::{Allowed, Gate};
use crate::error::Error;

/// What a framework calls. Each callback names its run, as the framework does. A callback that is not written does nothing;
/// only the gate has to be, for there is nothing that would be right to do.
///
/// ```
/// use sayso::Error;
/// use sayso::bridge::{Allowed, Gate};
/// use sayso::callbacks::{Callbacks, Narrator};
///
/// /// Writes down which tools are used, and tells everything.
/// struct Logged(Narrator);
///
/// impl Callbacks for Logged {
///     fn on_tool_start(&self, run: &str, tool: &str, input: &str) -> Gate<Allowed> {
///         eprintln!("{run}: {tool}");
///         self.0.on_tool_start(run, tool, input)
///     }
///     fn on_tool_end(&self, run: &str, output: &str) -> Result<(), Error> {
///         self.0.on_tool_end(run, output)
///     }
///     // And so on.
/// }
/// ```
#[allow(unused_variables, reason = "a callback that is not written does nothing")]
pub trait Callbacks: Send + Sync {
    /// A chain, or an agent, begins with what the person asked.
    fn on_chain_start(&self, run: &str, request: &str) -> Result<(), Error> {
        Ok(())
    }

    /// It did what was asked.
    fn on_chain_end(&self, run: &str, output: &str) -> Result<(), Error> {
        Ok(())
    }

    /// It failed.
    fn on_chain_error(&self, run: &str, error: &str) -> Result<(), Error> {
        Ok(())
    }

    /// A model is asked. Its prompt is not for the person's ears.
    fn on_llm_start(&self, run: &str, prompt: &str) -> Result<(), Error> {
        Ok(())
    }

    /// A model gave a piece of text.
    fn on_llm_new_token(&self, run: &str, token: &str) -> Result<(), Error> {
        Ok(())
    }

    /// A tool is about to run: it may when this gives [`Allowed`], and not before.
    fn on_tool_start(&self, run: &str, tool: &str, input: &str) -> Gate<Allowed>;

    /// A tool did what it should.
    fn on_tool_end(&self, run: &str, output: &str) -> Result<(), Error> {
        Ok(())
    }

    /// A tool failed.
    fn on_tool_error(&self, run: &str, error: &str) -> Result<(), Error> {
        Ok(())
    }
}
