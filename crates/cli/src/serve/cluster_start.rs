//! What a hub gets from its cluster when it starts, and its part in the cluster while it runs.

use std::sync::Arc;
use std::time::Duration;

use seal::es256::SigningKey;
use wire::auth::Tokens;
#[cfg(feature = "postgres")]
use wire::cluster::{ClusterKey, RouterLimits, ShardRouter};
#[cfg(feature = "postgres")]
use wire::telemetry::log_record;
use wire::{HubHandle, Server, Tls};

use super::config::Config;
use super::core_factory::CoreFactory;
use super::database_journal::OwnershipEnd;
use super::reload::Reloadable;
#[cfg(feature = "postgres")]
use super::{cluster_join, cluster_shards::NodeShards};
#[cfg(feature = "postgres")]
use crate::output::describe_io_error;

/// The parts of a hub that come from its cluster. All are empty for a hub without a cluster.
#[derive(Default)]
pub(super) struct ClusterStart {
    pub(super) tokens: Option<Tokens>,
    pub(super) signing_key: Option<SigningKey>,
    pub(super) token_changes: SharedTokenChanges,
    pub(super) part: ClusterPart,
}

/// Changes to the tokens in the database.
#[derive(Default)]
pub(super) struct SharedTokenChanges {
    #[cfg(feature = "postgres")]
    changes: Option<super::cluster_texts::TokenChanges>,
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

/// The hub's part in its cluster, if it has one.
#[derive(Default)]
pub(super) struct ClusterPart {
    #[cfg(feature = "postgres")]
    phase: NodePhase,
}

#[cfg(feature = "postgres")]
#[derive(Default)]
enum NodePhase {
    #[default]
    NoCluster,
    Joined(Box<Joined>),
    Running(Box<NodeShards>, ShardRouter),
}

#[cfg(feature = "postgres")]
struct Joined {
    node: cluster_join::JoinedNode,
    internal_listener: std::net::TcpListener,
}

/// Joins the cluster, if the hub belongs to one. Returns `None` if the node was stopped first.
pub(super) fn join(
    config: &Config,
    listener: &std::net::TcpListener,
    internal_listener: Option<std::net::TcpListener>,
    tls: Option<Tls>,
) -> Result<Option<ClusterStart>, String> {
    let Some(internal_listener) = internal_listener else { return Ok(Some(ClusterStart::default())) };
    #[cfg(feature = "postgres")]
    {
        let describe = |error| describe_io_error(&error);
        let hosts = super::allowed_hosts(config, listener.local_addr().map_err(describe)?);
        let bound = internal_listener.local_addr().map_err(describe)?;
        let internal_address = config.cluster_address.clone().unwrap_or(bound.to_string());
        let joined = cluster_join::join(config, listener, &internal_address, hosts, tls)?;
        let Some(mut node) = joined else { return Ok(None) };
        // With --open, no token is required, so changed tokens must not be either.
        let changes = node.texts.token_changes.take().filter(|_| !config.open);
        Ok(Some(ClusterStart {
            tokens: Some(std::mem::take(&mut node.texts.tokens)),
            signing_key: Some(node.texts.signing_key.clone()),
            token_changes: SharedTokenChanges { changes },
            part: ClusterPart { phase: NodePhase::Joined(Box::new(Joined { node, internal_listener })) },
        }))
    }
    #[cfg(not(feature = "postgres"))]
    {
        let _ = (config, listener, internal_listener, tls);
        Err("cluster: this sayso was built without Postgres; build it with the feature postgres".to_owned())
    }
}

#[cfg_attr(
    not(feature = "postgres"),
    expect(clippy::unused_self, clippy::unused_async, reason = "only a cluster has parts")
)]
impl ClusterPart {
    /// Returns the shards of the cluster, with a line about the node.
    pub(super) fn shards(&self) -> Option<(hub::ShardMap, String)> {
        #[cfg(feature = "postgres")]
        if let NodePhase::Joined(joined) = &self.phase {
            let cluster_join::JoinedNode { name, database, shards, .. } = &joined.node;
            let address = joined
                .internal_listener
                .local_addr()
                .map_or_else(|error| describe_io_error(&error), |address| address.to_string());
            let status = format!(
                "journal {database}: node {name} of a cluster with {} shards, for other nodes at {address}",
                shards.count()
            );
            return Some((*shards, status));
        }
        None
    }

    /// Starts the hub of a node. It runs no shard yet. Must be called within a runtime.
    pub(super) fn start_hub(
        &mut self,
        config: &Config,
        factory: &Arc<CoreFactory>,
    ) -> Result<Option<HubHandle>, String> {
        #[cfg(feature = "postgres")]
        if let NodePhase::Joined(joined) = std::mem::take(&mut self.phase) {
            let Joined { node, internal_listener } = *joined;
            let describe = |error| describe_io_error(&error);
            let key = ClusterKey::from_secret(&node.texts.cluster_key).map_err(|error| error.to_string())?;
            // A request waits until another node has taken over.
            let hold_time = config.database_lease + Duration::from_secs(1);
            let limits = RouterLimits { hold_time, ..RouterLimits::default() };
            let (map, telemetry) = (node.shards, factory.telemetry.clone());
            let (router, hub) = ShardRouter::start(&node.name, key, map, limits, config.fanout, telemetry)
                .map_err(describe)?;
            let listener = tokio::net::TcpListener::from_std(internal_listener).map_err(describe)?;
            tokio::spawn(router.clone().serve(listener));
            let shards = NodeShards::new(node.name, node.member, map.count(), &router, factory);
            self.phase = NodePhase::Running(Box::new(shards), router);
            return Ok(Some(hub));
        }
        let _ = (config, factory);
        Ok(None)
    }

    /// Makes the server report the shards of a cluster.
    pub(super) fn register(&self, server: Server) -> Server {
        #[cfg(feature = "postgres")]
        if let NodePhase::Running(_, router) = &self.phase {
            return server.with_router(router.clone());
        }
        server
    }

    /// Starts and stops shards until the node must stop. Never returns without a cluster. Cancel-safe.
    pub(super) async fn run(&mut self) -> OwnershipEnd {
        #[cfg(feature = "postgres")]
        if let NodePhase::Running(shards, _) = &mut self.phase {
            return shards.run().await;
        }
        std::future::pending().await
    }

    /// Makes the node report that it is not ready, and gives its shards to other nodes. Returns after this delay, or when
    /// `end_delay` completes, but not before the shards are given away. The caller serves connections until then.
    pub(super) async fn drain(&mut self, delay: Duration, end_delay: impl Future<Output = ()>) {
        #[cfg(feature = "postgres")]
        if let NodePhase::Running(shards, router) = &mut self.phase {
            router.set_draining(true);
            return shards.drain(delay, end_delay).await;
        }
        drop((delay, end_delay));
    }

    /// Leaves the cluster.
    pub(super) async fn leave(&mut self) {
        #[cfg(feature = "postgres")]
        if let NodePhase::Running(shards, _) = &mut self.phase {
            shards.leave().await;
        }
    }
}
