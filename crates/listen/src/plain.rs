//! Text from strangers, made harmless for people who read or hear it line by line.

use std::fmt::Write;
use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::{Kind, Phrases};

/// The text on lines of its own, with nothing in it that acts on a terminal, hides, turns a line around, or looks like the
/// word in front of a line.
///
/// - Ends of lines of every sort become `\n`, or a space where `one_line` is asked for. Spaces in a row become one, so that
///   text cannot be moved to the beginning of a row of the screen.
/// - Control characters are spelled out: `\u{1b}`.
/// - What only turns text around (bidi controls) or is not seen at all is left out; the text then stands in the order in which
///   it is read aloud. Joiners stay: words of many languages need them.
/// - A colon after one of sayso's own words, as they are printed or said in any language, gets a space in front, so that no
///   line seems to begin anew: `ask :`.
///
/// ```
/// assert_eq!(listen::plain("a\u{1b}[2J\r\nask: b", false), "a\\u{1b}[2J\nask : b");
/// ```
pub fn plain(text: &str, one_line: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut space = false;
    let mut marks = 0_u8;
    for c in text.chars() {
        let line_end = matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}');
        if line_end && !one_line {
            if !out.is_empty() && !out.ends_with('\n') {
                out.push('\n');
            }
            space = false;
        } else if line_end || c.is_whitespace() {
            space = true;
        } else if !is_unseen(c) {
            marks = if is_mark(c) { marks.saturating_add(1) } else { 0 };
            if marks > MARKS {
                continue;
            }
            if std::mem::take(&mut space) && !out.is_empty() && !out.ends_with('\n') {
                out.push(' ');
            }
            if is_colon(c) && ends_with_our_word(&out) {
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

/// Marks on one letter: no script needs more, and a pile of them covers the lines around it.
const MARKS: u8 = 8;

fn is_mark(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5bd}' | '\u{610}'..='\u{61a}'
        | '\u{64b}'..='\u{65f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

/// What is not seen, or only turns around what is.
fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}'
        | '\u{e0000}'..='\u{e0fff}')
}

fn is_colon(c: char) -> bool {
    c == ':' || c >= '\u{2d0}' && LIKE_COLONS.contains(c)
}

/// What looks like a colon.
const LIKE_COLONS: &str = "\u{2d0}\u{2f8}\u{589}\u{5c3}\u{703}\u{704}\u{16ec}\u{1803}\u{1809}\u{205a}\u{2236}\u{a4fd}\u{a789}\u{fe13}\u{fe30}\u{fe55}\u{ff1a}";

/// Also within a longer word: a terminal ends its rows wherever they are full.
fn ends_with_our_word(text: &str) -> bool {
    let from = text.char_indices().rev().nth(LONGEST_END).map_or(0, |(at, _)| at);
    let end = bare(text.get(from..).unwrap_or_default());
    OUR_WORDS.iter().any(|word| end.ends_with(word.as_str()))
}

/// In which all of our words have room, with as many marks as are kept.
const LONGEST_END: usize = 64;

/// The words in front of lines, as they are printed and as they are said.
static OUR_WORDS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let said = |kind: &Kind| Phrases::every().map(|phrases| bare(phrases.kind(*kind))).collect::<Vec<_>>();
    Kind::ALL.iter().flat_map(|kind| [vec![kind.word().to_owned()], said(kind)].concat()).collect()
});

/// In small letters without marks.
fn bare(text: &str) -> String {
    text.nfd().filter(|letter| !is_combining_mark(*letter)).collect::<String>().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_is_spelled_out_or_left_out() {
        for (text, shown) in [
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
            assert_eq!(plain(text, true), shown, "{text:?}");
        }
    }

    #[test]
    fn ends_of_lines_are_ends_of_lines_or_spaces() {
        let text = "\r\na\r\nb\u{85}c\u{2028}d\u{2029}e\u{b}f\u{c}g\n\n\n h \n";
        assert_eq!(plain(text, false), "a\nb\nc\nd\ne\nf\ng\nh");
        assert_eq!(plain(text, true), "a b c d e f g h");
    }

    #[test]
    fn marks_do_not_pile_up() {
        assert_eq!(plain(&format!("e{}", "\u{301}".repeat(500)), true).chars().count(), 9);
        assert_eq!(plain("ọ̀gbẹ́ni", true), "ọ̀gbẹ́ni");
    }
}
