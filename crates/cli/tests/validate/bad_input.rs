//! Malformed input yields a clear finding and exit code 1, never a panic, a hang or a silent pass.

use crate::validate::sample_events::{lines, started, thinking};
use testing::cli::{CommandOutput, run_sayso};

/// Asserts that the input has exactly these findings. Each is given by the start of its line and a part of its message.
#[track_caller]
fn assert_findings(input: impl AsRef<[u8]> + Sync, expected: &[(&str, &str)]) -> CommandOutput {
    let output = run_sayso(&["validate"], &input);
    let excerpt = String::from_utf8_lossy(&input.as_ref()[..input.as_ref().len().min(300)]).into_owned();
    let findings = output.findings();
    assert_eq!(findings.len(), expected.len(), "{excerpt}\n{}", output.stdout);
    for (finding, (location, message)) in findings.iter().zip(expected) {
        assert!(
            finding.starts_with(location) && finding.contains(message),
            "{excerpt}\n{location}, {message}\n{finding}"
        );
    }
    assert_eq!(output.exit_code, 1, "{excerpt}");
    output
}

const NOT_JSON: &str = "-:1: error AAEP-3.8-2 : ";
const NOT_UTF8: &str = "-:1: error AAEP-3.8-1 : ";
const NOT_AN_OBJECT: &str = "-:1: error AAEP-3.9-1 : ";
const NOT_INTEROPERABLE: &str = "-:1: error AAEP-D.1-1 ";

#[test]
fn input_that_is_not_json_is_reported() {
    assert_findings("hello", &[(NOT_JSON, "expected a JSON value")]);
    assert_findings("{'a':1}", &[(NOT_JSON, "")]);
    assert_findings("{\"a\":1,}", &[(NOT_JSON, "")]);
    assert_findings("{} {}", &[(NOT_JSON, "")]);
    assert_findings("// comment", &[(NOT_JSON, "")]);
    assert_findings("<html>", &[(NOT_JSON, "")]);
    assert_findings("}", &[(NOT_JSON, "")]);
    assert_findings("]", &[(NOT_JSON, "")]);
    assert_findings("\"", &[(NOT_JSON, "ends inside")]);
    assert_findings("{\"a\":\"tab\there\"}", &[(NOT_JSON, "")]);
    assert_findings("events: x\ndata: {}", &[(NOT_JSON, ""), ("-:2: error AAEP-3.8-2 : ", "")]);
}

#[test]
fn a_byte_order_mark_is_reported() {
    let output =
        assert_findings(format!("\u{FEFF}{}", lines(1, "sess_mark0001")), &[(NOT_UTF8, "byte-order mark")]);
    assert_eq!(output.summary(), "3 events, 1 sessions: 1 errors, 0 warnings", "the rest is still checked");
    assert_findings("\u{FEFF}", &[(NOT_UTF8, "byte-order mark")]);
    assert_findings(format!("\u{FEFF}[{}]", thinking(1, "sess_mark0001")), &[(NOT_UTF8, "byte-order mark")]);
    assert_findings(format!("[\u{FEFF}{}]", thinking(1, "sess_mark0001")), &[(NOT_JSON, "")]);
}

#[test]
fn bytes_that_are_not_utf_8_are_reported() {
    assert_findings(b"{\"a\":\"\xFF\"}", &[(NOT_UTF8, "byte 7 is not UTF-8")]);
    assert_findings(b"[{\"a\":\"\xC3\"}]", &[(NOT_UTF8, "is not UTF-8")]);
    assert_findings(b"\xFF\xFE{\0}\0", &[(NOT_UTF8, "byte 1 is not UTF-8")]);
    assert_findings(b"{\"a\":\"\xED\xA0\x80\"}", &[(NOT_UTF8, "is not UTF-8")]);
    assert_findings(b"\0", &[(NOT_JSON, "")]);
    assert_findings(b"\0\0\0\0\n{\"a\0\":1}", &[(NOT_JSON, ""), ("-:2: error AAEP-3.8-2 : ", "")]);
    let mut event = thinking(1, "sess_nul00001").into_bytes();
    event.push(0);
    assert_findings(event, &[(NOT_JSON, "")]);
}

#[test]
fn crlf_line_endings_pass() {
    let output = run_sayso(&["validate"], lines(1, "sess_crlf0001").replace('\n', "\r\n"));
    assert_eq!((output.exit_code, output.summary()), (0, "3 events, 1 sessions: 0 errors, 0 warnings"));
}

#[test]
fn empty_input_does_not_pass() {
    for input in ["", " ", "\n", "\r\n\r\n", " \t \n  ", "[]", "[ \n ]\n"] {
        let output = assert_findings(input, &[(NOT_AN_OBJECT, "the input is empty")]);
        assert_eq!(output.summary(), "0 events, 0 sessions: 1 errors, 0 warnings");
    }
}

#[test]
fn truncated_input_is_reported() {
    let event = thinking(1, "sess_cut00001");
    let part = &event[..event.len() / 2];
    assert_findings(part, &[(NOT_JSON, "the text ends inside a value")]);
    assert_findings(
        format!("{event}\n{part}"),
        &[("-:2: error AAEP-3.8-2 : ", "the text ends inside a value")],
    );
    assert_findings(format!("{part}\n{event}\n"), &[(NOT_JSON, "the text ends inside a value")]);
    assert_findings(format!("[{event}"), &[(NOT_JSON, "the array is not closed")]);
    assert_findings(format!("[\n{event},\n"), &[("-:3: error AAEP-3.8-2 : ", "the array is not closed")]);
    assert_findings(
        format!("[\n{event},\n{part}"),
        &[
            ("-:3: error AAEP-3.8-2 : ", "the text ends inside a value"),
            ("-:3: error AAEP-3.8-2 : ", "the array is not closed"),
        ],
    );
    assert_findings("[", &[(NOT_JSON, "the array is not closed")]);
}

#[test]
fn a_large_array_without_an_end_is_reported() {
    let events: Vec<_> = (0..4000).map(|at| thinking(at, "sess_border01")).collect();
    let input = format!("[{}", events.join(",\n"));
    let output = run_sayso(&["validate", "--sequence", "never"], &input);
    assert_eq!(output.findings().len(), 1, "{}", output.stdout);
    assert!(output.findings()[0].starts_with("-:4000: error AAEP-3.8-2 : "), "{}", output.stdout);
    assert_eq!(output.summary(), "4000 events, 1 sessions: 1 errors, 0 warnings");
}

#[test]
fn values_that_are_not_objects_are_reported() {
    for (value, kind) in [
        ("\"text\"", "a string"),
        ("[[]]", "an array"),
        ("1", "a number"),
        ("null", "null"),
        ("true", "a boolean"),
    ] {
        assert_findings(value, &[(NOT_AN_OBJECT, &format!("found {kind}"))]);
    }
    assert_findings("[1,null]", &[(NOT_AN_OBJECT, "found a number"), (NOT_AN_OBJECT, "found null")]);
    let output = run_sayso(&["validate"], "{}");
    assert_eq!(output.exit_code, 1, "an empty object: {}", output.stdout);
    assert!(output.stdout.contains("-:1: error AAEP-3.2-1 : "), "{}", output.stdout);
}

#[test]
fn deep_nesting_is_reported_without_a_stack_overflow() {
    let depth = 100_000;
    let too_deep = ("-:1: error AAEP-3.9-9 : ", "nested more than 64 deep");
    assert_findings("{\"a\":".repeat(depth) + "1" + &"}".repeat(depth), &[too_deep]);
    assert_findings("{\"a\":".repeat(depth), &[too_deep]);
    assert_findings("[".repeat(depth) + &"]".repeat(depth), &[too_deep]);
    assert_findings("[".repeat(depth), &[too_deep, (NOT_JSON, "the array is not closed")]);
}

#[test]
fn duplicate_keys_are_reported() {
    let event = thinking(1, "sess_twice001");
    let top_level = event.replace("\"urgency\":", "\"urgency\":\"background\",\"urgency\":");
    assert_findings(top_level, &[(&format!("{NOT_INTEROPERABLE}/urgency: "), "duplicate key")]);
    let nested = event.replace("\"agent_id\":", "\"agent_id\":\"other\",\"agent_id\":");
    assert_findings(nested, &[(&format!("{NOT_INTEROPERABLE}/producer/agent_id: "), "duplicate key")]);
    let escaped = event.replace("\"urgency\":", r#""\u0075rgency":"background","urgency":"#);
    assert_findings(escaped, &[(&format!("{NOT_INTEROPERABLE}/urgency: "), "duplicate key")]);
    let extension = event
        .replace(
            "\"https://aaep-protocol.org/context/v1\"",
            r#"["https://aaep-protocol.org/context/v1","urn:sayso:context:v1"]"#,
        )
        .replace(
            "\"I am thinking.\"",
            r#""I am thinking.","extensions":{"sayso":{"producer":[{"a":1,"\u0061":2}]}}"#,
        );
    assert_findings(
        extension,
        &[(&format!("{NOT_INTEROPERABLE}/extensions/sayso/producer/0/a: "), "duplicate key")],
    );
}

#[test]
fn a_lone_surrogate_is_reported() {
    for lone in [r"\ud800", r"\udc00", r"\ud800x", r"\ud800\ud800"] {
        let event = thinking(1, "sess_half0001").replace("I am thinking.", lone);
        assert_findings(event, &[(&format!("{NOT_INTEROPERABLE}/summary_normal: "), "lone surrogate")]);
    }
    let pair = thinking(1, "sess_whole001").replace("I am thinking.", r"\ud83d\ude00");
    assert_eq!(run_sayso(&["validate"], pair).exit_code, 0);
}

#[test]
fn invalid_numbers_are_reported() {
    let with_number = |number: &str| {
        started(1, "sess_number01")
            .replace("\"I begin.\"", &format!("\"I begin.\",\"expected_duration_ms\":{number}"))
    };
    for number in ["NaN", "Infinity", "-Infinity", "01", "+1", ".5", "1.", "0x10", "1e", "-"] {
        let output = run_sayso(&["validate", "--sequence", "never"], with_number(number));
        assert_eq!(output.exit_code, 1, "{number}");
        assert!(output.findings()[0].starts_with(NOT_JSON), "{number}: {}", output.stdout);
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
        let output = run_sayso(&["validate", "--sequence", "never"], with_number(number));
        assert_eq!(output.exit_code, 1, "{number}");
        assert!(
            output.findings()[0].starts_with(&format!("-:1: error {rule} /expected_duration_ms: ")),
            "{number}: {}",
            output.stdout
        );
    }
}

/// Checking each of these events used to take quadratic time: a minute or more.
#[test]
fn adversarial_events_are_checked_in_linear_time() {
    let long = |text: &str| started(1, "sess_long0001").replace("I begin.", text);
    let keys: Vec<_> = (0..60_000).map(|at| format!("\"k{at}\":0,")).collect();
    for event in [
        started(1, "sess_long0001").replace("\"summary_terse\"", &(keys.concat() + "\"summary_terse\"")),
        long(&"J".repeat(900_000)),
        long(&"sk-".repeat(300_000)),
        long(&"password:[".repeat(90_000)),
        long(&"-----BEGIN ".repeat(80_000)),
    ] {
        assert_eq!(run_sayso(&["validate"], event).exit_code, 1);
    }
}
