//! The parallel part: reads the items of a block and checks each on its own.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::{Mutex, mpsc};
use std::time::Instant;

use aaep::check::{CheckedDocument, Validator};
use aaep::json::Tape;
use aaep::message::Message;
use aaep::rule::{Finding, Findings};
use aaep::session::SessionEvent;

use super::progress::ProgressReport;
use super::report::ValidationReport;
use super::sequence_checker::SequenceChecker;
use super::splitter::{BlockItems, InputBlock, ItemSpan, Splitter};

/// A checked block. The strings of its events are spans of `text`.
pub(super) struct CheckedBlock {
    pub(super) items: Vec<CheckedItem>,
    pub(super) lines: u64,
    /// Counts of empty lines and CR LF lines, and whether the block is from an event stream.
    pub(super) notes: InputNotes,
    /// Whether no more input is available right now.
    is_input_drained: bool,
    text: String,
}

#[derive(Clone, Copy, Default)]
pub(super) struct InputNotes {
    empty_lines: u64,
    crlf_lines: u64,
    is_event_stream: bool,
}

pub(super) struct CheckedItem {
    /// The line in the block, counted from 1.
    pub(super) line: u64,
    pub(super) findings: Vec<Finding>,
    pub(super) kind: CheckedKind,
}

#[allow(clippy::large_enum_variant, reason = "nearly all items are events")]
pub(super) enum CheckedKind {
    Event(SessionEvent<TextSpan>),
    Message(Box<Message>),
    /// The token of an invalid reply.
    InvalidReply(TextSpan),
    /// An event without a session id. The span is its event id, if it has one.
    WithoutSession(Option<TextSpan>),
    /// Not JSON, too large, or an invalid message.
    Unreadable,
}

#[derive(Clone, Copy)]
pub(super) struct TextSpan {
    start: u32,
    end: u32,
}

impl CheckedBlock {
    pub(super) fn text(&self, span: TextSpan) -> &str {
        &self.text[span.start as usize..span.end as usize]
    }
}

/// Checks an input. Blocks are checked in parallel, and their results are handled in order. `new_findings` determines which rules
/// are checked.
pub(super) fn run_validation(
    input: Box<dyn Read + Send>,
    new_findings: &(impl Fn() -> Findings + Sync),
    limit: usize,
    jobs: usize,
    sequence_checker: SequenceChecker,
    report: &mut ValidationReport,
    progress: &mut ProgressReport,
) -> io::Result<()> {
    let splitter = Splitter::new(input, limit);
    let mut driver = Driver { sequence_checker, report, progress, items: 0, notes: InputNotes::default() };
    let result = if jobs == 1 {
        driver.run_single_threaded(splitter, Worker::new(new_findings(), limit))
    } else {
        let (job_sender, job_receiver) = mpsc::channel::<(InputBlock, mpsc::SyncSender<CheckedBlock>)>();
        let job_receiver = &Mutex::new(job_receiver);
        std::thread::scope(|scope| {
            // The sender is dropped at the end of this closure, which ends the workers.
            let job_sender = job_sender;
            for _ in 0..jobs {
                scope.spawn(move || {
                    let mut worker = Worker::new(new_findings(), limit);
                    loop {
                        let job = match job_receiver.lock() {
                            Ok(queue) => queue.recv(),
                            Err(_) => return,
                        };
                        let Ok((input, checked_sender)) = job else { return };
                        // If the receiver is gone, the result is not needed.
                        let _ = checked_sender.send(worker.check(&input));
                    }
                });
            }
            driver.run_parallel(splitter, &job_sender, jobs * 3)
        })
    };
    driver.finish(result.is_ok(), new_findings());
    result
}

/// Handles the checked blocks in order, and collects the counts for the notes at the end of the report.
struct Driver<'r> {
    sequence_checker: SequenceChecker,
    report: &'r mut ValidationReport,
    progress: &'r mut ProgressReport,
    items: u64,
    notes: InputNotes,
}

impl Driver<'_> {
    fn run_single_threaded(
        &mut self,
        mut splitter: Splitter<Box<dyn Read + Send>>,
        mut worker: Worker,
    ) -> io::Result<()> {
        while let Some(input) = splitter.next()? {
            self.handle_block(&worker.check(&input));
            if self.report.has_write_failed() {
                break;
            }
        }
        Ok(())
    }

    fn run_parallel(
        &mut self,
        mut splitter: Splitter<Box<dyn Read + Send>>,
        job_sender: &mpsc::Sender<(InputBlock, mpsc::SyncSender<CheckedBlock>)>,
        max_pending: usize,
    ) -> io::Result<()> {
        let mut pending: VecDeque<mpsc::Receiver<CheckedBlock>> = VecDeque::new();
        let mut result = Ok(());
        loop {
            let input = match splitter.next() {
                Ok(Some(input)) => input,
                Ok(None) => break,
                Err(error) => {
                    result = Err(error);
                    break;
                }
            };
            let is_drained = input.is_input_drained;
            let (checked_sender, checked_receiver) = mpsc::sync_channel(1);
            if job_sender.send((input, checked_sender)).is_err() {
                break;
            }
            pending.push_back(checked_receiver);
            // If no more input is available now, all results are handled, so that their findings are printed.
            let remaining = if is_drained { 0 } else { max_pending };
            while pending.len() > remaining {
                self.receive(pending.pop_front());
            }
            if self.report.has_write_failed() {
                return result;
            }
        }
        while !pending.is_empty() {
            self.receive(pending.pop_front());
        }
        result
    }

    fn receive(&mut self, receiver: Option<mpsc::Receiver<CheckedBlock>>) {
        if let Some(Ok(block)) = receiver.map(|receiver| receiver.recv()) {
            self.handle_block(&block);
        }
    }

    fn handle_block(&mut self, block: &CheckedBlock) {
        self.items += block.items.len() as u64;
        self.notes.empty_lines += block.notes.empty_lines;
        self.notes.crlf_lines += block.notes.crlf_lines;
        self.notes.is_event_stream |= block.notes.is_event_stream;
        self.sequence_checker.check_block(block, self.report);
        if block.is_input_drained {
            self.report.flush();
        }
        let (events, findings) = (self.sequence_checker.event_count(), self.report.finding_count());
        if let Some(text) = self.progress.report(Instant::now(), events, findings) {
            self.report.print_note(&text);
        }
    }

    fn finish(self, is_complete: bool, mut findings: Findings) {
        if self.items == 0 && is_complete && !self.report.has_write_failed() {
            Validator::report_empty_input(&mut findings);
            for finding in findings.list() {
                self.report.add_finding(1, finding, None);
            }
        }
        self.sequence_checker.finish(self.report);
        if self.notes.is_event_stream {
            // Empty lines and lines without data are normal in an event stream.
            self.report.print_note("This is an event stream (SSE). The data in it was checked.");
        } else if self.notes.empty_lines > 0 {
            let subject_and_verb = if self.notes.empty_lines == 1 { "line was" } else { "lines were" };
            self.report.print_note(&format!("{} empty {subject_and_verb} skipped.", self.notes.empty_lines));
        }
        if self.notes.crlf_lines > 0 && !self.notes.is_event_stream {
            let subject_and_verb = if self.notes.crlf_lines == 1 { "line ends" } else { "lines end" };
            let text = format!(
                "{} {subject_and_verb} in CR LF. The CR counts as white space.",
                self.notes.crlf_lines
            );
            self.report.print_note(&text);
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
    fn new(findings: Findings, limit: usize) -> Self {
        Self { validator: Validator::new(), tape: Tape::default(), findings, limit }
    }

    fn check(&mut self, input: &InputBlock) -> CheckedBlock {
        let mut block = CheckedBlock {
            items: Vec::new(),
            lines: input.lines,
            notes: InputNotes { is_event_stream: input.is_event_stream, ..InputNotes::default() },
            is_input_drained: input.is_input_drained,
            text: String::new(),
        };
        if input.has_byte_order_mark {
            Validator::report_byte_order_mark(&mut self.findings);
            block.items.push(CheckedItem {
                line: 1,
                findings: self.findings.take(),
                kind: CheckedKind::Unreadable,
            });
        }
        match &input.items {
            BlockItems::Lines => {
                let body = input.bytes.strip_suffix(b"\n").unwrap_or(&input.bytes);
                if input.bytes.is_empty() {
                    return block;
                }
                let line_ends = memchr::memchr_iter(b'\n', body).chain([body.len()]);
                let mut start = 0;
                for (index, end) in line_ends.enumerate() {
                    self.check_line(index as u64 + 1, &body[start..end], &mut block);
                    start = end + 1;
                }
            }
            BlockItems::Spans(spans) => {
                for span in spans {
                    self.check_span(span, &input.bytes, &mut block);
                }
            }
        }
        block
    }

    fn check_line(&mut self, number: u64, line: &[u8], block: &mut CheckedBlock) {
        let line = match line.strip_suffix(b"\r") {
            Some(rest) => {
                block.notes.crlf_lines += 1;
                rest
            }
            None => line,
        };
        if line.len() <= self.limit && line.iter().all(u8::is_ascii_whitespace) {
            block.notes.empty_lines += 1;
            return;
        }
        self.check_item(number, line, block);
    }

    fn check_span(&mut self, span: &ItemSpan, bytes: &[u8], block: &mut CheckedBlock) {
        let Some(error) = span.error else {
            return self.check_item(span.line, &bytes[span.start..span.end], block);
        };
        let findings = &mut self.findings;
        error.add_finding(self.limit, findings);
        block.items.push(CheckedItem {
            line: span.line,
            findings: findings.take(),
            kind: CheckedKind::Unreadable,
        });
    }

    fn check_item(&mut self, line: u64, bytes: &[u8], block: &mut CheckedBlock) {
        let kind = self.check_document(bytes, &mut block.text);
        block.items.push(CheckedItem { line, findings: self.findings.take(), kind });
    }

    fn check_document(&mut self, bytes: &[u8], arena: &mut String) -> CheckedKind {
        if bytes.len() > self.limit {
            Validator::report_oversize(self.limit, &mut self.findings);
            return CheckedKind::Unreadable;
        }
        match super::check_bytes(bytes, &mut self.tape, &mut self.validator, &mut self.findings) {
            CheckedDocument::Event(event) => {
                CheckedKind::Event(event.map(&mut |text: &Cow<'_, str>| push_text(text, arena)))
            }
            CheckedDocument::Message(message) => CheckedKind::Message(message),
            CheckedDocument::InvalidReply(token) => CheckedKind::InvalidReply(push_text(&token, arena)),
            CheckedDocument::EventWithoutSession(id) => {
                CheckedKind::WithoutSession(id.map(|id| push_text(&id, arena)))
            }
            _ => CheckedKind::Unreadable,
        }
    }
}

#[allow(clippy::cast_possible_truncation, reason = "a block is far smaller than 4 GiB")]
fn push_text(text: &str, arena: &mut String) -> TextSpan {
    let start = arena.len() as u32;
    arena.push_str(text);
    TextSpan { start, end: arena.len() as u32 }
}
