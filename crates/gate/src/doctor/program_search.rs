//! Finds programs on the path.

use std::ffi::OsString;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The folders in which the shell looks for programs.
#[derive(Clone, Debug)]
pub struct SearchPath {
    folders: Vec<PathBuf>,
}

impl SearchPath {
    /// Reads a value of the variable `PATH`.
    pub fn new(path: Option<OsString>) -> Self {
        let folders = path.map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
        Self { folders }
    }

    /// Returns the program with this name or path, if it exists and can be executed.
    pub fn find(&self, program: &str) -> Option<PathBuf> {
        if program.contains('/') {
            return Some(PathBuf::from(program)).filter(|path| is_program(path));
        }
        self.folders.iter().map(|folder| folder.join(program)).find(|path| is_program(path))
    }
}

/// Returns whether two paths lead to the same file.
pub(crate) fn is_same_file(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| path.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()));
    identity(one).is_some() && identity(one) == identity(other)
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}
