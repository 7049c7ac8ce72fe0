//! Why a loop came to nothing.

use crate::session::{Cause, Failure};

/// Why there is no answer. Where [`Agent::run`](super::Agent::run) had the session, listeners have been told the same.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), sayso::Error> {
/// # let hub = sayso::Hub::embedded().open()?;
/// use sayso::openai::{Agent, Error};
/// let ran = Agent::new("somewhere").run(&hub, "Good morning.").await;
/// assert!(matches!(ran, Err(Error::Setup(_))));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing could be said: the person stopped the session, or the hub is not there.
    #[error(transparent)]
    Session(#[from] crate::Error),
    /// The agent is not set up as it must be; nothing was sent.
    #[error("the agent is not set up as it must be: {0}")]
    Setup(String),
    /// The endpoint cannot be reached.
    #[error("the endpoint cannot be reached: {0}")]
    Unreachable(String),
    /// The endpoint said no.
    #[error("{}: {says}", refusal(*status))]
    Refused {
        /// The status, if it was not in the middle of an answer.
        status: Option<u16>,
        /// What the endpoint says, in one sentence, without the key.
        says: String,
    },
    /// The endpoint began no answer in time.
    #[error("the endpoint began no answer in time")]
    Silent,
    /// The endpoint stopped in the middle of an answer, and the connection stayed open.
    #[error("the endpoint stopped in the middle of its answer")]
    Stalled,
    /// The connection ended in the middle of an answer.
    #[error("the connection ended in the middle of the answer")]
    CutOff,
    /// What the endpoint sends is not what it should be.
    #[error("the endpoint sent what it should not: {0}")]
    Malformed(String),
    /// The endpoint sends more than is taken: bytes of a line or of an answer, or calls of tools.
    #[error("the endpoint sends more than is taken: {0}")]
    TooMuch(&'static str),
    /// The model wanted tools again and again.
    #[error("the model wanted tools {0} times and gave no answer")]
    TooManyRounds(usize),
}

impl Error {
    /// What listeners are told. Whoever ends the session itself says this.
    pub fn failure(&self) -> Failure {
        let (code, words, cause) = match self {
            Self::Session(error) => ("AGENT_FAILED", format!("The agent had to stop: {error}."), Cause::Unknown),
            Self::Setup(why) => {
                ("AGENT_SETUP", format!("The agent is not set up as it must be: {why}."), Cause::Permanent)
            }
            Self::Unreachable(_) => {
                ("MODEL_UNREACHABLE", "The model's service cannot be reached.".to_owned(), Cause::Transient)
            }
            Self::Refused { status, says } => {
                let cause = match status {
                    Some(401..=403) => Cause::RequiresUser,
                    None | Some(408 | 425 | 429 | 500..) => Cause::Transient,
                    Some(_) => Cause::Permanent,
                };
                ("MODEL_REFUSED", format!("The model's service refused: {says}"), cause)
            }
            Self::Silent => {
                ("MODEL_SILENT", "The model's service did not answer in time.".to_owned(), Cause::Transient)
            }
            Self::Stalled => (
                "MODEL_STALLED",
                "The model's service stopped in the middle of its answer; what was heard is not whole.".to_owned(),
                Cause::Transient,
            ),
            Self::CutOff => (
                "MODEL_CUT_OFF",
                "The connection to the model's service broke in the middle of its answer; what was heard is not whole."
                    .to_owned(),
                Cause::Transient,
            ),
            Self::Malformed(_) => (
                "MODEL_MALFORMED",
                "The model's service sent something that cannot be understood.".to_owned(),
                Cause::Unknown,
            ),
            Self::TooMuch(what) => (
                "MODEL_TOO_MUCH",
                format!("The model's service sent more than is taken: {what}."),
                Cause::Permanent,
            ),
            Self::TooManyRounds(rounds) => (
                "MODEL_TOO_MANY_ROUNDS",
                format!("The model wanted tools {rounds} times in a row and came to no answer."),
                Cause::Unknown,
            ),
        };
        let failure = Failure::new(words).code(code).cause(cause);
        match cause {
            Cause::Transient => failure.hint("Try again in a while."),
            Cause::RequiresUser => {
                failure.hint("Whoever runs the agent has to look at its key and its account.")
            }
            Cause::Permanent | Cause::Unknown => failure,
        }
    }
}

fn refusal(status: Option<u16>) -> String {
    match status {
        Some(status) => format!("the endpoint refused with {status}"),
        None => "the endpoint gave up its answer".to_owned(),
    }
}
