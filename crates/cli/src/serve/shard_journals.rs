//! The journals of the shards.
//!
//! The journal of shard 0 is `journal.sqlite`, as in a hub with one shard; those of the others are `journal-1.sqlite` and so
//! on. The first journal is created last, so a data folder that has it has all of them.

use std::path::{Path, PathBuf};

use hub::ShardMap;
use journal::{Journal, JournalError, MemoryJournal, ShardRecord, SqliteJournal, SqliteSettings};

use super::config::Config;
use super::database_journal::JournalOwnership;
use crate::output::printable;

/// The name of the first journal in the data folder.
pub(crate) const JOURNAL_FILE_NAME: &str = "journal.sqlite";

/// The name of a file that marks a folder whose journals `sayso migrate` may already have moved.
pub(crate) const MIGRATION_MARK_NAME: &str = "journal.migrating";

/// Ends the names of the journals that `sayso migrate` has moved, so that no hub uses them again.
pub(crate) const MIGRATED_SUFFIX: &str = ".migrated";

/// The smallest size that the limit on all journals together leaves for one, so that SQLite can work.
const MIN_JOURNAL_BYTES: u64 = 256 * 1024;

/// The opened journals, by shard.
pub(super) struct OpenedJournals {
    pub(super) journals: Vec<Box<dyn Journal>>,
    pub(super) map: ShardMap,
    /// A line about the journals' settings, unless they are in memory.
    pub(super) status: Option<String>,
    pub(super) ownership: JournalOwnership,
}

impl OpenedJournals {
    /// The shards of a cluster, of which a node opens each when it acquires it.
    pub(super) fn of_cluster(map: ShardMap, status: String) -> Self {
        Self { journals: Vec::new(), map, status: Some(status), ownership: JournalOwnership::default() }
    }
}

/// Returns the name of a shard's journal in the data folder.
pub(crate) fn journal_file_name(shard: u16) -> String {
    if shard == 0 { JOURNAL_FILE_NAME.to_owned() } else { format!("journal-{shard}.sqlite") }
}

/// Returns the shard whose journal has this name, if it is the name of a journal.
pub(crate) fn shard_of_file_name(name: &str) -> Option<u16> {
    if name == JOURNAL_FILE_NAME {
        return Some(0);
    }
    let shard = name.strip_prefix("journal-")?.strip_suffix(".sqlite")?.parse().ok()?;
    (shard > 0 && name == journal_file_name(shard)).then_some(shard)
}

/// Opens the journals of all shards.
pub(super) fn open(config: &Config) -> Result<OpenedJournals, String> {
    let count = u16::try_from(config.shards).unwrap_or(ShardMap::MAX_COUNT);
    let map = ShardMap::new(count);
    let ownership = JournalOwnership::default();
    if config.memory {
        let journal = |_| Box::new(MemoryJournal::default()) as Box<dyn Journal>;
        return Ok(OpenedJournals {
            journals: map.all().into_iter().map(journal).collect(),
            map,
            status: None,
            ownership,
        });
    }
    #[cfg(feature = "postgres")]
    if let Some(address) = &config.database {
        return super::database_journal::open(address.expose(), config);
    }
    super::create_data_dir(&config.data)?;
    refuse_interrupted_move(&config.data)?;
    if config.data.join(format!("{JOURNAL_FILE_NAME}{MIGRATED_SUFFIX}")).exists() {
        return Err(format!(
            "the journal of {} was moved to a database; start the hub with --journal, or use another folder",
            config.data.display()
        ));
    }
    let first_path = config.data.join(JOURNAL_FILE_NAME);
    let existing = first_path.exists().then(|| open_file(config, 0, count)).transpose()?;
    if !config.journal.accept_loss {
        refuse_left_over_journals(&config.data, count)?;
    }
    let mut others = Vec::new();
    for shard in 1..count {
        let path = config.data.join(journal_file_name(shard));
        if existing.is_some() && !path.exists() && !config.journal.accept_loss {
            return Err(missing(&path));
        }
        others.push(open_file(config, shard, count)?);
    }
    let first = match existing {
        Some(first) => first,
        // If a first start was interrupted, the others exist, but nothing is in them.
        None if !others.iter().all(SqliteJournal::is_unused) && !config.journal.accept_loss => {
            return Err(missing(&first_path));
        }
        None => open_file(config, 0, count)?,
    };
    let was_single = first.shard().map_err(|error| error.to_string())?.was_single;
    let settings = first.effective_settings().map_err(|error| error.to_string())?;
    let durability_settings =
        settings.iter().filter(|(name, _)| ["journal_mode", "synchronous"].contains(name));
    let effective: Vec<_> = durability_settings.map(|(name, value)| format!("{name}={value}")).collect();
    let shards = if count == 1 { String::new() } else { format!(" and those of {} more shards", count - 1) };
    let status = format!("journal {}{shards}: {}", first_path.display(), effective.join(" "));
    let journals = std::iter::once(first).chain(others);
    Ok(OpenedJournals {
        journals: journals.map(|journal| Box::new(journal) as Box<dyn Journal>).collect(),
        map: map.with_former_single(was_single),
        status: Some(status),
        ownership,
    })
}

fn refuse_interrupted_move(data: &Path) -> Result<(), String> {
    if data.join(MIGRATION_MARK_NAME).exists() {
        return Err(format!(
            "{} is being moved to a database; run sayso migrate again to finish, and then use --journal",
            data.display()
        ));
    }
    Ok(())
}

fn missing(path: &Path) -> String {
    format!("{} is missing; restore a backup, or start once with --accept-loss", path.display())
}

/// Refuses a data folder that has the journal of a further shard with entries. The folder then once had more shards, and
/// its first journal is older. An interrupted `sayso reshard` leaves unused journals.
fn refuse_left_over_journals(data: &Path, count: u16) -> Result<(), String> {
    for shard in count..ShardMap::MAX_COUNT {
        let path = data.join(journal_file_name(shard));
        if path.exists() {
            refuse_used_journal(&path, &SqliteSettings::default())?;
        }
    }
    Ok(())
}

fn refuse_used_journal(path: &Path, settings: &SqliteSettings) -> Result<(), String> {
    match SqliteJournal::open(path, settings) {
        Ok(journal) if journal.is_unused() => Ok(()),
        Ok(_) => Err(format!(
            "{} has entries, so the data folder once had more shards, and its first journal is an older one; restore a backup",
            path.display()
        )),
        Err(JournalError::WrongShard { found, .. }) => Err(format!(
            "{} is {found}; remove it if it is left over from an earlier attempt",
            path.display()
        )),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

fn open_file(config: &Config, shard: u16, count: u16) -> Result<SqliteJournal, String> {
    let path = config.data.join(journal_file_name(shard));
    // The limit on the size of the journal holds for all shards together.
    let max_bytes =
        config.journal.max_bytes.map(|max| (max / u64::from(count)).max(MIN_JOURNAL_BYTES.min(max)));
    let settings =
        SqliteSettings { max_bytes, shard: Some(ShardRecord::new(shard, count)), ..config.journal };
    SqliteJournal::open(&path, &settings).map_err(|error| describe_open_error(&config.data, &path, &error))
}

fn describe_open_error(data: &Path, path: &Path, error: &JournalError) -> String {
    match error {
        JournalError::WrongShard { found, expected } if found.count == 1 && found.index == expected.index => {
            format!(
                "{data} has one shard, and hub.shards is {count}; to give it {count}, run: sayso reshard --data {data} --shards {count}",
                data = printable(&data.to_string_lossy()),
                count = expected.count,
            )
        }
        JournalError::WrongShard { found, expected } if found.index == expected.index => format!(
            "{} was created with {} shards, and hub.shards is {}; the number cannot be changed",
            data.display(),
            found.count,
            expected.count,
        ),
        JournalError::EntriesLost(_) => {
            format!("{}: {error}; restore a backup, or start once with --accept-loss", path.display())
        }
        _ => format!("{}: {error}", path.display()),
    }
}

/// Gives the data folder of a stopped hub with one shard more shards. The journal becomes shard 0's.
pub(crate) fn reshard(data: &Path, count: u16) -> Result<(), String> {
    refuse_interrupted_move(data)?;
    let path = data.join(JOURNAL_FILE_NAME);
    let describe = |path: &Path, error: &JournalError| format!("{}: {error}", path.display());
    let mut first =
        SqliteJournal::open(&path, &SqliteSettings::default()).map_err(|error| describe(&path, &error))?;
    let found = first.shard().map_err(|error| error.to_string())?;
    if found.count != 1 {
        return Err(format!(
            "{} already has {} shards; the number cannot be changed again",
            data.display(),
            found.count
        ));
    }
    // If this is interrupted, the folder still has one shard, and the command can be repeated.
    for shard in 1..count {
        let path: PathBuf = data.join(journal_file_name(shard));
        let settings =
            SqliteSettings { shard: Some(ShardRecord::new(shard, count)), ..SqliteSettings::default() };
        refuse_used_journal(&path, &settings)?;
    }
    first.make_first_of(count).map_err(|error| describe(&path, &error))
}
