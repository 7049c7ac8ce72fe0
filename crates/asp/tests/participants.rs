//! Two participants: whole lives, refusals that stand outside the machine (D6), races (D8), and bad networks.

mod life;
mod network;
mod pair;
mod races;
mod refusals;
