//! What the tests against bad input, of participants and of transcripts share.
//!
//! - [`cases`]: how many random cases, and which.
//! - [`json`]: JSON that can be changed member by member, however wrong it is.
//! - [`forge`]: signs any envelope, rightly or wrongly.
//! - [`cast`]: agents, their keys and cards.
//! - [`bodies`]: one lawful body of each kind.
//! - [`scene`]: a record that is fed forged messages, and must not change by those it refuses.

#![allow(dead_code, reason = "each test file uses a part of this")]
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what went wrong by panicking"
)]

pub(crate) mod bodies;
pub(crate) mod cases;
pub(crate) mod cast;
pub(crate) mod forge;
pub(crate) mod json;
pub(crate) mod scene;
