//! A client for a hub's Unix socket. Messages are framed as lines or with a length prefix.

use std::io::{BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::Value;

use crate::http::TIMEOUT;
use crate::messages::{REPLY_CAPABILITIES, short_type, subscription_request};

pub struct UnixSocketClient {
    stream: BufReader<UnixStream>,
    uses_lines: bool,
}

impl UnixSocketClient {
    /// Connects to a hub. If `uses_lines` is true, each message is a line. Otherwise each message has a length prefix.
    pub fn new(path: &Path, uses_lines: bool) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        Self { stream: BufReader::new(stream), uses_lines }
    }

    pub fn stream(&mut self) -> &mut UnixStream {
        self.stream.get_mut()
    }

    pub fn send(&mut self, text: &str) {
        let frame = if self.uses_lines {
            format!("{text}\n").into_bytes()
        } else {
            [&u32::try_from(text.len()).unwrap().to_be_bytes(), text.as_bytes()].concat()
        };
        // A write error is ignored. If the hub has rejected the message, the next read shows it.
        let _ = self.stream().write_all(&frame);
    }

    /// Returns the next message, or `None` after the hub has closed the connection.
    pub fn try_next(&mut self) -> Option<Value> {
        let first_byte = self.read_byte()?;
        let mut bytes = Vec::new();
        if self.uses_lines {
            bytes.push(first_byte);
            while bytes.last() != Some(&b'\n') {
                bytes.push(self.read_byte().expect("a complete line"));
            }
        } else {
            let mut length = [first_byte, 0, 0, 0];
            self.stream.read_exact(&mut length[1..]).unwrap();
            bytes.resize(u32::from_be_bytes(length) as usize, 0);
            self.stream.read_exact(&mut bytes).unwrap();
        }
        Some(serde_json::from_slice(&bytes).unwrap())
    }

    pub fn next(&mut self) -> Value {
        self.try_next().expect("a message")
    }

    pub fn is_closed(&mut self) -> bool {
        self.read_byte().is_none()
    }

    pub fn subscribe(&mut self) -> String {
        self.send(&subscription_request(REPLY_CAPABILITIES));
        let accepted = self.next();
        assert_eq!(short_type(&accepted), "subscription.accepted", "{accepted}");
        accepted["subscription_id"].as_str().unwrap().to_owned()
    }

    fn read_byte(&mut self) -> Option<u8> {
        let mut byte = [0];
        match self.stream.read(&mut byte) {
            Ok(0) => None,
            Ok(_) => Some(byte[0]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => None,
            Err(error) => panic!("cannot read: {error}"),
        }
    }
}
