//! An agent and a client of ACP's official SDK through the gate. `cargo xtask gates --only acp` runs these tests; `ACP_SDK` is the folder
//! in which npm installed the SDK.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use testing::cli::{KillTimer, binary};
use testing::hub::HubProcess;

use super::actors::Listener;

/// Node.js finds the SDK from the folder of a script, so the scripts are copied there.
fn scripts() -> [PathBuf; 2] {
    let sdk = std::env::var_os("ACP_SDK").map(PathBuf::from).expect("ACP_SDK names the folder of the SDK");
    let folder = tempfile::Builder::new().prefix("acp-tests").tempdir_in(sdk).unwrap().keep();
    ["sdk_client.mjs", "sdk_agent.mjs"].map(|name| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/acp").join(name);
        std::fs::copy(source, folder.join(name)).unwrap();
        folder.join(name)
    })
}

struct Run {
    client: Child,
    marker: PathBuf,
    _folder: tempfile::TempDir,
    scripts: [PathBuf; 2],
}

impl Run {
    /// Starts the client with the gate and the agent. The client's dialog gives this answer, or waits.
    fn start(hub: &HubProcess, answer: &str, options: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (marker, scripts) = (folder.path().join("marker"), scripts());
        let client = Command::new("node")
            .arg(&scripts[0])
            .args([answer, &format!("{} {options}", marker.display())])
            .arg(binary())
            .args(["acp", "--hub", &format!("http://{}", hub.address), "--", "node"])
            .arg(&scripts[1])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self { client, marker, _folder: folder, scripts }
    }

    /// Waits for the end. Returns what the client saw, and what the agent wrote into its file.
    fn finish(self) -> (Value, Option<String>) {
        let _timer = KillTimer::start(self.client.id());
        let output = self.client.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let _ = std::fs::remove_dir_all(self.scripts[0].parent().unwrap());
        (serde_json::from_slice(&output.stdout).unwrap(), std::fs::read_to_string(self.marker).ok())
    }
}

fn seen(cancelled: bool) -> Value {
    json!({"stopReason":"end_turn","updates":["agent_message_chunk","tool_call","tool_call_update"],"cancelled":cancelled})
}

#[test]
#[ignore = "needs the SDK; run by cargo xtask gates --only acp"]
fn a_listeners_answer_reaches_the_agent_and_dismisses_the_clients_dialog() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    for (decision, written) in [("accept", Some("go")), ("reject", None)] {
        let run = Run::start(&hub, "wait", "once");
        let question = listener.next("awaiting.confirmation");
        assert_eq!(question["producer"]["agent_name"], "SDK agent");
        assert!(!run.marker.exists());
        listener.decide(&question, decision);
        assert_eq!(run.finish(), (seen(true), written.map(str::to_owned)));
    }
}

#[test]
#[ignore = "needs the SDK; run by cargo xtask gates --only acp"]
fn a_listener_picks_a_lasting_option_by_name() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let run = Run::start(&hub, "wait", "always");
    let question = listener.next("awaiting.clarification");
    assert_eq!(question["choices"][0]["label"], "Always allow: Always");
    listener.choose(&question, "option_1");
    assert_eq!(run.finish(), (seen(true), Some("forever".to_owned())));
}

#[test]
#[ignore = "needs the SDK; run by cargo xtask gates --only acp"]
fn the_clients_answer_counts_with_and_without_a_listener() {
    let mut hub = HubProcess::start_in_memory();
    for (answer, written) in [("go", Some("go")), ("no", None)] {
        let run = Run::start(&hub, answer, "once");
        assert_eq!(run.finish(), (seen(false), written.map(str::to_owned)));
    }
    let _listener = Listener::connect(&hub);
    assert_eq!(Run::start(&hub, "no", "once").finish(), (seen(false), None));
    hub.kill();
    assert_eq!(Run::start(&hub, "no", "once").finish(), (seen(false), None));
}
