//! Typed lines: answers, commands and requests.

use crate::demo::demo_process::{DemoProcess, strip_times};

#[test]
fn a_typed_yes_runs_the_tool_and_another_request_can_follow() {
    let mut demo = DemoProcess::start(&[]);
    demo.type_line("send 20 euros to Ada");
    demo.read_until("ask: Yes or no?");
    demo.type_line("y");
    demo.read_until("error: Nothing was sent. Type the whole word: yes 1 or no 1.");
    demo.type_line("yes");
    demo.read_until("answer: Question 1: yes.");
    demo.read_until("tool: The transfer is complete.");
    demo.read_until("session: Demo assistant has finished.");
    demo.type_line("delete a record");
    demo.read_until("ask: Question 2");
    demo.type_line("no");
    demo.read_until("agent: The record was not deleted.");
    demo.type_line("quit");
    assert_eq!(demo.wait_for_exit(), 0);
    assert!(!demo.printed.iter().any(|line| line.contains("The record was deleted")), "{:#?}", demo.printed);
}

#[test]
fn a_free_text_answer_and_other_commands_work() {
    let mut demo = DemoProcess::start(&[]);
    demo.type_line("weather");
    demo.read_until("ask: 3: Madrid.");
    demo.type_line("more time");
    demo.read_until("ask: More time for question 1: about 4 minutes left.");
    demo.type_line("status");
    demo.read_until("status: Question 1 from Demo assistant: ");
    demo.type_line("Ibadan");
    demo.read_until("agent: In Ibadan, as everywhere");
    demo.type_line("help");
    demo.read_until("help: Anything else is a request to the assistant.");
    demo.type_line("quit");
    assert_eq!(demo.wait_for_exit(), 0);
}

#[test]
fn input_that_resembles_an_answer_is_neither_an_answer_nor_a_request() {
    let mut demo = DemoProcess::start(&[]);
    demo.type_line("send 20 euros to Ada");
    demo.read_until("ask: Yes or no?");
    for line in
        ["nope", "yes please", "ok then", "sure", "go ahead", "I don't want that", "send it", "wibble"]
    {
        demo.type_line(line);
        let printed = demo.next_line().unwrap();
        assert!(
            printed.starts_with("error: That is not an answer, so nothing was sent."),
            "{line}: {printed}"
        );
        assert!(printed.contains("Yes or no?"), "{printed}");
    }
    demo.type_line("no");
    demo.read_until("agent: Nothing was transferred.");
    demo.type_line("quit");
    assert_eq!(demo.wait_for_exit(), 0);
    let sessions = demo.printed.iter().filter(|line| line.contains("has started")).count();
    assert_eq!(sessions, 1, "{:#?}", demo.printed);
}

#[test]
fn a_choice_goes_to_the_question_that_offers_it() {
    let mut demo = DemoProcess::start(&[]);
    for (choice, number) in [("Lagos", 2), ("answer 3", 3), ("3", 4)] {
        demo.type_line(if number == 2 {
            "delete a record\nhow is the weather?"
        } else {
            "how is the weather?"
        });
        demo.read_until(&format!("Question {number} from"));
        demo.read_until("ask: 2 questions are open. Type answer");
        demo.type_line(choice);
        demo.read_until(&format!("answer: Your answer to question {number}: "));
        demo.read_until("as everywhere in the demo");
    }
    demo.type_line("quit");
    demo.read_until("notice: You have not answered question 1.");
    assert_eq!(demo.wait_for_exit(), 0);
}

#[test]
fn a_piped_script_runs_to_its_end() {
    let mut demo = DemoProcess::start(&[]);
    demo.type_line("transfer 20 euros to Ada\nyes\nquit");
    assert_eq!(demo.wait_for_exit(), 0);
    let from = demo.printed.iter().position(|line| line.starts_with("session: ")).unwrap();
    let expected = [
        "session: Demo assistant has started. Preparing a demo transfer.",
        "ask: Demo assistant: Transfer 20 euros to Ada.",
        "ask: The money leaves the account at once.",
        "ask: This cannot be undone.",
        "ask: You have …",
        "ask: Yes or no?",
        "answer: Question 1: yes.",
        "answer: Accepted.",
        "tool: Transferring 20 euros to Ada.",
        "tool: The transfer is complete.",
        "agent: In the demo, 20 euros went to Ada; no real money moved.",
        "session: Demo assistant has finished. That is all.",
        "notice: The demo has ended.",
    ];
    assert_eq!(strip_times(&demo.printed[from..]), expected);
}

#[test]
fn lines_that_arrive_together_are_handled_in_order() {
    let mut demo = DemoProcess::start(&[]);
    demo.type_line(
        "send 20 euros to Ada\nrepeat\nyes\n\nweather\n2\nstatus\ndelete a record\nno\nwhat's my balance?",
    );
    demo.close_input();
    assert_eq!(demo.wait_for_exit(), 0);
    let mut printed = demo.printed.iter();
    for expected in [
        "ask: Demo assistant: Transfer",
        "ask: Demo assistant: Transfer",
        "answer: Question 1: yes.",
        "tool: The transfer is complete.",
        "ask: Demo assistant: Which place",
        "answer: Your answer to question 2: ",
        "agent: In London",
        "ask: Demo assistant: Delete",
        "answer: Question 3: no.",
        "agent: The record was not deleted.",
        "agent: The demo account holds 1250 euros",
        "notice: The demo has ended.",
    ] {
        assert!(printed.any(|line| line.starts_with(expected)), "{expected}: {:#?}", demo.printed);
    }
}

#[test]
fn the_person_can_stop_the_assistant() {
    let mut demo = DemoProcess::start(&["--once", "delete a record"]);
    demo.read_until("ask: Yes or no?");
    demo.type_line("stop");
    demo.read_until("answer: You stopped Demo assistant");
    assert_eq!(demo.wait_for_exit(), 0);
    assert!(!demo.printed.iter().any(|line| line.starts_with("tool: ")), "{:#?}", demo.printed);
}

#[test]
fn typed_lines_are_requests_if_answers_are_automatic() {
    let mut demo = DemoProcess::start(&["--auto", "accept"]);
    let listening = demo.read_until("notice: Listening to ");
    assert!(!listening.contains("help"), "{listening}");
    demo.type_line("book a room\nsend an e-mail to Ada");
    demo.read_until("tool: The room is booked.");
    demo.read_until("tool: The greeting was sent.");
    demo.close_input();
    assert_eq!(demo.wait_for_exit(), 0);
}

#[test]
fn in_a_terminal_requests_work_while_a_question_is_open() {
    let mut demo = DemoProcess::start_in_terminal(&[]);
    demo.read_until("notice: Listening to ");
    demo.type_line("delete a record");
    let time = demo.read_until("ask: You have ");
    // On a slow machine, less time is left.
    assert!(time.contains("2 minutes."), "{time}");
    // Another request and a command are typed while a question is open.
    demo.type_line("what's my balance?");
    demo.read_until("The demo account holds 1250 euros");
    demo.read_until("has finished. That is all.");
    demo.type_line("stop");
    demo.read_until("You stopped Demo assistant");
    demo.type_line("send 20 euros to Ada");
    demo.read_until("ask: Yes or no?");
    // A bare yes is not accepted in the first second after a question appears.
    demo.type_line("yes 2");
    demo.read_until("tool: The transfer is complete.");
    demo.read_until("has finished. That is all.");
    // The input ends right after a request.
    demo.type_bytes(b"what's my balance?\n\x04");
    assert_eq!(demo.wait_for_exit(), 0);
    let printed = demo.printed.join("\n");
    assert!(printed.ends_with("has finished. That is all.\nnotice: The demo has ended."), "{printed}");
    assert!(!printed.contains("The record was deleted"), "{printed}");
}
