//! HTTP and Server-Sent Events, read as the HTML standard says.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::stage::Hub;
use crate::wire::{Back, Heard, Sign, Wire, sorted};
use testing::http::Client;

pub(crate) struct Listener {
    client: Client,
    token: String,
    address: String,
    subscription: String,
    stream: Option<EventStream>,
    status: u16,
}

impl Listener {
    pub(crate) fn new(address: &str, token: &str) -> Self {
        let client = Client::of(address);
        Self {
            client: if token.is_empty() { client } else { client.bearer(token) },
            token: token.to_owned(),
            address: address.to_owned(),
            subscription: String::new(),
            stream: None,
            status: 0,
        }
    }

    /// Begins to listen after that event.
    fn listen(&mut self, last: Option<&str>) {
        let last = last.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        let bearer = format!("Authorization: Bearer {}\r\n", self.token);
        let mut stream = self.client.connect();
        let request = format!(
            "GET /aaep/v1/events?subscription_id={} HTTP/1.1\r\nHost: {}\r\n{bearer}{last}Accept: text/event-stream\r\nCache-Control: no-cache\r\n\r\n",
            self.subscription, self.address
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(reader.read_line(&mut head).unwrap(), 0, "no head: {head}");
        }
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        assert!(head.contains("\r\nContent-Type: text/event-stream\r\n"), "{head}");
        self.stream = Some(EventStream::new(reader));
    }

    /// What `EventSource` would send as `Last-Event-ID`.
    fn last_event_id(&self) -> String {
        self.stream.as_ref().map(|stream| stream.last_event_id.clone()).unwrap_or_default()
    }

    /// Listens on a subscription that another connection has asked for.
    pub(crate) fn take_over(&mut self, subscription: &str) {
        subscription.clone_into(&mut self.subscription);
        self.listen(None);
    }

    /// Likewise, after that event.
    pub(crate) fn resume(&mut self, subscription: &str, last: &str) {
        subscription.clone_into(&mut self.subscription);
        self.listen(Some(last));
    }
}

impl Wire for Listener {
    fn subscribe(&mut self, request: &str) -> Value {
        let answer = self.client.post("/aaep/v1/subscriptions", request);
        self.status = answer.status;
        let json: Value = serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("{answer:?}"));
        if answer.status == 201 {
            json["subscription_id"].as_str().unwrap().clone_into(&mut self.subscription);
            let location = format!("\r\nLocation: /aaep/v1/events?subscription_id={}\r\n", self.subscription);
            assert!(format!("{}\r\n", answer.head).contains(&location), "{}", answer.head);
            self.listen(None);
        }
        json
    }

    fn say(&mut self, message: &str) {
        let answer = self.client.post("/aaep/v1/replies", message);
        assert_eq!((answer.status, answer.body.as_str()), (204, ""), "C-D1: {message}");
    }

    fn ask(&mut self, message: &str) -> Value {
        let answer = self.client.post("/aaep/v1/replies", message);
        self.status = answer.status;
        serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("{answer:?}"))
    }

    fn next(&mut self) -> Heard {
        let Some(stream) = &mut self.stream else { return Heard::End(Sign::Status(self.status)) };
        match stream.next() {
            Some(Block::Comment) => Heard::Alive,
            Some(Block::Event { name, data }) => {
                let heard = sorted(serde_json::from_str(&data).unwrap());
                let expected = if matches!(heard, Heard::Event(_)) { "aaep.event" } else { "aaep.message" };
                assert_eq!(name, expected, "{data}");
                heard
            }
            None => Heard::End(Sign::End),
        }
    }

    fn sign(&mut self) -> Sign {
        loop {
            match self.next() {
                Heard::End(sign) => return sign,
                Heard::Alive => {}
                other => panic!("not yet over: {other:?}"),
            }
        }
    }

    fn is_alive(&mut self) -> bool {
        assert!(matches!(self.next(), Heard::Alive), "a comment");
        true
    }

    fn come_back(&mut self, hub: &mut Hub, _: &str) -> Back {
        let last = self.last_event_id();
        let client = Client::of(&hub.address);
        self.client = if self.token.is_empty() { client } else { client.bearer(&self.token) };
        hub.address.clone_into(&mut self.address);
        self.listen((!last.is_empty()).then_some(last.as_str()));
        Back::Resumed
    }

    fn lose(&mut self) -> bool {
        if let Some(stream) = &mut self.stream {
            stream.reader.get_ref().shutdown(std::net::Shutdown::Both).unwrap();
        }
        true
    }
}

/// The interpretation of an event stream (HTML, 9.2.6), field by field.
struct EventStream {
    reader: BufReader<TcpStream>,
    /// The last line ended in a carriage return; a line feed right after it belongs to that.
    after_return: bool,
    begun: bool,
    data: String,
    kind: String,
    /// The last event ID buffer.
    id: String,
    /// The last event ID string of the event source.
    last_event_id: String,
}

enum Block {
    Event {
        name: String,
        data: String,
    },
    /// Not dispatched to anybody, but a sign of life.
    Comment,
}

impl EventStream {
    fn new(reader: BufReader<TcpStream>) -> Self {
        let empty = String::new;
        Self {
            reader,
            after_return: false,
            begun: false,
            data: empty(),
            kind: empty(),
            id: empty(),
            last_event_id: empty(),
        }
    }

    /// The next event or comment; none at the end, where what was not finished is thrown away.
    fn next(&mut self) -> Option<Block> {
        loop {
            let line = self.line()?;
            if line.is_empty() {
                // Also where no event comes of it.
                self.last_event_id.clone_from(&self.id);
                let (mut data, kind) = (std::mem::take(&mut self.data), std::mem::take(&mut self.kind));
                if data.is_empty() {
                    continue;
                }
                if data.ends_with('\n') {
                    data.pop();
                }
                let name = if kind.is_empty() { "message".to_owned() } else { kind };
                return Some(Block::Event { name, data });
            }
            if line.starts_with(':') {
                return Some(Block::Comment);
            }
            let (field, value) = line.split_once(':').unwrap_or((&line, ""));
            self.field(field, value.strip_prefix(' ').unwrap_or(value));
        }
    }

    fn field(&mut self, field: &str, value: &str) {
        match field {
            "event" => value.clone_into(&mut self.kind),
            "data" => {
                self.data += value;
                self.data.push('\n');
            }
            "id" if !value.contains('\0') => value.clone_into(&mut self.id),
            // "retry" would set a time that is of no use here; whatever else is ignored.
            _ => {}
        }
    }

    /// The next line, which ends in LF, CR or both; none if it does not end.
    fn line(&mut self) -> Option<String> {
        let mut bytes = Vec::new();
        loop {
            let buffer = match self.reader.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("nothing is heard: {error}"),
            };
            let first = *buffer.first()?;
            if std::mem::take(&mut self.after_return) && first == b'\n' {
                self.reader.consume(1);
                continue;
            }
            if let Some(at) = buffer.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
                self.after_return = buffer[at] == b'\r';
                bytes.extend_from_slice(&buffer[..at]);
                self.reader.consume(at + 1);
                break;
            }
            bytes.extend_from_slice(buffer);
            let length = buffer.len();
            self.reader.consume(length);
        }
        let line = String::from_utf8_lossy(&bytes);
        let line = if self.begun { &line } else { line.strip_prefix('\u{feff}').unwrap_or(&line) };
        self.begun = true;
        Some(line.to_owned())
    }
}
