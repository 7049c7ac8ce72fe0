//! `sayso backup` and `sayso restore`: copies of a hub's data folder.
//!
//! A backup is a folder or a tar file with the files of the data folder and the list `SHA256SUMS`, which is written last.
//! So a backup without a complete list is incomplete. A restored journal is marked. When the hub starts with it, it first voids unspent
//! consents and answers open questions with no, because they may have been spent or answered after the backup.

mod location;
mod tar;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read as _, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use journal::{Journal, ShardRecord, SqliteJournal, SqliteSettings};
use seal::Digest;
use wire::auth::Tokens;

use crate::ExitStatus;
use crate::file::{CommandError, create_private_dir};
use crate::output::{describe_io_error, pluralize, print_stdout};
use crate::serve::{JOURNAL_FILE_NAME, control, shard_of_file_name};
use location::{
    Destination, Source, copy_file, create_empty_dir, discard, read_error, sync_folder, write_error,
};

#[derive(clap::Args)]
pub(crate) struct BackupArgs {
    /// Data folder of the hub.
    #[arg(long, value_name = "DIR", default_value = "sayso-data")]
    data: PathBuf,
    /// Folder for the backup, which must be empty or missing, or a new tar file whose name ends in .tar.
    #[arg(value_name = "DEST")]
    destination: PathBuf,
}

#[derive(clap::Args)]
pub(crate) struct RestoreArgs {
    /// Folder or tar file with the backup.
    #[arg(value_name = "SOURCE")]
    source: PathBuf,
    /// Data folder for the hub. It must be empty or missing.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
}

/// The list of all files in a backup with their digests, in the format of `sha256sum`.
const LIST_FILE_NAME: &str = "SHA256SUMS";
const MAX_LIST_BYTES: u64 = 1024 * 1024;
const LIST_TITLE: &str = "# sayso backup 1, files: ";

/// The folder inside the data folder that holds the files until they are checked.
const STAGING_FOLDER_NAME: &str = "restoring";

/// Name of the token file in a backup.
const TOKEN_FILE_NAME: &str = "tokens";

/// Maximum size of an answer that the hub sends through its control socket.
const MAX_ANSWER_BYTES: u64 = 4096;

pub(crate) fn back_up(arguments: &BackupArgs) -> Result<ExitStatus, CommandError> {
    let BackupArgs { data, destination } = arguments;
    if !data.join(JOURNAL_FILE_NAME).is_file() {
        return Err(format!(
            "{} is not the data folder of a hub; use --data to name the folder",
            data.display()
        )
        .into());
    }
    let open_destination = Destination::create(destination, data)?;
    let cleanup = open_destination.cleanup();
    let files = match copy_data_folder(data, open_destination) {
        Ok(files) => files,
        Err(error) => {
            cleanup();
            return Err(error.into());
        }
    };
    let count = pluralize(files as u64, "file");
    Ok(print_stdout(&format!("Backed up {count} to {}.\n", destination.display())))
}

pub(crate) fn restore(arguments: &RestoreArgs) -> Result<ExitStatus, CommandError> {
    let RestoreArgs { source, data } = arguments;
    let source = Source::open(source)?;
    let list = read_list(&source)?;
    let is_new = create_empty_dir(data)?;
    fill_data_folder(&source, &list, data).inspect_err(|_| discard(data, is_new))?;
    let count = pluralize(list.len() as u64, "file");
    Ok(print_stdout(&format!(
        "Restored {count} to {}. At its next start, the hub voids unspent consents and answers open questions with no. \
        Tokens that were removed after the backup are valid again.\n",
        data.display()
    )))
}

/// Copies all files and writes the list. Returns the number of files.
fn copy_data_folder(data: &Path, mut destination: Destination) -> Result<usize, String> {
    let (journals, names): (Vec<_>, Vec<_>) =
        data_file_names(data)?.into_iter().partition(|name| shard_of_file_name(name).is_some());
    let pause = CheckpointPause::start(data, &journals)?;
    let mut list = Vec::new();
    let mut journal_files = Vec::new();
    for name in &journals {
        let path = data.join(name);
        let mut file = File::open(&path).map_err(|error| read_error(&path, &error))?;
        list.push((name.clone(), destination.add(name, &mut file)?));
        // Closing the file would release SQLite's lock, which this process may hold. So the file stays open until the pause
        // ends.
        journal_files.push(file);
    }
    for name in &names {
        let path = data.join(name);
        let mut file = File::open(&path).map_err(|error| read_error(&path, &error))?;
        if name == TOKEN_FILE_NAME {
            list.push((name.clone(), add_tokens(&mut file, &path, &mut destination)?));
        } else {
            list.push((name.clone(), destination.add(name, &mut file)?));
        }
    }
    pause.end()?;
    drop(journal_files);
    let format_line = |(name, digest): &(String, Digest)| {
        format!("{}  {name}\n", digest.to_string().trim_start_matches("sha256:"))
    };
    let text = format!("{LIST_TITLE}{}\n{}", list.len(), list.iter().map(format_line).collect::<String>());
    destination.add(LIST_FILE_NAME, &mut text.as_bytes())?;
    destination.finish()?;
    Ok(list.len())
}

/// Copies the token file. Checks the copy, because another process may change the file while it is read.
fn add_tokens(file: &mut File, path: &Path, destination: &mut Destination) -> Result<Digest, String> {
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(|error| read_error(path, &error))?;
    Tokens::parse(&text, path).map_err(|error| format!("the copy is not usable: {error}"))?;
    destination.add(TOKEN_FILE_NAME, &mut text.as_bytes())
}

/// Returns the names of the files to copy: all except `SHA256SUMS` and the auxiliary files of the journals, such as
/// `…sqlite-wal`.
fn data_file_names(data: &Path) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(data).map_err(|error| read_error(data, &error))? {
        let path = entry.map_err(|error| read_error(data, &error))?.path();
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let journal = name.find(".sqlite-").and_then(|end| name.get(..end + ".sqlite".len()));
        let is_beside_journal = journal.and_then(shard_of_file_name).is_some();
        if path.is_file() && !is_beside_journal && name != LIST_FILE_NAME {
            if !is_plain_name(name) {
                return Err(format!("{}: a file with this name cannot be backed up", path.display()));
            }
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Whether a name is safe in the list: it names a file in the same folder, on one line.
fn is_plain_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\\']) && !name.chars().any(char::is_control)
}

/// Keeps the journal file unchanged while it is copied.
enum CheckpointPause {
    /// The hub is running and pauses its checkpoints while this connection is open.
    Running(BufReader<UnixStream>),
    /// The hub is stopped. This process has locked the journals of all shards.
    Stopped(Vec<SqliteJournal>),
}

impl CheckpointPause {
    fn start(data: &Path, journals: &[String]) -> Result<Self, String> {
        let socket = control::socket_path(data);
        match UnixStream::connect(&socket) {
            Ok(stream) => {
                let mut stream = BufReader::new(stream);
                exchange(&mut stream, control::PAUSE, control::PAUSED)?;
                Ok(Self::Running(stream))
            }
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
                let pause = |name: &String| {
                    let path = data.join(name);
                    let mut journal = SqliteJournal::open(&path, &SqliteSettings::default())
                        .map_err(|error| format!("{}: {error}", path.display()))?;
                    journal.pause_checkpoints().map_err(|error| error.to_string())?;
                    Ok(journal)
                };
                journals.iter().map(pause).collect::<Result<_, String>>().map(Self::Stopped)
            }
            Err(error) => Err(format!("{}: {}", socket.display(), describe_io_error(&error))),
        }
    }

    /// Ends the pause. Fails if the file may have changed in the meantime.
    fn end(self) -> Result<(), String> {
        match self {
            Self::Running(mut stream) => exchange(&mut stream, control::RESUME, control::RESUMED),
            Self::Stopped(mut journals) => {
                let mut resumed = journals.iter_mut().map(SqliteJournal::resume_checkpoints);
                resumed.find(Result::is_err).unwrap_or(Ok(())).map_err(|error| error.to_string())
            }
        }
    }
}

/// Sends a line to the hub and expects this answer.
fn exchange(stream: &mut BufReader<UnixStream>, line: &str, expected: &str) -> Result<(), String> {
    let sent = stream.get_mut().write_all(format!("{line}\n").as_bytes());
    let mut answer = String::new();
    let received = sent.and_then(|()| io::Read::take(stream, MAX_ANSWER_BYTES).read_line(&mut answer));
    match (received, answer.trim_end()) {
        (Ok(_), answer) if answer == expected => Ok(()),
        (Ok(_), "") | (Err(_), _) => {
            Err("the hub ended the backup: it was stopped, or backup.timeout has passed".to_owned())
        }
        (Ok(_), reason) => {
            Err(format!("the hub cannot be backed up now: {}", crate::output::printable(reason)))
        }
    }
}

/// Reads and checks the list of a backup.
fn read_list(source: &Source) -> Result<Vec<(String, Digest)>, String> {
    let invalid = || format!("{} is not the complete list of a backup", source.describe(LIST_FILE_NAME));
    let mut text = String::new();
    let list = source.file(LIST_FILE_NAME)?;
    list.take(MAX_LIST_BYTES).read_to_string(&mut text).map_err(|_| invalid())?;
    let mut lines = text.lines();
    let count = lines.next().and_then(|title| title.strip_prefix(LIST_TITLE)?.parse::<usize>().ok());
    let parse = |line: &str| {
        let (digest, name) = line.split_once("  ")?;
        let digest = Digest::parse(&format!("sha256:{digest}"))?;
        is_plain_name(name).then(|| (name.to_owned(), digest))
    };
    let list: Vec<_> = lines.map(parse).collect::<Option<_>>().ok_or_else(invalid)?;
    let has_journal = list.iter().any(|(name, _)| name == JOURNAL_FILE_NAME);
    if count == Some(list.len()) && text.ends_with('\n') && has_journal { Ok(list) } else { Err(invalid()) }
}

/// Copies the files into a folder inside the data folder, checks them there, and then moves them into place.
fn fill_data_folder(source: &Source, list: &[(String, Digest)], data: &Path) -> Result<(), String> {
    let staging = data.join(STAGING_FOLDER_NAME);
    create_private_dir(&staging).map_err(|error| write_error(&staging, &error))?;
    for (name, digest) in list {
        if copy_file(&mut source.file(name)?, &staging, name)? != *digest {
            let damaged = source.describe(name);
            return Err(format!("{damaged} is damaged: its digest differs from {LIST_FILE_NAME}"));
        }
    }
    let journals: Vec<_> = list.iter().filter(|(name, _)| shard_of_file_name(name).is_some()).collect();
    for (name, _) in &journals {
        let shard = mark_and_check(&staging.join(name))
            .map_err(|error| format!("the backup's journal is not usable: {name}: {error}"))?;
        if shard_of_file_name(name) != Some(shard.index) || usize::from(shard.count) != journals.len() {
            return Err(format!("the backup's journals do not belong together: {name} is {shard}"));
        }
    }
    // The first journal is moved last. Without it, the folder is not the data folder of a hub.
    let mut names: Vec<_> = fs::read_dir(&staging)
        .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>())
        .map_err(|error| read_error(&staging, &error))?;
    names.sort_by_key(|name| name == JOURNAL_FILE_NAME);
    for name in names {
        fs::rename(staging.join(&name), data.join(&name)).map_err(|error| write_error(data, &error))?;
    }
    fs::remove_dir(&staging).map_err(|error| write_error(&staging, &error))?;
    sync_folder(data)
}

/// Marks a journal as restored, and checks every row. Returns its shard. A backup does not
/// contain the file that records how much was written to the journal (the high-water mark), so a copy opens only with `accept_loss`.
fn mark_and_check(path: &Path) -> Result<ShardRecord, journal::JournalError> {
    let mut journal =
        SqliteJournal::open(path, &SqliteSettings { accept_loss: true, ..SqliteSettings::default() })?;
    journal.check_integrity()?;
    if journal.restore()?.must_void_consents {
        journal.shard()
    } else {
        Err(journal::JournalError::CopyInterrupted)
    }
}
