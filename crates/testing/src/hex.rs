//! Hexadecimal decoding, for published test vectors.

/// Decodes hexadecimal digits of either case. White space between the digits is ignored, because specifications print
/// test vectors with it.
pub fn decode(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|character| !character.is_whitespace())
        .map(|character| {
            u8::try_from(character.to_digit(16).expect("a hexadecimal digit")).expect("below 16")
        })
        .collect();
    assert!(digits.len().is_multiple_of(2), "odd number of digits in {text}");
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

pub fn decode_array<const N: usize>(text: &str) -> [u8; N] {
    decode(text).try_into().expect("the expected number of bytes")
}
