//! Many concurrent agents. Each has its own session and connection, and one open request at a time.

use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use super::{BenchHub, Histogram, Server, uncoalescable_event};

/// The result of a run with concurrent publishers.
#[derive(Debug)]
pub struct ConcurrentPublishResult {
    /// Acknowledged events per second.
    pub rate: f64,
    /// Latency from a request to its response.
    pub latencies: Histogram,
    /// CPU time of the hub per event, in microseconds.
    pub cpu_micros_per_event: f64,
}

struct PublisherConnection {
    socket: mio::net::TcpStream,
    request: Vec<u8>,
    response: Vec<u8>,
    sent_at: Instant,
}

impl ConcurrentPublishResult {
    /// Runs this many publishers for this duration, each with one event per request.
    pub fn publish(hub: &BenchHub, agent_count: usize, duration: Duration) -> Self {
        Self::publish_in_batches(hub, agent_count, 1, duration)
    }

    /// Runs this many publishers for this duration, each with this many events per request. Each publisher's session has a different person. Each
    /// publisher waits for the acknowledgement before it sends the next request. One thread drives all publishers.
    pub fn publish_in_batches(hub: &BenchHub, agent_count: usize, batch: usize, duration: Duration) -> Self {
        let mut poll = mio::Poll::new().unwrap();
        let mut publishers: Vec<PublisherConnection> =
            (0..agent_count).map(|token| PublisherConnection::open(hub, &poll, token, batch)).collect();
        let mut events = mio::Events::with_capacity(256);
        let (mut acknowledged, mut latencies) = (0_u64, Histogram::default());
        let (started, cpu_time_before) = (Instant::now(), hub.process().cpu_time());
        publishers.iter_mut().for_each(PublisherConnection::send);
        while started.elapsed() < duration {
            poll.poll(&mut events, Some(Duration::from_secs(10))).unwrap();
            assert!(!events.is_empty(), "no response in ten seconds");
            for ready in &events {
                let publisher = &mut publishers[ready.token().0];
                if publisher.read_response() {
                    latencies.record(u64::try_from(publisher.sent_at.elapsed().as_micros()).unwrap());
                    acknowledged += batch as u64;
                    publisher.send();
                }
            }
        }
        let cpu_time = hub.process().cpu_time().saturating_sub(cpu_time_before);
        let rate = acknowledged as f64 / started.elapsed().as_secs_f64();
        Self { rate, latencies, cpu_micros_per_event: cpu_time.as_secs_f64() * 1e6 / acknowledged as f64 }
    }
}

impl PublisherConnection {
    fn open(hub: &BenchHub, poll: &mio::Poll, token: usize, batch: usize) -> Self {
        let mut agent = hub.connect();
        let session = hub.open_session_for(&mut agent, &format!("person {token}"));
        let stream = agent.socket().try_clone().unwrap();
        stream.set_nonblocking(true).unwrap();
        let mut socket = mio::net::TcpStream::from_std(stream);
        poll.registry().register(&mut socket, mio::Token(token), mio::Interest::READABLE).unwrap();
        let request = hub.session_publish_request(&session, &vec![uncoalescable_event(); batch]);
        Self { socket, request, response: Vec::new(), sent_at: Instant::now() }
    }

    /// Sends the request, which fits into the socket buffer.
    fn send(&mut self) {
        self.sent_at = Instant::now();
        self.response.clear();
        self.socket.write_all(&self.request).unwrap();
    }

    /// Reads the available data. Returns whether the response is complete.
    fn read_response(&mut self) -> bool {
        let mut buffer = [0; 4096];
        loop {
            match self.socket.read(&mut buffer) {
                Ok(0) => panic!("the connection was closed"),
                Ok(read) => self.response.extend_from_slice(&buffer[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        let text = std::str::from_utf8(&self.response).unwrap();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
        assert!(head.starts_with("HTTP/1.1 200"), "{text}");
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok());
        body.len() >= length.unwrap_or(0)
    }
}
