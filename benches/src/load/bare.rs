//! The floors: what the system itself takes.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use super::{Hub, framed, whole};

/// One write for each listener and event, the receivers' half included: delivered events a second.
pub fn bare_writes(listeners: usize, events: usize) -> f64 {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let mut poll = mio::Poll::new().unwrap();
    let (mut outs, mut ins) = (Vec::new(), Vec::new());
    for token in 0..listeners {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nonblocking(true).unwrap();
        let mut socket = mio::net::TcpStream::from_std(stream);
        poll.registry().register(&mut socket, mio::Token(token), mio::Interest::READABLE).unwrap();
        ins.push(socket);
        let (out, _) = server.accept().unwrap();
        out.set_nodelay(true).unwrap();
        outs.push(out);
    }
    let total = (listeners * events * framed()) as u64;
    let reader = std::thread::spawn(move || {
        let mut events = mio::Events::with_capacity(1024);
        let (mut buffer, mut read) = (vec![0; 256 * 1024], 0);
        while read < total {
            poll.poll(&mut events, None).unwrap();
            for event in &events {
                while let Ok(some) = ins[event.token().0].read(&mut buffer) {
                    read += some as u64;
                }
            }
        }
    });
    let bytes = vec![b'x'; framed()];
    let begun = Instant::now();
    for _ in 0..events {
        for out in &mut outs {
            out.write_all(&bytes).unwrap();
        }
    }
    reader.join().unwrap();
    (listeners * events) as f64 / begun.elapsed().as_secs_f64()
}

/// The event's bytes appended to a file so many at a time, each time with fdatasync: events a second.
pub fn bare_appends(batch: usize, times: usize) -> f64 {
    let folder = Hub::folder();
    let mut file = std::fs::File::create(folder.path().join("bare")).unwrap();
    let bytes = whole().repeat(batch);
    let begun = Instant::now();
    for _ in 0..times {
        file.write_all(bytes.as_bytes()).unwrap();
        file.sync_data().unwrap();
    }
    (batch * times) as f64 / begun.elapsed().as_secs_f64()
}
