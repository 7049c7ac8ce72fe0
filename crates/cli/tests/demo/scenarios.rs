//! The announcements of each demo request, from start to end.

use crate::demo::demo_process::{DemoProcess, run_once};

/// Returns whether a tool was called.
fn has_tool_call(announcements: &[String]) -> bool {
    announcements.iter().any(|line| line.starts_with("tool: "))
}

#[test]
fn a_balance_request_is_announced_completely() {
    let expected = [
        "session: Demo assistant has started. Checking the balance.",
        "tool: Looking up the balance of the demo account.",
        "progress: Step one of one.",
        "tool: The balance was found.",
        "agent: The demo account holds 1250 euros; no real bank was contacted.",
        "session: Demo assistant has finished. That is all.",
    ];
    assert_eq!(run_once("what's my balance?", &[]), expected);
}

#[test]
fn an_accepted_transfer_is_announced_completely() {
    let expected = [
        "session: Demo assistant has started. Preparing a demo transfer.",
        "ask: Demo assistant: Transfer 20 euros to Ada.",
        "ask: The money leaves the account at once.",
        "ask: This cannot be undone.",
        "ask: You have …",
        "ask: Yes or no?",
        "answer: Question 1 was answered automatically: yes.",
        "answer: Accepted.",
        "tool: Transferring 20 euros to Ada.",
        "tool: The transfer is complete.",
        "agent: In the demo, 20 euros went to Ada; no real money moved.",
        "session: Demo assistant has finished. That is all.",
    ];
    assert_eq!(run_once("send 20 euros to Ada", &["--auto", "accept"]), expected);
}

#[test]
fn a_cancellation_is_announced_completely_in_terse_mode() {
    let expected = [
        "session: Demo assistant has started. Starting a task in order to cancel it.",
        "session: Demo assistant says that a person stopped it. Cancelled.",
    ];
    assert_eq!(run_once("cancel", &["--verbosity", "terse"]), expected);
}

#[test]
fn a_handoff_is_announced_completely_without_repetition() {
    let expected = [
        "session: Demo assistant has started. Preparing to hand over to a person.",
        "handoff: Demo assistant is handing over to a person. A person is needed. In the demo, nobody is called. Reason: You asked for a person.",
        "session: Demo assistant has finished. The demo ends here.",
    ];
    assert_eq!(run_once("escalate to a human", &[]), expected);
}

#[test]
fn other_requests_are_announced_as_expected() {
    for (request, lines) in [
        ("book a room", ["ask: Demo assistant: Book the Garden room", "tool: The room is booked."]),
        (
            "send an e-mail to Ada",
            ["ask: Demo assistant: Send a short greeting", "tool: The greeting was sent."],
        ),
        (
            "delete a record",
            ["ask: Demo assistant: Delete the demo record.", "tool: The record was deleted."],
        ),
        ("how is the weather?", ["ask: 1: Lagos.", "agent: In Lagos, as everywhere in the demo"]),
        ("weather in Madrid", ["session: Demo assistant has started.", "agent: In Madrid, as everywhere"]),
        (
            "explain it at length",
            ["agent: This demo only explains itself.", "agent: Without an answer, nothing is done."],
        ),
        (
            "use a tool that does not exist",
            ["error: Demo assistant has failed.", "There is no such tool, so nothing was done."],
        ),
        ("escalate to a human", ["handoff: Demo assistant", "session: Demo assistant has finished."]),
        (
            "fail",
            [
                "tool: Failed: The balance could not be read. As you asked,",
                "error: Demo assistant has failed.",
            ],
        ),
        ("hello", ["agent: Hello, this is a scripted demo", "session: Demo assistant has finished."]),
        (
            "sing me a song",
            [
                "agent: I do not know how to do that, so I did nothing; you can ask me to show your balance",
                "The request was not understood. Nothing was done.",
            ],
        ),
    ] {
        let announcements = run_once(request, &["--auto", "accept"]);
        for line in lines {
            assert!(
                announcements.iter().any(|announcement| announcement.contains(line)),
                "{request}: no {line} in {announcements:#?}"
            );
        }
    }
}

#[test]
fn only_an_accepted_question_leads_to_the_tool_call() {
    for request in ["send 20 euros to Ben", "book a room", "send an e-mail to Ada", "delete a record"] {
        let announcements = run_once(request, &["--auto", "accept"]);
        assert!(has_tool_call(&announcements), "{announcements:#?}");
        let announcements = run_once(request, &["--auto", "reject"]);
        assert!(!has_tool_call(&announcements), "{announcements:#?}");
        assert!(
            announcements.contains(&"answer: Question 1 was answered automatically: no.".to_owned()),
            "{announcements:#?}"
        );
    }
    let announcements = run_once("send 20 euros to Ben", &["--auto", "none"]);
    assert!(!has_tool_call(&announcements), "{announcements:#?}");
    for line in ["answer: Nobody answered question 1 in time: rejected.", "agent: Nothing was transferred."] {
        assert!(announcements.contains(&line.to_owned()), "{line}: {announcements:#?}");
    }
}

#[test]
fn an_automatic_no_does_not_shorten_the_time_to_answer() {
    let mut demo = DemoProcess::start(&["--once", "delete a record", "--auto", "reject"]);
    demo.close_input();
    assert_eq!(demo.wait_for_exit(), 0);
    assert!(demo.printed.contains(&"ask: You have 2 minutes.".to_owned()), "{:#?}", demo.printed);
}

#[test]
fn announcements_are_localized_in_spanish_and_yoruba() {
    for (request, options, line) in [
        ("balance", ["--lang", "es"].as_slice(), "agente: La cuenta de demostración tiene 1250 euros"),
        ("balance", &["--lang", "yo"], "aṣojú: Yúrò 1250 ló wà nínú àkántì àfihàn"),
        ("¿cuál es mi saldo?", &[], "herramienta: Consultando el saldo de la cuenta de demostración."),
        ("iye owó mi", &[], "irinṣẹ́: Mo rí iye owó náà."),
        (
            "transfiere 20 euros a Ada",
            &["--auto", "accept"],
            "pregunta: Demo assistant: Transferir 20 euros a Ada.",
        ),
    ] {
        let announcements = run_once(request, options);
        assert!(
            announcements.iter().any(|announcement| announcement.starts_with(line)),
            "{request}: no {line} in {announcements:#?}"
        );
    }
}
