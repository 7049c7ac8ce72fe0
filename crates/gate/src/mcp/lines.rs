//! Reads lines up to a maximum length.

use std::io::{self, BufRead};

/// The result of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line with its line break. The last line may have none.
    Complete(Vec<u8>),
    /// The start of a line that exceeds the limit. `read_next_part` reads the rest.
    TooLong(Vec<u8>),
    /// The end of the input.
    End,
}

/// Reads the next line. A complete line may exceed the limit by up to one buffer of the reader.
pub(crate) fn read_line(reader: &mut impl BufRead, max_bytes: usize) -> io::Result<Line> {
    let mut line = Vec::new();
    loop {
        let (used, is_complete) = {
            let available = match reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                available => available?,
            };
            if available.is_empty() {
                return Ok(if line.is_empty() { Line::End } else { Line::Complete(line) });
            }
            let end = available.iter().position(|byte| *byte == b'\n').map(|index| index + 1);
            line.extend_from_slice(available.get(..end.unwrap_or(available.len())).unwrap_or_default());
            (end.unwrap_or(available.len()), end.is_some())
        };
        reader.consume(used);
        if is_complete {
            return Ok(Line::Complete(line));
        }
        if line.len() > max_bytes {
            return Ok(Line::TooLong(line));
        }
    }
}

/// Passes to `part` the next piece of a line that exceeds the limit. Returns whether more of it follows.
pub(crate) fn read_next_part(reader: &mut impl BufRead, part: &mut dyn FnMut(&[u8])) -> bool {
    let (used, is_complete) = match reader.fill_buf() {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => return true,
        Err(_) | Ok([]) => return false,
        Ok(available) => {
            let end = available.iter().position(|byte| *byte == b'\n').map(|index| index + 1);
            part(available.get(..end.unwrap_or(available.len())).unwrap_or_default());
            (end.unwrap_or(available.len()), end.is_some())
        }
    };
    reader.consume(used);
    !is_complete
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    #[test]
    fn lines_are_read_up_to_the_limit() {
        let mut reader = BufReader::with_capacity(4, &b"abc\n\nabcdefghij\nrest"[..]);
        let mut next = |max| read_line(&mut reader, max).unwrap();
        assert_eq!(next(8), Line::Complete(b"abc\n".to_vec()));
        assert_eq!(next(8), Line::Complete(b"\n".to_vec()));
        let Line::TooLong(start) = next(5) else { panic!("not too long") };
        let mut whole = start;
        while read_next_part(&mut reader, &mut |part| whole.extend_from_slice(part)) {}
        assert_eq!(whole, b"abcdefghij\n");
        assert_eq!(read_line(&mut reader, 8).unwrap(), Line::Complete(b"rest".to_vec()));
        assert_eq!(read_line(&mut reader, 8).unwrap(), Line::End);
    }
}
