//! Compares the verdicts of the published schemas with those of the validator.

use std::collections::BTreeMap;

use aaep::rule::{Finding, ValidationMode};
use serde_json::{Value, json};

use crate::stricter_rules::STRICTER_RULES;
use crate::validators::{SchemaSet, compact_type, errors, format_findings};

/// The result of the comparison.
#[derive(Default)]
pub(crate) struct VerdictComparison {
    document_count: usize,
    both_accept: usize,
    both_reject: usize,
    /// The number of documents that only we accept, by reason.
    wider: BTreeMap<&'static str, usize>,
    /// The number of documents that the published schema accepts but that break a stricter rule, by rule.
    stricter: BTreeMap<&'static str, usize>,
    unexplained: Vec<String>,
}

impl VerdictComparison {
    pub(crate) fn compare(&mut self, document: &Value, published: &SchemaSet) {
        self.document_count += 1;
        let findings = errors(document, ValidationMode::Strict);
        let schema = published.schema_for(document).expect("the envelope's schema always exists");
        match (schema.is_valid(document), findings.is_empty()) {
            (true, true) => {
                self.both_accept += 1;
                self.check_stricter_rules(document, &findings);
            }
            (true, false) => self.check_stricter_rules(document, &findings),
            (false, true) => self.check_wider(document, schema),
            (false, false) => {
                self.both_reject += 1;
                if published.has_schema_for(document) {
                    self.check_locations(document, &findings, schema);
                }
            }
        }
    }

    /// Handles a document that the schema accepts. A stricter rule must explain every finding, and every
    /// broken rule must cause a finding.
    fn check_stricter_rules(&mut self, document: &Value, findings: &[Finding]) {
        let broken_rules: Vec<_> =
            STRICTER_RULES.iter().filter(|rule| (rule.is_broken_by)(document)).collect();
        let is_explained =
            |finding: &Finding| broken_rules.iter().any(|rule| rule.rule_ids.contains(&finding.rule.id()));
        if !findings.iter().all(is_explained) {
            self.add_unexplained("the published schema accepts this, we reject it", document, findings);
        }
        for rule in broken_rules {
            *self.stricter.entry(rule.name).or_default() += 1;
            if !findings.iter().any(|finding| rule.rule_ids.contains(&finding.rule.id())) {
                self.add_unexplained(
                    &format!("this breaks {}, but we do not report it", rule.name),
                    document,
                    findings,
                );
            }
        }
    }

    /// Handles a document that only we accept. The only allowed reason is a core type in its full form.
    fn check_wider(&mut self, document: &Value, schema: &jsonschema::Validator) {
        let mut compact = document.clone();
        compact["type"] = json!(compact_type(document));
        let is_full_form = document["type"]
            .as_str()
            .is_some_and(|name| name.starts_with("https://aaep-protocol.org/types/"));
        if is_full_form && schema.is_valid(&compact) {
            *self.wider.entry("C-A3 full-URI type").or_default() += 1;
        } else {
            self.add_unexplained("the published schema rejects this, we accept it", document, &[]);
        }
    }

    /// Handles a document that both reject. Each error of the schema needs a finding at its location, because
    /// otherwise one finding could hide an error that we miss.
    fn check_locations(&mut self, document: &Value, findings: &[Finding], schema: &jsonschema::Validator) {
        for error in schema.iter_errors(document) {
            let pointer = error.instance_path().to_string();
            let covers_error = |finding: &Finding| {
                is_inside(&finding.pointer, &pointer)
                    || !finding.pointer.is_empty() && is_inside(&pointer, &finding.pointer)
            };
            // The schema rejects every type in full form. There are two full forms: the URI in the specification's
            // text is valid (C-A3), and the URI in the context file is accepted only on receipt (C-A4). So the
            // schema's error at /type proves nothing, and only its other errors are compared.
            let is_full_form_type = pointer == "/type" && document["type"] != compact_type(document);
            if !is_full_form_type && !findings.iter().any(covers_error) {
                self.add_unexplained(
                    &format!("we miss what the published schema reports at {pointer}: {error}"),
                    document,
                    findings,
                );
            }
        }
    }

    fn add_unexplained(&mut self, message: &str, document: &Value, findings: &[Finding]) {
        let text: String = document.to_string().chars().take(4000).collect();
        self.unexplained.push(format!("{message}\n  {text}\n  our findings:{}", format_findings(findings)));
    }

    pub(crate) fn merge(mut self, other: VerdictComparison) -> VerdictComparison {
        self.document_count += other.document_count;
        self.both_accept += other.both_accept;
        self.both_reject += other.both_reject;
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
        let Self { document_count, both_accept, both_reject, .. } = self;
        eprintln!("{document_count} documents: both accept {both_accept}, both reject {both_reject}");
        for (name, count) in &self.wider {
            eprintln!("  wider          {count:6}  {name}");
        }
        for (name, count) in &self.stricter {
            eprintln!("  stricter       {count:6}  {name}");
        }
        let shown: Vec<_> = self.unexplained.iter().take(10).map(String::as_str).collect();
        assert!(
            shown.is_empty(),
            "{} differences, for example:\n{}",
            self.unexplained.len(),
            shown.join("\n\n")
        );
        assert!(
            document_count >= 40_000 && both_accept > 2000 && both_reject > 2000,
            "too few documents of one kind"
        );
        assert!(self.wider.contains_key("C-A3 full-URI type"), "no document exercised C-A3");
        for rule in STRICTER_RULES {
            assert!(self.stricter.contains_key(rule.name), "no document exercised {}", rule.name);
        }
    }
}

/// Returns whether one JSON pointer equals another or points inside it.
fn is_inside(inner: &str, outer: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
