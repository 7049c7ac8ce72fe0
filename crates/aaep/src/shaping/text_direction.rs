//! The text direction of a language.

/// Returns whether a language is written from right to left.
///
/// ```
/// use aaep::shaping::is_right_to_left;
/// assert!(is_right_to_left("ar-EG") && !is_right_to_left("ar-Latn"));
/// ```
pub fn is_right_to_left(tag: &str) -> bool {
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

    #[test]
    fn the_direction_follows_the_script() {
        for tag in ["ar", "ar-EG", "he", "ur-PK", "az-Arab", "FA"] {
            assert!(is_right_to_left(tag), "{tag}");
        }
        for tag in ["en", "yo-NG", "ku-Latn", "hi", "ar-Latn"] {
            assert!(!is_right_to_left(tag), "{tag}");
        }
    }
}
