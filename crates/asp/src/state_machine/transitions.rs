//! The protocol's transition table: the eighteen numbered rows of npayload's page about ASP, then rows that the page
//! implies or that follow from our decisions.

use std::borrow::Cow;

use super::facts::Fact::{self, *};
use super::state::State::{self, *};
use super::state::Timer::{self, *};
use super::table::TransitionAction::*;
use super::table::{Requirement, TransitionRow, TransitionTable, Trigger};
use crate::Performative::{self, *};
use crate::error::RejectCode;

/// The protocol's transition table, in the order of npayload's page. If several rows have the same state and trigger, the
/// first one whose conditions hold applies.
pub static PROTOCOL_TABLE: TransitionTable = TransitionTable::new(Cow::Borrowed(ROWS));

const ROWS: &[TransitionRow] = &[
    // 1. IDLE to INVITED
    on_message(1, &[Idle], Propose)
        .when(&[holds(Fact::Invitation)])
        .needs(&[require(FromInviter), require(Trusted)])
        .to(Invited)
        .does(&[OpenChannel, OpenProposal, StartTimer(Timer::Invitation)]),
    // 2. INVITED to INTRODUCED: an ACCEPT and two identities (D2)
    on_message(2, &[Invited], Accept)
        .needs(&[forbid(OwnItem), forbid(InvitationAccepted), require(NamesOpenItem), require(Trusted)])
        .does(&[NoteInvitationAccepted]),
    on_message(2, &[Invited], Inform)
        .when(&[holds(Identity), holds(InvitationAccepted), not(SenderIdentified), not(OtherIdentified)])
        .needs(PINNED_AND_TRUSTED)
        .does(&[NoteIdentity]),
    on_message(2, &[Invited], Inform)
        .when(&[holds(Identity), holds(InvitationAccepted), not(SenderIdentified), holds(OtherIdentified)])
        .needs(PINNED_AND_TRUSTED)
        .to(Introduced)
        .does(&[RecordIdentities, StopTimer(Timer::Invitation), StartTimer(Introduction)]),
    on_message(2, &[Invited], Inform)
        .when(&[holds(Identity), holds(InvitationAccepted), holds(SenderIdentified)])
        .refused(RejectCode::Duplicate),
    // 3. INVITED to FAILED
    on_message(3, &[Invited], Reject)
        .needs(&[forbid(OwnItem), require(NamesOpenItem)])
        .to(Failed)
        .does(&[EndSession]),
    on_expiry(3, &[Invited], Timer::Invitation).to(Failed).does(&[EndSession]),
    // 4. INTRODUCED to CONVERSING
    on_message(4, &[Introduced], Propose)
        .when(&[not(Fact::Invitation)])
        .needs(PROPOSAL_REQUIREMENTS)
        .to(Conversing)
        .does(&[EnablePerformatives, StopTimer(Introduction), StartTimer(Session), OpenProposal]),
    on_message(4, &[Introduced], Query).to(Conversing).does(&[
        EnablePerformatives,
        StopTimer(Introduction),
        StartTimer(Session),
    ]),
    on_message(4, &[Introduced], Inform)
        .when(&[not(Fatal)])
        .needs(&[require(CardPinned)])
        .to(Conversing)
        .does(&[EnablePerformatives, StopTimer(Introduction), StartTimer(Session)]),
    on_message(4, &[Introduced], Observe).needs(STANDARD_LEVEL).to(Conversing).does(&[
        EnablePerformatives,
        StopTimer(Introduction),
        StartTimer(Session),
    ]),
    // 5. CONVERSING to AGREEING
    on_message(5, &[Conversing], Commit)
        .needs(&[require(AboveMinimalLevel), require(PartiesInSession), require(UnusedId)])
        .to(Agreeing)
        .does(&[RecordPending]),
    // 6. CONVERSING to CLOSED
    on_message(6, &[Conversing], Close).to(Closed).does(&[EndSession]),
    // 7. CONVERSING to ESCALATED
    on_message(7, &[Conversing], Escalate).needs(STANDARD_LEVEL).to(Escalated).does(ESCALATION_ACTIONS),
    // 8. CONVERSING to FAILED
    on_expiry(8, &[Conversing], Session).to(Failed).does(&[EndSession]),
    // 9. AGREEING to EXECUTING
    on_message(9, &[Agreeing], Accept)
        .needs(&[require(AboveMinimalLevel), forbid(OwnItem), require(NamesOpenItem), require(Funded)])
        .to(Executing)
        .does(&[BindCommitment, ActivateEscrow]),
    // 10. AGREEING to CONVERSING
    on_message(10, &[Agreeing], Reject)
        .needs(&[require(AboveMinimalLevel), forbid(OwnItem), require(NamesOpenItem)])
        .to(Conversing)
        .does(&[DropPending]),
    on_message(10, &[Agreeing], Counter)
        .needs(&[
            require(AboveMinimalLevel),
            forbid(OwnItem),
            require(NamesOpenItem),
            require(UnusedId),
            require(HasProposalCapacity),
        ])
        .to(Conversing)
        .does(&[DropPending, OpenProposal]),
    // 11. EXECUTING to CLOSED: after both sides have asked to close, or immediately if unilateral (D4)
    on_message(11, &[Executing], Close)
        .when(&[not(Unilateral), holds(OtherRequestedClose)])
        .to(Closed)
        .does(&[EndSession]),
    on_message(11, &[Executing], Close)
        .when(&[not(Unilateral), not(OtherRequestedClose)])
        .does(&[NoteCloseRequest]),
    on_message(17, &[Executing], Close).when(&[holds(Unilateral)]).to(Closed).does(&[EndSession]),
    // 12. EXECUTING to ESCALATED
    on_message(12, &[Executing], Escalate).needs(STANDARD_LEVEL).to(Escalated).does(ESCALATION_ACTIONS),
    // 13. EXECUTING to FAILED
    on_message(13, &[Executing], Inform)
        .when(&[holds(WorkReport), holds(Fatal)])
        .to(Failed)
        .does(&[NoteContest, EndSession]),
    // 14. ESCALATED to the previous state
    on_message(14, &[Escalated], Inform)
        .when(&[holds(Resolution)])
        .needs(&[require(FromEscalatingSide)])
        .back()
        .does(&[StopTimer(Escalation), ResumeTimers]),
    // 15. ESCALATED to CLOSED
    on_message(15, &[Escalated], Close).to(Closed).does(&[EndSession]),
    // 16. Any to CLOSED: WITHDRAW (D3, D5); npayload's page lists it for CONVERSING only
    on_message(16, &[Conversing], Withdraw).needs(STANDARD_LEVEL).to(Closed).does(&[EndSession]),
    on_message(16, &[Invited, Introduced, Agreeing, Executing, Escalated], Withdraw)
        .needs(STANDARD_LEVEL)
        .to(Closed)
        .does(&[EndSession])
        .unlisted(),
    // 17. Any to CLOSED: CLOSE (D3); npayload's page does not list it for INVITED and INTRODUCED
    on_message(17, &[Agreeing], Close).to(Closed).does(&[EndSession]),
    on_message(17, &[Invited, Introduced], Close).to(Closed).does(&[EndSession]).unlisted(),
    // 18. Any to FAILED (D7)
    on_message(18, &[Introduced, Conversing], Inform)
        .when(&[holds(Fatal)])
        .needs(&[require(CardPinned)])
        .to(Failed)
        .does(&[EndSession]),
    on_expiry(18, &[Introduced], Introduction).to(Failed).does(&[EndSession]),
    on_expiry(18, &[Agreeing, Executing], Session).to(Failed).does(&[EndSession]),
    on_expiry(18, &[Escalated], Escalation).to(Failed).does(&[EndSession]),
    TransitionRow::new(18, &State::LIVE, Trigger::BrokenChain).to(Failed).does(&[EndSession]),
    // Without a number: ESCALATE in other states (D3)
    on_message(0, &[Agreeing], Escalate).needs(STANDARD_LEVEL).to(Escalated).does(ESCALATION_ACTIONS),
    on_message(0, &[Invited, Introduced], Escalate)
        .needs(STANDARD_LEVEL)
        .to(Escalated)
        .does(ESCALATION_ACTIONS)
        .unlisted(),
    // Without a number: messages that keep the session in CONVERSING (D10)
    on_message(0, &[Conversing], Propose)
        .when(&[not(Fact::Invitation)])
        .needs(PROPOSAL_REQUIREMENTS)
        .does(&[OpenProposal]),
    on_message(0, &[Conversing], Accept).needs(ANSWER_REQUIREMENTS).does(&[CloseProposal]),
    on_message(0, &[Conversing], Reject).needs(ANSWER_REQUIREMENTS).does(&[CloseProposal]),
    on_message(0, &[Conversing], Counter)
        .needs(&[
            require(AboveMinimalLevel),
            require(NamesOpenItem),
            forbid(OwnItem),
            require(InTime),
            require(UnusedId),
        ])
        .does(&[CloseProposal, OpenProposal]),
    on_message(0, &[Conversing], Inform).when(&[not(Fatal)]).needs(&[require(CardPinned)]),
    on_message(0, &[Conversing], Query),
    on_message(0, &[Conversing], Clarify).needs(STANDARD_LEVEL),
    on_message(0, &[Conversing], Delegate).needs(STANDARD_LEVEL),
    on_message(0, &[Conversing], Observe).needs(STANDARD_LEVEL),
    // Without a number: messages that keep the session in AGREEING (D11) or EXECUTING
    on_message(0, &[Agreeing], Clarify).needs(STANDARD_LEVEL),
    on_message(0, &[Executing], Inform)
        .when(&[holds(WorkReport), not(Fatal)])
        .does(&[NoteWorkReport, NoteContest]),
    on_message(0, &[Executing], Inform)
        .when(&[not(WorkReport), holds(AnswersResult)])
        .does(&[NoteResultAccepted]),
    on_message(0, &[Executing], Query),
    // Without a number: an overdue response is reported but does not change the state (D9)
    on_expiry(0, &[Invited, Introduced, Conversing, Agreeing, Executing], Response),
];

const STANDARD_LEVEL: &[Requirement] = &[require(AboveMinimalLevel)];

const PINNED_AND_TRUSTED: &[Requirement] = &[require(CardPinned), require(Trusted)];

const PROPOSAL_REQUIREMENTS: &[Requirement] =
    &[require(AboveMinimalLevel), require(UnusedId), require(HasProposalCapacity)];

const ANSWER_REQUIREMENTS: &[Requirement] =
    &[require(AboveMinimalLevel), require(NamesOpenItem), forbid(OwnItem), require(InTime)];

const ESCALATION_ACTIONS: &[super::TransitionAction] = &[PauseTimers, NotifyHandler, StartTimer(Escalation)];

const fn on_message(number: u8, from: &'static [State], performative: Performative) -> TransitionRow {
    TransitionRow::new(number, from, Trigger::Message(performative))
}

const fn on_expiry(number: u8, from: &'static [State], timer: Timer) -> TransitionRow {
    TransitionRow::new(number, from, Trigger::TimerExpired(timer))
}

const fn holds(fact: Fact) -> (Fact, bool) {
    (fact, true)
}

const fn not(fact: Fact) -> (Fact, bool) {
    (fact, false)
}

const fn require(fact: Fact) -> Requirement {
    Requirement { fact, must_hold: true, code: reject_code(fact) }
}

const fn forbid(fact: Fact) -> Requirement {
    Requirement { fact, must_hold: false, code: reject_code(fact) }
}

/// Returns the code of the refusal if a requirement on this fact is not met.
const fn reject_code(fact: Fact) -> RejectCode {
    match fact {
        InvitationAccepted | NamesOpenItem => RejectCode::InvalidStateTransition,
        UnusedId => RejectCode::Duplicate,
        Funded => RejectCode::BudgetExceeded,
        InTime => RejectCode::Timeout,
        HasProposalCapacity => RejectCode::CapacityUnavailable,
        Trusted => RejectCode::InsufficientTrustScore,
        _ => RejectCode::Unauthorized,
    }
}
