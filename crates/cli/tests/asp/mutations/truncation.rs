//! Exhaustive, through the binary: truncates every transcript after every message. The remaining messages are valid, and the
//! session is reported as open. One transcript is also truncated inside messages.

use crate::asp::transcripts::{DEMOS, trace};

#[test]
fn a_truncated_transcript_leaves_the_session_open() {
    let mut count = 0;
    for transcript in DEMOS.iter() {
        let ends_with_message = !transcript.name.ends_with("-timeout");
        for length in 1..=transcript.messages.len() {
            let messages: Vec<_> = transcript.messages[..length].iter().map(String::as_str).collect();
            let run = transcript.verify_messages(&messages);
            assert_eq!(
                (run.exit_code, &*run.stderr),
                (0, ""),
                "{} cut at {length}: {}",
                transcript.name,
                run.stdout
            );
            let is_open = run.stdout.contains("\nwarning: the session is still open (");
            let has_ended = run.stdout.contains("\nThe session ended ");
            let is_complete = length == transcript.messages.len() && ends_with_message;
            assert_eq!(
                (is_open, has_ended),
                (!is_complete, is_complete),
                "{} cut at {length}: {}",
                transcript.name,
                run.stdout
            );
            let plural = if length == 1 { "" } else { "s" };
            assert!(
                run.stdout.starts_with(&format!("stdin: {length} message{plural}, session ")),
                "{}",
                run.stdout
            );
            let traced = trace(messages.join("\n"));
            assert_eq!(traced.exit_code, 0);
            assert_eq!(
                traced.stdout.contains("\nThe session is still open: "),
                !is_complete,
                "{}",
                traced.stdout
            );
            count += 1;
        }
    }
    println!("{count} truncated transcripts");
}

#[test]
fn a_transcript_truncated_inside_a_message_is_rejected() {
    let transcript = &DEMOS[0];
    let text = transcript.text();
    let mut count = 0;
    for length in (1..text.len()).step_by(997) {
        let truncated = &text[..length];
        let line = truncated.lines().count();
        let run = transcript.verify_bytes(truncated.as_bytes(), &[]);
        let last = truncated.lines().last().unwrap();
        if last == transcript.messages[line - 1] {
            continue;
        }
        assert_eq!(run.exit_code, 1, "{length}: {}", run.stdout);
        assert!(run.stdout.starts_with(&format!("stdin:{line}: error: not JSON")), "{}", run.stdout);
        count += 1;
    }
    println!("{count} cuts inside a message");
}
