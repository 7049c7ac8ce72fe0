//! `sayso demo`, driven through its output and typed input.

mod bad_input;
mod demo_process;
mod exit;
mod scenarios;
mod typed_input;
mod welcome;
