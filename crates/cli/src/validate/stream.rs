//! A captured event stream (`curl … > file`) read as what its `data:` lines say, and whatever was captured without the head of
//! its answer (`curl -i`). Every line stays a line, so that findings name the lines of the file.

use std::io::{self, Read};

/// What a line of such a stream begins with.
const FIELDS: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];
const DATA: &[u8] = b"data:";
const MARK: &[u8] = b"\xEF\xBB\xBF";
/// What the head of an answer begins with.
const HEAD: &[u8] = b"HTTP/";
/// How much is read at a time, once it is known to be a stream.
const BLOCK: usize = 64 * 1024;

/// An input. If it begins as an event stream does, only the data of it is given; else all of it, as it is. Of an answer's head
/// nothing is given but the ends of its lines.
pub(super) struct Unwrapped<R> {
    input: R,
    kind: Kind,
    /// Read, and not given yet.
    held: Vec<u8>,
    given: usize,
}

enum Kind {
    /// All that was seen could still begin either.
    Unknown,
    /// It is given as it is.
    Plain,
    Stream(Line),
}

/// Where in a line of a stream the next byte stands.
#[derive(Clone, Copy)]
enum Line {
    /// In `data:`, of which so many bytes were seen; then in the space behind it.
    Field(usize),
    Data,
    Other,
}

impl<R: Read> Unwrapped<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, kind: Kind::Unknown, held: Vec::new(), given: 0 }
    }

    pub(super) fn is_stream(&self) -> bool {
        matches!(self.kind, Kind::Stream(_))
    }

    /// Reads on until it is known what it is.
    fn find_kind(&mut self) -> io::Result<()> {
        let mut some = [0; 512];
        while matches!(self.kind, Kind::Unknown) {
            let read = self.input.read(&mut some)?;
            self.held.extend_from_slice(some.get(..read).unwrap_or_default());
            let body = body(&self.held);
            self.kind = match body.and_then(|at| is_stream(self.held.get(at..).unwrap_or_default())) {
                Some(true) => Kind::Stream(Line::Field(0)),
                Some(false) => Kind::Plain,
                None if read == 0 => Kind::Plain,
                // However many empty lines there are, no more of them are held.
                None if self.held.len() > BLOCK => Kind::Plain,
                None => Kind::Unknown,
            };
        }
        if let Kind::Stream(line) = &mut self.kind {
            let mark = if self.held.starts_with(MARK) { MARK.len() } else { 0 };
            let mut data = self.held.get(..mark).unwrap_or_default().to_vec();
            unwrap(line, self.held.get(mark..).unwrap_or_default(), &mut data);
            self.held = data;
        } else if let Some(at @ 1..) = body(&self.held) {
            let head: Vec<u8> = self.held.drain(..at).collect();
            self.held.splice(..0, head.into_iter().filter(|byte| *byte == b'\n'));
        }
        Ok(())
    }
}

impl<R: Read> Read for Unwrapped<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if matches!(self.kind, Kind::Unknown) {
            self.find_kind()?;
        }
        loop {
            let waiting = self.held.get(self.given..).unwrap_or_default();
            if !waiting.is_empty() || out.is_empty() {
                let length = waiting.len().min(out.len());
                for (to, from) in out.iter_mut().zip(waiting) {
                    *to = *from;
                }
                self.given += length;
                return Ok(length);
            }
            self.held.clear();
            self.given = 0;
            let Kind::Stream(line) = &mut self.kind else { return self.input.read(out) };
            let mut some = vec![0; BLOCK];
            let read = self.input.read(&mut some)?;
            if read == 0 {
                return Ok(0);
            }
            unwrap(line, some.get(..read).unwrap_or_default(), &mut self.held);
        }
    }
}

/// Where an answer's body begins, behind its head and those of answers before it; nothing if more must be seen. Without a head,
/// that is the beginning.
fn body(seen: &[u8]) -> Option<usize> {
    let mark = if seen.starts_with(MARK) { MARK.len() } else { 0 };
    let mut at = mark;
    loop {
        let rest = seen.get(at..)?;
        if !rest.starts_with(HEAD) {
            let unsure = !rest.is_empty() && HEAD.starts_with(rest);
            return (!unsure).then_some(if at == mark { 0 } else { at });
        }
        let end =
            |stop: &[u8]| rest.windows(stop.len()).position(|some| some == stop).map(|it| it + stop.len());
        at += match (end(b"\n\r\n"), end(b"\n\n")) {
            (Some(one), Some(other)) => one.min(other),
            (one, other) => one.or(other)?,
        };
    }
}

/// Whether what begins so is an event stream; nothing if more must be seen.
fn is_stream(seen: &[u8]) -> Option<bool> {
    let seen = seen.strip_prefix(MARK).unwrap_or(seen);
    let begin = seen.iter().position(|byte| !byte.is_ascii_whitespace())?;
    let first = seen.get(begin..).unwrap_or_default();
    if FIELDS.iter().any(|field| first.starts_with(field)) {
        return Some(true);
    }
    let unsure = MARK.starts_with(first) || FIELDS.iter().any(|field| field.starts_with(first));
    (!unsure).then_some(false)
}

/// Leaves of some bytes the data, and the ends of lines.
fn unwrap(line: &mut Line, bytes: &[u8], data: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some((first, behind)) = rest.split_first() {
        match *line {
            _ if *first == b'\n' => {
                data.push(b'\n');
                *line = Line::Field(0);
                rest = behind;
            }
            Line::Field(seen) if DATA.get(seen) == Some(first) => {
                *line = Line::Field(seen + 1);
                rest = behind;
            }
            Line::Field(seen) if seen == DATA.len() => {
                *line = Line::Data;
                rest = if *first == b' ' { behind } else { rest };
            }
            Line::Field(_) => *line = Line::Other,
            Line::Data | Line::Other => {
                let (now, after) = rest.split_at(memchr::memchr(b'\n', rest).unwrap_or(rest.len()));
                if matches!(line, Line::Data) {
                    data.extend_from_slice(now);
                }
                rest = after;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives at most so many bytes at a time.
    struct Slow<'t>(&'t [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let most = out.len().min(self.1);
            self.0.read(out.get_mut(..most).unwrap())
        }
    }

    fn read(text: &str, step: usize) -> (String, bool) {
        let mut input = Unwrapped::new(Slow(text.as_bytes(), step));
        let mut all = String::new();
        input.read_to_string(&mut all).unwrap();
        (all, input.is_stream())
    }

    #[test]
    fn only_what_begins_as_a_stream_is_taken_for_one() {
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
    fn the_head_of_an_answer_is_left_out() {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\ndate: now\r\n\r\n";
        let ends = "\n\n\n\n";
        for (text, data, stream) in [
            (format!("{head}id: 1\ndata: {{}}\n\n"), format!("{ends}\n{{}}\n\n"), true),
            (format!("HTTP/1.1 100 Continue\r\n\r\n{head}data: 1\n"), format!("\n\n{ends}1\n"), true),
            ("HTTP/2 200 \n\n: a\ndata: 1\n".to_owned(), "\n\n\n1\n".to_owned(), true),
            (format!("\u{FEFF}{head}data: 1\n"), format!("\u{FEFF}{ends}1\n"), true),
            (format!("{head}{{}}\n"), format!("{ends}{{}}\n"), false),
            (head.to_owned(), ends.to_owned(), false),
            // It is no whole head.
            ("HTTP/1.1 200 OK\r\ndata: 1".to_owned(), "HTTP/1.1 200 OK\r\ndata: 1".to_owned(), false),
            ("HTT".to_owned(), "HTT".to_owned(), false),
        ] {
            for step in [1, 2, 3, 1000] {
                assert_eq!(read(&text, step), (data.clone(), stream), "{text:?} {step}");
            }
        }
    }

    #[test]
    fn it_is_the_same_however_it_comes_in() {
        let text = ": a\nid: 7\ndata: {\"a\": 1,\r\ndata:\ndata:  2}\r\n\r\nevent: data: x\n\ndata: [";
        for step in 1..text.len() {
            assert_eq!(read(text, step), read(text, 100_000), "{step}");
        }
        assert_eq!(read(text, 1).0, "\n\n{\"a\": 1,\r\n\n 2}\r\n\n\n\n[");
    }
}
