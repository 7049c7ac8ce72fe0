//! What an agent's author adds: the agent says what it does, and acts only on a person's say-so.
//!
//! - [`Hub`]: where sessions are heard. It is in the agent's own process, or a `sayso serve` elsewhere; the rest is the same.
//! - [`Session`]: one request of a person, from its start to one honest end.
//! - [`Tool`]: a call that is open; it is closed by saying how it ended, or by dropping it.
//! - [`Action`], [`Answer`], [`Granted`]: consent as a value. What is irreversible or of high risk is done with a [`Granted`]
//!   only, and only a person's yes to exactly that call makes one.
//! - `#[sayso::tool]`: a function that asks, announces itself and reports by itself; [`within`] carries the session to it.
//! - `middleware`, with the feature `tower`: a layer around any agent that is a service.
//! - [`callbacks`], [`bridge`]: for a framework that calls back, and for one that publishes what it does.
//! - [`Redact`]: secrets do not get into what people hear.
//! - [`Error`]: who is at fault, and by which rule.
//! - `openai`: a ready loop for every endpoint that speaks chat completions (feature `openai`).
//! - `rig`: an adapter for agents of rig (feature `rig`).
//!
//! The default features are `client` (a hub elsewhere) and `macros`. The feature `embedded` adds `Hub::embedded`: a hub in this
//! process, with its server and SQLite.
//!
//! ```
//! use sayso::{Action, Answer, Hub};
//!
//! # testing::example!({
//! let hub = Hub::embedded().agent("bank").open()?;
//! let session = hub.session("Paying Ben.").start().await?;
//! session.think("Looking for Ben's account.").await?;
//! let action = Action::new("send", r#"{"to":"Ben","amount":"5.00"}"#)
//!     .says("Send 5 euro to Ben.")
//!     .consequence("The money is gone at once.")
//!     .irreversible();
//! match session.ask(action).await? {
//!     Answer::Granted(granted) => {
//!         let send = async |arguments: String| Ok::<_, std::io::Error>(arguments.len());
//!         let _ = session.call(granted, send).await;
//!         session.finish("5 euro are on their way to Ben.").await?;
//!     }
//!     // Nobody listens here, so nobody could be asked; and that means no.
//!     Answer::Refused(why) => session.cancel(format!("Nothing was sent: {why}.")).await?,
//! }
//! hub.close().await;
//! # });
//! ```
//!
//! How it works: one thread for each [`Hub`] (`desk`) speaks for all its sessions, one thing at a time for each of them, and
//! knows what is open in it. So whatever becomes of the agent's own futures, a session that is left in the middle has its
//! tools and outputs closed and its end told. Below it, `line` is the way to the hub: in the process, or over a WebSocket.

#[cfg(not(any(feature = "client", feature = "embedded")))]
compile_error!("a hub is needed: take the feature `client`, `embedded` or both");

#[macro_use]
mod setters;

mod ambient;
mod argument;
pub mod bridge;
pub mod callbacks;
mod consent;
#[doc(hidden)]
pub mod decorator;
mod desk;
mod error;
mod hub;
mod left;
mod line;
mod member;
#[cfg(feature = "tower")]
pub mod middleware;
#[cfg(feature = "openai")]
pub mod openai;
#[cfg(any(feature = "openai", feature = "rig"))]
mod policy;
mod question;
mod redact;
#[cfg(feature = "rig")]
pub mod rig;
mod session;
mod track;
mod utf8;
mod words;

#[cfg(feature = "embedded")]
pub use self::hub::EmbeddedHubBuilder;
pub use self::hub::Hub;
#[cfg(feature = "client")]
pub use self::hub::RemoteHubBuilder;
#[cfg(feature = "embedded")]
pub use ::hub::Limits as HubLimits;
pub use aaep::event::{CancelledBy, Decision, TextDirection, Urgency, Verbosity};
pub use ambient::{Current, current, within};
pub use argument::{Argument, Bound};
pub use consent::{Action, Answer, By, Granted, Refused, Risk};
pub use error::{
    Broken, CallError, Error, Malformed, NotGranted, NotStored, Source, Stop, TooMuch, Unreachable,
};
#[cfg(feature = "embedded")]
pub use journal::Retention;
pub use question::{Clarified, Question};
pub use redact::{Redact, Secrets, Untouched};
#[cfg(feature = "macros")]
pub use sayso_macros::tool;
pub use session::{
    Call, Cancellation, Cause, Completion, EventOptions, Failure, HandOff, Output, Progress, Session,
    SessionBuilder, State, StateChange, Target, Tool,
};
#[cfg(feature = "embedded")]
pub use wire::Bridge as RunningHub;
pub use words::Words;
