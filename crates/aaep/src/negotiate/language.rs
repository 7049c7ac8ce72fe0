//! Which language a listener gets (§11.1.3): RFC 4647 lookup, one requested tag after the other (C-H2).
//!
//! Tags are compared without regard to case, and come back as they were written. `_` counts as `-`, so that the suffix
//! of a variant (`summary_normal_zh_hant`, §11.5.1, C-H1) can be offered as it stands.

/// The language that was chosen, and how it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice<'a> {
    /// One of the available languages, or the primary one, as it was written there.
    pub language: &'a str,
    /// The step that found it.
    pub step: Step,
}

/// The steps of §11.1.3, in their order; a requested tag goes through the first three before the next one is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Step {
    /// It is there as requested.
    Exact,
    /// It is there without its last parts: `en` for `en-US`, `zh` for `zh-Hant` (rules 2 and 3).
    Shortened,
    /// It is there with more parts: `en-US` for `en` (§11.1.2).
    Lengthened,
    /// Nothing requested is there; the event's own `fallback_chain` names it (C-H3).
    Fallback,
    /// Nothing else is there: the language in which the event was written. The event is never withheld.
    Primary,
}

/// Chooses among the languages that an event can be had in: its primary one and the available others, in this order.
///
/// ```
/// use aaep::negotiate::language::{Step, choose};
/// let choice = choose(&["yo-NG", "en"], &["en-US", "yo"], "fr", &["en"]);
/// assert_eq!((choice.language, choice.step), ("yo", Step::Shortened));
/// ```
pub fn choose<'a>(
    requested: &[impl AsRef<str>],
    available: &'a [impl AsRef<str>],
    primary: &'a str,
    fallback_chain: &[impl AsRef<str>],
) -> Choice<'a> {
    let offered = std::iter::once(primary).chain(available.iter().map(AsRef::as_ref));
    let wanted = requested.iter().find_map(|tag| find(tag.as_ref(), offered.clone()));
    let fallback = || {
        let (language, _) = fallback_chain.iter().find_map(|tag| find(tag.as_ref(), offered.clone()))?;
        Some((language, Step::Fallback))
    };
    let (language, step) = wanted.or_else(fallback).unwrap_or((primary, Step::Primary));
    Choice { language, step }
}

/// Whether somebody who asks for `wanted` can be served by one who offers these (§11.2).
///
/// ```
/// use aaep::negotiate::language::serves;
/// assert!(serves(&["en-US"], "en"));
/// assert!(!serves(&["en-US"], "en-GB"));
/// ```
pub fn serves(offered: &[impl AsRef<str>], wanted: &str) -> bool {
    find(wanted, offered.iter().map(AsRef::as_ref)).is_some()
}

/// What the first requested tag that finds anything finds, by the first three steps; nothing if none does.
pub(crate) fn lookup<'a>(requested: &[impl AsRef<str>], offered: &[&'a str]) -> Option<&'a str> {
    requested.iter().find_map(|tag| find(tag.as_ref(), offered.iter().copied())).map(|(found, _)| found)
}

/// What one requested tag finds, by the first three steps.
fn find<'a>(wanted: &str, mut offered: impl Iterator<Item = &'a str> + Clone) -> Option<(&'a str, Step)> {
    let mut range = Some(wanted);
    while let Some(tag) = range {
        if let Some(found) = offered.clone().find(|offer| same(offer, tag)) {
            let step = if tag.len() == wanted.len() { Step::Exact } else { Step::Shortened };
            return Some((found, step));
        }
        range = shortened(tag);
    }
    // Only the tag as it was asked for: a shortened `zh-Hant` must not end up at `zh-Hans`.
    let found = offered.find(|offer| is_longer(offer, wanted))?;
    Some((found, Step::Lengthened))
}

/// A tag without its last part, and without the single letter that introduced that part (RFC 4647, 3.4).
fn shortened(tag: &str) -> Option<&str> {
    let (mut rest, _) = tag.rsplit_once(is_separator)?;
    loop {
        match rest.rsplit_once(is_separator) {
            Some((before, last)) if last.len() <= 1 => rest = before,
            // `i` and `x` alone name no language.
            None if rest.len() <= 1 => return None,
            _ => return Some(rest),
        }
    }
}

fn is_longer(offer: &str, wanted: &str) -> bool {
    !wanted.is_empty()
        && offer
            .split_at_checked(wanted.len())
            .is_some_and(|(beginning, rest)| rest.starts_with(is_separator) && same(beginning, wanted))
}

fn same(left: &str, right: &str) -> bool {
    let folded = |byte: u8| if byte == b'_' { b'-' } else { byte.to_ascii_lowercase() };
    left.len() == right.len() && left.bytes().map(folded).eq(right.bytes().map(folded))
}

fn is_separator(character: char) -> bool {
    matches!(character, '-' | '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: &[&str] = &[];

    /// Chosen from `offered` where the event itself is in Yoruba.
    fn chosen(requested: &[&str], offered: &'static [&'static str]) -> (&'static str, Step) {
        let choice = choose(requested, offered, "yo", NONE);
        (choice.language, choice.step)
    }

    #[test]
    fn the_same_tag_is_taken_whatever_its_case() {
        assert_eq!(chosen(&["en-US"], &["en", "en-US"]), ("en-US", Step::Exact));
        assert_eq!(chosen(&["EN-us"], &["en", "en-US"]), ("en-US", Step::Exact));
        assert_eq!(chosen(&["zh-hant-tw"], &["zh", "zh-Hant-TW"]), ("zh-Hant-TW", Step::Exact));
    }

    #[test]
    fn the_region_is_dropped_then_the_script() {
        assert_eq!(chosen(&["en-US"], &["fr", "en"]), ("en", Step::Shortened));
        assert_eq!(chosen(&["zh-Hant-TW"], &["zh", "zh-Hant"]), ("zh-Hant", Step::Shortened));
        assert_eq!(chosen(&["zh-Hant-TW"], &["zh-Hans", "zh"]), ("zh", Step::Shortened));
        assert_eq!(chosen(&["zh-Hant"], &["zh"]), ("zh", Step::Shortened));
        assert_eq!(chosen(&["sr-Latn"], &["sr-Cyrl", "sr"]), ("sr", Step::Shortened));
    }

    #[test]
    fn a_bare_tag_takes_the_first_longer_one() {
        assert_eq!(chosen(&["en"], &["fr", "en-US", "en-GB"]), ("en-US", Step::Lengthened));
        assert_eq!(chosen(&["zh-Hant"], &["zh-Hans-CN", "zh-Hant-TW"]), ("zh-Hant-TW", Step::Lengthened));
        // Exact beats longer, whatever the order.
        assert_eq!(chosen(&["en"], &["en-US", "en"]), ("en", Step::Exact));
        // `enm` is Middle English.
        assert_eq!(chosen(&["en"], &["enm"]), ("yo", Step::Primary));
    }

    #[test]
    fn another_region_or_script_is_another_language() {
        assert_eq!(chosen(&["en-GB"], &["en-US"]), ("yo", Step::Primary));
        assert_eq!(chosen(&["zh-Hant-TW"], &["zh-Hans"]), ("yo", Step::Primary));
        assert_eq!(chosen(&["sr-Latn"], &["sr-Cyrl"]), ("yo", Step::Primary));
    }

    #[test]
    fn a_requested_tag_is_tried_to_its_end_before_the_next() {
        assert_eq!(chosen(&["en-US", "fr"], &["fr", "en"]), ("en", Step::Shortened));
        assert_eq!(chosen(&["en", "fr"], &["fr", "en-US"]), ("en-US", Step::Lengthened));
        assert_eq!(chosen(&["de", "fr-CA"], &["fr", "en"]), ("fr", Step::Shortened));
    }

    #[test]
    fn then_the_events_own_chain_then_its_own_language() {
        // C-H3: the chain is the producer's, on the event.
        let choice = choose(&["de"], &["fr-FR", "en"], "yo", &["ig", "fr", "en"]);
        assert_eq!((choice.language, choice.step), ("fr-FR", Step::Fallback));
        let choice = choose(&["en"], &["fr", "en"], "yo", &["fr"]);
        assert_eq!((choice.language, choice.step), ("en", Step::Exact));
        let choice = choose(&["de"], &["fr"], "yo", &["ig"]);
        assert_eq!((choice.language, choice.step), ("yo", Step::Primary));
        let choice = choose(NONE, NONE, "yo-NG", NONE);
        assert_eq!((choice.language, choice.step), ("yo-NG", Step::Primary));
    }

    #[test]
    fn the_primary_language_is_the_first_that_is_offered() {
        let choice = choose(&["en"], &["en-US"], "en-GB", NONE);
        assert_eq!((choice.language, choice.step), ("en-GB", Step::Lengthened));
        let choice = choose(&["fr", "en-GB"], &["en-US"], "en-GB", &["en-US"]);
        assert_eq!((choice.language, choice.step), ("en-GB", Step::Exact));
    }

    #[test]
    fn odd_tags_are_cut_as_rfc_4647_says() {
        let mut tag = "zh-Hant-CN-x-private1-private2";
        let mut seen = Vec::new();
        while let Some(shorter) = shortened(tag) {
            seen.push(shorter);
            tag = shorter;
        }
        assert_eq!(seen, ["zh-Hant-CN-x-private1", "zh-Hant-CN", "zh-Hant", "zh"]);
        assert_eq!((shortened("i-klingon"), shortened("x-private"), shortened("en")), (None, None, None));
        assert_eq!(shortened("de-a-b-foo"), Some("de"));
        assert_eq!(chosen(&["i-klingon"], &["tlh", "i-klingon"]), ("i-klingon", Step::Exact));
        assert_eq!(chosen(&["i-klingon"], &["i-navajo"]), ("yo", Step::Primary));
        assert_eq!(chosen(&["x-private"], &["x-other", "X-PRIVATE"]), ("X-PRIVATE", Step::Exact));
        assert_eq!(chosen(&["x-private"], &["x-other"]), ("yo", Step::Primary));
        assert_eq!(chosen(&["", "-", "*", "é"], &["en", "fr"]), ("yo", Step::Primary));
        assert_eq!(chosen(&["éé"], &["eé-x"]), ("yo", Step::Primary));
    }

    #[test]
    fn the_suffix_of_a_variant_is_a_tag() {
        // C-H1: lower case, `_` for `-`.
        assert_eq!(chosen(&["zh-Hant-TW"], &["en_us", "zh_hant"]), ("zh_hant", Step::Shortened));
        assert_eq!(chosen(&["en"], &["fr", "en_us"]), ("en_us", Step::Lengthened));
    }

    #[test]
    fn the_lookup_of_section_11_1_3_in_its_order() {
        for (wanted, offers, found) in [
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
            assert_eq!(lookup(wanted, offers), found, "{wanted:?} among {offers:?}");
        }
    }
}
