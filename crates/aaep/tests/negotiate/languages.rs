//! The choice of a language (§11.1.3), read a second time.

use aaep::negotiate::language::{Step, choose, serves};
use proptest::prelude::*;

use crate::support::choices::Choices;
use crate::support::decisions;
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
    fn the_choice_is_the_one_that_the_rules_name_first(bytes in decisions(24)) {
        let mut choices = Choices::new(&bytes);
        let mut list = |most: usize| -> Vec<&str> { (0..choices.below(most)).map(|_| choices.of(&TAGS)).collect() };
        let (requested, available, chain) = (list(4), list(5), list(3));
        let primary = choices.of(&TAGS);
        let choice = choose(&requested, &available, primary, &chain);

        let offered: Vec<_> = std::iter::once(primary).chain(available.iter().copied()).collect();
        let by_rules = requested.iter().find_map(|tag| one(tag, &offered));
        let expected = by_rules
            .or_else(|| chain.iter().find_map(|tag| one(tag, &offered)).map(|(found, _)| (found, Step::Fallback)))
            .unwrap_or((primary, Step::Primary));
        prop_assert_eq!((choice.language, choice.step), expected, "{:?} of {:?}", requested, offered);
        for tag in requested {
            prop_assert_eq!(serves(&offered, tag), one(tag, &offered).is_some());
        }
    }

    #[test]
    fn no_text_is_too_odd_to_choose_by(texts in proptest::collection::vec(".{0,12}", 0..6), primary in ".{0,8}") {
        let choice = choose(&texts, &texts, &primary, &texts);
        prop_assert!(choice.language == primary || texts.iter().any(|text| text == choice.language));
    }
}

/// Every form of a tag that RFC 4647 tries, from the longest to the shortest; then what begins with all of it.
fn one<'a>(tag: &str, offered: &[&'a str]) -> Option<(&'a str, Step)> {
    let folded = |tag: &str| tag.to_lowercase().replace('_', "-");
    let parts: Vec<String> = folded(tag).split('-').map(str::to_owned).collect();
    for length in (1..=parts.len()).rev() {
        let whole = length == parts.len();
        if !whole && parts[length - 1].len() == 1 {
            continue;
        }
        let range = parts[..length].join("-");
        if let Some(found) = offered.iter().find(|offer| folded(offer) == range) {
            return Some((found, if whole { Step::Exact } else { Step::Shortened }));
        }
    }
    let beginning = format!("{}-", parts.join("-"));
    offered.iter().find(|offer| folded(offer).starts_with(&beginning)).map(|found| (*found, Step::Lengthened))
}
