//! The effect of each option.

use crate::validate::sample_events::{completed, lines, started, thinking, with_unknown_member};
use testing::cli::run_sayso;

const REPLY: &str = r#"{"type":"confirmation.reply","reply_token":"rpl_0123456789abcdef","decision":"accept","subscription_id":"sub_1","timestamp":"2026-06-30T14:22:26.014Z","mood":"good"}"#;

#[test]
fn receive_mode_warns_about_unknown_members() {
    let event = with_unknown_member(&thinking(1, "sess_receive1"));
    assert_eq!(run_sayso(&["validate"], &event).summary(), "1 events, 1 sessions: 1 errors, 0 warnings");
    let output = run_sayso(&["validate", "--receive"], &event);
    assert!(output.findings()[0].starts_with("-:1: warning AAEP-3.5-4 /colour: "), "{}", output.stdout);
    assert_eq!((output.exit_code, output.summary()), (0, "1 events, 1 sessions: 0 errors, 1 warnings"));
}

#[test]
fn replies_are_checked_strictly_in_both_modes() {
    for arguments in [&["validate"][..], &["validate", "--receive"]] {
        let output = run_sayso(arguments, REPLY);
        assert!(output.findings()[0].starts_with("-:1: error AAEP-6.3s-1 /mood: "), "{}", output.stdout);
        assert_eq!((output.exit_code, output.summary()), (1, "0 events, 0 sessions: 1 errors, 0 warnings"));
    }
}

#[test]
fn sequence_controls_when_order_is_checked() {
    let without_start = completed(1, "sess_headless");
    let two_ends = format!("{}{}\n", lines(1, "sess_twice001"), completed(9, "sess_twice001"));
    let open = started(1, "sess_open0001");
    for (mode, input, code, rule) in [
        ("auto", &without_start, 0, None),
        ("always", &without_start, 1, Some("-:1: error AAEP-4.1.1-2 : ")),
        ("never", &without_start, 0, None),
        ("auto", &two_ends, 1, Some("-:4: error AAEP-4.1-1 : ")),
        ("always", &two_ends, 1, Some("-:4: error AAEP-4.1-1 : ")),
        ("never", &two_ends, 0, None),
        ("auto", &open, 0, Some("-:1: warning AAEP-4.1-1 : ")),
        ("always", &open, 1, Some("-:1: error AAEP-4.1-1 : ")),
        ("never", &open, 0, None),
    ] {
        let output = run_sayso(&["validate", "--sequence", mode], input);
        assert_eq!(output.exit_code, code, "{mode}: {}", output.stdout);
        match (rule, &*output.findings()) {
            (None, []) => {}
            (Some(rule), [finding]) => assert!(finding.starts_with(rule), "{mode}: {finding}"),
            (_, findings) => panic!("{mode}: {findings:?}"),
        }
    }
}

#[test]
fn events_before_the_start_are_reported_at_the_start() {
    let input = format!("{}\n{}", thinking(1, "sess_late0001"), lines(2, "sess_late0001"));
    let output = run_sayso(&["validate"], input);
    assert_eq!(
        output.findings(),
        ["-:2: error AAEP-4.1.1-2 : events of sess_late0001 precede this event; \
          agent.session.started must be the first event of its session"]
    );
}

#[test]
fn a_rule_can_be_ignored() {
    let two_ends =
        format!("{}{}\n", lines(1, "sess_twice001"), with_unknown_member(&completed(9, "sess_twice001")));
    assert_eq!(run_sayso(&["validate"], &two_ends).summary(), "4 events, 1 sessions: 2 errors, 0 warnings");
    let one_ignored = run_sayso(&["validate", "--ignore", "AAEP-4.1-1"], &two_ends);
    assert_eq!(
        (one_ignored.exit_code, one_ignored.summary()),
        (1, "4 events, 1 sessions: 1 errors, 0 warnings")
    );
    let both_ignored =
        run_sayso(&["validate", "--ignore", "AAEP-4.1-1", "--ignore", "AAEP-3.5-4"], &two_ends);
    assert_eq!(
        (both_ignored.exit_code, &*both_ignored.stdout),
        (0, "4 events, 1 sessions: 0 errors, 0 warnings\n")
    );
}

#[test]
fn an_unknown_rule_cannot_be_ignored() {
    let output = run_sayso(&["validate", "--ignore", "AAEP-0.0-0"], "");
    assert_eq!((output.exit_code, &*output.stdout), (2, ""));
    assert_eq!(output.stderr, "sayso: unknown rule \"AAEP-0.0-0\"\n");
}

#[test]
fn when_another_rule_covers_an_ignored_requirement_the_error_names_that_rule() {
    let output = run_sayso(&["validate", "--ignore", "AAEP-9.3.1-1"], "");
    assert_eq!((output.exit_code, &*output.stdout), (2, ""));
    assert_eq!(output.stderr, "sayso: AAEP-9.3.1-1 is reported as AAEP-4.1.1-2; ignore that rule instead\n");
}

#[test]
fn plain_is_accepted_anywhere() {
    let input = lines(1, "sess_plain001");
    let default_output = run_sayso(&["validate"], &input);
    for arguments in [&["validate", "--plain"][..], &["--plain", "validate"], &["validate", "-", "--plain"]] {
        let output = run_sayso(arguments, &input);
        assert_eq!((output.exit_code, &output.stdout), (0, &default_output.stdout));
    }
    assert_eq!(run_sayso(&["schema", "--plain"], "").exit_code, 0);
    assert_eq!(run_sayso(&["schema", "agent.tool.invoked", "--plain"], "").exit_code, 0);
}

#[test]
fn invalid_arguments_are_rejected() {
    for arguments in [
        &["validate", "--sequence", "sometimes"][..],
        &["validate", "--jobs", "many"],
        &["validate", "--max-event-bytes", "-1"],
        &["validate", "--colour"],
        &["validat"],
        &[],
    ] {
        let output = run_sayso(arguments, "");
        assert_eq!((output.exit_code, &*output.stdout), (2, ""), "{arguments:?}");
        assert!(!output.stderr.is_empty());
    }
}

#[test]
fn the_number_of_threads_does_not_change_the_findings() {
    let input: String = (0..40).map(|at| lines(at * 3, &format!("sess_jobs{at}")) + "nonsense\n").collect();
    let sequential = run_sayso(&["validate", "--jobs", "1"], &input);
    assert_eq!(sequential.summary(), "120 events, 40 sessions: 40 errors, 0 warnings");
    for jobs in ["0", "2", "4", "1000000"] {
        assert_eq!(
            run_sayso(&["validate", "--jobs", jobs], &input).stdout,
            sequential.stdout,
            "--jobs {jobs}"
        );
    }
}
