//! The limits: what is beyond them is skipped and told, and never passes.

use std::io::{self, Write};

use crate::validate::events::{completed, event, lines, started, thinking, with_stray};
use testing::cli::{sayso, sayso_fed};

const HUGE: usize = 100 * 1024 * 1024;
const TOO_LONG: &str = "error AAEP-3.9-9 : it is longer than 1114112 bytes and was skipped; what is beyond the limits \
                        of this check is not checked, and so does not pass";

/// Writes an object with one string of a hundred megabytes, never holding it.
fn write_huge(stdin: &mut dyn Write) -> io::Result<()> {
    let chunk = vec![b'x'; 1024 * 1024];
    stdin.write_all(b"{\"a\":\"")?;
    for _ in 0..HUGE / chunk.len() {
        stdin.write_all(&chunk)?;
    }
    stdin.write_all(b"\"}")
}

#[test]
fn a_line_of_a_hundred_megabytes_spoils_no_other() {
    let ended = sayso_fed(&["validate"], |stdin| {
        write_huge(stdin)?;
        stdin.write_all(b"\n")?;
        stdin.write_all(lines(1, "sess_huge0001").as_bytes())?;
        stdin.write_all(with_stray(&thinking(9, "sess_huge0002")).as_bytes())
    });
    let [long, stray] = &*ended.findings() else { panic!("{}", ended.out) };
    assert_eq!(*long, format!("-:1: {TOO_LONG}"));
    assert!(stray.starts_with("-:5: error AAEP-3.5-4 "));
    assert_eq!((ended.code, ended.summary()), (1, "4 events, 2 sessions: 2 errors, 0 warnings"));
}

#[test]
fn an_item_of_a_hundred_megabytes_spoils_no_other() {
    let ended = sayso_fed(&["validate"], |stdin| {
        stdin.write_all(format!("[\n{},\n", thinking(1, "sess_huge0001")).as_bytes())?;
        write_huge(stdin)?;
        stdin.write_all(format!(",\n{}]", with_stray(&thinking(9, "sess_huge0002"))).as_bytes())
    });
    let [long, stray] = &*ended.findings() else { panic!("{}", ended.out) };
    assert_eq!(*long, format!("-:3: {TOO_LONG}"));
    assert!(stray.starts_with("-:4: error AAEP-3.5-4 "));
    assert_eq!((ended.code, ended.summary()), (1, "2 events, 2 sessions: 2 errors, 0 warnings"));
}

#[test]
fn empty_lines_without_number_are_only_counted() {
    let ended = sayso_fed(&["validate"], |stdin| {
        let empty = vec![b'\n'; 1024 * 1024];
        for _ in 0..10 {
            stdin.write_all(&empty)?;
        }
        stdin.write_all(with_stray(&thinking(9, "sess_empty001")).as_bytes())
    });
    assert!(ended.findings()[0].starts_with("-:10485761: error AAEP-3.5-4 "), "{}", ended.out);
}

#[test]
fn the_limit_of_an_events_bytes_is_an_option() {
    let event = thinking(1, "sess_bytes001");
    let exactly = event.len().to_string();
    for input in [event.clone(), format!("{event}\r\n"), format!("[{event}]")] {
        let ended = sayso(&["validate", "--max-event-bytes", &exactly], &input);
        assert_eq!(
            (ended.code, ended.summary()),
            (0, "1 events, 1 sessions: 0 errors, 0 warnings"),
            "{input}"
        );
        let less = (event.len() - 1).to_string();
        let ended = sayso(&["validate", "--max-event-bytes", &less], &input);
        assert_eq!(ended.findings().len(), 1);
        assert!(ended.findings()[0].contains(&format!("it is longer than {less} bytes and was skipped")));
        assert_eq!((ended.code, ended.summary()), (1, "0 events, 0 sessions: 1 errors, 0 warnings"));
    }
    let longer = event.replace("I am thinking.", &"word ".repeat(300_000));
    let ended = sayso(&["validate", "--max-event-bytes", "2000000"], longer);
    assert!(!ended.out.contains("AAEP-3.9-9"), "more is allowed than usual: {}", ended.out);
    assert_eq!(sayso(&["validate", "--max-event-bytes", "0"], "{}").code, 1);
}

#[test]
fn a_thousand_sessions_at_once_are_lawful() {
    let id = |at: usize| format!("sess_many{at}");
    let round = |make: fn(usize, &str) -> String, from: usize| -> String {
        (0..1000).map(|at| make(from + at, &id(at * 7 % 1000)) + "\n").collect()
    };
    let input = round(started, 0) + &round(thinking, 1000) + &round(completed, 2000);
    let ended = sayso(&["validate", "--sequence", "always"], input);
    assert_eq!((ended.code, &*ended.out), (0, "3000 events, 1000 sessions: 0 errors, 0 warnings\n"));
}

#[test]
fn more_open_sessions_than_the_limit_do_not_pass() {
    let ended = sayso_fed(&["validate"], |stdin| {
        for at in 0..70_000 {
            writeln!(stdin, "{}", started(at, &format!("sess_open{at}")))?;
        }
        Ok(())
    });
    assert_eq!(
        ended.findings()[0],
        "-:65537: error AAEP-3.9-9 : more than 65536 sessions are open at once; the order of further ones is not judged; \
         what is beyond the limits of this check is not checked, and so does not pass"
    );
    assert_eq!((ended.code, ended.summary()), (1, "70000 events, 70000 sessions: 1 errors, 65536 warnings"));
}

#[test]
fn the_limit_of_open_sessions_is_an_option() {
    let each = |make: fn(usize, &str) -> String, from: usize| -> String {
        (0..5).map(|at| make(from + at, &format!("sess_open{at}")) + "\n").collect()
    };
    let input = each(started, 0) + &each(thinking, 10) + &each(completed, 20);
    for sequence in ["auto", "always"] {
        let arguments = ["validate", "--max-open-sessions", "3", "--sequence", sequence];
        let ended = sayso(&arguments, &input);
        let [finding] = &*ended.findings() else { panic!("{}", ended.out) };
        assert!(finding.starts_with("-:4: error AAEP-3.9-9 : ") && finding.contains("more than 3 sessions"));
        assert_eq!((ended.code, ended.summary()), (1, "15 events, 5 sessions: 1 errors, 0 warnings"));
    }
    let one_after_the_other: String = (0..5).map(|at| lines(at * 3, &format!("sess_next{at}"))).collect();
    assert_eq!(sayso(&["validate", "--max-open-sessions", "1"], one_after_the_other).code, 0);
}

#[test]
fn sessions_without_a_start_are_not_open() {
    let ends: String = (0..10).map(|at| completed(at, &format!("sess_end{at}")) + "\n").collect();
    let ended = sayso(&["validate", "--max-open-sessions", "3"], ends);
    assert_eq!((ended.code, &*ended.out), (0, "10 events, 10 sessions: 0 errors, 0 warnings\n"));
}

#[test]
fn the_limit_of_what_is_open_in_a_session_is_an_option() {
    let tool = |at: usize| {
        let payload = format!(
            r#""tool":"look_up","tool_call_id":"call_{at}","summary_terse":"Looking.","summary_normal":"I am looking it up.""#
        );
        event(10 + at, "sess_tools001", "agent.tool.invoked", &payload)
    };
    let input = [started(1, "sess_tools001"), tool(1), tool(2), tool(3), tool(4)].join("\n");
    let ended = sayso(&["validate", "--max-open-in-session", "2", "--ignore", "AAEP-9.3.1-2"], &input);
    let [finding] = &*ended.findings() else { panic!("{}", ended.out) };
    assert!(finding.starts_with("-:4: error AAEP-3.9-9 : "), "{finding}");
    assert!(
        finding.contains("more than 2 are open at once in sess_tools001; its order is not judged further")
    );
    assert_eq!(ended.code, 1);
    assert_eq!(sayso(&["validate", "--max-open-in-session", "4"], &input).code, 0);
}

#[test]
fn more_handshakes_than_are_followed_do_not_pass() {
    let request = r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"reader","capabilities":{}}"#;
    let accepted = |at: usize| {
        format!(
            r#"{{"type":"subscription.accepted","subscription_id":"sub_{at}","aaep_version":"1.0.0","producer":{{"agent_id":"bank"}},"honored_capabilities":{{}}}}"#
        )
    };
    let requests = format!("{request}\n").repeat(1026);
    let subscriptions: String = (0..1026).map(|at| accepted(at) + "\n").collect();
    for (input, words) in [(requests, "requests wait"), (subscriptions, "subscriptions were accepted")] {
        let ended = sayso(&["validate", "--ignore", "AAEP-9.5.1-3"], input);
        let [finding] = &*ended.findings() else { panic!("{}", ended.out) };
        assert!(
            finding.starts_with(&format!("-:1025: error AAEP-3.9-9 : more than 1024 {words}")),
            "{finding}"
        );
        assert_eq!(ended.code, 1);
    }
}
