//! The ledger: balances that are computed from entries.

use std::collections::{BTreeMap, HashMap, HashSet};

use seal::UnixMillis;
use thiserror::Error;

use super::account::{Account, EscrowId, Posting};
use super::entry::{Deposit, LedgerEntry, LedgerOperation};
use super::provider::{EscrowAnswer, EscrowRequest};
use crate::amount::Amount;
use crate::id::{AgentUri, Currency, Reference};
use crate::session::Payee;

/// Why an escrow operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EscrowError {
    /// The agent has too little money in that currency.
    #[error("the depositor does not have enough money in that currency")]
    InsufficientFunds,
    /// Other money was already held for this commitment.
    #[error("money was already held for this commitment")]
    AlreadyHeld,
    /// No money was ever held for this commitment.
    #[error("no money is held for this commitment")]
    NotHeld,
    /// The money was already paid out.
    #[error("the money for this commitment was already paid out")]
    AlreadyReleased,
    /// A payment with this reference was already made.
    #[error("a payment with this reference was already made")]
    ReferenceUsed,
    /// The entry releases a deposit other than the one that is held.
    #[error("the entry does not match the deposit that is held")]
    DepositMismatch,
    /// A balance would overflow.
    #[error("the account balance would overflow")]
    BalanceOverflow,
}

/// The status of a commitment's escrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EscrowStatus {
    /// The money is held.
    Held,
    /// The money was paid out.
    Released(Payee),
}

/// An account and currency, with its balance in billionths.
type Balance = ((Account, Currency), i128);

/// A double-entry ledger. Balances of agents and of escrows are never negative, and each deposit is paid out at most once.
///
/// ```
/// use asp::escrow::{EscrowLedger, LedgerOperation};
/// use asp::{AgentUri, Amount, Currency, Reference};
/// use seal::UnixMillis;
/// let mut ledger = EscrowLedger::default();
/// let (agent, usd) = (AgentUri::parse("agent://acme.example").unwrap(), Currency::parse("USD").unwrap());
/// let credit = LedgerOperation::Credit {
///     reference: Reference::parse("payment-1").unwrap(),
///     agent: agent.clone(),
///     amount: Amount::parse("100").unwrap(),
///     currency: usd.clone(),
/// };
/// let entry = ledger.plan(credit, UnixMillis::new(0)).unwrap();
/// // Store the entry here.
/// ledger.apply(&entry).unwrap();
/// assert_eq!(ledger.balance(&agent, &usd), 100_000_000_000);
/// assert!(ledger.apply(&entry).is_err(), "a payment is made once");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EscrowLedger {
    /// The balance of each account and currency, in billionths. Accounts with nothing in them are left out.
    balances: BTreeMap<(Account, Currency), i128>,
    deposits: HashMap<EscrowId, (Deposit, EscrowStatus)>,
    used_references: HashSet<Reference>,
}

impl EscrowLedger {
    /// Creates a ledger from stored entries, in the order in which they were applied.
    pub fn replay<'e>(entries: impl IntoIterator<Item = &'e LedgerEntry>) -> Result<Self, EscrowError> {
        let mut ledger = Self::default();
        for entry in entries {
            ledger.apply(entry)?;
        }
        Ok(ledger)
    }

    /// Creates an entry, if it can be applied now.
    pub fn plan(&self, operation: LedgerOperation, now: UnixMillis) -> Result<LedgerEntry, EscrowError> {
        let entry = LedgerEntry { at: now, operation };
        self.check(&entry)?;
        Ok(entry)
    }

    /// Applies an entry. Fails, and changes nothing, if it cannot be applied.
    pub fn apply(&mut self, entry: &LedgerEntry) -> Result<(), EscrowError> {
        let new_balances = self.check(entry)?;
        match &entry.operation {
            LedgerOperation::Credit { reference, .. } | LedgerOperation::Debit { reference, .. } => {
                self.used_references.insert(reference.clone());
            }
            LedgerOperation::Hold { id, deposit } => {
                self.deposits.insert(id.clone(), (deposit.clone(), EscrowStatus::Held));
            }
            LedgerOperation::Release { id, deposit, to } => {
                self.deposits.insert(id.clone(), (deposit.clone(), EscrowStatus::Released(*to)));
            }
        }
        for (account, balance) in new_balances {
            if balance == 0 {
                self.balances.remove(&account);
            } else {
                self.balances.insert(account, balance);
            }
        }
        Ok(())
    }

    /// Returns the answer to a request, and the entry to store and apply before the answer is used. There is no entry if the
    /// request was carried out before, or cannot be carried out.
    pub fn answer(&self, request: &EscrowRequest, now: UnixMillis) -> (EscrowAnswer, Option<LedgerEntry>) {
        let planned = match request {
            EscrowRequest::Cover { depositor, amount, currency } => {
                return if self.can_cover(depositor, amount, currency) {
                    (EscrowAnswer::Covered, None)
                } else {
                    (EscrowAnswer::Refused(EscrowError::InsufficientFunds), None)
                };
            }
            EscrowRequest::Hold { id, deposit } => match self.deposits.get(id) {
                Some((held, status)) if held.is_equivalent(deposit) => return ((*status).into(), None),
                _ => self.plan(LedgerOperation::Hold { id: id.clone(), deposit: deposit.clone() }, now),
            },
            EscrowRequest::Release { id, to } => match self.deposits.get(id) {
                None => Err(EscrowError::NotHeld),
                Some((_, EscrowStatus::Released(payee))) if payee == to => {
                    return (EscrowAnswer::Released(*to), None);
                }
                Some((deposit, _)) => {
                    let (id, deposit) = (id.clone(), deposit.clone());
                    self.plan(LedgerOperation::Release { id, deposit, to: *to }, now)
                }
            },
        };
        match (planned, request) {
            (Err(error), _) => (EscrowAnswer::Refused(error), None),
            (Ok(entry), EscrowRequest::Release { to, .. }) => (EscrowAnswer::Released(*to), Some(entry)),
            (Ok(entry), _) => (EscrowAnswer::Held, Some(entry)),
        }
    }

    /// Returns whether the depositor can pay this amount now.
    pub fn can_cover(&self, depositor: &AgentUri, amount: &Amount, currency: &Currency) -> bool {
        self.balance(depositor, currency) >= amount.billionths()
    }

    /// Returns the balance of an agent, in billionths of the currency unit.
    pub fn balance(&self, agent: &AgentUri, currency: &Currency) -> u128 {
        self.account_balance(&Account::Agent(agent.clone()), currency).unsigned_abs()
    }

    /// Returns the balance of an account, in billionths of the currency unit. Only [`Account::Outside`] can be negative.
    pub fn account_balance(&self, account: &Account, currency: &Currency) -> i128 {
        self.balances.get(&(account.clone(), currency.clone())).copied().unwrap_or(0)
    }

    /// Returns all accounts that are not empty, with their currencies and balances in billionths.
    pub fn accounts(&self) -> impl Iterator<Item = (&Account, &Currency, i128)> {
        self.balances.iter().map(|((account, currency), balance)| (account, currency, *balance))
    }

    /// Returns the deposit of a commitment, and whether it is held or paid out.
    pub fn deposit(&self, id: &EscrowId) -> Option<(&Deposit, EscrowStatus)> {
        self.deposits.get(id).map(|(deposit, status)| (deposit, *status))
    }

    /// Returns the new balances, if the entry can be applied.
    fn check(&self, entry: &LedgerEntry) -> Result<[Balance; 2], EscrowError> {
        match &entry.operation {
            LedgerOperation::Credit { reference, .. } | LedgerOperation::Debit { reference, .. } => {
                if self.used_references.contains(reference) {
                    return Err(EscrowError::ReferenceUsed);
                }
            }
            LedgerOperation::Hold { id, .. } => {
                if self.deposits.contains_key(id) {
                    return Err(EscrowError::AlreadyHeld);
                }
            }
            LedgerOperation::Release { id, deposit, .. } => match self.deposits.get(id) {
                None => return Err(EscrowError::NotHeld),
                Some((_, EscrowStatus::Released(_))) => return Err(EscrowError::AlreadyReleased),
                Some((held, EscrowStatus::Held)) if !held.is_equivalent(deposit) => {
                    return Err(EscrowError::DepositMismatch);
                }
                Some(_) => {}
            },
        }
        let [payer, payee] = entry.postings().map(|posting| self.balance_after(posting));
        Ok([payer?, payee?])
    }

    fn balance_after(&self, posting: Posting) -> Result<Balance, EscrowError> {
        let balance = self.account_balance(&posting.account, &posting.currency);
        let balance = balance.checked_add(posting.billionths).ok_or(EscrowError::BalanceOverflow)?;
        if balance < 0 && posting.account != Account::Outside {
            return Err(EscrowError::InsufficientFunds);
        }
        Ok(((posting.account, posting.currency), balance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10^14 payments of the highest amount lead here, so the test sets the balance.
    #[test]
    fn an_entry_that_overflows_a_balance_is_refused_and_changes_nothing() {
        let (agent, currency) = (AgentUri::parse("agent://a").unwrap(), Currency::parse("USD").unwrap());
        for (account, balance) in [(Account::Agent(agent.clone()), i128::MAX), (Account::Outside, i128::MIN)]
        {
            let mut ledger = EscrowLedger::default();
            ledger.balances.insert((account, currency.clone()), balance);
            let before = ledger.clone();
            let operation = LedgerOperation::Credit {
                reference: Reference::parse("payment-1").unwrap(),
                agent: agent.clone(),
                amount: Amount::parse("0.000000001").unwrap(),
                currency: currency.clone(),
            };
            let entry = LedgerEntry { at: UnixMillis::new(0), operation };
            assert_eq!(ledger.apply(&entry), Err(EscrowError::BalanceOverflow));
            assert_eq!(ledger, before);
        }
    }
}
