//! The part that every core does: read a block's items and check each on its own.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::{Mutex, mpsc};

use aaep::check::{Checked, Validator};
use aaep::json::Tape;
use aaep::message::Message;
use aaep::rule::{Face, Finding, Findings};
use aaep::session::Step;

use super::order::Order;
use super::report::Report;
use super::split::{Cut, Items, Piece, Splitter};

/// A block that has been checked. The strings of its steps stand in one text.
pub(super) struct Block {
    pub(super) checked: Vec<CheckedItem>,
    pub(super) lines: u64,
    /// Lines that were empty, lines that ended in CR LF, and whether they are the data of an event stream.
    pub(super) notes: Notes,
    /// Nothing more is to be had at once.
    pause: bool,
    text: String,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Notes {
    empty: u64,
    crlf: u64,
    stream: bool,
}

pub(super) struct CheckedItem {
    /// Its line in the block, from 1 on.
    pub(super) line: u64,
    pub(super) findings: Vec<Finding>,
    pub(super) item: Item,
}

#[allow(clippy::large_enum_variant, reason = "nearly all are events")]
pub(super) enum Item {
    Event(Step<Span>),
    Message(Box<Message>),
    /// A reply that is not lawful, by its token.
    VoidReply(Span),
    /// An event that does not name its session, by its id if it has one.
    Unplaced(Option<Span>),
    /// Not even JSON, or a message that is not lawful.
    Nothing,
}

#[derive(Clone, Copy)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

impl Block {
    pub(super) fn text(&self, span: Span) -> &str {
        &self.text[span.start as usize..span.end as usize]
    }
}

/// Checks a whole input: blocks on every core, their results in order.
pub(super) fn run(
    input: Box<dyn Read + Send>,
    face: Face,
    limit: usize,
    jobs: usize,
    order: Order,
    report: &mut Report,
) -> io::Result<()> {
    let splitter = Splitter::new(input, limit);
    let mut driver = Driver { order, report, items: 0, notes: Notes::default() };
    let result = if jobs == 1 {
        driver.alone(splitter, face, limit)
    } else {
        let (jobs_in, jobs_out) = mpsc::channel::<(Cut, mpsc::SyncSender<Block>)>();
        let jobs_out = &Mutex::new(jobs_out);
        std::thread::scope(|scope| {
            // Its end, with this closure's, sends the workers home.
            let jobs_in = jobs_in;
            for _ in 0..jobs {
                scope.spawn(move || {
                    let mut worker = Worker::new(face, limit);
                    loop {
                        let job = match jobs_out.lock() {
                            Ok(queue) => queue.recv(),
                            Err(_) => return,
                        };
                        let Ok((cut, done)) = job else { return };
                        // The other end is gone once nobody listens; then nothing is left to do.
                        let _ = done.send(worker.check(&cut));
                    }
                });
            }
            driver.shared(splitter, &jobs_in, jobs * 3)
        })
    };
    driver.finish(result.is_ok());
    result
}

struct Driver<'r> {
    order: Order,
    report: &'r mut Report,
    items: u64,
    notes: Notes,
}

impl Driver<'_> {
    fn alone(
        &mut self,
        mut splitter: Splitter<Box<dyn Read + Send>>,
        face: Face,
        limit: usize,
    ) -> io::Result<()> {
        let mut worker = Worker::new(face, limit);
        while let Some(cut) = splitter.next()? {
            self.take(&worker.check(&cut));
            if self.report.is_deaf() {
                break;
            }
        }
        Ok(())
    }

    fn shared(
        &mut self,
        mut splitter: Splitter<Box<dyn Read + Send>>,
        jobs: &mpsc::Sender<(Cut, mpsc::SyncSender<Block>)>,
        window: usize,
    ) -> io::Result<()> {
        let mut waiting: VecDeque<mpsc::Receiver<Block>> = VecDeque::new();
        let mut result = Ok(());
        loop {
            let cut = match splitter.next() {
                Ok(Some(cut)) => cut,
                Ok(None) => break,
                Err(error) => {
                    result = Err(error);
                    break;
                }
            };
            let pause = cut.pause;
            let (done_in, done_out) = mpsc::sync_channel(1);
            if jobs.send((cut, done_in)).is_err() {
                break;
            }
            waiting.push_back(done_out);
            let keep = if pause { 0 } else { window };
            while waiting.len() > keep {
                self.receive(waiting.pop_front());
            }
            if self.report.is_deaf() {
                return result;
            }
        }
        while !waiting.is_empty() {
            self.receive(waiting.pop_front());
        }
        result
    }

    fn receive(&mut self, done: Option<mpsc::Receiver<Block>>) {
        if let Some(Ok(block)) = done.map(|done| done.recv()) {
            self.take(&block);
        }
    }

    fn take(&mut self, block: &Block) {
        self.items += block.checked.len() as u64;
        self.notes.empty += block.notes.empty;
        self.notes.crlf += block.notes.crlf;
        self.notes.stream |= block.notes.stream;
        self.order.block(block, self.report);
        if block.pause {
            self.report.flush();
        }
    }

    fn finish(self, read_to_the_end: bool) {
        if self.items == 0 && read_to_the_end && !self.report.is_deaf() {
            let mut findings = Findings::new(Face::Strict);
            Validator::refuse_empty(&mut findings);
            for finding in findings.list() {
                self.report.finding(1, finding, None);
            }
        }
        self.order.finish(self.report);
        if self.notes.stream {
            // It has empty lines, and lines without data; that is its form.
            self.report.note("This is an event stream (SSE). The data in it was checked.");
        } else if self.notes.empty > 0 {
            let were = if self.notes.empty == 1 { "line was" } else { "lines were" };
            self.report.note(&format!("{} empty {were} skipped.", self.notes.empty));
        }
        if self.notes.crlf > 0 && !self.notes.stream {
            let ends = if self.notes.crlf == 1 { "line ends" } else { "lines end" };
            let text = format!("{} {ends} in CR LF. The CR counts as white space.", self.notes.crlf);
            self.report.note(&text);
        }
    }
}

struct Worker {
    validator: Validator,
    tape: Tape,
    findings: Findings,
    limit: usize,
}

impl Worker {
    fn new(face: Face, limit: usize) -> Self {
        Self { validator: Validator::new(), tape: Tape::default(), findings: Findings::new(face), limit }
    }

    fn check(&mut self, cut: &Cut) -> Block {
        let mut block = Block {
            checked: Vec::new(),
            lines: cut.lines,
            notes: Notes { stream: cut.stream, ..Notes::default() },
            pause: cut.pause,
            text: String::new(),
        };
        if cut.mark {
            Validator::refuse_mark(&mut self.findings);
            block.checked.push(CheckedItem { line: 1, findings: self.findings.take(), item: Item::Nothing });
        }
        match &cut.items {
            Items::Lines => {
                let body = cut.bytes.strip_suffix(b"\n").unwrap_or(&cut.bytes);
                if cut.bytes.is_empty() {
                    return block;
                }
                let ends = memchr::memchr_iter(b'\n', body).chain([body.len()]);
                let mut start = 0;
                for (at, end) in ends.enumerate() {
                    self.line(at as u64 + 1, &body[start..end], &mut block);
                    start = end + 1;
                }
            }
            Items::Pieces(pieces) => {
                for piece in pieces {
                    self.piece(piece, &cut.bytes, &mut block);
                }
            }
        }
        block
    }

    fn line(&mut self, number: u64, line: &[u8], block: &mut Block) {
        let line = match line.strip_suffix(b"\r") {
            Some(rest) => {
                block.notes.crlf += 1;
                rest
            }
            None => line,
        };
        if line.len() <= self.limit && line.iter().all(u8::is_ascii_whitespace) {
            block.notes.empty += 1;
            return;
        }
        self.item(number, line, block);
    }

    fn piece(&mut self, piece: &Piece, bytes: &[u8], block: &mut Block) {
        let Some(trouble) = piece.trouble else {
            return self.item(piece.line, &bytes[piece.start..piece.end], block);
        };
        let findings = &mut self.findings;
        trouble.tell(self.limit, findings);
        block.checked.push(CheckedItem { line: piece.line, findings: findings.take(), item: Item::Nothing });
    }

    fn item(&mut self, line: u64, bytes: &[u8], block: &mut Block) {
        let item = self.examine(bytes, &mut block.text);
        block.checked.push(CheckedItem { line, findings: self.findings.take(), item });
    }

    fn examine(&mut self, bytes: &[u8], arena: &mut String) -> Item {
        if bytes.len() > self.limit {
            Validator::refuse_size(self.limit, &mut self.findings);
            return Item::Nothing;
        }
        match super::check(bytes, &mut self.tape, &mut self.validator, &mut self.findings) {
            Checked::Event(step) => Item::Event(step.map(&mut |text: &Cow<'_, str>| keep(text, arena))),
            Checked::Message(message) => Item::Message(message),
            Checked::VoidReply(token) => Item::VoidReply(keep(&token, arena)),
            Checked::Unplaced(id) => Item::Unplaced(id.map(|id| keep(&id, arena))),
            _ => Item::Nothing,
        }
    }
}

#[allow(clippy::cast_possible_truncation, reason = "a block is far smaller than 4 GiB")]
fn keep(text: &str, arena: &mut String) -> Span {
    let start = arena.len() as u32;
    arena.push_str(text);
    Span { start, end: arena.len() as u32 }
}
