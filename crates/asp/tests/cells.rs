//! Every cell of the machine against a second reading of the page (D1).
//!
//! `cells/expected.txt` was written by hand from the page and our decisions; here it is compared with [`PAGE`], under
//! every combination of the facts that either of the two reads.

mod expectation;

use std::borrow::Cow;
use std::collections::BTreeSet;

use asp::machine::{Answer, Fact, Facts, Need, On, PAGE, Reading, Role, Row, State, Table, Then};
use asp::{Code, Performative};

use expectation::{Expectation, OTHERS};

const EXPECTED: &str = include_str!("cells/expected.txt");

#[test]
fn every_cell_answers_as_the_second_reading_says() {
    let compared = compare(&PAGE, &expected());
    println!(
        "{} cells in {} readings, {} combinations of facts; {} answers to what is not a message",
        compared.cells,
        Reading::ALL.len(),
        compared.combinations,
        compared.others
    );
    assert_eq!(compared.cells, State::ALL.len() * Performative::ALL.len() * Role::ALL.len());
    assert_eq!(compared.cells, 234);
    assert_eq!(compared.others, Reading::ALL.len() * State::ALL.len() * OTHERS.len());
    assert!(
        compared.differences.is_empty(),
        "{} differences\n{}",
        compared.differences.len(),
        compared.differences.join("\n")
    );
}

#[test]
fn the_table_reading_allows_what_the_page_lists() {
    // "Allowed Performatives Per State", and the INFORM without which row 2 cannot happen (D2).
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
        assert_eq!(allowed(Reading::Table, state), listed, "{state}");

        let mut anywhere = listed;
        if state.is_live() {
            anywhere.extend([Performative::Withdraw, Performative::Close]);
        }
        if state.is_live() && state != State::Escalated {
            anywhere.insert(Performative::Escalate);
        }
        assert_eq!(allowed(Reading::Open, state), anywhere, "{state}, any state being every live one (D3)");
    }
}

#[test]
fn all_eighteen_numbers_lead_where_the_page_says() {
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
        PAGE.rows().iter().map(|row| row.number).filter(|number| *number > 0).collect();
    assert_eq!(numbers, (1..=18).collect());
    for (number, from, to) in page {
        let rows: Vec<_> = PAGE.rows().iter().filter(|row| row.number == number).collect();
        let leads = to.map_or(Then::Back, Then::Move);
        assert!(rows.iter().any(|row| row.then == leads), "no row {number} leads to {leads:?}");
        for row in rows {
            assert!(row.from.iter().all(|state| from.contains(state)), "row {number} from {:?}", row.from);
            let on_the_way = matches!(row.then, Then::Stay | Then::Refuse(_));
            assert!(on_the_way || row.then == leads, "row {number} leads to {:?}", row.then);
        }
    }
}

#[test]
fn a_row_that_is_missing_or_other_is_noticed() {
    let expected = expected();
    let before = compare(&PAGE, &expected).differences;
    let mut tried = 0;
    let mut unnoticed = Vec::new();
    for (place, row) in PAGE.rows().iter().enumerate() {
        for (what, rows) in spoiled(place, row) {
            tried += 1;
            if compare(&Table::new(Cow::Owned(rows)), &expected).differences == before {
                unnoticed.push(format!("row {} {:?} from {:?}: {what}", row.number, row.on, row.from));
            }
        }
    }
    println!("{tried} spoiled tables, {} unnoticed", unnoticed.len());
    assert!(unnoticed.is_empty(), "{}", unnoticed.join("\n"));
}

#[test]
fn what_is_wrong_with_the_file_is_said_by_its_line() {
    let cell = "CLOSE     either            -> to CLOSED\n";
    let place = EXPECTED.find(cell).unwrap();
    let line = EXPECTED[..place].lines().count() + 1;
    let with = |text: &str| format!("{}{text}{}", &EXPECTED[..place], &EXPECTED[place + cell.len()..]);

    assert_eq!(
        Expectation::read(&with("")).unwrap_err(),
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
        ("CLOSE -> stay\n", 0, "two words were expected in \"CLOSE\""),
        ("CLOSE either -> to NOWHERE\n", 0, "\"NOWHERE\" is not a state"),
        ("CLOSE either -> refuse politely\n", 0, "\"politely\" is not a code"),
        ("CLOSE either -> go\n", 0, "\"go\" is not a result"),
        ("CLOSE either\n    not sure -> stay\n", 1, "\"sure\" is not a fact"),
        ("CLOSE either\n    from-inviter -> stay\n", 1, "the sender stands at the head of the cell"),
        ("CLOSE either\n    shut: own -> stay\n", 1, "\"shut\" is not a reading"),
        ("CLOSE either\n    own\n", 1, "a case without a result"),
        ("CLOSE either -> stay\n    own -> stay\n", 1, "a case of no cell"),
    ];
    for (text, further, why) in cases {
        let said = Expectation::read(&with(text)).unwrap_err();
        assert!(said.starts_with(&format!("line {}: {why}", line + further)), "{text:?}: {said}");
    }
    for (text, why) in [
        ("CLOSE either\n", "nothing is said of what happens otherwise"),
        ("CLOSE either\n    open: otherwise -> stay\n", "nothing is said of what happens otherwise (Table)"),
        ("CLOSE either\n    otherwise -> stay\n    own -> stay\n", "a case after `otherwise`"),
    ] {
        let said = Expectation::read(&with(text)).unwrap_err();
        assert!(
            said.starts_with(&format!("line {line}: CONVERSING CLOSE inviter: {why}")),
            "{text:?}: {said}"
        );
    }
}

fn expected() -> Expectation {
    Expectation::read(EXPECTED).unwrap_or_else(|why| panic!("expected.txt: {why}"))
}

#[derive(Default)]
struct Compared {
    cells: usize,
    combinations: usize,
    others: usize,
    differences: Vec<String>,
}

fn compare(table: &Table, expected: &Expectation) -> Compared {
    let mut compared = Compared::default();
    for (state, performative, sender, cell) in expected.cells() {
        compared.cells += 1;
        let on = On::Message(performative);
        for reading in Reading::ALL {
            let mut facts = cell.facts(reading);
            facts.extend(read_by(table, reading, state, on));
            for facts in combinations(&facts, state, sender) {
                compared.combinations += 1;
                let wanted = cell.answer(reading, facts);
                let got = answer(table, reading, state, on, facts);
                if wanted != Some(got) {
                    compared.differences.push(format!(
                        "line {}: {state} {performative} {sender} ({reading:?}), {facts:?}: expected {wanted:?}, the table \
                         says {got:?}",
                        cell.line()
                    ));
                }
            }
        }
    }
    for (on, state, wanted) in expected.others() {
        for reading in Reading::ALL {
            compared.others += 1;
            let facts = read_by(table, reading, state, on);
            for facts in Role::ALL.into_iter().flat_map(|sender| combinations(&facts, state, sender)) {
                let got = match table.answer(reading, state, on, facts) {
                    Answer::Taken(row) => Some(row.then),
                    Answer::Refused(..) => None,
                };
                if got != wanted {
                    compared.differences.push(format!(
                        "{on:?} in {state} ({reading:?}): expected {wanted:?}, the table says {got:?}"
                    ));
                }
            }
        }
    }
    compared
}

fn answer(table: &Table, reading: Reading, state: State, on: On, facts: Facts) -> Then {
    match table.answer(reading, state, on, facts) {
        Answer::Taken(row) => row.then,
        Answer::Refused(code, _) => Then::Refuse(code),
    }
}

/// The facts that the rows of a cell read.
fn read_by(table: &Table, reading: Reading, state: State, on: On) -> BTreeSet<Fact> {
    let mut facts = BTreeSet::new();
    for row in table.cell(reading, state, on) {
        facts.extend(row.when.iter().map(|(fact, _)| *fact));
        facts.extend(row.needs.iter().map(|need| need.fact));
    }
    facts
}

/// Every set of these facts, with those that follow from the cell as they are: the sender, and in INVITED whose the
/// invitation is.
fn combinations(facts: &BTreeSet<Fact>, state: State, sender: Role) -> impl Iterator<Item = Facts> {
    let inviting = sender == Role::Inviter;
    let mut fixed = vec![(Fact::FromInviter, inviting)];
    if state == State::Invited {
        fixed.push((Fact::Own, inviting));
    }
    let free: Vec<_> =
        facts.iter().copied().filter(|fact| fixed.iter().all(|(other, _)| other != fact)).collect();
    let base = fixed.iter().fold(Facts::NONE, |set, (fact, holds)| set.with(*fact, *holds));
    (0..1_u32 << free.len()).map(move |bits| {
        free.iter().enumerate().fold(base, |set, (place, fact)| set.with(*fact, bits >> place & 1 == 1))
    })
}

fn performatives(list: &str) -> BTreeSet<Performative> {
    let words = list.split(',').map(str::trim).filter(|word| !word.is_empty());
    words.map(|word| Performative::parse(word).unwrap()).collect()
}

fn allowed(reading: Reading, state: State) -> BTreeSet<Performative> {
    PAGE.allowed(reading, state).into_iter().collect()
}

/// Tables in which one thing of one row is wrong.
fn spoiled(place: usize, row: &Row) -> Vec<(String, Vec<Row>)> {
    let mut spoiled = Vec::new();
    let mut without = PAGE.rows().to_vec();
    without.remove(place);
    spoiled.push(("left out".to_owned(), without));

    let mut with = |what: String, other: Row| {
        let mut rows = PAGE.rows().to_vec();
        rows[place] = other;
        spoiled.push((what, rows));
    };
    for state in row.from {
        let from: Vec<_> = row.from.iter().copied().filter(|other| other != state).collect();
        with(format!("not from {state}"), Row { from: from.leak(), ..*row });
    }
    let elsewhere = if row.then == Then::Move(State::Closed) { State::Failed } else { State::Closed };
    with("leads elsewhere".to_owned(), Row { then: Then::Move(elsewhere), ..*row });
    if matches!(row.on, On::Message(_)) {
        with("is refused".to_owned(), Row { then: Then::Refuse(Code::Unspecified), ..*row });
    }
    for (place, (fact, _)) in row.when.iter().enumerate() {
        let mut when = row.when.to_vec();
        when[place].1 = !when[place].1;
        with(format!("chosen by the opposite of {}", fact.word()), Row { when: when.leak(), ..*row });
    }
    for (place, need) in row.needs.iter().enumerate() {
        let mut dropped = row.needs.to_vec();
        dropped.remove(place);
        with(format!("does not ask for {}", need.fact.word()), Row { needs: dropped.leak(), ..*row });
        let mut turned = row.needs.to_vec();
        turned[place] = Need { holds: !need.holds, ..*need };
        with(format!("asks for the opposite of {}", need.fact.word()), Row { needs: turned.leak(), ..*row });
        let mut coded = row.needs.to_vec();
        coded[place] = Need { code: Code::Unspecified, ..*need };
        with(format!("another code for {}", need.fact.word()), Row { needs: coded.leak(), ..*row });
    }
    for place in 1..row.needs.len() {
        let mut swapped = row.needs.to_vec();
        swapped.swap(place - 1, place);
        if swapped[place - 1].code != swapped[place].code {
            with(
                format!("asks for {} too early", row.needs[place].fact.word()),
                Row { needs: swapped.leak(), ..*row },
            );
        }
    }
    if !matches!(row.on, On::Message(_)) {
        return spoiled;
    }
    with("listed or not, the other way".to_owned(), Row { listed: !row.listed, ..*row });
    spoiled
}
