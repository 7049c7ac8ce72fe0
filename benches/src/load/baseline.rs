//! Baselines: the cost of the system calls alone, without a hub.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use super::{BenchHub, enveloped_uncoalescable_event, frame_len};

/// Writes each event once to each listener's socket, while another thread reads. Returns delivered events per second.
pub fn baseline_writes(listeners: usize, events: usize) -> f64 {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let mut poll = mio::Poll::new().unwrap();
    let (mut writers, mut readers) = (Vec::new(), Vec::new());
    for token in 0..listeners {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nonblocking(true).unwrap();
        let mut socket = mio::net::TcpStream::from_std(stream);
        poll.registry().register(&mut socket, mio::Token(token), mio::Interest::READABLE).unwrap();
        readers.push(socket);
        let (out, _) = server.accept().unwrap();
        out.set_nodelay(true).unwrap();
        writers.push(out);
    }
    let total = (listeners * events * frame_len()) as u64;
    let reader = std::thread::spawn(move || {
        let mut events = mio::Events::with_capacity(1024);
        let (mut buffer, mut read) = (vec![0; 256 * 1024], 0);
        while read < total {
            poll.poll(&mut events, None).unwrap();
            for event in &events {
                while let Ok(length) = readers[event.token().0].read(&mut buffer) {
                    read += length as u64;
                }
            }
        }
    });
    let bytes = vec![b'x'; frame_len()];
    let started = Instant::now();
    for _ in 0..events {
        for out in &mut writers {
            out.write_all(&bytes).unwrap();
        }
    }
    reader.join().unwrap();
    (listeners * events) as f64 / started.elapsed().as_secs_f64()
}

/// Appends events to a file in batches, with one fdatasync per batch. Returns events per second.
pub fn baseline_appends(batch: usize, rounds: usize) -> f64 {
    let folder = BenchHub::temp_dir();
    let mut file = std::fs::File::create(folder.path().join("bare")).unwrap();
    let bytes = enveloped_uncoalescable_event().repeat(batch);
    let started = Instant::now();
    for _ in 0..rounds {
        file.write_all(bytes.as_bytes()).unwrap();
        file.sync_data().unwrap();
    }
    (batch * rounds) as f64 / started.elapsed().as_secs_f64()
}
