//! Every rule's test, with that rule switched off: it must go red, or it tests nothing.

use std::path::Path;
use std::process::Command;

use aaep::rule::Rule;

use crate::programs;
use crate::stage::{Log, in_parallel};

/// Runs every `step`th rule's cases with `--ignore` for that rule, and demands that all of them fail.
pub(crate) fn run(log: &Log, step: usize) -> Result<(), String> {
    let rules: Vec<Rule> = Rule::all().step_by(step).collect();
    let test = programs::test(log, "rules")?;
    let red: Vec<bool> =
        in_parallel(&rules, |rule| goes_red(&test, rule.id())).into_iter().collect::<Result<_, _>>()?;
    let green: Vec<&str> = rules.iter().zip(red).filter(|(_, red)| !red).map(|(rule, _)| rule.id()).collect();
    log.say(&format!("{} of {} rules switched off, one at a time", rules.len(), Rule::all().count()));
    if green.is_empty() {
        Ok(())
    } else {
        Err(format!("the tests of these rules pass without them: {}", green.join(", ")))
    }
}

fn goes_red(test: &Command, id: &str) -> Result<bool, String> {
    let output = Command::new(test.get_program())
        .current_dir(test.get_current_dir().unwrap_or(Path::new(".")))
        .arg(format!("{id} "))
        .env("SAYSO_TEST_IGNORE", id)
        .output()
        .map_err(|error| format!("the test of the rules could not be run: {error}"))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    Ok(!output.status.success() && printed.contains(" 0 passed;") && !printed.contains(" 0 failed;"))
}
