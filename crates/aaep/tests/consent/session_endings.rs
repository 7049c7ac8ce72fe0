//! Cancelling questions, and ending and stopping sessions (§6.8, `sayso:session.stop`).

use aaep::consent::{
    AskError, ConsentMessage, ConsentOutcome, IgnoreReason, MessageSender, QuestionAnswer, ReplyChannel,
    ResolvedBy, SpendError,
};
use serde_json::json;

use super::consent_hub::*;

/// A hub with two open questions, one accepted question, and one open question in another session.
fn hub_with_questions() -> ConsentHub {
    let mut hub = ConsentHub::with_listeners(&["ada", "bob"]);
    hub.ask(&confirmation(1), &["ada"]);
    hub.ask(&clarification(2), &["ada"]);
    hub.ask(&confirmation(3), &["ada"]);
    hub.ask(&with(confirmation(4), &json!({"session_id": OTHER_SESSION})), &["ada"]);
    hub.answer("ada", 3, "accept", T0 + 1).unwrap();
    hub
}

fn assert_session_is_over(
    hub: &mut ConsentHub,
    resolved: &[aaep::consent::Resolution],
    resolved_by: ResolvedBy,
) {
    let tokens_and_reasons: Vec<_> =
        resolved.iter().map(|resolution| (resolution.token.clone(), resolution.resolved_by)).collect();
    assert_eq!(
        tokens_and_reasons,
        [(token(1), resolved_by), (token(2), resolved_by)],
        "only the open questions of this session are cancelled"
    );
    assert!(
        resolved.iter().all(|resolution| !resolution.is_accepted() && resolution.session_id == session())
    );
    assert_eq!(resolved[1].answer, QuestionAnswer::Unavailable);
    for n in [1, 3] {
        assert_eq!(
            hub.answer("ada", n, "accept", T0 + 10).unwrap_err(),
            IgnoreReason::AlreadyResolved,
            "tokens are no longer valid"
        );
        assert_eq!(
            hub.registry.cancel_question(&token(n), T0 + 10).unwrap_err(),
            IgnoreReason::AlreadyResolved,
            "a token of the ended session is known"
        );
    }
    let refused = hub.registry.spend(&call(&session(), Some(&token(3)), None), T0 + 1).unwrap_err();
    assert_eq!(refused, SpendError::SessionEnded, "the earlier acceptance no longer covers anything");
    let refused = hub.try_ask(&confirmation(5), &["ada"], T0 + 10).unwrap_err();
    assert_eq!(refused, AskError::SessionEnded);
    assert!(
        hub.registry.is_session_ended(&session())
            && hub.registry.session_questions(&session()).next().is_none()
    );
    assert!(hub.answer("ada", 4, "accept", T0 + 10).unwrap().is_accepted(), "other sessions continue");
    assert_eq!(hub.wake(T0 + 1_000_000), []);
}

#[test]
fn ending_a_session_cancels_its_questions() {
    let mut hub = hub_with_questions();
    let staged = hub.registry.end_session(&session(), T0 + 5);
    assert_eq!(staged.ended_session(), Some(&session()));
    let resolved = resolutions(&hub.commit(staged));
    assert_session_is_over(&mut hub, &resolved, ResolvedBy::Cancelled);
    assert!(hub.registry.end_session(&session(), T0 + 6).is_empty(), "a session ends only once");
}

#[test]
fn the_person_can_stop_a_session() {
    let mut hub = hub_with_questions();
    let outcomes = hub.send("ada", &stop_request("ada", T0 + 5), T0 + 6).unwrap();
    let resolved = resolutions(&outcomes);
    assert_eq!((resolved[0].principal.as_deref(), resolved[0].resolved_at), (Some("ada"), T0 + 6));
    let Some(ConsentOutcome::SessionStopped(stopped)) = outcomes.last() else { panic!("{outcomes:?}") };
    assert_eq!((&stopped.session_id, &stopped.subscription_id), (&session(), &sub("ada")));
    assert_eq!(
        (&*stopped.principal, stopped.reason.as_deref(), stopped.stopped_at),
        ("ada", Some("Enough."), T0 + 6)
    );
    assert_session_is_over(&mut hub, &resolved, ResolvedBy::Stopped);
}

#[test]
fn a_session_without_questions_can_be_stopped() {
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    assert!(matches!(
        hub.send("ada", &stop_request("ada", T0), T0).unwrap()[..],
        [ConsentOutcome::SessionStopped(_)]
    ));
    assert_eq!(hub.send("ada", &stop_request("ada", T0), T0).unwrap_err(), IgnoreReason::SessionEnded);
}

#[test]
fn only_a_listener_of_a_session_can_stop_it() {
    let ConsentMessage::Stop(request) = ConsentMessage::parse(&stop_request("ada", T0)).unwrap() else {
        panic!()
    };
    let (ada, bob) = (sub("ada"), sub("bob"));
    let cases = [
        ("ada", ReplyChannel::Shared, false, IgnoreReason::NotEntitled),
        ("bob", ReplyChannel::Shared, true, IgnoreReason::WrongPrincipal),
        ("bob", ReplyChannel::Subscription(&bob), true, IgnoreReason::WrongConnection),
    ];
    for (principal, channel, is_listening, reason) in cases {
        let mut hub = hub_with_questions();
        let before = hub.registry.clone();
        let refused = hub
            .registry
            .stop_session(&request, &MessageSender { principal, channel }, is_listening, T0 + 1)
            .unwrap_err();
        assert_eq!(refused, reason);
        assert!(hub.registry == before);
    }
    assert!(
        hub_with_questions()
            .registry
            .stop_session(
                &request,
                &MessageSender { principal: "ada", channel: ReplyChannel::Subscription(&ada) },
                true,
                T0 + 1
            )
            .is_ok()
    );
}

#[test]
fn a_cancelled_question_is_refused_and_its_token_is_used() {
    let mut hub = hub_with_questions();
    let staged = hub.registry.cancel_question(&token(1), T0 + 5).unwrap();
    let resolved = resolution(&hub.commit(staged));
    assert_eq!((resolved.resolved_by, resolved.is_accepted()), (ResolvedBy::Cancelled, false));
    assert_eq!(hub.answer("ada", 1, "accept", T0 + 6).unwrap_err(), IgnoreReason::AlreadyResolved);
    assert_eq!(hub.registry.cancel_question(&token(1), T0 + 7).unwrap_err(), IgnoreReason::AlreadyResolved);
    assert_eq!(
        hub.registry.cancel_question(&token(3), T0 + 7).unwrap_err(),
        IgnoreReason::AlreadyResolved,
        "already accepted"
    );
    assert_eq!(hub.registry.cancel_question(&token(9), T0 + 7).unwrap_err(), IgnoreReason::UnknownToken);
}

#[test]
fn all_open_questions_can_be_refused_at_once_even_after_their_deadlines() {
    let mut hub = hub_with_questions();
    let staged = hub.registry.refuse_open_questions(T0 + 1_000_000);
    assert_eq!(staged.ended_session(), None, "the sessions continue");
    let resolved = resolutions(&hub.commit(staged));
    let mut tokens: Vec<_> = resolved.iter().map(|resolution| resolution.token.clone()).collect();
    tokens.sort_unstable();
    assert_eq!(tokens, [token(1), token(2), token(4)], "question 3 is not open");
    for resolution in resolved {
        assert_eq!(
            (resolution.resolved_by, resolution.resolved_at, resolution.is_accepted()),
            (ResolvedBy::Cancelled, T0 + 1_000_000, false)
        );
    }
    assert!(hub.registry.refuse_open_questions(T0 + 1_000_000).is_empty());
}

#[test]
fn a_session_with_too_many_usable_acceptances_forgets_the_oldest() {
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    hub.ask(&confirmation(100), &["ada"]);
    for n in 0..=64 {
        hub.ask(&bound(confirmation(n), "transfer", "{}"), &["ada"]);
        hub.answer("ada", n, "accept", T0 + 1).unwrap();
    }
    let kept: Vec<_> = hub.registry.session_questions(&session()).map(|question| &question.token).collect();
    let open_and_newest: Vec<_> = std::iter::once(100).chain(1..=64).map(token).collect();
    assert!(kept.into_iter().eq(&open_and_newest));
}

#[test]
fn a_session_keeps_at_most_64_resolved_questions() {
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    hub.ask(&bound(confirmation(0), "transfer", "{}"), &["ada"]);
    hub.answer("ada", 0, "accept", T0 + 1).unwrap();
    for n in 1..=200 {
        hub.ask(&confirmation(n), &["ada"]);
        hub.answer("ada", n, "reject", T0 + 1).unwrap();
    }
    assert_eq!(hub.registry.session_questions(&session()).count(), 64);
    assert_eq!(
        hub.answer("ada", 1, "accept", T0 + 2).unwrap_err(),
        IgnoreReason::AlreadyResolved,
        "its token still counts as used"
    );
    let refused = hub.registry.spend(&call(&session(), Some(&token(1)), None), T0 + 1).unwrap_err();
    assert_eq!(refused, SpendError::Expired);
    assert!(
        hub.spend(&call(&session(), Some(&token(0)), None)).is_ok(),
        "usable acceptances are kept longest"
    );
}
