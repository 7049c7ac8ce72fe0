//! Staging and committing are two steps. A question with a staged decision cannot be decided again, and an
//! abandoned change has no effect.

use std::hash::BuildHasherDefault;

use aaep::SessionId;
use aaep::consent::{AskError, ConsentLimits, IgnoreReason, ResolvedBy, SpendError};

use super::consent_hub::*;

fn hub_with_question() -> ConsentHub {
    let mut hub = ConsentHub::with_listeners(&["ada", "bob"]);
    hub.ask(&bound(confirmation(1), "transfer", "{}"), &["ada", "bob"]);
    hub
}

#[test]
fn the_first_of_two_replies_in_a_batch_counts() {
    let mut hub = hub_with_question();
    let first = stage_message(&mut hub.registry, "ada", &reply(1, "ada", "reject", T0 + 1), T0 + 1).unwrap();
    let second = stage_message(&mut hub.registry, "bob", &reply(1, "bob", "accept", T0 + 1), T0 + 1);
    assert_eq!(second.unwrap_err(), IgnoreReason::ChangeStaged);
    let extension = stage_message(&mut hub.registry, "bob", &extend_request(1, "bob", None, T0 + 1), T0 + 1);
    assert_eq!(extension.unwrap_err(), IgnoreReason::ChangeStaged);
    assert_eq!(hub.registry.cancel_question(&token(1), T0 + 1).unwrap_err(), IgnoreReason::ChangeStaged);
    assert!(
        hub.registry.handle_deadlines(T0 + 200_000).is_empty(),
        "the deadline does not resolve the question either"
    );
    assert_eq!(hub.registry.next_deadline(), None);
    assert!(hub.registry.question(&token(1)).unwrap().is_open(), "nothing takes effect before the commit");
    assert!(!resolution(&hub.commit(first)).is_accepted());
}

#[test]
fn an_abandoned_change_has_no_effect() {
    let mut hub = hub_with_question();
    let before = hub.registry.clone();
    let staged_reply =
        stage_message(&mut hub.registry, "ada", &reply(1, "ada", "accept", T0 + 1), T0 + 1).unwrap();
    hub.registry.abandon(staged_reply);
    let staged_stop = stage_message(&mut hub.registry, "ada", &stop_request("ada", T0 + 1), T0 + 1).unwrap();
    hub.registry.abandon(staged_stop);
    let staged_question = hub.registry.ask(&parse_event(&confirmation(2)), [sub("ada")], T0).unwrap();
    hub.registry.abandon(staged_question);
    let staged_timeouts = hub.registry.handle_deadlines(T0 + 180_000);
    assert_eq!(staged_timeouts.resolutions().count(), 1);
    hub.registry.abandon(staged_timeouts);
    assert!(hub.registry == before);
    assert!(hub.answer("ada", 1, "accept", T0 + 2).is_ok());
}

#[test]
fn a_duplicate_of_a_staged_question_is_refused_and_the_staged_one_cannot_be_answered_yet() {
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    let first = hub.registry.ask(&parse_event(&confirmation(1)), [sub("ada")], T0).unwrap();
    let repeated = hub.registry.ask(&parse_event(&confirmation(1)), [sub("ada")], T0).unwrap_err();
    assert_eq!(repeated, AskError::TokenUsed);
    let same_action = with(confirmation(2), &serde_json::json!({"action": confirmation(1)["action"]}));
    let same_action = hub.registry.ask(&parse_event(&same_action), [sub("ada")], T0).unwrap_err();
    assert_eq!(same_action, AskError::DuplicateQuestion(token(1)));
    let early = stage_message(&mut hub.registry, "ada", &reply(1, "ada", "accept", T0), T0).unwrap_err();
    assert_eq!(early, IgnoreReason::UnknownToken, "the question has not been sent yet");
    hub.commit(first);
    assert!(hub.answer("ada", 1, "accept", T0).is_ok());
}

#[test]
fn an_acceptance_is_spent_once_within_a_batch() {
    let mut hub = hub_with_question();
    hub.answer("ada", 1, "accept", T0 + 1).unwrap();
    let session = session();
    let first = hub.registry.spend(&call(&session, None, None), T0 + 1).unwrap();
    assert_eq!(
        hub.registry.spend(&call(&session, None, None), T0 + 1).unwrap_err(),
        SpendError::AlreadySpent
    );
    hub.registry.abandon(first);
    assert!(hub.spend(&call(&session, None, None)).is_ok());
}

#[test]
fn an_uncommitted_acceptance_covers_nothing() {
    let mut hub = hub_with_question();
    let staged = stage_message(&mut hub.registry, "ada", &reply(1, "ada", "accept", T0 + 1), T0 + 1).unwrap();
    assert_eq!(hub.registry.spend(&call(&session(), None, None), T0 + 1).unwrap_err(), SpendError::Undecided);
    hub.commit(staged);
    assert!(hub.spend(&call(&session(), None, None)).is_ok());
}

#[test]
fn a_stop_applies_to_staged_changes() {
    let mut hub = hub_with_question();
    hub.ask(&confirmation(2), &["ada"]);
    hub.answer("ada", 2, "accept", T0 + 1).unwrap();
    let staged_question = hub.registry.ask(&parse_event(&confirmation(3)), [sub("ada")], T0).unwrap();
    let extension =
        stage_message(&mut hub.registry, "ada", &extend_request(1, "ada", None, T0 + 2), T0 + 2).unwrap();
    let staged_stop = stage_message(&mut hub.registry, "ada", &stop_request("ada", T0 + 3), T0 + 3).unwrap();
    let stopped: Vec<_> = staged_stop
        .resolutions()
        .map(|resolution| (resolution.token.clone(), resolution.resolved_by))
        .collect();
    assert_eq!(stopped.len(), 2);
    assert!(
        stopped.contains(&(token(1), ResolvedBy::Stopped))
            && stopped.contains(&(token(3), ResolvedBy::Stopped))
    );
    assert_eq!(
        hub.registry.spend(&call(&session(), Some(&token(2)), None), T0 + 1).unwrap_err(),
        SpendError::SessionEnded
    );
    hub.commit(staged_question);
    hub.commit(extension);
    let reply_before_commit =
        stage_message(&mut hub.registry, "ada", &reply(1, "ada", "accept", T0 + 4), T0 + 4);
    assert_eq!(reply_before_commit.unwrap_err(), IgnoreReason::ChangeStaged, "the stop is still staged");
    hub.commit(staged_stop);
    assert_eq!(hub.wake(T0 + 9_000_000), []);
    assert_eq!(hub.answer("ada", 3, "accept", T0 + 5).unwrap_err(), IgnoreReason::AlreadyResolved);
}

#[test]
fn an_acceptance_just_before_a_stop_covers_nothing() {
    let mut hub = hub_with_question();
    let acceptance =
        stage_message(&mut hub.registry, "ada", &reply(1, "ada", "accept", T0 + 1), T0 + 1).unwrap();
    let staged_stop = stage_message(&mut hub.registry, "bob", &stop_request("bob", T0 + 1), T0 + 1).unwrap();
    assert_eq!(staged_stop.resolutions().count(), 0, "the question already has an answer");
    // The order of the commits does not matter.
    hub.commit(staged_stop);
    hub.commit(acceptance);
    assert_eq!(
        hub.registry.spend(&call(&session(), Some(&token(1)), None), T0 + 1).unwrap_err(),
        SpendError::SessionEnded
    );
    assert_eq!(hub.registry.questions().count(), 0);
}

#[test]
fn a_question_with_two_abandoned_changes_can_be_answered() {
    let mut hub = hub_with_question();
    let before = hub.registry.clone();
    let extension =
        stage_message(&mut hub.registry, "ada", &extend_request(1, "ada", None, T0 + 1), T0 + 1).unwrap();
    let staged_stop = stage_message(&mut hub.registry, "ada", &stop_request("ada", T0 + 1), T0 + 1).unwrap();
    hub.registry.abandon(extension);
    assert_eq!(hub.answer("ada", 1, "accept", T0 + 2).unwrap_err(), IgnoreReason::ChangeStaged);
    hub.registry.abandon(staged_stop);
    assert!(hub.registry == before);
    assert!(hub.answer("ada", 1, "accept", T0 + 2).is_ok());
}

#[test]
fn a_staged_change_contains_the_questions_to_store() {
    let mut hub = hub_with_question();
    let staged = stage_message(&mut hub.registry, "ada", &reply(1, "ada", "accept", T0 + 1), T0 + 1).unwrap();
    assert!(!staged.is_empty());
    let stored = staged.questions().to_vec();
    hub.commit(staged);
    assert!(stored.iter().eq(hub.registry.question(&token(1))));
}

#[test]
fn a_staged_change_without_outcomes_may_still_have_to_be_stored() {
    let mut hub = hub_with_question();
    hub.registry.subscription_opened(&sub("cleo"), "cleo");
    let new_replier = hub.registry.add_replier(&token(1), &sub("cleo"), T0).unwrap();
    let other_session = SessionId::parse(OTHER_SESSION).unwrap();
    let end_of_session = hub.registry.end_session(&other_session, T0);
    for staged in [new_replier, end_of_session] {
        assert_eq!(staged.outcomes(), []);
        assert!(!staged.is_empty(), "{staged:?}");
    }
    assert!(hub.registry.handle_deadlines(T0).is_empty());
}

#[test]
fn registries_are_equal_only_if_their_content_is_equal() {
    let hub = hub_with_question();
    assert!(hub.registry == hub.registry.clone());
    let changes: [fn(&mut TestRegistry); 4] = [
        |registry| assert!(registry.subscription_opened(&sub("cleo"), "cleo")),
        |registry| drop(registry.subscription_closed(&sub("unknown"), T0)),
        |registry| drop(registry.cancel_question(&token(1), T0).unwrap()),
        |registry| drop(registry.end_session(&SessionId::parse(OTHER_SESSION).unwrap(), T0)),
    ];
    for (index, change) in changes.iter().enumerate() {
        let mut changed = hub.registry.clone();
        change(&mut changed);
        assert!(changed != hub.registry, "change {index}");
    }
    let with_limits = |limits| TestRegistry::new(limits, BuildHasherDefault::default());
    let larger = ConsentLimits { max_open_total: 5000, ..Default::default() };
    assert!(with_limits(larger) != with_limits(ConsentLimits::default()));
}
