//! Escrow: a trait for the party that holds the money, and an in-memory ledger.

use std::collections::HashMap;

use thiserror::Error;

use crate::amount::Amount;
use crate::id::{AgentUri, CommitmentId, Currency};
use crate::session::Payee;

/// Holds money in escrow. Each call is atomic.
pub trait EscrowAgent {
    /// Returns whether the depositor can pay this amount now.
    fn can_cover(&self, depositor: &AgentUri, amount: &Amount, currency: &Currency) -> bool;

    /// Takes the money from the depositor and holds it for this commitment.
    fn hold(&mut self, commitment: &CommitmentId, deposit: Deposit) -> Result<(), EscrowError>;

    /// Pays the held money out. This works once per commitment.
    fn release(&mut self, commitment: &CommitmentId, to: Payee) -> Result<(), EscrowError>;
}

/// A deposit for one commitment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deposit {
    /// The agent that pays the money in.
    pub depositor: AgentUri,
    /// The agent that receives the money if it is earned.
    pub beneficiary: AgentUri,
    /// The amount.
    pub amount: Amount,
    /// Its currency.
    pub currency: Currency,
}

/// Why an escrow operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EscrowError {
    /// The depositor has too little money in that currency.
    #[error("the depositor does not have enough money in that currency")]
    InsufficientFunds,
    /// Money was already held for this commitment.
    #[error("money was already held for this commitment")]
    AlreadyHeld,
    /// Nothing is held for this commitment, or the money was already paid out.
    #[error("no money is held for this commitment")]
    NotHeld,
    /// The account's balance would overflow.
    #[error("the account balance would overflow")]
    BalanceOverflow,
}

/// An in-memory ledger with one account per agent and currency. Balances are never negative, and each deposit is paid out
/// at most once.
#[derive(Clone, Debug, Default)]
pub struct EscrowLedger {
    accounts: HashMap<(AgentUri, Currency), u128>,
    /// The deposit of each commitment; `None` after it was paid out.
    deposits: HashMap<CommitmentId, Option<Deposit>>,
}

impl EscrowLedger {
    /// Adds new money to an account.
    pub fn credit(
        &mut self,
        agent: &AgentUri,
        amount: &Amount,
        currency: &Currency,
    ) -> Result<(), EscrowError> {
        let account = self.accounts.entry((agent.clone(), currency.clone())).or_default();
        *account = account.checked_add(amount.billionths()).ok_or(EscrowError::BalanceOverflow)?;
        Ok(())
    }

    /// Returns the balance of an account, in billionths of the currency unit.
    pub fn balance(&self, agent: &AgentUri, currency: &Currency) -> u128 {
        self.accounts.get(&(agent.clone(), currency.clone())).copied().unwrap_or(0)
    }

    /// Returns the deposit that is held for a commitment.
    pub fn deposit(&self, commitment: &CommitmentId) -> Option<&Deposit> {
        self.deposits.get(commitment)?.as_ref()
    }
}

impl EscrowAgent for EscrowLedger {
    fn can_cover(&self, depositor: &AgentUri, amount: &Amount, currency: &Currency) -> bool {
        self.balance(depositor, currency) >= amount.billionths()
    }

    fn hold(&mut self, commitment: &CommitmentId, deposit: Deposit) -> Result<(), EscrowError> {
        if self.deposits.contains_key(commitment) {
            return Err(EscrowError::AlreadyHeld);
        }
        let account = self.accounts.entry((deposit.depositor.clone(), deposit.currency.clone())).or_default();
        *account = account.checked_sub(deposit.amount.billionths()).ok_or(EscrowError::InsufficientFunds)?;
        self.deposits.insert(commitment.clone(), Some(deposit));
        Ok(())
    }

    fn release(&mut self, commitment: &CommitmentId, to: Payee) -> Result<(), EscrowError> {
        let slot = self.deposits.get_mut(commitment).ok_or(EscrowError::NotHeld)?;
        let deposit = slot.as_ref().ok_or(EscrowError::NotHeld)?;
        let payee = match to {
            Payee::Depositor => &deposit.depositor,
            Payee::Beneficiary => &deposit.beneficiary,
        };
        let account = self.accounts.entry((payee.clone(), deposit.currency.clone())).or_default();
        *account = account.checked_add(deposit.amount.billionths()).ok_or(EscrowError::BalanceOverflow)?;
        *slot = None;
        Ok(())
    }
}
