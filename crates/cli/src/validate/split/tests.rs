//! Whatever the reads deliver, a byte or a block at a time, the items are the same.

use std::io::{self, Read};

use super::*;

const LIMIT: usize = 60;
const SIZES: [usize; 9] = [1, 2, 3, 5, 7, 13, 61, 997, BLOCK];

/// An item as the rest of the program sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    Text(u64, String),
    Trouble(u64, Trouble),
    Mark,
}

fn text(line: u64, text: &str) -> Found {
    Found::Text(line, text.to_owned())
}

/// Gives at most `size` bytes at a time, and now and then nothing but an interruption.
struct Trickle<'b> {
    bytes: &'b [u8],
    size: usize,
    reads: usize,
}

impl Read for Trickle<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.reads += 1;
        if self.reads.is_multiple_of(5) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let size = self.size.min(into.len()).min(self.bytes.len());
        into[..size].copy_from_slice(&self.bytes[..size]);
        self.bytes = &self.bytes[size..];
        Ok(size)
    }
}

/// All items of an input, with their lines in it.
fn items(bytes: &[u8], size: usize, limit: usize) -> Vec<Found> {
    let mut splitter = Splitter::new(Trickle { bytes, size, reads: 0 }, limit);
    let mut found = Vec::new();
    let mut before = 0;
    while let Some(cut) = splitter.next().unwrap() {
        assert!(splitter.held.len() <= limit + BLOCK, "no more is held than an item and a block");
        if cut.mark {
            found.push(Found::Mark);
        }
        match &cut.items {
            Items::Lines => {
                assert_eq!(cut.lines, cut.bytes.split_inclusive(|byte| *byte == b'\n').count() as u64);
                for (at, line) in cut.bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
                    found.extend(line_item(before + at as u64 + 1, line, limit));
                }
            }
            Items::Pieces(pieces) => {
                for piece in pieces {
                    let line = before + piece.line;
                    found.push(match piece.trouble {
                        Some(trouble) => Found::Trouble(line, trouble),
                        None => text(line, &String::from_utf8_lossy(&cut.bytes[piece.start..piece.end])),
                    });
                }
            }
        }
        before += cut.lines;
    }
    found
}

/// What the workers make of a line: nothing of an empty one, and no more than the limit of a long one.
fn line_item(number: u64, line: &[u8], limit: usize) -> Option<Found> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() > limit {
        return Some(Found::Trouble(number, Trouble::Oversized));
    }
    (!line.trim_ascii().is_empty()).then(|| text(number, &String::from_utf8_lossy(line)))
}

/// The items are these, however the bytes come in.
#[track_caller]
fn splits(input: impl AsRef<[u8]>, expected: &[Found]) {
    let input = input.as_ref();
    for size in SIZES {
        let found = items(input, size, LIMIT);
        assert_eq!(found, expected, "{size} bytes at a time: {}", String::from_utf8_lossy(input));
    }
}

#[test]
fn every_line_is_an_item() {
    splits("{\"a\":1}\n{\"b\":2}\n", &[text(1, "{\"a\":1}"), text(2, "{\"b\":2}")]);
    splits("{}\r\n{}\r\n", &[text(1, "{}"), text(2, "{}")]);
    splits("\n\n  \n{}\n\n{}", &[text(4, "{}"), text(6, "{}")]);
    splits("nonsense\n{}", &[text(1, "nonsense"), text(2, "{}")]);
}

#[test]
fn the_last_line_needs_no_end() {
    splits("{}\n{\"a\":", &[text(1, "{}"), text(2, "{\"a\":")]);
    splits("{\"a\":[", &[text(1, "{\"a\":[")]);
    splits("{", &[text(1, "{")]);
    splits("{\n", &[text(1, "{")]);
}

#[test]
fn nothing_has_no_items() {
    splits("", &[]);
    splits(" \t ", &[]);
    splits("\n\r\n \n", &[]);
    splits("[]", &[]);
    splits("\n[ \n ]\n", &[]);
}

#[test]
fn a_broken_first_line_spoils_no_other() {
    splits("{\"a\":[1\n{}\n{}\n", &[text(1, "{\"a\":[1"), text(2, "{}"), text(3, "{}")]);
    splits("{\"a\n{}\n", &[text(1, "{\"a"), text(2, "{}")]);
    splits("{\"a\n \"b\n", &[text(1, "{\"a"), text(2, " \"b")]);
}

#[test]
fn an_array_is_its_items() {
    splits("[{\"a\":1},{\"b\":[2,{}]}]", &[text(1, "{\"a\":1}"), text(1, "{\"b\":[2,{}]}")]);
    splits("[\n  {\n \"a\":1\n  },\n  {}\n]\n", &[text(2, "{\n \"a\":1\n  }"), text(5, "{}")]);
    splits("[1,\"x\",null , [2] ]", &[text(1, "1"), text(1, "\"x\""), text(1, "null"), text(1, "[2]")]);
}

#[test]
fn brackets_and_quotes_in_strings_do_not_count() {
    let tricky = r#"{"a":"]}[{,\"\\","b\"]":"\\\\"}"#;
    splits(format!("[{tricky},{tricky}]"), &[text(1, tricky), text(1, tricky)]);
    splits(format!("[\"]\\\"\",{tricky}\n]"), &[text(1, "\"]\\\"\""), text(1, tricky)]);
    let pretty = "{\n\"a\":\"}\\\"{\\\\\"\n}";
    splits(format!("{pretty}\n{pretty}"), &[text(1, pretty), text(4, pretty)]);
}

#[test]
fn values_over_several_lines_are_a_document() {
    for pretty in ["{\n  \"a\": 1\n}", "{\"a\":\n  {}\n}", "{\"a\":1\n,\"b\":2}", "{\"a\":[\n]}", "{\n\n}"] {
        let lines = pretty.matches('\n').count() as u64;
        splits(pretty, &[text(1, pretty)]);
        splits(format!("\n{pretty}{pretty}\n"), &[text(2, pretty), text(2 + lines, pretty)]);
        splits(
            format!("{pretty}\n\n{{}}\n{pretty}"),
            &[text(1, pretty), text(3 + lines, "{}"), text(4 + lines, pretty)],
        );
    }
}

#[test]
fn what_follows_an_array_is_looked_at_anew() {
    splits("[{}]\n{}\n{}", &[text(1, "{}"), text(2, "{}"), text(3, "{}")]);
    splits("[{}] {}\n[]x", &[text(1, "{}"), text(1, "{}"), text(2, "[]x")]);
    splits("[{}]\n[{}]\n\n[{}]", &[text(1, "{}"), text(2, "{}"), text(4, "{}")]);
    splits("[\n{}]  \r\n{\n}", &[text(2, "{}"), text(3, "{\n}")]);
    splits("[{}]]\n{}", &[text(1, "{}"), text(1, "]"), text(2, "{}")]);
}

#[test]
fn an_array_that_is_cut_off_is_told() {
    let unclosed = |line| Found::Trouble(line, Trouble::Unclosed);
    splits("[", &[unclosed(1)]);
    splits("[{}", &[text(1, "{}"), unclosed(1)]);
    splits("[{},\n{}\n", &[text(1, "{}"), text(2, "{}"), unclosed(3)]);
    splits("[{},\n", &[text(1, "{}"), unclosed(2)]);
    splits("[{},{\"a\":\"", &[text(1, "{}"), text(1, "{\"a\":\""), unclosed(1)]);
}

#[test]
fn an_arrays_commas_are_told_once() {
    let (missing, stray) =
        (|line| Found::Trouble(line, Trouble::NoComma), |line| Found::Trouble(line, Trouble::StrayComma));
    splits("[{} {}{}]", &[text(1, "{}"), missing(1), text(1, "{}"), text(1, "{}")]);
    splits("[{},,\n,{}]", &[text(1, "{}"), stray(1), text(2, "{}")]);
    splits("[\n,{}]", &[stray(2), text(2, "{}")]);
    splits("[{},\n]", &[text(1, "{}"), stray(2)]);
    splits("{\n},{}", &[text(1, "{\n}"), text(2, ","), text(2, "{}")]);
}

#[test]
fn what_is_too_long_is_told_and_not_held() {
    let long = format!("{{\"a\":\"{}\"}}", "]}\\\"\\\\".repeat(300_000));
    let oversized = |line| Found::Trouble(line, Trouble::Oversized);
    for size in [4099, 65_536, BLOCK] {
        let found = |input: &str| items(input.as_bytes(), size, LIMIT);
        assert_eq!(found(&format!("{{}}\n{long}\n{{}}\n")), [text(1, "{}"), oversized(2), text(3, "{}")]);
        assert_eq!(found(&format!("{long}\n{{}}")), [oversized(1), text(2, "{}")]);
        assert_eq!(found(&long), [oversized(1)]);
        assert_eq!(found(&format!("[{{}},\n{long},\n{{}}]")), [text(1, "{}"), oversized(2), text(3, "{}")]);
        assert_eq!(
            found(&format!("[{long}")),
            [oversized(1), Found::Trouble(1, Trouble::Unclosed)],
            "and that it is cut off"
        );
        assert_eq!(found(&format!("{{\n\"a\":{long}\n}}\n{{}}")), [oversized(1), text(4, "{}")]);
    }
    let just_right = format!("\"{}\"", "x".repeat(LIMIT - 2));
    splits(format!("[{just_right}]"), &[text(1, &just_right)]);
    splits(
        format!("[{just_right}x]"),
        &[text(1, &just_right), Found::Trouble(1, Trouble::NoComma), text(1, "x")],
    );
}

#[test]
fn an_item_of_many_lines_that_is_too_long_keeps_the_count() {
    let long = format!("{{{}}}", "\n\"a\":1,".repeat(200_000));
    for size in [8191, BLOCK] {
        let input = format!("[\n{long},\n{{}}\n]\n{{}}");
        let expected = [Found::Trouble(2, Trouble::Oversized), text(200_003, "{}"), text(200_005, "{}")];
        assert_eq!(items(input.as_bytes(), size, LIMIT), expected);
    }
}

#[test]
fn empty_lines_without_end_are_not_held() {
    let input = format!("{}{{}}", " \n".repeat(2_000_000));
    assert_eq!(items(input.as_bytes(), BLOCK, LIMIT), [text(2_000_001, "{}")]);
    let spaces = format!("{}\n{{}}", " ".repeat(3_000_000));
    assert_eq!(
        items(spaces.as_bytes(), BLOCK, LIMIT),
        [Found::Trouble(1, Trouble::Oversized), text(2, "{}")]
    );
}

#[test]
fn a_byte_order_mark_is_found_once_and_only_in_front() {
    splits(b"\xEF\xBB\xBF{}\n", &[Found::Mark, text(1, "{}")]);
    splits(b"\xEF\xBB\xBF[\n{}]", &[Found::Mark, text(2, "{}")]);
    splits(b"\xEF\xBB\xBF", &[Found::Mark]);
    splits(b"\xEF\xBB\xBF\n", &[Found::Mark]);
    splits(b"\xEF\xBB", &[text(1, "\u{FFFD}")]);
    splits("{}\n\u{FEFF}{}", &[text(1, "{}"), text(2, "\u{FEFF}{}")]);
}

#[test]
fn lines_are_counted_across_blocks() {
    let line = "{\"a\":\"some text\"}\n";
    let many = BLOCK * 3 / line.len();
    for size in [4093, BLOCK] {
        for (input, first) in
            [(line.repeat(many), 1), (format!("[\n{}", line.replace('\n', ",\n").repeat(many)), 2)]
        {
            let lines: Vec<_> = items(input.as_bytes(), size, LIMIT)
                .into_iter()
                .filter_map(|found| match found {
                    Found::Text(line, _) => Some(line),
                    _ => None,
                })
                .collect();
            assert!(lines.iter().copied().eq(first..first + many as u64));
        }
    }
}

#[test]
fn random_texts_split_the_same_whatever_the_reads() {
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
        let whole = items(&input, BLOCK, 20);
        for size in [1, 2, 3, 7] {
            let found = items(&input, size, 20);
            assert_eq!(found, whole, "{size} at a time: {:?}", String::from_utf8_lossy(&input));
        }
    }
}
