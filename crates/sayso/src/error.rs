//! What can go wrong, by who is at fault.

use std::fmt;

use crate::consent::Refused;

/// Why something was not said or done. Nothing of it was: what is refused is refused whole.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), sayso::Error> {
/// # let hub = sayso::Hub::embedded().open()?;
/// # let session = hub.session("Pay Ben.").start().await?;
/// use sayso::{Action, Error};
/// match session.ask(Action::new("send", "five euro")).await {
///     Err(Error::Malformed(why)) => println!("The arguments are no JSON: {why}."),
///     other => panic!("{other:?}"),
/// }
/// # session.cancel("Nothing was sent.").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// It breaks rules of the protocol, these.
    Unlawful(Vec<Broken>),
    /// The session is over, and not by the agent's own word.
    Stopped(Stop),
    /// The consent is for something else.
    NotGranted(NotGranted),
    /// It is not of its form; the hub says why.
    Malformed(String),
    /// The token is not for that, or is none.
    NotAllowed,
    /// Too much is open, or too much was said in a short time; the hub says what.
    TooMuch(String),
    /// The hub could not store it, so it did not happen.
    NotStored(String),
    /// There is no way to the hub.
    Unreachable(String),
    /// Whoever answers there cannot show that it is the hub; nothing was said to it.
    NotTrusted(String),
    /// No session is carried to here; [`within`](crate::within) carries one.
    NoSession,
}

/// A rule that something breaks.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), sayso::Error> {
/// # let hub = sayso::Hub::embedded().open()?;
/// # let session = hub.session("Pay Ben.").start().await?;
/// use sayso::{Action, Error};
/// // There is no word on what comes of it.
/// match session.ask(Action::new("send", r#"{"to":"Ben"}"#).says("Send 5 euro to Ben.")).await {
///     Err(Error::Unlawful(broken)) => assert_eq!(broken[0].pointer, "/consequence"),
///     other => panic!("{other:?}"),
/// }
/// # session.cancel("Nothing was sent.").await?;
/// # Ok(())
/// # }
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// The person stopped it.
    Person,
    /// The hub ended it, for it had no sign of life from the agent.
    Lease,
    /// The hub cannot be reached any more.
    Unreachable,
    /// It is over for another reason, or it is not known which.
    Other,
}

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
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/person.rs"));
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), sayso::Error> {
/// # let (hub, session) = heard().await;
/// # let granted = granted(&session).await;
/// use sayso::{Error, NotGranted};
/// // The person said yes in one session, and that counts in no other.
/// let other = hub.session("Pay Eve.").start().await?;
/// let begun = other.begin(granted).await.map(drop);
/// assert_eq!(begun, Err(Error::NotGranted(NotGranted::OtherSession)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotGranted {
    /// It was given in another session.
    OtherSession,
    /// It was given for another tool, or for other arguments.
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
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallError<E> {
    /// The tool was not run, or its end could not be told.
    Session(Error),
    /// The tool failed; listeners have been told.
    Tool(E),
    /// The tool took too long; it was dropped, and listeners have been told.
    TimedOut,
    /// The person said no, or nothing, which means no. The tool was not run.
    Refused(Refused),
}

impl<E> From<Error> for CallError<E> {
    fn from(error: Error) -> Self {
        Self::Session(error)
    }
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

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlawful(broken) => {
                f.write_str("it breaks rules of the protocol; nothing was applied")?;
                broken.iter().try_for_each(|one| write!(f, "; {} {}: {}", one.rule, one.pointer, one.message))
            }
            Self::Stopped(stop) => stop.fmt(f),
            Self::NotGranted(why) => why.fmt(f),
            Self::Malformed(why) => write!(f, "it is not of its form: {why}"),
            Self::NotAllowed => f.write_str("the token is not for that"),
            Self::TooMuch(what) => write!(f, "too much: {what}"),
            Self::NotStored(why) => write!(f, "it could not be stored, so it did not happen: {why}"),
            Self::Unreachable(why) => write!(f, "the hub cannot be reached: {why}"),
            Self::NotTrusted(why) => write!(f, "the hub is not to be trusted: {why}"),
            Self::NoSession => f.write_str("no session is carried to here"),
        }
    }
}

/// The sentence: what a `main` that returns it prints.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Person => "the person stopped the session",
            Self::Lease => "the hub ended the session, for it had no sign of life",
            Self::Unreachable => "the hub cannot be reached any more",
            Self::Other => "the session is over",
        })
    }
}

impl fmt::Display for NotGranted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherSession => "the consent was given in another session",
            Self::OtherAction => "the consent was given for another action",
        })
    }
}

impl<E: fmt::Display> fmt::Display for CallError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(error) => error.fmt(f),
            Self::Tool(error) => error.fmt(f),
            Self::TimedOut => f.write_str("the tool took too long"),
            Self::Refused(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for Error {}
impl std::error::Error for Stop {}
impl std::error::Error for NotGranted {}
impl<E: fmt::Debug + fmt::Display> std::error::Error for CallError<E> {}
