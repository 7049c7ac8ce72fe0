//! All validation rules of AAEP that an event, a message or a recording can break.
//!
//! A rule has the id of a requirement (listed in `docs/conformance.md`) or of a decision about an
//! open question in the specification (`C-…`, listed in `docs/decisions.md`). Every check reports a
//! broken rule as a [`Finding`].

mod envelope;
mod events;
mod handshake;
mod sequence;

use std::fmt;

pub(crate) use envelope::*;
pub(crate) use events::*;
pub(crate) use handshake::*;
pub(crate) use sequence::*;

seal::string_enum! {
    /// The severity of a finding. Its name is printed with the finding.
    Severity {
        /// Discouraged, but allowed by the protocol.
        Warning "warning",
        /// A violation of the protocol.
        Error "error",
    }
}

/// How strictly a document is validated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ValidationMode {
    /// For documents that we emit, and for `sayso validate`. Every rule and every limit applies.
    #[default]
    Strict,
    /// For documents that we receive. Unknown or out-of-range values are only warnings, except in
    /// replies.
    Receive,
}

/// One validation rule.
///
/// ```
/// let rule = aaep::rule::Rule::find("AAEP-3.2.3-1").unwrap();
/// assert_eq!(rule.section(), "3.2.3");
/// ```
#[derive(Clone, Copy)]
pub struct Rule(&'static RuleDefinition);

struct RuleDefinition {
    id: &'static str,
    strict_severity: Severity,
    receive_severity: Severity,
    /// The validation step of §3.9, or 10 for rules about the order of events.
    validation_step: u8,
    sentence: &'static str,
    decision_ids: &'static [&'static str],
    alias_ids: &'static [&'static str],
}

impl Rule {
    /// The form of a confirmation, for callers that check its texts further.
    pub const CONFIRMATION_FORM: Rule = events::CONFIRMATION_FORM;
    /// The form of a clarification.
    pub const CLARIFICATION_FORM: Rule = events::CLARIFICATION_FORM;
    /// The form of the choices of a clarification.
    pub const CHOICES: Rule = events::CHOICES;

    /// The rule about the state change that follows a question, for callers that know which questions are open.
    pub const AWAITING_INPUT_LEFT: Rule = sequence::AWAITING_INPUT_LEFT;

    /// The rule about the start and the end of a session, for callers that see only a part of it.
    pub const ONE_START_ONE_END: Rule = sequence::ONE_START_ONE_END;

    /// The rule that an irreversible call needs a yes, for callers that do not see the questions.
    pub const IRREVERSIBLE_CONSENT: Rule = sequence::IRREVERSIBLE_CONSENT;

    /// The rule about `producer`, for callers that know which producers a session has.
    pub const PRODUCER: Rule = envelope::PRODUCER;

    /// Returns all rules in the order in which they are defined.
    pub fn all() -> impl Iterator<Item = Rule> {
        [envelope::ALL, events::ALL, sequence::ALL, handshake::ALL].into_iter().flatten().copied()
    }

    /// Returns the rule with this id.
    pub fn find(id: &str) -> Option<Rule> {
        Self::all().find(|rule| rule.id() == id)
    }

    /// Returns the rule's id: the id of a requirement or of a decision (`C-…`).
    pub fn id(self) -> &'static str {
        self.0.id
    }

    /// Returns the section of the specification that the id names, without the section sign. A
    /// trailing `s` means the published schema. For a decision (`C-…`), returns `C`.
    pub fn section(self) -> &'static str {
        let unprefixed = self.0.id.strip_prefix("AAEP-").unwrap_or(self.0.id);
        unprefixed.rsplit_once('-').map_or(unprefixed, |(section, _)| section)
    }

    /// Returns the severity of breaking this rule.
    pub fn severity(self, mode: ValidationMode) -> Severity {
        match mode {
            ValidationMode::Strict => self.0.strict_severity,
            ValidationMode::Receive => self.0.receive_severity,
        }
    }

    /// Returns the requirement as one sentence.
    pub fn sentence(self) -> &'static str {
        self.0.sentence
    }

    /// Returns the ids (`C-…`) of the decisions that this rule follows.
    pub fn decision_ids(self) -> &'static [&'static str] {
        self.0.decision_ids
    }

    /// Returns the ids of other requirements that state the same rule.
    pub fn alias_ids(self) -> &'static [&'static str] {
        self.0.alias_ids
    }

    /// Returns the validation step (§3.9) that checks this rule, or 10 for rules about the order of
    /// events.
    pub fn validation_step(self) -> u8 {
        self.0.validation_step
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for Rule {}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.id)
    }
}

/// One violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The broken rule.
    pub rule: Rule,
    /// The severity of this violation.
    pub severity: Severity,
    /// A JSON pointer to the value in the event or message; empty for the whole document.
    pub pointer: String,
    /// What was found instead; empty if the rule's sentence is enough.
    pub actual: String,
}

impl Finding {
    /// Returns what was found, followed by what the rule requires.
    pub fn message(&self) -> String {
        let sentence = self.rule.sentence();
        if self.actual.is_empty() { sentence.to_owned() } else { format!("{}; {sentence}", self.actual) }
    }
}

/// A collector for findings. It also knows which rules are checked.
#[derive(Debug, Default)]
pub struct Findings {
    mode: ValidationMode,
    switched_off: Vec<Rule>,
    list: Vec<Finding>,
}

impl Findings {
    /// Creates an empty collector. All rules are checked.
    pub fn new(mode: ValidationMode) -> Self {
        Self { mode, switched_off: Vec::new(), list: Vec::new() }
    }

    /// Switches off the checks of these rules. Everything goes on as if the rules did not exist: a document that breaks only such rules
    /// counts as valid, so a reply in it takes effect, for example, and the checks that depend on these rules are made.
    ///
    /// ```
    /// use aaep::{check::{CheckedDocument, Validator}, json::Tape, rule::{Findings, Rule, ValidationMode}};
    /// let close = r#"{"type":"subscription.close","subscription_id":"sub_1","because":"Done."}"#;
    /// let rule = Rule::find("AAEP-5.1-1").unwrap();
    /// let mut findings = Findings::new(ValidationMode::Strict).without(&[rule]);
    /// let mut tape = Tape::default();
    /// let checked = Validator::new().check(&tape.read(close).unwrap(), &mut findings);
    /// assert!(matches!(checked, CheckedDocument::Message(_)) && findings.list().is_empty());
    /// ```
    #[must_use]
    pub fn without(mut self, rules: &[Rule]) -> Self {
        self.switched_off.extend_from_slice(rules);
        self
    }

    /// Returns whether this rule is checked.
    pub fn checks(&self, rule: Rule) -> bool {
        !self.switched_off.contains(&rule)
    }

    /// Returns the findings so far.
    pub fn list(&self) -> &[Finding] {
        &self.list
    }

    /// Takes the findings and leaves the collector empty.
    pub fn take(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.list)
    }

    /// Returns whether any finding is an error.
    pub fn has_error(&self) -> bool {
        self.list.iter().any(|finding| finding.severity == Severity::Error)
    }

    pub(crate) fn mode(&self) -> ValidationMode {
        self.mode
    }

    /// Changes the mode while a reply is checked, because replies are always strict (§6.3.4).
    pub(crate) fn set_mode(&mut self, mode: ValidationMode) {
        self.mode = mode;
    }

    #[cold]
    pub(crate) fn push(&mut self, rule: Rule, pointer: String, actual: String) {
        self.push_with(rule, rule.severity(self.mode), pointer, actual);
    }

    /// Like [`push`](Self::push), but always as a warning.
    #[cold]
    pub(crate) fn warn(&mut self, rule: Rule, pointer: String, actual: String) {
        self.push_with(rule, Severity::Warning, pointer, actual);
    }

    /// Reports a broken rule on which the further checks depend, and returns true. If the rule is switched off, it returns false, and the
    /// caller goes on as if nothing were wrong.
    #[cold]
    pub(crate) fn breaks(&mut self, rule: Rule, pointer: String, actual: String) -> bool {
        self.push(rule, pointer, actual);
        self.checks(rule)
    }

    fn push_with(&mut self, rule: Rule, severity: Severity, pointer: String, actual: String) {
        if self.checks(rule) {
            self.list.push(Finding { rule, severity, pointer, actual });
        }
    }

    /// Sorts the findings that start at index `from` by validation step (§3.9).
    pub(crate) fn sort_from(&mut self, from: usize) {
        if self.list.len() > from + 1 {
            self.list[from..].sort_by_key(|finding| finding.rule.validation_step());
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }
}

/// Defines the rules of one file. Each rule has this form:
///
/// `NAME: "id" strict/receive @step "sentence" decisions […] aliases […];`
///
/// `strict` and `receive` are the severities in the two validation modes. `decisions` lists the
/// decisions that the rule follows. `aliases` lists other requirements that state the same rule.
macro_rules! rules {
    ($($name:ident: $id:literal $strict:ident/$receive:ident @$step:literal $sentence:literal
        $(decisions [$($decision:literal),*])? $(aliases [$($alias:literal),*])?;)*) => {
        $(
            pub(crate) const $name: super::Rule = super::Rule(&super::RuleDefinition {
                id: $id,
                strict_severity: super::rules!(@severity $strict),
                receive_severity: super::rules!(@severity $receive),
                validation_step: $step,
                sentence: $sentence,
                decision_ids: &[$($($decision),*)?],
                alias_ids: &[$($($alias),*)?],
            });
        )*
        pub(super) const ALL: &[super::Rule] = &[$($name),*];
    };
    (@severity error) => { super::Severity::Error };
    (@severity warning) => { super::Severity::Warning };
}
use rules;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_id_is_unique() {
        let mut ids: Vec<_> = Rule::all()
            .flat_map(|rule| [rule.id()].into_iter().chain(rule.alias_ids().iter().copied()))
            .collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count);
    }

    #[test]
    fn the_section_is_part_of_the_id() {
        assert_eq!(Rule::find("AAEP-4.1.1s-2").unwrap().section(), "4.1.1s");
        assert_eq!(Rule::find("C-B5").unwrap().section(), "C");
    }
}
