//! How the verdicts of the published schemas and of the rule book compare.

use std::collections::BTreeMap;

use aaep::rule::{Face, Finding};
use serde_json::{Value, json};

use crate::decisions::DECISIONS;
use crate::judge::{Schemas, compact_type, errors, lines};

/// How the verdicts compared.
#[derive(Default)]
pub(crate) struct Tally {
    documents: usize,
    both_accept: usize,
    both_refuse: usize,
    /// Documents that we accept, and their schema refuses.
    wider: BTreeMap<&'static str, usize>,
    /// Documents that we refuse, and their schema accepts.
    stricter: BTreeMap<&'static str, usize>,
    unexplained: Vec<String>,
}

impl Tally {
    pub(crate) fn compare(&mut self, document: &Value, published: &Schemas) {
        self.documents += 1;
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
                is_inside(&finding.pointer, &place)
                    || !finding.pointer.is_empty() && is_inside(&place, &finding.pointer)
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

    pub(crate) fn and(mut self, other: Tally) -> Tally {
        self.documents += other.documents;
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

    pub(crate) fn report(self) {
        let Self { documents, both_accept, both_refuse, .. } = self;
        eprintln!("{documents} documents: both accept {both_accept}, both refuse {both_refuse}");
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
        assert!(
            documents >= 40_000 && both_accept > 2000 && both_refuse > 2000,
            "too few documents of one kind"
        );
        assert!(self.wider.contains_key("C-A3 full-URI type"), "C-A3 was never met");
        for decision in DECISIONS {
            assert!(self.stricter.contains_key(decision.name), "{} was never met", decision.name);
        }
    }
}

/// Whether one JSON pointer is another, or leads further into it.
fn is_inside(inner: &str, outer: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
