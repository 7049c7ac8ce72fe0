//! Each limit, at its exact value and one beyond it.

use crate::asp::transcripts::{TestTranscript, demo_transcript, transcript_with_subject};
use testing::cli::run_sayso;

/// Runs `verify` with this option. Returns the exit code.
#[track_caller]
fn verify_with_option(transcript: &TestTranscript, option: &str, number: usize) -> i32 {
    transcript.verify_bytes(transcript.text().as_bytes(), &[option, &number.to_string()]).exit_code
}

#[test]
fn each_limit_accepts_its_value_and_rejects_one_more() {
    let transcript = demo_transcript("agreed");
    let longest = transcript.messages.iter().map(String::len).max().unwrap();
    assert_eq!(verify_with_option(transcript, "--max-message-bytes", longest), 0);
    assert_eq!(verify_with_option(transcript, "--max-message-bytes", longest - 1), 1);
    assert_eq!(verify_with_option(transcript, "--max-message-bytes", 0), 1);
    assert_eq!(verify_with_option(transcript, "--max-messages", transcript.messages.len()), 0);
    assert_eq!(verify_with_option(transcript, "--max-messages", transcript.messages.len() - 1), 1);
    assert_eq!(verify_with_option(transcript, "--max-messages", 0), 1);
    assert_eq!(verify_with_option(transcript, "--max-bytes", transcript.text().len()), 0);
    assert_eq!(verify_with_option(transcript, "--max-bytes", transcript.text().len() - 1), 2);
    assert_eq!(verify_with_option(transcript, "--max-bytes", 0), 2);
    for option in ["--max-message-bytes", "--max-messages", "--max-bytes"] {
        assert_eq!(verify_with_option(transcript, option, usize::MAX), 0, "{option}");
    }
    for jobs in [1, 2, 3, 64] {
        assert_eq!(verify_with_option(transcript, "--jobs", jobs), 0, "{jobs} jobs");
    }
}

#[test]
fn an_exceeded_limit_names_the_option_that_raises_it() {
    let transcript = demo_transcript("agreed");
    let run =
        |option: &str, number: &str| transcript.verify_bytes(transcript.text().as_bytes(), &[option, number]);
    let messages = run("--max-messages", "5");
    assert!(messages.stdout.starts_with("stdin:6: error: capacity_unavailable: "), "{}", messages.stdout);
    assert!(messages.stdout.contains("; --max-messages raises the limit"), "{}", messages.stdout);
    let bytes = run("--max-message-bytes", "1000");
    assert_eq!(
        bytes.stdout,
        "stdin:1: error: longer than 1000 bytes; --max-message-bytes raises the limit\n"
    );
    let too_long_input = run("--max-bytes", "10");
    assert_eq!(too_long_input.stdout, "");
    assert_eq!(
        too_long_input.stderr,
        "sayso: cannot read stdin: it is longer than 10 bytes; --max-bytes raises the limit\n"
    );
}

#[test]
fn trace_has_its_own_size_limit() {
    let text = demo_transcript("agreed").text();
    let run = |number: usize| run_sayso(&["asp", "trace", "-", "--max-bytes", &number.to_string()], &text);
    assert_eq!(run(text.len()).exit_code, 0);
    let over_limit = run(text.len() - 1);
    assert_eq!((over_limit.exit_code, &*over_limit.stdout), (2, ""));
    assert!(over_limit.stderr.contains("--max-bytes raises the limit"), "{}", over_limit.stderr);
    assert_eq!(run(usize::MAX).exit_code, 0);
}

#[test]
fn a_message_of_exactly_the_default_limit_is_accepted() {
    let overhead = transcript_with_subject("x").messages[4].len() - 1;
    let at_limit = transcript_with_subject(&"x".repeat(256 * 1024 - overhead));
    assert_eq!(at_limit.messages[4].len(), 256 * 1024);
    assert_eq!(at_limit.verify().exit_code, 0);
    let over_limit = transcript_with_subject(&"x".repeat(256 * 1024 - overhead + 1));
    let run = over_limit.verify();
    assert_eq!(run.exit_code, 1);
    assert!(run.stdout.starts_with("stdin:5: error: longer than 262144 bytes"), "{}", run.stdout);
    assert_eq!(verify_with_option(&over_limit, "--max-message-bytes", 256 * 1024 + 1), 0);
}
