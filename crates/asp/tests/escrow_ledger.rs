//! The escrow ledger: balances are never negative, and no money is paid out twice or lost.

use asp::escrow::{Deposit, EscrowAgent, EscrowError, EscrowLedger};
use asp::session::Payee;
use asp::{AgentUri, Amount, CommitmentId, Currency};
use proptest::prelude::*;
use testing::property::cases;

#[test]
fn a_balance_covers_no_other_currency_or_agent_and_no_larger_amount() {
    let mut ledger = EscrowLedger::default();
    ledger.credit(&agent(0), &amount("100"), &currency(0)).unwrap();
    assert!(ledger.can_cover(&agent(0), &amount("100"), &currency(0)));
    assert!(!ledger.can_cover(&agent(0), &amount("100.000000001"), &currency(0)));
    assert!(!ledger.can_cover(&agent(0), &amount("0.000000001"), &currency(1)));
    assert!(!ledger.can_cover(&agent(1), &amount("1"), &currency(0)));
    assert_eq!(ledger.hold(&commitment(0), deposit(0, 1, "1", 1)), Err(EscrowError::InsufficientFunds));
    assert_eq!(ledger.deposit(&commitment(0)), None);
    assert_eq!(ledger.balance(&agent(0), &currency(0)), 100_000_000_000);
}

#[test]
fn a_released_deposit_is_neither_released_nor_held_again() {
    let mut ledger = EscrowLedger::default();
    ledger.credit(&agent(0), &amount("10"), &currency(0)).unwrap();
    assert_eq!(ledger.release(&commitment(0), Payee::Depositor), Err(EscrowError::NotHeld));
    ledger.hold(&commitment(0), deposit(0, 1, "4.5", 0)).unwrap();
    assert_eq!(ledger.hold(&commitment(0), deposit(0, 1, "1", 0)), Err(EscrowError::AlreadyHeld));
    assert_eq!(ledger.balance(&agent(0), &currency(0)), 5_500_000_000);
    ledger.release(&commitment(0), Payee::Beneficiary).unwrap();
    for to in [Payee::Beneficiary, Payee::Depositor] {
        assert_eq!(ledger.release(&commitment(0), to), Err(EscrowError::NotHeld));
    }
    assert_eq!(ledger.hold(&commitment(0), deposit(0, 1, "1", 0)), Err(EscrowError::AlreadyHeld));
    assert_eq!(ledger.balance(&agent(0), &currency(0)), 5_500_000_000);
    assert_eq!(ledger.balance(&agent(1), &currency(0)), 4_500_000_000);
}

#[derive(Clone, Debug)]
enum LedgerOperation {
    Credit { agent: usize, amount: u32, currency: usize },
    Hold { commitment: usize, from: usize, to: usize, amount: u32, currency: usize },
    Release { commitment: usize, to: Payee },
}

/// A naive ledger. It stores all operations and adds them up for every query.
#[derive(Default)]
struct NaiveLedger {
    /// The agent, the currency and the amount in billionths.
    credits: Vec<(usize, usize, i128)>,
    deposits: Vec<NaiveDeposit>,
}

struct NaiveDeposit {
    commitment: usize,
    from: usize,
    to: usize,
    amount: i128,
    currency: usize,
    released_to: Option<Payee>,
}

impl NaiveLedger {
    fn balance(&self, agent: usize, currency: usize) -> i128 {
        let credited: i128 = self
            .credits
            .iter()
            .filter(|credit| (credit.0, credit.1) == (agent, currency))
            .map(|credit| credit.2)
            .sum();
        let deposits = self.deposits.iter().filter(|deposit| deposit.currency == currency);
        let moved: i128 = deposits
            .map(|deposit| {
                let paid = if deposit.from == agent { deposit.amount } else { 0 };
                let payee = match deposit.released_to {
                    Some(Payee::Depositor) => Some(deposit.from),
                    Some(Payee::Beneficiary) => Some(deposit.to),
                    None => None,
                };
                let received = if payee == Some(agent) { deposit.amount } else { 0 };
                received - paid
            })
            .sum();
        credited + moved
    }

    fn apply(&mut self, operation: &LedgerOperation) -> Result<(), EscrowError> {
        match *operation {
            LedgerOperation::Credit { agent, amount, currency } => {
                self.credits.push((agent, currency, i128::from(amount) * 1_000_000_000));
            }
            LedgerOperation::Hold { commitment, from, to, amount, currency } => {
                let amount = i128::from(amount) * 1_000_000_000;
                if self.deposits.iter().any(|deposit| deposit.commitment == commitment) {
                    return Err(EscrowError::AlreadyHeld);
                }
                if self.balance(from, currency) < amount {
                    return Err(EscrowError::InsufficientFunds);
                }
                self.deposits.push(NaiveDeposit {
                    commitment,
                    from,
                    to,
                    amount,
                    currency,
                    released_to: None,
                });
            }
            LedgerOperation::Release { commitment, to } => {
                let mut deposits = self.deposits.iter_mut();
                let held = deposits
                    .find(|deposit| deposit.commitment == commitment && deposit.released_to.is_none());
                held.ok_or(EscrowError::NotHeld)?.released_to = Some(to);
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn the_ledger_agrees_with_a_naive_ledger(operations in proptest::collection::vec(operation_strategy(), 0..60)) {
        let mut ledger = EscrowLedger::default();
        let mut naive = NaiveLedger::default();
        for operation in &operations {
            if let LedgerOperation::Hold { from, amount: units, currency: currency_number, .. } = *operation {
                let is_covered = ledger.can_cover(&agent(from), &amount(&units.to_string()), &currency(currency_number));
                prop_assert_eq!(is_covered, naive.balance(from, currency_number) >= i128::from(units) * 1_000_000_000);
            }
            prop_assert_eq!(perform(&mut ledger, operation), naive.apply(operation), "{:?}", operation);
            for agent_number in 0..AGENT_COUNT {
                for currency_number in 0..CURRENCY_COUNT {
                    let expected = naive.balance(agent_number, currency_number);
                    prop_assert!(expected >= 0, "the naive ledger has a negative balance");
                    let balance = i128::try_from(ledger.balance(&agent(agent_number), &currency(currency_number))).unwrap();
                    prop_assert_eq!(balance, expected, "agent {} in {} after {:?}", agent_number, currency(currency_number), operation);
                }
            }
            for commitment_number in 0..COMMITMENT_COUNT {
                let deposit = naive.deposits.iter().find(|deposit| deposit.commitment == commitment_number && deposit.released_to.is_none());
                prop_assert_eq!(ledger.deposit(&commitment(commitment_number)).is_some(), deposit.is_some());
            }
        }
    }
}

const AGENT_COUNT: usize = 3;
const CURRENCY_COUNT: usize = 2;
const COMMITMENT_COUNT: usize = 6;

fn operation_strategy() -> impl Strategy<Value = LedgerOperation> {
    prop_oneof![
        2 => (0..AGENT_COUNT, 1_u32..50, 0..CURRENCY_COUNT)
            .prop_map(|(agent, amount, currency)| LedgerOperation::Credit { agent, amount, currency }),
        3 => (0..COMMITMENT_COUNT, 0..AGENT_COUNT, 0..AGENT_COUNT, 1_u32..50, 0..CURRENCY_COUNT).prop_map(
            |(commitment, from, to, amount, currency)| LedgerOperation::Hold { commitment, from, to, amount, currency }
        ),
        3 => (0..COMMITMENT_COUNT, any::<bool>()).prop_map(|(commitment, to_depositor)| LedgerOperation::Release {
            commitment,
            to: if to_depositor { Payee::Depositor } else { Payee::Beneficiary },
        }),
    ]
}

fn perform(ledger: &mut EscrowLedger, operation: &LedgerOperation) -> Result<(), EscrowError> {
    match *operation {
        LedgerOperation::Credit { agent: agent_number, amount: units, currency: currency_number } => {
            ledger.credit(&agent(agent_number), &amount(&units.to_string()), &currency(currency_number))
        }
        LedgerOperation::Hold {
            commitment: commitment_number,
            from,
            to,
            amount: units,
            currency: currency_number,
        } => ledger
            .hold(&commitment(commitment_number), deposit(from, to, &units.to_string(), currency_number)),
        LedgerOperation::Release { commitment: commitment_number, to } => {
            ledger.release(&commitment(commitment_number), to)
        }
    }
}

fn deposit(from: usize, to: usize, units: &str, currency_number: usize) -> Deposit {
    Deposit {
        depositor: agent(from),
        beneficiary: agent(to),
        amount: amount(units),
        currency: currency(currency_number),
    }
}

fn agent(number: usize) -> AgentUri {
    AgentUri::parse(&format!("agent://agent{number}.example")).unwrap()
}

fn commitment(number: usize) -> CommitmentId {
    CommitmentId::parse(&format!("cmt_{number}")).unwrap()
}

fn currency(number: usize) -> Currency {
    Currency::parse(["USD", "EUR"][number]).unwrap()
}

fn amount(text: &str) -> Amount {
    Amount::parse(text).unwrap()
}
