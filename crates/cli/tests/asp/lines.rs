//! How a transcript may be laid out, and what is none.

use crate::asp::talk::{Talk, demo, talk_about, trace};
use testing::cli::{Finished, sayso_fed};

#[track_caller]
fn is_good(talk: &Talk, bytes: &[u8], why: &str) {
    let verified = talk.verify_bytes(bytes, &[]);
    assert_eq!(verified.code, 0, "{why}: {}", verified.out);
    let traced = trace(bytes);
    assert_eq!(traced.code, 0, "{why}: {}", traced.out);
}

/// Both commands find the fault, at that line, in such words.
#[track_caller]
fn is_bad(bytes: &[u8], line: usize, verify_says: &str, trace_says: &str) -> [Finished; 2] {
    let verified = demo("agreed").verify_bytes(bytes, &[]);
    assert_eq!((verified.code, &*verified.err), (1, ""), "{}", verified.out);
    let at = format!("stdin:{line}: error ");
    assert!(verified.out.starts_with(&at) && verified.out.contains(verify_says), "{}", verified.out);
    assert_eq!(verified.out.lines().count(), 1, "one finding, the first: {}", verified.out);
    let traced = trace(bytes);
    assert_eq!(traced.code, 1, "{}", traced.out);
    assert!(traced.out.contains(&at) && traced.out.contains(trace_says), "{}", traced.out);
    [verified, traced]
}

#[test]
fn line_ends_and_blank_lines_do_not_matter() {
    let talk = demo("agreed");
    let text = talk.text();
    is_good(talk, text.as_bytes(), "as written");
    is_good(talk, text.trim_end().as_bytes(), "no newline at the end");
    is_good(talk, text.replace('\n', "\r\n").as_bytes(), "CRLF");
    is_good(talk, text.replace('\n', "\r\n").trim_end().as_bytes(), "CRLF, and none at the end");
    is_good(talk, format!("\n \t\n\r\n{}\n\n", text.replace('\n', "\n\n")).as_bytes(), "blank lines");
    is_good(talk, text.replace('\n', "  \t\n  ").as_bytes(), "blanks around a message");
}

#[test]
fn a_line_is_counted_as_an_editor_counts_it() {
    let text = demo("agreed").text().replacen("\"percent\":50", "\"percent\":51", 1);
    assert_eq!(text.lines().position(|line| line.contains("\"percent\":51")), Some(14));
    let run = demo("agreed").verify_bytes(format!("\n\n{text}").as_bytes(), &[]);
    assert!(run.out.starts_with("stdin:17: error "), "{}", run.out);
    let run = demo("agreed").verify_bytes(text.replace('\n', "\r\n").as_bytes(), &[]);
    assert!(run.out.starts_with("stdin:15: error "), "{}", run.out);
}

#[test]
fn nothing_is_no_transcript() {
    for nothing in ["", "\n", "\r\n \t\n"] {
        is_bad(nothing.as_bytes(), 1, "there is no message in it", "there is no message in it");
    }
}

#[test]
fn an_array_is_told_apart_from_lines() {
    let messages = &demo("agreed").messages;
    let compact = format!("[{}]", messages.join(","));
    is_bad(compact.as_bytes(), 1, "one message a line", "one message a line");
    let tall = format!("[\n{}\n]\n", messages.join(",\n"));
    is_bad(tall.as_bytes(), 1, "one message a line", "one message a line");
    is_bad(demo("agreed").cards.as_bytes(), 1, "one message a line", "one message a line");
}

#[test]
fn what_is_no_message_is_named_by_its_line() {
    let first = &demo("agreed").messages[0];
    let with = |line: &str| format!("{first}\n{line}\n");
    is_bad(with("{").as_bytes(), 2, "not JSON", "not JSON");
    is_bad(with("null").as_bytes(), 2, "sender.agentId", "must be");
    is_bad(with("\"text\"").as_bytes(), 2, "sender.agentId", "must be");
    is_bad(with("{}").as_bytes(), 2, "sender.agentId", "must be");
    is_bad(with(&format!("{first} {first}")).as_bytes(), 2, "a second value", "a second value");
    is_bad(with(&first[..first.len() / 2]).as_bytes(), 2, "not JSON", "not JSON");
    is_bad(b"\xEF\xBB\xBF{}", 1, "not JSON", "not JSON");
    let nested = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    is_bad(with(&nested).as_bytes(), 2, "nested more than 64 deep", "nested more than 64 deep");
}

#[test]
fn bytes_that_are_not_utf8_are_refused_as_they_stand() {
    let mut bytes = demo("agreed").text().into_bytes();
    let at = bytes.windows(7).position(|window| window == b"braille").unwrap();
    bytes[at] = 0xFF;
    is_bad(&bytes, 1, "not UTF-8", "not UTF-8");
    is_bad(&[0; 4096], 1, "not JSON", "not JSON");
    is_bad("{}".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>().as_slice(), 1, "JSON", "JSON");
}

/// A reader that mends what is not UTF-8 puts U+FFFD there: bytes that nobody signed would pass for a text that has it.
#[test]
fn broken_bytes_do_not_pass_for_a_replacement_character_that_was_signed() {
    let talk = talk_about("how \u{FFFD} got there");
    is_good(&talk, talk.text().as_bytes(), "a replacement character");
    let text = talk.text();
    let at = text.find('\u{FFFD}').unwrap();
    for broken in [&b"\xFF"[..], b"\xC3", b"\xED\xA0", b"\xF0\x9F\x98"] {
        let bytes = [&text.as_bytes()[..at], broken, &text.as_bytes()[at + 3..]].concat();
        let run = talk.verify_bytes(&bytes, &[]);
        assert_eq!(run.code, 1, "{broken:?} passed: {}", run.out);
        assert!(run.out.starts_with("stdin:5: error not UTF-8 at byte "), "{}", run.out);
        assert_eq!(trace(&bytes).code, 1);
    }
}

#[test]
fn a_line_of_ten_megabytes_is_refused_and_not_repeated() {
    let long = 10 << 20;
    let feed = |head: &'static str, letter: u8, tail: &'static str| {
        move |stdin: &mut dyn std::io::Write| -> std::io::Result<()> {
            stdin.write_all(head.as_bytes())?;
            stdin.write_all(&vec![letter; long])?;
            stdin.write_all(tail.as_bytes())
        }
    };
    let folder = tempfile::tempdir().unwrap();
    let cards = folder.path().join("cards.json");
    std::fs::write(&cards, &demo("agreed").cards).unwrap();
    let verify = ["asp", "verify", "-", "--cards", cards.to_str().unwrap()];
    let huge = [&verify[..], &["--max-message-bytes", "100000000"]].concat();
    for (head, letter, tail) in [
        ("", b'x', ""),
        ("{\"sender\":{\"agentId\":\"", b'x', "\"}}\n"),
        ("{\"version\":\"", b' ', "\"}"),
        ("", b'[', ""),
        ("{\"a\":", b'1', "}"),
    ] {
        for arguments in [&verify[..], &huge, &["asp", "trace", "-"]] {
            let run = sayso_fed(arguments, feed(head, letter, tail));
            assert_eq!(run.code, 1, "{head} {arguments:?}: {}", run.err);
            assert!(run.out.len() < 1000, "{head} {arguments:?}: {} bytes of answer", run.out.len());
        }
        let run = sayso_fed(&verify, feed(head, letter, tail));
        assert!(
            letter == b'[' || run.out.contains("longer than 262144 bytes; --max-message-bytes"),
            "{}",
            run.out
        );
    }
}
