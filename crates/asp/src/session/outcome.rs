//! The outcome of a session.

use seal::UnixMillis;

use crate::commitment::Commitment;
use crate::message::Obligation;
use crate::state_machine::{Role, Timer};

/// The outcome of a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionOutcome {
    /// How it ended.
    pub ending: SessionEnding,
    /// When it ended.
    pub ended_at: UnixMillis,
    /// The reason from the message that ended the session, or a generated text if there is none.
    pub reason: String,
    /// The pending or agreed commitment, with its final status.
    pub commitment: Option<Commitment>,
    /// Each obligation of an agreement, with its outcome.
    pub obligations: Vec<(Obligation, ObligationOutcome)>,
    /// The sides that broke the agreement.
    pub broken_by: Vec<Role>,
    /// The side that receives the escrow, if there was one.
    pub escrow_payee: Option<Payee>,
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SessionEnding {
    /// Both sides closed after an agreement. The outcome of each obligation says whether it was fulfilled (D22).
    Completed,
    /// One side closed.
    Closed(Role),
    /// One side closed without waiting for the other, while an agreement was in force (D4).
    Unilateral(Role),
    /// One side withdrew (D5).
    Withdrawn(Role),
    /// One side rejected the invitation.
    Rejected(Role),
    /// A timer expired.
    TimedOut(Timer),
    /// One side reported an unrecoverable error (D7).
    Fatal(Role),
    /// A message links to an unknown hash (D7).
    BrokenChain,
}

seal::string_enum! {
    /// The outcome of an obligation, from the best to the worst (D22).
    ObligationOutcome {
        /// Fulfilled in time.
        Fulfilled "fulfilled",
        /// Fulfilled after its deadline.
        Late "fulfilled late",
        /// Either no result was reported, the obligation was not overdue and its party did not end the session; or a result was
        /// reported that the other side could neither accept nor contest before the session ended.
        Open "open",
        /// The other side contested its result (D22).
        Contested "contested",
        /// Not fulfilled, and its party is responsible.
        Broken "broken",
    }
}

/// The side that receives the escrow.
///
/// The depositor is the side that sent the COMMIT. The other side, the beneficiary, gets the escrow as payment if it kept its
/// obligations, or as compensation if the depositor left. A beneficiary without obligations gets it only if the depositor breaks
/// the agreement. Otherwise the escrow returns to the depositor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Payee {
    /// The side that sent the COMMIT.
    Depositor,
    /// The other side.
    Beneficiary,
}
