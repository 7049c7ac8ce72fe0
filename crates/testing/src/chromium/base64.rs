//! Base64 (RFC 4648), as the DevTools protocol carries bytes.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) fn decode(text: &str) -> Vec<u8> {
    let (mut bytes, mut bits, mut held) = (Vec::with_capacity(text.len() / 4 * 3), 0_u32, 0_u32);
    for letter in text.bytes().take_while(|letter| *letter != b'=') {
        let value = ALPHABET.iter().position(|known| *known == letter).expect("a letter of base64");
        bits = bits << 6 | u32::try_from(value).unwrap();
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held).to_be_bytes()[3]);
        }
    }
    bytes
}

pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let mut three = [0; 3];
        three[..group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        for place in 0..4 {
            let value = (bits >> (18 - 6 * place)) & 63;
            let letter = ALPHABET[usize::try_from(value).unwrap()];
            text.push(if place > group.len() { '=' } else { char::from(letter) });
        }
    }
    text
}
