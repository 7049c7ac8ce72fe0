//! What is typed is an answer, a command or a request.

use crate::run::Demo;

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
