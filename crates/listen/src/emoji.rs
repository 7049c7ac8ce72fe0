//! Emoji in agents' outputs.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;

use crate::Phrases;

seal::string_enum! {
    /// What is announced for an emoji in an agent's output.
    #[non_exhaustive]
    EmojiMode {
        /// The emoji itself. A speech synthesizer may read its name.
        Keep "keep",
        /// Its English name. In other languages, the emoji itself, because its name is known only in English.
        Name "name",
        /// Nothing.
        Omit "omit",
    }
}

impl EmojiMode {
    /// Replaces the emoji in a text.
    ///
    /// ```
    /// use listen::{EmojiMode, Phrases};
    /// let english = Phrases::for_languages(&[]);
    /// assert_eq!(EmojiMode::Name.apply("Done✅. Bye 👋🏽!", english), "Done check mark button. Bye waving hand: medium skin tone!");
    /// assert_eq!(EmojiMode::Omit.apply("Done ✅", english), "Done ");
    /// ```
    pub fn apply<'t>(self, text: &'t str, phrases: &Phrases) -> Cow<'t, str> {
        let is_kept = self == Self::Keep || self == Self::Name && !phrases.matches_language("en");
        if is_kept || text.is_ascii() {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        let mut ends_with_name = false;
        for grapheme in text.graphemes(true) {
            let Some(emoji) = find_emoji(grapheme) else {
                if ends_with_name && grapheme.starts_with(char::is_alphanumeric) {
                    out.push(' ');
                }
                out.push_str(grapheme);
                ends_with_name = false;
                continue;
            };
            if self == Self::Name {
                if ends_with_name {
                    out.push(',');
                }
                if !out.is_empty() && !out.ends_with(char::is_whitespace) {
                    out.push(' ');
                }
                out.push_str(emoji.name());
                ends_with_name = true;
            }
        }
        Cow::Owned(out)
    }
}

/// Returns the emoji that a grapheme cluster shows. Signs such as © are text, unless they are marked as emoji.
fn find_emoji(grapheme: &str) -> Option<&'static emojis::Emoji> {
    if grapheme.chars().all(|c| c < FIRST_PICTOGRAPH) {
        return None;
    }
    emojis::get(grapheme)
}

/// Signs below it, such as © and ™, are emoji only with a variation selector.
const FIRST_PICTOGRAPH: char = '\u{2300}';

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emoji_are_kept_named_or_omitted() {
        let english = Phrases::for_languages(&[]);
        let spanish = Phrases::for_languages(&["es".to_owned()]);
        let text = "Family: 👩‍👩‍👧, 🎉🎉 © 2026 and 今日は";
        assert_eq!(EmojiMode::Keep.apply(text, english), text);
        assert_eq!(
            EmojiMode::Name.apply(text, english),
            "Family: family: woman, woman, girl, party popper, party popper © 2026 and 今日は"
        );
        assert_eq!(EmojiMode::Name.apply(text, spanish), text);
        assert_eq!(EmojiMode::Omit.apply(text, spanish), "Family: ,  © 2026 and 今日は");
    }
}
