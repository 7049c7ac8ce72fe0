//! Money that is held: never negative, never given out twice, never lost.

use asp::escrow::{Deposit, EscrowAgent, EscrowError, Ledger};
use asp::session::Payee;
use asp::{AgentUri, Amount, CommitmentId, Currency};
use proptest::prelude::*;
use testing::property::cases;

#[test]
fn money_in_another_currency_covers_nothing() {
    let mut ledger = Ledger::default();
    ledger.credit(&agent(0), &amount("100"), &currency(0)).unwrap();
    assert!(ledger.covers(&agent(0), &amount("100"), &currency(0)));
    assert!(!ledger.covers(&agent(0), &amount("100.000000001"), &currency(0)));
    assert!(!ledger.covers(&agent(0), &amount("0.000000001"), &currency(1)));
    assert!(!ledger.covers(&agent(1), &amount("1"), &currency(0)));
    assert_eq!(ledger.hold(&commitment(0), deposit(0, 1, "1", 1)), Err(EscrowError::NotCovered));
    assert_eq!(ledger.held(&commitment(0)), None);
    assert_eq!(ledger.balance(&agent(0), &currency(0)), 100_000_000_000);
}

#[test]
fn what_was_given_out_is_neither_given_nor_held_again() {
    let mut ledger = Ledger::default();
    ledger.credit(&agent(0), &amount("10"), &currency(0)).unwrap();
    assert_eq!(ledger.release(&commitment(0), Payee::Depositor), Err(EscrowError::NothingHeld));
    ledger.hold(&commitment(0), deposit(0, 1, "4.5", 0)).unwrap();
    assert_eq!(ledger.hold(&commitment(0), deposit(0, 1, "1", 0)), Err(EscrowError::HeldBefore));
    assert_eq!(ledger.balance(&agent(0), &currency(0)), 5_500_000_000);
    ledger.release(&commitment(0), Payee::Beneficiary).unwrap();
    for to in [Payee::Beneficiary, Payee::Depositor] {
        assert_eq!(ledger.release(&commitment(0), to), Err(EscrowError::NothingHeld));
    }
    assert_eq!(ledger.hold(&commitment(0), deposit(0, 1, "1", 0)), Err(EscrowError::HeldBefore));
    assert_eq!(ledger.balance(&agent(0), &currency(0)), 5_500_000_000);
    assert_eq!(ledger.balance(&agent(1), &currency(0)), 4_500_000_000);
}

#[derive(Clone, Debug)]
enum Act {
    Credit { agent: usize, amount: u32, currency: usize },
    Hold { commitment: usize, from: usize, to: usize, amount: u32, currency: usize },
    Release { commitment: usize, to: Payee },
}

/// The same in the plainest way: a list of what happened, counted up anew for every question.
#[derive(Default)]
struct Naive {
    credits: Vec<(usize, usize, i128)>,
    holds: Vec<Held>,
}

struct Held {
    commitment: usize,
    from: usize,
    to: usize,
    amount: i128,
    currency: usize,
    given: Option<Payee>,
}

impl Naive {
    fn balance(&self, agent: usize, currency: usize) -> i128 {
        let credited: i128 =
            self.credits.iter().filter(|one| (one.0, one.1) == (agent, currency)).map(|one| one.2).sum();
        let holds = self.holds.iter().filter(|held| held.currency == currency);
        let moved: i128 = holds
            .map(|held| {
                let paid = if held.from == agent { held.amount } else { 0 };
                let payee = match held.given {
                    Some(Payee::Depositor) => Some(held.from),
                    Some(Payee::Beneficiary) => Some(held.to),
                    None => None,
                };
                let got = if payee == Some(agent) { held.amount } else { 0 };
                got - paid
            })
            .sum();
        credited + moved
    }

    fn act(&mut self, act: &Act) -> Result<(), EscrowError> {
        match *act {
            Act::Credit { agent, amount, currency } => {
                self.credits.push((agent, currency, i128::from(amount) * 1_000_000_000));
            }
            Act::Hold { commitment, from, to, amount, currency } => {
                let amount = i128::from(amount) * 1_000_000_000;
                if self.holds.iter().any(|held| held.commitment == commitment) {
                    return Err(EscrowError::HeldBefore);
                }
                if self.balance(from, currency) < amount {
                    return Err(EscrowError::NotCovered);
                }
                self.holds.push(Held { commitment, from, to, amount, currency, given: None });
            }
            Act::Release { commitment, to } => {
                let mut holds = self.holds.iter_mut();
                let held = holds.find(|held| held.commitment == commitment && held.given.is_none());
                held.ok_or(EscrowError::NothingHeld)?.given = Some(to);
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn the_ledger_counts_like_a_list_of_what_happened(acts in proptest::collection::vec(act(), 0..60)) {
        let mut ledger = Ledger::default();
        let mut naive = Naive::default();
        for act in &acts {
            if let Act::Hold { from, amount: sum, currency: of, .. } = *act {
                let covered = ledger.covers(&agent(from), &amount(&sum.to_string()), &currency(of));
                prop_assert_eq!(covered, naive.balance(from, of) >= i128::from(sum) * 1_000_000_000);
            }
            prop_assert_eq!(perform(&mut ledger, act), naive.act(act), "{:?}", act);
            for who in 0..AGENTS {
                for of in 0..CURRENCIES {
                    let expected = naive.balance(who, of);
                    prop_assert!(expected >= 0, "the plain one is wrong itself");
                    let balance = i128::try_from(ledger.balance(&agent(who), &currency(of))).unwrap();
                    prop_assert_eq!(balance, expected, "agent {} in {} after {:?}", who, currency(of), act);
                }
            }
            for name in 0..COMMITMENTS {
                let held = naive.holds.iter().find(|held| held.commitment == name && held.given.is_none());
                prop_assert_eq!(ledger.held(&commitment(name)).is_some(), held.is_some());
            }
        }
    }
}

const AGENTS: usize = 3;
const CURRENCIES: usize = 2;
const COMMITMENTS: usize = 6;

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        2 => (0..AGENTS, 1_u32..50, 0..CURRENCIES)
            .prop_map(|(agent, amount, currency)| Act::Credit { agent, amount, currency }),
        3 => (0..COMMITMENTS, 0..AGENTS, 0..AGENTS, 1_u32..50, 0..CURRENCIES).prop_map(
            |(commitment, from, to, amount, currency)| Act::Hold { commitment, from, to, amount, currency }
        ),
        3 => (0..COMMITMENTS, any::<bool>()).prop_map(|(commitment, back)| Act::Release {
            commitment,
            to: if back { Payee::Depositor } else { Payee::Beneficiary },
        }),
    ]
}

fn perform(ledger: &mut Ledger, act: &Act) -> Result<(), EscrowError> {
    match *act {
        Act::Credit { agent: who, amount: sum, currency: of } => {
            ledger.credit(&agent(who), &amount(&sum.to_string()), &currency(of))
        }
        Act::Hold { commitment: name, from, to, amount: sum, currency: of } => {
            ledger.hold(&commitment(name), deposit(from, to, &sum.to_string(), of))
        }
        Act::Release { commitment: name, to } => ledger.release(&commitment(name), to),
    }
}

fn deposit(from: usize, to: usize, sum: &str, of: usize) -> Deposit {
    Deposit { depositor: agent(from), beneficiary: agent(to), amount: amount(sum), currency: currency(of) }
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
