//! Why a loop came to nothing.

use crate::error::Source;
use crate::session::{Cause, Failure};

/// Why there is no answer. Where [`Agent::run`](super::Agent::run) had the session, listeners have been told the same.
///
/// ```
/// # testing::example!(hub, {
/// use sayso::openai::{Agent, Error};
/// let ran = Agent::new("somewhere").run(&hub, "Good morning.").await;
/// assert!(matches!(ran, Err(Error::Setup(_))));
/// # });
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing could be said: the person stopped the session, or the hub is not there.
    #[error(transparent)]
    Session(#[from] crate::Error),
    /// The agent is not set up as it must be; nothing was sent.
    #[error("the agent is not set up as it must be: {0}")]
    Setup(#[from] SetupFault),
    /// The endpoint cannot be reached.
    #[error("the endpoint cannot be reached: {0}")]
    Unreachable(#[source] Source),
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
    Malformed(#[from] AnswerFault),
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
        let transient = |code: &str, words: &str| Failure::of(Cause::Transient, code, words);
        let failure = match self {
            Self::Session(error) => Failure::of_agent(error),
            Self::Setup(why) => {
                let words = format!("The agent is not set up as it must be: {why}.");
                Failure::of(Cause::Permanent, "AGENT_SETUP", words)
            }
            Self::Unreachable(_) => transient("MODEL_UNREACHABLE", "The model's service cannot be reached."),
            Self::Refused { status, says } => {
                let cause = match status {
                    Some(401..=403) => Cause::RequiresUser,
                    None | Some(408 | 425 | 429 | 500..) => Cause::Transient,
                    Some(_) => Cause::Permanent,
                };
                Failure::of(cause, "MODEL_REFUSED", format!("The model's service refused: {says}"))
            }
            Self::Silent => transient("MODEL_SILENT", "The model's service did not answer in time."),
            Self::Stalled => transient(
                "MODEL_STALLED",
                "The model's service stopped in the middle of its answer; what was heard is not whole.",
            ),
            Self::CutOff => transient(
                "MODEL_CUT_OFF",
                "The connection to the model's service broke in the middle of its answer; what was heard is not whole.",
            ),
            Self::Malformed(_) => {
                let words = "The model's service sent something that cannot be understood.";
                Failure::of(Cause::Unknown, "MODEL_MALFORMED", words)
            }
            Self::TooMuch(what) => {
                let words = format!("The model's service sent more than is taken: {what}.");
                Failure::of(Cause::Permanent, "MODEL_TOO_MUCH", words)
            }
            Self::TooManyRounds(rounds) => {
                let words = format!("The model wanted tools {rounds} times in a row and came to no answer.");
                Failure::of(Cause::Unknown, "MODEL_TOO_MANY_ROUNDS", words)
            }
        };
        match failure.cause {
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

/// What is wrong with how an agent is set up.
///
/// ```
/// assert_eq!(sayso::openai::SetupFault::Key.to_string(), "the key is not plain text");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupFault {
    /// The address is not one of an endpoint.
    #[error("{address:?} is not a valid endpoint address: {source}")]
    Address {
        /// The address as it was given.
        address: String,
        /// What is wrong with it.
        source: Source,
    },
    /// The key cannot be sent.
    #[error("the key is not plain text")]
    Key,
    /// The loop writes the parameter of this name itself.
    #[error("the agent sets the parameter {0} itself")]
    OwnParameter(String),
    /// The parameter of this name is not JSON.
    #[error("the parameter {0} is not valid JSON")]
    ParameterNotJson(String),
    /// A tool cannot have this name.
    #[error("{0:?} cannot be the name of a tool")]
    ToolName(String),
    /// Two tools have this name.
    #[error("two tools are called {0}")]
    SameTool(String),
    /// The schema of the tool of this name is not a JSON object.
    #[error("the schema of the tool {0} is not a JSON object")]
    ToolSchema(String),
    /// The request cannot be written.
    #[error("{0}")]
    Request(#[source] Source),
}

/// What an endpoint sends that it should not.
///
/// ```
/// assert_eq!(sayso::openai::AnswerFault::NotUtf8.to_string(), "an answer is not UTF-8");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerFault {
    /// It is not HTTP, or its head is too long.
    #[error("{0}")]
    Http(#[source] Source),
    /// It is of this media type, and not a stream of events.
    #[error("its answer is {0:?} and not a stream of events")]
    NotEvents(String),
    /// It is not UTF-8.
    #[error("an answer is not UTF-8")]
    NotUtf8,
    /// A piece of it is not JSON.
    #[error("a chunk of the answer is not valid JSON: {0}")]
    NotJson(#[source] Source),
    /// A piece of it has other members than a chat completion.
    #[error("a chunk of the answer is not a chat completion")]
    NotAChunk,
}
