//! Decoding of string escapes.

/// Decodes the escapes of a string that [`Tape`](super::Tape) accepted, given without its quotes. A lone surrogate becomes
/// U+FFFD, because Rust's strings cannot represent it.
pub fn unescape(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(code) = rest.chars().next() else { break };
        let decoded = match code {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let (character, consumed) = parse_unicode_escape(rest);
                out.push(character);
                rest = rest.get(consumed..).unwrap_or("");
                continue;
            }
            other => other,
        };
        out.push(decoded);
        rest = &rest[code.len_utf8()..];
    }
    out.push_str(rest);
    out
}

/// Parses `uXXXX` or `uXXXX\uXXXX`. Returns the character and the number of bytes consumed.
fn parse_unicode_escape(rest: &str) -> (char, usize) {
    let Some(first) = parse_utf16_unit(rest, 1) else { return (char::REPLACEMENT_CHARACTER, 1) };
    if let Some(decoded) = char::from_u32(u32::from(first)) {
        return (decoded, 5);
    }
    if rest.as_bytes().get(5..7) == Some(b"\\u".as_slice())
        && let Some(second) = parse_utf16_unit(rest, 7)
        && let Some(Ok(decoded)) = char::decode_utf16([first, second]).next()
    {
        return (decoded, 11);
    }
    (char::REPLACEMENT_CHARACTER, 5)
}

/// Parses four hexadecimal digits.
pub(super) fn parse_utf16_unit(text: &str, at: usize) -> Option<u16> {
    let digits = text.as_bytes().get(at..at + 4)?;
    digits.iter().try_fold(0, |sum: u16, byte| {
        let digit = char::from(*byte).to_digit(16)?;
        Some(sum << 4 | u16::try_from(digit).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use super::unescape;

    #[test]
    fn escapes_are_decoded() {
        assert_eq!(unescape(r#"a\n\"\\\/\u00e9\ud83d\ude00b"#), "a\n\"\\/é😀b");
    }

    #[test]
    fn a_lone_surrogate_becomes_the_replacement_character() {
        assert_eq!(unescape(r"\ud83d x \ude00"), "\u{fffd} x \u{fffd}");
        assert_eq!(unescape(r"\ud83d\u0041"), "\u{fffd}A");
    }
}
