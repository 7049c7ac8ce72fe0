//! The journal, the tokens and the signing key that a hub gets from its cluster when it starts.

use seal::es256::SigningKey;
use wire::Tls;
use wire::auth::Tokens;
#[cfg(feature = "postgres")]
use wire::telemetry::log_record;

use super::OpenedJournals;
use super::config::Config;
use super::reload::Reloadable;
#[cfg(feature = "postgres")]
use crate::output::describe_io_error;

/// The parts of a hub that come from its cluster. All are empty for a hub without a cluster.
#[derive(Default)]
pub(super) struct ClusterStart {
    pub(super) journals: Option<OpenedJournals>,
    pub(super) tokens: Option<Tokens>,
    pub(super) signing_key: Option<SigningKey>,
    pub(super) token_changes: SharedTokenChanges,
}

/// Changes to the tokens in the database.
#[derive(Default)]
pub(super) struct SharedTokenChanges {
    #[cfg(feature = "postgres")]
    changes: Option<super::cluster_node::TokenChanges>,
}

impl SharedTokenChanges {
    /// Replaces the server's tokens at each change. Never returns.
    #[cfg_attr(
        not(feature = "postgres"),
        expect(clippy::unused_self, clippy::needless_pass_by_ref_mut, reason = "only a cluster has changes")
    )]
    pub(super) async fn follow(&mut self, server: &impl Reloadable) {
        #[cfg(feature = "postgres")]
        if let Some(changes) = &mut self.changes {
            loop {
                let change = changes.next().await;
                let has_failed = change.is_err();
                match change {
                    Ok(tokens) => {
                        let changed = server.replace_tokens(tokens).await;
                        log_record::reloaded_tokens("tokens", changed.total, changed.added, changed.removed);
                    }
                    Err(error) => {
                        log_record::reload_failed("tokens", &error, "the previous tokens stay in force");
                    }
                }
                server.telemetry().record_reload(has_failed);
            }
        }
        let _ = server;
        std::future::pending::<()>().await;
    }
}

/// Waits until this node of a cluster owns the journal. Returns `None` if the node was stopped first.
pub(super) fn join(
    config: &Config,
    listener: &std::net::TcpListener,
    tls: Option<Tls>,
) -> Result<Option<ClusterStart>, String> {
    if !config.cluster {
        return Ok(Some(ClusterStart::default()));
    }
    #[cfg(feature = "postgres")]
    {
        let address = listener.local_addr().map_err(|error| describe_io_error(&error))?;
        let hosts = super::allowed_hosts(config, address);
        let active = super::cluster_node::wait_until_active(config, listener, hosts, tls)?;
        Ok(active.map(|active| ClusterStart {
            journals: Some(active.journals),
            tokens: Some(active.tokens),
            signing_key: Some(active.signing_key),
            token_changes: SharedTokenChanges { changes: Some(active.token_changes) },
        }))
    }
    #[cfg(not(feature = "postgres"))]
    {
        let _ = (listener, tls);
        Err("cluster: this sayso was built without Postgres; build it with --features postgres".to_owned())
    }
}
