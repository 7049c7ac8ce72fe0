//! Unreadable files, closed pipes and readers that expect each finding immediately.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use crate::validate::sample_events::{lines, with_unknown_member};
use testing::cli::{check_output, command, run_sayso};

#[test]
fn a_missing_file_is_reported_and_the_others_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let good = folder.path().join("good.jsonl");
    fs::write(&good, lines(1, "sess_files001")).unwrap();
    let output = run_sayso(&["validate", "no/such/file.jsonl", good.to_str().unwrap()], "");
    assert_eq!((output.exit_code, &*output.stdout), (2, "3 events, 1 sessions: 0 errors, 0 warnings\n"));
    assert_eq!(output.stderr, "sayso: cannot read no/such/file.jsonl: there is no such file\n");
    let output = run_sayso(&["validate", "--json", "no/such/file"], "");
    assert_eq!((output.exit_code, &*output.stdout), (2, ""), "without input there is no summary");
}

#[test]
fn a_folder_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().to_str().unwrap();
    let output = run_sayso(&["validate", name], "");
    let error = format!("sayso: cannot read {name}: it is a folder\n");
    assert_eq!((output.exit_code, output.stdout, output.stderr), (2, String::new(), error));
}

#[cfg(unix)]
#[test]
fn a_folder_as_standard_input_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let stdin = File::open(folder.path()).unwrap();
    let output = check_output(command(&["validate"]).stdin(stdin).output().unwrap());
    assert_eq!((output.exit_code, &*output.stderr), (2, "sayso: cannot read stdin: it is a folder\n"));
    assert_eq!(output.stdout, "", "an unreadable input is not reported as empty");
}

#[cfg(unix)]
#[test]
fn a_file_without_read_permission_is_reported() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret.jsonl");
    fs::write(&file, lines(1, "sess_secret01")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    if File::open(&file).is_ok() {
        println!("skipped: this user can read every file");
        return;
    }
    let output = run_sayso(&["validate", file.to_str().unwrap()], "");
    assert_eq!(output.exit_code, 2);
    assert!(output.stderr.ends_with("secret.jsonl: permission denied\n"), "{}", output.stderr);
}

#[test]
fn missing_input_is_reported_as_empty() {
    let output = check_output(command(&["validate"]).stdin(Stdio::null()).output().unwrap());
    assert_eq!(output.exit_code, 1);
    assert!(output.findings()[0].contains(": the input is empty;"), "{}", output.stdout);
}

#[cfg(unix)]
#[test]
fn a_closed_standard_input_is_reported_as_empty() {
    let script = r#""$0" validate <&-"#;
    let output =
        check_output(Command::new("sh").args(["-c", script, env!("CARGO_BIN_EXE_sayso")]).output().unwrap());
    assert_eq!(output.exit_code, 1);
    assert!(output.findings()[0].contains(": the input is empty;"), "{}", output.stdout);
}

#[test]
fn a_reader_that_closes_the_pipe_early_causes_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.jsonl");
    fs::write(&file, "nonsense\n".repeat(100_000)).unwrap();
    for jobs in ["1", "4"] {
        for options in [&[][..], &["--json"]] {
            let mut child =
                command(&["validate", file.to_str().unwrap(), "--jobs", jobs]).args(options).spawn().unwrap();
            let mut out = BufReader::new(child.stdout.take().unwrap());
            let mut first = String::new();
            out.read_line(&mut first).unwrap();
            assert!(first.contains("AAEP-3.8-2"), "{first}");
            drop(out);
            let output = check_output(child.wait_with_output().unwrap());
            assert_eq!((output.exit_code, &*output.stderr), (1, ""));
        }
    }
}

#[test]
fn a_closed_standard_output_is_not_a_failure() {
    let mut child = command(&["validate"]).stdin(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    child.stdin.take().unwrap().write_all(lines(1, "sess_alone001").as_bytes()).unwrap();
    let output = check_output(child.wait_with_output().unwrap());
    assert_eq!((output.exit_code, &*output.stderr), (0, ""));
}

#[cfg(target_os = "linux")]
#[test]
fn a_failed_write_is_an_error() {
    for arguments in [&["validate"][..], &["schema"], &["schema", "agent.tool.invoked"]] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut child = command(arguments).stdin(Stdio::piped()).stdout(full).spawn().unwrap();
        let _ = child.stdin.take().unwrap().write_all(lines(1, "sess_full0001").as_bytes());
        let output = check_output(child.wait_with_output().unwrap());
        assert_eq!(output.exit_code, 2, "{arguments:?}");
        assert!(output.stderr.starts_with("sayso: cannot write"), "{}", output.stderr);
    }
}

#[test]
fn a_finding_is_printed_before_the_input_ends() {
    for jobs in ["1", "4"] {
        let mut child = command(&["validate", "--jobs", jobs]).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let session = lines(1, "sess_live0001");
        stdin.write_all(session.as_bytes()).unwrap();
        for number in 4..7 {
            let event = with_unknown_member(session.lines().nth(1).unwrap())
                .replace("live0001", &format!("live{number}"));
            let event = event.replace("evt_a", &format!("evt_b{number}"));
            stdin.write_all(format!("{event}\n").as_bytes()).unwrap();
            let mut finding = String::new();
            out.read_line(&mut finding).unwrap();
            assert!(finding.starts_with(&format!("-:{number}: error AAEP-3.5-4 ")), "{finding}");
        }
        drop(stdin);
        let mut remaining = String::new();
        out.read_to_string(&mut remaining).unwrap();
        assert!(remaining.ends_with("3 errors, 0 warnings\n"), "{remaining}");
        assert_eq!(child.wait().unwrap().code(), Some(1));
    }
}
