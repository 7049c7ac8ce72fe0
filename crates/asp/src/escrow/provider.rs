//! The party that holds the money.

use seal::UnixMillis;

use super::account::EscrowId;
use super::entry::Deposit;
use super::ledger::{EscrowError, EscrowLedger, EscrowStatus};
use crate::amount::Amount;
use crate::id::{AgentUri, Currency};
use crate::session::Payee;

/// A request to the party that holds the money. Requests can be repeated: a repeated request gets the answer that tells what
/// was done, and moves no money.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EscrowRequest {
    /// Asks whether an agent can pay an amount now. It reserves nothing.
    Cover {
        /// The agent.
        depositor: AgentUri,
        /// The amount.
        amount: Amount,
        /// Its currency.
        currency: Currency,
    },
    /// Takes money from the depositor and holds it for a commitment.
    Hold {
        /// The commitment.
        id: EscrowId,
        /// The deposit.
        deposit: Deposit,
    },
    /// Pays the held money out.
    Release {
        /// The commitment.
        id: EscrowId,
        /// The party that receives the money.
        to: Payee,
    },
}

/// The answer to an [`EscrowRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EscrowAnswer {
    /// The agent can pay the amount.
    Covered,
    /// The money is held.
    Held,
    /// The money was paid out to this party.
    Released(Payee),
    /// The request cannot be carried out. No money was moved.
    Refused(EscrowError),
    /// The result is not known yet. Send the same request again later, even after a restart.
    Pending,
}

impl From<EscrowStatus> for EscrowAnswer {
    fn from(status: EscrowStatus) -> Self {
        match status {
            EscrowStatus::Held => Self::Held,
            EscrowStatus::Released(to) => Self::Released(to),
        }
    }
}

/// The party that holds the money. An external provider is reached by an implementation that sends the request as JSON and
/// answers [`EscrowAnswer::Pending`] until it has the result. Each request is atomic.
///
/// Store that a request is going to be sent before sending it, and repeat it until the answer is not
/// [`EscrowAnswer::Pending`]. Requests are idempotent by [`EscrowId`], so a repeated request never moves money twice.
pub trait EscrowProvider {
    /// Carries a request out.
    fn submit(&mut self, request: &EscrowRequest, now: UnixMillis) -> EscrowAnswer;
}

/// A ledger in memory. To make it durable, use [`EscrowLedger::answer`] and store the entry.
impl EscrowProvider for EscrowLedger {
    fn submit(&mut self, request: &EscrowRequest, now: UnixMillis) -> EscrowAnswer {
        let (answer, entry) = self.answer(request, now);
        match entry.map(|entry| self.apply(&entry)) {
            Some(Err(error)) => EscrowAnswer::Refused(error),
            _ => answer,
        }
    }
}
