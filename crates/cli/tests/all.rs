//! All tests of the binary, except those that need a custom harness, other programs or a special environment.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test reports a failure by panicking"
)]

#[cfg(unix)]
mod acp;
mod asp;
mod attacks;
mod check;
mod checklist;
mod demo;
#[cfg(unix)]
mod gate;
#[cfg(unix)]
mod listen;
mod manifest;
#[cfg(unix)]
mod mcp;
#[cfg(unix)]
mod personal_hub;
mod readme;
mod recordings;
#[cfg(unix)]
mod replay;
mod repository_files;
mod schema;
mod serve;
#[cfg(unix)]
mod setup;
mod shell;
mod usage;
mod validate;
