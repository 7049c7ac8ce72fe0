//! The configuration of `sayso serve`: every setting and every limit, each under one key.
//!
//! - `keys`: the one table of keys. Flags, names in the environment, the reader of files and the documentation come from it.
//! - `value`: how a value is written, and read.
//! - `layers`: where values come from, the weakest first: default, file, environment, flag.
//! - `file`: a file's keys with their lines.
//! - `print`: what is in force, and what there is.

mod file;
mod keys;
mod layers;
mod print;
mod value;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::demo;
pub(super) use layers::{Flags, Loaded};
pub(super) use print::list;

/// What is in force.
#[derive(Clone, Debug)]
pub(super) struct Config {
    pub(super) listen: SocketAddr,
    pub(super) data: PathBuf,
    pub(super) memory: bool,
    pub(super) tokens: Option<PathBuf>,
    pub(super) open: bool,
    pub(super) host: Vec<String>,
    pub(super) tls_cert: Option<PathBuf>,
    pub(super) tls_key: Option<PathBuf>,
    pub(super) unix: Option<PathBuf>,
    pub(super) stdio: bool,
    pub(super) compat: bool,
    pub(super) demo_agent: bool,
    pub(super) threads: usize,
    pub(super) heartbeat: Duration,
    pub(super) hub: hub::Limits,
    pub(super) wire: wire::Limits,
    pub(super) fanout: wire::fanout::Limits,
    pub(super) journal: journal::Settings,
    pub(super) demo: demo::Limits,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 8787).into(),
            data: "sayso-data".into(),
            memory: false,
            tokens: None,
            open: false,
            host: Vec::new(),
            tls_cert: None,
            tls_key: None,
            unix: None,
            stdio: false,
            compat: false,
            demo_agent: false,
            threads: 2,
            heartbeat: Duration::from_secs(15),
            hub: hub::Limits::default(),
            wire: wire::Limits::default(),
            fanout: wire::fanout::Limits::default(),
            journal: journal::Settings::default(),
            demo: demo::Limits::default(),
        }
    }
}
