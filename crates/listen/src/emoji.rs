//! Emoji in agents' outputs.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use unicode_segmentation::UnicodeSegmentation;

use crate::Phrases;

seal::string_enum! {
    /// What is announced for an emoji in an agent's output.
    #[non_exhaustive]
    EmojiMode {
        /// The emoji itself. A speech synthesizer may read its name.
        Keep "keep",
        /// Its name, in English or Spanish. In Yoruba, and for an emoji without a Spanish name, the English name.
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
    /// let spanish = Phrases::for_languages(&["es".to_owned()]);
    /// assert_eq!(EmojiMode::Name.apply("Listo ✅", spanish), "Listo botón de marca de verificación");
    /// ```
    pub fn apply<'t>(self, text: &'t str, phrases: &Phrases) -> Cow<'t, str> {
        if self == Self::Keep || text.is_ascii() {
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
                out.push_str(&name_of(grapheme, emoji, phrases));
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

/// Returns the name of an emoji in the language of the phrases, if it is known, otherwise in English.
fn name_of(grapheme: &str, emoji: &'static emojis::Emoji, phrases: &Phrases) -> Cow<'static, str> {
    let spanish = if phrases.matches_language("es") { spanish_name(grapheme) } else { None };
    spanish.unwrap_or(Cow::Borrowed(emoji.name()))
}

/// Returns the Spanish name of an emoji, with its skin tones.
fn spanish_name(grapheme: &str) -> Option<Cow<'static, str>> {
    let names = &*SPANISH_NAMES;
    // The names are listed without variation selectors.
    let plain = grapheme.replace('\u{fe0f}', "");
    if let Some(name) = names.get(plain.as_str()) {
        return Some(Cow::Borrowed(name));
    }
    let without_tone = names.get(plain.replace(SKIN_TONES, "").as_str())?;
    let mut tones: Vec<&str> =
        plain.matches(SKIN_TONES).filter_map(|tone| names.get(tone).copied()).collect();
    tones.dedup();
    Some(Cow::Owned(format!("{without_tone}: {}", tones.join(", "))))
}

const SKIN_TONES: [char; 5] = ['🏻', '🏼', '🏽', '🏾', '🏿'];

/// The Spanish names, from Unicode's CLDR 48: an emoji, a tab and its name in each line. `emoji/LICENSE-UNICODE` is its licence.
static SPANISH_NAMES: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
    include_str!("emoji/names_es.tsv").lines().filter_map(|line| line.split_once('\t')).collect()
});

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
        assert_eq!(
            EmojiMode::Name.apply(text, spanish),
            "Family: familia: mujer, mujer, niña, cañón de confeti, cañón de confeti © 2026 and 今日は"
        );
        assert_eq!(EmojiMode::Omit.apply(text, spanish), "Family: ,  © 2026 and 今日は");
    }

    #[test]
    fn names_are_in_the_language_of_the_listener() {
        let name = |language: &str, emoji: &str| {
            EmojiMode::Name.apply(emoji, Phrases::for_languages(&[language.to_owned()])).into_owned()
        };
        for (emoji, english, spanish) in [
            ("✅", "check mark button", "botón de marca de verificación"),
            ("⚠️", "warning", "advertencia"),
            ("👋🏽", "waving hand: medium skin tone", "mano saludando: tono de piel medio"),
            (
                "👩🏽‍💻",
                "woman technologist: medium skin tone",
                "profesional de la tecnología mujer: tono de piel medio",
            ),
            ("🇪🇸", "flag: Spain", "Bandera: España"),
        ] {
            assert_eq!(name("en", emoji), english);
            assert_eq!(name("es", emoji), spanish);
            // The Yoruba names of CLDR lack most tone marks, so the English ones are used.
            assert_eq!(name("yo", emoji), english);
        }
        // Nearly every emoji has a Spanish name.
        let unnamed: Vec<&str> =
            emojis::iter().map(emojis::Emoji::as_str).filter(|emoji| spanish_name(emoji).is_none()).collect();
        assert!(unnamed.len() < 60, "{unnamed:?}");
    }
}
