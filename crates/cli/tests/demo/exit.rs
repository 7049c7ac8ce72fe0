//! How the demo exits.

use crate::demo::demo_process::DemoProcess;

#[test]
fn a_signal_ends_the_demo_with_code_0_even_during_a_question() {
    for signal in ["INT", "TERM"] {
        let mut demo = DemoProcess::start(&[]);
        demo.read_until("notice: Listening to ");
        demo.signal(signal);
        assert_eq!(demo.wait_for_exit(), 0, "{signal}");
        let mut demo = DemoProcess::start(&[]);
        demo.type_line("delete a record");
        demo.read_until("ask: Yes or no?");
        demo.signal(signal);
        assert_eq!(demo.wait_for_exit(), 0, "{signal}");
        let printed = demo.printed.join("\n");
        assert!(
            !printed.contains("tool: ") && !printed.contains("Nobody answered"),
            "the demo waited for an answer: {printed}"
        );
    }
}

#[test]
fn without_input_the_demo_exits_immediately() {
    let mut demo = DemoProcess::start(&[]);
    demo.close_input();
    assert_eq!(demo.wait_for_exit(), 0);
    assert_eq!(demo.printed.last().unwrap(), "notice: The demo has ended.");
}

#[test]
fn a_running_request_is_finished_after_the_input_ends() {
    let mut demo = DemoProcess::start(&[]);
    demo.type_line("send 20 euros to Ben");
    demo.close_input();
    assert_eq!(demo.wait_for_exit(), 0);
    let printed = demo.printed.join("\n");
    // The question may come before or after the demo sees the end of the input.
    let outcomes = ["Nobody answered question 1 in time: rejected.", "Question 1 was withdrawn."];
    assert!(outcomes.iter().any(|outcome| printed.contains(outcome)), "{printed}");
    for part in ["Nothing was transferred.", "has finished."] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
}

#[test]
fn an_open_question_is_withdrawn_when_the_input_ends() {
    let mut demo = DemoProcess::start(&[]);
    demo.type_line("send 20 euros to Ben");
    let time = demo.read_until("ask: You have ");
    assert!(time.contains("2 minutes."), "{time}");
    demo.read_until("ask: Yes or no?");
    demo.close_input();
    demo.read_until("answer: Question 1 was withdrawn.");
    demo.read_until("agent: Nothing was transferred.");
    demo.read_until("session: Demo assistant has finished.");
    assert_eq!(demo.wait_for_exit(), 0);
    assert!(!demo.printed.iter().any(|line| line.starts_with("tool: ")), "{:#?}", demo.printed);
}

#[test]
fn a_reader_that_closes_the_pipe_early_is_not_a_failure() {
    let output = std::process::Command::new("sh")
        .args(["-c", r#""$0" demo --once hello </dev/null | head -n 1"#, env!("CARGO_BIN_EXE_sayso")])
        .output()
        .unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}
