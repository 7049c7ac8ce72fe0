//! The configuration of `sayso serve`: every setting and every limit, each under one key.
//!
//! - `keys`: the table of keys. Flags, environment variables, the file format and the documentation are derived from it.
//! - `value`: parsing and formatting of values.
//! - `layers`: the sources of values, lowest precedence first: default, file, environment, flag.
//! - `toml_file`: reads a TOML file as keys with line numbers.
//! - `print`: `--print-config` and the table of `docs/configuration.md`.

mod keys;
mod layers;
mod print;
mod toml_file;
mod value;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::demo;
pub(super) use layers::{ConfigFlags, LoadedConfig};
pub(super) use print::key_table_markdown;

seal::defaults! {
    /// The effective configuration.
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
        pub(super) hub: hub::HubLimits = hub::HubLimits::default(),
        pub(super) wire: wire::ServerLimits = wire::ServerLimits::default(),
        pub(super) fanout: wire::fanout::FanoutLimits = wire::fanout::FanoutLimits::default(),
        pub(super) journal: journal::SqliteSettings = journal::SqliteSettings::default(),
        pub(super) demo: demo::DemoLimits = demo::DemoLimits::default(),
    }
}
