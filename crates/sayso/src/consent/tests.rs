//! What counts as a yes, of all that a hub could say.

use aaep::SessionId;

use super::{Action, Answer, By, Refused};
use crate::error::{Error, NotGranted, Stop};
use crate::line::Outcome;

fn answered(outcome: &str) -> Result<Answer, Error> {
    Action::new("send", r#"{"to":"Ben"}"#)
        .answered(&SessionId::parse("sess_1").unwrap(), &Outcome::parse(outcome))
}

#[test]
fn only_a_persons_yes_is_a_yes() {
    let yes = answered(r#"{"status":"resolved","decision":"accept","by":"reply"}"#);
    assert!(matches!(yes, Ok(Answer::Granted(_))), "{yes:?}");
    for (outcome, by) in [
        (r#"{"status":"resolved","decision":"reject","by":"reply"}"#, By::Reply),
        (r#"{"status":"resolved","decision":"reject","by":"timeout"}"#, By::Timeout),
        (r#"{"status":"resolved","decision":"reject","by":"closure"}"#, By::Closure),
        (r#"{"status":"resolved","decision":"reject","by":"unreachable"}"#, By::Unreachable),
        (r#"{"status":"resolved","decision":"reject","by":"cancelled"}"#, By::Cancelled),
        // It is always asked with a no by default: such a yes is nobody's.
        (r#"{"status":"resolved","decision":"accept","by":"timeout"}"#, By::Timeout),
        (r#"{"status":"resolved","decision":"accept","by":"closure"}"#, By::Closure),
        (r#"{"status":"resolved","decision":"accept","by":"witchcraft"}"#, By::Other),
        (r#"{"status":"resolved","decision":"accept"}"#, By::Other),
        (r#"{"status":"resolved","decision":"ACCEPT","by":"reply"}"#, By::Reply),
        (r#"{"status":"resolved","decision":true,"by":"reply"}"#, By::Reply),
        (r#"{"status":"resolved","by":"reply"}"#, By::Reply),
        (r#"{"status":"resolved"}"#, By::Other),
        (r#"{"status":"open","decision":"accept","by":"reply"}"#, By::Reply),
        (r#"{"status":"expired","decision":"accept","by":"reply"}"#, By::Reply),
        (r#"{"decision":"accept","by":"reply"}"#, By::Reply),
        ("{}", By::Other),
        ("accept", By::Other),
        ("", By::Other),
    ] {
        let answer = answered(outcome);
        assert!(
            matches!(answer, Ok(Answer::Refused(refused)) if refused == Refused { by }),
            "{outcome}: {answer:?}"
        );
    }
    let stopped = answered(r#"{"status":"stopped","decision":"accept","by":"reply"}"#);
    assert!(matches!(stopped, Err(Error::Stopped(Stop::Person))), "{stopped:?}");
}

#[test]
fn a_yes_is_for_its_arguments_however_they_are_written() {
    let granted = || match answered(r#"{"status":"resolved","decision":"accept","by":"reply"}"#) {
        Ok(Answer::Granted(granted)) => granted,
        other => panic!("it is no yes: {other:?}"),
    };
    assert!(granted().only_for("send", r#"{ "to": "\u0042en" }"#).is_ok());
    for (tool, arguments) in
        [("send", r#"{"to":"ben"}"#), ("sends", r#"{"to":"Ben"}"#), ("send", r#"{"to":"Ben","cc":"Eve"}"#)]
    {
        let other = granted().only_for(tool, arguments);
        assert_eq!(other.err(), Some(Error::NotGranted(NotGranted::OtherAction)), "{tool} {arguments}");
    }
}
