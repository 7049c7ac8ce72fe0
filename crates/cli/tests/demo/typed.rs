//! What is typed is an answer, a command or a request.

use crate::demo::run::{Demo, without_times};

#[test]
fn a_typed_yes_leads_to_the_tool_and_the_next_request_is_taken() {
    let mut demo = Demo::start(&[]);
    demo.types("send 20 euro to Ada");
    demo.until("ask: Type the whole word");
    demo.types("y");
    demo.until("error: This cannot be undone");
    demo.types("yes");
    demo.until("answer: You say yes to question 1.");
    demo.until("tool: The transfer is done.");
    demo.until("session: Demonstration assistant is done.");
    demo.types("delete a record");
    demo.until("ask: Question 2");
    demo.types("no");
    demo.until("agent: The record was not deleted.");
    demo.types("quit");
    assert_eq!(demo.end(), 0);
    assert!(!demo.printed.iter().any(|line| line.contains("The record is deleted")), "{:#?}", demo.printed);
}

#[test]
fn an_answer_in_words_is_taken_and_what_helps_can_be_asked() {
    let mut demo = Demo::start(&[]);
    demo.types("weather");
    demo.until("ask: Choice 3: Madrid.");
    demo.types("more time");
    demo.until("ask: You asked for more time.");
    demo.types("status");
    demo.until("status: Question 1 from Demonstration assistant is open");
    demo.types("Ibadan");
    demo.until("agent: In Ibadan, as everywhere");
    demo.types("help");
    demo.until("help: Anything else is taken for what you want the assistant to do.");
    demo.types("quit");
    assert_eq!(demo.end(), 0);
}

#[test]
fn what_only_sounds_like_an_answer_starts_nothing_and_is_no_yes() {
    let mut demo = Demo::start(&[]);
    demo.types("send 20 euro to Ada");
    demo.until("ask: Type the whole word");
    for line in
        ["nope", "yes please", "ok then", "sure", "go ahead", "I don't want that", "send it", "wibble"]
    {
        demo.types(line);
        let said = demo.line().unwrap();
        assert!(
            said.starts_with("error: That was not taken as an answer, and nothing was sent."),
            "{line}: {said}"
        );
        assert!(said.contains("Type the whole word accept or yes to allow it, or reject or no"), "{said}");
    }
    demo.types("no");
    demo.until("agent: Nothing was transferred.");
    demo.types("quit");
    assert_eq!(demo.end(), 0);
    let begun = demo.printed.iter().filter(|line| line.contains("has begun")).count();
    assert_eq!(begun, 1, "{:#?}", demo.printed);
}

#[test]
fn with_two_questions_open_a_choice_goes_to_the_one_that_offers_it() {
    let mut demo = Demo::start(&[]);
    for (choice, number) in [("Lagos", 2), ("answer 3", 3), ("3", 4)] {
        demo.types(if number == 2 { "delete a record\nhow is the weather?" } else { "how is the weather?" });
        demo.until(&format!("Question {number}, from"));
        demo.until("ask: 2 questions are open. Type answer");
        demo.types(choice);
        demo.until(&format!("answer: You answer question {number}: "));
        demo.until("as everywhere in the demonstration");
    }
    demo.types("quit");
    demo.until("notice: Question 1 stays without your answer.");
    assert_eq!(demo.end(), 0);
}

#[test]
fn a_script_is_heard_to_its_last_word() {
    let mut demo = Demo::start(&[]);
    demo.types("transfer 20 euro to Ada\nyes\nquit");
    assert_eq!(demo.end(), 0);
    let from = demo.printed.iter().position(|line| line.starts_with("session: ")).unwrap();
    let wanted = [
        "session: Demonstration assistant has begun. Preparing a transfer in the demonstration.",
        "ask: Question 1, from Demonstration assistant: May I transfer 20 euros to Ada? It cannot be undone.",
        "ask: What it would do: Transfer 20 euros from the demonstration account to Ada.",
        "ask: What follows from it: In the demonstration the money is gone and cannot be called back. No real money moves.",
        "ask: The risk is high, and it can never be undone.",
        "ask: You have …",
        "ask: Type the whole word accept or yes to allow it, or reject or no to refuse it.",
        "answer: You say yes to question 1.",
        "answer: Your answer to question 1 counts: it may be done.",
        "tool: Transferring 20 euros to Ada. This can never be undone.",
        "tool: The transfer is done.",
        "agent: In the demonstration 20 euros went to Ada; no real money moved.",
        "session: Demonstration assistant is done. That was all.",
        "notice: The demonstration has ended.",
    ];
    assert_eq!(without_times(&demo.printed[from..]), wanted);
}

#[test]
fn lines_that_come_all_at_once_are_taken_each_in_its_turn() {
    let mut demo = Demo::start(&[]);
    demo.types(
        "send 20 euro to Ada\nrepeat\nyes\n\nweather\n2\nstatus\ndelete a record\nno\nwhat's my balance?",
    );
    demo.hangs_up();
    assert_eq!(demo.end(), 0);
    let mut told = demo.printed.iter();
    for wanted in [
        "ask: Question 1",
        "ask: Question 1",
        "answer: You say yes to question 1.",
        "tool: The transfer is done.",
        "ask: Question 2",
        "answer: You answer question 2: ",
        "agent: In London",
        "ask: Question 3",
        "answer: You say no to question 3.",
        "agent: The record was not deleted.",
        "agent: The demonstration account holds 1250 euros",
        "notice: The demonstration has ended.",
    ] {
        assert!(told.any(|line| line.starts_with(wanted)), "{wanted}: {:#?}", demo.printed);
    }
}

#[test]
fn the_person_can_stop_the_assistant() {
    let mut demo = Demo::start(&["--once", "delete a record"]);
    demo.until("ask: Type the whole word");
    demo.types("stop");
    demo.until("answer: You stop Demonstration assistant");
    assert_eq!(demo.end(), 0);
    assert!(!demo.printed.iter().any(|line| line.starts_with("tool: ")), "{:#?}", demo.printed);
}

#[test]
fn with_auto_what_is_typed_is_a_request() {
    let mut demo = Demo::start(&["--auto", "accept"]);
    let listening = demo.until("notice: Listening to ");
    assert!(!listening.contains("help"), "{listening}");
    demo.types("book a room\nsend an e-mail to Ada");
    demo.until("tool: The room is booked.");
    demo.until("tool: The greeting is sent.");
    demo.hangs_up();
    assert_eq!(demo.end(), 0);
}

#[test]
fn at_a_keyboard_nobody_is_kept_waiting_and_has_time() {
    let mut demo = Demo::at_keyboard(&[]);
    demo.until("notice: Listening to ");
    demo.types("delete a record");
    let time = demo.until("ask: You have ");
    // On a slow machine it is said later.
    assert!(time.contains("2 minutes.") || time.contains("115 seconds."), "{time}");
    // Both while a question is open: another request, and a command.
    demo.types("what's my balance?");
    demo.until("The demonstration account holds 1250 euros");
    demo.until("is done. That was all.");
    demo.types("stop");
    demo.until("You stop Demonstration assistant");
    demo.types("send 20 euro to Ada");
    demo.until("ask: Type the whole word");
    // A bare yes is not taken so shortly after another question went away.
    demo.types("yes 2");
    demo.until("tool: The transfer is done.");
    demo.until("is done. That was all.");
    // The end of what is typed, right after a request.
    demo.types_bytes(b"what's my balance?\n\x04");
    assert_eq!(demo.end(), 0);
    let said = demo.printed.join("\n");
    assert!(said.ends_with("is done. That was all.\nnotice: The demonstration has ended."), "{said}");
    assert!(!said.contains("The record is deleted"), "{said}");
}
