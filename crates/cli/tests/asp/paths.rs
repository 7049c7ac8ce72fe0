//! Paths and arguments that cannot be used: exit code 2, a sentence on standard error, and nothing on standard output.

use std::fs;

use crate::asp::talk::demo;
use testing::cli::sayso;

#[track_caller]
fn could_not_run(arguments: &[&str], says: &str) {
    let run = sayso(arguments, "");
    assert_eq!((run.code, &*run.out), (2, ""), "{arguments:?}: {}", run.err);
    assert!(run.err.contains(says), "{arguments:?}: {}", run.err);
    assert!(!run.err.contains("os error") && !run.err.contains(".rs:"), "{arguments:?}: {}", run.err);
}

#[test]
fn arguments_that_are_missing_or_unknown_are_named() {
    could_not_run(&["asp"], "Usage: sayso asp");
    could_not_run(
        &["asp", "verify"],
        "typed like this: sayso asp verify transcript.jsonl --cards cards.json",
    );
    could_not_run(&["asp", "verify", "talk.jsonl"], "--cards is needed: a file with the agents' cards");
    could_not_run(&["asp", "verify", "--cards", "cards.json"], "FILE is missing.");
    could_not_run(&["asp", "trace"], "FILE is missing.");
    could_not_run(&["asp", "trace", "one", "two"], "two");
    could_not_run(&["asp", "demo", "--scenario", "agred"], "agreed, rejected, countered, invitation-timeout");
    could_not_run(&["asp", "demo", "--scenario"], "agreed");
    could_not_run(&["asp", "demo", "--seed", "seven"], "--seed");
    could_not_run(&["asp", "demo", "--seed", "18446744073709551616"], "--seed");
    could_not_run(&["asp", "demo", "--sead", "7"], "--seed");
    could_not_run(&["asp", "dance"], "dance");
    for jobs in ["0", "65", "-1", "many"] {
        could_not_run(&["asp", "verify", "a", "--cards", "b", &format!("--jobs={jobs}")], "--jobs");
    }
    could_not_run(&["asp", "verify", "a", "--cards", "b", "--max-bytes=-1"], "--max-bytes");
}

#[test]
fn help_is_no_failure() {
    for command in [&["asp", "--help"] as &[_], &["asp", "demo", "-h"], &["asp", "help", "verify"]] {
        let run = sayso(command, "");
        assert_eq!((run.code, &*run.err), (0, ""), "{command:?}");
        assert!(run.out.contains("Usage: sayso asp"), "{}", run.out);
    }
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder_name = folder.path().to_str().unwrap();
    let cards = folder.path().join("cards.json");
    fs::write(&cards, &demo("agreed").cards).unwrap();
    let cards = cards.to_str().unwrap();
    could_not_run(
        &["asp", "verify", "no/such", "--cards", cards],
        "cannot read no/such: there is no such file",
    );
    could_not_run(
        &["asp", "verify", cards, "--cards", "no/such"],
        "cannot read no/such: there is no such file",
    );
    could_not_run(&["asp", "verify", folder_name, "--cards", cards], "it is a folder");
    could_not_run(&["asp", "verify", cards, "--cards", folder_name], "it is a folder");
    could_not_run(&["asp", "trace", "no/such"], "cannot read no/such: there is no such file");
    could_not_run(&["asp", "trace", folder_name], "it is a folder");
    could_not_run(&["asp", "verify", "", "--cards", cards], "FILE must not be empty.");
    could_not_run(&["asp", "verify", "-", "--cards", "-"], "cannot both come from standard input");
    could_not_run(&["asp", "trace", "no/\u{1b}[31m\u{202e}such"], "no/\\u{1b}[31m\\u{202e}such");
}

#[test]
fn files_that_cannot_be_written_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let folder_name = folder.path().to_str().unwrap();
    let write = |option: &str, file: &str, says| could_not_run(&["asp", "demo", option, file], says);
    write("--transcript", &path("no/such"), "there is no such folder");
    write("--transcript", folder_name, "it is a folder");
    write("--cards", &path("no/such"), "there is no such folder");
    write("--cards", folder_name, "it is a folder");
    write("--transcript", "-", "go into files");
    write("--cards", "-", "go into files");
    let talk = path("talk.jsonl");
    could_not_run(&["asp", "demo", "--transcript", &talk, "--cards", &talk], "the same file");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "nothing was written");
    fs::write(&talk, demo("agreed").text()).unwrap();
    could_not_run(&["asp", "trace", &talk, "--svg", &path("no/such")], "there is no such folder");
    could_not_run(&["asp", "trace", &talk, "--svg", folder_name], "it is a folder");
    let crooked = path("./talk.jsonl");
    could_not_run(&["asp", "trace", &talk, "--svg", &crooked], "would overwrite the transcript");
    assert_eq!(fs::read_to_string(&talk).unwrap(), demo("agreed").text());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_no_success() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let run = testing::cli::ended(testing::cli::command(&["asp", "demo"]).stdout(full).output().unwrap());
    assert_eq!(run.code, 2);
    assert!(run.err.contains("cannot write"), "{}", run.err);
}
