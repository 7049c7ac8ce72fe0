//! The commands in `docs/asp.md` work as they are written.

use std::path::Path;
use std::process::Command;

use testing::cli::{binary, check_output};
use testing::hub::{HubProcess, reserved_address};

const SECTION: &str = "## Run two nodes in ten minutes";

#[test]
fn two_nodes_run_as_documented() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/asp.md");
    let page = std::fs::read_to_string(page).unwrap();
    let section = page.split(SECTION).nth(1).unwrap().split("\n### ").next().unwrap();
    let mut section = section.to_owned();
    for port in ["8788", "8789"] {
        let address = reserved_address();
        section = section.replace(port, address.rsplit(':').next().unwrap());
    }
    let blocks: Vec<&str> =
        section.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap()).collect();
    let first_server = blocks.iter().position(|block| block.starts_with("sayso asp serve")).unwrap();
    let (setup, rest) = blocks.split_at(first_server);
    let (servers, session) = rest.split_at(2);
    let folder = tempfile::tempdir().unwrap();
    let setup = run_script(folder.path(), &setup.concat(), "");
    assert!(setup.contains("press/card.json: the signature is valid."), "{setup}");
    let nodes: Vec<_> = servers
        .iter()
        .map(|line| {
            let arguments = line.split_whitespace().skip(1);
            HubProcess::start_command(Command::new(binary()).args(arguments).current_dir(folder.path()))
        })
        .collect();
    let output = run_script(folder.path(), &session.concat(), &nodes[0].address);
    for expected in [
        "INVITED invited by Marisol's buyer",
        "Braille Press accepts the proposal. (ACCEPT)",
        "AGREEING",
        "buyer.jsonl: 11 messages",
        "The commitment is fulfilled.",
        "commitments that it kept: 1",
    ] {
        assert!(output.contains(expected), "{expected:?} is not in:\n{output}");
    }
}

/// Runs a script in a shell that stops at the first error. The default node is the one in the documentation.
fn run_script(folder: &Path, script: &str, default_node: &str) -> String {
    let prelude = format!("sayso() {{ '{}' \"$@\"; }}\n", binary().display());
    let output = Command::new("sh")
        .args(["-eu", "-c", &(prelude + script)])
        .env("SAYSO_ASP_URL", format!("http://{default_node}"))
        .env_remove("SAYSO_TOKEN")
        .current_dir(folder)
        .output()
        .unwrap();
    let output = check_output(output);
    assert_eq!(output.exit_code, 0, "{}\n{}", output.stdout, output.stderr);
    output.stdout
}
