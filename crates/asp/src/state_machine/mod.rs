//! The session state machine as data (D1): nine states, the facts that a transition may depend on, and one table of
//! rows.
//!
//! [`TransitionTable::evaluate`] is a pure function. Its arguments are the interpretation of "any state", a state, a trigger
//! (a performative, a timer or a broken chain) and the facts. It returns the row that applies, or a refusal.
//! [`crate::session::AspSession`] calls it and performs the actions of the row. The rows for one state and one trigger form
//! a cell of the table.
//!
//! The diagram and table in `docs/asp.md` are generated from the same rows. The tests check every cell, and a model
//! checker visits all reachable states.

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
