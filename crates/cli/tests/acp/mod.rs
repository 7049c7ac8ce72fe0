//! `sayso acp`: the gate between an editor and an agent.

mod actors;
mod faults;
mod narration;
mod permissions;
