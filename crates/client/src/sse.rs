//! Server-sent events, out of bytes in whatever pieces they come.

/// One block of a stream: an event, or only a place to resume from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The type of the event; often nothing.
    pub event: String,
    /// The data of the event. Bytes that are not UTF-8 are replaced.
    pub data: Option<String>,
    /// The id from which to resume after it.
    pub id: Option<String>,
    /// What is wrong with it.
    pub fault: Option<Fault>,
}

/// What is wrong with a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// It is longer than the limit; its data is left out.
    TooLong,
    /// Bytes of it are not UTF-8.
    NotUtf8,
}

/// Reads lines as the standard says: `\n`, `\r\n` and `\r` end one; a line that begins with a colon is a comment.
///
/// ```
/// use client::sse::Parser;
/// let (mut parser, mut blocks) = (Parser::new(1000), Vec::new());
/// parser.take(b"id: 1\nda", &mut blocks);
/// parser.take(b"ta: hello\n\n", &mut blocks);
/// assert_eq!(blocks[0].data.as_deref(), Some("hello"));
/// ```
#[derive(Debug)]
pub struct Parser {
    line: Vec<u8>,
    /// Bytes of the line, whether they are kept or not.
    line_bytes: usize,
    block: Block,
    /// Bytes of the block without its comments.
    block_bytes: usize,
    after_return: bool,
    is_first_line: bool,
    max_block_bytes: usize,
}

impl Parser {
    /// A parser that keeps at most so many bytes of a block.
    pub fn new(max_block_bytes: usize) -> Self {
        Self {
            line: Vec::new(),
            line_bytes: 0,
            block: Block::default(),
            block_bytes: 0,
            after_return: false,
            is_first_line: true,
            max_block_bytes,
        }
    }

    /// Takes the next bytes, and puts the blocks that are complete into `out`.
    pub fn take(&mut self, bytes: &[u8], out: &mut Vec<Block>) {
        for byte in bytes {
            let after_return = std::mem::replace(&mut self.after_return, *byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => out.extend(self.end_line()),
                other => {
                    self.line_bytes += 1;
                    self.block_bytes += 1;
                    if self.block_bytes <= self.max_block_bytes {
                        self.line.push(*other);
                    } else if !self.is_too_long() && self.line.first() != Some(&b':') {
                        self.block.fault = Some(Fault::TooLong);
                        self.block.data = None;
                        self.line = Vec::new();
                    }
                }
            }
        }
    }

    /// Whether the block that is not complete yet is longer than the limit.
    pub fn is_too_long(&self) -> bool {
        self.block.fault == Some(Fault::TooLong)
    }

    /// The last block, at the end of a stream that does not end its last line. The standard would drop it.
    pub fn finish(&mut self) -> Option<Block> {
        if self.line_bytes > 0 {
            self.end_line();
        }
        self.end_line()
    }

    fn end_line(&mut self) -> Option<Block> {
        let line = std::mem::take(&mut self.line);
        let length = std::mem::take(&mut self.line_bytes);
        let is_first_line = std::mem::take(&mut self.is_first_line);
        if length == 0 {
            self.block_bytes = 0;
            return Some(std::mem::take(&mut self.block)).filter(|block| *block != Block::default());
        }
        if line.starts_with(b":") {
            // Comments keep a connection alive; they cost nothing, however many there are.
            self.block_bytes -= length;
            return None;
        }
        let line = String::from_utf8(line).unwrap_or_else(|error| {
            self.block.fault.get_or_insert(Fault::NotUtf8);
            String::from_utf8_lossy(error.as_bytes()).into_owned()
        });
        let line = line.strip_prefix('\u{feff}').filter(|_| is_first_line).unwrap_or(&line);
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => value.clone_into(&mut self.block.event),
            "data" if !self.is_too_long() => match &mut self.block.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.block.data = Some(value.to_owned()),
            },
            "id" if !value.contains('\0') => self.block.id = Some(value.to_owned()),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = ": hello\n\nevent: aaep.event\r\nid: evt_1\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\nid: evt_2\n\ndata:x\r\r";

    fn expected() -> Vec<Block> {
        vec![
            Block {
                event: "aaep.event".to_owned(),
                data: Some("{\"a\":\n1}".to_owned()),
                id: Some("evt_1".to_owned()),
                fault: None,
            },
            Block { id: Some("evt_2".to_owned()), ..Block::default() },
            says("x"),
        ]
    }

    fn says(data: &str) -> Block {
        Block { data: Some(data.to_owned()), ..Block::default() }
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
    fn a_stream_is_read_as_the_standard_says() {
        let text =
            "\u{feff}data: one\r\n\r\ndata:two\rdata: lines\r\rdata\n\ndata:\ndata:x\n\n\u{feff}data: y\n\n";
        let blocks = read(&mut Parser::new(1000), &[text.as_bytes()]);
        assert_eq!(blocks, ["one", "two\nlines", "", "\nx"].map(says));
    }

    #[test]
    fn a_last_block_without_its_line_end_can_be_had() {
        for text in ["data: last", "data: last\n", "data: la\ndata: st"] {
            let mut parser = Parser::new(1000);
            assert_eq!(read(&mut parser, &[text.as_bytes()]), []);
            let data = parser.finish().and_then(|block| block.data);
            assert_eq!(data.map(|data| data.replace('\n', "")).as_deref(), Some("last"));
            assert_eq!(parser.finish(), None);
        }
    }

    #[test]
    fn bytes_that_are_not_text_are_marked() {
        let told = read(&mut Parser::new(100), &[b"data: a\xff\n\ndata: b\n\n"]);
        let broken = Block { fault: Some(Fault::NotUtf8), ..says("a\u{fffd}") };
        assert_eq!(told, [broken, says("b")]);
    }

    #[test]
    fn a_block_that_is_too_long_is_left_out_and_the_next_is_read() {
        let long = [b'y'; 1000];
        for begin in [&b"id: 7\ndata: x\ndata: "[..], b"id: 7\n"] {
            let mut parser = Parser::new(100);
            assert_eq!(read(&mut parser, &[begin, &long]), []);
            assert!(parser.is_too_long());
            let told = read(&mut parser, &[&long, b"\ndata: z\n\n", b"data: next\n\n"]);
            let left_out =
                Block { id: Some("7".to_owned()), fault: Some(Fault::TooLong), ..Block::default() };
            assert_eq!(told, [left_out, says("next")]);
            assert!(parser.line.capacity() <= 200);
        }
        let mut parser = Parser::new(100);
        for _ in 0..1000 {
            assert!(read(&mut parser, &[b": alive\n"]).is_empty());
        }
        assert_eq!(read(&mut parser, &[b": ", &long, b"\ndata: next\n\n"]), [says("next")]);
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
            let told: Vec<_> = read(&mut Parser::new(1000), &pieces).into_iter().filter_map(|one| one.data).collect();
            prop_assert_eq!(told, words);
        }
    }
}
