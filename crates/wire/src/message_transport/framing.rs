//! Framing of messages in a byte stream (§8.2.2).

use tokio::io::{AsyncRead, AsyncReadExt};

/// How messages are framed. A connection uses one framing throughout (C-E10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageFraming {
    /// One message per line.
    Lines,
    /// A four-byte big-endian length before each message.
    LengthPrefixed,
}

impl MessageFraming {
    /// Encodes a message with its frame.
    pub(super) fn encode(self, json: &str) -> Vec<u8> {
        match self {
            Self::Lines => [json.as_bytes(), b"\n"].concat(),
            Self::LengthPrefixed => {
                let length = u32::try_from(json.len()).unwrap_or(u32::MAX);
                [&length.to_be_bytes(), json.as_bytes()].concat()
            }
        }
    }
}

/// Why the next message cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameError {
    /// The stream has ended.
    Eof,
    /// The message exceeds the limit. With lines, reading can continue at the next line.
    TooLarge,
}

/// Reads framed messages from a stream.
#[derive(Debug)]
pub(super) struct FrameReader<R> {
    reader: R,
    framing: MessageFraming,
    max_bytes: usize,
    buffer: Vec<u8>,
    /// Number of buffered bytes known to contain no line ending.
    scanned_bytes: usize,
    /// Whether the rest of an overlong line is being skipped.
    is_skipping_line: bool,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// Creates a reader for messages of up to `max_bytes` bytes.
    pub(super) fn new(reader: R, framing: MessageFraming, max_bytes: usize) -> Self {
        Self { reader, framing, max_bytes, buffer: Vec::new(), scanned_bytes: 0, is_skipping_line: false }
    }

    /// Detects the framing from the first bytes, which have been read already. A length prefix never starts with `{`,
    /// because that would be a message of 2 GB.
    pub(super) fn detect(reader: R, first_bytes: Vec<u8>, max_bytes: usize) -> Self {
        let is_json = first_bytes.first() == Some(&b'{');
        let framing = if is_json { MessageFraming::Lines } else { MessageFraming::LengthPrefixed };
        Self { buffer: first_bytes, ..Self::new(reader, framing, max_bytes) }
    }

    /// Returns the framing.
    pub(super) fn framing(&self) -> MessageFraming {
        self.framing
    }

    /// Returns the underlying reader.
    pub(super) fn into_reader(self) -> R {
        self.reader
    }

    /// Returns the next message. Cancel-safe.
    pub(super) async fn next(&mut self) -> Result<Vec<u8>, FrameError> {
        loop {
            let message = match self.framing {
                MessageFraming::Lines => self.next_line()?,
                MessageFraming::LengthPrefixed => self.next_length_prefixed()?,
            };
            if let Some(message) = message {
                return Ok(message);
            }
            if !self.fill_buffer().await {
                return Err(FrameError::Eof);
            }
        }
    }

    /// Reads more bytes. Returns `false` if the stream has ended.
    async fn fill_buffer(&mut self) -> bool {
        self.buffer.reserve(4096);
        self.reader.read_buf(&mut self.buffer).await.is_ok_and(|count| count > 0)
    }

    fn next_line(&mut self) -> Result<Option<Vec<u8>>, FrameError> {
        loop {
            let unscanned = self.buffer.get(self.scanned_bytes..).unwrap_or_default();
            let end =
                unscanned.iter().position(|byte| *byte == b'\n').map(|offset| self.scanned_bytes + offset);
            let Some(end) = end else {
                self.scanned_bytes = self.buffer.len();
                if self.is_skipping_line || self.buffer.len() > self.max_bytes {
                    self.buffer.clear();
                    self.scanned_bytes = 0;
                    if !std::mem::replace(&mut self.is_skipping_line, true) {
                        return Err(FrameError::TooLarge);
                    }
                }
                return Ok(None);
            };
            self.scanned_bytes = 0;
            let mut line: Vec<u8> = self.buffer.drain(..=end).collect();
            if std::mem::take(&mut self.is_skipping_line) {
                continue;
            }
            if line.len() > self.max_bytes + 1 {
                return Err(FrameError::TooLarge);
            }
            line.truncate(line.trim_ascii_end().len());
            if !line.is_empty() {
                return Ok(Some(line));
            }
        }
    }

    fn next_length_prefixed(&mut self) -> Result<Option<Vec<u8>>, FrameError> {
        let Some(length) = self.buffer.first_chunk::<4>() else { return Ok(None) };
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        if length > self.max_bytes {
            return Err(FrameError::TooLarge);
        }
        if self.buffer.len() < 4 + length {
            return Ok(None);
        }
        Ok(Some(self.buffer.drain(..4 + length).skip(4).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(bytes: &[u8], max_bytes: usize) -> Vec<Result<String, FrameError>> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (first, rest) = bytes.split_at(bytes.len().min(3));
            let mut reader = FrameReader::detect(rest, first.to_vec(), max_bytes);
            let mut messages = Vec::new();
            loop {
                let next = reader.next().await.map(|bytes| String::from_utf8(bytes).unwrap());
                messages.push(next.clone());
                if next == Err(FrameError::Eof) || messages.len() > 9 {
                    return messages;
                }
            }
        })
    }

    #[test]
    fn the_first_byte_determines_the_framing() {
        let expected = [Ok(r#"{"a":1}"#.to_owned()), Ok("{}".to_owned()), Err(FrameError::Eof)];
        assert_eq!(read_all(b"{\"a\":1}\r\n\n{}\n", 100), expected);
        assert_eq!(read_all(b"\0\0\0\x07{\"a\":1}\0\0\0\x02{}\0\0", 100), expected);
        for framing in [MessageFraming::Lines, MessageFraming::LengthPrefixed] {
            assert_eq!(
                read_all(&[framing.encode(r#"{"a":1}"#), framing.encode("{}")].concat(), 100),
                expected
            );
        }
    }

    #[test]
    fn an_overlong_line_is_skipped() {
        let long = format!("{{{}\n{{}}\n", "x".repeat(9000));
        assert_eq!(
            read_all(long.as_bytes(), 8),
            [Err(FrameError::TooLarge), Ok("{}".to_owned()), Err(FrameError::Eof)]
        );
        assert_eq!(
            read_all(b"\0\0\0\x09", 8).first(),
            Some(&Err(FrameError::TooLarge)),
            "an overlong message with a length prefix is refused"
        );
    }
}
