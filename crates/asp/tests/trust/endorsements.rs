//! Who can endorse whom, and how much it counts.

use asp::trust::{TrustBook, TrustEvent, TrustEventKind};
use seal::UnixMillis;

use super::events::{DAY_MS, START, agent, empty_book, endorsement, event, good_sessions, score};

/// Records endorsements of peer 0 by peers from `first` on, each with this many good sessions.
fn endorse(book: &mut TrustBook, first: usize, count: usize, sessions: usize, is_same_organization: bool) {
    for endorser in first..first + count {
        for kind in good_sessions(sessions) {
            book.record(&event(endorser, START, kind));
        }
        let event = book.endorsement(&agent(0), &agent(endorser), is_same_organization, None, START).unwrap();
        book.record(&event);
    }
}

fn endorsement_value(book: &TrustBook, now: UnixMillis) -> f64 {
    book.report(&agent(0), now).components[7].value
}

#[test]
fn an_endorser_needs_a_score_of_30() {
    let mut book = empty_book();
    assert_eq!(book.endorsement(&agent(0), &agent(1), false, None, START), None, "a stranger");
    book.record(&event(1, START, TrustEventKind::CardTrustedOnFirstUse));
    assert_eq!(
        book.endorsement(&agent(0), &agent(1), false, None, START),
        None,
        "a newcomer without history"
    );
    book.record(&event(1, START, TrustEventKind::CardPinned));
    let endorsement: TrustEvent = book.endorsement(&agent(0), &agent(1), false, None, START).unwrap();
    book.record(&endorsement);
    assert!(endorsement_value(&book, START) > 0.0);
}

#[test]
fn a_stored_endorsement_below_30_is_ignored() {
    let mut book = empty_book();
    for kind in good_sessions(100) {
        book.record(&event(1, START, kind));
    }
    book.record(&event(0, START, endorsement(1, 29.99, false)));
    assert_eq!(endorsement_value(&book, START).to_bits(), 0_f64.to_bits());
    book.record(&event(0, START, endorsement(1, 30.0, false)));
    assert!(endorsement_value(&book, START) > 0.0);
}

#[test]
fn at_most_50_endorsements_count_and_the_best_ones_win() {
    let mut book = empty_book();
    endorse(&mut book, 1, 50, 0, false);
    let with_50 = endorsement_value(&book, START);
    endorse(&mut book, 51, 20, 0, false);
    assert!((endorsement_value(&book, START) - with_50).abs() < 1e-9, "equally trusted endorsers");
    endorse(&mut book, 101, 10, 50, false);
    let report = book.report(&agent(0), START);
    assert_eq!(report.endorsements.len(), 50);
    assert!(report.endorsements[..10].iter().all(|endorsement| endorsement.endorser_score.get() > 60.0));
    assert!(endorsement_value(&book, START) > with_50);
}

#[test]
fn repeating_an_endorsement_does_not_count_twice() {
    let mut book = empty_book();
    endorse(&mut book, 1, 1, 10, false);
    let once = endorsement_value(&book, START);
    for _ in 0..100 {
        let event = book.endorsement(&agent(0), &agent(1), false, None, START).unwrap();
        book.record(&event);
    }
    assert!((endorsement_value(&book, START) - once).abs() < 1e-9);
}

#[test]
fn the_weight_is_the_endorsers_score_and_a_fifth_of_it_in_the_same_organization() {
    let weight = |sessions, is_same_organization| {
        let mut book = empty_book();
        endorse(&mut book, 1, 1, sessions, is_same_organization);
        let endorsement = book.report(&agent(0), START).endorsements[0].clone();
        (endorsement.weight, endorsement.endorser_score.get())
    };
    let ((other, score), (same, _)) = (weight(10, false), weight(10, true));
    assert!((other - score / 100.0).abs() < 1e-9);
    assert!((same - other / 5.0).abs() < 1e-9);
    assert!(weight(100, false).0 > other);
}

/// The endorser's present score counts, not the one it had when it endorsed the peer.
#[test]
fn an_endorser_that_loses_trust_loses_its_influence() {
    let mut book = empty_book();
    endorse(&mut book, 1, 1, 100, false);
    assert!(endorsement_value(&book, START) > 0.0);
    for _ in 0..5 {
        book.record(&event(1, START, super::events::dispute_lost(5)));
        book.record(&event(1, START, TrustEventKind::CardRevoked));
    }
    assert!(score(&book, 1, START) < 30.0);
    assert_eq!(endorsement_value(&book, START).to_bits(), 0_f64.to_bits());
}

#[test]
fn an_endorsement_loses_half_of_its_weight_in_180_days() {
    let mut book = empty_book();
    // The endorser is pinned and has no history, so its own score does not change.
    endorse(&mut book, 1, 1, 0, false);
    let weight = |days: i64| book.report(&agent(0), START + days * DAY_MS).endorsements[0].weight;
    assert!((weight(180) - weight(0) / 2.0).abs() < 1e-9);
}

#[test]
fn agents_cannot_endorse_themselves_or_raise_one_another_in_a_circle() {
    let mut book = empty_book();
    for peer in 0..3 {
        book.record(&event(peer, START, TrustEventKind::CardPinned));
    }
    assert_eq!(book.endorsement(&agent(0), &agent(0), false, None, START), None);
    book.record(&event(0, START, endorsement(0, 100.0, false)));
    assert!((score(&book, 0, START) - 37.0).abs() < 1e-9);
    for _ in 0..10 {
        for peer in 0..3 {
            let next = (peer + 1) % 3;
            let event = book.endorsement(&agent(next), &agent(peer), false, None, START).unwrap();
            let TrustEventKind::EndorsementReceived { endorser_score, .. } = &event.kind else { panic!() };
            assert!((endorser_score.get() - 37.0).abs() < 1e-9, "the score without endorsements");
            book.record(&event);
        }
    }
    // The weight of one endorsement by a newcomer: 0.37.
    let expected = 37.0 + 0.05 * 100.0 * 1.37_f64.ln() / 26_f64.ln();
    assert!((score(&book, 0, START) - expected).abs() < 1e-9);
}
