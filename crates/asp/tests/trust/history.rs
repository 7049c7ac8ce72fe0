//! Replay, order, bounds and stored events.

use asp::trust::{TrustBook, TrustEvent, TrustEventKind, TrustParameters};
use proptest::prelude::*;
use testing::property::cases;

use super::events::{START, agent, any_kind, empty_book, event, every_kind, history, score};

#[test]
fn every_event_is_stored_and_parsed_without_loss() {
    for kind in every_kind() {
        let event = event(3, START, kind);
        assert_eq!(TrustEvent::parse(&event.to_json()).as_ref(), Ok(&event), "{}", event.to_json());
    }
}

#[test]
fn malformed_events_are_refused() {
    let valid =
        r#"{"type":"message_answered","peer":"agent://a.example","atMs":1,"responseMs":5,"limitMs":9}"#;
    assert!(TrustEvent::parse(valid).is_ok());
    for (from, to) in [
        ("message_answered", "message_answered_late"),
        ("message_answered", "unknown"),
        ("agent://a.example", "https://a.example"),
        (r#""atMs":1"#, r#""atMs":1.5"#),
        (r#""atMs":1"#, r#""atMs":"1""#),
        (r#""limitMs":9"#, r#""limitMs":-9"#),
        (r#","limitMs":9"#, ""),
        (r#""atMs":1"#, r#""sessionId":"x","atMs":1"#),
        ("}", ""),
    ] {
        let text = valid.replacen(from, to, 1);
        assert!(TrustEvent::parse(&text).is_err(), "{text}");
    }
    let dispute = r#"{"type":"dispute_lost","peer":"agent://a","atMs":1,"disputeId":"dsp_1","severity":3}"#;
    assert!(TrustEvent::parse(dispute).is_ok());
    for severity in ["0", "6", "-1", "256", "2.5", "\"3\""] {
        let text = dispute.replace(":3}", &format!(":{severity}}}"));
        assert!(TrustEvent::parse(&text).is_err(), "{text}");
    }
}

/// Claims of an agent about itself are not events, and have no effect (D20).
#[test]
fn self_declared_trust_has_no_effect() {
    let plain = r#"{"type":"session_completed","peer":"agent://a.example","atMs":1}"#;
    let boasting =
        plain.replace("\"atMs\"", "\"trustScore\":100,\"trustLevel\":4,\"endorserScore\":100,\"atMs\"");
    assert_eq!(TrustEvent::parse(&boasting), TrustEvent::parse(plain));
    for claim in ["trust_score", "trust_declared", "trustScore"] {
        assert!(TrustEvent::parse(&plain.replace("session_completed", claim)).is_err());
    }
}

/// A full book keeps what it knows about bad peers.
#[test]
fn a_full_book_ignores_new_peers_and_keeps_the_known_ones() {
    let parameters = TrustParameters { max_peers: 2, ..TrustParameters::default() };
    let mut book = TrustBook::new(parameters).unwrap();
    let violation = |peer| event(peer, START, TrustEventKind::ProtocolViolation);
    assert!(book.record(&violation(0)) && book.record(&violation(1)));
    assert!(!book.record(&violation(2)));
    assert!(book.record(&violation(1)));
    assert_eq!(book.peers().count(), 2);
    assert!(score(&book, 1, START) < score(&book, 0, START));
    assert!((score(&book, 2, START) - 17.0).abs() < 1e-9);
}

#[test]
fn the_memory_for_one_peer_is_bounded() {
    let mut book = empty_book();
    for number in 0..2_000 {
        for kind in every_kind() {
            book.record(&event(0, START + number, kind));
        }
        book.record(&event(
            0,
            START + number,
            super::events::endorsement(10 + usize::try_from(number).unwrap(), 50.0, false),
        ));
    }
    let report = book.report(&agent(0), START);
    assert!(report.components.iter().all(|component| component.recent_events.len() <= 32));
    assert!(report.endorsements.len() <= 50);
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn replaying_stored_events_gives_the_same_book(events in history(60)) {
        let mut live = empty_book();
        let stored: Vec<String> = events.iter().map(|event| { live.record(event); event.to_json() }).collect();
        let read: Vec<_> = stored.iter().map(|text| TrustEvent::parse(text).unwrap()).collect();
        let replayed = TrustBook::replay(TrustParameters::default(), &read).unwrap();
        prop_assert_eq!(&replayed, &live);
        for peer in 0..4 {
            prop_assert_eq!(replayed.report(&agent(peer), START + 1), live.report(&agent(peer), START + 1));
        }
    }

    #[test]
    fn the_order_of_events_at_the_same_time_does_not_matter(
        before in history(20),
        together in proptest::collection::vec((0..3_usize, any_kind()), 0..80).prop_shuffle(),
        keys in proptest::collection::vec(any::<u32>(), 80),
        later_ms in 0..100_i64 * 86_400_000,
    ) {
        let mut first = TrustBook::replay(TrustParameters::default(), &before).unwrap();
        let mut second = first.clone();
        let at = before.last().map_or(START, |event| event.at) + later_ms;
        let events: Vec<_> = together.into_iter().map(|(peer, kind)| event(peer, at, kind)).collect();
        let mut order: Vec<_> = (0..events.len()).collect();
        order.sort_by_key(|index| keys[*index]);
        for event in &events { first.record(event); }
        for index in &order { second.record(&events[*index]); }
        prop_assert_eq!(first, second);
    }

    /// More endorsers than can be kept, in any order.
    #[test]
    fn the_order_of_endorsements_does_not_matter(scores in proptest::collection::vec((10..40_usize, 25.0..100.0_f64), 0..120), keys in proptest::collection::vec(any::<u32>(), 120)) {
        let parameters = TrustParameters { max_endorsements: 5, max_recent_events: 4, ..TrustParameters::default() };
        let (mut first, mut second) = (TrustBook::new(parameters.clone()).unwrap(), TrustBook::new(parameters).unwrap());
        let events: Vec<_> = scores.iter().map(|(endorser, score)| event(0, START, super::events::endorsement(*endorser, *score, endorser % 2 == 0))).collect();
        let mut order: Vec<_> = (0..events.len()).collect();
        order.sort_by_key(|index| keys[*index]);
        for event in &events { first.record(event); }
        for index in &order { second.record(&events[*index]); }
        prop_assert_eq!(first, second);
    }
}
