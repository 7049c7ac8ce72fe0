//! Text as braille cells, and its division into lines.

use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

/// A blank cell as a character of Unicode braille. liblouis writes spaces like this.
const BLANK_PATTERN: char = '\u{2800}';

/// One cell of a display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) character: char,
    /// The position of the answer that the routing key of this cell selects.
    pub(super) answer: Option<usize>,
    /// Whether the cell continues the grapheme cluster of the cell before it.
    continues_grapheme: bool,
}

/// A line of cells.
pub(super) type CellLine = Vec<Cell>;

/// Returns the cells of a text, one per character after normalization to form C. A base letter and its mark share a cell if
/// Unicode has a character for both.
pub(super) fn cells_of(text: &str, answer: Option<usize>) -> CellLine {
    let composed: String = text.nfc().collect();
    let mut cells = Vec::with_capacity(composed.len());
    for grapheme in composed.graphemes(true) {
        for (position, character) in grapheme.chars().enumerate() {
            cells.push(Cell { character, answer, continues_grapheme: position > 0 });
        }
    }
    cells
}

/// Divides cells into lines of at most `columns` cells. A word stays whole unless it is longer than a line. A longer word
/// is divided between grapheme clusters, unless one cluster is longer than a line.
pub(super) fn wrap(cells: &[Cell], columns: usize) -> Vec<CellLine> {
    let columns = columns.max(1);
    let is_blank = |cell: &Cell| cell.character.is_whitespace() || cell.character == BLANK_PATTERN;
    let mut lines = Vec::new();
    let mut line: CellLine = Vec::new();
    for word in cells.split(is_blank).filter(|word| !word.is_empty()) {
        if !line.is_empty() && line.len() + 1 + word.len() > columns {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(Cell { character: ' ', answer: None, continues_grapheme: false });
        }
        let mut rest = word;
        while rest.len() > columns {
            let (part, after) = rest.split_at(division_point(rest, columns));
            lines.push(part.to_vec());
            rest = after;
        }
        line.extend_from_slice(rest);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// Returns where to divide a word that is longer than a line.
fn division_point(word: &[Cell], columns: usize) -> usize {
    let is_boundary = |at: &usize| word.get(*at).is_some_and(|cell| !cell.continues_grapheme);
    (1..=columns).rev().find(is_boundary).unwrap_or(columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text_of(line: &[Cell]) -> String {
        line.iter().map(|cell| cell.character).collect()
    }

    fn wrapped(text: &str, columns: usize) -> Vec<String> {
        wrap(&cells_of(text, None), columns).iter().map(|line| text_of(line)).collect()
    }

    #[test]
    fn words_stay_whole_and_longer_ones_start_on_their_own_line() {
        assert_eq!(wrapped("Send 20 euros to Ben?", 10), ["Send 20", "euros to", "Ben?"]);
        assert_eq!(wrapped("at abcdefgh now", 5), ["at", "abcde", "fgh", "now"]);
        assert_eq!(wrapped(" \u{2800} ", 5), Vec::<String>::new());
        assert_eq!(wrapped("⠠⠓⠑⠀⠽⠑⠎", 4), ["⠠⠓⠑", "⠽⠑⠎"]);
    }

    #[test]
    fn a_letter_and_its_marks_stay_together_at_every_width() {
        // ọ́ has no single character, so it takes two cells; é takes one.
        let text = "gbọ\u{301}ẹ\u{301}bọ\u{301}ẹ\u{301} cafe\u{301}";
        for columns in 2..=20 {
            for line in wrap(&cells_of(text, None), columns) {
                assert!(!line[0].continues_grapheme, "{columns}: {}", text_of(&line));
            }
        }
        assert_eq!(wrapped("cafe\u{301}", 4), ["caf\u{e9}"]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_the_order_is_kept_at_every_width(text in "[a-zẹọ\u{301}é👩\u{200d}💻⠓ .,]{0,120}") {
            let composed: String = text.nfc().collect();
            let words: Vec<&str> = composed.split_whitespace().collect();
            for columns in 1..=80 {
                let lines = wrapped(&text, columns);
                prop_assert!(lines.iter().all(|line| (1..=columns).contains(&line.chars().count())), "{columns}: {lines:?}");
                let joined: String = lines.concat().split_whitespace().collect();
                prop_assert_eq!(joined, words.concat());
                for word in words.iter().filter(|word| word.chars().count() <= columns) {
                    prop_assert!(lines.iter().any(|line| line.split(' ').any(|part| part == *word)), "{columns}: {word} in {lines:?}");
                }
            }
        }
    }
}
