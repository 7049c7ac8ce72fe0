//! The README shows what the binary really prints.

use std::path::Path;
use std::process::Command;

#[test]
fn the_readme_shows_what_validate_prints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).expect("README.md");
    for (example, code) in [("examples/transfer.jsonl", 1), ("examples/transfer-asked.jsonl", 0)] {
        let output = Command::new(env!("CARGO_BIN_EXE_sayso"))
            .args(["validate", example])
            .current_dir(&root)
            .output()
            .expect("sayso runs");
        let printed = String::from_utf8(output.stdout).expect("UTF-8");
        assert_eq!(output.status.code(), Some(code), "{printed}");
        let shown = format!("$ cargo run --release -- validate {example}\n{printed}```");
        assert!(readme.contains(&shown), "the README does not show:\n{shown}");
    }
}
