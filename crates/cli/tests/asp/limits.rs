//! Limits, at their number and one beyond.

use crate::asp::talk::{Talk, demo, talk_about};
use testing::cli::sayso;

#[track_caller]
fn code(talk: &Talk, option: &str, number: usize) -> i32 {
    talk.verify_bytes(talk.text().as_bytes(), &[option, &number.to_string()]).code
}

#[test]
fn each_limit_lets_its_own_number_pass_and_not_one_more() {
    let talk = demo("agreed");
    let longest = talk.messages.iter().map(String::len).max().unwrap();
    assert_eq!(code(talk, "--max-message-bytes", longest), 0);
    assert_eq!(code(talk, "--max-message-bytes", longest - 1), 1);
    assert_eq!(code(talk, "--max-message-bytes", 0), 1);
    assert_eq!(code(talk, "--max-messages", talk.messages.len()), 0);
    assert_eq!(code(talk, "--max-messages", talk.messages.len() - 1), 1);
    assert_eq!(code(talk, "--max-messages", 0), 1);
    assert_eq!(code(talk, "--max-bytes", talk.text().len()), 0);
    assert_eq!(code(talk, "--max-bytes", talk.text().len() - 1), 2);
    assert_eq!(code(talk, "--max-bytes", 0), 2);
    for most in ["--max-message-bytes", "--max-messages", "--max-bytes"] {
        assert_eq!(code(talk, most, usize::MAX), 0, "{most}");
    }
    for jobs in [1, 2, 3, 64] {
        assert_eq!(code(talk, "--jobs", jobs), 0, "{jobs} jobs");
    }
}

#[test]
fn what_a_limit_stops_is_told_with_the_option_that_takes_more() {
    let talk = demo("agreed");
    let run = |option: &str, number: &str| talk.verify_bytes(talk.text().as_bytes(), &[option, number]);
    let messages = run("--max-messages", "5");
    assert!(messages.out.starts_with("stdin:6: error capacity_unavailable: "), "{}", messages.out);
    assert!(messages.out.contains("; --max-messages takes more"), "{}", messages.out);
    let bytes = run("--max-message-bytes", "1000");
    assert_eq!(bytes.out, "stdin:1: error longer than 1000 bytes; --max-message-bytes takes more\n");
    let whole = run("--max-bytes", "10");
    assert_eq!(whole.out, "");
    assert_eq!(whole.err, "sayso: cannot read stdin: it is longer than 10 bytes; --max-bytes takes more\n");
}

#[test]
fn the_trace_has_a_limit_of_its_own() {
    let text = demo("agreed").text();
    let run = |number: usize| sayso(&["asp", "trace", "-", "--max-bytes", &number.to_string()], &text);
    assert_eq!(run(text.len()).code, 0);
    let over = run(text.len() - 1);
    assert_eq!((over.code, &*over.out), (2, ""));
    assert!(over.err.contains("--max-bytes takes more"), "{}", over.err);
    assert_eq!(run(usize::MAX).code, 0);
}

#[test]
fn a_message_of_exactly_the_default_limit_is_read() {
    let around = talk_about("x").messages[4].len() - 1;
    let at = talk_about(&"x".repeat(256 * 1024 - around));
    assert_eq!(at.messages[4].len(), 256 * 1024);
    assert_eq!(at.verify().code, 0);
    let over = talk_about(&"x".repeat(256 * 1024 - around + 1));
    let run = over.verify();
    assert_eq!(run.code, 1);
    assert!(run.out.starts_with("stdin:5: error longer than 262144 bytes"), "{}", run.out);
    assert_eq!(code(&over, "--max-message-bytes", 256 * 1024 + 1), 0);
}
