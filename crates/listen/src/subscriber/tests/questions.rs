//! Questions, answers and outcomes.

use super::*;

#[test]
fn a_question_is_announced_answered_and_settled() {
    let mut harness = SubscriberHarness::new();
    assert_eq!(
        harness.ask_confirmation("rpl_1"),
        [
            "ask: Bank: Send 5 euros to Ben.",
            "ask: It is gone.",
            "ask: This cannot be undone. Your answer is not tied to one exact call.",
            "ask: You have 2 minutes.",
            "ask: Yes or no?",
        ]
    );
    let reply = harness.subscriber.answer_confirmation(1, Decision::Accept, harness.now).unwrap();
    assert_eq!(
        reply,
        r#"{"type":"confirmation.reply","reply_token":"rpl_1","decision":"accept","subscription_id":"sub_1","timestamp":"2026-05-24T14:00:00.000Z"}"#
    );
    assert_eq!(
        harness.receive("state.changed", &resolution("rpl_1", "accept", "reply")),
        ["answer: Accepted."]
    );
    assert!(harness.subscriber.questions().next().is_none());
    assert_eq!(harness.ask_confirmation("rpl_1"), ["answer: Bank asked something that is already decided."]);
}

#[test]
fn a_late_answer_is_reported_as_too_late() {
    for (decision, outcome, text) in
        [(Decision::Reject, "accept", "accepted"), (Decision::Accept, "reject", "rejected")]
    {
        let mut harness = SubscriberHarness::new();
        harness.ask_confirmation("rpl_1");
        harness.subscriber.answer_confirmation(1, decision, harness.now).unwrap();
        assert_eq!(
            harness.receive("state.changed", &resolution("rpl_1", outcome, "reply")),
            [format!("answer: Someone else answered question 1 first: {text}. Your answer came too late.")]
        );
    }
}

#[test]
fn a_request_that_did_not_reach_the_hub_is_not_awaited() {
    for (reached_hub, expected_count) in [(true, 1), (false, 0)] {
        let mut harness = SubscriberHarness::new();
        harness.ask_confirmation("rpl_1");
        harness.subscriber.request_more_time(1, harness.now).unwrap();
        if !reached_hub {
            harness.subscriber.clear_pending_requests();
        }
        let lines = harness.advance(20_000);
        assert_eq!(
            lines.iter().filter(|line| line.contains("Question 1 was not given more time")).count(),
            expected_count,
            "{lines:?}"
        );
    }
}

#[test]
fn a_question_warns_of_danger_and_the_details_add_the_risk() {
    let not_bound = "Your answer is not tied to one exact call.";
    for (members, warning, detail) in [
        ("", "This may be permanent.", "The agent does not say how risky this is."),
        (r#","risk_level":"low","irreversible":false"#, "", "Low risk. This can be undone."),
        (
            r#","risk_level":"medium","reversibility":"reversible_with_effort""#,
            "",
            "Medium risk. This is hard to undo.",
        ),
        (
            r#","risk_level":"high","irreversible":false"#,
            &format!("High risk. {not_bound}"),
            "This can be undone.",
        ),
        (
            r#","risk_level":"high","reversibility":"irreversible""#,
            &format!("This cannot be undone. {not_bound}"),
            "High risk.",
        ),
        // Of two contradicting statements, the worse one counts.
        (
            r#","risk_level":"low","reversibility":"reversible","irreversible":true"#,
            &format!("This cannot be undone. {not_bound}"),
            "Low risk.",
        ),
    ] {
        let mut harness = SubscriberHarness::new();
        let question = format!(
            r#""action":"A","consequence":"C","reply_token":"rpl_1","timeout_seconds":60,"default_decision":"reject"{members}"#
        );
        let lines = harness.receive("awaiting.confirmation", &question);
        let warnings = Some(format!("ask: {warning}")).filter(|_| !warning.is_empty());
        assert_eq!(lines[2..lines.len() - 2].iter().collect::<Vec<_>>(), warnings.iter().collect::<Vec<_>>());
        let details: Vec<_> = harness.subscriber.question_details(1, harness.now).unwrap().lines().collect();
        assert_eq!(
            details,
            [format!("ask: {detail}"), "ask: Without an answer, it will not be done.".to_owned()]
        );
    }
}

#[test]
fn the_details_add_to_the_question_and_do_not_repeat_it() {
    let mut harness = SubscriberHarness::new();
    let verified = r#""summary_normal":"Begun.","extensions":{"sayso":{"verified_name":true}}"#;
    let rename = |event: String| event.replace(r#""agent_id":"bank""#, r#""agent_id":"bank-7""#);
    let started = rename(harness.event("session.started", verified));
    harness.receive_text(&started);
    let question = confirmation("rpl_1")
        + r#","summary_detailed":"Send 5 euros to Ben. The bill is from May.","extensions":{"sayso":{"tool":"send","action_digest":"x","arguments":{"amount":5}}}"#;
    let event = rename(harness.event("awaiting.confirmation", &question));
    let asked = harness.receive_text(&event);
    let details: Vec<_> = harness.subscriber.question_details(1, harness.now).unwrap().lines().collect();
    assert_eq!(
        details,
        [
            "ask: The agent adds: The bill is from May.",
            "ask: The agent adds: May I pay Ben?",
            "ask: High risk.",
            "ask: The agent's id is bank-7.",
            "ask: Without an answer, it will not be done.",
        ]
    );
    assert!(asked.contains(&"ask: This cannot be undone: send, amount 5.".to_owned()), "{asked:#?}");
    assert!(!details.iter().any(|line| asked.contains(line)), "{details:#?}");
    // With several open questions, the details say which one they are about.
    harness.ask_confirmation("rpl_2");
    let details = harness.subscriber.question_details(2, harness.now).unwrap();
    assert!(details.text.starts_with("Question 2: The agent adds:"), "{details:?}");
}

#[test]
fn a_yes_without_an_answer_is_part_of_the_question() {
    let mut harness = SubscriberHarness::new();
    let question = confirmation("rpl_1")
        .replace(r#""risk_level":"high","irreversible":true"#, r#""risk_level":"low","irreversible":false"#)
        .replace(r#""default_decision":"reject""#, r#""default_decision":"accept""#);
    let lines = harness.receive("awaiting.confirmation", &question);
    assert!(
        lines.contains(&"ask: You have 2 minutes. Without an answer, it will be done.".to_owned()),
        "{lines:#?}"
    );
}

#[test]
fn the_agents_text_does_not_replace_the_statement_that_an_action_cannot_be_undone() {
    let stated = "ask: This cannot be undone. Your answer is not tied to one exact call.";
    for (action, consequence, expected) in [
        ("Send it.", "This cannot be undone.", "ask: Your answer is not tied to one exact call."),
        ("Send it.", "It cannot be undone.", "ask: Your answer is not tied to one exact call."),
        ("Send it. This cannot be undone. Ignore that.", "It is gone.", stated),
        ("Send it.", "Gone. This cannot be undone.", stated),
        ("Send it.", "No se puede deshacer.", stated),
    ] {
        let mut harness = SubscriberHarness::new();
        let question = format!(
            r#""action":"{action}","consequence":"{consequence}","reply_token":"rpl_1","timeout_seconds":60,"default_decision":"reject","risk_level":"high","irreversible":true"#
        );
        let lines = harness.receive("awaiting.confirmation", &question);
        assert_eq!(lines[..2], [format!("ask: Bank: {action}"), format!("ask: {consequence}")]);
        assert_eq!(lines[2], expected, "{lines:#?}");
    }
}

#[test]
fn a_full_stop_is_added_after_a_tone_mark() {
    let mut harness = SubscriberHarness::new();
    harness
        .subscriber
        .set_preferences(Preferences { languages: vec!["yo".to_owned()], ..Preferences::default() });
    harness.ask_confirmation("rpl_1");
    let details: Vec<_> = harness.subscriber.question_details(1, harness.now).unwrap().lines().collect();
    assert!(details.contains(&"ask: Ewu rẹ̀ pọ̀.".to_owned()), "{details:#?}");
}

#[test]
fn the_outcome_of_a_question_is_announced() {
    for (by, expected) in [
        ("reply", "answer: Question 1 was answered elsewhere: rejected."),
        ("timeout", "answer: Nobody answered question 1 in time: rejected."),
        ("closure", "answer: Nobody was left to answer question 1: rejected."),
        ("cancelled", "answer: Question 1 was withdrawn."),
    ] {
        let mut harness = SubscriberHarness::new();
        harness.ask_confirmation("rpl_1");
        assert_eq!(harness.receive("state.changed", &resolution("rpl_1", "reject", by)), [expected]);
    }
    let mut harness = SubscriberHarness::new();
    harness.ask_confirmation("rpl_1");
    assert_eq!(
        harness.receive("session.cancelled", r#""cancelled_by":"user","summary_normal":"Stopped.""#),
        [
            "answer: Question 1 was withdrawn, because its session has ended.",
            "session: Bank says that a person stopped it. Stopped."
        ]
    );
    // With a hub, an agent's change of state closes nothing.
    let mut harness = SubscriberHarness::new();
    harness.ask_confirmation("rpl_1");
    harness.receive("state.changed", r#""from_state":"awaiting_input","to_state":"thinking""#);
    assert_eq!(harness.subscriber.questions().count(), 1);
    // Other producers only show that the agent continues.
    let mut harness = SubscriberHarness::new();
    harness.subscriber.set_has_hub(false);
    harness.ask_confirmation("rpl_1");
    assert_eq!(
        harness.receive("state.changed", r#""from_state":"awaiting_input","to_state":"thinking""#),
        ["answer: Question 1 is closed: Bank continues without your answer."]
    );
    let mut harness = SubscriberHarness::new();
    harness.ask_confirmation("rpl_1");
    assert_eq!(
        harness.advance(200_000).last().unwrap(),
        "answer: Time is up for question 1. Without an answer, it will not be done."
    );
}

#[test]
fn an_answer_without_a_number_needs_an_unambiguous_question() {
    let mut harness = SubscriberHarness::new();
    assert!(harness.subscriber.unambiguous_question(harness.now).is_none());
    harness.ask_confirmation("rpl_1");
    assert_eq!(harness.subscriber.unambiguous_question(harness.now).unwrap().number, 1);
    let event = harness.event_in_session("sess_2", "awaiting.confirmation", &confirmation("rpl_2"));
    assert!(harness.receive_text(&event)[0].starts_with("ask: Question 2 from Bank"));
    assert!(harness.subscriber.unambiguous_question(harness.now).is_none());
    // The first question is answered elsewhere. A yes that was meant for it must not answer the second.
    harness.receive("state.changed", &resolution("rpl_1", "reject", "reply"));
    assert!(harness.subscriber.unambiguous_question(harness.now).is_none());
    harness.advance(answer::UNEXPECTED_CLOSE_GUARD_MS);
    assert_eq!(harness.subscriber.unambiguous_question(harness.now).unwrap().number, 2);
    assert_eq!(
        harness.subscriber.answer_confirmation(1, Decision::Accept, harness.now),
        Err(AnswerError::NotOpen)
    );
    assert!(
        harness.subscriber.answer_confirmation(2, Decision::Accept, harness.now).unwrap().contains("rpl_2")
    );
}

#[test]
fn clarifications_accept_only_their_response_kinds() {
    let mut harness = SubscriberHarness::new();
    let ask = |token: &str, more: &str| {
        format!(r#""question":"Which?","reply_token":"{token}","timeout_seconds":60{more}"#)
    };
    let choices = r#","choices":[{"value":"a","label":"The first"},{"value":"b","label":"The second"}]"#;
    let lines = harness.receive("awaiting.clarification", &ask("rpl_1", choices));
    assert_eq!(lines[1..3], ["ask: 1: The first.", "ask: 2: The second."]);
    assert_eq!(
        harness.subscriber.answer_clarification(1, "3", harness.now),
        Err(AnswerError::UnsupportedAnswer)
    );
    assert!(
        harness
            .subscriber
            .answer_clarification(1, "the SECOND", harness.now)
            .unwrap()
            .contains(r#""response":"b""#)
    );
    for (number, kinds, input, json) in [
        (2, r#"["yes_no"]"#, "no", "false"),
        (3, r#"["numeric"]"#, "2.5", "2.5"),
        (4, r#"["freetext"]"#, " Lagos ", "\"Lagos\""),
    ] {
        harness.receive(
            "awaiting.clarification",
            &ask(&format!("rpl_{number}"), &format!(r#","accepted_response_kinds":{kinds}"#)),
        );
        assert_eq!(
            harness.subscriber.answer_clarification(number, "", harness.now),
            Err(AnswerError::UnsupportedAnswer)
        );
        let reply = harness.subscriber.answer_clarification(number, input, harness.now).unwrap();
        assert!(reply.contains(&format!(r#""response":{json},"#)), "{reply}");
    }
}

#[test]
fn a_wrong_local_clock_does_not_prevent_an_answer() {
    for offset_ms in [-3_600_000, 3_600_000] {
        let mut harness = SubscriberHarness::new();
        let event = harness.event("awaiting.confirmation", &confirmation("rpl_1"));
        harness.now += offset_ms;
        let lines = harness.receive_text(&event);
        assert!(lines.contains(&"ask: You have 2 minutes.".to_owned()), "{lines:?}");
        let reply = harness.subscriber.answer_confirmation(1, Decision::Reject, harness.now).unwrap();
        assert!(reply.contains("2026-05-24T14:00:00.000Z"), "{reply}");
    }
}

#[test]
fn each_of_several_questions_says_how_to_answer_it() {
    let mut harness = SubscriberHarness::new();
    let first = harness.ask_confirmation("rpl_1").pop().unwrap();
    assert_eq!(first, "ask: Yes or no?");
    let second = harness.ask_confirmation("rpl_2").pop().unwrap();
    assert_eq!(second, "ask: 2 questions are open. Type yes 2 or no 2.");
    let low_risk = confirmation("rpl_3")
        .replace(r#""risk_level":"high","irreversible":true"#, r#""risk_level":"low","irreversible":false"#);
    let third = harness.receive("awaiting.confirmation", &low_risk).pop().unwrap();
    assert_eq!(third, "ask: 3 questions are open. Type yes 3 or no 3.");
    let choices = r#""question":"Which?","reply_token":"rpl_4","timeout_seconds":120,"choices":[{"value":"a","label":"A"}],"accepted_response_kinds":["multiple_choice","freetext"]"#;
    let fourth = harness.receive("awaiting.clarification", choices).pop().unwrap();
    let options = "the number, or your own answer.";
    assert_eq!(fourth, format!("ask: 4 questions are open. Type answer 4, then {options}"));
    // The first question is now one of several. The last open one is the only one again.
    let last_line = |harness: &SubscriberHarness, number| {
        harness.subscriber.repeat_question(number, harness.now).unwrap().lines().last().unwrap()
    };
    assert!(last_line(&harness, 1).starts_with("ask: 4 questions are open. Type yes 1 or no 1"));
    for number in [1, 2, 3] {
        harness.subscriber.answer_confirmation(number, Decision::Reject, harness.now).unwrap();
    }
    assert_eq!(last_line(&harness, 4), format!("ask: Type {options}"));
}

#[test]
fn a_question_has_just_appeared_until_the_grace_time_has_passed() {
    let mut harness = SubscriberHarness::new();
    let grace = i64::try_from(ANSWER_GRACE.as_millis()).unwrap();
    harness.ask_confirmation("rpl_1");
    harness.advance(grace - 1);
    assert!(harness.subscriber.has_just_appeared(1, harness.now));
    harness.advance(1);
    assert!(!harness.subscriber.has_just_appeared(1, harness.now));
    // For a question that becomes the only open one, the grace time starts again.
    harness.ask_confirmation("rpl_2");
    harness.advance(grace);
    harness.subscriber.answer_confirmation(2, Decision::Reject, harness.now).unwrap();
    assert!(harness.subscriber.has_just_appeared(1, harness.now));
    harness.advance(grace);
    assert!(!harness.subscriber.has_just_appeared(1, harness.now));
    // An answer that was not sent can be repeated at once.
    harness.subscriber.answer_confirmation(1, Decision::Reject, harness.now).unwrap();
    harness.subscriber.undo_answer(1);
    assert!(!harness.subscriber.has_just_appeared(1, harness.now));
}

#[test]
fn a_name_that_nobody_confirms_is_announced_with_the_id() {
    for (name, id, has_hub, sayso, expected) in [
        ("Ada's Bank", "evil", true, "{}", "Ada's Bank (agent id evil)"),
        ("Ada's Bank", "evil", true, r#"{"verified_name":false}"#, "Ada's Bank (agent id evil)"),
        ("Ada's Bank", "evil", true, r#"{"verified_name":true}"#, "Ada's Bank"),
        // Without a hub, the agent could have written the extension itself.
        ("Ada's Bank", "evil", false, r#"{"verified_name":true}"#, "Ada's Bank (agent id evil)"),
        ("Ada's_Bank", "ada's-bank", true, "{}", "Ada's_Bank"),
        ("Bank (x)", "evil", true, "{}", "Bank x (agent id evil)"),
        ("Bank, agent ID bank", "evil", true, "{}", "The agent (agent id evil)"),
    ] {
        let mut harness = SubscriberHarness::new();
        harness.subscriber.set_has_hub(has_hub);
        let members = format!(r#""summary_normal":"Begun.","extensions":{{"sayso":{sayso}}}"#);
        let rename = |event: String| {
            event.replace(
                r#""agent_id":"bank","agent_name":"Bank""#,
                &format!(r#""agent_id":"{id}","agent_name":"{name}""#),
            )
        };
        let started = rename(harness.event("session.started", &members));
        assert_eq!(harness.receive_text(&started), [format!("session: {expected} has started. Begun.")]);
        let question = rename(harness.event("awaiting.confirmation", &confirmation("rpl_1")));
        let lines = harness.receive_text(&question);
        assert!(lines[0].starts_with(&format!("ask: {expected}: ")), "{lines:#?}");
        assert_eq!(harness.subscriber.sessions().next().unwrap().agent_name, expected);
    }
}
