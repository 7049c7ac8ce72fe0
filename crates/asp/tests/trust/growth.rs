//! What raises and lowers a score.

use asp::trust::{TrustBook, TrustEventKind, TrustLevel, TrustParameters};
use proptest::prelude::*;
use testing::property::cases;

use super::events::{
    START, agent, any_kind, bad_kind, book_with, commitment, dispute_lost, empty_book, event, good_kind,
    good_sessions, history, score,
};

/// The scores that the documentation states.
#[test]
fn newcomers_start_at_17_27_or_37() {
    assert_close(score(&empty_book(), 0, START), 17.0);
    assert_close(score(&book_with([TrustEventKind::CardTrustedOnFirstUse]), 0, START), 27.0);
    assert_close(score(&book_with([TrustEventKind::CardPinned]), 0, START), 37.0);
}

#[test]
fn growth_is_logarithmic() {
    let gain = |from, to| {
        score(&book_with(good_sessions(to)), 0, START) - score(&book_with(good_sessions(from)), 0, START)
    };
    assert!(gain(0, 10) > 3.0 * gain(10, 20), "{} against {}", gain(0, 10), gain(10, 20));
    let (first, second) = (gain(10, 50), gain(50, 250));
    assert!((first - second).abs() < 1.0, "five times as many sessions: {first} against {second}");
}

#[test]
fn a_peer_reaches_every_level_without_endorsements() {
    let level = |sessions| book_with(good_sessions(sessions)).level(&agent(0), START);
    assert_eq!(empty_book().level(&agent(0), START), TrustLevel::Unverified);
    assert_eq!(level(0), TrustLevel::Verified);
    assert_eq!(level(10), TrustLevel::Established);
    assert_eq!(level(150), TrustLevel::Trusted);
    let mut kinds = good_sessions(1_000);
    kinds.extend((0..100).map(|_| TrustEventKind::EscrowFunded(commitment())));
    assert_eq!(book_with(kinds.clone()).level(&agent(0), START), TrustLevel::Premium);
    assert_close(score(&book_with(kinds), 0, START), 95.0);
}

#[test]
fn levels_begin_at_30_50_70_and_90() {
    use asp::message::TrustScore;
    let book = empty_book();
    let level = |score| book.level_of(TrustScore::new(score).unwrap()).number();
    assert_eq!(
        [0.0, 29.99, 30.0, 49.99, 50.0, 69.99, 70.0, 89.99, 90.0, 100.0].map(level),
        [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    );
    // The examples that npayload publishes.
    assert_eq!([49.0, 68.0, 72.5, 85.0, 91.0, 92.0].map(level), [1, 2, 3, 3, 4, 4]);
}

/// One moderate dispute undoes hundreds of good sessions.
#[test]
fn a_moderate_dispute_undoes_hundreds_of_good_sessions() {
    let mut kinds = good_sessions(300);
    kinds.push(dispute_lost(3));
    let after = score(&book_with(kinds), 0, START);
    let with_ten = score(&book_with(good_sessions(10)), 0, START);
    assert!(after < with_ten, "{after} after the dispute, {with_ten} with ten sessions");
}

#[test]
fn a_broken_commitment_lowers_the_score_by_at_least_15_points() {
    for sessions in [50, 300, 1_000] {
        let before = score(&book_with(good_sessions(sessions)), 0, START);
        let mut kinds = good_sessions(sessions);
        kinds.push(TrustEventKind::CommitmentBroken(commitment()));
        let after = score(&book_with(kinds), 0, START);
        assert!(before - after >= 15.0, "{sessions} sessions: {before} to {after}");
    }
}

#[test]
fn a_broken_commitment_counts_in_the_ratio_after_its_penalty_is_gone() {
    let parameters = TrustParameters {
        effects: TrustParameters::default().effects.into_iter().filter(|row| row.credit > 0.0).collect(),
        ..TrustParameters::default()
    };
    let mut book = TrustBook::new(parameters).unwrap();
    for _ in 0..60 {
        book.record(&event(0, START, TrustEventKind::CommitmentKept(commitment())));
    }
    let before = score(&book, 0, START);
    book.record(&event(0, START, TrustEventKind::CommitmentBroken(commitment())));
    let after = score(&book, 0, START);
    // 60 kept and one broken, which counts 20 times: a quarter of the growth is lost.
    let growth = 0.2 * 80.0 * 61_f64.ln() / 301_f64.ln();
    assert_close(before - after, growth / 4.0);
}

#[test]
fn a_dispute_lowers_the_score_more_the_more_severe_it_is() {
    let after = |severity| {
        let mut kinds = good_sessions(300);
        kinds.push(dispute_lost(severity));
        score(&book_with(kinds), 0, START)
    };
    let scores: Vec<_> = (1..=5).map(after).collect();
    assert!(scores.is_sorted_by(|a, b| a > b), "{scores:?}");
}

/// Good sessions cannot make up for what a breach costs; only time can.
#[test]
fn more_sessions_of_a_saturated_peer_do_not_undo_a_dispute() {
    let mut kinds = good_sessions(1_000);
    kinds.push(dispute_lost(3));
    let after_dispute = score(&book_with(kinds.clone()), 0, START);
    kinds.extend(good_sessions(1_000));
    assert_close(score(&book_with(kinds), 0, START), after_dispute);
}

#[test]
fn a_revoked_card_counts_as_unverified_until_a_card_is_pinned_again() {
    let mut book = book_with([TrustEventKind::CardPinned, TrustEventKind::CardRevoked]);
    let identity = |book: &TrustBook| book.report(&agent(0), START + 1).components[0].value;
    assert_close(identity(&book), 0.0);
    book.record(&event(0, START + 1, TrustEventKind::CardTrustedOnFirstUse));
    assert_close(identity(&book), 50.0);
    book.record(&event(0, START + 1, TrustEventKind::CardPinned));
    assert_close(identity(&book), 100.0);
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn a_good_event_never_lowers_a_score(events in history(40), kind in good_kind(), later_ms in 0..200_i64 * 86_400_000) {
        let (before, after) = scores_without_and_with(&events, kind, later_ms);
        prop_assert!(after >= before - 1e-4, "{} to {}", before, after);
    }

    #[test]
    fn a_bad_event_never_raises_a_score(events in history(40), kind in bad_kind(), later_ms in 0..200_i64 * 86_400_000) {
        let (before, after) = scores_without_and_with(&events, kind, later_ms);
        prop_assert!(after <= before + 1e-4, "{} to {}", before, after);
    }

    #[test]
    fn scores_and_components_stay_between_0_and_100(events in history(60), repeated in any_kind(), later_ms in 0..3_000_i64 * 86_400_000) {
        let mut book = TrustBook::replay(TrustParameters::default(), &events).unwrap();
        for _ in 0..500 {
            book.record(&event(0, START, repeated.clone()));
        }
        for peer in 0..4 {
            let report = book.report(&agent(peer), START + later_ms);
            prop_assert!((0.0..=100.0).contains(&report.score.get()));
            for component in &report.components {
                prop_assert!((0.0..=100.0).contains(&component.value), "{:?}", component);
            }
        }
    }
}

/// Returns the score of peer 0, without and with one more event at the end of its history.
fn scores_without_and_with(
    events: &[asp::trust::TrustEvent],
    kind: TrustEventKind,
    later_ms: i64,
) -> (f64, f64) {
    let without = TrustBook::replay(TrustParameters::default(), events).unwrap();
    let last_at = events.last().map_or(START, |event| event.at);
    let mut with = without.clone();
    with.record(&event(0, last_at, kind));
    (score(&without, 0, last_at + later_ms), score(&with, 0, last_at + later_ms))
}

fn assert_close(actual: f64, expected: f64) {
    assert!((actual - expected).abs() < 1e-3, "{actual}, expected {expected}");
}
