//! Tests with two participants: complete sessions, refusals outside the state machine (D6), races (D8), restarts and
//! unreliable networks.

mod lifecycle;
mod participant_pair;
mod races;
mod refusals;
mod restart;
mod taking_over;
mod unreliable_network;
