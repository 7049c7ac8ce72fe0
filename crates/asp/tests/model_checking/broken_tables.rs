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

/// A broken copy of the table, and the invariant that it violates.
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
        on_both_sides(
            Invariant::TerminalIsFinal,
            "QUERY reopens a closed session",
            with_row_appended(row(&[Closed], Query, TransitionTarget::Move(Conversing))),
        ),
        on_both_sides(
            Invariant::TerminalIsFinal,
            "WITHDRAW closes a failed session",
            with_row_appended(row(&[Failed], Withdraw, TransitionTarget::Move(Closed))),
        ),
        on_both_sides(
            Invariant::TerminalIsFinal,
            "a closed session accepts OBSERVE",
            with_row_appended(row(&[Closed], Observe, TransitionTarget::Stay)),
        ),
        on_both_sides(
            Invariant::TerminalIsFinal,
            "a broken chain fails a closed session",
            with_row_appended(TransitionRow {
                trigger: Trigger::BrokenChain,
                ..row(&[Closed], Query, TransitionTarget::Move(Failed))
            }),
        ),
        on_both_sides(
            Invariant::TerminalReachable,
            "EXECUTING cannot be left",
            table_without_way_out_of_executing(),
        ),
        on_both_sides(
            Invariant::TerminalReachable,
            "nothing is allowed in ESCALATED",
            table_without_rows_in_escalated(),
        ),
        on_both_sides(
            Invariant::TerminalReachable,
            "INTRODUCED has no timer",
            with_rows_changed(|row| {
                (row.target == TransitionTarget::Move(Introduced))
                    .then(|| without_action(TransitionAction::StartTimer(Timer::Introduction), row))
            }),
        ),
        on_both_sides(
            Invariant::TerminalReachable,
            "the first proposal starts no session timer",
            with_rows_changed(|row| {
                (row.trigger == Trigger::Message(Propose))
                    .then(|| without_action(TransitionAction::StartTimer(Timer::Session), row))
            }),
        ),
        on_both_sides(
            Invariant::CommitmentBeforeExecuting,
            "a side accepts its own COMMIT",
            table_without_acceptance_requirement(Fact::OwnItem),
        ),
        on_both_sides(
            Invariant::CommitmentBeforeExecuting,
            "an ACCEPT of any item is accepted",
            table_without_acceptance_requirement(Fact::NamesOpenItem),
        ),
        BrokenTable {
            commits: 2,
            ..on_both_sides(
                Invariant::CommitmentBeforeExecuting,
                "a second COMMIT is accepted while one is pending",
                with_row_appended(commit_row_in(&[Agreeing])),
            )
        },
        on_both_sides(
            Invariant::EscalationReturns,
            "every resolution leads to CONVERSING",
            with_rows_changed(|row| {
                (row.target == TransitionTarget::Return)
                    .then_some(TransitionRow { target: TransitionTarget::Move(Conversing), ..*row })
            }),
        ),
        on_both_sides(
            Invariant::EscalationReturns,
            "an expired escalation leads to INTRODUCED",
            with_rows_changed(|row| {
                let is_expiry = row.trigger == Trigger::TimerExpired(Timer::Escalation);
                is_expiry.then_some(TransitionRow {
                    target: TransitionTarget::Move(Introduced),
                    actions: &[TransitionAction::StartTimer(Timer::Introduction)],
                    ..*row
                })
            }),
        ),
        on_both_sides(
            Invariant::RefusalChangesNothing,
            "a second identity is refused but stops the invitation timer",
            with_rows_changed(|row| {
                let is_refusal = matches!(row.target, TransitionTarget::Refuse(_));
                is_refusal.then_some(TransitionRow {
                    actions: &[TransitionAction::StopTimer(Timer::Invitation)],
                    ..*row
                })
            }),
        ),
        on_both_sides(
            Invariant::RefusalChangesNothing,
            "a second COMMIT is refused but its id counts as used",
            with_row_appended(TransitionRow {
                actions: &[TransitionAction::RecordPending],
                ..refusal_row(&[Agreeing], Commit)
            }),
        ),
        on_invited_side(
            Invariant::RefusalChangesNothing,
            "the receiver refuses QUERY but starts a timer",
            with_row_prepended(TransitionRow {
                actions: &[TransitionAction::StartTimer(Timer::Response)],
                ..refusal_row(&[Conversing], Query)
            }),
        ),
        on_invited_side(
            Invariant::SidesAgree,
            "for one side only, REJECT of a COMMIT leads to INTRODUCED",
            with_row_prepended(reject_row_leading_to(Introduced)),
        ),
        on_invited_side(
            Invariant::SidesAgree,
            "for one side only, an accepted COMMIT does not bind",
            with_rows_changed(|row| {
                is_acceptance_row(row)
                    .then_some(TransitionRow { actions: &[TransitionAction::ActivateEscrow], ..*row })
            }),
        ),
        on_both_sides(
            Invariant::OnlyKeptObligationsCount,
            "a contested result counts",
            with_rows_changed(|row| {
                row.actions
                    .contains(&TransitionAction::NoteContest)
                    .then(|| without_action(TransitionAction::NoteContest, row))
            }),
        ),
        BrokenTable {
            commits: 2,
            ..on_both_sides(
                Invariant::SingleAcceptedCommitment,
                "COMMIT is allowed in EXECUTING",
                with_row_appended(commit_row_in(&[Executing])),
            )
        },
    ]
}

fn on_both_sides(
    invariant: Invariant,
    description: &'static str,
    table: &'static TransitionTable,
) -> BrokenTable {
    BrokenTable { invariant, description, tables: [table; 2], commits: 1 }
}

/// Only the invited side has the broken copy.
fn on_invited_side(
    invariant: Invariant,
    description: &'static str,
    table: &'static TransitionTable,
) -> BrokenTable {
    BrokenTable { tables: [&PROTOCOL_TABLE, table], ..on_both_sides(invariant, description, table) }
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

fn refusal_row(from: &'static [State], performative: Performative) -> TransitionRow {
    row(from, performative, TransitionTarget::Refuse(RejectCode::InvalidStateTransition))
}

fn commit_row_in(from: &'static [State]) -> TransitionRow {
    let commit = PROTOCOL_TABLE
        .rows()
        .iter()
        .find(|row| row.trigger == Trigger::Message(Commit))
        .expect("a row for COMMIT");
    TransitionRow { from, ..*commit }
}

fn reject_row_leading_to(state: State) -> TransitionRow {
    let is_reject_of_commit =
        |row: &&TransitionRow| row.trigger == Trigger::Message(Reject) && row.from == [Agreeing];
    let reject =
        PROTOCOL_TABLE.rows().iter().find(is_reject_of_commit).expect("a row for REJECT of a COMMIT");
    TransitionRow { target: TransitionTarget::Move(state), ..*reject }
}

/// Returns whether this is row 9, the ACCEPT of a commitment.
fn is_acceptance_row(row: &TransitionRow) -> bool {
    row.target == TransitionTarget::Move(Executing)
}

/// Returns the table without the requirement on this fact in row 9.
fn table_without_acceptance_requirement(fact: Fact) -> &'static TransitionTable {
    with_rows_changed(|row| {
        let requirements = row.requirements.iter().filter(|requirement| requirement.fact != fact).copied();
        is_acceptance_row(row)
            .then(|| TransitionRow { requirements: Vec::leak(requirements.collect()), ..*row })
    })
}

fn table_without_way_out_of_executing() -> &'static TransitionTable {
    with_rows_changed(|row| {
        let leaves_state = row.target != TransitionTarget::Stay && row.trigger != Trigger::BrokenChain;
        leaves_state.then(|| without_state(Executing, row))
    })
}

fn table_without_rows_in_escalated() -> &'static TransitionTable {
    with_rows_changed(|row| (row.trigger != Trigger::BrokenChain).then(|| without_state(Escalated, row)))
}

fn without_action(action: TransitionAction, row: &TransitionRow) -> TransitionRow {
    let actions = row.actions.iter().copied().filter(|other| *other != action);
    TransitionRow { actions: Vec::leak(actions.collect()), ..*row }
}

fn without_state(state: State, row: &TransitionRow) -> TransitionRow {
    let from = row.from.iter().copied().filter(|from| *from != state);
    TransitionRow { from: Vec::leak(from.collect()), ..*row }
}

/// Returns the table with an additional row at the end.
fn with_row_appended(row: TransitionRow) -> &'static TransitionTable {
    leak_table(PROTOCOL_TABLE.rows().iter().copied().chain([row]).collect())
}

/// Returns the table with an additional row at the start.
fn with_row_prepended(row: TransitionRow) -> &'static TransitionTable {
    leak_table([row].into_iter().chain(PROTOCOL_TABLE.rows().iter().copied()).collect())
}

/// Returns the table with some rows replaced. At least one row must change.
fn with_rows_changed(change: impl Fn(&TransitionRow) -> Option<TransitionRow>) -> &'static TransitionTable {
    assert!(
        PROTOCOL_TABLE.rows().iter().any(|row| change(row).is_some_and(|new| new != *row)),
        "no row was changed"
    );
    leak_table(PROTOCOL_TABLE.rows().iter().map(|row| change(row).unwrap_or(*row)).collect())
}

fn leak_table(rows: Vec<TransitionRow>) -> &'static TransitionTable {
    Box::leak(Box::new(TransitionTable::new(Cow::Owned(rows))))
}
