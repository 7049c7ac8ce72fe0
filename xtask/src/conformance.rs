//! Generates `docs/conformance.md` from the table of requirements, and checks that the evidence for each row exists.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;

use aaep::rule::Rule;

use crate::stage::root;

const TABLE: &str = "docs/requirements.tsv";
const PAGE: &str = "docs/conformance.md";
const CASES: &str = "crates/cli/tests/rules";

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

struct RequirementRow {
    id: String,
    level: String,
    role: String,
    requirement: String,
    evidence: String,
}

fn read_rows() -> Result<Vec<RequirementRow>, String> {
    read(TABLE)?
        .lines()
        .skip(1)
        .map(|line| match line.split('\t').collect::<Vec<_>>()[..] {
            [id, level, role, _, requirement, evidence] => Ok(RequirementRow {
                id: id.to_owned(),
                level: level.to_owned(),
                role: role.to_owned(),
                requirement: requirement.to_owned(),
                evidence: evidence.to_owned(),
            }),
            _ => Err(format!("{TABLE}: a row must have six columns: {line}")),
        })
        .collect()
}

fn generate_page() -> Result<String, String> {
    let rules_by_id: HashMap<&str, Rule> = Rule::all()
        .flat_map(|rule| {
            std::iter::once(rule.id()).chain(rule.alias_ids().iter().copied()).map(move |id| (id, rule))
        })
        .collect();
    let rows = read_rows()?;
    let mut row_ids: Vec<&str> = Vec::new();
    let mut counts = [0; 3];
    let mut table = String::new();
    for row in &rows {
        row_ids.push(&row.id);
        let (kind, evidence) = describe_evidence(row, &rules_by_id)?;
        counts[kind] += 1;
        let requirement = row.requirement.replace('|', "\\|").replace('<', "&lt;");
        let _ = writeln!(table, "| {} | {} | {} | {requirement} | {evidence} |", row.id, row.level, row.role);
    }
    let missing_ids: Vec<_> =
        rules_by_id.keys().filter(|id| id.starts_with("AAEP-") && !row_ids.contains(id)).collect();
    if !missing_ids.is_empty() {
        return Err(format!("these rule ids are not in {TABLE}: {missing_ids:?}"));
    }
    let unlisted_rules: Vec<_> =
        Rule::all().filter(|rule| rule.id().starts_with("C-")).map(Rule::id).collect();
    Ok(format!(
        "# Conformance

Every requirement of AAEP, with our numbering, and the evidence that it is met. `cargo xtask conformance` generates this page
from `{TABLE}` and the rules in `crates/aaep/src/rule`. CI fails when it is stale.

{} rows: {} are proven by a test, {} are not proven yet (with the responsible crate), {} cannot be tested (with the reason).

\"Proven by a rule\" means: `crates/cli/tests/rules` contains recordings that violate only that rule, the real `sayso
validate` reports it, and the test fails when the rule is switched off (`cargo xtask rules`). Rules without a row of their own
settle contradictions in the specification, see [decisions.md](decisions.md): {}.

| row | level | role | requirement | evidence |
|---|---|---|---|---|
{table}",
        rows.len(),
        counts[0],
        counts[1],
        counts[2],
        unlisted_rules.join(", ")
    ))
}

/// Describes the evidence for a row. Returns an index into `counts` (0 proven, 1 not yet, 2 not testable) and the text for
/// the table.
fn describe_evidence(
    row: &RequirementRow,
    rules_by_id: &HashMap<&str, Rule>,
) -> Result<(usize, String), String> {
    let invalid = |reason: &str| Err(format!("{TABLE}: {}: {reason}", row.id));
    let rule = rules_by_id.get(row.id.as_str());
    let (kind, rest) = row.evidence.split_once(' ').unwrap_or((&row.evidence, ""));
    match (kind, rule) {
        ("rule", Some(rule)) if rule.id() == row.id => {
            Ok((0, format!("proven: rule `{}`, {CASES}", rule.id())))
        }
        ("rule", Some(rule)) => Ok((0, format!("proven: checked as `{}`, {CASES}", rule.id()))),
        ("rule", None) => invalid("there is no rule with this id"),
        (_, Some(_)) => invalid("there is a rule with this id, so the evidence must be `rule`"),
        ("test", None) => {
            let Some((file, name)) = rest.split_once("::") else {
                return invalid("a test must be FILE::NAME");
            };
            if !read(file)?.contains(&format!("fn {name}(")) {
                return invalid(&format!("{file} has no test {name}"));
            }
            Ok((0, format!("proven: `{name}`, {file}")))
        }
        ("later", None) => Ok((1, format!("not yet: {rest}"))),
        ("no", None) => Ok((2, format!("not testable: {rest}"))),
        _ => invalid("the evidence must be rule, test, later or no"),
    }
}

/// Compares the table with the original list of requirements in the folder `shared`.
pub(crate) fn compare_with_list(shared: &Path) -> Result<(), String> {
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
