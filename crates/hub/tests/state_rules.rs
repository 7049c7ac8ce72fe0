//! State changes and calls that the hub refuses, and what a refused request leaves behind.

use crate::support::*;
use aaep::rule::Finding;
use hub::command::HubReply;
use hub::{HubLimits, ListenerId, Principal};

fn fixture() -> (HubHarness, Principal, String, String, ListenerId) {
    let limits = HubLimits { lease_ms: 3_600_000, ..HubLimits::default() };
    let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
    let (subscription, connection) = harness.connect_listener(&listener("ada", &[]), REPLY_CAPABILITIES);
    let bank = agent("bank");
    let session = harness.start(&bank);
    (harness, bank, session, subscription, connection)
}

fn to_state(state: &str) -> String {
    format!(r#"{{"type":"aaep:agent.state.changed","to_state":"{state}"}}"#)
}

fn is_published(reply: &HubReply) -> bool {
    matches!(reply, HubReply::EventsPublished { .. })
}

/// Returns the messages of a refusal.
fn refusal(reply: HubReply) -> String {
    let HubReply::RuleViolations(findings) = reply else { panic!("{reply:?}") };
    findings.iter().map(Finding::message).collect::<Vec<_>>().join("\n")
}

#[test]
fn an_agent_cannot_leave_awaiting_input_while_its_question_is_open() {
    let (mut harness, bank, session, subscription, _) = fixture();
    let token = text_member(&reply_json(harness.confirm(&bank, &session, TRANSFER)), "reply_token");
    let refused = refusal(harness.publish(&bank, &session, &[&to_state("thinking")]));
    assert!(refused.contains("a question is still open"), "{refused}");
    // Another session of the agent is not affected.
    let other = harness.start(&bank);
    assert!(is_published(&harness.publish(&bank, &other, &[&to_state("thinking")])));
    // The event may also be in the turn in which the question is asked or answered.
    harness.reply(&listener("ada", &[]), &subscription, &token, "accept");
    assert!(is_published(&harness.publish(&bank, &session, &[&to_state("deciding")])));
}

#[test]
fn a_refused_end_leaves_open_calls_open() {
    let (mut harness, bank, session, _, connection) = fixture();
    let begin = r#"{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_1","summary_normal":"Looking."}"#;
    assert!(is_published(&harness.publish(&bank, &session, &[begin])));
    harness.take_events(connection);
    let invalid = r#"{"type":"aaep:agent.session.completed"}"#;
    assert!(matches!(harness.publish(&bank, &session, &[invalid]), HubReply::RuleViolations(_)));
    assert_eq!(harness.take_events(connection), Vec::<String>::new());
    let end = r#"{"type":"aaep:agent.tool.completed","tool":"look","tool_call_id":"call_1","status":"success","summary_normal":"Found."}"#;
    assert!(is_published(&harness.publish(&bank, &session, &[end])));
}

#[test]
fn the_hub_corrects_the_from_state_of_an_agent_that_does_not_know_the_supplied_state() {
    let (mut harness, bank, session, _, connection) = fixture();
    harness.publish(&bank, &session, &[&to_state("thinking")]);
    let begin = r#"{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_1","summary_normal":"Looking."}"#;
    let end = r#"{"type":"aaep:agent.tool.completed","tool":"look","tool_call_id":"call_1","status":"success","summary_normal":"Found."}"#;
    assert!(is_published(&harness.publish(&bank, &session, &[begin, end])));
    harness.publish(&bank, &session, &[begin.replace("call_1", "call_2").as_str()]);
    harness.take_events(connection);
    // The agent believes that it is still thinking, and has a summary of its own.
    let from = |state: &str| {
        format!(
            r#"{{"type":"aaep:agent.state.changed","from_state":"{state}","to_state":"calling_tool","summary_normal":"Using my tool."}}"#
        )
    };
    let done = end.replace("call_1", "call_2");
    assert!(is_published(&harness.publish(&bank, &session, &[&done])));
    let states: Vec<_> = harness
        .take_events(connection)
        .into_iter()
        .filter(|event| event.contains("state.changed"))
        .map(|event| text_member(&event, "to_state"))
        .collect();
    assert_eq!(states, ["thinking"], "the hub ends the state that it announced");
    // Now the agent has seen nothing of this; `calling_tool` is a state that it may believe in.
    let change = r#"{"type":"aaep:agent.state.changed","from_state":"calling_tool","to_state":"deciding","summary_normal":"Deciding."}"#;
    assert!(is_published(&harness.publish(&bank, &session, &[change])));
    let heard = harness.take_events(connection).pop().unwrap();
    assert_eq!(
        [text_member(&heard, "from_state"), text_member(&heard, "to_state")],
        ["thinking", "deciding"]
    );
    assert!(matches!(harness.publish(&bank, &session, &[&from("idle")]), HubReply::RuleViolations(_)));
    // A correct from_state is passed on.
    assert!(is_published(&harness.publish(&bank, &session, &[&from("deciding")])));
    let heard = harness.take_events(connection).pop().unwrap();
    assert_eq!(text_member(&heard, "from_state"), "deciding");
}

#[test]
fn a_refused_call_says_that_its_consent_has_expired() {
    let (mut harness, bank, session, subscription, _) = fixture();
    let token = text_member(&reply_json(harness.confirm(&bank, &session, TRANSFER)), "reply_token");
    harness.reply(&listener("ada", &[]), &subscription, &token, "accept");
    harness.advance_time(HubLimits::default().questions.max_consent_age_ms + 1);
    let refused = refusal(harness.publish(&bank, &session, &[&tool_invoked(&token, "500.00")]));
    assert!(refused.contains("expired"), "{refused}");
}

#[test]
fn a_refused_call_is_compared_with_the_consent_for_the_same_tool_and_token() {
    let (mut harness, bank, session, subscription, _) = fixture();
    let ada = listener("ada", &[]);
    let mut accept = |body: &str| {
        let token = text_member(&reply_json(harness.confirm(&bank, &session, body)), "reply_token");
        harness.reply(&ada, &subscription, &token, "accept");
        token
    };
    let transfer = accept(TRANSFER);
    let delete = accept(&TRANSFER.replace(r#""tool":"transfer""#, r#""tool":"delete""#));
    let unbound = accept(
        &TRANSFER.replace(r#","tool":"transfer","arguments":{"amount":"500.00","to":"Ben"}"#, "").replace(
            r#""irreversible":true,"risk_level":"high""#,
            r#""irreversible":false,"risk_level":"low""#,
        ),
    );
    let without_token = tool_invoked("", "5.00").replace(r#","reply_token":"""#, "");
    let mut refused = |call: &str| refusal(harness.publish(&bank, &session, &[call]));
    let amount = "the consent was for amount 500.00; this call has 5.00";
    assert!(refused(&without_token).contains(amount), "the consent for the same tool is preferred");
    assert!(refused(&tool_invoked(&transfer, "5.00")).contains(amount));
    let other_tool = refused(&tool_invoked(&delete, "5.00"));
    assert!(other_tool.contains(r#"the consent was for the tool "delete""#), "{other_tool}");
    let unbound = refused(&tool_invoked(&unbound, "5.00"));
    assert!(!unbound.contains("the consent was for"), "{unbound}");
    // A rejected question is not a consent.
    let token = text_member(&reply_json(harness.confirm(&bank, &session, TRANSFER)), "reply_token");
    harness.reply(&ada, &subscription, &token, "reject");
    let rejected = refusal(harness.publish(&bank, &session, &[&tool_invoked(&token, "5.00")]));
    assert!(!rejected.contains("the consent was for"), "{rejected}");
}

#[test]
fn a_refusal_names_the_event_only_if_there_are_several() {
    let (mut harness, bank, session, _, _) = fixture();
    let invalid = r#"{"type":"aaep:agent.session.errored","summary_normal":"Failed."}"#;
    let single = refusal(harness.publish(&bank, &session, &[invalid]));
    assert!(!single.contains("event 1 of"), "{single}");
    let second = refusal(harness.publish(&bank, &session, &[&to_state("thinking"), invalid]));
    assert!(second.contains("event 2 of 2"), "{second}");
}

#[test]
fn a_refusal_compares_the_call_id_and_then_the_arguments() {
    let (mut harness, bank, session, subscription, _) = fixture();
    let question = TRANSFER.replace(r#""tool":"transfer""#, r#""tool":"transfer","tool_call_id":"call_1""#);
    let token = text_member(&reply_json(harness.confirm(&bank, &session, &question)), "reply_token");
    harness.reply(&listener("ada", &[]), &subscription, &token, "accept");
    let same_call = refusal(harness.publish(&bank, &session, &[&tool_invoked(&token, "5.00")]));
    assert!(same_call.contains("the consent was for amount 500.00; this call has 5.00"), "{same_call}");
    let other_call = tool_invoked(&token, "500.00").replace("call_1", "call_2");
    let other_call = refusal(harness.publish(&bank, &session, &[&other_call]));
    assert!(other_call.contains("the consent was for the call call_1; this call has call_2"), "{other_call}");
}
