//! Recovery from crashes, full disks and lost connections, without lost events, duplicates or unintended acceptances.

use crate::support::*;
use hub::command::{HubCommand, HubReply, TurnOutput};
use hub::telemetry::LogEvent;

#[test]
fn after_a_crash_an_open_question_is_still_open_and_can_be_answered() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, _) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    let opened = reply_json(harness.confirm(&bank, &session, TRANSFER));
    let token = text_member(&opened, "reply_token");
    harness.crash();
    assert_eq!(harness.status(&bank, &session, &token), HubReply::QuestionPending);
    harness.attach(&ada, &subscription, None);
    harness.reply(&ada, &subscription, &token, "accept");
    let resolved = reply_json(harness.status(&bank, &session, &token));
    assert_eq!(text_member(&resolved, "decision"), "accept");
    harness.crash();
    let resolved = reply_json(harness.status(&bank, &session, &token));
    assert_eq!(text_member(&resolved, "decision"), "accept");
    let reply = harness.publish(&bank, &session, &[&tool_invoked(&token, "500.00")]);
    assert!(matches!(reply, HubReply::EventsPublished { .. }), "{reply:?}");
    harness.crash();
    let second_call =
        harness.publish(&bank, &session, &[&tool_invoked(&token, "500.00").replace("call_1", "call_2")]);
    assert!(
        matches!(second_call, HubReply::RuleViolations(_)),
        "the consent was spent before the crash: {second_call:?}"
    );
}

#[test]
fn a_deadline_that_passed_while_the_hub_was_down_means_reject() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, _) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    let opened = reply_json(harness.confirm(&bank, &session, TRANSFER));
    let token = text_member(&opened, "reply_token");
    harness.now += 200_000;
    harness.crash();
    harness.turn();
    let resolved = reply_json(harness.status(&bank, &session, &token));
    assert_eq!(text_member(&resolved, "decision"), "reject");
    harness.attach(&ada, &subscription, None);
    harness.reply(&ada, &subscription, &token, "accept");
    assert_eq!(harness.disk.decision(&token).unwrap().decision, "reject", "a question is decided once");
}

#[test]
fn a_listener_that_reconnects_receives_missed_events_once() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, listener_id) = harness.connect_listener(&ada, "{}");
    let session = harness.start(&bank);
    let last = text_member(&harness.take_events(listener_id)[0], "event_id");
    harness.send_without_reply(&ada, HubCommand::Detach { listener: listener_id, is_too_slow: false });
    harness.publish(&bank, &session, &[THINK]);
    harness.crash();
    let reconnected = harness.attach(&ada, &subscription, Some(&last));
    assert_eq!(event_types(&harness.take_events(reconnected)), ["state.changed"]);
    let deciding = r#"{"type":"aaep:agent.state.changed","to_state":"deciding"}"#;
    harness.publish(&bank, &session, &[deciding]);
    assert_eq!(harness.take_events(reconnected).len(), 1);
}

#[test]
fn a_late_listener_receives_the_state_and_the_open_questions() {
    let mut harness = HubHarness::new();
    let (bank, ada, ben) = (agent("bank"), listener("ada", &[]), listener("ben", &[]));
    harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    let opened = reply_json(harness.confirm(&bank, &session, TRANSFER));
    let token = text_member(&opened, "reply_token");
    let (subscription, late_listener) = harness.connect_listener(&ben, REPLY_CAPABILITIES);
    let events = harness.take_events(late_listener);
    assert_eq!(event_types(&events), ["state.changed", "awaiting.confirmation"]);
    assert_eq!(text_member(&events[0], "from_state"), text_member(&events[0], "to_state"));
    harness.reply(&ben, &subscription, &token, "reject");
    let resolved = reply_json(harness.status(&bank, &session, &token));
    assert_eq!(
        (text_member(&resolved, "decision"), text_member(&resolved, "by")),
        ("reject".into(), "reply".into())
    );
}

#[test]
fn a_full_disk_refuses_requests_and_loses_nothing() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, listener_id) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    let opened = reply_json(harness.confirm(&bank, &session, TRANSFER));
    let token = text_member(&opened, "reply_token");
    let before = harness.disk.events().len();
    harness.disk.fail_writes(true);
    let text = reply_text(&harness, &subscription, &token);
    assert!(matches!(harness.ask_hub(&ada, send_message(&text)), HubReply::Unavailable(_)));
    assert!(harness.is_closed(listener_id), "the listener is disconnected and must resume from the journal");
    assert!(matches!(
        harness.publish(&bank, &session, &[&tool_invoked(&token, "500.00")]),
        HubReply::RuleViolations(_)
    ));
    harness.disk.fail_writes(false);
    assert_eq!(harness.disk.events().len(), before);
    assert_eq!(harness.status(&bank, &session, &token), HubReply::QuestionPending);
    harness.attach(&ada, &subscription, None);
    assert_eq!(harness.ask_hub(&ada, send_message(&text)), HubReply::Done);
    assert_eq!(harness.disk.decision(&token).unwrap().decision, "accept");
}

fn reply_text(harness: &HubHarness, subscription: &str, token: &str) -> String {
    let at = aaep::Timestamp::from_unix_millis(harness.now).unwrap();
    format!(
        r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"accept","subscription_id":"{subscription}","timestamp":"{at}"}}"#
    )
}

#[test]
fn two_late_listeners_in_one_turn_may_both_answer() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    let opened = reply_json(harness.confirm(&bank, &session, TRANSFER));
    let token = text_member(&opened, "reply_token");
    let (ben, cleo) = (listener("ben", &[]), listener("cleo", &[]));
    let subscriptions =
        [harness.subscribe(&ben, REPLY_CAPABILITIES), harness.subscribe(&cleo, REPLY_CAPABILITIES)];
    let [first, second] = [(0, 91), (1, 92)].map(|(at, number): (usize, u64)| HubCommand::Attach {
        subscription: id(&subscriptions[at]),
        last_event_id: None,
        listener: hub::ListenerId(number),
    });
    harness.ask_both_in_one_turn(&ben, first, &cleo, second);
    harness.reply(&cleo, &subscriptions[1], &token, "accept");
    assert_eq!(harness.disk.decision(&token).unwrap().decision, "accept");
}

#[test]
fn questions_that_expire_together_end_in_the_right_state() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (_, listener_id) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    harness.confirm(&bank, &session, TRANSFER);
    harness.confirm(&bank, &session, &TRANSFER.replace("500", "600"));
    harness.advance_time(180_000);
    let events = harness.take_events(listener_id);
    let resolutions: Vec<_> = events
        .iter()
        .filter(|event| event.contains("reply_token\":\"rpl") && event.contains("to_state"))
        .collect();
    let [first, second] = resolutions[..] else { panic!("{events:?}") };
    assert_eq!(text_member(first, "to_state"), "awaiting_input");
    assert_eq!(text_member(second, "to_state"), "thinking");
}

#[test]
fn a_failed_write_is_retried_after_a_backoff_and_a_failed_rebuild_too() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    let opened = reply_json(harness.confirm(&bank, &session, TRANSFER));
    let token = text_member(&opened, "reply_token");
    harness.disk.fail_writes(true);
    harness.disk.fail_reads(true);
    harness.now += 180_000;
    let outputs = harness.core.run_turn(Vec::new(), harness.now);
    let log_events = outputs.iter().filter_map(|output| match output {
        TurnOutput::Log(log_event) => Some(log_event),
        _ => None,
    });
    assert!(
        matches!(log_events.collect::<Vec<_>>()[..], [LogEvent::WriteFailed(_), LogEvent::RebuildFailed(_)]),
        "{outputs:?}"
    );
    harness.perform(outputs);
    assert!(harness.core.next_deadline().is_some_and(|at| at > harness.now));
    assert!(matches!(harness.status(&bank, &session, &token), HubReply::Unavailable(_)));
    harness.disk.fail_writes(false);
    harness.disk.fail_reads(false);
    harness.advance_time(1_000);
    let resolved = reply_json(harness.status(&bank, &session, &token));
    assert_eq!(text_member(&resolved, "decision"), "reject");
}

#[test]
fn a_listener_that_reconnects_after_a_session_end_receives_the_end() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &["person:marisol"]));
    let (subscription, listener_id) = harness.connect_listener(&ada, "{}");
    let session = harness.start(&bank);
    let last = text_member(&harness.take_events(listener_id)[0], "event_id");
    harness.send_without_reply(&ada, HubCommand::Detach { listener: listener_id, is_too_slow: false });
    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    harness.publish(&bank, &session, &[end]);
    let reconnected = harness.attach(&ada, &subscription, Some(&last));
    assert_eq!(event_types(&harness.take_events(reconnected)), ["session.completed"]);
}

#[test]
fn a_retry_of_the_request_that_ended_a_session_gets_the_same_reply() {
    let mut harness = HubHarness::new();
    let bank = agent("bank");
    let session = harness.start(&bank);
    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#.to_owned();
    let publish = HubCommand::Publish {
        session: id(&session),
        events: vec![end.into()],
        idempotency_key: Some("k".into()),
    };
    let first = harness.ask_hub(&bank, publish.clone());
    assert!(matches!(first, HubReply::EventsPublished { .. }));
    assert_eq!(harness.ask_hub(&bank, publish), first);
}

/// The end of the other session overtakes a tool event that the rate limit holds back. The resume position sent after the
/// end must lie before the tool event.
#[test]
fn resuming_after_an_overtaking_event_delivers_the_overtaken_ones() {
    for after_crash in [false, true] {
        let mut harness = HubHarness::new();
        let (bank, ada) = (agent("bank"), listener("ada", &[]));
        let (subscription, listener_id) = harness.connect_listener(&ada, r#"{"max_events_per_second":1}"#);
        let session = harness.start(&bank);
        harness.publish(&bank, &session, &[THINK, LOOK]);
        let other = harness.start(&bank);
        harness.publish(&bank, &other, &[FAILED]);
        let events = harness.take_events(listener_id);
        assert_eq!(event_types(&events).last().unwrap(), "session.errored");
        assert!(!event_types(&events).contains(&"tool.invoked".to_owned()));
        let last = harness.last_id(listener_id).unwrap();
        if after_crash {
            harness.crash();
        } else {
            harness
                .send_without_reply(&ada, HubCommand::Detach { listener: listener_id, is_too_slow: false });
        }
        let reconnected = harness.attach(&ada, &subscription, Some(&last));
        harness.advance_time(10_000);
        assert!(event_types(&harness.take_events(reconnected)).contains(&"tool.invoked".to_owned()));
        assert_eq!(harness.take_messages(reconnected), Vec::<String>::new(), "there is no gap message");
    }
}

const LOOK: &str = r#"{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_9","risk_level":"low","summary_normal":"Looking."}"#;
const FAILED: &str = r#"{"type":"aaep:agent.session.errored","error_category":"transient","error_code":"LOST","recoverable":false,"summary_normal":"Lost."}"#;

#[test]
fn a_listener_with_a_gap_receives_a_gap_message_and_the_current_state() {
    let limits = hub::HubLimits { max_replay_events: 3, ..hub::HubLimits::default() };
    let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, listener_id) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    let last = harness.last_id(listener_id).unwrap();
    harness.send_without_reply(&ada, HubCommand::Detach { listener: listener_id, is_too_slow: false });
    harness.publish(&bank, &session, &[THINK, LOOK]);
    let reconnected = harness.attach(&ada, &subscription, Some(&last));
    assert_eq!(
        (event_types(&harness.take_events(reconnected)).len(), harness.take_messages(reconnected).len()),
        (3, 0),
        "both missed events and the state that the hub added are delivered, without a gap message"
    );
    let completed = r#"{"type":"aaep:agent.tool.completed","tool":"look","tool_call_id":"call_9","status":"success","summary_normal":"Seen."}"#;
    harness.publish(&bank, &session, &[completed]);
    harness.confirm(&bank, &session, TRANSFER);
    for unusable_id in [&*last, "evt_never", "at_999999", "behind"] {
        let reconnected = harness.attach(&ada, &subscription, Some(unusable_id));
        let [message] = &harness.take_messages(reconnected)[..] else { panic!("expected one message") };
        assert_eq!(
            (text_member(message, "type"), text_member(message, "last_event_id")),
            ("sayso:gap".into(), unusable_id.into())
        );
        assert_eq!(text_member(message, "subscription_id"), subscription);
        let events = harness.take_events(reconnected);
        assert_eq!(event_types(&events), ["state.changed", "awaiting.confirmation"]);
        assert!(events[0].contains(r#""gap":true"#), "{}", events[0]);
        let last = harness.last_id(reconnected).unwrap();
        let reconnected_again = harness.attach(&ada, &subscription, Some(&last));
        assert_eq!(
            (harness.take_events(reconnected_again).len(), harness.take_messages(reconnected_again).len()),
            (0, 0),
            "nothing is sent again"
        );
    }
}

#[test]
fn closed_connections_receive_the_reason_and_questions_survive_a_shutdown() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, first) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let second = harness.attach(&ada, &subscription, None);
    let reasons = |messages: Vec<String>| {
        messages.iter().map(|message| text_member(message, "reason_code")).collect::<Vec<_>>()
    };
    assert_eq!(reasons(harness.take_messages(first)), ["replaced"]);
    assert!(harness.is_closed(first) && !harness.is_closed(second));
    let session = harness.start(&bank);
    let opened = reply_json(harness.confirm(&bank, &session, TRANSFER));
    let token = text_member(&opened, "reply_token");
    assert_eq!(harness.ask_hub(&ada, HubCommand::ShutDown), HubReply::Done);
    assert_eq!(reasons(harness.take_messages(second)), ["producer_shutdown"]);
    harness.send_without_reply(&ada, HubCommand::Detach { listener: second, is_too_slow: false });
    harness.crash();
    assert_eq!(harness.status(&bank, &session, &token), HubReply::QuestionPending);
    let reconnected = harness.attach(&ada, &subscription, None);
    harness.reply(&ada, &subscription, &token, "accept");
    assert_eq!(harness.disk.decision(&token).unwrap().decision, "accept");
    harness.send_without_reply(&ada, HubCommand::Detach { listener: reconnected, is_too_slow: true });
    assert_eq!(reasons(harness.take_messages(reconnected)), ["slow_consumer"]);
    let attach = HubCommand::Attach {
        subscription: id(&subscription),
        last_event_id: None,
        listener: hub::ListenerId(1_000),
    };
    assert_eq!(harness.ask_hub(&ada, attach), HubReply::NotFound, "the subscription is closed");
}

/// If text is held for two listeners and one of them changes its terms, neither loses the text.
#[test]
fn held_text_survives_a_renegotiation() {
    let mut harness = HubHarness::new();
    let (bank, ada, ben) = (agent("bank"), listener("ada", &[]), listener("ben", &[]));
    let (subscription, listener_id) = harness.connect_listener(&ada, "{}");
    let (_, other) = harness.connect_listener(&ben, "{}");
    let session = harness.start(&bank);
    let chunk = |text: &str| HubCommand::StreamOutput {
        session: id(&session),
        output_id: None,
        producer: None,
        text: text.to_owned(),
        language: None,
        content_type: None,
        coalesce_hint: None,
        complete: false,
        agent_reports_next_state: false,
        idempotency_key: None,
    };
    harness.ask_hub(&bank, chunk("One sentence. And half"));
    let text = format!(
        r#"{{"type":"subscription.renegotiate","subscription_id":"{subscription}","capabilities":{{"coalesce_boundaries":["word"]}}}}"#
    );
    let reply = harness.ask_hub(&ada, send_message(&text));
    assert!(matches!(reply, HubReply::Renegotiated(_)), "{reply:?}");
    harness.ask_hub(&bank, chunk(" of one more. "));
    let think = r#"{"type":"aaep:agent.state.changed","to_state":"thinking"}"#;
    assert!(matches!(harness.publish(&bank, &session, &[think]), HubReply::EventsPublished { .. }));
    let mut chunks = |listener_id| -> Vec<String> {
        let events = harness.take_events(listener_id);
        let texts = events.iter().filter(|event| event.contains("output.streaming"));
        texts.map(|event| text_member(event, "chunk")).collect()
    };
    let texts = chunks(listener_id);
    assert_eq!(texts.concat(), "One sentence. And half of one more. ");
    assert!(texts.len() > 4, "delivered word by word from then on: {texts:?}");
    assert_eq!(
        chunks(other),
        ["One sentence. ", "And half of one more. "],
        "other listeners are not affected"
    );
}

#[test]
fn a_journal_that_may_have_lost_entries_voids_consents_and_refuses_open_questions() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, _) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    let [accepted, open] = ["500", "600"].map(|amount| {
        let opened = harness.confirm(&bank, &session, &TRANSFER.replace("500", amount));
        text_member(&reply_json(opened), "reply_token")
    });
    harness.reply(&ada, &subscription, &accepted, "accept");
    harness.disk.alter_restored(Some(|state| state.must_void_consents = true));
    harness.crash();
    harness.disk.alter_restored(None);
    let log_event = LogEvent::ConsentsVoided { consents: 1, questions: 1 };
    let outputs = harness.core.run_turn([], harness.now);
    assert!(outputs.contains(&TurnOutput::Log(log_event)), "{outputs:?}");
    let call = harness.publish(&bank, &session, &[&tool_invoked(&accepted, "500.00")]);
    assert!(matches!(call, HubReply::RuleViolations(_)), "the consent may have been spent: {call:?}");
    harness.attach(&ada, &subscription, None);
    harness.reply(&ada, &subscription, &open, "accept");
    assert_eq!(harness.disk.decision(&open).unwrap().decision, "reject");
}

#[test]
fn a_question_whose_record_belongs_to_another_row_stops_the_start() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let [first, second] = [(); 2].map(|()| harness.start(&bank));
    for (session, amount) in [(&first, "500"), (&first, "600"), (&second, "700")] {
        let opened = harness.confirm(&bank, session, &TRANSFER.replace("500", amount));
        assert!(matches!(opened, HubReply::QuestionOpened { .. }), "{opened:?}");
    }
    let alterations: [fn(&mut journal::stored::LiveState); 3] = [
        // The records of all questions change places; at least two of them have the same session.
        |state| {
            let mut records: Vec<_> =
                state.questions.iter().map(|question| question.record.clone()).collect();
            records.rotate_left(1);
            for (question, record) in state.questions.iter_mut().zip(records) {
                question.record = record;
            }
        },
        // Only the token differs.
        |state| "rpl_00000000000000000000000000000000".clone_into(&mut state.questions[0].token),
        // Only the session differs.
        |state| "sess_00000000000000000000000000000000".clone_into(&mut state.questions[0].session),
    ];
    for alter in alterations {
        harness.disk.alter_restored(Some(alter));
        let restored = hub::Core::new(
            Box::new(harness.disk.clone()),
            aaep::event::Producer::new("hub"),
            hub::HubLimits::default(),
            testing::random::seeded_byte_source(8),
            harness.now,
        );
        let error = restored.expect_err("the start fails").to_string();
        assert!(error.contains("a newer version of sayso may have written it"), "{error}");
    }
    harness.disk.alter_restored(None);
    harness.crash();
}

#[test]
fn a_session_with_many_events_is_restored_completely() {
    let mut harness = HubHarness::new();
    let bank = agent("bank");
    let session = harness.start(&bank);
    let progress =
        r#"{"type":"aaep:agent.progress.updated","progress":{"percent":5},"summary_normal":"Working."}"#;
    for _ in 0..3 {
        let reply = harness.publish(&bank, &session, &[progress; 200]);
        assert!(matches!(reply, HubReply::EventsPublished { .. }), "{reply:?}");
    }
    harness.publish(&bank, &session, &[LOOK]);
    harness.crash();
    let seen = r#"{"type":"aaep:agent.tool.completed","tool":"look","tool_call_id":"call_9","status":"success","summary_normal":"Seen."}"#;
    let reply = harness.publish(&bank, &session, &[seen]);
    assert!(matches!(reply, HubReply::EventsPublished { .. }), "the call is still open: {reply:?}");
}

#[test]
fn a_refused_start_does_not_affect_another_request_of_its_turn() {
    let mut harness = HubHarness::new();
    let bank = agent("bank");
    let start = |body: &str| HubCommand::Start { body: body.into(), idempotency_key: None };
    let valid = r#"{"summary_normal":"Moving money.","localization_hints":{"primary_language":"en"}}"#;
    let [accepted, refused] =
        harness.ask_both_in_one_turn(&bank, start(valid), &bank, start(r#"{"summary_normal":7}"#));
    assert!(matches!(refused, HubReply::RuleViolations(_)), "{refused:?}");
    let session = text_member(&reply_json(accepted), "session_id");
    harness.crash();
    assert!(format!("{:?}", harness.core).contains(" sessions: 1,"), "{:?}", harness.core);
    let reply = harness.publish(&bank, &session, &[THINK]);
    assert!(matches!(reply, HubReply::EventsPublished { .. }), "{reply:?}");
}
