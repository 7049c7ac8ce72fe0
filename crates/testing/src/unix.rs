//! A listener on a Unix socket, in either framing.

use std::io::{BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::Value;

use crate::http::TIMEOUT;
use crate::messages::{CAN_REPLY, kind, request};

pub struct UnixClient {
    stream: BufReader<UnixStream>,
    lines: bool,
}

impl UnixClient {
    /// Connects, to speak in lines or with the length before each message.
    pub fn new(path: &Path, lines: bool) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        Self { stream: BufReader::new(stream), lines }
    }

    pub fn stream(&mut self) -> &mut UnixStream {
        self.stream.get_mut()
    }

    pub fn say(&mut self, text: &str) {
        let framed = if self.lines {
            format!("{text}\n").into_bytes()
        } else {
            [&u32::try_from(text.len()).unwrap().to_be_bytes(), text.as_bytes()].concat()
        };
        // Whether the hub reads it to its end is seen by what comes back.
        let _ = self.stream().write_all(&framed);
    }

    /// The next message, or none at the end.
    pub fn try_next(&mut self) -> Option<Value> {
        let first = self.byte()?;
        let mut bytes = Vec::new();
        if self.lines {
            bytes.push(first);
            while bytes.last() != Some(&b'\n') {
                bytes.push(self.byte().expect("a whole line"));
            }
        } else {
            let mut length = [first, 0, 0, 0];
            self.stream.read_exact(&mut length[1..]).unwrap();
            bytes.resize(u32::from_be_bytes(length) as usize, 0);
            self.stream.read_exact(&mut bytes).unwrap();
        }
        Some(serde_json::from_slice(&bytes).unwrap())
    }

    pub fn next(&mut self) -> Value {
        self.try_next().expect("a message")
    }

    pub fn is_over(&mut self) -> bool {
        self.byte().is_none()
    }

    pub fn subscribe(&mut self) -> String {
        self.say(&request(CAN_REPLY));
        let accepted = self.next();
        assert_eq!(kind(&accepted), "subscription.accepted", "{accepted}");
        accepted["subscription_id"].as_str().unwrap().to_owned()
    }

    fn byte(&mut self) -> Option<u8> {
        let mut byte = [0];
        match self.stream.read(&mut byte) {
            Ok(0) => None,
            Ok(_) => Some(byte[0]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => None,
            Err(error) => panic!("nothing is received: {error}"),
        }
    }
}
