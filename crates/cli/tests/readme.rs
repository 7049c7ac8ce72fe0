//! The examples in the README match the code and the output of the binary.

use std::path::Path;
use std::process::Command;

/// Precedes a port number, which differs in every run.
const ADDRESS_PREFIX: &str = "127.0.0.1:";

#[test]
fn the_readme_contains_the_shortest_agent() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).expect("README.md");
    let hello = std::fs::read_to_string(root.join("crates/sayso/examples/hello.rs")).expect("the example");
    let (_, code) = hello.split_once("\n\n").expect("a doc comment, a blank line and the code");
    assert!(readme.contains(&format!("```rust\n{code}```")), "the README does not show:\n{code}");
}

#[test]
fn the_readme_contains_the_actual_output() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).expect("README.md");
    for (command, code) in [
        ("validate examples/transfer.jsonl", 1),
        ("validate examples/transfer-asked.jsonl", 0),
        ("asp demo --scenario rejected --seed 7", 0),
        ("demo --once 'send 20 euros to Ben' --auto accept", 0),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_sayso"))
            .args(shell_words(command))
            .current_dir(&root)
            .output()
            .expect("sayso runs");
        let output_text = String::from_utf8(output.stdout).expect("UTF-8");
        assert_eq!(output.status.code(), Some(code), "{output_text}");
        let output_text = as_on_a_terminal(&with_readme_port(&output_text));
        let example = format!("$ cargo run --release -- {command}\n{output_text}```");
        assert!(readme.contains(&example), "the README does not show:\n{example}");
    }
}

/// Replaces each port with the one in the README.
fn with_readme_port(output_text: &str) -> String {
    let mut parts = output_text.split(ADDRESS_PREFIX);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + ADDRESS_PREFIX
            + "40123"
            + part.trim_start_matches(|character: char| character.is_ascii_digit())
    })
}

/// Returns the closing line of `validate` as a person sees it. In a pipe, it always has the plural.
fn as_on_a_terminal(output_text: &str) -> String {
    output_text
        .replace(" 1 sessions: 1 errors,", " 1 session: 1 error,")
        .replace(" 1 sessions:", " 1 session:")
}

/// Splits a command into arguments as a shell does. The only quotes that it supports are single quotes.
fn shell_words(command: &str) -> Vec<&str> {
    let parts = command.split('\'').enumerate();
    parts
        .flat_map(|(at, part)| if at % 2 == 0 { part.split_whitespace().collect() } else { vec![part] })
        .collect()
}
