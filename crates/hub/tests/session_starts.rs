//! What a request that starts a session may contain, and who gets the reply to a repeated one.

use crate::support::*;
use hub::command::{HubCommand, HubReply, MalformedRequest};
use hub::{AgentNaming, HubLimits, Principal};

fn start(harness: &mut HubHarness, principal: &Principal, members: &str) -> HubReply {
    let body = format!(r#"{{"summary_normal":"Paying."{members}}}"#);
    harness.ask_hub(principal, HubCommand::Start { body: body.into(), idempotency_key: None })
}

fn is_started(reply: &HubReply) -> bool {
    matches!(reply, HubReply::SessionStarted { .. })
}

fn first_event(harness: &HubHarness) -> String {
    String::from_utf8(harness.disk.events().last().unwrap().body.clone()).unwrap()
}

#[test]
fn a_lease_is_a_positive_number_of_seconds() {
    let limits = HubLimits { lease_ms: 5_000, max_lease_ms: 60_000, ..HubLimits::default() };
    let too_large = "99999999999999999999999999";
    for (lease, ends_after_ms) in [("1", 1_000), ("60", 60_000), ("61", 60_000), (too_large, 60_000)] {
        let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
        let bank = agent("bank");
        let started = start(&mut harness, &bank, &format!(r#","lease_seconds":{lease}"#));
        let session = text_member(&reply_json(started), "session_id");
        let metrics = harness.core.counters();
        harness.advance_time(ends_after_ms - 1);
        assert_eq!(metrics.sessions_open.get(), 1, "{lease} {session}");
        harness.advance_time(1);
        assert_eq!(metrics.sessions_open.get(), 0, "{lease}");
    }
    let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
    for lease in ["0", "00", "-1", "1.0", r#""60""#, "null", "1e3", r#""""#, "{}"] {
        let refused = start(&mut harness, &agent("bank"), &format!(r#","lease_seconds":{lease}"#));
        assert!(!is_started(&refused), "{lease}: {refused:?}");
    }
    let refused = start(&mut harness, &agent("bank"), r#","lease_seconds":0"#);
    assert_eq!(refused, HubReply::Malformed(MalformedRequest::InvalidLease));
}

#[test]
fn a_parent_must_be_a_session_of_the_same_owner() {
    let mut harness = HubHarness::new();
    let (bank, eve) = (agent("bank"), agent("eve"));
    let open = harness.start(&bank);
    let ended = harness.start(&bank);
    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    harness.publish(&bank, &ended, &[end]);
    for parent in [&open, &ended] {
        let reply = start(&mut harness, &bank, &format!(r#","parent":"{parent}""#));
        assert!(is_started(&reply), "{reply:?}");
        let event = first_event(&harness);
        assert!(event.contains(&format!(r#""parent_session_id":"{parent}""#)), "{event}");
        let foreign = start(&mut harness, &eve, &format!(r#","parent":"{parent}""#));
        assert_eq!(foreign, HubReply::NotFound);
    }
    for parent in ["7", r#""""#] {
        let refused = start(&mut harness, &bank, &format!(r#","parent":{parent}"#));
        assert_eq!(refused, HubReply::Malformed(MalformedRequest::InvalidParent), "{parent}");
    }
}

#[test]
fn the_producer_of_a_session_is_the_tokens_agent_with_the_tokens_name() {
    let named = Principal { naming: AgentNaming::Token("City Bank".into()), ..agent("bank") };
    let anybody = Principal { agent_id: None, ..agent("anybody") };
    for (principal, given, expected) in [
        (agent("bank"), None, Some(r#""producer":{"agent_id":"bank"}"#)),
        (
            agent("bank"),
            Some(r#"{"agent_name":"B"}"#),
            Some(r#""producer":{"agent_id":"bank","agent_name":"B"}"#),
        ),
        (
            agent("bank"),
            Some(r#"{"agent_id":"bank","model":"m"}"#),
            Some(r#""producer":{"agent_id":"bank","model":"m"}"#),
        ),
        (agent("bank"), Some(r#"{"agent_id":"post"}"#), None),
        (agent("bank"), Some(r#"{"agent_id":7}"#), None),
        (agent("bank"), Some(r#""bank""#), None),
        (named.clone(), None, Some(r#""producer":{"agent_id":"bank","agent_name":"City Bank"}"#)),
        (
            named,
            Some(r#"{"agent_id":"bank","agent_name":"Evil","model":"m"}"#),
            Some(r#""producer":{"agent_id":"bank","agent_name":"City Bank","model":"m"}"#),
        ),
        (anybody, Some(r#"{"agent_id":"post"}"#), Some(r#""producer":{"agent_id":"post"}"#)),
    ] {
        let mut harness = HubHarness::new();
        let members = given.map(|given| format!(r#","producer":{given}"#)).unwrap_or_default();
        let reply = start(&mut harness, &principal, &members);
        assert_eq!(is_started(&reply), expected.is_some(), "{given:?}: {reply:?}");
        if let Some(expected) = expected {
            let event = first_event(&harness);
            assert!(event.contains(expected), "{expected} in {event}");
        }
    }
}

#[test]
fn a_verified_name_is_marked_where_a_listener_may_hear_it_first() {
    let mut harness = HubHarness::new();
    let bank = Principal { naming: AgentNaming::Token("City Bank".into()), ..agent("bank") };
    let (_, connection) = harness.connect_listener(&listener("ada", &[]), REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    harness.publish(&bank, &session, &[THINK]);
    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    let (_, late) = harness.connect_listener(&listener("ben", &[]), REPLY_CAPABILITIES);
    harness.publish(&bank, &session, &[end]);
    let is_marked = |events: Vec<String>| -> Vec<bool> {
        events.iter().map(|event| event.contains(r#""verified_name":true"#)).collect()
    };
    assert_eq!(is_marked(harness.take_events(connection)), [true, false, false]);
    assert_eq!(is_marked(harness.take_events(late)), [true, false]);
}

#[test]
fn a_repeated_key_in_one_turn_gets_the_reply_of_its_own_token_and_key() {
    let (bank, post) = (agent("bank"), agent("post"));
    let start = |key: &str| HubCommand::Start {
        body: r#"{"summary_normal":"Paying."}"#.into(),
        idempotency_key: Some(key.to_owned()),
    };
    let mut harness = HubHarness::new();
    let replies = harness.ask_all_in_one_turn([
        (&bank, start("k")),
        (&post, start("k")),
        (&bank, start("l")),
        (&bank, start("k")),
        (&post, start("k")),
    ]);
    assert!(replies.iter().all(is_started), "{replies:?}");
    assert_eq!(replies[3], replies[0]);
    assert_eq!(replies[4], replies[1]);
    assert!(replies[0] != replies[1] && replies[0] != replies[2] && replies[1] != replies[2]);
}

#[test]
fn a_question_with_an_invisible_text_is_refused() {
    let clarify = r#"{"question":"Which Ben?","accepted_response_kinds":["multiple_choice"],"choices":[{"value":"a","label":"The tall one"},{"value":"b","label":"The short one"}],"timeout_seconds":60,"summary_normal":"Which?"}"#;
    let blank = "\u{200b}";
    let variant = format!(r#""action_es":"{blank}","action":"#);
    for (body, is_clarification, pointer) in [
        (TRANSFER.replace("Transfer 500 euros to Ben.", blank), false, Some("/action")),
        (TRANSFER.replace("It cannot be undone.", blank), false, Some("/consequence")),
        (TRANSFER.replace("May I transfer 500 euros to Ben?", blank), false, Some("/summary_normal")),
        (TRANSFER.replace(r#""action":"#, &variant), false, Some("/action_es")),
        (TRANSFER.replace("\"amount\":\"500.00\"", &format!("\"amount\":\"{blank}\"")), false, None),
        (clarify.replace("Which Ben?", blank), true, Some("/question")),
        (clarify.replace("The short one", blank), true, Some("/choices/1/label")),
        (clarify.to_owned(), true, None),
        (TRANSFER.to_owned(), false, None),
    ] {
        let mut harness = HubHarness::new();
        let bank = agent("bank");
        harness.connect_listener(&listener("ada", &[]), REPLY_CAPABILITIES);
        let session = harness.start(&bank);
        let command = HubCommand::Ask {
            session: id(&session),
            body: body.as_str().into(),
            is_clarification,
            idempotency_key: None,
        };
        match (harness.ask_hub(&bank, command), pointer) {
            (HubReply::RuleViolations(findings), Some(pointer)) => {
                assert_eq!(findings[0].pointer, pointer, "{body}");
                assert!(findings[0].actual.contains("no visible character"), "{findings:?}");
                let rule = findings[0].rule;
                let expected = match (pointer.starts_with("/choices"), is_clarification) {
                    (true, _) => aaep::rule::Rule::CHOICES,
                    (false, true) => aaep::rule::Rule::CLARIFICATION_FORM,
                    (false, false) => aaep::rule::Rule::CONFIRMATION_FORM,
                };
                assert_eq!(rule, expected, "{body}");
            }
            (HubReply::QuestionOpened { .. }, None) => {}
            (reply, _) => panic!("{body}: {reply:?}"),
        }
    }
}
