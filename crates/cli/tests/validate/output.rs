//! Findings on standard output, notes on standard error, and exit codes.

use serde_json::Value;

use crate::validate::sample_events::{completed, lines, session, started, with_unknown_member};
use testing::cli::run_sayso;

#[test]
fn a_valid_session_prints_only_the_summary() {
    let output = run_sayso(&["validate"], lines(1, "sess_valid0001"));
    assert_eq!(output.stdout, "3 events, 1 sessions: 0 errors, 0 warnings\n");
    assert_eq!((output.exit_code, &*output.stderr), (0, ""));
}

#[test]
fn a_finding_is_one_line_with_location_and_rule() {
    let [first, second, third] = session(1, "sess_stray001");
    let output = run_sayso(&["validate"], format!("{first}\n{second}\n{}\n", with_unknown_member(&third)));
    let expected = "-:3: error AAEP-3.5-4 /colour: unknown member; an event may only contain the members of the envelope and \
                    of its type; anything else belongs in extensions, under a prefix";
    assert_eq!(output.findings(), [expected]);
    assert_eq!(output.summary(), "3 events, 1 sessions: 1 errors, 0 warnings");
    assert_eq!((output.exit_code, &*output.stderr), (1, ""));
}

#[test]
fn warnings_do_not_change_the_exit_code() {
    let output = run_sayso(&["validate"], started(1, "sess_open0001"));
    assert_eq!(
        output.findings(),
        ["-:1: warning AAEP-4.1-1 : sess_open0001 is still open, waiting for its terminal event; \
          a session must have exactly one agent.session.started and one terminal event"]
    );
    assert_eq!((output.exit_code, output.summary()), (0, "1 events, 1 sessions: 0 errors, 1 warnings"));
}

#[test]
fn with_json_every_line_is_an_object() {
    let input = format!(
        "{}\n\n{}\nnonsense\n",
        with_unknown_member(&started(1, "sess_json0001")),
        completed(2, "sess_json0001")
    );
    let output = run_sayso(&["validate", "--json"], input);
    let objects: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [unknown_member, not_json, summary] = &*objects else { panic!("{}", output.stdout) };
    let keys = ["file", "line", "severity", "rule", "pointer", "message", "event_id"];
    for finding in [unknown_member, not_json] {
        let mut found: Vec<_> = finding.as_object().unwrap().keys().map(String::as_str).collect();
        found.sort_by_key(|key| keys.iter().position(|known| known == key));
        assert_eq!(found, keys);
    }
    assert_eq!(unknown_member["file"], "-");
    assert_eq!(unknown_member["line"], 1);
    assert_eq!(unknown_member["severity"], "error");
    assert_eq!(unknown_member["rule"], "AAEP-3.5-4");
    assert_eq!(unknown_member["pointer"], "/colour");
    assert!(unknown_member["message"].as_str().unwrap().starts_with("unknown member"));
    assert_eq!(unknown_member["event_id"], format!("evt_a{:031x}", 1));
    assert_eq!((&not_json["line"], &not_json["rule"]), (&4.into(), &"AAEP-3.8-2".into()));
    assert_eq!(not_json["event_id"], Value::Null);
    let expected: Value =
        serde_json::from_str(r#"{"summary":{"events":2,"sessions":1,"errors":2,"warnings":0}}"#).unwrap();
    assert_eq!(*summary, expected);
    assert_eq!(output.exit_code, 1);
}

#[test]
fn notes_go_to_standard_error() {
    let output = run_sayso(&["validate"], lines(1, "sess_notes001").replace('\n', "\r\n\n"));
    assert_eq!((output.exit_code, &*output.stdout), (0, "3 events, 1 sessions: 0 errors, 0 warnings\n"));
    assert!(output.stderr.contains("note: -: 3 empty lines were skipped."), "{}", output.stderr);
    assert!(
        output.stderr.contains("note: -: 3 lines end in CR LF. The CR counts as white space."),
        "{}",
        output.stderr
    );
}

#[test]
fn control_characters_in_input_are_escaped() {
    let event_with_unknown_type = started(1, "sess_escape01")
        .replace("aaep:agent.session.started", r"aaep:\u001b[2J\u0007\u202ex\u009b1m")
        .replace("\"summary_terse\"", r#""\u001b[31mred\u2066":1,"summary_terse""#);
    let event_with_known_type = started(2, "sess_escape02")
        .replace("\"summary_terse\"", "\"\\u001b]0;\u{202e}\":1,\"summary_terse\"");
    for arguments in [&["validate"][..], &["validate", "--json"]] {
        let output = run_sayso(arguments, format!("{event_with_unknown_type}\n{event_with_known_type}\n"));
        let is_harmful = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
        assert_eq!(output.exit_code, 1);
        if arguments.len() == 1 {
            assert!(!output.stdout.contains(is_harmful), "{:?}", output.stdout);
            assert!(
                output.stdout.contains("\\u{1b}") && output.stdout.contains("\\u{202e}"),
                "{}",
                output.stdout
            );
        } else {
            assert!(!output.stdout.contains('\u{1b}'), "{:?}", output.stdout);
        }
    }
}

#[test]
fn a_huge_member_name_is_truncated_in_the_output() {
    let members: Vec<_> = (0..2000).map(|at| format!("\"k{at}\":1e999")).collect();
    let event = started(1, "sess_name0001").replace(
        "\"I begin.\"",
        &format!("\"I begin.\",\"{}\":{{{}}}", "n".repeat(200_000), members.join(",")),
    );
    let output = run_sayso(&["validate"], event);
    assert_eq!(output.exit_code, 1);
    assert!(
        output.findings().len() > 2000 && output.stdout.len() < 2_000_000,
        "{} bytes",
        output.stdout.len()
    );
}
