//! Turns callbacks into steps.

use std::collections::HashSet;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use seal::json::{Tape, Writer};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};

use super::Callbacks;
use crate::bridge::{Allowed, Bridge, Denied, Ending, Fault, Gate, Kind, Reply, Report, Step, Unasked};
use crate::consent::Action;
use crate::error::{Error, Stop, TooMuch};
use crate::hub::Hub;
use crate::session::{SessionBuilder, short};
use crate::words::Words;

/// So many callbacks may wait to be told; the next is refused with [`Error::TooMuch`].
///
/// ```
/// assert_eq!(sayso::callbacks::QUEUE, 16_384);
/// ```
pub const QUEUE: usize = 16_384;

/// So many chains inside the chain are known at once.
const CHAINS: usize = 1024;

/// How a call of a tool is to be made.
///
/// ```
/// use sayso::Action;
/// use sayso::bridge::Unasked;
/// use sayso::callbacks::Plan;
///
/// fn plan(tool: &str, input: &str) -> Plan {
///     match tool {
///         "weather" => Unasked::new(tool).says(format!("Asking for the weather in {input}.")).into(),
///         _ => Action::new(tool, input).says("Send money.").consequence("It is gone at once.").irreversible().into(),
///     }
/// }
/// assert!(matches!(plan("weather", "Oslo"), Plan::Unasked(_)));
/// ```
#[derive(Debug)]
pub enum Plan {
    /// Without asking.
    Unasked(Unasked),
    /// On the person's yes only.
    Ask(Box<Action>),
}

impl From<Unasked> for Plan {
    fn from(call: Unasked) -> Self {
        Self::Unasked(call)
    }
}

impl From<Action> for Plan {
    fn from(action: Action) -> Self {
        Self::Ask(Box::new(action))
    }
}

impl Plan {
    /// For a tool of which nothing is known: the person is asked.
    pub fn unknown(tool: &str, input: &str) -> Self {
        let says = format!("Use {tool} with: {}", short(input));
        let consequence = "What comes of it is not known. It may not be possible to undo it.";
        Action::new(tool, json(input)).says(says).consequence(consequence).into()
    }
}

type Plans = dyn Fn(&str, &str) -> Plan + Send + Sync;
type Begins = dyn Fn(&str) -> SessionBuilder + Send + Sync;
type Results = dyn Fn(&str) -> Words + Send + Sync;

/// A narrator that is being made.
///
/// ```
/// use std::time::Duration;
/// use sayso::callbacks::Narration;
///
/// let hub = sayso::Hub::embedded().agent("bank").open()?;
/// let (narrator, telling) = Narration::on(&hub)
///     .thinking("The assistant thinks.")
///     .silence(Duration::from_secs(60))
///     .on_fault(|fault| eprintln!("{fault}"))
///     .open();
/// # let _ = (narrator, telling);
/// # Ok::<(), sayso::Error>(())
/// ```
#[must_use = "nothing is told before it is opened"]
pub struct Narration {
    wording: Wording,
    bridge: Bridge,
}

/// How the narrator puts callbacks into words.
struct Wording {
    begins: Box<Begins>,
    plans: Box<Plans>,
    results: Option<Box<Results>>,
    thinking: Words,
}

impl Narration {
    /// On this hub.
    pub fn on(hub: &Hub) -> Self {
        let hub = hub.clone();
        let wording = Wording {
            begins: Box::new(move |request| hub.session(request)),
            plans: Box::new(Plan::unknown),
            results: None,
            thinking: Words::new("Thinking."),
        };
        Self { wording, bridge: Bridge::new() }
    }

    setters! {
        /// Begins the session so, for what the person asked: in another language, or for a certain person.
        begins(begins: impl Fn(&str) -> SessionBuilder + Send + Sync + 'static) => wording.begins = Box::new(begins);

        /// Says for a tool and its input whether the person is asked, and in which words. Without it every call is asked for.
        tools(plans: impl Fn(&str, &str) -> Plan + Send + Sync + 'static) => wording.plans = Box::new(plans);

        /// What is said of a tool's output. Without it only that the tool is done: an output may be anything, of any length.
        results(words: impl Fn(&str) -> Words + Send + Sync + 'static) => wording.results = Some(Box::new(words));

        /// What is said when a model is asked.
        thinking(words: impl Into<Words>) => wording.thinking = words.into();

        /// For how long the framework may be silent: ten minutes if nothing is said. While a person is asked the clock stands
        /// still.
        silence(limit: Duration) => bridge.silence = limit;

        /// Tells every fault at once; the report has them too.
        on_fault(tell: impl FnMut(&Fault) + Send + 'static) => bridge.notes.tell = Some(Box::new(tell));
    }

    /// The narrator, for the framework, and what tells the session, for a runtime of tokio to run.
    pub fn open(self) -> (Narrator, Telling) {
        let (queue, steps) = mpsc::channel(QUEUE);
        let (end, over) = watch::channel(None);
        let bridge = self.bridge;
        let telling = Box::pin(async move {
            let report = bridge.run_steps(steps).await;
            let stop = match report.ending {
                Ending::Stopped(stop) => stop,
                _ => Stop::Other,
            };
            end.send_replace(Some(stop));
            report
        });
        let inner = Inner { queue, over, wording: self.wording, chains: Mutex::default() };
        (Narrator(Arc::new(inner)), telling)
    }
}

debug_tuple!(Narration, bridge);

/// Tells the session to its end. It must be run, most simply by `tokio::spawn`; else nothing is told and no tool is allowed.
/// If it is dropped, the session is ended as left in the middle.
///
/// ```
/// # testing::example!(hub, {
/// use sayso::callbacks::{Narration, Telling};
/// let (narrator, telling): (_, Telling) = Narration::on(&hub).open();
/// let telling = tokio::spawn(telling);
/// # drop(narrator);
/// for fault in telling.await.unwrap().faults {
///     eprintln!("{fault}");
/// }
/// # });
/// ```
pub type Telling = Pin<Box<dyn Future<Output = Report> + Send>>;

/// Tells one session by callbacks: one request of a person, from the start of a chain to its end. Clones are the same.
/// See [the module](super).
///
/// ```
/// # testing::example!(hub, {
/// use sayso::Error;
/// use sayso::callbacks::{Callbacks, Narration, Narrator};
///
/// fn streamed(narrator: &Narrator, tokens: &[&str]) -> Result<(), Error> {
///     tokens.iter().try_for_each(|token| narrator.on_llm_new_token("run-1", token))
/// }
/// let (narrator, telling) = Narration::on(&hub).open();
/// # let _telling = tokio::spawn(telling);
/// narrator.on_chain_start("run-0", "Do I need an umbrella?")?;
/// streamed(&narrator, &["Yes, ta", "ke one."])?;
/// # });
/// ```
#[derive(Clone)]
pub struct Narrator(Arc<Inner>);

struct Inner {
    queue: mpsc::Sender<Step>,
    over: watch::Receiver<Option<Stop>>,
    wording: Wording,
    chains: Mutex<Chains>,
}

/// The chain that is the session, and those inside it.
#[derive(Default)]
struct Chains {
    outer: Option<String>,
    inner: HashSet<String>,
}

impl Narrator {
    /// Waits until the session is over. If the person stopped it, whatever the framework does should be dropped.
    pub async fn stopped(&self) -> Stop {
        let mut over = self.0.over.clone();
        over.wait_for(Option::is_some).await.ok().and_then(|stop| *stop).unwrap_or(Stop::Other)
    }

    fn hand_over(&self, step: Step) -> Result<(), Error> {
        self.0.queue.try_send(step).map_err(|error| match error {
            TrySendError::Full(_) => Error::TooMuch(TooMuch::Callbacks(QUEUE)),
            TrySendError::Closed(_) => Error::Stopped(self.0.over.borrow().unwrap_or(Stop::Other)),
        })
    }

    /// The end of a chain is the session's, if it is the outer one.
    fn chain_ended(&self, run: &str, last: impl FnOnce() -> Step) -> Result<(), Error> {
        let mut chains = self.0.chains.lock().unwrap_or_else(PoisonError::into_inner);
        if chains.outer.as_deref() == Some(run) {
            self.hand_over(last())
        } else if chains.inner.remove(run) {
            Ok(())
        } else {
            self.hand_over(Step(Kind::Fault(Fault::NeverStarted(run.to_owned()))))
        }
    }
}

impl Callbacks for Narrator {
    fn on_chain_start(&self, run: &str, request: &str) -> Result<(), Error> {
        let mut chains = self.0.chains.lock().unwrap_or_else(PoisonError::into_inner);
        if chains.outer.is_none() {
            self.hand_over(Step::start((self.0.wording.begins)(&or(
                &short(request),
                "A request without words.",
            ))))?;
            chains.outer = Some(run.to_owned());
        } else if chains.outer.as_deref() == Some(run) || chains.inner.contains(run) {
            self.hand_over(Step(Kind::Fault(Fault::SameRun(run.to_owned()))))?;
        } else if chains.inner.len() < CHAINS {
            chains.inner.insert(run.to_owned());
        } else {
            return Err(Error::TooMuch(TooMuch::Chains(CHAINS)));
        }
        Ok(())
    }

    fn on_chain_end(&self, run: &str, output: &str) -> Result<(), Error> {
        self.chain_ended(run, || Step::finish(or(&short(output), "Done.")))
    }

    fn on_chain_error(&self, run: &str, error: &str) -> Result<(), Error> {
        self.chain_ended(run, || Step::fail(or(&short(error), "It failed, and it is not known why.")))
    }

    fn on_llm_start(&self, _run: &str, _prompt: &str) -> Result<(), Error> {
        self.hand_over(Step(Kind::Model(self.0.wording.thinking.clone())))
    }

    fn on_llm_new_token(&self, run: &str, token: &str) -> Result<(), Error> {
        self.hand_over(Step(Kind::Token { run: run.to_owned(), text: token.to_owned() }))
    }

    fn on_tool_start(&self, run: &str, tool: &str, input: &str) -> Gate<Allowed> {
        let (reply, gate) = Reply::gate();
        let step = match (self.0.wording.plans)(tool, input) {
            Plan::Unasked(call) => Step::gated(run, call, reply),
            Plan::Ask(action) => Step::ask(run, *action, reply),
        };
        match self.hand_over(step) {
            Ok(()) => gate,
            Err(error) => Gate::denied(Denied::Error(error)),
        }
    }

    fn on_tool_end(&self, run: &str, output: &str) -> Result<(), Error> {
        self.hand_over(match &self.0.wording.results {
            None => Step(Kind::Done { run: run.to_owned(), words: None }),
            Some(words) => Step::done(run, words(output)),
        })
    }

    fn on_tool_error(&self, run: &str, error: &str) -> Result<(), Error> {
        self.hand_over(Step::failed(run, or(&short(error), "No reason was given.")))
    }
}

impl fmt::Debug for Narrator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Narrator")
    }
}

fn or(text: &str, other: &str) -> String {
    if text.trim().is_empty() { other } else { text }.to_owned()
}

/// Itself if it is JSON; else as a text in JSON.
fn json(input: &str) -> String {
    if Tape::default().read(input).is_ok() {
        return input.to_owned();
    }
    let mut out = Writer::default();
    out.text(input);
    out.finish()
}
