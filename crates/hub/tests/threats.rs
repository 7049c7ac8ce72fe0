//! The threats T1 to T8 of chapter 10 of the AAEP specification.

use crate::support::*;
use hub::command::{HubCommand, HubReply};
use hub::{HubLimits, ListenerId, Principal};

const DONE: &str = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;

/// Opens a question from a bank to Ada. Returns the harness, Ada's subscription, the session and the token.
fn open_question() -> (HubHarness, String, String, String) {
    let mut harness = HubHarness::new();
    let (subscription, _) =
        harness.connect_listener(&listener("ada", &["person:marisol"]), REPLY_CAPABILITIES);
    let session = harness.start(&agent("bank"));
    let opened = reply_json(harness.confirm(&agent("bank"), &session, TRANSFER));
    (harness, subscription, session, text_member(&opened, "reply_token"))
}

/// Returns the results of the replies that were recorded since the last call.
fn take_reply_results(harness: &HubHarness) -> Vec<String> {
    let reply_result =
        |entry| if let RecordedEntry::ReplyAttempted { result } = entry { Some(result) } else { None };
    harness.disk.take_written().into_iter().filter_map(reply_result).collect()
}

#[test]
fn t1_a_forged_reply_has_no_effect_and_is_recorded_like_a_valid_one() {
    let (mut harness, ada_subscription, session, token) = open_question();
    let eve = listener("eve", &["person:jonas"]);
    let (eve_subscription, _) = harness.connect_listener(&eve, REPLY_CAPABILITIES);
    take_reply_results(&harness);
    let unknown = "rpl_00000000000000000000000000000000";
    for (subscription, token, reason) in [
        (&ada_subscription, &*token, "other_identity"),
        (&eve_subscription, &*token, "not_entitled"),
        (&eve_subscription, unknown, "unknown"),
        (&"sub_00000000000000000000000000000000".to_owned(), &*token, "no_subscription"),
    ] {
        harness.reply(&eve, subscription, token, "accept");
        assert_eq!(take_reply_results(&harness), [reason]);
    }
    harness.reply(&agent("bank"), &ada_subscription, &token, "accept");
    assert_eq!(harness.status(&agent("bank"), &session, &token), HubReply::QuestionPending);
    take_reply_results(&harness);
    harness.reply(&listener("ada", &["person:marisol"]), &ada_subscription, &token, "accept");
    assert_eq!(take_reply_results(&harness), ["applied"]);
}

#[test]
fn t1_a_reply_is_attributed_by_access_token_and_not_by_name() {
    let mut harness = HubHarness::new();
    let with_token = |principal: Principal, token: &str| Principal {
        name: "ada".into(),
        token_digest: Some(seal::Digest::of(token.as_bytes())),
        ..principal
    };
    let ada = with_token(listener("ada", &[]), "ada");
    let twin_agent = with_token(agent("bank"), "agent");
    let twin_observer = with_token(observer("ada"), "observer");
    let twin_listener = with_token(listener("ada", &[]), "listener");
    let (subscription, _) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = harness.start(&twin_agent);
    let opened = reply_json(harness.confirm(&twin_agent, &session, TRANSFER));
    let token = text_member(&opened, "reply_token");
    take_reply_results(&harness);
    for (twin, reason) in
        [(&twin_agent, "not_entitled"), (&twin_observer, "not_entitled"), (&twin_listener, "other_identity")]
    {
        harness.reply(twin, &subscription, &token, "accept");
        assert_eq!(take_reply_results(&harness), [reason]);
        assert_eq!(harness.status(&twin_agent, &session, &token), HubReply::QuestionPending);
    }
    harness.reply(&ada, &subscription, &token, "accept");
    assert_eq!(take_reply_results(&harness), ["applied"]);
}

#[test]
fn t2_a_reply_counts_once() {
    let (mut harness, ada_subscription, session, token) = open_question();
    let ada = listener("ada", &["person:marisol"]);
    harness.reply(&ada, &ada_subscription, &token, "reject");
    harness.reply(&ada, &ada_subscription, &token, "accept");
    harness.crash();
    harness.attach(&ada, &ada_subscription, None);
    harness.reply(&ada, &ada_subscription, &token, "accept");
    assert_eq!(harness.disk.decision(&token).unwrap().decision, "reject");
    let call = harness.publish(&agent("bank"), &session, &[&tool_invoked(&token, "500.00")]);
    assert!(matches!(call, HubReply::RuleViolations(_)), "{call:?}");
}

#[test]
fn t3_an_agent_cannot_impersonate_an_agent_the_hub_or_the_person() {
    let (mut harness, _, session, token) = open_question();
    let bank = agent("bank");
    for event in [
        r#"{"type":"aaep:agent.state.changed","to_state":"thinking","producer":{"agent_id":"post"}}"#,
        &format!(
            r#"{{"type":"aaep:agent.state.changed","to_state":"thinking","extensions":{{"sayso":{{"reply_token":"{token}","decision":"accept","by":"reply"}}}}}}"#
        ),
        // A question that is published as an event could not be answered, so it is refused.
        &format!(
            r#"{{"type":"aaep:agent.awaiting.confirmation","reply_token":"rpl_11111111111111111111111111111111",{}"#,
            TRANSFER
                .replace(r#","tool":"transfer","arguments":{"amount":"500.00","to":"Ben"}"#, "")
                .trim_start_matches('{')
        ),
    ] {
        let reply = harness.publish(&bank, &session, &[event]);
        let is_refused = matches!(reply, HubReply::Malformed(_) | HubReply::RuleViolations(_));
        assert!(is_refused, "{reply:?} to {event}");
    }
    assert_eq!(harness.status(&bank, &session, &token), HubReply::QuestionPending);
}

#[test]
fn t4_floods_are_capped() {
    let limits = HubLimits { subscriptions: 3, sessions: 2, events_per_request: 5, ..HubLimits::default() };
    let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    for _ in 0..3 {
        harness.connect_listener(&ada, REPLY_CAPABILITIES);
    }
    let text = r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"listener","capabilities":{}}"#;
    let request = subscribe(text);
    assert!(matches!(harness.ask_hub(&ada, request), HubReply::LimitReached(_)));

    let session = harness.start(&bank);
    harness.start(&bank);
    let start = HubCommand::Start { body: r#"{"summary_normal":"x"}"#.into(), idempotency_key: None };
    assert!(matches!(harness.ask_hub(&bank, start), HubReply::LimitReached(_)));
    assert!(matches!(harness.publish(&bank, &session, &[THINK; 6]), HubReply::Malformed(_)));

    let mut opened_count = 0;
    for number in 0..40 {
        let amount = format!("{number}.00");
        let text = TRANSFER.replace("500 euros", &format!("{amount} euros")).replace("500.00", &amount);
        match harness.confirm(&bank, &session, &text) {
            HubReply::QuestionOpened { .. } => opened_count += 1,
            HubReply::LimitReached(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(opened_count, limits.questions.max_open_per_session);
}

#[test]
fn t4_a_listener_over_its_shaper_limit_is_disconnected() {
    let shaping =
        aaep::shaping::ShaperLimits { max_held_events: 10, ..aaep::shaping::ShaperLimits::default() };
    let mut harness =
        HubHarness::with(&HubLimits { shaping, ..HubLimits::default() }, FaultyJournal::default(), START);
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (_, slow) = harness.connect_listener(&ada, r#"{"max_events_per_second":1}"#);
    let (_, quick) = harness.connect_listener(&ada, "{}");
    for _ in 0..8 {
        let session = harness.start(&bank);
        assert!(matches!(harness.publish(&bank, &session, &[THINK]), HubReply::EventsPublished { .. }));
    }
    harness.turn();
    assert!(harness.is_closed(slow), "16 events, but at most 10 may be held");
    assert!(!harness.is_closed(quick));
    assert_eq!(harness.take_events(quick).len(), 16);
}

#[test]
fn t4_subscriptions_without_listeners_expire() {
    let limits = HubLimits { subscriptions: 3, attach_window_ms: 20_000, ..HubLimits::default() };
    let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
    let ada = listener("ada", &[]);
    let never_attached = harness.subscribe(&ada, REPLY_CAPABILITIES);
    let (detached, listener_id) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let (attached, _) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    harness.send_without_reply(&ada, HubCommand::Detach { listener: listener_id, is_too_slow: false });
    harness.advance_time(limits.resume_window_ms);
    for expired in [never_attached, detached] {
        let command =
            HubCommand::Attach { subscription: id(&expired), last_event_id: None, listener: ListenerId(90) };
        assert_eq!(harness.ask_hub(&ada, command), HubReply::NotFound);
    }
    harness.attach(&ada, &attached, None);
    harness.subscribe(&ada, REPLY_CAPABILITIES);
    harness.subscribe(&ada, REPLY_CAPABILITIES);
    harness.advance_time(limits.attach_window_ms);
    assert!(format!("{:?}", harness.core).contains(" subscriptions: 1,"), "{:?}", harness.core);
}

#[test]
fn t4_subscriptions_per_principal_are_limited() {
    let limits = HubLimits { subscriptions_per_principal: 2, ..HubLimits::default() };
    let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
    let (ada, eve) = (listener("ada", &[]), listener("eve", &[]));
    harness.subscribe(&eve, REPLY_CAPABILITIES);
    let (closed, _) = harness.connect_listener(&eve, REPLY_CAPABILITIES);
    let text = r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"listener","capabilities":{}}"#;
    let request = subscribe(text);
    let refused = harness.ask_hub(&eve, request.clone());
    let json = reply_json(refused);
    assert_eq!(text_member(&json, "reason_code"), "rate_limit");
    assert!(text_member(&json, "reason_message").contains("too many subscriptions"), "{json}");
    harness.subscribe(&ada, REPLY_CAPABILITIES);
    let text = format!(r#"{{"type":"subscription.close","subscription_id":"{closed}"}}"#);
    assert_eq!(harness.ask_hub(&eve, send_message(&text)), HubReply::Done);
    harness.subscribe(&eve, REPLY_CAPABILITIES);
    assert!(matches!(harness.ask_hub(&eve, request), HubReply::SubscriptionRejected(_)));
}

#[test]
fn t4_critical_events_are_rate_limited_per_agent() {
    let limits = HubLimits { criticals_per_minute: 3, ..HubLimits::default() };
    let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
    let (bank, post) = (agent("bank"), agent("post"));
    let (_, listener_id) = harness.connect_listener(&listener("ada", &[]), REPLY_CAPABILITIES);
    let (session, other) = (harness.start(&bank), harness.start(&post));
    harness.take_events(listener_id);
    let shout = r#"{"type":"aaep:agent.progress.updated","urgency":"critical","progress":{"percent":5},"summary_normal":"Look!"}"#;
    let calm =
        r#"{"type":"aaep:agent.progress.updated","progress":{"percent":5},"summary_normal":"Working."}"#;
    let full_name = shout.replace("aaep:", "https://aaep-protocol.org/types/");
    assert!(matches!(harness.publish(&bank, &session, &[shout, calm]), HubReply::EventsPublished { .. }));
    assert!(matches!(
        harness.publish(&bank, &session, &[shout, &full_name]),
        HubReply::EventsPublished { .. }
    ));
    let critical_by_type = r#"{"type":"aaep:agent.handoff.requested","reason":"Too hard.","target_kind":"human","summary_normal":"A person is needed."}"#;
    for events in [&[shout][..], &[calm, &full_name], &[critical_by_type]] {
        let refused = harness.publish(&bank, &session, events);
        let HubReply::LimitReached(reason) = &refused else { panic!("{refused:?}") };
        assert!(reason.to_string().contains("3 critical events in a minute"), "{reason}");
    }
    assert!(
        matches!(harness.publish(&bank, &session, &[calm]), HubReply::EventsPublished { .. }),
        "events that are not critical are accepted"
    );
    assert!(
        matches!(harness.confirm(&bank, &session, TRANSFER), HubReply::QuestionOpened { .. }),
        "questions are accepted"
    );
    assert!(
        matches!(harness.publish(&post, &other, &[shout]), HubReply::EventsPublished { .. }),
        "other agents are accepted"
    );
    assert_eq!(harness.take_events(listener_id).iter().filter(|event| event.contains("Look!")).count(), 4);
    harness.advance_time(60_000);
    assert!(matches!(harness.publish(&bank, &session, &[shout]), HubReply::EventsPublished { .. }));
}

#[test]
fn t4_questions_are_rate_limited_even_if_their_sessions_end_immediately() {
    let mut harness = HubHarness::new();
    let bank = agent("bank");
    harness.connect_listener(&listener("ada", &[]), REPLY_CAPABILITIES);
    let mut opened_count = 0;
    for _ in 0..200 {
        let session = harness.start(&bank);
        opened_count += usize::from(matches!(
            harness.confirm(&bank, &session, TRANSFER),
            HubReply::QuestionOpened { .. }
        ));
        let end = r#"{"type":"aaep:agent.session.cancelled","cancelled_by":"producer","summary_normal":"Never mind."}"#;
        let ended = harness.publish(&bank, &session, &[end]);
        assert!(matches!(ended, HubReply::EventsPublished { .. }), "{ended:?}");
    }
    assert_eq!(opened_count, 120, "the rest are refused");
    harness.advance_time(60_000);
    let session = harness.start(&bank);
    assert!(
        matches!(harness.confirm(&bank, &session, TRANSFER), HubReply::QuestionOpened { .. }),
        "questions are accepted again after a minute"
    );
}

#[test]
fn t5_late_join_resume_and_renegotiation_stay_within_the_scope() {
    let mut harness = HubHarness::new();
    let (bank, jonas) = (agent("bank"), listener("jonas", &["person:jonas"]));
    let (_, everyone) = harness.connect_listener(&listener("ada", &[]), REPLY_CAPABILITIES);
    let (subscription, first) = harness.connect_listener(&jonas, REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    harness.confirm(&bank, &session, TRANSFER);
    let event_id = text_member(&harness.take_events(everyone)[0], "event_id");
    let late = harness.attach(&jonas, &subscription, None);
    let resumed = harness.attach(&jonas, &subscription, Some(&event_id));
    let text = format!(
        r#"{{"type":"subscription.renegotiate","subscription_id":"{subscription}","capabilities":{REPLY_CAPABILITIES}}}"#
    );
    harness.ask_hub(&jonas, send_message(&text));
    harness.take_events(everyone);
    let end = r#"{"type":"aaep:agent.session.errored","error_category":"transient","error_code":"LOST","recoverable":false,"summary_normal":"Lost."}"#;
    harness.publish(&bank, &session, &[end]);
    let resumed_again = harness.attach(&jonas, &subscription, Some(&event_id));
    for listener_id in [first, late, resumed, resumed_again] {
        assert_eq!(harness.take_events(listener_id), Vec::<String>::new());
    }
    assert!(!harness.take_events(everyone).is_empty());
}

#[test]
fn t5_only_the_agent_that_asked_learns_the_answer() {
    let (mut harness, ada_subscription, session, token) = open_question();
    let (bank, post) = (agent("bank"), agent("post"));
    assert_eq!(harness.status(&post, &session, &token), HubReply::NotFound);
    harness.reply(&listener("ada", &["person:marisol"]), &ada_subscription, &token, "reject");
    assert_eq!(harness.status(&post, &session, &token), HubReply::NotFound);
    harness.publish(&bank, &session, &[DONE]);
    assert_eq!(harness.status(&post, &session, &token), HubReply::NotFound);
    assert!(
        matches!(harness.status(&bank, &session, &token), HubReply::QuestionResolved(_)),
        "the owner may still query the question"
    );
}

#[test]
fn t6_a_role_permits_only_its_own_actions() {
    let (mut harness, ..) = open_question();
    let text = r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"listener","capabilities":{}}"#;
    let request = subscribe(text);
    assert_eq!(harness.ask_hub(&agent("bank"), request), HubReply::Forbidden);
    let start = HubCommand::Start { body: r#"{"summary_normal":"x"}"#.into(), idempotency_key: None };
    assert_eq!(harness.ask_hub(&listener("ada", &[]), start), HubReply::Forbidden);
    let as_bank = r#"{"summary_normal":"x","producer":{"agent_id":"bank"}}"#.to_owned();
    let reply =
        harness.ask_hub(&agent("post"), HubCommand::Start { body: as_bank.into(), idempotency_key: None });
    assert!(matches!(reply, HubReply::Malformed(_)));
}

#[test]
fn t7_an_extension_neither_impersonates_the_hub_nor_relaxes_a_rule() {
    let (mut harness, ada_subscription, session, token) = open_question();
    let bank = agent("bank");
    let resolution = format!(r#"{{"reply_token":"{token}","decision":"accept","by":"reply"}}"#);
    let core_context = "https://aaep-protocol.org/context/v1";
    let state = r#""type":"aaep:agent.state.changed","to_state":"awaiting_input""#;
    for event in [
        format!(r#"{{{state},"extensions":{{"sayso":{resolution}}}}}"#),
        format!(r#"{{{state},"extensions":{{"s\u0061yso":{resolution}}}}}"#),
        format!(r#"{{{state},"extensions":{{"urn:sayso:context:v1":{resolution}}}}}"#),
        // An event type of the hub.
        format!(r#"{{"type":"sayso:session.stop","session_id":"{session}"}}"#),
        r#"{"type":"sayso:resolved","summary_normal":"You said yes."}"#.to_owned(),
        r#"{"type":"urn:sayso:context:v1#resolved","summary_normal":"You said yes."}"#.to_owned(),
        // A question with its full type name is also a question.
        format!(
            r#"{{"type":"https://aaep-protocol.org/types/agent.awaiting.confirmation","reply_token":"rpl_11111111111111111111111111111111",{}"#,
            TRANSFER
                .replace(r#","tool":"transfer","arguments":{"amount":"500.00","to":"Ben"}"#, "")
                .trim_start_matches('{')
        ),
    ] {
        let reply = harness.publish(&bank, &session, &[&event]);
        assert!(matches!(reply, HubReply::Malformed(_)), "{reply:?} to {event}");
    }
    // Data in another extension is carried along but decides nothing.
    let declared = format!(r#""@context":["{core_context}","https://bank.example/ns/v1"]"#);
    let relaxing =
        r#""extensions":{"bank":{"confirmed":true,"skip_confirmation":true,"irreversible":false}}"#;
    let call = tool_invoked(&token, "500.00").replacen('{', &format!("{{{declared},{relaxing},"), 1);
    for call in [call.clone(), call.replace("aaep:", "https://aaep-protocol.org/types/")] {
        let reply = harness.publish(&bank, &session, &[&call]);
        assert!(matches!(reply, HubReply::RuleViolations(_)), "{reply:?}");
    }
    for event in [
        format!(r#"{{{state},"confirmed":true}}"#),
        format!(r#"{{{state},"extensions":{{"bank":{{"confirmed":true}}}}}}"#),
        // The hub's data under another name, other meanings for `sayso` and `aaep`, a missing AAEP context, and deep
        // nesting.
        format!(
            r#"{{"@context":["{core_context}",{{"bank":"urn:sayso:context:v1"}}],{state},"extensions":{{"bank":{resolution}}}}}"#
        ),
        format!(r#"{{"@context":["{core_context}",{{"sayso":"https://bank.example/v1"}}],{state}}}"#),
        format!(r#"{{"@context":["{core_context}",{{"aaep":"https://bank.example/ns/v1"}}],{state}}}"#),
        format!(r#"{{"@context":["https://bank.example/ns/v1"],{state}}}"#),
        format!(r#"{{{declared},{state},"extensions":{{"bank":{}}}}}"#, "[".repeat(9_000)),
    ] {
        let reply = harness.publish(&bank, &session, &[&event]);
        assert!(
            matches!(reply, HubReply::RuleViolations(_) | HubReply::Malformed(_)),
            "{reply:?} to {event:.200}"
        );
    }
    assert_eq!(harness.status(&bank, &session, &token), HubReply::QuestionPending);
    let marked = TRANSFER.replace("500", "600").replacen('{', &format!("{{{declared},{relaxing},"), 1);
    let opened = harness.confirm(&bank, &session, &marked);
    let opened = reply_json(opened);
    let second = text_member(&opened, "reply_token");
    assert_eq!(harness.status(&bank, &session, &second), HubReply::QuestionPending);
    harness.reply(&listener("ada", &["person:marisol"]), &ada_subscription, &token, "accept");
    let reply = harness.publish(&bank, &session, &[&call]);
    assert!(matches!(reply, HubReply::EventsPublished { .. }), "{reply:?}");
}

#[test]
fn t8_another_principals_subscription_is_not_found() {
    let (mut harness, ada_subscription, session, token) = open_question();
    let eve = listener("eve", &[]);
    let before = format!("{:?}", harness.core);
    let replies = ["sub_00000000000000000000000000000000", &ada_subscription].map(|subscription| {
        let attach = HubCommand::Attach { subscription: id(subscription), last_event_id: None, listener: ListenerId(77) };
        let at = aaep::Timestamp::from_unix_millis(harness.now).unwrap();
        let messages = [
            format!(r#"{{"type":"subscription.renegotiate","subscription_id":"{subscription}","capabilities":{{}}}}"#),
            format!(r#"{{"type":"subscription.close","subscription_id":"{subscription}"}}"#),
            format!(
                r#"{{"type":"sayso:session.stop","session_id":"{session}","subscription_id":"{subscription}","timestamp":"{at}"}}"#
            ),
            format!(
                r#"{{"type":"sayso:deadline.extend","reply_token":"{token}","subscription_id":"{subscription}","timestamp":"{at}"}}"#
            ),
        ];
        let mut replies = vec![harness.ask_hub(&eve, attach)];
        replies.extend(messages.map(|text| harness.ask_hub(&eve, send_message(&text))));
        replies
    });
    assert_eq!(replies[0], replies[1]);
    assert_eq!(format!("{:?}", harness.core), before);
    assert_eq!(harness.status(&agent("bank"), &session, &token), HubReply::QuestionPending);
}

/// An agent with a token. The other tests use agents without one, to which limits per token do not apply.
fn agent_with_token(name: &str) -> hub::Principal {
    hub::Principal { token_digest: Some(seal::Digest::of(name.as_bytes())), ..agent(name) }
}

#[test]
fn t4_a_token_may_publish_again_after_a_minute() {
    let limits = HubLimits { bytes_per_minute: 2_000, ..HubLimits::default() };
    let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
    let (bank, post) = (agent_with_token("bank"), agent_with_token("post"));
    let (session, other) = (harness.start(&bank), harness.start(&post));
    let progress =
        r#"{"type":"aaep:agent.progress.updated","progress":{"percent":5},"summary_normal":"Working."}"#;
    let is_accepted = |reply: HubReply| matches!(reply, HubReply::EventsPublished { .. });
    let accepted = (0..20).take_while(|_| is_accepted(harness.publish(&bank, &session, &[progress]))).count();
    assert!((2..10).contains(&accepted), "{accepted}");
    let refused = harness.publish(&bank, &session, &[progress]);
    assert!(matches!(refused, HubReply::LimitReached(_)), "{refused:?}");
    assert!(is_accepted(harness.publish(&post, &other, &[progress])), "another token is not affected");
    harness.advance_time(60_000);
    assert!(is_accepted(harness.publish(&bank, &session, &[progress])));
}

#[test]
fn t4_a_full_turn_leaves_requests_to_the_next_turn_in_order() {
    let limits = HubLimits { bytes_per_turn: 1, ..HubLimits::default() };
    let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
    let bank = agent("bank");
    let request = |number: u64| hub::command::Request {
        id: hub::command::RequestId(1_000 + number),
        principal: bank.clone(),
        command: HubCommand::Start {
            body: r#"{"summary_normal":"x","localization_hints":{"primary_language":"en"}}"#.into(),
            idempotency_key: None,
        },
    };
    let started = |outputs: Vec<hub::command::TurnOutput>| {
        let id = |output| match output {
            hub::command::TurnOutput::Reply(id, HubReply::SessionStarted { .. }) => Some(id.0 - 1_000),
            _ => None,
        };
        outputs.into_iter().filter_map(id).collect::<Vec<_>>()
    };
    let now = harness.now;
    assert_eq!(started(harness.core.run_turn([request(1), request(2)], now)), [1]);
    assert!(harness.core.has_queued_requests() && harness.core.next_deadline().is_some_and(|at| at <= now));
    assert_eq!(started(harness.core.run_turn([request(3)], now)), [2]);
    assert_eq!(started(harness.core.run_turn([], now)), [3]);
    assert!(!harness.core.has_queued_requests());
}
