//! The three judges: the published schemas, our own schemas, and the rule book.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use aaep::check::Validator;
use aaep::json::Tape;
use aaep::rule::{Face, Finding, Findings, Severity};
use jsonschema::Registry;
use serde_json::Value;

/// What the rule book finds against the protocol.
pub(crate) fn errors(document: &Value, face: Face) -> Vec<Finding> {
    let text = document.to_string();
    let mut tape = Tape::default();
    let mut findings = Findings::new(face);
    match tape.read(&text) {
        Ok(read) => {
            Validator::new().check(&read, &mut findings);
        }
        Err(error) => Validator::refuse(&error, &mut findings),
    }
    findings.take().into_iter().filter(|finding| finding.severity == Severity::Error).collect()
}

/// Findings in a few lines, for whoever has to find out why a test failed.
pub(crate) fn lines(findings: &[Finding]) -> String {
    findings.iter().fold(String::new(), |text, finding| {
        text + &format!("\n    {} at {:?}: {}", finding.rule.id(), finding.pointer, finding.message())
    })
}

/// Schemas by the type of document that they describe, formats asserted: `format` alone asserts nothing in draft
/// 2020-12, and C-A7 says that we do assert date-time and uri.
pub(crate) struct Schemas {
    by_type: BTreeMap<String, jsonschema::Validator>,
    /// What holds for any event.
    envelope: Option<jsonschema::Validator>,
}

impl Schemas {
    /// The published ones: twelve events, five messages, the envelope.
    pub(crate) fn published(shared: &Path) -> Self {
        let envelope = json_file(&shared.join("aaep/schemas/envelope.schema.json"));
        let id = envelope["$id"].as_str().expect("the envelope's schema has an $id").to_owned();
        let registry = Registry::new()
            .add(id, envelope.clone())
            .and_then(jsonschema::RegistryBuilder::prepare)
            .expect("the envelope's schema can be referred to");
        let by_type: BTreeMap<_, _> = ["core", "handshake"]
            .into_iter()
            .flat_map(|folder| json_files(&shared.join("aaep/schemas").join(folder)))
            .map(|(_, schema)| (type_described_by(&schema), compile(&schema, Some(&registry))))
            .collect();
        assert_eq!(by_type.len(), 17, "twelve events and five messages");
        Self { by_type, envelope: Some(compile(&envelope, None)) }
    }

    /// Our own.
    pub(crate) fn ours() -> Self {
        let schemas = aaep::schema::all().into_iter().map(|schema| {
            let schema: Value = serde_json::from_str(&schema.text).expect("our schema is JSON");
            (type_described_by(&schema), compile(&schema, None))
        });
        Self { by_type: schemas.collect(), envelope: None }
    }

    /// The schema for a document: that of its type; of any other type, the envelope's if there is one.
    pub(crate) fn of(&self, document: &Value) -> Option<&jsonschema::Validator> {
        self.by_type.get(&compact_type(document)).or(self.envelope.as_ref())
    }

    /// Whether there is a schema meant for such a document: for its type, or for its envelope if it is an event. A
    /// manifest is none (C-F3).
    pub(crate) fn describe(&self, document: &Value) -> bool {
        let name = compact_type(document);
        let event = document.get("@context").is_some() && name != "aaep:producer.manifest";
        event || self.by_type.contains_key(&name)
    }
}

/// The document's type, a core type in its compact form: all forms of it are one type (C-A3, C-A4).
pub(crate) fn compact_type(document: &Value) -> String {
    let name = document["type"].as_str().unwrap_or_default();
    ["https://aaep-protocol.org/types/", "https://aaep-protocol.org/vocab/v1#"]
        .iter()
        .find_map(|namespace| name.strip_prefix(namespace))
        .map_or_else(|| name.to_owned(), |local| format!("aaep:{local}"))
}

/// All JSON files of a folder, in the order of their names.
pub(crate) fn json_files(folder: &Path) -> Vec<(String, Value)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("the folder can be read")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| (path.file_name().unwrap_or_default().to_string_lossy().into_owned(), json_file(&path)))
        .collect();
    files.sort_by(|left, right| left.0.cmp(&right.0));
    files
}

pub(crate) fn json_file(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn type_described_by(schema: &Value) -> String {
    schema["properties"]["type"]["const"].as_str().expect("the schema is for one type").to_owned()
}

fn compile(schema: &Value, registry: Option<&Registry<'_>>) -> jsonschema::Validator {
    let options = jsonschema::options().should_validate_formats(true);
    match registry {
        Some(registry) => options.with_registry(registry).build(schema),
        None => options.build(schema),
    }
    .unwrap_or_else(|error| panic!("{}: {error}", schema["$id"]))
}
