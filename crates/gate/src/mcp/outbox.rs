//! Ordered output to the server or to the host.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes lines for the server or the host.
pub(crate) trait LineSink: Send {
    /// Sends one line with its line break.
    fn send(&mut self, line: Vec<u8>) -> io::Result<()>;

    /// Sends a part of a line that is too long to be held in memory.
    fn send_part(&mut self, part: &[u8]) -> io::Result<()>;
}

impl<W: Write + Send> LineSink for W {
    fn send(&mut self, line: Vec<u8>) -> io::Result<()> {
        self.write_all(&line)
    }

    fn send_part(&mut self, part: &[u8]) -> io::Result<()> {
        self.write_all(part)
    }
}

/// Lines that several threads write, in the order in which they were queued. Queuing never blocks. Sending does, if the reader is
/// slow; then the thread that sends waits, as it would without the gate.
pub(crate) struct Outbox {
    queue: Mutex<VecDeque<Vec<u8>>>,
    /// `None` after the reader has gone or the output was closed.
    sink: Mutex<Option<Box<dyn LineSink>>>,
}

impl Outbox {
    pub(crate) fn new(sink: Box<dyn LineSink>) -> Self {
        Self { queue: Mutex::default(), sink: Mutex::new(Some(sink)) }
    }

    /// Queues a line. [`flush`](Self::flush) sends it.
    pub(crate) fn push(&self, line: Vec<u8>) {
        lock(&self.queue).push_back(line);
    }

    /// Sends everything that is queued. Returns whether the reader is still there.
    pub(crate) fn flush(&self) -> bool {
        let mut sink = lock(&self.sink);
        self.send_queued(&mut sink);
        sink.is_some()
    }

    /// Sends everything that is queued, then a long line in parts, which `next_part` returns.
    pub(crate) fn stream(&self, mut next_part: impl FnMut(&mut dyn FnMut(&[u8])) -> bool) {
        let mut sink = lock(&self.sink);
        self.send_queued(&mut sink);
        let mut is_open = true;
        while is_open {
            is_open = next_part(&mut |part| {
                if sink.as_mut().is_some_and(|sink| sink.send_part(part).is_err()) {
                    *sink = None;
                }
            });
        }
    }

    /// Sends everything that is queued and closes the output.
    pub(crate) fn close(&self) {
        let mut sink = lock(&self.sink);
        self.send_queued(&mut sink);
        *sink = None;
    }

    fn send_queued(&self, sink: &mut Option<Box<dyn LineSink>>) {
        loop {
            let Some(line) = lock(&self.queue).pop_front() else { return };
            if sink.as_mut().is_some_and(|sink| sink.send(line).is_err()) {
                *sink = None;
            }
        }
    }
}

/// Locks a mutex. A thread that panicked while it held the lock has changed nothing in part, because the lock is held only for
/// single operations.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
