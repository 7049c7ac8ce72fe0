//! Recordings resume over every transport, even if the subscription has ended.

use std::path::{Path, PathBuf};

use crate::replay::capture_interruptions::{assert_complete_recording, recorded_tool_events, run_tool};
use crate::replay::capture_process::{CaptureProcess, lines, recorded_types};
use testing::hub::{HubProcess, reserved_address};

/// A hub that can be restarted at the same address, and a folder for its data and recordings.
struct RestartableHub {
    folder: tempfile::TempDir,
    address: String,
    options: Vec<String>,
}

impl RestartableHub {
    fn new(options: &[&str]) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            address: reserved_address(),
            options: options.iter().map(ToString::to_string).collect(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start_hub(&self) -> HubProcess {
        let (data, socket) = (self.path("data"), self.path("socket"));
        let mut arguments = vec!["--open", "--listen", &self.address, "--unix", path_str(&socket)];
        if !self.options.iter().any(|option| option == "--memory") {
            arguments.extend(["--data", path_str(&data)]);
        }
        arguments.extend(self.options.iter().map(String::as_str));
        HubProcess::start(&arguments)
    }
}

fn path_str(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Asserts that a recording is complete although the recorder was suspended while the hub restarted and received events.
fn assert_resumes(url: &str, restartable: &RestartableHub) {
    let file = restartable.path("a.jsonl");
    let mut hub = restartable.start_hub();
    let recorder = CaptureProcess::start_connected(url, &file, &[]);
    let client = hub.client();
    let session = client.start_session();
    let mut call = 0;
    for round in 0..3 {
        for _ in 0..40 {
            call += 1;
            run_tool(&client, &session, call);
        }
        // The recorder need not have received all events yet. The hub sends the rest after the reconnect.
        recorder.wait_for_occurrences("tool.completed", call - 20);
        recorder.signal("-STOP");
        call += 1;
        run_tool(&client, &session, call);
        if round == 1 {
            assert_eq!(hub.stop(), 0);
        } else {
            hub.kill();
        }
        hub = restartable.start_hub();
        call += 1;
        run_tool(&client, &session, call);
        recorder.signal("-CONT");
        recorder.wait_for_line("Reconnected; the recording continues where it stopped.");
    }
    assert_complete_recording(&client, &session, recorder, &file, call);
    // Resume positions are not events, so they are not recorded.
    assert!(
        !recorded_types(&file).iter().any(|kind| kind.starts_with("sayso:")),
        "{:?}",
        recorded_types(&file)
    );
    let subscriptions = lines(&file).into_iter().filter(|line| line["type"] == "subscription.accepted");
    let mut ids: Vec<_> = subscriptions.map(|line| line["subscription_id"].clone()).collect();
    ids.dedup();
    assert_eq!(ids.len(), 4, "each connection has its own subscription");
}

#[test]
fn a_recording_resumes_over_websocket() {
    let restartable = RestartableHub::new(&[]);
    assert_resumes(&format!("ws://{}", restartable.address), &restartable);
}

#[test]
fn a_recording_resumes_over_a_unix_socket() {
    let restartable = RestartableHub::new(&[]);
    assert_resumes(&format!("unix:{}", restartable.path("socket").display()), &restartable);
}

#[test]
fn a_recording_resumes_over_http_after_the_resume_window() {
    let restartable = RestartableHub::new(&["--hub-resume-window", "0ms"]);
    assert_resumes(&format!("http://{}", restartable.address), &restartable);
}

#[test]
fn events_that_the_hub_no_longer_has_are_a_gap() {
    let restartable = RestartableHub::new(&["--memory"]);
    let urls = [
        format!("ws://{}", restartable.address),
        format!("unix:{}", restartable.path("socket").display()),
        format!("http://{}", restartable.address),
    ];
    for (at, url) in urls.iter().enumerate() {
        let file = restartable.path(&format!("{at}.jsonl"));
        let mut hub = restartable.start_hub();
        let recorder = CaptureProcess::start_connected(url, &file, &[]);
        let client = hub.client();
        let session = client.start_session();
        run_tool(&client, &session, 1);
        recorder.wait_for_occurrences("tool.completed", 1);
        recorder.signal("-STOP");
        hub.kill();
        let hub = restartable.start_hub();
        let client = hub.client();
        let session = client.start_session();
        run_tool(&client, &session, 2);
        recorder.signal("-CONT");
        recorder.wait_for_line(
            "Reconnected, but the hub no longer has the events that were sent in the meantime.",
        );
        run_tool(&client, &session, 3);
        recorder.wait_for_occurrences("tool.completed", 2);
        let (code, stderr_lines) = recorder.stop("-TERM");
        assert_eq!(code, Some(0));
        assert!(stderr_lines.last().unwrap().contains("Incomplete: 1 gap."), "{stderr_lines:?}");
        assert!(
            recorded_tool_events(&file)
                .starts_with(&["call_1 invoked".to_owned(), "call_1 completed".to_owned()])
        );
        assert!(!recorded_tool_events(&file).contains(&"call_2 invoked".to_owned()), "{url}");
    }
}
