//! No test is left out: every file of every crate's `tests` folder is a module of a test program.

use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_file_of_tests_is_a_module_of_a_test_program() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = 0;
    for folder in entries(&crates).iter().map(|one| one.join("tests")).filter(|folder| folder.is_dir()) {
        let package = fs::read_to_string(folder.join("../Cargo.toml")).unwrap();
        let program = fs::read_to_string(folder.join("all.rs")).unwrap_or_default();
        let finds_tests = !package.contains("autotests = false");
        for path in entries(&folder) {
            let name = path.file_stem().unwrap().to_str().unwrap();
            let is_program = package.contains(&format!("[[test]]\nname = \"{name}\"\n"));
            if is_program || finds_tests {
                continue;
            }
            if path.extension().is_some_and(|kind| kind == "rs") || path.join("mod.rs").is_file() {
                files += 1;
                assert!(program.contains(&format!("mod {name};")), "{} is never run", path.display());
            }
        }
    }
    assert!(files > 50, "only {files} files were found");
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}
