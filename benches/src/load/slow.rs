//! A listener that reads so many events a second, with the buffers that the system gives it.

use std::io::{BufRead, BufReader};
use std::net::{Shutdown, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use super::ears::open;
use super::event::STAMP;
use super::{ASKED, FLOOD, Hub, Server, micros};

/// A slow listener, until it is ended.
#[derive(Debug)]
pub struct Slow {
    socket: TcpStream,
    thread: JoinHandle<Read>,
}

/// What it has read.
#[derive(Clone, Debug, Default)]
pub struct Read {
    /// Events.
    pub events: u64,
    /// The stamps of questions and when they were read.
    pub asked: Vec<(u64, u64)>,
    /// How old the oldest event was when it was read, in milliseconds.
    pub oldest: f64,
    /// Whether the server ended the stream.
    pub ended: bool,
}

impl Slow {
    /// Listens on a subscription.
    pub fn listen(hub: &Hub, subscription: &str, rate: u64) -> Self {
        let socket = open(hub.address(), &Hub::stream_of(subscription));
        let stream = socket.try_clone().unwrap();
        let thread = std::thread::spawn(move || read(stream, rate));
        Self { socket, thread }
    }

    /// Hangs up and tells what was read.
    pub fn end(self) -> Read {
        let ended = self.thread.is_finished();
        let _ = self.socket.shutdown(Shutdown::Both);
        Read { ended, ..self.thread.join().unwrap() }
    }
}

fn read(stream: TcpStream, rate: u64) -> Read {
    let (mut told, mut oldest) = (Read::default(), 0);
    let begun = micros();
    let mut next = begun;
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        let Some(event) = line.strip_prefix("data: ") else { continue };
        told.events += 1;
        let now = micros();
        if let Some(stamp) = stamp(event, FLOOD) {
            oldest = oldest.max(now.saturating_sub(stamp));
        }
        told.asked.extend(stamp(event, ASKED).map(|stamp| (stamp, now)));
        // An event takes its time; what was not used while there was nothing to read is not saved up.
        next = next.max(now) + 1_000_000 / rate;
        std::thread::sleep(Duration::from_micros(next.saturating_sub(micros())));
    }
    told.oldest = oldest as f64 / 1e3;
    told
}

fn stamp(event: &str, before: &str) -> Option<u64> {
    event.split_once(before)?.1.get(..STAMP)?.parse().ok()
}
