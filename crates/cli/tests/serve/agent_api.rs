//! `docs/agent-api.md` shows what the hub really does.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::serve::agent_ws::Agent;
use testing::hub::Hub;
use testing::messages::CAN_REPLY;

/// What stands in fences of that kind, line by line.
fn shown(fence: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/agent-api.md");
    let text = std::fs::read_to_string(path).unwrap();
    let mut inside = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == format!("```{fence}");
        } else if inside {
            lines.push(line.to_owned());
        }
    }
    assert!(!lines.is_empty());
    lines
}

/// Whether a text is as shown, where `…` is anything.
fn fits(shown: &str, text: &str) -> bool {
    let parts: Vec<_> = shown.split('…').collect();
    let (first, last) = (parts[0], parts[parts.len() - 1]);
    let mut rest = text;
    for part in &parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    text.starts_with(first) && text.ends_with(last)
}

/// The ids that were seen last stand for those that are shown.
#[derive(Default)]
struct Ids(Vec<(&'static str, String)>);

impl Ids {
    fn see(&mut self, text: &str) {
        for prefix in ["sess_", "rpl_"] {
            if let Some(at) = text.find(prefix) {
                let id = text[at..].split('"').next().unwrap().to_owned();
                self.0.retain(|(known, _)| *known != prefix);
                self.0.push((prefix, id));
            }
        }
    }

    fn put(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (prefix, id)| text.replace(&format!("{prefix}…"), id))
    }

    fn get(&self, prefix: &str) -> &str {
        &self.0.iter().find(|(known, _)| *known == prefix).unwrap().1
    }
}

#[test]
fn the_commands_print_what_is_shown() {
    if Command::new("curl").arg("--version").output().is_err() {
        println!("there is no curl here, so nothing is checked");
        return;
    }
    let hub = Hub::open();
    let mut ids = Ids::default();
    let mut printed = String::new();
    for line in shown("console") {
        if let Some(command) = line.strip_prefix("$ ") {
            let command = ids.put(command);
            let address = format!("http://{}", hub.address);
            let output = Command::new("sh").args(["-c", &command]).env("HUB", address).output().unwrap();
            printed = String::from_utf8(output.stdout).unwrap();
            ids.see(&printed);
        } else {
            assert!(fits(&ids.put(&line), &printed), "shown:   {line}\nprinted: {printed}");
        }
    }
}

#[test]
fn the_conversation_goes_as_shown() {
    let hub = Hub::open();
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let _ear = client.listen(&subscription, None);
    let mut agent = Agent::open(&hub);
    let mut ids = Ids::default();
    for line in shown("text") {
        if let Some(said) = line.strip_prefix("→ ") {
            agent.say(&ids.put(said));
        } else if let Some(heard) = line.strip_prefix("← ") {
            let text = agent.next_text();
            ids.see(&text);
            assert!(fits(&ids.put(heard), &text), "shown: {heard}\nheard: {text}");
            serde_json::from_str::<Value>(&text).unwrap();
        } else if line == "(the person accepts)" {
            client.reply(&subscription, ids.get("rpl_"), "accept");
        } else if line == "(the person stops the session)" {
            crate::serve::agent_ws::stop(&client, &subscription, ids.get("sess_"));
        } else {
            panic!("{line}");
        }
    }
}
