//! Limits, gaps, and what holds after them.

use super::*;

#[test]
fn more_questions_than_can_be_kept_are_said_and_not_kept() {
    let mut stage = Stage::with(Verbosity::Normal, Limits { questions: 3, ..Limits::default() });
    for number in 0..3 {
        stage.ask(&format!("rpl_{number}"));
    }
    assert_eq!(
        stage.ask("rpl_9"),
        [
            "error: Bank asks more than can be kept open here. This cannot be answered here: Send 5 euro to Ben. Without an answer it is not done."
        ]
    );
    assert_eq!(stage.ear.questions().count(), 3);
}

#[test]
fn sessions_ids_and_outputs_stay_within_their_limits() {
    let limits = Limits { sessions: 10, ids: 20, outputs: 2, ..Limits::default() };
    let mut stage = Stage::with(Verbosity::Normal, limits);
    for number in 0..100 {
        let event = stage.event_of(&format!("sess_{number}"), "session.started", r#""summary_normal":"Hm.""#);
        stage.hear_text(&event);
    }
    assert_eq!(stage.ear.sessions().count(), 10);
    let event = stage.event_of("sess_99", "tool.invoked", r#""tool":"t","summary_normal":"Hm.""#);
    assert_eq!(stage.hear_text(&event).len(), 1);
    for number in 0..50 {
        let text = format!(r#""chunk":"Hm. ","position":0,"complete":false,"output_id":"out_{number}""#);
        stage.hear("output.streaming", &text);
    }
    assert!(stage.ear.sessions.iter().all(|session| session.outputs() <= 2));
}

#[test]
fn text_that_is_missing_or_repeated_is_noticed() {
    let mut stage = Stage::new();
    let text = "One is here. Two is here. Three is here.";
    stage.hear("output.streaming", &chunk("One is here. ", 0, false));
    // The same place again, cut otherwise: only what is new is said.
    let mut said = stage.hear("output.streaming", &chunk(&text[..26], 0, false));
    said.extend(stage.hear("output.streaming", &chunk(&text[20..], 20, true)));
    assert_eq!(said, ["agent: One is here.", "agent: Two is here.", "agent: Three is here."]);
    // Another text that claims to stand where one stood already is heard all the same.
    assert_eq!(stage.hear("output.streaming", &chunk("Liar. ", 0, true)), ["agent: Liar."]);
    let mut stage = Stage::new();
    stage.hear("output.streaming", &chunk("One ", 0, false));
    assert_eq!(
        stage.hear("output.streaming", &chunk("Three.", 100, true)),
        ["agent: One", "notice: Some words are missing here; they did not arrive.", "agent: Three."]
    );
}

#[test]
fn a_gap_and_what_holds_after_it_are_told() {
    let mut stage = Stage::new();
    let gap =
        r#"{"type":"sayso:gap","subscription_id":"sub_1","last_event_id":"evt_1","reason_message":"Gone."}"#;
    assert_eq!(
        stage.hear_text(gap),
        ["notice: Some of what was said while you were away is not kept any more. What holds now follows."]
    );
    assert_eq!(
        stage.hear("state.changed", r#""from_state":"thinking","to_state":"thinking""#),
        ["agent: Bank is thinking."]
    );
}

#[test]
fn what_is_not_told_again_after_a_gap_is_over() {
    let mut stage = Stage::new();
    let first = stage.event("awaiting.confirmation", &confirmation("rpl_1"));
    stage.hear_text(&first);
    let event = stage.event_of("sess_2", "awaiting.confirmation", &confirmation("rpl_2"));
    stage.hear_text(&event);
    stage.ear.begin_anew(stage.now);
    // The first session goes on, and its question with it; it is not asked again.
    stage.hear("state.changed", r#""from_state":"awaiting_input","to_state":"awaiting_input""#);
    assert!(stage.hear_text(&first).is_empty());
    assert_eq!(
        stage.pass(UNSURE),
        [
            "answer: Question 2 is not open any more. What became of it was not heard.",
            "session: Bank is over. How it ended was not heard.",
        ]
    );
    stage.pass(answer::SURPRISE);
    assert_eq!(stage.ear.only_question(stage.now).unwrap().number, 1);
    assert_eq!(stage.ear.sessions().count(), 1);
}

#[test]
fn a_session_that_is_not_told_again_after_a_gap_is_over_by_itself() {
    let mut stage = Stage::new();
    stage.hear("session.started", r#""summary_normal":"Hm.""#);
    stage.hear_text(r#"{"type":"sayso:gap","subscription_id":"sub_1","last_event_id":"evt_1"}"#);
    assert_eq!(stage.pass(UNSURE), ["session: Bank is over. How it ended was not heard."]);
}

#[test]
fn what_was_held_is_not_said_while_the_connection_is_lost() {
    let mut stage = Stage::new();
    stage.hear("session.started", r#""summary_normal":"Hello.""#);
    stage.hear("state.changed", r#""from_state":"idle","to_state":"thinking""#);
    stage.hear("progress.updated", r#""progress":{"percent":10}"#);
    stage.hear("progress.updated", r#""progress":{"percent":20}"#);
    stage.ear.set_aside();
    assert!(stage.pass(60_000).is_empty());
    stage.ear.let_go(stage.now);
    assert_eq!(stage.said(), ["agent: Bank is thinking.", "progress: 20 percent."]);
}
