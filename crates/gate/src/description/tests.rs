#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use proptest::prelude::*;
use seal::json::OwnedDoc;

use super::*;

fn describe(tool: &str, input: &str) -> String {
    describe_call(tool, &OwnedDoc::read(input).unwrap().doc().root()).english().to_owned()
}

#[test]
fn calls_are_described_by_what_they_do() {
    for (tool, input, expected) in [
        ("Bash", r#"{"command":"cargo test","description":"Run tests"}"#, "Run: cargo test"),
        ("shell", r#"{"command":["git","push"]}"#, "Run: git push"),
        ("exec_command", r#"{"cmd":"ls"}"#, "Run: ls"),
        (
            "Edit",
            r#"{"file_path":"src/a.rs","old_string":"one","new_string":"two"}"#,
            "Change src/a.rs: replace “one” with “two”",
        ),
        ("Edit", r#"{"file_path":"a","old_string":"one\n","new_string":""}"#, "Change a: remove “one”"),
        ("Write", r#"{"file_path":"a.txt","content":"one\ntwo\n"}"#, "Write a.txt, 2 lines: “one\ntwo”"),
        (
            "MultiEdit",
            r#"{"file_path":"a","edits":[{"old_string":"x","new_string":"y"}]}"#,
            "Change a in 1 place; replace “x” with “y”",
        ),
        ("Read", r#"{"file_path":"/etc/hosts"}"#, "Read /etc/hosts"),
        ("Grep", r#"{"pattern":"fn main","path":"src"}"#, "Search src for fn main"),
        ("WebFetch", r#"{"url":"https://a.example/","prompt":"x"}"#, "Fetch https://a.example/"),
        (
            "mcp__bank__send",
            r#"{"to":"Ben","amount_eur":5}"#,
            "Use send of the server bank with to Ben, amount eur 5",
        ),
        ("Thing", "{}", "Use the tool Thing"),
        ("apply_patch", r#"{"command":"*** Begin Patch\n"}"#, "Apply this patch: *** Begin Patch\n"),
    ] {
        assert_eq!(describe(tool, input), expected);
    }
}

#[test]
fn secrets_are_not_read_aloud() {
    let described = describe("Bash", r#"{"command":"curl -H 'Authorization: Bearer abcdef1234567890' x"}"#);
    assert_eq!(described, "Run: curl -H 'Authorization: Bearer [redacted]' x");
    let described = describe("login", r#"{"user":"me","password":"hunter2"}"#);
    assert_eq!(described, "Use the tool login with user me, password [redacted]");
}

#[test]
fn redaction_does_not_hide_code() {
    let key = "-----BEGIN PRIVATE KEY-----\n$(touch PWN)\n-----END PRIVATE KEY-----";
    for command in
        ["password=$(touch${IFS}PWN)", "password='a $(touch PWN)'", "curl http://me:$(touch_PWN)@a/x", key]
    {
        let input = seal::json::write_object(|writer| writer.key("command").text(command));
        for tool in ["Bash", "mcp__a__run"] {
            let described = describe(tool, &input);
            assert!(described.contains("$(touch"), "{described}");
            assert!(described.contains("PWN"), "{described}");
            // The hub would refuse it.
            assert_eq!(find_secrets(&described).next(), None, "{described}");
        }
    }
}

#[test]
fn only_known_tools_have_a_headline_of_their_own() {
    for tool in ["mcp__a__read", "mcp__a__Bash", "ReadAndDelete", "search", "Frob"] {
        for input in [
            r#"{"file_path":"a"}"#,
            r#"{"command":"ls"}"#,
            r#"{"command":["ls"]}"#,
            r#"{"url":"https://a.example/"}"#,
            r#"{"pattern":"a"}"#,
            r#"{"path":"a","content":"b"}"#,
            r#"{"path":"a","old_string":"b","new_string":"c"}"#,
        ] {
            assert!(describe(tool, input).starts_with("Use "), "{tool} {input}");
        }
    }
    let described = describe("Bash", r#"{"command":"*** Begin Patch\nrm a"}"#);
    assert!(described.starts_with("Run: "), "{described}");
}

#[test]
fn only_a_plain_request_is_a_fetch() {
    let described = describe("WebFetch", r#"{"url":"https://a.example/","method":"get"}"#);
    assert_eq!(described, "Fetch https://a.example/");
    for input in [
        r#"{"url":"https://a.example/","method":"DELETE"}"#,
        r#"{"url":"https://a.example/","body":"x"}"#,
        r#"{"url":"https://a.example/","headers":{}}"#,
    ] {
        assert!(describe("WebFetch", input).starts_with("Use the tool WebFetch with url "), "{input}");
    }
}

#[test]
fn all_names_of_an_argument_are_described() {
    for (tool, input, expected) in [
        ("Bash", r#"{"command":"ls","cmd":"rm a"}"#, "Use the tool Bash with command ls, cmd rm a"),
        ("Read", r#"{"file_path":"a","path":"b"}"#, "Use the tool Read with file path a, path b"),
        ("Bash", r#"{"command":"ls","command":"rm a"}"#, "Use the tool Bash with command ls, command rm a"),
    ] {
        assert_eq!(describe(tool, input), expected);
    }
}

#[test]
fn hidden_characters_are_shown_and_announced() {
    for (command, expected) in [
        ("ls\u{1b}[2K", "Run: ls[U+001B][2K. Warning: it contains 1 control character"),
        ("a\rb", "Run: a[U+000D]b. Warning: it contains 1 control character"),
        (
            "cat \u{202e}txt\u{202c}",
            "Run: cat [U+202E]txt[U+202C]. Warning: it contains 2 text-reordering characters",
        ),
        ("r\u{200b}m", "Run: r[U+200B]m. Warning: it contains 1 invisible character"),
        (
            "curl p\u{430}ypal.com",
            "Run: curl p[U+0430]ypal.com. Warning: look-alike letters in p[U+0430]ypal.com",
        ),
        (
            "\u{441}\u{430}\u{441} x",
            "Run: [U+0441][U+0430][U+0441] x. Warning: look-alike letters in [U+0441][U+0430][U+0441]",
        ),
        ("rm \u{2212}rf a", "Run: rm [U+2212]rf a. Warning: look-alike letters in [U+2212]rf"),
        ("echo привет", "Run: echo привет"),
        ("echo Zoë ọjọ́ 日本", "Run: echo Zoë ọjọ́ 日本"),
    ] {
        let input = seal::json::write_object(|writer| writer.key("command").text(command));
        assert_eq!(describe("Bash", &input), expected);
    }
}

#[test]
fn a_long_command_keeps_its_beginning_and_its_end() {
    let command = format!("echo {}; rm -rf /", "a".repeat(10_000));
    let input = seal::json::write_object(|writer| writer.key("command").text(&command));
    let described = describe("Bash", &input);
    assert!(described.chars().count() < MAX_COMMAND_CHARS + 100);
    assert!(described.starts_with("Run: echo aaa") && described.ends_with("; rm -rf /"), "{described}");
    assert!(described.contains("characters left out"));
}

proptest! {
    /// Whatever the command is, its description has no character that could hide something.
    #[test]
    fn a_description_has_no_hidden_character(command in any::<String>()) {
        let input = seal::json::write_object(|writer| writer.key("command").text(&command));
        let described = describe("Bash", &input);
        let is_hidden = |c: char| {
            (c.is_control() && c != '\n' && c != '\t')
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
        };
        let has_hidden = described.chars().any(is_hidden);
        prop_assert!(!has_hidden, "{}", described);
    }

    #[test]
    fn any_tool_and_arguments_can_be_described(tool in any::<String>(), name in any::<String>(), value in any::<String>()) {
        let input = seal::json::write_object(|writer| writer.key(&name).text(&value));
        prop_assert!(!describe(&tool, &input).is_empty());
    }
}
