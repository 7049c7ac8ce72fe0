//! What each option changes.

use crate::validate::events::{completed, lines, started, thinking, with_stray};
use testing::cli::sayso;

const REPLY: &str = r#"{"type":"confirmation.reply","reply_token":"rpl_0123456789abcdef","decision":"accept","subscription_id":"sub_1","timestamp":"2026-06-30T14:22:26.014Z","mood":"good"}"#;

#[test]
fn the_receiving_face_warns_of_what_it_does_not_know() {
    let event = with_stray(&thinking(1, "sess_receive1"));
    assert_eq!(sayso(&["validate"], &event).summary(), "1 events, 1 sessions: 1 errors, 0 warnings");
    let ended = sayso(&["validate", "--receive"], &event);
    assert!(ended.findings()[0].starts_with("-:1: warning AAEP-3.5-4 /colour: "), "{}", ended.out);
    assert_eq!((ended.code, ended.summary()), (0, "1 events, 1 sessions: 0 errors, 1 warnings"));
}

#[test]
fn replies_stay_strict_on_either_face() {
    for arguments in [&["validate"][..], &["validate", "--receive"]] {
        let ended = sayso(arguments, REPLY);
        assert!(ended.findings()[0].starts_with("-:1: error AAEP-6.3s-1 /mood: "), "{}", ended.out);
        assert_eq!((ended.code, ended.summary()), (1, "0 events, 0 sessions: 1 errors, 0 warnings"));
    }
}

#[test]
fn order_is_judged_where_the_start_is_there_unless_told_otherwise() {
    let headless = completed(1, "sess_headless");
    let twice = format!("{}{}\n", lines(1, "sess_twice001"), completed(9, "sess_twice001"));
    let open = started(1, "sess_open0001");
    for (when, input, code, rule) in [
        ("auto", &headless, 0, None),
        ("always", &headless, 1, Some("-:1: error AAEP-4.1.1-2 : ")),
        ("never", &headless, 0, None),
        ("auto", &twice, 1, Some("-:4: error AAEP-4.1-1 : ")),
        ("always", &twice, 1, Some("-:4: error AAEP-4.1-1 : ")),
        ("never", &twice, 0, None),
        ("auto", &open, 0, Some("-:1: warning AAEP-4.1-1 : ")),
        ("always", &open, 1, Some("-:1: error AAEP-4.1-1 : ")),
        ("never", &open, 0, None),
    ] {
        let ended = sayso(&["validate", "--sequence", when], input);
        assert_eq!(ended.code, code, "{when}: {}", ended.out);
        match (rule, &*ended.findings()) {
            (None, []) => {}
            (Some(rule), [finding]) => assert!(finding.starts_with(rule), "{when}: {finding}"),
            (_, findings) => panic!("{when}: {findings:?}"),
        }
    }
}

#[test]
fn events_before_the_start_are_told_at_the_start() {
    let input = format!("{}\n{}", thinking(1, "sess_late0001"), lines(2, "sess_late0001"));
    let ended = sayso(&["validate"], input);
    assert_eq!(
        ended.findings(),
        ["-:2: error AAEP-4.1.1-2 : events of sess_late0001 stand before it; \
          agent.session.started is the first event of its session"]
    );
}

#[test]
fn a_rule_can_be_left_out() {
    let twice = format!("{}{}\n", lines(1, "sess_twice001"), with_stray(&completed(9, "sess_twice001")));
    assert_eq!(sayso(&["validate"], &twice).summary(), "4 events, 1 sessions: 2 errors, 0 warnings");
    let one = sayso(&["validate", "--ignore", "AAEP-4.1-1"], &twice);
    assert_eq!((one.code, one.summary()), (1, "4 events, 1 sessions: 1 errors, 0 warnings"));
    let both = sayso(&["validate", "--ignore", "AAEP-4.1-1", "--ignore", "AAEP-3.5-4"], &twice);
    assert_eq!((both.code, &*both.out), (0, "4 events, 1 sessions: 0 errors, 0 warnings\n"));
}

#[test]
fn a_rule_that_does_not_exist_cannot_be_left_out() {
    let ended = sayso(&["validate", "--ignore", "AAEP-0.0-0"], "");
    assert_eq!((ended.code, &*ended.out), (2, ""));
    assert_eq!(ended.err, "sayso: there is no rule \"AAEP-0.0-0\" that a recording can break\n");
}

#[test]
fn a_row_that_another_rule_covers_is_named_with_it() {
    let ended = sayso(&["validate", "--ignore", "AAEP-9.3.1-1"], "");
    assert_eq!((ended.code, &*ended.out), (2, ""));
    assert_eq!(ended.err, "sayso: AAEP-9.3.1-1 is checked as AAEP-4.1.1-2; ignore that one\n");
}

#[test]
fn plain_is_accepted_anywhere() {
    let input = lines(1, "sess_plain001");
    let usual = sayso(&["validate"], &input);
    for arguments in [&["validate", "--plain"][..], &["--plain", "validate"], &["validate", "-", "--plain"]] {
        let ended = sayso(arguments, &input);
        assert_eq!((ended.code, &ended.out), (0, &usual.out));
    }
    assert_eq!(sayso(&["schema", "--plain"], "").code, 0);
    assert_eq!(sayso(&["schema", "agent.tool.invoked", "--plain"], "").code, 0);
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    for arguments in [
        &["validate", "--sequence", "sometimes"][..],
        &["validate", "--jobs", "many"],
        &["validate", "--max-event-bytes", "-1"],
        &["validate", "--colour"],
        &["validat"],
        &[],
    ] {
        let ended = sayso(arguments, "");
        assert_eq!((ended.code, &*ended.out), (2, ""), "{arguments:?}");
        assert!(!ended.err.is_empty());
    }
}

#[test]
fn any_number_of_threads_finds_the_same() {
    let input: String = (0..40).map(|at| lines(at * 3, &format!("sess_jobs{at}")) + "nonsense\n").collect();
    let alone = sayso(&["validate", "--jobs", "1"], &input);
    assert_eq!(alone.summary(), "120 events, 40 sessions: 40 errors, 0 warnings");
    for jobs in ["0", "2", "4", "1000000"] {
        assert_eq!(sayso(&["validate", "--jobs", jobs], &input).out, alone.out, "--jobs {jobs}");
    }
}
