//! Which calls a question permits or forbids if the reply is missing, late or recorded out of order.

use super::*;

/// Returns a session in which the agent acted on a question without a recorded reply, at second 4.
fn session_with_presumed_call() -> SessionMachine {
    let mut session = session_with_question();
    apply_ok(&mut session, &event_at(3, state_change("awaiting_input", "calling_tool")));
    apply_ok(&mut session, &event_at(4, irreversible_call("transfer", Some("call_1"))));
    session
}

fn rules_broken_by_reply(session: &mut SessionMachine, decision: Decision, second: u64) -> Vec<&'static str> {
    let reply = ConfirmationReply::new(token(), decision, subscription(), moment(second));
    let mut findings = Findings::new(ValidationMode::Strict);
    session.apply_confirmation_reply(&reply, &mut findings);
    findings.list().iter().map(|finding| finding.rule.id()).collect()
}

#[test]
fn a_reply_recorded_after_the_call_counts_only_if_it_was_given_before() {
    assert_eq!(rules_broken_by_reply(&mut session_with_presumed_call(), Decision::Accept, 3), [""; 0]);
    assert_eq!(rules_broken_by_reply(&mut session_with_presumed_call(), Decision::Accept, 4), [""; 0]);
    assert_eq!(rules_broken_by_reply(&mut session_with_presumed_call(), Decision::Accept, 5), ["AAEP-6.1-1"]);
    assert_eq!(
        rules_broken_by_reply(&mut session_with_presumed_call(), Decision::Reject, 3),
        ["AAEP-4.5.3-1"]
    );
}

#[test]
fn a_call_without_a_recorded_reply_contradicts_every_report_but_an_acceptance_by_reply() {
    let report = |decision, resolved_by| {
        let resolution =
            ReportedResolution { token: TOKEN, decision: Some(decision), resolved_by: Some(resolved_by) };
        SessionEvent {
            reported_resolution: Some(resolution),
            ..event_at(6, state_change("calling_tool", "thinking"))
        }
    };
    let session = || {
        let mut session = session_with_presumed_call();
        apply_ok(&mut session, &event_at(5, completed("transfer", Some("call_1"))));
        session
    };
    apply_ok(&mut session(), &report("accept", "reply"));
    assert_eq!(broken_rule(&mut session(), &report("reject", "reply")), "AAEP-4.5.3-1");
}

#[test]
fn a_stop_cannot_be_reported_as_an_acceptance() {
    let mut session = session_with_question();
    session.apply_stop();
    let report = reporting_resolution(3, "calling_tool", "accept", "reply");
    assert_eq!(broken_rule(&mut session, &report), "AAEP-4.5.3-1");
}

#[test]
fn an_invalid_reply_ends_the_presumption_that_the_person_accepted() {
    let mut session = session_with_question();
    apply_ok(&mut session, &event_at(3, state_change("awaiting_input", "calling_tool")));
    session.note_invalid_reply(TOKEN);
    assert_eq!(broken_rule(&mut session, &event_at(4, irreversible_call("transfer", None))), "AAEP-4.5.3-1");
}

#[test]
fn a_timely_reply_that_is_reported_after_the_deadline_replaces_the_default() {
    let mut session = session_with_question();
    // An event after the deadline makes the checker apply the default, a refusal.
    let progress = SessionEventBody::ProgressUpdated { percent: None, deadline_extension: None };
    apply_ok(&mut session, &event_at(32, progress));
    apply_ok(&mut session, &reporting_resolution(33, "calling_tool", "accept", "reply"));
    apply_ok(&mut session, &event_at(34, irreversible_call("transfer", None)));
}

#[test]
fn a_refusal_forbids_other_calls_by_the_same_producer_only() {
    let mut modified = ConfirmationReply::new(token(), Decision::Accept, subscription(), moment(2));
    modified.modified_action = seal::json::RawJson::parse(r#"{"amount":"5"}"#).ok();
    let refusal = ConfirmationReply::new(token(), Decision::Reject, subscription(), moment(2));
    for (reply, rule) in [(refusal, "AAEP-4.5.3-1"), (modified, "AAEP-6.3.2-1")] {
        let mut session = session_with_question();
        apply_ok(&mut session, &by_agent("payments", event_at(1, state_change("idle", "calling_tool"))));
        session.apply_confirmation_reply(&reply, &mut Findings::new(ValidationMode::Strict));
        apply_ok(&mut session, &by_agent("payments", event_at(3, invoked("fetch", Some("call_1")))));
        assert_eq!(broken_rule(&mut session, &event_at(4, invoked("fetch", Some("call_2")))), rule);
    }
}

#[test]
fn a_completed_session_says_that_a_question_is_still_open() {
    let mut session = session_with_question();
    let mut findings = Findings::new(ValidationMode::Strict);
    session.apply(&event_at(2, SessionEventBody::Completed), &mut findings);
    let texts: Vec<_> = findings.list().iter().map(|finding| finding.actual.clone()).collect();
    assert!(texts.iter().any(|text| text.contains("is still open")), "{texts:?}");
}

#[test]
fn a_reversible_call_acts_on_the_question_of_its_own_producer() {
    for (caller, ignored_token) in [("planner", "rpl_2222222222222222"), ("payments", TOKEN)] {
        let mut session = started_session();
        let questions = [(TOKEN, "planner", 1), ("rpl_2222222222222222", "payments", 2)];
        for (token, agent, second) in questions {
            let bound = Confirmation { tool: Some("transfer"), action: token, ..confirmation(token) };
            let body = SessionEventBody::Confirmation(Box::new(bound));
            apply_ok(&mut session, &by_agent(agent, event_at(second, body)));
        }
        for (token, _, second) in questions {
            let token = ReplyToken::parse(token).unwrap();
            let reply = ConfirmationReply::new(token, Decision::Accept, subscription(), moment(second + 2));
            session.apply_confirmation_reply(&reply, &mut Findings::new(ValidationMode::Strict));
        }
        apply_ok(&mut session, &by_agent(caller, event_at(5, invoked("transfer", None))));
        apply_ok(&mut session, &by_agent(caller, event_at(6, completed("transfer", None))));
        let mut findings = Findings::new(ValidationMode::Strict);
        session.apply(&event_at(7, SessionEventBody::Completed), &mut findings);
        let unused = findings.list().iter().filter(|finding| finding.rule.id() == "AAEP-4.5.3-2");
        let unused: Vec<_> = unused.map(|finding| finding.actual.as_str()).collect();
        assert_eq!(unused, [format!("{ignored_token} was accepted, but no call followed")]);
    }
}
