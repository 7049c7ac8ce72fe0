//! Trust in other agents, computed by this side from its own history (D25), and the limits that depend on it (D26).
//!
//! - [`TrustEvent`]: one fact about a peer. The caller stores each event and passes it to [`TrustBook::record`].
//! - [`TrustBook`]: the aggregated history of all peers, with a bounded amount of memory per peer. Replaying the stored events
//!   gives an equal book.
//! - [`TrustParameters`]: every constant of the computation.
//! - [`TrustReport`]: the components of a score and the events that they come from.
//! - [`SignedEndorsement`]: a statement of an agent that it endorses another one.
//! - [`PeerLimits`] and [`TokenBucket`]: rate limits by trust level.
//! - [`CircuitBreaker`]: stops calls to peers that do not answer.
//!
//! An agent's claims about itself have no effect: no event contains a score that the peer declared for itself (D20).

mod book;
mod circuit_breaker;
mod component;
mod effects;
mod endorsements;
mod event;
mod event_json;
mod evidence;
mod history;
mod level;
mod parameters;
mod rate_limit;
mod report;
mod signed_endorsement;

pub use book::TrustBook;
pub use circuit_breaker::{CircuitBreaker, CircuitBreakerParameters, CircuitOpen, CircuitState};
pub use component::{ComponentValues, TrustComponent};
pub use effects::{DEFAULT_EFFECTS, EffectRow};
pub use event::{TrustEvent, TrustEventKind, TrustEventName};
pub use level::TrustLevel;
pub use parameters::{TrustParameters, TrustParametersError};
pub use rate_limit::{LevelLimits, PeerLimits, RateLimited, TokenBucket};
pub use report::{ComponentReport, EndorsementReport, EventSummary, TrustReport};
pub use signed_endorsement::{EndorsementError, SignedEndorsement};

pub use crate::message::TrustScore;
