//! What the author of a bridge learns: how the session ended, and what was wrong on the way.

use crate::error::{Error, Stop};

/// So many faults are kept for the report; the others are counted.
pub(super) const FAULTS: usize = 1024;

/// Something that the native side got wrong, or that the hub refused. The session goes on.
///
/// ```
/// use sayso::bridge::Fault;
/// let fault = Fault::NeverStarted("run-7".to_owned());
/// assert_eq!(fault.to_string(), "run-7 ended, and had never started");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The hub refused it; nothing of it was told.
    #[error("{step} was refused: {error}")]
    Refused {
        /// What was to be said.
        step: &'static str,
        /// Why it was not; [`Error::rules`] has the ids of the rules.
        #[source]
        error: Error,
    },
    /// This came before the session was started.
    #[error("{0} came before the session's start")]
    BeforeStart(&'static str),
    /// The session was started though it had been.
    #[error("the session was started though it had been")]
    StartedAgain,
    /// This came after the session's end.
    #[error("{0} came after the session's end")]
    AfterEnd(&'static str),
    /// A tool or a chain started under the name of a run that is open.
    #[error("{0} started, and is open already")]
    SameRun(String),
    /// A tool ended that never started, or a chain that is not open.
    #[error("{0} ended, and had never started")]
    NeverStarted(String),
    /// A tool ended that had ended.
    #[error("{0} ended, and had ended before")]
    EndedAgain(String),
    /// A tool ended that was not allowed to run: somebody may have run it all the same.
    #[error("the tool of {0} ended, and was not allowed to run")]
    NotAllowed(String),
    /// A tool started and never ended; listeners were told that its end is not known.
    #[error("the tool of {0} started and never ended")]
    NeverEnded(String),
    /// Nobody waited for the answer any more: the question was taken back, or the yes was not used.
    #[error("nobody waited for the answer that the tool of {0} needs")]
    NobodyWaited(String),
}

impl Fault {
    /// The ids of the rules that are broken, if that is why.
    pub fn rules(&self) -> impl Iterator<Item = &str> {
        let error = match self {
            Self::Refused { error, .. } => Some(error),
            _ => None,
        };
        error.into_iter().flat_map(Error::rules)
    }
}

/// How it ended.
///
/// ```
/// use sayso::bridge::Ending;
///
/// fn exit_code(ending: &Ending) -> u8 {
///     match ending {
///         Ending::AsSaid => 0,
///         Ending::Stopped(_) => 1,
///         _ => 2,
///     }
/// }
/// assert_eq!(exit_code(&Ending::Stalled), 2);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// By the agent's own word: it finished, failed or cancelled.
    AsSaid,
    /// The agent's last word was refused; listeners were told that the session ended in a way that breaks the rules.
    Refused(Error),
    /// The events ended before the session did; listeners were told that the agent stopped in the middle.
    Early,
    /// No event came for too long; listeners were told that the agent stopped in the middle.
    Stalled,
    /// By another's word: the person stopped it, most of all.
    Stopped(Stop),
    /// There was no session.
    NeverStarted,
    /// There was no session, for the hub refused it.
    NotStarted(Error),
}

/// What came of it all.
///
/// ```
/// use futures_util::stream;
/// use sayso::bridge::{Bridge, Ending, Step};
///
/// # testing::example!({
/// let nothing = stream::empty::<()>();
/// let report = Bridge::new().run(nothing, |()| [Step::think("Never.")]).await;
/// assert_eq!(report.ending, Ending::NeverStarted);
/// assert!(report.faults.is_empty());
/// # });
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "it says what was wrong"]
pub struct Report {
    /// How it ended.
    pub ending: Ending,
    /// What was wrong on the way, in order, up to 1024.
    pub faults: Vec<Fault>,
    /// How many faults more there were.
    pub left_out: u64,
}

pub(crate) struct Notes {
    faults: Vec<Fault>,
    left_out: u64,
    pub(crate) tell: Option<Box<Tell>>,
}

type Tell = dyn FnMut(&Fault) + Send;

impl Notes {
    pub(super) fn new() -> Self {
        Self { faults: Vec::new(), left_out: 0, tell: None }
    }

    pub(super) fn add(&mut self, fault: Fault) {
        if let Some(tell) = &mut self.tell {
            tell(&fault);
        }
        if self.faults.len() < FAULTS {
            self.faults.push(fault);
        } else {
            self.left_out += 1;
        }
    }

    pub(super) fn report(self, ending: Ending) -> Report {
        Report { ending, faults: self.faults, left_out: self.left_out }
    }
}
