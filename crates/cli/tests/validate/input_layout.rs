//! Input layouts: JSON Lines, single events, arrays, event streams and several files, with correct line numbers.

use std::fs;

use crate::validate::sample_events::{
    completed, lines, pretty, session, started, thinking, with_unknown_member,
};
use testing::cli::run_sayso;

const VALID_SUMMARY: &str = "3 events, 1 sessions: 0 errors, 0 warnings";

/// Returns the line numbers of the findings.
fn line_numbers(findings: &[&str]) -> Vec<usize> {
    findings.iter().map(|finding| finding.split(':').nth(1).unwrap().parse().unwrap()).collect()
}

#[test]
fn one_event_can_span_several_lines() {
    let event = pretty(&thinking(1, "sess_pretty01"));
    assert!(event.lines().count() > 10);
    let output = run_sayso(&["validate"], event);
    assert_eq!((output.exit_code, &*output.stdout), (0, "1 events, 1 sessions: 0 errors, 0 warnings\n"));
}

#[test]
fn an_array_can_have_any_whitespace() {
    let events = session(1, "sess_array001");
    let pretty_events: Vec<_> = events.iter().map(|event| pretty(event)).collect();
    for input in [
        format!("[{}]", events.join(",")),
        format!("[{}]\n", events.join(", ")),
        format!("  [\n{}\n]\n", events.join(",\n")),
        format!("[\r\n{}\r\n]\r\n", events.join("\r\n,\r\n")),
        format!("[\n{}\n]\n", pretty_events.join(",\n")),
    ] {
        let output = run_sayso(&["validate"], &input);
        assert_eq!(
            (output.exit_code, output.summary(), &*output.stderr),
            (0, VALID_SUMMARY, ""),
            "{input}\n{}",
            output.stdout
        );
    }
}

#[test]
fn concatenated_values_are_separated() {
    let events = session(1, "sess_concat01").map(|event| pretty(&event));
    for separator in ["", " ", "\n", "\n\n"] {
        let output = run_sayso(&["validate"], events.join(separator));
        assert_eq!(
            (output.exit_code, output.summary()),
            (0, VALID_SUMMARY),
            "{separator:?}: {}",
            output.stdout
        );
    }
}

#[test]
fn arrays_and_lines_can_be_mixed() {
    let [first, second, third] = session(1, "sess_mixed001");
    let output =
        run_sayso(&["validate"], format!("[\n{first}\n]\n{second}\n{}\n", with_unknown_member(&third)));
    assert_eq!(line_numbers(&output.findings()), [5]);
    assert_eq!(output.summary(), "3 events, 1 sessions: 1 errors, 0 warnings");
    let output = run_sayso(&["validate"], format!("[{first}]\n[{second}]\n[{third}]\n"));
    assert_eq!((output.exit_code, output.summary()), (0, VALID_SUMMARY), "{}", output.stdout);
}

#[test]
fn an_array_that_is_not_json_does_not_pass() {
    let [first, second, third] = session(1, "sess_commas01");
    for (input, line) in [
        (format!("[{first}\n{second},{third}]"), 2),
        (format!("[{first},\n,{second},{third}]"), 2),
        (format!("[,{first},{second},{third}]"), 1),
        (format!("[{first},{second},\n{third},\n]"), 3),
    ] {
        let output = run_sayso(&["validate"], &input);
        assert_eq!(line_numbers(&output.findings()), [line], "{}", output.stdout);
        assert!(
            output.stdout.contains(" error AAEP-3.8-2 : ") && output.stdout.contains("comma"),
            "{}",
            output.stdout
        );
        assert_eq!((output.exit_code, output.summary()), (1, "3 events, 1 sessions: 1 errors, 0 warnings"));
    }
}

#[test]
fn a_finding_has_the_line_number_of_its_items_first_line() {
    let [first, second, third] = session(1, "sess_lines001");
    let (first, second) = (pretty(&first), pretty(&with_unknown_member(&second)));
    let line = first.lines().count() + 2;
    let output =
        run_sayso(&["validate"], format!("[\n{first},\n{second},\n\n{}]", with_unknown_member(&third)));
    assert_eq!(line_numbers(&output.findings()), [line, line + second.lines().count() + 1]);
}

#[test]
fn the_data_of_a_captured_event_stream_is_checked() {
    let stream_note = "note: -: This is an event stream (SSE). The data in it was checked.\n";
    let framed = |event: &String| format!("id: 1\nevent: aaep\ndata: {event}\n\n");
    let [first, second, third] = session(1, "sess_stream01");
    let good: String = [&first, &second, &third].map(framed).concat();
    for input in [good.clone(), format!(": hello\n\n{good}: bye\n"), good.replace('\n', "\r\n")] {
        let output = run_sayso(&["validate"], &input);
        assert_eq!(
            (output.exit_code, output.summary(), &*output.stderr),
            (0, VALID_SUMMARY, stream_note),
            "{input}\n{}",
            output.stdout
        );
    }
    let output =
        run_sayso(&["validate"], [&first, &second, &with_unknown_member(&third)].map(framed).concat());
    assert_eq!(
        (output.exit_code, line_numbers(&output.findings())),
        (1, vec![11]),
        "the line number counts lines of the file"
    );
    // Data over several `data:` lines, which is how SSE encodes a line break.
    let pretty = pretty(&first).replace('\n', "\ndata: ");
    let output = run_sayso(&["validate"], format!("data: {pretty}\n\n{}{}", framed(&second), framed(&third)));
    assert_eq!((output.exit_code, output.summary()), (0, VALID_SUMMARY), "{}", output.stdout);
    // Data that is not an event is reported.
    let output = run_sayso(&["validate"], format!("{good}data: hello\n\n"));
    assert_eq!((output.exit_code, line_numbers(&output.findings())), (1, vec![13]));
    let output = run_sayso(&["validate"], "event: x\nid: 1\n\n");
    assert_eq!(output.summary(), "0 events, 0 sessions: 1 errors, 0 warnings");
}

#[test]
fn empty_lines_count_as_lines() {
    let [first, second, third] = session(1, "sess_empty001");
    let output =
        run_sayso(&["validate"], format!("\n \n{first}\n\n\n{second}\n{}", with_unknown_member(&third)));
    assert_eq!(line_numbers(&output.findings()), [7]);
    assert!(output.stderr.contains("4 empty lines were skipped."), "{}", output.stderr);
}

/// Returns the lines of a recording of several megabytes, which spans many blocks, and the numbers of its invalid
/// lines. Every hundredth session has an unknown member, and about every thousandth line is not JSON.
fn large_recording() -> (Vec<String>, Vec<usize>) {
    let (mut input, mut invalid_lines) = (Vec::new(), Vec::new());
    for at in 0..4000 {
        let [first, second, third] = session(at * 3, &format!("sess_large{at}"));
        input.extend([first, second]);
        input.push(if at % 100 == 7 { with_unknown_member(&third) } else { third });
        if at % 100 == 7 {
            invalid_lines.push(input.len());
        }
        if at % 333 == 5 {
            input.push("[nonsense".to_owned());
            invalid_lines.push(input.len());
        }
    }
    (input, invalid_lines)
}

#[test]
fn line_numbers_are_correct_across_blocks() {
    let (input_lines, invalid_lines) = large_recording();
    let input = input_lines.join("\n");
    assert!(input.len() > 4 * 1024 * 1024);
    let sequential = run_sayso(&["validate", "--jobs", "1"], &input);
    assert_eq!(line_numbers(&sequential.findings()), invalid_lines);
    assert_eq!(
        sequential.summary(),
        format!("12000 events, 4000 sessions: {} errors, 0 warnings", invalid_lines.len())
    );
    let parallel = run_sayso(&["validate", "--jobs", "4"], &input);
    assert_eq!(parallel.stdout, sequential.stdout);
    let [sequential, parallel] =
        ["1", "4"].map(|jobs| run_sayso(&["validate", "--jobs", jobs, "--json"], &input));
    assert_eq!(parallel.stdout, sequential.stdout);
}

#[test]
fn line_numbers_are_correct_across_blocks_of_an_array() {
    let (input_lines, _) = large_recording();
    let (mut input, mut invalid_lines, mut line) = ("[\n".to_owned(), Vec::new(), 2);
    for event in input_lines.iter().filter(|line| !line.contains("nonsense")).take(6000) {
        if event.contains("colour") {
            invalid_lines.push(line);
        }
        let event = pretty(event) + ",\n";
        line += event.lines().count();
        input += &event;
    }
    input += "7\n]\n";
    invalid_lines.push(line);
    assert!(input.len() > 2 * 1024 * 1024);
    for jobs in ["1", "4"] {
        let output = run_sayso(&["validate", "--jobs", jobs], &input);
        assert_eq!(line_numbers(&output.findings()), invalid_lines);
        assert_eq!(output.exit_code, 1);
    }
}

#[test]
fn sessions_open_at_the_end_are_reported_in_start_order() {
    let starts: Vec<_> = (0..50).map(|at| started(at, &format!("sess_open{at:02}"))).collect();
    let output = run_sayso(&["validate"], starts.join("\n"));
    assert!(line_numbers(&output.findings()).into_iter().eq(1..=50));
    let on_one_line = format!("[{}]", starts.join(","));
    let first = run_sayso(&["validate"], &on_one_line).stdout;
    for _ in 0..3 {
        assert_eq!(run_sayso(&["validate"], &on_one_line).stdout, first, "the order must not vary");
    }
}

#[test]
fn files_are_checked_separately_and_summarized_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (good, bad) = (path("good.jsonl"), path("bad.json"));
    fs::write(&good, lines(1, "sess_files001")).unwrap();
    fs::write(&bad, format!("[{}]", with_unknown_member(&completed(9, "sess_files001")))).unwrap();
    let output = run_sayso(&["validate", &good, &bad, &good], "");
    assert_eq!(output.findings().len(), 1, "events are not compared across files: {}", output.stdout);
    assert!(output.stdout.starts_with(&format!("{bad}:1: error AAEP-3.5-4 /colour: ")));
    assert_eq!((output.exit_code, output.summary()), (1, "7 events, 3 sessions: 1 errors, 0 warnings"));
}

#[test]
fn standard_input_can_be_one_of_several_files() {
    let folder = tempfile::tempdir().unwrap();
    let good = folder.path().join("good.jsonl");
    fs::write(&good, lines(1, "sess_stdin001")).unwrap();
    let output = run_sayso(
        &["validate", good.to_str().unwrap(), "-"],
        with_unknown_member(&completed(9, "sess_stdin002")),
    );
    assert!(output.stdout.starts_with("-:1: error AAEP-3.5-4 /colour: "), "{}", output.stdout);
    assert_eq!((output.exit_code, output.summary()), (1, "4 events, 2 sessions: 1 errors, 0 warnings"));
}

#[cfg(unix)]
#[test]
fn a_file_name_can_be_any_bytes() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(std::ffi::OsStr::from_bytes(b"odd\xFF\x1B[31m.jsonl"));
    if let Err(error) = fs::write(&file, format!("{}nonsense", lines(1, "sess_odd00001"))) {
        println!("skipped: this file system refuses such a name: {error}");
        return;
    }
    let output =
        testing::cli::check_output(testing::cli::command(&["validate"]).arg(&file).output().unwrap());
    assert!(output.findings()[0].contains("odd\u{FFFD}\\u{1b}[31m.jsonl:4: error"), "{}", output.stdout);
    assert_eq!((output.exit_code, output.summary()), (1, "3 events, 1 sessions: 1 errors, 0 warnings"));
}
