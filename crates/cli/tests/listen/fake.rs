//! A hub that says whatever a test wants.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

/// Nothing takes longer that comes at all.
const PATIENCE: Duration = Duration::from_mins(2);

/// What it answers.
#[derive(Clone)]
pub(crate) struct Script {
    /// To requests for a subscription, one after the other; the last one again and again.
    pub(crate) answers: VecDeque<String>,
    /// For its manifest: status and headers, and the body. Without it nothing is answered at all.
    pub(crate) manifest: Option<(&'static str, String)>,
}

pub(crate) struct Fake {
    pub(crate) address: String,
    asked: Receiver<(String, Value)>,
    streams: Receiver<TcpStream>,
}

impl Fake {
    pub(crate) fn starts(script: Script) -> Self {
        Self::starts_at("127.0.0.1:0", script)
    }

    pub(crate) fn starts_at(address: &str, script: Script) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let ((note, asked), (open, streams)) = (channel(), channel());
        let script = Arc::new(Mutex::new(script));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (note, open, script) = (note.clone(), open.clone(), Arc::clone(&script));
                std::thread::spawn(move || serve(stream, &note, &open, &script));
            }
        });
        Self { address, asked, streams }
    }

    /// One that lets in whoever asks, and has no manifest.
    pub(crate) fn answering(answers: &[String]) -> Self {
        let manifest = Some(("404 Not Found", String::new()));
        Self::starts(Script { answers: answers.iter().cloned().collect(), manifest })
    }

    /// What is asked next on this path, by its body.
    pub(crate) fn is_asked(&self, path: &str) -> Value {
        loop {
            let (asked, body) = self.asked.recv_timeout(PATIENCE).unwrap();
            if asked.starts_with(path) {
                return body;
            }
        }
    }

    /// All that was asked until this path, which must come: whoever asks for it may be gone before it is noted.
    pub(crate) fn was_asked_until(&self, path: &str) -> Vec<String> {
        let mut all = Vec::new();
        while !all.last().is_some_and(|last: &String| last.starts_with(path)) {
            all.push(self.asked.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no {path} in {all:?}")).0);
        }
        all
    }

    /// All that was asked so far.
    pub(crate) fn was_asked(&self) -> Vec<String> {
        self.asked.try_iter().map(|(path, _)| path).collect()
    }

    pub(crate) fn stream(&self) -> Stream {
        Stream(self.streams.recv_timeout(PATIENCE).unwrap())
    }
}

/// A stream that somebody listens to.
pub(crate) struct Stream(TcpStream);

impl Stream {
    pub(crate) fn raw(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn tells(&mut self, number: u32, kind: &str, rest: &str) {
        self.raw(&block(number, kind, rest));
    }

    pub(crate) fn closes(mut self, reason: &str) {
        self.raw(&format!(
            "event: aaep.message\ndata: {{\"type\":\"subscription.close\",\"subscription_id\":\"sub_1\",\"reason_code\":\"{reason}\"}}\n\n"
        ));
    }
}

/// An event as it is sent.
pub(crate) fn block(number: u32, kind: &str, rest: &str) -> String {
    format!(
        "event: aaep.event\nid: evt_{number}\ndata: {{\"@context\":\"https://aaep-protocol.org/context/v1\",\"type\":\"aaep:agent.{kind}\",\"event_id\":\"evt_{number}\",\"session_id\":\"sess_1\",\"timestamp\":\"2026-05-24T14:00:00.000Z\",\"producer\":{{\"agent_id\":\"bank\"}},{rest}}}\n\n"
    )
}

/// An answer that lets in, with these terms and what else it says.
pub(crate) fn accepted(honored: &str, more: &str) -> String {
    format!(
        r#"{{"type":"subscription.accepted","subscription_id":"sub_1","aaep_version":"1.0.0","producer":{{"agent_id":"bank"}},"honored_capabilities":{honored}{more}}}"#
    )
}

pub(crate) fn rejected(code: &str, message: &str) -> String {
    format!(r#"{{"type":"subscription.rejected","reason_code":"{code}","reason_message":"{message}"}}"#)
}

fn serve(
    mut stream: TcpStream,
    note: &Sender<(String, Value)>,
    open: &Sender<TcpStream>,
    script: &Mutex<Script>,
) -> Option<()> {
    let (head, body) = request(&mut stream)?;
    let asked = head.split(" HTTP").next().unwrap().to_owned();
    let body = serde_json::from_str(&body).unwrap_or(Value::Null);
    let kind = asked.split(['?']).next().unwrap().to_owned();
    let (status, answer) = match kind.as_str() {
        "POST /aaep/v1/subscriptions" => {
            let mut script = script.lock().unwrap();
            let next = if script.answers.len() > 1 { script.answers.pop_front() } else { None };
            let answer = next.unwrap_or_else(|| script.answers[0].clone());
            (if answer.contains("accepted") { "201 Created" } else { "409 Conflict" }, answer)
        }
        "GET /.well-known/aaep-manifest.json" => {
            let manifest = script.lock().unwrap().manifest.clone();
            let Some(manifest) = manifest else {
                note.send((asked, body)).ok()?;
                // It is held open until the other side gives up.
                let _ = stream.read(&mut [0; 1]);
                return None;
            };
            manifest
        }
        "GET /aaep/v1/events" => {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
            stream.write_all(head.as_bytes()).ok()?;
            note.send((asked, body)).ok()?;
            return open.send(stream).ok();
        }
        "POST /aaep/v1/replies" => ("204 No Content", String::new()),
        _ => ("404 Not Found", String::new()),
    };
    note.send((asked, body)).ok()?;
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", answer.len());
    stream.write_all(format!("{head}{answer}").as_bytes()).ok()
}

/// The head and the body of a request.
fn request(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut bytes = Vec::new();
    let mut more = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap_or("0");
            if body.len() >= length.parse().unwrap() {
                return Some((head.to_owned(), body.to_owned()));
            }
        }
        match stream.read(&mut more).ok()? {
            0 => return None,
            read => bytes.extend_from_slice(&more[..read]),
        }
    }
}
