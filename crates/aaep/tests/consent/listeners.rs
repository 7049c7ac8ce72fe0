//! Listeners: who is gone, who comes back, and who joins late (C-C16, C-C17; digest, section 19).

use aaep::consent::{By, Ignored};
use seal::UnixMillis;

use super::hub::*;

fn closed(hub: &mut Hub, who: &str, now: UnixMillis) -> Vec<aaep::consent::Resolution> {
    let decided = hub.book.subscription_closed(&sub(who), now);
    resolutions(&hub.commit(decided))
}

fn lost(hub: &mut Hub, who: &str, now: UnixMillis, window: i64) -> Vec<aaep::consent::Resolution> {
    let decided = hub.book.subscription_lost(&sub(who), now, window);
    resolutions(&hub.commit(decided))
}

#[test]
fn the_default_holds_when_the_last_who_could_answer_is_gone() {
    let mut hub = Hub::with(&["ada", "bob", "cleo"]);
    hub.ask(&confirmation(1), &["ada", "bob"]);
    hub.ask(&harmless(2), &["bob"]);
    assert_eq!(closed(&mut hub, "ada", T0 + 1), [], "Bob can still answer (C-C16)");
    let resolved = closed(&mut hub, "bob", T0 + 2);
    let told: Vec<_> = resolved.iter().map(|it| (it.token.clone(), it.is_accepted(), it.by, it.at)).collect();
    assert!(told.contains(&(token(1), false, By::Closure, T0 + 2)), "though Cleo listens");
    assert!(told.contains(&(token(2), true, By::Closure, T0 + 2)));
    assert_eq!(told.len(), 2);
    assert_eq!(hub.answer("ada", 1, "accept", T0 + 3).unwrap_err(), Ignored::NoSubscription);
}

#[test]
fn who_comes_back_in_time_can_answer() {
    let mut hub = Hub::with(&["ada"]);
    hub.ask(&confirmation(1), &["ada"]);
    assert_eq!(lost(&mut hub, "ada", T0, 30_000), []);
    assert_eq!(hub.book.next_deadline(), Some(T0 + 30_000));
    assert!(hub.book.subscription_resumed(&sub("ada"), T0 + 29_999));
    assert!(resolutions(&hub.wake(T0 + 60_000)).is_empty());
    assert!(hub.answer("ada", 1, "accept", T0 + 60_001).unwrap().is_accepted());
}

#[test]
fn who_does_not_come_back_in_time_is_gone() {
    let mut hub = Hub::with(&["ada"]);
    hub.ask(&confirmation(1), &["ada"]);
    lost(&mut hub, "ada", T0, 30_000);
    assert!(hub.wake(T0 + 29_999).is_empty());
    assert_eq!(lost(&mut hub, "ada", T0 + 29_999, 30_000), [], "being lost twice gives no more time");
    assert_eq!(resolution(&hub.wake(T0 + 30_000)).by, By::Closure);
    assert!(!hub.book.subscription_resumed(&sub("ada"), T0 + 30_001));
    assert!(
        !hub.book.subscription_opened(&sub("ada"), "eve"),
        "nobody else gets a subscription that was closed"
    );
}

#[test]
fn a_window_of_nothing_is_a_closure_and_none_outlives_the_deadline() {
    let mut hub = Hub::with(&["ada"]);
    hub.ask(&confirmation(1), &["ada"]);
    assert_eq!(lost(&mut hub, "ada", T0, 0)[0].by, By::Closure);
    let mut hub = Hub::with(&["ada"]);
    hub.ask(&confirmation(1), &["ada"]);
    lost(&mut hub, "ada", T0 + 170_000, 30_000);
    assert_eq!(resolution(&hub.wake(T0 + 180_000)).by, By::Timeout);
}

#[test]
fn where_silence_means_yes_nobody_is_waited_for() {
    let mut hub = Hub::with(&["ada", "bob"]);
    hub.ask(&harmless(1), &["ada"]);
    hub.ask(&harmless(2), &["ada", "bob"]);
    let resolved = lost(&mut hub, "ada", T0, 30_000);
    assert_eq!(resolved.len(), 1);
    assert_eq!((&resolved[0].token, resolved[0].by), (&token(1), By::Closure));
}

#[test]
fn a_lost_listener_who_writes_all_the_same_is_heard_until_it_counts_as_gone() {
    let mut hub = Hub::with(&["ada"]);
    hub.ask(&confirmation(1), &["ada"]);
    hub.ask(&confirmation(2), &["ada"]);
    lost(&mut hub, "ada", T0, 30_000);
    assert!(hub.answer("ada", 1, "accept", T0 + 29_999).is_ok());
    assert_eq!(hub.answer("ada", 2, "accept", T0 + 30_000).unwrap_err(), Ignored::NoSubscription);
}

#[test]
fn a_late_joiner_may_answer_once_it_was_asked_too() {
    let mut hub = Hub::with(&["ada", "bob"]);
    hub.ask(&confirmation(1), &["ada"]);
    assert_eq!(hub.answer("bob", 1, "accept", T0 + 1).unwrap_err(), Ignored::NotEntitled);
    let decided = hub.book.entitle(&token(1), &sub("bob"), T0 + 2).unwrap();
    hub.commit(decided);
    assert_eq!(closed(&mut hub, "ada", T0 + 3), []);
    assert!(hub.answer("bob", 1, "accept", T0 + 4).unwrap().is_accepted());
}

#[test]
fn only_open_subscriptions_are_entitled_and_only_to_open_questions() {
    let mut hub = Hub::with(&["ada", "bob"]);
    hub.ask(&confirmation(1), &["ada"]);
    let mut why = |n, who, now| hub.book.entitle(&token(n), &sub(who), now).unwrap_err();
    assert_eq!(why(1, "eve", T0), Ignored::NoSubscription);
    assert_eq!(why(9, "bob", T0), Ignored::Unknown);
    assert_eq!(why(1, "bob", T0 + 180_000), Ignored::Late);
    hub.answer("ada", 1, "reject", T0).unwrap();
    assert_eq!(hub.book.entitle(&token(1), &sub("bob"), T0).unwrap_err(), Ignored::Used);
}

#[test]
fn a_subscription_stays_its_owners() {
    let mut hub = Hub::with(&["ada"]);
    assert!(!hub.book.subscription_opened(&sub("ada"), "mallory"));
    assert!(hub.book.subscription_opened(&sub("ada"), "ada"));
    hub.ask(&confirmation(1), &["ada"]);
    assert!(hub.answer("ada", 1, "accept", T0 + 1).is_ok());
}

#[test]
fn those_who_come_and_go_leave_nothing_behind_in_a_question() {
    let mut hub = Hub::with(&["ada"]);
    hub.ask(&confirmation(1), &["ada"]);
    for n in 0..100 {
        let guest = sub(&format!("guest{n}"));
        hub.book.subscription_opened(&guest, "guest");
        let decided = hub.book.entitle(&token(1), &guest, T0).unwrap();
        hub.commit(decided);
        let decided = hub.book.subscription_closed(&guest, T0);
        hub.commit(decided);
    }
    assert!(hub.book.question(&token(1)).unwrap().repliers().len() <= 2);
}
