//! Fast listeners: many sockets read by one thread, which counts events and measures the latency of those with a stamp.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use memchr::memmem::Finder;

use super::event::STAMP_DIGITS;
use super::{EVENT_STAMP_PREFIX, Histogram, KeepAliveClient, QUESTION_STAMP_PREFIX, Server, elapsed_micros};

/// Connected listeners. Dropping the pool disconnects them.
#[derive(Debug)]
pub struct ListenerPool {
    /// Number of listeners.
    pub count: usize,
    counters: Arc<ListenerCounters>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct ListenerCounters {
    events: AtomicU64,
    ended: AtomicU64,
    /// Latency from an event's stamp to its arrival.
    event_latencies: Mutex<Histogram>,
    /// Stamps and arrival times of questions.
    question_arrivals: Mutex<Vec<(u64, u64)>>,
    stop: AtomicBool,
}

impl ListenerPool {
    /// Connects `count` listeners and reads their streams. `reads_stamps` is whether latencies are
    /// measured; searching for stamps costs the driver some time.
    pub fn connect(server: &impl Server, count: usize, reads_stamps: bool) -> Self {
        let counters = Arc::new(ListenerCounters::default());
        let poll = mio::Poll::new().unwrap();
        let mut client = KeepAliveClient::connect(server.address());
        let mut sockets = Vec::with_capacity(count);
        for token in 0..count {
            let stream = open_stream(server.address(), &server.subscribe_and_get_stream_path(&mut client));
            stream.set_nonblocking(true).unwrap();
            let mut socket = mio::net::TcpStream::from_std(stream);
            poll.registry().register(&mut socket, mio::Token(token), mio::Interest::READABLE).unwrap();
            sockets.push(ListenerSocket { socket, carry: [0; CARRY_BYTES], carry_len: 0, ended: false });
        }
        let thread_counters = counters.clone();
        let thread = std::thread::spawn(move || listen(poll, sockets, &thread_counters, reads_stamps));
        Self { count, counters, thread: Some(thread) }
    }

    /// Returns the number of events that arrived at all listeners together.
    pub fn delivered_events(&self) -> u64 {
        self.counters.events.load(Ordering::Relaxed)
    }

    /// Returns the number of streams that the server closed.
    pub fn ended_streams(&self) -> u64 {
        self.counters.ended.load(Ordering::Relaxed)
    }

    /// Waits until this many events arrived.
    pub fn wait_for_events(&self, events: u64) {
        let started = Instant::now();
        while self.delivered_events() < events {
            std::thread::sleep(Duration::from_micros(100));
            let delivered = self.delivered_events();
            assert!(started.elapsed() < Duration::from_mins(5), "{delivered} of {events} events arrived");
        }
    }

    /// Waits until no more events arrive.
    pub fn wait_until_idle(&self) {
        let mut previous_count = self.delivered_events();
        loop {
            std::thread::sleep(Duration::from_millis(50));
            if self.delivered_events() == previous_count {
                return;
            }
            previous_count = self.delivered_events();
        }
    }

    /// Takes the event latencies since the last call.
    pub fn take_event_latencies(&self) -> Histogram {
        std::mem::take(&mut self.counters.event_latencies.lock().unwrap())
    }

    /// Takes the stamps and arrival times of questions since the last call.
    pub fn take_question_arrivals(&self) -> Vec<(u64, u64)> {
        std::mem::take(&mut self.counters.question_arrivals.lock().unwrap())
    }
}

impl Drop for ListenerPool {
    fn drop(&mut self) {
        self.counters.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Opens a stream and reads exactly the head of its response.
pub(super) fn open_stream(address: &str, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let get = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\r\n");
    stream.write_all(get.as_bytes()).unwrap();
    let mut head = BufReader::with_capacity(1, &stream);
    let mut line = String::new();
    head.read_line(&mut line).unwrap();
    assert!(line.starts_with("HTTP/1.1 200"), "{line}");
    while line != "\r\n" {
        line.clear();
        assert!(head.read_line(&mut line).unwrap() > 0, "the response head is incomplete");
    }
    stream
}

/// How many bytes of the previous read are searched again, because a read may split a stamp.
const CARRY_BYTES: usize = EVENT_STAMP_PREFIX.len() + STAMP_DIGITS - 1;
const DATA: &str = "\ndata: ";

struct ListenerSocket {
    socket: mio::net::TcpStream,
    carry: [u8; CARRY_BYTES],
    carry_len: usize,
    ended: bool,
}

fn listen(
    mut poll: mio::Poll,
    mut sockets: Vec<ListenerSocket>,
    counters: &ListenerCounters,
    reads_stamps: bool,
) {
    let mut events = mio::Events::with_capacity(1024);
    let mut buffer = vec![0; CARRY_BYTES + 256 * 1024];
    let (data_finder, event_finder, question_finder) =
        (Finder::new(DATA), Finder::new(EVENT_STAMP_PREFIX), Finder::new(QUESTION_STAMP_PREFIX));
    while !counters.stop.load(Ordering::Relaxed) {
        let _ = poll.poll(&mut events, Some(Duration::from_millis(100)));
        let (mut event_latencies, mut questions) = (Histogram::default(), Vec::new());
        for ready in &events {
            let socket_state = &mut sockets[ready.token().0];
            while let Some((text, carried)) = socket_state.read(&mut buffer, counters) {
                let count = find_ends(text, &data_finder, DATA.len(), carried).count();
                counters.events.fetch_add(count as u64, Ordering::Relaxed);
                if reads_stamps {
                    let now = elapsed_micros();
                    let times = |finder| {
                        find_ends(text, finder, EVENT_STAMP_PREFIX.len() + STAMP_DIGITS, carried)
                            .filter_map(|end| parse_stamp(text, end))
                    };
                    times(&event_finder).for_each(|stamp| event_latencies.record(now.saturating_sub(stamp)));
                    questions.extend(times(&question_finder).map(|stamp| (stamp, now)));
                }
            }
        }
        if !event_latencies.is_empty() {
            counters.event_latencies.lock().unwrap().add(&event_latencies);
        }
        if !questions.is_empty() {
            counters.question_arrivals.lock().unwrap().append(&mut questions);
        }
    }
}

impl ListenerSocket {
    /// Reads available data. Returns it with the carried bytes in front, and their number.
    fn read<'a>(&mut self, buffer: &'a mut [u8], counters: &ListenerCounters) -> Option<(&'a [u8], usize)> {
        if self.ended {
            return None;
        }
        let carried = self.carry_len;
        buffer[..carried].copy_from_slice(&self.carry[..carried]);
        loop {
            match self.socket.read(&mut buffer[carried..]) {
                Ok(0) => break,
                Ok(new) => {
                    let text = &buffer[..carried + new];
                    self.carry_len = text.len().min(CARRY_BYTES);
                    self.carry[..self.carry_len].copy_from_slice(&text[text.len() - self.carry_len..]);
                    return Some((text, carried));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.ended = true;
        counters.ended.fetch_add(1, Ordering::Relaxed);
        None
    }
}

/// Returns the ends of all complete matches that do not lie entirely in the carried bytes, where they were found before.
fn find_ends(text: &[u8], finder: &Finder<'_>, length: usize, carried: usize) -> impl Iterator<Item = usize> {
    finder.find_iter(text).map(move |at| at + length).filter(move |end| *end > carried && *end <= text.len())
}

fn parse_stamp(text: &[u8], end: usize) -> Option<u64> {
    std::str::from_utf8(&text[end - STAMP_DIGITS..end]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_split_between_two_reads_is_found_once() {
        let text = b"id: 1\ndata: {\"event@000000000042 now\"}\n\n";
        for cut in 0..=text.len() {
            let (data_finder, event_finder) = (Finder::new(DATA), Finder::new(EVENT_STAMP_PREFIX));
            let carried = cut.min(CARRY_BYTES);
            let (first, second) = (&text[..cut], &text[cut - carried..]);
            let stamps: Vec<u64> =
                find_ends(first, &event_finder, EVENT_STAMP_PREFIX.len() + STAMP_DIGITS, 0)
                    .filter_map(|end| parse_stamp(first, end))
                    .chain(
                        find_ends(second, &event_finder, EVENT_STAMP_PREFIX.len() + STAMP_DIGITS, carried)
                            .filter_map(|end| parse_stamp(second, end)),
                    )
                    .collect();
            assert_eq!(stamps, [42], "cut at {cut}");
            let count = find_ends(first, &data_finder, 7, 0).count()
                + find_ends(second, &data_finder, 7, carried).count();
            assert_eq!(count, 1, "cut at {cut}");
        }
    }
}
