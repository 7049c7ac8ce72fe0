//! Lines that do not come from a keyboard: whoever writes them all at once means each for what was said before it.
//!
//! So a line waits until the assistant has done what it was asked before, or has asked something and that was told. A person
//! at a keyboard is never kept waiting.

use std::io::Write;

use tokio::sync::{mpsc, watch};

use super::stage::Now;

/// What was printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Printed {
    /// How many announcements.
    count: u64,
    /// How many of them asked something.
    asks: u64,
    /// How many of them said what the person answered.
    answers: u64,
}

/// Standard output, and what was said on it.
pub(super) struct Heard<W> {
    out: W,
    printed: watch::Sender<Printed>,
}

impl<W: Write> Heard<W> {
    pub(super) fn new(out: W) -> (Self, watch::Receiver<Printed>) {
        let (printed, heard) = watch::channel(Printed::default());
        (Self { out, printed }, heard)
    }
}

impl<W: Write> Write for Heard<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.out.write_all(bytes)?;
        self.printed.send_modify(|printed| {
            printed.count += 1;
            printed.asks += u64::from(bytes.starts_with(b"ask:"));
            printed.answers += u64::from(bytes.starts_with(b"answer:"));
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

/// What a line waits for.
pub(super) struct Pace {
    pub(super) now: watch::Receiver<Now>,
    pub(super) printed: watch::Receiver<Printed>,
    /// How many requests were handed to the assistant.
    pub(super) requests: watch::Receiver<u64>,
    /// Questions are answered without a person, so no line is an answer.
    pub(super) alone: bool,
}

impl Pace {
    /// Hands on line after line, each in its turn, until there are no more; `None` if nobody takes them any more.
    pub(super) async fn feed(
        mut self,
        mut lines: mpsc::Receiver<String>,
        to: mpsc::Sender<String>,
    ) -> Option<()> {
        let (mut asked, mut before) = (0, Printed::default());
        while let Some(line) = lines.recv().await {
            (asked, before) = self.turn(asked, before).await?;
            let requests = *self.requests.borrow();
            // These make nobody say anything.
            let silent = matches!(line.trim(), "" | "hush");
            to.send(line).await.ok()?;
            if silent {
                continue;
            }
            tokio::select! {
                came = self.requests.wait_for(|count| *count > requests) => drop(came.ok()?),
                said = self.printed.wait_for(|printed| printed.count > before.count) => drop(said.ok()?),
            }
            let open = self.now.borrow().open;
            if open > 0 && self.printed.borrow().answers > before.answers {
                self.now.wait_for(|now| now.open < open).await.ok()?;
            }
        }
        Some(())
    }

    /// Waits until nothing goes on, or a question is open and was told; `asked` and `before` are of the line before.
    async fn turn(&mut self, asked: u64, before: Printed) -> Option<(u64, Printed)> {
        loop {
            let (now, printed) = (*self.now.borrow_and_update(), *self.printed.borrow_and_update());
            let told = now.asked == asked || printed.asks > before.asks;
            if now.running == 0 || now.open > 0 && told && !self.alone {
                return Some((now.asked, printed));
            }
            tokio::select! {
                changed = self.now.changed() => changed.ok()?,
                changed = self.printed.changed() => changed.ok()?,
            }
        }
    }
}
