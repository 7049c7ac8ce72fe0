//! What is no recording, or half of one, or a trap.

use crate::asp::xml;
use crate::replay::recorder::recording;
use testing::cli::{sayso, sayso_fed};

fn event(number: usize, at: &str, kind: &str, more: &str) -> String {
    format!(
        r#"{{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0","type":"aaep:agent.{kind}","event_id":"evt_{number:032}","session_id":"sess_00000000000000000000000000000001","timestamp":"2026-05-24T{at}Z","producer":{{"agent_id":"bank"}},"urgency":"normal",{more}}}"#
    )
}

#[test]
fn what_is_no_recording_is_said_to_be_none() {
    for (input, line) in [
        ("hello\n", "lines that could not be read and were left out: 1"),
        ("", "no event in"),
        ("[]", "no event in"),
        ("\u{0}\u{1}", "could not be read"),
        ("[1,2]", "could not be read"),
    ] {
        let told = sayso(&["replay", "-", "--speed", "max"], input);
        assert_eq!(told.code, 1, "{input:?}: {}", told.err);
        assert!(told.err.contains(line), "{input:?}: {}", told.err);
        let traced = sayso(&["replay", "-", "--visualize"], input);
        assert_eq!(traced.code, 1, "{input:?}: {}", traced.out);
        assert!(traced.summary().starts_with("0 events, 0 sessions: "), "{}", traced.out);
    }
    for arguments in [
        ["replay", "/nowhere", "--speed", "max"],
        ["replay", "/", "--speed", "max"],
        ["replay", "/nowhere", "--svg", "/tmp/x"],
    ] {
        assert_eq!(sayso(&arguments, "").code, 2, "{arguments:?}");
    }
    let file = recording("section-4-6");
    let unwritable = sayso(&["replay", file.to_str().unwrap(), "--svg", "/nowhere/a.svg"], "");
    assert_eq!(unwritable.code, 2);
    assert!(unwritable.err.contains("cannot write /nowhere/a.svg"), "{}", unwritable.err);
}

#[test]
fn half_a_line_at_the_end_is_told_and_the_rest_is_heard() {
    let text = std::fs::read_to_string(recording("section-4-6")).unwrap();
    let half = &text[..text.len() - 40];
    let told = sayso(&["replay", "-", "--speed", "max"], half);
    assert_eq!(told.code, 1);
    assert!(told.err.contains("could not be read and were left out: 14"), "{}", told.err);
    assert!(told.out.contains("agent: New balance: $12,000."));
    let traced = sayso(&["replay", "-", "--visualize"], half);
    assert_eq!(traced.code, 1);
    assert!(traced.out.contains("(line 14)"));
}

#[test]
fn a_clock_that_goes_back_holds_nothing_up_and_is_found() {
    let text = [
        event(1, "14:00:00.000", "session.started", r#""summary_normal":"On.""#),
        event(2, "03:00:00.000", "state.changed", r#""from_state":"idle","to_state":"thinking""#),
        event(3, "14:00:00.001", "session.completed", r#""summary_normal":"Off.""#),
    ]
    .join("\n");
    let told = sayso(&["replay", "-"], &text);
    assert_eq!(told.code, 0);
    assert!(told.out.ends_with("session: bank is done. Off.\n"), "{}", told.out);
    let traced = sayso(&["replay", "-", "--visualize"], &text);
    assert_eq!(traced.code, 1);
    assert!(traced.out.contains("-11:00:00.000 session 1, state: From idle to thinking."), "{}", traced.out);
}

#[test]
fn hostile_text_stays_text() {
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
        let ended = sayso(&arguments, &text);
        let printed = ended.out.replace('\n', "");
        assert!(!printed.chars().any(|c| c.is_control() || c == '\u{202e}'), "{printed:?}");
        assert!(ended.out.lines().all(|line| !line.starts_with("ask: <script>")), "{}", ended.out);
    }
    let picture = std::fs::read_to_string(file).unwrap();
    let elements = xml::read(&picture).unwrap();
    assert!(elements.iter().all(|element| element.name != "script"));
    assert!(picture.contains("&lt;script&gt;") && !picture.contains("<script"));
}

/// Much more than may be held at once goes through.
#[test]
fn a_recording_is_never_held_whole() {
    let limited = |arguments: &str| {
        let script = format!("ulimit -v 150000; exec \"$0\" replay - {arguments} >/dev/null");
        let mut child = std::process::Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_sayso")])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let filler = "x".repeat(15_000);
        for number in 0..12_000_usize {
            let (kind, more) = match number {
                0 => ("session.started", r#""summary_normal":"On.""#.to_owned()),
                11_999 => ("session.completed", r#""summary_normal":"Off.""#.to_owned()),
                _ => ("progress.updated", format!(r#""progress":{{"percent":1,"description":"{filler}"}}"#)),
            };
            let line = event(number, "14:00:00.000", kind, &more) + "\n";
            std::io::Write::write_all(&mut stdin, line.as_bytes()).unwrap();
        }
        drop(stdin);
        child.wait().unwrap().code()
    };
    assert!(limited("--visualize").is_some_and(|code| code < 2));
    assert_eq!(limited("--speed max"), Some(0));
}

#[test]
fn who_has_heard_enough_ends_it_well() {
    let file = recording("section-4-6");
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
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said == "code 0\n", "{said}");
    }
    let _ = sayso_fed(&["replay", "-", "--visualize"], |_| Ok(()));
}
