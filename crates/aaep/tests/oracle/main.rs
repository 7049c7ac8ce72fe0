//! Compares the validator with independent references: the schemas, fixtures and examples that AAEP's authors
//! published.
//!
//! The references are in `../shared`, next to the repository. `cargo xtask oracle` runs the tests that need that
//! folder, and reports them as skipped if it is missing.

#![allow(clippy::expect_used, clippy::panic, reason = "all of this is test code")]

mod compound_values;
mod published_documents;
mod random_documents;
mod random_values;
mod rule_predicates;
mod stricter_rules;
mod valid_documents;
mod validators;
mod value_pools;
mod verdict_comparison;

use aaep::rule::ValidationMode;
use published_documents::EXPECTED;
use serde_json::{Value, json};
use validators::{SchemaSet, compact_type, errors, format_findings};
use verdict_comparison::VerdictComparison;

/// Number of documents generated for each of the seventeen published types.
const DOCUMENTS_PER_TYPE: usize = 4000;
/// Number of documents generated for each type that has a sayso schema.
const DOCUMENTS_PER_OWN_TYPE: usize = 1000;

#[test]
#[ignore = "needs ../shared: cargo xtask oracle"]
fn the_published_schemas_and_the_validator_differ_only_by_documented_decisions() {
    let shared = testing::published_data::published_dir();
    let published = SchemaSet::published(&shared);
    let comparisons = run_on_threads(&valid_documents::published(), |number, sample| {
        let mut comparison = VerdictComparison::default();
        for document in random_documents::documents(sample, number, DOCUMENTS_PER_TYPE) {
            comparison.compare(&document, &published);
        }
        comparison
    });
    comparisons.into_iter().reduce(VerdictComparison::merge).unwrap_or_default().report();
}

#[test]
fn our_schemas_are_valid_json_schemas() {
    for schema in aaep::schema::all() {
        let parsed_schema: Value = serde_json::from_str(&schema.text).expect("our schema is JSON");
        assert_eq!(parsed_schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        if let Err(error) = jsonschema::draft202012::meta::validate(&parsed_schema) {
            panic!("{}: {error}", schema.name);
        }
    }
}

#[test]
fn our_schemas_accept_whatever_the_validator_accepts() {
    let ours = SchemaSet::ours();
    let samples: Vec<_> = valid_documents::published().into_iter().chain(valid_documents::ours()).collect();
    let accepted = run_on_threads(&samples, |number, sample| {
        let mut accepted = 0;
        for document in random_documents::documents(sample, 100 + number, DOCUMENTS_PER_OWN_TYPE) {
            let Some(schema) = ours.schema_for(&document) else { continue };
            if !errors(&document, ValidationMode::Strict).is_empty() {
                continue;
            }
            accepted += 1;
            // The full form of a type is accepted on input (C-A3), but a schema describes only the emitted
            // form.
            let mut compact = document.clone();
            compact["type"] = json!(compact_type(&document));
            if let Err(error) = schema.validate(&compact) {
                panic!(
                    "our schema rejects at {} what the validator accepts: {error}\n  {document}",
                    error.instance_path()
                );
            }
        }
        accepted
    });
    let accepted: usize = accepted.into_iter().sum();
    eprintln!("{accepted} documents accepted by the validator and by our schemas");
    assert!(accepted > 4000, "too few valid documents: {accepted}");
}

#[test]
#[ignore = "needs ../shared: cargo xtask oracle"]
fn our_schemas_accept_nothing_that_the_published_ones_reject() {
    let shared = testing::published_data::published_dir();
    let published = SchemaSet::published(&shared);
    let ours = SchemaSet::ours();
    run_on_threads(&valid_documents::published(), |number, sample| {
        for document in random_documents::documents(sample, 200 + number, DOCUMENTS_PER_OWN_TYPE) {
            let (Some(theirs), Some(ours)) = (published.schema_for(&document), ours.schema_for(&document))
            else {
                continue;
            };
            assert!(
                !ours.is_valid(&document) || theirs.is_valid(&document),
                "only our schema accepts {document}"
            );
        }
    });
}

#[test]
#[ignore = "needs ../shared: cargo xtask oracle"]
fn every_published_document_gets_the_expected_verdict() {
    let shared = testing::published_data::published_dir();
    let documents = published_documents::documents(&shared);
    let names: Vec<_> = documents.iter().map(|(name, _)| name.as_str()).collect();
    let expected: Vec<_> = EXPECTED.iter().map(|(name, ..)| *name).collect();
    assert_eq!(names, expected, "the published documents must match the expected list");
    for ((name, document), (_, strict, receive)) in documents.iter().zip(EXPECTED) {
        for (mode, expected) in [(ValidationMode::Strict, strict), (ValidationMode::Receive, receive)] {
            let findings = errors(document, mode);
            let ids: Vec<_> = findings.iter().map(|finding| finding.rule.id()).collect();
            assert_eq!(ids, *expected, "{name}, {mode:?}{}", format_findings(&findings));
        }
    }
}

#[test]
#[ignore = "needs ../shared: cargo xtask oracle"]
fn every_published_example_value_is_valid_at_its_location() {
    let shared = testing::published_data::published_dir();
    let samples = valid_documents::published();
    let mut count = 0;
    for (name, schema) in published_documents::schemas(&shared) {
        // The examples of the envelope apply to any event.
        let is_of_type = |sample: &&Value| compact_type(sample).trim_start_matches("aaep:") == name;
        let sample = samples.iter().find(is_of_type).unwrap_or(&samples[0]);
        for (pointer, example) in published_documents::value_examples(&schema) {
            let mut document = sample.clone();
            *document.pointer_mut(&pointer).expect("a sample document has every member") = example.clone();
            let mut findings = errors(&document, ValidationMode::Strict);
            findings.retain(|finding| finding.pointer.starts_with(&pointer));
            assert!(findings.is_empty(), "{name}, {pointer} {example}{}", format_findings(&findings));
            count += 1;
        }
    }
    assert!(count > 80, "only {count} examples of values");
}

/// Runs `work` for each document on its own thread. The number of a document seeds the random generator, so
/// the results do not depend on scheduling.
fn run_on_threads<T: Send>(samples: &[Value], work: impl Fn(u64, &Value) -> T + Sync) -> Vec<T> {
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..).zip(samples).map(|(number, sample)| scope.spawn(move || work(number, sample))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}
