//! JSON Lines, single events, arrays, several files; line numbers in all of them.

use std::fs;

use crate::validate::events::{completed, lines, pretty, session, started, thinking, with_stray};
use testing::cli::sayso;

const GOOD: &str = "3 events, 1 sessions: 0 errors, 0 warnings";

/// The line numbers of the findings.
fn lines_of(findings: &[&str]) -> Vec<usize> {
    findings.iter().map(|finding| finding.split(':').nth(1).unwrap().parse().unwrap()).collect()
}

#[test]
fn one_event_over_several_lines() {
    let event = pretty(&thinking(1, "sess_pretty01"));
    assert!(event.lines().count() > 10);
    let ended = sayso(&["validate"], event);
    assert_eq!((ended.code, &*ended.out), (0, "1 events, 1 sessions: 0 errors, 0 warnings\n"));
}

#[test]
fn an_array_in_any_dress() {
    let events = session(1, "sess_array001");
    let pretties: Vec<_> = events.iter().map(|event| pretty(event)).collect();
    for input in [
        format!("[{}]", events.join(",")),
        format!("[{}]\n", events.join(", ")),
        format!("  [\n{}\n]\n", events.join(",\n")),
        format!("[\r\n{}\r\n]\r\n", events.join("\r\n,\r\n")),
        format!("[\n{}\n]\n", pretties.join(",\n")),
    ] {
        let ended = sayso(&["validate"], &input);
        assert_eq!((ended.code, ended.summary(), &*ended.err), (0, GOOD, ""), "{input}\n{}", ended.out);
    }
}

#[test]
fn values_one_after_the_other() {
    let events = session(1, "sess_concat01").map(|event| pretty(&event));
    for between in ["", " ", "\n", "\n\n"] {
        let ended = sayso(&["validate"], events.join(between));
        assert_eq!((ended.code, ended.summary()), (0, GOOD), "{between:?}: {}", ended.out);
    }
}

#[test]
fn an_array_and_then_lines() {
    let [first, second, third] = session(1, "sess_mixed001");
    let ended = sayso(&["validate"], format!("[\n{first}\n]\n{second}\n{}\n", with_stray(&third)));
    assert_eq!(lines_of(&ended.findings()), [5]);
    assert_eq!(ended.summary(), "3 events, 1 sessions: 1 errors, 0 warnings");
    let ended = sayso(&["validate"], format!("[{first}]\n[{second}]\n[{third}]\n"));
    assert_eq!((ended.code, ended.summary()), (0, GOOD), "{}", ended.out);
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
        let ended = sayso(&["validate"], &input);
        assert_eq!(lines_of(&ended.findings()), [line], "{}", ended.out);
        assert!(ended.out.contains(" error AAEP-3.8-2 : ") && ended.out.contains("comma"), "{}", ended.out);
        assert_eq!((ended.code, ended.summary()), (1, "3 events, 1 sessions: 1 errors, 0 warnings"));
    }
}

#[test]
fn a_line_number_is_that_of_the_items_first_line() {
    let [first, second, third] = session(1, "sess_lines001");
    let (first, second) = (pretty(&first), pretty(&with_stray(&second)));
    let line = first.lines().count() + 2;
    let ended = sayso(&["validate"], format!("[\n{first},\n{second},\n\n{}]", with_stray(&third)));
    assert_eq!(lines_of(&ended.findings()), [line, line + second.lines().count() + 1]);
}

#[test]
fn of_a_captured_event_stream_the_data_is_judged() {
    let note = "note: -: This is an event stream (SSE). The data in it was checked.\n";
    let framed = |event: &String| format!("id: 1\nevent: aaep\ndata: {event}\n\n");
    let [first, second, third] = session(1, "sess_stream01");
    let good: String = [&first, &second, &third].map(framed).concat();
    for input in [good.clone(), format!(": hello\n\n{good}: bye\n"), good.replace('\n', "\r\n")] {
        let ended = sayso(&["validate"], &input);
        assert_eq!((ended.code, ended.summary(), &*ended.err), (0, GOOD, note), "{input}\n{}", ended.out);
    }
    let ended = sayso(&["validate"], [&first, &second, &with_stray(&third)].map(framed).concat());
    assert_eq!((ended.code, lines_of(&ended.findings())), (1, vec![11]), "the line is that of the file");
    // Data over several lines, which is how a stream writes a line end.
    let pretty = pretty(&first).replace('\n', "\ndata: ");
    let ended = sayso(&["validate"], format!("data: {pretty}\n\n{}{}", framed(&second), framed(&third)));
    assert_eq!((ended.code, ended.summary()), (0, GOOD), "{}", ended.out);
    // What is no event is not passed over.
    let ended = sayso(&["validate"], format!("{good}data: hello\n\n"));
    assert_eq!((ended.code, lines_of(&ended.findings())), (1, vec![13]));
    let ended = sayso(&["validate"], "event: x\nid: 1\n\n");
    assert_eq!(ended.summary(), "0 events, 0 sessions: 1 errors, 0 warnings");
}

#[test]
fn empty_lines_count_as_lines() {
    let [first, second, third] = session(1, "sess_empty001");
    let ended = sayso(&["validate"], format!("\n \n{first}\n\n\n{second}\n{}", with_stray(&third)));
    assert_eq!(lines_of(&ended.findings()), [7]);
    assert!(ended.err.contains("4 empty lines were skipped."), "{}", ended.err);
}

/// Several megabytes, so that there are many blocks; every hundredth session has a fault, every thousandth line is
/// nonsense. Says on which lines.
fn large() -> (Vec<String>, Vec<usize>) {
    let (mut input, mut faulty) = (Vec::new(), Vec::new());
    for at in 0..4000 {
        let [first, second, third] = session(at * 3, &format!("sess_large{at}"));
        input.extend([first, second]);
        input.push(if at % 100 == 7 { with_stray(&third) } else { third });
        if at % 100 == 7 {
            faulty.push(input.len());
        }
        if at % 333 == 5 {
            input.push("[nonsense".to_owned());
            faulty.push(input.len());
        }
    }
    (input, faulty)
}

#[test]
fn line_numbers_hold_across_blocks() {
    let (events, faulty) = large();
    let input = events.join("\n");
    assert!(input.len() > 4 * 1024 * 1024);
    let alone = sayso(&["validate", "--jobs", "1"], &input);
    assert_eq!(lines_of(&alone.findings()), faulty);
    assert_eq!(alone.summary(), format!("12000 events, 4000 sessions: {} errors, 0 warnings", faulty.len()));
    for arguments in [&["validate", "--jobs", "4"][..], &["validate", "--jobs", "4", "--json"]] {
        let shared = sayso(arguments, &input);
        match arguments.len() {
            3 => assert_eq!(shared.out, alone.out),
            _ => assert_eq!(shared.out, sayso(&["validate", "--jobs", "1", "--json"], &input).out),
        }
    }
}

#[test]
fn line_numbers_hold_across_blocks_of_an_array() {
    let (events, _) = large();
    let (mut input, mut faulty, mut line) = ("[\n".to_owned(), Vec::new(), 2);
    for event in events.iter().filter(|event| !event.contains("nonsense")).take(6000) {
        if event.contains("colour") {
            faulty.push(line);
        }
        let event = pretty(event) + ",\n";
        line += event.lines().count();
        input += &event;
    }
    input += "7\n]\n";
    faulty.push(line);
    assert!(input.len() > 2 * 1024 * 1024);
    for jobs in ["1", "4"] {
        let ended = sayso(&["validate", "--jobs", jobs], &input);
        assert_eq!(lines_of(&ended.findings()), faulty);
        assert_eq!(ended.code, 1);
    }
}

#[test]
fn what_is_open_at_the_end_comes_in_the_order_of_its_start() {
    let starts: Vec<_> = (0..50).map(|at| started(at, &format!("sess_open{at:02}"))).collect();
    let ended = sayso(&["validate"], starts.join("\n"));
    assert!(lines_of(&ended.findings()).into_iter().eq(1..=50));
    let on_one_line = format!("[{}]", starts.join(","));
    let first = sayso(&["validate"], &on_one_line).out;
    for _ in 0..3 {
        assert_eq!(sayso(&["validate"], &on_one_line).out, first, "the same every time");
    }
}

#[test]
fn files_are_judged_apart_and_summed_up_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (good, bad) = (path("good.jsonl"), path("bad.json"));
    fs::write(&good, lines(1, "sess_files001")).unwrap();
    fs::write(&bad, format!("[{}]", with_stray(&completed(9, "sess_files001")))).unwrap();
    let ended = sayso(&["validate", &good, &bad, &good], "");
    assert_eq!(ended.findings().len(), 1, "nothing is a repetition across files: {}", ended.out);
    assert!(ended.out.starts_with(&format!("{bad}:1: error AAEP-3.5-4 /colour: ")));
    assert_eq!((ended.code, ended.summary()), (1, "7 events, 3 sessions: 1 errors, 0 warnings"));
}

#[test]
fn standard_input_is_a_file_like_others() {
    let folder = tempfile::tempdir().unwrap();
    let good = folder.path().join("good.jsonl");
    fs::write(&good, lines(1, "sess_stdin001")).unwrap();
    let ended = sayso(&["validate", good.to_str().unwrap(), "-"], with_stray(&completed(9, "sess_stdin002")));
    assert!(ended.out.starts_with("-:1: error AAEP-3.5-4 /colour: "), "{}", ended.out);
    assert_eq!((ended.code, ended.summary()), (1, "4 events, 2 sessions: 1 errors, 0 warnings"));
}

#[cfg(unix)]
#[test]
fn a_file_name_may_be_any_bytes() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(std::ffi::OsStr::from_bytes(b"odd\xFF\x1B[31m.jsonl"));
    if let Err(error) = fs::write(&file, format!("{}nonsense", lines(1, "sess_odd00001"))) {
        println!("skipped: this file system refuses such a name: {error}");
        return;
    }
    let ended = testing::cli::ended(testing::cli::command(&["validate"]).arg(&file).output().unwrap());
    assert!(ended.findings()[0].contains("odd\u{FFFD}\\u{1b}[31m.jsonl:4: error"), "{}", ended.out);
    assert_eq!((ended.code, ended.summary()), (1, "3 events, 1 sessions: 1 errors, 0 warnings"));
}
