//! Connections that are lost, recorders that are killed, disks that are full, producers that misbehave.

use std::io::Write;
use std::net::TcpListener;
use std::process::Command;

use crate::replay::recorder::{PATIENCE, Recorder, events, kinds, lines};
use testing::cli::sayso;
use testing::http::Client;
use testing::hub::{Hub, reserved_address};

pub(crate) fn says(client: &Client, session: &str, event: &str) {
    let answer = client.post(&format!("/agent/v1/sessions/{session}/events"), event);
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// A tool that begins and ends.
pub(crate) fn works(client: &Client, session: &str, call: usize) {
    let of = |kind: &str, more: &str| {
        format!(r#"{{"type":"aaep:agent.tool.{kind}","tool":"look","tool_call_id":"call_{call}",{more}}}"#)
    };
    says(client, session, &of("invoked", r#""summary_normal":"Looking.""#));
    says(client, session, &of("completed", r#""status":"success""#));
}

/// The calls that stand in a recording, in order.
pub(crate) fn calls(file: &std::path::Path) -> Vec<String> {
    let of = |event: &serde_json::Value| {
        let kind = event["type"].as_str().unwrap().rsplit('.').next().unwrap().to_owned();
        Some(format!("{} {kind}", event["tool_call_id"].as_str()?))
    };
    events(file).iter().filter_map(of).collect()
}

/// The session ends: so many calls stand there, each once and in order, no gap is told, and no rule is broken.
pub(crate) fn ends_whole(
    client: &Client,
    session: &str,
    recorder: Recorder,
    file: &std::path::Path,
    all: usize,
) {
    says(client, session, r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#);
    recorder.has("session.completed", 1);
    let (code, said) = recorder.stop("-TERM");
    assert_eq!(code, Some(0));
    assert!(!said.iter().any(|line| line.contains("gap")), "{said:?}");
    let expected: Vec<_> = (1..=all)
        .flat_map(|call| [format!("call_{call} invoked"), format!("call_{call} completed")])
        .collect();
    assert_eq!(calls(file), expected);
    let checked = sayso(&["validate", file.to_str().unwrap()], "");
    assert_eq!(checked.code, 0, "{}", checked.out);
}

#[test]
fn a_hub_that_is_killed_in_between_leaves_no_gap_and_no_double() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.jsonl");
    let data = folder.path().join("data");
    let address = reserved_address();
    let start = || Hub::start(&["--open", "--listen", &address, "--data", data.to_str().unwrap()]);
    let mut hub = start();
    let recorder = Recorder::starts(&format!("http://{address}"), &file, &[]);
    let client = hub.client();
    let session = client.start();
    // Who has heard something knows where to go on.
    recorder.has("session.started", 1);
    let mut call = 0;
    for round in 0..4 {
        // Some are heard before the hub is gone, some perhaps not, some are said before the recorder is back.
        for _ in 0..5 {
            call += 1;
            works(&client, &session, call);
        }
        if round % 2 == 0 {
            hub.kill();
        } else {
            assert_eq!(hub.stop(), 0);
        }
        hub = start();
        call += 1;
        works(&client, &session, call);
        recorder.says("Connected again; the recording goes on where it was.");
    }
    ends_whole(&client, &session, recorder, &file, call);
    // A notice that the hub stops does not stand there: it came back, and so did the recorder.
    assert_eq!(kinds(&file).iter().filter(|kind| *kind == "subscription.close").count(), 1);
}

#[test]
fn a_connection_that_is_lost_before_anything_was_heard_is_a_gap() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.jsonl");
    let address = producer(|stream, socket| {
        if stream == 2 {
            let _ =
                socket.write_all(format!("event: aaep.event\nid: evt_1\ndata: {}\n\n", event(1)).as_bytes());
        }
    });
    let recorder = Recorder::starts(&format!("http://{address}"), &file, &[]);
    recorder.says("Connected again, but what was said meanwhile was not kept. It is not in the recording.");
    recorder.says("Connected again; the recording goes on where it was.");
    let (code, said) = recorder.stop("-TERM");
    assert_eq!(code, Some(0));
    assert!(said.last().unwrap().contains("There is more that was not heard: 1 gap."), "{said:?}");
    assert_eq!(events(&file).len(), 1);
}

#[test]
fn a_hub_that_forgot_everything_is_recorded_anew_and_the_gap_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.jsonl");
    let address = reserved_address();
    let start = || Hub::start(&["--open", "--memory", "--listen", &address]);
    let mut hub = start();
    let recorder = Recorder::starts(&format!("http://{address}"), &file, &[]);
    hub.kill();
    let hub = start();
    recorder.says("Connected again, but what was said meanwhile was not kept. It is not in the recording.");
    hub.client().start();
    recorder.has("session.started", 1);
    let (code, said) = recorder.stop("-TERM");
    assert_eq!(code, Some(0));
    assert!(said.last().unwrap().contains("There is more that was not heard: 1 gap."), "{said:?}");
    assert_eq!(kinds(&file)[..4], ["subscription.request", "subscription.accepted"].repeat(2));
}

#[test]
fn a_recorder_that_is_killed_leaves_whole_lines_and_everything_that_it_had_received() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.jsonl");
    let hub = Hub::open();
    let url = format!("http://{}", hub.address);
    let recorder = Recorder::starts(&url, &file, &[]);
    let client = hub.client();
    let session = client.start();
    let agent = std::thread::spawn(move || {
        let mut call = 0;
        while call < 400 {
            call += 1;
            works(&client, &session, call);
        }
    });
    recorder.has("tool.invoked", 20);
    assert_eq!(recorder.stop("-KILL").0, None);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.ends_with('\n'), "half a line");
    let checked = sayso(&["validate", file.to_str().unwrap()], "");
    assert_eq!(checked.code, 0, "{}", checked.out);
    let found = calls(&file);
    assert!(found.len() >= 20);
    for (at, call) in found.iter().enumerate() {
        let kind = if at % 2 == 0 { "invoked" } else { "completed" };
        assert_eq!(*call, format!("call_{} {kind}", at / 2 + 1));
    }
    agent.join().unwrap();
}

#[test]
fn a_recorder_that_was_killed_goes_on_in_the_same_file_and_repeats_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.jsonl");
    let hub = Hub::open();
    let url = format!("http://{}", hub.address);
    let recorder = Recorder::starts(&url, &file, &[]);
    let client = hub.client();
    let session = client.start();
    works(&client, &session, 1);
    client.ask(&session);
    recorder.has("awaiting.confirmation", 1);
    assert_eq!(recorder.stop("-KILL").0, None);
    let recorder = Recorder::starts(&url, &file, &["--append"]);
    recorder.says("What was said while nobody recorded is not in it.");
    // The hub asks again whoever joins late.
    works(&client, &session, 2);
    recorder.has("tool.completed", 2);
    assert_eq!(recorder.stop("-TERM").0, Some(0));
    let all = events(&file);
    let mut ids: Vec<_> = all.iter().map(|event| event["event_id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all.len(), "{:?}", kinds(&file));
    let checked = sayso(&["validate", file.to_str().unwrap()], "");
    assert_eq!(checked.code, 0, "{}", checked.out);
}

#[test]
fn a_full_disk_ends_the_recording_with_a_whole_line_and_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.jsonl");
    let hub = Hub::open();
    // A file may have 8 blocks of 512 bytes, or of 1024, as the shell has it.
    let script = r#"trap "" XFSZ; ulimit -f 8; exec "$0" "$@""#;
    let url = format!("http://{}", hub.address);
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_sayso"), "capture", &url, "-o", file.to_str().unwrap()]);
    let mut recorder = Recorder::run(&mut command, &file);
    recorder.says("Recording ");
    let client = hub.client();
    let session = client.start();
    for call in 1..40 {
        works(&client, &session, call);
    }
    let (code, said) = recorder.ends();
    assert_eq!(code, Some(2), "{said:?}");
    assert!(
        said.iter().any(|line| line.starts_with("sayso: cannot write ")
            && line.ends_with("The recording ends here. It ends with a whole line.")),
        "{said:?}"
    );
    assert!(std::fs::read_to_string(&file).unwrap().ends_with("}\n"));
    let recorded = events(&file).len();
    assert!(recorded > 1 && said.iter().any(|line| line.starts_with(&format!("{recorded} events recorded"))));
    assert_eq!(sayso(&["validate", file.to_str().unwrap()], "").code, 0);
}

/// A producer that answers one request for a subscription, and then does as it likes with each stream.
fn producer(misbehave: impl Fn(usize, &mut std::net::TcpStream) + Send + 'static) -> String {
    use std::io::{BufRead, BufReader, Read};
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let mut streams = 0;
        for stream in listener.incoming().map_while(Result::ok) {
            let mut stream = stream;
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut first, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
                    break;
                }
                if first.is_empty() {
                    first.clone_from(&line);
                }
                if let Some(found) = line.to_lowercase().strip_prefix("content-length: ") {
                    length = found.trim().parse().unwrap();
                }
            }
            let mut body = vec![0; length];
            let _ = reader.read_exact(&mut body);
            if first.starts_with("POST /aaep/v1/subscriptions") {
                let accepted = r#"{"type":"subscription.accepted","subscription_id":"sub_00000000000000000000000000000001","aaep_version":"1.0.0","producer":{"agent_id":"odd"},"honored_capabilities":{}}"#;
                let head = format!("HTTP/1.1 201 Created\r\nContent-Length: {}\r\n\r\n", accepted.len());
                let _ = stream.write_all((head + accepted).as_bytes());
            } else if first.starts_with("GET") {
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
                let _ = stream.write_all(head.as_bytes());
                streams += 1;
                misbehave(streams, &mut stream);
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
fn a_producer_that_floods_vanishes_repeats_and_talks_nonsense_is_recorded_as_far_as_it_came() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.jsonl");
    let address = producer(|stream, socket| {
        let block = |text: &str, id: usize| format!("event: aaep.event\nid: evt_{id}\ndata: {text}\n\n");
        let _ = match stream {
            // A flood, and then half an event.
            1 => {
                let flood: String = (1..=3000).map(|number| block(&event(number), number)).collect();
                socket.write_all((flood + "data: {\"event_id\":\"evt_half").as_bytes())
            }
            // The last again, and one over several lines.
            2 => {
                let split = event(3001).replace(",\"type\"", ",\ndata: \"type\"");
                socket.write_all((block(&event(3000), 3000) + &block(&split, 3001)).as_bytes())
            }
            // More than anybody takes.
            3 => socket.write_all(&[b"data: ".to_vec(), vec![b'x'; 3 * 1024 * 1024]].concat()),
            // No event, no JSON, no text.
            4 => socket.write_all(
                [b"data: \xff\xfe nonsense\n\n".as_slice(), block(&event(3002), 3002).as_bytes()]
                    .concat()
                    .as_slice(),
            ),
            _ => Ok(()),
        };
    });
    let recorder = Recorder::starts(&format!("http://{address}"), &file, &[]);
    recorder.has(&format!("evt_{:032}", 3002), 1);
    let (code, said) = recorder.stop("-TERM");
    assert_eq!(code, Some(0));
    assert!(said.last().unwrap().contains("3002 events recorded in "), "{said:?}");
    assert!(said.last().unwrap().contains("1 event came again and stands there once."), "{said:?}");
    let text = std::fs::read_to_string(&file).unwrap();
    let ids: Vec<_> = text.lines().filter_map(|line| line.split("evt_").nth(1)?.get(..32)).collect();
    assert_eq!(ids, (1..=3002).map(|number| format!("{number:032}")).collect::<Vec<_>>());
    // What is no JSON stands there too, and is found.
    let checked = sayso(&["validate", file.to_str().unwrap()], "");
    assert_eq!(checked.code, 1);
    assert_eq!(text.matches("nonsense").count(), 1);
    assert!(lines_but(&file, "nonsense") >= 3002);
}

fn lines_but(file: &std::path::Path, part: &str) -> usize {
    let text = std::fs::read_to_string(file).unwrap();
    let kept: String =
        text.lines().filter(|line| !line.contains(part)).flat_map(|line| [line, "\n"]).collect();
    std::fs::write(file, kept).unwrap();
    lines(file).len()
}
