//! The words of a request, folded so that accents, tone marks and capitals do not matter.

#[derive(Debug)]
pub(super) struct Word<'t> {
    pub(super) written: &'t str,
    pub(super) folded: String,
}

/// No more of a request is looked at.
const LONGEST: usize = 2_000;

/// The words of the beginning of a text.
pub(super) fn words(text: &str) -> Vec<Word<'_>> {
    let text = text.get(..text.floor_char_boundary(LONGEST)).unwrap_or_default();
    text.split(|letter: char| !letter.is_alphanumeric() && !is_mark(letter))
        .filter(|word| !word.is_empty())
        .map(|written| Word { written, folded: fold(written) })
        .collect()
}

/// Letters without marks, in small.
fn fold(word: &str) -> String {
    word.to_lowercase().chars().filter(|letter| !is_mark(*letter)).map(bare).collect()
}

/// Yoruba has marks that are letters of their own.
fn is_mark(letter: char) -> bool {
    ('\u{300}'..='\u{36f}').contains(&letter)
}

fn bare(letter: char) -> char {
    match letter {
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
        let folded = |text| words(text).into_iter().map(|word| word.folded).collect::<Vec<_>>().join(" ");
        assert_eq!(folded("¿Cuál es mi SALDO?"), "cual es mi saldo");
        assert_eq!(folded("Fi owó ránṣẹ́ sí Ben"), "fi owo ranse si ben");
        assert_eq!(folded("ra\u{301}ns\u{323}e\u{323}\u{301}"), "ranse", "marks as letters of their own");
        assert_eq!(folded("\u{0}\u{7}\u{202e}"), "");
        assert!(words(&"é".repeat(1_000_000))[0].written.len() <= LONGEST);
    }
}
