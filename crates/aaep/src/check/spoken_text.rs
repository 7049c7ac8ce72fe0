//! Checks of text for people: normalization, direction, control characters and secrets (chapters 10
//! and 11).

use unicode_normalization::char::{
    canonical_combining_class, compose, decompose_canonical, is_combining_mark,
};
use unicode_normalization::{IsNormalized, is_nfc_quick};

use super::path::Path;
use crate::json::JsonValue;
use crate::rule::{self, Findings};
use crate::secret::{self, next_secret};
use seal::Timestamp;

/// Facts that the checks of single values collect for the checks of the whole event.
#[derive(Default)]
pub(super) struct ValueFacts {
    /// The event's timestamp, if it is valid.
    pub(super) timestamp: Option<Timestamp>,
    /// Whether the event has text for people.
    pub(super) has_text: bool,
    /// Pointers to text that mixes directions without bidi controls. Such text is an error unless
    /// the event's `text_direction` is `auto`.
    pub(super) mixed_direction_pointers: Vec<String>,
}

pub(super) fn check(
    value: JsonValue<'_>,
    name: &str,
    path: &Path<'_>,
    facts: &mut ValueFacts,
    findings: &mut Findings,
) {
    let raw_len = value.raw_len();
    if raw_len == 0 {
        return;
    }
    let Some(text) = value.text() else { return };
    facts.has_text = true;
    let hints = scan_bytes(text.as_bytes());
    if hints.has_delete || value.may_exceed_printable_ascii() {
        check_decoded(&text, path, facts, findings);
    }
    if hints.may_have_secret
        && let Some(secret) = next_secret(&text, 0)
    {
        let rule = match name {
            "args_summary" => rule::SECRET_IN_ARGS,
            "request_text" => rule::SECRET_IN_REQUEST,
            _ => rule::SECRET,
        };
        findings.push(rule, path.pointer(), format!("this looks like {}", secret.kind));
    }
    if hints.may_have_markup && has_language_markup(&text) {
        findings.push(rule::LANGUAGE_MARKUP, path.pointer(), String::new());
    }
}

struct TextHints {
    may_have_secret: bool,
    may_have_markup: bool,
    /// Whether there is a DEL, the only control character that JSON allows unescaped.
    has_delete: bool,
}

/// Looks for the bytes that secrets and markup must contain, and for DEL. If the text has none of
/// them, the slower checks are skipped. The scan is one pass without branches, so ordinary text is
/// cheap to check.
#[inline]
fn scan_bytes(bytes: &[u8]) -> TextHints {
    let mut all = ByteFlags::default();
    let (blocks, rest) = bytes.as_chunks::<16>();
    for block in blocks {
        all.add(block);
    }
    let mut last = [0; 16];
    last[..rest.len()].copy_from_slice(rest);
    all.add(&last);
    TextHints {
        may_have_secret: all.secret.may_contain_secret(),
        may_have_markup: all.angle_seen != 0,
        has_delete: all.delete_seen != 0,
    }
}

#[derive(Default)]
struct ByteFlags {
    secret: secret::SecretHints,
    /// 1 if the text contains `<`.
    angle_seen: u8,
    /// 1 if the text contains DEL.
    delete_seen: u8,
}

impl ByteFlags {
    /// Adds a block of sixteen bytes.
    #[inline]
    fn add(&mut self, block: &[u8; 16]) {
        self.secret.add(block);
        let (mut angle, mut delete) = (0, 0);
        for byte in block {
            angle |= u8::from(*byte == b'<');
            delete |= u8::from(*byte == 0x7F);
        }
        self.angle_seen |= angle;
        self.delete_seen |= delete;
    }
}

/// Checks text with escapes or non-ASCII characters.
fn check_decoded(text: &str, path: &Path<'_>, facts: &mut ValueFacts, findings: &mut Findings) {
    let mut harmful = None;
    let mut may_need_normalization = false;
    let mut has_right_to_left = false;
    for c in text.chars() {
        may_need_normalization |= c >= FIRST_COMBINING_MARK;
        if is_harmful(c) {
            harmful = harmful.or(Some(c));
        }
        has_right_to_left |= is_right_to_left(c);
    }
    if let Some(control) = harmful {
        findings.push(
            rule::CONTROL_CHARACTERS,
            path.pointer(),
            format!("found U+{:04X}", u32::from(control)),
        );
    }
    if !may_need_normalization {
        return;
    }
    if !is_nfc(text) {
        findings.push(rule::NFC, path.pointer(), String::new());
    }
    if text.chars().next().is_some_and(is_combining_mark) {
        findings.push(rule::LEADING_MARK, path.pointer(), String::new());
    }
    if has_right_to_left && has_mixed_direction(text) {
        facts.mixed_direction_pointers.push(path.pointer());
    }
}

/// Returns whether a text has a character that people can see. Spaces, control characters, invisible
/// characters and marks without a letter do not count.
///
/// ```
/// use aaep::check::has_visible_character;
/// assert!(has_visible_character("?"));
/// assert!(!has_visible_character(" \u{200b}\u{3164}\n"));
/// ```
pub fn has_visible_character(text: &str) -> bool {
    text.chars().any(|c| !(c.is_whitespace() || c.is_control() || is_invisible(c) || is_combining_mark(c)))
}

/// Returns whether a character has no shape of its own: it is ignored when text is shown
/// (`Default_Ignorable_Code_Point`), only marks a place in the text, or is blank although it is not
/// a space.
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
        | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{2800}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}'
        | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}' | '\u{1BCA0}'..='\u{1BCA3}'
        | '\u{1D159}' | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
}

/// Returns whether a text mixes both directions without bidi controls (§11.4.2). Such text needs
/// the `text_direction` `auto`.
///
/// ```
/// use aaep::check::has_mixed_direction;
/// assert!(has_mixed_direction("Mail from محمد."));
/// assert!(!has_mixed_direction("Mail from Ben."));
/// ```
pub fn has_mixed_direction(text: &str) -> bool {
    text.chars().any(is_right_to_left)
        && text.chars().any(|c| !is_right_to_left(c) && c.is_alphabetic())
        && !text.chars().any(is_bidi_control)
}

/// The first character that normalization can change. All characters before it are already in form
/// C.
const FIRST_COMBINING_MARK: char = '\u{300}';

/// Returns whether text is in Unicode normalization form C, without composing it. In form C, all
/// marks are in order, no mark can be composed with the character before it, and there are no
/// characters that form C replaces.
fn is_nfc(text: &str) -> bool {
    let mut starter = None;
    let mut last_class = 0;
    for c in text.chars() {
        if c < FIRST_COMBINING_MARK {
            starter = Some(c);
            last_class = 0;
            continue;
        }
        let class = canonical_combining_class(c);
        if class != 0 && last_class > class {
            return false;
        }
        if class != 0 && starter.is_some_and(|starter| trailing_combining_class(starter) >= class) {
            // The mark may have to precede a mark that the starter already contains. This is rare,
            // so use the full check.
            return unicode_normalization::is_nfc(text);
        }
        match is_nfc_quick(std::iter::once(c)) {
            IsNormalized::No => return false,
            // A mark after another mark of the same or a higher class is blocked, so it composes
            // with nothing.
            IsNormalized::Maybe
                if (last_class == 0 || last_class < class)
                    && starter.is_some_and(|starter| compose(starter, c).is_some()) =>
            {
                return false;
            }
            _ => {}
        }
        if class == 0 {
            starter = Some(c);
        }
        last_class = class;
    }
    true
}

/// Returns the combining class of the last mark in a character's decomposition; 0 if it has no mark.
fn trailing_combining_class(c: char) -> u8 {
    if c.is_ascii() {
        return 0;
    }
    let mut last = c;
    decompose_canonical(c, |part| last = part);
    canonical_combining_class(last)
}

/// Returns whether a character can hide or fake text: a control character (except line ends and
/// tabs) or a bidi override.
fn is_harmful(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\r' | '\t') || matches!(c, '\u{202D}' | '\u{202E}')
}

fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Returns whether a character is in a right-to-left block: Hebrew to Arabic Extended-A, their
/// presentation forms, or the historic and African scripts in the supplementary plane.
fn is_right_to_left(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{8FF}' | '\u{FB1D}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFF}'
        | '\u{10800}'..='\u{10FFF}' | '\u{1E800}'..='\u{1EFFF}')
        && c.is_alphabetic()
}

/// Detects inline markup such as `<span lang="yo">` (§11.5.2).
fn has_language_markup(text: &str) -> bool {
    text.split('<').skip(1).any(|tag| {
        tag.split_once('>').is_some_and(|(inside, _)| {
            inside.starts_with(|c: char| c.is_ascii_alphabetic())
                && (inside.contains("lang=") || inside.starts_with("span") || inside.starts_with("bdi"))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::is_nfc;

    #[test]
    fn is_nfc_agrees_with_the_reference_implementation() {
        for text in ["Ẹ ku àárọ̀. Ṣé o sun re?", "é", "plain", "한국어", "नमस्ते", "ọ̀ọ́", "a\u{328}\u{301}x"]
        {
            assert_eq!(is_nfc(text), unicode_normalization::is_nfc(text), "{text}");
        }
        for text in
            ["e\u{301}", "o\u{323}\u{300}", "\u{1100}\u{1161}", "a\u{301}\u{323}", "\u{212B}", "\u{340}"]
        {
            assert!(!is_nfc(text), "{text}");
            assert!(!unicode_normalization::is_nfc(text), "{text}");
        }
    }

    #[test]
    fn is_nfc_agrees_with_the_reference_on_pairs_of_marks() {
        let starters = ['a', 'o', 'ọ', 'Å', '\u{1100}', '\u{AC00}', '\u{915}', '\u{9C7}', '\u{300}', 'ə'];
        let marks: Vec<char> = ('\u{300}'..='\u{36F}')
            .chain('\u{591}'..='\u{5C7}')
            .chain('\u{93C}'..='\u{94D}')
            .chain('\u{9BE}'..='\u{9D7}')
            .chain('\u{1161}'..='\u{11C2}')
            .collect();
        for starter in starters {
            for first in &marks {
                for second in marks.iter().step_by(7) {
                    let text = format!("{starter}{first}{second}");
                    assert_eq!(
                        is_nfc(&text),
                        unicode_normalization::is_nfc(&text),
                        "{}",
                        text.escape_unicode()
                    );
                }
            }
        }
    }
}
