//! `sayso explain`: says what a rule of AAEP means.

use aaep::rule::{Rule, Severity, ValidationMode};

use crate::ExitStatus;
use crate::check::behaviour::Behaviour;
use crate::file::CommandError;
use crate::output::print_stdout;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Rule, as `sayso validate` and `sayso check` print it, such as AAEP-4.4.1-7 or C-B5. Without it, all rules are listed.
    rule: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitStatus, CommandError> {
    let Some(id) = &arguments.rule else {
        let rules = Rule::all().map(|rule| (rule.id(), rule.sentence()));
        let behaviours = Behaviour::ALL.iter().map(|behaviour| (behaviour.id(), behaviour.sentence()));
        let lines: Vec<_> =
            rules.chain(behaviours).map(|(id, sentence)| format!("{id} {sentence}")).collect();
        return Ok(print_stdout(&(lines.join("\n") + "\n")));
    };
    let is_named = |rule: &Rule| {
        let mut ids =
            std::iter::once(rule.id()).chain(rule.alias_ids().iter().chain(rule.decision_ids()).copied());
        ids.any(|known| known.eq_ignore_ascii_case(id))
    };
    let behaviours = Behaviour::ALL.iter().filter(|behaviour| behaviour.id().eq_ignore_ascii_case(id));
    let rules = Rule::all().filter(is_named).map(describe);
    let found: Vec<_> = rules.chain(behaviours.map(|behaviour| describe_behaviour(*behaviour))).collect();
    if found.is_empty() {
        return Err(CommandError::cannot_run(format!(
            "there is no rule {id:?}; `sayso explain` lists all rules"
        )));
    }
    Ok(print_stdout(&found.join("\n")))
}

/// Describes a requirement that only `sayso check` reports.
fn describe_behaviour(behaviour: Behaviour) -> String {
    let id = behaviour.id();
    let section =
        id.strip_prefix("AAEP-").and_then(|id| id.rsplit_once('-')).map_or(id, |(section, _)| section);
    let source = describe_source(id, section);
    format!(
        "{id}: {}\n{source}\n`sayso check` reports it if a running producer breaks it.\n",
        behaviour.sentence()
    )
}

fn describe(rule: Rule) -> String {
    let severity = |mode| match rule.severity(mode) {
        Severity::Error => "an error",
        Severity::Warning => "a warning",
    };
    let mut lines = vec![
        format!("{}: {}", rule.id(), rule.sentence()),
        describe_source(rule.id(), rule.section()),
        format!(
            "Breaking it is {} in an event that is about to be emitted, and {} in a received one.",
            severity(ValidationMode::Strict),
            severity(ValidationMode::Receive)
        ),
    ];
    if !rule.alias_ids().is_empty() {
        lines.push(format!("Other ids of this rule: {}.", rule.alias_ids().join(", ")));
    }
    if !rule.decision_ids().is_empty() {
        lines.push(format!("docs/decisions.md explains: {}.", rule.decision_ids().join(", ")));
    }
    lines.join("\n") + "\n"
}

/// Says where a rule comes from. `section` is the part of the id that names the section.
fn describe_source(id: &str, section: &str) -> String {
    let of_specification = |place: &str| format!("It comes from {place} of the AAEP specification.");
    if id.starts_with("C-") {
        return format!(
            "It is our decision {id}, because the AAEP specification leaves this open or contradicts itself. docs/decisions.md explains it."
        );
    }
    if let Some(section) = section.strip_prefix("GS.") {
        return format!("It comes from section {section} of the AAEP guide for subscribers.");
    }
    if let Some(section) = section.strip_prefix("GX.") {
        return format!("It comes from section {section} of the AAEP guide for extensions.");
    }
    if section == "SPEC" {
        return "It comes from SPEC.md, the overview of the AAEP specification.".to_owned();
    }
    if let Some(section) = section.strip_suffix('s') {
        return of_specification(&format!("the JSON Schema for section {section}"));
    }
    if let Some(chapter) = section.strip_suffix(".0") {
        return of_specification(&format!("the introduction to chapter {chapter}"));
    }
    match section.split_once('.') {
        Some((appendix, _)) if appendix.chars().all(char::is_alphabetic) => {
            of_specification(&format!("appendix {appendix}, section {section},"))
        }
        _ => of_specification(&format!("section {section}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_of_every_kind_of_id_is_named() {
        for (id, section, source) in [
            ("AAEP-4.4.1-7", "4.4.1", "It comes from section 4.4.1 of the AAEP specification."),
            (
                "AAEP-4.1.1s-2",
                "4.1.1s",
                "It comes from the JSON Schema for section 4.1.1 of the AAEP specification.",
            ),
            ("AAEP-4.0-1", "4.0", "It comes from the introduction to chapter 4 of the AAEP specification."),
            ("AAEP-A.4-1", "A.4", "It comes from appendix A, section A.4, of the AAEP specification."),
            ("AAEP-B.2.6-1", "B.2.6", "It comes from appendix B, section B.2.6, of the AAEP specification."),
            ("AAEP-GS.5.3-1", "GS.5.3", "It comes from section 5.3 of the AAEP guide for subscribers."),
            ("AAEP-GX.2.2-1", "GX.2.2", "It comes from section 2.2 of the AAEP guide for extensions."),
            ("AAEP-SPEC-1", "SPEC", "It comes from SPEC.md, the overview of the AAEP specification."),
        ] {
            assert_eq!(describe_source(id, section), source);
        }
        assert!(describe_source("C-B5", "C").starts_with("It is our decision C-B5,"));
    }

    #[test]
    fn no_rule_names_a_section_that_does_not_exist() {
        for rule in Rule::all() {
            let source = describe_source(rule.id(), rule.section());
            let section = source.split("section ").nth(1).and_then(|rest| rest.split([' ', ',']).next());
            let is_section = |text: &str| {
                let (first, rest) = text.split_once('.').unwrap_or((text, "1"));
                let is_number = |part: &str| part.parse::<u32>().is_ok_and(|number| number > 0);
                (is_number(first) || first.len() == 1) && rest.split('.').all(is_number)
            };
            assert!(section.is_none_or(is_section), "{source}");
        }
    }
}
