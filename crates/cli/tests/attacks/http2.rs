//! HTTP/2 frames and gRPC messages, written by hand, because an attacker need not follow the protocol.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use testing::http::TIMEOUT;

pub(super) const SUBSCRIBE: &str = "/aaep.v1.AaepService/Subscribe";
pub(super) const GET_MANIFEST: &str = "/aaep.v1.AaepService/GetManifest";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
/// Maximum size of a frame, unless both sides agree on more.
const MAX_FRAME_BYTES: usize = 16_384;

struct Http2Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

/// How the hub answers a call.
#[derive(Debug, PartialEq)]
pub(super) enum CallOutcome {
    /// With this message.
    Message(String),
    /// With an error, and without a message.
    Refused,
}

/// A connection to the gRPC port.
pub(super) struct RawHttp2 {
    stream: TcpStream,
    next_call: u32,
}

impl RawHttp2 {
    /// Connects and starts HTTP/2.
    pub(super) fn connect(address: &str) -> Self {
        Self::start(Self::connect_silently(address))
    }

    /// Connects and sends nothing.
    pub(super) fn connect_silently(address: &str) -> TcpStream {
        Self::connect_from("127.0.0.1", address)
    }

    pub(super) fn connect_from(own: &str, address: &str) -> TcpStream {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::new(own.parse().unwrap(), 0).into()).unwrap();
        socket.connect(&address.parse::<SocketAddr>().unwrap().into()).unwrap();
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.set_write_timeout(Some(TIMEOUT)).unwrap();
        stream
    }

    /// Wraps a connection on which the client has sent nothing.
    pub(super) fn from_silent(stream: TcpStream) -> Self {
        Self { stream, next_call: 1 }
    }

    /// Starts HTTP/2 on a connection.
    pub(super) fn start(stream: TcpStream) -> Self {
        let mut connection = Self::from_silent(stream);
        let _ = connection.stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        connection.send_frame(SETTINGS, 0, 0, &[]);
        connection
    }

    /// Starts a call with these headers. Returns the number of its stream.
    pub(super) fn call(&mut self, path: &str, headers: &[(&str, &str)]) -> u32 {
        self.send_headers(path, headers, END_HEADERS)
    }

    /// Starts a call whose headers do not end.
    pub(super) fn call_without_end_of_headers(&mut self, path: &str, headers: &[(&str, &str)]) -> u32 {
        self.send_headers(path, headers, 0)
    }

    fn send_headers(&mut self, path: &str, headers: &[(&str, &str)], flags: u8) -> u32 {
        let call = self.next_call;
        self.next_call += 2;
        let standard = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path),
            (":authority", "localhost"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        ];
        let block: Vec<u8> =
            standard.iter().chain(headers).flat_map(|(name, value)| literal(name, value)).collect();
        self.send_frame(HEADERS, flags, call, &block);
        call
    }

    /// Continues headers that have not ended.
    pub(super) fn send_more_headers(&mut self, call: u32, name: &str, value: &str) {
        self.send_frame(CONTINUATION, 0, call, &literal(name, value));
    }

    /// Sends bytes of a call's body.
    pub(super) fn send_data(&mut self, call: u32, bytes: &[u8]) {
        for part in bytes.chunks(MAX_FRAME_BYTES) {
            self.send_frame(DATA, 0, call, part);
        }
    }

    pub(super) fn send_message(&mut self, call: u32, json: &str) {
        self.send_data(call, &grpc_message(json));
    }

    pub(super) fn reset(&mut self, call: u32) {
        self.send_frame(RST_STREAM, 0, call, &8_u32.to_be_bytes());
    }

    /// The hub may have closed the connection, which the next read shows.
    fn send_frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
        let _ = self.stream.write_all(&[&head, payload].concat());
    }

    /// Returns the next frame other than answers to this client's own settings and pings. `None` if the hub closed the
    /// connection.
    fn next_frame(&mut self) -> Option<Http2Frame> {
        loop {
            let mut head = [0; 9];
            read_or_end(&mut self.stream, &mut head)?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; usize::try_from(length).unwrap()];
            read_or_end(&mut self.stream, &mut payload)?;
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & 0x7fff_ffff;
            let frame = Http2Frame { kind: head[3], flags: head[4], stream, payload };
            match frame.kind {
                SETTINGS if frame.flags & ACK == 0 => self.send_frame(SETTINGS, ACK, 0, &[]),
                PING if frame.flags & ACK == 0 => self.send_frame(PING, ACK, 0, &frame.payload),
                _ => return Some(frame),
            }
        }
    }

    /// Returns how the hub answers a call.
    pub(super) fn outcome(&mut self, call: u32) -> CallOutcome {
        loop {
            let frame =
                self.next_frame().expect("the hub should answer the call before it closes the connection");
            assert!(frame.kind != GOAWAY, "the hub ends the connection instead of answering the call");
            if frame.stream != call {
                continue;
            }
            match frame.kind {
                DATA if !frame.payload.is_empty() => {
                    return CallOutcome::Message(String::from_utf8_lossy(&frame.payload).into_owned());
                }
                RST_STREAM => return CallOutcome::Refused,
                HEADERS if frame.flags & END_STREAM != 0 => return CallOutcome::Refused,
                _ => {}
            }
        }
    }

    /// Whether the hub still answers on this connection.
    pub(super) fn is_open(&mut self) -> bool {
        const QUESTION: &[u8] = b"question";
        self.send_frame(PING, 0, 0, QUESTION);
        loop {
            match self.next_frame() {
                Some(frame) if frame.kind == PING && frame.payload == QUESTION => return true,
                Some(_) => {}
                None => return false,
            }
        }
    }

    /// Waits until the hub closes the connection.
    pub(super) fn wait_until_closed(&mut self) {
        while self.next_frame().is_some() {}
    }
}

/// Fills the buffer. Returns `None` if the peer has closed the connection.
fn read_or_end(stream: &mut TcpStream, buffer: &mut [u8]) -> Option<()> {
    match stream.read_exact(buffer) {
        Ok(()) => Some(()),
        Err(error) => {
            let is_timeout =
                matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut);
            assert!(!is_timeout, "the hub neither answers nor closes the connection");
            None
        }
    }
}

/// Returns a header as a literal, without compression.
fn literal(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| [hpack_length(text.len()), text.as_bytes().to_vec()].concat();
    [vec![0], text(name), text(value)].concat()
}

/// Returns a length with a prefix of seven bits (RFC 7541, section 5.1).
fn hpack_length(length: usize) -> Vec<u8> {
    match u8::try_from(length) {
        Ok(length @ 0..127) => vec![length],
        _ => [vec![127], varint(length - 127)].concat(),
    }
}

/// Returns a number in groups of seven bits, the lowest first.
fn varint(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let group = u8::try_from(number & 0x7f).unwrap();
        number >>= 7;
        if number == 0 {
            bytes.push(group);
            return bytes;
        }
        bytes.push(group | 0x80);
    }
}

/// Returns an `AaepMessage` with this JSON, and its length before it.
fn grpc_message(json: &str) -> Vec<u8> {
    let message = [vec![0x0a], varint(json.len()), json.as_bytes().to_vec()].concat();
    [message_prefix(u32::try_from(message.len()).unwrap()), message].concat()
}

/// Returns the bytes that announce a message of this length.
pub(super) fn message_prefix(length: u32) -> Vec<u8> {
    [&[0], &length.to_be_bytes()[..]].concat()
}
