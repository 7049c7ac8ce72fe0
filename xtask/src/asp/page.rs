//! Generates the diagram and the two tables of `docs/asp.md` from the rows of the state machine.

use std::collections::BTreeMap;
use std::fmt::Write;

use asp::state_machine::{
    AnyStateInterpretation, Fact, PROTOCOL_TABLE, State, TransitionRow, TransitionTarget, Trigger,
};

use crate::stage::root;

pub(super) fn generate() -> String {
    format!(
        "### The diagram\n\n{}\n### The rows\n\n{}\n### Allowed performatives per state\n\n{}",
        diagram(),
        transition_table(),
        state_table()
    )
}

/// Facts about the type or reason of a message. The diagram shows them after the performative.
const LABEL_FACTS: [Fact; 4] = [Fact::Invitation, Fact::Identity, Fact::Fatal, Fact::Unilateral];

/// Returns a Mermaid diagram with one arrow for each pair of states, labelled with all triggers. Each line can also be
/// understood when it is read aloud.
fn diagram() -> String {
    let mut arrows: BTreeMap<(State, State), Vec<String>> = BTreeMap::new();
    for row in PROTOCOL_TABLE.rows() {
        for from in row.from {
            let to = match row.target {
                TransitionTarget::Move(to) => to,
                // The return from an escalation leads to every state that can escalate. A note in the diagram says so.
                TransitionTarget::Stay | TransitionTarget::Refuse(_) | TransitionTarget::Return => continue,
            };
            let labels = arrows.entry((*from, to)).or_default();
            let label_fact = row.conditions.iter().find(|(fact, holds)| *holds && LABEL_FACTS.contains(fact));
            let suffix = label_fact.map(|(fact, _)| format!(" ({})", fact.as_str())).unwrap_or_default();
            let label = describe_trigger(row.trigger).to_lowercase() + &suffix;
            if !labels.contains(&label) {
                labels.push(label);
            }
        }
    }
    let mut out = String::from("```mermaid\nstateDiagram-v2\n  [*] --> IDLE\n");
    for ((from, to), labels) in arrows {
        let _ = writeln!(out, "  {from} --> {to}: {}", labels.join(", "));
    }
    out.push_str("  note right of ESCALATED: inform (resolution) leads back to the previous state\n");
    out.push_str("  CLOSED --> [*]\n  FAILED --> [*]\n```\n");
    out
}

fn transition_table() -> String {
    let mut out =
        String::from("| row | from | on | if | needs | leads to | does |\n|---|---|---|---|---|---|---|\n");
    for row in PROTOCOL_TABLE.rows() {
        let number = if row.number == 0 { String::new() } else { row.number.to_string() };
        let from: Vec<_> = row.from.iter().map(|state| state.as_str()).collect();
        let conditions: Vec<_> =
            row.conditions.iter().map(|(fact, holds)| describe_fact(fact.as_str(), *holds)).collect();
        let requirements: Vec<_> = row
            .requirements
            .iter()
            .map(|requirement| {
                format!(
                    "{}, else `{}`",
                    describe_fact(requirement.fact.as_str(), requirement.must_hold),
                    requirement.code
                )
            })
            .collect();
        let actions: Vec<_> =
            row.actions.iter().map(|action| action.description(row.target).into_owned()).collect();
        let note = if row.is_listed { "" } else { " (`EveryLiveState` only)" };
        let _ = writeln!(
            out,
            "| {number} | {}{note} | {} | {} | {} | {} | {} |",
            from.join(", "),
            describe_trigger(row.trigger),
            conditions.join("; "),
            requirements.join("; "),
            describe_target(row),
            actions.join("; ")
        );
    }
    out
}

fn state_table() -> String {
    let mut out =
        String::from("| state | listed on npayload's page | added by `EveryLiveState` |\n|---|---|---|\n");
    for state in State::ALL {
        let listed = PROTOCOL_TABLE.allowed_performatives(AnyStateInterpretation::ListedOnly, state);
        let join_names = |performatives: &mut dyn Iterator<Item = &asp::Performative>| {
            let names: Vec<_> = performatives.map(|performative| performative.as_str()).collect();
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        };
        let allowed = PROTOCOL_TABLE.allowed_performatives(AnyStateInterpretation::EveryLiveState, state);
        let added = join_names(&mut allowed.iter().filter(|performative| !listed.contains(performative)));
        let _ = writeln!(out, "| {state} | {} | {added} |", join_names(&mut listed.iter()));
    }
    out
}

fn describe_trigger(trigger: Trigger) -> String {
    match trigger {
        Trigger::Message(performative) => performative.to_string(),
        Trigger::TimerExpired(timer) => format!("{timer} timeout"),
        Trigger::BrokenChain => "broken chain".to_owned(),
    }
}

fn describe_fact(name: &str, holds: bool) -> String {
    if holds { name.to_owned() } else { format!("not {name}") }
}

fn describe_target(row: &TransitionRow) -> String {
    match row.target {
        TransitionTarget::Move(to) => to.to_string(),
        TransitionTarget::Stay => "stays".to_owned(),
        TransitionTarget::Return => "the previous state".to_owned(),
        TransitionTarget::Refuse(code) => format!("refused, `{code}`"),
    }
}

/// Checks that every decision names tests that exist.
pub(super) fn check_decisions(page: &str) -> Result<(), String> {
    for number in 1..=33 {
        let row = page.lines().find(|line| line.starts_with(&format!("| D{number} |")));
        let row = row.ok_or(format!("docs/asp.md has no row for D{number}"))?;
        let tests: Vec<_> = row.split('`').skip(1).step_by(2).filter(|word| word.contains("::")).collect();
        if tests.is_empty() {
            return Err(format!("docs/asp.md: D{number} names no test"));
        }
        for test in tests {
            let (file, name) = test.split_once("::").unwrap_or((test, ""));
            let text =
                std::fs::read_to_string(root().join(file)).map_err(|error| format!("{file}: {error}"))?;
            if !text.contains(&format!("fn {name}(")) {
                return Err(format!("docs/asp.md: D{number}: {file} has no test {name}"));
            }
        }
    }
    Ok(())
}
