//! The hub's counters and gauges.

use crate::support::*;
use hub::HubLimits;
use hub::command::{HubCommand, HubReply, Request, RequestId, TurnOutput};
use hub::telemetry::LogEvent;

#[test]
fn counters_and_gauges_follow_sessions_questions_and_listeners() {
    let limits = HubLimits { questions_per_minute: 4, ..HubLimits::default() };
    let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
    let metrics = harness.core.counters();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, connection) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    assert_eq!([metrics.subscriptions_accepted.get(), metrics.subscriptions_open.get()], [1, 1]);
    assert_eq!(metrics.listeners.get(), 1);
    let sessions = [harness.start(&bank), harness.start(&bank)];
    assert_eq!([metrics.sessions_started.get(), metrics.sessions_open.get()], [2, 2]);
    assert_eq!(metrics.events.get(), 2);
    let turns = metrics.turns.get();
    harness.turn();
    assert_eq!(metrics.turns.get(), turns + 1);

    let mut tokens = Vec::new();
    for amount in ["500", "600", "700"] {
        let question = TRANSFER.replace("500", amount);
        let opened = reply_json(harness.confirm(&bank, &sessions[0], &question));
        tokens.push(text_member(&opened, "reply_token"));
    }
    assert_eq!([metrics.questions_asked.get(), metrics.questions_open.get()], [3, 3]);
    harness.reply(&ada, &subscription, &tokens[0], "accept");
    harness.reply(&ada, &subscription, &tokens[1], "reject");
    assert_eq!([metrics.questions_asked.get(), metrics.questions_open.get()], [3, 1]);
    let count = |labels: &[&str], number: u64| (labels.iter().map(ToString::to_string).collect(), number);
    assert_eq!(
        metrics.questions_resolved.snapshot(),
        [count(&["reply", "accept"], 1), count(&["reply", "reject"], 1)]
    );
    harness.reply(&ada, &subscription, &tokens[1], "accept");
    let replies = metrics.replies.snapshot();
    assert_eq!(replies.iter().map(|(_, number)| number).sum::<u64>(), 3, "{replies:?}");
    assert_eq!(replies.len(), 2, "applied and refused: {replies:?}");
    let at = aaep::Timestamp::from_unix_millis(harness.now).unwrap();
    let extension = format!(
        r#"{{"type":"sayso:deadline.extend","reply_token":"{}","subscription_id":"{subscription}","timestamp":"{at}"}}"#,
        tokens[2]
    );
    harness.ask_hub(&ada, send_message(&extension));
    assert_eq!(metrics.questions_extended.get(), 1);
    harness.reply(&ada, &subscription, &tokens[2], "reject");
    harness.publish(&bank, &sessions[0], &[&tool_invoked(&tokens[0], "500.00")]);
    assert_eq!(metrics.consents_spent.get(), 1);

    let refused = harness.publish(&bank, &sessions[0], &[&tool_invoked(&tokens[0], "500.00")]);
    let HubReply::RuleViolations(findings) = &refused else { panic!("{refused:?}") };
    let mut broken: Vec<_> = findings.iter().map(|finding| count(&[finding.rule.id()], 1)).collect();
    broken.sort();
    assert_eq!(metrics.rule_violations.snapshot(), broken);
    assert_eq!(metrics.limit_refusals.get(), 0);
    harness.confirm(&bank, &sessions[0], TRANSFER);
    let fifth = harness.confirm(&bank, &sessions[0], &TRANSFER.replace("500", "800"));
    assert!(matches!(fifth, HubReply::LimitReached(_)), "{fifth:?}");
    assert_eq!(metrics.limit_refusals.get(), 1);
    let old = r#"{"type":"subscription.request","aaep_version":"9.0.0","subscriber_id":"listener","capabilities":{}}"#;
    assert!(matches!(harness.ask_hub(&ada, subscribe(old)), HubReply::SubscriptionRejected(_)));
    assert_eq!(metrics.subscriptions_rejected.snapshot().len(), 1);

    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    harness.publish(&bank, &sessions[1], &[end]);
    assert_eq!([metrics.sessions_ended.get(), metrics.sessions_open.get()], [1, 1]);
    harness.send_without_reply(&ada, HubCommand::Detach { listener: connection, is_too_slow: true });
    assert_eq!([metrics.listeners.get(), metrics.subscriptions_open.get()], [0, 0]);
}

#[test]
fn gauges_are_right_after_a_restart() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, _) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    let token = text_member(&reply_json(harness.confirm(&bank, &session, TRANSFER)), "reply_token");
    harness.confirm(&bank, &session, &TRANSFER.replace("500", "600"));
    harness.reply(&ada, &subscription, &token, "accept");
    harness.crash();
    let metrics = harness.core.counters();
    let gauges =
        [&metrics.questions_open, &metrics.sessions_open, &metrics.subscriptions_open, &metrics.listeners];
    assert_eq!(gauges.map(hub::telemetry::MetricValue::get), [1, 1, 1, 0]);
}

#[test]
fn complete_and_incomplete_resumes_are_counted() {
    let limits = HubLimits { max_replay_events: 1, ..HubLimits::default() };
    let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
    let metrics = harness.core.counters();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, connection) = harness.connect_listener(&ada, "{}");
    let session = harness.start(&bank);
    let last = harness.last_id(connection).unwrap();
    harness.publish(&bank, &session, &[THINK]);
    harness.attach(&ada, &subscription, None);
    let resumes = || [metrics.resumes_complete.get(), metrics.resumes_gap.get()];
    assert_eq!(resumes(), [0, 0]);
    harness.attach(&ada, &subscription, Some(&last));
    assert_eq!(resumes(), [1, 0]);
    harness.publish(&bank, &session, &[r#"{"type":"aaep:agent.state.changed","to_state":"deciding"}"#]);
    harness.attach(&ada, &subscription, Some(&last));
    assert_eq!(resumes(), [1, 1]);
}

#[test]
fn handoffs_are_counted_by_result() {
    let mut harness = HubHarness::new();
    let metrics = harness.core.counters();
    let bank = agent("bank");
    let session = harness.start(&bank);
    let body = r#"{"timeout_seconds":60,"reason":"The refund needs a person.","target_kind":"escalation_queue","summary_normal":"I need a person."}"#;
    let command = HubCommand::HandOff { session: id(&session), body: body.into(), idempotency_key: None };
    let reply = harness.ask_hub(&bank, command);
    assert!(matches!(reply, HubReply::QuestionOpened { .. }), "{reply:?}");
    harness.advance_time(60_000);
    assert_eq!(metrics.handoffs_requested.get(), 1);
    let resolved = metrics.handoffs_resolved.snapshot();
    assert_eq!(resolved.iter().map(|(_, number)| *number).collect::<Vec<_>>(), [1]);
}

/// Starts a session that cannot be stored.
fn fail_to_start(harness: &mut HubHarness, principal: &hub::Principal) {
    let start = HubCommand::Start { body: r#"{"summary_normal":"Hello."}"#.into(), idempotency_key: None };
    assert!(matches!(harness.ask_hub(principal, start), HubReply::Unavailable(_)));
}

/// Runs a turn without requests and returns its log events.
fn log_of_turn(harness: &mut HubHarness) -> Vec<LogEvent> {
    let outputs = harness.core.run_turn(Vec::new(), harness.now);
    let log = |output| if let TurnOutput::Log(event) = output { Some(event) } else { None };
    outputs.into_iter().filter_map(log).collect()
}

#[test]
fn after_a_failed_write_the_hub_tests_the_journal_once_a_second() {
    let mut harness = HubHarness::new();
    let bank = agent("bank");
    harness.start(&bank);
    let has_written = |harness: &HubHarness| harness.disk.take_calls().contains(&"commit");
    has_written(&harness);
    log_of_turn(&mut harness);
    assert!(!has_written(&harness), "a healthy journal is not tested");
    harness.disk.fail_writes(true);
    fail_to_start(&mut harness, &bank);
    has_written(&harness);
    harness.now += 999;
    assert!(!log_of_turn(&mut harness).contains(&LogEvent::WritesRecovered));
    assert!(!has_written(&harness), "too early");
    harness.now += 1;
    log_of_turn(&mut harness);
    harness.disk.fail_writes(false);
    harness.now += 1_000;
    let mut recovered = 0;
    for _ in 0..3 {
        recovered +=
            log_of_turn(&mut harness).iter().filter(|event| **event == LogEvent::WritesRecovered).count();
        harness.now += 1_000;
    }
    assert_eq!(recovered, 1);
}

#[test]
fn a_request_that_is_written_after_a_failure_says_that_writes_work_again() {
    let mut harness = HubHarness::new();
    let bank = agent("bank");
    harness.disk.fail_writes(true);
    fail_to_start(&mut harness, &bank);
    harness.disk.fail_writes(false);
    let command = |body: &str| HubCommand::Start { body: body.into(), idempotency_key: None };
    let mut recovered = |body: &str| {
        let request = Request { id: RequestId(900), principal: bank.clone(), command: command(body) };
        let outputs = harness.core.run_turn(vec![request], harness.now + 1_000);
        let is_log = |output: &&TurnOutput| matches!(output, TurnOutput::Log(LogEvent::WritesRecovered));
        outputs.iter().filter(is_log).count()
    };
    assert_eq!(recovered(r#"{"summary_normal":"Hello."}"#), 1);
    assert_eq!(recovered(r#"{"summary_normal":"Hello."}"#), 0);
}

#[test]
fn only_a_refused_reply_is_logged_as_refused() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, _) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    let token = text_member(&reply_json(harness.confirm(&bank, &session, TRANSFER)), "reply_token");
    let at = aaep::Timestamp::from_unix_millis(harness.now).unwrap();
    let text = format!(
        r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"accept","subscription_id":"{subscription}","timestamp":"{at}"}}"#
    );
    for is_refused in [false, true] {
        let request = Request { id: RequestId(900), principal: ada.clone(), command: send_message(&text) };
        let outputs = harness.core.run_turn(vec![request], harness.now);
        let is_log = |output: &TurnOutput| matches!(output, TurnOutput::Log(LogEvent::ReplyRefused { .. }));
        assert_eq!(outputs.iter().any(is_log), is_refused, "{outputs:?}");
    }
}
