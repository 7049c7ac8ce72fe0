//! Which of the languages at hand a person is served in (§11.1.3).

/// RFC 4647 lookup for each wanted tag in turn, shortened from the right; then an offer that is a kind of it (C-H2).
pub(super) fn lookup<'o>(wanted: &[String], offers: &[&'o str]) -> Option<&'o str> {
    wanted.iter().find_map(|tag| best(tag, offers))
}

fn best<'o>(wanted: &str, offers: &[&'o str]) -> Option<&'o str> {
    let mut range = wanted;
    loop {
        if let Some(offer) = offers.iter().find(|offer| offer.eq_ignore_ascii_case(range)) {
            return Some(offer);
        }
        let Some((shorter, _)) = range.rsplit_once('-') else { break };
        range = shorter;
        // A single letter only introduces what was cut off (RFC 4647, 3.4).
        if let Some((before, single)) = range.rsplit_once('-')
            && single.len() == 1
        {
            range = before;
        }
    }
    offers.iter().copied().find(|offer| {
        offer.len() > wanted.len()
            && offer.as_bytes()[wanted.len()] == b'-'
            && offer.as_bytes()[..wanted.len()].eq_ignore_ascii_case(wanted.as_bytes())
    })
}

/// Whether text in that language runs from right to left.
pub(super) fn is_right_to_left(tag: &str) -> bool {
    let mut parts = tag.split('-');
    let language = parts.next().unwrap_or_default().to_ascii_lowercase();
    match parts.find(|part| part.len() == 4) {
        Some(script) => matches!(
            &*script.to_ascii_lowercase(),
            "arab" | "hebr" | "thaa" | "syrc" | "nkoo" | "adlm" | "samr" | "mand" | "rohg"
        ),
        None => matches!(
            &*language,
            "ar" | "arc"
                | "ckb"
                | "dv"
                | "fa"
                | "he"
                | "iw"
                | "nqo"
                | "ps"
                | "sd"
                | "syr"
                | "ug"
                | "ur"
                | "yi"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(wanted: &[&str], offers: &[&'static str]) -> Option<&'static str> {
        let wanted: Vec<_> = wanted.iter().map(ToString::to_string).collect();
        lookup(&wanted, offers)
    }

    #[test]
    fn the_rules_of_section_11_1_3_in_their_order() {
        assert_eq!(choose(&["en-US"], &["en", "en-US"]), Some("en-US"), "1, exact");
        assert_eq!(choose(&["EN-us"], &["en-US"]), Some("en-US"), "case is no difference");
        assert_eq!(choose(&["en-US"], &["fr", "en"]), Some("en"), "2, without its region");
        assert_eq!(choose(&["zh-Hant"], &["zh"]), Some("zh"), "3, without its script");
        assert_eq!(choose(&["zh-Hant-TW"], &["zh", "zh-Hant"]), Some("zh-Hant"));
        assert_eq!(choose(&["yo", "fr-CA"], &["en", "fr"]), Some("fr"), "4, the next language");
        assert_eq!(choose(&["en"], &["fr", "en-GB", "en-US"]), Some("en-GB"), "C-C8, a kind of it");
        assert_eq!(choose(&["en-GB"], &["en-US"]), None, "another kind is not it");
        assert_eq!(choose(&["e"], &["en"]), None);
        assert_eq!(choose(&["zh-Hant-x-private"], &["zh-Hant"]), Some("zh-Hant"));
        assert_eq!(choose(&["yo"], &["en"]), None);
    }

    #[test]
    fn direction_follows_the_script() {
        for tag in ["ar", "ar-EG", "he", "ur-PK", "az-Arab", "FA"] {
            assert!(is_right_to_left(tag), "{tag}");
        }
        for tag in ["en", "yo-NG", "ku-Latn", "hi", "ar-Latn"] {
            assert!(!is_right_to_left(tag), "{tag}");
        }
    }
}
