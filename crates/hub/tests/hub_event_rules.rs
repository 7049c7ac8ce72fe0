//! Events that the hub creates follow all rules.

use crate::support::*;
use aaep::check::Validator;
use aaep::json::Tape;
use aaep::rule::{Findings, ValidationMode};
use hub::HubLimits;
use hub::command::{HubCommand, HubReply};

/// Returns the findings about a single event, including warnings.
fn findings(event: &str) -> Vec<String> {
    let mut tape = Tape::default();
    let doc = tape.read(event).unwrap();
    let mut findings = Findings::new(ValidationMode::Strict);
    Validator::new().check(&doc, &mut findings);
    findings.take().iter().map(|finding| format!("{} {}", finding.rule.id(), finding.actual)).collect()
}

#[test]
fn events_created_by_the_hub_cause_no_findings() {
    let limits = HubLimits { lease_ms: 500_000, ..HubLimits::default() };
    let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, _) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let start_body = r#"{"urgency":"normal","summary_terse":"Pay.","summary_normal":"Paying.","localization_hints":{"primary_language":"en"}}"#;
    let mut sessions = Vec::new();
    for _ in 0..3 {
        let command = HubCommand::Start { body: start_body.into(), idempotency_key: None };
        let reply = reply_json(harness.ask_hub(&bank, command));
        sessions.push(text_member(&reply, "session_id"));
    }
    let question = TRANSFER.replacen('{', r#"{"urgency":"critical","summary_terse":"Pay Ben?","#, 1);
    let ask = |harness: &mut HubHarness, session: &str| {
        let opened = reply_json(harness.confirm(&bank, session, &question));
        text_member(&opened, "reply_token")
    };
    for decision in ["reject", "accept"] {
        let token = ask(&mut harness, &sessions[0]);
        harness.reply(&ada, &subscription, &token, decision);
    }
    let output = HubCommand::StreamOutput {
        session: id(&sessions[0]),
        output_id: None,
        producer: None,
        text: "It is done. ".to_owned(),
        language: None,
        content_type: None,
        coalesce_hint: None,
        complete: true,
        agent_reports_next_state: false,
        idempotency_key: None,
    };
    assert!(matches!(harness.ask_hub(&bank, output), HubReply::EventsPublished { .. }));
    // A question gets a reminder and an extension, and then expires. After that, the agent disappears.
    let token = ask(&mut harness, &sessions[1]);
    harness.advance_time(100_000);
    let at = aaep::Timestamp::from_unix_millis(harness.now).unwrap();
    let text = format!(
        r#"{{"type":"sayso:deadline.extend","reply_token":"{token}","subscription_id":"{subscription}","timestamp":"{at}"}}"#
    );
    harness.ask_hub(&ada, send_message(&text));
    let (_, late_listener) = harness.connect_listener(&listener("bob", &[]), REPLY_CAPABILITIES);
    harness.advance_time(3_600_000);
    let mut all: Vec<_> =
        harness.disk.events().iter().map(|event| String::from_utf8(event.body.clone()).unwrap()).collect();
    all.extend(harness.take_events(late_listener));
    let kinds: std::collections::BTreeSet<_> = all.iter().map(|event| text_member(event, "type")).collect();
    for kind in ["state.changed", "progress.updated", "session.errored", "output.streaming"] {
        assert!(kinds.contains(&format!("aaep:agent.{kind}")), "{kinds:?}");
    }
    for by in ["reply", "timeout"] {
        assert!(all.iter().any(|event| event.contains(&format!(r#""by":"{by}""#))), "{by}");
    }
    for event in all {
        assert_eq!(findings(&event), [""; 0], "{event}");
    }
}
