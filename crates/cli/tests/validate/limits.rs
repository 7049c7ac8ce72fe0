//! Limits: input beyond them is skipped and reported, and never passes.

use std::io::{self, Write};

use crate::validate::sample_events::{completed, event, lines, started, thinking, with_unknown_member};
use testing::cli::{run_sayso, run_sayso_with_input};

const HUGE_BYTES: usize = 100 * 1024 * 1024;
const TOO_LONG: &str = "error AAEP-3.9-9 : longer than 1114112 bytes, skipped; input beyond the limits of this \
                        checker cannot be checked, so it does not pass";

/// Writes an object with one string of 100 MiB without holding it in memory.
fn write_huge(stdin: &mut dyn Write) -> io::Result<()> {
    let chunk = vec![b'x'; 1024 * 1024];
    stdin.write_all(b"{\"a\":\"")?;
    for _ in 0..HUGE_BYTES / chunk.len() {
        stdin.write_all(&chunk)?;
    }
    stdin.write_all(b"\"}")
}

#[test]
fn a_line_of_100_mib_does_not_affect_other_lines() {
    let output = run_sayso_with_input(&["validate"], |stdin| {
        write_huge(stdin)?;
        stdin.write_all(b"\n")?;
        stdin.write_all(lines(1, "sess_huge0001").as_bytes())?;
        stdin.write_all(with_unknown_member(&thinking(9, "sess_huge0002")).as_bytes())
    });
    let [overlong, unknown_member] = &*output.findings() else { panic!("{}", output.stdout) };
    assert_eq!(*overlong, format!("-:1: {TOO_LONG}"));
    assert!(unknown_member.starts_with("-:5: error AAEP-3.5-4 "));
    assert_eq!((output.exit_code, output.summary()), (1, "4 events, 2 sessions: 2 errors, 0 warnings"));
}

#[test]
fn an_array_item_of_100_mib_does_not_affect_other_items() {
    let output = run_sayso_with_input(&["validate"], |stdin| {
        stdin.write_all(format!("[\n{},\n", thinking(1, "sess_huge0001")).as_bytes())?;
        write_huge(stdin)?;
        stdin.write_all(format!(",\n{}]", with_unknown_member(&thinking(9, "sess_huge0002"))).as_bytes())
    });
    let [overlong, unknown_member] = &*output.findings() else { panic!("{}", output.stdout) };
    assert_eq!(*overlong, format!("-:3: {TOO_LONG}"));
    assert!(unknown_member.starts_with("-:4: error AAEP-3.5-4 "));
    assert_eq!((output.exit_code, output.summary()), (1, "2 events, 2 sessions: 2 errors, 0 warnings"));
}

#[test]
fn ten_mib_of_empty_lines_are_skipped() {
    let output = run_sayso_with_input(&["validate"], |stdin| {
        let empty = vec![b'\n'; 1024 * 1024];
        for _ in 0..10 {
            stdin.write_all(&empty)?;
        }
        stdin.write_all(with_unknown_member(&thinking(9, "sess_empty001")).as_bytes())
    });
    assert!(output.findings()[0].starts_with("-:10485761: error AAEP-3.5-4 "), "{}", output.stdout);
}

#[test]
fn the_event_size_limit_is_an_option() {
    let event = thinking(1, "sess_bytes001");
    let exact_limit = event.len().to_string();
    for input in [event.clone(), format!("{event}\r\n"), format!("[{event}]")] {
        let output = run_sayso(&["validate", "--max-event-bytes", &exact_limit], &input);
        assert_eq!(
            (output.exit_code, output.summary()),
            (0, "1 events, 1 sessions: 0 errors, 0 warnings"),
            "{input}"
        );
        let lower_limit = (event.len() - 1).to_string();
        let output = run_sayso(&["validate", "--max-event-bytes", &lower_limit], &input);
        assert_eq!(output.findings().len(), 1);
        assert!(output.findings()[0].contains(&format!("longer than {lower_limit} bytes, skipped")));
        assert_eq!((output.exit_code, output.summary()), (1, "0 events, 0 sessions: 1 errors, 0 warnings"));
    }
    let longer = event.replace("I am thinking.", &"word ".repeat(300_000));
    let output = run_sayso(&["validate", "--max-event-bytes", "2000000"], longer);
    assert!(!output.stdout.contains("AAEP-3.9-9"), "the option raises the default limit: {}", output.stdout);
    assert_eq!(run_sayso(&["validate", "--max-event-bytes", "0"], "{}").exit_code, 1);
}

#[test]
fn a_thousand_concurrent_sessions_are_valid() {
    let id = |at: usize| format!("sess_many{at}");
    let one_event_per_session = |make: fn(usize, &str) -> String, from: usize| -> String {
        (0..1000).map(|at| make(from + at, &id(at * 7 % 1000)) + "\n").collect()
    };
    let input = one_event_per_session(started, 0)
        + &one_event_per_session(thinking, 1000)
        + &one_event_per_session(completed, 2000);
    let output = run_sayso(&["validate", "--sequence", "always"], input);
    assert_eq!(
        (output.exit_code, &*output.stdout),
        (0, "3000 events, 1000 sessions: 0 errors, 0 warnings\n")
    );
}

#[test]
fn too_many_open_sessions_do_not_pass() {
    let output = run_sayso_with_input(&["validate"], |stdin| {
        for at in 0..70_000 {
            writeln!(stdin, "{}", started(at, &format!("sess_open{at}")))?;
        }
        Ok(())
    });
    assert_eq!(
        output.findings()[0],
        "-:65537: error AAEP-3.9-9 : more than 65536 sessions are open at the same time; the order of events in further sessions is not checked; \
         input beyond the limits of this checker cannot be checked, so it does not pass"
    );
    assert_eq!(
        (output.exit_code, output.summary()),
        (1, "70000 events, 70000 sessions: 1 errors, 65536 warnings")
    );
}

#[test]
fn the_open_session_limit_is_an_option() {
    let one_event_per_session = |make: fn(usize, &str) -> String, from: usize| -> String {
        (0..5).map(|at| make(from + at, &format!("sess_open{at}")) + "\n").collect()
    };
    let input = one_event_per_session(started, 0)
        + &one_event_per_session(thinking, 10)
        + &one_event_per_session(completed, 20);
    for sequence in ["auto", "always"] {
        let arguments = ["validate", "--max-open-sessions", "3", "--sequence", sequence];
        let output = run_sayso(&arguments, &input);
        let [finding] = &*output.findings() else { panic!("{}", output.stdout) };
        assert!(finding.starts_with("-:4: error AAEP-3.9-9 : ") && finding.contains("more than 3 sessions"));
        assert_eq!((output.exit_code, output.summary()), (1, "15 events, 5 sessions: 1 errors, 0 warnings"));
    }
    let consecutive: String = (0..5).map(|at| lines(at * 3, &format!("sess_next{at}"))).collect();
    assert_eq!(run_sayso(&["validate", "--max-open-sessions", "1"], consecutive).exit_code, 0);
}

#[test]
fn sessions_without_a_start_do_not_count_as_open() {
    let ends: String = (0..10).map(|at| completed(at, &format!("sess_end{at}")) + "\n").collect();
    let output = run_sayso(&["validate", "--max-open-sessions", "3"], ends);
    assert_eq!((output.exit_code, &*output.stdout), (0, "10 events, 10 sessions: 0 errors, 0 warnings\n"));
}

#[test]
fn the_limit_on_open_items_in_a_session_is_an_option() {
    let tool = |at: usize| {
        let payload = format!(
            r#""tool":"look_up","tool_call_id":"call_{at}","summary_terse":"Looking.","summary_normal":"I am looking it up.""#
        );
        event(10 + at, "sess_tools001", "agent.tool.invoked", &payload)
    };
    let input = [started(1, "sess_tools001"), tool(1), tool(2), tool(3), tool(4)].join("\n");
    let output = run_sayso(&["validate", "--max-open-in-session", "2", "--ignore", "AAEP-9.3.1-2"], &input);
    let [finding] = &*output.findings() else { panic!("{}", output.stdout) };
    assert!(finding.starts_with("-:4: error AAEP-3.9-9 : "), "{finding}");
    assert!(
        finding
            .contains("more than 2 tools, outputs, questions or producers are open at the same time in sess_tools001; the order of its events is no longer checked")
    );
    assert_eq!(output.exit_code, 1);
    assert_eq!(run_sayso(&["validate", "--max-open-in-session", "4"], &input).exit_code, 0);
}

#[test]
fn too_many_handshakes_do_not_pass() {
    let request = r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"reader","capabilities":{}}"#;
    let accepted = |at: usize| {
        format!(
            r#"{{"type":"subscription.accepted","subscription_id":"sub_{at}","aaep_version":"1.0.0","producer":{{"agent_id":"bank"}},"honored_capabilities":{{}}}}"#
        )
    };
    let requests = format!("{request}\n").repeat(1026);
    let subscriptions: String = (0..1026).map(|at| accepted(at) + "\n").collect();
    for (input, message) in [(requests, "requests wait"), (subscriptions, "subscriptions were accepted")] {
        let output = run_sayso(&["validate", "--ignore", "AAEP-9.5.1-3"], input);
        let [finding] = &*output.findings() else { panic!("{}", output.stdout) };
        assert!(
            finding.starts_with(&format!("-:1025: error AAEP-3.9-9 : more than 1024 {message}")),
            "{finding}"
        );
        assert_eq!(output.exit_code, 1);
    }
}
