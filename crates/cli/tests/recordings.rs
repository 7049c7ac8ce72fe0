//! Complete recordings: invalid ones break exactly the rule that the specification names, and valid ones pass.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use testing::cli::{CommandOutput, run_sayso};

struct ExpectedFindings {
    file: &'static str,
    /// The line and the rule of the error, if one is expected.
    error: Option<(u64, &'static str)>,
    /// The line and the rule of each warning.
    warnings: &'static [(u64, &'static str)],
    summary: &'static str,
}

/// The rule that warns about a state that was entered without an `agent.state.changed` (C-B7). The specification's own
/// examples omit that event.
const IMPLIED_STATE_RULE: &str = "AAEP-9.3.1-2";
/// The rule that warns about a question without an `agent.state.changed` to `awaiting_input`.
const UNANNOUNCED_WAIT_RULE: &str = "AAEP-A.4-1";

const RECORDINGS: &[ExpectedFindings] = &[
    // §A.8, with a valid start and end added where the appendix omits them.
    ExpectedFindings {
        // §4.5.2: an invocation precedes every completion.
        file: "a-8-1-tool-completion-without-invocation",
        error: Some((2, "AAEP-4.5.2-1")),
        warnings: &[],
        summary: "3 events, 1 sessions: 1 errors, 0 warnings",
    },
    ExpectedFindings {
        // §4.1: exactly one terminal event.
        file: "a-8-2-multiple-terminal-events",
        error: Some((3, "AAEP-4.1-1")),
        warnings: &[],
        summary: "3 events, 1 sessions: 1 errors, 0 warnings",
    },
    ExpectedFindings {
        // §4.5.1: no event follows the terminal event.
        file: "a-8-3-event-after-terminal-event",
        error: Some((3, "AAEP-4.5.1-1")),
        warnings: &[],
        summary: "3 events, 1 sessions: 1 errors, 0 warnings",
    },
    ExpectedFindings {
        // §4.3.1: an irreversible action needs a confirmation first.
        file: "a-8-4-irreversible-without-confirmation",
        error: Some((3, "AAEP-4.3.1-3")),
        warnings: &[(3, IMPLIED_STATE_RULE)],
        summary: "5 events, 1 sessions: 1 errors, 1 warnings",
    },
    ExpectedFindings {
        // §4.5.3: the action must not follow a rejection.
        file: "a-8-5-action-after-rejection",
        error: Some((4, "AAEP-4.5.3-1")),
        warnings: &[(2, UNANNOUNCED_WAIT_RULE), (4, IMPLIED_STATE_RULE)],
        summary: "5 events, 1 sessions: 1 errors, 2 warnings",
    },
    ExpectedFindings {
        // §4.5.4: no chunk follows the one marked complete.
        file: "a-8-6-output-after-completion",
        error: Some((4, "AAEP-4.5.4-2")),
        warnings: &[],
        summary: "5 events, 1 sessions: 1 errors, 0 warnings",
    },
    ExpectedFindings {
        // The schema of §4.3.3, and §A.6: position never decreases.
        file: "a-8-7-position-falls",
        error: Some((5, "AAEP-4.3.3s-2")),
        warnings: &[],
        summary: "7 events, 1 sessions: 1 errors, 0 warnings",
    },
    // §4.6: the complete session, with its reply on line 8.
    ExpectedFindings {
        file: "section-4-6",
        error: None,
        warnings: &[(3, IMPLIED_STATE_RULE), (7, UNANNOUNCED_WAIT_RULE), (9, IMPLIED_STATE_RULE)],
        summary: "13 events, 1 sessions: 0 errors, 3 warnings",
    },
    // §A.9, pattern 1: one session with two producers, each with its own states.
    valid("two-producers", "12 events, 1 sessions: 0 errors, 0 warnings"),
    // §A.9, pattern 2: a session that names its parent.
    valid("linked-sessions", "10 events, 2 sessions: 0 errors, 0 warnings"),
    // A rejection that the agent obeys.
    valid("rejected", "8 events, 1 sessions: 0 errors, 0 warnings"),
    // Nobody answers, so the default decision applies after the timeout.
    valid("defaulted", "8 events, 1 sessions: 0 errors, 0 warnings"),
    // Tools that succeed, fail and time out, a refused question, one that nobody answers, a hand-off and an error at the end.
    valid("outcomes", "23 events, 1 sessions: 0 errors, 0 warnings"),
    // A clarification answered with a choice.
    valid("clarification", "8 events, 1 sessions: 0 errors, 0 warnings"),
];

const fn valid(file: &'static str, summary: &'static str) -> ExpectedFindings {
    ExpectedFindings { file, error: None, warnings: &[], summary }
}

fn recordings_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings")
}

fn validate(expected: &ExpectedFindings, arguments: &[&str]) -> CommandOutput {
    let path = recordings_dir().join(expected.file).with_extension("jsonl");
    run_sayso(&[&["validate", path.to_str().unwrap()], arguments].concat(), "")
}

/// Returns the severity, line and rule of each finding.
fn parse_findings(output: &CommandOutput) -> BTreeSet<(String, u64, String)> {
    let parse_finding = |line: &&str| {
        let (location, message) = line.split_once(": ").unwrap();
        let line = location.rsplit(':').next().unwrap().parse().unwrap();
        let mut message = message.split(' ').map(str::to_owned);
        (message.next().unwrap(), line, message.next().unwrap())
    };
    output.findings().iter().map(parse_finding).collect()
}

#[test]
fn each_recording_breaks_exactly_the_expected_rules() {
    for expected in RECORDINGS {
        let expected_finding =
            |severity: &str, (line, rule): &(u64, &str)| (severity.to_owned(), *line, (*rule).to_owned());
        let errors = expected.error.iter().map(|finding| expected_finding("error", finding));
        let warnings = expected.warnings.iter().map(|finding| expected_finding("warning", finding));
        // Every session is complete, so `auto` and `always` must give the same result.
        for sequence in ["auto", "always"] {
            let output = validate(expected, &["--sequence", sequence]);
            assert_eq!(
                parse_findings(&output),
                errors.clone().chain(warnings.clone()).collect(),
                "{}",
                output.stdout
            );
            assert_eq!(output.summary(), expected.summary, "{}", expected.file);
            assert_eq!(output.exit_code, i32::from(expected.error.is_some()), "{}", expected.file);
            assert_eq!(output.stderr, "");
        }
    }
}

#[test]
fn each_event_is_valid_on_its_own() {
    for expected in RECORDINGS {
        let output = validate(expected, &["--sequence", "never"]);
        assert_eq!(
            (output.exit_code, output.findings().len()),
            (0, 0),
            "{}: {}",
            expected.file,
            output.stdout
        );
    }
}

#[test]
fn an_invalid_recording_passes_if_the_rules_that_it_breaks_are_ignored() {
    for expected in RECORDINGS {
        let Some((_, rule)) = expected.error else { continue };
        let mut ignored = vec!["--ignore", rule];
        // A position that falls is also not the number of characters so far.
        if rule == "AAEP-4.3.3s-2" {
            let output = validate(expected, &ignored);
            let rules: Vec<_> = parse_findings(&output).into_iter().map(|(_, _, rule)| rule).collect();
            assert_eq!(rules, ["AAEP-4.3.3-2"], "{}", expected.file);
            ignored.extend(["--ignore", "AAEP-4.3.3-2"]);
        }
        assert_eq!(validate(expected, &ignored).exit_code, 0, "{}", expected.file);
    }
}

#[test]
fn every_recording_file_is_tested() {
    let files: BTreeSet<_> = fs::read_dir(recordings_dir())
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let tested: BTreeSet<_> = RECORDINGS.iter().map(|expected| expected.file.to_owned()).collect();
    assert_eq!(files, tested);
}
