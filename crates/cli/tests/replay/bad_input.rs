//! Input that is not a recording, truncated recordings and hostile recordings.

use crate::asp::xml_parser;
use crate::replay::capture_process::repository_recording;
use testing::cli::run_sayso;

pub(super) fn event(number: usize, at: &str, kind: &str, members: &str) -> String {
    format!(
        r#"{{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0","type":"aaep:agent.{kind}","event_id":"evt_{number:032}","session_id":"sess_00000000000000000000000000000001","timestamp":"2026-05-24T{at}Z","producer":{{"agent_id":"bank"}},"urgency":"normal",{members}}}"#
    )
}

#[test]
fn input_that_is_not_a_recording_is_reported() {
    for (input, message) in [
        ("hello\n", "skipped unreadable lines of standard input: 1"),
        ("", "contains no events"),
        ("[]", "contains no events"),
        ("\u{0}\u{1}", "skipped unreadable lines"),
        ("[1,2]", "skipped unreadable lines"),
    ] {
        let replayed = run_sayso(&["replay", "-", "--speed", "max"], input);
        assert_eq!(replayed.exit_code, 1, "{input:?}: {}", replayed.stderr);
        assert!(replayed.stderr.contains(message), "{input:?}: {}", replayed.stderr);
        let traced = run_sayso(&["replay", "-", "--visualize"], input);
        assert_eq!(traced.exit_code, 1, "{input:?}: {}", traced.stdout);
        assert!(traced.summary().starts_with("0 events, 0 sessions: "), "{}", traced.stdout);
    }
    for arguments in [
        ["replay", "/nowhere", "--speed", "max"],
        ["replay", "/", "--speed", "max"],
        ["replay", "/nowhere", "--svg", "/tmp/x"],
    ] {
        assert_eq!(run_sayso(&arguments, "").exit_code, 2, "{arguments:?}");
    }
    let file = repository_recording("section-4-6");
    let unwritable = run_sayso(&["replay", file.to_str().unwrap(), "--svg", "/nowhere/a.svg"], "");
    assert_eq!(unwritable.exit_code, 2);
    assert!(unwritable.stderr.contains("cannot write /nowhere/a.svg"), "{}", unwritable.stderr);
}

#[test]
fn a_truncated_last_line_is_reported_and_the_rest_is_replayed() {
    let text = std::fs::read_to_string(repository_recording("section-4-6")).unwrap();
    let truncated = &text[..text.len() - 40];
    let replayed = run_sayso(&["replay", "-", "--speed", "max"], truncated);
    assert_eq!(replayed.exit_code, 1);
    assert!(
        replayed.stderr.contains("skipped unreadable lines of standard input: 14"),
        "{}",
        replayed.stderr
    );
    assert!(replayed.stdout.contains("agent: New balance: $12,000."));
    let traced = run_sayso(&["replay", "-", "--visualize"], truncated);
    assert_eq!(traced.exit_code, 1);
    assert!(traced.stdout.contains("(line 14)"));
}

#[test]
fn a_timestamp_that_goes_back_is_reported_and_causes_no_delay() {
    let text = [
        event(1, "14:00:00.000", "session.started", r#""summary_normal":"On.""#),
        event(2, "03:00:00.000", "state.changed", r#""from_state":"idle","to_state":"thinking""#),
        event(3, "14:00:00.001", "session.completed", r#""summary_normal":"Off.""#),
    ]
    .join("\n");
    let replayed = run_sayso(&["replay", "-"], &text);
    assert_eq!(replayed.exit_code, 0);
    assert!(replayed.stdout.ends_with("session: bank has finished. Off.\n"), "{}", replayed.stdout);
    let traced = run_sayso(&["replay", "-", "--visualize"], &text);
    assert_eq!(traced.exit_code, 1);
    assert!(
        traced.stdout.contains("-11:00:00.000 session 1, bank, state: From idle to thinking."),
        "{}",
        traced.stdout
    );
}

#[test]
fn hostile_text_is_escaped() {
    let hostile = "\\u001b[2J\\r\\nask: <script>alert(1)</script>]]>&amp;\\u202e\\u0000\\ufffe";
    let text = [
        event(1, "14:00:00.000", "session.started", &format!(r#""summary_normal":"{hostile}""#)),
        event(2, "14:00:01.000", "tool.invoked", &format!(r#""tool":"{hostile}","tool_call_id":"{hostile}","summary_normal":"{hostile}""#)),
        event(3, "14:00:02.000", "state.changed", &format!(r#""from_state":"{hostile}","to_state":"{hostile}""#)),
        event(4, "14:00:03.000", "awaiting.confirmation", &format!(r#""action":"{hostile}","consequence":"{hostile}","reply_token":"{hostile}","timeout_seconds":60,"default_decision":"reject""#)),
        event(5, "14:00:04.000", "output.streaming", &format!(r#""chunk":"x","position":0,"complete":false,"output_id":"{hostile}""#)),
    ]
    .join("\n");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.svg");
    for arguments in [
        vec!["replay", "-", "--speed", "max"],
        vec!["replay", "-", "--visualize", "--svg", file.to_str().unwrap()],
    ] {
        let output = run_sayso(&arguments, &text);
        let printed = output.stdout.replace('\n', "");
        assert!(!printed.chars().any(|c| c.is_control() || c == '\u{202e}'), "{printed:?}");
        assert!(output.stdout.lines().all(|line| !line.starts_with("ask: <script>")), "{}", output.stdout);
    }
    let svg = std::fs::read_to_string(file).unwrap();
    let elements = xml_parser::read(&svg).unwrap();
    assert!(elements.iter().all(|element| element.name != "script"));
    assert!(svg.contains("&lt;script&gt;") && !svg.contains("<script"));
}

/// Replays a recording that is larger than the memory limit of the process.
#[test]
fn a_large_recording_is_replayed_in_limited_memory() {
    let run_limited = |arguments: &str| {
        let script = format!("ulimit -v 150000; exec \"$0\" replay - {arguments} >/dev/null");
        let mut child = std::process::Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_sayso")])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let filler = "x".repeat(15_000);
        for number in 0..12_000_usize {
            let (kind, members) = match number {
                0 => ("session.started", r#""summary_normal":"On.""#.to_owned()),
                11_999 => ("session.completed", r#""summary_normal":"Off.""#.to_owned()),
                _ => ("progress.updated", format!(r#""progress":{{"percent":1,"description":"{filler}"}}"#)),
            };
            let line = event(number, "14:00:00.000", kind, &members) + "\n";
            std::io::Write::write_all(&mut stdin, line.as_bytes()).unwrap();
        }
        drop(stdin);
        child.wait().unwrap().code()
    };
    assert!(run_limited("--visualize").is_some_and(|code| code < 2));
    assert_eq!(run_limited("--speed max"), Some(0));
}

#[test]
fn a_reader_that_closes_the_pipe_early_is_not_a_failure() {
    let file = repository_recording("section-4-6");
    for arguments in ["--visualize", "--speed max"] {
        let script = format!("\"$0\" replay \"$1\" {arguments}; echo code $? >&2");
        let output = std::process::Command::new("sh")
            .args([
                "-c",
                &format!("({script}) | head -n 1"),
                env!("CARGO_BIN_EXE_sayso"),
                file.to_str().unwrap(),
            ])
            .output()
            .unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(stderr, "code 0\n");
    }
}
