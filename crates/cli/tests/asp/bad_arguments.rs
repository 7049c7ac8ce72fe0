//! Unusable paths and arguments: exit code 2, a message on standard error, and nothing on standard output.

use std::fs;

use crate::asp::transcripts::demo_transcript;
use testing::cli::run_sayso;

#[track_caller]
fn assert_cannot_run(arguments: &[&str], expected: &str) {
    let run = run_sayso(arguments, "");
    assert_eq!((run.exit_code, &*run.stdout), (2, ""), "{arguments:?}: {}", run.stderr);
    assert!(run.stderr.contains(expected), "{arguments:?}: {}", run.stderr);
    assert!(
        !run.stderr.contains("os error") && !run.stderr.contains(".rs:"),
        "{arguments:?}: {}",
        run.stderr
    );
}

#[test]
fn missing_and_unknown_arguments_are_named() {
    assert_cannot_run(&["asp"], "Usage: sayso asp");
    assert_cannot_run(&["asp", "verify"], "Example: sayso asp verify transcript.jsonl --cards cards.json");
    assert_cannot_run(&["asp", "verify", "talk.jsonl"], "--cards is required: a file with the agents' cards");
    assert_cannot_run(&["asp", "verify", "--cards", "cards.json"], "FILE is missing.");
    assert_cannot_run(&["asp", "trace"], "FILE is missing.");
    assert_cannot_run(&["asp", "trace", "one", "two"], "two");
    assert_cannot_run(
        &["asp", "demo", "--scenario", "agred"],
        "agreed, rejected, countered, invitation-timeout",
    );
    assert_cannot_run(&["asp", "demo", "--scenario"], "agreed");
    assert_cannot_run(&["asp", "demo", "--seed", "seven"], "--seed");
    assert_cannot_run(&["asp", "demo", "--seed", "18446744073709551616"], "--seed");
    assert_cannot_run(&["asp", "demo", "--sead", "7"], "--seed");
    assert_cannot_run(&["asp", "dance"], "dance");
    for jobs in ["0", "65", "-1", "many"] {
        assert_cannot_run(&["asp", "verify", "a", "--cards", "b", &format!("--jobs={jobs}")], "--jobs");
    }
    assert_cannot_run(&["asp", "verify", "a", "--cards", "b", "--max-bytes=-1"], "--max-bytes");
}

#[test]
fn help_exits_with_success() {
    for command in [&["asp", "--help"] as &[_], &["asp", "demo", "-h"], &["asp", "help", "verify"]] {
        let run = run_sayso(command, "");
        assert_eq!((run.exit_code, &*run.stderr), (0, ""), "{command:?}");
        assert!(run.stdout.contains("Usage: sayso asp"), "{}", run.stdout);
    }
}

#[test]
fn unreadable_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder_name = folder.path().to_str().unwrap();
    let cards = folder.path().join("cards.json");
    fs::write(&cards, &demo_transcript("agreed").cards).unwrap();
    let cards = cards.to_str().unwrap();
    assert_cannot_run(
        &["asp", "verify", "no/such", "--cards", cards],
        "cannot read no/such: there is no such file",
    );
    assert_cannot_run(
        &["asp", "verify", cards, "--cards", "no/such"],
        "cannot read no/such: there is no such file",
    );
    assert_cannot_run(&["asp", "verify", folder_name, "--cards", cards], "it is a folder");
    assert_cannot_run(&["asp", "verify", cards, "--cards", folder_name], "it is a folder");
    assert_cannot_run(&["asp", "trace", "no/such"], "cannot read no/such: there is no such file");
    assert_cannot_run(&["asp", "trace", folder_name], "it is a folder");
    assert_cannot_run(&["asp", "verify", "", "--cards", cards], "FILE must not be empty.");
    assert_cannot_run(&["asp", "verify", "-", "--cards", "-"], "cannot both come from standard input");
    assert_cannot_run(&["asp", "trace", "no/\u{1b}[31m\u{202e}such"], "no/\\u{1b}[31m\\u{202e}such");
}

#[test]
fn unwritable_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let folder_name = folder.path().to_str().unwrap();
    let assert_cannot_write =
        |option: &str, file: &str, expected| assert_cannot_run(&["asp", "demo", option, file], expected);
    assert_cannot_write("--transcript", &path("no/such"), "the folder does not exist");
    assert_cannot_write("--transcript", folder_name, "it is a folder");
    assert_cannot_write("--cards", &path("no/such"), "the folder does not exist");
    assert_cannot_write("--cards", folder_name, "it is a folder");
    assert_cannot_write("--transcript", "-", "cannot be written to standard output");
    assert_cannot_write("--cards", "-", "cannot be written to standard output");
    let transcript = path("talk.jsonl");
    assert_cannot_run(&["asp", "demo", "--transcript", &transcript, "--cards", &transcript], "the same file");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "nothing was written");
    fs::write(&transcript, demo_transcript("agreed").text()).unwrap();
    assert_cannot_run(&["asp", "trace", &transcript, "--svg", &path("no/such")], "the folder does not exist");
    assert_cannot_run(&["asp", "trace", &transcript, "--svg", folder_name], "it is a folder");
    let same_file = path("./talk.jsonl");
    assert_cannot_run(&["asp", "trace", &transcript, "--svg", &same_file], "would overwrite the transcript");
    assert_eq!(fs::read_to_string(&transcript).unwrap(), demo_transcript("agreed").text());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let run =
        testing::cli::check_output(testing::cli::command(&["asp", "demo"]).stdout(full).output().unwrap());
    assert_eq!(run.exit_code, 2);
    assert!(run.stderr.contains("cannot write"), "{}", run.stderr);
}
