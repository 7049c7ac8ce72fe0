//! A chunked body (RFC 9112 §7.1), without extensions and trailers that mean something.

use thiserror::Error;

/// Takes a chunked body apart, as much of it as there is.
#[derive(Debug, Default)]
pub struct Chunks {
    state: State,
    /// Bytes of a size line so far.
    line: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Size,
    Data(u64),
    /// The end of line after a chunk.
    After,
    Trailer,
    Done,
}

/// Not a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a chunked body")]
pub struct BadChunk;

/// No size line or trailer line is longer.
const LONGEST_LINE: usize = 256;

impl Chunks {
    /// Takes what it can from the front of `input` into `body`; returns how many bytes it took. It wants more unless
    /// [`Self::is_done`].
    pub fn take(&mut self, input: &[u8], body: &mut Vec<u8>) -> Result<usize, BadChunk> {
        let mut at = 0;
        loop {
            let rest = input.get(at..).unwrap_or_default();
            match self.state {
                State::Done => return Ok(at),
                State::Data(0) => self.state = State::After,
                State::Data(left) => {
                    let size = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
                    if size == 0 {
                        return Ok(at);
                    }
                    body.extend_from_slice(&rest[..size]);
                    at += size;
                    self.state = State::Data(left - size as u64);
                }
                State::Size | State::After | State::Trailer => {
                    let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
                        return if rest.len() > LONGEST_LINE { Err(BadChunk) } else { Ok(at) };
                    };
                    let line = rest[..end].strip_suffix(b"\r").ok_or(BadChunk)?;
                    if line.len() > LONGEST_LINE {
                        return Err(BadChunk);
                    }
                    at += end + 1;
                    self.line(line)?;
                }
            }
        }
    }

    fn line(&mut self, line: &[u8]) -> Result<(), BadChunk> {
        self.line += 1;
        self.state = match self.state {
            State::Size => match size(line)? {
                0 => State::Trailer,
                size => State::Data(size),
            },
            State::After if line.is_empty() => State::Size,
            State::Trailer if line.is_empty() => State::Done,
            // A trailer is read over; a few of them will do.
            State::Trailer if self.line < 10_000 => State::Trailer,
            _ => return Err(BadChunk),
        };
        Ok(())
    }

    /// Whether the body has ended.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }
}

fn size(line: &[u8]) -> Result<u64, BadChunk> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
    if digits.is_empty() || digits.len() > 15 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(BadChunk);
    }
    let text = std::str::from_utf8(digits).map_err(|_| BadChunk)?;
    u64::from_str_radix(text, 16).map_err(|_| BadChunk)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_comes_out_whole_however_it_is_cut() {
        let sent = b"4\r\nWiki\r\n6;ext=1\r\npedia \r\nB\r\nin\r\nchunks.\r\n0\r\nX: 1\r\n\r\nGET";
        for cut in 1..sent.len() {
            let mut chunks = Chunks::default();
            let (mut body, mut held) = (Vec::new(), Vec::new());
            for piece in sent.chunks(cut) {
                held.extend_from_slice(piece);
                let took = chunks.take(&held, &mut body).unwrap();
                held.drain(..took);
            }
            assert!(chunks.is_done());
            assert_eq!(
                (body.as_slice(), held.as_slice()),
                (b"Wikipedia in\r\nchunks.".as_slice(), b"GET".as_slice())
            );
        }
    }

    #[test]
    fn what_is_no_chunk_is_refused() {
        for wrong in [
            "\r\n",
            "x\r\n",
            "4\nWiki\r\n",
            "4\r\nWikiX\r\n",
            "-1\r\n",
            "0x4\r\n",
            "ffffffffffffffff\r\n",
            " 4\r\n",
        ] {
            assert_eq!(Chunks::default().take(wrong.as_bytes(), &mut Vec::new()), Err(BadChunk), "{wrong:?}");
        }
        let long = vec![b'1'; LONGEST_LINE + 2];
        assert_eq!(Chunks::default().take(&long, &mut Vec::new()), Err(BadChunk));
    }
}
