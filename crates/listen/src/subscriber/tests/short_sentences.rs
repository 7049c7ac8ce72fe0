//! Announcements are short, and nothing is announced twice.

use super::*;

fn question(action: &str, consequence: &str, members: &str) -> String {
    format!(
        r#""action":"{action}","consequence":"{consequence}","reply_token":"rpl_1","timeout_seconds":120,"default_decision":"reject",{members}"#
    )
}

fn in_language(language: &str) -> SubscriberHarness {
    let mut harness = SubscriberHarness::new();
    let preferences = Preferences { languages: vec![language.to_owned()], ..Preferences::default() };
    harness.subscriber.set_preferences(preferences);
    harness
}

const BOUND: &str = r#""extensions":{"sayso":{"tool":"book_room","action_digest":"x","arguments":{"room":"Garden","at":"14:00"}}}"#;

#[test]
fn a_consequence_that_says_that_nothing_can_be_undone_is_announced_once() {
    for (language, warning, consequences) in [
        (
            "en",
            "cannot be undone",
            &[
                "It cannot be undone.",
                "this can't be undone",
                "This can’t be undone!",
                "This is irreversible.",
            ][..],
        ),
        (
            "es",
            "se puede deshacer",
            &["No se puede deshacer.", "Esto no se puede deshacer", "Es irreversible."],
        ),
        ("yo", "dá èyí padà", &["A kò lè dá a padà."]),
    ] {
        for consequence in consequences {
            let mut harness = in_language(language);
            let members = format!(r#""irreversible":true,{BOUND}"#);
            let lines =
                harness.receive("awaiting.confirmation", &question("Book it.", consequence, &members));
            let text = lines.join("\n");
            let count = text.matches(warning).count() + usize::from(!text.contains(warning));
            assert_eq!((count, lines.len()), (1, 5), "{lines:#?}");
        }
    }
    // A sentence in another language, or with more words, replaces nothing.
    for consequence in
        ["No se puede deshacer.", "Gone. It cannot be undone.", "It cannot be undone, or can it?"]
    {
        let mut harness = SubscriberHarness::new();
        let members = format!(r#""irreversible":true,{BOUND}"#);
        let lines = harness.receive("awaiting.confirmation", &question("Book it.", consequence, &members));
        assert!(
            lines.iter().any(|line| line.starts_with("ask: This cannot be undone: book room")),
            "{lines:#?}"
        );
    }
}

#[test]
fn after_a_yes_the_warning_is_not_repeated_for_the_same_tool() {
    let call = |tool: &str| format!(r#""tool":"{tool}","irreversible":true,"summary_normal":"Doing it.""#);
    for (decision, tool, expected) in [
        ("accept", "book_room", "tool: Doing it."),
        ("accept", "send_money", "tool: Doing it. This cannot be undone."),
        ("reject", "book_room", "tool: Doing it. This cannot be undone."),
    ] {
        let mut harness = SubscriberHarness::new();
        let members = format!(r#""irreversible":true,{BOUND}"#);
        harness.receive("awaiting.confirmation", &question("Book it.", "Booked.", &members));
        harness.receive("state.changed", &resolution("rpl_1", decision, "reply"));
        assert_eq!(harness.receive("tool.invoked", &call(tool)), [expected]);
        // It is announced again for the next call.
        assert_eq!(harness.receive("tool.invoked", &call(tool)), ["tool: Doing it. This cannot be undone."]);
    }
}

#[test]
fn the_call_of_a_harmless_action_is_in_the_details() {
    let call = "book room, room Garden, at 14:00";
    for (members, warning) in [
        (r#""risk_level":"medium","reversibility":"reversible_with_effort""#, None),
        (r#""risk_level":"low","irreversible":false"#, None),
        (r#""risk_level":"high","irreversible":false"#, Some("High risk")),
        (r#""risk_level":"low","irreversible":true"#, Some("This cannot be undone")),
        (r#""risk_level":"low""#, Some("This may be permanent")),
    ] {
        let mut harness = SubscriberHarness::new();
        let members = format!("{members},{BOUND}");
        let lines = harness.receive("awaiting.confirmation", &question("Book it.", "Booked.", &members));
        let details: Vec<_> = harness.subscriber.question_details(1, harness.now).unwrap().lines().collect();
        let stated = warning.map(|warning| format!("ask: {warning}: {call}."));
        assert_eq!(lines.iter().find(|line| line.contains(call)), stated.as_ref(), "{lines:#?}");
        let exact = format!("ask: The exact call: {call}.");
        assert_eq!(details.contains(&exact), warning.is_none(), "{details:#?}");
    }
}

#[test]
fn the_details_say_only_what_is_new() {
    let mut harness = SubscriberHarness::new();
    let summary = r#""irreversible":true,"risk_level":"high","summary_detailed":"May I send 5 euros to Ben? It cannot be undone. The bill is from May.""#;
    let event =
        harness.event("awaiting.confirmation", &question("Send 5 euros to Ben.", "It is gone.", summary));
    let event = event.replace(r#""agent_id":"bank""#, r#""agent_id":"evil""#);
    let lines = harness.receive_text(&event);
    assert_eq!(lines[0], "ask: Bank (agent id evil): Send 5 euros to Ben.");
    let details: Vec<_> = harness.subscriber.question_details(1, harness.now).unwrap().lines().collect();
    assert_eq!(
        details,
        [
            "ask: The agent adds: The bill is from May.",
            "ask: High risk.",
            "ask: Without an answer, it will not be done.",
        ]
    );
}

#[test]
fn times_are_rounded_to_the_nearest_minute_from_55_seconds_on() {
    for (seconds, expected) in [
        (7, "7 seconds"),
        (20, "20 seconds"),
        (43, "45 seconds"),
        (54, "55 seconds"),
        (55, "1 minute"),
        (61, "1 minute"),
        (115, "2 minutes"),
        (239, "4 minutes"),
        (240, "4 minutes"),
        (7199, "2 hours"),
    ] {
        let mut harness = SubscriberHarness::new();
        let timeout = format!(r#""timeout_seconds":{seconds}"#);
        let asked = confirmation("rpl_1").replace(r#""timeout_seconds":120"#, &timeout);
        let lines = harness.receive("awaiting.confirmation", &asked);
        assert!(lines.contains(&format!("ask: You have {expected}.")), "{seconds}: {lines:#?}");
        let mut harness = SubscriberHarness::new();
        let started = format!(r#""summary_normal":"Begun.","expected_duration_ms":{}"#, seconds * 1000);
        let lines = harness.receive("session.started", &started);
        assert!(seconds < 10 || lines[0].ends_with(&format!("About {expected}.")), "{seconds}: {lines:#?}");
    }
}

#[test]
fn the_announcement_of_a_failed_tool_says_why_it_failed() {
    let mut harness = SubscriberHarness::new();
    let failed =
        r#""tool":"scan","status":"error","summary_normal":"The scan failed.","error_message":"Disk full.""#;
    assert_eq!(harness.receive("tool.completed", failed), ["tool: Failed: The scan failed. Disk full."]);
    let timeout = r#""tool":"scan","status":"timeout","summary_normal":"Scanning took too long.""#;
    assert_eq!(harness.receive("tool.completed", timeout), ["tool: Not finished: Scanning took too long."]);
    let plain = r#""tool":"scan","status":"error""#;
    assert_eq!(harness.receive("tool.completed", plain), ["tool: The tool scan failed."]);
}

#[test]
fn the_persons_own_free_text_answer_is_confirmed_only_once() {
    let mut harness = SubscriberHarness::new();
    let words = r#""question":"Which city?","reply_token":"rpl_1","timeout_seconds":60"#;
    let lines = harness.receive("awaiting.clarification", words);
    assert_eq!(lines.last().unwrap(), "ask: Type your answer.");
    harness.subscriber.answer_clarification(1, "Lyon", harness.now).unwrap();
    let outcome = r#""from_state":"awaiting_input","to_state":"thinking","extensions":{"sayso":{"reply_token":"rpl_1","by":"reply"}}"#;
    assert_eq!(harness.receive("state.changed", outcome), [""; 0]);
    assert!(harness.subscriber.questions().next().is_none());
}

#[test]
fn the_agents_name_is_in_front_if_several_agents_work() {
    let mut harness = SubscriberHarness::new();
    let rename = |event: String| event.replace("bank", "travel").replace("Bank", "Travel");
    harness.receive("session.started", r#""summary_normal":"Begun.""#);
    let started =
        rename(harness.event_in_session("sess_2", "session.started", r#""summary_normal":"Begun.""#));
    assert_eq!(harness.receive_text(&started), ["session: Travel has started, session 2. Begun."]);
    let tool = r#""tool":"t","summary_normal":"Looking.""#;
    assert_eq!(harness.receive("tool.invoked", tool), ["tool: Bank: Looking."]);
    assert_eq!(harness.receive("tool.invoked", tool), ["tool: Looking."]);
    // Questions and their outcomes already say what they are about.
    let asked = rename(harness.event_in_session("sess_2", "awaiting.confirmation", &confirmation("rpl_1")));
    assert!(harness.receive_text(&asked)[0].starts_with("ask: Travel: "));
    let tool = harness.receive("tool.invoked", tool);
    assert_eq!(tool, ["tool: Bank: Looking."]);
    let outcome =
        harness.event_in_session("sess_2", "state.changed", &resolution("rpl_1", "reject", "timeout"));
    assert_eq!(
        harness.receive_text(&rename(outcome)),
        ["answer: Nobody answered question 1 in time: rejected."]
    );
    // Two sessions of agents with the same name are told apart by their numbers.
    let third = harness.event_in_session("sess_3", "session.started", r#""summary_normal":"Begun.""#);
    assert_eq!(harness.receive_text(&third), ["session: Bank has started, session 3. Begun."]);
    let tool = r#""tool":"t","summary_normal":"Looking.""#;
    assert_eq!(harness.receive("tool.invoked", tool), ["tool: Bank, session 1: Looking."]);
    let done = harness.event_in_session("sess_3", "session.completed", r#""summary_normal":"Done.""#);
    assert_eq!(harness.receive_text(&done), ["session: In session 3: Bank has finished. Done."]);
}

#[test]
fn a_stop_is_announced_once() {
    let stopped = |more: &str| {
        format!(
            r#""cancelled_by":"user","summary_normal":"The session was stopped.{more}","extensions":{{"sayso":{{"ended_by":"user"}}}}"#
        )
    };
    // The person who stopped the agent has heard that already.
    let mut harness = SubscriberHarness::new();
    harness.receive("session.started", r#""summary_normal":"Begun.""#);
    harness.ask_confirmation("rpl_1");
    let session = SessionId::parse("sess_1").unwrap();
    harness.subscriber.stop_session(&session, harness.now).unwrap();
    assert_eq!(harness.receive("session.cancelled", &stopped("")), [""; 0]);
    assert!(harness.subscriber.questions().next().is_none() && harness.subscriber.has_ended(&session));
    // Others hear it once.
    let mut harness = SubscriberHarness::new();
    harness.receive("session.started", r#""summary_normal":"Begun.""#);
    assert_eq!(
        harness.receive("session.cancelled", &stopped("")),
        ["session: Bank was stopped by a person."]
    );
    // The hub's additions are always announced.
    let mut harness = SubscriberHarness::new();
    harness.receive("session.started", r#""summary_normal":"Begun.""#);
    harness.subscriber.stop_session(&session, harness.now).unwrap();
    assert_eq!(
        harness.receive("session.cancelled", &stopped(" An action was approved.")),
        ["session: Bank was stopped by a person. An action was approved."]
    );
}

#[test]
fn a_request_for_more_time_is_confirmed_only_if_the_hub_takes_long() {
    let mut harness = SubscriberHarness::new();
    harness.ask_confirmation("rpl_1");
    harness.subscriber.request_more_time(1, harness.now).unwrap();
    assert_eq!(harness.advance(900), [""; 0]);
    assert_eq!(harness.advance(200), ["ask: More time requested."]);
    let extended = r#""progress":{"percent":0},"extensions":{"sayso":{"extended":"rpl_1","deadline":"2026-05-24T14:04:00Z"}}"#;
    let granted = ["ask: More time for question 1: about 4 minutes left."];
    assert_eq!(harness.receive("progress.updated", extended), granted);
    let mut harness = SubscriberHarness::new();
    harness.ask_confirmation("rpl_1");
    harness.subscriber.request_more_time(1, harness.now).unwrap();
    assert_eq!(harness.receive("progress.updated", extended), granted);
    assert_eq!(harness.advance(5000), [""; 0]);
}

#[test]
fn a_session_without_facts_has_no_details_and_no_estimate_while_it_waits() {
    let mut harness = SubscriberHarness::new();
    harness.receive("session.started", r#""summary_normal":"Begun.""#);
    harness.receive("session.completed", r#""summary_normal":"Done.""#);
    let details = harness.subscriber.session_details(None, harness.now).unwrap();
    assert_eq!(details.text, "There is nothing more to say.");
    let mut harness = SubscriberHarness::new();
    harness.receive("session.started", r#""summary_normal":"Begun.","expected_duration_ms":120000"#);
    let left = |harness: &SubscriberHarness| {
        harness.subscriber.session_details(None, harness.now).unwrap().text.contains("left")
    };
    assert!(left(&harness));
    harness.ask_confirmation("rpl_1");
    assert!(!left(&harness));
}
