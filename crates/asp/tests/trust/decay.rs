//! How a score decays over time.

use asp::trust::{TrustBook, TrustEventKind};
use proptest::prelude::*;
use testing::property::cases;

use super::events::{
    DAY_MS, HOUR_MS, START, bad_kind, book_with, dispute_lost, empty_book, event, good_kind, good_sessions,
    score,
};

/// The growth of an inactive peer halves in each half-life, after the grace period.
#[test]
fn the_growth_of_an_inactive_peer_halves_every_90_days_after_a_week() {
    let book = book_with(good_sessions(100));
    let base = score(&book_with([TrustEventKind::CardPinned]), 0, START);
    let growth_after = |days: i64| score(&book, 0, START + days * DAY_MS) - base;
    let growth = growth_after(0);
    assert!(growth > 30.0, "{growth}");
    assert!((growth_after(7) - growth).abs() < 1e-9, "nothing decays in the first week");
    assert!((growth_after(7 + 90) - growth / 2.0).abs() < 1e-3);
    assert!((growth_after(7 + 180) - growth / 4.0).abs() < 1e-3);
    assert!(growth_after(7 + 3_650) < 1e-3);
}

#[test]
fn an_active_peer_does_not_decay() {
    let mut book = book_with(good_sessions(100));
    let before = score(&book, 0, START);
    for week in 1..=52 {
        book.record(&event(0, START + week * 7 * DAY_MS, TrustEventKind::SessionClosed));
    }
    assert!(score(&book, 0, START + 52 * 7 * DAY_MS) >= before);
}

/// A peer that returns does not get back what it lost while it was away.
#[test]
fn a_single_session_does_not_restore_what_has_decayed() {
    let mut book = book_with(good_sessions(300));
    let best = score(&book, 0, START);
    let return_at = START + 400 * DAY_MS;
    let away = score(&book, 0, return_at);
    book.record(&event(0, return_at, TrustEventKind::SessionCompleted));
    let returned = score(&book, 0, return_at);
    assert!(returned - away < 6.0, "{away} to {returned}");
    assert!(returned < best - 30.0, "{best} to {returned}");
}

/// Bad events do not count as activity, so they do not stop the decay.
#[test]
fn bad_events_do_not_stop_the_decay() {
    let (mut book, quiet) = (book_with(good_sessions(100)), book_with(good_sessions(100)));
    for day in 1..=365 {
        book.record(&event(0, START + day * DAY_MS, TrustEventKind::AuthenticationFailed));
    }
    let now = START + 365 * DAY_MS;
    assert!(score(&book, 0, now) < score(&quiet, 0, now));
}

#[test]
fn half_of_a_penalty_is_forgiven_in_a_year() {
    let loss_after = |days: i64| {
        let now = START + days * DAY_MS;
        let book = book_with([dispute_lost(2)]);
        score(&empty_book(), 0, now) - score(&book, 0, now)
    };
    // The penalty is 24 points. Consistency loses all of them. Fulfillment and reliability lose only 20, because their base is
    // 20 and a component cannot fall below 0. History starts at 0, so it loses nothing.
    assert!((loss_after(0) - (0.2 * 20.0 + 0.1 * 24.0 + 0.1 * 20.0)).abs() < 1e-3, "{}", loss_after(0));
    assert!((loss_after(365) - 0.4 * 12.0).abs() < 1e-3, "{}", loss_after(365));
    assert!((loss_after(730) - 0.4 * 6.0).abs() < 1e-3);
    assert!(loss_after(20_000) < 1e-9);
}

/// Decay in many small steps is the same as decay in one step.
#[test]
fn frequent_events_do_not_change_the_decay_of_penalties() {
    let (mut busy, quiet) = (book_with([dispute_lost(5)]), book_with([dispute_lost(5)]));
    for minute in 0..30 * 24 * 60 {
        // The event changes another component: only the time steps matter.
        busy.record(&event(0, START + minute * 60_000, TrustEventKind::CardTrustedOnFirstUse));
    }
    let now = START + 30 * DAY_MS;
    let penalty = |book: &TrustBook| book.report(&super::events::agent(0), now).components[2].penalty;
    assert!((penalty(&busy) - penalty(&quiet)).abs() < 1e-2, "{} and {}", penalty(&busy), penalty(&quiet));
    assert!(penalty(&quiet) < 145.0);
}

/// A clock that goes back neither decays nor restores anything.
#[test]
fn a_clock_that_goes_back_has_no_effect() {
    let mut book = book_with(good_sessions(10));
    let before = score(&book, 0, START);
    assert!((score(&book, 0, START - 1_000 * DAY_MS) - before).abs() < 1e-9);
    book.record(&event(0, START - 1_000 * DAY_MS, TrustEventKind::SessionCompleted));
    assert!(score(&book, 0, START) > before);
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn good_histories_decay_towards_the_base(kinds in proptest::collection::vec(good_kind(), 0..60), steps in proptest::collection::vec(0..60 * DAY_MS, 1..20)) {
        let book = book_with(kinds.clone());
        let identity: Vec<_> = kinds.into_iter().filter(|kind| matches!(kind, TrustEventKind::CardPinned | TrustEventKind::CardTrustedOnFirstUse)).collect();
        let base = score(&book_with(identity), 0, START);
        let (mut now, mut previous) = (START, score(&book, 0, START));
        for step_ms in steps {
            now += step_ms;
            let next = score(&book, 0, now);
            prop_assert!(next <= previous + 1e-6 && next >= base - 1e-6, "{} to {}, base {}", previous, next, base);
            previous = next;
        }
        prop_assert!((score(&book, 0, START + 20_000 * DAY_MS) - base).abs() < 1e-3);
    }

    #[test]
    fn bad_histories_recover_towards_the_base(kinds in proptest::collection::vec(bad_kind(), 0..60), steps in proptest::collection::vec(0..200 * DAY_MS, 1..20)) {
        let book = book_with(kinds);
        let base = score(&empty_book(), 0, START);
        let (mut now, mut previous) = (START, score(&book, 0, START));
        for step_ms in steps {
            now += step_ms;
            let next = score(&book, 0, now);
            prop_assert!(next >= previous - 1e-6 && next <= base + 1e-6, "{} to {}, base {}", previous, next, base);
            previous = next;
        }
        prop_assert!((score(&book, 0, START + 20_000 * DAY_MS) - base).abs() < 1e-3);
    }

    /// Recording an event without an effect on a score does not change its decay.
    #[test]
    fn decay_in_steps_equals_decay_at_once(sessions in 1..200_usize, hours in proptest::collection::vec(0..2_000_i64, 1..10)) {
        let (mut stepped, at_once) = (book_with(good_sessions(sessions)), book_with(good_sessions(sessions)));
        let mut now = START;
        for hours in hours {
            now += hours * HOUR_MS;
            stepped.record(&event(0, now, TrustEventKind::CardPinned));
        }
        prop_assert!((score(&stepped, 0, now) - score(&at_once, 0, now)).abs() < 1e-3);
    }
}
