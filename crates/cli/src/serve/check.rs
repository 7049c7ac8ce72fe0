//! The checks before a hub starts, and `sayso serve --check`, which reports their results without starting.

use std::io::{Error, ErrorKind};
use std::path::Path;

use rustix::fs::Access;
use seal::SystemRandom;
use seal::es256::SigningKey;
use wire::UnixSocket;
use wire::auth::{BrowserSessions, Tokens};

use super::config::{Config, LoadedConfig};
use super::descriptors;
use crate::ExitStatus;
use crate::hub_args::DEFAULT_SOCKET_KEYWORD;
use crate::output::{describe_io_error, print_stderr, print_stdout};

/// Reports the problems of the configuration. Creates nothing.
pub(super) fn run(loaded: &LoadedConfig) -> ExitStatus {
    let config = &loaded.config;
    let mut problems = loaded.contradictions();
    problems.extend(exposure_problems(config));
    problems.extend(super::load_tls(config).err());
    problems.extend(unix_socket_problem(config));
    problems.extend(token_file_problem(config));
    // A node of a cluster keeps nothing in the folder, except that the first one writes the admin token there.
    let mut uses_data_folder = !config.memory && !config.cluster;
    match super::database_journal::check(config) {
        Ok(has_tokens) => uses_data_folder |= config.cluster && !has_tokens,
        Err(found) => problems.extend(found),
    }
    if uses_data_folder {
        problems.extend(data_folder_problem(&config.data));
    }
    if !config.memory && !config.cluster {
        problems.extend(key_problems(&config.data));
    }
    problems.extend(super::agent_manifests::load(config).err());
    problems.extend(super::parse_trusted_proxies(config).err());
    problems.extend(descriptors::describe_shortage(config));
    for problem in &problems {
        print_stderr(&format!("sayso: {problem}"));
    }
    if problems.is_empty() {
        print_stdout("The configuration has no problems.\n")
    } else {
        ExitStatus::CannotRun
    }
}

/// Returns a message for each setting that would expose the hub or its tokens to other machines.
pub(super) fn exposure_problems(config: &Config) -> Vec<String> {
    let mut addresses = std::iter::once(config.listen).chain(config.grpc_listen).chain(config.otlp_listen);
    let public_address = addresses.find(|address| !address.ip().is_loopback());
    let is_public = public_address.is_some();
    let is_reachable = is_public || config.behind_proxy;
    let checks = [
        (
            config.personal && is_public,
            "--personal serves only the user who runs it, so it works on loopback only".to_owned(),
        ),
        (
            config.open && is_reachable,
            "--open accepts agents and listeners without a token, so it works on loopback only, without a proxy"
                .to_owned(),
        ),
        (
            config.compat && is_reachable,
            "--compat accepts answers without a handshake, so it works on loopback only, without a proxy"
                .to_owned(),
        ),
        (
            is_public && config.tls_cert.is_none() && !config.behind_proxy,
            format!(
                "{} can be reached from other machines, and tokens must not cross the network unencrypted; use --tls-cert \
                 and --tls-key, or --behind-proxy if a proxy in front of the hub terminates TLS",
                public_address.unwrap_or(config.listen)
            ),
        ),
        (
            config.grpc_listen.is_some() && !cfg!(feature = "grpc"),
            "grpc_listen: this sayso was built without gRPC; build it with --features grpc".to_owned(),
        ),
        (
            config.cluster && config.cluster_listen.is_none() && !config.listen.ip().is_loopback(),
            "cluster_listen: name the address of this machine at which the other nodes reach this one, on a network that only \
             the nodes use"
                .to_owned(),
        ),
        (
            config.cluster_address.is_none()
                && config.cluster_listen.is_some_and(|address| address.ip().is_unspecified()),
            "cluster_listen: the other nodes cannot connect to 0.0.0.0 or ::; name the address of this machine with \
             cluster_address"
                .to_owned(),
        ),
        (
            config.database.is_some() && !cfg!(feature = "postgres"),
            "journal: this sayso was built without Postgres; build it with the feature postgres".to_owned(),
        ),
    ];
    checks.into_iter().filter_map(|(applies, problem)| applies.then_some(problem)).collect()
}

fn token_file_problem(config: &Config) -> Option<String> {
    // The tokens of a cluster are in its database.
    if config.open || config.personal || config.cluster {
        return None;
    }
    let path = match &config.tokens {
        Some(path) => path.clone(),
        None if config.memory => return None,
        // The first start creates this file.
        None => Some(config.data.join("tokens")).filter(|path| path.exists())?,
    };
    Tokens::load(&path).err().map(|error| error.to_string())
}

/// Returns why the Unix socket cannot be created.
fn unix_socket_problem(config: &Config) -> Option<String> {
    let path = config.unix.as_ref()?;
    let is_default = path.as_os_str() == DEFAULT_SOCKET_KEYWORD;
    let path = if is_default {
        match client::default_socket_path(client::HUB_SOCKET_NAME) {
            Ok(path) => path,
            Err(error) => {
                return Some(format!("no default path for a Unix socket: {}", describe_io_error(&error)));
            }
        }
    } else {
        path.clone()
    };
    let problem =
        |error: &Error| format!("cannot listen on {}: {}", path.display(), describe_io_error(error));
    match UnixSocket::check(&path) {
        // The hub may be running while its configuration is checked.
        Err(error) if error.kind() == ErrorKind::AddrInUse => return None,
        Err(error) => return Some(problem(&error)),
        Ok(_) => {}
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match folder.metadata() {
        Ok(_) => access_problem(folder),
        // The hub creates the folder of the default path.
        Err(error) if is_default && error.kind() == ErrorKind::NotFound => None,
        Err(error) => Some(problem(&error)),
    }
}

/// Returns why the keys in the data folder cannot be used. The first start creates those that are missing.
fn key_problems(data: &Path) -> Vec<String> {
    let signing_key = data.join(super::manifest::KEY_FILE_NAME);
    let signing_key = signing_key.exists().then(|| SigningKey::load(&signing_key).map(drop));
    let sign_in_key = BrowserSessions::check(data, &mut SystemRandom);
    let results = signing_key.into_iter().chain([sign_in_key]);
    results.filter_map(|result| result.err().map(|error| error.to_string())).collect()
}

/// Returns why the hub cannot use its data folder, or that other users can read it.
pub(super) fn data_folder_problem(path: &Path) -> Option<String> {
    let name = path.display();
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_dir() => Some(format!("{name} is not a folder")),
        Ok(metadata) => {
            let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777;
            if mode & 0o077 != 0 {
                return Some(format!(
                    "{name}: other users can read it (mode {mode:o}); run chmod 700 {name}"
                ));
            }
            access_problem(path)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let existing = path.ancestors().skip(1).find(|parent| parent.exists());
            access_problem(existing.unwrap_or(Path::new(".")))
        }
        Err(error) => Some(format!("{name}: {}", describe_io_error(&error))),
    }
}

fn access_problem(folder: &Path) -> Option<String> {
    let error = rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK).err()?;
    Some(format!("cannot write to {}: {}", folder.display(), describe_io_error(&error.into())))
}
