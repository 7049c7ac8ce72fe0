//! Attacks on a running hub, each named after the promise that stops it. `docs/security.md` lists the promises.

mod connections;
mod consent;
mod identity;
mod limits;
mod listening;
mod serving;
mod storage;
