//! Rules that are switched off: they are neither reported, nor do they change what the other rules report.

use std::collections::hash_map::DefaultHasher;
use std::hash::BuildHasherDefault;

use aaep::check::{CheckedDocument, Validator};
use aaep::event::AgentState;
use aaep::json::Tape;
use aaep::message::Message;
use aaep::recording::{InputPosition, RecordingChecker, RecordingLimits, SequenceMode};
use aaep::rule::{Findings, Rule, ValidationMode};
use aaep::session::{Confirmation, SessionEvent, SessionEventBody, SessionMachine};

/// Returns the start of a session, with further members at its end.
fn start(members: &str) -> String {
    format!(
        r#"{{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0","type":"aaep:agent.session.started","event_id":"evt_5f3a9c0e7d1b42688a90c3e1f7b60d00","session_id":"sess_9d41c07be2f84a5b8c3619ea70d5f2b4","timestamp":"2026-11-15T09:30:00.120Z","producer":{{"agent_id":"bank-assistant"}},"urgency":"normal","localization_hints":{{"primary_language":"en-US","text_direction":"ltr"}},"summary_terse":"Started.","summary_normal":"Begun."{members}}}"#
    )
}

/// Checks a recording without some rules. Returns the ids of the broken rules, with those that are found at the end.
fn check(lines: &[String], mode: ValidationMode, without: &[&str]) -> Vec<&'static str> {
    let rules: Vec<Rule> = without.iter().map(|id| Rule::find(id).unwrap()).collect();
    let mut findings = Findings::new(mode).without(&rules);
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    let mut recording = RecordingChecker::new(SequenceMode::Always, RecordingLimits::default(), hasher);
    let (validator, mut tape) = (Validator::new(), Tape::default());
    for line in lines {
        match validator.check(&tape.read(line).unwrap(), &mut findings) {
            CheckedDocument::Event(event) => {
                recording.check_event(&event.borrow(), InputPosition::default(), &mut findings);
            }
            CheckedDocument::Message(message) => {
                recording.check_message(&message, InputPosition::default(), &mut findings);
            }
            _ => {}
        }
    }
    let unfinished = recording.finish(&findings);
    let found = findings.list().iter().chain(unfinished.iter().map(|(_, finding)| finding));
    found.map(|finding| finding.rule.id()).collect()
}

#[test]
fn an_open_session_is_not_reported_without_the_rule_that_demands_its_end() {
    let started = [start("")];
    assert_eq!(check(&started, ValidationMode::Strict, &[]), ["AAEP-4.1-1"]);
    assert_eq!(check(&started, ValidationMode::Strict, &["AAEP-4.1-1"]), [""; 0]);
}

#[test]
fn a_second_delivery_counts_as_an_event_if_event_ids_need_not_be_unique() {
    let twice = [start(""), start("")];
    let unique = "AAEP-3.2.3-2";
    let open = "AAEP-4.1-1";
    // A receiver ignores the second delivery.
    assert_eq!(check(&twice, ValidationMode::Receive, &[]), [unique, open]);
    // Without the rule, it is a second start.
    assert_eq!(check(&twice, ValidationMode::Receive, &[unique]), [open, open]);
}

#[test]
fn a_reserved_prefix_that_is_allowed_must_still_be_declared() {
    let session = [start(r#","extensions":{"aaep":{}}"#)];
    let reported = check(&session, ValidationMode::Strict, &["AAEP-4.1-1"]);
    let [reserved] = reported[..] else { panic!("{reported:?}") };
    let without = check(&session, ValidationMode::Strict, &["AAEP-4.1-1", reserved]);
    assert_eq!(without.len(), 1, "{without:?}");
    assert_ne!(without[0], reserved);
}

#[test]
fn a_reserved_name_that_is_allowed_is_still_unknown() {
    let session = [start(r#","aaep_colour":1"#)];
    let reported = check(&session, ValidationMode::Strict, &["AAEP-4.1-1"]);
    let [reserved] = reported[..] else { panic!("{reported:?}") };
    assert_eq!(check(&session, ValidationMode::Strict, &["AAEP-4.1-1", reserved]), ["AAEP-3.5-4"]);
}

/// Asks a question that only a rejection may answer, accepts it anyway, and performs the irreversible action. Returns the broken rules.
fn act_after_a_reply_that_is_not_allowed(without: &[&str]) -> Vec<&'static str> {
    let rules: Vec<Rule> = without.iter().map(|id| Rule::find(id).unwrap()).collect();
    let mut findings = Findings::new(ValidationMode::Strict).without(&rules);
    let mut session = SessionMachine::new("sess_1");
    let question = Confirmation {
        token: "rpl_1",
        action: "Pay.",
        timeout_seconds: 60,
        accept_by_default: false,
        irreversible: Some(true),
        high_risk: true,
        may_accept: false,
        may_reject: true,
        tool: None,
        call_id: None,
        digest: None,
    };
    let apply = |session: &mut SessionMachine, findings: &mut Findings, body: SessionEventBody<&str>| {
        let event = SessionEvent {
            event_id: None,
            session_id: "sess_1",
            agent_id: "bank",
            timestamp: "2026-05-24T14:22:11.000Z".parse().ok(),
            sequence_number: None,
            parent_session_id: None,
            reported_resolution: None,
            body,
        };
        session.apply(&event, findings);
    };
    let change = |from, to| SessionEventBody::StateChanged { from, to };
    apply(&mut session, &mut findings, SessionEventBody::Started);
    apply(&mut session, &mut findings, change(AgentState::Idle, AgentState::AwaitingInput));
    apply(&mut session, &mut findings, SessionEventBody::Confirmation(Box::new(question)));
    let reply = r#"{"type":"confirmation.reply","reply_token":"rpl_1","decision":"accept","subscription_id":"sub_1","timestamp":"2026-05-24T14:22:30Z"}"#;
    let Some(Message::ConfirmationReply(reply)) = Message::parse(reply) else { panic!("{reply}") };
    session.apply_confirmation_reply(&reply, &mut findings);
    apply(&mut session, &mut findings, change(AgentState::AwaitingInput, AgentState::CallingTool));
    let call = SessionEventBody::ToolInvoked {
        tool: "pay",
        call_id: None,
        high_risk: true,
        irreversible: true,
        digest: None,
    };
    apply(&mut session, &mut findings, call);
    findings.list().iter().map(|finding| finding.rule.id()).collect()
}

#[test]
fn a_reply_counts_if_the_rule_that_forbids_it_is_switched_off() {
    let allowed_replies = "AAEP-6.3.4-6";
    let reported = act_after_a_reply_that_is_not_allowed(&[]);
    assert!(reported.len() > 1 && reported.contains(&allowed_replies), "{reported:?}");
    assert_eq!(act_after_a_reply_that_is_not_allowed(&[allowed_replies]), [""; 0]);
}
