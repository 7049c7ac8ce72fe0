//! `sayso serve`, driven as its users do: agents and listeners over HTTP, against the real binary.

mod abuse;
mod addresses;
mod agent_api;
mod agent_ws;
mod author;
mod compat;
mod config;
mod crash;
mod damaged;
mod demo;
mod dialect;
#[cfg(target_os = "linux")]
mod disk;
mod durable;
mod floods;
mod killed;
mod life;
mod limits;
mod manifest;
mod observe;
mod orphans;
mod page;
mod reload;
mod shell;
mod sign_in;
mod slow;
mod stdio;
mod threats;
mod tls;
mod tokens;
mod unix;
mod websocket;
mod withdrawn;
mod words;
