//! Runs every rule's tests with that rule switched off. The tests must fail, because a test that passes without its rule
//! proves nothing.

use std::path::Path;
use std::process::Command;

use aaep::rule::Rule;

use crate::stage::{StageLog, in_parallel};
use crate::test_programs;

/// Runs the cases of every `step`th rule with that rule switched off (`SAYSO_TEST_IGNORE`), and requires that all of them fail.
pub(crate) fn run(log: &StageLog, step: usize) -> Result<(), String> {
    let rules: Vec<Rule> = Rule::all().step_by(step).collect();
    let test = test_programs::test_command(log, "rules")?;
    let failed: Vec<bool> = in_parallel(&rules, |rule| fails_without_rule(&test, rule.id()))
        .into_iter()
        .collect::<Result<_, _>>()?;
    let passing: Vec<&str> =
        rules.iter().zip(failed).filter(|(_, failed)| !failed).map(|(rule, _)| rule.id()).collect();
    log.print(&format!("{} of {} rules switched off, one at a time", rules.len(), Rule::all().count()));
    if passing.is_empty() {
        Ok(())
    } else {
        Err(format!("the tests of these rules pass without them: {}", passing.join(", ")))
    }
}

fn fails_without_rule(test: &Command, id: &str) -> Result<bool, String> {
    let output = Command::new(test.get_program())
        .current_dir(test.get_current_dir().unwrap_or(Path::new(".")))
        .arg(format!("{id} "))
        .env("SAYSO_TEST_IGNORE", id)
        .output()
        .map_err(|error| format!("cannot run the rules test: {error}"))?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    Ok(!output.status.success() && stdout.contains(" 0 passed;") && !stdout.contains(" 0 failed;"))
}
