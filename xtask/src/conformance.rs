//! Generates `docs/conformance.md` from the table of requirements, and checks that each row has the kind of evidence that it
//! needs.

mod test_lookup;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;
use std::path::Path;

use aaep::rule::Rule;

use crate::stage::root;

const TABLE: &str = "docs/requirements.tsv";
const PAGE: &str = "docs/conformance.md";
const CASES: &str = "crates/cli/tests/rules";

/// Evidence that is computed from other rows: `all rows up to level N`.
const ALL_ROWS_PREFIX: &str = "all rows up to level ";

/// Tests of the messages that sayso itself sends, each with a clause that says what it shows. They apply to all rows of the
/// kind `message`.
const OWN_MESSAGES: [(&str, &str); 5] = [
    (
        "whatever an agent sends, listeners receive only valid events",
        "crates/cli/tests/rules/through_hub.rs::no_rule_violation_passes_the_hub",
    ),
    (
        "the events that the hub itself makes are valid",
        "crates/hub/tests/hub_event_rules.rs::events_created_by_the_hub_cause_no_findings",
    ),
    (
        "every answer to a subscription request is valid",
        "crates/aaep/tests/negotiate.rs::every_request_gets_an_answer_without_findings",
    ),
    (
        "the events of the crate `sayso` in all scenarios of the demo cause neither errors nor warnings",
        "crates/cli/tests/replay/capture.rs::a_demo_session_is_recorded_exactly_and_is_valid",
    ),
    (
        "the messages of `sayso listen` are valid",
        "crates/cli/tests/listen/own_messages.rs::every_message_of_the_listener_is_valid",
    ),
];

/// Writes the page.
pub(crate) fn write() -> Result<(), String> {
    let page = generate_page()?;
    std::fs::write(root().join(PAGE), page).map_err(|error| format!("{PAGE}: {error}"))
}

/// Checks that the page is up to date.
pub(crate) fn check() -> Result<(), String> {
    let page = generate_page()?;
    if read(PAGE)? == page { Ok(()) } else { Err(format!("{PAGE} is stale: run `cargo xtask conformance`")) }
}

/// The subject of a row, which determines the evidence that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RowKind {
    Message,
    Producer,
    Subscriber,
    Both,
    Validator,
    Permission,
    Document,
}

impl RowKind {
    const ALL: [(RowKind, &str, &str); 7] = [
        (
            RowKind::Message,
            "message",
            "a property of a message or recording that a validator can decide: a rule",
        ),
        (
            RowKind::Producer,
            "producer",
            "behaviour of our producer (hub, transports, crate `sayso`): a test of that behaviour",
        ),
        (
            RowKind::Subscriber,
            "subscriber",
            "behaviour of our subscriber (terminal, page): a test of that behaviour",
        ),
        (RowKind::Both, "both", "behaviour of both sides: a test of our producer and one of our subscriber"),
        (RowKind::Validator, "validator", "behaviour of `sayso validate`: a test of that behaviour"),
        (
            RowKind::Permission,
            "permission",
            "something that is allowed: nothing, or a test if sayso makes use of it",
        ),
        (
            RowKind::Document,
            "document",
            "a statement about documents, claims or other people's work: a test where one is possible",
        ),
    ];

    fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known, _)| *known == name).map(|(kind, ..)| *kind)
    }

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, ..)| *kind == self).map_or("", |(_, name, _)| name)
    }
}

/// The side of the protocol that a test is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Producer,
    Subscriber,
}

impl Side {
    const FOLDERS: [(&str, Side); 13] = [
        ("crates/hub/", Side::Producer),
        ("crates/sayso/", Side::Producer),
        ("crates/wire/", Side::Producer),
        ("crates/cli/tests/attacks/", Side::Producer),
        ("crates/cli/tests/interop/json_ld", Side::Producer),
        ("crates/cli/tests/serve/", Side::Producer),
        ("crates/cli/tests/wires/", Side::Producer),
        ("crates/listen/", Side::Subscriber),
        ("crates/cli/tests/braille/", Side::Subscriber),
        ("crates/cli/tests/browser/", Side::Subscriber),
        ("crates/cli/tests/listen/", Side::Subscriber),
        ("crates/cli/tests/replay/capture", Side::Subscriber),
        ("crates/cli/tests/speech/", Side::Subscriber),
    ];

    /// Returns the side of a test, by its folder; `None` for tests of what both sides share.
    fn of_test(test: &str) -> Option<Self> {
        Self::FOLDERS.iter().find(|(folder, _)| test.starts_with(folder)).map(|(_, side)| *side)
    }
}

/// How far a row is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RowStatus {
    Proven,
    NotYet,
    NotTestable,
    /// A permission that sayso does not use, or a duty of those who do something that sayso does not do.
    NothingRequired,
}

impl RowStatus {
    const ALL: [(RowStatus, &str); 4] = [
        (RowStatus::Proven, "proven"),
        (RowStatus::NotYet, "not yet"),
        (RowStatus::NotTestable, "not testable"),
        (RowStatus::NothingRequired, "nothing required"),
    ];
}

struct RequirementRow {
    id: String,
    level: String,
    role: String,
    /// The level of conformance to which the row belongs, if any.
    conformance: Option<u8>,
    requirement: String,
    kind: RowKind,
    evidence: String,
}

fn parse_rows(table: &str) -> Result<Vec<RequirementRow>, String> {
    let mut ids = HashSet::new();
    table
        .lines()
        .skip(1)
        .map(|line| match line.split('\t').collect::<Vec<_>>()[..] {
            [id, level, role, conformance, requirement, kind, evidence] => {
                if !ids.insert(id) {
                    return Err(format!("{TABLE}: {id} is listed twice"));
                }
                Ok(RequirementRow {
                    id: id.to_owned(),
                    level: level.to_owned(),
                    role: role.to_owned(),
                    conformance: conformance.parse().ok(),
                    requirement: requirement.to_owned(),
                    kind: RowKind::parse(kind)
                        .ok_or_else(|| format!("{TABLE}: {id}: {kind:?} is not a kind of row"))?,
                    evidence: evidence.to_owned(),
                })
            }
            _ => Err(format!("{TABLE}: a row must have seven columns: {line}")),
        })
        .collect()
}

fn generate_page() -> Result<String, String> {
    let rules_by_id: HashMap<&str, Rule> = Rule::all()
        .flat_map(|rule| {
            std::iter::once(rule.id()).chain(rule.alias_ids().iter().copied()).map(move |id| (id, rule))
        })
        .collect();
    let rows = parse_rows(&read(TABLE)?)?;
    let row_ids: HashSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    let missing_ids: Vec<_> =
        rules_by_id.keys().filter(|id| id.starts_with("AAEP-") && !row_ids.contains(*id)).collect();
    if !missing_ids.is_empty() {
        return Err(format!("these rule ids are not in {TABLE}: {missing_ids:?}"));
    }
    let mut faults = Vec::new();
    let mut evidence = BTreeMap::new();
    for row in rows.iter().filter(|row| !row.evidence.starts_with(ALL_ROWS_PREFIX)) {
        let rule = rules_by_id.get(row.id.as_str()).copied();
        match describe_evidence(row, rule, &test_lookup::find) {
            Ok(described) => drop(evidence.insert(row.id.as_str(), described)),
            Err(fault) => faults.push(format!("{TABLE}: {}: {fault}", row.id)),
        }
    }
    for row in rows.iter().filter(|row| row.evidence.starts_with(ALL_ROWS_PREFIX)) {
        match describe_level_row(row, &rows, &evidence) {
            Ok(described) => drop(evidence.insert(row.id.as_str(), described)),
            Err(fault) => faults.push(format!("{TABLE}: {}: {fault}", row.id)),
        }
    }
    let mut counts: BTreeMap<(RowKind, RowStatus), usize> = BTreeMap::new();
    let mut table = String::new();
    for row in &rows {
        let Some((status, evidence)) = evidence.get(row.id.as_str()) else { continue };
        *counts.entry((row.kind, *status)).or_default() += 1;
        // The original list refers to a list of conflicts, which is in docs/decisions.md now.
        let requirement =
            row.requirement.replace('|', "\\|").replace('<', "&lt;").replace("(see conflicts: ", "(");
        let RequirementRow { id, level, role, conformance, kind, .. } = row;
        let (kind, conformance) =
            (kind.name(), conformance.map_or("–".to_owned(), |conformance| conformance.to_string()));
        let _ = writeln!(
            table,
            "| {id} | {level} | {role} | {conformance} | {kind} | {requirement} | {evidence} |"
        );
    }
    for (_, test) in OWN_MESSAGES {
        faults.extend(find_cited(test, &test_lookup::find).err());
    }
    if !faults.is_empty() {
        return Err(faults.join("\n"));
    }
    let own_messages =
        OWN_MESSAGES.map(|(what, test)| format!("- {what}: `{}`", test.replace("::", "`, `"))).join("\n");
    let unlisted_rules: Vec<_> =
        Rule::all().filter(|rule| rule.id().starts_with("C-")).map(Rule::id).collect();
    Ok(format!(
        "# Conformance

Every requirement of AAEP, with our numbering, and the evidence that it is met. `cargo xtask conformance` generates this page
from `{TABLE}` and the rules in `crates/aaep/src/rule`. CI fails when it is stale.

An `s` after the section number marks a requirement that comes from the published schema. The columns \"strength\", \"role\" and \"level\" and the sentences
follow our original list of requirements. The sentence states the requirement in full; the strength does not negate it. The level is the first of AAEP's three levels of conformance
(§9) that includes the requirement; a dash means that no level does. `none` in a sentence is a value of `coalesce_hint`, and
\"text only, not enforced\" means that the specification's text states the requirement and the published schema does not express it.

Each row has a kind, which says what can prove it. `cargo xtask conformance` fails if a row about behaviour has only a rule as
evidence, if a test does not exist or is not run, or if a row is listed twice.

{}
\"Proven by a rule\" means: `{CASES}` contains recordings that violate only that rule, and the real `sayso validate` reports
it. If the rule is switched off, the same recordings are valid, or break only the rules that the case lists as `otherwise` (`cargo xtask rules`). Rows of the kind `message` also apply to what
sayso sends:

{own_messages}

The hub refuses an event that breaks a rule of the severity `error`. Rules that only cause a warning, such as the one about a missing
summary, are up to the agent; the crate `sayso` follows them too.

\"Not testable\" marks a requirement that no program can test. \"Not yet\" marks one that sayso does not meet, or that no test shows. \"Nothing required\" marks
a permission that sayso does not use, and a duty of those who do something that sayso does not do; the row says what ([decisions.md](decisions.md#implementation-decisions)
says why). \"Overruled\" in a sentence means that another section of the specification decides.
Rules without a row of their own settle contradictions in the specification, see [decisions.md](decisions.md): {}.

| row | strength | role | level | kind | requirement | evidence |
|---|---|---|---|---|---|---|
{table}",
        describe_counts(&counts),
        unlisted_rules.join(", ")
    ))
}

/// Describes a row that requires all rows of its role up to a level: `all rows up to level N`.
fn describe_level_row(
    row: &RequirementRow,
    rows: &[RequirementRow],
    evidence: &BTreeMap<&str, (RowStatus, String)>,
) -> Result<(RowStatus, String), String> {
    let level: u8 = row
        .evidence
        .strip_prefix(ALL_ROWS_PREFIX)
        .and_then(|level| level.trim().parse().ok())
        .ok_or_else(|| format!("{:?} names no level", row.evidence))?;
    let is_part = |part: &&RequirementRow| {
        part.conformance.is_some_and(|of| of <= level)
            && (part.role == row.role || part.role == "both")
            && part.level.starts_with("MUST")
            && !part.evidence.starts_with(ALL_ROWS_PREFIX)
    };
    let open: Vec<&str> = rows
        .iter()
        .filter(is_part)
        .map(|part| part.id.as_str())
        .filter(|id| evidence.get(id).is_some_and(|(status, _)| *status == RowStatus::NotYet))
        .collect();
    Ok(if open.is_empty() {
        let role = &row.role;
        let parts =
            format!("no MUST or MUST NOT row of the role {role} or both, and of level {level} or below,");
        (RowStatus::Proven, format!("proven: {parts} is \"not yet\""))
    } else {
        (RowStatus::NotYet, format!("not yet: {}", open.join(", ")))
    })
}

/// Returns a table with the number of rows of each kind and status.
fn describe_counts(counts: &BTreeMap<(RowKind, RowStatus), usize>) -> String {
    let mut table = String::from("| kind | what proves it |");
    let mut line = String::from("|---|---|");
    for (_, status) in RowStatus::ALL {
        let _ = write!(table, " {status} |");
        line.push_str("---|");
    }
    let _ = writeln!(table, "\n{line}");
    let mut add_row = |name: &str, meaning: &str, is_counted: &dyn Fn(RowKind) -> bool| {
        let _ = write!(table, "| {name} | {meaning} |");
        for (status, _) in RowStatus::ALL {
            let count: usize = counts
                .iter()
                .filter(|((kind, of), _)| is_counted(*kind) && *of == status)
                .map(|(_, count)| count)
                .sum();
            let _ = write!(table, " {count} |");
        }
        table.push('\n');
    };
    for (kind, name, meaning) in RowKind::ALL {
        add_row(name, meaning, &|of| of == kind);
    }
    add_row("all", "", &|_| true);
    table
}

/// The tests that a row cites, and the other statements about its evidence.
#[derive(Debug, Default)]
struct Evidence<'r> {
    has_rule: bool,
    tests: Vec<&'r str>,
    not_yet: Option<&'r str>,
    not_testable: Option<&'r str>,
    not_applicable: Option<&'r str>,
    is_unused_permission: bool,
}

impl<'r> Evidence<'r> {
    fn parse(text: &'r str) -> Result<Self, String> {
        let mut evidence = Self::default();
        for item in text.split("; ") {
            let (kind, rest) = item.split_once(' ').unwrap_or((item, ""));
            match kind {
                "rule" if rest.is_empty() => evidence.has_rule = true,
                "test" => evidence.tests.push(rest),
                "later" if !rest.is_empty() => evidence.not_yet = Some(rest),
                "no" if !rest.is_empty() => evidence.not_testable = Some(rest),
                "inapplicable" if !rest.is_empty() => evidence.not_applicable = Some(rest),
                "unused" if rest.is_empty() => evidence.is_unused_permission = true,
                _ => {
                    return Err(format!(
                        "{item:?} is not evidence: rule, test FILE::NAME, later REASON, no REASON, inapplicable REASON or unused"
                    ));
                }
            }
        }
        Ok(evidence)
    }
}

/// Describes the evidence for a row, or says why it is not enough. `find_test` takes a file and the name of a test, and fails
/// with the reason if that test proves nothing.
fn describe_evidence(
    row: &RequirementRow,
    rule: Option<Rule>,
    find_test: &dyn Fn(&str, &str) -> Result<(), String>,
) -> Result<(RowStatus, String), String> {
    let evidence = Evidence::parse(&row.evidence)?;
    if evidence.has_rule != rule.is_some() {
        return Err(match rule {
            Some(_) => "there is a rule with this id, so the evidence must contain `rule`".to_owned(),
            None => "there is no rule with this id".to_owned(),
        });
    }
    let mut proofs = Vec::new();
    if let Some(rule) = rule {
        proofs.push(if rule.id() == row.id {
            format!("rule `{}`, {CASES}", rule.id())
        } else {
            format!("checked as `{}`, {CASES}", rule.id())
        });
    }
    for test in &evidence.tests {
        find_cited(test, find_test)?;
        let (file, name) = test.split_once("::").unwrap_or_default();
        proofs.push(format!("`{name}`, {file}"));
    }
    let proofs = proofs.join("; ");
    let with_proofs =
        |text: String| if proofs.is_empty() { text } else { format!("{text} (shown so far: {proofs})") };
    if let Some(reason) = evidence.not_yet {
        return Ok((RowStatus::NotYet, with_proofs(format!("not yet: {reason}"))));
    }
    if let Some(reason) = evidence.not_testable {
        return if proofs.is_empty() && row.kind == RowKind::Document {
            Ok((RowStatus::NotTestable, format!("not testable: {reason}")))
        } else {
            Err("only a row of the kind `document` can be not testable, and then it has no other evidence"
                .to_owned())
        };
    }
    if let Some(reason) = evidence.not_applicable {
        return if row.kind == RowKind::Permission || evidence.has_rule {
            Err("a permission requires nothing anyway, and a rule applies to the messages of others"
                .to_owned())
        } else {
            let related =
                if proofs.is_empty() { String::new() } else { format!(" (related tests: {proofs})") };
            Ok((RowStatus::NothingRequired, format!("nothing required: {reason}{related}")))
        };
    }
    if evidence.is_unused_permission {
        return if proofs.is_empty() && row.kind == RowKind::Permission {
            Ok((RowStatus::NothingRequired, "a permission, which requires nothing".to_owned()))
        } else {
            Err("`unused` is only for a permission without other evidence".to_owned())
        };
    }
    let required_tests = match row.kind {
        RowKind::Message if rule.is_none() => {
            return Err("a validator can decide a row of the kind `message`, so it needs a rule".to_owned());
        }
        RowKind::Message => 0,
        RowKind::Both => 2,
        _ => 1,
    };
    if row.kind == RowKind::Both {
        for side in [Side::Producer, Side::Subscriber] {
            if !evidence.tests.iter().any(|test| Side::of_test(test) == Some(side)) {
                return Err(format!("a row of the kind `both` needs a test of our {side:?}").to_lowercase());
            }
        }
    }
    if evidence.tests.len() < required_tests {
        return Err(format!(
            "a row of the kind `{}` needs {required_tests} test(s) of behaviour; a rule is not enough",
            row.kind.name()
        ));
    }
    Ok((RowStatus::Proven, format!("proven: {proofs}")))
}

fn find_cited(test: &str, find_test: &dyn Fn(&str, &str) -> Result<(), String>) -> Result<(), String> {
    let (file, name) = test.split_once("::").ok_or_else(|| format!("{test:?} is not FILE::NAME"))?;
    find_test(file, name)
}

/// Compares the table with the original list of requirements in the folder `shared`.
pub(crate) fn compare_with_original_requirements(shared: &Path) -> Result<(), String> {
    let path = shared.join("aaep/requirements.tsv");
    let list = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let columns = |text: &str| -> Vec<String> {
        text.lines().skip(1).map(|line| line.split('\t').take(5).collect::<Vec<_>>().join("\t")).collect()
    };
    if columns(&list) == columns(&read(TABLE)?) {
        Ok(())
    } else {
        Err(format!("{TABLE} differs from the original list"))
    }
}

fn read(path: &str) -> Result<String, String> {
    std::fs::read_to_string(root().join(path)).map_err(|error| format!("{path}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(kind: RowKind, id: &str, evidence: &str) -> Result<RowStatus, String> {
        let row = RequirementRow {
            id: id.to_owned(),
            level: String::new(),
            role: String::new(),
            conformance: None,
            requirement: String::new(),
            kind,
            evidence: evidence.to_owned(),
        };
        let find = |_: &str, name: &str| if name == "missing" { Err(name.to_owned()) } else { Ok(()) };
        describe_evidence(&row, Rule::find(id), &find).map(|(status, _)| status)
    }

    #[test]
    fn behaviour_needs_a_test_of_behaviour() {
        let rule = "AAEP-4.1-1";
        assert_eq!(judge(RowKind::Message, rule, "rule"), Ok(RowStatus::Proven));
        for kind in [RowKind::Producer, RowKind::Subscriber, RowKind::Validator, RowKind::Document] {
            assert!(judge(kind, rule, "rule").is_err_and(|fault| fault.contains("a rule is not enough")));
            assert_eq!(judge(kind, rule, "rule; test a.rs::b"), Ok(RowStatus::Proven));
        }
        let producer = "test crates/hub/a.rs::b";
        let subscriber = "test crates/listen/a.rs::b";
        for one_side in [producer, subscriber] {
            let fault = judge(RowKind::Both, rule, &format!("rule; {one_side}; {one_side}")).unwrap_err();
            assert!(fault.contains("needs a test of our"), "{fault}");
        }
        let both = format!("rule; {producer}; {subscriber}");
        assert_eq!(judge(RowKind::Both, rule, &both), Ok(RowStatus::Proven));
        assert!(judge(RowKind::Producer, rule, "rule; test a.rs::missing").is_err());
        assert!(judge(RowKind::Producer, rule, "rule; test a.rs").is_err());
    }

    #[test]
    fn a_rule_is_named_exactly_where_it_exists() {
        assert!(judge(RowKind::Message, "AAEP-0-0", "rule").is_err());
        assert!(judge(RowKind::Message, "AAEP-0-0", "test a.rs::b").is_err());
        assert!(judge(RowKind::Producer, "AAEP-4.1-1", "test a.rs::b").is_err());
    }

    #[test]
    fn not_testable_is_only_for_documents_and_unused_only_for_permissions() {
        assert_eq!(judge(RowKind::Document, "AAEP-0-0", "no a claim"), Ok(RowStatus::NotTestable));
        assert!(judge(RowKind::Producer, "AAEP-0-0", "no not built").is_err());
        assert_eq!(judge(RowKind::Producer, "AAEP-0-0", "later not built"), Ok(RowStatus::NotYet));
        assert_eq!(judge(RowKind::Permission, "AAEP-0-0", "unused"), Ok(RowStatus::NothingRequired));
        assert!(judge(RowKind::Producer, "AAEP-0-0", "unused").is_err());
        let inapplicable = "inapplicable sayso forwards nothing";
        assert_eq!(judge(RowKind::Subscriber, "AAEP-0-0", inapplicable), Ok(RowStatus::NothingRequired));
        let with_test = format!("{inapplicable}; test a.rs::b");
        assert_eq!(judge(RowKind::Subscriber, "AAEP-0-0", &with_test), Ok(RowStatus::NothingRequired));
        assert!(judge(RowKind::Permission, "AAEP-0-0", inapplicable).is_err());
        assert!(judge(RowKind::Message, "AAEP-4.1-1", &format!("rule; {inapplicable}")).is_err());
        assert!(judge(RowKind::Document, "AAEP-0-0", "inapplicable").is_err());
        assert!(judge(RowKind::Document, "AAEP-0-0", "no").is_err());
        assert!(judge(RowKind::Document, "AAEP-0-0", "shown by hand").is_err());
    }

    #[test]
    fn a_level_is_met_if_none_of_its_rows_is_open() {
        let rows = parse_rows(
            "header\nA\tMUST\tproducer\t1\t\tproducer\tlater x\nB\tMUST\tproducer\t2\t\tproducer\tlater y\n\
             C\tSHOULD\tproducer\t1\t\tproducer\tlater z\nD\tMUST\tproducer\t2\t\tdocument\tall rows up to level 1",
        )
        .unwrap_or_default();
        let level_row = rows.last().map(|row| {
            let status = |status| {
                let evidence = rows.iter().map(|row| (row.id.as_str(), (status, String::new()))).collect();
                describe_level_row(row, &rows, &evidence)
            };
            (status(RowStatus::NotYet), status(RowStatus::Proven).map(|(status, _)| status))
        });
        assert_eq!(
            level_row,
            Some((Ok((RowStatus::NotYet, "not yet: A".to_owned())), Ok(RowStatus::Proven)))
        );
    }

    #[test]
    fn a_row_is_listed_once() {
        let row = "AAEP-1-1\tMUST\tboth\t1\tText\tdocument\tno a claim";
        assert_eq!(parse_rows(&format!("header\n{row}")).map(|rows| rows.len()), Ok(1));
        assert_eq!(
            parse_rows(&format!("header\n{row}\n{row}")).err().as_deref(),
            Some("docs/requirements.tsv: AAEP-1-1 is listed twice")
        );
        assert!(parse_rows("header\nAAEP-1-1\tMUST\tboth\t1\tText\tbehaviour\tno a claim").is_err());
    }
}
