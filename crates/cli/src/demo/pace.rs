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
            printed.asks += u64::from(bytes.starts_with(b"ask:"));
            printed.answers += u64::from(bytes.starts_with(b"answer:"));
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

/// A line that makes nobody say anything: once it is taken, the one before it has been dealt with.
const NOTHING: &str = "hush";

/// Lines in their turn.
pub(super) struct Pace {
    now: watch::Receiver<Now>,
    printed: watch::Receiver<Printed>,
    /// Questions are answered without a person, so no line is an answer.
    alone: bool,
    /// Of the line before: how many questions had been asked, and what had been printed.
    asked: u64,
    before: Printed,
}

impl Pace {
    pub(super) fn new(now: watch::Receiver<Now>, printed: watch::Receiver<Printed>, alone: bool) -> Self {
        Self { now, printed, alone, asked: 0, before: Printed::default() }
    }

    /// Hands on a line when its turn has come, and waits until it has been dealt with; `None` if nobody takes it any more.
    pub(super) async fn hand_on(&mut self, line: String, to: &mpsc::Sender<String>) -> Option<()> {
        self.turn().await?;
        to.send(line).await.ok()?;
        dealt_with(to).await?;
        let open = self.now.borrow().open;
        if open > 0 && self.printed.borrow().answers > self.before.answers {
            self.now.wait_for(|now| now.open < open).await.ok()?;
        }
        Some(())
    }

    /// Waits until nothing goes on, or a question is open and was told.
    async fn turn(&mut self) -> Option<()> {
        loop {
            let (now, printed) = (*self.now.borrow_and_update(), *self.printed.borrow_and_update());
            let told = now.asked == self.asked || printed.asks > self.before.asks;
            if now.running == 0 || now.open > 0 && told && !self.alone {
                (self.asked, self.before) = (now.asked, printed);
                return Some(());
            }
            tokio::select! {
                changed = self.now.changed() => changed.ok()?,
                changed = self.printed.changed() => changed.ok()?,
            }
        }
    }
}

/// Waits until all lines that were handed on have been dealt with.
pub(super) async fn dealt_with(to: &mpsc::Sender<String>) -> Option<()> {
    to.send(NOTHING.to_owned()).await.ok()?;
    to.reserve().await.ok().map(drop)
}
