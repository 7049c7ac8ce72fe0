//! Attacks on the running binary. Each test is named after the promise that it checks; `docs/security.md` lists the promises.

mod connections;
mod consent;
mod identity;
mod limits;
mod listening;
mod serving;
mod several_agents;
mod storage;
