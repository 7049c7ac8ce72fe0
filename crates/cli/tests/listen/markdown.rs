//! Output in Markdown, through a real hub that cuts it into sentences.

use testing::cli::run_sayso;
use testing::hub::HubProcess;
use testing::terminal::{AgentSession, ListenProcess};

const REPORT: &str = "# Plan\n\nSee ![the logo](l.png)! It is **new**.\n\n1. Pack\n2. Go\n\n\
| City | Days |\n|---|---|\n| Lagos | 3 |\n\n```sh\ncargo run\n```\n\nDone.";

fn write_markdown(agent: &AgentSession, text: &str, complete: bool) {
    let path = format!(
        "/agent/v1/sessions/{}/output?output_id=out_1&content_type=text%2Fmarkdown&complete={complete}",
        agent.session_id
    );
    let response = agent.client.post(&path, text);
    assert_eq!(response.status, 200, "{response:?}");
}

/// Sends the report in chunks of this many bytes and returns the agent's lines.
fn hear_report(chunk_bytes: usize, arguments: &[&str]) -> (Vec<String>, ListenProcess) {
    let hub = HubProcess::start_in_memory();
    let mut person = ListenProcess::start_connected(&hub.address, arguments);
    let agent = AgentSession::start(hub.client());
    for chunk in REPORT.as_bytes().chunks(chunk_bytes) {
        write_markdown(&agent, std::str::from_utf8(chunk).unwrap(), false);
    }
    write_markdown(&agent, "", true);
    agent.publish(r#"{"type":"aaep:agent.session.completed","summary_normal":"Bye."}"#);
    let lines = person.read_until("Bye.");
    (lines.into_iter().filter(|line| line.starts_with("agent: ")).collect(), person)
}

#[test]
fn markdown_is_heard_without_its_markup_however_it_is_cut() {
    for chunk_bytes in [1, 3, 7, REPORT.len()] {
        let (lines, mut person) = hear_report(chunk_bytes, &["--markdown-hold", "60"]);
        assert_eq!(
            lines,
            [
                "agent: Heading: Plan.",
                "agent: See image: the logo!",
                "agent: It is new.",
                "agent: 2 items.",
                "agent: 1: Pack.",
                "agent: 2: Go.",
                "agent: Table, 1 row, 2 columns.",
                "agent: City: Lagos; Days: 3.",
                "agent: Code 1, 1 line, shell.",
                "agent: Done.",
            ],
            "chunks of {chunk_bytes} bytes"
        );
        person.type_line("code");
        person.read_until("agent: cargo run");
        person.type_line("code 9");
        person.read_until("status: There is no code 9.");
    }
}

#[test]
fn markdown_can_be_heard_as_it_was_written() {
    let (lines, _person) = hear_report(REPORT.len(), &["--markdown", "off"]);
    assert_eq!(lines[0], "agent: # Plan");
}

#[test]
fn invalid_options_are_refused() {
    for arguments in [["--markdown", "some"], ["--markdown-hold", "61"], ["--markdown-hold-bytes", "255"]] {
        let output = run_sayso(&["listen", "http://127.0.0.1:9", arguments[0], arguments[1]], "");
        assert_eq!(output.exit_code, 2, "{arguments:?}");
        assert!(output.stderr.contains(arguments[0]), "{arguments:?}: {}", output.stderr);
    }
}
