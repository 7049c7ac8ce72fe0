//! Recordings that go on where they were, on every wire, though the subscription is over.

use std::path::{Path, PathBuf};

use crate::replay::lost::{calls, ends_whole, works};
use crate::replay::recorder::{Recorder, kinds, lines};
use testing::hub::{Hub, reserved_address};

/// A hub that can be started again, and what is recorded of it.
struct Place {
    folder: tempfile::TempDir,
    address: String,
    more: Vec<String>,
}

impl Place {
    fn new(more: &[&str]) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            address: reserved_address(),
            more: more.iter().map(ToString::to_string).collect(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn hub(&self) -> Hub {
        let (data, socket) = (self.path("data"), self.path("socket"));
        let mut arguments = vec!["--open", "--listen", &self.address, "--unix", text(&socket)];
        if !self.more.iter().any(|one| one == "--memory") {
            arguments.extend(["--data", text(&data)]);
        }
        arguments.extend(self.more.iter().map(String::as_str));
        Hub::start(&arguments)
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The recorder hears nothing while the hub goes away, comes back and hears what an agent says.
fn goes_on(url: &str, place: &Place) {
    let file = place.path("a.jsonl");
    let mut hub = place.hub();
    let recorder = Recorder::starts(url, &file, &[]);
    let client = hub.client();
    let session = client.start();
    let mut call = 0;
    for round in 0..3 {
        for _ in 0..40 {
            call += 1;
            works(&client, &session, call);
        }
        // Whatever the recorder has heard by now, the rest comes again.
        recorder.has("tool.completed", call - 20);
        recorder.signal("-STOP");
        call += 1;
        works(&client, &session, call);
        if round == 1 {
            assert_eq!(hub.stop(), 0);
        } else {
            hub.kill();
        }
        hub = place.hub();
        call += 1;
        works(&client, &session, call);
        recorder.signal("-CONT");
        recorder.says("Connected again; the recording goes on where it was.");
    }
    ends_whole(&client, &session, recorder, &file, call);
    // What only tells where one is is not what an agent said.
    assert!(!kinds(&file).iter().any(|kind| kind.starts_with("sayso:")), "{:?}", kinds(&file));
    let subscriptions = lines(&file).into_iter().filter(|line| line["type"] == "subscription.accepted");
    let mut ids: Vec<_> = subscriptions.map(|line| line["subscription_id"].clone()).collect();
    ids.dedup();
    assert_eq!(ids.len(), 4, "each connection has a subscription of its own");
}

#[test]
fn over_a_websocket() {
    let place = Place::new(&[]);
    goes_on(&format!("ws://{}", place.address), &place);
}

#[test]
fn over_a_unix_socket() {
    let place = Place::new(&[]);
    goes_on(&format!("unix:{}", place.path("socket").display()), &place);
}

#[test]
fn over_http_where_the_time_to_come_back_is_over() {
    let place = Place::new(&["--hub-resume-window", "0ms"]);
    goes_on(&format!("http://{}", place.address), &place);
}

#[test]
fn what_the_hub_does_not_know_any_more_is_a_gap() {
    let place = Place::new(&["--memory"]);
    let urls = [
        format!("ws://{}", place.address),
        format!("unix:{}", place.path("socket").display()),
        format!("http://{}", place.address),
    ];
    for (at, url) in urls.iter().enumerate() {
        let file = place.path(&format!("{at}.jsonl"));
        let mut hub = place.hub();
        let recorder = Recorder::starts(url, &file, &[]);
        let client = hub.client();
        let session = client.start();
        works(&client, &session, 1);
        recorder.has("tool.completed", 1);
        recorder.signal("-STOP");
        hub.kill();
        let hub = place.hub();
        let client = hub.client();
        let session = client.start();
        works(&client, &session, 2);
        recorder.signal("-CONT");
        recorder.says("Connected again, but what was said meanwhile was not kept.");
        works(&client, &session, 3);
        recorder.has("tool.completed", 2);
        let (code, said) = recorder.stop("-TERM");
        assert_eq!(code, Some(0));
        assert!(said.last().unwrap().contains("There is more that was not heard: 1 gap."), "{said:?}");
        assert!(calls(&file).starts_with(&["call_1 invoked".to_owned(), "call_1 completed".to_owned()]));
        assert!(!calls(&file).contains(&"call_2 invoked".to_owned()), "{url}");
    }
}
