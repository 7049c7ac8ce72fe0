//! Input from agents that the hub accepts although AAEP itself is stricter: the hub completes or translates it.

use crate::support::*;
use aaep::ToolCallId;
use hub::command::{ClosedItem, HubCommand, HubReply};

const CALLING: &str = r#"{"type":"aaep:agent.state.changed","to_state":"calling_tool"}"#;
const END: &str = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;

fn invoked(call_id: &str) -> String {
    format!(
        r#"{{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":{call_id},"summary_normal":"Looking."}}"#
    )
}

fn completed(call_id: &str) -> String {
    format!(
        r#"{{"type":"aaep:agent.tool.completed","tool":"look","tool_call_id":{call_id},"status":"success","summary_normal":"Seen."}}"#
    )
}

fn start(harness: &mut HubHarness, body: &str) -> String {
    let command = HubCommand::Start { body: body.into(), idempotency_key: None };
    text_member(&reply_json(harness.ask_hub(&agent("bank"), command)), "session_id")
}

fn primary_language(event: &str) -> String {
    let mut tape = aaep::json::Tape::default();
    let doc = tape.read(event).unwrap();
    let hints = doc.root().member("localization_hints").unwrap();
    hints.member("primary_language").unwrap().text().unwrap().into()
}

#[test]
fn a_frameworks_call_id_is_accepted_and_always_mapped_to_the_same_valid_id() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let session = harness.start(&bank);
    for given in [r#""toolu_01A09q90qw90lq917835lq9""#, r#""c1""#, r#""call_a-b_c""#, "17", r#""日本""#] {
        let (_, listener_id) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
        let reply = harness.publish(&bank, &session, &[CALLING, &invoked(given), &completed(given)]);
        let HubReply::EventsPublished { replaced_call_ids, .. } = &reply else {
            panic!("{given}: {reply:?}")
        };
        let [replaced] = replaced_call_ids.as_slice() else { panic!("one id is replaced: {reply:?}") };
        assert_eq!(&*replaced.given, given.trim_matches('"'));
        let events = harness.take_events(listener_id);
        let ids: Vec<_> = events
            .iter()
            .filter(|event| event.contains("agent.tool."))
            .map(|event| text_member(event, "tool_call_id"))
            .collect();
        assert_eq!(ids, [replaced.id.as_str(); 2]);
        assert!(ToolCallId::parse(&ids[0]).is_ok(), "{ids:?}");
        // Both the agent's id and the id that the hub returned name the call that was already made. A second invocation
        // with either is refused, even after a restart.
        for id in [given.to_owned(), format!("\"{}\"", replaced.id)] {
            let again = harness.publish(&bank, &session, &[&invoked(&id)]);
            assert!(matches!(again, HubReply::RuleViolations(_)), "an id is used once: {again:?}");
        }
        harness.crash();
        let after_restart = harness.publish(&bank, &session, &[&invoked(given)]);
        assert!(matches!(after_restart, HubReply::RuleViolations(_)), "{after_restart:?}");
    }
    let valid = harness.publish(&bank, &session, &[CALLING, &invoked(r#""call_1""#)]);
    assert!(
        matches!(&valid, HubReply::EventsPublished { replaced_call_ids, .. } if replaced_call_ids.is_empty()),
        "{valid:?}"
    );
    for invalid in [r#""""#, "null", "[]"] {
        let refused = harness.publish(&bank, &session, &[&invoked(invalid)]);
        assert!(matches!(refused, HubReply::RuleViolations(_)), "{invalid}: {refused:?}");
    }
}

#[test]
fn a_consent_for_one_call_id_covers_only_that_call() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, listener_id) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    let question = TRANSFER.replacen('{', r#"{"tool_call_id":"toolu_01","#, 1);
    let token = text_member(&reply_json(harness.confirm(&bank, &session, &question)), "reply_token");
    let asked = harness.take_events(listener_id).pop().unwrap();
    let id = ToolCallId::from_foreign("toolu_01").unwrap();
    assert!(asked.contains(&format!(r#""tool":"transfer","tool_call_id":"{id}""#)), "{asked}");
    assert!(!asked.contains("toolu_01"), "{asked}");
    harness.reply(&ada, &subscription, &token, "accept");
    let call = tool_invoked(&token, "500.00");
    let other = harness.publish(&bank, &session, &[CALLING, &call]);
    assert!(matches!(other, HubReply::RuleViolations(_)), "call_1 was not asked about: {other:?}");
    let asked_for = call.replace("call_1", "toolu_01");
    let reply = harness.publish(&bank, &session, &[CALLING, &asked_for]);
    assert!(matches!(reply, HubReply::EventsPublished { .. }), "{reply:?}");

    let without_tool =
        question.replace(r#","tool":"transfer","arguments":{"amount":"500.00","to":"Ben"}"#, "");
    let refused = harness.confirm(&bank, &session, &without_tool);
    assert!(matches!(refused, HubReply::Malformed(_)), "{refused:?}");
}

#[test]
fn a_session_without_a_language_uses_the_hubs_default_language() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (_, listener_id) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let invoked_with_script = r#"{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_1","summary_normal":"Looking.","localization_hints":{"script":"Latn"}}"#;
    for (default, hints, expected) in [
        ("en", "", "en"),
        ("es", "", "es"),
        ("es", r#","localization_hints":{"script":"Latn"}"#, "es"),
        ("es", r#","localization_hints":{"primary_language":"yo"}"#, "yo"),
    ] {
        harness.core.set_default_language(default);
        let session = start(&mut harness, &format!(r#"{{"summary_normal":"Moving money."{hints}}}"#));
        // The session keeps its language when the hub's changes.
        harness.core.set_default_language("pt-BR");
        let reply = harness.publish(&bank, &session, &[CALLING, invoked_with_script]);
        assert!(matches!(reply, HubReply::EventsPublished { .. }), "{reply:?}");
        let events = harness.take_events(listener_id);
        for event in events.iter().filter(|event| !event.contains("agent.state.changed")) {
            assert_eq!(primary_language(event), expected, "{event}");
        }
    }
    let command = HubCommand::Start {
        body: r#"{"summary_normal":"Moving money.","localization_hints":7}"#.into(),
        idempotency_key: None,
    };
    let malformed = harness.ask_hub(&bank, command);
    assert!(matches!(malformed, HubReply::RuleViolations(_)), "{malformed:?}");
}

#[test]
fn text_with_both_directions_gets_the_direction_auto() {
    let mut harness = HubHarness::new();
    let body = r#"{"summary_normal":"بريد من Ben.","localization_hints":{"primary_language":"ar","text_direction":"rtl"}}"#;
    let (_, listener_id) = harness.connect_listener(&listener("ada", &[]), REPLY_CAPABILITIES);
    start(&mut harness, body);
    let started = harness.take_events(listener_id).remove(0);
    assert!(started.contains(r#"{"primary_language":"ar","text_direction":"auto"}"#), "{started}");
}

#[test]
fn ending_a_session_closes_open_tools_and_outputs_and_says_so() {
    let ends = [
        END,
        r#"{"type":"aaep:agent.session.errored","error_category":"unknown","error_code":"BANK_DOWN","recoverable":false,"summary_normal":"It failed."}"#,
        r#"{"type":"aaep:agent.session.cancelled","cancelled_by":"producer","summary_normal":"Cancelled."}"#,
    ];
    for end in ends {
        let mut harness = HubHarness::new();
        let (bank, ada) = (agent("bank"), listener("ada", &[]));
        let (_, listener_id) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
        let session = harness.start(&bank);
        let output = |id: Option<&str>| HubCommand::StreamOutput {
            session: id_of(&session),
            output_id: id.map(str::to_owned),
            producer: None,
            text: "The bill is".to_owned(),
            language: None,
            content_type: None,
            coalesce_hint: None,
            complete: false,
            agent_reports_next_state: false,
            idempotency_key: None,
        };
        harness.ask_hub(&bank, output(None));
        harness.ask_hub(&bank, output(Some("out_2")));
        harness.publish(&bank, &session, &[CALLING, &invoked(r#""c1""#)]);
        harness.take_events(listener_id);
        let command = |events: &[&str]| HubCommand::Publish {
            session: id_of(&session),
            events: events.iter().map(|event| (*event).into()).collect(),
            idempotency_key: Some("end".to_owned()),
        };
        let refused = harness.publish(&bank, &session, &[end, THINK]);
        assert!(matches!(refused, HubReply::RuleViolations(_)), "nothing follows the end: {refused:?}");
        assert!(harness.take_events(listener_id).is_empty(), "a refused request closes nothing");

        let reply = harness.ask_hub(&bank, command(&[end]));
        let HubReply::EventsPublished { event_ids, closed, .. } = &reply else { panic!("{reply:?}") };
        let events = harness.take_events(listener_id);
        let types = event_types(&events);
        assert_eq!(types[..3], ["tool.completed", "output.streaming", "output.streaming"], "{types:?}");
        let ids: Vec<_> = events.iter().map(|event| text_member(event, "event_id")).collect();
        assert_eq!([&*event_ids[0]], [ids[3].as_str()], "the agent's own event comes last");
        let call = ToolCallId::from_foreign("c1").unwrap();
        // Listeners get whole sentences, so their output events have ids of their own.
        let stored: Vec<_> = harness.disk.events().into_iter().map(|event| event.event_id).collect();
        let [.., tool_end, first_end, second_end, _] = stored.as_slice() else { panic!("{stored:?}") };
        assert_eq!(text_member(&events[0], "status"), "timeout");
        assert_eq!(
            *closed,
            [
                ClosedItem::Tool {
                    tool: "look".into(),
                    call_id: Some(call.as_str().into()),
                    event_id: tool_end.as_str().into()
                },
                ClosedItem::Output { output_id: None, event_id: first_end.as_str().into() },
                ClosedItem::Output { output_id: Some("out_2".into()), event_id: second_end.as_str().into() },
            ]
        );
        let json = reply_json(reply.clone());
        assert!(json.contains(r#""closed":[{"kind":"tool","tool":"look","tool_call_id":"call_"#), "{json}");
        assert_eq!(harness.ask_hub(&bank, command(&[end])), reply, "the same key gets the same reply");
    }
}

#[test]
fn the_refusal_of_a_call_says_how_it_differs_from_the_consent() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, _) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    harness.publish(&bank, &session, &[CALLING]);
    let messages = |reply: HubReply| match reply {
        HubReply::RuleViolations(findings) => {
            findings.iter().map(aaep::rule::Finding::message).collect::<Vec<_>>().join("\n")
        }
        other => panic!("{other:?}"),
    };
    let call = tool_invoked("", "5000.00").replace(r#","reply_token":"""#, "");
    let unasked = messages(harness.publish(&bank, &session, &[&call]));
    assert!(unasked.contains("nobody was asked"), "{unasked}");
    let token = text_member(&reply_json(harness.confirm(&bank, &session, TRANSFER)), "reply_token");
    let undecided = messages(harness.publish(&bank, &session, &[&call]));
    assert!(!undecided.contains("500.00"), "nothing is accepted yet: {undecided}");
    harness.reply(&ada, &subscription, &token, "accept");
    let other_amount = "the consent was for amount 500.00; this call has 5000.00";
    for restart in [false, true] {
        if restart {
            harness.crash();
        }
        let different = messages(harness.publish(&bank, &session, &[&call]));
        assert!(different.contains(other_amount), "{different}");
        let with_token = messages(harness.publish(&bank, &session, &[&tool_invoked(&token, "5000.00")]));
        assert!(with_token.contains(other_amount), "{with_token}");
        let bare = call.replace(r#","arguments":{"amount":"5000.00","to":"Ben"}"#, "");
        let without = messages(harness.publish(&bank, &session, &[&bare]));
        assert!(without.contains("this call has none"), "{without}");
        let secret = call.replace("5000.00", "500.00").replace("\"Ben\"", "\"4111 1111 1111 1111\"");
        let redacted = messages(harness.publish(&bank, &session, &[&secret]));
        assert!(redacted.contains("[redacted]") && !redacted.contains("4111"), "{redacted}");
    }
    // Another session of the same agent has no part in the consent.
    let other_session = harness.start(&bank);
    let foreign =
        messages(harness.publish(&bank, &other_session, &[CALLING, &tool_invoked(&token, "5000.00")]));
    assert!(!foreign.contains("500.00;"), "{foreign}");
}

fn id_of(session: &str) -> aaep::SessionId {
    id(session)
}
