//! Listeners that read slowly, and some that do not read at all.

use std::io::Read;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::ears::open;
use super::{Hub, Server, framed};

/// Laggards, until they are dropped.
#[derive(Debug)]
pub struct Laggards {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    _dead: Vec<TcpStream>,
}

const TICK: Duration = Duration::from_millis(50);

impl Laggards {
    /// So many that read at that rate, by bytes, and so many that never read.
    pub fn connect(hub: &Hub, slow: usize, rate: usize, dead: usize) -> Self {
        let mut agent = hub.agent();
        let mut streams = |count: usize| -> Vec<TcpStream> {
            (0..count).map(|_| open(hub.address(), &hub.stream(&mut agent))).collect()
        };
        let (mut slow, dead) = (streams(slow), streams(dead));
        for stream in &slow {
            stream.set_nonblocking(true).unwrap();
        }
        let stop = Arc::new(AtomicBool::new(false));
        let end = stop.clone();
        let share = rate * framed() * usize::try_from(TICK.as_millis()).unwrap() / 1000;
        let thread = std::thread::spawn(move || {
            let mut buffer = vec![0; share];
            while !end.load(Ordering::Relaxed) {
                std::thread::sleep(TICK);
                for stream in &mut slow {
                    let _ = stream.read(&mut buffer);
                }
            }
        });
        Self { stop, thread: Some(thread), _dead: dead }
    }
}

impl Drop for Laggards {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
