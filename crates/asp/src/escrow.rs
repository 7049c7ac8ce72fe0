//! Money that is held until a promise is kept: a trait for whoever holds it, and a ledger in memory.

use std::collections::HashMap;

use thiserror::Error;

use crate::amount::Amount;
use crate::id::{AgentUri, CommitmentId, Currency};
use crate::session::Payee;

/// Whoever holds the money. Each call is one transaction: done whole, or not at all.
pub trait EscrowAgent {
    /// Whether that much can be held now.
    fn covers(&self, depositor: &AgentUri, amount: &Amount, currency: &Currency) -> bool;

    /// Takes the money from the depositor and holds it for this commitment.
    fn hold(&mut self, commitment: &CommitmentId, deposit: Deposit) -> Result<(), EscrowError>;

    /// Gives the money out, once.
    fn release(&mut self, commitment: &CommitmentId, to: Payee) -> Result<(), EscrowError>;
}

/// What is paid in, by whom, for whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deposit {
    /// Who pays it in.
    pub depositor: AgentUri,
    /// Who earns it.
    pub beneficiary: AgentUri,
    /// How much.
    pub amount: Amount,
    /// Of what.
    pub currency: Currency,
}

/// Why money did not move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EscrowError {
    /// The depositor has less than that, in that currency.
    #[error("the depositor does not have that much in that currency")]
    NotCovered,
    /// For this commitment money is or was held already.
    #[error("money was held for this commitment before")]
    HeldBefore,
    /// For this commitment nothing is held, or it was given out already.
    #[error("nothing is held for this commitment any more")]
    NothingHeld,
    /// The account would hold more than can be counted.
    #[error("the account would hold more than can be counted")]
    TooMuch,
}

/// A ledger in memory: accounts by agent and currency, never negative; deposits that are given out once.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    accounts: HashMap<(AgentUri, Currency), u128>,
    /// `None` once it was given out.
    deposits: HashMap<CommitmentId, Option<Deposit>>,
}

impl Ledger {
    /// Puts money into an account from outside.
    pub fn credit(
        &mut self,
        agent: &AgentUri,
        amount: &Amount,
        currency: &Currency,
    ) -> Result<(), EscrowError> {
        let account = self.accounts.entry((agent.clone(), currency.clone())).or_default();
        *account = account.checked_add(amount.billionths()).ok_or(EscrowError::TooMuch)?;
        Ok(())
    }

    /// What an account holds, in billionths.
    pub fn balance(&self, agent: &AgentUri, currency: &Currency) -> u128 {
        self.accounts.get(&(agent.clone(), currency.clone())).copied().unwrap_or(0)
    }

    /// What is held for a commitment.
    pub fn held(&self, commitment: &CommitmentId) -> Option<&Deposit> {
        self.deposits.get(commitment)?.as_ref()
    }
}

impl EscrowAgent for Ledger {
    fn covers(&self, depositor: &AgentUri, amount: &Amount, currency: &Currency) -> bool {
        self.balance(depositor, currency) >= amount.billionths()
    }

    fn hold(&mut self, commitment: &CommitmentId, deposit: Deposit) -> Result<(), EscrowError> {
        if self.deposits.contains_key(commitment) {
            return Err(EscrowError::HeldBefore);
        }
        let account = self.accounts.entry((deposit.depositor.clone(), deposit.currency.clone())).or_default();
        *account = account.checked_sub(deposit.amount.billionths()).ok_or(EscrowError::NotCovered)?;
        self.deposits.insert(commitment.clone(), Some(deposit));
        Ok(())
    }

    fn release(&mut self, commitment: &CommitmentId, to: Payee) -> Result<(), EscrowError> {
        let held = self.deposits.get_mut(commitment).ok_or(EscrowError::NothingHeld)?;
        let deposit = held.as_ref().ok_or(EscrowError::NothingHeld)?;
        let payee = match to {
            Payee::Depositor => &deposit.depositor,
            Payee::Beneficiary => &deposit.beneficiary,
        };
        let account = self.accounts.entry((payee.clone(), deposit.currency.clone())).or_default();
        *account = account.checked_add(deposit.amount.billionths()).ok_or(EscrowError::TooMuch)?;
        *held = None;
        Ok(())
    }
}
