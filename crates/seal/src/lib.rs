//! What both protocols stand on: JSON read and written byte for byte, points in time, and proof.
//!
//! - [`json`]: RFC 8259 read without copying, and nothing lost.
//! - [`Timestamp`]: RFC 3339, as it was written.
//!
//! There is no clock here and no source of randomness: both come in as arguments.

pub mod json;
mod random;
mod timestamp;

pub use random::Random;
pub use timestamp::{Timestamp, TimestampError};
