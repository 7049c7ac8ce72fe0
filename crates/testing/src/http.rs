//! A simple HTTP client for agents and listeners, and a reader for event streams.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::messages;

/// How long a test waits for something that must happen. The limit is generous, because the machine may be busy.
pub const TIMEOUT: Duration = Duration::from_mins(1);

/// A response from the hub.
#[derive(Debug)]
pub struct TestResponse {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl TestResponse {
    /// Returns the JSON body.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    /// Returns a string member of the JSON body.
    pub fn json_str(&self, name: &str) -> String {
        self.json()[name].as_str().unwrap_or_else(|| panic!("no {name} in {self:?}")).to_owned()
    }
}

/// A client that sends each request on a new connection.
#[derive(Clone)]
pub struct TestClient {
    address: String,
    headers: String,
}

impl TestClient {
    pub fn new(address: &str) -> Self {
        Self { address: address.to_owned(), headers: String::new() }
    }

    #[must_use]
    pub fn with_header(&self, header: &str) -> Self {
        Self { address: self.address.clone(), headers: format!("{}{header}\r\n", self.headers) }
    }

    #[must_use]
    pub fn with_bearer(&self, token: &str) -> Self {
        self.with_header(&format!("Authorization: Bearer {token}"))
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream
    }

    /// Sends these bytes unchanged, and reads until the server closes the connection.
    pub fn send_raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        let _ = stream.write_all(bytes);
        let mut response = Vec::new();
        let _ = stream.read_to_end(&mut response);
        String::from_utf8_lossy(&response).into_owned()
    }

    pub fn send(&self, method: &str, path: &str, body: &str) -> TestResponse {
        self.try_send(method, path, body).unwrap_or_else(|| panic!("no response to {method} {path}"))
    }

    /// Like [`Self::send`], for a hub that may have stopped.
    pub fn try_send(&self, method: &str, path: &str, body: &str) -> Option<TestResponse> {
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
        // The hub may reject a request and close the connection before the request is completely written.
        let _ = stream.write_all(request.as_bytes());
        let mut response = Vec::new();
        let _ = stream.read_to_end(&mut response);
        let text = String::from_utf8_lossy(&response);
        let (head, body) = text.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok());
        // A truncated response counts as no response.
        (length.unwrap_or(0) == body.len()).then(|| TestResponse {
            status,
            head: head.to_owned(),
            body: body.to_owned(),
        })
    }

    pub fn get(&self, path: &str) -> TestResponse {
        self.send("GET", path, "")
    }

    pub fn post(&self, path: &str, body: &str) -> TestResponse {
        self.send("POST", path, body)
    }

    pub fn subscribe(&self, capabilities: &str) -> String {
        let request = messages::subscription_request(capabilities);
        let response = self.post("/aaep/v1/subscriptions", &request);
        assert_eq!(response.status, 201, "{response:?}");
        let id = response.json_str("subscription_id");
        assert!(response.head.contains(&format!("Location: /aaep/v1/events?subscription_id={id}")));
        id
    }

    pub fn open_event_stream(&self, subscription: &str, last_event_id: Option<&str>) -> EventStream {
        let last_event_id = last_event_id.map(|id| format!("Last-Event-ID: {id}")).unwrap_or_default();
        let client = if last_event_id.is_empty() { self.clone() } else { self.with_header(&last_event_id) };
        client.open_stream(&format!("/aaep/v1/events?subscription_id={subscription}"))
    }

    /// Opens the event stream at a path and reads its response head.
    pub fn open_stream(&self, path: &str) -> EventStream {
        let mut stream = self.connect();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\n{}Accept: text/event-stream\r\n\r\n",
            self.address, self.headers
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut events = EventStream { reader: BufReader::new(stream) };
        let mut head = String::new();
        loop {
            let line = events.read_line();
            if line.is_empty() {
                assert!(head.starts_with("HTTP/1.1 200"), "{head}");
                return events;
            }
            head += &line;
        }
    }

    pub fn start_session(&self) -> String {
        let body = r#"{"summary_normal":"Moving money.","localization_hints":{"primary_language":"en"}}"#;
        let response = self.post("/agent/v1/sessions", body);
        assert_eq!(response.status, 201, "{response:?}");
        response.json_str("session_id")
    }

    pub fn ask_confirmation(&self, session: &str) -> String {
        let response =
            self.post(&format!("/agent/v1/sessions/{session}/confirmations"), messages::CONFIRMATION_BODY);
        assert_eq!(response.status, 201, "{response:?}");
        response.json_str("reply_token")
    }

    pub fn reply(&self, subscription: &str, token: &str, decision: &str) -> TestResponse {
        self.try_reply(subscription, token, decision).expect("a response")
    }

    pub fn try_reply(&self, subscription: &str, token: &str, decision: &str) -> Option<TestResponse> {
        let reply = messages::confirmation_reply(subscription, token, decision);
        self.try_send("POST", "/aaep/v1/replies", &reply)
    }
}

/// The events of one subscription.
pub struct EventStream {
    reader: BufReader<TcpStream>,
}

impl EventStream {
    fn read_line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.reader.read_line(&mut line).unwrap() > 0, "the stream has ended");
        line.trim_end_matches(['\r', '\n']).to_owned()
    }

    /// Returns the next event: its type without the common prefix, its id, and its JSON.
    pub fn next(&mut self) -> (String, String, serde_json::Value) {
        let mut id = String::new();
        let deadline = Instant::now() + 2 * TIMEOUT;
        loop {
            let line = self.read_line();
            assert!(Instant::now() < deadline, "nothing but heartbeats");
            if let Some(event_id) = line.strip_prefix("id: ") {
                event_id.clone_into(&mut id);
            } else if let Some(data) = line.strip_prefix("data: ") {
                let event: serde_json::Value = serde_json::from_str(data).unwrap();
                let event_type = event["type"].as_str().unwrap().replace("aaep:agent.", "");
                return (event_type, id, event);
            }
        }
    }

    pub fn next_type(&mut self) -> String {
        self.next().0
    }

    /// Sets the timeout of all further reads.
    pub fn set_read_timeout(&self, time: Duration) {
        self.reader.get_ref().set_read_timeout(Some(time)).unwrap();
    }

    /// Returns the next line, without its line ending.
    pub fn next_line(&mut self) -> String {
        self.read_line()
    }

    /// Returns the next line, or `None` if the stream has ended.
    pub fn try_next_line(&mut self) -> std::io::Result<Option<String>> {
        let mut line = String::new();
        let is_end = self.reader.read_line(&mut line)? == 0;
        Ok((!is_end).then(|| line.trim_end_matches(['\r', '\n']).to_owned()))
    }

    /// Reads the rest of the stream. Returns whether the server has closed it within the read timeout.
    pub fn is_closed(&mut self) -> bool {
        let mut remaining = String::new();
        self.reader.read_to_string(&mut remaining).is_ok()
    }
}
