//! The ledger against a naive one.

use asp::escrow::{Account, EscrowError, EscrowLedger, EscrowStatus, LedgerEntry, LedgerOperation};
use asp::session::Payee;
use proptest::prelude::*;
use testing::property::cases;

use super::money::{
    AGENT_COUNT, BILLION, COMMITMENT_COUNT, CURRENCY_COUNT, NOW, agent, amount, any_payee, credit, currency,
    deposit, escrow_id, reference,
};

fn perform(ledger: &mut EscrowLedger, operation: LedgerOperation) -> Result<LedgerEntry, EscrowError> {
    let entry = ledger.plan(operation, NOW)?;
    ledger.apply(&entry)?;
    Ok(entry)
}

fn hold(number: usize, units: &str, currency_number: usize) -> LedgerOperation {
    LedgerOperation::Hold { id: escrow_id(number), deposit: deposit(0, 1, units, currency_number) }
}

fn release(number: usize, units: &str, to: Payee) -> LedgerOperation {
    LedgerOperation::Release { id: escrow_id(number), deposit: deposit(0, 1, units, 0), to }
}

#[test]
fn a_balance_covers_no_other_currency_or_agent_and_no_larger_amount() {
    let mut ledger = EscrowLedger::default();
    perform(&mut ledger, credit(0, 0, "100", 0)).unwrap();
    assert!(ledger.can_cover(&agent(0), &amount("100"), &currency(0)));
    assert!(!ledger.can_cover(&agent(0), &amount("100.000000001"), &currency(0)));
    assert!(!ledger.can_cover(&agent(0), &amount("0.000000001"), &currency(1)));
    assert!(!ledger.can_cover(&agent(1), &amount("1"), &currency(0)));
    assert_eq!(perform(&mut ledger, hold(0, "1", 1)), Err(EscrowError::InsufficientFunds));
    assert_eq!(ledger.deposit(&escrow_id(0)), None);
    assert_eq!(ledger.balance(&agent(0), &currency(0)), 100_000_000_000);
}

#[test]
fn a_released_deposit_is_neither_released_nor_held_again() {
    let mut ledger = EscrowLedger::default();
    perform(&mut ledger, credit(0, 0, "10", 0)).unwrap();
    assert_eq!(perform(&mut ledger, release(0, "4.5", Payee::Depositor)), Err(EscrowError::NotHeld));
    perform(&mut ledger, hold(0, "4.5", 0)).unwrap();
    assert_eq!(perform(&mut ledger, hold(0, "1", 0)), Err(EscrowError::AlreadyHeld));
    assert_eq!(ledger.balance(&agent(0), &currency(0)), 5_500_000_000);
    assert_eq!(perform(&mut ledger, release(0, "5", Payee::Depositor)), Err(EscrowError::DepositMismatch));
    let entry = perform(&mut ledger, release(0, "4.50", Payee::Beneficiary)).unwrap();
    assert_eq!(ledger.apply(&entry), Err(EscrowError::AlreadyReleased));
    for to in [Payee::Beneficiary, Payee::Depositor] {
        assert_eq!(perform(&mut ledger, release(0, "4.5", to)), Err(EscrowError::AlreadyReleased));
    }
    assert_eq!(perform(&mut ledger, hold(0, "1", 0)), Err(EscrowError::AlreadyHeld));
    assert_eq!(ledger.balance(&agent(0), &currency(0)), 5_500_000_000);
    assert_eq!(ledger.balance(&agent(1), &currency(0)), 4_500_000_000);
}

#[test]
fn a_payment_with_the_same_reference_is_made_once() {
    let mut ledger = EscrowLedger::default();
    let entry = perform(&mut ledger, credit(0, 0, "10", 0)).unwrap();
    assert_eq!(ledger.apply(&entry), Err(EscrowError::ReferenceUsed));
    let debit = |number, units| LedgerOperation::Debit {
        reference: reference(number),
        agent: agent(0),
        amount: amount(units),
        currency: currency(0),
    };
    assert_eq!(perform(&mut ledger, debit(0, "1")), Err(EscrowError::ReferenceUsed));
    assert_eq!(perform(&mut ledger, debit(1, "10.000000001")), Err(EscrowError::InsufficientFunds));
    perform(&mut ledger, debit(1, "10")).unwrap();
    assert_eq!(ledger.accounts().count(), 0, "all money is outside");
}

/// The same commitment id in another session is another commitment.
#[test]
fn sessions_do_not_share_their_escrows() {
    let mut ledger = EscrowLedger::default();
    perform(&mut ledger, credit(0, 0, "10", 0)).unwrap();
    assert_eq!(escrow_id(0).commitment_id, escrow_id(1).commitment_id);
    perform(&mut ledger, hold(0, "6", 0)).unwrap();
    assert_eq!(perform(&mut ledger, hold(1, "6", 0)), Err(EscrowError::InsufficientFunds));
    assert_eq!(perform(&mut ledger, release(1, "6", Payee::Beneficiary)), Err(EscrowError::NotHeld));
    perform(&mut ledger, hold(1, "4", 0)).unwrap();
    assert_eq!(ledger.account_balance(&Account::Escrow(escrow_id(0)), &currency(0)), 6 * BILLION);
}

/// The unit test in `ledger.rs` shows what happens at the end of the range, which takes 10^14 payments to reach.
#[test]
fn the_highest_amounts_add_up_exactly() {
    let mut ledger = EscrowLedger::default();
    for number in 0..1_000 {
        perform(&mut ledger, credit(number, 0, "999999999999999.999999999", 0)).unwrap();
    }
    assert_eq!(ledger.balance(&agent(0), &currency(0)), 999_999_999_999_999_999_999_999 * 1_000);
    let outside = ledger.account_balance(&Account::Outside, &currency(0));
    assert_eq!(outside, -999_999_999_999_999_999_999_999 * 1_000);
}

#[derive(Clone, Debug)]
enum Step {
    Credit { agent: usize, units: u32, currency: usize },
    Debit { agent: usize, units: u32, currency: usize },
    Hold { commitment: usize, from: usize, to: usize, units: u32, currency: usize },
    Release { commitment: usize, to: Payee },
}

/// A naive ledger. It stores all payments and deposits, and adds them up for every query.
#[derive(Default)]
struct NaiveLedger {
    /// The agent, the currency and the amount in billionths, negative for debits.
    payments: Vec<(usize, usize, i128)>,
    deposits: Vec<NaiveDeposit>,
}

struct NaiveDeposit {
    commitment: usize,
    from: usize,
    to: usize,
    units: u32,
    currency: usize,
    released_to: Option<Payee>,
}

impl NaiveLedger {
    fn balance(&self, agent: usize, currency: usize) -> i128 {
        let payments = self.payments.iter().filter(|payment| (payment.0, payment.1) == (agent, currency));
        let paid_in: i128 = payments.map(|payment| payment.2).sum();
        let deposits = self.deposits.iter().filter(|deposit| deposit.currency == currency);
        let moved: i128 = deposits
            .map(|deposit| {
                let payee = match deposit.released_to {
                    Some(Payee::Depositor) => Some(deposit.from),
                    Some(Payee::Beneficiary) => Some(deposit.to),
                    None => None,
                };
                let sign = i128::from(payee == Some(agent)) - i128::from(deposit.from == agent);
                sign * i128::from(deposit.units) * BILLION
            })
            .sum();
        paid_in + moved
    }

    fn apply(&mut self, step: &Step) -> Result<(), EscrowError> {
        match *step {
            Step::Credit { agent, units, currency } => {
                self.payments.push((agent, currency, i128::from(units) * BILLION));
            }
            Step::Debit { agent, units, currency } => {
                let amount = i128::from(units) * BILLION;
                if self.balance(agent, currency) < amount {
                    return Err(EscrowError::InsufficientFunds);
                }
                self.payments.push((agent, currency, -amount));
            }
            Step::Hold { commitment, from, to, units, currency } => {
                if self.deposits.iter().any(|deposit| deposit.commitment == commitment) {
                    return Err(EscrowError::AlreadyHeld);
                }
                if self.balance(from, currency) < i128::from(units) * BILLION {
                    return Err(EscrowError::InsufficientFunds);
                }
                self.deposits.push(NaiveDeposit { commitment, from, to, units, currency, released_to: None });
            }
            Step::Release { commitment, to } => {
                let deposit = self.deposits.iter_mut().find(|deposit| deposit.commitment == commitment);
                let deposit = deposit.ok_or(EscrowError::NotHeld)?;
                if deposit.released_to.is_some() {
                    return Err(EscrowError::AlreadyReleased);
                }
                deposit.released_to = Some(to);
            }
        }
        Ok(())
    }
}

impl Step {
    /// Returns the operation. A release without a deposit gets an invented one.
    fn operation(&self, payment: usize, naive: &NaiveLedger) -> LedgerOperation {
        match *self {
            Self::Credit { agent, units, currency } => credit(payment, agent, &units.to_string(), currency),
            Self::Debit { agent: payer, units, currency: currency_number } => LedgerOperation::Debit {
                reference: reference(payment),
                agent: agent(payer),
                amount: amount(&units.to_string()),
                currency: currency(currency_number),
            },
            Self::Hold { commitment, from, to, units, currency } => LedgerOperation::Hold {
                id: escrow_id(commitment),
                deposit: deposit(from, to, &units.to_string(), currency),
            },
            Self::Release { commitment, to } => {
                let known = naive.deposits.iter().find(|deposit| deposit.commitment == commitment);
                let held = known.map_or_else(
                    || deposit(0, 1, "1", 0),
                    |known| deposit(known.from, known.to, &known.units.to_string(), known.currency),
                );
                LedgerOperation::Release { id: escrow_id(commitment), deposit: held, to }
            }
        }
    }
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (0..AGENT_COUNT, 1_u32..50, 0..CURRENCY_COUNT).prop_map(|(agent, units, currency)| Step::Credit { agent, units, currency }),
        1 => (0..AGENT_COUNT, 1_u32..50, 0..CURRENCY_COUNT).prop_map(|(agent, units, currency)| Step::Debit { agent, units, currency }),
        3 => (0..COMMITMENT_COUNT, 0..AGENT_COUNT, 0..AGENT_COUNT, 1_u32..50, 0..CURRENCY_COUNT).prop_map(
            |(commitment, from, to, units, currency)| Step::Hold { commitment, from, to, units, currency }
        ),
        3 => (0..COMMITMENT_COUNT, any_payee()).prop_map(|(commitment, to)| Step::Release { commitment, to }),
    ]
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn the_ledger_agrees_with_a_naive_ledger_and_with_its_replay(steps in proptest::collection::vec(any_step(), 0..60)) {
        let (mut ledger, mut naive, mut stored) = (EscrowLedger::default(), NaiveLedger::default(), Vec::new());
        for (number, step) in steps.iter().enumerate() {
            let before = ledger.clone();
            let result = perform(&mut ledger, step.operation(number, &naive));
            prop_assert_eq!(result.as_ref().map(|_| ()).map_err(|error| *error), naive.apply(step), "{:?}", step);
            if let Ok(entry) = result {
                let total: i128 = entry.postings().iter().map(|posting| posting.billionths).sum();
                prop_assert_eq!(total, 0);
                stored.push(entry.to_json());
            } else {
                prop_assert_eq!(&ledger, &before, "a refused entry changes nothing");
            }
            for currency_number in 0..CURRENCY_COUNT {
                for agent_number in 0..AGENT_COUNT {
                    let expected = naive.balance(agent_number, currency_number);
                    let balance = i128::try_from(ledger.balance(&agent(agent_number), &currency(currency_number))).unwrap();
                    prop_assert_eq!(balance, expected, "agent {} after {:?}", agent_number, step);
                }
                let in_currency = ledger.accounts().filter(|(_, account_currency, _)| **account_currency == currency(currency_number));
                prop_assert_eq!(in_currency.map(|(_, _, balance)| balance).sum::<i128>(), 0);
            }
            for (account, _, balance) in ledger.accounts() {
                prop_assert!(balance > 0 || *account == Account::Outside, "{}: {}", account, balance);
            }
            for commitment in 0..COMMITMENT_COUNT {
                let expected = naive.deposits.iter().find(|deposit| deposit.commitment == commitment);
                let expected = expected.map(|deposit| deposit.released_to.map_or(EscrowStatus::Held, EscrowStatus::Released));
                prop_assert_eq!(ledger.deposit(&escrow_id(commitment)).map(|(_, status)| status), expected);
            }
        }
        let entries: Vec<_> = stored.iter().map(|text| LedgerEntry::parse(text).unwrap()).collect();
        prop_assert_eq!(EscrowLedger::replay(&entries).unwrap(), ledger);
    }
}
