//! The configuration of `sayso serve`: every setting and every limit, each under one key.
//!
//! - `keys`: the table of keys. Flags, environment variables, the file format and the documentation are derived from it.
//! - `database_address`: the address of a database, which is printed without its password.
//! - `value`: parsing and formatting of values.
//! - `layers`: the sources of values, lowest precedence first: default, file, environment, flag.
//! - `toml_file`: reads a TOML file as keys with line numbers.
//! - `print`: `--print-config` and the table of `docs/configuration.md`.

mod database_address;
mod keys;
mod layers;
mod print;
mod toml_file;
mod value;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::demo;
use database_address::DatabaseAddress;
pub(super) use layers::{ConfigFlags, LIMITS_HEADING, LoadedConfig};
pub(super) use print::key_table_markdown;
pub(crate) use value::parse_duration_ms;

seal::defaults! {
    /// The effective configuration.
    #[derive(Clone, Debug)]
    pub(super) struct Config {
        pub(super) listen: SocketAddr = (Ipv4Addr::LOCALHOST, 8787).into(),
        pub(super) data: PathBuf = "sayso-data".into(),
        pub(super) memory: bool = false,
        /// The database that holds the journal, instead of a file in the data folder.
        pub(super) database: Option<DatabaseAddress> = None,
        pub(super) database_replicas: usize = 0,
        pub(super) database_lease: Duration = Duration::from_secs(5),
        pub(super) database_connections: usize = DEFAULT_DATABASE_CONNECTIONS,
        pub(super) database_statement_timeout: Duration = Duration::from_secs(10),
        pub(super) cluster: bool = false,
        /// The name of this node. The default is the name of the machine.
        pub(super) cluster_node: Option<String> = None,
        /// Where this node listens for the other nodes.
        pub(super) cluster_listen: Option<SocketAddr> = None,
        /// Where the other nodes reach this one, if not at `cluster_listen`.
        pub(super) cluster_address: Option<String> = None,
        /// How long a node that stops still accepts connections.
        pub(super) drain_delay: Duration = Duration::from_secs(15),
        pub(super) tokens: Option<PathBuf> = None,
        pub(super) open: bool = false,
        pub(super) personal: bool = false,
        pub(super) host: Vec<String> = Vec::new(),
        pub(super) trusted_proxies: Vec<String> = Vec::new(),
        pub(super) tls_cert: Option<PathBuf> = None,
        pub(super) tls_key: Option<PathBuf> = None,
        /// The certificate authorities of client certificates.
        pub(super) tls_client_ca: Option<PathBuf> = None,
        pub(super) behind_proxy: bool = false,
        pub(super) unix: Option<PathBuf> = None,
        pub(super) grpc_listen: Option<SocketAddr> = None,
        pub(super) otlp_listen: Option<SocketAddr> = None,
        pub(super) stdio: bool = false,
        pub(super) compat: bool = false,
        pub(super) demo_agent: bool = false,
        pub(super) manifests: Option<PathBuf> = None,
        pub(super) manifest_keys: Option<PathBuf> = None,
        pub(super) threads: usize = 2,
        pub(super) language: String = hub::DEFAULT_LANGUAGE.to_owned(),
        pub(super) shards: usize = 1,
        /// Whether the number of shards was configured.
        pub(super) has_configured_shards: bool = false,
        pub(super) backup_timeout: Duration = Duration::from_mins(10),
        pub(super) heartbeat: Duration = Duration::from_secs(15),
        pub(super) hub: hub::HubLimits = default_hub_limits(),
        pub(super) wire: wire::ServerLimits = wire::ServerLimits::default(),
        pub(super) fanout: wire::fanout::FanoutLimits = wire::fanout::FanoutLimits::default(),
        pub(super) journal: journal::SqliteSettings = journal::SqliteSettings {
            max_bytes: Some(DEFAULT_JOURNAL_BYTES),
            ..journal::SqliteSettings::default()
        },
        pub(super) otlp: gate::otlp::OtlpLimits = gate::otlp::OtlpLimits::default(),
        pub(super) demo: demo::DemoLimits = demo::DemoLimits::default(),
    }
}

/// The default maximum size of the journal file, so that one agent cannot fill the disk.
const DEFAULT_JOURNAL_BYTES: u64 = 16 * value::GIB;

/// Enough for a few commits at the same time; each holds a connection only for its round trip.
const DEFAULT_DATABASE_CONNECTIONS: usize = 8;

/// Returns the default limits of the hub. It deletes old events when half of the journal is used, so that it does not
/// have to refuse new ones.
fn default_hub_limits() -> hub::HubLimits {
    let limits = hub::HubLimits::default();
    let retention = journal::Retention { max_bytes: Some(DEFAULT_JOURNAL_BYTES / 2), ..limits.retention };
    hub::HubLimits { retention, ..limits }
}
