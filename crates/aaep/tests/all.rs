//! All integration tests of AAEP's values and machines but those against the published schemas.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what went wrong by panicking"
)]

mod answers;
mod consent;
mod manifest;
mod mutations;
mod negotiate;
mod presumption;
mod properties;
mod receive;
mod session;
mod shape;
mod shape_properties;
mod shape_text;
mod support;
