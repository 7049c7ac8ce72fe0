//! Where a backup is: in a folder, or in a tar file.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use seal::{Digest, private_file};

use super::tar::{TarReader, TarWriter};
use crate::file::create_private_dir;
use crate::output::describe_io_error;

/// A backup that is being written.
pub(super) enum Destination {
    Folder { path: PathBuf, is_new: bool },
    Archive { path: PathBuf, tar: TarWriter },
}

impl Destination {
    /// Creates the destination, which is a tar file if its name ends in `.tar`.
    pub(super) fn create(path: &Path, data: &Path) -> Result<Self, String> {
        let path = path.to_owned();
        if path.extension().is_none_or(|extension| extension != "tar") || path.is_dir() {
            let is_new = create_empty_dir(&path)?;
            return Ok(Self::Folder { path, is_new });
        }
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let canonical = |path: &Path| fs::canonicalize(path).map_err(|error| write_error(path, &error));
        if canonical(folder.unwrap_or(Path::new(".")))? == canonical(data)? {
            return Err(format!(
                "{} is in the data folder, which would be part of the next backup",
                path.display()
            ));
        }
        let file = private_file::open_options().read(true).write(true).create_new(true).open(&path);
        let tar = TarWriter::new(file.map_err(|error| write_error(&path, &error))?);
        Ok(Self::Archive { path, tar })
    }

    /// Copies a file into the backup. Returns the digest of the copy.
    pub(super) fn add(&mut self, name: &str, source: &mut impl Read) -> Result<Digest, String> {
        match self {
            Self::Folder { path, .. } => copy_file(source, path, name),
            Self::Archive { path, tar } => tar.add(name, source).map_err(|error| write_error(path, &error)),
        }
    }

    /// Makes everything durable.
    pub(super) fn finish(self) -> Result<(), String> {
        match self {
            Self::Folder { path, .. } => sync_folder(&path),
            Self::Archive { path, tar } => {
                tar.finish().map_err(|error| write_error(&path, &error))?;
                let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
                sync_folder(folder.unwrap_or(Path::new(".")))
            }
        }
    }

    /// Returns a function that removes the destination, for a backup that fails.
    pub(super) fn cleanup(&self) -> impl FnOnce() + use<> {
        let (path, is_new_folder) = match self {
            Self::Folder { path, is_new } => (path.clone(), Some(*is_new)),
            Self::Archive { path, .. } => (path.clone(), None),
        };
        move || match is_new_folder {
            Some(is_new) => discard(&path, is_new),
            // An error is ignored here, because the command reports its own error.
            None => drop(fs::remove_file(&path)),
        }
    }
}

/// A backup that is being read.
pub(super) enum Source {
    Folder(PathBuf),
    Archive(PathBuf, TarReader),
}

impl Source {
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let read = || {
            if fs::metadata(path)?.is_dir() {
                return Ok(Self::Folder(path.to_owned()));
            }
            Ok(Self::Archive(path.to_owned(), TarReader::new(File::open(path)?)?))
        };
        read().map_err(|error| read_error(path, &error))
    }

    /// Returns a reader of a file's content.
    pub(super) fn file(&self, name: &str) -> Result<Box<dyn Read + '_>, String> {
        let opened: io::Result<Box<dyn Read + '_>> = match self {
            Self::Folder(path) => File::open(path.join(name)).map(|file| Box::new(file) as _),
            Self::Archive(_, tar) => tar.open(name).map(|file| Box::new(file) as _),
        };
        opened.map_err(|error| format!("cannot read {}: {}", self.describe(name), describe_io_error(&error)))
    }

    /// Returns the name of a file for messages.
    pub(super) fn describe(&self, name: &str) -> String {
        match self {
            Self::Folder(path) => path.join(name).display().to_string(),
            Self::Archive(path, _) => format!("{name} in {}", path.display()),
        }
    }
}

/// Copies to a new private file in a folder. Returns the digest of the copy.
pub(super) fn copy_file(source: &mut impl Read, folder: &Path, name: &str) -> Result<Digest, String> {
    let path = folder.join(name);
    let mut copy = || {
        let mut file = private_file::open_options().write(true).create_new(true).open(&path)?;
        io::copy(source, &mut file)?;
        file.sync_all()
    };
    copy().map_err(|error| write_error(&path, &error))?;
    File::open(&path).and_then(Digest::of_reader).map_err(|error| read_error(&path, &error))
}

/// Creates a folder, or accepts an empty one. Returns whether it is new.
pub(super) fn create_empty_dir(path: &Path) -> Result<bool, String> {
    match fs::read_dir(path) {
        Ok(mut entries) => match entries.next() {
            None => Ok(false),
            Some(_) => Err(format!("{} is not empty", path.display())),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => {
            create_private_dir(path).map(|()| true).map_err(|error| write_error(path, &error))
        }
        Err(error) => Err(read_error(path, &error)),
    }
}

/// Removes what a failed command has written into a folder that was empty or missing before.
pub(super) fn discard(folder: &Path, is_new: bool) {
    // Errors are ignored here, because the command reports its own error.
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
    }
    if is_new {
        let _ = fs::remove_dir(folder);
    }
}

pub(super) fn sync_folder(path: &Path) -> Result<(), String> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(|error| write_error(path, &error))
}

pub(super) fn read_error(path: &Path, error: &io::Error) -> String {
    format!("cannot read {}: {}", path.display(), describe_io_error(error))
}

pub(super) fn write_error(path: &Path, error: &io::Error) -> String {
    format!("cannot write {}: {}", path.display(), describe_io_error(error))
}
