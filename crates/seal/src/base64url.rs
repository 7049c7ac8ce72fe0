//! Base64 for URLs without padding (RFC 7515 §2), read strictly: one text for one sequence of bytes.

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Writes bytes.
///
/// ```
/// assert_eq!(seal::base64url::encode(b"say-so"), "c2F5LXNv");
/// ```
pub fn encode(bytes: &[u8]) -> String {
    let mut out = String::new();
    encode_to(&mut out, bytes);
    out
}

pub(crate) fn encode_to(out: &mut String, bytes: &[u8]) {
    let letter = |word: u32, shift: u32| LETTERS[(word >> shift & 63) as usize];
    let four = |word: u32| [letter(word, 18), letter(word, 12), letter(word, 6), letter(word, 0)];
    let mut letters = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    let mut threes = bytes.chunks_exact(3);
    for three in &mut threes {
        let word = u32::from(three[0]) << 16 | u32::from(three[1]) << 8 | u32::from(three[2]);
        letters.extend_from_slice(&four(word));
    }
    match *threes.remainder() {
        [one] => letters.extend_from_slice(&four(u32::from(one) << 16)[..2]),
        [one, two] => letters.extend_from_slice(&four(u32::from(one) << 16 | u32::from(two) << 8)[..3]),
        _ => {}
    }
    out.push_str(std::str::from_utf8(&letters).unwrap_or(""));
}

/// Reads what [`encode`] writes; padding, white space, other letters and leftover bits are refused.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for four in text.as_bytes().chunks(4) {
        let mut word = 0;
        for letter in four {
            word = word << 6 | u32::from(VALUES[usize::from(*letter)]);
            if VALUES[usize::from(*letter)] > 63 {
                return None;
            }
        }
        match four.len() {
            4 => out.extend_from_slice(&word.to_be_bytes()[1..]),
            3 if word.trailing_zeros() >= 2 => out.extend_from_slice(&(word >> 2).to_be_bytes()[2..]),
            2 if word.trailing_zeros() >= 4 => out.extend_from_slice(&(word >> 4).to_be_bytes()[3..]),
            _ => return None,
        }
    }
    Some(out)
}

#[allow(clippy::cast_possible_truncation, reason = "there are 64 letters")]
const VALUES: [u8; 256] = {
    let mut values = [255; 256];
    let mut at = 0;
    while at < 64 {
        values[LETTERS[at] as usize] = at as u8;
        at += 1;
    }
    values
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back_and_has_one_text() {
        for length in 0..70 {
            let bytes: Vec<u8> = (0..length).map(|n: u8| n.wrapping_mul(73)).collect();
            assert_eq!(decode(&encode(&bytes)).unwrap(), bytes);
        }
        for wrong in ["A", "AB", "ABC", "QUI=", "QU I", "+AAA", "/AAA", "QUJDR", "é"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
        assert_eq!(decode("AA").unwrap(), [0]);
    }
}
