//! `sayso validate`: output, exit codes, options, limits and input formats.

mod bad_input;
mod check_order;
mod file_and_pipe_errors;
mod finding_groups;
mod input_layout;
mod limits;
mod options;
mod output;
#[cfg(unix)]
mod progress;
mod sample_events;
