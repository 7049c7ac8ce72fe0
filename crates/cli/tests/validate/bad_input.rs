//! Whatever is thrown at it: a clear finding, the right exit code; never a panic, a hang or a silent pass.

use crate::validate::events::{lines, started, thinking};
use testing::cli::{Finished, sayso};

/// The input is refused with exactly these findings, each by the beginning of its line and a part of its words.
#[track_caller]
fn refused(input: impl AsRef<[u8]> + Sync, expected: &[(&str, &str)]) -> Finished {
    let ended = sayso(&["validate"], &input);
    let shown = String::from_utf8_lossy(&input.as_ref()[..input.as_ref().len().min(300)]).into_owned();
    let findings = ended.findings();
    assert_eq!(findings.len(), expected.len(), "{shown}\n{}", ended.out);
    for (finding, (place, words)) in findings.iter().zip(expected) {
        assert!(
            finding.starts_with(place) && finding.contains(words),
            "{shown}\n{place}, {words}\n{finding}"
        );
    }
    assert_eq!(ended.code, 1, "{shown}");
    ended
}

const NOT_JSON: &str = "-:1: error AAEP-3.8-2 : ";
const NOT_UTF8: &str = "-:1: error AAEP-3.8-1 : ";
const NO_OBJECT: &str = "-:1: error AAEP-3.9-1 : ";
const UNSOUND: &str = "-:1: error AAEP-D.1-1 ";

#[test]
fn what_is_not_json() {
    refused("hello", &[(NOT_JSON, "expected a JSON value")]);
    refused("{'a':1}", &[(NOT_JSON, "")]);
    refused("{\"a\":1,}", &[(NOT_JSON, "")]);
    refused("{} {}", &[(NOT_JSON, "")]);
    refused("// comment", &[(NOT_JSON, "")]);
    refused("<html>", &[(NOT_JSON, "")]);
    refused("}", &[(NOT_JSON, "")]);
    refused("]", &[(NOT_JSON, "")]);
    refused("\"", &[(NOT_JSON, "ends inside")]);
    refused("{\"a\":\"tab\there\"}", &[(NOT_JSON, "")]);
    refused("events: x\ndata: {}", &[(NOT_JSON, ""), ("-:2: error AAEP-3.8-2 : ", "")]);
}

#[test]
fn a_byte_order_mark() {
    let ended = refused(format!("\u{FEFF}{}", lines(1, "sess_mark0001")), &[(NOT_UTF8, "byte-order mark")]);
    assert_eq!(
        ended.summary(),
        "3 events, 1 sessions: 1 errors, 0 warnings",
        "the rest is judged all the same"
    );
    refused("\u{FEFF}", &[(NOT_UTF8, "byte-order mark")]);
    refused(format!("\u{FEFF}[{}]", thinking(1, "sess_mark0001")), &[(NOT_UTF8, "byte-order mark")]);
    refused(format!("[\u{FEFF}{}]", thinking(1, "sess_mark0001")), &[(NOT_JSON, "")]);
}

#[test]
fn bytes_that_are_no_text() {
    refused(b"{\"a\":\"\xFF\"}", &[(NOT_UTF8, "byte 7 is not UTF-8")]);
    refused(b"[{\"a\":\"\xC3\"}]", &[(NOT_UTF8, "is not UTF-8")]);
    refused(b"\xFF\xFE{\0}\0", &[(NOT_UTF8, "byte 1 is not UTF-8")]);
    refused(b"{\"a\":\"\xED\xA0\x80\"}", &[(NOT_UTF8, "is not UTF-8")]);
    refused(b"\0", &[(NOT_JSON, "")]);
    refused(b"\0\0\0\0\n{\"a\0\":1}", &[(NOT_JSON, ""), ("-:2: error AAEP-3.8-2 : ", "")]);
    let mut event = thinking(1, "sess_nul00001").into_bytes();
    event.push(0);
    refused(event, &[(NOT_JSON, "")]);
}

#[test]
fn line_ends_of_another_system_pass() {
    let ended = sayso(&["validate"], lines(1, "sess_crlf0001").replace('\n', "\r\n"));
    assert_eq!((ended.code, ended.summary()), (0, "3 events, 1 sessions: 0 errors, 0 warnings"));
}

#[test]
fn nothing_at_all_does_not_pass() {
    for input in ["", " ", "\n", "\r\n\r\n", " \t \n  ", "[]", "[ \n ]\n"] {
        let ended = refused(input, &[(NO_OBJECT, "the input is empty")]);
        assert_eq!(ended.summary(), "0 events, 0 sessions: 1 errors, 0 warnings");
    }
}

#[test]
fn what_was_cut_off() {
    let event = thinking(1, "sess_cut00001");
    let half = &event[..event.len() / 2];
    refused(half, &[(NOT_JSON, "the text ends inside a value")]);
    refused(format!("{event}\n{half}"), &[("-:2: error AAEP-3.8-2 : ", "the text ends inside a value")]);
    refused(format!("{half}\n{event}\n"), &[(NOT_JSON, "the text ends inside a value")]);
    refused(format!("[{event}"), &[(NOT_JSON, "the array is not closed")]);
    refused(format!("[\n{event},\n"), &[("-:3: error AAEP-3.8-2 : ", "the array is not closed")]);
    refused(
        format!("[\n{event},\n{half}"),
        &[
            ("-:3: error AAEP-3.8-2 : ", "the text ends inside a value"),
            ("-:3: error AAEP-3.8-2 : ", "the array is not closed"),
        ],
    );
    refused("[", &[(NOT_JSON, "the array is not closed")]);
}

#[test]
fn an_array_that_is_cut_off_at_a_blocks_border() {
    let events: Vec<_> = (0..4000).map(|at| thinking(at, "sess_border01")).collect();
    let input = format!("[{}", events.join(",\n"));
    let ended = sayso(&["validate", "--sequence", "never"], &input);
    assert_eq!(ended.findings().len(), 1, "{}", ended.out);
    assert!(ended.findings()[0].starts_with("-:4000: error AAEP-3.8-2 : "), "{}", ended.out);
    assert_eq!(ended.summary(), "4000 events, 1 sessions: 1 errors, 0 warnings");
}

#[test]
fn values_that_are_no_events() {
    for (value, kind) in [
        ("\"text\"", "a string"),
        ("[[]]", "an array"),
        ("1", "a number"),
        ("null", "null"),
        ("true", "a boolean"),
    ] {
        refused(value, &[(NO_OBJECT, &format!("found {kind}"))]);
    }
    refused("[1,null]", &[(NO_OBJECT, "found a number"), (NO_OBJECT, "found null")]);
    let ended = sayso(&["validate"], "{}");
    assert_eq!(ended.code, 1, "an object with nothing in it: {}", ended.out);
    assert!(ended.out.contains("-:1: error AAEP-3.2-1 : "), "{}", ended.out);
}

#[test]
fn nesting_that_would_break_a_stack() {
    let deep = 100_000;
    let limit = ("-:1: error AAEP-3.9-9 : ", "nested more than 64 deep");
    refused("{\"a\":".repeat(deep) + "1" + &"}".repeat(deep), &[limit]);
    refused("{\"a\":".repeat(deep), &[limit]);
    refused("[".repeat(deep) + &"]".repeat(deep), &[limit]);
    refused("[".repeat(deep), &[limit, (NOT_JSON, "the array is not closed")]);
}

#[test]
fn keys_that_stand_twice() {
    let event = thinking(1, "sess_twice001");
    let top = event.replace("\"urgency\":", "\"urgency\":\"background\",\"urgency\":");
    refused(top, &[(&format!("{UNSOUND}/urgency: "), "stands twice")]);
    let nested = event.replace("\"agent_id\":", "\"agent_id\":\"other\",\"agent_id\":");
    refused(nested, &[(&format!("{UNSOUND}/producer/agent_id: "), "stands twice")]);
    let escaped = event.replace("\"urgency\":", r#""\u0075rgency":"background","urgency":"#);
    refused(escaped, &[(&format!("{UNSOUND}/urgency: "), "stands twice")]);
    let extension = event
        .replace(
            "\"https://aaep-protocol.org/context/v1\"",
            r#"["https://aaep-protocol.org/context/v1","urn:sayso:context:v1"]"#,
        )
        .replace(
            "\"I am thinking.\"",
            r#""I am thinking.","extensions":{"sayso":{"producer":[{"a":1,"\u0061":2}]}}"#,
        );
    refused(extension, &[(&format!("{UNSOUND}/extensions/sayso/producer/0/a: "), "stands twice")]);
}

#[test]
fn half_a_surrogate_pair() {
    for half in [r"\ud800", r"\udc00", r"\ud800x", r"\ud800\ud800"] {
        let event = thinking(1, "sess_half0001").replace("I am thinking.", half);
        refused(event, &[(&format!("{UNSOUND}/summary_normal: "), "half of a surrogate pair")]);
    }
    let whole = thinking(1, "sess_whole001").replace("I am thinking.", r"\ud83d\ude00");
    assert_eq!(sayso(&["validate"], whole).code, 0);
}

#[test]
fn numbers_that_json_or_a_double_does_not_have() {
    let with = |number: &str| {
        started(1, "sess_number01")
            .replace("\"I begin.\"", &format!("\"I begin.\",\"expected_duration_ms\":{number}"))
    };
    for number in ["NaN", "Infinity", "-Infinity", "01", "+1", ".5", "1.", "0x10", "1e", "-"] {
        let ended = sayso(&["validate", "--sequence", "never"], with(number));
        assert_eq!(ended.code, 1, "{number}");
        assert!(ended.findings()[0].starts_with(NOT_JSON), "{number}: {}", ended.out);
    }
    for (number, rule) in [
        ("1e400", "AAEP-3.8-4"),
        ("-1e400", "AAEP-3.8-4"),
        ("9007199254740993", "AAEP-3.8-5"),
        ("123456789012345678901234567890", "AAEP-3.8-5"),
        ("1e3", "C-A19"),
        ("1.0", "C-A19"),
        ("-1", "AAEP-4.1.1s-2"),
    ] {
        let ended = sayso(&["validate", "--sequence", "never"], with(number));
        assert_eq!(ended.code, 1, "{number}");
        assert!(
            ended.findings()[0].starts_with(&format!("-:1: error {rule} /expected_duration_ms: ")),
            "{number}: {}",
            ended.out
        );
    }
}

/// Each of these once took time that grew with the square of the event's length: a minute and more.
#[test]
fn an_event_that_was_made_to_take_long_does_not() {
    let long = |text: &str| started(1, "sess_long0001").replace("I begin.", text);
    let keys: Vec<_> = (0..60_000).map(|at| format!("\"k{at}\":0,")).collect();
    for event in [
        started(1, "sess_long0001").replace("\"summary_terse\"", &(keys.concat() + "\"summary_terse\"")),
        long(&"J".repeat(900_000)),
        long(&"sk-".repeat(300_000)),
        long(&"password:[".repeat(90_000)),
        long(&"-----BEGIN ".repeat(80_000)),
    ] {
        assert_eq!(sayso(&["validate"], event).code, 1);
    }
}
