//! The limit on file descriptors. Connections never take all of them, so that the hub can always read its token file.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::config::Config;

/// Descriptors that are kept free of connections: for the journal, the token file, the certificate and the log.
const RESERVED_DESCRIPTORS: u64 = 64;

/// Raises the soft limit to the hard limit. Returns how many connections the limit permits.
pub(super) fn raise_limit() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let is_raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok();
    let limit = if is_raised { maximum } else { current };
    let connections = limit.map_or(u64::MAX, |limit| limit.saturating_sub(RESERVED_DESCRIPTORS).max(1));
    usize::try_from(connections).unwrap_or(usize::MAX)
}

/// Returns a message if the hard limit is too low for the configured number of connections.
pub(super) fn describe_shortage(config: &Config) -> Option<String> {
    let maximum = getrlimit(Resource::Nofile).maximum?;
    let needed = (config.wire.connections as u64).saturating_add(RESERVED_DESCRIPTORS);
    (maximum < needed).then(|| {
        format!(
            "http.connections is {}, but the limit of {maximum} file descriptors permits only {} connections; \
             raise it to {needed} (LimitNOFILE in a systemd unit, or ulimit -n)",
            config.wire.connections,
            maximum.saturating_sub(RESERVED_DESCRIPTORS).max(1)
        )
    })
}
