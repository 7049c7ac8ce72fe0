//! Tests of what counts as consent, and of the messages that ask for it and use it.

use std::sync::Arc;
use std::time::Duration;

use aaep::SessionId;
use aaep::event::Decision;
use seal::json::TapeWriter;

use super::{Action, Answer, ConsentRefusal, Granted, ResolvedBy, Risk};
use crate::argument::JsonText;
use crate::error::{ConsentMismatch, Error, MalformedInput, StopReason};
use crate::redact::{CountingRedactor, SecretRedactor};
use crate::session::EventOptions;
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

const ACCEPTED: &str = r#"{"status":"resolved","decision":"accept","by":"reply"}"#;

fn granted() -> Granted {
    match answer_for(ACCEPTED) {
        Ok(Answer::Granted(granted)) => granted,
        other => panic!("not granted: {other:?}"),
    }
}

#[test]
fn consent_is_spent_only_in_the_session_in_which_it_was_given() {
    let other = granted().spend(&SessionId::parse("sess_2").unwrap());
    assert_eq!(other.err(), Some(Error::ConsentMismatch(ConsentMismatch::OtherSession)));
    let action = granted().spend(&SessionId::parse("sess_1").unwrap()).unwrap();
    assert_eq!((&*action.tool, &*action.arguments), ("send", r#"{"to":"Ben"}"#));
    assert_eq!((granted().tool(), granted().arguments()), ("send", r#"{"to":"Ben"}"#));
}

#[test]
fn an_answer_has_the_receipt_that_the_hub_sent() {
    for decision in ["accept", "reject"] {
        let with = |receipt: &str| {
            let outcome = format!(r#"{{"status":"resolved","decision":"{decision}","by":"reply"{receipt}}}"#);
            let answer = answer_for(&outcome).unwrap();
            assert_eq!(matches!(answer, Answer::Granted(_)), decision == "accept");
            (answer.receipt().map(str::to_owned), answer.receipt_signature().map(str::to_owned))
        };
        assert_eq!(with(""), (None, None));
        let receipt = Some(r#"{"a":1,"b":2}"#.to_owned());
        assert_eq!(with(r#","receipt":{"b":2,"a":1}"#), (receipt.clone(), None));
        assert_eq!(
            with(r#","receipt":{"b":2,"a":1},"receipt_signature":"x..y""#),
            (receipt, Some("x..y".to_owned()))
        );
    }
}

#[test]
fn a_refusal_says_how_the_question_was_resolved() {
    use aaep::consent::ResolvedBy as ProtocolResolvedBy;
    for (by, name, text) in [
        (ProtocolResolvedBy::Reply, "reply", "the person refused"),
        (ProtocolResolvedBy::Timeout, "timeout", "nobody answered in time"),
        (ProtocolResolvedBy::Closure, "closure", "everybody who could have answered has disconnected"),
        (ProtocolResolvedBy::Unreachable, "unreachable", "nobody could be asked"),
        (ProtocolResolvedBy::Cancelled, "cancelled", "the question was cancelled before it was answered"),
    ] {
        assert_eq!(ResolvedBy::parse(name), ResolvedBy::from(by), "{name}");
        assert_eq!(ConsentRefusal::from(ResolvedBy::from(by)).to_string(), text);
    }
    assert_eq!(ConsentRefusal::from(ResolvedBy::parse("something_new")).to_string(), "it was refused");
}

/// Returns the request that asks for consent to an action.
fn request(action: &Action) -> Result<String, Error> {
    let redactor = CountingRedactor::new(Arc::new(SecretRedactor));
    let options = EventOptions::new().render(&redactor)?;
    Ok(action.to_request_body(&redactor, &options)?.source().to_owned())
}

#[test]
fn a_request_contains_the_call_its_texts_and_its_risk() {
    let action = || {
        Action::new("send", r#"{"to":"Ben"}"#)
            .says("Send 5 euros to Ben.")
            .consequence("The money leaves your account.")
    };
    let texts = |summary: &str| {
        format!(
            r#""action":"Send 5 euros to Ben.","consequence":"The money leaves your account.","summary_normal":"{summary}""#
        )
    };
    let default_texts = texts("Send 5 euros to Ben. The money leaves your account.");
    let call = r#""tool":"send","arguments":{"to":"Ben"}"#;
    let fixed = |timeout_seconds: u64, risk: &str, is_irreversible: bool| {
        format!(
            r#""timeout_seconds":{timeout_seconds},"default_decision":"reject","risk_level":"{risk}","irreversible":{is_irreversible}"#
        )
    };
    let high = fixed(300, "high", false);
    for (action, expected) in [
        (action(), format!("{default_texts},{high},{call}")),
        (action().summary("Send it?"), format!("{},{high},{call}", texts("Send it?"))),
        (action().risk(Risk::Low), format!("{default_texts},{},{call}", fixed(300, "low", false))),
        (action().risk(Risk::Medium), format!("{default_texts},{},{call}", fixed(300, "medium", false))),
        // `irreversible` says enough.
        (action().irreversible(), format!("{default_texts},{},{call}", fixed(300, "high", true))),
        (action().reversible(), format!(r#"{default_texts},{high},"reversibility":"reversible",{call}"#)),
        (
            action().allowed_replies([Decision::Reject]).extra_context(JsonText::json(r#"{"balance":7}"#)),
            format!(
                r#"{default_texts},{high},"allowed_replies":["reject"],"extra_context":{{"balance":7}},{call}"#
            ),
        ),
        (
            action().with_reversibility_and_timeout(true, Some(Duration::from_secs(9))),
            format!("{default_texts},{},{call}", fixed(9, "high", true)),
        ),
        (
            action().answer_timeout(Duration::from_secs(8)).with_reversibility_and_timeout(false, None),
            format!("{default_texts},{},{call}", fixed(8, "high", false)),
        ),
    ] {
        assert_eq!(request(&action).unwrap(), format!("{{{expected}}}"));
    }
    let unbound = Action::new("send", r#"{"to":"#);
    assert!(matches!(request(&unbound), Err(Error::Malformed(MalformedInput::Action(_)))));
}

#[test]
fn the_call_of_an_allowed_action_is_announced_with_its_arguments_and_risk() {
    let redactor = CountingRedactor::new(Arc::new(SecretRedactor));
    let write = |action: &Action| {
        let mut out = TapeWriter::default();
        out.object(|out| action.write_call(out, &redactor));
        out.source().to_owned()
    };
    let action = Action::new("send", r#"{"to":"Ben"}"#).says("Send 5 euros to Ben.");
    let announced = |is_irreversible: bool| {
        format!(
            r#"{{"arguments":{{"to":"Ben"}},"risk_level":"high","irreversible":{is_irreversible},"summary_normal":"Send 5 euros to Ben."}}"#
        )
    };
    assert_eq!(write(&action), announced(false));
    assert_eq!(write(&action.irreversible()), announced(true));
}

#[cfg(any(feature = "openai", feature = "rig"))]
#[test]
fn the_model_reads_why_its_call_was_refused() {
    assert_eq!(
        super::format_refusal_for_model("the person refused"),
        "The person refused. The tool was not run. Do not call it again for this request unless the person asks for it."
    );
    assert!(super::format_refusal_for_model("").starts_with(". The tool was not run."));
}
