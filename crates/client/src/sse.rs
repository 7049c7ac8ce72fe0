//! A parser for server-sent events that accepts bytes in chunks of any size.

use std::time::Duration;

/// One event of a stream. An event without data only sets the id to resume from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The type of the event. Empty if the event has no `event` field.
    pub event_type: String,
    /// The data of the event. Invalid UTF-8 is replaced by U+FFFD.
    pub data: Option<String>,
    /// The id from which to resume after this event.
    pub id: Option<String>,
    /// An error in the event.
    pub error: Option<SseEventError>,
}

/// An error in an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SseEventError {
    /// The event exceeds the limit. Its data was dropped.
    TooLong,
    /// The event contains invalid UTF-8.
    NotUtf8,
}

/// A parser for event streams. As in the standard, `\n`, `\r\n` and `\r` end a line, and a line that starts with a colon
/// is a comment.
///
/// ```
/// use client::sse::SseParser;
/// let (mut parser, mut events) = (SseParser::new(1000), Vec::new());
/// parser.feed(b"id: 1\nda", &mut events);
/// parser.feed(b"ta: hello\n\n", &mut events);
/// assert_eq!(events[0].data.as_deref(), Some("hello"));
/// ```
#[derive(Debug)]
pub struct SseParser {
    line: Vec<u8>,
    /// Length of the current line, including bytes that were not stored.
    line_bytes: usize,
    current: SseEvent,
    /// Length of the current event, without comments.
    event_bytes: usize,
    is_after_carriage_return: bool,
    is_first_line: bool,
    max_event_bytes: usize,
    retry: Option<Duration>,
}

impl SseParser {
    /// Creates a parser that stores at most this many bytes of an event.
    pub fn new(max_event_bytes: usize) -> Self {
        Self {
            line: Vec::new(),
            line_bytes: 0,
            current: SseEvent::default(),
            event_bytes: 0,
            is_after_carriage_return: false,
            is_first_line: true,
            max_event_bytes,
            retry: None,
        }
    }

    /// Parses the next bytes and appends the completed events to `events`.
    pub fn feed(&mut self, bytes: &[u8], events: &mut Vec<SseEvent>) {
        for byte in bytes {
            let is_after_carriage_return =
                std::mem::replace(&mut self.is_after_carriage_return, *byte == b'\r');
            match byte {
                b'\n' if is_after_carriage_return => {}
                b'\n' | b'\r' => events.extend(self.end_line()),
                other => {
                    self.line_bytes += 1;
                    self.event_bytes += 1;
                    if self.event_bytes <= self.max_event_bytes {
                        self.line.push(*other);
                    } else if !self.is_too_long() && self.line.first() != Some(&b':') {
                        self.current.error = Some(SseEventError::TooLong);
                        self.current.data = None;
                        self.line = Vec::new();
                    }
                }
            }
        }
    }

    /// Returns how long the server asks to wait before the client reconnects.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Returns whether the incomplete event exceeds the limit.
    pub fn is_too_long(&self) -> bool {
        self.current.error == Some(SseEventError::TooLong)
    }

    /// Returns the last event of a stream that has ended without an empty line after the event. The standard would drop
    /// this event.
    pub fn finish(&mut self) -> Option<SseEvent> {
        if self.line_bytes > 0 {
            self.end_line();
        }
        self.end_line()
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        let line = std::mem::take(&mut self.line);
        let line_bytes = std::mem::take(&mut self.line_bytes);
        let is_first_line = std::mem::take(&mut self.is_first_line);
        if line_bytes == 0 {
            self.event_bytes = 0;
            return Some(std::mem::take(&mut self.current)).filter(|event| *event != SseEvent::default());
        }
        if line.starts_with(b":") {
            // Comments keep the connection alive. They do not count towards the limit.
            self.event_bytes -= line_bytes;
            return None;
        }
        let line = String::from_utf8(line).unwrap_or_else(|error| {
            self.current.error.get_or_insert(SseEventError::NotUtf8);
            String::from_utf8_lossy(error.as_bytes()).into_owned()
        });
        let line = line.strip_prefix('\u{feff}').filter(|_| is_first_line).unwrap_or(&line);
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => value.clone_into(&mut self.current.event_type),
            "data" if !self.is_too_long() => match &mut self.current.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.current.data = Some(value.to_owned()),
            },
            "id" if !value.contains('\0') => self.current.id = Some(value.to_owned()),
            "retry" => self.retry = value.parse().ok().map(Duration::from_millis).or(self.retry),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = ": hello\n\nevent: aaep.event\r\nid: evt_1\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\nid: evt_2\n\ndata:x\r\r";

    fn expected() -> Vec<SseEvent> {
        vec![
            SseEvent {
                event_type: "aaep.event".to_owned(),
                data: Some("{\"a\":\n1}".to_owned()),
                id: Some("evt_1".to_owned()),
                error: None,
            },
            SseEvent { id: Some("evt_2".to_owned()), ..SseEvent::default() },
            data_event("x"),
        ]
    }

    fn data_event(data: &str) -> SseEvent {
        SseEvent { data: Some(data.to_owned()), ..SseEvent::default() }
    }

    fn read(parser: &mut SseParser, chunks: &[&[u8]]) -> Vec<SseEvent> {
        let mut events = Vec::new();
        for chunk in chunks {
            parser.feed(chunk, &mut events);
        }
        events
    }

    #[test]
    fn the_events_do_not_depend_on_where_the_bytes_are_split() {
        for cut in 0..=TEXT.len() {
            let (first, last) = TEXT.as_bytes().split_at(cut);
            assert_eq!(read(&mut SseParser::new(1000), &[first, last]), expected(), "cut at {cut}");
        }
    }

    #[test]
    fn a_stream_is_parsed_as_the_standard_specifies() {
        let text =
            "\u{feff}data: one\r\n\r\ndata:two\rdata: lines\r\rdata\n\ndata:\ndata:x\n\n\u{feff}data: y\n\n";
        let events = read(&mut SseParser::new(1000), &[text.as_bytes()]);
        assert_eq!(events, ["one", "two\nlines", "", "\nx"].map(data_event));
    }

    #[test]
    fn the_delay_that_the_server_asks_for_is_kept() {
        let mut parser = SseParser::new(1000);
        assert_eq!(read(&mut parser, &[b"retry: 500\n\nretry: soon\n\n"]), []);
        assert_eq!(parser.retry(), Some(Duration::from_millis(500)));
    }

    #[test]
    fn finish_returns_an_unterminated_last_event() {
        for text in ["data: last", "data: last\n", "data: la\ndata: st"] {
            let mut parser = SseParser::new(1000);
            assert_eq!(read(&mut parser, &[text.as_bytes()]), []);
            let data = parser.finish().and_then(|event| event.data);
            assert_eq!(data.map(|data| data.replace('\n', "")).as_deref(), Some("last"));
            assert_eq!(parser.finish(), None);
        }
    }

    #[test]
    fn invalid_utf8_is_replaced_and_reported() {
        let events = read(&mut SseParser::new(100), &[b"data: a\xff\n\ndata: b\n\n"]);
        let broken = SseEvent { error: Some(SseEventError::NotUtf8), ..data_event("a\u{fffd}") };
        assert_eq!(events, [broken, data_event("b")]);
    }

    #[test]
    fn the_data_of_an_oversized_event_is_dropped_and_the_next_event_is_parsed() {
        let long = [b'y'; 1000];
        for start in [&b"id: 7\ndata: x\ndata: "[..], b"id: 7\n"] {
            let mut parser = SseParser::new(100);
            assert_eq!(read(&mut parser, &[start, &long]), []);
            assert!(parser.is_too_long());
            let events = read(&mut parser, &[&long, b"\ndata: z\n\n", b"data: next\n\n"]);
            let dropped = SseEvent {
                id: Some("7".to_owned()),
                error: Some(SseEventError::TooLong),
                ..SseEvent::default()
            };
            assert_eq!(events, [dropped, data_event("next")]);
            assert!(parser.line.capacity() <= 200);
        }
        // Comments do not count towards the limit.
        let mut parser = SseParser::new(100);
        for _ in 0..1000 {
            assert!(read(&mut parser, &[b": alive\n"]).is_empty());
        }
        assert_eq!(read(&mut parser, &[b": ", &long, b"\ndata: next\n\n"]), [data_event("next")]);
    }

    proptest! {
        #[test]
        fn random_events_do_not_depend_on_where_the_bytes_are_split(
            words in proptest::collection::vec("[a-zé€😀 :]{0,12}", 1..6),
            end in proptest::sample::select(vec!["\n", "\r\n", "\r"]),
            cuts in proptest::collection::vec(0usize..200, 0..12),
        ) {
            let text: Vec<String> = words.iter().map(|word| format!("data: {word}{end}{end}")).collect();
            let text = text.concat();
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            let events: Vec<_> = read(&mut SseParser::new(1000), &chunks).into_iter().filter_map(|event| event.data).collect();
            prop_assert_eq!(events, words);
        }
    }
}
