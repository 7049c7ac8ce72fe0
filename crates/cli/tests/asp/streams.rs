//! Standard streams that close early.

use std::fs;
use std::io::Read;
use std::process::Stdio;

use crate::asp::talk::demo;
use testing::cli::command;

/// Runs it with a reader that has gone before anything is written; to `both`, standard error as well.
fn run_unread(arguments: &[&str], both: bool) -> i32 {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = command(arguments);
    if both {
        command.stderr(writer.try_clone().unwrap());
    }
    let mut child = command.stdout(writer).spawn().unwrap();
    let mut err = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        stderr.read_to_string(&mut err).unwrap();
    }
    assert!(!err.contains("panicked"), "{err}");
    child.wait().unwrap().code().unwrap()
}

#[test]
fn a_reader_that_has_gone_is_no_failure_and_hides_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (talk, cards, bad) = (path("talk"), path("cards"), path("bad"));
    fs::write(&talk, demo("agreed").text()).unwrap();
    fs::write(&cards, &demo("agreed").cards).unwrap();
    fs::write(&bad, "{}\n").unwrap();
    for both in [false, true] {
        let run = |arguments: &[&str]| run_unread(&[&["asp"], arguments].concat(), both);
        assert_eq!(run(&["demo"]), 0, "demo, {both}");
        assert_eq!(run(&["verify", &talk, "--cards", &cards]), 0, "verify, {both}");
        assert_eq!(run(&["trace", &talk]), 0, "trace, {both}");
        assert_eq!(run(&["verify", &bad, "--cards", &cards]), 1, "verify of a bad one, {both}");
        assert_eq!(run(&["trace", &bad]), 1, "trace of a bad one, {both}");
        assert_eq!(run(&["trace", "no/such"]), 2, "no such file, {both}");
        assert_eq!(run(&["demo", "--transcript", "/no/such/folder/talk"]), 2, "no such folder, {both}");
    }
}

#[test]
fn a_reader_that_leaves_in_the_middle_is_no_failure() {
    // More than a pipe holds, so that it must notice.
    let text = demo("agreed").text();
    let many: String = std::iter::repeat_n(text.as_str(), 40).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.jsonl");
    fs::write(&path, many).unwrap();
    let mut child =
        command(&["asp", "trace", path.to_str().unwrap()]).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 100];
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut first).unwrap();
    drop(stdout);
    let run = testing::cli::ended(child.wait_with_output().unwrap());
    assert_eq!(run.code, 1, "it is one transcript after another: {}", run.err);
}

#[test]
fn findings_go_to_standard_output_and_asides_to_standard_error() {
    let talk = demo("agreed");
    let run = crate::asp::talk::trace(talk.text());
    assert!(run.err.contains("sayso asp verify checks"), "{}", run.err);
    assert_eq!(run.err.lines().count(), 1);
    let run = talk.verify_bytes(b"nonsense\n", &[]);
    assert_eq!((run.code, &*run.err), (1, ""));
    assert!(run.out.starts_with("stdin:1: error not JSON"), "{}", run.out);
}
