//! The call that a question is about, and whether the answer is bound to it.

use super::*;

fn ask_with(language: &str, question: &str, sayso: &str) -> (SubscriberHarness, Vec<String>) {
    let mut harness = SubscriberHarness::new();
    let preferences = Preferences { languages: vec![language.to_owned()], ..Preferences::default() };
    harness.subscriber.set_preferences(preferences);
    let members = format!(r#"{question},"extensions":{{"sayso":{sayso}}}"#);
    let lines = harness.receive("awaiting.confirmation", &members);
    (harness, lines)
}

fn bound_to(arguments: &str) -> String {
    format!(r#"{{"tool":"send_money","action_digest":"sha256:x","arguments":{arguments}}}"#)
}

#[test]
fn a_question_contains_the_bound_call_if_it_is_short() {
    for (arguments, expected) in [
        (r#"{"amount":5000000,"to":"Ben"}"#, "send money, amount 5000000, to Ben"),
        (r#"{"amount":9007199254740993,"rate":1.50e3}"#, "send money, amount 9007199254740993, rate 1500"),
        ("{}", "send money, without arguments"),
        ("[]", "send money, without arguments"),
        (r#"["a",true,null]"#, "send money, a, true, null"),
        (r#"{"user_name":{"first":"Ada","all":[1,2]}}"#, "send money, user name (first Ada, all (1, 2))"),
        // A text cannot look like another member, a line or a control sequence.
        (r#"{"to":"Ben, amount 5"}"#, r#"send money, to "Ben, amount 5""#),
        (r#"{"to":"Ben\" (x"}"#, r#"send money, to "Ben' (x""#),
        (r#"{"amount 5 to":"Ben"}"#, r#"send money, "amount 5 to" Ben"#),
        (r#"{"to":""}"#, r#"send money, to """#),
        ("{\"to\":\"a\\nask: \\u001b[2J\\u202eb\"}", "send money, to \"a\\u{a}ask : \\u{1b}[2J\\u{202e}b\""),
        (r#"{"a":0.00005e8,"b":5.00,"c":5E3}"#, "send money, a 5000, b 5.00, c 5000"),
    ] {
        let (harness, lines) = ask_with("en", &confirmation("rpl_1"), &bound_to(arguments));
        assert_eq!(lines[2], format!("ask: This cannot be undone: {expected}."));
        let details = harness.subscriber.question_details(1, harness.now).unwrap();
        assert!(!details.text.contains("send money"), "{details:?}");
    }
}

#[test]
fn nothing_disappears_from_the_exact_call_and_nothing_looks_like_a_separator() {
    let mut tape = aaep::json::Tape::default();
    let cases = tape.read(include_str!("../../../page/tests/call_texts.json")).unwrap();
    for case in cases.root().items() {
        let [arguments, expected] = case.items().collect::<Vec<_>>().try_into().unwrap();
        let (_, lines) = ask_with("en", &confirmation("rpl_1"), &bound_to(arguments.source()));
        assert_eq!(lines[2], format!("ask: This cannot be undone: {}.", expected.text().unwrap()));
    }
    let sayso = r#"{"tool":"send amount 1","action_digest":"sha256:x","arguments":{}}"#;
    let (_, lines) = ask_with("en", &confirmation("rpl_1"), sayso);
    assert_eq!(lines[2], r#"ask: This cannot be undone: "send amount 1", without arguments."#);
}

#[test]
fn the_agents_text_cannot_replace_saysos_lines_in_the_details() {
    let text = "x".repeat(question_call::MAX_SHORT_CALL_CHARS);
    let exact = format!("The exact call: send money, to {text}.");
    let question = confirmation("rpl_1").replace("It is gone.", &format!("A sample: {exact}"));
    let question = format!(r#"{question},"summary_detailed":"{exact}""#);
    let (harness, _) = ask_with("en", &question, &bound_to(&format!(r#"{{"to":"{text}"}}"#)));
    let details: Vec<_> = harness.subscriber.question_details(1, harness.now).unwrap().lines().collect();
    let count = details.iter().filter(|line| **line == format!("ask: {exact}")).count();
    assert_eq!(count, 1, "{details:#?}");
}

#[test]
fn a_long_call_is_read_with_the_details() {
    let text = "x".repeat(question_call::MAX_SHORT_CALL_CHARS);
    let (harness, lines) =
        ask_with("en", &confirmation("rpl_1"), &bound_to(&format!(r#"{{"to":"{text}"}}"#)));
    assert!(lines.contains(&"ask: Type details to hear the exact call.".to_owned()), "{lines:#?}");
    assert!(!lines.iter().any(|line| line.contains("send money, ")), "{lines:#?}");
    let details: Vec<_> = harness.subscriber.question_details(1, harness.now).unwrap().lines().collect();
    assert!(details.contains(&format!("ask: The exact call: send money, to {text}.")), "{details:#?}");
}

#[test]
fn a_dangerous_question_says_that_its_answer_is_not_bound() {
    let not_bound = "Your answer is not tied to one exact call.";
    let dangers = [
        (r#""risk_level":"high","irreversible":true"#, true),
        (r#""risk_level":"high","irreversible":false"#, true),
        (r#""risk_level":"low","reversibility":"irreversible""#, true),
        (r#""risk_level":"medium","irreversible":false"#, false),
    ];
    for (members, is_dangerous) in dangers {
        let question = confirmation("rpl_1").replace(dangers[0].0, members);
        for (sayso, is_bound) in
            [("{}".to_owned(), false), (r#"{"tool":"send_money"}"#.to_owned(), false), (bound_to("{}"), true)]
        {
            let (harness, lines) = ask_with("en", &question, &sayso);
            let says_so = lines.iter().any(|line| line.ends_with(not_bound));
            assert_eq!(says_so, is_dangerous && !is_bound, "{members} {sayso} {lines:#?}");
            let details: Vec<_> =
                harness.subscriber.question_details(1, harness.now).unwrap().lines().collect();
            let names_tool = details.contains(&"ask: It would use the tool send money.".to_owned());
            assert_eq!(names_tool, sayso.contains("tool") && !is_bound, "{details:#?}");
        }
    }
}

#[test]
fn the_call_is_announced_in_every_language() {
    for (language, call, not_bound) in [
        (
            "es",
            "ask: Irreversible: send money, amount 5.",
            "Su respuesta no está ligada a una acción exacta.",
        ),
        ("yo", "ask: A kò lè dá èyí padà: send money, amount 5.", "Ìdáhùn rẹ kò so mọ́ iṣẹ́ kan pàtó."),
    ] {
        let (_, lines) = ask_with(language, &confirmation("rpl_1"), &bound_to(r#"{"amount":5}"#));
        assert!(lines.contains(&call.to_owned()), "{lines:#?}");
        let (_, lines) = ask_with(language, &confirmation("rpl_1"), "{}");
        assert!(lines.iter().any(|line| line.ends_with(not_bound)), "{lines:#?}");
    }
}

#[test]
fn a_call_is_not_repeated_only_if_the_action_says_it_word_for_word() {
    let arguments = r#"{"euros":"20","to":"Ben Ode"}"#;
    for (action, arguments, is_said) in [
        ("Transfer 20 euros to Ben Ode.", arguments, true),
        ("transfer euros 20 to Ben Ode", arguments, true),
        ("Transfer 20 euros to Ben Ode?", r#"{"euros":20,"to":"Ben Ode"}"#, true),
        // Another word, order, value or name could change the meaning.
        ("Transfer 20 euros to Ben", arguments, false),
        ("Transfer 20 euros to Ben Ode now.", arguments, false),
        ("Do not transfer 20 euros to Ben Ode.", arguments, false),
        ("Transfer to Ben Ode 20 euros.", arguments, false),
        ("Transfer 20 euros from Ben Ode.", arguments, false),
        ("Transfer 2 euros to Ben Ode.", arguments, false),
        ("Transfer 20 euros to ben ode.", arguments, false),
        ("Transfer 20 euros Ben Ode to.", arguments, false),
        ("Transfer Ben to Ada from.", r#"{"to":"Ben","from":"Ada"}"#, false),
        ("Transfer.", "{}", true),
        ("Transfer.", r#"["Ben"]"#, false),
        ("Transfer to Ben, Ada.", r#"{"to":"Ben, Ada"}"#, false),
        ("Transfer all true.", r#"{"all":true}"#, false),
    ] {
        let question = confirmation("rpl_1").replace("Send 5 euros to Ben", action);
        let (harness, lines) =
            ask_with("en", &question, &bound_to(arguments).replace("send_money", "transfer"));
        let is_in_question =
            lines.iter().any(|line| line.starts_with("ask: This cannot be undone: transfer"));
        assert_eq!(is_in_question, !is_said, "{action}: {lines:#?}");
        // The person can always hear the exact call.
        let details = harness.subscriber.question_details(1, harness.now).unwrap();
        assert_eq!(details.text.contains("The exact call: transfer"), is_said, "{action}: {details:?}");
    }
}

#[test]
fn a_spanish_action_says_a_call_with_spanish_words() {
    let arguments = r#"{"euros":"20","to":"Ben"}"#;
    for (language, action, is_said) in [
        ("es", "Transferir 20 euros a Ben.", true),
        ("es", "Transferir 20 euros para Ben.", true),
        ("es", "Transfer 20 euros to Ben.", true),
        ("es", "Transferir 20 euros de Ben.", false),
        ("es", "Transferir 20 euros a Ben y Ada.", false),
        ("es", "No transferir 20 euros a Ben.", false),
        ("es", "Transferirle 20 euros a Ben.", false),
        // An English listener does not understand it.
        ("en", "Transferir 20 euros a Ben.", false),
    ] {
        let question = confirmation("rpl_1").replace("Send 5 euros to Ben", action);
        let (_, lines) =
            ask_with(language, &question, &bound_to(arguments).replace("send_money", "transfer"));
        let is_in_question = lines.iter().any(|line| line.contains("transfer, euros 20"));
        assert_eq!(is_in_question, !is_said, "{action}: {lines:#?}");
    }
}

#[test]
fn a_command_is_not_repeated_if_the_action_says_it_as_the_hook_does() {
    let mut tape = aaep::json::Tape::default();
    let cases = tape.read(include_str!("../../../page/tests/said_commands.json")).unwrap();
    for case in cases.root().items() {
        let [language, tool, arguments, action, is_said] =
            case.items().collect::<Vec<_>>().try_into().unwrap();
        let (language, tool) = (language.text().unwrap(), tool.text().unwrap());
        let action_text = format!(r#""action":{}"#, action.source());
        let question = confirmation("rpl_1").replace(r#""action":"Send 5 euros to Ben""#, &action_text);
        let sayso = bound_to(arguments.source()).replace("send_money", &tool);
        let (harness, lines) = ask_with(&language, &question, &sayso);
        let name = format!("{}, ", tool.replace('_', " "));
        let is_in_question = lines.iter().any(|line| line.contains(&name));
        assert_eq!(!is_in_question, is_said.as_bool().unwrap(), "{}: {lines:#?}", action.source());
        // The person can always hear the exact call.
        let details = harness.subscriber.question_details(1, harness.now).unwrap();
        assert_eq!(details.text.contains(&name), !is_in_question, "{details:?}");
    }
}
