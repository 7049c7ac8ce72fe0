//! The library for authors of AI agents: it reports what an agent does, and asks a person before the agent acts.
//!
//! Reports are AAEP events. A hub stores them and delivers them to listeners, such as screen readers.
//!
//! - [`Hub`]: a connection to a hub. The hub runs in this process or is a `sayso serve` elsewhere; the rest of the API is the same.
//! - [`Session`]: one task that a person requested, from its start to exactly one end.
//! - [`ProducerSession`], [`Invitation`]: several agents in one session, in one program or in several.
//! - [`ToolCall`]: an open tool call. It is closed by reporting its outcome, or by dropping it.
//! - [`Action`], [`Answer`], [`Granted`]: consent as a value. An irreversible or high-risk call needs a [`Granted`], which only
//!   a person's yes to that exact call creates.
//! - `#[sayso::tool]`: makes a function ask for consent, announce itself and report its outcome. [`within`] passes the session to it.
//! - `middleware` (feature `tower`): a layer that opens a session for each request to a tower service.
//! - [`callbacks`], [`bridge`]: adapters for frameworks that call back, and for frameworks that publish their events.
//! - [`Redact`]: removes secrets from everything that people hear.
//! - [`Error`]: what went wrong, and which protocol rules were violated.
//! - `asp` (feature `asp`): a client for the agent's own ASP node, for agents that negotiate with other agents.
//! - `openai` (feature `openai`): an agent loop for endpoints with the chat completions API.
//! - `rig` (feature `rig`): an adapter for rig agents.
//!
//! The default features are `client` (connect to a hub elsewhere) and `macros`. The feature `embedded` adds `Hub::embedded`: a hub
//! in this process, with its server and SQLite.
//!
//! ```
//! use sayso::{Action, Answer, Hub};
//!
//! # testing::run_example!({
//! let hub = Hub::embedded().agent("bank").open()?;
//! let session = hub.session("Pay Ben.").start().await?;
//! session.think("Looking for Ben's account.").await?;
//! let action = Action::new("send", r#"{"to":"Ben","amount":"5.00"}"#)
//!     .says("Send 5 euros to Ben.")
//!     .consequence("The money leaves your account at once.")
//!     .irreversible();
//! match session.ask(action).await? {
//!     Answer::Granted(granted) => {
//!         let send = async |arguments: String| Ok::<_, std::io::Error>(arguments.len());
//!         let _ = session.call(granted, send).await;
//!         session.finish("5 euros are on their way to Ben.").await?;
//!     }
//!     // Nobody is listening here, so nobody can be asked. That counts as a no.
//!     Answer::Refused(refusal) => session.cancel(format!("Nothing was sent: {refusal}.")).await?,
//! }
//! hub.close().await;
//! # });
//! ```
//!
//! How it works: each [`Hub`] has one dispatcher (`dispatcher`), usually on a thread of its own. It handles the commands of each
//! session one at a time and knows which tools, outputs and questions are open. If the agent drops a session or panics, the
//! dispatcher closes what is open and ends the session. Below it, `transport` connects to the hub: in this process or over a WebSocket.

#[cfg(not(any(feature = "client", feature = "embedded")))]
compile_error!("enable the feature `client`, the feature `embedded`, or both");

#[macro_use]
mod setters;

mod abandon;
mod argument;
#[cfg(feature = "asp")]
pub mod asp;
pub mod bridge;
#[cfg(any(feature = "openai", feature = "rig"))]
mod call_policy;
pub mod callbacks;
mod clarification;
mod consent;
mod current_session;
#[doc(hidden)]
pub mod decorator;
mod dispatcher;
mod error;
mod hub;
mod localized_text;
mod member;
#[cfg(feature = "tower")]
pub mod middleware;
#[cfg(feature = "openai")]
pub mod openai;
mod redact;
#[cfg(feature = "rig")]
pub mod rig;
mod session;
mod session_state;
mod transport;
mod utf8;

#[cfg(feature = "embedded")]
pub use self::hub::EmbeddedHubBuilder;
pub use self::hub::Hub;
#[cfg(feature = "client")]
pub use self::hub::RemoteHubBuilder;
#[cfg(feature = "embedded")]
pub use ::hub::HubLimits;
pub use aaep::event::{CancelledBy, CoalesceHint, Decision, TextDirection, Urgency, Verbosity};
pub use argument::{Argument, JsonText};
pub use clarification::{ClarificationAnswer, ClarificationRequest};
pub use consent::{Action, Answer, ConsentRefusal, Granted, ResolvedBy, Risk};
pub use current_session::{CurrentSession, current, within};
pub use error::{
    CallError, ConsentMismatch, Error, LimitReached, MalformedInput, RuleViolation, SharedError, StopReason,
    StorageError, UnreachableReason,
};
#[cfg(feature = "embedded")]
pub use journal::Retention;
pub use localized_text::LocalizedText;
pub use redact::{NoRedaction, Redact, SecretRedactor};
#[cfg(feature = "macros")]
pub use sayso_macros::tool;
pub use session::{
    Cancellation, Completion, ErrorCategory, EventOptions, Failure, HandOff, HandOffOutcome, HandOffTarget,
    Invitation, OutputText, Producer, ProducerSession, ProgressUpdate, ReportedState, Session,
    SessionBuilder, StateChange, ToolCall, ToolCallBuilder,
};
#[cfg(feature = "embedded")]
pub use wire::HubHandle as RunningHub;
