//! `sayso listen`, driven in a pseudo-terminal against the real hub.

mod answers;
mod bare;
mod connection;
mod fake;
mod hostile;
mod kept;
mod manifests;
mod offers;
mod scripts;
mod tongues;
mod whole;
