//! Server-sent events, out of bytes in whatever pieces they come.

/// One block of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) event: String,
    pub(super) data: Option<String>,
    pub(super) id: Option<String>,
}

/// A block or a line grew beyond the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// Reads the standard's lines: `\n`, `\r\n` and `\r` end one; a line that begins with a colon says nothing.
#[derive(Debug)]
pub(super) struct Parser {
    line: Vec<u8>,
    block: Block,
    size: usize,
    after_return: bool,
    limit: usize,
}

impl Parser {
    pub(super) fn new(limit: usize) -> Self {
        Self { line: Vec::new(), block: Block::default(), size: 0, after_return: false, limit }
    }

    /// Takes the next bytes; what is whole comes out.
    pub(super) fn take(&mut self, bytes: &[u8], out: &mut Vec<Block>) -> Result<(), TooLong> {
        for byte in bytes {
            let after_return = std::mem::replace(&mut self.after_return, *byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => self.end_line(out),
                other => {
                    self.size += 1;
                    if self.size > self.limit {
                        return Err(TooLong);
                    }
                    self.line.push(*other);
                }
            }
        }
        Ok(())
    }

    fn end_line(&mut self, out: &mut Vec<Block>) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let block = std::mem::take(&mut self.block);
            self.size = 0;
            if block != Block::default() {
                out.push(block);
            }
            return;
        }
        if line.starts_with(b":") {
            self.size -= line.len().min(self.size);
            return;
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.strip_prefix('\u{feff}').unwrap_or(&line);
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => value.clone_into(&mut self.block.event),
            "data" => {
                let data = self.block.data.get_or_insert_default();
                if !data.is_empty() {
                    data.push('\n');
                }
                data.push_str(value);
            }
            "id" if !value.contains('\0') => self.block.id = Some(value.to_owned()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = ": hello\n\nevent: aaep.event\r\nid: evt_1\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\nid: evt_2\n\ndata:x\r\r";

    fn expected() -> Vec<Block> {
        vec![
            Block {
                event: "aaep.event".to_owned(),
                data: Some("{\"a\":\n1}".to_owned()),
                id: Some("evt_1".to_owned()),
            },
            Block { id: Some("evt_2".to_owned()), ..Block::default() },
            Block { data: Some("x".to_owned()), ..Block::default() },
        ]
    }

    #[test]
    fn blocks_are_the_same_wherever_the_bytes_are_cut() {
        for cut in 0..=TEXT.len() {
            let (mut parser, mut out) = (Parser::new(1000), Vec::new());
            let (first, last) = TEXT.as_bytes().split_at(cut);
            assert!(parser.take(first, &mut out).is_ok() && parser.take(last, &mut out).is_ok());
            assert_eq!(out, expected(), "cut at {cut}");
        }
    }

    #[test]
    fn a_block_that_never_ends_is_too_long() {
        let mut parser = Parser::new(100);
        let mut out = Vec::new();
        assert_eq!(parser.take(&[b'x'; 101], &mut out), Err(TooLong));
        let mut parser = Parser::new(100);
        let more = (0..1000).try_for_each(|_| parser.take(b"data: y\n", &mut out));
        assert_eq!(more, Err(TooLong));
        let mut parser = Parser::new(100);
        let signs_of_life = (0..1000).try_for_each(|_| parser.take(b": alive\n", &mut out));
        assert!(signs_of_life.is_ok() && out.is_empty());
    }
}
