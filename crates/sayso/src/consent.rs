//! Consent as a value: the action that is asked for, the answer, and the one call that a yes allows.

mod action;
mod answer;
mod granted;
mod receipt;
#[cfg(test)]
mod tests;

pub(crate) use action::write_risk;
pub use action::{Action, Risk};
#[cfg(any(feature = "openai", feature = "rig"))]
pub(crate) use answer::format_refusal_for_model;
pub use answer::{Answer, ConsentRefusal, ResolvedBy};
pub use granted::Granted;
pub(crate) use receipt::SignedReceipt;
