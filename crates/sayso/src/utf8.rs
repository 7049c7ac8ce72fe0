//! A UTF-8 decoder for bytes that arrive in pieces.

use std::borrow::Cow;

/// A decoder that holds the start of an incomplete character, at most three bytes.
#[derive(Debug, Default)]
pub(crate) struct Utf8Decoder(Vec<u8>);

/// Replaces bytes that are not valid UTF-8.
const REPLACEMENT_CHARACTER: &str = "\u{FFFD}";

impl Utf8Decoder {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds bytes and returns the text that is complete now.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        self.0.extend_from_slice(bytes);
        let mut text = String::with_capacity(self.0.len());
        let mut incomplete_len = 0;
        let mut chunks = self.0.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let (invalid, is_last) = (chunk.invalid(), chunks.peek().is_none());
            match std::str::from_utf8(invalid) {
                // Incomplete, but not invalid.
                Err(error) if is_last && error.error_len().is_none() => incomplete_len = invalid.len(),
                Err(_) => text.push_str(REPLACEMENT_CHARACTER),
                Ok(_) => {}
            }
        }
        self.0.drain(..self.0.len() - incomplete_len);
        text
    }

    /// Adds text. An incomplete character before it becomes U+FFFD.
    pub(crate) fn push_text<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        match self.finish() {
            Some(replacement) if !text.is_empty() => format!("{replacement}{text}").into(),
            Some(replacement) => replacement.into(),
            None => text.into(),
        }
    }

    /// Ends the text. Returns U+FFFD if a character is incomplete.
    pub(crate) fn finish(&mut self) -> Option<&'static str> {
        (!std::mem::take(&mut self.0).is_empty()).then_some(REPLACEMENT_CHARACTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn bytes_decode_the_same_however_they_are_split(
            bytes in proptest::collection::vec(
                proptest::prop_oneof![proptest::prelude::any::<u8>(), 0xC0..0xF8_u8, 0x80..0xC0_u8], 0..40),
            cuts in proptest::collection::vec(0..6_usize, 0..40),
        ) {
            let mut decoder = Utf8Decoder::default();
            let (mut text, mut rest) = (String::new(), &bytes[..]);
            for at in cuts {
                let (piece, after) = rest.split_at(at.min(rest.len()));
                text.push_str(&decoder.push(piece));
                rest = after;
            }
            text.push_str(&decoder.push(rest));
            text.push_str(decoder.finish().unwrap_or_default());
            proptest::prop_assert_eq!(text, String::from_utf8_lossy(&bytes));
        }
    }

    #[test]
    fn an_incomplete_character_before_text_becomes_a_replacement_character() {
        let mut decoder = Utf8Decoder::default();
        assert_eq!(decoder.push(&"é".as_bytes()[..1]), "");
        assert_eq!(decoder.push_text("a"), "\u{FFFD}a");
        assert_eq!(decoder.push_text("b"), "b");
    }
}
