//! A listener that reads a limited number of events per second, with default socket buffers.

use std::io::{BufRead, BufReader};
use std::net::{Shutdown, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use super::event::STAMP_DIGITS;
use super::listener_pool::open_stream;
use super::{BenchHub, EVENT_STAMP_PREFIX, QUESTION_STAMP_PREFIX, Server, elapsed_micros};

/// A slow listener. It reads until it is stopped.
#[derive(Debug)]
pub struct ThrottledListener {
    socket: TcpStream,
    thread: JoinHandle<ThrottledResult>,
}

/// The result of a throttled listener.
#[derive(Clone, Debug, Default)]
pub struct ThrottledResult {
    /// Number of events.
    pub events: u64,
    /// Stamps and read times of questions.
    pub question_arrivals: Vec<(u64, u64)>,
    /// Maximum age of an event when it was read, in milliseconds.
    pub max_age_millis: f64,
    /// Whether the server closed the stream.
    pub was_closed_by_server: bool,
}

impl ThrottledListener {
    /// Reads a subscription's stream at `rate` events per second.
    pub fn listen(hub: &BenchHub, subscription: &str, rate: u64) -> Self {
        let socket = open_stream(hub.address(), &BenchHub::stream_path(subscription));
        let stream = socket.try_clone().unwrap();
        let thread = std::thread::spawn(move || read(stream, rate));
        Self { socket, thread }
    }

    /// Disconnects and returns what was read.
    pub fn stop(self) -> ThrottledResult {
        let was_closed_by_server = self.thread.is_finished();
        let _ = self.socket.shutdown(Shutdown::Both);
        ThrottledResult { was_closed_by_server, ..self.thread.join().unwrap() }
    }
}

fn read(stream: TcpStream, rate: u64) -> ThrottledResult {
    let (mut result, mut max_age) = (ThrottledResult::default(), 0);
    let started = elapsed_micros();
    let mut next = started;
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        let Some(event) = line.strip_prefix("data: ") else { continue };
        result.events += 1;
        let now = elapsed_micros();
        if let Some(stamp) = stamp(event, EVENT_STAMP_PREFIX) {
            max_age = max_age.max(now.saturating_sub(stamp));
        }
        result.question_arrivals.extend(stamp(event, QUESTION_STAMP_PREFIX).map(|stamp| (stamp, now)));
        // Each event takes an equal share of a second. Time without events is not made up for later.
        next = next.max(now) + 1_000_000 / rate;
        std::thread::sleep(Duration::from_micros(next.saturating_sub(elapsed_micros())));
    }
    result.max_age_millis = max_age as f64 / 1e3;
    result
}

fn stamp(event: &str, prefix: &str) -> Option<u64> {
    event.split_once(prefix)?.1.get(..STAMP_DIGITS)?.parse().ok()
}
