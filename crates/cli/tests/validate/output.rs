//! What is printed, where, and the exit code.

use serde_json::Value;

use crate::validate::events::{completed, lines, session, started, with_stray};
use testing::cli::sayso;

#[test]
fn a_lawful_session_prints_only_the_closing_line() {
    let ended = sayso(&["validate"], lines(1, "sess_lawful01"));
    assert_eq!(ended.out, "3 events, 1 sessions: 0 errors, 0 warnings\n");
    assert_eq!((ended.code, &*ended.err), (0, ""));
}

#[test]
fn a_finding_is_one_line_with_its_place_and_rule() {
    let [first, second, third] = session(1, "sess_stray001");
    let ended = sayso(&["validate"], format!("{first}\n{second}\n{}\n", with_stray(&third)));
    let expected = "-:3: error AAEP-3.5-4 /colour: this member is not known here; an event holds the members of its type \
                    and the envelope; all else goes into extensions under a prefix";
    assert_eq!(ended.findings(), [expected]);
    assert_eq!(ended.summary(), "3 events, 1 sessions: 1 errors, 0 warnings");
    assert_eq!((ended.code, &*ended.err), (1, ""));
}

#[test]
fn warnings_alone_are_good() {
    let ended = sayso(&["validate"], started(1, "sess_open0001"));
    assert_eq!(
        ended.findings(),
        ["-:1: warning AAEP-4.1-1 : sess_open0001 is still open, waiting for its terminal event; \
          a session has one agent.session.started and one terminal event"]
    );
    assert_eq!((ended.code, ended.summary()), (0, "1 events, 1 sessions: 0 errors, 1 warnings"));
}

#[test]
fn with_json_every_line_is_an_object() {
    let input = format!(
        "{}\n\n{}\nnonsense\n",
        with_stray(&started(1, "sess_json0001")),
        completed(2, "sess_json0001")
    );
    let ended = sayso(&["validate", "--json"], input);
    let objects: Vec<Value> = ended.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [stray, nonsense, summary] = &*objects else { panic!("{}", ended.out) };
    let keys = ["file", "line", "severity", "rule", "pointer", "message", "event_id"];
    for finding in [stray, nonsense] {
        let mut found: Vec<_> = finding.as_object().unwrap().keys().map(String::as_str).collect();
        found.sort_by_key(|key| keys.iter().position(|known| known == key));
        assert_eq!(found, keys);
    }
    assert_eq!(stray["file"], "-");
    assert_eq!(stray["line"], 1);
    assert_eq!(stray["severity"], "error");
    assert_eq!(stray["rule"], "AAEP-3.5-4");
    assert_eq!(stray["pointer"], "/colour");
    assert!(stray["message"].as_str().unwrap().starts_with("this member is not known here"));
    assert_eq!(stray["event_id"], format!("evt_a{:031x}", 1));
    assert_eq!((&nonsense["line"], &nonsense["rule"]), (&4.into(), &"AAEP-3.8-2".into()));
    assert_eq!(nonsense["event_id"], Value::Null);
    let expected: Value =
        serde_json::from_str(r#"{"summary":{"events":2,"sessions":1,"errors":2,"warnings":0}}"#).unwrap();
    assert_eq!(*summary, expected);
    assert_eq!(ended.code, 1);
}

#[test]
fn notes_go_to_standard_error() {
    let ended = sayso(&["validate"], lines(1, "sess_notes001").replace('\n', "\r\n\n"));
    assert_eq!((ended.code, &*ended.out), (0, "3 events, 1 sessions: 0 errors, 0 warnings\n"));
    assert!(ended.err.contains("note: -: 3 empty lines were skipped."), "{}", ended.err);
    assert!(
        ended.err.contains("note: -: 3 lines end in CR LF. The CR counts as white space."),
        "{}",
        ended.err
    );
}

#[test]
fn text_of_strangers_is_printed_harmless() {
    let event = started(1, "sess_escape01")
        .replace("aaep:agent.session.started", r"aaep:\u001b[2J\u0007\u202ex\u009b1m")
        .replace("\"summary_terse\"", r#""\u001b[31mred\u2066":1,"summary_terse""#);
    let core = started(2, "sess_escape02")
        .replace("\"summary_terse\"", "\"\\u001b]0;\u{202e}\":1,\"summary_terse\"");
    for arguments in [&["validate"][..], &["validate", "--json"]] {
        let ended = sayso(arguments, format!("{event}\n{core}\n"));
        let harmful = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
        assert_eq!(ended.code, 1);
        if arguments.len() == 1 {
            assert!(!ended.out.contains(harmful), "{:?}", ended.out);
            assert!(ended.out.contains("\\u{1b}") && ended.out.contains("\\u{202e}"), "{}", ended.out);
        } else {
            assert!(!ended.out.contains('\u{1b}'), "{:?}", ended.out);
        }
    }
}

#[test]
fn a_name_that_fills_the_event_does_not_fill_the_output() {
    let many: Vec<_> = (0..2000).map(|at| format!("\"k{at}\":1e999")).collect();
    let event = started(1, "sess_name0001")
        .replace("\"I begin.\"", &format!("\"I begin.\",\"{}\":{{{}}}", "n".repeat(200_000), many.join(",")));
    let ended = sayso(&["validate"], event);
    assert_eq!(ended.code, 1);
    assert!(ended.findings().len() > 2000 && ended.out.len() < 2_000_000, "{} bytes", ended.out.len());
}
