//! Attacks on the running binary. Each test is named after the promise that it checks; `docs/security.md` lists the promises.

mod connections;
mod consent;
#[cfg(feature = "grpc")]
mod grpc;
mod handoffs;
#[cfg(feature = "grpc")]
mod http2;
mod identity;
mod limits;
mod listening;
mod otlp;
mod serving;
mod several_agents;
mod shards;
mod storage;
