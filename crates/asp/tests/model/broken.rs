//! Deliberately broken copies of the table: for each law some that break it, and no other.

use std::borrow::Cow;

use asp::Performative::*;
use asp::machine::State::*;
use asp::machine::{Do, Fact, On, PAGE, Row, State, Table, Then, Timer};
use asp::{Code, Performative};

use super::laws::Law;

/// A broken copy, and what it breaks.
pub(crate) struct Broken {
    pub(crate) law: Law,
    pub(crate) what: &'static str,
    /// The inviter's and the invited's.
    pub(crate) tables: [&'static Table; 2],
    /// How many commitments it takes to show.
    pub(crate) commits: usize,
}

pub(crate) fn all() -> Vec<Broken> {
    vec![
        both(
            Law::End,
            "QUERY opens a closed session again",
            with(row(&[Closed], Query, Then::Move(Conversing))),
        ),
        both(
            Law::End,
            "WITHDRAW closes a failed session",
            with(row(&[Failed], Withdraw, Then::Move(Closed))),
        ),
        both(Law::End, "a closed session still takes OBSERVE", with(row(&[Closed], Observe, Then::Stay))),
        both(
            Law::End,
            "a broken chain fails a closed session",
            with(Row { on: On::BrokenChain, ..row(&[Closed], Query, Then::Move(Failed)) }),
        ),
        both(Law::WayOut, "EXECUTING cannot be left", without_way_out_of_executing()),
        both(Law::WayOut, "nothing is lawful in ESCALATED", without_anything_in_escalated()),
        both(Law::Binding, "who committed accepts it himself", acceptance_without(Fact::Own)),
        both(Law::Binding, "any ACCEPT will do", acceptance_without(Fact::Named)),
        Broken {
            commits: 2,
            ..both(Law::Binding, "a second COMMIT while one is pending", with(commit_in(&[Agreeing])))
        },
        both(
            Law::Return,
            "every resolution leads to CONVERSING",
            changed(|row| (row.then == Then::Back).then_some(Row { then: Then::Move(Conversing), ..*row })),
        ),
        both(
            Law::Return,
            "an escalation without an answer leads to INTRODUCED",
            changed(|row| {
                let expiry = row.on == On::Expiry(Timer::Escalation);
                expiry.then_some(Row { then: Then::Move(Introduced), effects: &[], ..*row })
            }),
        ),
        both(
            Law::Refusal,
            "a second identity is refused and stops the invitation timer",
            changed(|row| {
                let refuses = matches!(row.then, Then::Refuse(_));
                refuses.then_some(Row { effects: &[Do::Stop(Timer::Invitation)], ..*row })
            }),
        ),
        both(
            Law::Refusal,
            "a second COMMIT is refused and uses up its name",
            with(Row { effects: &[Do::Pend], ..refused(&[Agreeing], Commit) }),
        ),
        one_sided(
            Law::Refusal,
            "the receiver refuses QUERY and starts a clock",
            first(Row { effects: &[Do::Start(Timer::Response)], ..refused(&[Conversing], Query) }),
        ),
        one_sided(
            Law::Agreement,
            "for one side only, REJECT of a COMMIT leads to INTRODUCED",
            first(rejected_commit_leading_to(Introduced)),
        ),
        one_sided(
            Law::Agreement,
            "for one side only, an accepted COMMIT does not bind",
            changed(|row| acceptance(row).then_some(Row { effects: &[Do::ActivateEscrow], ..*row })),
        ),
        Broken {
            commits: 2,
            ..both(Law::Single, "COMMIT is lawful in EXECUTING", with(commit_in(&[Executing])))
        },
    ]
}

fn both(law: Law, what: &'static str, table: &'static Table) -> Broken {
    Broken { law, what, tables: [table; 2], commits: 1 }
}

/// Only the invited has the broken copy.
fn one_sided(law: Law, what: &'static str, table: &'static Table) -> Broken {
    Broken { tables: [&PAGE, table], ..both(law, what, table) }
}

fn row(from: &'static [State], performative: Performative, then: Then) -> Row {
    let on = On::Message(performative);
    Row { number: 0, from, on, when: &[], needs: &[], then, effects: &[], listed: true }
}

fn refused(from: &'static [State], performative: Performative) -> Row {
    row(from, performative, Then::Refuse(Code::InvalidStateTransition))
}

fn commit_in(from: &'static [State]) -> Row {
    let commit = PAGE.rows().iter().find(|row| row.on == On::Message(Commit)).expect("a row for COMMIT");
    Row { from, ..*commit }
}

fn rejected_commit_leading_to(state: State) -> Row {
    let is_it = |row: &&Row| row.on == On::Message(Reject) && row.from == [Agreeing];
    let reject = PAGE.rows().iter().find(is_it).expect("a row for REJECT of a COMMIT");
    Row { then: Then::Move(state), ..*reject }
}

/// Row 9.
fn acceptance(row: &Row) -> bool {
    row.then == Then::Move(Executing)
}

fn acceptance_without(fact: Fact) -> &'static Table {
    changed(|row| {
        let needs = row.needs.iter().filter(|need| need.fact != fact).copied();
        acceptance(row).then(|| Row { needs: Vec::leak(needs.collect()), ..*row })
    })
}

fn without_way_out_of_executing() -> &'static Table {
    changed(|row| {
        let leads_out = row.then != Then::Stay && row.on != On::BrokenChain;
        leads_out.then(|| not_in(Executing, row))
    })
}

fn without_anything_in_escalated() -> &'static Table {
    changed(|row| (row.on != On::BrokenChain).then(|| not_in(Escalated, row)))
}

fn not_in(state: State, row: &Row) -> Row {
    let from = row.from.iter().copied().filter(|from| *from != state);
    Row { from: Vec::leak(from.collect()), ..*row }
}

/// The table with one row more.
fn with(row: Row) -> &'static Table {
    table(PAGE.rows().iter().copied().chain([row]).collect())
}

/// The table with a row that comes before all others.
fn first(row: Row) -> &'static Table {
    table([row].into_iter().chain(PAGE.rows().iter().copied()).collect())
}

/// The table with other rows in the place of some; there must be some.
fn changed(change: impl Fn(&Row) -> Option<Row>) -> &'static Table {
    assert!(PAGE.rows().iter().any(|row| change(row).is_some_and(|new| new != *row)), "nothing is broken");
    table(PAGE.rows().iter().map(|row| change(row).unwrap_or(*row)).collect())
}

fn table(rows: Vec<Row>) -> &'static Table {
    Box::leak(Box::new(Table::new(Cow::Owned(rows))))
}
