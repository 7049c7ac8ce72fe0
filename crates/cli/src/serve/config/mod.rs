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

seal::defaults! {
    /// What is in force.
    #[derive(Clone, Debug)]
    pub(super) struct Config {
        pub(super) listen: SocketAddr = (Ipv4Addr::LOCALHOST, 8787).into(),
        pub(super) data: PathBuf = "sayso-data".into(),
        pub(super) memory: bool = false,
        pub(super) tokens: Option<PathBuf> = None,
        pub(super) open: bool = false,
        pub(super) host: Vec<String> = Vec::new(),
        pub(super) tls_cert: Option<PathBuf> = None,
        pub(super) tls_key: Option<PathBuf> = None,
        pub(super) unix: Option<PathBuf> = None,
        pub(super) stdio: bool = false,
        pub(super) compat: bool = false,
        pub(super) demo_agent: bool = false,
        pub(super) threads: usize = 2,
        pub(super) heartbeat: Duration = Duration::from_secs(15),
        pub(super) hub: hub::Limits = hub::Limits::default(),
        pub(super) wire: wire::Limits = wire::Limits::default(),
        pub(super) fanout: wire::fanout::Limits = wire::fanout::Limits::default(),
        pub(super) journal: journal::Settings = journal::Settings::default(),
        pub(super) demo: demo::Limits = demo::Limits::default(),
    }
}
