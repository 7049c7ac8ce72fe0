//! `sayso acp`: the gate between an editor and an agent.

mod actors;
mod faults;
mod kill;
mod narration;
mod permissions;
mod personal_hub;
mod sdk;
