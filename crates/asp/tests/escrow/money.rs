//! Agents, amounts and entries for the tests.

use asp::escrow::{Deposit, EscrowId, EscrowLedger, EscrowRequest, LedgerOperation};
use asp::session::Payee;
use asp::{AgentUri, Amount, CommitmentId, Currency, Reference, SessionId};
use proptest::prelude::*;
use seal::UnixMillis;

pub(super) const NOW: UnixMillis = UnixMillis::new(1_700_000_000_000);
pub(super) const AGENT_COUNT: usize = 3;
pub(super) const CURRENCY_COUNT: usize = 2;
pub(super) const COMMITMENT_COUNT: usize = 6;
pub(super) const BILLION: i128 = 1_000_000_000;

pub(super) fn agent(number: usize) -> AgentUri {
    AgentUri::parse(&format!("agent://agent{number}.example")).unwrap()
}

pub(super) fn currency(number: usize) -> Currency {
    Currency::parse(["USD", "EUR"][number]).unwrap()
}

pub(super) fn amount(text: &str) -> Amount {
    Amount::parse(text).unwrap()
}

pub(super) fn reference(number: usize) -> Reference {
    Reference::parse(&format!("payment-{number}")).unwrap()
}

/// Commitments 2n and 2n+1 have the same commitment id but belong to different sessions.
pub(super) fn escrow_id(number: usize) -> EscrowId {
    let session_id = SessionId::parse(&format!("01890a5d-ac96-774b-bcce-00000000000{}", number % 2)).unwrap();
    EscrowId { session_id, commitment_id: CommitmentId::parse(&format!("cmt_{}", number / 2)).unwrap() }
}

pub(super) fn deposit(from: usize, to: usize, units: &str, currency_number: usize) -> Deposit {
    Deposit {
        depositor: agent(from),
        beneficiary: agent(to),
        amount: amount(units),
        currency: currency(currency_number),
    }
}

pub(super) fn hold(number: usize, deposit: Deposit) -> EscrowRequest {
    EscrowRequest::Hold { id: escrow_id(number), deposit }
}

pub(super) fn release(number: usize, to: Payee) -> EscrowRequest {
    EscrowRequest::Release { id: escrow_id(number), to }
}

pub(super) fn credit(number: usize, to: usize, units: &str, currency_number: usize) -> LedgerOperation {
    LedgerOperation::Credit {
        reference: reference(number),
        agent: agent(to),
        amount: amount(units),
        currency: currency(currency_number),
    }
}

/// Returns a ledger in which each agent has this much money in each currency.
pub(super) fn funded_ledger(units: &str) -> EscrowLedger {
    let mut ledger = EscrowLedger::default();
    for (number, (agent, currency)) in (0..AGENT_COUNT)
        .flat_map(|agent| (0..CURRENCY_COUNT).map(move |currency| (agent, currency)))
        .enumerate()
    {
        let entry = ledger.plan(credit(number, agent, units, currency), NOW).unwrap();
        ledger.apply(&entry).unwrap();
    }
    ledger
}

pub(super) fn any_payee() -> impl Strategy<Value = Payee> {
    prop_oneof![Just(Payee::Depositor), Just(Payee::Beneficiary)]
}

pub(super) fn any_request() -> impl Strategy<Value = EscrowRequest> {
    prop_oneof![
        (0..COMMITMENT_COUNT, 0..AGENT_COUNT, 0..AGENT_COUNT, 1_u32..50, 0..CURRENCY_COUNT).prop_map(
            |(commitment, from, to, units, currency)| hold(
                commitment,
                deposit(from, to, &units.to_string(), currency)
            )
        ),
        (0..COMMITMENT_COUNT, any_payee()).prop_map(|(commitment, to)| release(commitment, to)),
    ]
}
