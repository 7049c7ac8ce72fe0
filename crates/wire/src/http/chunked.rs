//! A decoder for chunked bodies (RFC 9112 §7.1). Extensions and trailers are ignored.

use thiserror::Error;

/// An incremental decoder for a chunked body.
#[derive(Debug, Default)]
pub struct ChunkedDecoder {
    state: ChunkState,
    /// Number of lines read, without the lines of the data.
    lines_read: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ChunkState {
    #[default]
    Size,
    Data(u64),
    /// The line ending after a chunk.
    DataEnd,
    Trailer,
    Done,
}

/// The body is not a valid chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a chunked body")]
pub struct ChunkError;

/// Maximum length of a size line or trailer line, in bytes.
const MAX_LINE_BYTES: usize = 256;

impl ChunkedDecoder {
    /// Decodes as much of `input` as possible into `body`. Returns how many bytes of `input` it consumed. More input is
    /// needed until [`Self::is_done`] returns true.
    pub fn decode(&mut self, input: &[u8], body: &mut Vec<u8>) -> Result<usize, ChunkError> {
        let mut position = 0;
        loop {
            let rest = input.get(position..).unwrap_or_default();
            match self.state {
                ChunkState::Done => return Ok(position),
                ChunkState::Data(0) => self.state = ChunkState::DataEnd,
                ChunkState::Data(remaining) => {
                    let size = usize::try_from(remaining).unwrap_or(usize::MAX).min(rest.len());
                    if size == 0 {
                        return Ok(position);
                    }
                    body.extend_from_slice(&rest[..size]);
                    position += size;
                    self.state = ChunkState::Data(remaining - size as u64);
                }
                ChunkState::Size | ChunkState::DataEnd | ChunkState::Trailer => {
                    let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
                        return if rest.len() > MAX_LINE_BYTES { Err(ChunkError) } else { Ok(position) };
                    };
                    let line = rest[..end].strip_suffix(b"\r").ok_or(ChunkError)?;
                    if line.len() > MAX_LINE_BYTES {
                        return Err(ChunkError);
                    }
                    position += end + 1;
                    self.process_line(line)?;
                }
            }
        }
    }

    fn process_line(&mut self, line: &[u8]) -> Result<(), ChunkError> {
        self.lines_read += 1;
        self.state = match self.state {
            ChunkState::Size => match parse_size(line)? {
                0 => ChunkState::Trailer,
                size => ChunkState::Data(size),
            },
            ChunkState::DataEnd if line.is_empty() => ChunkState::Size,
            ChunkState::Trailer if line.is_empty() => ChunkState::Done,
            // Trailers are skipped, up to a limit on all lines.
            ChunkState::Trailer if self.lines_read < 10_000 => ChunkState::Trailer,
            _ => return Err(ChunkError),
        };
        Ok(())
    }

    /// Returns whether the body is complete.
    pub fn is_done(&self) -> bool {
        self.state == ChunkState::Done
    }
}

fn parse_size(line: &[u8]) -> Result<u64, ChunkError> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
    if digits.is_empty() || digits.len() > 15 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(ChunkError);
    }
    let text = std::str::from_utf8(digits).map_err(|_| ChunkError)?;
    u64::from_str_radix(text, 16).map_err(|_| ChunkError)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_decoded_however_it_is_split() {
        let encoded = b"4\r\nWiki\r\n6;ext=1\r\npedia \r\nB\r\nin\r\nchunks.\r\n0\r\nX: 1\r\n\r\nGET";
        for part_bytes in 1..encoded.len() {
            let mut decoder = ChunkedDecoder::default();
            let (mut body, mut pending) = (Vec::new(), Vec::new());
            for part in encoded.chunks(part_bytes) {
                pending.extend_from_slice(part);
                let consumed = decoder.decode(&pending, &mut body).unwrap();
                pending.drain(..consumed);
            }
            assert!(decoder.is_done());
            assert_eq!(
                (body.as_slice(), pending.as_slice()),
                (b"Wikipedia in\r\nchunks.".as_slice(), b"GET".as_slice())
            );
        }
    }

    #[test]
    fn invalid_chunks_are_rejected() {
        for invalid in [
            "\r\n",
            "x\r\n",
            "4\nWiki\r\n",
            "4\r\nWikiX\r\n",
            "-1\r\n",
            "0x4\r\n",
            "ffffffffffffffff\r\n",
            " 4\r\n",
        ] {
            assert_eq!(
                ChunkedDecoder::default().decode(invalid.as_bytes(), &mut Vec::new()),
                Err(ChunkError),
                "{invalid:?}"
            );
        }
        let long = vec![b'1'; MAX_LINE_BYTES + 2];
        assert_eq!(ChunkedDecoder::default().decode(&long, &mut Vec::new()), Err(ChunkError));
    }
}
