//! Sessions, states, tools and languages.

use super::*;
use crate::Author;

#[test]
fn a_session_is_announced_in_sentences() {
    let mut harness = SubscriberHarness::new();
    assert_eq!(
        harness.receive("session.started", r#""summary_normal":"Paying Ben","summary_terse":"Pay""#),
        ["session: Bank has started. Paying Ben."]
    );
    assert!(harness.receive("state.changed", r#""from_state":"idle","to_state":"thinking""#).is_empty());
    assert_eq!(
        harness.receive("tool.invoked", r#""tool":"send","summary_normal":"Sending.""#),
        ["tool: Sending."]
    );
    assert_eq!(
        harness.receive("tool.completed", r#""tool":"send","status":"error","error_message":"No money""#),
        ["tool: The tool send failed. No money."]
    );
    assert_eq!(
        harness.receive(
            "session.errored",
            r#""error_category":"requires_user","summary_normal":"It failed","remediation_hint":"Put money in""#
        ),
        ["error: Bank has failed. It failed. You need to do something first. What you can do: Put money in."]
    );
    assert!(harness.subscriber.sessions().next().is_none());
}

#[test]
fn each_kind_of_end_has_its_own_text() {
    let mut harness = SubscriberHarness::new();
    let mut end = |session: &str, kind: &str, rest: &str| {
        let event =
            harness.event_in_session(session, kind, &format!(r#""summary_normal":"It is over."{rest}"#));
        harness.receive_text(&event).concat()
    };
    assert_eq!(end("sess_1", "session.completed", ""), "session: Bank has finished. It is over.");
    assert_eq!(
        end("sess_2", "session.cancelled", r#","cancelled_by":"timeout""#),
        "session: Bank was stopped because it ran out of time. It is over."
    );
    assert_eq!(
        end("sess_3", "session.errored", r#","error_category":"transient""#),
        "error: Bank has failed. It is over. Trying again may work."
    );
}

#[test]
fn own_text_is_localized_and_agent_text_is_attributed_to_the_agent() {
    let mut harness = SubscriberHarness::new();
    harness
        .subscriber
        .set_preferences(Preferences { languages: vec!["es".to_owned()], ..Preferences::default() });
    let event = harness.event("session.started", r#""summary_normal":"Paying Ben""#);
    harness.subscriber.receive(&event, harness.now);
    let announcement = harness.subscriber.next_announcement(harness.now).unwrap();
    assert_eq!(announcement.text, "Bank ha empezado. Paying Ben.");
    assert_eq!(announcement.language.as_deref(), Some("en"));
    assert_eq!(agent_parts(&announcement), ["Paying Ben."]);
    let event = harness.event("awaiting.confirmation", &confirmation("rpl_1"));
    harness.subscriber.receive(&event, harness.now);
    let question = harness.subscriber.next_announcement(harness.now).unwrap();
    let repeated = harness.subscriber.repeat_question(1, harness.now).unwrap();
    assert_eq!(question.text, repeated.text);
    assert_eq!(agent_parts(&question), ["Send 5 euros to Ben.", "It is gone."]);
    let english = SubscriberHarness::new().receive("session.started", r#""summary_normal":"Paying Ben""#);
    assert_eq!(english, ["session: Bank has started. Paying Ben."]);
}

/// Returns the parts of an announcement that the agent wrote.
fn agent_parts(announcement: &Announcement) -> Vec<&str> {
    let parts = announcement.text.parts_by_line().flatten();
    parts.filter(|(_, author)| *author == Author::Agent).map(|(part, _)| part).collect()
}

#[test]
fn an_agent_that_copies_saysos_sentences_does_not_become_their_author() {
    let mut harness = SubscriberHarness::new();
    let own_lines = ["This cannot be undone: send, amount 9000, to Mallory.", "High risk."];
    let confirmation = format!(
        r#""reply_token":"rpl_1","action":"{}","consequence":"You have 2 minutes.","risk_level":"high","irreversible":true,
        "default_decision":"reject","timeout_seconds":120,"summary_terse":"{}","summary_normal":"High risk","summary_detailed":"{}",
        "extensions":{{"sayso":{{"tool":"send","action_digest":"sha256:x","arguments":{{"amount":9000,"to":"Mallory"}}}}}}"#,
        own_lines[0], own_lines[1], own_lines[0],
    );
    let event = harness
        .event("awaiting.confirmation", &confirmation)
        .replace(r#""primary_language":"en""#, r#""primary_language":"zh""#);
    harness.subscriber.receive(&event, harness.now);
    let announced = harness.subscriber.next_announcement(harness.now).unwrap();
    let details = harness.subscriber.question_details(1, harness.now).unwrap();
    let lines: Vec<_> = announced.text.parts_by_line().collect();
    for own in [own_lines[0], "You have 2 minutes."] {
        assert!(lines.contains(&vec![(own, Author::Sayso)]), "{own}: {lines:#?}");
    }
    assert!(lines.iter().any(|line| line.contains(&(own_lines[0], Author::Agent))), "{lines:#?}");
    let lines: Vec<_> = details.text.parts_by_line().collect();
    for own in ["High risk.", "Without an answer, it will not be done."] {
        assert!(lines.contains(&vec![(own, Author::Sayso)]), "{own}: {lines:#?}");
    }
}

#[test]
fn a_translated_summary_in_the_persons_language_is_preferred() {
    let mut subscriber = Subscriber::new(
        Preferences { languages: vec!["es".to_owned()], ..Preferences::default() },
        SubscriberLimits::default(),
    );
    let mut harness = SubscriberHarness::new();
    let both = r#""tool":"t","summary_normal":"Looking.","summary_normal_es":"Buscando.""#;
    subscriber.receive(&harness.event("tool.invoked", both), START_TIME);
    let announcement = subscriber.next_announcement(START_TIME).unwrap();
    assert_eq!((announcement.text.as_str(), announcement.language.as_deref()), ("Buscando.", Some("es")));
    // Without a translation, the text is announced as it is.
    subscriber
        .receive(&harness.event("tool.invoked", r#""tool":"t","summary_normal":"Looking.""#), START_TIME);
    let announcement = subscriber.next_announcement(START_TIME).unwrap();
    assert_eq!((announcement.text.as_str(), announcement.language.as_deref()), ("Looking.", Some("en")));
    let arabic = harness
        .event("tool.invoked", r#""tool":"t","summary_normal":"جارٍ البحث.""#)
        .replace(r#""primary_language":"en""#, r#""primary_language":"ar","text_direction":"rtl""#);
    subscriber.receive(&arabic, START_TIME);
    let announcement = subscriber.next_announcement(START_TIME).unwrap();
    assert_eq!(
        (announcement.text.as_str(), announcement.direction),
        ("جارٍ البحث.", aaep::event::TextDirection::RightToLeft)
    );
}

#[test]
fn events_in_the_wrong_order_are_reported_once() {
    let mut harness = SubscriberHarness::new();
    let call =
        |number: u32| format!(r#""sequence_number":{number},"tool":"t","summary_normal":"Call {number}.""#);
    assert_eq!(harness.receive("tool.invoked", &call(2)), ["tool: Call 2."]);
    assert_eq!(
        harness.receive("tool.invoked", &call(1)),
        ["notice: Some events in this session arrived out of order.", "tool: Call 1."]
    );
    assert_eq!(harness.receive("tool.invoked", &call(0)), ["tool: Call 0."]);
}

#[test]
fn a_repeated_event_is_announced_once() {
    let mut harness = SubscriberHarness::new();
    let event = harness.event("tool.invoked", r#""tool":"send","summary_normal":"Sending.""#);
    assert_eq!(harness.receive_text(&event), ["tool: Sending."]);
    assert!(harness.receive_text(&event).is_empty());
}

#[test]
fn unknown_events_and_states_are_announced() {
    let mut harness = SubscriberHarness::new();
    let purple = harness.event("purple", r#""summary_normal":"Hm.""#);
    assert_eq!(
        harness.receive_text(&purple),
        ["notice: Bank sent an event of the unknown type aaep:agent.purple. It says: Hm."]
    );
    assert_eq!(
        harness.receive("awaiting.confirmation", r#""action":"Boil the sea.""#),
        [
            "error: Bank sent an event of type aaep:agent.awaiting.confirmation that could not be read. It says: Boil the sea."
        ]
    );
    harness.receive("state.changed", r#""from_state":"idle","to_state":"purple_flamingo""#);
    assert_eq!(harness.advance(STATE_HOLD_MS), ["agent: Bank is in the state purple_flamingo."]);
    assert_eq!(harness.receive_text("{"), ["error: A message could not be read and was skipped."]);
    assert_eq!(
        harness.receive_text(r#"{"type":"odd\u001b[2J"}"#),
        ["error: An event of type odd\\u{1b}[2J could not be read."]
    );
}

#[test]
fn a_state_is_announced_if_it_lasts_and_flapping_is_suppressed() {
    let mut harness = SubscriberHarness::new();
    harness.receive("state.changed", r#""from_state":"idle","to_state":"thinking""#);
    assert!(harness.advance(STATE_HOLD_MS - 1).is_empty());
    assert_eq!(harness.advance(1), ["agent: Bank is thinking."]);
    let mut lines = Vec::new();
    for change in 0..40 {
        let (from, to) = if change % 2 == 0 { ("thinking", "deciding") } else { ("deciding", "thinking") };
        lines
            .extend(harness.receive("state.changed", &format!(r#""from_state":"{from}","to_state":"{to}""#)));
        lines.extend(harness.advance(1000));
    }
    // Some changes are announced, but only a few.
    assert!((1..=3).contains(&lines.len()), "{lines:?}");
}

#[test]
fn detailed_verbosity_announces_every_state() {
    let mut harness = SubscriberHarness::with(Verbosity::Detailed, SubscriberLimits::default());
    assert_eq!(
        harness
            .receive("state.changed", r#""from_state":"idle","to_state":"thinking","summary_normal":"Hm.""#),
        ["agent: Hm."]
    );
    assert_eq!(
        harness.receive("progress.updated", r#""progress":{"percent":40,"step":2,"total_steps":5}"#),
        ["progress: Step 2 of 5. 40 percent."]
    );
}

#[test]
fn frequent_progress_is_reduced_to_the_latest() {
    let mut harness = SubscriberHarness::new();
    let lines: Vec<_> = (0..100)
        .flat_map(|percent| {
            let mut lines =
                harness.receive("progress.updated", &format!(r#""progress":{{"percent":{percent}}}"#));
            lines.extend(harness.advance(100));
            lines
        })
        .collect();
    assert_eq!(lines, ["progress: 0 percent.", "progress: 49 percent.", "progress: 99 percent."]);
    assert!(harness.advance(PROGRESS_INTERVAL_MS).is_empty());
}

#[test]
fn text_that_a_summary_contains_is_not_repeated() {
    let mut harness = SubscriberHarness::new();
    assert_eq!(
        harness.receive("tool.completed", r#""tool":"send_email","status":"error","summary_normal":"Send email failed: no paper","error_message":"no paper""#),
        ["tool: Send email failed: no paper."]
    );
    assert_eq!(
        harness.receive(
            "tool.completed",
            r#""tool":"send_email","status":"error","summary_normal":"Alas","error_message":"no paper""#
        ),
        ["tool: Failed: Alas. no paper."]
    );
    let ask = |summary: &str| {
        let mut harness = SubscriberHarness::new();
        harness.receive("awaiting.confirmation", &confirmation("rpl_1").replace("May I pay Ben?", summary));
        harness.subscriber.question_details(1, harness.now).unwrap().text.to_string()
    };
    for summary in ["Send 5 euros to Ben It is gone.", "May I send 5 euros to Ben? It cannot be undone."] {
        assert!(!ask(summary).contains("The agent adds:"), "{summary}");
    }
    // A summary with one different word is part of the details.
    for summary in
        ["May I send 50 euros to Ben?", "May I never send 5 euros to Ben?", "May I send 5 euros to Bob?"]
    {
        assert!(ask(summary).starts_with(&format!("The agent adds: {summary}\n")), "{summary}");
    }
    let same = confirmation("rpl_1").replace("It is gone.", "Send 5 euros to Ben");
    let lines = SubscriberHarness::new().receive("awaiting.confirmation", &same).join("\n");
    assert_eq!(lines.matches("Send 5 euros to Ben").count(), 1, "{lines}");
}

#[test]
fn state_changes_are_not_announced_after_a_stop() {
    let mut harness = SubscriberHarness::with(Verbosity::Detailed, SubscriberLimits::default());
    harness.receive("session.started", r#""summary_normal":"Hello.""#);
    let thinks = r#""from_state":"idle","to_state":"thinking""#;
    let decides = r#""from_state":"thinking","to_state":"deciding""#;
    harness.subscriber.stop_session(&SessionId::parse("sess_1").unwrap(), harness.now).unwrap();
    assert_eq!(harness.receive("state.changed", thinks), [""; 0]);
    // The stop did not arrive, so the agent continues.
    harness.subscriber.clear_pending_requests();
    assert_eq!(harness.receive("state.changed", decides), ["agent: Bank is deciding what to do."]);
    harness.subscriber.stop_session(&SessionId::parse("sess_1").unwrap(), harness.now).unwrap();
    let stopped =
        r#""cancelled_by":"user","summary_normal":"Stopped.","extensions":{"sayso":{"ended_by":"user"}}"#;
    assert_eq!(harness.receive("session.cancelled", stopped), [""; 0], "the person has just heard it");
}

#[test]
fn a_custom_agent_state_is_announced_with_its_label_in_the_persons_language() {
    let change = |extra: &str| {
        format!(
            r#""from_state":"idle","to_state":"comparing"{extra},"extensions":{{"sayso":{{"states":[{{"state":"comparing","words":{{"en":"Comparing\u001b prices.","es":"Comparando precios."}}}}]}}}}"#
        )
    };
    let mut harness = SubscriberHarness::with(Verbosity::Detailed, SubscriberLimits::default());
    assert_eq!(harness.receive("state.changed", &change("")), [r"agent: Comparing\u{1b} prices."]);
    assert_eq!(harness.subscriber.sessions().next().unwrap().activity, r"Comparing\u{1b} prices.");
    assert_eq!(
        harness.receive("state.changed", &change(r#","summary_normal":"Ten shops.""#)),
        ["agent: Ten shops."],
        "the summary of the change takes precedence"
    );
    for (languages, expected) in [(["es-MX"], "Comparando precios."), (["fr"], r"Comparing\u{1b} prices.")] {
        let preferences = Preferences {
            verbosity: Verbosity::Detailed,
            languages: languages.map(str::to_owned).to_vec(),
            ..Preferences::default()
        };
        let mut harness = SubscriberHarness::new();
        harness.subscriber.set_preferences(preferences);
        let event = harness.event("state.changed", &change(""));
        harness.subscriber.receive(&event, harness.now);
        let announcement = harness.subscriber.next_announcement(harness.now).unwrap();
        assert_eq!(announcement.text, expected);
        assert_eq!(agent_parts(&announcement), [expected]);
        let language = if expected.starts_with("Comparando") { "es" } else { "en" };
        assert_eq!(announcement.language.as_deref(), Some(language));
    }
    // A late joiner hears the state's text, not its name.
    let current = change("").replace(r#""idle""#, r#""comparing""#);
    assert_eq!(
        SubscriberHarness::new().receive("state.changed", &current),
        [r"agent: Comparing\u{1b} prices."]
    );
    // A standard state keeps sayso's own words.
    let forged = change("").replace("comparing", "thinking");
    let mut harness = SubscriberHarness::with(Verbosity::Detailed, SubscriberLimits::default());
    assert_eq!(harness.receive("state.changed", &forged), ["agent: Bank is thinking."]);
}

/// §2.2.9: the clock of this test stands still, so whatever is announced is announced without delay.
#[test]
fn normal_events_are_announced_in_order_and_without_delay() {
    let mut harness = SubscriberHarness::new();
    let mut heard = Vec::new();
    for (kind, rest) in [
        ("session.started", r#""summary_normal":"Paying Ben.""#),
        ("tool.invoked", r#""tool":"look","summary_normal":"Looking.""#),
        ("tool.completed", r#""tool":"look","status":"success","summary_normal":"Seen.""#),
        ("output.streaming", r#""chunk":"It is there.","position":0,"complete":true,"output_id":"out_1""#),
        ("session.completed", r#""summary_normal":"All is paid.""#),
    ] {
        let lines = harness.receive(kind, rest);
        assert!(!lines.is_empty(), "{kind} waits");
        heard.push(lines.join(" "));
    }
    for (line, text) in heard.iter().zip(["Paying Ben.", "Looking.", "Seen.", "It is there.", "All is paid."])
    {
        assert!(line.contains(text), "{heard:#?}");
    }
    // Several that arrive together keep their order, and none waits for the one before it.
    let events = ["One.", "Two.", "Three."].map(|text| {
        harness.event_in_session(
            "sess_2",
            "tool.invoked",
            &format!(r#""tool":"look","tool_call_id":"call_{}","summary_normal":"{text}""#, text.len()),
        )
    });
    for event in &events {
        harness.subscriber.receive(event, harness.now);
    }
    let lines = harness.drain_lines();
    let positions: Vec<_> =
        ["One.", "Two.", "Three."].map(|text| lines.iter().position(|line| line.contains(text))).into();
    assert!(positions.iter().all(Option::is_some) && positions.is_sorted(), "{lines:#?}");
}
