//! Limits, gaps and recovery.

use super::*;

#[test]
fn questions_beyond_the_limit_are_announced_but_not_kept() {
    let mut harness = SubscriberHarness::with(
        Verbosity::Normal,
        SubscriberLimits { open_questions: 3, ..SubscriberLimits::default() },
    );
    for number in 0..3 {
        harness.ask_confirmation(&format!("rpl_{number}"));
    }
    assert_eq!(
        harness.ask_confirmation("rpl_9"),
        [
            "error: Bank has asked more questions than can be kept open here. You cannot answer this here: Send 5 euros to Ben. Without an answer, it will not be done."
        ]
    );
    assert_eq!(harness.subscriber.questions().count(), 3);
}

#[test]
fn sessions_event_ids_and_outputs_stay_within_their_limits() {
    let limits = SubscriberLimits {
        sessions: 10,
        event_ids: 20,
        outputs_per_session: 2,
        ..SubscriberLimits::default()
    };
    let mut harness = SubscriberHarness::with(Verbosity::Normal, limits);
    for number in 0..100 {
        let event = harness.event_in_session(
            &format!("sess_{number}"),
            "session.started",
            r#""summary_normal":"Hm.""#,
        );
        harness.receive_text(&event);
    }
    assert_eq!(harness.subscriber.sessions().count(), 10);
    let event = harness.event_in_session("sess_99", "tool.invoked", r#""tool":"t","summary_normal":"Hm.""#);
    assert_eq!(harness.receive_text(&event).len(), 1);
    for number in 0..50 {
        let text = format!(r#""chunk":"Hm. ","position":0,"complete":false,"output_id":"out_{number}""#);
        harness.receive("output.streaming", &text);
    }
    assert!(harness.subscriber.sessions.iter().all(|session| session.output_count() <= 2));
}

#[test]
fn missing_and_repeated_text_is_detected() {
    let mut harness = SubscriberHarness::new();
    let text = "One is here. Two is here. Three is here.";
    harness.receive("output.streaming", &chunk("One is here. ", 0, false));
    // The same position again with other chunk sizes: only the new text is announced.
    let mut lines = harness.receive("output.streaming", &chunk(&text[..26], 0, false));
    lines.extend(harness.receive("output.streaming", &chunk(&text[20..], 20, true)));
    assert_eq!(lines, ["agent: One is here.", "agent: Two is here.", "agent: Three is here."]);
    // Different text at a position that was already received is still announced.
    assert_eq!(harness.receive("output.streaming", &chunk("Liar. ", 0, true)), ["agent: Liar."]);
    let mut harness = SubscriberHarness::new();
    harness.receive("output.streaming", &chunk("One ", 0, false));
    assert_eq!(
        harness.receive("output.streaming", &chunk("Three.", 100, true)),
        ["agent: One", "notice: Part of the text is missing here.", "agent: Three."]
    );
}

#[test]
fn a_gap_and_the_state_after_it_are_announced() {
    let mut harness = SubscriberHarness::new();
    let gap =
        r#"{"type":"sayso:gap","subscription_id":"sub_1","last_event_id":"evt_1","reason_message":"Gone."}"#;
    assert_eq!(
        harness.receive_text(gap),
        ["notice: Some of what you missed is no longer stored. Here is how things stand."]
    );
    assert_eq!(
        harness.receive("state.changed", r#""from_state":"thinking","to_state":"thinking""#),
        ["agent: Bank is thinking."]
    );
}

#[test]
fn questions_and_sessions_not_reported_again_after_a_gap_are_over() {
    let mut harness = SubscriberHarness::new();
    let first = harness.event("awaiting.confirmation", &confirmation("rpl_1"));
    harness.receive_text(&first);
    let event = harness.event_in_session("sess_2", "awaiting.confirmation", &confirmation("rpl_2"));
    harness.receive_text(&event);
    harness.subscriber.begin_gap_recovery(harness.now);
    // The first session and its question are reported again, but not announced again.
    harness.receive("state.changed", r#""from_state":"awaiting_input","to_state":"awaiting_input""#);
    assert!(harness.receive_text(&first).is_empty());
    assert_eq!(
        harness.advance(GAP_RECOVERY_WINDOW_MS),
        [
            "answer: Question 2 is no longer open. Its outcome is not known.",
            "session: Bank has ended. How it ended is not known.",
        ]
    );
    harness.advance(answer::UNEXPECTED_CLOSE_GUARD_MS);
    assert_eq!(harness.subscriber.unambiguous_question(harness.now).unwrap().number, 1);
    assert_eq!(harness.subscriber.sessions().count(), 1);
}

#[test]
fn a_session_not_reported_again_after_a_gap_is_over() {
    let mut harness = SubscriberHarness::new();
    harness.receive("session.started", r#""summary_normal":"Hm.""#);
    harness.receive_text(r#"{"type":"sayso:gap","subscription_id":"sub_1","last_event_id":"evt_1"}"#);
    assert_eq!(
        harness.advance(GAP_RECOVERY_WINDOW_MS),
        ["session: Bank has ended. How it ended is not known."]
    );
}

#[test]
fn held_announcements_wait_while_the_connection_is_lost() {
    let mut harness = SubscriberHarness::new();
    harness.receive("session.started", r#""summary_normal":"Hello.""#);
    harness.receive("state.changed", r#""from_state":"idle","to_state":"thinking""#);
    harness.receive("progress.updated", r#""progress":{"percent":10}"#);
    harness.receive("progress.updated", r#""progress":{"percent":20}"#);
    harness.subscriber.suspend_held();
    assert!(harness.advance(60_000).is_empty());
    harness.subscriber.release_held(harness.now);
    assert_eq!(harness.drain_lines(), ["agent: Bank is thinking.", "progress: 20 percent."]);
}
