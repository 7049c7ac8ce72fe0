//! An HTTP client with one connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// A persistent connection.
#[derive(Debug)]
pub struct KeepAliveClient {
    stream: BufReader<TcpStream>,
    address: String,
}

impl KeepAliveClient {
    /// Connects to this host and port.
    pub fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream: BufReader::new(stream), address: address.to_owned() }
    }

    /// Returns the bytes of a request.
    pub fn request(address: &str, method: &str, path: &str, body: &str) -> Vec<u8> {
        let content_type = if body.contains('\n') { "application/x-ndjson" } else { "application/json" };
        let length = body.len();
        format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n{body}")
            .into_bytes()
    }

    /// Sends a request without waiting for the response.
    pub fn send(&mut self, request: &[u8]) {
        self.stream.get_mut().write_all(request).unwrap();
    }

    /// Reads a response, which must be successful, and returns its body.
    pub fn read_response(&mut self) -> String {
        let (mut length, mut line, mut status_line) = (0, String::new(), String::new());
        loop {
            line.clear();
            assert!(
                self.stream.read_line(&mut line).unwrap() > 0,
                "the connection was closed after {status_line:?}"
            );
            if status_line.is_empty() {
                status_line.clone_from(&line);
            }
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        let body = String::from_utf8(body).unwrap();
        assert!(status_line.starts_with("HTTP/1.1 20"), "{status_line} {body}");
        body
    }

    /// Sends a POST request, waits for the response and returns its body.
    pub fn post(&mut self, path: &str, body: &str) -> String {
        let request = Self::request(&self.address, "POST", path, body);
        self.send(&request);
        self.read_response()
    }

    /// Returns the socket, for callers that read responses themselves.
    pub fn socket(&self) -> &TcpStream {
        self.stream.get_ref()
    }
}

/// Returns a string member of a flat JSON object. The string must not have escapes.
pub(super) fn json_member(json: &str, name: &str) -> String {
    let key = format!("\"{name}\":\"");
    let (_, rest) = json.split_once(&key).unwrap_or_else(|| panic!("no {name} in {json}"));
    rest.split('"').next().unwrap_or_default().to_owned()
}
