//! The data that AAEP's authors published: schemas, fixtures, examples.

use std::path::{Path, PathBuf};

/// Returns the folder with the published data, which is `shared` next to the repository. The folder is not part of the
/// repository, so tests that need it are ignored unless `cargo xtask oracle` runs them.
///
/// # Panics
///
/// Panics if the folder is missing, because a test must not pass without the data.
pub fn published_dir() -> PathBuf {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared"));
    assert!(folder.join("aaep/schemas").is_dir(), "../shared/aaep/schemas does not exist");
    folder.to_owned()
}
