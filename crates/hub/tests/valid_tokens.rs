//! Which tokens and browser sign-ins may use the hub, and what closes when they end.

use hub::command::{HubCommand, HubReply};
use hub::{ListenerId, Principal, Role, SignIn};
use seal::Digest;

use crate::support::{
    HubHarness, REPLY_CAPABILITIES, START, TRANSFER, agent, id, listener, reply_json, text_member,
};

/// Returns the principal with this token.
fn with_token(principal: Principal, token: &str) -> Principal {
    Principal { token_digest: Some(Digest::of(token.as_bytes())), ..principal }
}

fn ada() -> Principal {
    with_token(listener("ada", &["agent:bank"]), "ada's token")
}

fn signed_in(principal: &Principal, sign_in: u8, lifetime_ms: i64) -> Principal {
    let sign_in = SignIn { id: [sign_in; 16], expires_at: START + lifetime_ms };
    Principal { sign_in: Some(sign_in), ..principal.clone() }
}

fn set_valid(harness: &mut HubHarness, principals: &[Principal]) {
    let command = HubCommand::SetValidTokens { principals: principals.to_vec() };
    assert_eq!(harness.ask_hub(&Principal::local(), command), HubReply::Done);
}

fn attach(subscription: &str, listener: u64) -> HubCommand {
    HubCommand::Attach { subscription: id(subscription), last_event_id: None, listener: ListenerId(listener) }
}

#[test]
fn a_request_with_a_token_that_is_no_longer_valid_is_refused() {
    let mut harness = HubHarness::new();
    let bank = with_token(agent("bank"), "bank's token");
    let session = harness.start(&bank);
    set_valid(&mut harness, std::slice::from_ref(&bank));
    assert!(matches!(
        harness.publish(&bank, &session, &[crate::support::THINK]),
        HubReply::EventsPublished { .. }
    ));
    let others = [
        with_token(agent("bank"), "another token"),
        Principal { name: "bank2".into(), ..bank.clone() },
        Principal { role: Role::Listener, ..bank.clone() },
        Principal { agent_id: Some("post".into()), ..bank.clone() },
        Principal { scope: listener("x", &["agent:post"]).scope, ..bank.clone() },
        Principal { expires_at: Some(START + 1_000), ..bank.clone() },
    ];
    for other in others {
        let reply = harness.status(&other, &session, "rpl_00000000000000000000000000000000");
        assert_eq!(reply, HubReply::Forbidden, "{other:?}");
    }
    // A browser sign-in stands for the token.
    assert_ne!(
        harness.status(&signed_in(&bank, 1, 1_000), &session, "rpl_00000000000000000000000000000000"),
        HubReply::Forbidden
    );
    set_valid(&mut harness, &[]);
    assert_eq!(harness.publish(&bank, &session, &[crate::support::THINK]), HubReply::Forbidden);
}

#[test]
fn a_token_is_valid_until_the_moment_at_which_it_or_its_sign_in_expires() {
    let expiring = Principal { expires_at: Some(START + 1_000), ..ada() };
    for principal in [
        expiring.clone(),
        signed_in(&ada(), 1, 1_000),
        signed_in(&expiring, 1, 9_000),
        signed_in(&Principal { expires_at: Some(START + 9_000), ..ada() }, 1, 1_000),
    ] {
        let mut harness = HubHarness::new();
        let (_, connection) = harness.connect_listener(&principal, REPLY_CAPABILITIES);
        harness.advance_time(999);
        assert!(!harness.is_closed(connection), "{principal:?}");
        harness.subscribe(&principal, REPLY_CAPABILITIES);
        harness.advance_time(1);
        assert!(harness.is_closed(connection), "{principal:?}");
        assert!(harness.take_messages(connection).concat().contains("token"), "the listener hears why");
        let subscribe = HubCommand::subscribe(None);
        assert_eq!(harness.ask_hub(&principal, subscribe), HubReply::Forbidden);
    }
}

#[test]
fn an_expired_token_is_not_among_the_valid_ones() {
    let mut harness = HubHarness::new();
    let expiring = Principal { expires_at: Some(START + 1_000), ..ada() };
    for (lifetime_ms, is_closed) in [(999, false), (1_000, true)] {
        harness.now = START;
        // A subscription without an expiry of its own, so that only the set of tokens decides.
        let (_, connection) = harness.connect_listener(&ada(), REPLY_CAPABILITIES);
        harness.now = START + lifetime_ms;
        set_valid(&mut harness, std::slice::from_ref(&expiring));
        assert_eq!(harness.is_closed(connection), is_closed, "{lifetime_ms}");
        set_valid(&mut harness, &[ada()]);
    }
}

#[test]
fn a_subscription_stays_open_only_while_a_token_with_its_rights_is_valid() {
    let other_scope = listener("ada", &["agent:post"]).scope;
    let cases = [
        (vec![ada()], true),
        (vec![with_token(listener("bo", &[]), "b"), ada()], true),
        (vec![], false),
        (vec![Principal { name: "bo".into(), ..ada() }], false),
        (vec![Principal { role: Role::Observer, ..ada() }], false),
        (vec![Principal { role: Role::Receiver, ..ada() }], false),
        (vec![Principal { scope: other_scope, ..ada() }], false),
        (vec![with_token(ada(), "a new token")], false),
    ];
    for (valid, stays_open) in cases {
        let mut harness = HubHarness::new();
        let (subscription, connection) = harness.connect_listener(&ada(), REPLY_CAPABILITIES);
        set_valid(&mut harness, &valid);
        assert_eq!(harness.is_closed(connection), !stays_open, "{valid:?}");
        let attached = harness.ask_hub(&ada(), attach(&subscription, 90));
        let expected = if stays_open { HubReply::Done } else { HubReply::Forbidden };
        assert_eq!(attached, expected, "{valid:?}");
    }
}

#[test]
fn after_a_restart_a_subscription_belongs_to_the_token_that_opened_it() {
    for (valid, stays_open) in [
        (ada(), true),
        (with_token(ada(), "a new token"), false),
        (Principal { role: Role::Observer, ..ada() }, false),
    ] {
        let mut harness = HubHarness::new();
        let subscription = harness.subscribe(&ada(), REPLY_CAPABILITIES);
        harness.crash();
        set_valid(&mut harness, std::slice::from_ref(&valid));
        let reply = harness.ask_hub(&valid, attach(&subscription, 90));
        assert_eq!(reply, if stays_open { HubReply::Done } else { HubReply::NotFound }, "{valid:?}");
    }
}

#[test]
fn a_restarted_hub_checks_the_token_of_a_subscription_before_it_knows_the_valid_tokens() {
    let replacement = with_token(ada(), "a new token");
    let mut harness = HubHarness::new();
    let subscription = harness.subscribe(&ada(), REPLY_CAPABILITIES);
    let bank = agent("bank");
    let session = harness.start(&bank);
    let token = text_member(&reply_json(harness.confirm(&bank, &session, TRANSFER)), "reply_token");
    harness.crash();
    assert_eq!(harness.ask_hub(&replacement, attach(&subscription, 90)), HubReply::NotFound);
    harness.reply(&replacement, &subscription, &token, "accept");
    let status = reply_json(harness.status(&bank, &session, &token));
    assert_eq!(text_member(&status, "status"), "pending", "a reply with another token has no effect");
    assert_eq!(harness.ask_hub(&ada(), attach(&subscription, 91)), HubReply::Done);
}

#[test]
fn a_subscription_stored_without_a_token_belongs_to_the_first_token_that_attaches() {
    let mut harness = HubHarness::new();
    let subscription = harness.subscribe(&ada(), REPLY_CAPABILITIES);
    harness.disk.alter_restored(Some(|state| {
        for stored in &mut state.subscriptions {
            let record = String::from_utf8(stored.record.clone()).unwrap();
            let (before, rest) = record.split_once(r#""token_digest":""#).unwrap();
            let (_, after) = rest.split_once(r#"","#).unwrap();
            stored.record = format!("{before}{after}").into_bytes();
        }
    }));
    harness.crash();
    harness.disk.alter_restored(None);
    assert_eq!(harness.ask_hub(&ada(), attach(&subscription, 90)), HubReply::Done);
    harness.crash();
    let replacement = with_token(ada(), "a new token");
    assert_eq!(harness.ask_hub(&replacement, attach(&subscription, 91)), HubReply::NotFound);
    assert_eq!(harness.ask_hub(&ada(), attach(&subscription, 92)), HubReply::Done);
}

#[test]
fn callers_without_a_token_are_not_affected_by_the_set_of_tokens() {
    let mut harness = HubHarness::new();
    let (_, connection) = harness.connect_listener(&Principal::local(), REPLY_CAPABILITIES);
    let (_, other) = harness.connect_listener(&listener("ada", &[]), REPLY_CAPABILITIES);
    set_valid(&mut harness, &[with_token(agent("bank"), "b")]);
    assert!(!harness.is_closed(connection));
    assert!(harness.is_closed(other), "only the local principal needs no token");
}

#[test]
fn a_sign_out_closes_the_subscriptions_of_that_sign_in_only() {
    let (token_digest, other_digest) = (Digest::of(b"ada's token"), Digest::of(b"bo's token"));
    let bo = with_token(listener("bo", &[]), "bo's token");
    let open = |harness: &mut HubHarness| {
        [signed_in(&ada(), 1, 60_000), signed_in(&ada(), 2, 60_000), ada(), signed_in(&bo, 1, 60_000)]
            .map(|principal| harness.connect_listener(&principal, REPLY_CAPABILITIES).1)
    };
    for (token_digest, id, closed) in [
        (token_digest, Some([1; 16]), [true, false, false, false]),
        (token_digest, Some([9; 16]), [false; 4]),
        (token_digest, None, [true, true, false, false]),
        (other_digest, Some([1; 16]), [false, false, false, true]),
    ] {
        let mut harness = HubHarness::new();
        let connections = open(&mut harness);
        let sign_out = HubCommand::EndSignIn { token_digest, id };
        assert_eq!(harness.ask_hub(&Principal::local(), sign_out), HubReply::Done);
        assert_eq!(connections.map(|connection| harness.is_closed(connection)), closed, "{id:?}");
    }
}

#[test]
fn a_subscription_expires_with_the_credential_that_used_it_last() {
    let mut harness = HubHarness::new();
    let (subscription, first) = harness.connect_listener(&signed_in(&ada(), 1, 1_000), REPLY_CAPABILITIES);
    let second = ListenerId(90);
    let reply = harness.ask_hub(&signed_in(&ada(), 2, 5_000), attach(&subscription, second.0));
    assert_eq!(reply, HubReply::Done);
    assert!(harness.is_closed(first), "the second connection replaces the first");
    harness.advance_time(4_999);
    assert!(!harness.is_closed(second));
    harness.advance_time(1);
    assert!(harness.is_closed(second));
}

#[test]
fn a_closed_subscription_of_a_removed_token_answers_nothing() {
    let mut harness = HubHarness::new();
    let bank = agent("bank");
    let (subscription, _) = harness.connect_listener(&ada(), REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    let token = text_member(&reply_json(harness.confirm(&bank, &session, TRANSFER)), "reply_token");
    set_valid(&mut harness, &[]);
    let at = aaep::Timestamp::from_unix_millis(harness.now).unwrap();
    let reply = format!(
        r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"accept","subscription_id":"{subscription}","timestamp":"{at}"}}"#
    );
    assert_eq!(harness.ask_hub(&ada(), crate::support::send_message(&reply)), HubReply::Forbidden);
    // Nobody can answer any more, so the question ends after the time to reconnect.
    harness.advance_time(180_000);
    let resolved = reply_json(harness.status(&bank, &session, &token));
    assert_eq!(text_member(&resolved, "decision"), "reject");
}

#[test]
fn a_subscription_is_not_found_by_other_names_roles_and_scopes() {
    let receiver = |name: &str, scope: &[&str]| Principal { role: Role::Receiver, ..listener(name, scope) };
    let bank = ["agent:bank"];
    for (owner, other) in [
        (listener("ada", &bank), listener("eve", &bank)),
        (listener("ada", &bank), receiver("eve", &bank)),
        (receiver("ada", &bank), receiver("eve", &bank)),
        (receiver("ada", &bank), listener("ada", &bank)),
        (listener("ada", &bank), Principal { role: Role::Observer, ..listener("ada", &bank) }),
        (Principal { role: Role::Observer, ..listener("ada", &bank) }, listener("ada", &bank)),
        (listener("ada", &bank), listener("ada", &[])),
        (listener("ada", &bank), Principal { role: Role::Observer, ..listener("eve", &bank) }),
    ] {
        let mut harness = HubHarness::new();
        let subscription = harness.subscribe(&owner, "{}");
        let reply = harness.ask_hub(&other, attach(&subscription, 90));
        assert_eq!(reply, HubReply::NotFound, "{owner:?} {other:?}");
        assert_eq!(harness.ask_hub(&owner, attach(&subscription, 91)), HubReply::Done);
    }
}

#[test]
fn a_subscription_cannot_be_used_after_its_time_even_before_a_timer_has_run() {
    let window_ms = hub::HubLimits::default().attach_window_ms;
    for (waits_ms, expected) in [(window_ms - 1, HubReply::Done), (window_ms, HubReply::NotFound)] {
        let mut harness = HubHarness::new();
        let subscription = harness.subscribe(&ada(), REPLY_CAPABILITIES);
        harness.now += waits_ms;
        assert_eq!(harness.ask_hub(&ada(), attach(&subscription, 90)), expected, "{waits_ms}");
    }
}

#[test]
fn callers_without_a_token_have_no_limit_on_subscriptions() {
    let limits = hub::HubLimits { subscriptions_per_principal: 1, ..hub::HubLimits::default() };
    let mut harness = HubHarness::with(&limits, crate::support::FaultyJournal::default(), START);
    for _ in 0..3 {
        harness.subscribe(&Principal::local(), REPLY_CAPABILITIES);
    }
    harness.subscribe(&ada(), REPLY_CAPABILITIES);
    let text = r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"listener","capabilities":{}}"#;
    let refused = harness.ask_hub(&ada(), crate::support::subscribe(text));
    assert!(matches!(refused, HubReply::SubscriptionRejected(_)), "{refused:?}");
}
