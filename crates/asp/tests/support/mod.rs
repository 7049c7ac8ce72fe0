//! What the tests against bad input, of participants and of transcripts share.
//!
//! - [`json`]: JSON that can be changed member by member, however wrong it is.
//! - [`forge`]: signs any envelope, rightly or wrongly.
//! - [`cast`]: agents, their keys and cards.
//! - [`bodies`]: one lawful body of each kind.
//! - [`scene`]: a record that is fed forged messages, and must not change by those it refuses.

pub(crate) mod bodies;
pub(crate) mod cast;
pub(crate) mod forge;
pub(crate) mod json;
pub(crate) mod scene;
