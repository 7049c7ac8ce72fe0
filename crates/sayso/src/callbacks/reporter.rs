//! Turns callbacks into steps of an event bridge.

use std::collections::HashSet;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use seal::json::{JsonWriter, Tape};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};

use super::Callbacks;
use crate::bridge::{
    AgentStep, AnswerSender, BridgeEnding, BridgeFault, BridgeReport, Denial, EventBridge, PendingAnswer,
    Permission, StepKind, UnconfirmedCall,
};
use crate::consent::Action;
use crate::error::{Error, LimitReached, StopReason};
use crate::hub::Hub;
use crate::localized_text::LocalizedText;
use crate::session::{HandOff, HandOffOutcome, SessionBuilder, truncate_text};

/// The maximum number of callbacks that wait to be reported. The next one is rejected with [`Error::LimitReached`].
///
/// ```
/// assert_eq!(sayso::callbacks::CALLBACK_QUEUE_CAPACITY, 16_384);
/// ```
pub const CALLBACK_QUEUE_CAPACITY: usize = 16_384;

/// The maximum number of nested chains that are open at the same time.
const MAX_NESTED_CHAINS: usize = 1024;

/// How a tool call is made: with or without asking the person.
///
/// ```
/// use sayso::Action;
/// use sayso::bridge::UnconfirmedCall;
/// use sayso::callbacks::ToolPlan;
///
/// fn plan(tool: &str, input: &str) -> ToolPlan {
///     match tool {
///         "weather" => UnconfirmedCall::new(tool).says(format!("Checking the weather in {input}.")).into(),
///         _ => Action::new(tool, input).says("Send money.").consequence("It cannot be returned.").irreversible().into(),
///     }
/// }
/// assert!(matches!(plan("weather", "Oslo"), ToolPlan::Unconfirmed(_)));
/// ```
#[derive(Debug)]
pub enum ToolPlan {
    /// Without asking.
    Unconfirmed(UnconfirmedCall),
    /// Only after the person said yes.
    Ask(Box<Action>),
}

impl From<UnconfirmedCall> for ToolPlan {
    fn from(call: UnconfirmedCall) -> Self {
        Self::Unconfirmed(call)
    }
}

impl From<Action> for ToolPlan {
    fn from(action: Action) -> Self {
        Self::Ask(Box::new(action))
    }
}

impl ToolPlan {
    /// Returns the plan for an unknown tool: the person is asked.
    pub fn unknown(tool: &str, input: &str) -> Self {
        let says = format!("Use {tool} with: {}", truncate_text(input));
        let consequence = "The effect of this tool is unknown. It may not be possible to undo it.";
        Action::new(tool, to_json(input)).says(says).consequence(consequence).into()
    }
}

type PlanCallFn = dyn Fn(&str, &str) -> ToolPlan + Send + Sync;
type StartSessionFn = dyn Fn(&str) -> SessionBuilder + Send + Sync;
type DescribeResultFn = dyn Fn(&str) -> LocalizedText + Send + Sync;

/// A builder for a [`SessionReporter`].
///
/// ```
/// use std::time::Duration;
/// use sayso::callbacks::SessionReporterBuilder;
///
/// let hub = sayso::Hub::embedded().agent("bank").open()?;
/// let (reporter, task) = SessionReporterBuilder::new(&hub)
///     .thinking("The assistant is thinking.")
///     .idle_timeout(Duration::from_secs(60))
///     .on_fault(|fault| eprintln!("{fault}"))
///     .open();
/// # let _ = (reporter, task);
/// # Ok::<(), sayso::Error>(())
/// ```
#[must_use = "nothing is reported until `open` is called"]
pub struct SessionReporterBuilder {
    config: ReporterConfig,
    bridge: EventBridge,
}

/// How callbacks are reported: the functions of the author, and the default texts.
struct ReporterConfig {
    start_session: Box<StartSessionFn>,
    plan_call: Box<PlanCallFn>,
    describe_result: Option<Box<DescribeResultFn>>,
    thinking: LocalizedText,
}

impl SessionReporterBuilder {
    /// Creates a builder for a session on this hub.
    pub fn new(hub: &Hub) -> Self {
        let hub = hub.clone();
        let config = ReporterConfig {
            start_session: Box::new(move |request| hub.session(request)),
            plan_call: Box::new(ToolPlan::unknown),
            describe_result: None,
            thinking: LocalizedText::new("Thinking."),
        };
        Self { config, bridge: EventBridge::new() }
    }

    setters! {
        /// Sets how the session for a request is created, for example in another language or for a certain person.
        start_session(start: impl Fn(&str) -> SessionBuilder + Send + Sync + 'static) => config.start_session = Box::new(start);

        /// Sets whether and how the person is asked, for a tool and its input. By default the person is asked for every call.
        plan_calls(plan: impl Fn(&str, &str) -> ToolPlan + Send + Sync + 'static) => config.plan_call = Box::new(plan);

        /// Sets the text for a tool's output. The default says only that the tool is done, because an output can be anything of any length.
        describe_results(describe: impl Fn(&str) -> LocalizedText + Send + Sync + 'static) => config.describe_result = Some(Box::new(describe));

        /// Sets the text that is reported when a model is called.
        thinking(text: impl Into<LocalizedText>) => config.thinking = text.into();

        /// Sets how long the framework may be silent before the session ends. The default is ten minutes. Time during which a question is open does not count.
        idle_timeout(timeout: Duration) => bridge.idle_timeout = timeout;

        /// Calls a function for each fault as soon as it occurs. The report contains all faults too.
        on_fault(callback: impl FnMut(&BridgeFault) + Send + 'static) => bridge.fault_log.on_fault = Some(Box::new(callback));
    }

    /// Returns the reporter, for the framework, and the task that reports the session, which a tokio runtime must run.
    pub fn open(self) -> (SessionReporter, ReporterTask) {
        let (queue, steps) = mpsc::channel(CALLBACK_QUEUE_CAPACITY);
        let (stop_sender, stop) = watch::channel(None);
        let bridge = self.bridge;
        let task = Box::pin(async move {
            let report = bridge.run_steps(steps).await;
            let stop = match report.ending {
                BridgeEnding::Stopped(stop) => stop,
                _ => StopReason::Other,
            };
            stop_sender.send_replace(Some(stop));
            report
        });
        let inner = Inner { queue, stop, config: self.config, chains: Mutex::default() };
        (SessionReporter(Arc::new(inner)), task)
    }
}

debug_tuple!(SessionReporterBuilder, bridge);

/// The task that reports a session until its end. It must be run, for example with `tokio::spawn`; otherwise nothing is reported and
/// no tool may run. If it is dropped, the session ends as abandoned.
///
/// ```
/// # testing::run_example!(hub, {
/// use sayso::callbacks::{SessionReporterBuilder, ReporterTask};
/// let (reporter, task): (_, ReporterTask) = SessionReporterBuilder::new(&hub).open();
/// let task = tokio::spawn(task);
/// # drop(reporter);
/// for fault in task.await.unwrap().faults {
///     eprintln!("{fault}");
/// }
/// # });
/// ```
pub type ReporterTask = Pin<Box<dyn Future<Output = BridgeReport> + Send>>;

/// Reports one session from callbacks: one request of a person, from the start of a chain to its end. Clones refer to the same
/// session. See [the module](super).
///
/// ```
/// # testing::run_example!(hub, {
/// use sayso::Error;
/// use sayso::callbacks::{Callbacks, SessionReporter, SessionReporterBuilder};
///
/// fn report_tokens(reporter: &SessionReporter, tokens: &[&str]) -> Result<(), Error> {
///     tokens.iter().try_for_each(|token| reporter.on_llm_new_token("run-1", token))
/// }
/// let (reporter, task) = SessionReporterBuilder::new(&hub).open();
/// # let _task = tokio::spawn(task);
/// reporter.on_chain_start("run-0", "Do I need an umbrella?")?;
/// report_tokens(&reporter, &["Yes, ta", "ke one."])?;
/// # });
/// ```
#[derive(Clone)]
pub struct SessionReporter(Arc<Inner>);

struct Inner {
    queue: mpsc::Sender<AgentStep>,
    stop: watch::Receiver<Option<StopReason>>,
    config: ReporterConfig,
    chains: Mutex<Chains>,
}

/// The outer chain, which is the session, and the nested ones.
#[derive(Default)]
struct Chains {
    outer: Option<String>,
    nested: HashSet<String>,
}

impl SessionReporter {
    /// Waits until the session is over, however it ends. If the person stopped it, the framework should drop its work. Returns
    /// [`StopReason::Other`] if the agent itself ended it.
    pub async fn wait_for_end(&self) -> StopReason {
        let mut stop = self.0.stop.clone();
        stop.wait_for(Option::is_some).await.ok().and_then(|stop| *stop).unwrap_or(StopReason::Other)
    }

    /// Asks somebody else to take over, and returns the outcome to the framework (§4.4.3). Frameworks have no callback for this, so the agent
    /// calls it itself. Dropping the returned future withdraws the request.
    ///
    /// ```
    /// # testing::run_example!(hub, {
    /// use sayso::callbacks::{Callbacks, SessionReporterBuilder};
    /// use sayso::{HandOff, HandOffOutcome, HandOffTarget};
    ///
    /// let (reporter, task) = SessionReporterBuilder::new(&hub).open();
    /// # let _task = tokio::spawn(task);
    /// reporter.on_chain_start("run-0", "Refund my order.")?;
    /// let hand_off = HandOff::new(HandOffTarget::Human, "The refund needs a person.");
    /// // Nobody is connected here who could take over.
    /// assert_eq!(reporter.hand_off(hand_off).await.unwrap(), HandOffOutcome::Unreachable);
    /// # });
    /// ```
    pub fn hand_off(&self, hand_off: HandOff) -> PendingAnswer<HandOffOutcome> {
        let (reply, outcome) = AnswerSender::channel();
        match self.enqueue(AgentStep::hand_off_and_wait(hand_off, reply)) {
            Ok(()) => outcome,
            Err(error) => PendingAnswer::denied(Denial::Error(error)),
        }
    }

    fn enqueue(&self, step: AgentStep) -> Result<(), Error> {
        self.0.queue.try_send(step).map_err(|error| match error {
            TrySendError::Full(_) => Error::LimitReached(LimitReached::Callbacks(CALLBACK_QUEUE_CAPACITY)),
            TrySendError::Closed(_) => Error::Stopped(self.0.stop.borrow().unwrap_or(StopReason::Other)),
        })
    }

    /// Handles the end of a chain. The end of the outer chain is the end of the session.
    fn end_chain(&self, run: &str, final_step: impl FnOnce() -> AgentStep) -> Result<(), Error> {
        let mut chains = self.0.chains.lock().unwrap_or_else(PoisonError::into_inner);
        if chains.outer.as_deref() == Some(run) {
            self.enqueue(final_step())
        } else if chains.nested.remove(run) {
            Ok(())
        } else {
            self.enqueue(AgentStep(StepKind::Fault(BridgeFault::NeverStarted(run.to_owned()))))
        }
    }
}

impl Callbacks for SessionReporter {
    fn on_chain_start(&self, run: &str, request: &str) -> Result<(), Error> {
        let mut chains = self.0.chains.lock().unwrap_or_else(PoisonError::into_inner);
        if chains.outer.is_none() {
            self.enqueue(AgentStep::start((self.0.config.start_session)(&or_default(
                &truncate_text(request),
                "A request without text.",
            ))))?;
            chains.outer = Some(run.to_owned());
        } else if chains.outer.as_deref() == Some(run) || chains.nested.contains(run) {
            self.enqueue(AgentStep(StepKind::Fault(BridgeFault::DuplicateRun(run.to_owned()))))?;
        } else if chains.nested.len() < MAX_NESTED_CHAINS {
            chains.nested.insert(run.to_owned());
        } else {
            return Err(Error::LimitReached(LimitReached::Chains(MAX_NESTED_CHAINS)));
        }
        Ok(())
    }

    fn on_chain_end(&self, run: &str, output: &str) -> Result<(), Error> {
        self.end_chain(run, || AgentStep::finish(or_default(&truncate_text(output), "Done.")))
    }

    fn on_chain_error(&self, run: &str, error: &str) -> Result<(), Error> {
        self.end_chain(run, || {
            AgentStep::fail(or_default(&truncate_text(error), "It failed for an unknown reason."))
        })
    }

    fn on_llm_start(&self, _run: &str, _prompt: &str) -> Result<(), Error> {
        self.enqueue(AgentStep(StepKind::ModelCall(self.0.config.thinking.clone())))
    }

    fn on_llm_new_token(&self, run: &str, token: &str) -> Result<(), Error> {
        self.enqueue(AgentStep(StepKind::Token { run: run.to_owned(), text: token.to_owned() }))
    }

    fn on_tool_start(&self, run: &str, tool: &str, input: &str) -> PendingAnswer<Permission> {
        let (reply, answer) = AnswerSender::channel();
        let step = match (self.0.config.plan_call)(tool, input) {
            ToolPlan::Unconfirmed(call) => AgentStep::announced_tool(run, call, reply),
            ToolPlan::Ask(action) => AgentStep::ask(run, *action, reply),
        };
        match self.enqueue(step) {
            Ok(()) => answer,
            Err(error) => PendingAnswer::denied(Denial::Error(error)),
        }
    }

    fn on_tool_end(&self, run: &str, output: &str) -> Result<(), Error> {
        self.enqueue(match &self.0.config.describe_result {
            None => AgentStep(StepKind::ToolSucceeded { run: run.to_owned(), summary: None }),
            Some(describe) => AgentStep::tool_succeeded(run, describe(output)),
        })
    }

    fn on_tool_error(&self, run: &str, error: &str) -> Result<(), Error> {
        self.enqueue(AgentStep::tool_failed(run, or_default(&truncate_text(error), "No reason was given.")))
    }
}

impl fmt::Debug for SessionReporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionReporter")
    }
}

fn or_default(text: &str, default: &str) -> String {
    if text.trim().is_empty() { default } else { text }.to_owned()
}

/// Returns the input if it is JSON, otherwise a JSON string with the input.
fn to_json(input: &str) -> String {
    if Tape::default().read(input).is_ok() {
        return input.to_owned();
    }
    let mut out = JsonWriter::default();
    out.text(input);
    out.finish()
}
