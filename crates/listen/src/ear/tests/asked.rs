//! Questions, answers, and what became of them.

use super::*;

#[test]
fn a_question_is_asked_answered_and_settled() {
    let mut stage = Stage::new();
    assert_eq!(
        stage.ask("rpl_1"),
        [
            "ask: Question 1, from Bank: May I pay Ben?",
            "ask: What it would do: Send 5 euro to Ben.",
            "ask: What follows from it: It is gone.",
            "ask: The risk is high, and it can never be undone.",
            "ask: You have 2 minutes. Without an answer it is not done.",
            "ask: Type the whole word accept or yes to allow it, or reject or no to refuse it.",
        ]
    );
    let reply = stage.ear.decide(1, Decision::Accept, stage.now).unwrap();
    assert_eq!(
        reply,
        r#"{"type":"confirmation.reply","reply_token":"rpl_1","decision":"accept","subscription_id":"sub_1","timestamp":"2026-05-24T14:00:00.000Z"}"#
    );
    assert_eq!(stage.ear.decide(1, Decision::Accept, stage.now), Err(NotAnswered::Twice));
    assert_eq!(
        stage.hear("state.changed", &settled("rpl_1", "accept", "reply")),
        ["answer: Your answer to question 1 counts: it may be done."]
    );
    assert!(stage.ear.questions().next().is_none());
    assert_eq!(stage.ask("rpl_1"), ["answer: Bank asked something that is settled already."]);
}

#[test]
fn who_was_not_the_first_is_not_told_that_it_counts() {
    for (said, became, told) in
        [(Decision::Reject, "accept", "it may be done"), (Decision::Accept, "reject", "it is not done")]
    {
        let mut stage = Stage::new();
        stage.ask("rpl_1");
        stage.ear.decide(1, said, stage.now).unwrap();
        assert_eq!(
            stage.hear("state.changed", &settled("rpl_1", became, "reply")),
            [format!("answer: Somebody else answered question 1 first: {told}. Your answer came too late.")]
        );
    }
}

#[test]
fn of_a_wish_that_did_not_reach_the_hub_nothing_more_is_said() {
    for (reached, told) in [(true, 1), (false, 0)] {
        let mut stage = Stage::new();
        stage.ask("rpl_1");
        stage.ear.more_time(1, stage.now).unwrap();
        if !reached {
            stage.ear.wish_not_sent();
        }
        let said = stage.pass(20_000);
        assert_eq!(said.iter().filter(|line| line.contains("has not given")).count(), told, "{said:?}");
    }
}

#[test]
fn how_bad_it_could_be_is_said_as_far_as_it_is_known() {
    for (said, told) in [
        ("", "The agent does not say how great the risk is. Whether it can be undone is not said."),
        (r#","risk_level":"low","irreversible":false"#, "The risk is low. It can be undone."),
        (
            r#","risk_level":"medium","reversibility":"reversible_with_effort""#,
            "The risk is medium, and it is hard to undo.",
        ),
        (
            r#","risk_level":"high","reversibility":"irreversible""#,
            "The risk is high, and it can never be undone.",
        ),
        // Of two that do not agree, the worse holds.
        (
            r#","risk_level":"low","reversibility":"reversible","irreversible":true"#,
            "The risk is low, and it can never be undone.",
        ),
    ] {
        let mut stage = Stage::new();
        let question = format!(
            r#""action":"A","consequence":"C","reply_token":"rpl_1","timeout_seconds":60,"default_decision":"reject"{said}"#
        );
        let lines = stage.hear("awaiting.confirmation", &question);
        assert!(lines.contains(&format!("ask: {told}")), "{lines:#?}");
    }
}

#[test]
fn how_a_question_went_away_is_said() {
    for (by, said) in [
        ("reply", "answer: Question 1 was answered elsewhere: it is not done."),
        ("timeout", "answer: Nobody answered question 1 in time: it is not done."),
        ("closure", "answer: Nobody was left to answer question 1: it is not done."),
        ("cancelled", "answer: Question 1 is withdrawn: it is not done."),
    ] {
        let mut stage = Stage::new();
        stage.ask("rpl_1");
        assert_eq!(stage.hear("state.changed", &settled("rpl_1", "reject", by)), [said]);
    }
    let mut stage = Stage::new();
    stage.ask("rpl_1");
    assert_eq!(
        stage.hear("session.cancelled", r#""cancelled_by":"user","summary_normal":"Stopped.""#),
        [
            "answer: Question 1 is withdrawn, because its session is over.",
            "session: Bank was stopped by a person. Stopped."
        ]
    );
    // Of other producers it is only known that the agent goes on.
    let mut stage = Stage::new();
    stage.ask("rpl_1");
    assert_eq!(
        stage.hear("state.changed", r#""from_state":"awaiting_input","to_state":"thinking""#),
        ["answer: Question 1 is closed: Bank goes on without your answer."]
    );
    let mut stage = Stage::new();
    stage.ask("rpl_1");
    assert_eq!(
        stage.pass(200_000).last().unwrap(),
        "answer: The time for question 1 is over. Without an answer it is not done."
    );
}

#[test]
fn an_answer_without_a_number_is_for_the_only_question_that_could_be_meant() {
    let mut stage = Stage::new();
    assert!(stage.ear.only_question(stage.now).is_none());
    stage.ask("rpl_1");
    assert_eq!(stage.ear.only_question(stage.now).unwrap().number, 1);
    let event = stage.event_of("sess_2", "awaiting.confirmation", &confirmation("rpl_2"));
    assert!(stage.hear_text(&event)[0].starts_with("ask: In session 2: Question 2, from Bank"));
    assert!(stage.ear.only_question(stage.now).is_none());
    // The first goes away by itself: a yes on its way must not hit the second.
    stage.hear("state.changed", &settled("rpl_1", "reject", "reply"));
    assert!(stage.ear.only_question(stage.now).is_none());
    stage.pass(answer::SURPRISE);
    assert_eq!(stage.ear.only_question(stage.now).unwrap().number, 2);
    assert_eq!(stage.ear.decide(1, Decision::Accept, stage.now), Err(NotAnswered::NotOpen));
    assert!(stage.ear.decide(2, Decision::Accept, stage.now).unwrap().contains("rpl_2"));
}

#[test]
fn clarifications_take_what_they_say_they_take() {
    let mut stage = Stage::new();
    let ask = |token: &str, more: &str| {
        format!(r#""question":"Which?","reply_token":"{token}","timeout_seconds":60{more}"#)
    };
    let choices = r#","choices":[{"value":"a","label":"The first"},{"value":"b","label":"The second"}]"#;
    let said = stage.hear("awaiting.clarification", &ask("rpl_1", choices));
    assert_eq!(said[1..3], ["ask: Choice 1: The first.", "ask: Choice 2: The second."]);
    assert_eq!(stage.ear.respond(1, "3", stage.now), Err(NotAnswered::NotTaken));
    assert!(stage.ear.respond(1, "the SECOND", stage.now).unwrap().contains(r#""response":"b""#));
    for (number, kinds, said, json) in [
        (2, r#"["yes_no"]"#, "no", "false"),
        (3, r#"["numeric"]"#, "2.5", "2.5"),
        (4, r#"["freetext"]"#, " Lagos ", "\"Lagos\""),
    ] {
        stage.hear(
            "awaiting.clarification",
            &ask(&format!("rpl_{number}"), &format!(r#","accepted_response_kinds":{kinds}"#)),
        );
        assert_eq!(stage.ear.respond(number, "", stage.now), Err(NotAnswered::NotTaken));
        let reply = stage.ear.respond(number, said, stage.now).unwrap();
        assert!(reply.contains(&format!(r#""response":{json},"#)), "{reply}");
    }
}

#[test]
fn a_clock_that_is_wrong_here_costs_nobody_an_answer() {
    for ahead in [-3_600_000, 3_600_000] {
        let mut stage = Stage::new();
        let event = stage.event("awaiting.confirmation", &confirmation("rpl_1"));
        stage.now += ahead;
        let said = stage.hear_text(&event);
        assert!(
            said.contains(&"ask: You have 2 minutes. Without an answer it is not done.".to_owned()),
            "{said:?}"
        );
        let reply = stage.ear.decide(1, Decision::Reject, stage.now).unwrap();
        assert!(reply.contains("2026-05-24T14:00:00.000Z"), "{reply}");
    }
}

#[test]
fn of_several_questions_each_says_how_it_alone_is_answered() {
    let mut stage = Stage::new();
    let first = stage.ask("rpl_1").pop().unwrap();
    assert_eq!(first, "ask: Type the whole word accept or yes to allow it, or reject or no to refuse it.");
    let second = stage.ask("rpl_2").pop().unwrap();
    let grave = "in whole words to allow this one, or reject 2 or no 2 to refuse it.";
    assert_eq!(second, format!("ask: 2 questions are open. Type accept 2 or yes 2 {grave}"));
    let light = confirmation("rpl_3")
        .replace(r#""risk_level":"high","irreversible":true"#, r#""risk_level":"low","irreversible":false"#);
    let third = stage.hear("awaiting.confirmation", &light).pop().unwrap();
    assert_eq!(third, "ask: 3 questions are open. Type yes 3 to allow this one, or no 3 to refuse it.");
    let choices = r#""question":"Which?","reply_token":"rpl_4","timeout_seconds":120,"choices":[{"value":"a","label":"A"}],"accepted_response_kinds":["multiple_choice","freetext"]"#;
    let fourth = stage.hear("awaiting.clarification", choices).pop().unwrap();
    let ways = "the number of a choice, or your answer in your own words.";
    assert_eq!(fourth, format!("ask: 4 questions are open. Type answer 4 and {ways}"));
    // The first is one of several now, and the last one that is left is the only one again.
    let again = |stage: &Stage, number| stage.ear.repeat(number, stage.now).unwrap().lines().last().unwrap();
    assert!(again(&stage, 1).starts_with("ask: 4 questions are open. Type accept 1 or yes 1"));
    for number in [1, 2, 3] {
        stage.ear.decide(number, Decision::Reject, stage.now).unwrap();
    }
    assert_eq!(again(&stage, 4), format!("ask: Type {ways}"));
}
