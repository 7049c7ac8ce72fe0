//! Published vectors are printed in hexadecimal.

/// Reads hexadecimal of either case; white space between the digits is how specifications print it.
pub fn bytes(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|letter| !letter.is_whitespace())
        .map(|letter| u8::try_from(letter.to_digit(16).expect("a hexadecimal digit")).expect("below 16"))
        .collect();
    assert!(digits.len().is_multiple_of(2), "half a byte is left over in {text}");
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

pub fn array<const N: usize>(text: &str) -> [u8; N] {
    bytes(text).try_into().expect("as many bytes as wanted")
}
