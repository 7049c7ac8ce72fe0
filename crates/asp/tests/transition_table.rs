//! Checks every cell of the transition table against a second, independent table (D1).
//!
//! `transition_table/expected.txt` was written by hand from npayload's page about the state machine and from our decisions. Here it is compared with
//! [`PROTOCOL_TABLE`] for every combination of the facts that matter in either table.

mod expectation;

use std::borrow::Cow;
use std::collections::BTreeSet;

use asp::state_machine::{
    AnyStateInterpretation, Evaluation, Fact, Facts, PROTOCOL_TABLE, Requirement, Role, State, TransitionRow,
    TransitionTable, TransitionTarget, Trigger,
};
use asp::{Performative, RejectCode};

use expectation::{ExpectedTable, NON_MESSAGE_TRIGGERS};

const EXPECTED: &str = include_str!("transition_table/expected.txt");

#[test]
fn every_cell_matches_the_expectation_file() {
    let comparison = compare(&PROTOCOL_TABLE, &expected());
    println!(
        "{} cells in {} interpretations, {} combinations of facts; {} results without a message",
        comparison.cell_count,
        AnyStateInterpretation::ALL.len(),
        comparison.combination_count,
        comparison.non_message_result_count
    );
    assert_eq!(comparison.cell_count, State::ALL.len() * Performative::ALL.len() * Role::ALL.len());
    assert_eq!(comparison.cell_count, 234);
    assert_eq!(
        comparison.non_message_result_count,
        AnyStateInterpretation::ALL.len() * State::ALL.len() * NON_MESSAGE_TRIGGERS.len()
    );
    assert!(
        comparison.differences.is_empty(),
        "{} differences\n{}",
        comparison.differences.len(),
        comparison.differences.join("\n")
    );
}

#[test]
fn listed_only_allows_exactly_the_performatives_on_the_page() {
    // The page's list "Allowed Performatives Per State". INFORM in INVITED is added, because row 2 needs it (D2).
    let page = [
        (State::Idle, "PROPOSE"),
        (State::Invited, "ACCEPT, REJECT, INFORM"),
        (State::Introduced, "PROPOSE, QUERY, INFORM, OBSERVE"),
        (
            State::Conversing,
            "PROPOSE, ACCEPT, REJECT, COUNTER, INFORM, QUERY, CLARIFY, COMMIT, DELEGATE, OBSERVE, WITHDRAW, \
             ESCALATE, CLOSE",
        ),
        (State::Agreeing, "ACCEPT, REJECT, COUNTER, CLARIFY, ESCALATE, CLOSE"),
        (State::Executing, "INFORM, QUERY, ESCALATE, CLOSE"),
        (State::Escalated, "INFORM, CLOSE"),
        (State::Closed, ""),
        (State::Failed, ""),
    ];
    assert_eq!(page.map(|(state, _)| state), State::ALL);
    for (state, list) in page {
        let listed = performatives(list);
        assert_eq!(allowed(AnyStateInterpretation::ListedOnly, state), listed, "{state}");

        let mut with_every_live_state = listed;
        if state.is_live() {
            with_every_live_state.extend([Performative::Withdraw, Performative::Close]);
        }
        if state.is_live() && state != State::Escalated {
            with_every_live_state.insert(Performative::Escalate);
        }
        assert_eq!(
            allowed(AnyStateInterpretation::EveryLiveState, state),
            with_every_live_state,
            "{state}, with every live state (D3)"
        );
    }
}

#[test]
fn all_eighteen_rows_lead_to_the_state_on_the_page() {
    use State::*;
    let any: &[State] = &State::LIVE;
    let page: [(u8, &[State], Option<State>); 18] = [
        (1, &[Idle], Some(Invited)),
        (2, &[Invited], Some(Introduced)),
        (3, &[Invited], Some(Failed)),
        (4, &[Introduced], Some(Conversing)),
        (5, &[Conversing], Some(Agreeing)),
        (6, &[Conversing], Some(Closed)),
        (7, &[Conversing], Some(Escalated)),
        (8, &[Conversing], Some(Failed)),
        (9, &[Agreeing], Some(Executing)),
        (10, &[Agreeing], Some(Conversing)),
        (11, &[Executing], Some(Closed)),
        (12, &[Executing], Some(Escalated)),
        (13, &[Executing], Some(Failed)),
        (14, &[Escalated], None),
        (15, &[Escalated], Some(Closed)),
        (16, any, Some(Closed)),
        (17, any, Some(Closed)),
        (18, any, Some(Failed)),
    ];
    let numbers: BTreeSet<_> =
        PROTOCOL_TABLE.rows().iter().map(|row| row.number).filter(|number| *number > 0).collect();
    assert_eq!(numbers, (1..=18).collect());
    for (number, from, to) in page {
        let rows: Vec<_> = PROTOCOL_TABLE.rows().iter().filter(|row| row.number == number).collect();
        let target = to.map_or(TransitionTarget::Return, TransitionTarget::Move);
        assert!(rows.iter().any(|row| row.target == target), "no row {number} leads to {target:?}");
        for row in rows {
            assert!(row.from.iter().all(|state| from.contains(state)), "row {number} from {:?}", row.from);
            let keeps_state = matches!(row.target, TransitionTarget::Stay | TransitionTarget::Refuse(_));
            assert!(keeps_state || row.target == target, "row {number} leads to {:?}", row.target);
        }
    }
}

#[test]
fn every_mutation_of_a_row_is_detected() {
    let expected = expected();
    let before = compare(&PROTOCOL_TABLE, &expected).differences;
    let mut mutation_count = 0;
    let mut undetected = Vec::new();
    for (index, row) in PROTOCOL_TABLE.rows().iter().enumerate() {
        for (mutation, rows) in mutated_tables(index, row) {
            mutation_count += 1;
            if compare(&TransitionTable::new(Cow::Owned(rows)), &expected).differences == before {
                undetected
                    .push(format!("row {} {:?} from {:?}: {mutation}", row.number, row.trigger, row.from));
            }
        }
    }
    println!("{mutation_count} mutated tables, {} undetected", undetected.len());
    assert!(undetected.is_empty(), "{}", undetected.join("\n"));
}

#[test]
fn each_error_in_the_expectation_file_gives_its_line() {
    let cell = "CLOSE     either                              -> to CLOSED\n";
    let index = EXPECTED.find(cell).unwrap();
    let line = EXPECTED[..index].lines().count() + 1;
    let with_cell = |text: &str| format!("{}{text}{}", &EXPECTED[..index], &EXPECTED[index + cell.len()..]);

    // A missing cell has no line.
    assert_eq!(
        ExpectedTable::read(&with_cell("")).unwrap_err(),
        "not stated: CONVERSING CLOSE inviter, CONVERSING CLOSE invited"
    );
    let cases = [
        (
            "CLOSE invited -> to CLOSED\nCLOSE either -> stay\n",
            1,
            "CONVERSING CLOSE invited is stated on line",
        ),
        ("SHOUT either -> stay\n", 0, "\"SHOUT\" is not a performative"),
        ("CLOSE both -> stay\n", 0, "\"both\" is not a sender"),
        ("CLOSE -> stay\n", 0, "expected two words in \"CLOSE\""),
        ("CLOSE either -> to NOWHERE\n", 0, "\"NOWHERE\" is not a state"),
        ("CLOSE either -> refuse politely\n", 0, "\"politely\" is not a code"),
        ("CLOSE either -> go\n", 0, "\"go\" is not a result"),
        ("CLOSE either\n    not sure -> stay\n", 1, "\"sure\" is not a fact"),
        ("CLOSE either\n    from-inviter -> stay\n", 1, "the sender belongs in the first line of the cell"),
        ("CLOSE either\n    other: own-item -> stay\n", 1, "\"other\" is not an interpretation"),
        ("CLOSE either\n    own-item\n", 1, "a case without a result"),
        ("CLOSE either -> stay\n    own-item -> stay\n", 1, "a case without a cell"),
    ];
    for (text, offset, expected_error) in cases {
        let error = ExpectedTable::read(&with_cell(text)).unwrap_err();
        assert!(error.starts_with(&format!("line {}: {expected_error}", line + offset)), "{text:?}: {error}");
    }
    for (text, expected_error) in [
        ("CLOSE either\n", "there is no `otherwise` case"),
        (
            "CLOSE either\n    every-live-state: otherwise -> stay\n",
            "there is no `otherwise` case (ListedOnly)",
        ),
        ("CLOSE either\n    otherwise -> stay\n    own-item -> stay\n", "a case after `otherwise`"),
    ] {
        let error = ExpectedTable::read(&with_cell(text)).unwrap_err();
        assert!(
            error.starts_with(&format!("line {line}: CONVERSING CLOSE inviter: {expected_error}")),
            "{text:?}: {error}"
        );
    }
}

fn expected() -> ExpectedTable {
    ExpectedTable::read(EXPECTED).unwrap_or_else(|error| panic!("expected.txt: {error}"))
}

#[derive(Default)]
struct TableComparison {
    cell_count: usize,
    combination_count: usize,
    non_message_result_count: usize,
    differences: Vec<String>,
}

fn compare(table: &TransitionTable, expected: &ExpectedTable) -> TableComparison {
    let mut comparison = TableComparison::default();
    for (state, performative, sender, cell) in expected.cells() {
        comparison.cell_count += 1;
        let trigger = Trigger::Message(performative);
        for any_state in AnyStateInterpretation::ALL {
            let mut facts = cell.facts(any_state);
            facts.extend(facts_used_by(table, any_state, state, trigger));
            for facts in combinations(&facts, state, sender) {
                comparison.combination_count += 1;
                let expected_target = cell.target(any_state, facts);
                let target = evaluate_target(table, any_state, state, trigger, facts);
                if expected_target != Some(target) {
                    comparison.differences.push(format!(
                        "line {}: {state} {performative} {sender} ({any_state:?}), {facts:?}: expected {expected_target:?}, the table \
                         says {target:?}",
                        cell.line()
                    ));
                }
            }
        }
    }
    for (trigger, state, expected_target) in expected.non_message_cells() {
        for any_state in AnyStateInterpretation::ALL {
            comparison.non_message_result_count += 1;
            let facts = facts_used_by(table, any_state, state, trigger);
            for facts in Role::ALL.into_iter().flat_map(|sender| combinations(&facts, state, sender)) {
                let target = match table.evaluate(any_state, state, trigger, facts) {
                    Evaluation::Matched(row) => Some(row.target),
                    Evaluation::Refused(..) => None,
                };
                if target != expected_target {
                    comparison.differences.push(format!(
                        "{trigger:?} in {state} ({any_state:?}): expected {expected_target:?}, the table says {target:?}"
                    ));
                }
            }
        }
    }
    comparison
}

fn evaluate_target(
    table: &TransitionTable,
    any_state: AnyStateInterpretation,
    state: State,
    trigger: Trigger,
    facts: Facts,
) -> TransitionTarget {
    match table.evaluate(any_state, state, trigger, facts) {
        Evaluation::Matched(row) => row.target,
        Evaluation::Refused(code, _) => TransitionTarget::Refuse(code),
    }
}

/// Returns the facts that the rows of a cell depend on.
fn facts_used_by(
    table: &TransitionTable,
    any_state: AnyStateInterpretation,
    state: State,
    trigger: Trigger,
) -> BTreeSet<Fact> {
    let mut facts = BTreeSet::new();
    for row in table.matching_rows(any_state, state, trigger) {
        facts.extend(row.conditions.iter().map(|(fact, _)| *fact));
        facts.extend(row.requirements.iter().map(|requirement| requirement.fact));
    }
    facts
}

/// Returns every combination of these facts. Facts that follow from the cell are fixed: the sender, and in INVITED
/// whether the sender owns the invitation.
fn combinations(facts: &BTreeSet<Fact>, state: State, sender: Role) -> impl Iterator<Item = Facts> {
    let is_inviter = sender == Role::Inviter;
    let mut fixed = vec![(Fact::FromInviter, is_inviter)];
    if state == State::Invited {
        fixed.push((Fact::OwnItem, is_inviter));
    }
    let free: Vec<_> =
        facts.iter().copied().filter(|fact| fixed.iter().all(|(other, _)| other != fact)).collect();
    let base = fixed.iter().fold(Facts::NONE, |set, (fact, holds)| set.with(*fact, *holds));
    (0..1_u32 << free.len()).map(move |bits| {
        free.iter().enumerate().fold(base, |set, (index, fact)| set.with(*fact, bits >> index & 1 == 1))
    })
}

fn performatives(list: &str) -> BTreeSet<Performative> {
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.map(|name| Performative::parse(name).unwrap()).collect()
}

fn allowed(any_state: AnyStateInterpretation, state: State) -> BTreeSet<Performative> {
    PROTOCOL_TABLE.allowed_performatives(any_state, state).into_iter().collect()
}

/// Returns tables with one mutation of one row.
fn mutated_tables(index: usize, row: &TransitionRow) -> Vec<(String, Vec<TransitionRow>)> {
    let mut mutated = Vec::new();
    let mut rows_without = PROTOCOL_TABLE.rows().to_vec();
    rows_without.remove(index);
    mutated.push(("removed".to_owned(), rows_without));

    let mut add_mutation = |mutation: String, mutated_row: TransitionRow| {
        let mut rows = PROTOCOL_TABLE.rows().to_vec();
        rows[index] = mutated_row;
        mutated.push((mutation, rows));
    };
    for state in row.from {
        let from: Vec<_> = row.from.iter().copied().filter(|other| other != state).collect();
        add_mutation(format!("not from {state}"), TransitionRow { from: from.leak(), ..*row });
    }
    let other_state =
        if row.target == TransitionTarget::Move(State::Closed) { State::Failed } else { State::Closed };
    add_mutation(
        "leads to another state".to_owned(),
        TransitionRow { target: TransitionTarget::Move(other_state), ..*row },
    );
    if matches!(row.trigger, Trigger::Message(_)) {
        add_mutation(
            "is refused".to_owned(),
            TransitionRow { target: TransitionTarget::Refuse(RejectCode::Unspecified), ..*row },
        );
    }
    for (index, (fact, _)) in row.conditions.iter().enumerate() {
        let mut conditions = row.conditions.to_vec();
        conditions[index].1 = !conditions[index].1;
        add_mutation(
            format!("condition {} negated", fact.as_str()),
            TransitionRow { conditions: conditions.leak(), ..*row },
        );
    }
    for (index, requirement) in row.requirements.iter().enumerate() {
        let mut dropped = row.requirements.to_vec();
        dropped.remove(index);
        add_mutation(
            format!("requirement {} removed", requirement.fact.as_str()),
            TransitionRow { requirements: dropped.leak(), ..*row },
        );
        let mut negated = row.requirements.to_vec();
        negated[index] = Requirement { must_hold: !requirement.must_hold, ..*requirement };
        add_mutation(
            format!("requirement {} negated", requirement.fact.as_str()),
            TransitionRow { requirements: negated.leak(), ..*row },
        );
        let mut recoded = row.requirements.to_vec();
        recoded[index] = Requirement { code: RejectCode::Unspecified, ..*requirement };
        add_mutation(
            format!("requirement {} with another code", requirement.fact.as_str()),
            TransitionRow { requirements: recoded.leak(), ..*row },
        );
    }
    for index in 1..row.requirements.len() {
        let mut swapped = row.requirements.to_vec();
        swapped.swap(index - 1, index);
        if swapped[index - 1].code != swapped[index].code {
            add_mutation(
                format!("requirement {} checked too early", row.requirements[index].fact.as_str()),
                TransitionRow { requirements: swapped.leak(), ..*row },
            );
        }
    }
    if !matches!(row.trigger, Trigger::Message(_)) {
        return mutated;
    }
    add_mutation("listed flag inverted".to_owned(), TransitionRow { is_listed: !row.is_listed, ..*row });
    mutated
}
