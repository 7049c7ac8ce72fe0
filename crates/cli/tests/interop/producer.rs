//! `aaep-minimal-producer`, followed by `sayso listen`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::program;
use testing::http::Client;
use testing::hub::reserved_address;

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The producer on a port of its own, once it answers.
fn producer() -> (Running, Client, String) {
    let address = reserved_address();
    let port = address.rsplit(':').next().unwrap();
    let mut command = program("aaep-minimal-producer");
    command.args(["--port", port]).stdout(Stdio::null()).stderr(Stdio::null());
    let running = Running(command.spawn().unwrap());
    let client = Client::of(&address).with("Content-Type: application/json");
    let patience = Instant::now() + Duration::from_mins(1);
    while client.try_send("GET", "/healthz", "").is_none() {
        assert!(Instant::now() < patience, "it does not start");
        std::thread::yield_now();
    }
    (running, client, format!("http://{address}"))
}

#[test]
#[ignore = "needs what `cargo xtask interop` installs"]
fn it_is_followed_as_it_is_and_takes_the_answer() {
    for (answer, acts) in [("accept", true), ("reject", false)] {
        let (_producer, client, url) = producer();
        let mut command = Command::new(env!("CARGO_BIN_EXE_sayso"));
        let child = command.args(["listen", &url]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut listener = Running(child.unwrap());
        let mut keyboard = listener.0.stdin.take().unwrap();
        let mut told = Vec::new();
        for line in BufReader::new(listener.0.stdout.take().unwrap()).lines().map_while(Result::ok) {
            if line.starts_with("notice: This is an agent by itself") {
                let wish = r#"{"user_message":"Transfer 500 to savings"}"#;
                assert_eq!(client.post("/sessions", wish).status, 202);
            }
            if line.starts_with("ask: Type") {
                writeln!(keyboard, "{answer}").unwrap();
            }
            let last = line.starts_with("session: AAEP Minimal Producer is") || line.starts_with("error: ");
            told.push(line);
            if last {
                break;
            }
        }
        assert!(told.iter().any(|line| line.starts_with("ask: What it would do:")), "{told:#?}");
        // It says that it calls the tool before it asks, so that only the end of the call tells.
        let failed = told.iter().any(|line| line.starts_with("tool: The tool transfer funds has failed."));
        assert_eq!(failed, !acts, "{told:#?}");
        assert!(told.last().unwrap().starts_with("session: AAEP Minimal Producer is done."), "{told:#?}");
    }
}
