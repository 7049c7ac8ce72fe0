//! One connection that asks.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// A connection that is kept.
#[derive(Debug)]
pub struct Agent {
    stream: BufReader<TcpStream>,
    address: String,
}

impl Agent {
    /// Connects.
    pub fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream: BufReader::new(stream), address: address.to_owned() }
    }

    /// The bytes of a request.
    pub fn request(address: &str, method: &str, path: &str, body: &str) -> Vec<u8> {
        let kind = if body.contains('\n') { "application/x-ndjson" } else { "application/json" };
        let length = body.len();
        format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}")
            .into_bytes()
    }

    /// Sends, and does not wait for the answer.
    pub fn send(&mut self, request: &[u8]) {
        self.stream.get_mut().write_all(request).unwrap();
    }

    /// Reads an answer, which must be good, and returns its body.
    pub fn answer(&mut self) -> String {
        let (mut length, mut line, mut first) = (0, String::new(), String::new());
        loop {
            line.clear();
            assert!(
                self.stream.read_line(&mut line).unwrap() > 0,
                "the connection was ended after {first:?}"
            );
            if first.is_empty() {
                first.clone_from(&line);
            }
            if let Some(found) = line.strip_prefix("Content-Length: ") {
                length = found.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        let body = String::from_utf8(body).unwrap();
        assert!(first.starts_with("HTTP/1.1 20"), "{first} {body}");
        body
    }

    /// Posts, and waits for the answer.
    pub fn post(&mut self, path: &str, body: &str) -> String {
        let request = Self::request(&self.address, "POST", path, body);
        self.send(&request);
        self.answer()
    }

    /// The socket, for who reads it elsewhere.
    pub fn socket(&self) -> &TcpStream {
        self.stream.get_ref()
    }
}

/// A member of a flat JSON object that is a text without escapes.
pub(super) fn member(json: &str, name: &str) -> String {
    let key = format!("\"{name}\":\"");
    let (_, rest) = json.split_once(&key).unwrap_or_else(|| panic!("no {name} in {json}"));
    rest.split('"').next().unwrap_or_default().to_owned()
}
