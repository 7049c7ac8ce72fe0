//! What an agent's connections learn: why a session ended, and each outcome once and only for their own questions.

use crate::support::*;
use hub::command::{AgentNotice, HubCommand, HubReply, MalformedRequest};
use hub::{AgentConnectionId, HubLimits};

const CONNECTION: AgentConnectionId = AgentConnectionId(1);
const OTHER_CONNECTION: AgentConnectionId = AgentConnectionId(2);

fn follow(session: &str) -> HubCommand {
    HubCommand::Follow { session: id(session) }
}

#[test]
fn a_connection_learns_why_its_session_ended() {
    let cancelled = |by: &str| {
        format!(
            r#"{{"type":"aaep:agent.session.cancelled","cancelled_by":"{by}","summary_normal":"Stopped."}}"#
        )
    };
    let errored = r#"{"type":"aaep:agent.session.errored","error_code":"E1","error_category":"unknown","recoverable":false,"summary_normal":"It failed."}"#;
    let completed = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    for (event, reason) in [
        (completed.to_owned(), "completed"),
        (errored.to_owned(), "errored"),
        (cancelled("user"), "producer"),
        (cancelled("producer"), "producer"),
        (cancelled("timeout"), "timeout"),
        (cancelled("system"), "system"),
    ] {
        let mut harness = HubHarness::new();
        let bank = agent("bank");
        let session = harness.start(&bank);
        harness.ask_on_connection(&bank, CONNECTION, follow(&session));
        let reply = harness.publish(&bank, &session, &[&event]);
        assert!(matches!(reply, HubReply::EventsPublished { .. }), "{event}: {reply:?}");
        // A connection that follows the session later learns the same.
        harness.ask_on_connection(&bank, OTHER_CONNECTION, follow(&session));
        for connection in [CONNECTION, OTHER_CONNECTION] {
            let notices = harness.take_notices(connection);
            let [AgentNotice::SessionEnded { reason: told, .. }] = notices.as_slice() else {
                panic!("{event}: {notices:?}");
            };
            assert_eq!(told.to_string(), reason, "{event}");
        }
    }
}

#[test]
fn a_connection_that_starts_to_follow_does_not_learn_the_answers_of_other_sessions() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, _) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let (asking, other) = (harness.start(&bank), harness.start(&bank));
    let token = text_member(&reply_json(harness.confirm(&bank, &asking, TRANSFER)), "reply_token");
    let at = aaep::Timestamp::from_unix_millis(harness.now).unwrap();
    let reply = format!(
        r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"accept","subscription_id":"{subscription}","timestamp":"{at}"}}"#
    );
    let on_connection =
        HubCommand::OnConnection { connection: CONNECTION, command: Box::new(follow(&other)) };
    harness.ask_both_in_one_turn(&ada, send_message(&reply), &bank, on_connection);
    assert_eq!(harness.take_notices(CONNECTION), []);
}

#[test]
fn each_connection_learns_an_outcome_once_if_it_repeats_the_question_in_the_same_turn() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, _) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    let ask = |key: &str| HubCommand::Ask {
        session: id(&session),
        body: TRANSFER.into(),
        is_clarification: false,
        idempotency_key: Some(key.to_owned()),
    };
    let token =
        text_member(&reply_json(harness.ask_on_connection(&bank, CONNECTION, ask("k"))), "reply_token");
    harness.reply(&ada, &subscription, &token, "accept");
    assert_eq!(harness.take_notices(CONNECTION).len(), 1);
    // Both connections repeat the question; each gets one notice.
    let repeat = |connection| HubCommand::OnConnection { connection, command: Box::new(ask("k")) };
    harness.ask_all_in_one_turn([
        (&bank, repeat(CONNECTION)),
        (&bank, repeat(OTHER_CONNECTION)),
        (&bank, repeat(CONNECTION)),
    ]);
    for connection in [CONNECTION, OTHER_CONNECTION] {
        assert_eq!(harness.take_notices(connection).len(), 1, "{connection:?}");
    }
}

#[test]
fn sessions_of_an_agent_in_the_previous_process_end_and_no_others() {
    let mut harness = HubHarness::new();
    let (bank, post) = (agent("bank"), agent("post"));
    let sessions = [harness.start(&bank), harness.start(&post)];
    harness.crash();
    harness.core.orphan_sessions_of(&bank.owner(), harness.now);
    harness.turn();
    for (principal, session, is_ended) in [(&bank, &sessions[0], true), (&post, &sessions[1], false)] {
        let reply = harness.publish(principal, session, &[THINK]);
        assert_eq!(reply == HubReply::SessionEnded, is_ended, "{reply:?}");
    }
}

#[test]
fn listeners_hear_that_an_agent_is_away_only_if_it_is() {
    // The agent's actions after its question, and whether it counts as away 10 s after its last request.
    for (wait_ms, is_followed, waits, decision, is_away) in [
        (10_001, false, false, "accept", true),
        (10_000, false, false, "accept", false),
        (10_001, true, false, "accept", false),
        (10_001, false, true, "accept", false),
        (10_001, false, false, "reject", false),
    ] {
        let limits = HubLimits { lease_ms: 600_000, ..HubLimits::default() };
        let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
        let (bank, ada) = (agent("bank"), listener("ada", &[]));
        let (subscription, connection) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
        let session = harness.start(&bank);
        let token = text_member(&reply_json(harness.confirm(&bank, &session, TRANSFER)), "reply_token");
        if is_followed {
            harness.ask_on_connection(&bank, CONNECTION, follow(&session));
        }
        if waits {
            let until = harness.now + 60_000;
            harness.send(&bank, HubCommand::Wait { session: id(&session), token: id(&token), until });
        }
        harness.advance_time(wait_ms);
        harness.take_events(connection);
        harness.reply(&ada, &subscription, &token, decision);
        let events = harness.take_events(connection).concat();
        let case = (wait_ms, is_followed, waits, decision);
        assert_eq!(events.contains("The agent is not connected"), is_away, "{case:?}: {events}");
    }
}

#[test]
fn listeners_never_hear_that_an_agent_is_away_after_a_default_answer() {
    let low_risk = r#"{"action":"Book a room.","consequence":"It can be cancelled.","irreversible":false,"risk_level":"low","timeout_seconds":60,"default_decision":"accept","summary_normal":"May I book a room?"}"#;
    let limits = HubLimits { lease_ms: 600_000, ..HubLimits::default() };
    let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
    let (_, connection) = harness.connect_listener(&listener("ada", &[]), REPLY_CAPABILITIES);
    let bank = agent("bank");
    let session = harness.start(&bank);
    harness.confirm(&bank, &session, low_risk);
    harness.advance_time(60_000);
    let events = harness.take_events(connection).concat();
    assert!(events.contains("The action will be performed."), "{events}");
    assert!(!events.contains("The agent is not connected"), "nobody answered, so nobody expects anything");
}

#[test]
fn an_agent_that_stopped_waiting_is_away_unless_another_of_its_requests_waits() {
    for (waits, is_away) in [(1, true), (2, false)] {
        let mut harness = HubHarness::new();
        let (bank, ada) = (agent("bank"), listener("ada", &[]));
        let (subscription, connection) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
        let session = harness.start(&bank);
        let token = text_member(&reply_json(harness.confirm(&bank, &session, TRANSFER)), "reply_token");
        let until = harness.now + 60_000;
        let wait = || HubCommand::Wait { session: id(&session), token: id(&token), until };
        let requests: Vec<_> = (0..waits).map(|_| harness.send(&bank, wait())).collect();
        harness.send_without_reply(&bank, HubCommand::CancelWait { request: requests[0] });
        harness.take_events(connection);
        harness.reply(&ada, &subscription, &token, "accept");
        let events = harness.take_events(connection).concat();
        assert_eq!(events.contains("The agent is not connected"), is_away, "{waits}: {events}");
    }
}

#[test]
fn a_command_cannot_name_two_connections() {
    let mut harness = HubHarness::new();
    let bank = agent("bank");
    let session = harness.start(&bank);
    let inner =
        HubCommand::OnConnection { connection: OTHER_CONNECTION, command: Box::new(follow(&session)) };
    let reply = harness.ask_on_connection(&bank, CONNECTION, inner);
    assert_eq!(reply, HubReply::Malformed(MalformedRequest::NestedConnection));
}
