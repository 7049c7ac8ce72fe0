//! Reads lines of limited length.

use tokio::io::{AsyncRead, AsyncReadExt};

/// A line, or the reason why there is none.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line without its end. Invalid UTF-8 is replaced.
    Text(String),
    /// A line was too long. Its rest is skipped.
    TooLong,
    /// The stream has ended.
    End,
}

/// Reads lines of up to `max_bytes` bytes.
#[derive(Debug)]
pub(super) struct LineReader<R> {
    reader: R,
    max_bytes: usize,
    buffer: Vec<u8>,
    /// Number of buffered bytes known to contain no line end.
    scanned_bytes: usize,
    /// Whether the rest of an overlong line is being skipped.
    is_skipping: bool,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(super) fn new(reader: R, max_bytes: usize) -> Self {
        Self { reader, max_bytes, buffer: Vec::new(), scanned_bytes: 0, is_skipping: false }
    }

    /// Returns the next line. Cancel-safe.
    pub(super) async fn next(&mut self) -> std::io::Result<Line> {
        loop {
            let unscanned = self.buffer.get(self.scanned_bytes..).unwrap_or_default();
            if let Some(offset) = unscanned.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=self.scanned_bytes + offset).collect();
                self.scanned_bytes = 0;
                if std::mem::take(&mut self.is_skipping) {
                    continue;
                }
                return Ok(self.limit(&line));
            }
            self.scanned_bytes = self.buffer.len();
            if self.is_skipping || self.buffer.len() > self.max_bytes {
                self.buffer.clear();
                self.scanned_bytes = 0;
                if !std::mem::replace(&mut self.is_skipping, true) {
                    return Ok(Line::TooLong);
                }
            }
            self.buffer.reserve(4096);
            if self.reader.read_buf(&mut self.buffer).await? == 0 {
                // The last line may lack its end.
                let rest = std::mem::take(&mut self.buffer);
                self.scanned_bytes = 0;
                return Ok(if rest.is_empty() { Line::End } else { self.limit(&rest) });
            }
        }
    }

    fn limit(&self, line: &[u8]) -> Line {
        let line = line.trim_ascii_end();
        if line.len() > self.max_bytes {
            return Line::TooLong;
        }
        Line::Text(String::from_utf8_lossy(line).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_split_and_overlong_lines_are_skipped() {
        let long = "x".repeat(9000);
        let input = format!("one\r\n{long}\n12345678\n123456789\n\nlast");
        let mut reader = LineReader::new(input.as_bytes(), 8);
        let mut lines = Vec::new();
        while lines.last() != Some(&Line::End) {
            lines.push(reader.next().await.unwrap());
        }
        let text = |text: &str| Line::Text(text.to_owned());
        assert_eq!(
            lines,
            [text("one"), Line::TooLong, text("12345678"), Line::TooLong, text(""), text("last"), Line::End]
        );
    }
}
