//! The progress of a long check, for a person at a terminal.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::validate::sample_events::lines;
use testing::cli::{KillTimer, check_output, command};
use testing::terminal::pseudo_terminal;

#[test]
fn progress_is_printed_as_whole_lines_if_standard_error_is_a_terminal() {
    let (controller, path) = pseudo_terminal();
    let terminal = File::options().read(true).write(true).open(path).unwrap();
    let mut watched = command(&["validate"]).stdin(Stdio::piped()).stderr(terminal).spawn().unwrap();
    let mut unwatched = command(&["validate"]).stdin(Stdio::piped()).spawn().unwrap();
    let _timers = [KillTimer::start(watched.id()), KillTimer::start(unwatched.id())];
    let (sender, printed) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(controller).lines() {
            let Ok(line) = line else { return };
            let _ = sender.send(line);
        }
    });
    let mut inputs = [watched.stdin.take().unwrap(), unwatched.stdin.take().unwrap()];
    // A session every quarter of a second, until there is a report.
    let mut sessions = 0_usize;
    let report = loop {
        sessions += 1;
        assert!(sessions < 400, "no report");
        for input in &mut inputs {
            input.write_all(lines(3 * sessions, &format!("sess_slow{sessions:04}")).as_bytes()).unwrap();
        }
        match printed.recv_timeout(Duration::from_millis(250)) {
            Ok(line) => break line,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => panic!("the terminal was closed"),
        }
    };
    drop(inputs);
    let report = report.trim_end();
    assert!(
        report.starts_with("note: -: ") && report.ends_with(" events checked, 0 findings so far"),
        "{report:?}"
    );
    let summary = format!("{} events, {sessions} sessions: 0 errors, 0 warnings\n", 3 * sessions);
    assert_eq!(check_output(watched.wait_with_output().unwrap()).stdout, summary);
    let output = check_output(unwatched.wait_with_output().unwrap());
    assert_eq!((output.stdout, &*output.stderr), (summary, ""), "a program is not disturbed");
}
