//! Disputes about accepted commitments (D28).
//!
//! - [`sessions`]: sessions to complain about, and disputes about them.
//! - [`filing`]: who can file a dispute, about what, and with which evidence.
//! - [`decisions`]: which disputes are decided automatically, and how.
//! - [`resolutions`]: the register, the effect on trust, and JSON.

mod decisions;
mod filing;
mod resolutions;
mod sessions;
