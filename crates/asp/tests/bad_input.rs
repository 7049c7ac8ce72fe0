//! What a session makes of bad input: each has its refusal with its code, or is dropped, and nothing changes by it.

mod bodies;
mod cards;
mod chain;
mod envelope;
mod forger;
mod json;
mod limits;
mod promises;
mod proofs;
mod strangers;
