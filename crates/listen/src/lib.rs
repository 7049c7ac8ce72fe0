//! Listening, for a person.
//!
//! - [`page`]: the listening page, which a hub serves.

pub mod page;
