//! Texts and numbers of a call, in a form that hides nothing: what a person hears differs if the calls differ.
//!
//! The page has the same rules (`page/question_call.js`), and both are tested with `page/tests/call_texts.json`.

use std::fmt::Write;

use aaep::check::is_invisible;
use aaep::json::JsonNumber;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::sanitize;

/// Describes a text. It is quoted if it could be mistaken for several values.
pub(super) fn describe_text(text: &str) -> String {
    let text = sanitize(&escape_hidden(text), true);
    if !text.is_empty() && is_plain(&text) { text } else { quote(&text) }
}

/// Describes the name of a tool or of a member. It is quoted if it could be mistaken for a name with a value.
pub(super) fn describe_name(name: &str) -> String {
    let is_name_char = |c: char| c == '_' || c == '-' || c == '.' || is_plain_letter(c);
    let text = sanitize(&escape_hidden(name), true);
    if !text.is_empty() && is_plain(&text) && text.chars().all(is_name_char) {
        text.replace('_', " ")
    } else {
        quote(&text)
    }
}

/// Whether every character of a text is heard or seen as it is.
pub(super) fn hides_nothing(text: &str) -> bool {
    escape_hidden(text) == text && sanitize(text, true) == text
}

/// Describes a number. An exponent could hide the size of a number, so such a number is read in canonical form.
pub(super) fn describe_number(number: &JsonNumber<'_>) -> String {
    let source = number.source();
    let canonical = if source.contains(['e', 'E']) { seal::format_number(number.as_f64()) } else { None };
    canonical.unwrap_or_else(|| source.to_owned())
}

fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "'"))
}

/// Writes every character that cannot be heard or seen as an escape: `\u{200b}`. These are control characters, bidi controls and
/// invisible characters, all spaces other than single spaces between words, and marks in a stack of too many.
///
/// - A joiner stays where scripts need it: between two letters of such a script, or between two emoji.
/// - A variation selector that selects the form of an emoji stays after a symbol.
/// - A backslash that would look like the start of an escape is escaped itself.
fn escape_hidden(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut previous = None;
    let mut mark_count = 0;
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        let is_mark = is_combining_mark(c);
        mark_count = if is_mark { mark_count + 1 } else { 0 };
        let is_kept = match c {
            ' ' => previous.is_some_and(|before| before != ' ') && next.is_some_and(|after| after != ' '),
            '\u{200c}' | '\u{200d}' => {
                let neighbours = [previous, next];
                neighbours.iter().flatten().filter(|near| is_joining_letter(**near)).count() == 2
                    || c == '\u{200d}'
                        && previous.is_some_and(|before| is_symbol(before) || before == EMOJI_STYLE)
                        && next.is_some_and(is_symbol)
            }
            TEXT_STYLE | EMOJI_STYLE => previous.is_some_and(is_symbol),
            '\\' => !(next == Some('u') && chars.clone().nth(1) == Some('{')),
            _ if is_mark => mark_count <= MAX_MARKS && !is_invisible(c),
            _ => !(c.is_control() || c.is_whitespace() || is_invisible(c)),
        };
        if is_kept {
            out.push(c);
        } else {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        }
        previous = Some(c);
    }
    out
}

/// Variation selectors that show a symbol as text or as an emoji.
const TEXT_STYLE: char = '\u{fe0e}';
const EMOJI_STYLE: char = '\u{fe0f}';
/// Maximum number of marks in a row.
const MAX_MARKS: u32 = 8;

/// Whether a joiner can change the shape of this letter: it belongs to a script such as Arabic or Devanagari.
fn is_joining_letter(c: char) -> bool {
    matches!(c, '\u{600}'..='\u{1cff}') && (c.is_alphabetic() || is_combining_mark(c)) && !is_invisible(c)
}

/// Whether the character may be an emoji.
fn is_symbol(c: char) -> bool {
    let is_other =
        c.is_alphanumeric() || c.is_whitespace() || c.is_control() || is_combining_mark(c) || is_invisible(c);
    !c.is_ascii() && !is_other
}

/// Whether a text has only characters that cannot be mistaken for a separator, a bracket or a quotation mark.
fn is_plain(text: &str) -> bool {
    let mut can_have_mark = false;
    text.chars().all(|c| {
        let is_misplaced_mark = is_combining_mark(c) && !can_have_mark;
        let is_letter = is_plain_letter(c);
        can_have_mark = is_letter;
        !is_misplaced_mark && (is_letter || PLAIN_SIGNS.contains(c))
    })
}

/// Signs that separate nothing.
const PLAIN_SIGNS: &str = " _-.@/:+%€$£#&'";

/// Whether a character is a letter, a mark or a digit that does not look like a separator.
fn is_plain_letter(c: char) -> bool {
    let is_letter = |c: char| c.is_alphanumeric() || is_combining_mark(c);
    // For example, the decomposition of `⑴` has parentheses.
    let decomposes_to_letters = || std::iter::once(c).nfkc().all(is_letter);
    c.is_ascii_alphanumeric() || is_letter(c) && !is_separator_lookalike(c) && decomposes_to_letters()
}

/// Letters and marks that look like a comma, a full stop or a quotation mark.
fn is_separator_lookalike(c: char) -> bool {
    matches!(c,
        '\u{2b9}'..='\u{2ba}' | '\u{2bd}'..='\u{2df}' | '\u{2ec}'..='\u{2ff}' | '\u{312}'..='\u{315}' | '\u{31b}' | '\u{326}'
        | '\u{a4f8}'..='\u{a4fd}')
}
