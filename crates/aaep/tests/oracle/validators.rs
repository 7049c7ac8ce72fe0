//! The three validators: the published schemas, our own schemas, and the crate's rules.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use aaep::check::Validator;
use aaep::json::Tape;
use aaep::rule::{Finding, Findings, Severity, ValidationMode};
use jsonschema::Registry;
use serde_json::Value;

/// Returns the protocol errors that the crate's validator finds.
pub(crate) fn errors(value: &Value, mode: ValidationMode) -> Vec<Finding> {
    let text = value.to_string();
    let mut tape = Tape::default();
    let mut findings = Findings::new(mode);
    match tape.read(&text) {
        Ok(document) => {
            Validator::new().check(&document, &mut findings);
        }
        Err(error) => Validator::report_syntax_error(&error, &mut findings),
    }
    findings.take().into_iter().filter(|finding| finding.severity == Severity::Error).collect()
}

/// Formats findings for the message of a failed test.
pub(crate) fn format_findings(findings: &[Finding]) -> String {
    findings.iter().fold(String::new(), |text, finding| {
        text + &format!("\n    {} at {:?}: {}", finding.rule.id(), finding.pointer, finding.message())
    })
}

/// Schemas by the type of document that they describe. They assert formats, because C-A7 requires it for
/// date-time and uri. In draft 2020-12, `format` alone asserts nothing.
pub(crate) struct SchemaSet {
    by_type: BTreeMap<String, jsonschema::Validator>,
    /// The schema that applies to any event.
    envelope: Option<jsonschema::Validator>,
}

impl SchemaSet {
    /// Loads the published schemas: twelve events, five messages, the envelope.
    pub(crate) fn published(shared: &Path) -> Self {
        let envelope = read_json_file(&shared.join("aaep/schemas/envelope.schema.json"));
        let id = envelope["$id"].as_str().expect("the envelope's schema has an $id").to_owned();
        let registry = Registry::new()
            .add(id, envelope.clone())
            .and_then(jsonschema::RegistryBuilder::prepare)
            .expect("the envelope's schema can be registered");
        let by_type: BTreeMap<_, _> = ["core", "handshake"]
            .into_iter()
            .flat_map(|folder| read_json_files(&shared.join("aaep/schemas").join(folder)))
            .map(|(_, schema)| (type_described_by(&schema), compile(&schema, Some(&registry))))
            .collect();
        assert_eq!(by_type.len(), 17, "twelve events and five messages");
        Self { by_type, envelope: Some(compile(&envelope, None)) }
    }

    /// Loads our own schemas.
    pub(crate) fn ours() -> Self {
        let schemas = aaep::schema::all().into_iter().map(|schema| {
            let schema: Value = serde_json::from_str(&schema.text).expect("our schema is JSON");
            (type_described_by(&schema), compile(&schema, None))
        });
        Self { by_type: schemas.collect(), envelope: None }
    }

    /// Returns the schema for the document's type, or else the envelope's schema, if there is one.
    pub(crate) fn schema_for(&self, document: &Value) -> Option<&jsonschema::Validator> {
        self.by_type.get(&compact_type(document)).or(self.envelope.as_ref())
    }

    /// Returns whether a schema exists for the document's type, or for its envelope if it is an event. A
    /// manifest is not an event (C-F3).
    pub(crate) fn has_schema_for(&self, document: &Value) -> bool {
        let name = compact_type(document);
        let is_event = document.get("@context").is_some() && name != "aaep:producer.manifest";
        is_event || self.by_type.contains_key(&name)
    }
}

/// Returns the document's type. A core type is always returned in its compact form, because all its forms
/// mean the same (C-A3, C-A4).
pub(crate) fn compact_type(document: &Value) -> String {
    let name = document["type"].as_str().unwrap_or_default();
    ["https://aaep-protocol.org/types/", "https://aaep-protocol.org/vocab/v1#"]
        .iter()
        .find_map(|namespace| name.strip_prefix(namespace))
        .map_or_else(|| name.to_owned(), |local| format!("aaep:{local}"))
}

/// Returns all JSON files of a folder, sorted by name.
pub(crate) fn read_json_files(folder: &Path) -> Vec<(String, Value)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("the folder can be read")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| {
            (path.file_name().unwrap_or_default().to_string_lossy().into_owned(), read_json_file(&path))
        })
        .collect();
    files.sort_by(|left, right| left.0.cmp(&right.0));
    files
}

pub(crate) fn read_json_file(path: &Path) -> Value {
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
