//! A Unix socket, in either framing.

use std::collections::VecDeque;
use std::io::{BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::stage::Hub;
use crate::wire::{Back, Heard, Sign, Wire, answer, sorted};

pub(crate) struct Talk {
    stream: BufReader<UnixStream>,
    lines: bool,
    kept: VecDeque<Heard>,
}

impl Talk {
    pub(crate) fn connect(path: &Path, lines: bool) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(2))).unwrap();
        Self { stream: BufReader::new(stream), lines, kept: VecDeque::new() }
    }

    fn read(&mut self) -> Heard {
        let mut bytes = Vec::new();
        let Some(first) = self.byte() else { return Heard::End(Sign::End) };
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
        sorted(serde_json::from_slice(&bytes).unwrap())
    }

    fn byte(&mut self) -> Option<u8> {
        let mut byte = [0];
        match self.stream.read(&mut byte) {
            Ok(0) => None,
            Ok(_) => Some(byte[0]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => None,
            Err(error) => panic!("nothing is heard: {error}"),
        }
    }
}

impl Wire for Talk {
    fn subscribe(&mut self, request: &str) -> Value {
        self.ask(request)
    }

    fn say(&mut self, message: &str) {
        let framed = if self.lines {
            format!("{message}\n").into_bytes()
        } else {
            [&u32::try_from(message.len()).unwrap().to_be_bytes(), message.as_bytes()].concat()
        };
        self.stream.get_mut().write_all(&framed).unwrap();
    }

    fn ask(&mut self, message: &str) -> Value {
        self.say(message);
        let mut kept = std::mem::take(&mut self.kept);
        let answer = answer(&mut kept, || self.read());
        self.kept = kept;
        answer
    }

    fn next(&mut self) -> Heard {
        self.kept.pop_front().unwrap_or_else(|| self.read())
    }

    fn sign(&mut self) -> Sign {
        match self.next() {
            Heard::End(sign) => sign,
            other => panic!("not yet over: {other:?}"),
        }
    }

    fn is_alive(&mut self) -> bool {
        false
    }

    fn come_back(&mut self, hub: &mut Hub, request: &str) -> Back {
        *self = Self::connect(&hub.socket, self.lines);
        let accepted = self.subscribe(request);
        Back::Afresh(accepted["subscription_id"].as_str().unwrap().to_owned())
    }

    fn lose(&mut self) -> bool {
        self.stream.get_ref().shutdown(std::net::Shutdown::Both).unwrap();
        true
    }
}
