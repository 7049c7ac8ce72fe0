//! The rule book against judges that are not ours: the schemas, fixtures and examples that AAEP's authors published.
//!
//! They lie in `../shared`, beside the repository and not in it. `cargo xtask oracle` runs the tests that need that folder, and reports
//! them as skipped where it is missing.

#![allow(clippy::expect_used, clippy::panic, reason = "this is a test down to its last helper")]

mod broken;
mod compounds;
mod decisions;
mod judge;
mod lawful;
mod mutate;
mod pools;
mod published;
mod tally;
mod values;

use aaep::rule::Face;
use judge::{Schemas, compact_type, errors, lines};
use published::EXPECTED;
use serde_json::{Value, json};
use tally::Tally;

/// So many documents of each of the seventeen published types.
const EACH: usize = 2500;
/// So many of each type for which we have a schema.
const EACH_OF_OURS: usize = 1000;

#[test]
#[ignore = "needs ../shared: cargo xtask oracle"]
fn the_published_schemas_and_the_rule_book_differ_only_where_a_decision_says_so() {
    let shared = testing::published::folder();
    let published = Schemas::published(&shared);
    let tallies = on_threads(&lawful::published(), |number, lawful| {
        let mut tally = Tally::default();
        for document in mutate::documents(lawful, number, EACH) {
            tally.compare(&document, &published);
        }
        tally
    });
    tallies.into_iter().reduce(Tally::and).unwrap_or_default().report();
}

#[test]
fn our_schemas_are_schemas() {
    for schema in aaep::schema::all() {
        let schema_read: Value = serde_json::from_str(&schema.text).expect("our schema is JSON");
        assert_eq!(schema_read["$schema"], "https://json-schema.org/draft/2020-12/schema");
        if let Err(error) = jsonschema::draft202012::meta::validate(&schema_read) {
            panic!("{}: {error}", schema.name);
        }
    }
}

#[test]
fn our_schemas_accept_whatever_the_rule_book_accepts() {
    let ours = Schemas::ours();
    let lawful: Vec<_> = lawful::published().into_iter().chain(lawful::ours()).collect();
    let accepted = on_threads(&lawful, |number, lawful| {
        let mut accepted = 0;
        for document in mutate::documents(lawful, 100 + number, EACH_OF_OURS) {
            let Some(schema) = ours.of(&document) else { continue };
            if !errors(&document, Face::Strict).is_empty() {
                continue;
            }
            accepted += 1;
            // A type's full form is read (C-A3), but a schema has one form, the one that is emitted.
            let mut compact = document.clone();
            compact["type"] = json!(compact_type(&document));
            if let Err(error) = schema.validate(&compact) {
                panic!(
                    "our schema refuses at {} what the rule book accepts: {error}\n  {document}",
                    error.instance_path()
                );
            }
        }
        accepted
    });
    let accepted: usize = accepted.into_iter().sum();
    eprintln!("{accepted} documents that the rule book and our schemas accept");
    assert!(accepted > 4000, "too few lawful documents: {accepted}");
}

#[test]
#[ignore = "needs ../shared: cargo xtask oracle"]
fn our_schemas_accept_nothing_that_the_published_ones_refuse() {
    let shared = testing::published::folder();
    let published = Schemas::published(&shared);
    let ours = Schemas::ours();
    on_threads(&lawful::published(), |number, lawful| {
        for document in mutate::documents(lawful, 200 + number, EACH_OF_OURS) {
            let (Some(theirs), Some(ours)) = (published.of(&document), ours.of(&document)) else { continue };
            assert!(
                !ours.is_valid(&document) || theirs.is_valid(&document),
                "only our schema accepts {document}"
            );
        }
    });
}

#[test]
#[ignore = "needs ../shared: cargo xtask oracle"]
fn every_published_document_gets_the_verdict_that_the_digest_gives_it() {
    let shared = testing::published::folder();
    let documents = published::documents(&shared);
    let names: Vec<_> = documents.iter().map(|(name, _)| name.as_str()).collect();
    let expected: Vec<_> = EXPECTED.iter().map(|(name, ..)| *name).collect();
    assert_eq!(names, expected, "the documents that are there, and those that we know");
    for ((name, document), (_, strict, receive)) in documents.iter().zip(EXPECTED) {
        for (face, expected) in [(Face::Strict, strict), (Face::Receive, receive)] {
            let found = errors(document, face);
            let ids: Vec<_> = found.iter().map(|finding| finding.rule.id()).collect();
            assert_eq!(ids, *expected, "{name}, {face:?}{}", lines(&found));
        }
    }
}

#[test]
#[ignore = "needs ../shared: cargo xtask oracle"]
fn every_published_example_of_a_value_is_lawful_in_its_place() {
    let shared = testing::published::folder();
    let lawful = lawful::published();
    let mut count = 0;
    for (name, schema) in published::schemas(&shared) {
        // The envelope's examples hold for any event.
        let of_type = |lawful: &&Value| compact_type(lawful).trim_start_matches("aaep:") == name;
        let lawful = lawful.iter().find(of_type).unwrap_or(&lawful[0]);
        for (place, example) in published::value_examples(&schema) {
            let mut document = lawful.clone();
            *document.pointer_mut(&place).expect("a lawful document has every member") = example.clone();
            let mut found = errors(&document, Face::Strict);
            found.retain(|finding| finding.pointer.starts_with(&place));
            assert!(found.is_empty(), "{name}, {place} {example}{}", lines(&found));
            count += 1;
        }
    }
    assert!(count > 80, "only {count} examples of values");
}

/// Does the same with each document, which is numbered so that its chance is its own, whatever thread it runs on.
fn on_threads<T: Send>(lawful: &[Value], work: impl Fn(u64, &Value) -> T + Sync) -> Vec<T> {
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..).zip(lawful).map(|(number, lawful)| scope.spawn(move || work(number, lawful))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}
