//! Hand-offs: who can take over, until when, and what everybody learns.

use hub::command::{
    AgentNotice, HandoffOutcome, HandoffResult, HubCommand, HubReply, LimitReached, MalformedRequest,
};
use hub::{AgentConnectionId, HandoffLimits, HubLimits, Principal, Role};

use crate::support::{
    FaultyJournal, HubHarness, REPLY_CAPABILITIES, RecordedEntry, START, THINK, TRANSFER, agent, event_types,
    id, listener, reply_json, send_message, text_member, tool_invoked,
};

const HANDOFF_CAPABILITIES: &str = r#"{"supports_confirmation_reply":true,"supports_clarification_reply":true,"supported_conformance_levels":[1,2,3],"sayso":{"handoffs":true}}"#;
const TO_PERSON: &str = r#"{"reason":"The refund needs a person.","target_kind":"human","summary_normal":"I need a person.","packaged_context":{"order":"A-17"}}"#;
const TO_QUEUE: &str = r#"{"reason":"The refund needs a person.","target_kind":"escalation_queue","summary_normal":"I need a person."}"#;

fn receiver(name: &str, scope: &[&str]) -> Principal {
    Principal { role: Role::Receiver, ..listener(name, scope) }
}

fn hand_off_command(session: &str, body: &str, key: Option<&str>) -> HubCommand {
    HubCommand::HandOff { session: id(session), body: body.into(), idempotency_key: key.map(str::to_owned) }
}

/// Requests a hand-off and returns its token.
fn hand_off(hub: &mut HubHarness, agent: &Principal, session: &str, body: &str) -> String {
    text_member(&reply_json(hub.ask_hub(agent, hand_off_command(session, body, None))), "reply_token")
}

/// Returns the message that answers a hand-off now.
fn answer_json(hub: &HubHarness, kind: &str, subscription: &str, token: &str, more: &str) -> String {
    let at = aaep::Timestamp::from_unix_millis(hub.now).unwrap();
    format!(
        r#"{{"type":"sayso:handoff.{kind}","reply_token":"{token}","subscription_id":"{subscription}","timestamp":"{at}"{more}}}"#
    )
}

fn answer(hub: &mut HubHarness, principal: &Principal, kind: &str, subscription: &str, token: &str) {
    let text = answer_json(hub, kind, subscription, token, "");
    assert_eq!(
        hub.ask_hub(principal, send_message(&text)),
        HubReply::Done,
        "every answer gets the same response"
    );
}

/// Returns the result of a hand-off; `None` while it is open.
fn result(hub: &mut HubHarness, agent: &Principal, session: &str, token: &str) -> Option<HandoffResult> {
    match hub.status(agent, session, token) {
        HubReply::HandoffResolved(outcome) => Some(outcome.result),
        HubReply::QuestionPending => None,
        other => panic!("{other:?}"),
    }
}

/// Returns the result code of the last attempted reply.
fn last_reply_result(hub: &HubHarness) -> String {
    let attempt_result = |entry: &RecordedEntry| match entry {
        RecordedEntry::ReplyAttempted { result } => Some(result.clone()),
        _ => None,
    };
    hub.disk.take_written().iter().rev().find_map(attempt_result).unwrap()
}

fn outcome_events(events: &[String]) -> Vec<&String> {
    events.iter().filter(|event| event.contains(r#""outcome":""#)).collect()
}

#[test]
fn a_receiver_takes_over_and_everybody_learns_it() {
    let (bank, ada, ben) = (agent("bank"), receiver("ada", &[]), listener("ben", &[]));
    let mut hub = HubHarness::new();
    let (subscription, ada_listener) = hub.connect_listener(&ada, HANDOFF_CAPABILITIES);
    let (_, ben_listener) = hub.connect_listener(&ben, HANDOFF_CAPABILITIES);
    let session = hub.start(&bank);
    let token = hand_off(&mut hub, &bank, &session, TO_PERSON);
    assert_eq!(result(&mut hub, &bank, &session, &token), None);
    let events = hub.take_events(ada_listener);
    assert_eq!(event_types(&events), ["session.started", "state.changed", "handoff.requested"]);
    assert!(events[1].contains(r#""to_state":"handing_off""#), "{}", events[1]);
    assert!(
        events[2].contains(&format!(r#""handoff":{{"reply_token":"{token}","deadline":"#)),
        "{}",
        events[2]
    );
    assert!(events[2].contains("A-17") && !events[2].contains("timeout_seconds"), "{}", events[2]);
    let events = hub.take_events(ben_listener);
    assert!(!events.concat().contains("A-17"), "the context is only for those who may take over: {events:?}");
    assert!(events[2].contains("The refund needs a person."), "everybody hears the reason");
    let waiting = hub
        .send(&bank, HubCommand::Wait { session: id(&session), token: id(&token), until: hub.now + 60_000 });
    let text = answer_json(&hub, "acknowledge", &subscription, &token, r#","note":"I am calling you.""#);
    hub.ask_hub(&ada, send_message(&text));
    let expected = HandoffOutcome {
        result: HandoffResult::Acknowledged,
        note: Some("I am calling you.".to_owned()),
        principal: Some("ada".into()),
    };
    assert_eq!(hub.take_reply(waiting), Some(HubReply::HandoffResolved(expected)));
    for listener_id in [ada_listener, ben_listener] {
        let events = hub.take_events(listener_id);
        assert_eq!(event_types(&events), ["state.changed"], "{events:?}");
        assert!(
            events[0].contains("Somebody has taken over from the agent. I am calling you."),
            "{}",
            events[0]
        );
        assert!(events[0].contains(r#""to_state":"handing_off""#), "{}", events[0]);
        assert!(!events[0].contains(&subscription), "listeners do not learn other listeners' subscriptions");
    }
    let done = r#"{"type":"aaep:agent.session.completed","summary_normal":"A person has it."}"#;
    assert!(matches!(hub.publish(&bank, &session, &[done]), HubReply::EventsPublished { .. }));
    assert_eq!(
        result(&mut hub, &bank, &session, &token),
        Some(HandoffResult::Acknowledged),
        "even after the end"
    );
}

#[test]
fn only_a_receiver_in_scope_can_answer_and_only_once() {
    let bank = agent("bank");
    let (ada, ben) = (receiver("ada", &[]), listener("ben", &[]));
    let (post_only, eve) = (receiver("post-only", &["agent:post"]), receiver("eve", &[]));
    let mut hub = HubHarness::new();
    let (ada_sub, _) = hub.connect_listener(&ada, HANDOFF_CAPABILITIES);
    let (ben_sub, _) = hub.connect_listener(&ben, HANDOFF_CAPABILITIES);
    let (post_sub, _) = hub.connect_listener(&post_only, HANDOFF_CAPABILITIES);
    let (eve_sub, _) = hub.connect_listener(&eve, REPLY_CAPABILITIES);
    let session = hub.start(&bank);
    let token = hand_off(&mut hub, &bank, &session, TO_PERSON);
    let question = text_member(&reply_json(hub.confirm(&bank, &session, TRANSFER)), "reply_token");
    for (who, subscription, token, code) in [
        (&ben, &ben_sub, &token, "not_entitled"),
        (&post_only, &post_sub, &token, "not_entitled"),
        (&eve, &eve_sub, &token, "not_entitled"),
        (&eve, &ada_sub, &token, "other_identity"),
        (&ben, &ada_sub, &token, "other_identity"),
        (&ada, &"sub_0".to_owned(), &token, "no_subscription"),
        (&ada, &ada_sub, &"rpl_0".to_owned(), "unknown"),
        (&ada, &ada_sub, &question, "unknown"),
    ] {
        answer(&mut hub, who, "acknowledge", subscription, token);
        assert_eq!(last_reply_result(&hub), code, "{}", who.name);
    }
    let over_other = HubCommand::SendMessageOnSubscription {
        subscription: id(&ben_sub),
        message: hub::command::SubscriberMessage::parse(&answer_json(
            &hub,
            "acknowledge",
            &ada_sub,
            &token,
            "",
        )),
    };
    hub.ask_hub(&ada, over_other);
    assert_eq!(last_reply_result(&hub), "other_connection");
    let too_long = format!(r#","note":"{}""#, "x".repeat(1025));
    for more in [r#","note":"""#, r#","seconds":5"#, r#","note":7"#, &too_long] {
        let text = answer_json(&hub, "acknowledge", &ada_sub, &token, more);
        hub.ask_hub(&ada, send_message(&text));
        assert!(last_reply_result(&hub).starts_with("malformed"), "{more}");
    }
    assert_eq!(result(&mut hub, &bank, &session, &token), None, "nothing counted");
    answer(&mut hub, &ada, "reject", &ada_sub, &token);
    assert_eq!(last_reply_result(&hub), "applied");
    answer(&mut hub, &ada, "acknowledge", &ada_sub, &token);
    assert_eq!(last_reply_result(&hub), "used");
    assert_eq!(
        result(&mut hub, &bank, &session, &token),
        Some(HandoffResult::Rejected),
        "the first answer counts"
    );
}

#[test]
fn restoring_a_backup_withdraws_open_handoffs() {
    let (bank, ada) = (agent("bank"), receiver("ada", &[]));
    let mut hub = HubHarness::new();
    let (_, _) = hub.connect_listener(&ada, HANDOFF_CAPABILITIES);
    let session = hub.start(&bank);
    let token = hand_off(&mut hub, &bank, &session, TO_PERSON);
    hub.disk.alter_restored(Some(|state| state.must_void_consents = true));
    hub.crash();
    assert_eq!(result(&mut hub, &bank, &session, &token), Some(HandoffResult::Withdrawn));
}

#[test]
fn a_receiver_without_the_handoff_capability_gets_the_context_but_is_not_reachable() {
    let (bank, ada) = (agent("bank"), receiver("ada", &[]));
    let mut hub = HubHarness::new();
    let (subscription, listener_id) = hub.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = hub.start(&bank);
    let token = hand_off(&mut hub, &bank, &session, TO_PERSON);
    assert_eq!(result(&mut hub, &bank, &session, &token), Some(HandoffResult::Unreachable));
    assert!(hub.take_events(listener_id).concat().contains("A-17"));
    hub.crash();
    let listener_id = hub.attach(&ada, &subscription, None);
    hub.take_events(listener_id);
    hand_off(&mut hub, &bank, &session, TO_PERSON);
    assert!(hub.take_events(listener_id).concat().contains("A-17"), "even after a restart");
    let demoted = listener("ada", &[]);
    let attach = HubCommand::Attach {
        subscription: id(&subscription),
        last_event_id: None,
        listener: hub::ListenerId(99),
    };
    assert_eq!(hub.ask_hub(&demoted, attach), HubReply::NotFound, "another role must subscribe again");
}

#[test]
fn the_first_of_two_answers_in_one_turn_counts() {
    let (bank, ada, ben) = (agent("bank"), receiver("ada", &[]), receiver("ben", &[]));
    let mut hub = HubHarness::new();
    let (ada_sub, listener_id) = hub.connect_listener(&ada, HANDOFF_CAPABILITIES);
    let (ben_sub, _) = hub.connect_listener(&ben, HANDOFF_CAPABILITIES);
    let session = hub.start(&bank);
    let token = hand_off(&mut hub, &bank, &session, TO_PERSON);
    hub.take_events(listener_id);
    let [first, second] = [
        answer_json(&hub, "acknowledge", &ben_sub, &token, ""),
        answer_json(&hub, "acknowledge", &ada_sub, &token, ""),
    ];
    hub.ask_both_in_one_turn(&ben, send_message(&first), &ada, send_message(&second));
    let HubReply::HandoffResolved(outcome) = hub.status(&bank, &session, &token) else { panic!() };
    assert_eq!(outcome.principal.as_deref(), Some("ben"));
    assert_eq!(hub.take_events(listener_id).len(), 1, "the outcome is announced once");
}

#[test]
fn taking_over_permits_no_call() {
    let (bank, ada) = (agent("bank"), receiver("ada", &[]));
    let mut hub = HubHarness::new();
    let (subscription, _) = hub.connect_listener(&ada, HANDOFF_CAPABILITIES);
    let session = hub.start(&bank);
    let token = hand_off(&mut hub, &bank, &session, TO_PERSON);
    hub.reply(&ada, &subscription, &token, "accept");
    assert_eq!(
        result(&mut hub, &bank, &session, &token),
        None,
        "a confirmation.reply does not answer a hand-off"
    );
    answer(&mut hub, &ada, "acknowledge", &subscription, &token);
    for token in [token.as_str(), "rpl_0"] {
        let refused = hub.publish(&bank, &session, &[&tool_invoked(token, "500.00")]);
        assert!(matches!(refused, HubReply::RuleViolations(_)), "{refused:?}");
    }
    hub.crash();
    let refused = hub.publish(&bank, &session, &[&tool_invoked(&token, "500.00")]);
    assert!(matches!(refused, HubReply::RuleViolations(_)), "{refused:?}");
}

#[test]
fn nobody_answers_in_time() {
    let (bank, ada) = (agent("bank"), receiver("ada", &[]));
    let mut hub = HubHarness::new();
    let (subscription, listener_id) = hub.connect_listener(&ada, HANDOFF_CAPABILITIES);
    let session = hub.start(&bank);
    let token = hand_off(
        &mut hub,
        &bank,
        &session,
        &TO_PERSON.replace(r#"{"reason"#, r#"{"timeout_seconds":60,"reason"#),
    );
    hub.take_events(listener_id);
    hub.advance_time(59_999);
    let future = answer_json(&hub, "acknowledge", &subscription, &token, "")
        .replace("timestamp\":\"20", "timestamp\":\"21");
    hub.ask_hub(&ada, send_message(&future));
    assert_eq!(last_reply_result(&hub), "late_stamp");
    assert_eq!(result(&mut hub, &bank, &session, &token), None);
    hub.advance_time(1);
    assert_eq!(result(&mut hub, &bank, &session, &token), Some(HandoffResult::Timeout));
    let events = hub.take_events(listener_id);
    assert_eq!(outcome_events(&events).len(), 1, "{events:?}");
    assert!(events[0].contains(r#""to_state":"thinking""#), "the agent continues: {}", events[0]);
    answer(&mut hub, &ada, "acknowledge", &subscription, &token);
    assert_eq!(last_reply_result(&hub), "used");
    assert_eq!(result(&mut hub, &bank, &session, &token), Some(HandoffResult::Timeout));
}

#[test]
fn without_a_receiver_only_a_handoff_to_a_queue_waits() {
    let (bank, ada, ben) = (agent("bank"), receiver("ada", &[]), listener("ben", &[]));
    let mut hub = HubHarness::new();
    let (_, listener_id) = hub.connect_listener(&ben, HANDOFF_CAPABILITIES);
    let session = hub.start(&bank);
    let token = hand_off(&mut hub, &bank, &session, TO_PERSON);
    assert_eq!(result(&mut hub, &bank, &session, &token), Some(HandoffResult::Unreachable));
    assert_eq!(outcome_events(&hub.take_events(listener_id)).len(), 1, "listeners hear it");
    let token = hand_off(&mut hub, &bank, &session, TO_QUEUE);
    hub.advance_time(60_000);
    assert_eq!(result(&mut hub, &bank, &session, &token), None);
    let (subscription, ada_listener) = hub.connect_listener(&ada, HANDOFF_CAPABILITIES);
    let queue = hub.take_events(ada_listener);
    assert!(
        queue.iter().any(|event| event.contains(&token)),
        "a receiver that joins late gets the open hand-offs of the queue: {queue:?}"
    );
    let (_, late_ben_listener) = hub.connect_listener(&ben, HANDOFF_CAPABILITIES);
    assert!(!hub.take_events(late_ben_listener).concat().contains(&token));
    answer(&mut hub, &ada, "acknowledge", &subscription, &token);
    assert_eq!(result(&mut hub, &bank, &session, &token), Some(HandoffResult::Acknowledged));
}

#[test]
fn open_handoffs_survive_a_crash_and_time_out_as_not_taken() {
    let (bank, ada) = (agent("bank"), receiver("ada", &[]));
    let mut hub = HubHarness::new();
    let (subscription, _) = hub.connect_listener(&ada, HANDOFF_CAPABILITIES);
    let sessions = [(); 3].map(|()| hub.start(&bank));
    let tokens = [0, 1, 2].map(|index: usize| hand_off(&mut hub, &bank, &sessions[index], TO_PERSON));
    answer(&mut hub, &ada, "acknowledge", &subscription, &tokens[0]);
    hub.crash();
    assert_eq!(result(&mut hub, &bank, &sessions[0], &tokens[0]), Some(HandoffResult::Acknowledged));
    for index in [1, 2] {
        assert_eq!(result(&mut hub, &bank, &sessions[index], &tokens[index]), None, "open, not taken");
    }
    hub.attach(&ada, &subscription, None);
    answer(&mut hub, &ada, "acknowledge", &subscription, &tokens[0]);
    assert_eq!(last_reply_result(&hub), "used");
    answer(&mut hub, &ada, "acknowledge", &subscription, &tokens[1]);
    assert_eq!(result(&mut hub, &bank, &sessions[1], &tokens[1]), Some(HandoffResult::Acknowledged));
    hub.now += 10 * 60 * 1000;
    hub.crash();
    hub.turn();
    assert_eq!(result(&mut hub, &bank, &sessions[2], &tokens[2]), Some(HandoffResult::Timeout));
}

#[test]
fn an_answer_that_cannot_be_stored_does_not_count() {
    let (bank, ada) = (agent("bank"), receiver("ada", &[]));
    let mut hub = HubHarness::new();
    let (subscription, _) = hub.connect_listener(&ada, HANDOFF_CAPABILITIES);
    let session = hub.start(&bank);
    let token = hand_off(&mut hub, &bank, &session, TO_PERSON);
    hub.disk.fail_writes(true);
    let text = answer_json(&hub, "acknowledge", &subscription, &token, "");
    assert!(matches!(hub.ask_hub(&ada, send_message(&text)), HubReply::Unavailable(_)));
    hub.disk.fail_writes(false);
    assert_eq!(result(&mut hub, &bank, &session, &token), None);
    hub.attach(&ada, &subscription, None);
    answer(&mut hub, &ada, "acknowledge", &subscription, &token);
    assert_eq!(result(&mut hub, &bank, &session, &token), Some(HandoffResult::Acknowledged));
}

#[test]
fn an_agent_withdraws_a_handoff_and_the_end_of_a_session_does_too() {
    let (bank, ada, post) = (agent("bank"), receiver("ada", &[]), agent("post"));
    let mut hub = HubHarness::new();
    let (subscription, listener_id) = hub.connect_listener(&ada, HANDOFF_CAPABILITIES);
    let session = hub.start(&bank);
    let token = hand_off(&mut hub, &bank, &session, TO_PERSON);
    let withdraw = || HubCommand::Withdraw { session: id(&session), token: id(&token) };
    assert_eq!(hub.ask_hub(&post, withdraw()), HubReply::NotFound, "another agent cannot");
    assert_eq!(hub.status(&post, &session, &token), HubReply::NotFound);
    assert_eq!(result(&mut hub, &bank, &session, &token), None);
    let HubReply::HandoffResolved(outcome) = hub.ask_hub(&bank, withdraw()) else { panic!() };
    assert_eq!(outcome.result, HandoffResult::Withdrawn);
    answer(&mut hub, &ada, "acknowledge", &subscription, &token);
    assert_eq!(result(&mut hub, &bank, &session, &token), Some(HandoffResult::Withdrawn));
    assert_eq!(outcome_events(&hub.take_events(listener_id)).len(), 1);
    let second = hand_off(&mut hub, &bank, &session, TO_PERSON);
    let cancelled =
        r#"{"type":"aaep:agent.session.cancelled","cancelled_by":"producer","summary_normal":"Over."}"#;
    assert!(matches!(hub.publish(&bank, &session, &[cancelled]), HubReply::EventsPublished { .. }));
    assert_eq!(result(&mut hub, &bank, &session, &second), Some(HandoffResult::Withdrawn));
    let third = hub.start(&bank);
    let token = hand_off(&mut hub, &bank, &third, TO_PERSON);
    hub.advance_time(HubLimits::default().lease_ms + 1);
    assert_eq!(
        result(&mut hub, &bank, &third, &token),
        Some(HandoffResult::Withdrawn),
        "the agent disappeared"
    );
}

#[test]
fn connections_of_the_agent_are_notified_even_if_they_reconnect() {
    let (bank, ada) = (agent("bank"), receiver("ada", &[]));
    let mut hub = HubHarness::new();
    let (subscription, _) = hub.connect_listener(&ada, HANDOFF_CAPABILITIES);
    let session = hub.start(&bank);
    let [first, second] = [AgentConnectionId(1), AgentConnectionId(2)];
    let command = || hand_off_command(&session, TO_PERSON, Some("key"));
    let opened = hub.ask_on_connection(&bank, first, command());
    let token = text_member(&reply_json(opened.clone()), "reply_token");
    assert_eq!(hub.ask_on_connection(&bank, first, command()), opened, "the key returns the same hand-off");
    answer(&mut hub, &ada, "reject", &subscription, &token);
    let is_rejected = |notice: &AgentNotice| matches!(notice, AgentNotice::HandoffResolved { outcome, .. } if outcome.result == HandoffResult::Rejected);
    let notices = hub.take_notices(first);
    assert!(matches!(notices.as_slice(), [notice] if is_rejected(notice)), "{notices:?}");
    for crashes in [false, true] {
        if crashes {
            hub.crash();
        }
        hub.ask_on_connection(&bank, second, HubCommand::Follow { session: id(&session) });
        let notices = hub.take_notices(second);
        assert!(matches!(notices.as_slice(), [notice] if is_rejected(notice)), "{notices:?}");
        hub.send_without_reply(&bank, HubCommand::DisconnectAgent { connection: second });
    }
}

#[test]
fn requests_for_handoffs_are_checked_and_limited() {
    let limits = HubLimits {
        handoffs: HandoffLimits {
            max_timeout_ms: 60_000,
            max_open_per_agent: 2,
            max_open_total: 3,
            max_context_bytes: 64,
            ..HandoffLimits::default()
        },
        ..HubLimits::default()
    };
    let (bank, post) = (agent("bank"), agent("post"));
    let mut hub = HubHarness::with(&limits, FaultyJournal::default(), START);
    let session = hub.start(&bank);
    let too_long = MalformedRequest::HandoffTimeout { max_seconds: 60 };
    for (body, expected) in [
        ("[]".to_owned(), MalformedRequest::HandoffNotObject),
        (TO_QUEUE.replace('{', r#"{"timeout_seconds":61,"#), too_long.clone()),
        (TO_QUEUE.replace('{', r#"{"timeout_seconds":0,"#), too_long.clone()),
        (TO_QUEUE.replace('{', r#"{"timeout_seconds":"5","#), too_long),
        (
            TO_QUEUE.replace('{', &format!(r#"{{"packaged_context":{{"a":"{}"}},"#, "x".repeat(60))),
            MalformedRequest::HandoffContextTooLarge { max: 64 },
        ),
    ] {
        let refused = hub.ask_hub(&bank, hand_off_command(&session, &body, None));
        assert_eq!(refused, HubReply::Malformed(expected), "{body}");
    }
    for body in [r#"{"reason":"x"}"#, &TO_QUEUE.replace("escalation_queue", "boss")] {
        let refused = hub.ask_hub(&bank, hand_off_command(&session, body, None));
        assert!(matches!(refused, HubReply::RuleViolations(_)), "{refused:?}");
    }
    let forged = TO_QUEUE.replace('{', r#"{"extensions":{"sayso":{"handoff":{}}},"#);
    assert!(matches!(hub.ask_hub(&bank, hand_off_command(&session, &forged, None)), HubReply::Malformed(_)));
    hand_off(&mut hub, &bank, &session, TO_QUEUE);
    let refused = |hub: &mut HubHarness, agent: &Principal, session: &str| match hub
        .ask_hub(agent, hand_off_command(session, TO_QUEUE, None))
    {
        HubReply::LimitReached(limit) => limit,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&mut hub, &bank, &session), LimitReached::HandoffsPerSession);
    let others = [(); 2].map(|()| hub.start(&bank));
    hand_off(&mut hub, &bank, &others[0], TO_QUEUE);
    assert_eq!(refused(&mut hub, &bank, &others[1]), LimitReached::HandoffsPerAgent { max: 2 });
    let sessions = [(); 2].map(|()| hub.start(&post));
    hand_off(&mut hub, &post, &sessions[0], TO_QUEUE);
    assert_eq!(refused(&mut hub, &post, &sessions[1]), LimitReached::Handoffs);
    let stranger = hub.ask_hub(&post, hand_off_command(&session, TO_QUEUE, None));
    assert_eq!(stranger, HubReply::NotFound);
    let as_listener = listener("ben", &[]);
    assert_eq!(hub.ask_hub(&as_listener, hand_off_command(&session, TO_QUEUE, None)), HubReply::NotFound);
}

#[test]
fn a_handoff_published_as_an_event_only_informs() {
    let (bank, ada) = (agent("bank"), receiver("ada", &[]));
    let mut hub = HubHarness::new();
    let (_, listener_id) = hub.connect_listener(&ada, HANDOFF_CAPABILITIES);
    let session = hub.start(&bank);
    let event = TO_PERSON.replace(r#"{"reason"#, r#"{"type":"aaep:agent.handoff.requested","reason"#);
    assert!(matches!(hub.publish(&bank, &session, &[&event]), HubReply::EventsPublished { .. }));
    let events: Vec<String> = hub.take_events(listener_id);
    assert!(!events.concat().contains("reply_token"), "{events:?}");
}

#[test]
fn after_a_restart_a_receiver_without_the_capability_is_still_not_reachable() {
    for (capabilities, expected) in
        [(REPLY_CAPABILITIES, Some(HandoffResult::Unreachable)), (HANDOFF_CAPABILITIES, None)]
    {
        let (bank, ada) = (agent("bank"), receiver("ada", &[]));
        let mut hub = HubHarness::new();
        let (subscription, _) = hub.connect_listener(&ada, capabilities);
        hub.crash();
        hub.attach(&ada, &subscription, None);
        let session = hub.start(&bank);
        let token = hand_off(&mut hub, &bank, &session, TO_PERSON);
        assert_eq!(result(&mut hub, &bank, &session, &token), expected, "{capabilities}");
    }
}

#[test]
fn a_handoff_ends_by_its_deadline_alone_and_the_agent_continues_what_it_did() {
    let look = r#"{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_1","summary_normal":"Looking."}"#;
    for (event, asks, expected) in
        [(THINK, false, "thinking"), (look, false, "calling_tool"), (THINK, true, "awaiting_input")]
    {
        let bank = agent("bank");
        let mut hub = HubHarness::new();
        let (_, connection) = hub.connect_listener(&listener("ben", &[]), REPLY_CAPABILITIES);
        let session = hub.start(&bank);
        hub.publish(&bank, &session, &[event]);
        // Its connection keeps the session alive, so that nothing else is due before the deadline.
        let follow = HubCommand::Follow { session: id(&session) };
        hub.ask_on_connection(&bank, hub::AgentConnectionId(1), follow);
        let token = hand_off(&mut hub, &bank, &session, &TO_QUEUE.replace('{', r#"{"timeout_seconds":10,"#));
        if asks {
            hub.confirm(&bank, &session, TRANSFER);
        }
        hub.take_events(connection);
        assert_eq!(hub.core.next_deadline(), Some(hub.now + 10_000), "{expected}");
        hub.advance_time(10_000);
        assert_eq!(result(&mut hub, &bank, &session, &token), Some(HandoffResult::Timeout));
        let events = hub.take_events(connection);
        let outcomes = outcome_events(&events);
        assert_eq!(text_member(outcomes[0], "to_state"), expected, "{events:?}");
    }
}

#[test]
fn the_context_of_a_handoff_may_have_exactly_the_maximum_size() {
    let context = format!(r#"{{"a":"{}"}}"#, "x".repeat(50));
    for (max_context_bytes, is_accepted) in [(context.len(), true), (context.len() - 1, false)] {
        let handoffs = HandoffLimits { max_context_bytes, ..HandoffLimits::default() };
        let limits = HubLimits { handoffs, ..HubLimits::default() };
        let mut hub = HubHarness::with(&limits, FaultyJournal::default(), START);
        let bank = agent("bank");
        let session = hub.start(&bank);
        let body = TO_QUEUE.replacen('{', &format!(r#"{{"packaged_context":{context},"#), 1);
        let reply = hub.ask_hub(&bank, hand_off_command(&session, &body, None));
        let refused =
            HubReply::Malformed(MalformedRequest::HandoffContextTooLarge { max: max_context_bytes });
        assert_eq!(reply != refused, is_accepted, "{reply:?}");
    }
}
