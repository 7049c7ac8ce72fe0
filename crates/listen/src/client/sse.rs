//! Server-sent events, out of bytes in whatever pieces they come.

/// One block of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// What it is called; often nothing.
    pub event: String,
    /// What it says.
    pub data: Option<String>,
    /// From where to resume after it.
    pub id: Option<String>,
    /// It was longer than the limit, so that its data is left out.
    pub too_long: bool,
}

/// Reads the standard's lines: `\n`, `\r\n` and `\r` end one; a line that begins with a colon says nothing.
///
/// ```
/// use listen::client::Parser;
/// let (mut parser, mut blocks) = (Parser::new(1000), Vec::new());
/// parser.take(b"id: 1\nda", &mut blocks);
/// parser.take(b"ta: hello\n\n", &mut blocks);
/// assert_eq!(blocks[0].data.as_deref(), Some("hello"));
/// ```
#[derive(Debug)]
pub struct Parser {
    line: Vec<u8>,
    /// Bytes of the line, whether they are kept or not.
    length: usize,
    block: Block,
    size: usize,
    after_return: bool,
    limit: usize,
}

impl Parser {
    /// One that keeps so many bytes of a block.
    pub fn new(limit: usize) -> Self {
        let (line, block) = (Vec::new(), Block::default());
        Self { line, length: 0, block, size: 0, after_return: false, limit }
    }

    /// Takes the next bytes; what is whole comes out.
    pub fn take(&mut self, bytes: &[u8], out: &mut Vec<Block>) {
        for byte in bytes {
            let after_return = std::mem::replace(&mut self.after_return, *byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => self.end_line(out),
                other => {
                    self.length += 1;
                    self.size += 1;
                    if self.size <= self.limit {
                        self.line.push(*other);
                    } else if !self.block.too_long && self.line.first() != Some(&b':') {
                        self.block.too_long = true;
                        self.block.data = None;
                        self.line = Vec::new();
                    }
                }
            }
        }
    }

    fn end_line(&mut self, out: &mut Vec<Block>) {
        let line = std::mem::take(&mut self.line);
        let length = std::mem::take(&mut self.length);
        if length == 0 {
            let block = std::mem::take(&mut self.block);
            self.size = 0;
            if block != Block::default() {
                out.push(block);
            }
            return;
        }
        if line.starts_with(b":") {
            // Signs of life cost nothing, however many there are.
            self.size -= length;
            return;
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.strip_prefix('\u{feff}').unwrap_or(&line);
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => value.clone_into(&mut self.block.event),
            "data" if !self.block.too_long => {
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
                too_long: false,
            },
            Block { id: Some("evt_2".to_owned()), ..Block::default() },
            Block { data: Some("x".to_owned()), ..Block::default() },
        ]
    }

    fn read(parser: &mut Parser, pieces: &[&[u8]]) -> Vec<Block> {
        let mut out = Vec::new();
        for piece in pieces {
            parser.take(piece, &mut out);
        }
        out
    }

    #[test]
    fn blocks_are_the_same_wherever_the_bytes_are_cut() {
        for cut in 0..=TEXT.len() {
            let (first, last) = TEXT.as_bytes().split_at(cut);
            assert_eq!(read(&mut Parser::new(1000), &[first, last]), expected(), "cut at {cut}");
        }
    }

    #[test]
    fn what_is_too_long_is_left_out_and_the_next_is_heard() {
        let long = [b'y'; 1000];
        for begin in [&b"id: 7\ndata: x\ndata: "[..], b"id: 7\n"] {
            let mut parser = Parser::new(100);
            let told = read(&mut parser, &[begin, &long, &long, b"\ndata: z\n\n", b"data: next\n\n"]);
            let left_out = Block { id: Some("7".to_owned()), too_long: true, ..Block::default() };
            let next = Block { data: Some("next".to_owned()), ..Block::default() };
            assert_eq!(told, [left_out, next]);
            assert!(parser.line.capacity() <= 200);
        }
        let mut parser = Parser::new(100);
        for _ in 0..1000 {
            assert!(read(&mut parser, &[b": alive\n"]).is_empty());
        }
        let told = read(&mut parser, &[b": ", &long, b"\ndata: next\n\n"]);
        assert_eq!(told, [Block { data: Some("next".to_owned()), ..Block::default() }]);
    }
}
