//! What can go wrong, by who is at fault.

use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error as ThisError;

use crate::consent::Refused;

/// Why something was not said or done. Nothing of it was: what is refused is refused whole.
///
/// ```
/// # testing::example!(hub, session, {
/// use sayso::{Action, Error};
/// match session.ask(Action::new("send", "five euro")).await {
///     Err(Error::Malformed(why)) => println!("The arguments are no JSON: {why}."),
///     other => panic!("{other:?}"),
/// }
/// # session.cancel("Nothing was sent.").await?;
/// # });
/// ```
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// It breaks these rules of the protocol.
    #[error("it breaks rules of the protocol; nothing was applied{}", listed(.0))]
    Unlawful(Vec<Broken>),
    /// The session is over, and its agent did not end it.
    #[error(transparent)]
    Stopped(#[from] Stop),
    /// The consent is for something else.
    #[error(transparent)]
    NotGranted(#[from] NotGranted),
    /// It is malformed.
    #[error("it is malformed: {0}")]
    Malformed(#[source] Malformed),
    /// The token does not allow it, or there is none.
    #[error("the token does not allow it")]
    NotAllowed,
    /// Too much is open, or too much was said in a short time.
    #[error("too much: {0}")]
    TooMuch(#[source] TooMuch),
    /// It could not be stored, so it did not happen.
    #[error("it could not be stored, so it did not happen: {0}")]
    NotStored(#[source] NotStored),
    /// The hub cannot be reached.
    #[error("the hub cannot be reached: {0}")]
    Unreachable(#[source] Unreachable),
    /// The server cannot prove that it is the hub; nothing was sent to it.
    #[error("the hub is not trusted: {0}")]
    NotTrusted(#[source] Source),
    /// No session is carried to here; [`within`](crate::within) carries one.
    #[error("no session is carried to here")]
    NoSession,
}

/// What is malformed.
///
/// ```
/// use sayso::{Error, Hub, Malformed};
/// let opened = Hub::embedded().listen("0.0.0.0:0").open();
/// assert!(matches!(opened, Err(Error::Malformed(Malformed::Exposed(_)))));
/// # Ok::<(), sayso::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum Malformed {
    /// The hub refused it, in these words.
    #[error("{0}")]
    Hub(String),
    /// A value is not JSON.
    #[error("a value is not JSON: {0}")]
    Json(#[source] Source),
    /// A call that an answer cannot be bound to.
    #[error("{0}")]
    Action(#[source] Source),
    /// This is not the address of a hub.
    #[error("{url:?} is no hub's address: {source}")]
    Address {
        /// The address.
        url: String,
        /// What is wrong with it.
        source: Source,
    },
    /// The token cannot be sent.
    #[error("{0}")]
    Token(#[source] Source),
    /// A file cannot be used.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: Source,
    },
    /// Other machines could reach this address, and there are no tokens.
    #[error("{0} can be reached from elsewhere, and there are no tokens")]
    Exposed(String),
    /// A hub that runs already has its own journal, address and tokens.
    #[error("a hub that runs already has its own journal, address and tokens")]
    Beside,
    /// The context of rig's tools takes no session.
    #[error("the tools' context takes no session")]
    ToolContext,
}

/// What was too much.
///
/// ```
/// assert_eq!(sayso::TooMuch::Chains(1024).to_string(), "1024 chains are open");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum TooMuch {
    /// The hub refused it, in these words.
    #[error("{0}")]
    Hub(String),
    /// Bytes of one event.
    #[error("{bytes} bytes at once; an event has {most} at most")]
    Bytes {
        /// So many it had.
        bytes: usize,
        /// So many it may have.
        most: usize,
    },
    /// So many callbacks wait to be told.
    #[error("{0} callbacks wait to be told")]
    Callbacks(usize),
    /// So many chains are open.
    #[error("{0} chains are open")]
    Chains(usize),
}

/// Why something could not be stored.
///
/// ```
/// # let folder = std::env::temp_dir();
/// use sayso::{Error, Hub, NotStored};
/// // A folder is no journal.
/// let opened = Hub::embedded().journal(folder).open();
/// assert!(matches!(opened, Err(Error::NotStored(NotStored::Journal(_)))));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum NotStored {
    /// The hub could not, in these words.
    #[error("{0}")]
    Hub(String),
    /// The journal cannot be used.
    #[error("{0}")]
    Journal(#[source] Source),
}

/// Why the hub cannot be reached.
///
/// ```
/// assert_eq!(sayso::Unreachable::Lost.to_string(), "the connection is lost");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum Unreachable {
    /// It did not answer in time.
    #[error("no answer")]
    NoAnswer,
    /// The connection is lost.
    #[error("the connection is lost")]
    Lost,
    /// The thread that speaks to the hub has ended.
    #[error("the thread that speaks to the hub has ended")]
    ThreadEnded,
    /// The hub in this process has ended.
    #[error("the hub in this process has ended")]
    HubEnded,
    /// The network or the system failed.
    #[error("{0}")]
    Failed(#[source] Source),
}

/// An error of another library, as a value that can be cloned and compared: two are equal if they say the same.
///
/// ```
/// # testing::example!({
/// use sayso::{Error, Hub, Malformed};
/// let opened = Hub::connect("https://hub.example").trust("no/such/file.pem").open().await;
/// let Err(Error::Malformed(Malformed::File { source, .. })) = opened else { panic!("there is no such file") };
/// assert!(source.is::<std::io::Error>());
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct Source(Arc<dyn std::error::Error + Send + Sync>);

impl Source {
    pub(crate) fn new(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(error.into().into())
    }
}

impl Deref for Source {
    type Target = dyn std::error::Error + Send + Sync;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.downcast_ref::<std::io::Error>() {
            Some(error) => f.write_str(&seal::in_words(error)),
            None => self.0.fmt(f),
        }
    }
}

impl PartialEq for Source {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Source {}

/// A rule that something breaks.
///
/// ```
/// # testing::example!(hub, session, {
/// use sayso::{Action, Error};
/// // There is no word on what comes of it.
/// match session.ask(Action::new("send", r#"{"to":"Ben"}"#).says("Send 5 euro to Ben.")).await {
///     Err(Error::Unlawful(broken)) => assert_eq!(broken[0].pointer, "/consequence"),
///     other => panic!("{other:?}"),
/// }
/// # session.cancel("Nothing was sent.").await?;
/// # });
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The rule's id, like `AAEP-4.3.2-3`.
    pub rule: String,
    /// The place in the event, as a JSON pointer.
    pub pointer: String,
    /// What is wrong and what would be right.
    pub message: String,
}

/// Why a session is over though its agent has not ended it.
///
/// ```
/// assert_eq!(sayso::Stop::Person.to_string(), "the person stopped the session");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum Stop {
    /// The person stopped it.
    #[error("the person stopped the session")]
    Person,
    /// The hub ended it, for it had no sign of life from the agent.
    #[error("the hub ended the session, for it had no sign of life")]
    Lease,
    /// The hub cannot be reached any more.
    #[error("the hub cannot be reached any more")]
    Unreachable,
    /// It is over for another reason, or it is not known which.
    #[error("the session is over")]
    Other,
}

#[cfg(feature = "client")]
impl Stop {
    /// From the hub's word for it.
    pub(crate) fn of(reason: &str) -> Self {
        match reason {
            "user" => Self::Person,
            "gone" => Self::Lease,
            _ => Self::Other,
        }
    }
}

/// Why a consent does not allow a call.
///
/// ```
/// # testing::heard!(hub, session, {
/// # let granted = granted(&session).await;
/// use sayso::{Error, NotGranted};
/// // The person said yes in one session, and that counts in no other.
/// let other = hub.session("Pay Eve.").start().await?;
/// let begun = other.begin(granted).await.map(drop);
/// assert_eq!(begun, Err(Error::NotGranted(NotGranted::OtherSession)));
/// # });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum NotGranted {
    /// It was given in another session.
    #[error("the consent was given in another session")]
    OtherSession,
    /// It was given for another tool, or for other arguments.
    #[error("the consent was given for another action")]
    OtherAction,
}

/// Why a call came to nothing. A refusal is no failure: nothing was tried.
///
/// ```
/// use sayso::CallError;
///
/// fn in_words(outcome: Result<u32, CallError<std::io::Error>>) -> String {
///     match outcome {
///         Ok(receipt) => format!("Paid; the receipt is {receipt}."),
///         Err(CallError::Refused(why)) => format!("Nothing was paid: {why}."),
///         Err(why) => format!("The payment failed: {why}."),
///     }
/// }
/// assert_eq!(in_words(Err(CallError::TimedOut)), "The payment failed: the tool took too long.");
/// ```
#[derive(Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum CallError<E> {
    /// The tool was not run, or its end could not be told.
    #[error(transparent)]
    Session(#[from] Error),
    /// The tool failed; listeners have been told.
    #[error("{0}")]
    Tool(E),
    /// The tool took too long; it was dropped, and listeners have been told.
    #[error("the tool took too long")]
    TimedOut,
    /// The person said no, or nothing, which means no. The tool was not run.
    #[error("{0}")]
    Refused(Refused),
}

impl Error {
    /// The ids of the rules that are broken, if that is why.
    pub fn rules(&self) -> impl Iterator<Item = &str> {
        let broken: &[Broken] = match self {
            Self::Unlawful(broken) => broken,
            _ => &[],
        };
        broken.iter().map(|one| one.rule.as_str())
    }
}

fn listed(broken: &[Broken]) -> String {
    let one = |one: &Broken| format!("; {} {}: {}", one.rule, one.pointer, one.message);
    broken.iter().map(one).collect::<Vec<_>>().concat()
}
