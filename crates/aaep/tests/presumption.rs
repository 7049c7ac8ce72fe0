//! Acting where no reply is recorded (design, decision 15): the reply that is recorded after all is held against it, for
//! the last 64 such acts of a session.

use aaep::event::State;
use aaep::message::{ConfirmationReply, Message};
use aaep::rule::{Face, Findings};
use aaep::session::{Body, Confirmation, Session, Step};

const REMEMBERED: usize = 64;

#[test]
fn a_refusal_that_is_recorded_late_is_held_against_the_last_64_acts() {
    let mut session = Session::new("sess_1");
    feed(&mut session, Body::Started);
    feed(&mut session, Body::State { from: State::Idle, to: State::AwaitingInput });
    let tokens: Vec<String> = (0..=REMEMBERED).map(|at| format!("rpl_{at}")).collect();
    for token in &tokens {
        feed(&mut session, Body::Confirmation(Box::new(question(token))));
        feed(&mut session, Body::State { from: State::AwaitingInput, to: State::CallingTool });
        feed(
            &mut session,
            Body::ToolInvoked { tool: "pay", call: None, high_risk: true, irreversible: true, digest: None },
        );
        feed(&mut session, Body::ToolCompleted { tool: "pay", call: None });
        feed(&mut session, Body::State { from: State::CallingTool, to: State::AwaitingInput });
    }
    assert_eq!(told(&mut session, &tokens[1]), ["AAEP-4.5.3-1"]);
    assert_eq!(told(&mut session, &tokens[REMEMBERED]), ["AAEP-4.5.3-1"]);
    assert_eq!(told(&mut session, &tokens[0]), ["AAEP-GS.5.3-1"], "the oldest has been forgotten");
}

/// What a refusal of that question is found to break.
fn told(session: &mut Session, token: &str) -> Vec<&'static str> {
    let mut findings = Findings::new(Face::Strict);
    session.reply(&refusal(token), &mut findings);
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
        may_accept: true,
        may_reject: true,
        tool: None,
        call: None,
        digest: None,
    }
}

fn feed(session: &mut Session, body: Body<&str>) {
    let mut findings = Findings::new(Face::Strict);
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
    session.event(&step, &mut findings);
    assert!(!findings.has_error(), "{:?}", findings.list());
}
