//! Each request is told from its start to its end.

use crate::demo::run::once;

/// Whether something was done.
fn acts(told: &[String]) -> bool {
    told.iter().any(|line| line.starts_with("tool: "))
}

#[test]
fn a_balance_whole() {
    let wanted = [
        "session: Demonstration assistant has begun. The balance will be looked up.",
        "tool: Looking up the balance of the demonstration account.",
        "progress: Step one of one.",
        "tool: The balance was found.",
        "agent: The demonstration account holds 1250 euros; no real bank was asked.",
        "session: Demonstration assistant is done. That was all.",
    ];
    assert_eq!(once("what's my balance?", &[]), wanted);
}

#[test]
fn a_transfer_whole_with_a_yes() {
    let wanted = [
        "session: Demonstration assistant has begun. Preparing a transfer in the demonstration.",
        "ask: Question 1, from Demonstration assistant: May I transfer 20 euros to Ada? It cannot be undone.",
        "ask: What it would do: Transfer 20 euros from the demonstration account to Ada.",
        "ask: What follows from it: In the demonstration the money is gone and cannot be called back. No real money moves.",
        "ask: The risk is high, and it can never be undone.",
        "ask: You have …",
        "ask: Type the whole word accept or yes to allow it, or reject or no to refuse it.",
        "answer: Without a person, question 1 is answered: yes.",
        "answer: Your answer to question 1 counts: it may be done.",
        "tool: Transferring 20 euros to Ada. This can never be undone.",
        "tool: The transfer is done.",
        "agent: In the demonstration 20 euros went to Ada; no real money moved.",
        "session: Demonstration assistant is done. That was all.",
    ];
    assert_eq!(once("send 20 euro to Ada", &["--auto", "accept"]), wanted);
}

#[test]
fn a_cancellation_whole_in_few_words() {
    let wanted = [
        "session: Demonstration assistant has begun. Beginning, to cancel.",
        "session: Demonstration assistant was stopped by a person. Cancelled.",
    ];
    assert_eq!(once("cancel", &["--verbosity", "terse"]), wanted);
}

#[test]
fn a_handoff_whole_with_nothing_twice() {
    let wanted = [
        "session: Demonstration assistant has begun. Preparing to hand over to a person.",
        "handoff: Demonstration assistant cannot go on alone and hands over to a person. A person is asked to take over. In the demonstration nobody is called. The reason: You asked for a person.",
        "session: Demonstration assistant is done. The demonstration ends here.",
    ];
    assert_eq!(once("escalate to a human", &[]), wanted);
}

#[test]
fn every_request_of_the_welcome_is_told() {
    for (request, lines) in [
        ("book a room", ["ask: What it would do: Book the room Garden", "tool: The room is booked."]),
        (
            "send an e-mail to Ada",
            ["ask: Question 1, from Demonstration assistant: May I send", "tool: The greeting is sent."],
        ),
        (
            "delete a record",
            ["ask: What it would do: Delete the demonstration record.", "tool: The record is deleted."],
        ),
        (
            "how is the weather?",
            ["ask: Choice 1: Lagos.", "agent: In Lagos, as everywhere in the demonstration"],
        ),
        (
            "weather in Madrid",
            ["session: Demonstration assistant has begun.", "agent: In Madrid, as everywhere"],
        ),
        (
            "explain it at length",
            ["agent: This demonstration explains only itself.", "agent: Without an answer nothing is done."],
        ),
        (
            "use a tool that does not exist",
            ["error: Demonstration assistant has failed.", "There is no such tool, so nothing was done."],
        ),
        (
            "escalate to a human",
            ["handoff: Demonstration assistant", "session: Demonstration assistant is done."],
        ),
        (
            "fail",
            ["tool: The tool look up balance has failed.", "error: Demonstration assistant has failed."],
        ),
        (
            "hello",
            ["agent: Hello, this is a scripted demonstration", "session: Demonstration assistant is done."],
        ),
        (
            "sing me a song",
            [
                "agent: I do not know how to do that, so I did nothing; you can ask for your balance",
                "The request was not understood. Nothing was done.",
            ],
        ),
    ] {
        let told = once(request, &["--auto", "accept"]);
        for line in lines {
            assert!(told.iter().any(|told| told.contains(line)), "{request}: no {line} in {told:#?}");
        }
    }
}

#[test]
fn only_a_yes_leads_to_the_tool() {
    for request in ["send 20 euro to Ben", "book a room", "send an e-mail to Ada", "delete a record"] {
        let told = once(request, &["--auto", "accept"]);
        assert!(acts(&told), "{told:#?}");
        let told = once(request, &["--auto", "reject"]);
        assert!(!acts(&told), "{told:#?}");
        assert!(
            told.contains(&"answer: Without a person, question 1 is answered: no.".to_owned()),
            "{told:#?}"
        );
    }
    let told = once("send 20 euro to Ben", &["--auto", "none"]);
    assert!(!acts(&told), "{told:#?}");
    for line in
        ["answer: Nobody answered question 1 in time: it is not done.", "agent: Nothing was transferred."]
    {
        assert!(told.contains(&line.to_owned()), "{line}: {told:#?}");
    }
}

#[test]
fn it_is_told_in_spanish_and_yoruba() {
    for (request, more, line) in [
        ("balance", ["--lang", "es"].as_slice(), "agent: La cuenta de demostración tiene 1250 euros"),
        ("balance", &["--lang", "yo"], "agent: Yúrò 1250 ló wà nínú àkántì àfihàn"),
        ("¿cuál es mi saldo?", &[], "tool: Consultando el saldo de la cuenta de demostración."),
        ("iye owó mi", &[], "tool: Mo rí iye owó náà."),
        (
            "transfiere 20 euros a Ada",
            &["--auto", "accept"],
            "ask: Pregunta 1, de Demonstration assistant: ¿Puedo transferir 20 euros a Ada?",
        ),
    ] {
        let told = once(request, more);
        assert!(told.iter().any(|told| told.starts_with(line)), "{request}: no {line} in {told:#?}");
    }
}
