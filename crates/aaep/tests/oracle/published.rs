//! What AAEP's authors published as documents: fixtures, the schemas' examples, and the JSON inside texts.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::judge::{json_file, json_files};

/// What the strict and the receiving face say of each, by hand from the digest: the rules that are broken.
pub(crate) const EXPECTED: &[(&str, &[&str], &[&str])] = &[
    // Fixtures. Two valid ones lack localization_hints (C-A9). That a second completion is one too many is a matter of
    // order, so that fixture passes alone (C-I8) but for its hints.
    ("valid/agent.awaiting.confirmation.json", NO_HINTS, FINE),
    ("valid/agent.output.streaming.yoruba.json", FINE, FINE),
    ("valid/agent.session.started.json", FINE, FINE),
    ("valid/agent.tool.invoked.high-risk.json", NO_HINTS, FINE),
    ("valid/subscription.request.multilingual.json", FINE, FINE),
    ("invalid/duplicate-completion-streaming.json", NO_HINTS, FINE),
    ("invalid/malformed-event-id.json", &["AAEP-3.2.3-1", "AAEP-11.1-1"], &["AAEP-3.2.3-1"]),
    ("invalid/missing-required-fields.json", NEARLY_NOTHING, NEARLY_NOTHING),
    // A receiver takes it for critical all the same (C-A8).
    ("invalid/no-critical-urgency-on-errored.json", &["AAEP-4.1.3-4", "AAEP-11.1-1"], FINE),
    ("invalid/wrong-default-decision.json", &["AAEP-11.1-1", "AAEP-6.4.1-1"], &["AAEP-6.4.1-1"]),
    // The envelope's examples are envelopes: no summary_normal, no tool.
    ("envelope example 1", &["AAEP-4.1.1-1"], &["AAEP-4.1.1-1"]),
    ("envelope example 2", &["AAEP-4.3.1-1", "AAEP-4.3.1-1"], &["AAEP-4.3.1-1", "AAEP-4.3.1-1"]),
    // Events with text lack localization_hints (C-A9), all but one; three have no text.
    ("agent.awaiting.clarification example 1", NO_HINTS, FINE),
    ("agent.awaiting.clarification example 2", NO_HINTS, FINE),
    ("agent.awaiting.clarification example 3", NO_HINTS, FINE),
    ("agent.awaiting.confirmation example 1", NO_HINTS, FINE),
    ("agent.awaiting.confirmation example 2", NO_HINTS, FINE),
    ("agent.awaiting.confirmation example 3", NO_HINTS, FINE),
    ("agent.handoff.requested example 1", NO_HINTS, FINE),
    ("agent.handoff.requested example 2", NO_HINTS, FINE),
    ("agent.handoff.requested example 3", NO_HINTS, FINE),
    ("agent.output.streaming example 1", NO_HINTS, FINE),
    ("agent.output.streaming example 2", NO_HINTS, FINE),
    ("agent.output.streaming example 3", NO_HINTS, FINE),
    ("agent.output.streaming example 4", NO_HINTS, FINE),
    ("agent.progress.updated example 1", FINE, FINE),
    ("agent.progress.updated example 2", NO_HINTS, FINE),
    ("agent.progress.updated example 3", NO_HINTS, FINE),
    ("agent.session.cancelled example 1", NO_HINTS, FINE),
    ("agent.session.cancelled example 2", NO_HINTS, FINE),
    ("agent.session.cancelled example 3", NO_HINTS, FINE),
    ("agent.session.completed example 1", NO_HINTS, FINE),
    ("agent.session.completed example 2", NO_HINTS, FINE),
    ("agent.session.errored example 1", NO_HINTS, FINE),
    ("agent.session.errored example 2", NO_HINTS, FINE),
    ("agent.session.errored example 3", NO_HINTS, FINE),
    ("agent.session.started example 1", NO_HINTS, FINE),
    ("agent.session.started example 2", FINE, FINE),
    ("agent.state.changed example 1", FINE, FINE),
    ("agent.state.changed example 2", NO_HINTS, FINE),
    ("agent.state.changed example 3", NO_HINTS, FINE),
    ("agent.tool.completed example 1", FINE, FINE),
    ("agent.tool.completed example 2", NO_HINTS, FINE),
    ("agent.tool.completed example 3", NO_HINTS, FINE),
    ("agent.tool.completed example 4", NO_HINTS, FINE),
    ("agent.tool.invoked example 1", NO_HINTS, FINE),
    ("agent.tool.invoked example 2", NO_HINTS, FINE),
    ("agent.tool.invoked example 3", NO_HINTS, FINE),
    // Messages are lawful in both faces.
    ("clarification.reply example 1", FINE, FINE),
    ("clarification.reply example 2", FINE, FINE),
    ("clarification.reply example 3", FINE, FINE),
    ("clarification.reply example 4", FINE, FINE),
    ("clarification.reply example 5", FINE, FINE),
    ("confirmation.reply example 1", FINE, FINE),
    ("confirmation.reply example 2", FINE, FINE),
    ("confirmation.reply example 3", FINE, FINE),
    ("confirmation.reply example 4", FINE, FINE),
    ("subscription.accepted example 1", FINE, FINE),
    ("subscription.accepted example 2", FINE, FINE),
    ("subscription.accepted example 3", FINE, FINE),
    ("subscription.rejected example 1", FINE, FINE),
    ("subscription.rejected example 2", FINE, FINE),
    ("subscription.rejected example 3", FINE, FINE),
    ("subscription.rejected example 4", FINE, FINE),
    ("subscription.rejected example 5", FINE, FINE),
    ("subscription.request example 1", FINE, FINE),
    ("subscription.request example 2", FINE, FINE),
    ("subscription.request example 3", FINE, FINE),
    // Chapter 4: one event of each type, two of output, without hints.
    ("seed 001 1", NO_HINTS, FINE),
    ("seed 001 2", NO_HINTS, FINE),
    ("seed 001 3", NO_HINTS, FINE),
    ("seed 001 4", NO_HINTS, FINE),
    ("seed 001 5", NO_HINTS, FINE),
    ("seed 001 6", NO_HINTS, FINE),
    ("seed 001 7", NO_HINTS, FINE),
    ("seed 001 8", NO_HINTS, FINE),
    ("seed 001 9", NO_HINTS, FINE),
    ("seed 001 10", NO_HINTS, FINE),
    ("seed 001 11", NO_HINTS, FINE),
    ("seed 001 12", NO_HINTS, FINE),
    ("seed 001 13", NO_HINTS, FINE),
    // The implementer's guide has no JSON but an empty object of Python.
    ("seed 003 1", NOTHING, NOTHING),
    // The schema of agent.state.changed again.
    ("seed 004 1 example 1", FINE, FINE),
    ("seed 004 1 example 2", NO_HINTS, FINE),
    ("seed 004 1 example 3", NO_HINTS, FINE),
];

const FINE: &[&str] = &[];
/// Text for people without `localization_hints`: against §11.1 (C-A9), and no matter on receipt.
const NO_HINTS: &[&str] = &["AAEP-11.1-1"];
/// `session_id`, `timestamp`, `producer` and `summary_normal` are missing.
const NEARLY_NOTHING: &[&str] = &["AAEP-3.2-1", "AAEP-3.2-1", "AAEP-3.2-1", "AAEP-4.1.1-1"];
/// All six members of the envelope are missing.
const NOTHING: &[&str] =
    &["AAEP-3.2.1-1", "AAEP-3.2.2-1", "AAEP-3.2-1", "AAEP-3.2-1", "AAEP-3.2-1", "AAEP-3.2-1"];

/// Every published document, with the name by which it is known here.
pub(crate) fn documents(shared: &Path) -> Vec<(String, Value)> {
    let aaep = shared.join("aaep");
    let mut all = Vec::new();
    for folder in ["valid", "invalid"] {
        let files = json_files(&aaep.join("fixtures").join(folder));
        all.extend(files.into_iter().map(|(file, document)| (format!("{folder}/{file}"), document)));
    }
    for (file, schema) in schemas(shared) {
        all.extend(examples(&file, &schema));
    }
    for (file, text) in seeds(shared) {
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

/// The published schemas by a short name, like `agent.state.changed`.
pub(crate) fn schemas(shared: &Path) -> Vec<(String, Value)> {
    let folder = shared.join("aaep/schemas");
    let mut all = vec![("envelope".to_owned(), json_file(&folder.join("envelope.schema.json")))];
    for inner in ["core", "handshake"] {
        let files = json_files(&folder.join(inner));
        all.extend(files.into_iter().map(|(file, schema)| (file.replace(".schema.json", ""), schema)));
    }
    all
}

fn examples(name: &str, schema: &Value) -> Vec<(String, Value)> {
    let examples = schema["examples"].as_array().into_iter().flatten();
    examples.zip(1..).map(|(example, at)| (format!("{name} example {at}"), example.clone())).collect()
}

/// Examples of single values inside a schema, each with the place in a document that it is for.
pub(crate) fn value_examples(schema: &Value) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    gather(schema, "", &mut all);
    for (part, place) in [("Producer", "/producer"), ("LocalizationHints", "/localization_hints")] {
        gather(&schema["$defs"][part], place, &mut all);
    }
    all
}

fn gather(schema: &Value, place: &str, all: &mut Vec<(String, Value)>) {
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        let place = format!("{place}/{name}");
        let examples = inner["examples"].as_array().into_iter().flatten();
        all.extend(examples.map(|example| (place.clone(), example.clone())));
        gather(inner, &place, all);
    }
}

/// The texts that came with the task, by the number in front of their names.
fn seeds(shared: &Path) -> Vec<(String, String)> {
    let mut all: Vec<_> = fs::read_dir(shared.join("seeds"))
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let number = path.file_name()?.to_str()?.get(..3)?.to_owned();
            Some((format!("seed {number}"), fs::read_to_string(path).ok()?))
        })
        .collect();
    all.sort();
    all
}

/// Every outermost JSON object in a text; what only looks like one is passed over.
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

/// Where the brace that opens `text` is closed, braces inside strings aside.
fn object_end(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quoted = false;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' if !quoted => depth += 1,
            b'}' if !quoted => {
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
