//! Lower-case hexadecimal, and nothing else.

use std::fmt;

pub(crate) fn write(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    let mut text = [0; 128];
    let mut used = 0;
    for byte in bytes.iter().take(64) {
        text[used] = b"0123456789abcdef"[usize::from(byte >> 4)];
        text[used + 1] = b"0123456789abcdef"[usize::from(byte & 15)];
        used += 2;
    }
    f.write_str(std::str::from_utf8(&text[..used]).unwrap_or(""))
}

/// Reads exactly `N` bytes; capital letters are refused, so that a value has one text.
pub(crate) fn read<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != N * 2 {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}
