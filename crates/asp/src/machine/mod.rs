//! The session machine as data (D1): nine states, the facts that a move may depend on, and one table of rows.
//!
//! [`Table::answer`] says what a table makes of one cell: a performative, a timer or a broken chain, in a state, under
//! facts. It is a pure function; [`crate::session::Session`] feeds it and does what it says. The documents' diagram and
//! table, the tests of every cell and the exhaustive model are made from the same rows.

mod facts;
mod page;
mod state;
mod table;

pub use facts::{Fact, Facts};
pub use page::PAGE;
pub use state::{Reading, Role, State, Timer};
pub use table::{Answer, Do, Need, On, Row, Table, Then};
