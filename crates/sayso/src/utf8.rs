//! Bytes that are text in the end, however they are cut.

use std::borrow::Cow;

/// The beginning of a character whose end has not come: three bytes at most.
#[derive(Debug, Default)]
pub(crate) struct Cut(Vec<u8>);

/// What stands for bytes that are no text.
const BROKEN: &str = "\u{FFFD}";

impl Cut {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes bytes, and gives what is text now.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        self.0.extend_from_slice(bytes);
        let mut text = String::with_capacity(self.0.len());
        let mut kept = 0;
        let mut chunks = self.0.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let (invalid, last) = (chunk.invalid(), chunks.peek().is_none());
            match std::str::from_utf8(invalid) {
                // Not wrong, only not whole.
                Err(error) if last && error.error_len().is_none() => kept = invalid.len(),
                Err(_) => text.push_str(BROKEN),
                Ok(_) => {}
            }
        }
        self.0.drain(..self.0.len() - kept);
        text
    }

    /// Takes text, before which a character that was not whole is broken.
    pub(crate) fn then<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        match self.end() {
            Some(broken) if !text.is_empty() => format!("{broken}{text}").into(),
            Some(broken) => broken.into(),
            None => text.into(),
        }
    }

    /// Nothing more comes.
    pub(crate) fn end(&mut self) -> Option<&'static str> {
        (!std::mem::take(&mut self.0).is_empty()).then_some(BROKEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn bytes_are_the_same_text_however_they_are_cut(
            bytes in proptest::collection::vec(
                proptest::prop_oneof![proptest::prelude::any::<u8>(), 0xC0..0xF8_u8, 0x80..0xC0_u8], 0..40),
            cuts in proptest::collection::vec(0..6_usize, 0..40),
        ) {
            let mut cut = Cut::default();
            let (mut text, mut rest) = (String::new(), &bytes[..]);
            for at in cuts {
                let (piece, after) = rest.split_at(at.min(rest.len()));
                text.push_str(&cut.push(piece));
                rest = after;
            }
            text.push_str(&cut.push(rest));
            text.push_str(cut.end().unwrap_or_default());
            proptest::prop_assert_eq!(text, String::from_utf8_lossy(&bytes));
        }
    }

    #[test]
    fn text_after_half_a_character_shows_that_it_was_broken() {
        let mut cut = Cut::default();
        assert_eq!(cut.push(&"é".as_bytes()[..1]), "");
        assert_eq!(cut.then("a"), "\u{FFFD}a");
        assert_eq!(cut.then("b"), "b");
    }
}
