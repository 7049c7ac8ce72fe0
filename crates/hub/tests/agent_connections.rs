//! Agent connections receive notices and keep their sessions alive.

use crate::support::*;
use hub::command::{AgentNotice, HubCommand, HubReply, Request, RequestId, TurnOutput};
use hub::{AgentConnectionId, HubLimits, Principal};
use proptest::prelude::*;
use seal::UnixMillis;

const CONNECTION: AgentConnectionId = AgentConnectionId(1);
const OTHER_CONNECTION: AgentConnectionId = AgentConnectionId(2);

fn start_on(harness: &mut HubHarness, principal: &Principal, connection: AgentConnectionId) -> String {
    let text = r#"{"summary_normal":"Moving money.","localization_hints":{"primary_language":"en"}}"#;
    let start = HubCommand::Start { body: text.into(), idempotency_key: None };
    let started = reply_json(harness.ask_on_connection(principal, connection, start));
    text_member(&started, "session_id")
}

fn ask(session: &str, key: Option<&str>) -> HubCommand {
    let key = key.map(str::to_owned);
    HubCommand::Ask {
        session: id(session),
        body: TRANSFER.into(),
        is_clarification: false,
        idempotency_key: key,
    }
}

fn ask_on(
    harness: &mut HubHarness,
    principal: &Principal,
    connection: AgentConnectionId,
    session: &str,
) -> String {
    let opened = reply_json(harness.ask_on_connection(principal, connection, ask(session, None)));
    text_member(&opened, "reply_token")
}

fn follow(session: &str) -> HubCommand {
    HubCommand::Follow { session: id(session) }
}

fn stop(harness: &mut HubHarness, principal: &Principal, subscription: &str, session: &str) {
    let at = aaep::Timestamp::from_unix_millis(harness.now).unwrap();
    let text = format!(
        r#"{{"type":"sayso:session.stop","session_id":"{session}","subscription_id":"{subscription}","timestamp":"{at}"}}"#
    );
    assert_eq!(harness.ask_hub(principal, send_message(&text)), HubReply::Done);
}

/// Returns the token and its decision for each resolved question, and the reason for each session end.
fn summarize(notices: &[AgentNotice]) -> Vec<(String, String)> {
    let summary = |notice: &AgentNotice| match notice {
        AgentNotice::QuestionResolved { token, outcome, .. } => {
            let outcome = reply_json(HubReply::QuestionResolved(outcome.clone()));
            (
                token.to_string(),
                format!("{} by {}", text_member(&outcome, "decision"), text_member(&outcome, "by")),
            )
        }
        AgentNotice::SessionEnded { reason, .. } => ("ended".to_owned(), reason.to_string()),
        other => panic!("{other:?}"),
    };
    notices.iter().map(summary).collect()
}

fn is_open(harness: &mut HubHarness, principal: &Principal, session: &str) -> bool {
    // Without a connection this is only a query and does not renew the lease.
    harness.ask_hub(principal, follow(session)) != HubReply::SessionEnded
}

#[test]
fn every_following_connection_is_notified_of_an_answer() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, _) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = start_on(&mut harness, &bank, CONNECTION);
    assert!(matches!(
        harness.ask_on_connection(&bank, OTHER_CONNECTION, follow(&session)),
        HubReply::SessionFollowed { .. }
    ));
    let token = ask_on(&mut harness, &bank, CONNECTION, &session);
    assert_eq!(harness.take_notices(CONNECTION), []);
    harness.reply(&ada, &subscription, &token, "accept");
    let HubReply::QuestionResolved(outcome) = harness.status(&bank, &session, &token) else { panic!() };
    let resolved = AgentNotice::QuestionResolved { session: id(&session), token: id(&token), outcome };
    assert_eq!(
        (harness.take_notices(CONNECTION), harness.take_notices(OTHER_CONNECTION)),
        (vec![resolved.clone()], vec![resolved])
    );
}

#[test]
fn a_request_is_answered_before_notices_about_it() {
    let mut harness = HubHarness::new();
    let bank = agent("bank");
    let session = start_on(&mut harness, &bank, CONNECTION);
    let command = HubCommand::OnConnection { connection: CONNECTION, command: Box::new(ask(&session, None)) };
    let request = Request { id: RequestId(900), principal: bank, command };
    let mut outputs = harness.core.run_turn(vec![request], harness.now);
    outputs.retain(|output| !matches!(output, TurnOutput::Log(_)));
    let [
        TurnOutput::Reply(RequestId(900), HubReply::QuestionOpened { .. }),
        TurnOutput::Notify(CONNECTION, notice),
    ] = &outputs[..]
    else {
        panic!("{outputs:?}");
    };
    assert_eq!(summarize(std::slice::from_ref(notice))[0].1, "reject by unreachable");
}

#[test]
fn a_wait_in_the_turn_of_a_stop_is_answered_only_to_the_agent_that_asked() {
    for (waiting, is_asker) in [("bank", true), ("eve", false)] {
        let mut harness = HubHarness::new();
        let (bank, ada) = (agent("bank"), listener("ada", &[]));
        let (subscription, _) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
        let session = harness.start(&bank);
        let token = text_member(&reply_json(harness.confirm(&bank, &session, TRANSFER)), "reply_token");
        let at = aaep::Timestamp::from_unix_millis(harness.now).unwrap();
        let stop = format!(
            r#"{{"type":"sayso:session.stop","session_id":"{session}","subscription_id":"{subscription}","timestamp":"{at}"}}"#
        );
        let wait = HubCommand::Wait { session: id(&session), token: id(&token), until: harness.now };
        let waiting = agent(waiting);
        let [_, reply] = harness.ask_both_in_one_turn(&ada, send_message(&stop), &waiting, wait);
        if is_asker {
            assert_eq!(text_member(&reply_json(reply), "status"), "stopped");
        } else {
            assert_eq!(reply, HubReply::NotFound);
        }
    }
}

#[test]
fn after_a_stop_the_notices_about_questions_come_before_the_session_end() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, _) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = start_on(&mut harness, &bank, CONNECTION);
    let token = ask_on(&mut harness, &bank, CONNECTION, &session);
    stop(&mut harness, &ada, &subscription, &session);
    let notices = summarize(&harness.take_notices(CONNECTION));
    assert_eq!(notices, [(token, "reject by stopped".into()), ("ended".into(), "user".into())]);
    assert_eq!(harness.ask_on_connection(&bank, CONNECTION, follow(&session)), HubReply::SessionEnded);
    assert_eq!(
        summarize(&harness.take_notices(CONNECTION)),
        [("ended".into(), "user".into())],
        "the agent learns the reason"
    );
    assert!(format!("{:?}", harness.core).contains(" agent_connections: 0,"), "{:?}", harness.core);
}

#[test]
fn a_stop_ends_a_session_in_the_middle_of_a_call() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, listener_id) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = start_on(&mut harness, &bank, CONNECTION);
    let tool = r#"{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_9","risk_level":"low","summary_normal":"Looking."}"#;
    assert!(matches!(harness.publish(&bank, &session, &[THINK, tool]), HubReply::EventsPublished { .. }));
    harness.take_events(listener_id);
    stop(&mut harness, &ada, &subscription, &session);
    assert_eq!(event_types(&harness.take_events(listener_id)), ["tool.completed", "session.cancelled"]);
    assert_eq!(summarize(&harness.take_notices(CONNECTION)), [("ended".into(), "user".into())]);
    assert!(!is_open(&mut harness, &bank, &session));
}

#[test]
fn only_other_connections_are_notified_of_a_session_end() {
    let mut harness = HubHarness::new();
    let bank = agent("bank");
    let session = start_on(&mut harness, &bank, CONNECTION);
    harness.ask_on_connection(&bank, OTHER_CONNECTION, follow(&session));
    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#.to_owned();
    harness.ask_on_connection(
        &bank,
        CONNECTION,
        HubCommand::Publish { session: id(&session), events: vec![end.into()], idempotency_key: None },
    );
    assert_eq!(harness.take_notices(CONNECTION), []);
    assert_eq!(summarize(&harness.take_notices(OTHER_CONNECTION)), [("ended".into(), "completed".into())]);
}

#[test]
fn a_connection_keeps_its_sessions_alive_until_one_lease_after_it_closes() {
    let mut harness = HubHarness::new();
    let bank = agent("bank");
    let lease = HubLimits::default().lease_ms;
    let [followed, abandoned] =
        [CONNECTION, OTHER_CONNECTION].map(|connection| start_on(&mut harness, &bank, connection));
    harness.send_without_reply(&bank, HubCommand::DisconnectAgent { connection: OTHER_CONNECTION });
    harness.advance_time(lease * 3 + 17);
    assert!(is_open(&mut harness, &bank, &followed) && !is_open(&mut harness, &bank, &abandoned));
    harness.send_without_reply(&bank, HubCommand::DisconnectAgent { connection: CONNECTION });
    harness.advance_time(lease - 1);
    assert!(is_open(&mut harness, &bank, &followed));
    harness.advance_time(1);
    assert!(!is_open(&mut harness, &bank, &followed));
    harness.ask_on_connection(&bank, CONNECTION, follow(&followed));
    assert_eq!(summarize(&harness.take_notices(CONNECTION)), [("ended".into(), "gone".into())]);
}

#[test]
fn an_agent_that_reconnects_is_notified_of_missed_resolutions() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, _) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = start_on(&mut harness, &bank, CONNECTION);
    let token = ask_on(&mut harness, &bank, CONNECTION, &session);
    harness.send_without_reply(&bank, HubCommand::DisconnectAgent { connection: CONNECTION });
    harness.reply(&ada, &subscription, &token, "accept");
    assert_eq!(harness.take_notices(CONNECTION), []);
    for after_crash in [false, true] {
        if after_crash {
            harness.crash();
        }
        harness.ask_on_connection(&bank, OTHER_CONNECTION, follow(&session));
        assert_eq!(
            summarize(&harness.take_notices(OTHER_CONNECTION)),
            [(token.clone(), "accept by reply".into())]
        );
        harness.ask_on_connection(&bank, OTHER_CONNECTION, follow(&session));
        assert_eq!(harness.take_notices(OTHER_CONNECTION), [], "once per connection");
    }
    let publish = HubCommand::Publish {
        session: id(&session),
        events: vec![tool_invoked(&token, "500.00").into()],
        idempotency_key: None,
    };
    assert!(matches!(
        harness.ask_on_connection(&bank, OTHER_CONNECTION, publish),
        HubReply::EventsPublished { .. }
    ));
    harness.ask_on_connection(&bank, CONNECTION, follow(&session));
    assert_eq!(harness.take_notices(CONNECTION), [], "no notice about a spent consent");
}

#[test]
fn a_repeated_key_repeats_the_notice_even_after_the_session_ended() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, _) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = start_on(&mut harness, &bank, CONNECTION);
    let opened = reply_json(harness.ask_on_connection(&bank, CONNECTION, ask(&session, Some("k"))));
    let token = text_member(&opened, "reply_token");
    assert_eq!(reply_json(harness.ask_on_connection(&bank, CONNECTION, ask(&session, Some("k")))), opened);
    assert_eq!(harness.take_notices(CONNECTION), [], "no notice while the question is open");
    harness.reply(&ada, &subscription, &token, "accept");
    harness.take_notices(CONNECTION);
    assert_eq!(reply_json(harness.ask_on_connection(&bank, CONNECTION, ask(&session, Some("k")))), opened);
    assert_eq!(summarize(&harness.take_notices(CONNECTION)), [(token.clone(), "accept by reply".into())]);
    stop(&mut harness, &ada, &subscription, &session);
    harness.crash();
    assert_eq!(reply_json(harness.ask_on_connection(&bank, CONNECTION, ask(&session, Some("k")))), opened);
    let notices = summarize(&harness.take_notices(CONNECTION));
    assert_eq!(notices, [("ended".into(), "user".into()), (token, "accept by reply".into())]);
}

#[test]
fn a_question_resolved_while_a_connection_starts_to_follow_causes_one_notice() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, _) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    let opened = reply_json(harness.confirm(&bank, &session, TRANSFER));
    let token = text_member(&opened, "reply_token");
    let at = aaep::Timestamp::from_unix_millis(harness.now).unwrap();
    let text = format!(
        r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"accept","subscription_id":"{subscription}","timestamp":"{at}"}}"#
    );
    let follow = HubCommand::OnConnection { connection: CONNECTION, command: Box::new(follow(&session)) };
    harness.ask_both_in_one_turn(&ada, send_message(&text), &bank, follow);
    assert_eq!(summarize(&harness.take_notices(CONNECTION)), [(token, "accept by reply".into())]);
}

#[test]
fn a_failed_write_sends_no_notice_and_keeps_the_connection() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, _) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = start_on(&mut harness, &bank, CONNECTION);
    let token = ask_on(&mut harness, &bank, CONNECTION, &session);
    harness.disk.fail_writes(true);
    let text = r#"{"summary_normal":"Another.","localization_hints":{"primary_language":"en"}}"#.to_owned();
    let start = HubCommand::Start { body: text.into(), idempotency_key: None };
    assert!(matches!(harness.ask_on_connection(&bank, CONNECTION, start), HubReply::Unavailable(_)));
    let at = aaep::Timestamp::from_unix_millis(harness.now).unwrap();
    let text = format!(
        r#"{{"type":"sayso:session.stop","session_id":"{session}","subscription_id":"{subscription}","timestamp":"{at}"}}"#
    );
    assert!(matches!(harness.ask_hub(&ada, send_message(&text)), HubReply::Unavailable(_)));
    assert_eq!(harness.take_notices(CONNECTION), []);
    harness.disk.fail_writes(false);
    harness.attach(&ada, &subscription, None);
    harness.reply(&ada, &subscription, &token, "accept");
    assert_eq!(summarize(&harness.take_notices(CONNECTION)), [(token, "accept by reply".into())]);
}

#[test]
fn a_connection_closed_while_reads_fail_keeps_nothing_alive() {
    let mut harness = HubHarness::new();
    let bank = agent("bank");
    let session = start_on(&mut harness, &bank, CONNECTION);
    harness.disk.fail_writes(true);
    harness.disk.fail_reads(true);
    assert!(matches!(harness.publish(&bank, &session, &[THINK]), HubReply::Unavailable(_)));
    harness.send_without_reply(&bank, HubCommand::DisconnectAgent { connection: CONNECTION });
    harness.disk.fail_writes(false);
    harness.disk.fail_reads(false);
    harness.advance_time(2_000);
    harness.advance_time(HubLimits::default().lease_ms);
    assert!(!is_open(&mut harness, &bank, &session));
}

#[test]
fn another_principals_session_is_not_found_on_a_connection() {
    let mut harness = HubHarness::new();
    let (bank, post) = (agent("bank"), agent("post"));
    let twin = Principal { name: "twin".into(), ..agent("bank") };
    let open = start_on(&mut harness, &bank, CONNECTION);
    let ended = start_on(&mut harness, &bank, CONNECTION);
    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    harness.publish(&bank, &ended, &[end]);
    for principal in [&post, &twin] {
        for session in [&*open, &*ended, "sess_00000000000000000000000000000000"] {
            assert_eq!(
                harness.ask_on_connection(principal, OTHER_CONNECTION, follow(session)),
                HubReply::NotFound
            );
            assert_eq!(
                harness.ask_on_connection(principal, OTHER_CONNECTION, ask(session, Some("k"))),
                HubReply::NotFound
            );
        }
    }
    assert_eq!(harness.take_notices(OTHER_CONNECTION), []);
    assert_eq!(
        harness.ask_on_connection(&listener("ada", &[]), OTHER_CONNECTION, follow(&open)),
        HubReply::NotFound
    );
}

#[test]
fn the_number_of_followers_is_limited() {
    let limits = HubLimits { followers_per_session: 2, ..HubLimits::default() };
    let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
    let bank = agent("bank");
    let session = start_on(&mut harness, &bank, CONNECTION);
    assert!(matches!(
        harness.ask_on_connection(&bank, OTHER_CONNECTION, follow(&session)),
        HubReply::SessionFollowed { .. }
    ));
    assert!(matches!(
        harness.ask_on_connection(&bank, AgentConnectionId(3), follow(&session)),
        HubReply::LimitReached(_)
    ));
    assert!(
        matches!(
            harness.ask_on_connection(&bank, OTHER_CONNECTION, follow(&session)),
            HubReply::SessionFollowed { .. }
        ),
        "this connection already follows the session"
    );
    harness.send_without_reply(&bank, HubCommand::DisconnectAgent { connection: CONNECTION });
    assert!(matches!(
        harness.ask_on_connection(&bank, AgentConnectionId(3), follow(&session)),
        HubReply::SessionFollowed { .. }
    ));
}

#[test]
fn a_cancelled_wait_frees_its_slot() {
    let limits = HubLimits { waits_per_principal: 2, ..HubLimits::default() };
    let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, _) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    let opened = reply_json(harness.confirm(&bank, &session, TRANSFER));
    let token = text_member(&opened, "reply_token");
    let wait = |until| HubCommand::Wait { session: id(&session), token: id(&token), until };
    let until = harness.now + 60_000;
    let first = harness.send(&bank, wait(until));
    let second = harness.send(&bank, wait(until));
    assert!(matches!(harness.ask_hub(&bank, wait(until)), HubReply::LimitReached(_)));
    assert!(
        matches!(harness.ask_hub(&bank, wait(UnixMillis::new(0))), HubReply::QuestionPending),
        "a query does not count as a wait"
    );
    harness.send_without_reply(&bank, HubCommand::CancelWait { request: first });
    let third = harness.send(&bank, wait(UnixMillis::MAX));
    harness.reply(&ada, &subscription, &token, "reject");
    assert_eq!(harness.take_reply(first), None);
    for request in [second, third] {
        assert!(matches!(harness.take_reply(request), Some(HubReply::QuestionResolved(_))));
    }
}

#[test]
fn max_wait_ms_limits_a_wait_and_the_lease_that_it_renews() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    let long = TRANSFER.replace(r#""timeout_seconds":180"#, r#""timeout_seconds":3600"#);
    let opened = reply_json(harness.confirm(&bank, &session, &long));
    let token = text_member(&opened, "reply_token");
    let request = harness
        .send(&bank, HubCommand::Wait { session: id(&session), token: id(&token), until: UnixMillis::MAX });
    harness.advance_time(HubLimits::default().max_wait_ms - 1);
    assert_eq!(harness.take_reply(request), None);
    harness.advance_time(1);
    assert_eq!(harness.take_reply(request), Some(HubReply::QuestionPending));
    assert!(is_open(&mut harness, &bank, &session), "the agent may wait again");
    harness.advance_time(1_000);
    assert!(!is_open(&mut harness, &bank, &session));
}

#[test]
fn only_the_owner_can_query_an_ended_session() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let twin = Principal { name: "twin".into(), ..agent("bank") };
    let (subscription, _) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    let opened = reply_json(harness.confirm(&bank, &session, TRANSFER));
    let token = text_member(&opened, "reply_token");
    harness.reply(&ada, &subscription, &token, "accept");
    stop(&mut harness, &ada, &subscription, &session);
    for after_crash in [false, true] {
        if after_crash {
            harness.crash();
        }
        assert!(matches!(harness.status(&bank, &session, &token), HubReply::QuestionResolved(_)));
        assert_eq!(
            harness.status(&twin, &session, &token),
            HubReply::NotFound,
            "the same agent_id is not enough"
        );
        assert_eq!(harness.status(&Principal::local(), &session, &token), HubReply::NotFound);
    }
}

#[derive(Clone, Debug)]
enum ConnectionStep {
    AdvanceTime(i64),
    Publish(usize),
    Follow(u64, usize),
    Disconnect(u64),
    Query(usize),
}

fn steps() -> impl Strategy<Value = Vec<ConnectionStep>> {
    let step = prop_oneof![
        4 => (0..200_i64).prop_map(ConnectionStep::AdvanceTime),
        2 => (0..5_usize).prop_map(ConnectionStep::Publish),
        2 => (0..3_u64, 0..5_usize).prop_map(|(connection, session)| ConnectionStep::Follow(connection, session)),
        2 => (0..3_u64).prop_map(ConnectionStep::Disconnect),
        1 => (0..5_usize).prop_map(ConnectionStep::Query),
    ];
    prop::collection::vec(step, 1..60)
}

/// The expected state of a session.
struct ModelSession {
    id: String,
    last_seen: i64,
    connections: Vec<u64>,
    is_open: bool,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn lease_expiry_agrees_with_a_linear_scan(steps in steps()) {
        const LEASE_MS: i64 = 100;
        let limits = HubLimits { lease_ms: LEASE_MS, ..HubLimits::default() };
        let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
        let bank = agent("bank");
        let mut model: Vec<_> = (0..5)
            .map(|_| ModelSession { id: harness.start(&bank), last_seen: harness.now.get(), connections: Vec::new(), is_open: true })
            .collect();
        for step in steps {
            match step {
                ConnectionStep::AdvanceTime(time) => harness.advance_time(time),
                ConnectionStep::Publish(index) => {
                    let reply = harness.publish(&bank, &model[index].id, &[r#"{"type":"aaep:agent.state.changed"}"#]);
                    prop_assert_eq!(reply != HubReply::SessionEnded, model[index].is_open);
                    model[index].last_seen = harness.now.get();
                }
                ConnectionStep::Follow(connection, index) => {
                    let reply = harness.ask_on_connection(&bank, AgentConnectionId(connection), follow(&model[index].id));
                    prop_assert_eq!(reply != HubReply::SessionEnded, model[index].is_open);
                    model[index].last_seen = harness.now.get();
                    if !model[index].connections.contains(&connection) {
                        model[index].connections.push(connection);
                    }
                }
                ConnectionStep::Disconnect(connection) => {
                    harness.send_without_reply(&bank, HubCommand::DisconnectAgent { connection: AgentConnectionId(connection) });
                    for session in model.iter_mut().filter(|session| session.connections.contains(&connection)) {
                        session.connections.retain(|other| *other != connection);
                        session.last_seen = harness.now.get();
                    }
                }
                ConnectionStep::Query(index) => {
                    prop_assert_eq!(is_open(&mut harness, &bank, &model[index].id), model[index].is_open);
                }
            }
            for session in &mut model {
                session.is_open &= !session.connections.is_empty() || harness.now < UnixMillis::new(session.last_seen + LEASE_MS);
            }
            let due = model.iter().filter(|session| session.is_open && session.connections.is_empty()).map(|session| session.last_seen + LEASE_MS).min();
            let next = harness.core.next_deadline();
            prop_assert!(due.is_none_or(|due| next.is_some_and(|next| next <= UnixMillis::new(due))), "{:?} after {:?}", next, due);
            for session in &model {
                prop_assert_eq!(is_open(&mut harness, &bank, &session.id), session.is_open);
            }
        }
    }
}
