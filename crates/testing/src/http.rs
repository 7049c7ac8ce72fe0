//! A plain HTTP client for agents and listeners, and a reader of their event streams.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::messages;

/// How long a test waits for something that must come; generous, because the machine may be busy.
pub const TIMEOUT: Duration = Duration::from_mins(1);

/// A response of the hub.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Response {
    /// The text of a member of the JSON body.
    pub fn text(&self, name: &str) -> String {
        let value: serde_json::Value =
            serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?}"));
        value[name].as_str().unwrap_or_else(|| panic!("no {name} in {self:?}")).to_owned()
    }
}

/// Sends each request on a connection of its own.
#[derive(Clone)]
pub struct Client {
    address: String,
    headers: String,
}

impl Client {
    pub fn of(address: &str) -> Self {
        Self { address: address.to_owned(), headers: String::new() }
    }

    #[must_use]
    pub fn with(&self, header: &str) -> Self {
        Self { address: self.address.clone(), headers: format!("{}{header}\r\n", self.headers) }
    }

    #[must_use]
    pub fn bearer(&self, token: &str) -> Self {
        self.with(&format!("Authorization: Bearer {token}"))
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream
    }

    /// Sends these bytes as they are, and reads until the other side closes.
    pub fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    pub fn send(&self, method: &str, path: &str, body: &str) -> Response {
        self.try_send(method, path, body).unwrap_or_else(|| panic!("no answer to {method} {path}"))
    }

    /// As [`Self::send`], of a hub that may be gone.
    pub fn try_send(&self, method: &str, path: &str, body: &str) -> Option<Response> {
        let host = if self.headers.contains("Host:") {
            String::new()
        } else {
            format!("Host: {}\r\n", self.address)
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\n{host}{}Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
            self.headers,
            body.len()
        );
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        // One that is refused before it was read to its end cannot always be written to its end.
        let _ = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer);
        let (head, body) = text.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok());
        // An answer that was cut off is no answer.
        (length.unwrap_or(0) == body.len()).then(|| Response {
            status,
            head: head.to_owned(),
            body: body.to_owned(),
        })
    }

    pub fn get(&self, path: &str) -> Response {
        self.send("GET", path, "")
    }

    pub fn post(&self, path: &str, body: &str) -> Response {
        self.send("POST", path, body)
    }

    pub fn subscribe(&self, capabilities: &str) -> String {
        let request = messages::request(capabilities);
        let answer = self.post("/aaep/v1/subscriptions", &request);
        assert_eq!(answer.status, 201, "{answer:?}");
        let id = answer.text("subscription_id");
        assert!(answer.head.contains(&format!("Location: /aaep/v1/events?subscription_id={id}")));
        id
    }

    pub fn listen(&self, subscription: &str, last: Option<&str>) -> EventStream {
        let last = last.map(|id| format!("Last-Event-ID: {id}")).unwrap_or_default();
        let client = if last.is_empty() { self.clone() } else { self.with(&last) };
        client.stream(&format!("/aaep/v1/events?subscription_id={subscription}"))
    }

    /// The stream at an address, after its head.
    pub fn stream(&self, path: &str) -> EventStream {
        let mut stream = self.connect();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\n{}Accept: text/event-stream\r\n\r\n",
            self.address, self.headers
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut ear = EventStream { lines: BufReader::new(stream) };
        let mut head = String::new();
        loop {
            let line = ear.line();
            if line.is_empty() {
                assert!(head.starts_with("HTTP/1.1 200"), "{head}");
                return ear;
            }
            head += &line;
        }
    }

    pub fn start(&self) -> String {
        let started = r#"{"summary_normal":"Moving money.","localization_hints":{"primary_language":"en"}}"#;
        let answer = self.post("/agent/v1/sessions", started);
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.text("session_id")
    }

    pub fn ask(&self, session: &str) -> String {
        let answer = self.post(&format!("/agent/v1/sessions/{session}/confirmations"), messages::QUESTION);
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.text("reply_token")
    }

    pub fn reply(&self, subscription: &str, token: &str, decision: &str) -> Response {
        self.try_reply(subscription, token, decision).expect("an answer")
    }

    pub fn try_reply(&self, subscription: &str, token: &str, decision: &str) -> Option<Response> {
        let reply = messages::reply(subscription, token, decision);
        self.try_send("POST", "/aaep/v1/replies", &reply)
    }
}

/// The events of one subscription.
pub struct EventStream {
    lines: BufReader<TcpStream>,
}

impl EventStream {
    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.lines.read_line(&mut line).unwrap() > 0, "the stream has ended");
        line.trim_end_matches(['\r', '\n']).to_owned()
    }

    /// The next event: its type without its beginning, its id, and its JSON.
    pub fn next(&mut self) -> (String, String, serde_json::Value) {
        let mut id = String::new();
        loop {
            let line = self.line();
            if let Some(found) = line.strip_prefix("id: ") {
                found.clone_into(&mut id);
            } else if let Some(data) = line.strip_prefix("data: ") {
                let event: serde_json::Value = serde_json::from_str(data).unwrap();
                let kind = event["type"].as_str().unwrap().replace("aaep:agent.", "");
                return (kind, id, event);
            }
        }
    }

    pub fn next_type(&mut self) -> String {
        self.next().0
    }

    /// From now on nothing is waited for longer than that.
    pub fn wait_at_most(&self, time: Duration) {
        self.lines.get_ref().set_read_timeout(Some(time)).unwrap();
    }

    /// The next line, as it is.
    pub fn next_line(&mut self) -> String {
        self.line()
    }

    /// Whether the other side has ended the stream.
    pub fn is_over(&mut self) -> bool {
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).is_ok()
    }
}
