//! The table of requirements: every row with what shows it, kept honest against the code.

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
    let page = page()?;
    std::fs::write(root().join(PAGE), page).map_err(|error| format!("{PAGE}: {error}"))
}

/// Says whether the page is what would be written.
pub(crate) fn check() -> Result<(), String> {
    let page = page()?;
    if read(PAGE)? == page { Ok(()) } else { Err(format!("{PAGE} is stale: run `cargo xtask conformance`")) }
}

struct Row {
    id: String,
    level: String,
    role: String,
    requirement: String,
    shown: String,
}

fn rows() -> Result<Vec<Row>, String> {
    read(TABLE)?
        .lines()
        .skip(1)
        .map(|line| match line.split('\t').collect::<Vec<_>>()[..] {
            [id, level, role, _, requirement, shown] => Ok(Row {
                id: id.to_owned(),
                level: level.to_owned(),
                role: role.to_owned(),
                requirement: requirement.to_owned(),
                shown: shown.to_owned(),
            }),
            _ => Err(format!("{TABLE}: a row has six columns: {line}")),
        })
        .collect()
}

fn page() -> Result<String, String> {
    let by_row: HashMap<&str, Rule> = Rule::all()
        .flat_map(|rule| {
            std::iter::once(rule.id()).chain(rule.also().iter().copied()).map(move |id| (id, rule))
        })
        .collect();
    let rows = rows()?;
    let mut known: Vec<&str> = Vec::new();
    let mut counts = [0; 3];
    let mut table = String::new();
    for row in &rows {
        known.push(&row.id);
        let (kind, shown) = shown(row, &by_row)?;
        counts[kind] += 1;
        let requirement = row.requirement.replace('|', "\\|").replace('<', "&lt;");
        let _ = writeln!(table, "| {} | {} | {} | {requirement} | {shown} |", row.id, row.level, row.role);
    }
    let strangers: Vec<_> =
        by_row.keys().filter(|id| id.starts_with("AAEP-") && !known.contains(id)).collect();
    if !strangers.is_empty() {
        return Err(format!("the rule book names rows that {TABLE} does not have: {strangers:?}"));
    }
    let settled: Vec<_> = Rule::all().filter(|rule| rule.id().starts_with("C-")).map(Rule::id).collect();
    Ok(format!(
        "# Conformance

Every requirement of AAEP as we number them, and what shows that it holds. This page is written by
`cargo xtask conformance` from `{TABLE}` and the rule book; CI fails when it is stale.

{} rows: {} are proven by a test, {} are not yet (the crate that will is named), {} cannot be tested (and why).

Proven by a rule means: `crates/cli/tests/rules` holds recordings that break just that rule, the real `sayso validate`
names it, and with the rule switched off (`cargo xtask rules`) the test goes red. Rules without a row of their own
settle contradictions of the specification: {}.

| row | level | role | requirement | shown by |
|---|---|---|---|---|
{table}",
        rows.len(),
        counts[0],
        counts[1],
        counts[2],
        settled.join(", ")
    ))
}

/// What shows a row: a place in the counts, and words for the table.
fn shown(row: &Row, by_row: &HashMap<&str, Rule>) -> Result<(usize, String), String> {
    let wrong = |why: &str| Err(format!("{TABLE}: {}: {why}", row.id));
    let rule = by_row.get(row.id.as_str());
    let (word, rest) = row.shown.split_once(' ').unwrap_or((&row.shown, ""));
    match (word, rule) {
        ("rule", Some(rule)) if rule.id() == row.id => {
            Ok((0, format!("proven: rule `{}`, {CASES}", rule.id())))
        }
        ("rule", Some(rule)) => Ok((0, format!("proven: checked as `{}`, {CASES}", rule.id()))),
        ("rule", None) => wrong("the rule book has no such rule"),
        (_, Some(_)) => wrong("the rule book has this row, so it is shown by a rule"),
        ("test", None) => {
            let Some((file, name)) = rest.split_once("::") else { return wrong("a test is FILE::NAME") };
            if !read(file)?.contains(&format!("fn {name}(")) {
                return wrong(&format!("{file} has no test {name}"));
            }
            Ok((0, format!("proven: `{name}`, {file}")))
        }
        ("later", None) => Ok((1, format!("not yet: {rest}"))),
        ("no", None) => Ok((2, format!("not testable: {rest}"))),
        _ => wrong("shown is rule, test, later or no"),
    }
}

/// Compares the table with the protocol's list, which lies in the folder `shared`.
pub(crate) fn compare_with_list(shared: &Path) -> Result<(), String> {
    let path = shared.join("aaep/requirements.tsv");
    let list = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let columns = |text: &str| -> Vec<String> {
        text.lines().skip(1).map(|line| line.split('\t').take(5).collect::<Vec<_>>().join("\t")).collect()
    };
    if columns(&list) == columns(&read(TABLE)?) {
        Ok(())
    } else {
        Err(format!("{TABLE} differs from the list it came from"))
    }
}

fn read(path: &str) -> Result<String, String> {
    std::fs::read_to_string(root().join(path)).map_err(|error| format!("{path}: {error}"))
}
