//! Finds the repository that git uses in a folder.
//!
//! The configuration of a repository can name programs that git runs, even for `git status`. The repository of the project is
//! the user's own. Another one below it may have come with a download, so git is harmless only in the project's.

use std::path::{Path, PathBuf};

use crate::risk::Folders;

/// Whether git, run in the working folder, uses the project's repository. False if one of the two folders is not known.
pub(super) fn is_of_project(folders: Folders<'_>) -> bool {
    let (Some(working), Some(project)) = (folders.working, folders.project) else { return false };
    let Ok(working) = Path::new(working).canonicalize() else { return false };
    let Ok(repository) = find(&working) else { return false };
    Path::new(project).canonicalize().is_ok_and(|project| find(&project) == Ok(repository))
}

/// A folder that git would use as a repository although it is not named `.git`. A checked-out project can contain one.
#[derive(Debug, PartialEq, Eq)]
struct BareRepository;

/// Returns the nearest folder that contains `.git`: `folder` or one above it.
fn find(folder: &Path) -> Result<Option<PathBuf>, BareRepository> {
    let exists = |path: PathBuf| path.symlink_metadata().is_ok();
    let mut found = None;
    for folder in folder.ancestors() {
        let has_objects = exists(folder.join("objects")) && exists(folder.join("refs"));
        if exists(folder.join("HEAD")) && (has_objects || exists(folder.join("commondir"))) {
            return Err(BareRepository);
        }
        if found.is_none() && exists(folder.join(".git")) {
            found = Some(folder.to_owned());
        }
    }
    Ok(found)
}
