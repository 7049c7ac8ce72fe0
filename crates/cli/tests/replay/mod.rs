//! `sayso capture` and `sayso replay`: the real binary with the real hub and with the repository's recordings.

mod bad_input;
mod capture;
mod capture_interruptions;
mod capture_process;
mod capture_resume;
mod every_event;
mod replay_server;
mod replay_terminal;
mod trace_and_svg;
