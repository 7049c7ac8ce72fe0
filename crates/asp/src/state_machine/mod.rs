//! The session state machine as data (D1): nine states, the facts that a transition may depend on, and one table of
//! rows.
//!
//! [`TransitionTable::evaluate`] is a pure function. It returns what the table says for one trigger (a performative, a
//! timer or a broken chain) in one state under given facts. [`crate::session::AspSession`] calls it and performs the
//! result. The diagram and table in the documentation are generated from the same rows. The tests check every cell, and
//! an exhaustive model checks all reachable states.

mod facts;
mod state;
mod table;
mod transitions;

pub use facts::{Fact, Facts};
pub use state::{AnyStateInterpretation, Role, State, Timer};
pub use table::{
    Evaluation, Requirement, TransitionAction, TransitionRow, TransitionTable, TransitionTarget, Trigger,
};
pub use transitions::PROTOCOL_TABLE;
