//! The README shows what the binary really prints.

use std::path::Path;
use std::process::Command;

/// Before a port that is another each time.
const PLACE: &str = "127.0.0.1:";

#[test]
fn the_readme_shows_the_shortest_agent() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).expect("README.md");
    let hello = std::fs::read_to_string(root.join("crates/sayso/examples/hello.rs")).expect("the example");
    let (_, code) = hello.split_once("\n\n").expect("what it is, and the code");
    assert!(readme.contains(&format!("```rust\n{code}```")), "the README does not show:\n{code}");
}

#[test]
fn the_readme_shows_what_is_printed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).expect("README.md");
    for (command, code) in [
        ("validate examples/transfer.jsonl", 1),
        ("validate examples/transfer-asked.jsonl", 0),
        ("asp demo --scenario rejected --seed 7", 0),
        ("demo --once 'send 20 euro to Ben' --auto accept", 0),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_sayso"))
            .args(words(command))
            .current_dir(&root)
            .output()
            .expect("sayso runs");
        let printed = String::from_utf8(output.stdout).expect("UTF-8");
        assert_eq!(output.status.code(), Some(code), "{printed}");
        let printed = with_one_port(&printed);
        let shown = format!("$ cargo run --release -- {command}\n{printed}```");
        assert!(readme.contains(&shown), "the README does not show:\n{shown}");
    }
}

/// The same with the port that the README shows.
fn with_one_port(printed: &str) -> String {
    let mut parts = printed.split(PLACE);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + PLACE + "40123" + part.trim_start_matches(|letter: char| letter.is_ascii_digit())
    })
}

/// The words of a command, as a shell would take them apart.
fn words(command: &str) -> Vec<&str> {
    let parts = command.split('\'').enumerate();
    parts
        .flat_map(|(at, part)| if at % 2 == 0 { part.split_whitespace().collect() } else { vec![part] })
        .collect()
}
