//! Records what the harnesses write to their hooks, and compares it with the stored sessions in `tests/gate/hook/transcripts`.
//!
//! With `REWRITE_TRANSCRIPTS=1` the recorded session is stored. `tests/gate/hook/transcripts.rs` then adds what is printed and heard.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::fixture::{HarnessFixture, Person, borrowed, sayso};
use crate::kills::{CLAUDE, CODEX, GEMINI, Harness, OPENCODE};

/// Members whose values differ in each run, and what is stored instead: a number is counted up.
const VARIABLE: [(&str, &str); 9] = [
    ("session_id", "session-"),
    ("turn_id", "turn-"),
    ("prompt_id", "prompt-"),
    ("message_id", "message-"),
    ("tool_use_id", "call-"),
    ("agent_id", "agent-"),
    ("batch_id", "batch-"),
    ("call_id", "call-"),
    ("id", "id-"),
];

/// Members with a time or a duration.
const TIMES: [&str; 4] = ["timestamp", "duration_ms", "duration", "total_duration_ms"];

/// Starts sayso as the harness's hook, and keeps the event and the answer.
const RECORDER: &str = r#"#!/bin/sh
file="FOLDER/$(date +%s%N)-$$"
cat > "$file"
"SAYSO" "$@" < "$file" > "$file.printed"
code=$?
cat "$file.printed"
exit $code
"#;

/// Runs a session in which a person permits or refuses a command. Returns its steps.
fn record(harness: &Harness, person: Person) -> Vec<Value> {
    let fixture = HarnessFixture::start(person);
    let environment = (harness.configure)(&fixture, harness.options);
    let folder = fixture.home().join("recorded");
    std::fs::create_dir(&folder).unwrap();
    // Setup knows the hooks of sayso by the name of the program.
    let recorder = fixture.home().join("sayso");
    let script = RECORDER.replace("FOLDER", folder.to_str().unwrap()).replace("SAYSO", &sayso());
    std::fs::write(&recorder, script).unwrap();
    std::fs::set_permissions(&recorder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let hooks = fixture.home().join(harness.hooks.0);
    let text = std::fs::read_to_string(&hooks).unwrap();
    std::fs::write(&hooks, text.replace(&sayso(), recorder.to_str().unwrap())).unwrap();

    let child = (harness.start)(&fixture, &borrowed(&environment));
    let _timer = testing::cli::KillTimer::start(child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(fixture.marker().exists(), person == Person::SaysYes, "{} {output:?}", harness.name);

    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_none());
    files.sort();
    let root = fixture.home().parent().unwrap().to_str().unwrap().to_owned();
    let mut names = BTreeMap::new();
    let mut steps: Vec<_> = files.iter().map(|file| to_step(file, &root, &mut names)).collect();
    // Codex's answer to a permitted call is empty.
    if steps.iter().all(|step| step["answer"].is_null()) {
        let call = steps.iter_mut().find(|step| step["event"]["hook_event_name"] == "PreToolUse").unwrap();
        call["answer"] = json!("accept");
    }
    steps
}

fn to_step(file: &Path, root: &str, names: &mut BTreeMap<String, String>) -> Value {
    let text = std::fs::read_to_string(file).unwrap().replace(root, "/home/ana");
    let mut event: Value = serde_json::from_str(&text).unwrap();
    normalize(&mut event, names);
    let printed = std::fs::read_to_string(file.with_extension("printed")).unwrap_or_default();
    let mut step = json!({"event": event});
    for (word, answer) in [("\"allow\"", "accept"), ("\"deny\"", "reject")] {
        if printed.contains(word) {
            step["answer"] = json!(answer);
        }
    }
    step
}

fn normalize(value: &mut Value, names: &mut BTreeMap<String, String>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| normalize(item, names)),
        Value::Object(members) => {
            for (name, member) in members {
                let prefix = VARIABLE.iter().find(|(variable, _)| variable == name).map(|(_, prefix)| prefix);
                match (prefix, &member) {
                    (Some(prefix), Value::String(text)) => {
                        let next = format!("{prefix}{}", names.len() + 1);
                        *member = json!(names.entry(text.clone()).or_insert(next));
                    }
                    _ if TIMES.contains(&name.as_str()) => {
                        *member = if member.is_string() { json!("2026-11-19T12:00:00Z") } else { json!(1) };
                    }
                    (_, Value::String(text)) if name == "transcript_path" && !text.is_empty() => {
                        *member = json!("/home/ana/transcript.jsonl");
                    }
                    _ => normalize(member, names),
                }
            }
        }
        _ => {}
    }
}

/// Returns the events that occur, with their members, their tools, and the members of the arguments. Their order depends on time.
fn forms(steps: &[Value]) -> BTreeSet<(String, BTreeSet<String>)> {
    let form = |step: &Value| {
        let event = step["event"].as_object().unwrap();
        let mut members: BTreeSet<String> = event.keys().cloned().collect();
        for name in ["tool_input", "tool_response"] {
            let inner = event.get(name).and_then(Value::as_object).into_iter().flatten();
            members.extend(inner.map(|(member, _)| format!("{name}.{member}")));
        }
        if let Some(tool) = event.get("tool_name").and_then(Value::as_str) {
            members.insert(format!("tool_name={tool}"));
        }
        (event["hook_event_name"].as_str().unwrap().to_owned(), members)
    };
    steps.iter().map(form).collect()
}

/// Checks both sessions of a harness. `file` is the start of the names of their files.
fn check(harness: &Harness, id: &str, file: &str) {
    for (person, ending) in [(Person::SaysYes, ""), (Person::SaysNo, "-refused")] {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/gate/hook/transcripts");
        let path = path.join(format!("{file}{ending}.json"));
        let steps = record(harness, person);
        if std::env::var_os("REWRITE_TRANSCRIPTS").is_some() {
            let session = json!({"harness": id, "options": harness.options, "steps": steps, "heard": []});
            std::fs::write(path, serde_json::to_string_pretty(&session).unwrap() + "\n").unwrap();
            continue;
        }
        let stored: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let stored = forms(stored["steps"].as_array().unwrap());
        assert_eq!(forms(&steps), stored, "{}{ending}", harness.name);
    }
}

#[test]
#[ignore = "needs Claude Code; run `cargo xtask gates`"]
fn claude_writes_the_recorded_events_to_its_hooks() {
    check(&CLAUDE, "claude", "claude-2.1.325-p");
}

#[test]
#[ignore = "needs Codex; run `cargo xtask gates`"]
fn codex_writes_the_recorded_events_to_its_hooks() {
    check(&CODEX, "codex", "codex-0.166.0-exec");
}

#[test]
#[ignore = "needs Gemini CLI; run `cargo xtask gates`"]
fn gemini_writes_the_recorded_events_to_its_hooks() {
    check(&GEMINI, "gemini", "gemini-0.61.0-p");
}

#[test]
#[ignore = "needs opencode; run `cargo xtask gates`"]
fn opencode_writes_the_recorded_events_to_its_hooks() {
    check(&OPENCODE, "opencode", "opencode-1.18.33-run");
}
