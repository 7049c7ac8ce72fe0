//! `sayso cluster`: shows operators the state of a cluster, and moves its shards.

#[cfg(feature = "postgres")]
mod operations;

use clap::Subcommand;

use crate::ExitStatus;
use crate::file::CommandError;
use crate::serve::parse_duration_ms;
#[cfg(feature = "postgres")]
pub(crate) use operations::open_database;

#[derive(Subcommand)]
pub(crate) enum ClusterCommand {
    /// Print the nodes and shards. The exit code is 1 if a shard has no owner.
    Status(StatusArgs),
    /// Move a node's shards to the other nodes, and stop the node. Waits until it owns none.
    Drain(DrainArgs),
    /// Redistribute the shards evenly among the nodes, for example after a node was added.
    Rebalance(DatabaseArgs),
}

#[derive(clap::Args)]
pub(crate) struct DatabaseArgs {
    /// Postgres database of the cluster, as in sayso serve --journal. Default: SAYSO_JOURNAL.
    #[arg(long, value_name = "URL")]
    journal: Option<String>,
}

#[derive(clap::Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(crate) struct DrainArgs {
    /// Name of the node.
    node: String,
    #[command(flatten)]
    database: DatabaseArgs,
    /// How long to wait until the node owns no shard.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration_ms, default_value = "1m")]
    timeout: i64,
}

pub(crate) fn run(command: &ClusterCommand) -> Result<ExitStatus, CommandError> {
    #[cfg(feature = "postgres")]
    return operations::run(command);
    #[cfg(not(feature = "postgres"))]
    {
        let _ = command;
        Err(WITHOUT_POSTGRES.to_owned().into())
    }
}

/// Why a command that needs Postgres cannot run.
#[cfg(not(feature = "postgres"))]
pub(crate) const WITHOUT_POSTGRES: &str =
    "this sayso was built without Postgres; build it with the feature postgres";

#[cfg(feature = "postgres")]
impl DatabaseArgs {
    fn address(&self) -> Result<String, String> {
        database_address(self.journal.as_deref())
    }
}

/// Returns the address of the database that the argument or the environment names.
#[cfg(feature = "postgres")]
pub(crate) fn database_address(argument: Option<&str>) -> Result<String, String> {
    let from_environment = || std::env::var("SAYSO_JOURNAL").ok().filter(|address| !address.is_empty());
    argument
        .map(str::to_owned)
        .or_else(from_environment)
        .ok_or_else(|| "name the database with --journal or SAYSO_JOURNAL".to_owned())
}
