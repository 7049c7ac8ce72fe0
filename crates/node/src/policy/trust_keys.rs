//! The keys of a policy that set the constants of the trust computation.

use asp::trust::{ComponentValues, EffectRow, TrustComponent, TrustEventName, TrustParameters};
use toml::de::DeValue;

use super::{items, read_count, read_number};

/// Sets a constant. Returns false if there is no such key.
pub(super) fn set(trust: &mut TrustParameters, name: &str, value: &DeValue<'_>) -> Result<bool, String> {
    let number = || read_number(value).ok_or("must be a number");
    let count = || {
        let count = read_count(value).map(|count| count as usize);
        count.ok_or_else(|| format!("must be a whole number from 0 to {}", u32::MAX))
    };
    match name {
        "weights" => set_components(&mut trust.weights, value)?,
        "bases" => set_components(&mut trust.bases, value)?,
        "saturations" => set_components(&mut trust.saturations, value)?,
        "effects" => set_effects(&mut trust.effects, value)?,
        "first_use_identity" => trust.first_use_identity = number()?,
        "pinned_identity" => trust.pinned_identity = number()?,
        "severity_factors" => trust.severity_factors = numbers(value)?,
        "broken_commitment_weight" => trust.broken_commitment_weight = number()?,
        "late_commitment_weight" => trust.late_commitment_weight = number()?,
        "max_penalty" => trust.max_penalty = number()?,
        "inactivity_grace_days" => trust.inactivity_grace_ms = days(number()?),
        "growth_half_life_days" => trust.growth_half_life_ms = days(number()?),
        "penalty_half_life_days" => trust.penalty_half_life_ms = days(number()?),
        "endorsement_half_life_days" => trust.endorsement_half_life_ms = days(number()?),
        "max_endorsements" => trust.max_endorsements = count()?,
        "min_endorser_score" => trust.min_endorser_score = number()?,
        "same_organization_factor" => trust.same_organization_factor = number()?,
        "level_boundaries" => trust.level_boundaries = numbers(value)?,
        "max_peers" => trust.max_peers = count()?,
        "max_recent_events" => trust.max_recent_events = count()?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Reads a list with this many numbers.
fn numbers<const COUNT: usize>(value: &DeValue<'_>) -> Result<[f64; COUNT], String> {
    let numbers = items(value).and_then(|items| items.map(read_number).collect::<Option<Vec<f64>>>());
    let numbers = numbers.and_then(|numbers| <[f64; COUNT]>::try_from(numbers).ok());
    numbers.ok_or_else(|| format!("must be a list of {COUNT} numbers"))
}

/// Reads a table of components and numbers.
fn read_components(value: &DeValue<'_>) -> Result<Vec<(TrustComponent, f64)>, String> {
    let DeValue::Table(members) = value else {
        return Err("must be a table of components and numbers".to_owned());
    };
    let members = members.iter().map(|(name, value)| {
        let name = name.get_ref();
        let component =
            TrustComponent::parse(name).ok_or_else(|| format!("has an unknown component, {name}"))?;
        let number = read_number(value.get_ref()).ok_or_else(|| format!("needs a number for {name}"))?;
        Ok((component, number))
    });
    members.collect()
}

fn set_components(values: &mut ComponentValues, value: &DeValue<'_>) -> Result<(), String> {
    for (component, number) in read_components(value)? {
        *values.get_mut(component) = number;
    }
    Ok(())
}

/// Replaces the effects of the events in a table. A positive number is evidence, and a negative one takes points away.
fn set_effects(effects: &mut Vec<EffectRow>, value: &DeValue<'_>) -> Result<(), String> {
    let DeValue::Table(events) = value else {
        return Err("must be a table of events".to_owned());
    };
    for (name, components) in events {
        let name = name.get_ref();
        let event = TrustEventName::parse(name).ok_or_else(|| format!("has an unknown event, {name}"))?;
        let mut new = read_components(components.get_ref())
            .map_err(|expected| format!("has {name}, which {expected}"))?;
        if let Some((component, _)) = new.iter().find(|(_, number)| (*number < 0.0) == event.is_good()) {
            let expected = if event.is_good() { "0 or more" } else { "less than 0" };
            return Err(format!("has {name}, whose number for {component} must be {expected}"));
        }
        // An effect that stays keeps its place.
        effects.retain_mut(|row| {
            if row.event != event {
                return true;
            }
            let index = new.iter().position(|(component, _)| *component == row.component);
            let Some(index) = index else { return false };
            *row = effect(event, new.remove(index));
            true
        });
        effects.extend(new.into_iter().map(|entry| effect(event, entry)));
    }
    Ok(())
}

fn effect(event: TrustEventName, (component, number): (TrustComponent, f64)) -> EffectRow {
    EffectRow { event, component, credit: number.max(0.0), penalty: (-number).max(0.0) }
}

#[allow(clippy::cast_possible_truncation, reason = "saturates")]
fn days(number: f64) -> i64 {
    (number * 86_400_000.0) as i64
}

#[cfg(test)]
mod tests {
    use asp::trust::{CircuitBreakerParameters, TrustParameters};

    use crate::policy::{ConsentPolicy, Policy};

    fn parse(text: &str) -> Result<Policy, String> {
        Policy::parse(text, ConsentPolicy::NEVER_ASK)
    }

    /// A policy that changes every constant. A new field of the parameters does not compile here until it is listed.
    #[test]
    #[allow(clippy::float_cmp, reason = "the values are read, not computed")]
    fn every_constant_can_be_set() {
        let text = r#"
            [trust]
            first_use_identity = 40
            pinned_identity = 90
            severity_factors = [0.2, 0.5, 1.1, 1.6, 2.6]
            broken_commitment_weight = 21
            late_commitment_weight = 2
            max_penalty = 300
            inactivity_grace_days = 8
            growth_half_life_days = 91
            penalty_half_life_days = 366
            endorsement_half_life_days = 181
            max_endorsements = 51
            min_endorser_score = 31
            same_organization_factor = 0.3
            level_boundaries = [31, 51, 71, 91]
            max_peers = 99
            max_recent_events = 33
            weights = { identityVerification = 0.15, communicationHistory = 0.2 }
            bases = { responseQuality = 31 }
            saturations = { economicReliability = 101 }
            effects.message_answered = { responseQuality = 2, securityPosture = 0.5 }
            effects.card_revoked = { economicReliability = -7 }
            [circuit_breaker]
            failure_threshold = 6
            open_ms = 30001
            max_open_ms = 600001
            trial_timeout_ms = 60001
            [escrow]
            ceilings_by_currency = { USD = ["0", "1", "2", "3", "4"], JPY = ["0", "0", "0", "0", "100"] }
        "#;
        let policy = parse(text).unwrap_or_else(|error| panic!("{error}"));
        let TrustParameters {
            weights,
            bases,
            saturations,
            first_use_identity,
            pinned_identity,
            effects,
            severity_factors,
            broken_commitment_weight,
            late_commitment_weight,
            max_penalty,
            inactivity_grace_ms,
            growth_half_life_ms,
            penalty_half_life_ms,
            endorsement_half_life_ms,
            max_endorsements,
            min_endorser_score,
            same_organization_factor,
            level_boundaries,
            max_peers,
            max_recent_events,
        } = policy.trust;
        let default = TrustParameters::default();
        assert_eq!((weights.identity_verification, weights.communication_history), (0.15, 0.2));
        assert_eq!(weights.commitment_fulfillment, default.weights.commitment_fulfillment);
        assert_eq!((bases.response_quality, saturations.economic_reliability), (31.0, 101.0));
        assert_eq!((first_use_identity, pinned_identity), (40.0, 90.0));
        assert_eq!(severity_factors, [0.2, 0.5, 1.1, 1.6, 2.6]);
        assert_eq!((broken_commitment_weight, late_commitment_weight, max_penalty), (21.0, 2.0, 300.0));
        let day = 86_400_000;
        assert_eq!((inactivity_grace_ms, growth_half_life_ms), (8 * day, 91 * day));
        assert_eq!((penalty_half_life_ms, endorsement_half_life_ms), (366 * day, 181 * day));
        assert_eq!((max_endorsements, max_peers, max_recent_events), (51, 99, 33));
        assert_eq!((min_endorser_score, same_organization_factor), (31.0, 0.3));
        assert_eq!(level_boundaries, [31.0, 51.0, 71.0, 91.0]);
        let rows = |name: &str| -> Vec<_> {
            let rows = effects.iter().filter(|row| row.event.as_str() == name);
            rows.map(|row| (row.component.as_str(), row.credit, row.penalty)).collect()
        };
        assert_eq!(rows("message_answered"), [("responseQuality", 2.0, 0.0), ("securityPosture", 0.5, 0.0)]);
        assert_eq!(rows("card_revoked"), [("economicReliability", 0.0, 7.0)]);
        assert_eq!(effects.len(), default.effects.len() + 1, "the other events keep their effects");
        let CircuitBreakerParameters { failure_threshold, open_ms, max_open_ms, trial_timeout_ms } =
            policy.circuit_breaker;
        assert_eq!((failure_threshold, open_ms, max_open_ms, trial_timeout_ms), (6, 30_001, 600_001, 60_001));
        let ceilings = policy.escrow_ceilings.by_currency;
        let of = |currency: &str| {
            let currency = asp::Currency::parse(currency).unwrap_or_else(|error| panic!("{error}"));
            let amounts = ceilings.get(&currency).cloned().unwrap_or_default();
            amounts.map(|amount| amount.map(|amount| amount.as_str().to_owned()).unwrap_or_default())
        };
        assert_eq!(
            (of("USD"), of("JPY")),
            (["", "1", "2", "3", "4"].map(str::to_owned), ["", "", "", "", "100"].map(str::to_owned))
        );
    }

    #[test]
    fn a_constant_out_of_range_is_refused() {
        for (text, expected) in [
            ("[trust]\nweights = { identityVerification = 0.5 }", "weights must be numbers that add up to 1"),
            ("[trust]\nweights = { kindness = 0.5 }", "trust.weights has an unknown component, kindness"),
            ("[trust]\nbases = { responseQuality = 101 }", "bases must be from 0 to 100"),
            ("[trust]\nsaturations = { responseQuality = 0 }", "saturations must be from 1 to"),
            ("[trust]\nsaturations = 5", "trust.saturations must be a table of components"),
            ("[trust]\nfirst_use_identity = 100.5", "first_use_identity must be from 0 to 100"),
            ("[trust]\npinned_identity = 40", "pinned_identity must be"),
            ("[trust]\nseverity_factors = [1, 2]", "trust.severity_factors must be a list of 5 numbers"),
            ("[trust]\nseverity_factors = [5, 4, 3, 2, 1]", "severity_factors must be"),
            ("[trust]\nbroken_commitment_weight = -1", "broken_commitment_weight must be 0 or more"),
            ("[trust]\nmax_penalty = 99", "max_penalty must be from 100"),
            ("[trust]\ninactivity_grace_days = -1", "inactivity_grace_ms must be 0 or more"),
            ("[trust]\ngrowth_half_life_days = 0", "growth_half_life_ms must be more than 0"),
            ("[trust]\nendorsement_half_life_days = nan", "endorsement_half_life_ms must be more than 0"),
            ("[trust]\nmax_endorsements = 1001", "max_endorsements must be at most 1000"),
            ("[trust]\nmax_recent_events = 1001", "max_recent_events must be at most 1000"),
            ("[trust]\nmax_peers = 0", "max_peers must be at least 1"),
            ("[trust]\nmax_peers = \"many\"", "trust.max_peers must be a whole number"),
            ("[trust]\nlevel_boundaries = [50, 40, 60, 70]", "level_boundaries must be"),
            ("[trust]\neffects = { kindness = {} }", "trust.effects has an unknown event, kindness"),
            (
                "[trust.effects]\nmessage_answered = { responseQuality = -1 }",
                "trust.effects has message_answered, whose number for responseQuality must be 0 or more",
            ),
            (
                "[trust.effects]\nresponse_missed = { responseQuality = 1 }",
                "trust.effects has response_missed, whose number for responseQuality must be less than 0",
            ),
            (
                "[trust.effects]\nescrow_funded = { identityVerification = 1 }",
                "effects must be rows with credit",
            ),
            ("[circuit_breaker]\ntrial_timeout_ms = 0", "circuit_breaker.trial_timeout_ms must be a whole"),
            ("[escrow]\nceilings_by_currency = { USD = [\"1\"] }", "escrow.ceilings_by_currency must be"),
            ("[escrow]\nceilings_by_currency = { dollar = [] }", "escrow.ceilings_by_currency must be"),
        ] {
            let error = parse(text).err().unwrap_or_default();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
