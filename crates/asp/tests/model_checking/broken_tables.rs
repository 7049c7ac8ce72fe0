//! Deliberately broken copies of the table. Each violates exactly one invariant.

use std::borrow::Cow;

use asp::Performative::*;
use asp::state_machine::State::*;
use asp::state_machine::{
    Fact, PROTOCOL_TABLE, State, Timer, TransitionAction, TransitionRow, TransitionTable, TransitionTarget,
    Trigger,
};
use asp::{Performative, RejectCode};

use super::invariants::Invariant;

/// A broken copy, and the invariant that it violates.
pub(crate) struct BrokenTable {
    pub(crate) invariant: Invariant,
    pub(crate) description: &'static str,
    /// The tables of the inviter and of the invited side.
    pub(crate) tables: [&'static TransitionTable; 2],
    /// The number of commitments needed to show the violation.
    pub(crate) commits: usize,
}

pub(crate) fn all() -> Vec<BrokenTable> {
    vec![
        both(
            Invariant::TerminalIsFinal,
            "QUERY reopens a closed session",
            with(row(&[Closed], Query, TransitionTarget::Move(Conversing))),
        ),
        both(
            Invariant::TerminalIsFinal,
            "WITHDRAW closes a failed session",
            with(row(&[Failed], Withdraw, TransitionTarget::Move(Closed))),
        ),
        both(
            Invariant::TerminalIsFinal,
            "a closed session accepts OBSERVE",
            with(row(&[Closed], Observe, TransitionTarget::Stay)),
        ),
        both(
            Invariant::TerminalIsFinal,
            "a broken chain fails a closed session",
            with(TransitionRow {
                trigger: Trigger::BrokenChain,
                ..row(&[Closed], Query, TransitionTarget::Move(Failed))
            }),
        ),
        both(Invariant::TerminalReachable, "EXECUTING cannot be left", without_way_out_of_executing()),
        both(
            Invariant::TerminalReachable,
            "nothing is allowed in ESCALATED",
            without_anything_in_escalated(),
        ),
        both(
            Invariant::CommitmentBeforeExecuting,
            "a side accepts its own COMMIT",
            acceptance_without(Fact::OwnItem),
        ),
        both(
            Invariant::CommitmentBeforeExecuting,
            "any ACCEPT is accepted",
            acceptance_without(Fact::NamesOpenItem),
        ),
        BrokenTable {
            commits: 2,
            ..both(
                Invariant::CommitmentBeforeExecuting,
                "a second COMMIT is accepted while one is pending",
                with(commit_in(&[Agreeing])),
            )
        },
        both(
            Invariant::EscalationReturns,
            "every resolution leads to CONVERSING",
            changed(|row| {
                (row.target == TransitionTarget::Return)
                    .then_some(TransitionRow { target: TransitionTarget::Move(Conversing), ..*row })
            }),
        ),
        both(
            Invariant::EscalationReturns,
            "an expired escalation leads to INTRODUCED",
            changed(|row| {
                let expiry = row.trigger == Trigger::TimerExpired(Timer::Escalation);
                expiry.then_some(TransitionRow {
                    target: TransitionTarget::Move(Introduced),
                    actions: &[],
                    ..*row
                })
            }),
        ),
        both(
            Invariant::RefusalChangesNothing,
            "a second identity is refused but stops the invitation timer",
            changed(|row| {
                let refuses = matches!(row.target, TransitionTarget::Refuse(_));
                refuses.then_some(TransitionRow {
                    actions: &[TransitionAction::StopTimer(Timer::Invitation)],
                    ..*row
                })
            }),
        ),
        both(
            Invariant::RefusalChangesNothing,
            "a second COMMIT is refused but its id counts as used",
            with(TransitionRow {
                actions: &[TransitionAction::RecordPending],
                ..refused(&[Agreeing], Commit)
            }),
        ),
        one_sided(
            Invariant::RefusalChangesNothing,
            "the receiver refuses QUERY but starts a timer",
            first(TransitionRow {
                actions: &[TransitionAction::StartTimer(Timer::Response)],
                ..refused(&[Conversing], Query)
            }),
        ),
        one_sided(
            Invariant::SidesAgree,
            "for one side only, REJECT of a COMMIT leads to INTRODUCED",
            first(rejected_commit_leading_to(Introduced)),
        ),
        one_sided(
            Invariant::SidesAgree,
            "for one side only, an accepted COMMIT does not bind",
            changed(|row| {
                is_acceptance(row)
                    .then_some(TransitionRow { actions: &[TransitionAction::ActivateEscrow], ..*row })
            }),
        ),
        BrokenTable {
            commits: 2,
            ..both(
                Invariant::SingleAcceptedCommitment,
                "COMMIT is allowed in EXECUTING",
                with(commit_in(&[Executing])),
            )
        },
    ]
}

fn both(invariant: Invariant, description: &'static str, table: &'static TransitionTable) -> BrokenTable {
    BrokenTable { invariant, description, tables: [table; 2], commits: 1 }
}

/// Only the invited side has the broken copy.
fn one_sided(
    invariant: Invariant,
    description: &'static str,
    table: &'static TransitionTable,
) -> BrokenTable {
    BrokenTable { tables: [&PROTOCOL_TABLE, table], ..both(invariant, description, table) }
}

fn row(from: &'static [State], performative: Performative, target: TransitionTarget) -> TransitionRow {
    let trigger = Trigger::Message(performative);
    TransitionRow {
        number: 0,
        from,
        trigger,
        conditions: &[],
        requirements: &[],
        target,
        actions: &[],
        is_listed: true,
    }
}

fn refused(from: &'static [State], performative: Performative) -> TransitionRow {
    row(from, performative, TransitionTarget::Refuse(RejectCode::InvalidStateTransition))
}

fn commit_in(from: &'static [State]) -> TransitionRow {
    let commit = PROTOCOL_TABLE
        .rows()
        .iter()
        .find(|row| row.trigger == Trigger::Message(Commit))
        .expect("a row for COMMIT");
    TransitionRow { from, ..*commit }
}

fn rejected_commit_leading_to(state: State) -> TransitionRow {
    let is_rejected_commit =
        |row: &&TransitionRow| row.trigger == Trigger::Message(Reject) && row.from == [Agreeing];
    let reject = PROTOCOL_TABLE.rows().iter().find(is_rejected_commit).expect("a row for REJECT of a COMMIT");
    TransitionRow { target: TransitionTarget::Move(state), ..*reject }
}

/// Returns whether this is row 9.
fn is_acceptance(row: &TransitionRow) -> bool {
    row.target == TransitionTarget::Move(Executing)
}

fn acceptance_without(fact: Fact) -> &'static TransitionTable {
    changed(|row| {
        let requirements = row.requirements.iter().filter(|requirement| requirement.fact != fact).copied();
        is_acceptance(row).then(|| TransitionRow { requirements: Vec::leak(requirements.collect()), ..*row })
    })
}

fn without_way_out_of_executing() -> &'static TransitionTable {
    changed(|row| {
        let leads_out = row.target != TransitionTarget::Stay && row.trigger != Trigger::BrokenChain;
        leads_out.then(|| not_in(Executing, row))
    })
}

fn without_anything_in_escalated() -> &'static TransitionTable {
    changed(|row| (row.trigger != Trigger::BrokenChain).then(|| not_in(Escalated, row)))
}

fn not_in(state: State, row: &TransitionRow) -> TransitionRow {
    let from = row.from.iter().copied().filter(|from| *from != state);
    TransitionRow { from: Vec::leak(from.collect()), ..*row }
}

/// Returns the table with an additional row at the end.
fn with(row: TransitionRow) -> &'static TransitionTable {
    table(PROTOCOL_TABLE.rows().iter().copied().chain([row]).collect())
}

/// Returns the table with an additional row at the start.
fn first(row: TransitionRow) -> &'static TransitionTable {
    table([row].into_iter().chain(PROTOCOL_TABLE.rows().iter().copied()).collect())
}

/// Returns the table with some rows replaced. At least one row must change.
fn changed(change: impl Fn(&TransitionRow) -> Option<TransitionRow>) -> &'static TransitionTable {
    assert!(
        PROTOCOL_TABLE.rows().iter().any(|row| change(row).is_some_and(|new| new != *row)),
        "no row was changed"
    );
    table(PROTOCOL_TABLE.rows().iter().map(|row| change(row).unwrap_or(*row)).collect())
}

fn table(rows: Vec<TransitionRow>) -> &'static TransitionTable {
    Box::leak(Box::new(TransitionTable::new(Cow::Owned(rows))))
}
