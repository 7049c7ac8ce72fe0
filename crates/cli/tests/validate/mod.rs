//! `sayso validate`: output, exit codes, options, limits and input formats.

mod bad_input;
mod check_order;
mod file_and_pipe_errors;
mod input_layout;
mod limits;
mod options;
mod output;
mod sample_events;
