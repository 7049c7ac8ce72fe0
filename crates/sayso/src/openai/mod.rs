//! A ready loop for every endpoint that speaks OpenAI's chat completions: streamed text is heard as it comes, tools are told
//! before they run and when they end, and what is dangerous is asked for first.
//!
//! ```
//! use sayso::openai::{Agent, Arguments, Tool};
//! use sayso::{Hub, Risk};
//!
//! async fn send(arguments: Arguments) -> Result<String, std::io::Error> {
//!     Ok(format!("{} euro were sent to {}", arguments.words("euro"), arguments.words("to")))
//! }
//!
//! # testing::example!({
//! # let url = testing::model::endpoint();
//! let schema = r#"{"type":"object","properties":{"to":{"type":"string"},"euro":{"type":"integer"}}}"#;
//! // Like `https://api.openai.com/v1`, or `http://127.0.0.1:11434/v1`.
//! let agent = Agent::new(url).key("sk-example").model("gpt-5.2").tool(
//!     Tool::new("send_money", "Sends money from the person's account.", schema, send)
//!         .risk(Risk::High)
//!         .irreversible()
//!         .says(|call| format!("Send {} euro to {}.", call.words("euro"), call.words("to")))
//!         .consequence(|_| "The money is gone at once.".to_owned()),
//! );
//! let hub = Hub::embedded().agent("bank").listen("127.0.0.1:0").open()?;
//! let reply = agent.run(&hub, "Good morning.").await?;
//! assert_eq!(reply.text, "Good morning.");
//! hub.close().await;
//! # });
//! ```
//!
//! - `tool`: what a model may call, and its arguments.
//! - `calling`: one call: asked for, run, told, and what the model learns of it.
//! - `post`: one question over HTTP; `sse`, events out of its bytes; `answer`, an answer out of events.
//! - `messages`: what the model is told.
//! - `limits`, `error`: how much is taken, and what comes of more.

mod answer;
mod calling;
mod error;
mod limits;
mod messages;
mod post;
mod tool;

use std::fmt;
use std::time::Duration;

pub use calling::{Called, Outcome};
use client::sse::{Fault, Parser};
use client::{Backoff, HttpClient, Url};
pub use error::{AnswerFault, Error, SetupFault};
pub use limits::Limits;
pub use tool::{Arguments, Tool};

use crate::error::Source;
use crate::hub::Hub;
use crate::session::Session;
use answer::{Answer, Ended};
use messages::Messages;
use post::{Again, Endpoint, Stream};

/// An agent: an endpoint, a model, instructions and tools. It can run many requests, also at once.
///
/// ```
/// use sayso::openai::Agent;
/// let agent = Agent::new("http://127.0.0.1:11434/v1").model("llama3.2").instructions("Answer in one sentence.");
/// # let _ = agent;
/// ```
#[derive(Clone)]
#[must_use = "it does something when it runs"]
pub struct Agent {
    base: String,
    model: String,
    key: Option<String>,
    instructions: Option<String>,
    parameters: Vec<(String, String)>,
    tools: Vec<Tool>,
    limits: Limits,
}

/// What came of a request.
///
/// ```
/// # testing::example!(hub, {
/// # let agent = sayso::openai::Agent::new(testing::model::endpoint()).model("any");
/// let reply = agent.run(&hub, "Good morning.").await?;
/// assert_eq!((reply.text.as_str(), reply.rounds), ("Good morning.", 1));
/// for call in &reply.calls {
///     println!("{}: {}", call.tool, call.outcome);
/// }
/// # });
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reply {
    /// The model's last words. Listeners have heard them, and those before.
    pub text: String,
    /// How often the model was asked.
    pub rounds: usize,
    /// Every call that the model wanted, in its order.
    pub calls: Vec<Called>,
    /// The model did not say all that it had to say: it had no more room, or the service let no more through.
    pub cut: bool,
}

impl Agent {
    /// An agent at this endpoint: all that comes before `/chat/completions`, as in `https://api.openai.com/v1`. Without TLS
    /// everybody on the way can read the key and what is said, so `http://` is for this machine.
    pub fn new(base_url: impl Into<String>) -> Self {
        Self {
            base: base_url.into(),
            model: String::new(),
            key: None,
            instructions: None,
            parameters: Vec::new(),
            tools: Vec::new(),
            limits: Limits::default(),
        }
    }

    setters! {
        /// The model's name, as the endpoint knows it.
        model(model: impl Into<String>) => model = model.into();

        /// The key, if the endpoint wants one. It is sent to the endpoint and told to nobody.
        key(key: impl Into<String>) => key = Some(key.into());

        /// What the model is told before every request.
        instructions(instructions: impl Into<String>) => instructions = Some(instructions.into());
    }

    /// A member of every question beside those that the loop writes itself, as JSON: what an endpoint lets you set.
    pub fn parameter(mut self, name: impl Into<String>, json: impl Into<String>) -> Self {
        self.parameters.push((name.into(), json.into()));
        self
    }

    /// A tool that the model may call.
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    setters! {
        /// Other bounds.
        limits(limits: Limits) => limits = limits;
    }

    /// Does what a person asks, in a session of its own: from its start to one honest end.
    pub async fn run(&self, hub: &Hub, request: impl Into<String>) -> Result<Reply, Error> {
        let request = request.into();
        let session = hub.session(request.as_str()).start().await?;
        let answered = self.answer(&session, request).await;
        let last = match &answered {
            Ok(reply) if reply.cut => "The answer is not whole: the model had to stop early.",
            Ok(reply) if reply.text.is_empty() => "Done. The model had nothing to say.",
            Ok(_) => "The answer is complete.",
            // It is over already.
            Err(Error::Session(crate::Error::Stopped(_))) => return answered,
            Err(error) => {
                session.fail(error.failure()).await?;
                return answered;
            }
        };
        session.finish(last).await?;
        answered
    }

    /// The same in a session that is there already, and that its owner ends.
    ///
    /// ```
    /// # testing::example!({
    /// # let hub = sayso::Hub::embedded().agent("bank").open()?;
    /// # let agent = sayso::openai::Agent::new(testing::model::endpoint()).model("any");
    /// let session = hub.session("Good morning.").start().await?;
    /// match agent.answer(&session, "Good morning.").await {
    ///     Ok(reply) => {
    ///         assert_eq!(reply.text, "Good morning.");
    ///         session.finish("That was all.").await?;
    ///     }
    ///     Err(error) => session.fail(error.failure()).await?,
    /// }
    /// hub.close().await;
    /// # });
    /// ```
    pub async fn answer(&self, session: &Session, request: impl Into<String>) -> Result<Reply, Error> {
        let endpoint = Endpoint { client: self.checked()?, key: self.key.as_deref(), limits: &self.limits };
        let mut messages = Messages::new(self.instructions.as_deref(), &request.into());
        let mut reply = Reply::default();
        while reply.rounds < self.limits.rounds {
            reply.rounds += 1;
            let thinks =
                if reply.rounds == 1 { "Asking the model." } else { "Asking the model how to go on." };
            session.think(thinks).await?;
            let mut answer = tokio::select! {
                answer = self.ask(session, &endpoint, messages.body(&self.model, &self.parameters, &self.tools)) => answer?,
                stop = session.stopped() => return Err(crate::Error::Stopped(stop).into()),
            };
            session.output_done().await?;
            answer.name_calls();
            reply.cut = !matches!(answer.ended, None | Some(Ended::Whole));
            if answer.calls.is_empty() {
                reply.text = answer.text;
                return Ok(reply);
            }
            messages.assistant(&answer);
            for call in &answer.calls {
                let (outcome, tells) = self.call(session, call).await?;
                messages.result(&call.id, &tells);
                reply.calls.push(Called { tool: call.name.clone(), outcome });
            }
        }
        Err(Error::TooManyRounds(reply.rounds))
    }

    /// What would be refused anyway is refused before anything is sent.
    fn checked(&self) -> Result<HttpClient, SetupFault> {
        let url = Url::parse_http(&self.base)
            .map_err(|why| SetupFault::Address { address: self.base.clone(), source: Source::new(why) })?;
        let mut client = HttpClient::new(url);
        if let Some(key) = &self.key {
            client = client.with_token(key).map_err(|_| SetupFault::Key)?;
        }
        for (name, json) in &self.parameters {
            if ["model", "stream", "messages", "tools"].contains(&name.as_str()) {
                return Err(SetupFault::OwnParameter(name.clone()));
            }
            if seal::json::Raw::parse(json).is_err() {
                return Err(SetupFault::ParameterNotJson(name.clone()));
            }
        }
        for (at, tool) in self.tools.iter().enumerate() {
            let name = tool.name.as_bytes();
            let begins = name.first().is_some_and(|first| first.is_ascii_alphabetic() || *first == b'_');
            let plain = name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(byte));
            if !begins || !plain || name.len() > 64 {
                return Err(SetupFault::ToolName(tool.name.clone()));
            }
            if self.tools.iter().take(at).any(|other| other.name == tool.name) {
                return Err(SetupFault::SameTool(tool.name.clone()));
            }
            if Arguments::parse(&tool.name, &tool.parameters).is_err() {
                return Err(SetupFault::ToolSchema(tool.name.clone()));
            }
        }
        Ok(client)
    }

    /// One answer. It is asked for again only as long as nothing of it has come.
    async fn ask(&self, session: &Session, endpoint: &Endpoint<'_>, body: String) -> Result<Answer, Error> {
        let mut backoff = Backoff::new(Duration::from_millis(500), self.limits.pause);
        let mut attempt = 1;
        let stream = loop {
            let Again { error, after } = match endpoint.ask(body.clone()).await? {
                Ok(stream) => break stream,
                Err(again) => again,
            };
            let wait = after.unwrap_or(backoff.delay());
            if attempt >= self.limits.attempts || wait > self.limits.pause {
                return Err(error);
            }
            session.think("The model's service is busy or not there. Trying again in a moment.").await?;
            tokio::time::sleep(wait).await;
            backoff.grow();
            attempt += 1;
        };
        self.hear(session, stream).await
    }

    async fn hear(&self, session: &Session, mut stream: Stream) -> Result<Answer, Error> {
        let mut answer = Answer::default();
        let (mut parser, mut blocks) = (Parser::new(self.limits.line_bytes), Vec::new());
        while !answer.done {
            let bytes = stream.next().await?;
            let over = bytes.is_none();
            match bytes {
                Some(bytes) => parser.take(bytes.as_ref(), &mut blocks),
                None => blocks.extend(parser.finish()),
            }
            let mut new = String::new();
            let mut taken = blocks.drain(..).try_for_each(|block| match (block.fault, block.data) {
                (Some(Fault::TooLong), _) => Err(too_long()),
                (Some(_), _) => Err(AnswerFault::NotUtf8.into()),
                (None, None) => Ok(()),
                (None, Some(event)) => {
                    new.push_str(&answer.take(&event, self.key.as_deref(), self.limits.calls)?);
                    Ok(())
                }
            });
            if taken.is_ok() && parser.is_too_long() {
                taken = Err(too_long());
            }
            // What came before a fault was said by the model all the same.
            if !new.is_empty() {
                session.output(new).await?;
            }
            taken?;
            if over {
                // Some endpoints leave out the last word; that the model had ended is enough.
                return if answer.ended.is_some() { Ok(answer) } else { Err(Error::CutOff) };
            }
        }
        Ok(answer)
    }
}

fn too_long() -> Error {
    Error::TooMuch("bytes of a line")
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Agent");
        shown.field("base", &self.base).field("model", &self.model).field("tools", &self.tools);
        shown.finish_non_exhaustive()
    }
}
