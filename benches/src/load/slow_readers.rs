//! Listeners that read slowly, and some that never read.

use std::io::Read;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::listener_pool::open_stream;
use super::{BenchHub, Server, frame_len};

/// Slow listeners, and dead ones that never read. Dropping this disconnects them.
#[derive(Debug)]
pub struct SlowReaders {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    _dead: Vec<TcpStream>,
}

const TICK: Duration = Duration::from_millis(50);

impl SlowReaders {
    /// Connects `slow` listeners that read `rate` events per second, and `dead` listeners that never read.
    pub fn connect(hub: &BenchHub, slow: usize, rate: usize, dead: usize) -> Self {
        let mut agent = hub.connect();
        let mut streams = |count: usize| -> Vec<TcpStream> {
            (0..count)
                .map(|_| open_stream(hub.address(), &hub.subscribe_and_get_stream_path(&mut agent)))
                .collect()
        };
        let (mut slow, dead) = (streams(slow), streams(dead));
        for stream in &slow {
            stream.set_nonblocking(true).unwrap();
        }
        let stop = Arc::new(AtomicBool::new(false));
        let stop_flag = stop.clone();
        let bytes_per_tick = rate * frame_len() * usize::try_from(TICK.as_millis()).unwrap() / 1000;
        let thread = std::thread::spawn(move || {
            let mut buffer = vec![0; bytes_per_tick];
            while !stop_flag.load(Ordering::Relaxed) {
                std::thread::sleep(TICK);
                for stream in &mut slow {
                    let _ = stream.read(&mut buffer);
                }
            }
        });
        Self { stop, thread: Some(thread), _dead: dead }
    }
}

impl Drop for SlowReaders {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
