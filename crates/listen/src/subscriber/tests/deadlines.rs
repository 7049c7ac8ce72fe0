//! Deadlines, extensions and reminders.

use super::*;

#[test]
fn reminders_come_at_half_and_a_tenth_and_the_deadline_can_be_extended() {
    let mut harness = SubscriberHarness::new();
    harness.ask_confirmation("rpl_1");
    assert_eq!(
        harness.advance(119_000),
        [
            "ask: Question 1: about 1 minute left. Type more time if you need it.",
            "ask: Question 1: about 12 seconds left. Type more time if you need it.",
        ]
    );
    let request = harness.subscriber.request_more_time(1, harness.now).unwrap();
    assert!(request.starts_with(r#"{"type":"sayso:deadline.extend","reply_token":"rpl_1""#), "{request}");
    assert_eq!(
        harness.subscriber.time_left_text(1, harness.now).unwrap(),
        "1 second",
        "only the hub extends the deadline"
    );
    let more = "ask: More time for question 1: about 2 minutes left.";
    assert_eq!(harness.receive("progress.updated", &more_time("rpl_1", 240)), [more]);
    assert_eq!(
        harness.receive("progress.updated", &more_time("rpl_1", 240)),
        [""; 0],
        "a repeated notice is not announced"
    );
    assert_eq!(
        harness.advance(9_999),
        ["ask: Question 1: about 2 minutes left. Type more time if you need it."]
    );
    assert_eq!(harness.advance(2), [""; 0], "the request was granted");
    harness.receive("progress.updated", &more_time("rpl_1", 1200));
    assert_eq!(harness.subscriber.request_more_time(1, harness.now), Err(AnswerError::ExtensionExhausted));
}

/// Creates the members of a hub notice that extends a deadline to this many seconds after `START_TIME`.
fn more_time(token: &str, seconds: i64) -> String {
    let until = aaep::Timestamp::from_unix_millis(START_TIME + seconds * 1000).unwrap();
    format!(
        r#""progress":{{"description":"x"}},"summary_normal":"There is more time.","extensions":{{"sayso":{{"extended":"{token}","deadline":"{until}"}}}}"#
    )
}

#[test]
fn a_question_with_little_time_has_fewer_reminders() {
    for (seconds, expected) in [("30", &["15 seconds"][..]), ("60", &["30 seconds", "6 seconds"]), ("9", &[])]
    {
        let mut harness = SubscriberHarness::new();
        harness.receive("awaiting.confirmation", &confirmation("rpl_1").replace("120", seconds));
        let expected: Vec<_> = expected
            .iter()
            .map(|remaining| {
                format!("ask: Question 1: about {remaining} left. Type more time if you need it.")
            })
            .collect();
        assert_eq!(harness.advance(seconds.parse::<i64>().unwrap() * 1000 - 1), expected);
    }
}

#[test]
fn an_extension_requested_by_another_listener_applies_here_too() {
    let mut harness = SubscriberHarness::new();
    harness.ask_confirmation("rpl_1");
    harness.advance(100_000);
    let lines = harness.receive("progress.updated", &more_time("rpl_1", 240));
    assert_eq!(lines, ["ask: More time for question 1: about 2 minutes left."]);
    let until_end = harness.advance(139_999);
    assert_eq!(until_end.len(), 2, "both reminders are repeated: {until_end:?}");
    assert!(harness.subscriber.answer_confirmation(1, Decision::Accept, harness.now).is_ok());
    // Notices about settled or unknown questions are not announced.
    harness.receive("state.changed", &resolution("rpl_1", "accept", "reply"));
    assert_eq!(harness.receive("progress.updated", &more_time("rpl_1", 480)), [""; 0]);
    assert_eq!(harness.receive("progress.updated", &more_time("rpl_9", 480)), [""; 0]);
}

#[test]
fn a_deadline_is_never_shortened_and_only_the_hub_extends_it() {
    let mut harness = SubscriberHarness::new();
    harness.ask_confirmation("rpl_1");
    assert_eq!(harness.receive("progress.updated", &more_time("rpl_1", 60)), [""; 0]);
    let unmarked = more_time("rpl_1", 240).replace("sayso", "other");
    assert_eq!(harness.receive("progress.updated", &unmarked), ["progress: There is more time."]);
    let in_state_change = more_time("rpl_1", 240).replace(
        r#""progress":{"description":"x"}"#,
        r#""from_state":"awaiting_input","to_state":"awaiting_input""#,
    );
    harness.receive("state.changed", &in_state_change);
    assert_eq!(harness.subscriber.time_left_text(1, harness.now).unwrap(), "2 minutes");
}

#[test]
fn a_request_for_more_time_without_a_response_is_reported() {
    let mut harness = SubscriberHarness::new();
    harness.ask_confirmation("rpl_1");
    harness.subscriber.request_more_time(1, harness.now).unwrap();
    assert_eq!(
        harness.advance(10_000),
        ["ask: More time requested.", "ask: Question 1 was not given more time: about 2 minutes left."]
    );
    assert_eq!(harness.advance(10_000), [""; 0], "the missing response is reported only once");
}

#[test]
fn a_late_joiner_hears_the_remaining_time() {
    // The deadline notice arrives before the question.
    let mut harness = SubscriberHarness::new();
    let question = harness.event("awaiting.confirmation", &confirmation("rpl_1"));
    harness.now += 150_000;
    assert_eq!(harness.receive("progress.updated", &more_time("rpl_1", 240)), [""; 0]);
    let lines = harness.receive_text(&question);
    assert!(lines.iter().any(|line| line == "ask: You have 2 minutes."), "{lines:?}");
    // The notice arrives after the question, among the missed events. Until it arrives, the question seems to have expired
    // already, so the subscriber assumes that the local clock is fast.
    let mut harness = SubscriberHarness::new();
    let question = harness.event("awaiting.confirmation", &confirmation("rpl_1"));
    harness.now += 100_000;
    let more = harness.event("progress.updated", &more_time("rpl_1", 240));
    harness.now += 50_000;
    harness.receive_text(&question);
    assert_eq!(harness.receive_text(&more), ["ask: More time for question 1: about 2 minutes left."]);
    // If the local clock is really wrong, the correction stays.
    let mut harness = SubscriberHarness::new();
    let question = harness.event("awaiting.confirmation", &confirmation("rpl_1"));
    harness.now += 10_000;
    let more = harness.event("progress.updated", &more_time("rpl_1", 240));
    harness.now += 3_600_000;
    harness.subscriber.receive(&question, harness.now - 10_000);
    harness.drain_lines();
    assert_eq!(harness.receive_text(&more), ["ask: More time for question 1: about 4 minutes left."]);
}

#[test]
fn a_hub_reminder_is_recognized_by_its_extension_member() {
    let unmarked = r#""progress":{"description":"You have 60 seconds left to answer."}"#;
    let marked = |token: &str| format!(r#"{unmarked},"extensions":{{"sayso":{{"reminds_of":"{token}"}}}}"#);
    let mut harness = SubscriberHarness::new();
    harness.ask_confirmation("rpl_1");
    assert_eq!(
        harness.receive("progress.updated", &marked("rpl_1")),
        [""; 0],
        "the local reminder announces it"
    );
    assert_eq!(
        harness.receive("progress.updated", unmarked),
        ["progress: You have 60 seconds left to answer."]
    );
    harness.advance(10_000);
    assert_eq!(
        harness.receive("progress.updated", &marked("rpl_2").replace("60", "50")),
        ["progress: You have 50 seconds left to answer."]
    );
}

#[test]
fn the_hubs_text_about_a_state_is_replaced_by_local_text() {
    let state_change = |from: &str, to: &str, mark: &str| {
        format!(
            r#""urgency":"normal","from_state":"{from}","to_state":"{to}","summary_terse":"Short.","summary_normal":"The given text.","extensions":{{"sayso":{{{mark}}}}}"#
        )
    };
    let mark = r#""text_by":"hub""#;
    let mut harness = SubscriberHarness::new();
    assert_eq!(
        harness.receive("state.changed", &state_change("thinking", "thinking", mark)),
        ["agent: Bank is thinking."]
    );
    assert!(harness.receive("state.changed", &state_change("thinking", "writing_output", mark)).is_empty());
    assert_eq!(harness.advance(STATE_HOLD_MS), ["agent: Bank is writing."]);
    harness.ask_confirmation("rpl_1");
    let lines = harness.receive(
        "state.changed",
        &state_change(
            "awaiting_input",
            "calling_tool",
            r#""reply_token":"rpl_1","decision":"reject","by":"timeout""#,
        ),
    );
    assert_eq!(lines, ["answer: Nobody answered question 1 in time: rejected."]);
    assert_eq!(
        harness.advance(STATE_HOLD_MS),
        ["agent: Bank is using a tool."],
        "the outcome is not repeated"
    );
    // An agent's own text is announced as it is.
    harness.receive("state.changed", &state_change("calling_tool", "deciding", r#""text_by":"agent""#));
    assert_eq!(harness.advance(STATE_HOLD_MS), ["agent: The given text."]);
}

#[test]
fn every_extension_is_announced_as_a_longer_time() {
    let mut harness = SubscriberHarness::new();
    let question = confirmation("rpl_1").replace(":120", ":5");
    harness.receive("awaiting.confirmation", &question);
    harness.now += 800;
    for (seconds, remaining) in
        [(10, "9 seconds"), (15, "14 seconds"), (20, "19 seconds"), (25, "25 seconds")]
    {
        harness.now += 100;
        let more = format!("ask: More time for question 1: about {remaining} left.");
        assert_eq!(harness.receive("progress.updated", &more_time("rpl_1", seconds)), [more]);
    }
    for (millis, remaining) in [(13_500, "14 seconds"), (18_200, "18 seconds"), (23_000, "25 seconds")] {
        assert_eq!(wording::duration_text(Phrases::for_languages(&[]), millis), remaining);
    }
}
