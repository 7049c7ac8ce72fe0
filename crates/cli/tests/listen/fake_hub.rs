//! A fake hub with scripted responses.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

/// How long to wait before a test fails. Long enough for slow machines.
const READ_TIMEOUT: Duration = Duration::from_mins(2);

/// The responses of a fake hub.
#[derive(Clone)]
pub(crate) struct FakeHubScript {
    /// Responses to subscription requests, in order. The last one repeats.
    pub(crate) subscription_responses: VecDeque<String>,
    /// Status line with headers and body of the manifest response. `None` means that the hub never responds.
    pub(crate) manifest: Option<(&'static str, String)>,
}

pub(crate) struct FakeHub {
    pub(crate) address: String,
    requests: Receiver<(String, Value)>,
    streams: Receiver<TcpStream>,
}

impl FakeHub {
    pub(crate) fn start(script: FakeHubScript) -> Self {
        Self::start_at("127.0.0.1:0", script)
    }

    pub(crate) fn start_at(address: &str, script: FakeHubScript) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let ((request_tx, requests), (stream_tx, streams)) = (channel(), channel());
        let script = Arc::new(Mutex::new(script));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (request_tx, stream_tx, script) =
                    (request_tx.clone(), stream_tx.clone(), Arc::clone(&script));
                std::thread::spawn(move || serve(stream, &request_tx, &stream_tx, &script));
            }
        });
        Self { address, requests, streams }
    }

    /// Starts a hub with these subscription responses and no manifest.
    pub(crate) fn start_with_responses(responses: &[String]) -> Self {
        let manifest = Some(("404 Not Found", String::new()));
        Self::start(FakeHubScript { subscription_responses: responses.iter().cloned().collect(), manifest })
    }

    /// Returns the body of the next request whose method and path start with `prefix`.
    pub(crate) fn next_request(&self, prefix: &str) -> Value {
        loop {
            let (target, body) = self.requests.recv_timeout(READ_TIMEOUT).unwrap();
            if target.starts_with(prefix) {
                return body;
            }
        }
    }

    /// Waits for a request whose method and path start with `prefix`, and returns all requests up to it. Needed after the client
    /// has exited, because its last request may not be recorded yet.
    pub(crate) fn requests_until(&self, prefix: &str) -> Vec<String> {
        let mut all = Vec::new();
        while !all.last().is_some_and(|last: &String| last.starts_with(prefix)) {
            all.push(
                self.requests
                    .recv_timeout(READ_TIMEOUT)
                    .unwrap_or_else(|_| panic!("no {prefix} in {all:?}"))
                    .0,
            );
        }
        all
    }

    /// Returns all requests recorded so far.
    pub(crate) fn requests_so_far(&self) -> Vec<String> {
        self.requests.try_iter().map(|(path, _)| path).collect()
    }

    /// Waits for the next event stream that a listener opens.
    pub(crate) fn next_stream(&self) -> FakeStream {
        FakeStream(self.streams.recv_timeout(READ_TIMEOUT).unwrap())
    }
}

/// The event stream of a connected listener.
pub(crate) struct FakeStream(TcpStream);

impl FakeStream {
    pub(crate) fn send_raw(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn send_event(&mut self, number: u32, kind: &str, rest: &str) {
        self.send_raw(&event_block(number, kind, rest));
    }

    pub(crate) fn close(mut self, reason: &str) {
        self.send_raw(&format!(
            "event: aaep.message\ndata: {{\"type\":\"subscription.close\",\"subscription_id\":\"sub_1\",\"reason_code\":\"{reason}\"}}\n\n"
        ));
    }
}

/// Formats an event as an SSE block.
pub(crate) fn event_block(number: u32, kind: &str, rest: &str) -> String {
    format!(
        "event: aaep.event\nid: evt_{number}\ndata: {{\"@context\":\"https://aaep-protocol.org/context/v1\",\"type\":\"aaep:agent.{kind}\",\"event_id\":\"evt_{number}\",\"session_id\":\"sess_1\",\"timestamp\":\"2026-05-24T14:00:00.000Z\",\"producer\":{{\"agent_id\":\"bank\"}},{rest}}}\n\n"
    )
}

/// Formats a `subscription.accepted` message. `members` holds additional members, each after a comma.
pub(crate) fn accepted_message(honored: &str, members: &str) -> String {
    format!(
        r#"{{"type":"subscription.accepted","subscription_id":"sub_1","aaep_version":"1.0.0","producer":{{"agent_id":"bank"}},"honored_capabilities":{honored}{members}}}"#
    )
}

pub(crate) fn rejected_message(code: &str, message: &str) -> String {
    format!(r#"{{"type":"subscription.rejected","reason_code":"{code}","reason_message":"{message}"}}"#)
}

fn serve(
    mut stream: TcpStream,
    request_tx: &Sender<(String, Value)>,
    stream_tx: &Sender<TcpStream>,
    script: &Mutex<FakeHubScript>,
) -> Option<()> {
    let (head, body) = read_request(&mut stream)?;
    let target = head.split(" HTTP").next().unwrap().to_owned();
    let body = serde_json::from_str(&body).unwrap_or(Value::Null);
    let route = target.split(['?']).next().unwrap().to_owned();
    let (status, response) = match route.as_str() {
        "POST /aaep/v1/subscriptions" => {
            let mut script = script.lock().unwrap();
            let next = if script.subscription_responses.len() > 1 {
                script.subscription_responses.pop_front()
            } else {
                None
            };
            let response = next.unwrap_or_else(|| script.subscription_responses[0].clone());
            (if response.contains("accepted") { "201 Created" } else { "409 Conflict" }, response)
        }
        "GET /.well-known/aaep-manifest.json" => {
            let manifest = script.lock().unwrap().manifest.clone();
            let Some(manifest) = manifest else {
                request_tx.send((target, body)).ok()?;
                // Keeps the connection open until the client gives up.
                let _ = stream.read(&mut [0; 1]);
                return None;
            };
            manifest
        }
        "GET /aaep/v1/events" => {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
            stream.write_all(head.as_bytes()).ok()?;
            request_tx.send((target, body)).ok()?;
            return stream_tx.send(stream).ok();
        }
        "POST /aaep/v1/replies" => ("204 No Content", String::new()),
        _ => ("404 Not Found", String::new()),
    };
    request_tx.send((target, body)).ok()?;
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", response.len());
    stream.write_all(format!("{head}{response}").as_bytes()).ok()
}

/// Reads the head and the body of a request.
fn read_request(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap_or("0");
            if body.len() >= length.parse().unwrap() {
                return Some((head.to_owned(), body.to_owned()));
            }
        }
        match stream.read(&mut chunk).ok()? {
            0 => return None,
            read => bytes.extend_from_slice(&chunk[..read]),
        }
    }
}
