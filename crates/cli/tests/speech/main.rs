//! `sayso listen --speech`: commands to speech-dispatcher, the fallback to espeak-ng, and the audible result.

#![cfg(unix)]
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test reports a failure by panicking"
)]

mod announcement_order;
mod audible_session;
mod audio_lab;
mod audio_samples;
mod dispatcher_loss;
mod fake_dispatcher;
mod silence_and_rate;
