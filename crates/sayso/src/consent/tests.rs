//! Tests that only a person's reply counts as consent.

use aaep::SessionId;

use super::{Action, Answer, ResolvedBy};
use crate::error::{ConsentMismatch, Error, StopReason};
use crate::transport::ReplyOutcome;

fn answer_for(outcome: &str) -> Result<Answer, Error> {
    Action::new("send", r#"{"to":"Ben"}"#)
        .into_answer(&SessionId::parse("sess_1").unwrap(), ReplyOutcome::parse(outcome))
}

#[test]
fn only_a_persons_reply_counts_as_consent() {
    let accepted = answer_for(r#"{"status":"resolved","decision":"accept","by":"reply"}"#);
    assert!(matches!(accepted, Ok(Answer::Granted(_))), "{accepted:?}");
    for (outcome, by) in [
        (r#"{"status":"resolved","decision":"reject","by":"reply"}"#, ResolvedBy::Reply),
        (r#"{"status":"resolved","decision":"reject","by":"timeout"}"#, ResolvedBy::Timeout),
        (r#"{"status":"resolved","decision":"reject","by":"closure"}"#, ResolvedBy::Closure),
        (r#"{"status":"resolved","decision":"reject","by":"unreachable"}"#, ResolvedBy::Unreachable),
        (r#"{"status":"resolved","decision":"reject","by":"cancelled"}"#, ResolvedBy::Cancelled),
        // The default decision is always reject, so nobody gave these accepts.
        (r#"{"status":"resolved","decision":"accept","by":"timeout"}"#, ResolvedBy::Timeout),
        (r#"{"status":"resolved","decision":"accept","by":"closure"}"#, ResolvedBy::Closure),
        (r#"{"status":"resolved","decision":"accept","by":"something_new"}"#, ResolvedBy::Other),
        (r#"{"status":"resolved","decision":"accept"}"#, ResolvedBy::Other),
        (r#"{"status":"resolved","decision":"ACCEPT","by":"reply"}"#, ResolvedBy::Reply),
        (r#"{"status":"resolved","decision":true,"by":"reply"}"#, ResolvedBy::Reply),
        (r#"{"status":"resolved","by":"reply"}"#, ResolvedBy::Reply),
        (r#"{"status":"resolved"}"#, ResolvedBy::Other),
        (r#"{"status":"open","decision":"accept","by":"reply"}"#, ResolvedBy::Reply),
        (r#"{"status":"expired","decision":"accept","by":"reply"}"#, ResolvedBy::Reply),
        (r#"{"decision":"accept","by":"reply"}"#, ResolvedBy::Reply),
        ("{}", ResolvedBy::Other),
        ("accept", ResolvedBy::Other),
        ("", ResolvedBy::Other),
    ] {
        let answer = answer_for(outcome);
        assert!(matches!(&answer, Ok(Answer::Refused(refused)) if refused.by == by), "{outcome}: {answer:?}");
    }
    let stopped = answer_for(r#"{"status":"stopped","decision":"accept","by":"reply"}"#);
    assert!(matches!(stopped, Err(Error::Stopped(StopReason::Person))), "{stopped:?}");
}

#[test]
fn consent_covers_its_arguments_in_any_json_notation() {
    let granted = || match answer_for(r#"{"status":"resolved","decision":"accept","by":"reply"}"#) {
        Ok(Answer::Granted(granted)) => granted,
        other => panic!("not granted: {other:?}"),
    };
    assert!(granted().verify_call("send", r#"{ "to": "\u0042en" }"#).is_ok());
    for (tool, arguments) in
        [("send", r#"{"to":"ben"}"#), ("sends", r#"{"to":"Ben"}"#), ("send", r#"{"to":"Ben","cc":"Eve"}"#)]
    {
        let other = granted().verify_call(tool, arguments);
        assert_eq!(
            other.err(),
            Some(Error::ConsentMismatch(ConsentMismatch::OtherAction)),
            "{tool} {arguments}"
        );
    }
}

#[test]
fn debug_output_names_the_tool_and_hides_the_arguments() {
    let action = format!("{:?}", Action::new("send", r#"{"to":"Ben"}"#));
    let answer = answer_for(r#"{"status":"resolved","decision":"accept","by":"reply"}"#);
    let granted = format!("{answer:?}");
    for output in [action, granted] {
        assert!(output.contains("send") && !output.contains("Ben"), "{output}");
    }
}
