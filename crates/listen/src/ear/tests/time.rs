//! How long there is to answer.

use super::*;

#[test]
fn time_is_said_at_half_and_at_a_tenth_and_can_be_had_more() {
    let mut stage = Stage::new();
    stage.ask("rpl_1");
    assert_eq!(
        stage.pass(119_000),
        [
            "ask: You have 60 seconds left for question 1. Type more time if you need more.",
            "ask: You have 12 seconds left for question 1. Type more time if you need more.",
        ]
    );
    let wish = stage.ear.more_time(1, stage.now).unwrap();
    assert!(wish.starts_with(r#"{"type":"sayso:deadline.extend","reply_token":"rpl_1""#), "{wish}");
    assert_eq!(stage.ear.time_left(1, stage.now).unwrap(), "1 second", "only the hub gives more");
    let more = "ask: There is more time for question 1. It now stays open for 2 minutes.";
    assert_eq!(stage.hear("progress.updated", &more_time("rpl_1", 240)), [more]);
    assert_eq!(stage.hear("progress.updated", &more_time("rpl_1", 240)), [""; 0], "once");
    assert_eq!(
        stage.pass(9_999),
        ["ask: You have 2 minutes left for question 1. Type more time if you need more."]
    );
    assert_eq!(stage.pass(2), [""; 0], "the wish was granted");
    stage.hear("progress.updated", &more_time("rpl_1", 1200));
    assert_eq!(stage.ear.more_time(1, stage.now), Err(NotAnswered::NoMoreTime));
}

/// The hub tells that a question can be answered until so many seconds after noon.
fn more_time(token: &str, seconds: i64) -> String {
    let until = aaep::Timestamp::from_unix_millis(NOON + seconds * 1000).unwrap();
    format!(
        r#""progress":{{"description":"x"}},"summary_normal":"There is more time.","extensions":{{"sayso":{{"extended":"{token}","deadline":"{until}"}}}}"#
    )
}

#[test]
fn of_a_short_question_time_is_said_while_there_is_enough_to_answer() {
    for (seconds, expected) in [("30", &["15 seconds"][..]), ("60", &["30 seconds", "6 seconds"]), ("9", &[])]
    {
        let mut stage = Stage::new();
        stage.hear("awaiting.confirmation", &confirmation("rpl_1").replace("120", seconds));
        let expected: Vec<_> = expected
            .iter()
            .map(|left| format!("ask: You have {left} left for question 1. Type more time if you need more."))
            .collect();
        assert_eq!(stage.pass(seconds.parse::<i64>().unwrap() * 1000 - 1), expected);
    }
}

#[test]
fn more_time_that_somebody_else_asked_for_is_had_here_too() {
    let mut stage = Stage::new();
    stage.ask("rpl_1");
    stage.pass(100_000);
    let told = stage.hear("progress.updated", &more_time("rpl_1", 240));
    assert_eq!(told, ["ask: There is more time for question 1. It now stays open for 2 minutes."]);
    let until_end = stage.pass(139_999);
    assert_eq!(until_end.len(), 2, "half and a tenth are said anew: {until_end:?}");
    assert!(stage.ear.decide(1, Decision::Accept, stage.now).is_ok());
    // What is told of a question that is settled, or of none, is nothing to be said.
    stage.hear("state.changed", &settled("rpl_1", "accept", "reply"));
    assert_eq!(stage.hear("progress.updated", &more_time("rpl_1", 480)), [""; 0]);
    assert_eq!(stage.hear("progress.updated", &more_time("rpl_9", 480)), [""; 0]);
}

#[test]
fn time_is_never_taken_away_and_only_the_mark_gives_it() {
    let mut stage = Stage::new();
    stage.ask("rpl_1");
    assert_eq!(stage.hear("progress.updated", &more_time("rpl_1", 60)), [""; 0]);
    let words = more_time("rpl_1", 240).replace("sayso", "other");
    assert_eq!(stage.hear("progress.updated", &words), ["progress: There is more time."]);
    let at_state = more_time("rpl_1", 240).replace(
        r#""progress":{"description":"x"}"#,
        r#""from_state":"awaiting_input","to_state":"awaiting_input""#,
    );
    stage.hear("state.changed", &at_state);
    assert_eq!(stage.ear.time_left(1, stage.now).unwrap(), "2 minutes");
}

#[test]
fn who_asks_for_more_time_and_gets_none_is_told_so() {
    let mut stage = Stage::new();
    stage.ask("rpl_1");
    stage.ear.more_time(1, stage.now).unwrap();
    assert_eq!(
        stage.pass(10_000),
        ["ask: The hub has not given question 1 more time. It stays open for 115 seconds."]
    );
    assert_eq!(stage.pass(10_000), [""; 0], "once");
}

#[test]
fn who_joins_late_has_the_time_that_is_left() {
    // In front of the question it is told how much time it has.
    let mut stage = Stage::new();
    let question = stage.event("awaiting.confirmation", &confirmation("rpl_1"));
    stage.now += 150_000;
    assert_eq!(stage.hear("progress.updated", &more_time("rpl_1", 240)), [""; 0]);
    let told = stage.hear_text(&question);
    assert!(
        told.iter().any(|line| line == "ask: You have 90 seconds. Without an answer it is not done."),
        "{told:?}"
    );
    // Behind it, where it is told what was missed: until then the clock here seemed to be wrong.
    let mut stage = Stage::new();
    let question = stage.event("awaiting.confirmation", &confirmation("rpl_1"));
    stage.now += 100_000;
    let more = stage.event("progress.updated", &more_time("rpl_1", 240));
    stage.now += 50_000;
    stage.hear_text(&question);
    assert_eq!(
        stage.hear_text(&more),
        ["ask: There is more time for question 1. It now stays open for 90 seconds."]
    );
    // A clock that is wrong stays wrong.
    let mut stage = Stage::new();
    let question = stage.event("awaiting.confirmation", &confirmation("rpl_1"));
    stage.now += 10_000;
    let more = stage.event("progress.updated", &more_time("rpl_1", 240));
    stage.now += 3_600_000;
    stage.ear.hear(&question, stage.now - 10_000);
    stage.said();
    assert_eq!(
        stage.hear_text(&more),
        ["ask: There is more time for question 1. It now stays open for 3 minutes."]
    );
}

#[test]
fn a_reminder_of_the_hub_is_known_by_its_mark_and_not_by_its_words() {
    let words = r#""progress":{"description":"60 seconds are left to answer."}"#;
    let mark = |token: &str| format!(r#"{words},"extensions":{{"sayso":{{"reminds_of":"{token}"}}}}"#);
    let mut stage = Stage::new();
    stage.ask("rpl_1");
    assert_eq!(stage.hear("progress.updated", &mark("rpl_1")), [""; 0], "it is said here by this clock");
    assert_eq!(stage.hear("progress.updated", words), ["progress: 60 seconds are left to answer."]);
    stage.pass(10_000);
    assert_eq!(
        stage.hear("progress.updated", &mark("rpl_2").replace("60", "50")),
        ["progress: 50 seconds are left to answer."]
    );
}

#[test]
fn what_the_hub_says_of_a_state_is_said_here_in_words_of_ours() {
    let words = |from: &str, to: &str, mark: &str| {
        format!(
            r#""urgency":"normal","from_state":"{from}","to_state":"{to}","summary_terse":"Hub.","summary_normal":"The hub's words.","extensions":{{"sayso":{{{mark}}}}}"#
        )
    };
    let mark = r#""words":"hub""#;
    let mut stage = Stage::new();
    assert_eq!(
        stage.hear("state.changed", &words("thinking", "thinking", mark)),
        ["agent: Bank is thinking."]
    );
    assert!(stage.hear("state.changed", &words("thinking", "writing_output", mark)).is_empty());
    assert_eq!(stage.pass(STATE_LASTS), ["agent: Bank is writing."]);
    stage.ask("rpl_1");
    let told = stage.hear(
        "state.changed",
        &words(
            "awaiting_input",
            "calling_tool",
            r#""reply_token":"rpl_1","decision":"reject","by":"timeout""#,
        ),
    );
    assert_eq!(told, ["answer: Nobody answered question 1 in time: it is not done."]);
    assert_eq!(
        stage.pass(STATE_LASTS),
        ["agent: Bank is using a tool."],
        "and not how it was resolved once more"
    );
    // An agent's words are said as they are.
    stage.hear("state.changed", &words("calling_tool", "deciding", r#""words":"agent""#));
    assert_eq!(stage.pass(STATE_LASTS), ["agent: The hub's words."]);
}

#[test]
fn as_much_time_again_is_heard_as_more() {
    let mut stage = Stage::new();
    let asked = confirmation("rpl_1").replace(":120", ":5");
    stage.hear("awaiting.confirmation", &asked);
    stage.now += 800;
    for (seconds, left) in [(10, "10 seconds"), (15, "14 seconds"), (20, "19 seconds"), (25, "25 seconds")] {
        stage.now += 100;
        let more = format!("ask: There is more time for question 1. It now stays open for {left}.");
        assert_eq!(stage.hear("progress.updated", &more_time("rpl_1", seconds)), [more]);
    }
    for (seconds, left) in [(13_500, "14 seconds"), (18_200, "19 seconds"), (23_000, "20 seconds")] {
        assert_eq!(words::duration(Phrases::of(&[]), seconds), left);
    }
}
