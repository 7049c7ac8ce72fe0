//! Requests that are repeated after a crash.

use asp::escrow::{EscrowAnswer, EscrowError, EscrowLedger, EscrowProvider as _, EscrowRequest, LedgerEntry};
use asp::session::Payee;
use proptest::prelude::*;
use testing::property::cases;

use super::money::{NOW, agent, amount, any_request, currency, deposit, funded_ledger, hold, release};

#[test]
fn a_repeated_request_tells_what_was_done_and_moves_no_money() {
    let mut ledger = funded_ledger("10");
    let request = hold(0, deposit(0, 1, "4.5", 0));
    assert_eq!(ledger.submit(&request, NOW), EscrowAnswer::Held);
    let after_hold = ledger.clone();
    assert_eq!(ledger.submit(&request, NOW + 5), EscrowAnswer::Held);
    assert_eq!(ledger.submit(&hold(0, deposit(0, 1, "4.50", 0)), NOW), EscrowAnswer::Held, "the same amount");
    assert_eq!(ledger, after_hold);
    let to_beneficiary = release(0, Payee::Beneficiary);
    assert_eq!(ledger.submit(&to_beneficiary, NOW), EscrowAnswer::Released(Payee::Beneficiary));
    let after_release = ledger.clone();
    assert_eq!(ledger.submit(&to_beneficiary, NOW + 5), EscrowAnswer::Released(Payee::Beneficiary));
    assert_eq!(
        ledger.submit(&request, NOW),
        EscrowAnswer::Released(Payee::Beneficiary),
        "it is not held again"
    );
    assert_eq!(ledger, after_release);
}

#[test]
fn a_request_that_contradicts_an_earlier_one_is_refused() {
    let mut ledger = funded_ledger("10");
    ledger.submit(&hold(0, deposit(0, 1, "4", 0)), NOW);
    let refused = |error| EscrowAnswer::Refused(error);
    for other in [deposit(0, 1, "5", 0), deposit(0, 2, "4", 0), deposit(2, 1, "4", 0), deposit(0, 1, "4", 1)]
    {
        assert_eq!(ledger.submit(&hold(0, other), NOW), refused(EscrowError::AlreadyHeld));
    }
    ledger.submit(&release(0, Payee::Depositor), NOW);
    let answer = ledger.submit(&release(0, Payee::Beneficiary), NOW);
    assert_eq!(answer, refused(EscrowError::AlreadyReleased));
    assert_eq!(ledger.submit(&release(2, Payee::Depositor), NOW), refused(EscrowError::NotHeld));
}

/// Otherwise a second session with the same commitment id would appear to be funded.
#[test]
fn the_escrow_of_one_session_does_not_fund_another_session() {
    let mut ledger = funded_ledger("10");
    assert_eq!(ledger.submit(&hold(0, deposit(0, 1, "10", 0)), NOW), EscrowAnswer::Held);
    let answer = ledger.submit(&hold(1, deposit(0, 1, "10", 0)), NOW);
    assert_eq!(answer, EscrowAnswer::Refused(EscrowError::InsufficientFunds));
}

#[test]
fn cover_reserves_nothing() {
    let mut ledger = funded_ledger("10");
    let before = ledger.clone();
    let cover =
        |units| EscrowRequest::Cover { depositor: agent(0), amount: amount(units), currency: currency(0) };
    assert_eq!(ledger.submit(&cover("10"), NOW), EscrowAnswer::Covered);
    let answer = ledger.submit(&cover("10.01"), NOW);
    assert_eq!(answer, EscrowAnswer::Refused(EscrowError::InsufficientFunds));
    assert_eq!(ledger, before);
}

/// Where a program crashes while it carries a request out.
#[derive(Clone, Copy, Debug)]
enum Crash {
    BeforeStore,
    AfterStore,
    AfterApply,
}

/// A node that stores entries and loses everything else in a crash.
struct CrashingNode {
    opening: EscrowLedger,
    stored: Vec<LedgerEntry>,
    ledger: EscrowLedger,
}

impl CrashingNode {
    fn submit(&mut self, request: &EscrowRequest, crash: Option<Crash>) -> Option<EscrowAnswer> {
        let (answer, entry) = self.ledger.answer(request, NOW);
        if matches!(crash, Some(Crash::BeforeStore)) {
            return self.restart();
        }
        self.stored.extend(entry.clone());
        if matches!(crash, Some(Crash::AfterStore)) {
            return self.restart();
        }
        if let Some(entry) = entry {
            self.ledger.apply(&entry).unwrap();
        }
        if matches!(crash, Some(Crash::AfterApply)) {
            return self.restart();
        }
        Some(answer)
    }

    fn restart(&mut self) -> Option<EscrowAnswer> {
        self.ledger = self.opening.clone();
        for entry in &self.stored {
            self.ledger.apply(entry).unwrap();
        }
        None
    }
}

fn any_crashes() -> impl Strategy<Value = Vec<Crash>> {
    let crash = proptest::sample::select(vec![Crash::BeforeStore, Crash::AfterStore, Crash::AfterApply]);
    proptest::collection::vec(crash, 0..4)
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn retries_after_crashes_end_like_a_run_without_crashes(steps in proptest::collection::vec((any_request(), any_crashes()), 0..40)) {
        let opening = funded_ledger("40");
        let mut node = CrashingNode { opening: opening.clone(), stored: Vec::new(), ledger: opening.clone() };
        let mut smooth = opening;
        for (request, crashes) in steps {
            for crash in crashes {
                prop_assert_eq!(node.submit(&request, Some(crash)), None);
            }
            let answer = node.submit(&request, None);
            prop_assert_eq!(answer, Some(smooth.submit(&request, NOW)), "{:?}", request);
            prop_assert_eq!(&node.ledger, &smooth);
        }
    }
}
