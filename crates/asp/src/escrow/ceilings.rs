//! How much money may be at stake with a peer.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::amount::Amount;
use crate::id::Currency;
use crate::trust::TrustLevel;

/// The highest escrow at each trust level. `None` allows no escrow.
pub type LevelCeilings = [Option<Amount>; TrustLevel::ALL.len()];

/// The highest escrow of one commitment with a peer (D27).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EscrowCeilings {
    /// The ceilings in a currency that is not listed in `by_currency`, in units of that currency.
    pub any_currency: LevelCeilings,
    /// The ceilings in particular currencies.
    pub by_currency: BTreeMap<Currency, LevelCeilings>,
}

/// `maxTransactionValue` and `currency` of an agent card: the highest amount that the agent may promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionLimit<'c> {
    /// The highest amount. `None` if the card states none.
    pub max_value: Option<&'c Amount>,
    /// The only currency of the limit. `None` if the card states none; the limit then applies in every currency.
    pub currency: Option<&'c Currency>,
}

impl TransactionLimit<'_> {
    /// The limit of a card that states none.
    pub const NONE: Self = Self { max_value: None, currency: None };
}

/// Why an escrow is too high.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CeilingError {
    /// Agents of this trust level may not take part in commitments with an escrow.
    #[error("an agent at trust level {} may not use an escrow", .0.number())]
    NotAllowed(TrustLevel),
    /// The escrow exceeds the ceiling of the trust level.
    #[error("the escrow exceeds the ceiling of trust level {}, which is {ceiling} {currency}", level.number())]
    LevelExceeded {
        /// The level.
        level: TrustLevel,
        /// Its ceiling.
        ceiling: Amount,
        /// The currency.
        currency: Currency,
    },
    /// The escrow exceeds `maxTransactionValue` of the agent's card.
    #[error("the escrow exceeds the maxTransactionValue of the agent's card, which is {0}")]
    CardExceeded(Amount),
    /// The agent's card allows transactions in another currency only.
    #[error("the agent's card allows transactions in {0} only")]
    CardCurrency(Currency),
}

impl Default for EscrowCeilings {
    fn default() -> Self {
        let ceiling = |text| Amount::parse(text).ok();
        Self {
            any_currency: [None, ceiling("100"), ceiling("1000"), ceiling("10000"), ceiling("100000")],
            by_currency: BTreeMap::new(),
        }
    }
}

impl EscrowCeilings {
    /// Checks the escrow of a commitment with a peer at this trust level. `card` is the limit of the agent that pays the money in.
    pub fn check(
        &self,
        level: TrustLevel,
        card: TransactionLimit<'_>,
        amount: &Amount,
        currency: &Currency,
    ) -> Result<(), CeilingError> {
        let ceilings = self.by_currency.get(currency).unwrap_or(&self.any_currency);
        let ceiling = ceilings[level.index()].as_ref().ok_or(CeilingError::NotAllowed(level))?;
        if amount.billionths() > ceiling.billionths() {
            let (ceiling, currency) = (ceiling.clone(), currency.clone());
            return Err(CeilingError::LevelExceeded { level, ceiling, currency });
        }
        let Some(max_value) = card.max_value else { return Ok(()) };
        if let Some(only) = card.currency.filter(|only| *only != currency) {
            return Err(CeilingError::CardCurrency(only.clone()));
        }
        if amount.billionths() > max_value.billionths() {
            return Err(CeilingError::CardExceeded(max_value.clone()));
        }
        Ok(())
    }
}
