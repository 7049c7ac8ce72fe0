//! Cases that break exactly one rule: each case goes through the real `sayso validate`, which must report that rule and
//! no other. Then all cases go through the real hub, which must not let any violation through.
//!
//! The cases are in `tests/rules/*.json`, one file per chapter. `base.json` contains the valid lines that the cases
//! modify. The cases in `valid.json` must pass without a finding. A case has a `description`, which is unique for its
//! rule, and `lines`. Each line is one of:
//!
//! - a name such as `"tool.invoked"`: the line of `base.json` with this name;
//! - `{"of": NAME}`: the line with this name, modified by `set` and `drop` (JSON pointers), `at` (seconds since the
//!   first line), `first` (members that are written before all others) and `replace` (in the serialized text);
//! - `{"raw": …}` or `{"hex": …}`: text or bytes, unchanged.
//!
//! In `set`, `{"$repeat": ["x", 3]}` is `"xxx"`, `{"$list": ["x#", 2]}` is `["x0", "x1"]` and `{"$deep": 2}` is
//! `{"in": {"in": {}}}`. Each line gets a new event id and a timestamp one second after the previous line, unless the
//! case overrides them.
//!
//! With `SAYSO_TEST_SWITCH_OFF=RULE`, that rule is not checked. Then its cases must be valid, because each of them breaks
//! only that rule. A case that another rule must report in that situation lists it in `otherwise`.

mod case;
mod through_hub;

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use aaep::rule::Rule;
use case::{BaseLines, RuleCase};
use libtest_mimic::{Arguments, Trial};
use serde_json::Value;

const BASE: &str = "base.json";
const VALID: &str = "valid.json";

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments = Arguments::from_args();
    let base = Arc::new(BaseLines::read()?);
    let mut cases = read_cases(VALID)?;
    let mut trials = vec![every_base_line_is_used(&base, &cases)];
    for chapter in chapter_files()? {
        cases.extend(read_cases(&chapter)?);
    }
    trials.push(every_rule_has_a_case(&cases));
    let cases: Vec<Arc<RuleCase>> = cases.into_iter().map(Arc::new).collect();
    for case in &cases {
        let (case, base) = (Arc::clone(case), Arc::clone(&base));
        trials.push(Trial::test(case.name(), move || case.run(&base)));
    }
    trials.push(Trial::test("no_rule_violation_passes_the_hub", move || {
        through_hub::no_rule_violation_passes_the_hub(&cases, &base)
    }));
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}

fn rules_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rules")
}

fn chapter_files() -> Result<Vec<String>, Box<dyn Error>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(rules_dir())? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.extension().is_some_and(|extension| extension == "json") && name != BASE && name != VALID {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

fn read_json(name: &str) -> Result<Value, String> {
    let text = fs::read_to_string(rules_dir().join(name)).map_err(|error| format!("{name}: {error}"))?;
    serde_json::from_str(&text).map_err(|error| format!("{name}: {error}"))
}

fn read_cases(name: &str) -> Result<Vec<RuleCase>, String> {
    let Value::Array(cases) = read_json(name)? else { return Err(format!("{name} is not an array")) };
    cases
        .iter()
        .map(|case| RuleCase::parse(case).ok_or_else(|| format!("{name}: {case} is not a valid case")))
        .collect()
}

fn every_rule_has_a_case(cases: &[RuleCase]) -> Trial {
    let covered: BTreeSet<String> = cases.iter().filter_map(|case| case.rule.clone()).collect();
    let names: Vec<String> = cases.iter().map(RuleCase::name).collect();
    Trial::test("every rule has a case, and every case has a known rule and a unique name", move || {
        let rules: BTreeSet<String> = Rule::all().map(|rule| rule.id().to_owned()).collect();
        let missing: Vec<_> = rules.difference(&covered).collect();
        let unknown: Vec<_> = covered.difference(&rules).collect();
        let mut seen = BTreeSet::new();
        let duplicates: Vec<_> = names.iter().filter(|name| !seen.insert(*name)).collect();
        if missing.is_empty() && unknown.is_empty() && duplicates.is_empty() {
            return Ok(());
        }
        Err(format!(
            "rules without a case: {missing:?}; unknown rules: {unknown:?}; duplicate names: {duplicates:?}"
        )
        .into())
    })
}

/// Checks that the first valid case uses every base line. Another test checks that the case itself passes.
fn every_base_line_is_used(base: &BaseLines, valid_cases: &[RuleCase]) -> Trial {
    let used: BTreeSet<String> = valid_cases.first().into_iter().flat_map(RuleCase::base_lines).collect();
    let unused: Vec<String> = base.0.keys().filter(|name| !used.contains(*name)).cloned().collect();
    Trial::test("every base line is in the first valid case", move || {
        if unused.is_empty() { Ok(()) } else { Err(format!("unused base lines: {unused:?}").into()) }
    })
}
