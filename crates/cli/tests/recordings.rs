//! Whole recordings: what the specification calls invalid is found by the rule that says so, and nothing else is;
//! what is lawful passes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use testing::cli::{Finished, sayso};

struct Expected {
    file: &'static str,
    /// The error: its line and rule.
    error: Option<(u64, &'static str)>,
    /// The warnings: line and rule.
    warnings: &'static [(u64, &'static str)],
    summary: &'static str,
}

/// Entering a state only by implication is a warning (C-B7); the specification's own examples do it.
const IMPLIED: &str = "AAEP-9.3.1-2";
/// So is asking without an `agent.state.changed` to `awaiting_input`.
const UNANNOUNCED: &str = "AAEP-A.4-1";

const RECORDINGS: &[Expected] = &[
    // §A.8, with a lawful start and end where the appendix leaves them out.
    Expected {
        // §4.5.2: every completion is preceded by an invocation.
        file: "a-8-1-tool-completion-without-invocation",
        error: Some((2, "AAEP-4.5.2-1")),
        warnings: &[],
        summary: "3 events, 1 sessions: 1 errors, 0 warnings",
    },
    Expected {
        // §4.1: exactly one terminal event.
        file: "a-8-2-multiple-terminal-events",
        error: Some((3, "AAEP-4.1-1")),
        warnings: &[],
        summary: "3 events, 1 sessions: 1 errors, 0 warnings",
    },
    Expected {
        // §4.5.1: nothing after it.
        file: "a-8-3-event-after-terminal-event",
        error: Some((3, "AAEP-4.5.1-1")),
        warnings: &[],
        summary: "3 events, 1 sessions: 1 errors, 0 warnings",
    },
    Expected {
        // §4.3.1: what is irreversible is confirmed first.
        file: "a-8-4-irreversible-without-confirmation",
        error: Some((3, "AAEP-4.3.1-3")),
        warnings: &[(3, IMPLIED)],
        summary: "5 events, 1 sessions: 1 errors, 1 warnings",
    },
    Expected {
        // §4.5.3: nothing is done after a rejecting reply.
        file: "a-8-5-action-after-rejection",
        error: Some((4, "AAEP-4.5.3-1")),
        warnings: &[(2, UNANNOUNCED), (4, IMPLIED)],
        summary: "5 events, 1 sessions: 1 errors, 2 warnings",
    },
    Expected {
        // §4.5.4: no chunk after the complete one.
        file: "a-8-6-output-after-completion",
        error: Some((4, "AAEP-4.5.4-2")),
        warnings: &[],
        summary: "5 events, 1 sessions: 1 errors, 0 warnings",
    },
    Expected {
        // The schema of §4.3.3, and §A.6: position never falls.
        file: "a-8-7-position-falls",
        error: Some((5, "AAEP-4.3.3s-2")),
        warnings: &[],
        summary: "7 events, 1 sessions: 1 errors, 0 warnings",
    },
    // §4.6, the complete session, with its reply on line 8.
    Expected {
        file: "section-4-6",
        error: None,
        warnings: &[(3, IMPLIED), (7, UNANNOUNCED), (9, IMPLIED)],
        summary: "13 events, 1 sessions: 0 errors, 3 warnings",
    },
    // §A.9, pattern 1: one session, two producers, each with states of its own.
    lawful("two-producers", "12 events, 1 sessions: 0 errors, 0 warnings"),
    // §A.9, pattern 2: a session that names its parent.
    lawful("linked-sessions", "10 events, 2 sessions: 0 errors, 0 warnings"),
    // A refusal that is kept to.
    lawful("rejected", "8 events, 1 sessions: 0 errors, 0 warnings"),
    // Nobody answers; the default holds when the time is over.
    lawful("defaulted", "8 events, 1 sessions: 0 errors, 0 warnings"),
    // A question that is answered by a choice.
    lawful("clarification", "8 events, 1 sessions: 0 errors, 0 warnings"),
];

const fn lawful(file: &'static str, summary: &'static str) -> Expected {
    Expected { file, error: None, warnings: &[], summary }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings")
}

fn validate(expected: &Expected, more: &[&str]) -> Finished {
    let path = folder().join(expected.file).with_extension("jsonl");
    sayso(&[&["validate", path.to_str().unwrap()], more].concat(), "")
}

/// Severity, line and rule of each finding.
fn found(ended: &Finished) -> BTreeSet<(String, u64, String)> {
    let finding = |line: &&str| {
        let (place, words) = line.split_once(": ").unwrap();
        let line = place.rsplit(':').next().unwrap().parse().unwrap();
        let mut words = words.split(' ').map(str::to_owned);
        (words.next().unwrap(), line, words.next().unwrap())
    };
    ended.findings().iter().map(finding).collect()
}

#[test]
fn each_recording_breaks_what_it_should_and_nothing_else() {
    for expected in RECORDINGS {
        let named =
            |severity: &str, (line, rule): &(u64, &str)| (severity.to_owned(), *line, (*rule).to_owned());
        let errors = expected.error.iter().map(|it| named("error", it));
        let warnings = expected.warnings.iter().map(|it| named("warning", it));
        // Every session has its start and end, so that it makes no difference whether order is judged by chance.
        for sequence in ["auto", "always"] {
            let ended = validate(expected, &["--sequence", sequence]);
            assert_eq!(found(&ended), errors.clone().chain(warnings.clone()).collect(), "{}", ended.out);
            assert_eq!(ended.summary(), expected.summary, "{}", expected.file);
            assert_eq!(ended.code, i32::from(expected.error.is_some()), "{}", expected.file);
            assert_eq!(ended.err, "");
        }
    }
}

#[test]
fn each_event_of_them_is_lawful_on_its_own() {
    for expected in RECORDINGS {
        let ended = validate(expected, &["--sequence", "never"]);
        assert_eq!((ended.code, ended.findings().len()), (0, 0), "{}: {}", expected.file, ended.out);
    }
}

#[test]
fn without_its_rule_an_invalid_recording_passes() {
    for expected in RECORDINGS {
        if let Some((_, rule)) = expected.error {
            assert_eq!(validate(expected, &["--ignore", rule]).code, 0, "{}", expected.file);
        }
    }
}

#[test]
fn no_recording_is_left_out() {
    let here: BTreeSet<_> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let told: BTreeSet<_> = RECORDINGS.iter().map(|expected| expected.file.to_owned()).collect();
    assert_eq!(here, told);
}
