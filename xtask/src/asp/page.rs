//! The diagram, the table and the list of `docs/asp.md`, from the rows that the machine runs on.

use std::collections::BTreeMap;
use std::fmt::Write;

use asp::machine::{Fact, On, PAGE, Reading, Row, State, Then};

use crate::stage::root;

pub(super) fn made() -> String {
    format!(
        "### The diagram\n\n{}\n### The rows\n\n{}\n### What each state takes\n\n{}",
        diagram(),
        rows(),
        states()
    )
}

/// Facts that say which of its kind a message is.
const KINDS: [Fact; 4] = [Fact::Invitation, Fact::Identity, Fact::Fatal, Fact::Unilateral];

/// One arrow for each pair of states, with all that leads along it. Mermaid draws it; read aloud, each line says it too.
fn diagram() -> String {
    let mut arrows: BTreeMap<(State, State), Vec<String>> = BTreeMap::new();
    for row in PAGE.rows() {
        for from in row.from {
            let to = match row.then {
                Then::Move(to) => to,
                // The way back goes to every state that can escalate; one arrow says so.
                Then::Stay | Then::Refuse(_) | Then::Back => continue,
            };
            let words = arrows.entry((*from, to)).or_default();
            let kind = row.when.iter().find(|(fact, holds)| *holds && KINDS.contains(fact));
            let kind = kind.map(|(fact, _)| format!(" ({})", fact.word())).unwrap_or_default();
            let word = on(row.on).to_lowercase() + &kind;
            if !words.contains(&word) {
                words.push(word);
            }
        }
    }
    let mut out = String::from("```mermaid\nstateDiagram-v2\n  [*] --> IDLE\n");
    for ((from, to), words) in arrows {
        let _ = writeln!(out, "  {from} --> {to}: {}", words.join(", "));
    }
    out.push_str("  note right of ESCALATED: inform (resolution) leads back to the state before\n");
    out.push_str("  CLOSED --> [*]\n  FAILED --> [*]\n```\n");
    out
}

fn rows() -> String {
    let mut out =
        String::from("| row | from | on | if | needs | leads to | does |\n|---|---|---|---|---|---|---|\n");
    for row in PAGE.rows() {
        let number = if row.number == 0 { String::new() } else { row.number.to_string() };
        let from: Vec<_> = row.from.iter().map(|state| state.word()).collect();
        let when: Vec<_> = row.when.iter().map(|(fact, holds)| fact_words(fact.word(), *holds)).collect();
        let needs: Vec<_> = row
            .needs
            .iter()
            .map(|need| format!("{}, else `{}`", fact_words(need.fact.word(), need.holds), need.code))
            .collect();
        let effects: Vec<_> = row.effects.iter().map(|effect| effect.words().into_owned()).collect();
        let open = if row.listed { "" } else { " (open reading only)" };
        let _ = writeln!(
            out,
            "| {number} | {}{open} | {} | {} | {} | {} | {} |",
            from.join(", "),
            on(row.on),
            when.join("; "),
            needs.join("; "),
            then(row),
            effects.join("; ")
        );
    }
    out
}

fn states() -> String {
    let mut out =
        String::from("| state | as the page lists it | added by the open reading |\n|---|---|---|\n");
    for state in State::ALL {
        let listed = PAGE.allowed(Reading::Table, state);
        let words = |some: &mut dyn Iterator<Item = &asp::Performative>| {
            let words: Vec<_> = some.map(|one| one.word()).collect();
            if words.is_empty() { "none".to_owned() } else { words.join(", ") }
        };
        let open = PAGE.allowed(Reading::Open, state);
        let added = words(&mut open.iter().filter(|one| !listed.contains(one)));
        let _ = writeln!(out, "| {state} | {} | {added} |", words(&mut listed.iter()));
    }
    out
}

fn on(on: On) -> String {
    match on {
        On::Message(performative) => performative.to_string(),
        On::Expiry(timer) => format!("{timer} timeout"),
        On::BrokenChain => "broken chain".to_owned(),
    }
}

fn fact_words(word: &str, holds: bool) -> String {
    if holds { word.to_owned() } else { format!("not {word}") }
}

fn then(row: &Row) -> String {
    match row.then {
        Then::Move(to) => to.to_string(),
        Then::Stay => "stays".to_owned(),
        Then::Back => "the state before".to_owned(),
        Then::Refuse(code) => format!("refused, `{code}`"),
    }
}

/// Every decision names tests that exist.
pub(super) fn check_decisions(page: &str) -> Result<(), String> {
    for number in 1..=20 {
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
