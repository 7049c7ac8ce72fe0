//! What AAEP's authors published: schemas, fixtures, examples.

use std::path::{Path, PathBuf};

/// The folder with it, `shared` beside the repository. It is not part of the repository, so a test that needs it is ignored unless
/// `cargo xtask oracle` runs it.
///
/// # Panics
///
/// Where the folder is missing: the test must not pass.
pub fn folder() -> PathBuf {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared"));
    assert!(folder.join("aaep/schemas").is_dir(), "../shared is not there");
    folder.to_owned()
}
