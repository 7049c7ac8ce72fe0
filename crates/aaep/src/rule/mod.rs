//! The rule book: every rule of AAEP that an event, a message or an ordered recording can break, once, with its id.
//!
//! A rule's id is a row of our list of requirements (`docs/conformance.md` shows them all), or the `C-…` of the
//! contradiction that it settles. Whoever finds a rule broken makes a [`Finding`]; nobody checks a rule elsewhere.

mod envelope;
mod events;
mod handshake;
mod sequence;

use std::fmt;

pub(crate) use envelope::*;
pub(crate) use events::*;
pub(crate) use handshake::*;
pub(crate) use sequence::*;

seal::word_enum! {
    /// How bad it is. Its word stands in a finding's line.
    Severity word {
        /// Worth a word; lawful all the same.
        Warning "warning",
        /// Against the protocol.
        Error "error",
    }
}

/// Which way an event is going (digest, section 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Face {
    /// What we emit and what a linter reports: every rule, every limit.
    #[default]
    Strict,
    /// What we receive: what is unknown or merely out of limits survives with a warning. Replies stay strict.
    Receive,
}

/// One rule of the book.
///
/// ```
/// let rule = aaep::rule::Rule::find("AAEP-3.2.3-1").unwrap();
/// assert_eq!(rule.section(), "3.2.3");
/// ```
#[derive(Clone, Copy)]
pub struct Rule(&'static Entry);

struct Entry {
    id: &'static str,
    strict: Severity,
    receive: Severity,
    /// The step of §3.9 to which the rule belongs; 10 for rules about order.
    step: u8,
    sentence: &'static str,
    follows: &'static [&'static str],
    also: &'static [&'static str],
}

impl Rule {
    /// All rules, in the order of the book.
    pub fn all() -> impl Iterator<Item = Rule> {
        [envelope::ALL, events::ALL, sequence::ALL, handshake::ALL].into_iter().flatten().copied()
    }

    /// The rule of that id.
    pub fn find(id: &str) -> Option<Rule> {
        Self::all().find(|rule| rule.id() == id)
    }

    /// Its id: a row of the requirements, or a `C-…`.
    pub fn id(self) -> &'static str {
        self.0.id
    }

    /// The section of the specification, without the paragraph sign; `s` after it means the schema.
    pub fn section(self) -> &'static str {
        let bare = self.0.id.strip_prefix("AAEP-").unwrap_or(self.0.id);
        bare.rsplit_once('-').map_or(bare, |(section, _)| section)
    }

    /// How bad it is to break it.
    pub fn severity(self, face: Face) -> Severity {
        match face {
            Face::Strict => self.0.strict,
            Face::Receive => self.0.receive,
        }
    }

    /// What is right, in a sentence.
    pub fn sentence(self) -> &'static str {
        self.0.sentence
    }

    /// The contradictions of the specification (`C-…`) whose settlement this rule follows.
    pub fn follows(self) -> &'static [&'static str] {
        self.0.follows
    }

    /// Other rows of the requirements that say the same, and so are this rule.
    pub fn also(self) -> &'static [&'static str] {
        self.0.also
    }

    /// The step of validation (§3.9) at which it is checked; 10 for rules about order.
    pub fn step(self) -> u8 {
        self.0.step
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

/// One rule, found broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which rule.
    pub rule: Rule,
    /// How bad it is here.
    pub severity: Severity,
    /// Where: a JSON pointer into the event or message; empty for the whole of it.
    pub pointer: String,
    /// What stood there instead; empty where the rule's sentence says it all.
    pub found: String,
}

impl Finding {
    /// What is wrong, then what would be right.
    pub fn message(&self) -> String {
        let sentence = self.rule.sentence();
        if self.found.is_empty() { sentence.to_owned() } else { format!("{}; {sentence}", self.found) }
    }
}

/// Where findings are gathered.
#[derive(Debug, Default)]
pub struct Findings {
    face: Face,
    list: Vec<Finding>,
}

impl Findings {
    /// None yet.
    pub fn new(face: Face) -> Self {
        Self { face, list: Vec::new() }
    }

    /// What has been found.
    pub fn list(&self) -> &[Finding] {
        &self.list
    }

    /// Takes what has been found, and starts anew.
    pub fn take(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.list)
    }

    /// Whether anything found is against the protocol.
    pub fn has_error(&self) -> bool {
        self.list.iter().any(|finding| finding.severity == Severity::Error)
    }

    pub(crate) fn face(&self) -> Face {
        self.face
    }

    /// For the time of one reply, which is strict whatever the face (§6.3.4).
    pub(crate) fn set_face(&mut self, face: Face) {
        self.face = face;
    }

    #[cold]
    pub(crate) fn push(&mut self, rule: Rule, pointer: String, found: String) {
        let severity = rule.severity(self.face);
        self.list.push(Finding { rule, severity, pointer, found });
    }

    /// Like [`push`](Self::push), where the case is milder than the rule.
    #[cold]
    pub(crate) fn warn(&mut self, rule: Rule, pointer: String, found: String) {
        self.list.push(Finding { rule, severity: Severity::Warning, pointer, found });
    }

    /// Puts what was found from `from` on into the order of §3.9.
    pub(crate) fn sort_from(&mut self, from: usize) {
        if self.list.len() > from + 1 {
            self.list[from..].sort_by_key(|finding| finding.rule.step());
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }
}

/// Writes the table of a chapter: `NAME: "id" strict/receive @step "sentence" follows […] also […];`
macro_rules! rules {
    ($($name:ident: $id:literal $strict:ident/$receive:ident @$step:literal $sentence:literal
        $(follows [$($follows:literal),*])? $(also [$($also:literal),*])?;)*) => {
        $(
            pub(crate) const $name: super::Rule = super::Rule(&super::Entry {
                id: $id,
                strict: super::rules!(@severity $strict),
                receive: super::rules!(@severity $receive),
                step: $step,
                sentence: $sentence,
                follows: &[$($($follows),*)?],
                also: &[$($($also),*)?],
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
    fn every_id_stands_once() {
        let mut ids: Vec<_> =
            Rule::all().flat_map(|rule| [rule.id()].into_iter().chain(rule.also().iter().copied())).collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all);
    }

    #[test]
    fn a_section_is_read_off_the_id() {
        assert_eq!(Rule::find("AAEP-4.1.1s-2").unwrap().section(), "4.1.1s");
        assert_eq!(Rule::find("C-B5").unwrap().section(), "C");
    }
}
