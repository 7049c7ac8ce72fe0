//! Language tags: BCP 47, RFC 5646 (§11.1.2).

use oxilangtag::LanguageTag;

/// Returns whether `text` is a language tag: well-formed according to RFC 5646 (C-A15), with a
/// primary language of at most three letters. No registered language has more, so `english` is not
/// a tag.
///
/// ```
/// assert!(aaep::grammar::is_language_tag("zh-Hant-TW"));
/// assert!(!aaep::grammar::is_language_tag("english"));
/// ```
pub fn is_language_tag(text: &str) -> bool {
    is_common_tag(text.as_bytes())
        || LanguageTag::parse(text).is_ok()
            && text.split('-').next().is_some_and(|language| language.len() <= 3)
}

/// A fast path for `en` and `en-US`, which covers nearly every tag in use.
fn is_common_tag(tag: &[u8]) -> bool {
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
    fn language_tags_follow_rfc_5646() {
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
