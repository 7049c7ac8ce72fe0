//! As much of HTTP/1.1 as a listener needs: one request on a connection, and its answer, whole or as a stream.

use std::fmt::Write;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{Address, Why};

/// To connect, and to get the head of an answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
/// No head is longer.
const LONGEST_HEAD: usize = 16 * 1024;
/// No answer that is wanted whole is longer.
const LONGEST_BODY: usize = 1024 * 1024;

/// An answer whose body is still to come.
pub(super) struct Answer {
    pub(super) head: Head,
    stream: Box<dyn Stream>,
    /// Bytes of the body that came with the head.
    rest: Vec<u8>,
}

/// What the head of an answer says.
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) retry_after: Option<u64>,
    pub(super) is_stream: bool,
    length: Length,
}

/// Bytes both ways, plain or under TLS.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// How the end of a body is known.
enum Length {
    Bytes(usize),
    Chunks(Chunks),
    UntilClosed,
}

/// Sends a request, and reads the head of the answer.
pub(super) async fn request(
    to: &Address,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> io::Result<Answer> {
    let head = head(to, method, path, headers, body.len());
    let exchange = async {
        let mut stream = connect(to).await?;
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
        stream.flush().await?;
        let mut bytes = Vec::new();
        loop {
            if let Some(head) = parse(&mut bytes)? {
                return Ok(Answer { head, stream, rest: bytes });
            }
            if bytes.len() > LONGEST_HEAD {
                return Err(Why::TooLong.error());
            }
            if stream.read_buf(&mut bytes).await? == 0 {
                return Err(Why::HungUp.error());
            }
        }
    };
    timeout(PATIENCE, exchange).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Connects.
pub(super) async fn connect(to: &Address) -> io::Result<Box<dyn Stream>> {
    let socket = TcpStream::connect(to.peer()).await?;
    socket.set_nodelay(true)?;
    Ok(match &to.tls {
        Some(tls) => Box::new(tls.connect(&to.authority, socket).await?),
        None => Box::new(socket),
    })
}

fn head(to: &Address, method: &str, path: &str, headers: &[(&str, &str)], length: usize) -> String {
    let mut head = format!("{method} {}{path} HTTP/1.1\r\nHost: {}\r\n", to.base, to.authority);
    if let Some(token) = &to.token {
        let _ = write!(head, "Authorization: Bearer {token}\r\n");
    }
    for (name, value) in headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    if method == "POST" {
        let _ = write!(head, "Content-Type: application/json\r\nContent-Length: {length}\r\n");
        head += "Connection: close\r\n";
    }
    head + "\r\n"
}

/// The head, taken off the bytes; nothing if it is not whole yet.
fn parse(bytes: &mut Vec<u8>) -> io::Result<Option<Head>> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    let used = match response.parse(bytes) {
        Ok(httparse::Status::Complete(used)) => used,
        Ok(httparse::Status::Partial) => return Ok(None),
        // The first byte of an alert of TLS.
        Err(_) if bytes.first() == Some(&0x15) => return Err(Why::SpeaksTls.error()),
        Err(_) => return Err(Why::NotHttp.error()),
    };
    let header = |name: &str| {
        let found = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
        found.and_then(|header| std::str::from_utf8(header.value).ok()).map(str::trim)
    };
    let chunked = header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
    let length = header("content-length").and_then(|value| value.parse().ok());
    let status = response.code.unwrap_or(0);
    let length = match length {
        _ if chunked => Length::Chunks(Chunks::default()),
        _ if status == 204 => Length::Bytes(0),
        Some(length) => Length::Bytes(length),
        None => Length::UntilClosed,
    };
    let is_stream = header("content-type").is_some_and(|value| value.starts_with("text/event-stream"));
    let retry_after = header("retry-after").and_then(|value| value.parse().ok());
    bytes.drain(..used);
    Ok(Some(Head { status, retry_after, is_stream, length }))
}

impl Answer {
    /// The body whole.
    pub(super) async fn body(self) -> io::Result<String> {
        self.body_within(LONGEST_BODY).await
    }

    /// The same, of so many bytes at most.
    pub(super) async fn body_within(mut self, most: usize) -> io::Result<String> {
        let mut body = Vec::new();
        while let Some(more) = timeout(PATIENCE, self.more()).await?? {
            body.extend_from_slice(&more);
            if body.len() > most {
                return Err(Why::TooLong.error());
            }
        }
        String::from_utf8(body).map_err(|_| Why::NotText.error())
    }

    /// The next bytes of the body; nothing at its end.
    pub(super) async fn more(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let bytes = std::mem::take(&mut self.rest);
            match &mut self.head.length {
                Length::Bytes(0) => return Ok(None),
                Length::Bytes(left) if !bytes.is_empty() => {
                    let taken = bytes.get(..(*left).min(bytes.len())).unwrap_or_default().to_vec();
                    *left -= taken.len();
                    return Ok(Some(taken));
                }
                Length::Chunks(chunks) if !bytes.is_empty() => {
                    let mut taken = Vec::new();
                    let ended = chunks.take(&bytes, &mut taken)?;
                    if !taken.is_empty() {
                        if ended {
                            self.head.length = Length::Bytes(0);
                        }
                        return Ok(Some(taken));
                    }
                    if ended {
                        return Ok(None);
                    }
                }
                Length::UntilClosed if !bytes.is_empty() => return Ok(Some(bytes)),
                _ => {}
            }
            let mut bytes = Vec::with_capacity(16 * 1024);
            if self.stream.read_buf(&mut bytes).await? == 0 {
                return match self.head.length {
                    Length::UntilClosed => Ok(None),
                    _ => Err(Why::HungUpWithin.error()),
                };
            }
            self.rest = bytes;
        }
    }
}

/// A body in chunks (RFC 9112, 7.1), byte by byte.
#[derive(Debug, Default)]
struct Chunks {
    state: Chunk,
    left: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Chunk {
    /// In the digits of a chunk's size.
    #[default]
    Size,
    /// In what follows them on the line.
    Extension,
    Data,
    /// In the line end after the data.
    AfterData,
    /// In the lines after the last chunk; whether this one has something in it.
    Trailer(bool),
    Ended,
}

impl Chunks {
    /// Takes bytes; says whether the body has ended.
    fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> io::Result<bool> {
        for byte in bytes {
            self.state = match (self.state, *byte) {
                (Chunk::Size | Chunk::Extension, b'\n') if self.left == 0 => Chunk::Trailer(false),
                (Chunk::Size | Chunk::Extension, b'\n') => Chunk::Data,
                (Chunk::Size, b'\r') | (Chunk::AfterData, b'\n') => Chunk::Size,
                (Chunk::Size, b';') | (Chunk::Extension, _) => Chunk::Extension,
                (Chunk::Size, digit) => {
                    let digit = char::from(digit).to_digit(16).ok_or_else(|| Why::NotHttp.error())?;
                    self.left = self.left.checked_mul(16).ok_or_else(|| Why::TooLong.error())?;
                    self.left += usize::try_from(digit).unwrap_or(0);
                    Chunk::Size
                }
                (Chunk::Data, byte) => {
                    out.push(byte);
                    self.left -= 1;
                    if self.left == 0 { Chunk::AfterData } else { Chunk::Data }
                }
                (Chunk::AfterData, _) => Chunk::AfterData,
                (Chunk::Trailer(false), b'\n') | (Chunk::Ended, _) => Chunk::Ended,
                (Chunk::Trailer(true), b'\n') => Chunk::Trailer(false),
                (Chunk::Trailer(some), b'\r') => Chunk::Trailer(some),
                (Chunk::Trailer(_), _) => Chunk::Trailer(true),
            };
        }
        Ok(self.state == Chunk::Ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_the_same_wherever_they_are_cut() {
        let text = b"5\r\nhello\r\n1;x=y\r\n \r\nA\r\n0123456789\r\n0\r\nA: b\r\n\r\n";
        for cut in 0..=text.len() {
            let (mut chunks, mut out) = (Chunks::default(), Vec::new());
            let (first, last) = text.split_at(cut);
            let ended = chunks.take(first, &mut out).unwrap();
            assert_eq!(ended, cut == text.len());
            assert!(chunks.take(last, &mut out).unwrap());
            assert_eq!(out, b"hello 0123456789");
        }
        assert!(Chunks::default().take(b"x\r\n", &mut Vec::new()).is_err());
        assert!(Chunks::default().take(b"ffffffffffffffffff\r\n", &mut Vec::new()).is_err());
    }
}
