//! Runs every rule's cases with that rule switched off. Each case must then be valid, or break only the rules that its
//! `otherwise` lists. A case that reports anything else does not show that its rule is checked.

use std::path::Path;
use std::process::Command;

use aaep::rule::Rule;

use crate::stage::{StageLog, in_parallel};
use crate::test_programs;

/// Runs the cases of every `step`th rule while that rule is not checked (`SAYSO_TEST_SWITCH_OFF`).
pub(crate) fn run(log: &StageLog, step: usize) -> Result<(), String> {
    let rules: Vec<Rule> = Rule::all().step_by(step).collect();
    let test = test_programs::test_command(log, "rules")?;
    let reports: Vec<Option<String>> =
        in_parallel(&rules, |rule| report_without(&test, rule.id())).into_iter().collect::<Result<_, _>>()?;
    log.print(&format!("{} of {} rules switched off, one at a time", rules.len(), Rule::all().count()));
    let mut failed = Vec::new();
    for (rule, report) in rules.iter().zip(reports) {
        if let Some(report) = report {
            log.print(&report);
            failed.push(rule.id());
        }
    }
    if failed.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "cases of these rules are reported while the rule is switched off: {}",
            failed.join(", ")
        ))
    }
}

/// Returns what the test program prints if a case of the rule is not valid without the rule, or if there is no case.
fn report_without(test: &Command, id: &str) -> Result<Option<String>, String> {
    let output = Command::new(test.get_program())
        .current_dir(test.get_current_dir().unwrap_or(Path::new(".")))
        .arg(format!("{id} "))
        .env("SAYSO_TEST_SWITCH_OFF", id)
        .output()
        .map_err(|error| format!("cannot run the rules test: {error}"))?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    let passed = output.status.success() && !stdout.contains(" 0 passed;");
    Ok((!passed).then(|| stdout.into_owned()))
}
