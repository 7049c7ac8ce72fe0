//! Repeated findings: one line for each on standard output, and groups by rule for people on standard error.

use crate::validate::sample_events::{completed, lines, started, with_unknown_member};
use testing::cli::run_sayso;

/// Returns sessions with one error each, and one session without an end, which is a warning.
fn faulty_sessions(count: usize) -> String {
    let session = |index: usize| {
        let id = format!("sess_group{index:04}");
        format!("{}\n{}\n", with_unknown_member(&started(2 * index, &id)), completed(2 * index + 1, &id))
    };
    let sessions: String = (1..=count).map(session).collect();
    format!("{sessions}{}\n", started(9999, "sess_open0001"))
}

#[test]
fn repeated_findings_are_grouped_on_standard_error() {
    let output = run_sayso(&["validate"], faulty_sessions(20));
    assert_eq!(output.findings().len(), 21, "one line for each finding");
    assert!(output.findings().iter().all(|line| line.starts_with("-:")), "{}", output.stdout);
    assert_eq!(output.summary(), "41 events, 21 sessions: 20 errors, 1 warnings");
    assert_eq!(
        output.stderr,
        "note: findings by rule:\n\
         note: AAEP-3.5-4: 20 errors, at -:1, -:3, -:5 and 17 more places\n\
         note: AAEP-4.1-1: 1 warning, at -:41\n\
         note: `sayso explain AAEP-3.5-4` says what that rule means.\n"
    );
}

#[test]
fn findings_of_several_files_are_grouped_together() {
    let folder = tempfile::tempdir().unwrap();
    let files = ["a.jsonl", "b.jsonl"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    for file in &files {
        std::fs::write(file, faulty_sessions(2)).unwrap();
    }
    let output = run_sayso(&["validate", &files[0], &files[1]], "");
    let [a, b] = &files;
    let group = format!("note: AAEP-3.5-4: 4 errors, at {a}:1, {a}:3, {b}:1 and 1 more place\n");
    assert!(output.stderr.contains(&group), "{}", output.stderr);
    assert_eq!(output.stderr.matches("sayso explain").count(), 1);
}

#[test]
fn few_findings_and_json_are_not_grouped() {
    for (arguments, count) in [(&["validate"][..], 3), (&["validate", "--json"], 20)] {
        let output = run_sayso(arguments, faulty_sessions(count));
        assert_eq!((output.findings().len(), &*output.stderr), (count + 1, ""), "{arguments:?}");
    }
    assert_eq!(run_sayso(&["validate"], lines(1, "sess_valid0001")).stderr, "");
}

#[cfg(unix)]
#[test]
fn on_a_terminal_the_first_findings_of_each_rule_are_printed() {
    use testing::terminal::ListenProcess;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.jsonl");
    let validate = |count| {
        std::fs::write(&file, faulty_sessions(count)).unwrap();
        ListenProcess::start_command(&["validate", file.to_str().unwrap()], |command| command).wait_for_exit()
    };
    let (printed, exit_code) = validate(20);
    let findings =
        printed.iter().filter(|line| line.contains(": error ") || line.contains(": warning ")).count();
    assert_eq!((findings, exit_code), (4, 1), "{printed:#?}");
    let notes: Vec<_> = printed.iter().filter(|line| line.starts_with("note: ")).collect();
    assert!(notes[1].starts_with("note: AAEP-3.5-4: 20 errors, at "), "{notes:#?}");
    assert!(notes[3].contains("only the first 3 findings of each rule are printed above"), "{notes:#?}");
    assert_eq!(printed.last().unwrap(), "41 events, 21 sessions: 20 errors, 1 warning");
    // The command that explains a rule is named even if there is nothing to group.
    let (printed, _) = validate(1);
    let expected = [
        "note: `sayso explain AAEP-3.5-4` says what that rule means.",
        "3 events, 2 sessions: 1 error, 1 warning",
    ];
    assert_eq!(printed[2..], expected, "{printed:#?}");
    // A program that reads the findings gets all of them, even if the notes go to a terminal.
    std::fs::write(&file, faulty_sessions(20)).unwrap();
    let findings_file = folder.path().join("findings");
    let process = ListenProcess::start_command(&["validate", file.to_str().unwrap()], |command| {
        command.stdout(std::fs::File::create(&findings_file).unwrap())
    });
    let (printed, _) = process.wait_for_exit();
    assert!(printed[0].starts_with("note: findings by rule:"), "{printed:#?}");
    assert_eq!(std::fs::read_to_string(findings_file).unwrap().lines().count(), 22);
}
