//! `sayso validate`, as whoever runs it sees it.

mod bad_input;
mod events;
mod layout;
mod limits;
mod options;
mod output;
mod streams;
