//! Errors of the agent loop.

use crate::error::SharedError;
use crate::session::{ErrorCategory, Failure};

/// The reason why there is no answer. [`ChatAgent::run`](super::ChatAgent::run) also reports it to listeners.
///
/// ```
/// # testing::run_example!(hub, {
/// use sayso::openai::{ChatAgent, ChatError};
/// let result = ChatAgent::new("somewhere").run(&hub, "Good morning.").await;
/// assert!(matches!(result, Err(ChatError::Setup(_))));
/// # });
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChatError {
    /// Nothing could be reported: the person stopped the session, or the hub is not available.
    #[error(transparent)]
    Session(#[from] crate::Error),
    /// The agent's setup is invalid. Nothing was sent.
    #[error("the agent's setup is invalid: {0}")]
    Setup(#[from] SetupError),
    /// The endpoint cannot be reached.
    #[error("the endpoint cannot be reached: {0}")]
    Unreachable(#[source] SharedError),
    /// The endpoint returned an error.
    #[error("{}: {message}", describe_endpoint_error(*status))]
    EndpointError {
        /// The HTTP status, unless the error came in the middle of an answer.
        status: Option<u16>,
        /// The endpoint's message in one sentence, without the key.
        message: String,
    },
    /// The endpoint did not start its answer in time.
    #[error("the endpoint did not start its answer in time")]
    ResponseTimeout,
    /// The endpoint stopped in the middle of an answer while the connection stayed open.
    #[error("the endpoint stopped in the middle of its answer")]
    Stalled,
    /// The connection ended in the middle of an answer.
    #[error("the connection ended in the middle of the answer")]
    ConnectionLost,
    /// The endpoint's response is malformed.
    #[error("the endpoint's response is malformed: {0}")]
    Malformed(#[from] ResponseError),
    /// The response exceeds a limit: bytes in a line or an answer, or tool calls.
    #[error("the endpoint sent too many {0}")]
    LimitReached(&'static str),
    /// The model requested tools in every round and gave no answer.
    #[error("the model requested tools {0} times and gave no answer")]
    TooManyRounds(usize),
}

impl ChatError {
    /// Returns the failure that listeners hear. Use it to end a session of your own.
    pub fn to_failure(&self) -> Failure {
        let transient =
            |code: &str, summary: &str| Failure::with_code(ErrorCategory::Transient, code, summary);
        let failure = match self {
            Self::Session(error) => Failure::agent_failed(error),
            Self::Setup(error) => {
                let summary = format!("The agent's setup is invalid: {error}.");
                Failure::with_code(ErrorCategory::Permanent, "AGENT_SETUP", summary)
            }
            Self::Unreachable(_) => transient("MODEL_UNREACHABLE", "The model's service cannot be reached."),
            Self::EndpointError { status, message } => {
                let category = match status {
                    Some(401..=403) => ErrorCategory::RequiresUser,
                    None | Some(408 | 425 | 429 | 500..) => ErrorCategory::Transient,
                    Some(_) => ErrorCategory::Permanent,
                };
                Failure::with_code(
                    category,
                    "MODEL_ERROR",
                    format!("The model's service returned an error: {message}"),
                )
            }
            Self::ResponseTimeout => transient("MODEL_SILENT", "The model's service did not answer in time."),
            Self::Stalled => transient(
                "MODEL_STALLED",
                "The model's service stopped in the middle of its answer; what you heard is incomplete.",
            ),
            Self::ConnectionLost => transient(
                "MODEL_CUT_OFF",
                "The connection to the model's service broke in the middle of its answer; what you heard is incomplete.",
            ),
            Self::Malformed(_) => {
                let summary = "The model's service sent a response that cannot be understood.";
                Failure::with_code(ErrorCategory::Unknown, "MODEL_MALFORMED", summary)
            }
            Self::LimitReached(limit) => {
                let summary = format!("The model's service sent too many {limit}.");
                Failure::with_code(ErrorCategory::Permanent, "MODEL_RESPONSE_TOO_LARGE", summary)
            }
            Self::TooManyRounds(rounds) => {
                let summary =
                    format!("The model requested tools {rounds} times in a row and gave no answer.");
                Failure::with_code(ErrorCategory::Unknown, "MODEL_TOO_MANY_ROUNDS", summary)
            }
        };
        match failure.category {
            ErrorCategory::Transient => failure.remediation_hint("Try again in a while."),
            ErrorCategory::RequiresUser => {
                failure.remediation_hint("The agent's operator must check its API key and its account.")
            }
            ErrorCategory::Permanent | ErrorCategory::Unknown => failure,
        }
    }
}

fn describe_endpoint_error(status: Option<u16>) -> String {
    match status {
        Some(status) => format!("the endpoint returned status {status}"),
        None => "the endpoint reported an error in the middle of its answer".to_owned(),
    }
}

/// The reason why an agent's setup is invalid.
///
/// ```
/// assert_eq!(sayso::openai::SetupError::Key.to_string(), "the API key contains characters that cannot be sent in an HTTP header");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The address is not valid for an endpoint.
    #[error("{address:?} is not a valid endpoint address: {source}")]
    Address {
        /// The address.
        address: String,
        /// What is wrong with it.
        source: SharedError,
    },
    /// The key cannot be sent.
    #[error("the API key contains characters that cannot be sent in an HTTP header")]
    Key,
    /// The agent sets this parameter itself.
    #[error("the agent sets the parameter {0} itself")]
    ReservedParameter(String),
    /// This parameter is not JSON.
    #[error("the parameter {0} is not valid JSON")]
    ParameterNotJson(String),
    /// This name is not valid for a tool.
    #[error("{0:?} cannot be the name of a tool")]
    ToolName(String),
    /// Two tools have this name.
    #[error("two tools are called {0}")]
    DuplicateTool(String),
    /// The schema of this tool is not a JSON object.
    #[error("the schema of the tool {0} is not a JSON object")]
    ToolSchema(String),
    /// The HTTP request cannot be built.
    #[error("{0}")]
    Request(#[source] SharedError),
}

/// The reason why an endpoint's response is malformed.
///
/// ```
/// assert_eq!(sayso::openai::ResponseError::NotUtf8.to_string(), "the answer is not UTF-8");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResponseError {
    /// It is not HTTP, or its head is too long.
    #[error("{0}")]
    Http(#[source] SharedError),
    /// It has this media type instead of an event stream.
    #[error("the answer is {0:?} and not an event stream")]
    NotEventStream(String),
    /// It is not UTF-8.
    #[error("the answer is not UTF-8")]
    NotUtf8,
    /// A chunk is not JSON.
    #[error("a chunk of the answer is not valid JSON: {0}")]
    NotJson(#[source] SharedError),
    /// A chunk is not a chat completion.
    #[error("a chunk of the answer is not a chat completion")]
    NotCompletionChunk,
}
