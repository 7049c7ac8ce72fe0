//! Standard streams that close early.

use std::fs;
use std::io::Read;
use std::process::Stdio;

use crate::asp::transcripts::demo_transcript;
use testing::cli::command;

/// Runs the command with a standard output whose reader is closed. With `close_stderr`, the reader of standard error is
/// closed too. Returns the exit code.
fn run_with_closed_output(arguments: &[&str], close_stderr: bool) -> i32 {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = command(arguments);
    if close_stderr {
        command.stderr(writer.try_clone().unwrap());
    }
    let mut child = command.stdout(writer).spawn().unwrap();
    let mut stderr_text = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        stderr.read_to_string(&mut stderr_text).unwrap();
    }
    assert!(!stderr_text.contains("panicked"), "{stderr_text}");
    child.wait().unwrap().code().unwrap()
}

#[test]
fn a_closed_reader_does_not_change_the_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (transcript, cards, invalid) = (path("talk"), path("cards"), path("bad"));
    fs::write(&transcript, demo_transcript("agreed").text()).unwrap();
    fs::write(&cards, &demo_transcript("agreed").cards).unwrap();
    fs::write(&invalid, "{}\n").unwrap();
    for close_stderr in [false, true] {
        let run = |arguments: &[&str]| run_with_closed_output(&[&["asp"], arguments].concat(), close_stderr);
        assert_eq!(run(&["demo"]), 0, "demo, {close_stderr}");
        assert_eq!(run(&["verify", &transcript, "--cards", &cards]), 0, "verify, {close_stderr}");
        assert_eq!(run(&["trace", &transcript]), 0, "trace, {close_stderr}");
        assert_eq!(
            run(&["verify", &invalid, "--cards", &cards]),
            1,
            "verify of an invalid transcript, {close_stderr}"
        );
        assert_eq!(run(&["trace", &invalid]), 1, "trace of an invalid transcript, {close_stderr}");
        assert_eq!(run(&["trace", "no/such"]), 2, "no such file, {close_stderr}");
        assert_eq!(
            run(&["demo", "--transcript", "/no/such/folder/talk"]),
            2,
            "no such folder, {close_stderr}"
        );
    }
}

#[test]
fn a_reader_that_closes_midway_causes_no_failure() {
    // The output exceeds the buffer of a pipe, so the command notices the closed reader.
    let text = demo_transcript("agreed").text();
    let repeated: String = std::iter::repeat_n(text.as_str(), 40).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.jsonl");
    fs::write(&path, repeated).unwrap();
    let mut child =
        command(&["asp", "trace", path.to_str().unwrap()]).stderr(Stdio::piped()).spawn().unwrap();
    let mut start = [0; 100];
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut start).unwrap();
    drop(stdout);
    let run = testing::cli::check_output(child.wait_with_output().unwrap());
    assert_eq!(
        run.exit_code, 1,
        "forty concatenated transcripts are not one valid transcript: {}",
        run.stderr
    );
}

#[test]
fn findings_go_to_stdout_and_hints_to_stderr() {
    let transcript = demo_transcript("agreed");
    let run = crate::asp::transcripts::trace(transcript.text());
    assert!(run.stderr.contains("sayso asp verify checks"), "{}", run.stderr);
    assert_eq!(run.stderr.lines().count(), 1);
    let run = transcript.verify_bytes(b"nonsense\n", &[]);
    assert_eq!((run.exit_code, &*run.stderr), (1, ""));
    assert!(run.stdout.starts_with("stdin:1: error: not JSON"), "{}", run.stdout);
}
