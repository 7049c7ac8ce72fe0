//! A listener's rate, for as long as the guide's checklist wants it tested.

use crate::support::*;
use hub::command::{Command, Reply};

/// A hundred tokens a second for a minute, to somebody who takes three events a second; a question in the middle of it.
#[test]
fn a_minute_of_tokens_keeps_to_the_rate_and_a_question_waits_for_nothing() {
    let mut stage = Stage::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let terms = r#"{"supports_confirmation_reply":true,"supported_conformance_levels":[1,2,3],"max_events_per_second":3}"#;
    let (subscription, ear) = stage.listener(&ada, terms);
    let session = stage.start(&bank);
    let (mut sent, mut heard, mut times) = (String::new(), String::new(), Vec::new());
    let mut questions = 0;
    let mut take = |stage: &mut Stage, times: &mut Vec<i64>, heard: &mut String| {
        for event in stage.heard(ear) {
            let kind = text_of(&event, "type");
            if kind.ends_with("awaiting.confirmation") {
                questions += 1;
                stage.reply(&ada, &subscription, &text_of(&event, "reply_token"), "reject");
            } else if !event.contains(r#""by":"reply""#) && !event.contains(r#""to_state":"awaiting_input""#)
            {
                times.push(stage.now.get());
            }
            if kind.ends_with("output.streaming") {
                heard.push_str(&text_of(&event, "chunk"));
            }
        }
    };
    for piece in 0..1200 {
        let mut text = format!("W{piece} and four more words ");
        if piece % 3 == 2 {
            text.push_str("End. ");
        }
        sent.push_str(&text);
        let output = Command::Output {
            session: id(&session),
            output_id: None,
            text,
            language: None,
            content_type: None,
            complete: false,
            stays: false,
            key: None,
        };
        let said = stage.ask_hub(&bank, output);
        assert!(matches!(said, Reply::EventsPublished { .. }), "{said:?}");
        if piece == 600 {
            assert!(matches!(
                stage.confirm(&bank, &session, TRANSFER),
                Reply::QuestionOpened { .. } | Reply::SessionStarted { .. }
            ));
            take(&mut stage, &mut times, &mut heard);
        }
        stage.wait(50);
        take(&mut stage, &mut times, &mut heard);
    }
    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    let last = Command::Output {
        session: id(&session),
        output_id: None,
        text: String::new(),
        language: None,
        content_type: None,
        complete: true,
        stays: false,
        key: None,
    };
    stage.ask_hub(&bank, last);
    assert!(matches!(stage.publish(&bank, &session, &[end]), Reply::EventsPublished { .. }));
    for _ in 0..100 {
        stage.wait(100);
        take(&mut stage, &mut times, &mut heard);
    }
    assert_eq!(questions, 1);
    assert_eq!(heard, sent, "every word once");
    assert!(times.len() > 100, "{}", times.len());
    // An event is seen up to one step of 50 ms after it was sent.
    for (first, fourth) in times.iter().zip(times.iter().skip(3)) {
        assert!(fourth - first >= 950, "four events within {} ms", fourth - first);
    }
}
