//! Which parameters are refused, and that the documentation states the defaults.

use asp::trust::{DEFAULT_EFFECTS, EffectRow, TrustBook, TrustComponent, TrustEventName, TrustParameters};

#[test]
fn the_default_parameters_are_valid() {
    assert_eq!(TrustParameters::default().validate(), Ok(()));
}

#[test]
fn invalid_parameters_are_refused() {
    type Change = fn(&mut TrustParameters);
    let changes: [(&str, Change); 24] = [
        ("weights", |p| p.weights.response_quality += 0.01),
        ("weights", |p| (p.weights.response_quality, p.weights.peer_endorsements) = (-0.1, 0.25)),
        ("weights", |p| p.weights.response_quality = f64::NAN),
        ("bases", |p| p.bases.security_posture = 100.5),
        ("bases", |p| p.bases.security_posture = -1.0),
        ("saturations", |p| p.saturations.economic_reliability = 0.0),
        ("saturations", |p| p.saturations.economic_reliability = f64::INFINITY),
        ("first_use_identity", |p| p.first_use_identity = 101.0),
        ("pinned_identity", |p| p.pinned_identity = 40.0),
        ("pinned_identity", |p| p.bases.identity_verification = 60.0),
        ("effects", |p| p.effects[0].credit = -1.0),
        ("effects", |p| p.effects[0].penalty = 1.0),
        ("effects", |p| {
            p.effects.push(row(TrustEventName::CardPinned, TrustComponent::IdentityVerification));
        }),
        ("effects", |p| {
            p.effects.push(row(TrustEventName::CommitmentBroken, TrustComponent::SecurityPosture));
        }),
        ("severity_factors", |p| p.severity_factors[4] = 0.5),
        ("broken_commitment_weight", |p| p.broken_commitment_weight = f64::NAN),
        ("late_commitment_weight", |p| p.late_commitment_weight = -1.0),
        ("max_penalty", |p| p.max_penalty = 10.0),
        ("inactivity_grace_ms", |p| p.inactivity_grace_ms = -1),
        ("growth_half_life_ms", |p| p.growth_half_life_ms = 0),
        ("penalty_half_life_ms", |p| p.penalty_half_life_ms = 0),
        ("endorsement_half_life_ms", |p| p.endorsement_half_life_ms = -5),
        ("same_organization_factor", |p| p.same_organization_factor = 1.5),
        ("level_boundaries", |p| p.level_boundaries = [30.0, 70.0, 50.0, 90.0]),
    ];
    for (parameter, change) in changes {
        let mut parameters = TrustParameters::default();
        change(&mut parameters);
        let error = parameters.validate().unwrap_err();
        assert_eq!(error.parameter, parameter);
        assert_eq!(TrustBook::new(parameters).unwrap_err(), error);
    }
}

fn row(event: TrustEventName, component: TrustComponent) -> EffectRow {
    EffectRow { event, component, credit: 1.0, penalty: 0.0 }
}

/// Every event has an effect: in the table, or by a rule for identities and endorsements.
#[test]
fn every_event_has_an_effect() {
    let by_rule = [
        TrustEventName::CardPinned,
        TrustEventName::CardTrustedOnFirstUse,
        TrustEventName::EndorsementReceived,
    ];
    for name in TrustEventName::ALL {
        let has_row = DEFAULT_EFFECTS.iter().any(|row| row.event == name);
        assert_ne!(has_row, by_rule.contains(&name), "{name}");
    }
}

/// The table of effects in `docs/asp.md` is the table in the code.
#[test]
fn the_documentation_lists_every_effect() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/asp.md");
    let page = std::fs::read_to_string(path).unwrap();
    for name in TrustEventName::ALL {
        let effects: Vec<_> = DEFAULT_EFFECTS
            .iter()
            .filter(|row| row.event == name)
            .map(|row| {
                let points =
                    if row.credit > 0.0 { format!("+{}", row.credit) } else { format!("-{}", row.penalty) };
                format!("{} {points}", row.component)
            })
            .collect();
        let line = page.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
        let line = line.unwrap_or_else(|| panic!("docs/asp.md has no row for {name}"));
        let documented = line.split('|').nth(3).unwrap().trim();
        let expected = if effects.is_empty() { "see below".to_owned() } else { effects.join(", ") };
        assert_eq!(documented, expected, "{name}");
    }
}
