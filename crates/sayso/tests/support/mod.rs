//! What the tests share: a hub with a person who listens, and an endpoint that speaks chat completions.

#[cfg(any(feature = "openai", feature = "rig-http"))]
#[allow(dead_code, reason = "the tests of each feature use a part of it")]
pub(crate) mod endpoint;
pub(crate) mod stage;
