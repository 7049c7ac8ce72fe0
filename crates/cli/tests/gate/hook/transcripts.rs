//! Whole sessions, as the real programs wrote them to their hooks, with what the hook printed and what the person heard.
//!
//! Each file in `transcripts` is named after the program and its version. `REWRITE_TRANSCRIPTS=1` writes what is printed and heard now;
//! read the difference before you commit it.

use std::path::Path;

use serde_json::{Value, json};
use testing::messages::clarification_reply;

use super::*;

/// A session that starts after all others, so that nothing of them is still on the way when it is heard.
const LAST_FOLDER: &str = "the-end";

/// Runs the hook for each step, with the person's answers. Returns the session with what was printed and heard.
fn replay(session: &Value) -> Value {
    let fixture = HookFixture::start();
    let mut listener = fixture.listen();
    let harness = session["harness"].as_str().unwrap();
    let options = session["options"].as_array().into_iter().flatten().map(|option| option.as_str().unwrap());
    let arguments: Vec<_> = std::iter::once(harness).chain(options).collect();
    let deadline = Instant::now() + MAX_SILENCE;
    let mut heard = Vec::new();
    let mut steps = session["steps"].clone();
    for step in steps.as_array_mut().unwrap() {
        let hook = fixture.spawn(&arguments, &step["event"]);
        if let Some(answer) = step.get("answer") {
            let question = loop {
                let (kind, _, event) = listener.next_before(deadline, "question");
                heard.extend(text_of(&kind, &event));
                if kind.starts_with("awaiting.") {
                    break event;
                }
            };
            let token = question["reply_token"].as_str().unwrap();
            if let Some(decision) = answer.as_str() {
                fixture.answer(&listener, token, decision);
            } else {
                let reply = clarification_reply(&listener.subscription, token, "");
                let mut reply: Value = serde_json::from_str(&reply).unwrap();
                reply["response"] = answer.clone();
                assert_eq!(fixture.hub.client().post("/aaep/v1/replies", &reply.to_string()).status, 204);
            }
        }
        step["printed"] = hook.finish();
    }
    let last =
        json!({"hook_event_name": "SessionStart", "session_id": "last", "cwd": format!("/{LAST_FOLDER}")});
    fixture.spawn(&["claude"], &last).finish();
    loop {
        let (kind, _, event) = listener.next_before(deadline, "end");
        let text = text_of(&kind, &event);
        if text.as_ref().is_some_and(|text| text.contains(LAST_FOLDER)) {
            let mut replayed = session.clone();
            (replayed["steps"], replayed["heard"]) = (steps, json!(heard));
            return replayed;
        }
        heard.extend(text);
    }
}

/// Returns what a person hears of an event. How often the state is repeated depends on time, so it is left out.
fn text_of(kind: &str, event: &Value) -> Option<String> {
    let text = event["summary_normal"].as_str().or(event["chunk"].as_str())?;
    (kind != "state.changed").then(|| format!("{kind}: {text}"))
}

#[test]
fn recorded_sessions_are_answered_and_heard_as_before() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gate/hook/transcripts");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort_unstable();
    assert!(files.len() >= 5, "{files:?}");
    for file in files {
        let stored: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let replayed = replay(&stored);
        if std::env::var_os("REWRITE_TRANSCRIPTS").is_some() {
            std::fs::write(&file, serde_json::to_string_pretty(&replayed).unwrap() + "\n").unwrap();
        } else {
            assert_eq!(replayed["heard"], stored["heard"], "{}", file.display());
            assert_eq!(replayed["steps"], stored["steps"], "{}", file.display());
        }
    }
}
