//! Splits a request into words, folded so that accents, tone marks and capitals do not matter.

#[derive(Debug)]
pub(super) struct Word<'t> {
    pub(super) original: &'t str,
    pub(super) folded: String,
}

/// Maximum number of bytes of a request that are examined.
const MAX_REQUEST_BYTES: usize = 2_000;

/// Returns the words in the first [`MAX_REQUEST_BYTES`] of a text.
pub(super) fn tokenize(text: &str) -> Vec<Word<'_>> {
    let text = text.get(..text.floor_char_boundary(MAX_REQUEST_BYTES)).unwrap_or_default();
    text.split(|character: char| !character.is_alphanumeric() && !is_mark(character))
        .filter(|word| !word.is_empty())
        .map(|original| Word { original, folded: fold(original) })
        .collect()
}

/// Returns the word in lower case without accents.
fn fold(word: &str) -> String {
    word.to_lowercase().chars().filter(|character| !is_mark(*character)).map(strip_accent).collect()
}

/// Returns whether the character is a combining mark, as Yoruba text may contain.
fn is_mark(character: char) -> bool {
    ('\u{300}'..='\u{36f}').contains(&character)
}

fn strip_accent(character: char) -> char {
    match character {
        'à' | 'á' | 'ā' | 'â' | 'ã' => 'a',
        'è' | 'é' | 'ē' | 'ê' | 'ẹ' => 'e',
        'ì' | 'í' | 'ī' | 'î' => 'i',
        'ò' | 'ó' | 'ō' | 'ô' | 'õ' | 'ọ' => 'o',
        'ù' | 'ú' | 'ū' | 'û' | 'ü' => 'u',
        'ǹ' | 'ń' | 'ñ' => 'n',
        'ḿ' => 'm',
        'ṣ' => 's',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_and_capitals_do_not_matter() {
        let folded = |text| tokenize(text).into_iter().map(|word| word.folded).collect::<Vec<_>>().join(" ");
        assert_eq!(folded("¿Cuál es mi SALDO?"), "cual es mi saldo");
        assert_eq!(folded("Fi owó ránṣẹ́ sí Ben"), "fi owo ranse si ben");
        assert_eq!(folded("ra\u{301}ns\u{323}e\u{323}\u{301}"), "ranse", "combining marks");
        assert_eq!(folded("\u{0}\u{7}\u{202e}"), "");
        assert!(tokenize(&"é".repeat(1_000_000))[0].original.len() <= MAX_REQUEST_BYTES);
    }
}
