//! `aaep-minimal-producer`, followed by `sayso listen`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::installed_program;
use testing::http::TestClient;
use testing::hub::reserved_address;

/// A child process that is killed on drop.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the producer on a free port and waits until it responds.
fn start_producer() -> (KillOnDrop, TestClient, String) {
    let address = reserved_address();
    let port = address.rsplit(':').next().unwrap();
    let mut command = installed_program("aaep-minimal-producer");
    command.args(["--port", port]).stdout(Stdio::null()).stderr(Stdio::null());
    let producer = KillOnDrop(command.spawn().unwrap());
    let client = TestClient::new(&address).with_header("Content-Type: application/json");
    let deadline = Instant::now() + Duration::from_mins(1);
    while client.try_send("GET", "/healthz", "").is_none() {
        assert!(Instant::now() < deadline, "the producer did not start");
        std::thread::yield_now();
    }
    (producer, client, format!("http://{address}"))
}

#[test]
#[ignore = "needs what `cargo xtask interop` installs"]
fn the_unmodified_producer_can_be_followed_and_obeys_the_reply() {
    for (answer, is_action_expected) in [("accept", true), ("reject", false)] {
        let (_producer, client, url) = start_producer();
        let mut command = Command::new(env!("CARGO_BIN_EXE_sayso"));
        // The test answers at once.
        command.args(["listen", &url, "--answer-grace", "0"]);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut listener = KillOnDrop(child.unwrap());
        let mut keyboard = listener.0.stdin.take().unwrap();
        let mut lines = Vec::new();
        for line in BufReader::new(listener.0.stdout.take().unwrap()).lines().map_while(Result::ok) {
            if line.starts_with("notice: This agent runs without a hub") {
                let request = r#"{"user_message":"Transfer 500 to savings"}"#;
                assert_eq!(client.post("/sessions", request).status, 202);
            }
            if line.starts_with("ask: Yes or no?") {
                writeln!(keyboard, "{answer}").unwrap();
            }
            let is_last = line.starts_with("session: AAEP Minimal Producer has finished")
                || line.starts_with("error: ");
            lines.push(line);
            if is_last {
                break;
            }
        }
        assert!(lines.iter().any(|line| line.starts_with("ask: AAEP Minimal Producer: ")), "{lines:#?}");
        // The producer reports the tool call before it asks, so only the end of the call shows the decision.
        let failed = lines.iter().any(|line| line.starts_with("tool: The tool transfer funds failed."));
        assert_eq!(failed, !is_action_expected, "{lines:#?}");
        assert!(
            lines.last().unwrap().starts_with("session: AAEP Minimal Producer has finished."),
            "{lines:#?}"
        );
    }
}
