//! What the hub says about a call or an event that it refuses, and when it tries again to write.

use crate::support::*;
use hub::HubLimits;
use hub::command::HubReply;

/// Returns the rule, the pointer and the text of each finding.
fn findings(reply: &HubReply) -> Vec<(String, String, String)> {
    let HubReply::RuleViolations(findings) = reply else { panic!("{reply:?}") };
    let texts = findings
        .iter()
        .map(|finding| (finding.rule.id().to_owned(), finding.pointer.clone(), finding.actual.clone()));
    texts.collect()
}

/// A transfer that needs consent.
fn transfer(call_id: &str) -> String {
    format!(
        r#"{{"type":"aaep:agent.tool.invoked","tool":"transfer","tool_call_id":"{call_id}","risk_level":"high","irreversible":true,"summary_normal":"Sending.","arguments":{{"amount":"500.00","to":"Ben"}}}}"#
    )
}

#[test]
fn a_refused_call_is_told_why_the_answer_does_not_cover_it() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, _) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    let never_asked = findings(&harness.publish(&bank, &session, &[&transfer("call_1")]));
    assert!(never_asked.iter().any(|(_, _, text)| text.contains("nobody was asked")), "{never_asked:?}");
    let token = text_member(&reply_json(harness.confirm(&bank, &session, TRANSFER)), "reply_token");
    harness.reply(&ada, &subscription, &token, "accept");
    let published = harness.publish(&bank, &session, &[&transfer("call_1")]);
    assert!(matches!(published, HubReply::EventsPublished { .. }), "{published:?}");
    let again = findings(&harness.publish(&bank, &session, &[&transfer("call_2")]));
    assert!(again.len() == 1 && again[0].2.contains("already used"), "{again:?}");
    // This call also repeats the id of an open call. Each finding keeps its own text.
    let repeated = findings(&harness.publish(&bank, &session, &[&transfer("call_1")]));
    for (rule, pointer, text) in &repeated {
        let is_about_consent = text.contains("already used");
        assert_eq!(is_about_consent, rule != "AAEP-4.3.1-4", "{rule} {pointer} {text}");
        assert_eq!(is_about_consent, pointer == "/tool", "{rule} {pointer} {text}");
    }
    assert_eq!(repeated.len(), 2, "{repeated:?}");
}

#[test]
fn a_result_of_a_call_that_nobody_made_is_not_blamed_on_another_agent() {
    let mut harness = HubHarness::new();
    let bank = agent("bank");
    let start = r#"{"summary_normal":"Work.","producers":[{"agent_id":"helper"}],"localization_hints":{"primary_language":"en"}}"#;
    let command = hub::command::HubCommand::Start { body: start.into(), idempotency_key: None };
    let session = text_member(&reply_json(harness.ask_hub(&bank, command)), "session_id");
    let invoked = r#"{"type":"aaep:agent.tool.invoked","tool":"fetch","summary_normal":"Fetching."}"#;
    let published = harness.publish(&bank, &session, &[invoked]);
    assert!(matches!(published, HubReply::EventsPublished { .. }), "{published:?}");
    let completed = |tool: &str| {
        format!(
            r#"{{"type":"aaep:agent.tool.completed","tool":"{tool}","producer":"helper","status":"success","summary_normal":"Done."}}"#
        )
    };
    let of_other = findings(&harness.publish(&bank, &session, &[&completed("fetch")]));
    assert!(of_other[0].2.contains("\"bank\" made this call"), "{of_other:?}");
    let of_nobody = findings(&harness.publish(&bank, &session, &[&completed("send")]));
    assert!(of_nobody.iter().all(|(_, _, text)| !text.contains("made this call")), "{of_nobody:?}");
}

#[test]
fn only_the_labels_of_choices_must_be_visible() {
    let mut harness = HubHarness::new();
    let bank = agent("bank");
    harness.connect_listener(&listener("ada", &[]), REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    let mut ask = |member: &str| {
        let text = format!(
            r#"{{"question":"Which one?","timeout_seconds":60,"{member}":[{{"id":"a","label":"A"}},{{"id":"b","label":" "}}]}}"#
        );
        let command = hub::command::HubCommand::Ask {
            session: id(&session),
            body: text.into(),
            is_clarification: true,
            idempotency_key: None,
        };
        harness.ask_hub(&bank, command)
    };
    let refused = findings(&ask("choices"));
    assert_eq!(refused[0].1, "/choices/1/label", "{refused:?}");
    let other = ask("x_notes");
    let is_about_label =
        matches!(&other, HubReply::RuleViolations(findings) if findings[0].pointer.ends_with("/label"));
    assert!(!is_about_label, "{other:?}");
}

#[test]
fn after_a_failed_write_the_hub_soon_tries_again_even_if_nothing_else_is_due() {
    let limits = HubLimits { retention: journal::Retention::default(), ..HubLimits::default() };
    let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
    assert_eq!(harness.core.next_deadline(), None);
    harness.disk.fail_writes(true);
    let start = r#"{"summary_normal":"Work."}"#;
    let command = hub::command::HubCommand::Start { body: start.into(), idempotency_key: None };
    assert!(matches!(harness.ask_hub(&agent("bank"), command), HubReply::Unavailable(_)));
    let retry_at = harness.core.next_deadline().expect("the hub tries again");
    assert!(retry_at > harness.now && retry_at <= harness.now.saturating_add(10_000), "{retry_at:?}");
}
