//! The explanation of a score.

use asp::trust::{TrustBook, TrustComponent, TrustEventKind, TrustEventName, TrustParameters};
use proptest::prelude::*;
use testing::property::cases;

use super::events::{START, agent, book_with, commitment, dispute_lost, event, history, score};

#[test]
fn a_report_names_the_events_of_each_component() {
    let mut book = book_with([
        TrustEventKind::CardPinned,
        TrustEventKind::SessionCompleted,
        TrustEventKind::SessionCompleted,
        TrustEventKind::CommitmentKept(commitment()),
    ]);
    book.record(&event(0, START + 9, dispute_lost(3)));
    let report = book.report(&agent(0), START + 9);
    let component = |wanted: TrustComponent| {
        report.components.iter().find(|component| component.component == wanted).unwrap()
    };
    let events = |wanted| -> Vec<_> {
        component(wanted).events.iter().map(|event| (event.name, event.count, event.last_at)).collect()
    };
    assert_eq!(events(TrustComponent::IdentityVerification), [(TrustEventName::CardPinned, 1, START)]);
    assert_eq!(
        events(TrustComponent::CommitmentFulfillment),
        [(TrustEventName::CommitmentKept, 1, START), (TrustEventName::DisputeLost, 1, START + 9)]
    );
    assert_eq!(
        events(TrustComponent::CommunicationHistory),
        [(TrustEventName::SessionCompleted, 2, START), (TrustEventName::DisputeLost, 1, START + 9)]
    );
    assert_eq!(events(TrustComponent::ResponseQuality), []);
    let fulfillment = component(TrustComponent::CommitmentFulfillment);
    let recent: Vec<_> = fulfillment.recent_events.iter().map(|event| event.kind.clone()).collect();
    assert_eq!(recent, [TrustEventKind::CommitmentKept(commitment()), dispute_lost(3)]);
    assert!((fulfillment.penalty - 60.0).abs() < 1e-6);
    assert_eq!(report.last_active_at, Some(START));
}

#[test]
fn the_component_names_are_those_that_npayload_publishes() {
    assert_eq!(
        TrustComponent::ALL.map(TrustComponent::as_str),
        [
            "identityVerification",
            "communicationHistory",
            "commitmentFulfillment",
            "behavioralConsistency",
            "responseQuality",
            "securityPosture",
            "economicReliability",
            "peerEndorsements",
        ]
    );
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn a_report_adds_up_to_the_score(events in history(60), later_ms in 0..300_i64 * 86_400_000) {
        let book = TrustBook::replay(TrustParameters::default(), &events).unwrap();
        let now = START + later_ms;
        for peer in 0..4 {
            let report = book.report(&agent(peer), now);
            let total: f64 = report.components.iter().map(asp::trust::ComponentReport::contribution).sum();
            prop_assert!((total - score(&book, peer, now)).abs() < 1e-9);
            for component in &report.components {
                let value = (component.base + component.growth - component.penalty).clamp(0.0, 100.0);
                prop_assert!((value - component.value).abs() < 1e-9);
                // A component that differs from its base names the events that changed it.
                prop_assert!(!component.events.is_empty() || (component.value - component.base).abs() < 1e-9, "{:?}", component);
            }
        }
    }
}
