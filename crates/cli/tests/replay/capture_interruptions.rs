//! Lost connections, killed recorders, full disks and misbehaving producers.

use std::io::Write;
use std::net::TcpListener;
use std::process::Command;

use crate::replay::capture_process::{CaptureProcess, READ_TIMEOUT, events, lines, recorded_types};
use testing::cli::run_sayso;
use testing::http::TestClient;
use testing::hub::{HubProcess, reserved_address};

pub(crate) fn publish(client: &TestClient, session: &str, event: &str) {
    let response = client.post(&format!("/agent/v1/sessions/{session}/events"), event);
    assert_eq!(response.status, 200, "{response:?}");
}

/// Publishes the start and the end of a tool call.
pub(crate) fn run_tool(client: &TestClient, session: &str, call: usize) {
    let event = |kind: &str, members: &str| {
        format!(r#"{{"type":"aaep:agent.tool.{kind}","tool":"look","tool_call_id":"call_{call}",{members}}}"#)
    };
    publish(client, session, &event("invoked", r#""summary_normal":"Looking.""#));
    publish(client, session, &event("completed", r#""status":"success""#));
}

/// Returns the tool events in a recording, in order.
pub(crate) fn recorded_tool_events(file: &std::path::Path) -> Vec<String> {
    let describe = |event: &serde_json::Value| {
        let kind = event["type"].as_str().unwrap().rsplit('.').next().unwrap().to_owned();
        Some(format!("{} {kind}", event["tool_call_id"].as_str()?))
    };
    events(file).iter().filter_map(describe).collect()
}

/// Ends the session and asserts that the recording is valid and contains `calls` tool calls, each once and in order,
/// without a reported gap.
pub(crate) fn assert_complete_recording(
    client: &TestClient,
    session: &str,
    recorder: CaptureProcess,
    file: &std::path::Path,
    calls: usize,
) {
    publish(client, session, r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#);
    recorder.wait_for_occurrences("session.completed", 1);
    let (code, stderr_lines) = recorder.stop("-TERM");
    assert_eq!(code, Some(0));
    assert!(!stderr_lines.iter().any(|line| line.contains("gap")), "{stderr_lines:?}");
    let expected: Vec<_> = (1..=calls)
        .flat_map(|call| [format!("call_{call} invoked"), format!("call_{call} completed")])
        .collect();
    assert_eq!(recorded_tool_events(file), expected);
    let checked = run_sayso(&["validate", file.to_str().unwrap()], "");
    assert_eq!(checked.exit_code, 0, "{}", checked.stdout);
}

#[test]
fn a_killed_hub_causes_no_gap_and_no_duplicate() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.jsonl");
    let data = folder.path().join("data");
    let address = reserved_address();
    let start_hub = || HubProcess::start(&["--open", "--listen", &address, "--data", data.to_str().unwrap()]);
    let mut hub = start_hub();
    let recorder = CaptureProcess::start_connected(&format!("http://{address}"), &file, &[]);
    let client = hub.client();
    let session = client.start_session();
    // The recorder can resume only after it has received an event.
    recorder.wait_for_occurrences("session.started", 1);
    let mut call = 0;
    for round in 0..4 {
        // The recorder may not have received all of these events when the hub stops.
        for _ in 0..5 {
            call += 1;
            run_tool(&client, &session, call);
        }
        if round % 2 == 0 {
            hub.kill();
        } else {
            assert_eq!(hub.stop(), 0);
        }
        hub = start_hub();
        // The recorder may not have reconnected yet.
        call += 1;
        run_tool(&client, &session, call);
        recorder.wait_for_line("Reconnected; the recording continues where it stopped.");
    }
    assert_complete_recording(&client, &session, recorder, &file, call);
    // The close message of the stopping hub is not recorded, because the recorder reconnected.
    assert_eq!(recorded_types(&file).iter().filter(|kind| *kind == "subscription.close").count(), 1);
}

#[test]
fn a_connection_lost_before_the_first_event_is_a_gap() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.jsonl");
    let address = start_misbehaving_producer(|stream_number, socket| {
        if stream_number == 2 {
            let _ =
                socket.write_all(format!("event: aaep.event\nid: evt_1\ndata: {}\n\n", event(1)).as_bytes());
        }
    });
    let recorder = CaptureProcess::start_connected(&format!("http://{address}"), &file, &[]);
    recorder.wait_for_line(
        "Reconnected, but the hub no longer has the events that were sent in the meantime. They are missing from the recording.",
    );
    recorder.wait_for_line("Reconnected; the recording continues where it stopped.");
    let (code, stderr_lines) = recorder.stop("-TERM");
    assert_eq!(code, Some(0));
    assert!(stderr_lines.last().unwrap().contains("Incomplete: 1 gap."), "{stderr_lines:?}");
    assert_eq!(events(&file).len(), 1);
}

#[test]
fn a_hub_that_lost_its_state_causes_a_new_subscription_and_a_reported_gap() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.jsonl");
    let address = reserved_address();
    let start_hub = || HubProcess::start(&["--open", "--memory", "--listen", &address]);
    let mut hub = start_hub();
    let recorder = CaptureProcess::start_connected(&format!("http://{address}"), &file, &[]);
    hub.kill();
    let hub = start_hub();
    recorder.wait_for_line(
        "Reconnected, but the hub no longer has the events that were sent in the meantime. They are missing from the recording.",
    );
    hub.client().start_session();
    recorder.wait_for_occurrences("session.started", 1);
    let (code, stderr_lines) = recorder.stop("-TERM");
    assert_eq!(code, Some(0));
    assert!(stderr_lines.last().unwrap().contains("Incomplete: 1 gap."), "{stderr_lines:?}");
    assert_eq!(recorded_types(&file)[..4], ["subscription.request", "subscription.accepted"].repeat(2));
}

#[test]
fn a_killed_recorder_leaves_complete_lines_and_all_received_events() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.jsonl");
    let hub = HubProcess::start_in_memory();
    let url = format!("http://{}", hub.address);
    let recorder = CaptureProcess::start_connected(&url, &file, &[]);
    let client = hub.client();
    let session = client.start_session();
    let agent = std::thread::spawn(move || {
        let mut call = 0;
        while call < 400 {
            call += 1;
            run_tool(&client, &session, call);
        }
    });
    recorder.wait_for_occurrences("tool.invoked", 20);
    assert_eq!(recorder.stop("-KILL").0, None);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.ends_with('\n'), "the last line is incomplete");
    let checked = run_sayso(&["validate", file.to_str().unwrap()], "");
    assert_eq!(checked.exit_code, 0, "{}", checked.stdout);
    let recorded = recorded_tool_events(&file);
    assert!(recorded.len() >= 20);
    for (at, event) in recorded.iter().enumerate() {
        let kind = if at % 2 == 0 { "invoked" } else { "completed" };
        assert_eq!(*event, format!("call_{} {kind}", at / 2 + 1));
    }
    agent.join().unwrap();
}

#[test]
fn a_restarted_recorder_appends_without_repeating_events() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.jsonl");
    let hub = HubProcess::start_in_memory();
    let url = format!("http://{}", hub.address);
    let recorder = CaptureProcess::start_connected(&url, &file, &[]);
    let client = hub.client();
    let session = client.start_session();
    run_tool(&client, &session, 1);
    client.ask_confirmation(&session);
    recorder.wait_for_occurrences("awaiting.confirmation", 1);
    assert_eq!(recorder.stop("-KILL").0, None);
    let recorder = CaptureProcess::start_connected(&url, &file, &["--append"]);
    recorder.wait_for_line("Events from the time between the two recordings are missing.");
    // The hub has sent the open question to the second recorder again. It must not be recorded twice.
    run_tool(&client, &session, 2);
    recorder.wait_for_occurrences("tool.completed", 2);
    assert_eq!(recorder.stop("-TERM").0, Some(0));
    let recorded = events(&file);
    let mut ids: Vec<_> = recorded.iter().map(|event| event["event_id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), recorded.len(), "{:?}", recorded_types(&file));
    let checked = run_sayso(&["validate", file.to_str().unwrap()], "");
    assert_eq!(checked.exit_code, 0, "{}", checked.stdout);
}

#[test]
fn a_full_disk_ends_the_recording_with_a_complete_line_and_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.jsonl");
    let hub = HubProcess::start_in_memory();
    // Limits files to 8 blocks of 512 or 1024 bytes, depending on the shell.
    let script = r#"trap "" XFSZ; ulimit -f 8; exec "$0" "$@""#;
    let url = format!("http://{}", hub.address);
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_sayso"), "capture", &url, "-o", file.to_str().unwrap()]);
    let mut recorder = CaptureProcess::run(&mut command, &file);
    recorder.wait_for_line("Recording ");
    let client = hub.client();
    let session = client.start_session();
    for call in 1..40 {
        run_tool(&client, &session, call);
    }
    let (code, stderr_lines) = recorder.wait_for_exit();
    assert_eq!(code, Some(2), "{stderr_lines:?}");
    assert!(
        stderr_lines.iter().any(|line| line.starts_with("sayso: cannot write ")
            && line.ends_with("The recording ends here. Its last line is complete.")),
        "{stderr_lines:?}"
    );
    assert!(std::fs::read_to_string(&file).unwrap().ends_with("}\n"));
    let recorded = events(&file).len();
    assert!(
        recorded > 1
            && stderr_lines.iter().any(|line| line.starts_with(&format!("{recorded} events recorded")))
    );
    assert_eq!(run_sayso(&["validate", file.to_str().unwrap()], "").exit_code, 0);
}

/// Starts a producer that accepts subscriptions. It calls `misbehave` with the number and the socket of each event stream.
fn start_misbehaving_producer(
    misbehave: impl Fn(usize, &mut std::net::TcpStream) + Send + 'static,
) -> String {
    use std::io::{BufRead, BufReader, Read};
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let mut stream_count = 0;
        for stream in listener.incoming().map_while(Result::ok) {
            let mut stream = stream;
            stream.set_read_timeout(Some(READ_TIMEOUT)).unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut request_line, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
                    break;
                }
                if request_line.is_empty() {
                    request_line.clone_from(&line);
                }
                if let Some(found) = line.to_lowercase().strip_prefix("content-length: ") {
                    length = found.trim().parse().unwrap();
                }
            }
            let mut body = vec![0; length];
            let _ = reader.read_exact(&mut body);
            if request_line.starts_with("POST /aaep/v1/subscriptions") {
                let accepted = r#"{"type":"subscription.accepted","subscription_id":"sub_00000000000000000000000000000001","aaep_version":"1.0.0","producer":{"agent_id":"odd"},"honored_capabilities":{}}"#;
                let head = format!("HTTP/1.1 201 Created\r\nContent-Length: {}\r\n\r\n", accepted.len());
                let _ = stream.write_all((head + accepted).as_bytes());
            } else if request_line.starts_with("GET") {
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
                let _ = stream.write_all(head.as_bytes());
                stream_count += 1;
                misbehave(stream_count, &mut stream);
            } else {
                let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n");
            }
        }
    });
    address
}

fn event(number: usize) -> String {
    format!(
        r#"{{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0","type":"aaep:agent.state.changed","event_id":"evt_{number:032}","session_id":"sess_00000000000000000000000000000001","timestamp":"2026-05-24T14:22:11.342Z","producer":{{"agent_id":"odd"}},"from_state":"idle","to_state":"thinking"}}"#
    )
}

#[test]
fn a_misbehaving_producer_is_recorded_as_received() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.jsonl");
    let address = start_misbehaving_producer(|stream_number, socket| {
        let block = |text: &str, id: usize| format!("event: aaep.event\nid: evt_{id}\ndata: {text}\n\n");
        let _ = match stream_number {
            // Many events, then half an event.
            1 => {
                let flood: String = (1..=3000).map(|number| block(&event(number), number)).collect();
                socket.write_all((flood + "data: {\"event_id\":\"evt_half").as_bytes())
            }
            // The last event again, then one over several lines.
            2 => {
                let split = event(3001).replace(",\"type\"", ",\ndata: \"type\"");
                socket.write_all((block(&event(3000), 3000) + &block(&split, 3001)).as_bytes())
            }
            // An event that exceeds the size limit.
            3 => socket.write_all(&[b"data: ".to_vec(), vec![b'x'; 3 * 1024 * 1024]].concat()),
            // Bytes that are not UTF-8, then a valid event.
            4 => socket.write_all(
                [b"data: \xff\xfe nonsense\n\n".as_slice(), block(&event(3002), 3002).as_bytes()]
                    .concat()
                    .as_slice(),
            ),
            _ => Ok(()),
        };
    });
    let recorder = CaptureProcess::start_connected(&format!("http://{address}"), &file, &[]);
    recorder.wait_for_occurrences(&format!("evt_{:032}", 3002), 1);
    let (code, stderr_lines) = recorder.stop("-TERM");
    assert_eq!(code, Some(0));
    assert!(stderr_lines.last().unwrap().contains("3002 events recorded in "), "{stderr_lines:?}");
    assert!(
        stderr_lines.last().unwrap().contains("1 event received again and recorded only once."),
        "{stderr_lines:?}"
    );
    let text = std::fs::read_to_string(&file).unwrap();
    let ids: Vec<_> = text.lines().filter_map(|line| line.split("evt_").nth(1)?.get(..32)).collect();
    assert_eq!(ids, (1..=3002).map(|number| format!("{number:032}")).collect::<Vec<_>>());
    // Data that is not JSON is recorded too, and `validate` reports it.
    let checked = run_sayso(&["validate", file.to_str().unwrap()], "");
    assert_eq!(checked.exit_code, 1);
    assert_eq!(text.matches("nonsense").count(), 1);
    assert!(remove_lines_containing(&file, "nonsense") >= 3002);
}

/// Removes the lines that contain `part` from a recording and returns how many lines are left.
fn remove_lines_containing(file: &std::path::Path, part: &str) -> usize {
    let text = std::fs::read_to_string(file).unwrap();
    let remaining: String =
        text.lines().filter(|line| !line.contains(part)).flat_map(|line| [line, "\n"]).collect();
    std::fs::write(file, remaining).unwrap();
    lines(file).len()
}
