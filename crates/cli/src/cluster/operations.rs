//! The operations of `sayso cluster`.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use aaep::json::write_object;
use cluster::{NodeEntry, ShardEntry, TableSnapshot};
use journal::{ClusterTable, PostgresDatabase, PostgresSettings};

use super::{ClusterCommand, DatabaseArgs, DrainArgs, StatusArgs};
use crate::ExitStatus;
use crate::file::CommandError;
use crate::output::{print_stderr, print_stdout, printable};
use crate::serve::shared_settings::SharedSettings;

/// How often the table is read while a node drains.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

pub(super) fn run(command: &ClusterCommand) -> Result<ExitStatus, CommandError> {
    match command {
        ClusterCommand::Status(arguments) => status(arguments),
        ClusterCommand::Drain(arguments) => drain(arguments),
        ClusterCommand::Rebalance(arguments) => {
            arguments.open()?.request_rebalance().map_err(|error| error.to_string())?;
            print_stderr("The nodes redistribute the shards with their next heartbeats.");
            Ok(ExitStatus::Success)
        }
    }
}

impl DatabaseArgs {
    fn open(&self) -> Result<ClusterTable, CommandError> {
        let database = open_database(&self.address()?)?;
        let table = ClusterTable::open_existing(&database).map_err(|error| error.to_string())?;
        Ok(table.ok_or_else(|| "no node of a cluster has used this database yet".to_owned())?)
    }
}

/// Opens the database of a cluster.
pub(crate) fn open_database(address: &str) -> Result<PostgresDatabase, String> {
    let settings = PostgresSettings::parse(address).map_err(|error| error.to_string())?;
    PostgresDatabase::open(settings).map_err(|error| error.to_string())
}

fn status(arguments: &StatusArgs) -> Result<ExitStatus, CommandError> {
    let cluster = arguments.database.open()?;
    let table = cluster.read().map_err(|error| error.to_string())?;
    let settings = cluster.settings().map_err(|error| error.to_string())?;
    let differences = differing_settings(&settings);
    let text =
        if arguments.json { to_json(&table, &differences) + "\n" } else { to_text(&table, &differences) };
    let printed = print_stdout(&text);
    let has_free_shard = table.shards.iter().any(ShardEntry::is_free);
    Ok(printed.max(if has_free_shard { ExitStatus::Negative } else { ExitStatus::Success }))
}

fn drain(arguments: &DrainArgs) -> Result<ExitStatus, CommandError> {
    let cluster = arguments.database.open()?;
    if !cluster.request_drain(&arguments.node).map_err(|error| error.to_string())? {
        return Err(format!("no running node is named {:?}; see sayso cluster status", arguments.node).into());
    }
    let limit = Duration::from_millis(u64::try_from(arguments.timeout).unwrap_or(0));
    let deadline = Instant::now() + limit;
    loop {
        let table = cluster.read().map_err(|error| error.to_string())?;
        let owned = owned_by(&table, &arguments.node);
        if owned == 0 {
            print_stderr(&format!(
                "The node {:?} owns no shard. Its process ends after its cluster_drain_delay.",
                arguments.node
            ));
            return Ok(ExitStatus::Success);
        }
        if Instant::now() >= deadline {
            print_stderr(&format!("The node {:?} still owns {owned} shards.", arguments.node));
            return Ok(ExitStatus::Negative);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

fn owned_by(table: &TableSnapshot, node: &str) -> usize {
    let is_owner = |shard: &&ShardEntry| {
        !shard.is_free() && shard.owner.as_ref().is_some_and(|owner| owner.name == node)
    };
    table.shards.iter().filter(is_owner).count()
}

fn state_of(node: &NodeEntry) -> &'static str {
    match (node.remaining.is_zero(), node.is_draining || node.drain_requested) {
        (true, _) => "lost",
        (false, true) => "draining",
        (false, false) => "running",
    }
}

/// The settings of a node that differ from those of the first node, by name.
struct DifferingSettings {
    node: String,
    first: String,
    keys: Vec<String>,
}

/// Compares the settings of the live nodes, which must be the same.
fn differing_settings(nodes: &[(String, String)]) -> Vec<DifferingSettings> {
    let Some(((first, text), others)) = nodes.split_first() else { return Vec::new() };
    let expected = SharedSettings::parse(text);
    let compare = |(node, text): &(String, String)| {
        let settings = SharedSettings::parse(text);
        let keys: Vec<String> = settings.differences(&expected).into_iter().map(str::to_owned).collect();
        (!keys.is_empty()).then(|| DifferingSettings { node: node.clone(), first: first.clone(), keys })
    };
    others.iter().filter_map(compare).collect()
}

fn to_text(table: &TableSnapshot, differences: &[DifferingSettings]) -> String {
    let mut text = String::new();
    for node in &table.nodes {
        let _ = writeln!(
            text,
            "node {}: {}, {} shards, {}",
            printable(&node.name),
            state_of(node),
            owned_by(table, &node.name),
            printable(&node.address)
        );
    }
    for DifferingSettings { node, first, keys } in differences {
        let _ = writeln!(
            text,
            "warning: settings of node {} differ from those of node {}: {}",
            printable(node),
            printable(first),
            printable(&keys.join(", "))
        );
    }
    for shard in &table.shards {
        let owner = match &shard.owner {
            Some(owner) if !shard.is_free() => {
                format!("owned by {}, lease {} ms", printable(&owner.name), shard.remaining.as_millis())
            }
            _ => "no owner".to_owned(),
        };
        let _ = writeln!(text, "shard {}: {owner}, epoch {}", shard.shard, shard.epoch);
    }
    text
}

fn to_json(table: &TableSnapshot, differences: &[DifferingSettings]) -> String {
    write_object(|writer| {
        writer.key("nodes").array(|writer| {
            for node in &table.nodes {
                writer.object(|writer| {
                    writer.key("name").text(&node.name);
                    writer.key("address").text(&node.address);
                    writer.key("state").text(state_of(node));
                    writer
                        .key("shards")
                        .integer(i64::try_from(owned_by(table, &node.name)).unwrap_or(i64::MAX));
                    let keys = differences.iter().find(|differing| differing.node == node.name);
                    writer.key("differing_settings").array(|writer| {
                        for key in keys.map(|differing| differing.keys.as_slice()).unwrap_or_default() {
                            writer.text(key);
                        }
                    });
                });
            }
        });
        writer.key("shards").array(|writer| {
            for shard in &table.shards {
                let owner = shard.owner.as_ref().filter(|_| !shard.is_free());
                writer.object(|writer| {
                    writer.key("shard").integer(i64::from(shard.shard.0));
                    writer.key("epoch").integer(shard.epoch);
                    if let Some(owner) = owner {
                        let lease_ms = i64::try_from(shard.remaining.as_millis()).unwrap_or(i64::MAX);
                        writer.key("owner").text(&owner.name);
                        writer.key("lease_ms").integer(lease_ms);
                    }
                });
            }
        });
    })
}
