//! Shared test support: a hub with a listener, and a chat completions endpoint.

#[cfg(any(feature = "openai", feature = "rig-http"))]
#[allow(dead_code, reason = "the tests of each feature use only a part of it")]
pub(crate) mod endpoint;
pub(crate) mod fixture;
