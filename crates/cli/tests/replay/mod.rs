//! `sayso capture` and `sayso replay`: the real binary against the real hub, and recordings of the repository.

mod bad_input;
mod captured;
mod drawn;
mod lost;
mod onward;
mod recorder;
mod served;
mod told;
