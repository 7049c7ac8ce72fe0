//! The inside of a JSON string.

/// Undoes the escapes of a string's inside that [`Tape`](super::Tape) has accepted. Half of a surrogate pair
/// becomes U+FFFD: Rust's strings, like every consumer behind us, cannot hold it.
pub fn unescape(written: &str) -> String {
    let mut out = String::with_capacity(written.len());
    let mut rest = written;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(code) = rest.chars().next() else { break };
        let plain = match code {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let (read, used) = unicode(rest);
                out.push(read);
                rest = rest.get(used..).unwrap_or("");
                continue;
            }
            other => other,
        };
        out.push(plain);
        rest = &rest[code.len_utf8()..];
    }
    out.push_str(rest);
    out
}

/// Reads `uXXXX` or `uXXXX\uXXXX`; returns the character and the bytes used.
fn unicode(rest: &str) -> (char, usize) {
    let Some(first) = unit(rest, 1) else { return (char::REPLACEMENT_CHARACTER, 1) };
    if let Some(plain) = char::from_u32(u32::from(first)) {
        return (plain, 5);
    }
    if rest.as_bytes().get(5..7) == Some(b"\\u".as_slice())
        && let Some(second) = unit(rest, 7)
        && let Some(Ok(whole)) = char::decode_utf16([first, second]).next()
    {
        return (whole, 11);
    }
    (char::REPLACEMENT_CHARACTER, 5)
}

/// Four hexadecimal digits.
pub(super) fn unit(text: &str, at: usize) -> Option<u16> {
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
    fn escapes_become_their_characters() {
        assert_eq!(unescape(r#"a\n\"\\\/\u00e9\ud83d\ude00b"#), "a\n\"\\/é😀b");
    }

    #[test]
    fn half_a_surrogate_pair_becomes_the_replacement_character() {
        assert_eq!(unescape(r"\ud83d x \ude00"), "\u{fffd} x \u{fffd}");
        assert_eq!(unescape(r"\ud83d\u0041"), "\u{fffd}A");
    }
}
