//! The entries of the ledger.

use seal::UnixMillis;

use super::account::{Account, EscrowId, Posting};
use crate::amount::Amount;
use crate::id::{AgentUri, Currency, Reference};
use crate::session::Payee;

/// One movement of money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerEntry {
    /// When it was made.
    pub at: UnixMillis,
    /// What it does.
    pub operation: LedgerOperation,
}

/// The operation of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LedgerOperation {
    /// Adds money to an agent's account from outside.
    Credit {
        /// The id of the payment. It can be used once.
        reference: Reference,
        /// The agent.
        agent: AgentUri,
        /// The amount.
        amount: Amount,
        /// Its currency.
        currency: Currency,
    },
    /// Pays money of an agent out.
    Debit {
        /// The id of the payment. It can be used once.
        reference: Reference,
        /// The agent.
        agent: AgentUri,
        /// The amount.
        amount: Amount,
        /// Its currency.
        currency: Currency,
    },
    /// Moves money from the depositor to escrow.
    Hold {
        /// The commitment.
        id: EscrowId,
        /// The deposit.
        deposit: Deposit,
    },
    /// Moves all money that is held for a commitment to one of its parties.
    Release {
        /// The commitment.
        id: EscrowId,
        /// The deposit that was held.
        deposit: Deposit,
        /// The party that receives the money.
        to: Payee,
    },
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

impl Deposit {
    /// Returns the agent that receives the money.
    pub fn payee(&self, to: Payee) -> &AgentUri {
        match to {
            Payee::Depositor => &self.depositor,
            Payee::Beneficiary => &self.beneficiary,
        }
    }

    /// Returns whether both deposits move the same money. `10.5` and `10.50` are the same amount.
    pub fn is_equivalent(&self, other: &Self) -> bool {
        self.depositor == other.depositor
            && self.beneficiary == other.beneficiary
            && self.currency == other.currency
            && self.amount.billionths() == other.amount.billionths()
    }
}

impl LedgerEntry {
    /// Returns the postings: one account pays, another one receives, and the changes add up to zero.
    pub fn postings(&self) -> [Posting; 2] {
        let agent = |agent: &AgentUri| Account::Agent(agent.clone());
        let escrow = |id: &EscrowId| Account::Escrow(id.clone());
        let (payer, payee, amount, currency) = match &self.operation {
            LedgerOperation::Credit { agent: payee, amount, currency, .. } => {
                (Account::Outside, agent(payee), amount, currency)
            }
            LedgerOperation::Debit { agent: payer, amount, currency, .. } => {
                (agent(payer), Account::Outside, amount, currency)
            }
            LedgerOperation::Hold { id, deposit } => {
                (agent(&deposit.depositor), escrow(id), &deposit.amount, &deposit.currency)
            }
            LedgerOperation::Release { id, deposit, to } => {
                (escrow(id), agent(deposit.payee(*to)), &deposit.amount, &deposit.currency)
            }
        };
        // An amount has at most 24 digits.
        let billionths = i128::try_from(amount.billionths()).unwrap_or(i128::MAX);
        [(payer, -billionths), (payee, billionths)].map(|(account, billionths)| Posting {
            account,
            currency: currency.clone(),
            billionths,
        })
    }
}
