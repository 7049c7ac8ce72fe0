//! Reads a configuration file, and replaces it so that a crash leaves either the old or the new contents.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use super::SetupError;

/// Maximum length of a configuration file, in bytes. Claude Code keeps its state in such a file, which can be large.
pub const MAX_CONFIG_BYTES: u64 = 32 * 1024 * 1024;

/// Maximum number of symbolic links that are followed, as in the Linux kernel.
const MAX_LINKS: usize = 40;

/// A configuration file, which may not exist yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFile {
    /// The path under which the program reads the file.
    pub path: PathBuf,
    /// The file itself, after symbolic links.
    pub real_path: PathBuf,
    /// The contents, or `None` if there is no file.
    pub text: Option<String>,
}

impl ConfigFile {
    /// Reads a file. Symbolic links are followed, so that a later change replaces the file and not the link.
    pub fn read(path: &Path) -> Result<Self, SetupError> {
        let real_path = follow_links(path)?;
        let text = read_text(&real_path)?;
        Ok(Self { path: path.to_owned(), real_path, text })
    }

    /// Returns the contents, or an empty text if there is no file.
    pub fn text_or_empty(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// Replaces the contents, or deletes the file if there are none. Fails if the file has changed since it was read.
    pub(crate) fn replace(&self, contents: Option<&str>) -> Result<(), SetupError> {
        let path = &self.real_path;
        let Some(contents) = contents else {
            self.check_unchanged()?;
            match fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(SetupError::io("delete", path)(error));
                }
                _ => return sync_folder(path),
            }
        };
        let temporary = temporary_path(path);
        let result = self.write_temporary(&temporary, contents).and_then(|()| {
            self.check_unchanged()?;
            fs::rename(&temporary, path).map_err(SetupError::io("replace", path))
        });
        if result.is_err() {
            // The original error matters more than a temporary file that cannot be deleted.
            let _ = fs::remove_file(&temporary);
        }
        result.and_then(|()| sync_folder(path))
    }

    fn write_temporary(&self, temporary: &Path, contents: &str) -> Result<(), SetupError> {
        // A run that was killed can leave the file behind. The caller holds the lock, so nobody else writes it.
        match fs::remove_file(temporary) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(SetupError::io("delete", temporary)(error));
            }
            _ => {}
        }
        let original = match fs::metadata(&self.real_path) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(SetupError::io("read", &self.real_path)(error)),
        };
        if original.as_ref().is_some_and(|metadata| metadata.nlink() > 1) {
            let reason = "it has several hard links, and only one of them could be replaced";
            return Err(SetupError::unusable(&self.path, reason));
        }
        let failed = |error| SetupError::io("write", temporary)(error);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        if original.is_some() {
            // Nobody may read the contents before the file has the permissions of the original.
            options.mode(0o600);
        }
        let mut file = options.open(temporary).map_err(failed)?;
        if let Some(original) = original {
            let own = file.metadata().map_err(failed)?;
            if (own.uid(), own.gid()) != (original.uid(), original.gid()) {
                fchown(&file, Some(original.uid()), Some(original.gid())).map_err(failed)?;
            }
            let permissions = fs::Permissions::from_mode(original.mode() & 0o7777);
            file.set_permissions(permissions).map_err(failed)?;
        }
        file.write_all(contents.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)
    }

    /// Checks that the file has not changed since it was read.
    pub(crate) fn check_unchanged(&self) -> Result<(), SetupError> {
        let is_same = follow_links(&self.path)? == self.real_path && read_text(&self.real_path)? == self.text;
        if is_same { Ok(()) } else { Err(SetupError::ChangedByAnotherProgram { path: self.path.clone() }) }
    }
}

/// Creates the missing folders above a path, and returns those that were created, the innermost first.
pub(crate) fn create_folders(path: &Path) -> Result<Vec<PathBuf>, SetupError> {
    let missing: Vec<PathBuf> =
        path.ancestors().skip(1).take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(SetupError::io("create", folder))?;
    }
    Ok(missing)
}

fn read_text(path: &Path) -> Result<Option<String>, SetupError> {
    let failed = |error| SetupError::io("read", path)(error);
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if !metadata.is_file() {
        return Err(SetupError::unusable(path, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(MAX_CONFIG_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_CONFIG_BYTES {
        return Err(SetupError::TooLong { path: path.to_owned(), limit: MAX_CONFIG_BYTES });
    }
    String::from_utf8(bytes).map(Some).map_err(|_| SetupError::unusable(path, "it is not UTF-8"))
}

/// Returns the path to which symbolic links lead. The last one may lead to a file that does not exist yet.
fn follow_links(path: &Path) -> Result<PathBuf, SetupError> {
    let mut real = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&real) {
            Ok(target) => {
                real = real.parent().map_or_else(|| target.clone(), |folder| folder.join(&target));
            }
            // `InvalidInput` says that it is not a link.
            Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::NotFound) => {
                return Ok(real);
            }
            Err(error) => return Err(SetupError::io("read", real)(error)),
        }
    }
    Err(SetupError::unusable(path, "it is a symbolic link that leads to itself"))
}

fn temporary_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.sayso-tmp"))
}

/// Makes a rename or deletion durable.
fn sync_folder(path: &Path) -> Result<(), SetupError> {
    let Some(folder) = path.parent() else { return Ok(()) };
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(SetupError::io("write", folder))
}
