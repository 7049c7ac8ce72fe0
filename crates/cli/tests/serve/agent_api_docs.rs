//! The examples in `docs/agent-api.md` match what the hub does.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::serve::agent_websocket::AgentWebSocket;
use testing::hub::HubProcess;
use testing::messages::REPLY_CAPABILITIES;

/// Returns the lines in all code fences of this kind.
fn documented_lines(fence: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/agent-api.md");
    let text = std::fs::read_to_string(path).unwrap();
    let mut in_fence = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.starts_with("```") {
            in_fence = line == format!("```{fence}");
        } else if in_fence {
            lines.push(line.to_owned());
        }
    }
    assert!(!lines.is_empty());
    lines
}

/// Whether a text matches a documented line, in which `…` stands for anything.
fn matches_pattern(pattern: &str, text: &str) -> bool {
    let parts: Vec<_> = pattern.split('…').collect();
    let (first, last) = (parts[0], parts[parts.len() - 1]);
    let mut rest = text;
    for part in &parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    text.starts_with(first) && text.ends_with(last)
}

/// The most recent id of each kind, which replaces the abbreviated ids in the document.
#[derive(Default)]
struct KnownIds(Vec<(&'static str, String)>);

impl KnownIds {
    fn record_ids(&mut self, text: &str) {
        for prefix in ["sess_", "rpl_", "inv_"] {
            if let Some(at) = text.find(prefix) {
                let id = text[at..].split('"').next().unwrap().to_owned();
                self.0.retain(|(known, _)| *known != prefix);
                self.0.push((prefix, id));
            }
        }
    }

    fn substitute_ids(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (prefix, id)| text.replace(&format!("{prefix}…"), id))
    }

    fn get(&self, prefix: &str) -> &str {
        &self.0.iter().find(|(known, _)| *known == prefix).unwrap().1
    }
}

#[test]
fn the_documented_commands_print_the_documented_output() {
    if Command::new("curl").arg("--version").output().is_err() {
        println!("skipped: curl is not installed");
        return;
    }
    let hub = HubProcess::start_in_memory();
    let mut ids = KnownIds::default();
    let mut printed = String::new();
    for line in documented_lines("console") {
        if let Some(command) = line.strip_prefix("$ ") {
            let command = ids.substitute_ids(command);
            let address = format!("http://{}", hub.address);
            let output = Command::new("sh").args(["-c", &command]).env("HUB", address).output().unwrap();
            printed = String::from_utf8(output.stdout).unwrap();
            ids.record_ids(&printed);
        } else {
            assert!(
                matches_pattern(&ids.substitute_ids(&line), &printed),
                "documented: {line}\nprinted:    {printed}"
            );
        }
    }
}

#[test]
fn the_documented_conversation_matches() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let _stream = client.open_event_stream(&subscription, None);
    let mut agent = AgentWebSocket::open(&hub);
    let mut ids = KnownIds::default();
    for line in documented_lines("text") {
        if let Some(call) = line.strip_prefix("→ ") {
            agent.send_text(&ids.substitute_ids(call));
        } else if let Some(expected) = line.strip_prefix("← ") {
            let text = agent.next_text();
            ids.record_ids(&text);
            assert!(
                matches_pattern(&ids.substitute_ids(expected), &text),
                "documented: {expected}\nreceived:   {text}"
            );
            serde_json::from_str::<Value>(&text).unwrap();
        } else if line == "(the person accepts)" {
            client.reply(&subscription, ids.get("rpl_"), "accept");
        } else if line == "(the person stops the session)" {
            crate::serve::agent_websocket::stop_session(&client, &subscription, ids.get("sess_"));
        } else {
            panic!("unknown line in the documented conversation: {line}");
        }
    }
}
