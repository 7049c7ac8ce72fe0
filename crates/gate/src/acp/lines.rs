//! Lines that pass unchanged, whatever their size.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};

/// Maximum size of a line that the gate looks at, in bytes. A longer line passes unread.
pub(super) const MAX_INSPECTED_BYTES: usize = 8 * 1024 * 1024;

/// The result of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LineRead {
    /// A line, with its line break.
    Line,
    /// The beginning of a line that is too long to look at. [`pass_rest`] passes the rest.
    TooLong,
    /// The end of the stream. The buffer contains what came after the last line break.
    End,
}

/// Reads the next line into the buffer.
pub(super) async fn read_line(
    reader: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
    max_bytes: usize,
) -> io::Result<LineRead> {
    line.clear();
    // A buffer that grew for a large line is shrunk again.
    line.shrink_to(64 * 1024);
    loop {
        let chunk = reader.fill_buf().await?;
        if chunk.is_empty() {
            return Ok(LineRead::End);
        }
        let line_break = chunk.iter().position(|byte| *byte == b'\n');
        let taken = line_break.map_or(chunk.len(), |at| at + 1);
        line.extend_from_slice(chunk.get(..taken).unwrap_or_default());
        reader.consume(taken);
        if line_break.is_some() {
            return Ok(LineRead::Line);
        }
        if line.len() > max_bytes {
            return Ok(LineRead::TooLong);
        }
    }
}

/// Passes the rest of a line that is too long.
pub(super) async fn pass_rest(
    reader: &mut (impl AsyncBufRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
) -> io::Result<()> {
    loop {
        let chunk = reader.fill_buf().await?;
        if chunk.is_empty() {
            return Ok(());
        }
        let line_break = chunk.iter().position(|byte| *byte == b'\n');
        let taken = line_break.map_or(chunk.len(), |at| at + 1);
        writer.write_all(chunk.get(..taken).unwrap_or_default()).await?;
        reader.consume(taken);
        if line_break.is_some() {
            return writer.flush().await;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test reports a failure by panicking")]

    use tokio::io::BufReader;

    use super::*;

    #[tokio::test]
    async fn every_byte_passes_whatever_the_size_of_a_line() {
        let input = [b"one\r\n".as_slice(), &[b'x'; 40], b"\n\n", &[0xff, 0xfe], b"\nlast"].concat();
        for buffer_bytes in [1, 3, 7, 64] {
            let mut reader = BufReader::with_capacity(buffer_bytes, input.as_slice());
            let (mut line, mut output, mut kinds) = (Vec::new(), Vec::new(), Vec::new());
            loop {
                let read = read_line(&mut reader, &mut line, 16).await.unwrap();
                output.extend_from_slice(&line);
                if read == LineRead::TooLong {
                    pass_rest(&mut reader, &mut output).await.unwrap();
                }
                let is_end = read == LineRead::End;
                kinds.push(read);
                if is_end {
                    break;
                }
            }
            assert_eq!(output, input);
            if buffer_bytes < 16 {
                assert!(kinds.contains(&LineRead::TooLong));
            }
        }
    }
}
