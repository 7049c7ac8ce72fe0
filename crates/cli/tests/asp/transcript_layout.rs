//! Accepted and rejected transcript layouts.

use crate::asp::transcripts::{TestTranscript, demo_transcript, trace, transcript_with_subject};
use testing::cli::run_sayso_with_input;

#[track_caller]
fn assert_accepted(transcript: &TestTranscript, bytes: &[u8], description: &str) {
    let verified = transcript.verify_bytes(bytes, &[]);
    assert_eq!(verified.exit_code, 0, "{description}: {}", verified.stdout);
    let traced = trace(bytes);
    assert_eq!(traced.exit_code, 0, "{description}: {}", traced.stdout);
}

/// Asserts that `verify` and `trace` report these errors at this line.
#[track_caller]
fn assert_rejected(bytes: &[u8], line: usize, verify_text: &str, trace_text: &str) {
    let verified = demo_transcript("agreed").verify_bytes(bytes, &[]);
    assert_eq!((verified.exit_code, &*verified.stderr), (1, ""), "{}", verified.stdout);
    let prefix = format!("stdin:{line}: error: ");
    assert!(
        verified.stdout.starts_with(&prefix) && verified.stdout.contains(verify_text),
        "{}",
        verified.stdout
    );
    assert_eq!(verified.stdout.lines().count(), 1, "only the first finding: {}", verified.stdout);
    let traced = trace(bytes);
    assert_eq!(traced.exit_code, 1, "{}", traced.stdout);
    assert!(traced.stdout.contains(&prefix) && traced.stdout.contains(trace_text), "{}", traced.stdout);
}

#[test]
fn line_endings_and_blank_lines_do_not_matter() {
    let transcript = demo_transcript("agreed");
    let text = transcript.text();
    assert_accepted(transcript, text.as_bytes(), "as written");
    assert_accepted(transcript, text.trim_end().as_bytes(), "no final newline");
    assert_accepted(transcript, text.replace('\n', "\r\n").as_bytes(), "CRLF");
    assert_accepted(
        transcript,
        text.replace('\n', "\r\n").trim_end().as_bytes(),
        "CRLF without a final line end",
    );
    assert_accepted(
        transcript,
        format!("\n \t\n\r\n{}\n\n", text.replace('\n', "\n\n")).as_bytes(),
        "blank lines",
    );
    assert_accepted(transcript, text.replace('\n', "  \t\n  ").as_bytes(), "blanks around a message");
}

#[test]
fn lines_are_numbered_as_in_an_editor() {
    let text = demo_transcript("agreed").text().replacen("\"percent\":50", "\"percent\":51", 1);
    assert_eq!(text.lines().position(|line| line.contains("\"percent\":51")), Some(14));
    let run = demo_transcript("agreed").verify_bytes(format!("\n\n{text}").as_bytes(), &[]);
    assert!(run.stdout.starts_with("stdin:17: error: "), "{}", run.stdout);
    let run = demo_transcript("agreed").verify_bytes(text.replace('\n', "\r\n").as_bytes(), &[]);
    assert!(run.stdout.starts_with("stdin:15: error: "), "{}", run.stdout);
}

#[test]
fn an_empty_file_is_not_a_transcript() {
    for empty in ["", "\n", "\r\n \t\n"] {
        assert_rejected(
            empty.as_bytes(),
            1,
            "the transcript contains no messages",
            "the transcript contains no messages",
        );
    }
}

#[test]
fn an_array_is_rejected_with_a_hint() {
    let messages = &demo_transcript("agreed").messages;
    let one_line = format!("[{}]", messages.join(","));
    assert_rejected(one_line.as_bytes(), 1, "one message per line", "one message per line");
    let multi_line = format!("[\n{}\n]\n", messages.join(",\n"));
    assert_rejected(multi_line.as_bytes(), 1, "one message per line", "one message per line");
    assert_rejected(
        demo_transcript("agreed").cards.as_bytes(),
        1,
        "one message per line",
        "one message per line",
    );
}

#[test]
fn the_error_names_a_line_that_is_not_a_message() {
    let first = &demo_transcript("agreed").messages[0];
    let with_line = |line: &str| format!("{first}\n{line}\n");
    assert_rejected(with_line("{").as_bytes(), 2, "not JSON", "not JSON");
    assert_rejected(with_line("null").as_bytes(), 2, "sender.agentId", "must be");
    assert_rejected(with_line("\"text\"").as_bytes(), 2, "sender.agentId", "must be");
    assert_rejected(with_line("{}").as_bytes(), 2, "sender.agentId", "must be");
    assert_rejected(
        with_line(&format!("{first} {first}")).as_bytes(),
        2,
        "there is more text after",
        "there is more text after",
    );
    assert_rejected(with_line(&first[..first.len() / 2]).as_bytes(), 2, "not JSON", "not JSON");
    assert_rejected(b"\xEF\xBB\xBF{}", 1, "not JSON", "not JSON");
    let nested = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert_rejected(with_line(&nested).as_bytes(), 2, "nested more than 64 deep", "nested more than 64 deep");
}

#[test]
fn bytes_that_are_not_utf8_are_rejected() {
    let mut bytes = demo_transcript("agreed").text().into_bytes();
    let at = bytes.windows(7).position(|window| window == b"braille").unwrap();
    bytes[at] = 0xFF;
    assert_rejected(&bytes, 1, "not UTF-8", "not UTF-8");
    assert_rejected(&[0; 4096], 1, "not JSON", "not JSON");
    assert_rejected(
        "{}".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>().as_slice(),
        1,
        "JSON",
        "JSON",
    );
}

/// A lossy reader would replace invalid UTF-8 with U+FFFD, so unsigned bytes would pass for a signed text that contains it.
#[test]
fn invalid_utf8_does_not_pass_for_a_signed_replacement_character() {
    let transcript = transcript_with_subject("how \u{FFFD} got there");
    assert_accepted(&transcript, transcript.text().as_bytes(), "a replacement character");
    let text = transcript.text();
    let at = text.find('\u{FFFD}').unwrap();
    for invalid in [&b"\xFF"[..], b"\xC3", b"\xED\xA0", b"\xF0\x9F\x98"] {
        let bytes = [&text.as_bytes()[..at], invalid, &text.as_bytes()[at + 3..]].concat();
        let run = transcript.verify_bytes(&bytes, &[]);
        assert_eq!(run.exit_code, 1, "{invalid:?} passed: {}", run.stdout);
        assert!(run.stdout.starts_with("stdin:5: error: not UTF-8 at byte "), "{}", run.stdout);
        assert_eq!(trace(&bytes).exit_code, 1);
    }
}

#[test]
fn a_line_of_ten_megabytes_is_rejected_and_not_echoed() {
    let length = 10 << 20;
    let write_input = |head: &'static str, filler: u8, tail: &'static str| {
        move |stdin: &mut dyn std::io::Write| -> std::io::Result<()> {
            stdin.write_all(head.as_bytes())?;
            stdin.write_all(&vec![filler; length])?;
            stdin.write_all(tail.as_bytes())
        }
    };
    let folder = tempfile::tempdir().unwrap();
    let cards = folder.path().join("cards.json");
    std::fs::write(&cards, &demo_transcript("agreed").cards).unwrap();
    let verify = ["asp", "verify", "-", "--cards", cards.to_str().unwrap()];
    let verify_with_high_limit = [&verify[..], &["--max-message-bytes", "100000000"]].concat();
    for (head, filler, tail) in [
        ("", b'x', ""),
        ("{\"sender\":{\"agentId\":\"", b'x', "\"}}\n"),
        ("{\"version\":\"", b' ', "\"}"),
        ("", b'[', ""),
        ("{\"a\":", b'1', "}"),
    ] {
        for arguments in [&verify[..], &verify_with_high_limit, &["asp", "trace", "-"]] {
            let run = run_sayso_with_input(arguments, write_input(head, filler, tail));
            assert_eq!(run.exit_code, 1, "{head} {arguments:?}: {}", run.stderr);
            assert!(run.stdout.len() < 1000, "{head} {arguments:?}: {} bytes of output", run.stdout.len());
        }
        let run = run_sayso_with_input(&verify, write_input(head, filler, tail));
        assert!(
            filler == b'[' || run.stdout.contains("longer than 262144 bytes; --max-message-bytes"),
            "{}",
            run.stdout
        );
    }
}
