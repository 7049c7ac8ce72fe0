//! `sayso explain`: says what a rule of AAEP means.

use aaep::rule::{Rule, Severity, ValidationMode};

use crate::ExitStatus;
use crate::file::CommandError;
use crate::output::print_stdout;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Rule, as `sayso validate` prints it, such as AAEP-4.4.1-7 or C-B5. Without it, all rules are listed.
    rule: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitStatus, CommandError> {
    let Some(id) = &arguments.rule else {
        let lines: Vec<_> = Rule::all().map(|rule| format!("{} {}", rule.id(), rule.sentence())).collect();
        return Ok(print_stdout(&(lines.join("\n") + "\n")));
    };
    let is_named = |rule: &Rule| {
        let mut ids =
            std::iter::once(rule.id()).chain(rule.alias_ids().iter().chain(rule.decision_ids()).copied());
        ids.any(|known| known.eq_ignore_ascii_case(id))
    };
    let found: Vec<_> = Rule::all().filter(is_named).collect();
    if found.is_empty() {
        return Err(CommandError::cannot_run(format!(
            "there is no rule {id:?}; `sayso explain` lists all rules"
        )));
    }
    Ok(print_stdout(&found.into_iter().map(describe).collect::<Vec<_>>().join("\n")))
}

fn describe(rule: Rule) -> String {
    let severity = |mode| match rule.severity(mode) {
        Severity::Error => "an error",
        Severity::Warning => "a warning",
    };
    let mut lines = vec![
        format!("{}: {}", rule.id(), rule.sentence()),
        format!("It comes from section {} of the AAEP specification.", rule.section()),
        format!(
            "Breaking it is {} in an event that is about to be emitted, and {} in a received one.",
            severity(ValidationMode::Strict),
            severity(ValidationMode::Receive)
        ),
    ];
    if !rule.alias_ids().is_empty() {
        lines.push(format!("The same rule: {}.", rule.alias_ids().join(", ")));
    }
    if !rule.decision_ids().is_empty() {
        lines.push(format!("docs/decisions.md explains: {}.", rule.decision_ids().join(", ")));
    }
    lines.join("\n") + "\n"
}
