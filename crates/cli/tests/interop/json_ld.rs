//! Expands the events of the hub with PyLD, a JSON-LD 1.1 processor.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};
use testing::hub::HubProcess;

use crate::{installed_program, start_compat_hub};

const AAEP: &str = "https://aaep-protocol.org/types/";
const SAYSO: &str = "urn:sayso:context:v1#";

/// Makes the hub send all twelve events, and returns them.
fn all_events(hub: &HubProcess) -> Vec<Value> {
    let client = hub.client();
    let capabilities = json!({ "supports_confirmation_reply": true, "supports_clarification_reply": true });
    let subscription = client.subscribe(&capabilities.to_string());
    let mut stream = client.open_event_stream(&subscription, None);
    let post = |path: String, body: &Value| {
        let response = client.post(&path, &body.to_string());
        assert!(matches!(response.status, 200 | 201), "{path} {body}: {response:?}");
        response.json()
    };
    let ends = [
        json!({ "type": "aaep:agent.session.completed", "summary_normal": "Done." }),
        json!({ "type": "aaep:agent.session.errored", "error_category": "permanent", "summary_normal": "It failed." }),
        json!({ "type": "aaep:agent.session.cancelled", "cancelled_by": "producer", "summary_normal": "Stopped." }),
    ];
    for end in ends {
        let start = json!({ "summary_normal": "Paying Ben.", "tools_available": ["look", "send"] });
        let session =
            post("/agent/v1/sessions".to_owned(), &start)["session_id"].as_str().unwrap().to_owned();
        let path = |part: &str| format!("/agent/v1/sessions/{session}/{part}");
        for event in [
            json!({ "type": "aaep:agent.state.changed", "to_state": "thinking" }),
            json!({ "type": "aaep:agent.progress.updated", "progress": { "step": 1, "total_steps": 2 } }),
            json!({ "type": "aaep:agent.tool.invoked", "tool": "look", "tool_call_id": "call_1", "summary_normal": "Looking." }),
            json!({ "type": "aaep:agent.tool.completed", "tool": "look", "tool_call_id": "call_1", "status": "success" }),
            json!({ "type": "aaep:agent.output.streaming", "chunk": "Found.", "position": 0, "complete": true, "output_id": "out_1" }),
            json!({ "type": "aaep:agent.handoff.requested", "reason": "I may not.", "target_kind": "human", "packaged_context": { "order": 17 } }),
        ] {
            post(path("events"), &event);
        }
        let confirmation = json!({
            "action": "Send 5 euros.", "consequence": "They are gone.", "timeout_seconds": 60, "default_decision": "reject",
            "tool": "send", "arguments": { "amount": "5.00", "to": ["Ben", "Ada"] },
        });
        let question = json!({ "question": "Which Ben?", "timeout_seconds": 60, "choices": [
            { "value": "a", "label": "Ben Adams" }, { "value": "o", "label": "Ben Okri" },
        ] });
        for (part, body) in [("confirmations", &confirmation), ("clarifications", &question)] {
            let token = post(path(part), body)["reply_token"].as_str().unwrap().to_owned();
            let withdrawn = client.send("DELETE", &path(&format!("replies/{token}")), "");
            assert_eq!(withdrawn.status, 200, "{withdrawn:?}");
        }
        post(path("events"), &end);
    }
    let mut events = Vec::new();
    loop {
        let (kind, _, event) = stream.next();
        events.push(event);
        if kind == "session.cancelled" {
            return events;
        }
    }
}

/// Expands the events. Each name of a context must be known, because nothing is loaded.
fn expand(hub: &HubProcess, events: &[Value]) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let sayso_context = folder.path().join("sayso.jsonld");
    std::fs::write(&sayso_context, hub.client().get("/uri-res/N2R?urn:sayso:context:v1").body).unwrap();
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/interop");
    let mut processor = installed_program("python")
        .arg(format!("{tests}/json_ld.py"))
        .args([
            "https://aaep-protocol.org/context/v1",
            &format!("{tests}/aaep_context.jsonld"),
            "urn:sayso:context:v1",
        ])
        .arg(&sayso_context)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = processor.stdin.take().unwrap();
    for event in events {
        writeln!(input, "{event}").unwrap();
    }
    drop(input);
    let output = processor.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
#[ignore = "needs what `cargo xtask interop` installs"]
fn every_event_is_json_ld() {
    let hub = start_compat_hub();
    let events = all_events(&hub);
    let expanded = expand(&hub, &events);
    assert_eq!(events.len(), expanded.len());
    let mut kinds = std::collections::BTreeSet::new();
    for (event, expanded) in events.iter().zip(&expanded) {
        let node = &expanded[0];
        let kind = event["type"].as_str().unwrap().strip_prefix("aaep:").unwrap();
        assert_eq!(node["@type"], json!([format!("{AAEP}{kind}")]), "{node:#}");
        // Every member of the protocol keeps its meaning, whatever sayso's own context defines.
        for name in
            event.as_object().unwrap().keys().filter(|name| !["@context", "type"].contains(&name.as_str()))
        {
            assert!(!node[format!("{AAEP}{name}")].is_null(), "{name} in {node:#}");
        }
        let own = &node[format!("{AAEP}extensions")][0][SAYSO][0];
        for (name, value) in event["extensions"]["sayso"].as_object().into_iter().flatten() {
            let expanded = &own[format!("{SAYSO}{name}")][0];
            assert!(!expanded.is_null(), "{name} in {node:#}");
            if name == "arguments" {
                assert_eq!(*expanded, json!({ "@type": "@json", "@value": value }));
            }
        }
        kinds.insert(kind);
    }
    assert_eq!(kinds.len(), 12, "{kinds:?}");
}
