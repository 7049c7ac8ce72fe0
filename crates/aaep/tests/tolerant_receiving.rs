//! What a receiver tolerates (§3.2 to §3.9, §12.2). New or unusual content is not lost, and content that breaks a rule is
//! reported.

use std::hash::RandomState;

use aaep::check::{CheckedDocument, Validator};
use aaep::event::{AgentState, Event, EventType, Payload, RiskLevel};
use aaep::json::Tape;
use aaep::recording::{InputPosition, RecordingChecker, RecordingLimits, SequenceMode};
use aaep::rule::{Finding, Findings, Severity, ValidationMode};

const TOOL_INVOKED: &str = r#"{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0","type":"aaep:agent.tool.invoked","event_id":"evt_8a3f5b22c91e4d7a","session_id":"sess_2c91a7b4d23f1e88","timestamp":"2026-05-24T14:22:11.342Z","producer":{"agent_id":"bank"},"urgency":"normal","localization_hints":{"primary_language":"en-US"},"tool":"fetch","summary_normal":"Looking up.","summary_terse":"Looking."}"#;

fn findings(text: &str, mode: ValidationMode) -> Vec<Finding> {
    let mut findings = Findings::new(mode);
    match Tape::default().read(text) {
        Ok(doc) => {
            Validator::new().check(&doc, &mut findings);
        }
        Err(error) => Validator::report_syntax_error(&error, &mut findings),
    }
    findings.take()
}

fn errors(text: &str, mode: ValidationMode) -> Vec<&'static str> {
    let all = findings(text, mode);
    all.iter()
        .filter(|finding| finding.severity == Severity::Error)
        .map(|finding| finding.rule.id())
        .collect()
}

fn rules_reported_on_receipt(text: &str) -> Vec<&'static str> {
    findings(text, ValidationMode::Receive).iter().map(|finding| finding.rule.id()).collect()
}

#[test]
fn the_sample_is_valid() {
    assert_eq!(findings(TOOL_INVOKED, ValidationMode::Strict), []);
}

#[test]
fn a_custom_state_is_valid_and_preserved() {
    for (name, state) in
        [("handing_off", AgentState::HandingOff), ("day-dreaming", AgentState::Other("day-dreaming".into()))]
    {
        let text = TOOL_INVOKED
            .replace("tool.invoked", "state.changed")
            .replace(r#""tool":"fetch""#, &format!(r#""from_state":"idle","to_state":"{name}""#));
        assert_eq!(findings(&text, ValidationMode::Strict), [], "{text}");
        let event = Event::parse(&text).unwrap();
        assert!(
            matches!(&event.payload, Payload::StateChanged(change) if change.to_state == state),
            "{event:?}"
        );
        assert!(event.to_json().contains(&format!(r#""to_state":"{name}""#)), "{}", event.to_json());
    }
}

#[test]
fn a_truncated_event_is_not_parsed() {
    for end in 0..TOOL_INVOKED.len() {
        assert!(Event::parse(&TOOL_INVOKED[..end]).is_none());
        assert_eq!(errors(&TOOL_INVOKED[..end], ValidationMode::Receive), ["AAEP-3.8-2"]);
    }
}

#[test]
fn compact_and_full_uri_types_are_the_same_type() {
    let full = TOOL_INVOKED.replace("aaep:agent.", "https://aaep-protocol.org/types/agent.");
    assert_eq!(Event::parse(&full), Event::parse(TOOL_INVOKED));
    assert_eq!(errors(&full, ValidationMode::Strict), Vec::<&str>::new());
    let broken = full.replace("\"tool\":\"fetch\"", "\"tool\":\"no name\"");
    assert_eq!(errors(&broken, ValidationMode::Strict), ["AAEP-4.3.1s-1"]);
}

#[test]
fn an_event_without_its_context_is_rejected() {
    let without_context = TOOL_INVOKED.replace("\"@context\":\"https://aaep-protocol.org/context/v1\",", "");
    assert_eq!(errors(&without_context, ValidationMode::Receive), ["AAEP-3.2.1-1"]);
    assert!(Event::parse(&without_context).is_none());
    let other_version = TOOL_INVOKED.replace("/context/v1", "/context/v2");
    assert_eq!(errors(&other_version, ValidationMode::Receive), ["AAEP-3.2.1-2"]);
}

#[test]
fn unknown_values_are_preserved_with_a_warning() {
    let cases = [
        ("\"tool\":", "\"risk_level\":\"extreme\",\"tool\":", "AAEP-4.3.1-6"),
        ("\"tool\":", "\"from_the_future\":[1],\"tool\":", "AAEP-3.5-4"),
        ("aaep:agent.tool.invoked", "aaep:agent.tool.paused", "AAEP-3.2.2-5"),
        (
            "\"summary_terse\":\"Looking.\"}",
            "\"summary_terse\":\"Looking.\",\"extensions\":{\"medai\":{\"x\":1}}}",
            "AAEP-3.4.3-1",
        ),
        ("\"urgency\":\"normal\"", "\"urgency\":\"soon\"", "AAEP-3.3.2-1"),
    ];
    for (from, to, rule) in cases {
        let text = TOOL_INVOKED.replace(from, to);
        assert_eq!(errors(&text, ValidationMode::Strict), [rule], "{text}");
        assert_eq!(errors(&text, ValidationMode::Receive), Vec::<&str>::new(), "{text}");
        assert!(rules_reported_on_receipt(&text).contains(&rule), "{text}");
        let event = Event::parse(&text).expect("the event is still parsed");
        assert_eq!(Event::parse(&event.to_json()), Some(event));
    }
    let risky = TOOL_INVOKED.replace("\"tool\":", "\"risk_level\":\"extreme\",\"tool\":");
    let Some(Payload::ToolInvoked(tool)) = Event::parse(&risky).map(|event| event.payload) else { panic!() };
    assert_eq!(tool.risk_level, Some(RiskLevel::parse("extreme")));
    let state = r#""from_state":"idle","to_state":"daydreaming""#;
    let state = TOOL_INVOKED.replace("tool.invoked", "state.changed").replace("\"tool\":\"fetch\"", state);
    assert_eq!(findings(&state, ValidationMode::Strict), []);
}

#[test]
fn unknown_handshake_reason_codes_and_members_are_tolerated() {
    let rejected =
        r#"{"type":"subscription.rejected","reason_code":"full_moon","reason_message":"Later.","x":1}"#;
    assert_eq!(errors(rejected, ValidationMode::Strict), ["AAEP-5.5.3-1", "AAEP-5.5s-1"]);
    assert_eq!(errors(rejected, ValidationMode::Receive), Vec::<&str>::new());
}

#[test]
fn replies_are_checked_strictly_in_both_modes() {
    let reply = r#"{"type":"confirmation.reply","reply_token":"rpl_4f8a2e7d9c1b6a3f","decision":"accept","subscription_id":"sub_1","timestamp":"2026-05-24T14:22:11Z","x":1}"#;
    assert_eq!(errors(reply, ValidationMode::Strict), ["AAEP-6.3s-1"]);
    assert_eq!(errors(reply, ValidationMode::Receive), ["AAEP-6.3s-1"]);
    assert!(matches!(check(reply), CheckedDocument::InvalidReply(token) if token == "rpl_4f8a2e7d9c1b6a3f"));
}

fn check(text: &'static str) -> CheckedDocument<'static> {
    let tape: &'static mut Tape = Box::leak(Box::default());
    Validator::new().check(&tape.read(text).expect("JSON"), &mut Findings::new(ValidationMode::Receive))
}

#[test]
fn ids_are_case_sensitive() {
    let upper = TOOL_INVOKED.replace("evt_8a3f5b22c91e4d7a", "evt_8A3F5B22C91E4D7A");
    let ids = [TOOL_INVOKED, &upper].map(|text| Event::parse(text).expect("an event").envelope.event_id);
    assert_ne!(ids[0], ids[1]);
    assert_eq!(broken_order_rules(&[TOOL_INVOKED, &upper], ValidationMode::Strict), Vec::<&str>::new());
}

#[test]
fn a_repeated_event_is_reported_as_a_duplicate() {
    assert_eq!(broken_order_rules(&[TOOL_INVOKED, TOOL_INVOKED], ValidationMode::Strict), ["AAEP-3.2.3-2"]);
    assert_eq!(broken_order_rules(&[TOOL_INVOKED, TOOL_INVOKED], ValidationMode::Receive), ["AAEP-3.2.3-2"]);
}

/// Returns the ordering rules that these events break, as if their session were already open.
fn broken_order_rules(texts: &[&str], mode: ValidationMode) -> Vec<&'static str> {
    let mut recording =
        RecordingChecker::new(SequenceMode::Auto, RecordingLimits::default(), RandomState::new());
    let mut findings = Findings::new(mode);
    for text in texts {
        let mut tape = Tape::default();
        let doc = tape.read(text).expect("JSON");
        if let CheckedDocument::Event(event) = Validator::new().check(&doc, &mut Findings::new(mode)) {
            recording.check_event(&event.borrow(), InputPosition::default(), &mut findings);
        }
    }
    findings.take().iter().map(|finding| finding.rule.id()).collect()
}

#[test]
fn every_optional_member_may_be_absent() {
    let bare = r#"{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.state.changed","event_id":"evt_8a3f5b22c91e4d7a","session_id":"sess_1","timestamp":"2026-05-24T14:22:11.342Z","producer":{"agent_id":"bank"},"from_state":"idle","to_state":"thinking"}"#;
    assert_eq!(errors(bare, ValidationMode::Strict), Vec::<&str>::new());
    assert!(Event::parse(bare).is_some());
}

#[test]
fn the_order_of_members_does_not_matter() {
    let value: std::collections::BTreeMap<String, serde_json::Value> =
        serde_json::from_str(TOOL_INVOKED).expect("JSON");
    let sorted = serde_json::to_string(&value).expect("JSON");
    assert_ne!(sorted, TOOL_INVOKED);
    assert_eq!(Event::parse(&sorted), Event::parse(TOOL_INVOKED));
    assert_eq!(rules_reported_on_receipt(&sorted), ["AAEP-3.6-2"]);
}

#[test]
fn indented_json_is_the_same_event() {
    let value: serde_json::Value = serde_json::from_str(TOOL_INVOKED).expect("JSON");
    let indented = serde_json::to_string_pretty(&value).expect("JSON");
    assert_eq!(Event::parse(&indented), Event::parse(TOOL_INVOKED));
}

#[test]
fn an_event_over_the_soft_limits_is_accepted() {
    let long = "word ".repeat(20_000);
    let text = TOOL_INVOKED.replace("Looking up.", &long);
    assert!(Event::parse(&text).is_some());
    assert_eq!(errors(&text, ValidationMode::Receive), Vec::<&str>::new());
    assert_eq!(rules_reported_on_receipt(&text), ["AAEP-4.1.1s-1", "AAEP-3.7-1", "AAEP-3.7-4"]);
}

#[test]
fn the_defects_listed_in_section_3_11_are_reported() {
    let cases = [
        ("\"event_id\":\"evt_8a3f5b22c91e4d7a\",", "", "AAEP-3.2-1"),
        ("2026-05-24T14:22:11.342Z", "May 24, 2026 14:22:11", "AAEP-3.2.5-1"),
        ("agent.tool.invoked", "agent.purple.flamingo", "AAEP-3.2.2-5"),
        ("\"Looking.\"}", "\"Looking.\",\"extensions\":{\"medai\":{}}}", "AAEP-3.4.3-1"),
        ("\"tool\":", "\"custom_field\":1,\"tool\":", "AAEP-3.5-4"),
    ];
    for (from, to, rule) in cases {
        assert_eq!(errors(&TOOL_INVOKED.replace(from, to), ValidationMode::Strict), [rule]);
        assert!(
            rules_reported_on_receipt(&TOOL_INVOKED.replace(from, to)).contains(&rule),
            "{rule} is not reported on receipt"
        );
    }
}

#[test]
fn decomposed_text_is_accepted() {
    let text = TOOL_INVOKED.replace("Looking up.", "Cafe\u{301} open.");
    assert_eq!(errors(&text, ValidationMode::Strict), Vec::<&str>::new());
    assert_eq!(rules_reported_on_receipt(&text), ["AAEP-11.3.2-1"]);
}

#[test]
fn a_translated_text_is_accepted_next_to_the_original() {
    let text =
        TOOL_INVOKED.replace("\"summary_terse\"", "\"summary_normal_yo\":\"Mò ń wò ó.\",\"summary_terse\"");
    assert_eq!(findings(&text, ValidationMode::Strict), []);
    let unknown =
        TOOL_INVOKED.replace("\"summary_terse\"", "\"amount_formatted_en_us\":\"$5\",\"summary_terse\"");
    assert_eq!(errors(&unknown, ValidationMode::Strict), ["AAEP-3.5-4"]);
}

#[test]
fn an_extension_cannot_weaken_a_rule() {
    let contexts = r#"["https://aaep-protocol.org/context/v1","https://example.org/soft/v1"]"#;
    let text = TOOL_INVOKED
        .replace("\"https://aaep-protocol.org/context/v1\"", contexts)
        .replace("tool.invoked", "session.errored")
        .replace("\"tool\":\"fetch\"", "\"error_category\":\"unknown\"")
        .replace("\"Looking.\"}", "\"Looking.\",\"extensions\":{\"soft\":{\"critical_urgency\":false}}}");
    assert_eq!(errors(&text, ValidationMode::Strict), ["AAEP-4.1.3-4"]);
    assert!(EventType::SessionErrored.is_critical());
}
