//! Answers to clarifications (§6.5). An answer of a kind that the question lists is accepted. Any other answer leaves
//! the question open.

use aaep::message::{ClarificationReply, Message};
use aaep::rule::{Findings, ValidationMode};
use aaep::session::{Clarification, PendingItem, SessionEvent, SessionEventBody, SessionMachine};

/// Returns a session with an open question that accepts these kinds of answers.
fn session_with_question(
    accepts_free_text: bool,
    accepts_yes_no: bool,
    accepts_number: bool,
    choices: Option<Vec<&'static str>>,
) -> SessionMachine {
    let mut session = SessionMachine::new("sess_1");
    let clarification = Clarification {
        token: "rpl_1",
        question: "Which?",
        timeout_seconds: 60,
        accepts_free_text,
        accepts_yes_no,
        accepts_number,
        choices,
    };
    for body in [SessionEventBody::Started, SessionEventBody::Clarification(Box::new(clarification))] {
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
        session.apply(&event, &mut Findings::default());
    }
    session
}

fn reply(response: &str) -> ClarificationReply {
    let text = format!(
        r#"{{"type":"clarification.reply","reply_token":"rpl_1","response":{response},"subscription_id":"sub_1","timestamp":"2026-05-24T14:22:30Z"}}"#
    );
    match Message::parse(&text) {
        Some(Message::ClarificationReply(reply)) => reply,
        other => panic!("{other:?}"),
    }
}

fn has_open_question(session: &SessionMachine) -> bool {
    session.pending_items().iter().any(|item| matches!(item, PendingItem::Answer { .. }))
}

#[test]
fn every_listed_kind_of_answer_is_accepted() {
    let cases = [
        (session_with_question(true, false, false, None), "\"the red one\""),
        (session_with_question(false, true, false, None), "false"),
        (session_with_question(false, false, true, None), "65"),
        (session_with_question(false, false, false, Some(vec!["60", "65"])), "\"65\""),
        (session_with_question(true, true, true, Some(vec!["60", "65"])), "\"neither\""),
    ];
    for (mut session, response) in cases {
        assert!(has_open_question(&session));
        let mut findings = Findings::new(ValidationMode::Strict);
        session.apply_clarification_reply(&reply(response), &mut findings);
        assert!(findings.list().is_empty(), "{response}: {:?}", findings.list());
        assert!(!has_open_question(&session), "{response}");
    }
}

#[test]
fn an_answer_that_the_question_does_not_accept_leaves_it_open() {
    let cases = [
        (session_with_question(false, true, false, None), "\"yes\"", "AAEP-6.5.2-1"),
        (session_with_question(false, false, true, None), "\"65\"", "AAEP-6.5.2-1"),
        (session_with_question(true, false, false, None), "65", "AAEP-6.5.2-1"),
        (session_with_question(false, false, false, Some(vec!["60", "65"])), "\"66\"", "AAEP-6.5.5-2"),
    ];
    for (mut session, response, rule) in cases {
        let mut findings = Findings::new(ValidationMode::Strict);
        session.apply_clarification_reply(&reply(response), &mut findings);
        let rules: Vec<_> = findings.list().iter().map(|finding| finding.rule.id()).collect();
        assert_eq!(rules, [rule], "{response}");
        assert!(has_open_question(&session), "{response}");
    }
}
