//! Tests of the splitter. Most use several read sizes, because the items must not depend on the size of a read.

use std::io::{self, Read};

use super::*;

const LIMIT: usize = 60;
const READ_SIZES: [usize; 9] = [1, 2, 3, 5, 7, 13, 61, 997, READ_BLOCK_BYTES];

/// An item, a byte-order mark, or an error, with its line number.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SplitItem {
    Text(u64, String),
    Error(u64, ItemError),
    ByteOrderMark,
}

fn text(line: u64, text: &str) -> SplitItem {
    SplitItem::Text(line, text.to_owned())
}

/// Returns at most `size` bytes per read, and sometimes `Interrupted`.
struct ChunkedReader<'b> {
    bytes: &'b [u8],
    size: usize,
    reads: usize,
}

impl Read for ChunkedReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reads += 1;
        if self.reads.is_multiple_of(5) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let size = self.size.min(buffer.len()).min(self.bytes.len());
        buffer[..size].copy_from_slice(&self.bytes[..size]);
        self.bytes = &self.bytes[size..];
        Ok(size)
    }
}

/// Returns all items of an input, with their line numbers.
fn items(bytes: &[u8], size: usize, limit: usize) -> Vec<SplitItem> {
    let mut splitter = Splitter::new(ChunkedReader { bytes, size, reads: 0 }, limit);
    let mut result = Vec::new();
    let mut lines_before = 0;
    while let Some(block) = splitter.next().unwrap() {
        assert!(
            splitter.buffer.len() <= limit + READ_BLOCK_BYTES,
            "at most one item and one block are buffered"
        );
        if block.has_byte_order_mark {
            result.push(SplitItem::ByteOrderMark);
        }
        match &block.items {
            BlockItems::Lines => {
                assert_eq!(block.lines, block.bytes.split_inclusive(|byte| *byte == b'\n').count() as u64);
                for (index, line) in block.bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
                    result.extend(line_item(lines_before + index as u64 + 1, line, limit));
                }
            }
            BlockItems::Spans(spans) => {
                for span in spans {
                    let line = lines_before + span.line;
                    result.push(match span.error {
                        Some(error) => SplitItem::Error(line, error),
                        None => text(line, &String::from_utf8_lossy(&block.bytes[span.start..span.end])),
                    });
                }
            }
        }
        lines_before += block.lines;
    }
    result
}

/// Treats a line as the workers do: an empty line is not an item, and a line that is too long is an error.
fn line_item(number: u64, line: &[u8], limit: usize) -> Option<SplitItem> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() > limit {
        return Some(SplitItem::Error(number, ItemError::Oversized));
    }
    (!line.trim_ascii().is_empty()).then(|| text(number, &String::from_utf8_lossy(line)))
}

/// Asserts the items of an input, for all read sizes.
#[track_caller]
fn assert_splits(input: impl AsRef<[u8]>, expected: &[SplitItem]) {
    let input = input.as_ref();
    for size in READ_SIZES {
        let result = items(input, size, LIMIT);
        assert_eq!(result, expected, "{size} bytes at a time: {}", String::from_utf8_lossy(input));
    }
}

#[test]
fn every_line_is_an_item() {
    assert_splits("{\"a\":1}\n{\"b\":2}\n", &[text(1, "{\"a\":1}"), text(2, "{\"b\":2}")]);
    assert_splits("{}\r\n{}\r\n", &[text(1, "{}"), text(2, "{}")]);
    assert_splits("\n\n  \n{}\n\n{}", &[text(4, "{}"), text(6, "{}")]);
    assert_splits("nonsense\n{}", &[text(1, "nonsense"), text(2, "{}")]);
}

#[test]
fn the_last_line_needs_no_newline() {
    assert_splits("{}\n{\"a\":", &[text(1, "{}"), text(2, "{\"a\":")]);
    assert_splits("{\"a\":[", &[text(1, "{\"a\":[")]);
    assert_splits("{", &[text(1, "{")]);
    assert_splits("{\n", &[text(1, "{")]);
}

#[test]
fn empty_input_has_no_items() {
    assert_splits("", &[]);
    assert_splits(" \t ", &[]);
    assert_splits("\n\r\n \n", &[]);
    assert_splits("[]", &[]);
    assert_splits("\n[ \n ]\n", &[]);
}

#[test]
fn a_broken_first_line_does_not_affect_others() {
    assert_splits("{\"a\":[1\n{}\n{}\n", &[text(1, "{\"a\":[1"), text(2, "{}"), text(3, "{}")]);
    assert_splits("{\"a\n{}\n", &[text(1, "{\"a"), text(2, "{}")]);
    assert_splits("{\"a\n \"b\n", &[text(1, "{\"a"), text(2, " \"b")]);
}

#[test]
fn an_array_is_split_into_its_items() {
    assert_splits("[{\"a\":1},{\"b\":[2,{}]}]", &[text(1, "{\"a\":1}"), text(1, "{\"b\":[2,{}]}")]);
    assert_splits("[\n  {\n \"a\":1\n  },\n  {}\n]\n", &[text(2, "{\n \"a\":1\n  }"), text(5, "{}")]);
    assert_splits(
        "[1,\"x\",null , [2] ]",
        &[text(1, "1"), text(1, "\"x\""), text(1, "null"), text(1, "[2]")],
    );
}

#[test]
fn brackets_and_quotes_in_strings_do_not_count() {
    let tricky = r#"{"a":"]}[{,\"\\","b\"]":"\\\\"}"#;
    assert_splits(format!("[{tricky},{tricky}]"), &[text(1, tricky), text(1, tricky)]);
    assert_splits(format!("[\"]\\\"\",{tricky}\n]"), &[text(1, "\"]\\\"\""), text(1, tricky)]);
    let pretty = "{\n\"a\":\"}\\\"{\\\\\"\n}";
    assert_splits(format!("{pretty}\n{pretty}"), &[text(1, pretty), text(4, pretty)]);
}

#[test]
fn values_over_several_lines_are_a_document() {
    for pretty in ["{\n  \"a\": 1\n}", "{\"a\":\n  {}\n}", "{\"a\":1\n,\"b\":2}", "{\"a\":[\n]}", "{\n\n}"] {
        let lines = pretty.matches('\n').count() as u64;
        assert_splits(pretty, &[text(1, pretty)]);
        assert_splits(format!("\n{pretty}{pretty}\n"), &[text(2, pretty), text(2 + lines, pretty)]);
        assert_splits(
            format!("{pretty}\n\n{{}}\n{pretty}"),
            &[text(1, pretty), text(3 + lines, "{}"), text(4 + lines, pretty)],
        );
    }
}

#[test]
fn the_layout_is_detected_again_after_an_array() {
    assert_splits("[{}]\n{}\n{}", &[text(1, "{}"), text(2, "{}"), text(3, "{}")]);
    assert_splits("[{}] {}\n[]x", &[text(1, "{}"), text(1, "{}"), text(2, "[]x")]);
    assert_splits("[{}]\n[{}]\n\n[{}]", &[text(1, "{}"), text(2, "{}"), text(4, "{}")]);
    assert_splits("[\n{}]  \r\n{\n}", &[text(2, "{}"), text(3, "{\n}")]);
    assert_splits("[{}]]\n{}", &[text(1, "{}"), text(1, "]"), text(2, "{}")]);
}

#[test]
fn an_unclosed_array_is_reported() {
    let unclosed = |line| SplitItem::Error(line, ItemError::Unclosed);
    assert_splits("[", &[unclosed(1)]);
    assert_splits("[{}", &[text(1, "{}"), unclosed(1)]);
    assert_splits("[{},\n{}\n", &[text(1, "{}"), text(2, "{}"), unclosed(3)]);
    assert_splits("[{},\n", &[text(1, "{}"), unclosed(2)]);
    assert_splits("[{},{\"a\":\"", &[text(1, "{}"), text(1, "{\"a\":\""), unclosed(1)]);
}

#[test]
fn a_comma_fault_in_an_array_is_reported_once() {
    let (missing, stray) = (
        |line| SplitItem::Error(line, ItemError::NoComma),
        |line| SplitItem::Error(line, ItemError::StrayComma),
    );
    assert_splits("[{} {}{}]", &[text(1, "{}"), missing(1), text(1, "{}"), text(1, "{}")]);
    assert_splits("[{},,\n,{}]", &[text(1, "{}"), stray(1), text(2, "{}")]);
    assert_splits("[\n,{}]", &[stray(2), text(2, "{}")]);
    assert_splits("[{},\n]", &[text(1, "{}"), stray(2)]);
    assert_splits("{\n},{}", &[text(1, "{\n}"), text(2, ","), text(2, "{}")]);
}

#[test]
fn an_oversized_item_is_reported_and_not_buffered() {
    let long = format!("{{\"a\":\"{}\"}}", "]}\\\"\\\\".repeat(300_000));
    let oversized = |line| SplitItem::Error(line, ItemError::Oversized);
    for size in [4099, 65_536, READ_BLOCK_BYTES] {
        let result = |input: &str| items(input.as_bytes(), size, LIMIT);
        assert_eq!(result(&format!("{{}}\n{long}\n{{}}\n")), [text(1, "{}"), oversized(2), text(3, "{}")]);
        assert_eq!(result(&format!("{long}\n{{}}")), [oversized(1), text(2, "{}")]);
        assert_eq!(result(&long), [oversized(1)]);
        assert_eq!(result(&format!("[{{}},\n{long},\n{{}}]")), [text(1, "{}"), oversized(2), text(3, "{}")]);
        assert_eq!(
            result(&format!("[{long}")),
            [oversized(1), SplitItem::Error(1, ItemError::Unclosed)],
            "the unclosed array is also reported"
        );
        assert_eq!(result(&format!("{{\n\"a\":{long}\n}}\n{{}}")), [oversized(1), text(4, "{}")]);
    }
    let longest = format!("\"{}\"", "x".repeat(LIMIT - 2));
    assert_splits(format!("[{longest}]"), &[text(1, &longest)]);
    assert_splits(
        format!("[{longest}x]"),
        &[text(1, &longest), SplitItem::Error(1, ItemError::NoComma), text(1, "x")],
    );
}

#[test]
fn line_numbers_are_correct_after_an_oversized_item_of_many_lines() {
    let long = format!("{{{}}}", "\n\"a\":1,".repeat(200_000));
    for size in [8191, READ_BLOCK_BYTES] {
        let input = format!("[\n{long},\n{{}}\n]\n{{}}");
        let expected = [SplitItem::Error(2, ItemError::Oversized), text(200_003, "{}"), text(200_005, "{}")];
        assert_eq!(items(input.as_bytes(), size, LIMIT), expected);
    }
}

#[test]
fn many_empty_lines_are_not_buffered() {
    let input = format!("{}{{}}", " \n".repeat(2_000_000));
    assert_eq!(items(input.as_bytes(), READ_BLOCK_BYTES, LIMIT), [text(2_000_001, "{}")]);
    let spaces = format!("{}\n{{}}", " ".repeat(3_000_000));
    assert_eq!(
        items(spaces.as_bytes(), READ_BLOCK_BYTES, LIMIT),
        [SplitItem::Error(1, ItemError::Oversized), text(2, "{}")]
    );
}

#[test]
fn a_byte_order_mark_is_found_only_at_the_start() {
    assert_splits(b"\xEF\xBB\xBF{}\n", &[SplitItem::ByteOrderMark, text(1, "{}")]);
    assert_splits(b"\xEF\xBB\xBF[\n{}]", &[SplitItem::ByteOrderMark, text(2, "{}")]);
    assert_splits(b"\xEF\xBB\xBF", &[SplitItem::ByteOrderMark]);
    assert_splits(b"\xEF\xBB\xBF\n", &[SplitItem::ByteOrderMark]);
    assert_splits(b"\xEF\xBB", &[text(1, "\u{FFFD}")]);
    assert_splits("{}\n\u{FEFF}{}", &[text(1, "{}"), text(2, "\u{FEFF}{}")]);
}

#[test]
fn lines_are_counted_across_blocks() {
    let line = "{\"a\":\"some text\"}\n";
    let many = READ_BLOCK_BYTES * 3 / line.len();
    for size in [4093, READ_BLOCK_BYTES] {
        for (input, first) in
            [(line.repeat(many), 1), (format!("[\n{}", line.replace('\n', ",\n").repeat(many)), 2)]
        {
            let lines: Vec<_> = items(input.as_bytes(), size, LIMIT)
                .into_iter()
                .filter_map(|result| match result {
                    SplitItem::Text(line, _) => Some(line),
                    _ => None,
                })
                .collect();
            assert!(lines.iter().copied().eq(first..first + many as u64));
        }
    }
}

#[test]
fn random_inputs_split_the_same_for_all_read_sizes() {
    let alphabet = b"{}[]\",:\\ \n\r1a\xEF";
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed >> 33).unwrap() % below
    };
    for _ in 0..4000 {
        let length = random(90);
        let input: Vec<u8> = (0..length).map(|_| alphabet[random(alphabet.len())]).collect();
        let expected = items(&input, READ_BLOCK_BYTES, 20);
        for size in [1, 2, 3, 7] {
            let result = items(&input, size, 20);
            assert_eq!(result, expected, "{size} bytes at a time: {:?}", String::from_utf8_lossy(&input));
        }
    }
}
