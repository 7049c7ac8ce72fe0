//! Makes text from producers safe for people who read or hear it line by line.

use std::fmt::Write;
use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::{AnnouncementKind, Phrases};

/// Returns the text without anything that controls a terminal, is invisible, reverses a line, or imitates a line's label.
///
/// - Line ends of every kind become `\n`, or a space if `one_line` is set. A run of spaces becomes one space, so spaces cannot
///   push text to the start of a screen row.
/// - Control characters are escaped: `\u{1b}`.
/// - Bidi controls and invisible characters are removed, so the text appears in the order in which it is read aloud. Joiners
///   are kept, because many languages need them.
/// - A colon after one of sayso's labels, printed or spoken, in any language, gets a space in front: `ask :`. Text therefore cannot
///   look like the start of another line.
///
/// ```
/// assert_eq!(listen::sanitize("a\u{1b}[2J\r\nask: b", false), "a\\u{1b}[2J\nask : b");
/// ```
pub fn sanitize(text: &str, one_line: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut needs_space = false;
    let mut mark_count = 0_u8;
    for c in text.chars() {
        let is_line_end = matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}');
        if is_line_end && !one_line {
            if !out.is_empty() && !out.ends_with('\n') {
                out.push('\n');
            }
            needs_space = false;
        } else if is_line_end || c.is_whitespace() {
            needs_space = true;
        } else if !is_removed(c) {
            mark_count = if is_stacking_mark(c) { mark_count.saturating_add(1) } else { 0 };
            if mark_count > MAX_COMBINING_MARKS {
                continue;
            }
            if std::mem::take(&mut needs_space) && !out.is_empty() && !out.ends_with('\n') {
                out.push(' ');
            }
            if is_colon(c) && ends_with_label(&out) {
                out.push(' ');
            }
            if c.is_control() {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            } else {
                out.push(c);
            }
        }
    }
    if out.ends_with('\n') {
        out.pop();
    }
    out
}

/// Maximum number of combining marks per letter. No script needs more, and a stack of them would cover the lines around it.
const MAX_COMBINING_MARKS: u8 = 8;

fn is_stacking_mark(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5bd}' | '\u{610}'..='\u{61a}'
        | '\u{64b}'..='\u{65f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

/// Whether `sanitize` removes a character: it is invisible or only changes the text direction. Joiners and variation selectors, which
/// [`aaep::check::is_invisible`] includes, are kept, because they change the shape of letters and symbols. The page removes the same
/// characters: both are tested with `page/tests/sanitized_characters.json`.
fn is_removed(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}'
        | '\u{e0000}'..='\u{e0fff}')
}

fn is_colon(c: char) -> bool {
    c == ':' || c >= '\u{2d0}' && COLON_LOOKALIKES.contains(c)
}

/// Characters that look like a colon.
const COLON_LOOKALIKES: &str = "\u{2d0}\u{2f8}\u{589}\u{5c3}\u{703}\u{704}\u{16ec}\u{1803}\u{1809}\u{205a}\u{2236}\u{a4fd}\u{a789}\u{fe13}\u{fe30}\u{fe55}\u{ff1a}";

/// Whether the text ends with a label. A label at the end of a longer word counts too, because a terminal can wrap a row anywhere.
fn ends_with_label(text: &str) -> bool {
    let from = text.char_indices().rev().nth(LABEL_SEARCH_CHARS).map_or(0, |(at, _)| at);
    let tail = fold_case_and_marks(text.get(from..).unwrap_or_default());
    LINE_LABELS.iter().any(|label| tail.ends_with(label.as_str()))
}

/// Number of characters at the end of a text that are searched for a label. Every label fits, even with the maximum number of marks.
const LABEL_SEARCH_CHARS: usize = 64;

/// The labels in front of lines, as printed and as spoken.
static LINE_LABELS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let spoken = |kind: &AnnouncementKind| {
        Phrases::all().map(|phrases| fold_case_and_marks(phrases.kind_label(*kind))).collect::<Vec<_>>()
    };
    AnnouncementKind::ALL
        .iter()
        .flat_map(|kind| [vec![kind.as_str().to_owned()], spoken(kind)].concat())
        .collect()
});

/// Converts the text to lowercase and removes its combining marks.
fn fold_case_and_marks(text: &str) -> String {
    text.nfd().filter(|character| !is_combining_mark(*character)).collect::<String>().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_invisible_ones_removed() {
        for (text, expected) in [
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("bell\u{7} and\u{8} back", "bell\\u{7} and\\u{8} back"),
            ("\u{202e}txt\u{202c}\u{2066}x\u{2069}", "txtx"),
            ("שלום\u{200f}!", "שלום!"),
            ("می\u{200c}خواهم 👩\u{200d}🚀", "می\u{200c}خواهم 👩\u{200d}🚀"),
            ("tag\u{e0061}\u{e007f}s \u{200b}and\u{feff}", "tags and"),
            ("  many \t\u{a0}\u{3000} spaces  ", "many spaces"),
            ("ASK: Error： Tool\u{200b}: task:", "ASK : Error ： Tool : task :"),
            ("Pregunta: SESIÓN: sesio\u{301}n:", "Pregunta : SESIÓN : sesio\u{301}n :"),
            ("12:30, mask", "12:30, mask"),
        ] {
            assert_eq!(sanitize(text, true), expected, "{text:?}");
        }
    }

    #[test]
    fn line_ends_become_newlines_or_spaces() {
        let text = "\r\na\r\nb\u{85}c\u{2028}d\u{2029}e\u{b}f\u{c}g\n\n\n h \n";
        assert_eq!(sanitize(text, false), "a\nb\nc\nd\ne\nf\ng\nh");
        assert_eq!(sanitize(text, true), "a b c d e f g h");
    }

    #[test]
    fn the_number_of_combining_marks_per_letter_is_limited() {
        assert_eq!(sanitize(&format!("e{}", "\u{301}".repeat(500)), true).chars().count(), 9);
        assert_eq!(sanitize("ọ̀gbẹ́ni", true), "ọ̀gbẹ́ni");
    }

    #[test]
    fn every_character_is_treated_as_in_the_table_that_the_page_shares() {
        let mut tape = aaep::json::Tape::default();
        let table = tape.read(include_str!("../page/tests/sanitized_characters.json")).unwrap();
        let read = |row: &aaep::json::JsonValue<'_>, name: &str| {
            row.member(name).unwrap().text().unwrap().into_owned()
        };
        let parse_code =
            |row: &aaep::json::JsonValue<'_>, name: &str| u32::from_str_radix(&read(row, name), 16).unwrap();
        let mut treatments = std::collections::HashMap::new();
        for row in table.root().member("characters").unwrap().items() {
            for code in parse_code(&row, "from")..=parse_code(&row, "to") {
                treatments.insert(code, read(&row, "terminal"));
            }
        }
        for c in '\0'..=char::MAX {
            let code = u32::from(c);
            let expected = match treatments.get(&code).map_or("kept", String::as_str) {
                "removed" => "ab".to_owned(),
                "space" => "a b".to_owned(),
                "line end" => "a\nb".to_owned(),
                "escaped" => format!("a\\u{{{code:x}}}b"),
                "kept" => format!("a{c}b"),
                other => panic!("unknown treatment {other}"),
            };
            assert_eq!(sanitize(&format!("a{c}b"), false), expected, "U+{code:04X}");
        }
        for row in table.root().member("texts").unwrap().items() {
            assert_eq!(sanitize(&read(&row, "text"), false), read(&row, "terminal"));
        }
    }
}
