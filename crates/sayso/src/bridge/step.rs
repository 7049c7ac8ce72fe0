//! What an agent does, in the protocol's words.

use super::reply::{Allowed, Reply};
use super::report::Fault;
use crate::consent::{Action, Risk};
use crate::question::{Clarified, Question};
use crate::session::{
    Call, CallDetails, Cancellation, Completion, Ending, Failure, HandOff, Output, Progress, Session,
    SessionBuilder, call_details,
};
use crate::words::Words;

/// One thing that an agent does. Tools are known by the name of their run, which is the native side's own: one that is open
/// has a name that no other open one has.
///
/// ```
/// use sayso::bridge::{Step, Unasked};
///
/// let steps = [
///     Step::think("Looking at the sky."),
///     Step::tool("run-1", Unasked::new("weather").says("Asking for the weather in Oslo.")),
///     Step::done("run-1", "It rains."),
///     Step::output("It rai"),
///     Step::output("ns in Oslo."),
///     Step::finish("It rains in Oslo."),
/// ];
/// # let _ = steps;
/// ```
#[derive(Debug)]
pub struct Step(pub(crate) Kind);

#[derive(Debug)]
pub(crate) enum Kind {
    Start(Box<SessionBuilder>),
    Think(Words),
    Decide(Words),
    /// A model works: inside a tool the state is that of the tool.
    Model(Words),
    Progress(Progress),
    Tool {
        run: String,
        call: Unasked,
        reply: Option<Reply<Allowed>>,
    },
    Ask {
        run: String,
        action: Box<Action>,
        reply: Reply<Allowed>,
    },
    Done {
        run: String,
        words: Option<Words>,
    },
    Failed {
        run: String,
        why: Words,
    },
    TimedOut {
        run: String,
    },
    Output(Output),
    Bytes(Vec<u8>),
    /// Text of one of several models.
    Token {
        run: String,
        text: String,
    },
    OutputDone,
    Clarify(Box<Question>, Reply<Clarified>),
    HandOff(Box<HandOff>),
    End(Box<Ending>),
    /// Something that is wrong with what would have been a step.
    Fault(Fault),
}

impl Step {
    /// Starts the session, where the bridge was not given one.
    pub fn start(begin: SessionBuilder) -> Self {
        Self(Kind::Start(Box::new(begin)))
    }

    /// The agent thinks, about this.
    pub fn think(words: impl Into<Words>) -> Self {
        Self(Kind::Think(words.into()))
    }

    /// The agent decides between ways to go on.
    pub fn decide(words: impl Into<Words>) -> Self {
        Self(Kind::Decide(words.into()))
    }

    /// A long task has moved on.
    pub fn progress(progress: Progress) -> Self {
        Self(Kind::Progress(progress))
    }

    /// A tool that needs no consent runs from now on, or has already begun to. Where the native side can wait, use
    /// [`gated`](Self::gated).
    pub fn tool(run: impl Into<String>, call: Unasked) -> Self {
        Self(Kind::Tool { run: run.into(), call, reply: None })
    }

    /// A tool that needs no consent, and runs when the reply says [`Allowed`]: then listeners have been told that it does.
    pub fn gated(run: impl Into<String>, call: Unasked, reply: Reply<Allowed>) -> Self {
        Self(Kind::Tool { run: run.into(), call, reply: Some(reply) })
    }

    /// The agent wants to do something that needs the person's yes. The native side must wait for the reply, and run the
    /// tool only if it is [`Allowed`]: then listeners have been told already that it runs.
    pub fn ask(run: impl Into<String>, action: Action, reply: Reply<Allowed>) -> Self {
        Self(Kind::Ask { run: run.into(), action: Box::new(action), reply })
    }

    /// A tool did what it should.
    pub fn done(run: impl Into<String>, words: impl Into<Words>) -> Self {
        Self(Kind::Done { run: run.into(), words: Some(words.into()) })
    }

    /// A tool failed, for this reason.
    pub fn failed(run: impl Into<String>, why: impl Into<Words>) -> Self {
        Self(Kind::Failed { run: run.into(), why: why.into() })
    }

    /// A tool took too long.
    pub fn timed_out(run: impl Into<String>) -> Self {
        Self(Kind::TimedOut { run: run.into() })
    }

    /// Text of the model as it comes, cut wherever it is cut.
    pub fn output(output: impl Into<Output>) -> Self {
        Self(Kind::Output(output.into()))
    }

    /// The same in bytes, which may be cut in the middle of a character. What is not UTF-8 is told as U+FFFD.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self(Kind::Bytes(bytes.into()))
    }

    /// The output is whole. It is also when the agent goes on to something else.
    pub fn output_done() -> Self {
        Self(Kind::OutputDone)
    }

    /// Asks what was meant.
    pub fn clarify(question: Question, reply: Reply<Clarified>) -> Self {
        Self(Kind::Clarify(Box::new(question), reply))
    }

    /// Asks that somebody else goes on. The session is still to be ended.
    pub fn hand_off(hand_off: HandOff) -> Self {
        Self(Kind::HandOff(Box::new(hand_off)))
    }

    /// It did what was asked. Nothing comes after.
    pub fn finish(completion: impl Into<Completion>) -> Self {
        Self(Kind::End(Box::new(Ending::Finished(completion.into()))))
    }

    /// It failed. Nothing comes after.
    pub fn fail(failure: impl Into<Failure>) -> Self {
        Self(Kind::End(Box::new(Ending::Failed(failure.into()))))
    }

    /// The agent ends it before it is done. Nothing comes after.
    pub fn cancel(cancellation: impl Into<Cancellation>) -> Self {
        Self(Kind::End(Box::new(Ending::Cancelled(cancellation.into()))))
    }

    pub(super) fn name(&self) -> &'static str {
        match &self.0 {
            Kind::Start(_) => "start",
            Kind::Think(_) | Kind::Model(_) => "think",
            Kind::Decide(_) => "decide",
            Kind::Progress(_) => "progress",
            Kind::Tool { .. } => "tool",
            Kind::Ask { .. } => "ask",
            Kind::Done { .. } => "done",
            Kind::Failed { .. } => "failed",
            Kind::TimedOut { .. } => "timed_out",
            Kind::Output(_) | Kind::Bytes(_) | Kind::Token { .. } => "output",
            Kind::OutputDone => "output_done",
            Kind::Clarify(..) => "clarify",
            Kind::HandOff(_) => "hand_off",
            Kind::End(ending) => match **ending {
                Ending::Finished(_) => "finish",
                Ending::Failed(_) => "fail",
                Ending::Cancelled(_) => "cancel",
            },
            Kind::Fault(_) => "fault",
        }
    }
}

/// A call of a tool that is made without asking. What is irreversible or of high risk cannot be said so.
///
/// ```
/// let call = sayso::bridge::Unasked::new("weather").says("Asking for the weather in Oslo.").with("Oslo, tomorrow");
/// # let _ = call;
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is said before it is a step"]
pub struct Unasked {
    tool: String,
    details: Box<CallDetails>,
}

call_details!(Unasked);

impl Unasked {
    /// A call of this tool, of low risk.
    pub fn new(tool: impl Into<String>) -> Self {
        Self { tool: tool.into(), details: Box::new(CallDetails::new(Risk::Low)) }
    }

    setters! {
        /// What this call does.
        says(words: impl Into<Words>) => details.words = Some(words.into());

        /// It could do some harm.
        medium_risk() => details.risk = Risk::Medium;
    }

    pub(super) fn of(self, session: &Session) -> Call<'_> {
        Call::new(session, self.tool, self.details)
    }
}
