//! All tests of the binary but those that need a harness, programs or an environment of their own.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what went wrong by panicking"
)]

mod asp;
mod checklist;
mod demo;
#[cfg(unix)]
mod listen;
mod manifest;
mod readme;
mod recordings;
#[cfg(unix)]
mod replay;
mod schema;
mod serve;
mod test_files;
mod usage;
mod validate;
