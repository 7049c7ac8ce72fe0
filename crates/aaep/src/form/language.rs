//! Language tags: BCP 47, RFC 5646 (§11.1.2).

use oxilangtag::LanguageTag;

/// Whether `text` is a language tag: well-formed by RFC 5646 (C-A15), and not a word of four to eight letters where
/// the language should be, because no such language is registered (`english`).
///
/// ```
/// assert!(aaep::form::is_language_tag("zh-Hant-TW"));
/// assert!(!aaep::form::is_language_tag("english"));
/// ```
pub fn is_language_tag(text: &str) -> bool {
    common(text.as_bytes())
        || LanguageTag::parse(text).is_ok()
            && text.split('-').next().is_some_and(|language| language.len() <= 3)
}

/// `en`, `yor`, `en-US`: nearly every tag there is, known without parsing.
fn common(tag: &[u8]) -> bool {
    match tag {
        [a, b] => a.is_ascii_alphabetic() && b.is_ascii_alphabetic(),
        [a, b, b'-', c, d] => [a, b, c, d].iter().all(|byte| byte.is_ascii_alphabetic()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_language_tag;

    #[test]
    fn rfc_5646_decides() {
        for good in [
            "en",
            "en-US",
            "yo-NG",
            "es-419",
            "zh-Hans",
            "zh-Hant-TW",
            "zh-yue",
            "i-klingon",
            "x-private",
            "sl-rozaj-biske",
            "de-CH-1901",
            "zh-cmn-Hans-CN",
            "ar-aao",
            "en-GB-oed",
            "haw",
        ] {
            assert!(is_language_tag(good), "{good}");
        }
        for bad in ["a-1", "english", "en_US", "e", "", "en-", "-en", "en-US\n", "123", "en--US", "klingon"] {
            assert!(!is_language_tag(bad), "{bad}");
        }
    }
}
