//! The steps of an agent.

use super::answer_channel::{AnswerSender, Permission};
use super::report::BridgeFault;
use crate::clarification::{ClarificationAnswer, ClarificationRequest};
use crate::consent::{Action, Risk};
use crate::localized_text::LocalizedText;
use crate::session::{
    Cancellation, Completion, Failure, HandOff, HandOffOutcome, OutputText, ProgressUpdate, Session,
    SessionBuilder, SessionEnding, StateChange, ToolCallBuilder, ToolCallDetails, tool_call_details_setters,
};

/// One step of an agent. A tool is identified by the id of its run, which the framework chooses. The ids of open runs must differ.
///
/// ```
/// use sayso::bridge::{AgentStep, UnconfirmedCall};
///
/// let steps = [
///     AgentStep::think("Checking the forecast."),
///     AgentStep::tool("run-1", UnconfirmedCall::new("weather").says("Checking the weather in Oslo.")),
///     AgentStep::tool_succeeded("run-1", "It is raining."),
///     AgentStep::output("It is rai"),
///     AgentStep::output("ning in Oslo."),
///     AgentStep::finish("It is raining in Oslo."),
/// ];
/// # let _ = steps;
/// ```
#[derive(Debug)]
pub struct AgentStep(pub(crate) StepKind);

#[derive(Debug)]
pub(crate) enum StepKind {
    Start(Box<SessionBuilder>),
    Think(LocalizedText),
    Decide(LocalizedText),
    ChangeState(StateChange),
    /// A model is called. While a tool runs this is reported as progress, because the tool determines the state.
    ModelCall(LocalizedText),
    Progress(ProgressUpdate),
    Tool {
        run: String,
        call: UnconfirmedCall,
        reply: Option<AnswerSender<Permission>>,
    },
    Ask {
        run: String,
        action: Box<Action>,
        reply: AnswerSender<Permission>,
    },
    ToolSucceeded {
        run: String,
        summary: Option<LocalizedText>,
    },
    ToolFailed {
        run: String,
        reason: LocalizedText,
    },
    ToolTimedOut {
        run: String,
    },
    Output(OutputText),
    OutputBytes(Vec<u8>),
    /// Text of one of several model runs.
    Token {
        run: String,
        text: String,
    },
    FinishOutput,
    Clarify(Box<ClarificationRequest>, AnswerSender<ClarificationAnswer>),
    HandOffAndWait(Box<HandOff>, AnswerSender<HandOffOutcome>),
    HandOff(Box<HandOff>),
    End(Box<SessionEnding>),
    /// A fault that was found while the step was created.
    Fault(BridgeFault),
}

impl AgentStep {
    /// Starts the session. If there already is one, this is a fault.
    pub fn start(builder: SessionBuilder) -> Self {
        Self(StepKind::Start(Box::new(builder)))
    }

    /// Reports that the agent is thinking, and about what.
    pub fn think(text: impl Into<LocalizedText>) -> Self {
        Self(StepKind::Think(text.into()))
    }

    /// Reports that the agent is deciding between alternatives.
    pub fn decide(text: impl Into<LocalizedText>) -> Self {
        Self(StepKind::Decide(text.into()))
    }

    /// Reports a state change, for example to a state of your own: [`StateChange::custom`].
    pub fn change_state(change: StateChange) -> Self {
        Self(StepKind::ChangeState(change))
    }

    /// Reports progress of a long task.
    pub fn progress(progress: ProgressUpdate) -> Self {
        Self(StepKind::Progress(progress))
    }

    /// Announces a tool that needs no consent and starts now, or has already started. If the framework can wait, use
    /// [`announced_tool`](Self::announced_tool).
    pub fn tool(run: impl Into<String>, call: UnconfirmedCall) -> Self {
        Self(StepKind::Tool { run: run.into(), call, reply: None })
    }

    /// Announces a tool that needs no consent and waits for a [`Permission`], which is sent after the announcement.
    pub fn announced_tool(
        run: impl Into<String>,
        call: UnconfirmedCall,
        reply: AnswerSender<Permission>,
    ) -> Self {
        Self(StepKind::Tool { run: run.into(), call, reply: Some(reply) })
    }

    /// Asks for consent to a call. The framework must wait for the answer and run the tool only with a [`Permission`]. By then the
    /// call has been announced.
    pub fn ask(run: impl Into<String>, action: Action, reply: AnswerSender<Permission>) -> Self {
        Self(StepKind::Ask { run: run.into(), action: Box::new(action), reply })
    }

    /// Reports that a tool succeeded.
    pub fn tool_succeeded(run: impl Into<String>, text: impl Into<LocalizedText>) -> Self {
        Self(StepKind::ToolSucceeded { run: run.into(), summary: Some(text.into()) })
    }

    /// Reports that a tool failed, with the reason.
    pub fn tool_failed(run: impl Into<String>, reason: impl Into<LocalizedText>) -> Self {
        Self(StepKind::ToolFailed { run: run.into(), reason: reason.into() })
    }

    /// Reports that a tool exceeded its time limit.
    pub fn tool_timed_out(run: impl Into<String>) -> Self {
        Self(StepKind::ToolTimedOut { run: run.into() })
    }

    /// Reports text of the model as it arrives, split anywhere.
    pub fn output(output: impl Into<OutputText>) -> Self {
        Self(StepKind::Output(output.into()))
    }

    /// Reports output as bytes, which may be split inside a character. Invalid UTF-8 becomes U+FFFD.
    pub fn output_bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self(StepKind::OutputBytes(bytes.into()))
    }

    /// Marks the open output as complete. This also happens when the agent enters a state, starts a tool, asks, hands off or ends
    /// the session.
    pub fn finish_output() -> Self {
        Self(StepKind::FinishOutput)
    }

    /// Asks what the person meant.
    pub fn clarify(question: ClarificationRequest, reply: AnswerSender<ClarificationAnswer>) -> Self {
        Self(StepKind::Clarify(Box::new(question), reply))
    }

    /// Tells listeners that somebody else takes over, without waiting for anybody. The session must still be ended.
    pub fn hand_off(hand_off: HandOff) -> Self {
        Self(StepKind::HandOff(Box::new(hand_off)))
    }

    /// Asks somebody else to take over, and sends the outcome to `reply`. The session must still be ended.
    pub fn hand_off_and_wait(hand_off: HandOff, reply: AnswerSender<HandOffOutcome>) -> Self {
        Self(StepKind::HandOffAndWait(Box::new(hand_off), reply))
    }

    /// Ends the session: the task is done.
    pub fn finish(completion: impl Into<Completion>) -> Self {
        Self(StepKind::End(Box::new(SessionEnding::Finished(completion.into()))))
    }

    /// Ends the session: the task failed.
    pub fn fail(failure: impl Into<Failure>) -> Self {
        Self(StepKind::End(Box::new(SessionEnding::Failed(failure.into()))))
    }

    /// Ends the session before the task is done.
    pub fn cancel(cancellation: impl Into<Cancellation>) -> Self {
        Self(StepKind::End(Box::new(SessionEnding::Cancelled(cancellation.into()))))
    }

    pub(super) fn name(&self) -> &'static str {
        match &self.0 {
            StepKind::Start(_) => "start",
            StepKind::Think(_) | StepKind::ModelCall(_) => "think",
            StepKind::Decide(_) => "decide",
            StepKind::ChangeState(_) => "change_state",
            StepKind::Progress(_) => "progress",
            StepKind::Tool { .. } => "tool",
            StepKind::Ask { .. } => "ask",
            StepKind::ToolSucceeded { .. } => "tool_succeeded",
            StepKind::ToolFailed { .. } => "tool_failed",
            StepKind::ToolTimedOut { .. } => "tool_timed_out",
            StepKind::Output(_) | StepKind::OutputBytes(_) | StepKind::Token { .. } => "output",
            StepKind::FinishOutput => "finish_output",
            StepKind::Clarify(..) => "clarify",
            StepKind::HandOffAndWait(..) => "hand_off_and_wait",
            StepKind::HandOff(_) => "hand_off",
            StepKind::End(ending) => match **ending {
                SessionEnding::Finished(_) => "finish",
                SessionEnding::Failed(_) => "fail",
                SessionEnding::Cancelled(_) => "cancel",
            },
            StepKind::Fault(_) => "fault",
        }
    }
}

/// A tool call that is made without asking. It cannot be irreversible or high-risk.
///
/// ```
/// let call =
///     sayso::bridge::UnconfirmedCall::new("weather").says("Checking the weather in Oslo.").args_summary("Oslo, tomorrow");
/// # let _ = call;
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is announced until it is part of a step"]
pub struct UnconfirmedCall {
    tool: String,
    details: Box<ToolCallDetails>,
}

tool_call_details_setters!(UnconfirmedCall);

impl UnconfirmedCall {
    /// Creates a low-risk call of this tool.
    pub fn new(tool: impl Into<String>) -> Self {
        Self { tool: tool.into(), details: Box::new(ToolCallDetails::new(Risk::Low)) }
    }

    setters! {
        /// Sets the text that says what this call does.
        says(text: impl Into<LocalizedText>) => details.summary = Some(text.into());

        /// Marks the call as medium risk.
        medium_risk() => details.risk = Risk::Medium;
    }

    pub(super) fn into_call(self, session: &Session) -> ToolCallBuilder<'_> {
        ToolCallBuilder::new(session, self.tool, self.details)
    }
}
