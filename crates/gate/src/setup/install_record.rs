//! Records what an installation changed in a file, so that its removal can restore the file byte for byte.
//!
//! A record contains the changed lines and two digests, not a copy of the file, because the file can contain secrets.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use seal::Digest;
use seal::json::{JsonValue, Tape, write_object};

use super::SetupError;
use super::text_edits::{TextEdit, compute_edits, undo_edits};

/// Version of the format.
const VERSION: i64 = 1;
/// Maximum length of a record, in bytes. A record is little longer than the lines that the installation
/// replaced, and a configuration file has at most 32 MiB.
const MAX_RECORD_BYTES: u64 = 64 * 1024 * 1024;

/// The record of the changes that an installation made to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InstallRecord {
    /// Whether the file did not exist before.
    is_new_file: bool,
    /// Folders that were created for it, the innermost first.
    pub(crate) new_folders: Vec<PathBuf>,
    original_digest: Digest,
    written_digest: Digest,
    edits: Vec<TextEdit>,
}

/// A file before an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OriginalFile {
    /// The contents, or `None` if there was no file.
    pub(crate) text: Option<String>,
}

impl InstallRecord {
    pub(crate) fn new(original: Option<&str>, written: &str, new_folders: Vec<PathBuf>) -> Self {
        let text = original.unwrap_or_default();
        Self {
            is_new_file: original.is_none(),
            new_folders,
            original_digest: Digest::of(text.as_bytes()),
            written_digest: Digest::of(written.as_bytes()),
            edits: compute_edits(text, written),
        }
    }

    /// Returns whether the file did not exist before the installation.
    pub(crate) fn is_new_file(&self) -> bool {
        self.is_new_file
    }

    /// Returns the original contents if the file is still as the installation wrote it.
    pub(crate) fn restore(&self, current: &str) -> Option<OriginalFile> {
        if Digest::of(current.as_bytes()) != self.written_digest {
            return None;
        }
        let original = undo_edits(current, &self.edits)?;
        if Digest::of(original.as_bytes()) != self.original_digest {
            return None;
        }
        Some(OriginalFile { text: (!self.is_new_file).then_some(original) })
    }

    fn to_json(&self, file: &Path) -> String {
        write_object(|writer| {
            writer.key("version").integer(VERSION);
            // Only for people who look into the folder.
            writer.key("file").text(&file.to_string_lossy());
            writer.key("is_new_file").boolean(self.is_new_file);
            writer.key("new_folders").array(|writer| {
                for folder in &self.new_folders {
                    writer.text(&folder.to_string_lossy());
                }
            });
            writer.key("original_digest").text(&self.original_digest.to_string());
            writer.key("written_digest").text(&self.written_digest.to_string());
            writer.key("edits").array(|writer| {
                for edit in &self.edits {
                    writer.object(|writer| {
                        writer.key("offset").integer(i64::try_from(edit.offset).unwrap_or(i64::MAX));
                        writer.key("inserted").integer(i64::try_from(edit.inserted).unwrap_or(i64::MAX));
                        writer.key("removed").text(&edit.removed);
                    });
                }
            });
        })
    }

    fn from_json(text: &str) -> Option<Self> {
        let mut tape = Tape::default();
        let root = tape.read(text).ok()?.root();
        if root.member("version")?.as_number()?.as_i64()? != VERSION {
            return None;
        }
        let digest_of = |name: &str| Digest::parse(&root.member(name)?.text()?);
        let folders = root.member("new_folders")?.items().map(|folder| Some(PathBuf::from(&*folder.text()?)));
        let edits = root.member("edits")?.items().map(|edit| read_edit(&edit));
        Some(Self {
            is_new_file: root.member("is_new_file")?.as_bool()?,
            new_folders: folders.collect::<Option<_>>()?,
            original_digest: digest_of("original_digest")?,
            written_digest: digest_of("written_digest")?,
            edits: edits.collect::<Option<_>>()?,
        })
    }
}

/// The folder that contains the records.
#[derive(Clone, Debug)]
pub(crate) struct RecordFolder(pub(crate) PathBuf);

impl RecordFolder {
    /// Reads the record of a file. A record that cannot be read counts as missing, because removal works without one.
    pub(crate) fn load(&self, file: &Path) -> Option<InstallRecord> {
        let path = self.path_of(file);
        if fs::metadata(&path).ok()?.len() > MAX_RECORD_BYTES {
            return None;
        }
        InstallRecord::from_json(&fs::read_to_string(path).ok()?)
    }

    /// Writes a record. Only the user can read it.
    pub(crate) fn store(&self, file: &Path, record: &InstallRecord) -> Result<(), SetupError> {
        let path = self.path_of(file);
        let temporary = path.with_extension("tmp");
        let failed = |error| SetupError::io("write", &temporary)(error);
        let mut options = seal::private_file::open_options();
        let mut out = options.write(true).create(true).truncate(true).open(&temporary).map_err(failed)?;
        let written = out.write_all(record.to_json(file).as_bytes()).and_then(|()| out.sync_all());
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written.map_err(failed)?;
        fs::rename(&temporary, &path).map_err(SetupError::io("write", path))
    }

    /// Deletes the record of a file, if there is one.
    pub(crate) fn delete(&self, file: &Path) -> Result<(), SetupError> {
        let path = self.path_of(file);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(SetupError::io("delete", path)(error)),
            _ => Ok(()),
        }
    }

    /// Waits until no other `sayso setup` of this user changes files. Dropping the file releases the lock.
    pub(crate) fn lock(&self) -> Result<File, SetupError> {
        let Self(folder) = self;
        let mut builder = fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(folder).map_err(SetupError::io("create", folder))?;
        let path = folder.join("lock");
        let mut options = seal::private_file::open_options();
        let file = options.write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(SetupError::io("open", &path))?;
        file.lock().map_err(SetupError::io("lock", path))?;
        Ok(file)
    }

    fn path_of(&self, file: &Path) -> PathBuf {
        let digest = Digest::of(file.as_os_str().as_encoded_bytes()).to_string();
        self.0.join(format!("{}.json", digest.trim_start_matches("sha256:")))
    }
}

fn read_edit(edit: &JsonValue<'_>) -> Option<TextEdit> {
    let number = |name: &str| usize::try_from(edit.member(name)?.as_number()?.as_i64()?).ok();
    Some(TextEdit {
        offset: number("offset")?,
        inserted: number("inserted")?,
        removed: edit.member("removed")?.text()?.into_owned(),
    })
}
