//! Many agents at once, each with a session and a connection of its own and one request open.

use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use super::{Histogram, Hub, Server, lasting};

/// What a crowd has done.
#[derive(Debug)]
pub struct Crowd {
    /// Events acknowledged in a second.
    pub rate: f64,
    /// From a request to its answer.
    pub times: Histogram,
    /// The hub's processor time for each event, in microseconds.
    pub cost: f64,
}

struct One {
    socket: mio::net::TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
    sent: Instant,
}

impl Crowd {
    /// So many agents publish event after event, each acknowledged before its next, for that time. One thread drives all.
    pub fn publish(hub: &Hub, agents: usize, time: Duration) -> Self {
        let mut poll = mio::Poll::new().unwrap();
        let mut crowd: Vec<One> = (0..agents).map(|token| One::join(hub, &poll, token)).collect();
        let mut events = mio::Events::with_capacity(256);
        let (mut done, mut times) = (0_u64, Histogram::default());
        let (begun, busy) = (Instant::now(), hub.process().busy());
        crowd.iter_mut().for_each(One::send);
        while begun.elapsed() < time {
            poll.poll(&mut events, Some(Duration::from_secs(10))).unwrap();
            assert!(!events.is_empty(), "no answer in ten seconds");
            for ready in &events {
                let one = &mut crowd[ready.token().0];
                if one.is_answered() {
                    times.record(u64::try_from(one.sent.elapsed().as_micros()).unwrap());
                    done += 1;
                    one.send();
                }
            }
        }
        let busy = hub.process().busy().saturating_sub(busy);
        let rate = done as f64 / begun.elapsed().as_secs_f64();
        Self { rate, times, cost: busy.as_secs_f64() * 1e6 / done as f64 }
    }
}

impl One {
    fn join(hub: &Hub, poll: &mio::Poll, token: usize) -> Self {
        let mut agent = hub.agent();
        let session = hub.open_session(&mut agent);
        let stream = agent.socket().try_clone().unwrap();
        stream.set_nonblocking(true).unwrap();
        let mut socket = mio::net::TcpStream::from_std(stream);
        poll.registry().register(&mut socket, mio::Token(token), mio::Interest::READABLE).unwrap();
        let request = hub.publishes(&session, &[lasting()]);
        Self { socket, request, answer: Vec::new(), sent: Instant::now() }
    }

    /// A request is far smaller than what a socket takes at once.
    fn send(&mut self) {
        self.sent = Instant::now();
        self.answer.clear();
        self.socket.write_all(&self.request).unwrap();
    }

    /// Reads what there is; whether that was the rest of the answer.
    fn is_answered(&mut self) -> bool {
        let mut buffer = [0; 4096];
        loop {
            match self.socket.read(&mut buffer) {
                Ok(0) => panic!("the connection was ended"),
                Ok(read) => self.answer.extend_from_slice(&buffer[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        let text = std::str::from_utf8(&self.answer).unwrap();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
        assert!(head.starts_with("HTTP/1.1 200"), "{text}");
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok());
        body.len() >= length.unwrap_or(0)
    }
}
