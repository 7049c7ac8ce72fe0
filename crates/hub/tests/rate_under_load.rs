//! A listener's rate limit, over one minute, as the checklist in AAEP's implementation guide requires.

use crate::support::*;
use hub::command::{HubCommand, HubReply};

/// Streams one minute of output at 100 tokens per second, in 20 chunks per second of about five words each, to a listener
/// that accepts 3 events per second. A question is asked in the middle.
#[test]
fn a_minute_of_tokens_stays_within_the_rate_and_a_question_is_not_delayed() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let terms = r#"{"supports_confirmation_reply":true,"supported_conformance_levels":[1,2,3],"max_events_per_second":3}"#;
    let (subscription, listener_id) = harness.connect_listener(&ada, terms);
    let session = harness.start(&bank);
    let (mut sent, mut received, mut times) = (String::new(), String::new(), Vec::new());
    let mut questions = 0;
    let mut read_events = |harness: &mut HubHarness, times: &mut Vec<i64>, received: &mut String| {
        for event in harness.take_events(listener_id) {
            let kind = text_member(&event, "type");
            if kind.ends_with("awaiting.confirmation") {
                questions += 1;
                harness.reply(&ada, &subscription, &text_member(&event, "reply_token"), "reject");
            } else if !event.contains(r#""by":"reply""#) && !event.contains(r#""to_state":"awaiting_input""#)
            {
                times.push(harness.now.get());
            }
            if kind.ends_with("output.streaming") {
                received.push_str(&text_member(&event, "chunk"));
            }
        }
    };
    for number in 0..1200 {
        let mut text = format!("W{number} and four more words ");
        if number % 3 == 2 {
            text.push_str("End. ");
        }
        sent.push_str(&text);
        let output = HubCommand::StreamOutput {
            session: id(&session),
            output_id: None,
            producer: None,
            text,
            language: None,
            content_type: None,
            coalesce_hint: None,
            complete: false,
            agent_reports_next_state: false,
            idempotency_key: None,
        };
        let reply = harness.ask_hub(&bank, output);
        assert!(matches!(reply, HubReply::EventsPublished { .. }), "{reply:?}");
        if number == 600 {
            assert!(matches!(harness.confirm(&bank, &session, TRANSFER), HubReply::QuestionOpened { .. }));
            read_events(&mut harness, &mut times, &mut received);
        }
        harness.advance_time(50);
        read_events(&mut harness, &mut times, &mut received);
    }
    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    let final_chunk = HubCommand::StreamOutput {
        session: id(&session),
        output_id: None,
        producer: None,
        text: String::new(),
        language: None,
        content_type: None,
        coalesce_hint: None,
        complete: true,
        agent_reports_next_state: false,
        idempotency_key: None,
    };
    harness.ask_hub(&bank, final_chunk);
    assert!(matches!(harness.publish(&bank, &session, &[end]), HubReply::EventsPublished { .. }));
    for _ in 0..100 {
        harness.advance_time(100);
        read_events(&mut harness, &mut times, &mut received);
    }
    assert_eq!(questions, 1);
    assert_eq!(received, sent, "every word arrives once");
    assert!(times.len() > 100, "{}", times.len());
    // The test sees an event up to one step of 50 ms after it was sent.
    for (first, fourth) in times.iter().zip(times.iter().skip(3)) {
        assert!(fourth - first >= 950, "four events within {} ms", fourth - first);
    }
}
