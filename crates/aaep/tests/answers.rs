//! Answers to clarifications (§6.5): every kind that a question lists is taken, any other leaves it open.

use aaep::message::{ClarificationReply, Message};
use aaep::rule::{Face, Findings};
use aaep::session::{Body, Clarification, Session, Step, Waiting};

/// A session that has asked, with these kinds of answers possible.
fn asking(free_text: bool, yes_no: bool, numeric: bool, choices: Option<Vec<&'static str>>) -> Session {
    let mut session = Session::new("sess_1");
    let asked = Clarification {
        token: "rpl_1",
        question: "Which?",
        timeout_seconds: 60,
        free_text,
        yes_no,
        numeric,
        choices,
    };
    for body in [Body::Started, Body::Clarification(Box::new(asked))] {
        let step = Step {
            event_id: None,
            session_id: "sess_1",
            agent_id: "bank",
            at: "2026-05-24T14:22:11.000Z".parse().ok(),
            sequence_number: None,
            parent: None,
            resolution: None,
            body,
        };
        session.event(&step, &mut Findings::default());
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

fn is_open(session: &Session) -> bool {
    session.waiting_for().iter().any(|waiting| matches!(waiting, Waiting::Answer { .. }))
}

#[test]
fn every_listed_kind_of_answer_is_taken() {
    let cases = [
        (asking(true, false, false, None), "\"the red one\""),
        (asking(false, true, false, None), "false"),
        (asking(false, false, true, None), "65"),
        (asking(false, false, false, Some(vec!["60", "65"])), "\"65\""),
        (asking(true, true, true, Some(vec!["60", "65"])), "\"neither\""),
    ];
    for (mut session, response) in cases {
        assert!(is_open(&session));
        let mut findings = Findings::new(Face::Strict);
        session.answer(&reply(response), &mut findings);
        assert!(findings.list().is_empty(), "{response}: {:?}", findings.list());
        assert!(!is_open(&session), "{response}");
    }
}

#[test]
fn an_answer_of_the_wrong_kind_leaves_the_question_open() {
    let cases = [
        (asking(false, true, false, None), "\"yes\"", "AAEP-6.5.2-1"),
        (asking(false, false, true, None), "\"65\"", "AAEP-6.5.2-1"),
        (asking(true, false, false, None), "65", "AAEP-6.5.2-1"),
        (asking(false, false, false, Some(vec!["60", "65"])), "\"66\"", "AAEP-6.5.5-2"),
    ];
    for (mut session, response, rule) in cases {
        let mut findings = Findings::new(Face::Strict);
        session.answer(&reply(response), &mut findings);
        let rules: Vec<_> = findings.list().iter().map(|finding| finding.rule.id()).collect();
        assert_eq!(rules, [rule], "{response}");
        assert!(is_open(&session), "{response}");
    }
}
