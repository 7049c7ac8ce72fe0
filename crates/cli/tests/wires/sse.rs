//! HTTP and Server-Sent Events, parsed as the HTML standard prescribes.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::fixture::TransportHub;
use crate::transport::{CloseSignal, ListenerConnection, ReceivedMessage, Reconnection, classify};
use testing::http::TestClient;

pub(crate) struct SseListener {
    client: TestClient,
    token: String,
    address: String,
    subscription: String,
    stream: Option<SseParser>,
    status: u16,
}

impl SseListener {
    pub(crate) fn new(address: &str, token: &str) -> Self {
        let client = TestClient::new(address);
        Self {
            client: if token.is_empty() { client } else { client.with_bearer(token) },
            token: token.to_owned(),
            address: address.to_owned(),
            subscription: String::new(),
            stream: None,
            status: 0,
        }
    }

    /// Opens the event stream. With an event id, the stream continues after that event.
    fn open_stream(&mut self, last_event_id: Option<&str>) {
        let resume_header = last_event_id.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        let bearer = format!("Authorization: Bearer {}\r\n", self.token);
        let mut stream = self.client.connect();
        let request = format!(
            "GET /aaep/v1/events?subscription_id={} HTTP/1.1\r\nHost: {}\r\n{bearer}{resume_header}Accept: text/event-stream\r\nCache-Control: no-cache\r\n\r\n",
            self.subscription, self.address
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(reader.read_line(&mut head).unwrap(), 0, "incomplete response head: {head}");
        }
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        assert!(head.contains("\r\nContent-Type: text/event-stream\r\n"), "{head}");
        self.stream = Some(SseParser::new(reader));
    }

    /// Returns the `Last-Event-ID` that `EventSource` would send.
    fn last_event_id(&self) -> String {
        self.stream.as_ref().map(|stream| stream.last_event_id.clone()).unwrap_or_default()
    }

    /// Opens the stream of a subscription that another connection requested.
    pub(crate) fn take_over(&mut self, subscription: &str) {
        subscription.clone_into(&mut self.subscription);
        self.open_stream(None);
    }

    /// Opens the stream of another connection's subscription after this event.
    pub(crate) fn resume(&mut self, subscription: &str, last_event_id: &str) {
        subscription.clone_into(&mut self.subscription);
        self.open_stream(Some(last_event_id));
    }
}

impl ListenerConnection for SseListener {
    fn subscribe(&mut self, request: &str) -> Value {
        let response = self.client.post("/aaep/v1/subscriptions", request);
        self.status = response.status;
        let json: Value = serde_json::from_str(&response.body).unwrap_or_else(|_| panic!("{response:?}"));
        if response.status == 201 {
            json["subscription_id"].as_str().unwrap().clone_into(&mut self.subscription);
            let location = format!("\r\nLocation: /aaep/v1/events?subscription_id={}\r\n", self.subscription);
            assert!(format!("{}\r\n", response.head).contains(&location), "{}", response.head);
            self.open_stream(None);
        }
        json
    }

    fn send(&mut self, message: &str) {
        let response = self.client.post("/aaep/v1/replies", message);
        assert_eq!((response.status, response.body.as_str()), (204, ""), "C-D1: {message}");
    }

    fn request(&mut self, message: &str) -> Value {
        let response = self.client.post("/aaep/v1/replies", message);
        self.status = response.status;
        serde_json::from_str(&response.body).unwrap_or_else(|_| panic!("{response:?}"))
    }

    fn next_incoming(&mut self) -> ReceivedMessage {
        let Some(stream) = &mut self.stream else {
            return ReceivedMessage::End(CloseSignal::Status(self.status));
        };
        match stream.next() {
            Some(SseBlock::Comment) => ReceivedMessage::Heartbeat,
            Some(SseBlock::Event { name, data }) => {
                let incoming = classify(serde_json::from_str(&data).unwrap());
                let expected =
                    if matches!(incoming, ReceivedMessage::Event(_)) { "aaep.event" } else { "aaep.message" };
                assert_eq!(name, expected, "{data}");
                incoming
            }
            None => ReceivedMessage::End(CloseSignal::End),
        }
    }

    fn close_signal(&mut self) -> CloseSignal {
        loop {
            match self.next_incoming() {
                ReceivedMessage::End(signal) => return signal,
                ReceivedMessage::Heartbeat => {}
                other => panic!("expected the end, got {other:?}"),
            }
        }
    }

    fn wait_for_heartbeat(&mut self) -> bool {
        assert!(matches!(self.next_incoming(), ReceivedMessage::Heartbeat), "expected a comment");
        true
    }

    fn reconnect(&mut self, hub: &mut TransportHub, _: &str) -> Reconnection {
        let last = self.last_event_id();
        let client = TestClient::new(&hub.address);
        self.client = if self.token.is_empty() { client } else { client.with_bearer(&self.token) };
        hub.address.clone_into(&mut self.address);
        self.open_stream((!last.is_empty()).then_some(last.as_str()));
        Reconnection::Resumed
    }

    fn drop_connection(&mut self) -> bool {
        if let Some(stream) = &mut self.stream {
            stream.reader.get_ref().shutdown(std::net::Shutdown::Both).unwrap();
        }
        true
    }
}

/// A parser for event streams (HTML, 9.2.6).
struct SseParser {
    reader: BufReader<TcpStream>,
    /// Whether the last line ended in a carriage return. A line feed right after it belongs to the same line end.
    ended_in_carriage_return: bool,
    has_read_line: bool,
    data: String,
    kind: String,
    /// The standard's "last event ID buffer": the id of the event that is being read.
    id: String,
    /// The standard's "last event ID string": the id to resume after.
    last_event_id: String,
}

enum SseBlock {
    Event {
        name: String,
        data: String,
    },
    /// A heartbeat. It is not dispatched as an event.
    Comment,
}

impl SseParser {
    fn new(reader: BufReader<TcpStream>) -> Self {
        let empty = String::new;
        Self {
            reader,
            ended_in_carriage_return: false,
            has_read_line: false,
            data: empty(),
            kind: empty(),
            id: empty(),
            last_event_id: empty(),
        }
    }

    /// Returns the next event or comment. At the end it returns `None` and discards an incomplete event.
    fn next(&mut self) -> Option<SseBlock> {
        loop {
            let line = self.read_line()?;
            if line.is_empty() {
                // The id is updated even if no event is dispatched.
                self.last_event_id.clone_from(&self.id);
                let (mut data, kind) = (std::mem::take(&mut self.data), std::mem::take(&mut self.kind));
                if data.is_empty() {
                    continue;
                }
                if data.ends_with('\n') {
                    data.pop();
                }
                let name = if kind.is_empty() { "message".to_owned() } else { kind };
                return Some(SseBlock::Event { name, data });
            }
            if line.starts_with(':') {
                return Some(SseBlock::Comment);
            }
            let (field, value) = line.split_once(':').unwrap_or((&line, ""));
            self.apply_field(field, value.strip_prefix(' ').unwrap_or(value));
        }
    }

    fn apply_field(&mut self, field: &str, value: &str) {
        match field {
            "event" => value.clone_into(&mut self.kind),
            "data" => {
                self.data += value;
                self.data.push('\n');
            }
            "id" if !value.contains('\0') => value.clone_into(&mut self.id),
            // `retry` sets a reconnection time, which these tests do not use. Other fields are ignored.
            _ => {}
        }
    }

    /// Reads the next line, which ends in LF, CR or CRLF. Returns `None` for an incomplete line.
    fn read_line(&mut self) -> Option<String> {
        let mut bytes = Vec::new();
        loop {
            let buffer = match self.reader.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("cannot read the event stream: {error}"),
            };
            let first = *buffer.first()?;
            if std::mem::take(&mut self.ended_in_carriage_return) && first == b'\n' {
                self.reader.consume(1);
                continue;
            }
            if let Some(at) = buffer.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
                self.ended_in_carriage_return = buffer[at] == b'\r';
                bytes.extend_from_slice(&buffer[..at]);
                self.reader.consume(at + 1);
                break;
            }
            bytes.extend_from_slice(buffer);
            let length = buffer.len();
            self.reader.consume(length);
        }
        let line = String::from_utf8_lossy(&bytes);
        let line = if self.has_read_line { &line } else { line.strip_prefix('\u{feff}').unwrap_or(&line) };
        self.has_read_line = true;
        Some(line.to_owned())
    }
}
