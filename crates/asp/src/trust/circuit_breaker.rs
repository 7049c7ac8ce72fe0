//! A circuit breaker for peers that do not answer.

use seal::UnixMillis;
use thiserror::Error;

seal::defaults! {
    /// The parameters of a circuit breaker (D26).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct CircuitBreakerParameters {
        /// The number of consecutive failures that open the circuit.
        pub failure_threshold: u32 = 5,
        /// How long the circuit stays open the first time, in milliseconds. The time doubles with every failed trial.
        pub open_ms: i64 = 30_000,
        /// Maximum time that the circuit stays open, in milliseconds.
        pub max_open_ms: i64 = 600_000,
        /// How long a trial call may take before another one is allowed, in milliseconds.
        pub trial_timeout_ms: i64 = 60_000,
    }
}

/// The state of a circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CircuitState {
    /// Calls are allowed.
    Closed,
    /// No calls are allowed before this time.
    Open {
        /// When a trial call is allowed.
        until: UnixMillis,
    },
    /// One trial call is allowed, or is under way. Its result closes or opens the circuit.
    HalfOpen,
}

/// The call is not allowed now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the peer does not answer; no call is made until {retry_at}")]
pub struct CircuitOpen {
    /// When to try again.
    pub retry_at: UnixMillis,
}

/// Stops calls to a peer that does not answer. Ask [`Self::try_call`] before each call, and report each result.
///
/// ```text
/// closed --failures reach the threshold--> open --time passes, trial call--> half-open
///    ^                                      ^                                 |    |
///    |                                      +------------- failure -----------+    |
///    +----------------------------------------------------- success ---------------+
/// ```
///
/// ```
/// use asp::trust::{CircuitBreaker, CircuitBreakerParameters};
/// use seal::UnixMillis;
/// let parameters = CircuitBreakerParameters { failure_threshold: 1, ..Default::default() };
/// let mut breaker = CircuitBreaker::new(parameters);
/// breaker.record_failure(UnixMillis::new(0));
/// assert_eq!(breaker.try_call(UnixMillis::new(1)).unwrap_err().retry_at, UnixMillis::new(30_000));
/// assert!(breaker.try_call(UnixMillis::new(30_000)).is_ok());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CircuitBreaker {
    parameters: CircuitBreakerParameters,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Closed {
        failures: u32,
    },
    Open {
        until: UnixMillis,
        open_ms: i64,
    },
    /// A trial call is under way.
    Trial {
        started_at: UnixMillis,
        open_ms: i64,
    },
}

impl CircuitBreaker {
    /// Creates a closed circuit breaker.
    pub fn new(parameters: CircuitBreakerParameters) -> Self {
        Self { parameters, phase: Phase::Closed { failures: 0 } }
    }

    /// Asks whether a call is allowed. If the circuit was open long enough, this starts the trial call.
    pub fn try_call(&mut self, now: UnixMillis) -> Result<(), CircuitOpen> {
        match self.phase {
            Phase::Closed { .. } => Ok(()),
            Phase::Open { until, .. } if now < until => Err(CircuitOpen { retry_at: until }),
            Phase::Trial { started_at, .. } if now < self.trial_deadline(started_at) => {
                Err(CircuitOpen { retry_at: self.trial_deadline(started_at) })
            }
            Phase::Open { open_ms, .. } | Phase::Trial { open_ms, .. } => {
                self.phase = Phase::Trial { started_at: now, open_ms };
                Ok(())
            }
        }
    }

    /// Reports that the peer answered. Any answer counts, including a refusal.
    pub fn record_success(&mut self) {
        self.phase = Phase::Closed { failures: 0 };
    }

    /// Reports that the peer did not answer. While the circuit is open, this changes nothing: the call began earlier.
    pub fn record_failure(&mut self, now: UnixMillis) {
        self.phase = match self.phase {
            Phase::Closed { failures } => {
                let failures = failures.saturating_add(1);
                if failures < self.parameters.failure_threshold {
                    Phase::Closed { failures }
                } else {
                    self.open(now, self.parameters.open_ms)
                }
            }
            Phase::Open { .. } => return,
            Phase::Trial { open_ms, .. } => self.open(now, open_ms.saturating_mul(2)),
        };
    }

    /// Returns the state.
    pub fn state(&self, now: UnixMillis) -> CircuitState {
        match self.phase {
            Phase::Closed { .. } => CircuitState::Closed,
            Phase::Open { until, .. } if now < until => CircuitState::Open { until },
            Phase::Open { .. } | Phase::Trial { .. } => CircuitState::HalfOpen,
        }
    }

    fn open(&self, now: UnixMillis, open_ms: i64) -> Phase {
        let open_ms = open_ms.min(self.parameters.max_open_ms);
        Phase::Open { until: now.saturating_add(open_ms), open_ms }
    }

    fn trial_deadline(&self, started_at: UnixMillis) -> UnixMillis {
        started_at.saturating_add(self.parameters.trial_timeout_ms)
    }
}
