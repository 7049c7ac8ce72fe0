//! Agents that act before a reply is recorded (decision 15). If a refusal is recorded later, the action is reported as a
//! violation. A session remembers its last 64 such actions.

use aaep::event::AgentState;
use aaep::message::{ConfirmationReply, Message};
use aaep::rule::{Findings, ValidationMode};
use aaep::session::{Confirmation, SessionEvent, SessionEventBody, SessionMachine};

const MAX_REMEMBERED_ACTIONS: usize = 64;

#[test]
fn a_refusal_recorded_late_is_reported_for_the_last_64_actions() {
    let mut session = SessionMachine::new("sess_1");
    apply_event(&mut session, SessionEventBody::Started);
    apply_event(
        &mut session,
        SessionEventBody::StateChanged { from: AgentState::Idle, to: AgentState::AwaitingInput },
    );
    let tokens: Vec<String> = (0..=MAX_REMEMBERED_ACTIONS).map(|at| format!("rpl_{at}")).collect();
    for token in &tokens {
        apply_event(&mut session, SessionEventBody::Confirmation(Box::new(question(token))));
        apply_event(
            &mut session,
            SessionEventBody::StateChanged { from: AgentState::AwaitingInput, to: AgentState::CallingTool },
        );
        apply_event(
            &mut session,
            SessionEventBody::ToolInvoked {
                tool: "pay",
                call_id: None,
                high_risk: true,
                irreversible: true,
                digest: None,
            },
        );
        apply_event(&mut session, SessionEventBody::ToolCompleted { tool: "pay", call_id: None });
        apply_event(
            &mut session,
            SessionEventBody::StateChanged { from: AgentState::CallingTool, to: AgentState::AwaitingInput },
        );
    }
    assert_eq!(rules_broken_by_refusal(&mut session, &tokens[1]), ["AAEP-4.5.3-1"]);
    assert_eq!(rules_broken_by_refusal(&mut session, &tokens[MAX_REMEMBERED_ACTIONS]), ["AAEP-4.5.3-1"]);
    assert_eq!(
        rules_broken_by_refusal(&mut session, &tokens[0]),
        ["AAEP-GS.5.3-1"],
        "the oldest action is no longer remembered"
    );
}

/// Refuses the question and returns the rules that are then reported as broken.
fn rules_broken_by_refusal(session: &mut SessionMachine, token: &str) -> Vec<&'static str> {
    let mut findings = Findings::new(ValidationMode::Strict);
    session.apply_confirmation_reply(&refusal(token), &mut findings);
    findings.list().iter().map(|finding| finding.rule.id()).collect()
}

fn refusal(token: &str) -> ConfirmationReply {
    let text = format!(
        r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"reject","subscription_id":"sub_1","timestamp":"2026-05-24T14:22:30Z"}}"#
    );
    match Message::parse(&text) {
        Some(Message::ConfirmationReply(reply)) => reply,
        other => panic!("{other:?}"),
    }
}

fn question(token: &str) -> Confirmation<&str> {
    Confirmation {
        token,
        action: token,
        timeout_seconds: 60,
        accept_by_default: false,
        irreversible: Some(true),
        high_risk: true,
        may_accept: true,
        may_reject: true,
        tool: None,
        call_id: None,
        digest: None,
    }
}

fn apply_event(session: &mut SessionMachine, body: SessionEventBody<&str>) {
    let mut findings = Findings::new(ValidationMode::Strict);
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
    session.apply(&event, &mut findings);
    assert!(!findings.has_error(), "{:?}", findings.list());
}
