//! Base64url without padding (RFC 7515 §2). Decoding is strict: only one text decodes to each byte sequence.

use data_encoding::BASE64URL_NOPAD;

/// Encodes bytes.
///
/// ```
/// assert_eq!(seal::base64url::encode(b"say-so"), "c2F5LXNv");
/// ```
pub fn encode(bytes: &[u8]) -> String {
    BASE64URL_NOPAD.encode(bytes)
}

pub(crate) fn encode_to(out: &mut String, bytes: &[u8]) {
    BASE64URL_NOPAD.encode_append(bytes, out);
}

/// Decodes the output of [`encode`]. Returns `None` for any other text, for example with padding,
/// white space or unused bits that are not zero.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    BASE64URL_NOPAD.decode(text.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_round_trips_and_each_value_has_one_text() {
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
