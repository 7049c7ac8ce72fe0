//! The README shows what the binary really prints.

use std::path::Path;
use std::process::Command;

#[test]
fn the_readme_shows_what_is_printed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).expect("README.md");
    for (command, code) in [
        ("validate examples/transfer.jsonl", 1),
        ("validate examples/transfer-asked.jsonl", 0),
        ("asp demo --scenario rejected --seed 7", 0),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_sayso"))
            .args(command.split(' '))
            .current_dir(&root)
            .output()
            .expect("sayso runs");
        let printed = String::from_utf8(output.stdout).expect("UTF-8");
        assert_eq!(output.status.code(), Some(code), "{printed}");
        let shown = format!("$ cargo run --release -- {command}\n{printed}```");
        assert!(readme.contains(&shown), "the README does not show:\n{shown}");
    }
}
