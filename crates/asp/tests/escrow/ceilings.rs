//! How much money may be at stake.

use asp::escrow::{CeilingError, EscrowCeilings, TransactionLimit};
use asp::trust::TrustLevel;

use super::money::{amount, currency};

#[test]
fn the_ceiling_depends_on_the_trust_level() {
    let ceilings = EscrowCeilings::default();
    let check =
        |level, units: &str| ceilings.check(level, TransactionLimit::NONE, &amount(units), &currency(0));
    let smallest = "0.000000001";
    assert_eq!(
        check(TrustLevel::Unverified, smallest),
        Err(CeilingError::NotAllowed(TrustLevel::Unverified))
    );
    for (level, ceiling) in TrustLevel::ALL[1..].iter().zip(["100", "1000", "10000", "100000"]) {
        assert_eq!(check(*level, ceiling), Ok(()));
        let error = check(*level, &format!("{ceiling}.000000001")).unwrap_err();
        let expected =
            CeilingError::LevelExceeded { level: *level, ceiling: amount(ceiling), currency: currency(0) };
        assert_eq!(error, expected);
    }
}

#[test]
fn a_currency_can_have_its_own_ceilings() {
    let mut ceilings = EscrowCeilings::default();
    let own = [None, None, Some(amount("7")), Some(amount("7")), Some(amount("7"))];
    ceilings.by_currency.insert(currency(1), own);
    let check = |currency_number, units| {
        ceilings.check(
            TrustLevel::Premium,
            TransactionLimit::NONE,
            &amount(units),
            &currency(currency_number),
        )
    };
    assert_eq!(check(0, "100000"), Ok(()));
    assert_eq!(check(1, "7"), Ok(()));
    assert!(check(1, "8").is_err());
}

#[test]
fn the_card_limits_the_amount_and_the_currency() {
    let ceilings = EscrowCeilings::default();
    let (max_value, euro) = (amount("50"), currency(1));
    let check = |card, units, currency_number| {
        ceilings.check(TrustLevel::Premium, card, &amount(units), &currency(currency_number))
    };
    let in_euro = TransactionLimit { max_value: Some(&max_value), currency: Some(&euro) };
    assert_eq!(check(in_euro, "50.00", 1), Ok(()));
    assert_eq!(check(in_euro, "50.01", 1), Err(CeilingError::CardExceeded(max_value.clone())));
    assert_eq!(check(in_euro, "1", 0), Err(CeilingError::CardCurrency(euro.clone())));
    let in_any = TransactionLimit { max_value: Some(&max_value), currency: None };
    assert_eq!(check(in_any, "50", 0), Ok(()));
    assert!(check(in_any, "51", 0).is_err());
    let without_value = TransactionLimit { max_value: None, currency: Some(&euro) };
    assert_eq!(check(without_value, "51", 0), Ok(()));
}
