//! The choice of a language (§11.1.3), compared with a second implementation.

use aaep::negotiate::language::{LanguageMatch, can_serve, choose};
use proptest::prelude::*;

use crate::support::byte_choices::RandomChoices;
use crate::support::random_bytes;
use testing::property::cases;

const TAGS: [&str; 22] = [
    "en",
    "EN",
    "en-US",
    "en-us",
    "en-GB",
    "enm",
    "zh",
    "zh-Hant",
    "zh-Hans",
    "zh-Hant-TW",
    "zh-TW",
    "sr",
    "sr-Latn",
    "sr-Cyrl-RS",
    "i-klingon",
    "i-navajo",
    "x-private",
    "x-other",
    "de-CH-1901",
    "de-x-foo",
    "de",
    "zh_hant",
];

proptest! {
    #![proptest_config(cases(4000))]

    #[test]
    fn the_choice_follows_the_order_of_the_rules(bytes in random_bytes(24)) {
        let mut choices = RandomChoices::new(&bytes);
        let mut random_tags = |limit: usize| -> Vec<&str> {
            (0..choices.below(limit)).map(|_| choices.pick(&TAGS)).collect()
        };
        let (requested, available, chain) = (random_tags(4), random_tags(5), random_tags(3));
        let primary = choices.pick(&TAGS);
        let choice = choose(&requested, &available, primary, &chain);

        let offered: Vec<_> = std::iter::once(primary).chain(available.iter().copied()).collect();
        let direct_match = requested.iter().find_map(|tag| lookup(tag, &offered));
        let expected = direct_match
            .or_else(|| {
                let (found, _) = chain.iter().find_map(|tag| lookup(tag, &offered))?;
                Some((found, LanguageMatch::Fallback))
            })
            .unwrap_or((primary, LanguageMatch::Primary));
        prop_assert_eq!((choice.language, choice.matched_by), expected, "{:?} of {:?}", requested, offered);
        for tag in requested {
            prop_assert_eq!(can_serve(&offered, tag), lookup(tag, &offered).is_some());
        }
    }

    #[test]
    fn arbitrary_text_as_language_tag_does_not_panic(texts in proptest::collection::vec(".{0,12}", 0..6), primary in ".{0,8}") {
        let choice = choose(&texts, &texts, &primary, &texts);
        prop_assert!(choice.language == primary || texts.iter().any(|text| text == choice.language));
    }
}

/// Tries every truncation of the tag (RFC 4647), from the longest to the shortest. Then tries tags that start with
/// the complete tag.
fn lookup<'a>(tag: &str, offered: &[&'a str]) -> Option<(&'a str, LanguageMatch)> {
    let normalize_tag = |tag: &str| tag.to_lowercase().replace('_', "-");
    let parts: Vec<String> = normalize_tag(tag).split('-').map(str::to_owned).collect();
    for length in (1..=parts.len()).rev() {
        let is_full_tag = length == parts.len();
        if !is_full_tag && parts[length - 1].len() == 1 {
            continue;
        }
        let range = parts[..length].join("-");
        if let Some(found) = offered.iter().find(|offered_tag| normalize_tag(offered_tag) == range) {
            return Some((found, if is_full_tag { LanguageMatch::Exact } else { LanguageMatch::Truncated }));
        }
    }
    let prefix = format!("{}-", parts.join("-"));
    offered
        .iter()
        .find(|offered_tag| normalize_tag(offered_tag).starts_with(&prefix))
        .map(|found| (*found, LanguageMatch::Extended))
}
