//! An agent loop for endpoints with OpenAI's chat completions API. Listeners hear streamed text as it arrives, tools are announced
//! before they run and reported when they end, and dangerous calls need consent.
//!
//! ```
//! use sayso::openai::{Arguments, ChatAgent, Tool};
//! use sayso::{Hub, Risk};
//!
//! async fn send(arguments: Arguments) -> Result<String, std::io::Error> {
//!     Ok(format!("{} euros were sent to {}", arguments.display_text("euro"), arguments.display_text("to")))
//! }
//!
//! # testing::run_example!({
//! # let url = testing::mock_model::start_endpoint();
//! let schema = r#"{"type":"object","properties":{"to":{"type":"string"},"euro":{"type":"integer"}}}"#;
//! // A URL like `https://api.openai.com/v1` or `http://127.0.0.1:11434/v1`.
//! let agent = ChatAgent::new(url).api_key("sk-example").model("gpt-5.2").tool(
//!     Tool::new("send_money", "Sends money from the person's account.", schema, send)
//!         .risk(Risk::High)
//!         .irreversible()
//!         .says(|call| format!("Send {} euros to {}.", call.display_text("euro"), call.display_text("to")))
//!         .consequence(|_| "The money leaves your account at once.".to_owned()),
//! );
//! let hub = Hub::embedded().agent("bank").listen("127.0.0.1:0").open()?;
//! let reply = agent.run(&hub, "Good morning.").await?;
//! assert_eq!(reply.text, "Good morning.");
//! hub.close().await;
//! # });
//! ```
//!
//! - `tool`: tools that a model may call, and their arguments.
//! - `tool_call`: one tool call: consent, announcement, execution, report, and the result for the model.
//! - `endpoint`: one HTTP request; `chat_completion` assembles the answer from its events.
//! - `conversation`: the messages that are sent to the model.
//! - `limits`, `error`: limits and errors.

mod chat_completion;
mod conversation;
mod endpoint;
mod error;
mod limits;
mod tool;
mod tool_call;

use std::fmt;
use std::time::Duration;

use client::sse::{SseEventError, SseParser};
use client::{Backoff, HttpClient, Url};
pub use error::{ChatError, ResponseError, SetupError};
pub use limits::LoopLimits;
pub use tool::{Arguments, Tool};
pub use tool_call::{ToolCallRecord, ToolOutcome};

use crate::error::SharedError;
use crate::hub::Hub;
use crate::session::{OutputText, Session};
use chat_completion::{ChatCompletion, FinishReason};
use conversation::Conversation;
use endpoint::{Endpoint, ResponseStream, RetryableError};

/// An agent: an endpoint, a model, instructions and tools. It can run many requests, even concurrently.
///
/// ```
/// use sayso::openai::ChatAgent;
/// let agent = ChatAgent::new("http://127.0.0.1:11434/v1").model("llama3.2").instructions("Answer in one sentence.");
/// # let _ = agent;
/// ```
#[derive(Clone)]
#[must_use = "nothing happens until `run` is called"]
pub struct ChatAgent {
    base_url: String,
    model: String,
    api_key: Option<String>,
    instructions: Option<String>,
    parameters: Vec<(String, String)>,
    tools: Vec<Tool>,
    limits: LoopLimits,
}

/// The result of a request.
///
/// ```
/// # testing::run_example!(hub, {
/// # let agent = sayso::openai::ChatAgent::new(testing::mock_model::start_endpoint()).model("any");
/// let reply = agent.run(&hub, "Good morning.").await?;
/// assert_eq!((reply.text.as_str(), reply.rounds), ("Good morning.", 1));
/// for call in &reply.calls {
///     println!("{}: {}", call.tool, call.outcome);
/// }
/// # });
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChatReply {
    /// The model's final text. Listeners have heard it, and all text before it.
    pub text: String,
    /// The number of model calls.
    pub rounds: usize,
    /// All tool calls that the model requested, in order.
    pub calls: Vec<ToolCallRecord>,
    /// Whether the answer is incomplete, because of the model's length limit or a content filter.
    pub is_truncated: bool,
}

impl ChatAgent {
    /// Creates an agent for this endpoint: everything before `/chat/completions`, as in `https://api.openai.com/v1`. Without TLS
    /// others on the network can read the key and the conversation, so use `http://` only for this machine.
    pub fn new(base_url: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            model: String::new(),
            api_key: None,
            instructions: None,
            parameters: Vec::new(),
            tools: Vec::new(),
            limits: LoopLimits::default(),
        }
    }

    setters! {
        /// Sets the model's name, as the endpoint knows it.
        model(model: impl Into<String>) => model = model.into();

        /// Sets the key, if the endpoint needs one. It is sent only to the endpoint.
        api_key(key: impl Into<String>) => api_key = Some(key.into());

        /// Sets the instructions that the model receives before every request.
        instructions(instructions: impl Into<String>) => instructions = Some(instructions.into());
    }

    /// Adds a parameter to every request, as JSON, besides those that the loop sets itself.
    pub fn parameter(mut self, name: impl Into<String>, json: impl Into<String>) -> Self {
        self.parameters.push((name.into(), json.into()));
        self
    }

    /// Adds a tool that the model may call.
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    setters! {
        /// Sets the limits.
        limits(limits: LoopLimits) => limits = limits;
    }

    /// Handles a request in a session of its own, from its start to exactly one end.
    pub async fn run(&self, hub: &Hub, request: impl Into<String>) -> Result<ChatReply, ChatError> {
        let request = request.into();
        let session = hub.session(request.as_str()).start().await?;
        let result = self.run_in_session(&session, request).await;
        let summary = match &result {
            Ok(reply) if reply.is_truncated => {
                "The answer is incomplete because the model had to stop early."
            }
            Ok(reply) if reply.text.is_empty() => "Done. The model returned no text.",
            Ok(_) => "The answer is complete.",
            // The session is already over.
            Err(ChatError::Session(crate::Error::Stopped(_))) => return result,
            Err(error) => {
                session.fail(error.to_failure()).await?;
                return result;
            }
        };
        session.finish(summary).await?;
        result
    }

    /// Handles a request in an existing session, which the caller ends.
    ///
    /// ```
    /// # testing::run_example!({
    /// # let hub = sayso::Hub::embedded().agent("bank").open()?;
    /// # let agent = sayso::openai::ChatAgent::new(testing::mock_model::start_endpoint()).model("any");
    /// let session = hub.session("Good morning.").start().await?;
    /// match agent.run_in_session(&session, "Good morning.").await {
    ///     Ok(reply) => {
    ///         assert_eq!(reply.text, "Good morning.");
    ///         session.finish("That was all.").await?;
    ///     }
    ///     Err(error) => session.fail(error.to_failure()).await?,
    /// }
    /// hub.close().await;
    /// # });
    /// ```
    pub async fn run_in_session(
        &self,
        session: &Session,
        request: impl Into<String>,
    ) -> Result<ChatReply, ChatError> {
        let endpoint =
            Endpoint { client: self.validate()?, key: self.api_key.as_deref(), limits: &self.limits };
        let mut conversation = Conversation::new(self.instructions.as_deref(), &request.into());
        let mut reply = ChatReply::default();
        while reply.rounds < self.limits.max_rounds {
            reply.rounds += 1;
            let text =
                if reply.rounds == 1 { "Asking the model." } else { "Asking the model what to do next." };
            session.think(text).await?;
            let mut answer = tokio::select! {
                answer = self.request_completion(session, &endpoint, conversation.to_request_body(&self.model, &self.parameters, &self.tools)) => answer?,
                stop = session.stopped() => return Err(crate::Error::Stopped(stop).into()),
            };
            session.finish_output().await?;
            answer.assign_missing_ids();
            reply.is_truncated = !matches!(answer.finish_reason, None | Some(FinishReason::Complete));
            if answer.calls.is_empty() {
                reply.text = answer.text;
                return Ok(reply);
            }
            conversation.push_assistant(&answer);
            for call in &answer.calls {
                let (outcome, content) = self.call_tool(session, call).await?;
                conversation.push_tool_result(&call.id, &content);
                reply.calls.push(ToolCallRecord { tool: call.name.clone(), outcome });
            }
        }
        Err(ChatError::TooManyRounds(reply.rounds))
    }

    /// Checks the setup before anything is sent.
    fn validate(&self) -> Result<HttpClient, SetupError> {
        let url = Url::parse_http(&self.base_url).map_err(|error| SetupError::Address {
            address: self.base_url.clone(),
            source: SharedError::new(error),
        })?;
        let mut client = HttpClient::new(url);
        if let Some(key) = &self.api_key {
            client = client.with_token(key).map_err(|_| SetupError::Key)?;
        }
        for (name, json) in &self.parameters {
            if ["model", "stream", "messages", "tools"].contains(&name.as_str()) {
                return Err(SetupError::ReservedParameter(name.clone()));
            }
            if seal::json::RawJson::parse(json).is_err() {
                return Err(SetupError::ParameterNotJson(name.clone()));
            }
        }
        for (index, tool) in self.tools.iter().enumerate() {
            let name = tool.name.as_bytes();
            let has_valid_start =
                name.first().is_some_and(|first| first.is_ascii_alphabetic() || *first == b'_');
            let has_valid_characters =
                name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(byte));
            if !has_valid_start || !has_valid_characters || name.len() > 64 {
                return Err(SetupError::ToolName(tool.name.clone()));
            }
            if self.tools.iter().take(index).any(|other| other.name == tool.name) {
                return Err(SetupError::DuplicateTool(tool.name.clone()));
            }
            if Arguments::parse(&tool.name, &tool.parameters).is_err() {
                return Err(SetupError::ToolSchema(tool.name.clone()));
            }
        }
        Ok(client)
    }

    /// Requests one answer. A request is retried only if the endpoint has not started to answer.
    async fn request_completion(
        &self,
        session: &Session,
        endpoint: &Endpoint<'_>,
        body: String,
    ) -> Result<ChatCompletion, ChatError> {
        let mut backoff = Backoff::new(Duration::from_millis(500), self.limits.max_backoff);
        let mut attempt = 1;
        let stream = loop {
            let RetryableError { error, retry_after } = match endpoint.send(body.clone()).await? {
                Ok(stream) => break stream,
                Err(error) => error,
            };
            let delay = retry_after.unwrap_or(backoff.delay());
            if attempt >= self.limits.max_attempts || delay > self.limits.max_backoff {
                return Err(error);
            }
            session.think("The model's service is busy or not available. Trying again in a moment.").await?;
            tokio::time::sleep(delay).await;
            backoff.grow();
            attempt += 1;
        };
        self.read_completion(session, stream).await
    }

    async fn read_completion(
        &self,
        session: &Session,
        mut stream: ResponseStream,
    ) -> Result<ChatCompletion, ChatError> {
        let mut answer = ChatCompletion::default();
        let (mut parser, mut blocks) = (SseParser::new(self.limits.max_line_bytes), Vec::new());
        while !answer.is_done {
            let bytes = stream.next().await?;
            let is_end = bytes.is_none();
            match bytes {
                Some(bytes) => parser.feed(bytes.as_ref(), &mut blocks),
                None => blocks.extend(parser.finish()),
            }
            let mut new_text = String::new();
            let mut result = blocks.drain(..).try_for_each(|block| match (block.error, block.data) {
                (Some(SseEventError::TooLong), _) => Err(line_too_long()),
                (Some(_), _) => Err(ResponseError::NotUtf8.into()),
                (None, None) => Ok(()),
                (None, Some(event)) => {
                    new_text.push_str(&answer.push_event(
                        &event,
                        self.api_key.as_deref(),
                        self.limits.max_calls_per_answer,
                    )?);
                    Ok(())
                }
            });
            if result.is_ok() && parser.is_too_long() {
                result = Err(line_too_long());
            }
            // The text before an error was part of the answer, so it is reported.
            if !new_text.is_empty() {
                session.output(OutputText::from_model(new_text)).await?;
            }
            result?;
            if is_end {
                // Some endpoints omit `[DONE]`. A finish reason is enough.
                return if answer.finish_reason.is_some() {
                    Ok(answer)
                } else {
                    Err(ChatError::ConnectionLost)
                };
            }
        }
        Ok(answer)
    }
}

fn line_too_long() -> ChatError {
    ChatError::LimitReached("bytes in one line")
}

impl fmt::Debug for ChatAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("ChatAgent");
        debug.field("base_url", &self.base_url).field("model", &self.model).field("tools", &self.tools);
        debug.finish_non_exhaustive()
    }
}
