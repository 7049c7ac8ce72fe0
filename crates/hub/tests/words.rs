//! What the hub itself says is whole: no rule is broken by it, and none is bent.

use crate::support::*;
use aaep::check::Validator;
use aaep::json::Tape;
use aaep::rule::{Face, Findings};
use hub::Limits;
use hub::command::{Command, Reply};

/// The findings about an event on its own, warnings too.
fn findings(event: &str) -> Vec<String> {
    let mut tape = Tape::default();
    let doc = tape.read(event).unwrap();
    let mut findings = Findings::new(Face::Strict);
    Validator::new().check(&doc, &mut findings);
    findings.take().iter().map(|finding| format!("{} {}", finding.rule.id(), finding.found)).collect()
}

#[test]
fn nothing_that_the_hub_says_itself_wants_a_warning() {
    let limits = Limits { lease: 500_000, ..Limits::default() };
    let mut stage = Stage::with(&limits, Disk::default(), START);
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, _) = stage.listener(&ada, REPLIES);
    let started = r#"{"urgency":"normal","summary_terse":"Pay.","summary_normal":"Paying.","localization_hints":{"primary_language":"en"}}"#;
    let mut sessions = Vec::new();
    for _ in 0..3 {
        let command = Command::Start { body: started.into(), key: None };
        let made = json(stage.ask_hub(&bank, command));
        sessions.push(text_of(&made, "session_id"));
    }
    let question = TRANSFER.replacen('{', r#"{"urgency":"critical","summary_terse":"Pay Ben?","#, 1);
    let ask = |stage: &mut Stage, session: &str| {
        let asked = json(stage.confirm(&bank, session, &question));
        text_of(&asked, "reply_token")
    };
    for decision in ["reject", "accept"] {
        let token = ask(&mut stage, &sessions[0]);
        stage.reply(&ada, &subscription, &token, decision);
    }
    let output = Command::Output {
        session: id(&sessions[0]),
        output_id: None,
        text: "It is done. ".to_owned(),
        language: None,
        content_type: None,
        complete: true,
        stays: false,
        key: None,
    };
    assert!(matches!(stage.ask_hub(&bank, output), Reply::EventsPublished { .. }));
    // One is reminded of, given more time, and runs out; then the agent is gone.
    let token = ask(&mut stage, &sessions[1]);
    stage.wait(100_000);
    let at = aaep::Timestamp::from_unix_millis(stage.now).unwrap();
    let text = format!(
        r#"{{"type":"sayso:deadline.extend","reply_token":"{token}","subscription_id":"{subscription}","timestamp":"{at}"}}"#
    );
    stage.ask_hub(&ada, say(&text));
    let (_, late) = stage.listener(&listener("bob", &[]), REPLIES);
    stage.wait(3_600_000);
    let mut all: Vec<_> =
        stage.disk.events().iter().map(|event| String::from_utf8(event.body.clone()).unwrap()).collect();
    all.extend(stage.heard(late));
    let kinds: std::collections::BTreeSet<_> = all.iter().map(|event| text_of(event, "type")).collect();
    for kind in ["state.changed", "progress.updated", "session.errored", "output.streaming"] {
        assert!(kinds.contains(&format!("aaep:agent.{kind}")), "{kinds:?}");
    }
    for by in ["reply", "timeout"] {
        assert!(all.iter().any(|event| event.contains(&format!(r#""by":"{by}""#))), "{by}");
    }
    for event in all {
        assert_eq!(findings(&event), [""; 0], "{event}");
    }
}
