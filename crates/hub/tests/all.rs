//! All integration tests of the hub, in one program.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what went wrong by panicking"
)]

mod alike;
mod attacks;
mod clocks;
mod heard;
mod keeping;
mod life;
mod lines;
mod load;
mod simulation;
mod support;
mod survive;
mod time;
mod tongues;
mod turns;
mod words;
