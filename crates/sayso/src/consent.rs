//! Consent as a value: what is asked, what is answered, and the one call that a yes allows.

mod action;
mod answer;
mod granted;
#[cfg(test)]
mod tests;

pub(crate) use action::danger;
pub use action::{Action, Risk};
#[cfg(any(feature = "openai", feature = "rig"))]
pub(crate) use answer::told_to_model;
pub use answer::{Answer, By, Refused};
pub use granted::Granted;
