//! Durations in words, what the commands `details` and `tools` say, and outputs that the agent sums up.

use super::*;
use crate::subscriber::held_output::{MAX_HELD_OUTPUT_BYTES, MAX_OUTPUT_HOLD_MS, SUMMARY_WAIT_MS};
use crate::subscriber::session_facts::{MAX_FACT_CHARS, uri_place};

fn terse() -> SubscriberHarness {
    SubscriberHarness::with(Verbosity::Terse, SubscriberLimits::default())
}

#[test]
fn estimates_are_rounded_and_announced_in_each_language() {
    let text = |language: &str, millis: i64| {
        wording::duration_text(Phrases::for_languages(&[language.to_owned()]), millis)
    };
    for (millis, expected) in [
        (0, "1 second"),
        (1499, "1 second"),
        (12_400, "12 seconds"),
        (19_999, "20 seconds"),
        (33_000, "35 seconds"),
        (54_499, "55 seconds"),
        (54_500, "1 minute"),
        (89_999, "1 minute"),
        (90_000, "2 minutes"),
        (149_000, "2 minutes"),
        (151_000, "3 minutes"),
        (7_169_000, "119 minutes"),
        (7_200_000, "2 hours"),
        (9_900_000, "3 hours"),
        (i64::MAX, "2562047788015 hours"),
    ] {
        assert_eq!(text("en", millis), expected, "{millis}");
    }
    assert_eq!([text("es", 120_000), text("yo", 120_000)], ["2 minutos", "ìṣẹ́jú 2"]);
    for (language, expected) in [
        ("es", "Bank ha empezado. Paying. Aproximadamente 2 minutos."),
        ("yo", "Bank ti bẹ̀rẹ̀. Paying. Nǹkan bíi ìṣẹ́jú 2."),
    ] {
        let mut harness = SubscriberHarness::new();
        let languages = vec![language.to_owned()];
        harness.subscriber.set_preferences(Preferences { languages, ..Preferences::default() });
        let started = r#""summary_normal":"Paying","expected_duration_ms":120000"#;
        let event = harness.event("session.started", started);
        harness.subscriber.receive(&event, harness.now);
        assert_eq!(harness.subscriber.next_announcement(harness.now).unwrap().text, expected);
    }
}

#[test]
fn the_shortest_announced_duration_depends_on_the_verbosity() {
    for (verbosity, millis, is_said) in [
        (Verbosity::Normal, 9999, false),
        (Verbosity::Normal, 10_000, true),
        (Verbosity::Terse, 59_999, false),
        (Verbosity::Terse, 60_000, true),
        (Verbosity::Detailed, 999, false),
        (Verbosity::Detailed, 1000, true),
    ] {
        let mut harness = SubscriberHarness::with(verbosity.clone(), SubscriberLimits::default());
        let call = format!(r#""tool":"look","summary_normal":"Looking.","expected_duration_ms":{millis}"#);
        let heard = harness.receive("tool.invoked", &call).concat();
        assert_eq!(heard.contains("About"), is_said, "{verbosity:?} {millis}: {heard}");
    }
}

#[test]
fn a_tool_that_takes_much_longer_than_expected_is_mentioned() {
    let mut harness = SubscriberHarness::new();
    let mut run = |id: &str, expected: u64, took: u64| {
        harness.receive(
            "tool.invoked",
            &format!(r#""tool":"look","tool_call_id":"{id}","summary_normal":"Looking.","expected_duration_ms":{expected}"#),
        );
        let done = format!(
            r#""tool":"look","tool_call_id":"{id}","status":"success","summary_normal":"Seen.","duration_ms":{took}"#
        );
        harness.receive("tool.completed", &done).concat()
    };
    assert_eq!(run("call_1", 2000, 40_000), "tool: Seen. It took 40 seconds; expected: 2 seconds.");
    assert_eq!(run("call_2", 30_000, 40_000), "tool: Seen.");
    assert_eq!(run("call_3", 2000, 9000), "tool: Seen.", "nine seconds are not worth a sentence");
}

#[test]
fn progress_adds_the_numbers_that_the_agents_text_lacks() {
    for (summary, verbosity, expected) in [
        (
            "Comparing prices.",
            Verbosity::Normal,
            "progress: Comparing prices. Step 3 of 5. 60 percent. About 12 seconds left.",
        ),
        (
            "Step 3, 60 percent done.",
            Verbosity::Normal,
            "progress: Step 3, 60 percent done. About 12 seconds left.",
        ),
        (
            "Step three of five.",
            Verbosity::Normal,
            "progress: Step three of five. 60 percent. About 12 seconds left.",
        ),
        ("Comparing.", Verbosity::Terse, "progress: Comparing."),
    ] {
        let mut harness = SubscriberHarness::with(verbosity, SubscriberLimits::default());
        let update = format!(
            r#""progress":{{"percent":60,"step":3,"total_steps":5}},"summary_normal":"{summary}","eta_ms":12000"#
        );
        assert_eq!(harness.receive("progress.updated", &update), [expected]);
    }
}

#[test]
fn only_the_place_of_a_uri_is_announced() {
    for (uri, place) in [
        ("https://bank.example/report?token=secret#x", "bank.example"),
        ("https://bank.example:8443", "bank.example"),
        ("https://good.example@evil.example/x", "evil.example"),
        ("http://[2001:db8::1]:80/x", "[2001:db8::1]"),
        ("queue://customer-service/financial-advisor", "customer-service"),
        ("tel:+47-555-0100", "+47-555-0100"),
        ("mailto:ada@bank.example?subject=x", "ada@bank.example"),
        ("file:///home/ada/plan.pdf", "plan.pdf"),
        ("urn:isbn:0451450523", "0451450523"),
        ("not a uri", ""),
        ("", ""),
    ] {
        assert_eq!(uri_place(Some(uri)), place, "{uri}");
    }
    assert_eq!(uri_place(None), "");
    assert_eq!(uri_place(Some(&format!("https://{}/", "a".repeat(200)))).len(), 80);
    assert_eq!(uri_place(Some("https://a\u{202e}b\u{1b}[2J/")), r"ab\u{1b}[2J");
}

#[test]
fn programs_get_the_whole_uri() {
    let mut harness = SubscriberHarness::new();
    let mut link = |kind: &str, rest: &str| {
        let event = harness.event(kind, rest);
        harness.subscriber.receive(&event, harness.now);
        harness.subscriber.next_announcement(harness.now).unwrap().link.map(String::from)
    };
    let hand_off = r#""reason":"A.","target_kind":"human","target_uri":"tel:+47-555-0100""#;
    assert_eq!(link("handoff.requested", hand_off).as_deref(), Some("tel:+47-555-0100"));
    let invalid = r#""reason":"A.","target_kind":"human","target_uri":"not a uri""#;
    assert_eq!(link("handoff.requested", invalid), None);
    let done = r#""summary_normal":"Done.","result_uri":"https://bank.example/1?a=b""#;
    assert_eq!(link("session.completed", done).as_deref(), Some("https://bank.example/1?a=b"));
}

#[test]
fn details_describe_sessions_if_no_question_is_open() {
    let mut harness = SubscriberHarness::new();
    assert!(harness.subscriber.session_details(None, harness.now).is_none());
    assert_eq!(harness.subscriber.tools(None).text, "No agent is working.");
    assert_eq!(harness.subscriber.tools(Some(7)).text, "Session 7 is not running.");
    let started = r#""summary_normal":"Paying Ben.","request_text":"Pay\u001b Ben.","expected_duration_ms":120000,"tools_available":["send_money"]"#;
    harness.receive("session.started", started);
    harness.advance(30_000);
    let call = r#""tool":"send_money","summary_normal":"Sending.","description":"Sends money.","args_summary":"5 euro""#;
    harness.receive("tool.invoked", call);
    let details = harness.subscriber.session_details(None, harness.now).unwrap();
    assert_eq!(
        details.text.lines().collect::<Vec<_>>(),
        [
            "Session 1, Bank. Sending.",
            r"The request was: Pay\u{1b} Ben.",
            "It last used: send money. Sends money. With: 5 euro.",
            "About 2 minutes left.",
        ]
    );
    let other = harness.event_in_session("sess_2", "session.started", r#""summary_normal":"Reading.""#);
    harness.receive_text(&other);
    assert_eq!(
        harness.subscriber.tools(None).text.lines().collect::<Vec<_>>(),
        [
            "Bank has these tools: send money.",
            "send money: Sends money.",
            "Bank has not said which tools it has.",
        ]
    );
    assert!(!harness.subscriber.session_details(Some(2), harness.now).unwrap().text.contains("Sending"));
    assert!(harness.subscriber.session_details(Some(3), harness.now).is_none());
    // After the end of all sessions, the latest one is described.
    for session in ["sess_1", "sess_2"] {
        harness.now += 1;
        let end = r#""summary_normal":"Done.","result_uri":"https://bank.example/1","duration_ms":31000"#;
        let end = harness.event_in_session(session, "session.completed", end);
        harness.receive_text(&end);
    }
    let details = harness.subscriber.session_details(None, harness.now).unwrap();
    assert_eq!(
        details.text.lines().collect::<Vec<_>>(),
        ["Session 2, Bank.", "The full result is at: bank.example. It took 30 seconds."]
    );
}

#[test]
fn long_texts_are_cut_in_details() {
    let mut harness = SubscriberHarness::new();
    for length in [MAX_FACT_CHARS, MAX_FACT_CHARS + 1] {
        let request = "é".repeat(length);
        harness.receive("session.started", &format!(r#""summary_normal":"A.","request_text":"{request}""#));
        let details = harness.subscriber.session_details(None, harness.now).unwrap().text.to_string();
        assert_eq!(details.matches('é').count(), MAX_FACT_CHARS);
        assert_eq!(details.contains('…'), length > MAX_FACT_CHARS);
    }
}

#[test]
fn terse_listeners_hear_the_summary_of_an_output_instead_of_its_text() {
    let mut harness = terse();
    harness.receive("session.started", r#""summary_normal":"Planning.""#);
    assert!(harness.receive("output.streaming", &chunk("A long plan. ", 0, false)).is_empty());
    assert!(harness.receive("output.streaming", &chunk("With many parts.", 13, true)).is_empty());
    assert!(
        harness.receive("state.changed", r#""from_state":"writing_output","to_state":"thinking""#).is_empty()
    );
    assert_eq!(
        harness.receive(
            "session.completed",
            r#""summary_normal":"Planned.","output_summary":"A plan in 2 parts""#
        ),
        ["session: Bank has finished. Planned. Result: A plan in 2 parts."]
    );
    let details = harness.subscriber.session_details(None, harness.now).unwrap().text.to_string();
    assert!(details.contains("The full text is: A long plan.\nWith many parts."), "{details}");
    // Others hear the text and not its summary.
    let mut harness = SubscriberHarness::new();
    assert_eq!(harness.receive("output.streaming", &chunk("A plan.", 0, true)), ["agent: A plan."]);
    assert_eq!(
        harness.receive("session.completed", r#""summary_normal":"Planned.","output_summary":"A plan""#),
        ["session: Bank has finished. Planned."]
    );
}

#[test]
fn held_text_is_announced_unless_a_summary_replaces_it() {
    let text = chunk("The text.", 0, true);
    let heard = ["agent: The text."];
    for (kind, rest, expected) in [
        ("session.completed", r#""summary_normal":"Done.""#.to_owned(), "session: Bank has finished. Done."),
        (
            "session.errored",
            r#""error_category":"unknown","summary_normal":"Broken.""#.to_owned(),
            "error: Bank has failed. Broken.",
        ),
        ("tool.invoked", r#""tool":"look","summary_normal":"Looking.""#.to_owned(), "tool: Looking."),
        ("awaiting.confirmation", confirmation("rpl_1"), "ask: Bank: "),
    ] {
        let mut harness = terse();
        assert!(harness.receive("output.streaming", &text).is_empty());
        let lines = harness.receive(kind, &rest);
        assert_eq!(lines[..1], heard, "{kind}");
        assert!(lines[1].starts_with(expected), "{lines:?}");
    }
    let mut harness = terse();
    assert!(harness.receive("output.streaming", &text).is_empty());
    assert!(harness.advance(SUMMARY_WAIT_MS - 1).is_empty());
    assert_eq!(harness.advance(1), heard, "no summary came");
    let mut harness = terse();
    assert!(harness.receive("output.streaming", &chunk("The text. Mo", 0, false)).is_empty());
    assert!(harness.advance(MAX_OUTPUT_HOLD_MS - 1).iter().all(|line| !line.contains("The text")));
    assert_eq!(harness.advance(1), heard, "the output takes too long");
    let mut harness = terse();
    assert!(harness.receive("output.streaming", &text).is_empty());
    harness.subscriber.set_preferences(Preferences::default());
    assert_eq!(harness.drain_lines(), heard, "the person wants to hear more");
    let limits = SubscriberLimits { sessions: 1, ..SubscriberLimits::default() };
    let mut harness = SubscriberHarness::with(Verbosity::Terse, limits);
    assert!(harness.receive("output.streaming", &text).is_empty());
    let other = harness.event_in_session("sess_2", "session.started", r#""summary_normal":"Reading.""#);
    assert_eq!(harness.receive_text(&other)[0], heard[0], "the session is forgotten, but not its text");
    let mut harness = terse();
    let sentence = format!("{}. ", "x".repeat(MAX_HELD_OUTPUT_BYTES / 2 - 1));
    let mut lines = harness.receive("output.streaming", &chunk(&sentence, 0, false));
    assert!(lines.is_empty());
    for position in [1, 2, 3] {
        lines
            .extend(harness.receive("output.streaming", &chunk(&sentence, position * sentence.len(), false)));
    }
    assert_eq!(lines.len(), 3, "too much text is held");
}

#[test]
fn an_error_says_whether_a_retry_may_help() {
    for (rest, advice) in [
        (r#""error_category":"unknown","recoverable":true"#, "Trying again may work."),
        (r#""error_category":"transient""#, "Trying again may work."),
        (r#""error_category":"permanent","recoverable":true"#, "Trying again may work."),
        (r#""error_category":"transient","recoverable":false"#, "Trying again will not help."),
        (r#""error_category":"permanent""#, "Trying again will not help."),
        (r#""error_category":"requires_user","recoverable":true"#, "You need to do something first."),
        (r#""error_category":"unknown""#, ""),
        (r#""error_category":"unknown","recoverable":false"#, ""),
    ] {
        let mut harness = SubscriberHarness::new();
        let heard =
            harness.receive("session.errored", &format!(r#""summary_normal":"Broken.",{rest}"#)).concat();
        assert_eq!(heard, format!("error: Bank has failed. Broken. {advice}").trim_end(), "{rest}");
    }
}

#[test]
fn a_default_answer_is_announced_as_its_label() {
    let mut harness = SubscriberHarness::new();
    let question = r#""question":"Which Ben?","reply_token":"rpl_1","timeout_seconds":120,"choices":[{"value":"b1","label":"Ben Adams"},{"value":"b2","label":"Ben Okri"}],"default_response":"b2""#;
    let heard = harness.receive("awaiting.clarification", question).join("\n");
    assert!(heard.contains("Ben Okri") && !heard.contains("b2"), "{heard}");
    let details = harness.subscriber.question_details(1, harness.now).unwrap().text.to_string();
    assert!(details.contains("Ben Okri") && !details.contains("b2"), "{details}");
}
