//! One call of a tool: asked for, run and told, and what the model learns of it.

use std::fmt;

use tokio::task::JoinSet;

use super::Agent;
use super::answer::Call;
use super::error::Error;
use super::tool::{Arguments, Tool};
use crate::consent::{Refused, told_to_model};
use crate::error::CallError;
use crate::session::Session;

/// A call that the model wanted.
///
/// ```
/// # testing::example!({
/// # let url = testing::model::endpoint_that_wants("launch", "{}");
/// use sayso::openai::{Agent, Outcome};
/// # let agent = Agent::new(url).model("any");
/// # let hub = sayso::Hub::embedded().open()?;
/// // The model wants a tool that this agent does not have.
/// let reply = agent.run(&hub, "Good morning.").await?;
/// assert_eq!((reply.calls[0].tool.as_str(), &reply.calls[0].outcome), ("launch", &Outcome::Unknown));
/// # });
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Called {
    /// The tool's name, as the model wrote it.
    pub tool: String,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a call. Listeners and the model have been told the same.
///
/// ```
/// use sayso::openai::Outcome;
/// assert_eq!(Outcome::Failed("no such account".to_owned()).to_string(), "it failed: no such account");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It was run, and did what it should.
    Done,
    /// It was run, and failed.
    Failed(String),
    /// It was run, took too long, and was dropped.
    TimedOut,
    /// It was run, and broke down.
    Panicked,
    /// It was not run: the person said no, or nobody said anything.
    Refused(Refused),
    /// It was not run: it could not be asked for, or not be told, and why.
    NotTold(crate::Error),
    /// There is no such tool.
    Unknown,
    /// It was not run: the arguments are no JSON object, or can be read in two ways.
    BadArguments(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("it is done"),
            Self::Failed(why) => write!(f, "it failed: {why}"),
            Self::TimedOut => f.write_str("it took too long"),
            Self::Panicked => f.write_str("it broke down"),
            Self::Refused(why) => write!(f, "it was not done: {why}"),
            Self::NotTold(why) => write!(f, "it was not done, for nobody could be told: {why}"),
            Self::Unknown => f.write_str("there is no such tool"),
            Self::BadArguments(why) => write!(f, "it was not done; its arguments cannot be used: {why}"),
        }
    }
}

impl Agent {
    /// Does what the model wants, if it may be; gives what came of it, and what the model is told.
    pub(super) async fn call(&self, session: &Session, call: &Call) -> Result<(Outcome, String), Error> {
        let Some(tool) = self.tools.iter().find(|tool| tool.name == call.name) else {
            let name: String = call.name.chars().filter(|letter| !letter.is_control()).take(80).collect();
            let says = format!("The model wanted the tool {name:?}, which does not exist. Nothing was done.");
            session.think(says).await?;
            return Ok((Outcome::Unknown, format!("There is no tool called {name:?}. Nothing was done.")));
        };
        let arguments = match Arguments::parse(&tool.name, &call.arguments) {
            Ok(arguments) => arguments,
            Err(why) => {
                let says =
                    format!("The model called {} in a way that cannot be used. Nothing was done.", tool.name);
                session.think(says).await?;
                let tells = format!("The arguments cannot be used: {why}. Nothing was done.");
                return Ok((Outcome::BadArguments(why), tells));
            }
        };
        let open = match tool.open(session, &arguments).await {
            Ok(Ok(open)) => open,
            Ok(Err(refused)) => return Ok((Outcome::Refused(refused), told_to_model(&refused.to_string()))),
            // What the model wrote made it unlawful to say; so it is not done, and the loop goes on.
            Err(
                error @ (crate::Error::Unlawful(_) | crate::Error::Malformed(_) | crate::Error::TooMuch(_)),
            ) => {
                let says = format!("{} could not be told in a lawful way, so it was not done.", tool.name);
                session.think(says).await?;
                let tells = "The person could not be told of this call, so it was not made.".to_owned();
                return Ok((Outcome::NotTold(error), tells));
            }
            Err(error) => return Err(error.into()),
        };
        let limit = tool.limit.unwrap_or(self.limits.tool_time);
        let outcome = match open.run(run(tool, arguments), Some(limit)).await {
            Ok(result) => return Ok((Outcome::Done, fitting(result, self.limits.result_bytes))),
            Err(CallError::Tool(Broken(outcome))) => outcome,
            Err(CallError::TimedOut) => Outcome::TimedOut,
            Err(CallError::Refused(refused)) => Outcome::Refused(refused),
            Err(CallError::Session(error)) => return Err(error.into()),
        };
        let tells = format!("The tool did not work: {outcome}.");
        Ok((outcome, fitting(tells, self.limits.result_bytes)))
    }
}

/// Runs a tool in a task of its own, so that one that breaks down takes nothing else with it. Who waits no more drops it.
async fn run(tool: &Tool, arguments: Arguments) -> Result<String, Broken> {
    let mut work = JoinSet::new();
    work.spawn(tool.call(arguments));
    Err(Broken(match work.join_next().await {
        Some(Ok(Ok(bytes))) => match String::from_utf8(bytes) {
            Ok(text) => return Ok(text),
            Err(_) => Outcome::Failed("its result is no text".to_owned()),
        },
        Some(Ok(Err(why))) => Outcome::Failed(why),
        Some(Err(_)) | None => Outcome::Panicked,
    }))
}

/// A failure as listeners are told of it.
struct Broken(Outcome);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Outcome::Failed(why) if !why.is_empty() => f.write_str(why),
            failed => failed.fmt(f),
        }
    }
}

/// As much of a result as the model is given; it is told when that is not all.
fn fitting(text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    let beginning = text.get(..text.floor_char_boundary(most)).unwrap_or_default();
    format!("{beginning}\n[Cut here: this is the beginning of {} bytes.]", text.len())
}
