//! Base64 (RFC 4648), which the DevTools protocol uses for binary data.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) fn decode(text: &str) -> Vec<u8> {
    let (mut bytes, mut bits, mut bit_count) = (Vec::with_capacity(text.len() / 4 * 3), 0_u32, 0_u32);
    for character in text.bytes().take_while(|character| *character != b'=') {
        let value =
            ALPHABET.iter().position(|candidate| *candidate == character).expect("a Base64 character");
        bits = bits << 6 | u32::try_from(value).unwrap();
        bit_count += 6;
        if bit_count >= 8 {
            bit_count -= 8;
            bytes.push((bits >> bit_count).to_be_bytes()[3]);
        }
    }
    bytes
}

pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let mut padded = [0; 3];
        padded[..group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes([0, padded[0], padded[1], padded[2]]);
        for digit in 0..4 {
            let value = (bits >> (18 - 6 * digit)) & 63;
            let character = ALPHABET[usize::try_from(value).unwrap()];
            text.push(if digit > group.len() { '=' } else { char::from(character) });
        }
    }
    text
}
