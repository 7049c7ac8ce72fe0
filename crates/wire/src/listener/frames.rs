//! How messages stand one after the other in a stream of bytes (§8.2.2).

use tokio::io::{AsyncRead, AsyncReadExt};

/// One of the two, throughout (C-E10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// A line each.
    Lines,
    /// Four bytes that say how long it is, the greatest first, and then the message.
    Counted,
}

impl Framing {
    /// A message in its frame.
    pub(super) fn wrap(self, json: &str) -> Vec<u8> {
        match self {
            Self::Lines => [json.as_bytes(), b"\n"].concat(),
            Self::Counted => {
                let length = u32::try_from(json.len()).unwrap_or(u32::MAX);
                [&length.to_be_bytes(), json.as_bytes()].concat()
            }
        }
    }
}

/// Why there is no next message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoMessage {
    /// The stream has ended.
    End,
    /// It is longer than is taken. Of lines, the next can be read all the same.
    TooLarge,
}

/// Takes messages out of a stream.
#[derive(Debug)]
pub(super) struct Frames<R> {
    reader: R,
    framing: Framing,
    most: usize,
    bytes: Vec<u8>,
    /// So many of these are known to have no end of line.
    looked_at: usize,
    /// The rest of a line that is too long is left out.
    skipping: bool,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    /// Messages of up to `most` bytes, framed like that.
    pub(super) fn new(reader: R, framing: Framing, most: usize) -> Self {
        Self { reader, framing, most, bytes: Vec::new(), looked_at: 0, skipping: false }
    }

    /// Looks at the first byte for how messages are framed: a counted message that begins like JSON would have 2 GB.
    pub(super) async fn detect(reader: R, most: usize) -> Option<Self> {
        let mut frames = Self::new(reader, Framing::Counted, most);
        if !frames.read().await {
            return None;
        }
        if frames.bytes.first() == Some(&b'{') {
            frames.framing = Framing::Lines;
        }
        Some(frames)
    }

    /// How they are framed.
    pub(super) fn framing(&self) -> Framing {
        self.framing
    }

    /// What it reads from.
    pub(super) fn into_reader(self) -> R {
        self.reader
    }

    /// The next message. A future that is dropped before it is done loses nothing.
    pub(super) async fn next(&mut self) -> Result<Vec<u8>, NoMessage> {
        loop {
            let found = match self.framing {
                Framing::Lines => self.line()?,
                Framing::Counted => self.counted()?,
            };
            if let Some(found) = found {
                return Ok(found);
            }
            if !self.read().await {
                return Err(NoMessage::End);
            }
        }
    }

    async fn read(&mut self) -> bool {
        self.bytes.reserve(4096);
        self.reader.read_buf(&mut self.bytes).await.is_ok_and(|count| count > 0)
    }

    fn line(&mut self) -> Result<Option<Vec<u8>>, NoMessage> {
        loop {
            let new = self.bytes.get(self.looked_at..).unwrap_or_default();
            let end = new.iter().position(|byte| *byte == b'\n').map(|at| self.looked_at + at);
            let Some(end) = end else {
                self.looked_at = self.bytes.len();
                if self.skipping || self.bytes.len() > self.most {
                    self.bytes.clear();
                    self.looked_at = 0;
                    if !std::mem::replace(&mut self.skipping, true) {
                        return Err(NoMessage::TooLarge);
                    }
                }
                return Ok(None);
            };
            self.looked_at = 0;
            let mut line: Vec<u8> = self.bytes.drain(..=end).collect();
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            if line.len() > self.most + 1 {
                return Err(NoMessage::TooLarge);
            }
            line.truncate(line.trim_ascii_end().len());
            if !line.is_empty() {
                return Ok(Some(line));
            }
        }
    }

    fn counted(&mut self) -> Result<Option<Vec<u8>>, NoMessage> {
        let Some(length) = self.bytes.first_chunk::<4>() else { return Ok(None) };
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        if length > self.most {
            return Err(NoMessage::TooLarge);
        }
        if self.bytes.len() < 4 + length {
            return Ok(None);
        }
        Ok(Some(self.bytes.drain(..4 + length).skip(4).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8], most: usize) -> Vec<Result<String, NoMessage>> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut frames = Frames::detect(bytes, most).await.unwrap();
            let mut found = Vec::new();
            loop {
                let next = frames.next().await.map(|bytes| String::from_utf8(bytes).unwrap());
                found.push(next.clone());
                if next == Err(NoMessage::End) || found.len() > 9 {
                    return found;
                }
            }
        })
    }

    #[test]
    fn the_first_byte_says_how_messages_are_framed() {
        let both = [Ok(r#"{"a":1}"#.to_owned()), Ok("{}".to_owned()), Err(NoMessage::End)];
        assert_eq!(all(b"{\"a\":1}\r\n\n{}\n", 100), both);
        assert_eq!(all(b"\0\0\0\x07{\"a\":1}\0\0\0\x02{}\0\0", 100), both);
        for framing in [Framing::Lines, Framing::Counted] {
            assert_eq!(all(&[framing.wrap(r#"{"a":1}"#), framing.wrap("{}")].concat(), 100), both);
        }
    }

    #[test]
    fn after_a_line_that_is_too_long_comes_the_next() {
        let long = format!("{{{}\n{{}}\n", "x".repeat(9000));
        assert_eq!(
            all(long.as_bytes(), 8),
            [Err(NoMessage::TooLarge), Ok("{}".to_owned()), Err(NoMessage::End)]
        );
        assert_eq!(all(b"\0\0\0\x09", 8).first(), Some(&Err(NoMessage::TooLarge)));
    }
}
