//! Sessions, states, tools, and in which words.

use super::*;

#[test]
fn a_session_is_told_in_sentences() {
    let mut stage = Stage::new();
    assert_eq!(
        stage.hear("session.started", r#""summary_normal":"Paying Ben","summary_terse":"Pay""#),
        ["session: Bank has begun. Paying Ben."]
    );
    assert!(stage.hear("state.changed", r#""from_state":"idle","to_state":"thinking""#).is_empty());
    assert_eq!(
        stage.hear("tool.invoked", r#""tool":"send","summary_normal":"Sending.""#),
        ["tool: Sending."]
    );
    assert_eq!(
        stage.hear("tool.completed", r#""tool":"send","status":"error","error_message":"No money""#),
        ["tool: The tool send has failed. No money."]
    );
    assert_eq!(
        stage.hear(
            "session.errored",
            r#""error_category":"requires_user","summary_normal":"It failed","remediation_hint":"Put money in""#
        ),
        ["error: Bank has failed. It failed. You have to do something first. What you can do: Put money in."]
    );
    assert!(stage.ear.sessions().next().is_none());
}

#[test]
fn each_end_has_its_own_words() {
    let mut stage = Stage::new();
    let mut end = |session: &str, kind: &str, rest: &str| {
        let event = stage.event_of(session, kind, &format!(r#""summary_normal":"It is over."{rest}"#));
        stage.hear_text(&event).concat()
    };
    assert_eq!(end("sess_1", "session.completed", ""), "session: Bank is done. It is over.");
    assert_eq!(
        end("sess_2", "session.cancelled", r#","cancelled_by":"timeout""#),
        "session: Bank was stopped because its time was over. It is over."
    );
    assert_eq!(
        end("sess_3", "session.errored", r#","error_category":"transient""#),
        "error: Bank has failed. It is over. Trying again is likely to work."
    );
}

#[test]
fn our_words_are_the_persons_and_the_agents_are_told_apart_where_they_are_of_another_language() {
    let mut stage = Stage::new();
    stage.ear.set_tastes(Tastes { languages: vec!["es".to_owned()], ..Tastes::default() });
    let event = stage.event("session.started", r#""summary_normal":"Paying Ben""#);
    stage.ear.hear(&event, stage.now);
    let said = stage.ear.next(stage.now).unwrap();
    assert_eq!(said.text, "Bank ha empezado. Paying Ben.");
    assert_eq!(said.language.as_deref(), Some("en"));
    assert_eq!(said.quotes, Some(vec!["Paying Ben".to_owned()]));
    let event = stage.event("awaiting.confirmation", &confirmation("rpl_1"));
    stage.ear.hear(&event, stage.now);
    let asked = stage.ear.next(stage.now).unwrap();
    let again = stage.ear.repeat(1, stage.now).unwrap();
    assert_eq!((&asked.text, &asked.quotes), (&again.text, &again.quotes));
    let quotes = asked.quotes.unwrap();
    for quote in ["May I pay Ben?", "Send 5 euro to Ben", "It is gone."] {
        assert!(asked.text.contains(quote) && quotes.iter().any(|one| one == quote), "{quote}: {quotes:?}");
    }
    let english = Stage::new().hear("session.started", r#""summary_normal":"Paying Ben""#);
    assert_eq!(english, ["session: Bank has begun. Paying Ben."]);
}

#[test]
fn words_are_in_the_persons_language_where_there_are_such() {
    let mut ear =
        Ear::new(Tastes { languages: vec!["es".to_owned()], ..Tastes::default() }, Limits::default());
    let mut stage = Stage::new();
    let both = r#""tool":"t","summary_normal":"Looking.","summary_normal_es":"Buscando.""#;
    ear.hear(&stage.event("tool.invoked", both), NOON);
    let said = ear.next(NOON).unwrap();
    assert_eq!((said.text.as_str(), said.language.as_deref()), ("Buscando.", Some("es")));
    // There are no others: then it is said as it is.
    ear.hear(&stage.event("tool.invoked", r#""tool":"t","summary_normal":"Looking.""#), NOON);
    let said = ear.next(NOON).unwrap();
    assert_eq!((said.text.as_str(), said.language.as_deref()), ("Looking.", Some("en")));
    let arabic = stage
        .event("tool.invoked", r#""tool":"t","summary_normal":"جارٍ البحث.""#)
        .replace(r#""primary_language":"en""#, r#""primary_language":"ar","text_direction":"rtl""#);
    ear.hear(&arabic, NOON);
    let said = ear.next(NOON).unwrap();
    assert_eq!((said.text.as_str(), said.direction), ("جارٍ البحث.", aaep::event::TextDirection::RightToLeft));
}

#[test]
fn events_in_the_wrong_order_are_noticed_once() {
    let mut stage = Stage::new();
    let call =
        |number: u32| format!(r#""sequence_number":{number},"tool":"t","summary_normal":"Call {number}.""#);
    assert_eq!(stage.hear("tool.invoked", &call(2)), ["tool: Call 2."]);
    assert_eq!(
        stage.hear("tool.invoked", &call(1)),
        ["notice: Events of this session came in the wrong order.", "tool: Call 1."]
    );
    assert_eq!(stage.hear("tool.invoked", &call(0)), ["tool: Call 0."]);
}

#[test]
fn what_comes_twice_is_said_once() {
    let mut stage = Stage::new();
    let event = stage.event("tool.invoked", r#""tool":"send","summary_normal":"Sending.""#);
    assert_eq!(stage.hear_text(&event), ["tool: Sending."]);
    assert!(stage.hear_text(&event).is_empty());
}

#[test]
fn what_is_not_known_gets_a_line() {
    let mut stage = Stage::new();
    let purple = stage.event("purple", r#""summary_normal":"Hm.""#);
    assert_eq!(
        stage.hear_text(&purple),
        ["notice: Bank sent a aaep:agent.purple, which is not known here. It says: Hm."]
    );
    assert_eq!(
        stage.hear("awaiting.confirmation", r#""action":"Boil the sea.""#),
        [
            "error: Bank sent a aaep:agent.awaiting.confirmation that could not be understood. It says: Boil the sea."
        ]
    );
    stage.hear("state.changed", r#""from_state":"idle","to_state":"purple_flamingo""#);
    assert_eq!(stage.pass(STATE_LASTS), ["agent: Bank is in a state called purple_flamingo."]);
    assert_eq!(stage.hear_text("{"), ["error: Something came that is no event; it was left out."]);
    assert_eq!(
        stage.hear_text(r#"{"type":"odd\u001b[2J"}"#),
        ["error: Something of the type odd\\u{1b}[2J came that could not be understood."]
    );
}

#[test]
fn a_state_is_said_if_it_lasts_and_flapping_is_not() {
    let mut stage = Stage::new();
    stage.hear("state.changed", r#""from_state":"idle","to_state":"thinking""#);
    assert!(stage.pass(STATE_LASTS - 1).is_empty());
    assert_eq!(stage.pass(1), ["agent: Bank is thinking."]);
    let mut said = Vec::new();
    for turn in 0..40 {
        let (from, to) = if turn % 2 == 0 { ("thinking", "deciding") } else { ("deciding", "thinking") };
        said.extend(stage.hear("state.changed", &format!(r#""from_state":"{from}","to_state":"{to}""#)));
        said.extend(stage.pass(1000));
    }
    // Quieted, but not for ever.
    assert!((1..=3).contains(&said.len()), "{said:?}");
}

#[test]
fn who_wants_all_of_it_hears_every_state() {
    let mut stage = Stage::with(Verbosity::Detailed, Limits::default());
    assert_eq!(
        stage.hear("state.changed", r#""from_state":"idle","to_state":"thinking","summary_normal":"Hm.""#),
        ["agent: Hm."]
    );
    assert_eq!(
        stage.hear("progress.updated", r#""progress":{"percent":40,"step":2,"total_steps":5}"#),
        ["progress: Step 2 of 5. 40 percent."]
    );
}

#[test]
fn of_much_progress_the_last_is_said() {
    let mut stage = Stage::new();
    let said: Vec<_> = (0..100)
        .flat_map(|percent| {
            let mut said = stage.hear("progress.updated", &format!(r#""progress":{{"percent":{percent}}}"#));
            said.extend(stage.pass(100));
            said
        })
        .collect();
    assert_eq!(said, ["progress: 0 percent.", "progress: 49 percent.", "progress: 99 percent."]);
    assert!(stage.pass(PROGRESS).is_empty());
}

#[test]
fn what_a_summary_says_already_is_not_said_again() {
    let mut stage = Stage::new();
    assert_eq!(
        stage.hear("tool.completed", r#""tool":"send_email","status":"error","summary_normal":"Send email failed: no paper","error_message":"no paper""#),
        ["tool: Send email failed: no paper."]
    );
    assert_eq!(
        stage.hear(
            "tool.completed",
            r#""tool":"send_email","status":"error","summary_normal":"Alas","error_message":"no paper""#
        ),
        ["tool: The tool send email has failed. Alas. no paper."]
    );
    let both = confirmation("rpl_1").replace("May I pay Ben?", "Send 5 euro to Ben It is gone.");
    let asked = stage.hear("awaiting.confirmation", &both);
    assert_eq!(
        asked.get(..3).unwrap(),
        [
            "ask: Question 1, from Bank.",
            "ask: What it would do: Send 5 euro to Ben.",
            "ask: What follows from it: It is gone."
        ]
    );
}

#[test]
fn of_who_was_stopped_only_the_end_is_told() {
    let mut stage = Stage::with(Verbosity::Detailed, Limits::default());
    stage.hear("session.started", r#""summary_normal":"Hello.""#);
    let thinks = r#""from_state":"idle","to_state":"thinking""#;
    let decides = r#""from_state":"thinking","to_state":"deciding""#;
    stage.ear.stop(&SessionId::parse("sess_1").unwrap(), stage.now).unwrap();
    assert_eq!(stage.hear("state.changed", thinks), [""; 0]);
    // It did not arrive, so that the agent goes on.
    stage.ear.wish_not_sent();
    assert_eq!(stage.hear("state.changed", decides), ["agent: Bank is deciding what to do."]);
    stage.ear.stop(&SessionId::parse("sess_1").unwrap(), stage.now).unwrap();
    let stopped = r#""cancelled_by":"user","summary_normal":"Stopped.""#;
    assert_eq!(stage.hear("session.cancelled", stopped), ["session: Bank was stopped by a person. Stopped."]);
}
