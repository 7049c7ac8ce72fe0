//! The documents that AAEP's authors published: fixtures, examples in schemas, and JSON in prose documents.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::validators::{read_json_file, read_json_files};

/// The rules that each document breaks in strict and in receive mode, derived by hand from the specification.
pub(crate) const EXPECTED: &[(&str, &[&str], &[&str])] = &[
    // The fixtures. Two valid ones lack localization_hints (C-A9). A duplicate completion only breaks a rule
    // about the order of events (C-I8), so the event on its own breaks only the rule about hints.
    ("valid/agent.awaiting.confirmation.json", NO_HINTS, VALID),
    ("valid/agent.output.streaming.yoruba.json", VALID, VALID),
    ("valid/agent.session.started.json", VALID, VALID),
    ("valid/agent.tool.invoked.high-risk.json", NO_HINTS, VALID),
    ("valid/subscription.request.multilingual.json", VALID, VALID),
    ("invalid/duplicate-completion-streaming.json", NO_HINTS, VALID),
    ("invalid/malformed-event-id.json", &["AAEP-3.2.3-1", "AAEP-11.1-1"], &["AAEP-3.2.3-1"]),
    ("invalid/missing-required-fields.json", FOUR_MISSING, FOUR_MISSING),
    // A receiver treats this event as critical anyway (C-A8).
    ("invalid/no-critical-urgency-on-errored.json", &["AAEP-4.1.3-4", "AAEP-11.1-1"], VALID),
    ("invalid/wrong-default-decision.json", &["AAEP-11.1-1", "AAEP-6.4.1-1"], &["AAEP-6.4.1-1"]),
    // The examples of the envelope are only envelopes, without summary_normal and tool.
    ("envelope example 1", &["AAEP-4.1.1-1"], &["AAEP-4.1.1-1"]),
    ("envelope example 2", &["AAEP-4.3.1-1", "AAEP-4.3.1-1"], &["AAEP-4.3.1-1", "AAEP-4.3.1-1"]),
    // All events with text lack localization_hints (C-A9), except one. Three have no text.
    ("agent.awaiting.clarification example 1", NO_HINTS, VALID),
    ("agent.awaiting.clarification example 2", NO_HINTS, VALID),
    ("agent.awaiting.clarification example 3", NO_HINTS, VALID),
    ("agent.awaiting.confirmation example 1", NO_HINTS, VALID),
    ("agent.awaiting.confirmation example 2", NO_HINTS, VALID),
    ("agent.awaiting.confirmation example 3", NO_HINTS, VALID),
    ("agent.handoff.requested example 1", NO_HINTS, VALID),
    ("agent.handoff.requested example 2", NO_HINTS, VALID),
    ("agent.handoff.requested example 3", NO_HINTS, VALID),
    ("agent.output.streaming example 1", NO_HINTS, VALID),
    ("agent.output.streaming example 2", NO_HINTS, VALID),
    ("agent.output.streaming example 3", NO_HINTS, VALID),
    ("agent.output.streaming example 4", NO_HINTS, VALID),
    ("agent.progress.updated example 1", VALID, VALID),
    ("agent.progress.updated example 2", NO_HINTS, VALID),
    ("agent.progress.updated example 3", NO_HINTS, VALID),
    ("agent.session.cancelled example 1", NO_HINTS, VALID),
    ("agent.session.cancelled example 2", NO_HINTS, VALID),
    ("agent.session.cancelled example 3", NO_HINTS, VALID),
    ("agent.session.completed example 1", NO_HINTS, VALID),
    ("agent.session.completed example 2", NO_HINTS, VALID),
    ("agent.session.errored example 1", NO_HINTS, VALID),
    ("agent.session.errored example 2", NO_HINTS, VALID),
    ("agent.session.errored example 3", NO_HINTS, VALID),
    ("agent.session.started example 1", NO_HINTS, VALID),
    ("agent.session.started example 2", VALID, VALID),
    ("agent.state.changed example 1", VALID, VALID),
    ("agent.state.changed example 2", NO_HINTS, VALID),
    ("agent.state.changed example 3", NO_HINTS, VALID),
    ("agent.tool.completed example 1", VALID, VALID),
    ("agent.tool.completed example 2", NO_HINTS, VALID),
    ("agent.tool.completed example 3", NO_HINTS, VALID),
    ("agent.tool.completed example 4", NO_HINTS, VALID),
    ("agent.tool.invoked example 1", NO_HINTS, VALID),
    ("agent.tool.invoked example 2", NO_HINTS, VALID),
    ("agent.tool.invoked example 3", NO_HINTS, VALID),
    // Messages are valid in both modes.
    ("clarification.reply example 1", VALID, VALID),
    ("clarification.reply example 2", VALID, VALID),
    ("clarification.reply example 3", VALID, VALID),
    ("clarification.reply example 4", VALID, VALID),
    ("clarification.reply example 5", VALID, VALID),
    ("confirmation.reply example 1", VALID, VALID),
    ("confirmation.reply example 2", VALID, VALID),
    ("confirmation.reply example 3", VALID, VALID),
    ("confirmation.reply example 4", VALID, VALID),
    ("subscription.accepted example 1", VALID, VALID),
    ("subscription.accepted example 2", VALID, VALID),
    ("subscription.accepted example 3", VALID, VALID),
    ("subscription.rejected example 1", VALID, VALID),
    ("subscription.rejected example 2", VALID, VALID),
    ("subscription.rejected example 3", VALID, VALID),
    ("subscription.rejected example 4", VALID, VALID),
    ("subscription.rejected example 5", VALID, VALID),
    ("subscription.request example 1", VALID, VALID),
    ("subscription.request example 2", VALID, VALID),
    ("subscription.request example 3", VALID, VALID),
    // The examples in chapter 4: one event of each type, and a second one for output. None has hints.
    ("document 001 1", NO_HINTS, VALID),
    ("document 001 2", NO_HINTS, VALID),
    ("document 001 3", NO_HINTS, VALID),
    ("document 001 4", NO_HINTS, VALID),
    ("document 001 5", NO_HINTS, VALID),
    ("document 001 6", NO_HINTS, VALID),
    ("document 001 7", NO_HINTS, VALID),
    ("document 001 8", NO_HINTS, VALID),
    ("document 001 9", NO_HINTS, VALID),
    ("document 001 10", NO_HINTS, VALID),
    ("document 001 11", NO_HINTS, VALID),
    ("document 001 12", NO_HINTS, VALID),
    ("document 001 13", NO_HINTS, VALID),
    // The implementer's guide contains no JSON except an empty object in Python code.
    ("document 003 1", EMPTY_OBJECT, EMPTY_OBJECT),
    // The examples in a copy of the schema of agent.state.changed.
    ("document 004 1 example 1", VALID, VALID),
    ("document 004 1 example 2", NO_HINTS, VALID),
    ("document 004 1 example 3", NO_HINTS, VALID),
];

const VALID: &[&str] = &[];
/// Text for people without `localization_hints` violates §11.1 (C-A9). Receive mode does not report this.
const NO_HINTS: &[&str] = &["AAEP-11.1-1"];
/// `session_id`, `timestamp`, `producer` and `summary_normal` are missing.
const FOUR_MISSING: &[&str] = &["AAEP-3.2-1", "AAEP-3.2-1", "AAEP-3.2-1", "AAEP-4.1.1-1"];
/// All six members of the envelope are missing.
const EMPTY_OBJECT: &[&str] =
    &["AAEP-3.2.1-1", "AAEP-3.2.2-1", "AAEP-3.2-1", "AAEP-3.2-1", "AAEP-3.2-1", "AAEP-3.2-1"];

/// Returns every published document with its name in [`EXPECTED`].
pub(crate) fn documents(shared: &Path) -> Vec<(String, Value)> {
    let aaep = shared.join("aaep");
    let mut all = Vec::new();
    for folder in ["valid", "invalid"] {
        let files = read_json_files(&aaep.join("fixtures").join(folder));
        all.extend(files.into_iter().map(|(file, document)| (format!("{folder}/{file}"), document)));
    }
    for (file, schema) in schemas(shared) {
        all.extend(examples(&file, &schema));
    }
    for (file, text) in prose_documents(shared) {
        for (at, object) in objects_inside(&text).into_iter().enumerate() {
            let name = format!("{file} {}", at + 1);
            if object.get("$schema").is_some() {
                all.extend(examples(&name, &object));
            } else {
                all.push((name, object));
            }
        }
    }
    all
}

/// Returns the published schemas with a short name, such as `agent.state.changed`.
pub(crate) fn schemas(shared: &Path) -> Vec<(String, Value)> {
    let folder = shared.join("aaep/schemas");
    let mut all = vec![("envelope".to_owned(), read_json_file(&folder.join("envelope.schema.json")))];
    for subfolder in ["core", "handshake"] {
        let files = read_json_files(&folder.join(subfolder));
        all.extend(files.into_iter().map(|(file, schema)| (file.replace(".schema.json", ""), schema)));
    }
    all
}

fn examples(name: &str, schema: &Value) -> Vec<(String, Value)> {
    let examples = schema["examples"].as_array().into_iter().flatten();
    examples.zip(1..).map(|(example, at)| (format!("{name} example {at}"), example.clone())).collect()
}

/// Returns the examples of single values in a schema, each with its JSON pointer in a document.
pub(crate) fn value_examples(schema: &Value) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    collect_examples(schema, "", &mut all);
    for (definition, pointer) in [("Producer", "/producer"), ("LocalizationHints", "/localization_hints")] {
        collect_examples(&schema["$defs"][definition], pointer, &mut all);
    }
    all
}

fn collect_examples(schema: &Value, pointer: &str, all: &mut Vec<(String, Value)>) {
    for (name, subschema) in schema["properties"].as_object().into_iter().flatten() {
        let pointer = format!("{pointer}/{name}");
        let examples = subschema["examples"].as_array().into_iter().flatten();
        all.extend(examples.map(|example| (pointer.clone(), example.clone())));
        collect_examples(subschema, &pointer, all);
    }
}

/// Returns AAEP's documents in prose, such as the specification and the guides, which are in the folder `shared/seeds`. Each is
/// named by the number at the start of its file name.
fn prose_documents(shared: &Path) -> Vec<(String, String)> {
    let mut all: Vec<_> = fs::read_dir(shared.join("seeds"))
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let number = path.file_name()?.to_str()?.get(..3)?.to_owned();
            Some((format!("document {number}"), fs::read_to_string(path).ok()?))
        })
        .collect();
    all.sort();
    all
}

/// Returns every outermost JSON object in a text, and skips what only looks like one.
fn objects_inside(text: &str) -> Vec<Value> {
    let mut objects = Vec::new();
    let mut at = 0;
    while let Some(open) = text[at..].find('{').map(|found| at + found) {
        let object = object_end(&text[open..]).and_then(|end| {
            let object = serde_json::from_str::<Value>(&text[open..open + end]).ok()?;
            Some((object, open + end))
        });
        match object {
            Some((object, end)) => {
                objects.push(object);
                at = end;
            }
            None => at = open + 1,
        }
    }
    objects
}

/// Returns the position after the brace that closes the first one. Braces inside strings do not count.
fn object_end(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b'{' if !in_string => depth += 1,
            b'}' if !in_string => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}
