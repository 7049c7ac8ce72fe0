//! The report of a bridge: how the session ended, and which faults occurred.

use crate::error::{Error, StopReason};

/// The maximum number of faults in a report. Further faults are only counted.
pub(super) const MAX_REPORTED_FAULTS: usize = 1024;

/// A mistake by the framework, or a rejection by the hub. The session continues.
///
/// ```
/// use sayso::bridge::BridgeFault;
/// let fault = BridgeFault::NeverStarted("run-7".to_owned());
/// assert_eq!(fault.to_string(), "run-7 ended but never started");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BridgeFault {
    /// The hub rejected the step. No part of it was reported.
    #[error("{step} was rejected: {error}")]
    Rejected {
        /// The name of the step.
        step: &'static str,
        /// The reason; [`Error::rule_ids`] returns the ids of violated rules.
        #[source]
        error: Error,
    },
    /// The step came before the session started.
    #[error("{0} came before the session started")]
    BeforeStart(&'static str),
    /// The session was started a second time.
    #[error("the session was started a second time")]
    AlreadyStarted,
    /// The step came after the session ended.
    #[error("{0} came after the session ended")]
    AfterEnd(&'static str),
    /// A tool or a chain started with the id of a run that is still open.
    #[error("{0} started again while it was still open")]
    DuplicateRun(String),
    /// A tool or a chain ended, but it is not open.
    #[error("{0} ended but never started")]
    NeverStarted(String),
    /// A tool ended a second time.
    #[error("{0} ended a second time")]
    AlreadyEnded(String),
    /// A tool ended, but was not permitted to run. The framework may have run it anyway.
    #[error("the tool in run {0} ended but was not permitted to run")]
    EndedWithoutPermission(String),
    /// A tool started and never ended. Listeners heard that its outcome is unknown.
    #[error("the tool in run {0} started but never ended")]
    NeverEnded(String),
    /// Nobody waited for the answer. The question was withdrawn, or the consent was not used.
    #[error("nobody waited for the answer that the tool in run {0} needs")]
    AnswerAbandoned(String),
}

impl BridgeFault {
    /// Returns the ids of the violated rules, if rules were violated.
    pub fn rule_ids(&self) -> impl Iterator<Item = &str> {
        let error = match self {
            Self::Rejected { error, .. } => Some(error),
            _ => None,
        };
        error.into_iter().flat_map(Error::rule_ids)
    }
}

/// How a bridged session ended.
///
/// ```
/// use sayso::bridge::BridgeEnding;
///
/// fn exit_code(ending: &BridgeEnding) -> u8 {
///     match ending {
///         BridgeEnding::ByAgent => 0,
///         BridgeEnding::Stopped(_) => 1,
///         _ => 2,
///     }
/// }
/// assert_eq!(exit_code(&BridgeEnding::Stalled), 2);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BridgeEnding {
    /// A step ended it: it was finished, failed or cancelled.
    ByAgent,
    /// The hub rejected the final event. Listeners heard that the session was ended because of that.
    FinalEventRejected(Error),
    /// The stream ended before the session. Listeners heard that the agent stopped before it was done.
    StreamEnded,
    /// No event arrived for too long. Listeners heard that the agent stopped before it was done.
    Stalled,
    /// Somebody other than the agent ended it, usually the person.
    Stopped(StopReason),
    /// No session was started.
    NeverStarted,
    /// The session could not be started.
    StartFailed(Error),
}

/// The result of a bridge.
///
/// ```
/// use futures_util::stream;
/// use sayso::bridge::{AgentStep, BridgeEnding, EventBridge};
///
/// # testing::run_example!({
/// let events = stream::empty::<()>();
/// let report = EventBridge::new().run(events, |()| [AgentStep::think("Never.")]).await;
/// assert_eq!(report.ending, BridgeEnding::NeverStarted);
/// assert!(report.faults.is_empty());
/// # });
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "the report contains the faults"]
pub struct BridgeReport {
    /// How the session ended.
    pub ending: BridgeEnding,
    /// The faults in order, at most 1024.
    pub faults: Vec<BridgeFault>,
    /// The number of further faults.
    pub omitted_faults: u64,
}

pub(crate) struct FaultLog {
    faults: Vec<BridgeFault>,
    omitted_faults: u64,
    pub(crate) on_fault: Option<Box<FaultCallback>>,
}

type FaultCallback = dyn FnMut(&BridgeFault) + Send;

impl FaultLog {
    pub(super) fn new() -> Self {
        Self { faults: Vec::new(), omitted_faults: 0, on_fault: None }
    }

    pub(super) fn add(&mut self, fault: BridgeFault) {
        if let Some(on_fault) = &mut self.on_fault {
            on_fault(&fault);
        }
        if self.faults.len() < MAX_REPORTED_FAULTS {
            self.faults.push(fault);
        } else {
            self.omitted_faults += 1;
        }
    }

    pub(super) fn into_report(self, ending: BridgeEnding) -> BridgeReport {
        BridgeReport { ending, faults: self.faults, omitted_faults: self.omitted_faults }
    }
}
