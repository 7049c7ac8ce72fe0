//! Errors of the library.

use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error as ThisError;

use crate::consent::ConsentRefusal;

/// The reason why a request failed. A rejected request has no effect: it is never applied in part. If the hub cannot be reached, it
/// is not known whether it received the request.
///
/// ```
/// # testing::run_example!(hub, session, {
/// use sayso::{Action, Error};
/// match session.ask(Action::new("send", "five euros")).await {
///     Err(Error::Malformed(reason)) => println!("The arguments are not JSON: {reason}."),
///     other => panic!("{other:?}"),
/// }
/// # session.cancel("Nothing was sent.").await?;
/// # });
/// ```
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// The request violates these protocol rules.
    #[error("protocol rules are violated; nothing was applied{}", list_violations(.0))]
    RuleViolations(Vec<RuleViolation>),
    /// The session is over, and the agent did not end it.
    #[error(transparent)]
    Stopped(#[from] StopReason),
    /// The consent does not cover this call.
    #[error(transparent)]
    ConsentMismatch(#[from] ConsentMismatch),
    /// An argument, a setting or a file cannot be used.
    #[error("{0}")]
    Malformed(#[source] MalformedInput),
    /// The token is missing or does not allow the request.
    #[error("the token is missing or does not allow this")]
    AccessDenied,
    /// A limit on size, count or rate is reached.
    #[error("limit reached: {0}")]
    LimitReached(#[source] LimitReached),
    /// The request could not be stored, so it has no effect.
    #[error("not stored, so it has no effect: {0}")]
    StorageFailed(#[source] StorageError),
    /// The hub cannot be reached.
    #[error("the hub cannot be reached: {0}")]
    Unreachable(#[source] UnreachableReason),
    /// The server cannot prove that it is the hub. Nothing was sent to it.
    #[error("the hub is not trusted: {0}")]
    UntrustedServer(#[source] SharedError),
    /// There is no current session; [`within`](crate::within) sets one.
    #[error("there is no current session; wrap the call in `sayso::within`")]
    NoSession,
}

/// Which argument, setting or file cannot be used, and why.
///
/// ```
/// use sayso::{Error, Hub, MalformedInput};
/// let opened = Hub::embedded().listen("0.0.0.0:0").open();
/// assert!(matches!(opened, Err(Error::Malformed(MalformedInput::ExposedWithoutTokens(_)))));
/// # Ok::<(), sayso::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum MalformedInput {
    /// The hub rejected the input with this message.
    #[error("{0}")]
    Hub(String),
    /// A value is not JSON.
    #[error("a value is not JSON: {0}")]
    Json(#[source] SharedError),
    /// A call to which an answer cannot be bound.
    #[error("{0}")]
    Action(#[source] SharedError),
    /// The URL is not the address of a hub.
    #[error("{url:?} is not the address of a hub: {source}")]
    Address {
        /// The URL.
        url: String,
        /// What is wrong with it.
        source: SharedError,
    },
    /// The token cannot be sent.
    #[error("{0}")]
    Token(#[source] SharedError),
    /// The text is not an [`Invitation`](crate::Invitation).
    #[error("the text is not an invitation to a session")]
    Invitation,
    /// The text is not the id of an output.
    #[error("the id of an output must be out_ followed by 1 to 64 ASCII letters or digits")]
    OutputId,
    /// A file cannot be used.
    #[error("cannot use {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why it cannot be used.
        source: SharedError,
    },
    /// Other machines could reach this address, but there are no tokens.
    #[error(
        "{0} can be reached from other machines, but there are no tokens; set a token file or use a loopback address"
    )]
    ExposedWithoutTokens(String),
    /// The builder sets a journal, an address, tokens, a manifest or a key, but a running hub has its own.
    #[error(
        "a running hub has its own journal, address, tokens, manifests and key; do not set any of them when you attach to it"
    )]
    ConflictingHubSettings,
    /// The manifest cannot be published.
    #[error("the manifest {0}")]
    Manifest(#[source] SharedError),
    /// The manifest does not state something that the embedded hub does.
    #[error("the manifest must have {0}, because it describes the embedded hub as well")]
    ManifestClaim(String),
    /// A token in the token file is for this agent id, which belongs to the agent of the embedded hub.
    #[error("the agent id {0:?} belongs to this program; the token file must not have a token for it")]
    AgentIdTaken(String),
    /// The context of rig's tools does not accept a session.
    #[error("rig's ToolContext does not accept a session")]
    ToolContext,
}

/// The limit that was reached.
///
/// ```
/// assert_eq!(sayso::LimitReached::Chains(1024).to_string(), "1024 nested chains are open");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum LimitReached {
    /// The hub rejected the request with this message.
    #[error("{0}")]
    Hub(String),
    /// One event is too large.
    #[error("an event of {bytes} bytes exceeds the limit of {max_bytes}")]
    Bytes {
        /// The size of the event, in bytes.
        bytes: usize,
        /// The maximum size of an event, in bytes.
        max_bytes: usize,
    },
    /// This many callbacks are waiting to be reported.
    #[error("{0} callbacks are waiting to be reported")]
    Callbacks(usize),
    /// This many nested chains (`on_chain_start` without `on_chain_end`) are open.
    #[error("{0} nested chains are open")]
    Chains(usize),
}

/// The reason why something could not be stored.
///
/// ```
/// # let folder = std::env::temp_dir();
/// use sayso::{Error, Hub, StorageError};
/// // A folder cannot be a journal.
/// let opened = Hub::embedded().journal(folder).open();
/// assert!(matches!(opened, Err(Error::StorageFailed(StorageError::Journal(_)))));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum StorageError {
    /// The hub could not store it, for this reason.
    #[error("{0}")]
    Hub(String),
    /// The journal cannot be used.
    #[error("{0}")]
    Journal(#[source] SharedError),
}

/// The reason why the hub cannot be reached.
///
/// ```
/// assert_eq!(sayso::UnreachableReason::ConnectionLost.to_string(), "the connection is lost");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum UnreachableReason {
    /// The hub did not answer in time.
    #[error("it did not answer in time")]
    TimedOut,
    /// The connection is lost.
    #[error("the connection is lost")]
    ConnectionLost,
    /// The thread that communicates with the hub has ended.
    #[error("the thread that communicates with the hub has ended")]
    ThreadEnded,
    /// The hub in this process has ended.
    #[error("the hub in this process has ended")]
    HubEnded,
    /// The network or the system failed.
    #[error("{0}")]
    Io(#[source] SharedError),
}

/// An error of another library that can be cloned and compared. Two errors are equal if their messages are equal.
///
/// ```
/// # testing::run_example!({
/// use sayso::{Error, Hub, MalformedInput};
/// let opened = Hub::connect("https://hub.example").ca_file("no/such/file.pem").open().await;
/// let Err(Error::Malformed(MalformedInput::File { source, .. })) = opened else { panic!("the file exists") };
/// assert!(source.is::<std::io::Error>());
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct SharedError(Arc<dyn std::error::Error + Send + Sync>);

impl SharedError {
    pub(crate) fn new(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(error.into().into())
    }
}

impl Deref for SharedError {
    type Target = dyn std::error::Error + Send + Sync;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl fmt::Display for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.downcast_ref::<std::io::Error>() {
            Some(error) => f.write_str(&seal::describe_io_error(error)),
            None => self.0.fmt(f),
        }
    }
}

impl PartialEq for SharedError {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for SharedError {}

/// A violated protocol rule.
///
/// ```
/// # testing::run_example!(hub, session, {
/// use sayso::{Action, Error};
/// // The consequence is missing.
/// match session.ask(Action::new("send", r#"{"to":"Ben"}"#).says("Send 5 euros to Ben.")).await {
///     Err(Error::RuleViolations(violations)) => assert_eq!(violations[0].pointer, "/consequence"),
///     other => panic!("{other:?}"),
/// }
/// # session.cancel("Nothing was sent.").await?;
/// # });
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleViolation {
    /// The rule's id, such as `AAEP-4.3.2-3`.
    pub rule: String,
    /// The violating member of the event, as a JSON pointer.
    pub pointer: String,
    /// What is wrong, and how to correct it.
    pub message: String,
}

/// The reason why a session is over although its agent has not ended it.
///
/// ```
/// assert_eq!(sayso::StopReason::Person.to_string(), "the person stopped the session");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum StopReason {
    /// The person stopped it.
    #[error("the person stopped the session")]
    Person,
    /// The hub ended the session because its lease expired: the agent was silent for too long.
    #[error("the hub ended the session because the agent was silent for too long")]
    LeaseExpired,
    /// The hub can no longer be reached.
    #[error("the hub can no longer be reached")]
    Unreachable,
    /// The session is over for another or an unknown reason.
    #[error("the session is over")]
    Other,
}

#[cfg(feature = "client")]
impl StopReason {
    /// Parses the reason that the hub sent.
    pub(crate) fn parse(reason: &str) -> Self {
        match reason {
            "user" => Self::Person,
            "gone" => Self::LeaseExpired,
            _ => Self::Other,
        }
    }
}

/// The reason why a grant does not allow a call.
///
/// ```
/// # testing::example_with_listener!(hub, session, {
/// # let granted = ask_and_expect_granted(&session).await;
/// use sayso::{Error, ConsentMismatch};
/// // The person said yes in one session. That consent is not valid in another.
/// let other = hub.session("Pay Eve.").start().await?;
/// let started = other.start_call(granted).await.map(drop);
/// assert_eq!(started, Err(Error::ConsentMismatch(ConsentMismatch::OtherSession)));
/// # });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum ConsentMismatch {
    /// It was given in another session.
    #[error("the consent was given in another session")]
    OtherSession,
    /// It was given for another tool, or for other arguments.
    #[error("the consent was given for another action")]
    OtherAction,
}

/// The reason why a call has no result. After a refusal the tool was not run.
///
/// ```
/// use sayso::CallError;
///
/// fn describe(outcome: Result<u32, CallError<std::io::Error>>) -> String {
///     match outcome {
///         Ok(receipt) => format!("Paid; the receipt is {receipt}."),
///         Err(CallError::Refused(refusal)) => format!("Nothing was paid: {refusal}."),
///         Err(error) => format!("The payment failed: {error}."),
///     }
/// }
/// assert_eq!(describe(Err(CallError::TimedOut)), "The payment failed: the tool took too long.");
/// ```
#[derive(Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum CallError<E> {
    /// The tool was not run, or its outcome could not be reported.
    #[error(transparent)]
    Session(#[from] Error),
    /// The tool failed. Listeners were informed.
    #[error("{0}")]
    Tool(E),
    /// The tool exceeded its time limit and was dropped. Listeners were informed.
    #[error("the tool took too long")]
    TimedOut,
    /// The person said no or did not answer, which counts as no. The tool was not run.
    #[error("{0}")]
    Refused(ConsentRefusal),
}

impl Error {
    /// Returns the ids of the violated rules, if rules were violated.
    pub fn rule_ids(&self) -> impl Iterator<Item = &str> {
        let violations: &[RuleViolation] = match self {
            Self::RuleViolations(violations) => violations,
            _ => &[],
        };
        violations.iter().map(|violation| violation.rule.as_str())
    }
}

fn list_violations(violations: &[RuleViolation]) -> String {
    let describe = |violation: &RuleViolation| {
        format!("; {} {}: {}", violation.rule, violation.pointer, violation.message)
    };
    violations.iter().map(describe).collect::<Vec<_>>().concat()
}
