//! Listeners that keep up: many sockets, one thread, which counts events and takes the times of those with a stamp.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use memchr::memmem::Finder;

use super::event::STAMP;
use super::{ASKED, Agent, FLOOD, Histogram, Server, micros};

/// Listeners, until they are dropped.
#[derive(Debug)]
pub struct Ears {
    /// How many.
    pub count: usize,
    heard: Arc<Heard>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Heard {
    events: AtomicU64,
    ended: AtomicU64,
    /// From an event's stamp to its arrival.
    floods: Mutex<Histogram>,
    /// The stamps of questions and when they arrived.
    asked: Mutex<Vec<(u64, u64)>>,
    stop: AtomicBool,
}

impl Ears {
    /// Connects so many, and listens. With `stamps` it looks for them, which costs the driver some time.
    pub fn connect(server: &impl Server, count: usize, stamps: bool) -> Self {
        let heard = Arc::new(Heard::default());
        let poll = mio::Poll::new().unwrap();
        let mut agent = Agent::connect(server.address());
        let mut ears = Vec::with_capacity(count);
        for token in 0..count {
            let stream = open(server.address(), &server.stream(&mut agent));
            stream.set_nonblocking(true).unwrap();
            let mut socket = mio::net::TcpStream::from_std(stream);
            poll.registry().register(&mut socket, mio::Token(token), mio::Interest::READABLE).unwrap();
            ears.push(Ear { socket, before: [0; BEFORE], kept: 0, ended: false });
        }
        let told = heard.clone();
        let thread = std::thread::spawn(move || listen(poll, ears, &told, stamps));
        Self { count, heard, thread: Some(thread) }
    }

    /// Events that have arrived, at all listeners together.
    pub fn events(&self) -> u64 {
        self.heard.events.load(Ordering::Relaxed)
    }

    /// Streams that the server has ended.
    pub fn ended(&self) -> u64 {
        self.heard.ended.load(Ordering::Relaxed)
    }

    /// Waits until so many have arrived.
    pub fn until(&self, events: u64) {
        let begun = Instant::now();
        while self.events() < events {
            std::thread::sleep(Duration::from_micros(100));
            let there = self.events();
            assert!(begun.elapsed() < Duration::from_mins(5), "{there} of {events} events arrived");
        }
    }

    /// Waits until nothing more comes.
    pub fn settle(&self) {
        let mut before = self.events();
        loop {
            std::thread::sleep(Duration::from_millis(50));
            if self.events() == before {
                return;
            }
            before = self.events();
        }
    }

    /// The times of events since the last call.
    pub fn floods(&self) -> Histogram {
        std::mem::take(&mut self.heard.floods.lock().unwrap())
    }

    /// The stamps and arrivals of questions since the last call.
    pub fn asked(&self) -> Vec<(u64, u64)> {
        std::mem::take(&mut self.heard.asked.lock().unwrap())
    }
}

impl Drop for Ears {
    fn drop(&mut self) {
        self.heard.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Opens a stream and reads its head, not a byte more.
pub(super) fn open(address: &str, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let get = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\r\n");
    stream.write_all(get.as_bytes()).unwrap();
    let mut head = BufReader::with_capacity(1, &stream);
    let mut line = String::new();
    head.read_line(&mut line).unwrap();
    assert!(line.starts_with("HTTP/1.1 200"), "{line}");
    while line != "\r\n" {
        line.clear();
        assert!(head.read_line(&mut line).unwrap() > 0, "the head has no end");
    }
    stream
}

/// So much of what came before is looked at again, because a read may cut a stamp in two.
const BEFORE: usize = FLOOD.len() + STAMP - 1;
const DATA: &str = "\ndata: ";

struct Ear {
    socket: mio::net::TcpStream,
    before: [u8; BEFORE],
    kept: usize,
    ended: bool,
}

fn listen(mut poll: mio::Poll, mut ears: Vec<Ear>, heard: &Heard, stamps: bool) {
    let mut events = mio::Events::with_capacity(1024);
    let mut buffer = vec![0; BEFORE + 256 * 1024];
    let (data, flood, asked) = (Finder::new(DATA), Finder::new(FLOOD), Finder::new(ASKED));
    while !heard.stop.load(Ordering::Relaxed) {
        let _ = poll.poll(&mut events, Some(Duration::from_millis(100)));
        let (mut floods, mut questions) = (Histogram::default(), Vec::new());
        for ready in &events {
            let ear = &mut ears[ready.token().0];
            while let Some((text, old)) = ear.read(&mut buffer, heard) {
                let count = ends(text, &data, DATA.len(), old).count();
                heard.events.fetch_add(count as u64, Ordering::Relaxed);
                if stamps {
                    let now = micros();
                    let times = |finder| {
                        ends(text, finder, FLOOD.len() + STAMP, old).filter_map(|end| stamp(text, end))
                    };
                    times(&flood).for_each(|stamp| floods.record(now.saturating_sub(stamp)));
                    questions.extend(times(&asked).map(|stamp| (stamp, now)));
                }
            }
        }
        if !floods.is_empty() {
            heard.floods.lock().unwrap().add(&floods);
        }
        if !questions.is_empty() {
            heard.asked.lock().unwrap().append(&mut questions);
        }
    }
}

impl Ear {
    /// What has come, behind a little of what came before; and how much that is.
    fn read<'a>(&mut self, buffer: &'a mut [u8], heard: &Heard) -> Option<(&'a [u8], usize)> {
        if self.ended {
            return None;
        }
        let old = self.kept;
        buffer[..old].copy_from_slice(&self.before[..old]);
        loop {
            match self.socket.read(&mut buffer[old..]) {
                Ok(0) => break,
                Ok(new) => {
                    let text = &buffer[..old + new];
                    self.kept = text.len().min(BEFORE);
                    self.before[..self.kept].copy_from_slice(&text[text.len() - self.kept..]);
                    return Some((text, old));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.ended = true;
        heard.ended.fetch_add(1, Ordering::Relaxed);
        None
    }
}

/// Where what is looked for ends, when it is so long in all and was not seen whole before.
fn ends(text: &[u8], finder: &Finder<'_>, length: usize, old: usize) -> impl Iterator<Item = usize> {
    finder.find_iter(text).map(move |at| at + length).filter(move |end| *end > old && *end <= text.len())
}

fn stamp(text: &[u8], end: usize) -> Option<u64> {
    std::str::from_utf8(&text[end - STAMP..end]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_found_once_wherever_a_read_cuts_it() {
        let text = b"id: 1\ndata: {\"flood@000000000042 now\"}\n\n";
        for cut in 0..=text.len() {
            let (data, flood) = (Finder::new(DATA), Finder::new(FLOOD));
            let kept = cut.min(BEFORE);
            let (first, second) = (&text[..cut], &text[cut - kept..]);
            let stamps: Vec<u64> = ends(first, &flood, FLOOD.len() + STAMP, 0)
                .filter_map(|end| stamp(first, end))
                .chain(ends(second, &flood, FLOOD.len() + STAMP, kept).filter_map(|end| stamp(second, end)))
                .collect();
            assert_eq!(stamps, [42], "cut at {cut}");
            let count = ends(first, &data, 7, 0).count() + ends(second, &data, 7, kept).count();
            assert_eq!(count, 1, "cut at {cut}");
        }
    }
}
