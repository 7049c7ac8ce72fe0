//! `sayso listen` does not store what it announces.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use testing::hub::HubProcess;
use testing::terminal::AgentSession;

#[test]
fn agent_text_is_not_logged_or_stored() {
    let hub = HubProcess::start_in_memory();
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_sayso"))
        .args(["listen", &format!("http://{}", hub.address)])
        .current_dir(folder.path())
        .envs(
            ["HOME", "TMPDIR", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"]
                .map(|name| (name, folder.path())),
        )
        .env("RUST_LOG", "trace")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("Listening to")));
    let agent = AgentSession::start(hub.client());
    agent.publish(r#"{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_1","summary_normal":"The balance is 4711 euros."}"#);
    agent.publish(
        r#"{"type":"aaep:agent.tool.completed","tool":"look","tool_call_id":"call_1","status":"success"}"#,
    );
    agent.publish(r#"{"type":"aaep:agent.session.completed","summary_normal":"Reported 4711 euros."}"#);
    assert!(lines.any(|line| line == "session: local has finished. Reported 4711 euros."));
    child.kill().unwrap();
    child.wait().unwrap();
    let mut log = String::new();
    child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    assert_eq!(log, "");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
