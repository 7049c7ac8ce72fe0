//! What came of a session: how it ended, and who kept and who broke what.

use seal::UnixMillis;

use crate::commitment::Commitment;
use crate::machine::{Role, Timer};
use crate::message::Obligation;

/// How a session ended, and what became of what was promised.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Outcome {
    /// How.
    pub ending: Ending,
    /// When.
    pub at: UnixMillis,
    /// In the words of the message that ended it, or ours.
    pub reason: String,
    /// The commitment that was pending or agreed, with its final status.
    pub commitment: Option<Commitment>,
    /// Each obligation of an agreement, and what became of it.
    pub obligations: Vec<(Obligation, Fate)>,
    /// Who broke the agreement.
    pub broken_by: Vec<Role>,
    /// Who gets the money that was held, where there was some.
    pub escrow_to: Option<Payee>,
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Ending {
    /// Both sides closed after an agreement: both confirm that all is done.
    Completed,
    /// One side closed.
    Closed(Role),
    /// One side closed without waiting for the other, with an agreement standing (D4).
    Unilateral(Role),
    /// One side withdrew (D5).
    Withdrawn(Role),
    /// The invitation was rejected.
    Rejected(Role),
    /// Time ran out.
    TimedOut(Timer),
    /// One side told of an error that cannot be recovered (D7).
    Fatal(Role),
    /// A link was none (D7).
    BrokenChain,
}

seal::word_enum! {
    /// What became of an obligation.
    Fate word {
        /// Done, and in time.
        Kept "kept",
        /// Done, but after its deadline.
        Late "kept late",
        /// Not done, by the fault of its party.
        Broken "broken",
        /// Not done when the session ended, by nobody's fault that the session can see.
        Open "left open",
    }
}

/// Who gets the money. The side that sent the COMMIT pays it in; for the other it is the pay for its work, or, where it has
/// none to do, what it gets if the depositor breaks his promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Payee {
    /// Back to the side that paid it in.
    Depositor,
    /// To the other side.
    Beneficiary,
}
