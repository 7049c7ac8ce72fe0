//! The data that AAEP's authors published: schemas and fixtures. It lies beside the repository and may be absent.

use std::path::{Path, PathBuf};

/// The folder with the published data; prints a line that starts with `skipped:` where it is absent.
///
/// `cargo xtask test` counts these lines, so that a test that returns early is reported as skipped and not as passed.
pub fn folder() -> Option<PathBuf> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared"));
    if folder.join("aaep/schemas").is_dir() {
        return Some(folder.to_owned());
    }
    eprintln!("skipped: ../shared is not there");
    None
}
