//! Language selection (§11.1.3): RFC 4647 lookup for each requested tag in turn (C-H2).
//!
//! Tags are compared case-insensitively and returned as written. `_` is treated as `-`, because the
//! language suffix of a translated member uses `_` (`summary_normal_zh_hant`, §11.5.1, C-H1).

/// The selected language, and how it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LanguageChoice<'a> {
    /// One of the available languages or the primary language, as written in the event.
    pub language: &'a str,
    /// How the language was found.
    pub matched_by: LanguageMatch,
}

/// The steps of §11.1.3 in order. The first three steps are tried for each requested tag before the
/// next tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum LanguageMatch {
    /// The requested tag is available.
    Exact,
    /// A shorter form is available: `en` for `en-US`, `zh` for `zh-Hant` (rules 2 and 3).
    Truncated,
    /// A longer form is available: `en-US` for `en` (§11.1.2).
    Extended,
    /// No requested tag is available; this language is in the event's `fallback_chain` (C-H3).
    Fallback,
    /// Nothing else is available, so the event's own language is used. The event is never withheld.
    Primary,
}

/// Selects a language of an event. Its primary language is considered before its other available
/// languages.
///
/// ```
/// use aaep::negotiate::language::{LanguageMatch, choose};
/// let choice = choose(&["yo-NG", "en"], &["en-US", "yo"], "fr", &["en"]);
/// assert_eq!((choice.language, choice.matched_by), ("yo", LanguageMatch::Truncated));
/// ```
pub fn choose<'a>(
    requested: &[impl AsRef<str>],
    available: &'a [impl AsRef<str>],
    primary: &'a str,
    fallback_chain: &[impl AsRef<str>],
) -> LanguageChoice<'a> {
    let offered = std::iter::once(primary).chain(available.iter().map(AsRef::as_ref));
    let matched = requested.iter().find_map(|tag| find_match(tag.as_ref(), offered.clone()));
    let fallback = || {
        let (language, _) =
            fallback_chain.iter().find_map(|tag| find_match(tag.as_ref(), offered.clone()))?;
        Some((language, LanguageMatch::Fallback))
    };
    let (language, matched_by) = matched.or_else(fallback).unwrap_or((primary, LanguageMatch::Primary));
    LanguageChoice { language, matched_by }
}

/// Returns whether the offered languages can serve a request for `requested` (§11.2).
///
/// ```
/// use aaep::negotiate::language::can_serve;
/// assert!(can_serve(&["en-US"], "en"));
/// assert!(!can_serve(&["en-US"], "en-GB"));
/// ```
pub fn can_serve(offered: &[impl AsRef<str>], requested: &str) -> bool {
    find_match(requested, offered.iter().map(AsRef::as_ref)).is_some()
}

/// Applies the first three steps to each requested tag in turn, and returns the first match.
pub(crate) fn lookup<'a>(requested: &[impl AsRef<str>], offered: &[&'a str]) -> Option<&'a str> {
    requested.iter().find_map(|tag| find_match(tag.as_ref(), offered.iter().copied())).map(|(found, _)| found)
}

/// Applies the first three steps to one requested tag, and returns the match.
fn find_match<'a>(
    requested: &str,
    mut offered: impl Iterator<Item = &'a str> + Clone,
) -> Option<(&'a str, LanguageMatch)> {
    let mut range = Some(requested);
    while let Some(tag) = range {
        if let Some(found) = offered.clone().find(|offered_tag| tags_equal(offered_tag, tag)) {
            let matched_by =
                if tag.len() == requested.len() { LanguageMatch::Exact } else { LanguageMatch::Truncated };
            return Some((found, matched_by));
        }
        range = truncate_tag(tag);
    }
    // Only the full tag may be extended. Otherwise `zh-Hant`, truncated to `zh`, would match
    // `zh-Hans`.
    let found = offered.find(|offered_tag| extends_tag(offered_tag, requested))?;
    Some((found, LanguageMatch::Extended))
}

/// Removes the last subtag, and a single-letter subtag before it (RFC 4647, 3.4).
fn truncate_tag(tag: &str) -> Option<&str> {
    let (mut rest, _) = tag.rsplit_once(is_separator)?;
    loop {
        match rest.rsplit_once(is_separator) {
            Some((before, last)) if last.len() <= 1 => rest = before,
            // `i` and `x` alone are not languages.
            None if rest.len() <= 1 => return None,
            _ => return Some(rest),
        }
    }
}

/// Returns whether `tag` is `requested` with further subtags.
fn extends_tag(tag: &str, requested: &str) -> bool {
    !requested.is_empty()
        && tag
            .split_at_checked(requested.len())
            .is_some_and(|(prefix, rest)| rest.starts_with(is_separator) && tags_equal(prefix, requested))
}

fn tags_equal(left: &str, right: &str) -> bool {
    let fold = |byte: u8| if byte == b'_' { b'-' } else { byte.to_ascii_lowercase() };
    left.len() == right.len() && left.bytes().map(fold).eq(right.bytes().map(fold))
}

fn is_separator(character: char) -> bool {
    matches!(character, '-' | '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: &[&str] = &[];

    /// Selects from `offered` for an event in Yoruba.
    fn choose_from(requested: &[&str], offered: &'static [&'static str]) -> (&'static str, LanguageMatch) {
        let choice = choose(requested, offered, "yo", NONE);
        (choice.language, choice.matched_by)
    }

    #[test]
    fn an_exact_match_ignores_case() {
        assert_eq!(choose_from(&["en-US"], &["en", "en-US"]), ("en-US", LanguageMatch::Exact));
        assert_eq!(choose_from(&["EN-us"], &["en", "en-US"]), ("en-US", LanguageMatch::Exact));
        assert_eq!(choose_from(&["zh-hant-tw"], &["zh", "zh-Hant-TW"]), ("zh-Hant-TW", LanguageMatch::Exact));
    }

    #[test]
    fn the_region_is_dropped_before_the_script() {
        assert_eq!(choose_from(&["en-US"], &["fr", "en"]), ("en", LanguageMatch::Truncated));
        assert_eq!(choose_from(&["zh-Hant-TW"], &["zh", "zh-Hant"]), ("zh-Hant", LanguageMatch::Truncated));
        assert_eq!(choose_from(&["zh-Hant-TW"], &["zh-Hans", "zh"]), ("zh", LanguageMatch::Truncated));
        assert_eq!(choose_from(&["zh-Hant"], &["zh"]), ("zh", LanguageMatch::Truncated));
        assert_eq!(choose_from(&["sr-Latn"], &["sr-Cyrl", "sr"]), ("sr", LanguageMatch::Truncated));
    }

    #[test]
    fn a_short_tag_matches_the_first_longer_one() {
        assert_eq!(choose_from(&["en"], &["fr", "en-US", "en-GB"]), ("en-US", LanguageMatch::Extended));
        assert_eq!(
            choose_from(&["zh-Hant"], &["zh-Hans-CN", "zh-Hant-TW"]),
            ("zh-Hant-TW", LanguageMatch::Extended)
        );
        // An exact match is preferred to a longer tag, regardless of the order.
        assert_eq!(choose_from(&["en"], &["en-US", "en"]), ("en", LanguageMatch::Exact));
        // `enm` is Middle English.
        assert_eq!(choose_from(&["en"], &["enm"]), ("yo", LanguageMatch::Primary));
    }

    #[test]
    fn another_region_or_script_does_not_match() {
        assert_eq!(choose_from(&["en-GB"], &["en-US"]), ("yo", LanguageMatch::Primary));
        assert_eq!(choose_from(&["zh-Hant-TW"], &["zh-Hans"]), ("yo", LanguageMatch::Primary));
        assert_eq!(choose_from(&["sr-Latn"], &["sr-Cyrl"]), ("yo", LanguageMatch::Primary));
    }

    #[test]
    fn each_requested_tag_goes_through_all_steps_before_the_next() {
        assert_eq!(choose_from(&["en-US", "fr"], &["fr", "en"]), ("en", LanguageMatch::Truncated));
        assert_eq!(choose_from(&["en", "fr"], &["fr", "en-US"]), ("en-US", LanguageMatch::Extended));
        assert_eq!(choose_from(&["de", "fr-CA"], &["fr", "en"]), ("fr", LanguageMatch::Truncated));
    }

    #[test]
    fn the_fallback_chain_is_used_before_the_primary_language() {
        // C-H3: the fallback chain is the producer's, in the event.
        let choice = choose(&["de"], &["fr-FR", "en"], "yo", &["ig", "fr", "en"]);
        assert_eq!((choice.language, choice.matched_by), ("fr-FR", LanguageMatch::Fallback));
        let choice = choose(&["en"], &["fr", "en"], "yo", &["fr"]);
        assert_eq!((choice.language, choice.matched_by), ("en", LanguageMatch::Exact));
        let choice = choose(&["de"], &["fr"], "yo", &["ig"]);
        assert_eq!((choice.language, choice.matched_by), ("yo", LanguageMatch::Primary));
        let choice = choose(NONE, NONE, "yo-NG", NONE);
        assert_eq!((choice.language, choice.matched_by), ("yo-NG", LanguageMatch::Primary));
    }

    #[test]
    fn the_primary_language_is_offered_first() {
        let choice = choose(&["en"], &["en-US"], "en-GB", NONE);
        assert_eq!((choice.language, choice.matched_by), ("en-GB", LanguageMatch::Extended));
        let choice = choose(&["fr", "en-GB"], &["en-US"], "en-GB", &["en-US"]);
        assert_eq!((choice.language, choice.matched_by), ("en-GB", LanguageMatch::Exact));
    }

    #[test]
    fn unusual_tags_are_truncated_as_in_rfc_4647() {
        let mut tag = "zh-Hant-CN-x-private1-private2";
        let mut seen = Vec::new();
        while let Some(shorter) = truncate_tag(tag) {
            seen.push(shorter);
            tag = shorter;
        }
        assert_eq!(seen, ["zh-Hant-CN-x-private1", "zh-Hant-CN", "zh-Hant", "zh"]);
        assert_eq!(
            (truncate_tag("i-klingon"), truncate_tag("x-private"), truncate_tag("en")),
            (None, None, None)
        );
        assert_eq!(truncate_tag("de-a-b-foo"), Some("de"));
        assert_eq!(choose_from(&["i-klingon"], &["tlh", "i-klingon"]), ("i-klingon", LanguageMatch::Exact));
        assert_eq!(choose_from(&["i-klingon"], &["i-navajo"]), ("yo", LanguageMatch::Primary));
        assert_eq!(
            choose_from(&["x-private"], &["x-other", "X-PRIVATE"]),
            ("X-PRIVATE", LanguageMatch::Exact)
        );
        assert_eq!(choose_from(&["x-private"], &["x-other"]), ("yo", LanguageMatch::Primary));
        assert_eq!(choose_from(&["", "-", "*", "é"], &["en", "fr"]), ("yo", LanguageMatch::Primary));
        assert_eq!(choose_from(&["éé"], &["eé-x"]), ("yo", LanguageMatch::Primary));
    }

    #[test]
    fn the_language_suffix_of_a_member_name_is_accepted_as_a_tag() {
        // C-H1: lower case, `_` for `-`.
        assert_eq!(
            choose_from(&["zh-Hant-TW"], &["en_us", "zh_hant"]),
            ("zh_hant", LanguageMatch::Truncated)
        );
        assert_eq!(choose_from(&["en"], &["fr", "en_us"]), ("en_us", LanguageMatch::Extended));
    }

    #[test]
    fn lookup_follows_the_order_of_section_11_1_3() {
        for (requested, offered, expected) in [
            (&["en-US"][..], &["en", "en-US"][..], Some("en-US")),
            (&["EN-us"], &["en-US"], Some("en-US")),
            (&["en-US"], &["fr", "en"], Some("en")),
            (&["zh-Hant"], &["zh"], Some("zh")),
            (&["zh-Hant-TW"], &["zh", "zh-Hant"], Some("zh-Hant")),
            (&["yo", "fr-CA"], &["en", "fr"], Some("fr")),
            (&["en"], &["fr", "en-GB", "en-US"], Some("en-GB")),
            (&["en-GB"], &["en-US"], None),
            (&["e"], &["en"], None),
            (&["zh-Hant-x-private"], &["zh-Hant"], Some("zh-Hant")),
            (&["yo"], &["en"], None),
        ] {
            assert_eq!(lookup(requested, offered), expected, "{requested:?} among {offered:?}");
        }
    }
}
