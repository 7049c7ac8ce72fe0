//! Listeners that disconnect, return, or join late (C-C16, C-C17).

use aaep::consent::{IgnoreReason, ResolvedBy};
use seal::UnixMillis;

use super::consent_hub::*;

fn close(hub: &mut ConsentHub, listener: &str, now: UnixMillis) -> Vec<aaep::consent::Resolution> {
    let staged = hub.registry.subscription_closed(&sub(listener), now);
    resolutions(&hub.commit(staged))
}

fn lose_connection(
    hub: &mut ConsentHub,
    listener: &str,
    now: UnixMillis,
    window_ms: i64,
) -> Vec<aaep::consent::Resolution> {
    let staged = hub.registry.subscription_lost(&sub(listener), now, window_ms);
    resolutions(&hub.commit(staged))
}

#[test]
fn the_default_applies_when_the_last_replier_closes_its_subscription() {
    let mut hub = ConsentHub::with_listeners(&["ada", "bob", "cleo"]);
    hub.ask(&confirmation(1), &["ada", "bob"]);
    hub.ask(&harmless_confirmation(2), &["bob"]);
    assert_eq!(close(&mut hub, "ada", T0 + 1), [], "Bob can still answer (C-C16)");
    let resolved = close(&mut hub, "bob", T0 + 2);
    let summaries: Vec<_> = resolved
        .iter()
        .map(|resolution| {
            (
                resolution.token.clone(),
                resolution.is_accepted(),
                resolution.resolved_by,
                resolution.resolved_at,
            )
        })
        .collect();
    assert!(
        summaries.contains(&(token(1), false, ResolvedBy::Closure, T0 + 2)),
        "Cleo is connected but was not asked"
    );
    assert!(summaries.contains(&(token(2), true, ResolvedBy::Closure, T0 + 2)));
    assert_eq!(summaries.len(), 2);
    assert_eq!(hub.answer("ada", 1, "accept", T0 + 3).unwrap_err(), IgnoreReason::SubscriptionNotOpen);
}

#[test]
fn a_listener_that_returns_in_time_can_answer() {
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    hub.ask(&confirmation(1), &["ada"]);
    assert_eq!(lose_connection(&mut hub, "ada", T0, 30_000), []);
    assert_eq!(hub.registry.next_deadline(), Some(T0 + 30_000));
    assert!(hub.registry.subscription_resumed(&sub("ada"), T0 + 29_999));
    assert!(resolutions(&hub.wake(T0 + 60_000)).is_empty());
    assert!(hub.answer("ada", 1, "accept", T0 + 60_001).unwrap().is_accepted());
}

#[test]
fn a_subscription_that_is_not_resumed_in_time_is_closed() {
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    hub.ask(&confirmation(1), &["ada"]);
    lose_connection(&mut hub, "ada", T0, 30_000);
    assert!(hub.wake(T0 + 29_999).is_empty());
    assert_eq!(
        lose_connection(&mut hub, "ada", T0 + 29_999, 30_000),
        [],
        "a second loss does not restart the window"
    );
    assert_eq!(resolution(&hub.wake(T0 + 30_000)).resolved_by, ResolvedBy::Closure);
    assert!(!hub.registry.subscription_resumed(&sub("ada"), T0 + 30_001));
    assert!(
        !hub.registry.subscription_opened(&sub("ada"), "eve"),
        "a closed subscription is not given to another principal"
    );
}

#[test]
fn a_zero_window_closes_immediately_and_no_window_outlives_the_deadline() {
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    hub.ask(&confirmation(1), &["ada"]);
    assert_eq!(lose_connection(&mut hub, "ada", T0, 0)[0].resolved_by, ResolvedBy::Closure);
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    hub.ask(&confirmation(1), &["ada"]);
    lose_connection(&mut hub, "ada", T0 + 170_000, 30_000);
    assert_eq!(resolution(&hub.wake(T0 + 180_000)).resolved_by, ResolvedBy::Timeout);
}

#[test]
fn a_lost_listener_is_not_awaited_if_the_default_is_accept() {
    let mut hub = ConsentHub::with_listeners(&["ada", "bob"]);
    hub.ask(&harmless_confirmation(1), &["ada"]);
    hub.ask(&harmless_confirmation(2), &["ada", "bob"]);
    let resolved = lose_connection(&mut hub, "ada", T0, 30_000);
    assert_eq!(resolved.len(), 1);
    assert_eq!((&resolved[0].token, resolved[0].resolved_by), (&token(1), ResolvedBy::Closure));
}

#[test]
fn a_lost_listener_can_reply_until_its_window_ends() {
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    hub.ask(&confirmation(1), &["ada"]);
    hub.ask(&confirmation(2), &["ada"]);
    lose_connection(&mut hub, "ada", T0, 30_000);
    assert!(hub.answer("ada", 1, "accept", T0 + 29_999).is_ok());
    assert_eq!(hub.answer("ada", 2, "accept", T0 + 30_000).unwrap_err(), IgnoreReason::SubscriptionNotOpen);
}

#[test]
fn a_late_joiner_can_answer_after_being_added_as_a_replier() {
    let mut hub = ConsentHub::with_listeners(&["ada", "bob"]);
    hub.ask(&confirmation(1), &["ada"]);
    assert_eq!(hub.answer("bob", 1, "accept", T0 + 1).unwrap_err(), IgnoreReason::NotEntitled);
    let staged = hub.registry.add_replier(&token(1), &sub("bob"), T0 + 2).unwrap();
    hub.commit(staged);
    assert_eq!(close(&mut hub, "ada", T0 + 3), []);
    assert!(hub.answer("bob", 1, "accept", T0 + 4).unwrap().is_accepted());
}

#[test]
fn only_open_subscriptions_can_be_added_and_only_to_open_questions() {
    let mut hub = ConsentHub::with_listeners(&["ada", "bob"]);
    hub.ask(&confirmation(1), &["ada"]);
    let mut refusal =
        |n, listener, now| hub.registry.add_replier(&token(n), &sub(listener), now).unwrap_err();
    assert_eq!(refusal(1, "eve", T0), IgnoreReason::SubscriptionNotOpen);
    assert_eq!(refusal(9, "bob", T0), IgnoreReason::UnknownToken);
    assert_eq!(refusal(1, "bob", T0 + 180_000), IgnoreReason::Late);
    hub.answer("ada", 1, "reject", T0).unwrap();
    assert_eq!(
        hub.registry.add_replier(&token(1), &sub("bob"), T0).unwrap_err(),
        IgnoreReason::AlreadyResolved
    );
}

#[test]
fn a_subscription_cannot_change_its_principal() {
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    assert!(!hub.registry.subscription_opened(&sub("ada"), "mallory"));
    assert!(hub.registry.subscription_opened(&sub("ada"), "ada"));
    hub.ask(&confirmation(1), &["ada"]);
    assert!(hub.answer("ada", 1, "accept", T0 + 1).is_ok());
}

#[test]
fn adding_a_replier_removes_closed_subscriptions_from_the_question() {
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    hub.ask(&confirmation(1), &["ada"]);
    for n in 0..100 {
        let guest = sub(&format!("guest{n}"));
        hub.registry.subscription_opened(&guest, "guest");
        let staged = hub.registry.add_replier(&token(1), &guest, T0).unwrap();
        hub.commit(staged);
        let staged = hub.registry.subscription_closed(&guest, T0);
        hub.commit(staged);
    }
    assert_eq!(
        hub.registry.question(&token(1)).unwrap().replier_ids(),
        [sub("ada"), sub("guest99")],
        "only Ada and the last guest remain"
    );
}
