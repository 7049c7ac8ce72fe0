//! Every rule's test, with that rule switched off: it must go red, or it tests nothing.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use aaep::rule::Rule;

use crate::stage::root;

/// Runs every `step`th rule's cases with `--ignore` for that rule, and demands that all of them fail.
pub(crate) fn run(step: usize) -> Result<(), String> {
    let test = build()?;
    let rules: Vec<Rule> = Rule::all().step_by(step).collect();
    let mut green = Vec::new();
    for rule in &rules {
        if !goes_red(&test, rule.id())? {
            green.push(rule.id());
        }
    }
    println!("{} of {} rules switched off, one at a time", rules.len(), Rule::all().count());
    if green.is_empty() {
        Ok(())
    } else {
        Err(format!("the tests of these rules pass without them: {}", green.join(", ")))
    }
}

/// Builds the test of the rules; returns where it is.
fn build() -> Result<PathBuf, String> {
    let build =
        ["test", "-p", "sayso-cli", "--test", "rules", "--no-run", "--locked", "--message-format=json"];
    let output = Command::new(env!("CARGO"))
        .args(build)
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo could not be run: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines()
        .filter(|line| line.contains("\"name\":\"rules\""))
        .filter_map(|line| line.split("\"executable\":\"").nth(1)?.split('"').next())
        .next_back()
        .map(PathBuf::from)
        .ok_or_else(|| "the test of the rules could not be built".to_owned())
}

fn goes_red(test: &PathBuf, id: &str) -> Result<bool, String> {
    let output = Command::new(test)
        .arg(format!("{id} "))
        .env("SAYSO_TEST_IGNORE", id)
        .current_dir(root().join("crates/cli"))
        .output()
        .map_err(|error| format!("{} could not be run: {error}", test.display()))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    Ok(!output.status.success() && printed.contains(" 0 passed;") && !printed.contains(" 0 failed;"))
}
