//! The rule book against judges that are not ours: the schemas, fixtures and examples that AAEP's authors published.
//!
//! They lie in `../shared`, beside the repository and not in it; without that folder these tests say so and pass.

#[path = "oracle/decisions.rs"]
mod decisions;
#[path = "oracle/judge.rs"]
mod judge;
#[path = "oracle/lawful.rs"]
mod lawful;
#[path = "oracle/mutate.rs"]
mod mutate;
#[path = "oracle/pools.rs"]
mod pools;
#[path = "oracle/published.rs"]
mod published;
#[path = "oracle/random.rs"]
mod random;
#[path = "oracle/values.rs"]
mod values;

use std::collections::BTreeMap;

use aaep::rule::{Face, Finding};
use decisions::DECISIONS;
use judge::{Schemas, compact_type, errors, lines, shared};
use published::EXPECTED;
use serde_json::{Value, json};

/// So many documents of each of the seventeen published types.
const EACH: usize = 40000;
/// So many of each type for which we have a schema.
const EACH_OF_OURS: usize = 1000;

#[test]
fn the_published_schemas_and_the_rule_book_differ_only_where_a_decision_says_so() {
    let Some(shared) = shared() else { return };
    let published = Schemas::published(&shared);
    let tallies = on_threads(lawful::published(), |number, lawful| {
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
    let lawful = lawful::published().into_iter().chain(lawful::ours()).collect();
    let accepted = on_threads(lawful, |number, lawful| {
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
fn our_schemas_accept_nothing_that_the_published_ones_refuse() {
    let Some(shared) = shared() else { return };
    let published = Schemas::published(&shared);
    let ours = Schemas::ours();
    on_threads(lawful::published(), |number, lawful| {
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
fn every_published_document_gets_the_verdict_that_the_digest_gives_it() {
    let Some(shared) = shared() else { return };
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
fn every_published_example_of_a_value_is_lawful_in_its_place() {
    let Some(shared) = shared() else { return };
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
fn on_threads<T: Send>(lawful: Vec<Value>, work: impl Fn(u64, &Value) -> T + Sync) -> Vec<T> {
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..).zip(&lawful).map(|(number, lawful)| scope.spawn(move || work(number, lawful))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// How the verdicts compared.
#[derive(Default)]
struct Tally {
    both_accept: usize,
    both_refuse: usize,
    /// Documents that we accept, and their schema refuses.
    wider: BTreeMap<&'static str, usize>,
    /// Documents that we refuse, and their schema accepts.
    stricter: BTreeMap<&'static str, usize>,
    unexplained: Vec<String>,
}

impl Tally {
    fn compare(&mut self, document: &Value, published: &Schemas) {
        let found = errors(document, Face::Strict);
        let schema = published.of(document).expect("there is always the envelope's schema");
        match (schema.is_valid(document), found.is_empty()) {
            (true, true) => {
                self.both_accept += 1;
                self.demand_decisions(document, &found);
            }
            (true, false) => self.demand_decisions(document, &found),
            (false, true) => self.explain_width(document, schema),
            (false, false) => {
                self.both_refuse += 1;
                if published.describe(document) {
                    self.demand_same_places(document, &found, schema);
                }
            }
        }
    }

    /// The schema accepts: whatever we find, a decision explains; whatever breaks a decision, we find.
    fn demand_decisions(&mut self, document: &Value, found: &[Finding]) {
        let broken: Vec<_> = DECISIONS.iter().filter(|decision| (decision.broken_by)(document)).collect();
        let explained = |finding: &Finding| broken.iter().any(|it| it.rules.contains(&finding.rule.id()));
        if !found.iter().all(explained) {
            self.unexplained("the published schema accepts this, we refuse it", document, found);
        }
        for decision in broken {
            *self.stricter.entry(decision.name).or_default() += 1;
            if !found.iter().any(|finding| decision.rules.contains(&finding.rule.id())) {
                self.unexplained(
                    &format!("this breaks {}, and we do not say so", decision.name),
                    document,
                    found,
                );
            }
        }
    }

    /// The schema refuses and we accept: only a core type in its full form, and only because of that.
    fn explain_width(&mut self, document: &Value, schema: &jsonschema::Validator) {
        let mut compact = document.clone();
        compact["type"] = json!(compact_type(document));
        let full_form = document["type"]
            .as_str()
            .is_some_and(|name| name.starts_with("https://aaep-protocol.org/types/"));
        if full_form && schema.is_valid(&compact) {
            *self.wider.entry("C-A3 full-URI type").or_default() += 1;
        } else {
            self.unexplained("the published schema refuses this, we accept it", document, &[]);
        }
    }

    /// Both refuse: then also each for the same places, or one fault would hide that we missed another.
    fn demand_same_places(&mut self, document: &Value, found: &[Finding], schema: &jsonschema::Validator) {
        for error in schema.iter_errors(document) {
            let place = error.instance_path().to_string();
            let seen = |finding: &Finding| {
                finding.pointer.starts_with(&place)
                    || !finding.pointer.is_empty() && place.starts_with(&finding.pointer)
            };
            // The full form of a type is no fault (C-A3); where it is one (C-A4), it is not the only one that counts.
            let of_its_form = place == "/type" && document["type"] != compact_type(document);
            if !of_its_form && !found.iter().any(seen) {
                self.unexplained(
                    &format!("we miss what the published schema says at {place}: {error}"),
                    document,
                    found,
                );
            }
        }
    }

    fn unexplained(&mut self, what: &str, document: &Value, found: &[Finding]) {
        let text: String = document.to_string().chars().take(4000).collect();
        self.unexplained.push(format!("{what}\n  {text}\n  our findings:{}", lines(found)));
    }

    fn and(mut self, other: Tally) -> Tally {
        self.both_accept += other.both_accept;
        self.both_refuse += other.both_refuse;
        for (name, count) in other.wider {
            *self.wider.entry(name).or_default() += count;
        }
        for (name, count) in other.stricter {
            *self.stricter.entry(name).or_default() += count;
        }
        self.unexplained.extend(other.unexplained);
        self
    }

    fn report(self) {
        let all: usize = EACH * 17;
        eprintln!("{all} documents: both accept {}, both refuse {}", self.both_accept, self.both_refuse);
        for (name, count) in &self.wider {
            eprintln!("  we accept more  {count:6}  {name}");
        }
        for (name, count) in &self.stricter {
            eprintln!("  we accept less  {count:6}  {name}");
        }
        let shown: Vec<_> = self.unexplained.iter().take(10).map(String::as_str).collect();
        assert!(
            shown.is_empty(),
            "{} differences, for example:\n{}",
            self.unexplained.len(),
            shown.join("\n\n")
        );
        assert!(self.both_accept > 2000 && self.both_refuse > 2000, "too few documents of one kind");
        assert!(self.wider.contains_key("C-A3 full-URI type"), "C-A3 was never met");
        for decision in DECISIONS {
            assert!(self.stricter.contains_key(decision.name), "{} was never met", decision.name);
        }
    }
}
