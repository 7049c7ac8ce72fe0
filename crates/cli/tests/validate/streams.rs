//! Files that cannot be read, pipes that close, and readers that wait.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use crate::validate::events::{lines, with_stray};
use testing::cli::{command, ended, sayso};

#[test]
fn a_missing_file_is_named_and_the_others_are_judged() {
    let folder = tempfile::tempdir().unwrap();
    let good = folder.path().join("good.jsonl");
    fs::write(&good, lines(1, "sess_files001")).unwrap();
    let run = sayso(&["validate", "no/such/file.jsonl", good.to_str().unwrap()], "");
    assert_eq!((run.code, &*run.out), (2, "3 events, 1 sessions: 0 errors, 0 warnings\n"));
    assert_eq!(run.err, "sayso: cannot read no/such/file.jsonl: there is no such file\n");
}

#[test]
fn a_folder_is_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().to_str().unwrap();
    let run = sayso(&["validate", name], "");
    let error = format!("sayso: cannot read {name}: it is a folder\n");
    assert_eq!((run.code, run.out, run.err), (2, String::new(), error));
    let run = sayso(&["validate", "--json", "no/such/file"], "");
    assert_eq!((run.code, &*run.out), (2, ""), "where nothing was read there is nothing to sum up");
}

#[cfg(unix)]
#[test]
fn a_folder_as_standard_input_is_no_file_either() {
    let folder = tempfile::tempdir().unwrap();
    let stdin = File::open(folder.path()).unwrap();
    let run = ended(command(&["validate"]).stdin(stdin).output().unwrap());
    assert_eq!((run.code, &*run.err), (2, "sayso: cannot read -: it is a folder\n"));
    assert_eq!(run.out, "", "unreadable is not empty");
}

#[cfg(unix)]
#[test]
fn a_file_that_must_not_be_read_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret.jsonl");
    fs::write(&file, lines(1, "sess_secret01")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    if File::open(&file).is_ok() {
        println!("skipped: whoever runs this test may read everything");
        return;
    }
    let run = sayso(&["validate", file.to_str().unwrap()], "");
    assert_eq!(run.code, 2);
    assert!(run.err.ends_with("secret.jsonl: permission denied\n"), "{}", run.err);
}

#[test]
fn no_input_is_told() {
    let run = ended(command(&["validate"]).stdin(Stdio::null()).output().unwrap());
    assert_eq!(run.code, 1);
    assert!(run.findings()[0].contains(": the input is empty;"), "{}", run.out);
}

#[cfg(unix)]
#[test]
fn a_closed_standard_input_is_no_input() {
    let script = r#""$0" validate <&-"#;
    let run = ended(Command::new("sh").args(["-c", script, env!("CARGO_BIN_EXE_sayso")]).output().unwrap());
    assert_eq!(run.code, 1);
    assert!(run.findings()[0].contains(": the input is empty;"), "{}", run.out);
}

#[test]
fn a_reader_that_has_heard_enough_ends_it_quietly() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.jsonl");
    fs::write(&file, "nonsense\n".repeat(100_000)).unwrap();
    for jobs in ["1", "4"] {
        for more in [&[][..], &["--json"]] {
            let mut child =
                command(&["validate", file.to_str().unwrap(), "--jobs", jobs]).args(more).spawn().unwrap();
            let mut out = BufReader::new(child.stdout.take().unwrap());
            let mut first = String::new();
            out.read_line(&mut first).unwrap();
            assert!(first.contains("AAEP-3.8-2"), "{first}");
            drop(out);
            let run = ended(child.wait_with_output().unwrap());
            assert_eq!((run.code, &*run.err), (1, ""));
        }
    }
}

#[test]
fn a_reader_that_is_not_there_at_all_is_no_failure() {
    let mut child = command(&["validate"]).stdin(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    child.stdin.take().unwrap().write_all(lines(1, "sess_alone001").as_bytes()).unwrap();
    let run = ended(child.wait_with_output().unwrap());
    assert_eq!((run.code, &*run.err), (0, ""));
}

#[cfg(target_os = "linux")]
#[test]
fn findings_that_cannot_be_written_are_no_pass() {
    for arguments in [&["validate"][..], &["schema"], &["schema", "agent.tool.invoked"]] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut child = command(arguments).stdin(Stdio::piped()).stdout(full).spawn().unwrap();
        let _ = child.stdin.take().unwrap().write_all(lines(1, "sess_full0001").as_bytes());
        let run = ended(child.wait_with_output().unwrap());
        assert_eq!(run.code, 2, "{arguments:?}");
        assert!(run.err.starts_with("sayso: cannot write"), "{}", run.err);
    }
}

#[test]
fn a_finding_is_there_before_the_input_ends() {
    for jobs in ["1", "4"] {
        let mut child = command(&["validate", "--jobs", jobs]).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let session = lines(1, "sess_live0001");
        stdin.write_all(session.as_bytes()).unwrap();
        for at in 4..7 {
            let event = with_stray(session.lines().nth(1).unwrap()).replace("live0001", &format!("live{at}"));
            let event = event.replace("evt_a", &format!("evt_b{at}"));
            stdin.write_all(format!("{event}\n").as_bytes()).unwrap();
            let mut finding = String::new();
            out.read_line(&mut finding).unwrap();
            assert!(finding.starts_with(&format!("-:{at}: error AAEP-3.5-4 ")), "{finding}");
        }
        drop(stdin);
        let mut rest = String::new();
        out.read_to_string(&mut rest).unwrap();
        assert!(rest.ends_with("3 errors, 0 warnings\n"), "{rest}");
        assert_eq!(child.wait().unwrap().code(), Some(1));
    }
}
