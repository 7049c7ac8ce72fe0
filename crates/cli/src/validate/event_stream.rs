//! Extracts the data of a captured event stream (`curl … > file`), and removes the HTTP head of a captured response
//! (`curl -i`). Every line stays a line, so findings keep the line numbers of the file.

use std::io::{self, Read};

/// The prefixes with which lines of an event stream start.
const SSE_FIELD_PREFIXES: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];
const DATA_PREFIX: &[u8] = b"data:";
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
/// The prefix with which an HTTP response head starts.
const HTTP_HEAD_PREFIX: &[u8] = b"HTTP/";
/// Number of bytes of an event stream that are read at a time.
const READ_BLOCK_BYTES: usize = 64 * 1024;

/// An input adapter. If the input starts like an event stream, it returns only the stream's data. Other input is returned
/// unchanged. In both cases, an HTTP head is replaced by its line ends.
pub(super) struct EventStreamUnwrapper<R> {
    input: R,
    kind: InputKind,
    /// Bytes that were read from the input and are not yet all returned.
    buffer: Vec<u8>,
    consumed: usize,
}

enum InputKind {
    /// Not enough input has been read to decide.
    Unknown,
    /// The input is not an event stream.
    NotStream,
    Stream(LinePosition),
}

/// The position of the next byte in a line of a stream.
#[derive(Clone, Copy)]
enum LinePosition {
    /// Near the start of a line, after this many bytes that match `data:`. After the whole `data:`, one space may follow.
    Field(usize),
    Data,
    Other,
}

impl<R: Read> EventStreamUnwrapper<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, kind: InputKind::Unknown, buffer: Vec::new(), consumed: 0 }
    }

    pub(super) fn looks_like_stream(&self) -> bool {
        matches!(self.kind, InputKind::Stream(_))
    }

    /// Reads until the kind of the input is known.
    fn detect_kind(&mut self) -> io::Result<()> {
        let mut chunk = [0; 512];
        while matches!(self.kind, InputKind::Unknown) {
            let read = self.input.read(&mut chunk)?;
            self.buffer.extend_from_slice(chunk.get(..read).unwrap_or_default());
            let body = find_body_start(&self.buffer);
            self.kind = match body.and_then(|at| is_stream(self.buffer.get(at..).unwrap_or_default())) {
                Some(true) => InputKind::Stream(LinePosition::Field(0)),
                Some(false) => InputKind::NotStream,
                None if read == 0 => InputKind::NotStream,
                // Leading empty lines are buffered only up to this limit.
                None if self.buffer.len() > READ_BLOCK_BYTES => InputKind::NotStream,
                None => InputKind::Unknown,
            };
        }
        if let InputKind::Stream(line) = &mut self.kind {
            let mark_len = if self.buffer.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
            let mut data = self.buffer.get(..mark_len).unwrap_or_default().to_vec();
            extract_data(line, self.buffer.get(mark_len..).unwrap_or_default(), &mut data);
            self.buffer = data;
        } else if let Some(at @ 1..) = find_body_start(&self.buffer) {
            let head: Vec<u8> = self.buffer.drain(..at).collect();
            self.buffer.splice(..0, head.into_iter().filter(|byte| *byte == b'\n'));
        }
        Ok(())
    }
}

impl<R: Read> Read for EventStreamUnwrapper<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if matches!(self.kind, InputKind::Unknown) {
            self.detect_kind()?;
        }
        loop {
            let pending = self.buffer.get(self.consumed..).unwrap_or_default();
            if !pending.is_empty() || out.is_empty() {
                let length = pending.len().min(out.len());
                for (target, source) in out.iter_mut().zip(pending) {
                    *target = *source;
                }
                self.consumed += length;
                return Ok(length);
            }
            self.buffer.clear();
            self.consumed = 0;
            let InputKind::Stream(line) = &mut self.kind else { return self.input.read(out) };
            let mut chunk = vec![0; READ_BLOCK_BYTES];
            let read = self.input.read(&mut chunk)?;
            if read == 0 {
                return Ok(0);
            }
            extract_data(line, chunk.get(..read).unwrap_or_default(), &mut self.buffer);
        }
    }
}

/// Returns where the body starts, which is after all HTTP heads, or at 0 if there are none. Returns `None` if more input is
/// needed.
fn find_body_start(seen: &[u8]) -> Option<usize> {
    let mark_len = if seen.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let mut at = mark_len;
    loop {
        let rest = seen.get(at..)?;
        if !rest.starts_with(HTTP_HEAD_PREFIX) {
            let is_undecided = !rest.is_empty() && HTTP_HEAD_PREFIX.starts_with(rest);
            return (!is_undecided).then_some(if at == mark_len { 0 } else { at });
        }
        let end = |stop: &[u8]| {
            rest.windows(stop.len()).position(|chunk| chunk == stop).map(|start| start + stop.len())
        };
        at += match (end(b"\n\r\n"), end(b"\n\n")) {
            (Some(crlf_end), Some(lf_end)) => crlf_end.min(lf_end),
            (crlf_end, lf_end) => crlf_end.or(lf_end)?,
        };
    }
}

/// Returns whether the input is an event stream; `None` if more input is needed.
fn is_stream(seen: &[u8]) -> Option<bool> {
    let seen = seen.strip_prefix(BYTE_ORDER_MARK).unwrap_or(seen);
    let start = seen.iter().position(|byte| !byte.is_ascii_whitespace())?;
    let first = seen.get(start..).unwrap_or_default();
    if SSE_FIELD_PREFIXES.iter().any(|field| first.starts_with(field)) {
        return Some(true);
    }
    let is_undecided =
        BYTE_ORDER_MARK.starts_with(first) || SSE_FIELD_PREFIXES.iter().any(|field| field.starts_with(first));
    (!is_undecided).then_some(false)
}

/// Copies the data and the line ends from a part of a stream.
fn extract_data(line: &mut LinePosition, bytes: &[u8], data: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some((first, after_first)) = rest.split_first() {
        match *line {
            _ if *first == b'\n' => {
                data.push(b'\n');
                *line = LinePosition::Field(0);
                rest = after_first;
            }
            LinePosition::Field(seen) if DATA_PREFIX.get(seen) == Some(first) => {
                *line = LinePosition::Field(seen + 1);
                rest = after_first;
            }
            LinePosition::Field(seen) if seen == DATA_PREFIX.len() => {
                *line = LinePosition::Data;
                rest = if *first == b' ' { after_first } else { rest };
            }
            LinePosition::Field(_) => *line = LinePosition::Other,
            LinePosition::Data | LinePosition::Other => {
                let (current, after) = rest.split_at(memchr::memchr(b'\n', rest).unwrap_or(rest.len()));
                if matches!(line, LinePosition::Data) {
                    data.extend_from_slice(current);
                }
                rest = after;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns at most this many bytes per read.
    struct SlowReader<'t>(&'t [u8], usize);

    impl Read for SlowReader<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let length = out.len().min(self.1);
            self.0.read(out.get_mut(..length).unwrap())
        }
    }

    fn read(text: &str, step: usize) -> (String, bool) {
        let mut input = EventStreamUnwrapper::new(SlowReader(text.as_bytes(), step));
        let mut all = String::new();
        input.read_to_string(&mut all).unwrap();
        (all, input.looks_like_stream())
    }

    #[test]
    fn an_input_that_starts_like_a_stream_is_unwrapped() {
        for (text, data) in [
            ("data: {}\n\n", "{}\n\n"),
            ("data:{}\n", "{}\n"),
            ("id: 1\nevent: x\ndata: {\"a\":\ndata: 1}\n", "\n\n{\"a\":\n1}\n"),
            (": hello\n\ndata:  [1]", "\n\n [1]"),
            ("\n\r\nretry: 10\ndata: 1\r\n", "\n\n\n1\r\n"),
            ("id: data: 2\ndata\ndate: 3\nnothing", "\n\n\n"),
            ("\u{FEFF}data: 1\n", "\u{FEFF}1\n"),
        ] {
            for step in [1, 2, 3, 1000] {
                assert_eq!(read(text, step), (data.to_owned(), true), "{text:?} {step}");
            }
        }
        for text in
            ["", "{}", "\n\n", "dat", "database: 1", "\"data:\"", "ideas: 1", "[1]\ndata: 2\n", "\u{FEFF}"]
        {
            for step in [1, 2, 1000] {
                assert_eq!(read(text, step), (text.to_owned(), false), "{text:?} {step}");
            }
        }
    }

    #[test]
    fn the_http_head_of_a_response_is_removed() {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\ndate: now\r\n\r\n";
        let line_ends = "\n\n\n\n";
        for (text, data, is_stream) in [
            (format!("{head}id: 1\ndata: {{}}\n\n"), format!("{line_ends}\n{{}}\n\n"), true),
            (format!("HTTP/1.1 100 Continue\r\n\r\n{head}data: 1\n"), format!("\n\n{line_ends}1\n"), true),
            ("HTTP/2 200 \n\n: a\ndata: 1\n".to_owned(), "\n\n\n1\n".to_owned(), true),
            (format!("\u{FEFF}{head}data: 1\n"), format!("\u{FEFF}{line_ends}1\n"), true),
            (format!("{head}{{}}\n"), format!("{line_ends}{{}}\n"), false),
            (head.to_owned(), line_ends.to_owned(), false),
            // An incomplete head.
            ("HTTP/1.1 200 OK\r\ndata: 1".to_owned(), "HTTP/1.1 200 OK\r\ndata: 1".to_owned(), false),
            ("HTT".to_owned(), "HTT".to_owned(), false),
        ] {
            for step in [1, 2, 3, 1000] {
                assert_eq!(read(&text, step), (data.clone(), is_stream), "{text:?} {step}");
            }
        }
    }

    #[test]
    fn the_data_does_not_depend_on_the_read_size() {
        let text = ": a\nid: 7\ndata: {\"a\": 1,\r\ndata:\ndata:  2}\r\n\r\nevent: data: x\n\ndata: [";
        for step in 1..text.len() {
            assert_eq!(read(text, step), read(text, 100_000), "{step}");
        }
        assert_eq!(read(text, 1).0, "\n\n{\"a\": 1,\r\n\n 2}\r\n\n\n\n[");
    }
}
