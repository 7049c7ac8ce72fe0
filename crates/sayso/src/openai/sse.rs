//! Server-sent events out of bytes that are cut anywhere.

/// Takes bytes, gives the data of whole events. Lines end as they may: LF, CR, or both.
pub(super) struct Events {
    line: Vec<u8>,
    data: String,
    has_data: bool,
    /// The last byte was a CR: an LF that follows belongs to it.
    after_cr: bool,
    first: bool,
    most: usize,
}

/// Why it cannot be read on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Bad {
    NotUtf8,
    TooLong,
}

impl Events {
    /// No line, and no event, has more bytes than that.
    pub(super) fn new(most: usize) -> Self {
        Self { line: Vec::new(), data: String::new(), has_data: false, after_cr: false, first: true, most }
    }

    /// The data of the events that these bytes make whole.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, Bad> {
        let mut whole = Vec::new();
        for &byte in bytes {
            let after_cr = std::mem::replace(&mut self.after_cr, byte == b'\r');
            match byte {
                b'\n' if after_cr => {}
                b'\n' | b'\r' => whole.extend(self.end_line()?),
                _ if self.line.len() >= self.most => return Err(Bad::TooLong),
                _ => self.line.push(byte),
            }
        }
        Ok(whole)
    }

    /// What is left when nothing more comes. The standard would drop it; endpoints that leave out the last line's end mean it.
    pub(super) fn end(&mut self) -> Result<Option<String>, Bad> {
        if !self.line.is_empty() {
            self.end_line()?;
        }
        self.end_line()
    }

    fn end_line(&mut self) -> Result<Option<String>, Bad> {
        let line = std::mem::take(&mut self.line);
        let line = str::from_utf8(&line).map_err(|_| Bad::NotUtf8)?;
        let line = if std::mem::take(&mut self.first) { line.trim_start_matches('\u{feff}') } else { line };
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            return Ok(std::mem::take(&mut self.has_data).then_some(data));
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        if field == "data" {
            let value = value.strip_prefix(' ').unwrap_or(value);
            if self.data.len() + value.len() > self.most {
                return Err(Bad::TooLong);
            }
            if std::mem::replace(&mut self.has_data, true) {
                self.data.push('\n');
            }
            self.data.push_str(value);
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]

    use proptest::prelude::*;

    use super::{Bad, Events};

    fn read(pieces: &[&[u8]]) -> Vec<String> {
        let mut events = Events::new(1000);
        let mut all: Vec<String> = pieces.iter().flat_map(|piece| events.push(piece).unwrap()).collect();
        all.extend(events.end().unwrap());
        all
    }

    #[test]
    fn events_are_read_as_the_standard_says() {
        let text = "\u{feff}: hello\r\ndata: one\r\n\r\nevent: x\rdata:two\rdata: lines\r\rid: 7\n\ndata\n\ndata: last";
        assert_eq!(read(&[text.as_bytes()]), ["one", "two\nlines", "", "last"]);
    }

    #[test]
    fn what_is_too_long_or_no_text_is_told() {
        assert_eq!(Events::new(4).push(b"data: 12345"), Err(Bad::TooLong));
        assert_eq!(Events::new(9).push(b"data: 1234\ndata: 5678\n"), Err(Bad::TooLong));
        assert_eq!(Events::new(99).push(b"data: \xff\n"), Err(Bad::NotUtf8));
    }

    proptest! {
        #[test]
        fn it_does_not_matter_where_it_is_cut(
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
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|two| &bytes[two[0]..two[1]]).collect();
            prop_assert_eq!(read(&pieces), words);
        }
    }
}
