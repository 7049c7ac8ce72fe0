//! Drives an open session from a sequence of steps.

use std::collections::{HashMap, VecDeque};
use std::future::{Future, poll_fn};
use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use super::StepSource;
use super::answer_channel::{AnswerSender, Denial, Permission};
use super::report::{BridgeFault, FaultLog};
use super::step::{AgentStep, StepKind, UnconfirmedCall};
use crate::clarification::{ClarificationAnswer, ClarificationRequest};
use crate::consent::{Action, Answer};
use crate::error::{Error, StopReason};
use crate::session::{HandOff, HandOffOutcome, OutputText, ProgressUpdate, Session, SessionEnding, ToolCall};

/// The maximum number of past runs that are remembered.
const MAX_PAST_RUNS: usize = 1024;

pub(super) enum DriverEnd {
    ByStep(Box<SessionEnding>),
    StreamEnded,
    Stalled,
    Stopped(StopReason),
}

type DriverFlow = ControlFlow<DriverEnd>;

/// The driver of one session. Dropping it closes the open tool calls and withdraws the open questions.
pub(super) struct SessionDriver<'s> {
    session: &'s Session,
    runs: HashMap<String, ToolRun<'s>>,
    past_runs: PastRuns,
    open_questions: Vec<QuestionFuture<'s>>,
    /// The model run whose text is in the open output.
    writing_run: Option<String>,
    fault_log: &'s mut FaultLog,
}

enum ToolRun<'s> {
    Asking,
    Open(ToolCall<'s>),
}

/// An open question.
type QuestionFuture<'s> = Pin<Box<dyn Future<Output = SettledQuestion> + Send + 's>>;

enum SettledQuestion {
    Answered {
        run: String,
        reply: AnswerSender<Permission>,
        answer: Result<Answer, Error>,
    },
    Clarified {
        reply: AnswerSender<ClarificationAnswer>,
        answer: Result<ClarificationAnswer, Error>,
    },
    HandedOff {
        reply: AnswerSender<HandOffOutcome>,
        outcome: Result<HandOffOutcome, Error>,
    },
    /// Nobody is waiting for the answer. `run` is the tool run that needs it.
    Abandoned {
        run: Option<String>,
    },
}

impl<'s> SessionDriver<'s> {
    pub(super) fn new(session: &'s Session, fault_log: &'s mut FaultLog) -> Self {
        Self {
            session,
            runs: HashMap::new(),
            past_runs: PastRuns::default(),
            open_questions: Vec::new(),
            writing_run: None,
            fault_log,
        }
    }

    pub(super) async fn run(mut self, steps: &mut impl StepSource, idle_timeout: Duration) -> DriverEnd {
        loop {
            let session = self.session;
            let has_open_questions = !self.open_questions.is_empty();
            let flow = tokio::select! {
                biased;
                stop = session.stopped() => DriverFlow::Break(DriverEnd::Stopped(stop)),
                settled = poll_fn(|context| poll_open_questions(&mut self.open_questions, context)), if has_open_questions => self.settle(settled).await,
                step = steps.next() => match step {
                    None => DriverFlow::Break(DriverEnd::StreamEnded),
                    Some(step) => self.handle_step(step).await,
                },
                () = tokio::time::sleep(idle_timeout), if !has_open_questions => DriverFlow::Break(DriverEnd::Stalled),
            };
            if let DriverFlow::Break(end) = flow {
                self.report_unended(&end);
                return end;
            }
        }
    }

    async fn handle_step(&mut self, step: AgentStep) -> DriverFlow {
        let (name, session) = (step.name(), self.session);
        let result = match step.0 {
            StepKind::Decide(text) => session.decide(text).await,
            StepKind::ModelCall(text) if self.runs.values().any(|run| matches!(run, ToolRun::Open(_))) => {
                session.progress(ProgressUpdate::new(text)).await
            }
            StepKind::Think(text) | StepKind::ModelCall(text) => session.think(text).await,
            StepKind::ChangeState(change) => session.change_state(change).await,
            StepKind::Progress(progress) => session.progress(progress).await,
            StepKind::Output(text) => session.output(text).await,
            StepKind::Token { run, text } => self.write_token(run, text).await,
            StepKind::OutputBytes(bytes) => session.output_bytes(bytes).await,
            StepKind::FinishOutput => session.finish_output().await,
            StepKind::HandOff(hand_off) => session.announce_hand_off(*hand_off).await,
            StepKind::Tool { run, call, reply } => return self.start_tool(run, call, reply).await,
            StepKind::Ask { run, action, reply } => return self.ask(run, *action, reply).await,
            StepKind::Clarify(question, reply) => return self.clarify(*question, reply).await,
            StepKind::HandOffAndWait(hand_off, reply) => return self.hand_off(*hand_off, reply).await,
            StepKind::ToolSucceeded { run, summary } => match self.take_ended_tool(run) {
                None => return DriverFlow::Continue(()),
                Some(tool) => match summary {
                    Some(summary) => tool.succeed(summary).await,
                    None => tool.succeed_with_default_summary().await,
                },
            },
            StepKind::ToolFailed { run, reason } => match self.take_ended_tool(run) {
                None => return DriverFlow::Continue(()),
                Some(tool) => tool.fail(reason).await,
            },
            StepKind::ToolTimedOut { run } => match self.take_ended_tool(run) {
                None => return DriverFlow::Continue(()),
                Some(tool) => tool.time_out().await,
            },
            StepKind::End(ending) => return DriverFlow::Break(DriverEnd::ByStep(ending)),
            StepKind::Start(_) => return self.record_fault(BridgeFault::AlreadyStarted),
            StepKind::Fault(fault) => return self.record_fault(fault),
        };
        self.check_result(name, result)
    }

    fn record_fault(&mut self, fault: BridgeFault) -> DriverFlow {
        self.fault_log.add(fault);
        DriverFlow::Continue(())
    }

    /// Checks the result of a step. A stopped session ends the driver; any other error is a fault.
    fn check_result(&mut self, step: &'static str, result: Result<(), Error>) -> DriverFlow {
        match result {
            Ok(()) => DriverFlow::Continue(()),
            Err(Error::Stopped(stop)) => DriverFlow::Break(DriverEnd::Stopped(stop)),
            Err(error) => self.record_fault(BridgeFault::Rejected { step, error }),
        }
    }

    /// Adds text of a model. The text of another model run starts a new output.
    async fn write_token(&mut self, run: String, text: String) -> Result<(), Error> {
        if self.writing_run.as_ref().is_some_and(|current| *current != run) {
            self.session.finish_output().await?;
        }
        self.writing_run = Some(run);
        self.session.output(OutputText::from_model(text)).await
    }

    async fn start_tool(
        &mut self,
        run: String,
        call: UnconfirmedCall,
        reply: Option<AnswerSender<Permission>>,
    ) -> DriverFlow {
        if self.runs.contains_key(&run) {
            return self.record_fault(BridgeFault::DuplicateRun(run));
        }
        match call.into_call(self.session).start().await {
            Ok(tool) => self.open_tool(run, tool, reply, None),
            Err(error) => self.deny(run, "tool", reply, error),
        }
    }

    /// Denies a call because of an error: the question failed, or the call could not be announced.
    fn deny(
        &mut self,
        run: String,
        step: &'static str,
        reply: Option<AnswerSender<Permission>>,
        error: Error,
    ) -> DriverFlow {
        if let Some(reply) = reply {
            reply.send(Err(Denial::Error(error.clone())));
        }
        self.past_runs.insert(run, PastRunState::Denied);
        self.check_result(step, Err(error))
    }

    fn open_tool(
        &mut self,
        run: String,
        tool: ToolCall<'s>,
        reply: Option<AnswerSender<Permission>>,
        arguments: Option<String>,
    ) -> DriverFlow {
        if reply.is_none_or(|reply| reply.send(Ok(Permission { arguments }))) {
            self.past_runs.remove(&run);
            self.runs.insert(run, ToolRun::Open(tool));
        } else {
            // Nobody will run it. Dropping the call reports it as abandoned.
            self.record_abandoned(run);
        }
        DriverFlow::Continue(())
    }

    fn record_abandoned(&mut self, run: String) {
        self.past_runs.insert(run.clone(), PastRunState::Denied);
        self.fault_log.add(BridgeFault::AnswerAbandoned(run));
    }

    async fn ask(&mut self, run: String, action: Action, mut reply: AnswerSender<Permission>) -> DriverFlow {
        if self.runs.contains_key(&run) {
            return self.record_fault(BridgeFault::DuplicateRun(run));
        }
        self.past_runs.remove(&run);
        self.runs.insert(run.clone(), ToolRun::Asking);
        let session = self.session;
        self.poll_or_enqueue(Box::pin(async move {
            tokio::select! {
                biased;
                answer = session.ask(action) => SettledQuestion::Answered { run, reply, answer },
                () = reply.closed() => SettledQuestion::Abandoned { run: Some(run) },
            }
        }))
        .await
    }

    async fn clarify(
        &mut self,
        question: ClarificationRequest,
        mut reply: AnswerSender<ClarificationAnswer>,
    ) -> DriverFlow {
        let session = self.session;
        self.poll_or_enqueue(Box::pin(async move {
            tokio::select! {
                biased;
                answer = session.clarify(question) => SettledQuestion::Clarified { reply, answer },
                () = reply.closed() => SettledQuestion::Abandoned { run: None },
            }
        }))
        .await
    }

    async fn hand_off(&mut self, hand_off: HandOff, mut reply: AnswerSender<HandOffOutcome>) -> DriverFlow {
        let session = self.session;
        self.poll_or_enqueue(Box::pin(async move {
            tokio::select! {
                biased;
                outcome = session.hand_off(hand_off) => SettledQuestion::HandedOff { reply, outcome },
                () = reply.closed() => SettledQuestion::Abandoned { run: None },
            }
        }))
        .await
    }

    /// Asks immediately, which keeps the order of the steps, and waits for the answer concurrently with later steps.
    async fn poll_or_enqueue(&mut self, mut question: QuestionFuture<'s>) -> DriverFlow {
        match poll_fn(|context| Poll::Ready(question.as_mut().poll(context))).await {
            Poll::Ready(settled) => self.settle(settled).await,
            Poll::Pending => {
                self.open_questions.push(question);
                DriverFlow::Continue(())
            }
        }
    }

    async fn settle(&mut self, settled: SettledQuestion) -> DriverFlow {
        let (run, reply, answer) = match settled {
            SettledQuestion::Answered { run, reply, answer } => (run, reply, answer),
            SettledQuestion::Clarified { reply, answer } => {
                let error = answer.as_ref().err().cloned();
                reply.send(answer.map_err(Denial::Error));
                return self.check_result("clarify", error.map_or(Ok(()), Err));
            }
            SettledQuestion::HandedOff { reply, outcome } => {
                let error = outcome.as_ref().err().cloned();
                reply.send(outcome.map_err(Denial::Error));
                return self.check_result("hand_off_and_wait", error.map_or(Ok(()), Err));
            }
            SettledQuestion::Abandoned { run } => {
                if let Some(run) = run {
                    self.runs.remove(&run);
                    self.record_abandoned(run);
                }
                return DriverFlow::Continue(());
            }
        };
        self.runs.remove(&run);
        let granted = match answer {
            Ok(Answer::Granted(granted)) => granted,
            Ok(Answer::Refused(refusal)) => {
                reply.send(Err(Denial::Refused(refusal)));
                self.past_runs.insert(run, PastRunState::Denied);
                return DriverFlow::Continue(());
            }
            Err(error) => return self.deny(run, "ask", Some(reply), error),
        };
        if reply.is_closed() {
            self.record_abandoned(run);
            return DriverFlow::Continue(());
        }
        let arguments = granted.arguments().to_owned();
        match self.session.start_call(granted).await {
            Ok(tool) => self.open_tool(run, tool, Some(reply), Some(arguments)),
            Err(error) => self.deny(run, "tool", Some(reply), error),
        }
    }

    /// Removes and returns the open tool call of a run that has ended.
    fn take_ended_tool(&mut self, run: String) -> Option<ToolCall<'s>> {
        match self.runs.remove(&run) {
            Some(ToolRun::Open(tool)) => {
                self.past_runs.insert(run, PastRunState::Ended);
                return Some(tool);
            }
            Some(asking) => {
                self.runs.insert(run.clone(), asking);
                self.fault_log.add(BridgeFault::EndedWithoutPermission(run));
            }
            None => self.fault_log.add(match self.past_runs.get(&run) {
                None => BridgeFault::NeverStarted(run),
                Some(PastRunState::Ended) => BridgeFault::AlreadyEnded(run),
                Some(PastRunState::Denied) => BridgeFault::EndedWithoutPermission(run),
            }),
        }
        None
    }

    /// Reports the tools that are still open at the end. Dropping them closes them.
    fn report_unended(&mut self, end: &DriverEnd) {
        if matches!(end, DriverEnd::Stopped(_)) {
            return;
        }
        let open = self.runs.drain().filter(|(_, run)| matches!(run, ToolRun::Open(_)));
        let mut unended: Vec<_> = open.map(|(run, _)| run).collect();
        unended.sort_unstable();
        for run in unended {
            self.fault_log.add(BridgeFault::NeverEnded(run));
        }
    }
}

fn poll_open_questions(
    questions: &mut Vec<QuestionFuture<'_>>,
    context: &mut Context<'_>,
) -> Poll<SettledQuestion> {
    for index in 0..questions.len() {
        if let Some(question) = questions.get_mut(index)
            && let Poll::Ready(settled) = question.as_mut().poll(context)
        {
            drop(questions.remove(index));
            return Poll::Ready(settled);
        }
    }
    Poll::Pending
}

#[derive(Clone, Copy)]
enum PastRunState {
    Ended,
    /// The run got no permission.
    Denied,
}

/// The most recent runs that are over.
#[derive(Default)]
struct PastRuns(VecDeque<(String, PastRunState)>);

impl PastRuns {
    fn get(&self, run: &str) -> Option<PastRunState> {
        self.0.iter().find(|(known, _)| known == run).map(|(_, state)| *state)
    }

    fn insert(&mut self, run: String, state: PastRunState) {
        self.remove(&run);
        self.0.push_back((run, state));
        if self.0.len() > MAX_PAST_RUNS {
            self.0.pop_front();
        }
    }

    /// Forgets a run, because its id is used again.
    fn remove(&mut self, run: &str) {
        self.0.retain(|(known, _)| known != run);
    }
}
