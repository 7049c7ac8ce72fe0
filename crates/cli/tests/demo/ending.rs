//! How it ends.

use crate::demo::run::Demo;

#[test]
fn a_signal_ends_it_well_also_in_the_middle_of_a_question() {
    for signal in ["INT", "TERM"] {
        let mut demo = Demo::start(&[]);
        demo.until("notice: Listening to ");
        demo.signal(signal);
        assert_eq!(demo.end(), 0, "{signal}");
        let mut demo = Demo::start(&[]);
        demo.types("delete a record");
        demo.until("ask: Type the whole word");
        demo.signal(signal);
        assert_eq!(demo.end(), 0, "{signal}");
        let said = demo.printed.join("\n");
        assert!(!said.contains("tool: ") && !said.contains("Nobody answered"), "it waited: {said}");
    }
}

#[test]
fn without_anything_to_read_it_ends_at_once() {
    let mut demo = Demo::start(&[]);
    demo.hangs_up();
    assert_eq!(demo.end(), 0);
    assert_eq!(demo.printed.last().unwrap(), "notice: The demonstration has ended.");
}

#[test]
fn when_the_input_ends_what_is_under_way_is_told_to_its_end() {
    let mut demo = Demo::start(&[]);
    demo.types("send 20 euro to Ben");
    demo.hangs_up();
    assert_eq!(demo.end(), 0);
    let said = demo.printed.join("\n");
    // It may have been asked before or after the end of the input was seen.
    let ways =
        ["Nobody answered question 1 in time: it is not done.", "Question 1 is withdrawn: it is not done."];
    assert!(ways.iter().any(|way| said.contains(way)), "{said}");
    for part in ["Nothing was transferred.", "is done."] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn when_the_input_ends_nobody_waits_for_an_open_question() {
    let mut demo = Demo::start(&[]);
    demo.types("send 20 euro to Ben");
    let time = demo.until("ask: You have ");
    assert!(time.contains("2 minutes.") || time.contains("115 seconds."), "{time}");
    demo.until("ask: Type the whole word");
    demo.hangs_up();
    demo.until("answer: Question 1 is withdrawn: it is not done.");
    demo.until("agent: Nothing was transferred.");
    demo.until("session: Demonstration assistant is done.");
    assert_eq!(demo.end(), 0);
    assert!(!demo.printed.iter().any(|line| line.starts_with("tool: ")), "{:#?}", demo.printed);
}

#[test]
fn a_reader_that_has_heard_enough_is_no_failure() {
    let status = std::process::Command::new("sh")
        .args(["-c", r#""$0" demo --once hello </dev/null | head -n 1"#, env!("CARGO_BIN_EXE_sayso")])
        .output()
        .unwrap();
    assert!(status.status.success() && status.stderr.is_empty(), "{status:?}");
}
