//! The table of the protocol: the page's eighteen numbered rows, what it allows without a number, and our decisions.

use std::borrow::Cow;

use super::facts::Fact::{self, *};
use super::state::State::{self, *};
use super::state::Timer::{self, *};
use super::table::Do::*;
use super::table::{Need, On, Row, Table};
use crate::Performative::{self, *};
use crate::error::Code;

/// The protocol's table. Rows stand in the order of the page; where two share a cell, the first that is chosen answers.
pub static PAGE: Table = Table::new(Cow::Borrowed(ROWS));

const ROWS: &[Row] = &[
    // 1. IDLE to INVITED
    message(1, &[Idle], Propose)
        .when(&[yes(Fact::Invitation)])
        .needs(&[need(FromInviter), need(Trusted)])
        .to(Invited)
        .does(&[OpenChannel, OpenProposal, Start(Timer::Invitation)]),
    // 2. INVITED to INTRODUCED, in three steps (D2)
    message(2, &[Invited], Accept)
        .needs(&[never(Own), never(Answered), need(Named), need(Trusted)])
        .does(&[NoteAnswer]),
    message(2, &[Invited], Inform)
        .when(&[yes(Identity), yes(Answered), no(SenderKnown), no(OtherKnown)])
        .needs(KNOWN_AND_TRUSTED)
        .does(&[NoteIdentity]),
    message(2, &[Invited], Inform)
        .when(&[yes(Identity), yes(Answered), no(SenderKnown), yes(OtherKnown)])
        .needs(KNOWN_AND_TRUSTED)
        .to(Introduced)
        .does(&[RecordIdentities, Stop(Timer::Invitation)]),
    message(2, &[Invited], Inform)
        .when(&[yes(Identity), yes(Answered), yes(SenderKnown)])
        .refused(Code::Duplicate),
    // 3. INVITED to FAILED
    message(3, &[Invited], Reject).needs(&[never(Own), need(Named)]).to(Failed).does(&[End]),
    expiry(3, &[Invited], Timer::Invitation).to(Failed).does(&[End]),
    // 4. INTRODUCED to CONVERSING
    message(4, &[Introduced], Propose).when(&[no(Fact::Invitation)]).needs(PROPOSAL).to(Conversing).does(&[
        Enable,
        Start(Session),
        OpenProposal,
    ]),
    message(4, &[Introduced], Query).to(Conversing).does(&[Enable, Start(Session)]),
    message(4, &[Introduced], Inform)
        .when(&[no(Fatal)])
        .needs(&[need(CardPinned)])
        .to(Conversing)
        .does(&[Enable, Start(Session)]),
    message(4, &[Introduced], Observe).needs(STANDARD).to(Conversing).does(&[Enable, Start(Session)]),
    // 5. CONVERSING to AGREEING
    message(5, &[Conversing], Commit)
        .needs(&[need(Standard), need(PartiesHere), need(Fresh)])
        .to(Agreeing)
        .does(&[Pend]),
    // 6. CONVERSING to CLOSED
    message(6, &[Conversing], Close).to(Closed).does(&[End]),
    // 7. CONVERSING to ESCALATED
    message(7, &[Conversing], Escalate).needs(STANDARD).to(Escalated).does(ESCALATION),
    // 8. CONVERSING to FAILED
    expiry(8, &[Conversing], Session).to(Failed).does(&[End]),
    // 9. AGREEING to EXECUTING
    message(9, &[Agreeing], Accept)
        .needs(&[need(Standard), never(Own), need(Named), need(Funded)])
        .to(Executing)
        .does(&[Bind, ActivateEscrow]),
    // 10. AGREEING to CONVERSING
    message(10, &[Agreeing], Reject)
        .needs(&[need(Standard), never(Own), need(Named)])
        .to(Conversing)
        .does(&[DropPending]),
    message(10, &[Agreeing], Counter)
        .needs(&[need(Standard), never(Own), need(Named), need(Fresh), need(Room)])
        .to(Conversing)
        .does(&[DropPending, OpenProposal]),
    // 11. EXECUTING to CLOSED: when both have asked, or at once (D4)
    message(11, &[Executing], Close).when(&[no(Unilateral), yes(OtherWishes)]).to(Closed).does(&[End]),
    message(11, &[Executing], Close).when(&[no(Unilateral), no(OtherWishes)]).does(&[NoteWish]),
    message(17, &[Executing], Close).when(&[yes(Unilateral)]).to(Closed).does(&[End]),
    // 12. EXECUTING to ESCALATED
    message(12, &[Executing], Escalate).needs(STANDARD).to(Escalated).does(ESCALATION),
    // 13. EXECUTING to FAILED
    message(13, &[Executing], Inform).when(&[yes(Work), yes(Fatal)]).to(Failed).does(&[End]),
    // 14. ESCALATED to the state before
    message(14, &[Escalated], Inform)
        .when(&[yes(Resolution)])
        .needs(&[need(Escalator)])
        .back()
        .does(&[Stop(Escalation), Thaw]),
    // 15. ESCALATED to CLOSED
    message(15, &[Escalated], Close).to(Closed).does(&[End]),
    // 16. Any to CLOSED: WITHDRAW (D3, D5); the page's list names it in CONVERSING only
    message(16, &[Conversing], Withdraw).needs(STANDARD).to(Closed).does(&[End]),
    message(16, &[Invited, Introduced, Agreeing, Executing, Escalated], Withdraw)
        .needs(STANDARD)
        .to(Closed)
        .does(&[End])
        .unlisted(),
    // 17. Any to CLOSED: CLOSE (D3); the page's list omits it in INVITED and INTRODUCED
    message(17, &[Agreeing], Close).to(Closed).does(&[End]),
    message(17, &[Invited, Introduced], Close).to(Closed).does(&[End]).unlisted(),
    // 18. Any to FAILED (D7)
    message(18, &[Introduced, Conversing], Inform)
        .when(&[yes(Fatal)])
        .needs(&[need(CardPinned)])
        .to(Failed)
        .does(&[End]),
    expiry(18, &[Agreeing, Executing], Session).to(Failed).does(&[End]),
    expiry(18, &[Escalated], Escalation).to(Failed).does(&[End]),
    Row::new(18, &State::LIVE, On::BrokenChain).to(Failed).does(&[End]),
    // Without a number: ESCALATE elsewhere (detail 8, D3)
    message(0, &[Agreeing], Escalate).needs(STANDARD).to(Escalated).does(ESCALATION),
    message(0, &[Invited, Introduced], Escalate).needs(STANDARD).to(Escalated).does(ESCALATION).unlisted(),
    // Without a number: what keeps CONVERSING (D10)
    message(0, &[Conversing], Propose).when(&[no(Fact::Invitation)]).needs(PROPOSAL).does(&[OpenProposal]),
    message(0, &[Conversing], Accept).needs(ANSWER).does(&[ShutProposal]),
    message(0, &[Conversing], Reject).needs(ANSWER).does(&[ShutProposal]),
    message(0, &[Conversing], Counter)
        .needs(&[need(Standard), need(Named), never(Own), need(InTime), need(Fresh)])
        .does(&[ShutProposal, OpenProposal]),
    message(0, &[Conversing], Inform).when(&[no(Fatal)]).needs(&[need(CardPinned)]),
    message(0, &[Conversing], Query),
    message(0, &[Conversing], Clarify).needs(STANDARD),
    message(0, &[Conversing], Delegate).needs(STANDARD),
    message(0, &[Conversing], Observe).needs(STANDARD),
    // Without a number: what keeps AGREEING (D11) and EXECUTING
    message(0, &[Agreeing], Clarify).needs(STANDARD),
    message(0, &[Executing], Inform).when(&[yes(Work), no(Fatal)]).does(&[NoteWork]),
    message(0, &[Executing], Query),
    // Without a number: a response that is overdue is told and moves nothing (D9)
    expiry(0, &[Invited, Introduced, Conversing, Agreeing, Executing], Response),
];

const STANDARD: &[Need] = &[need(Standard)];

const KNOWN_AND_TRUSTED: &[Need] = &[need(CardPinned), need(Trusted)];

const PROPOSAL: &[Need] = &[need(Standard), need(Fresh), need(Room)];

const ANSWER: &[Need] = &[need(Standard), need(Named), never(Own), need(InTime)];

const ESCALATION: &[super::Do] = &[Freeze, NotifyHandler, Start(Escalation)];

const fn message(number: u8, from: &'static [State], performative: Performative) -> Row {
    Row::new(number, from, On::Message(performative))
}

const fn expiry(number: u8, from: &'static [State], timer: Timer) -> Row {
    Row::new(number, from, On::Expiry(timer))
}

const fn yes(fact: Fact) -> (Fact, bool) {
    (fact, true)
}

const fn no(fact: Fact) -> (Fact, bool) {
    (fact, false)
}

const fn need(fact: Fact) -> Need {
    Need { fact, holds: true, code: code(fact) }
}

const fn never(fact: Fact) -> Need {
    Need { fact, holds: false, code: code(fact) }
}

/// The error of a message for which a fact is not as it must be.
const fn code(fact: Fact) -> Code {
    match fact {
        Answered | Named => Code::InvalidStateTransition,
        Fresh => Code::Duplicate,
        Funded => Code::BudgetExceeded,
        InTime => Code::Timeout,
        Room => Code::CapacityUnavailable,
        Trusted => Code::InsufficientTrustScore,
        _ => Code::Unauthorized,
    }
}
