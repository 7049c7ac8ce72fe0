//! The address of the database, the password, and the time limits.

use std::env;
use std::fmt;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use crate::JournalError;

seal::defaults! {
    /// Time limits for the connection to the database.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PostgresTimeouts {
        /// How long one attempt to connect may take.
        pub connect: Duration = Duration::from_secs(5),
        /// How long one statement may take. The server cancels it afterwards.
        pub statement: Duration = Duration::from_secs(10),
        /// How long sent data may stay unacknowledged by the peer's kernel.
        pub tcp_user: Duration = Duration::from_secs(10),
        /// How long a commit with a lost acknowledgement waits until the database says whether it has the batch.
        pub outcome: Duration = Duration::from_secs(30),
    }
}

/// How to reach the database. Its `Debug` and `Display` output contain no password.
#[derive(Clone)]
pub struct PostgresSettings {
    /// How many standbys must confirm every commit. If it is not 0, a server that does not wait for that many is refused.
    pub replicas: u32,
    /// Maximum number of connections that the journals of all shards share.
    pub connections: usize,
    /// The time limits.
    pub timeouts: PostgresTimeouts,
    config: Config,
    root_certificates: Option<PathBuf>,
}

impl PostgresSettings {
    /// The default of [`connections`](Self::connections).
    pub const DEFAULT_CONNECTIONS: usize = 8;

    /// Parses an address such as `postgres://user@host:5432/database`. Several hosts can be given, separated by commas;
    /// the one that accepts writes is used. A password that is not in the address is taken from `PGPASSWORD`, or from
    /// the file that `passfile=` or `PGPASSFILE` names, or from `~/.pgpass`.
    ///
    /// `sslmode` is `disable`, `prefer`, `require`, `verify-ca` or `verify-full`. Without it, TLS is required unless all hosts are
    /// this machine: with `prefer`, anyone on the network could turn TLS off, and then ask for the password. Whenever TLS is used,
    /// the server's certificate and name are verified: against the file `sslrootcert=`, or else against the system's roots.
    pub fn parse(address: &str) -> Result<Self, JournalError> {
        if !is_postgres_address(address) {
            return Err(invalid("the address of a Postgres journal begins with postgres://"));
        }
        // A password may contain a question mark.
        let host = address.find('@').unwrap_or(0);
        let query = address[host..].find('?').map_or(address.len(), |offset| host + offset);
        let (base, query) = (&address[..query], address[query..].trim_start_matches('?'));
        let (mut passfile, mut root_certificates) = (None, None);
        let mut kept = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("passfile", value)) => passfile = Some(decode_path(value)?),
                Some(("sslrootcert", value)) => root_certificates = Some(decode_path(value)?),
                // Every TLS connection is verified, so these modes only require TLS.
                Some(("sslmode", "verify-full" | "verify-ca")) => kept.push("sslmode=require"),
                Some(("sslmode", "allow")) => kept.push("sslmode=prefer"),
                _ => kept.push(pair),
            }
        }
        let plain = if kept.is_empty() { base.to_owned() } else { format!("{base}?{}", kept.join("&")) };
        // The error of the parser may quote a part of the password, so it is not repeated.
        let mut config: Config = plain.parse().map_err(|_| {
            invalid(
                "the journal's address is not a valid postgres:// URL; in a password, write special characters such as \
                 @ : / ? # % in percent-encoding, or put the password into PGPASSWORD or a file for PGPASSFILE",
            )
        })?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            config.host("localhost");
        }
        if config.get_user().is_none() {
            let user = env::var("PGUSER").or_else(|_| env::var("USER")).map_err(|_| {
                invalid("the journal's address names no user; write postgres://USER@HOST/DATABASE")
            })?;
            config.user(user);
        }
        if config.get_dbname().is_none() {
            let user = config.get_user().unwrap_or_default().to_owned();
            config.dbname(user);
        }
        if config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)))
            && config.get_hostaddrs().is_empty()
        {
            config.ssl_mode(SslMode::Disable);
        } else if !kept.iter().any(|pair| pair.starts_with("sslmode=")) && !is_this_machine(&config) {
            config.ssl_mode(SslMode::Require);
        }
        if config.get_application_name().is_none() {
            config.application_name("sayso");
        }
        // A standby, or a former primary that was demoted, cannot be written.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        if config.get_password().is_none()
            && let Some(password) = find_password(&config, passfile)?
        {
            config.password(password);
        }
        let connections = Self::DEFAULT_CONNECTIONS;
        Ok(Self {
            replicas: 0,
            connections,
            timeouts: PostgresTimeouts::default(),
            config,
            root_certificates,
        })
    }

    pub(super) fn config(&self) -> Config {
        let PostgresTimeouts { connect, tcp_user, .. } = self.timeouts;
        let mut config = self.config.clone();
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(connect);
        }
        config.tcp_user_timeout(tcp_user);
        config.keepalives(true).keepalives_idle(tcp_user / 2);
        config.keepalives_interval(tcp_user / 4).keepalives_retries(2);
        config
    }

    pub(super) fn uses_tls(&self) -> bool {
        self.config.get_ssl_mode() != SslMode::Disable
    }

    pub(super) fn root_certificates(&self) -> Option<&Path> {
        self.root_certificates.as_deref()
    }
}

/// Whether the database can only be on this machine.
fn is_this_machine(config: &Config) -> bool {
    let is_local = |host: &Host| match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
        }
        Host::Unix(_) => true,
    };
    match config.get_hostaddrs() {
        [] => config.get_hosts().iter().all(is_local),
        addresses => addresses.iter().all(IpAddr::is_loopback),
    }
}

/// Returns whether a journal's address names a Postgres database.
pub(super) fn is_postgres_address(address: &str) -> bool {
    address.starts_with("postgres://") || address.starts_with("postgresql://")
}

impl fmt::Display for PostgresSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ports = self.config.get_ports();
        let port = |index: usize| ports.get(index).or(ports.first()).copied().unwrap_or(5432);
        let name = |(index, host): (usize, &Host)| match host {
            Host::Tcp(host) => format!("{host}:{}", port(index)),
            Host::Unix(path) => format!("{}:{}", path.display(), port(index)),
        };
        let hosts: Vec<_> = self.config.get_hosts().iter().enumerate().map(name).collect();
        let user = self.config.get_user().unwrap_or_default();
        let database = self.config.get_dbname().unwrap_or_default();
        write!(f, "postgres://{user}@{}/{database}", hosts.join(","))
    }
}

impl fmt::Debug for PostgresSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { replicas, connections, timeouts, config: _, root_certificates } = self;
        f.debug_struct("PostgresSettings")
            .field("address", &self.to_string())
            .field("replicas", replicas)
            .field("connections", connections)
            .field("timeouts", timeouts)
            .field("root_certificates", root_certificates)
            .finish()
    }
}

fn invalid(text: &str) -> JournalError {
    JournalError::InvalidAddress(text.to_owned())
}

fn decode_path(value: &str) -> Result<PathBuf, JournalError> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first == b'%' {
            let hex = rest.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
            let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
            bytes.push(byte.ok_or_else(|| {
                invalid("a path in the journal's address has a % that is not followed by two digits")
            })?);
            rest = &rest[2..];
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes)
        .map(PathBuf::from)
        .map_err(|_| invalid("a path in the journal's address is not UTF-8"))
}

fn find_password(config: &Config, passfile: Option<PathBuf>) -> Result<Option<String>, JournalError> {
    if let Ok(password) = env::var("PGPASSWORD")
        && !password.is_empty()
    {
        return Ok(Some(password));
    }
    let named = passfile.or_else(|| env::var_os("PGPASSFILE").map(PathBuf::from));
    let is_named = named.is_some();
    let Some(path) = named.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".pgpass"))) else {
        return Ok(None);
    };
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(_) if !is_named => return Ok(None),
        Err(error) => {
            let reason = error.kind();
            return Err(invalid(&format!("cannot read the password file {}: {reason}", path.display())));
        }
    };
    check_permissions(&path)?;
    Ok(find_in_passfile(&text, config))
}

#[cfg(unix)]
fn check_permissions(path: &Path) -> Result<(), JournalError> {
    use std::os::unix::fs::PermissionsExt;
    let is_private =
        fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode().trailing_zeros() >= 6);
    if is_private {
        return Ok(());
    }
    let path = path.display();
    Err(invalid(&format!("others can read the password file {path}; run chmod 600 {path}")))
}

#[cfg(not(unix))]
fn check_permissions(_: &Path) -> Result<(), JournalError> {
    Ok(())
}

/// Finds the password in a file with lines `host:port:database:user:password`. `*` matches everything.
fn find_in_passfile(text: &str, config: &Config) -> Option<String> {
    let name = |host: &Host| match host {
        Host::Tcp(host) => host.clone(),
        Host::Unix(_) => "localhost".to_owned(),
    };
    let hosts: Vec<String> = config.get_hosts().iter().map(name).collect();
    let port = config.get_ports().first().copied().unwrap_or(5432).to_string();
    let (database, user) = (config.get_dbname().unwrap_or_default(), config.get_user().unwrap_or_default());
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let mut fields = split_fields(line).into_iter();
        let mut next = || fields.next();
        let (host, port_field, database_field, user_field) = (next()?, next()?, next()?, next()?);
        let password = next()?;
        let matches = |field: &str, value: &str| field == "*" || field == value;
        let is_match = (host == "*" || hosts.contains(&host))
            && matches(&port_field, &port)
            && matches(&database_field, database)
            && matches(&user_field, user);
        is_match.then_some(password)
    })
}

/// Splits a line at its colons. A backslash escapes a colon or a backslash.
fn split_fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let literal = match character {
            ':' if fields.len() < 5 => {
                fields.push(String::new());
                continue;
            }
            '\\' => characters.next().unwrap_or('\\'),
            other => other,
        };
        if let Some(field) = fields.last_mut() {
            field.push(literal);
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_shown() {
        let settings =
            PostgresSettings::parse("postgres://anna:geheim@db1:5433,db2:5434/hub?sslmode=verify-full")
                .unwrap();
        assert_eq!(settings.to_string(), "postgres://anna@db1:5433,db2:5434/hub");
        assert!(!format!("{settings:?}").contains("geheim"));
        assert_eq!(settings.config().get_ssl_mode(), SslMode::Require);
        let question_mark =
            PostgresSettings::parse("postgres://anna:ge?passfile=1@db/hub?sslmode=disable").unwrap();
        assert_eq!(question_mark.config().get_password(), Some(&b"ge?passfile=1"[..]));
        for broken in [
            "postgres://anna:geheim@db:port/hub",
            "postgres://anna:geheim@db/hub?geheim=1",
            "mysql://anna:geheim@db",
        ] {
            let error = PostgresSettings::parse(broken).unwrap_err().to_string();
            assert!(!error.contains("heim"), "{error}");
        }
    }

    #[test]
    fn tls_is_required_for_other_machines_unless_the_address_says_otherwise() {
        for (address, expected) in [
            ("postgres://anna:x@db/hub", SslMode::Require),
            ("postgres://anna:x@localhost,db/hub", SslMode::Require),
            ("postgres://anna:x@10.0.0.1/hub", SslMode::Require),
            ("postgres://anna:x@localhost/hub?hostaddr=10.0.0.1", SslMode::Require),
            ("postgres://anna:x@db/hub?sslmode=prefer", SslMode::Prefer),
            ("postgres://anna:x@db/hub?sslmode=allow", SslMode::Prefer),
            ("postgres://anna:x@db/hub?sslmode=disable", SslMode::Disable),
            ("postgres://anna:x@localhost,127.0.0.1/hub", SslMode::Prefer),
            ("postgres://anna:x@%2Frun%2Fpostgresql/hub", SslMode::Disable),
        ] {
            let settings = PostgresSettings::parse(address).unwrap();
            assert_eq!(settings.config().get_ssl_mode(), expected, "{address}");
        }
    }

    #[test]
    fn the_password_file_is_searched_in_order() {
        let settings = PostgresSettings::parse("postgres://anna:x@db/hub").unwrap();
        let text = "# comment\nother:*:*:*:wrong\ndb:5432:hub:anna:a\\:b\\\\c:d\n*:*:*:*:late";
        assert_eq!(find_in_passfile(text, &settings.config).as_deref(), Some("a:b\\c:d"));
        assert_eq!(find_in_passfile("db:5433:hub:anna:no", &settings.config), None);
    }
}
