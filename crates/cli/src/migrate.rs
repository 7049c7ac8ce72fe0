//! `sayso migrate`: moves the data folder of a stopped hub into a Postgres database.

use std::path::PathBuf;

use crate::ExitStatus;
use crate::file::CommandError;

#[derive(clap::Args)]
pub(crate) struct MigrateArgs {
    /// Data folder of the hub, which must be stopped.
    #[arg(long, value_name = "DIR", default_value = "sayso-data")]
    data: PathBuf,
    /// Postgres database to move to, as in sayso serve --journal. Default: SAYSO_JOURNAL. No hub must have used it.
    #[arg(long, value_name = "URL")]
    journal: Option<String>,
    /// Number of shards of the database, which cannot be changed again. Default: as many as the folder has. Only a folder
    /// with one shard can get more.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(hub::ShardMap::MAX_COUNT)))]
    shards: Option<u16>,
}

pub(crate) fn run(arguments: &MigrateArgs) -> Result<ExitStatus, CommandError> {
    #[cfg(feature = "postgres")]
    return with_postgres::run(arguments);
    #[cfg(not(feature = "postgres"))]
    {
        let MigrateArgs { data: _, journal: _, shards: _ } = arguments;
        Err(crate::cluster::WITHOUT_POSTGRES.to_owned().into())
    }
}

#[cfg(feature = "postgres")]
mod with_postgres {
    use std::io::{Read as _, Write as _};
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    use journal::{
        ImportReport, ImportedText, Journal as _, JournalError, LeaseSettings, PostgresDatabase,
        PostgresJournal, ShardOwner, SharedTexts, SqliteJournal, SqliteSettings,
    };
    use seal::{Random as _, SystemRandom, base64url, es256};

    use super::MigrateArgs;
    use crate::ExitStatus;
    use crate::cluster::{database_address, open_database};
    use crate::file::CommandError;
    use crate::output::{describe_io_error, print_stdout};
    use crate::serve::cluster_texts::{RECEIPT_KEY_TEXT, TOKENS_TEXT};
    use crate::serve::{JOURNAL_FILE_NAME, MIGRATED_SUFFIX, MIGRATION_MARK_NAME, journal_file_name};

    /// Marks a folder whose journals may already be in the database. No hub starts on it.
    struct MigrationMark {
        path: PathBuf,
        /// Identifies the move. The database stores it together with everything else, so it shows whether the move was made.
        id: String,
    }

    /// The name of the text in the database that has the id of a move.
    const MOVE_TEXT: &str = "move";
    /// Maximum size of the mark.
    const MAX_MARK_BYTES: u64 = 1024;

    impl MigrationMark {
        /// Creates the mark, if it does not exist. Returns whether an earlier attempt has left it.
        fn create(data: &Path) -> Result<(Self, bool), String> {
            let path = data.join(MIGRATION_MARK_NAME);
            let describe = |error| format!("cannot write {}: {}", path.display(), describe_io_error(&error));
            let mut id = String::new();
            if let Ok(file) = std::fs::File::open(&path) {
                file.take(MAX_MARK_BYTES).read_to_string(&mut id).map_err(describe)?;
            }
            let was_there = !id.trim().is_empty();
            if !was_there {
                let mut random = [0; 16];
                SystemRandom.fill(&mut random);
                id = base64url::encode(&random);
                let written = std::fs::File::create(&path)
                    .and_then(|mut file| file.write_all(id.as_bytes()).and_then(|()| file.sync_all()));
                written.and_then(|()| sync_folder(data)).map_err(describe)?;
            }
            Ok((Self { path, id: id.trim().to_owned() }, was_there))
        }

        fn remove(self) -> Result<(), String> {
            std::fs::remove_file(&self.path).map_err(|error| {
                format!("cannot remove {}: {}", self.path.display(), describe_io_error(&error))
            })
        }

        /// Whether the database has everything that this move copies, and its standbys have confirmed it.
        fn is_stored(&self, database: &PostgresDatabase) -> Result<bool, JournalError> {
            let mut texts = SharedTexts::new(database);
            while let Some(stored) = texts.read(MOVE_TEXT, None)?.filter(|stored| stored.content == self.id) {
                // The earlier attempt may have ended while it waited for a standby. A standby that confirms this change has
                // everything before it, too.
                if texts.replace(MOVE_TEXT, &self.id, Some(stored.version))? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
    }

    fn sync_folder(folder: &Path) -> std::io::Result<()> {
        std::fs::File::open(folder)?.sync_all()
    }

    pub(super) fn run(arguments: &MigrateArgs) -> Result<ExitStatus, CommandError> {
        let data = &arguments.data;
        if data.join(format!("{JOURNAL_FILE_NAME}{MIGRATED_SUFFIX}")).exists() {
            return Err(format!(
                "{} was already migrated; start the hub with --journal and the address of its database",
                data.display()
            )
            .into());
        }
        if !data.join(JOURNAL_FILE_NAME).is_file() {
            return Err(format!(
                "{} is not the data folder of a hub; use --data to name the folder",
                data.display()
            )
            .into());
        }
        let address = database_address(arguments.journal.as_deref())?;
        let mut sources = Sources::open(data)?;
        let count = sources.target_count(data, arguments.shards)?;
        let database = open_database(&address)?;
        let texts = FolderTexts::read(data)?;
        let (mark, was_interrupted) = MigrationMark::create(data)?;
        let report = match import(&database, &mut sources, count, &texts, &mark) {
            Ok(report) => report,
            Err(error @ JournalError::OutcomeUnknown(_)) => {
                return Err(format!("{error}. Run the command again, and do not start the old hub").into());
            }
            Err(error) => {
                // An earlier attempt may have copied everything, if the database could not be asked.
                if !was_interrupted {
                    mark.remove()?;
                }
                return Err(error.to_string().into());
            }
        };
        sources.retire()?;
        sync_folder(data).map_err(|error| describe_io_error(&error))?;
        mark.remove()?;
        let copied = match report {
            Some(report) => format!(
                "Copied {}, {} and {}",
                count_of(report.events, "event"),
                count_of(report.sessions, "session"),
                count_of(report.questions, "question")
            ),
            None => "An earlier attempt had already copied everything".to_owned(),
        };
        Ok(print_stdout(&format!(
            "{copied} to {}, which has {}.\n\
             The old journal is kept under the name {JOURNAL_FILE_NAME}{MIGRATED_SUFFIX}. Do not use it again: it has answers that can still permit calls.\n",
            database.settings(),
            count_of(count.into(), "shard"),
        )))
    }

    fn count_of(count: u64, noun: &str) -> String {
        if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
    }

    /// The journals of a data folder.
    struct Sources {
        journals: Vec<SqliteJournal>,
        paths: Vec<PathBuf>,
        was_single: bool,
    }

    impl Sources {
        fn open(data: &Path) -> Result<Self, String> {
            let open = |shard| {
                let path = data.join(journal_file_name(shard));
                if !path.is_file() {
                    return Err(format!("{} is missing", path.display()));
                }
                let describe = |error: JournalError| format!("{}: {error}", path.display());
                let mut journal = SqliteJournal::open(&path, &SqliteSettings::default()).map_err(describe)?;
                let record = journal.shard().map_err(describe)?;
                if journal.restore().map_err(describe)?.must_void_consents {
                    return Err(format!(
                        "{} was restored from a backup; start the hub on the folder once, so that it voids the answers that may have been used",
                        data.display()
                    ));
                }
                // Nothing is decided about the database before all files are known to be intact.
                journal.check_integrity().map_err(describe)?;
                Ok((path, journal, record))
            };
            let (path, journal, first) = open(0)?;
            let mut sources =
                Self { journals: vec![journal], paths: vec![path], was_single: first.was_single };
            for shard in 1..first.count {
                let (path, journal, record) = open(shard)?;
                if (record.index, record.count) != (shard, first.count) {
                    return Err(format!("{}: the journal is {record}", path.display()));
                }
                sources.journals.push(journal);
                sources.paths.push(path);
            }
            Ok(sources)
        }

        /// Returns the number of shards of the database.
        fn target_count(&mut self, data: &Path, wanted: Option<u16>) -> Result<u16, String> {
            let count = u16::try_from(self.journals.len()).unwrap_or(u16::MAX);
            let target = wanted.unwrap_or(count);
            if count > 1 && target != count {
                return Err(format!(
                    "{} has {count} shards, so the database must have {count} shards, too; leave out --shards",
                    data.display()
                ));
            }
            self.was_single |= count == 1 && target > 1;
            Ok(target)
        }

        /// Renames the journals, so that no hub uses them again.
        fn retire(self) -> Result<(), String> {
            drop(self.journals);
            for path in &self.paths {
                for suffix in ["", "-wal", "-shm"] {
                    let name = |end: &str| {
                        let mut name = path.clone().into_os_string();
                        name.push(end);
                        PathBuf::from(name)
                    };
                    let (from, to) = (name(suffix), name(&format!("{MIGRATED_SUFFIX}{suffix}")));
                    match std::fs::rename(&from, &to) {
                        Ok(()) => {}
                        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                        Err(error) => {
                            return Err(format!(
                                "everything was copied, but {} cannot be renamed to {}: {}; rename it, so that no hub uses it again",
                                from.display(),
                                to.display(),
                                describe_io_error(&error)
                            ));
                        }
                    }
                }
            }
            Ok(())
        }
    }

    /// The tokens and the key of a data folder, which the nodes of a cluster share.
    struct FolderTexts {
        tokens: Option<String>,
        receipt_key: Option<String>,
    }

    impl FolderTexts {
        fn read(data: &Path) -> Result<Self, String> {
            let path = data.join("tokens");
            let tokens = if path.exists() {
                Some(wire::auth::Tokens::load(&path).map_err(|error| error.to_string())?.to_text())
            } else {
                None
            };
            let path = data.join("manifest.key");
            let receipt_key = if path.exists() {
                let key = es256::SigningKey::load(&path).map_err(|error| error.to_string())?;
                Some(base64url::encode(&key.secret()[..]))
            } else {
                None
            };
            Ok(Self { tokens, receipt_key })
        }

        fn to_import<'t>(&'t self, mark: &'t MigrationMark) -> Vec<ImportedText<'t>> {
            let texts = [
                (TOKENS_TEXT, self.tokens.as_deref()),
                (RECEIPT_KEY_TEXT, self.receipt_key.as_deref()),
                (MOVE_TEXT, Some(&*mark.id)),
            ];
            texts
                .into_iter()
                .filter_map(|(name, content)| Some(ImportedText { name, content: content? }))
                .collect()
        }
    }

    /// Copies the journals. Returns `None` if an earlier attempt has already copied them.
    fn import(
        database: &PostgresDatabase,
        sources: &mut Sources,
        count: u16,
        texts: &FolderTexts,
        mark: &MigrationMark,
    ) -> Result<Option<ImportReport>, JournalError> {
        if mark.is_stored(database)? {
            return Ok(None);
        }
        let configured = i32::from(count);
        if let Some(stored) = database.shard_count()?.filter(|stored| *stored != configured) {
            return Err(JournalError::ShardCount { stored, configured });
        }
        let owner =
            ShardOwner { name: format!("sayso migrate, process {}", std::process::id()), address: None };
        let lease =
            LeaseSettings { duration: Duration::from_mins(1), max_wait: Duration::ZERO, take_over: false };
        let journals = PostgresJournal::open_all(database, count, &owner, &lease)?;
        PostgresJournal::import(&journals, &sources.journals, sources.was_single, &texts.to_import(mark))
            .map(Some)
    }
}
