//! Text for people: its script, its direction, what must not stand in it (chapters 10 and 11).

use unicode_normalization::char::{
    canonical_combining_class, compose, decompose_canonical, is_combining_mark,
};
use unicode_normalization::{IsNormalized, is_nfc_quick};

use super::path::Path;
use crate::json::Value;
use crate::rule::{self, Findings};
use crate::secret::{self, next_secret};
use seal::Timestamp;

/// What has been heard so far of one event.
#[derive(Default)]
pub(super) struct Heard {
    /// When it was made, if it says so in the form that is wanted.
    pub(super) time: Option<Timestamp>,
    /// There is text for people.
    pub(super) text: bool,
    /// Where text of both directions stands without any sign of it; a fault unless the event says `auto`.
    pub(super) mixed: Vec<String>,
}

pub(super) fn check(
    value: Value<'_>,
    name: &str,
    path: &Path<'_>,
    heard: &mut Heard,
    findings: &mut Findings,
) {
    let written = value.written_len();
    if written == 0 {
        return;
    }
    let Some(text) = value.text() else { return };
    heard.text = true;
    let signs = signs(text.as_bytes());
    if signs.delete || value.maybe_unusual() {
        unusual(&text, path, heard, findings);
    }
    if signs.secret
        && let Some(secret) = next_secret(&text, 0)
    {
        let rule = match name {
            "args_summary" => rule::SECRET_IN_ARGS,
            "request_text" => rule::SECRET_IN_REQUEST,
            _ => rule::SECRET,
        };
        findings.push(rule, path.pointer(), format!("this looks like {}", secret.kind));
    }
    if signs.markup && has_language_markup(&text) {
        findings.push(rule::LANGUAGE_MARKUP, path.pointer(), String::new());
    }
}

struct Signs {
    secret: bool,
    markup: bool,
    /// The one control character that JSON lets stand bare.
    delete: bool,
}

/// Characters without which there can be no secret, no markup and no bare control: one pass without a branch, so that
/// the usual text is let through quickly.
#[inline]
fn signs(bytes: &[u8]) -> Signs {
    let mut all = Counts::default();
    let (blocks, rest) = bytes.as_chunks::<16>();
    for block in blocks {
        all.add(block);
    }
    let mut last = [0; 16];
    last[..rest.len()].copy_from_slice(rest);
    all.add(&last);
    Signs { secret: all.secret.secret(), markup: all.angles != 0, delete: all.deletes != 0 }
}

#[derive(Default)]
struct Counts {
    secret: secret::Signs,
    angles: u8,
    deletes: u8,
}

impl Counts {
    /// Sixteen bytes at once.
    #[inline]
    fn add(&mut self, block: &[u8; 16]) {
        self.secret.add(block);
        let (mut angles, mut deletes) = (0, 0);
        for byte in block {
            angles |= u8::from(*byte == b'<');
            deletes |= u8::from(*byte == 0x7F);
        }
        self.angles |= angles;
        self.deletes |= deletes;
    }
}

/// Text with escapes or beyond ASCII.
fn unusual(text: &str, path: &Path<'_>, heard: &mut Heard, findings: &mut Findings) {
    let mut harmful = None;
    let mut beyond_latin = false;
    let mut right_to_left = false;
    for c in text.chars() {
        beyond_latin |= c >= FIRST_MARK;
        if is_harmful(c) {
            harmful = harmful.or(Some(c));
        }
        right_to_left |= is_right_to_left(c);
    }
    if let Some(control) = harmful {
        findings.push(rule::CONTROLS, path.pointer(), format!("found U+{:04X}", u32::from(control)));
    }
    if !beyond_latin {
        return;
    }
    if !is_composed(text) {
        findings.push(rule::NFC, path.pointer(), String::new());
    }
    if text.chars().next().is_some_and(is_combining_mark) {
        findings.push(rule::BARE_MARK, path.pointer(), String::new());
    }
    if right_to_left && is_of_both_directions(text) {
        heard.mixed.push(path.pointer());
    }
}

/// Whether letters of both directions stand in a text without any sign of it (§11.4.2): such text wants `text_direction`
/// `auto`.
///
/// ```
/// use aaep::check::is_of_both_directions;
/// assert!(is_of_both_directions("Mail from محمد."));
/// assert!(!is_of_both_directions("Mail from Ben."));
/// ```
pub fn is_of_both_directions(text: &str) -> bool {
    text.chars().any(is_right_to_left)
        && text.chars().any(|c| !is_right_to_left(c) && c.is_alphabetic())
        && !text.chars().any(is_bidi_control)
}

/// The first character that normalization can be about: all before it stand for themselves in form C.
const FIRST_MARK: char = '\u{300}';

/// Whether text is in Unicode normalization form C, without composing it: every mark is in its order and finds nothing
/// to compose with, and no character is one that form C replaces.
fn is_composed(text: &str) -> bool {
    let mut starter = None;
    let mut last_class = 0;
    for c in text.chars() {
        if c < FIRST_MARK {
            starter = Some(c);
            last_class = 0;
            continue;
        }
        let class = canonical_combining_class(c);
        if class != 0 && last_class > class {
            return false;
        }
        if class != 0 && starter.is_some_and(|starter| trailing_class(starter) >= class) {
            // The mark belongs before one that the character already carries: rare, and for the long way.
            return unicode_normalization::is_nfc(text);
        }
        match is_nfc_quick(std::iter::once(c)) {
            IsNormalized::No => return false,
            // Blocked by a mark of its own class, or of a higher one, it composes with nothing.
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

/// The class of the last mark that a character carries in its decomposed form; 0 if it carries none.
fn trailing_class(c: char) -> u8 {
    if c.is_ascii() {
        return 0;
    }
    let mut last = c;
    decompose_canonical(c, |part| last = part);
    canonical_combining_class(last)
}

/// Controls other than line ends and tabs, and the bidi overrides: what could make a reader see or hear what is not
/// there.
fn is_harmful(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\r' | '\t') || matches!(c, '\u{202D}' | '\u{202E}')
}

fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// The blocks of the scripts that run from right to left: Hebrew to Arabic Extended-A, their presentation forms, and
/// the historic and African ones of the supplementary plane.
fn is_right_to_left(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{8FF}' | '\u{FB1D}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFF}'
        | '\u{10800}'..='\u{10FFF}' | '\u{1E800}'..='\u{1EFFF}')
        && c.is_alphabetic()
}

/// `<span lang="yo">` and the like (§11.5.2).
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
    use super::is_composed;

    #[test]
    fn form_c_is_known_without_composing() {
        for text in ["Ẹ ku àárọ̀. Ṣé o sun re?", "é", "plain", "한국어", "नमस्ते", "ọ̀ọ́", "a\u{328}\u{301}x"]
        {
            assert_eq!(is_composed(text), unicode_normalization::is_nfc(text), "{text}");
        }
        for text in
            ["e\u{301}", "o\u{323}\u{300}", "\u{1100}\u{1161}", "a\u{301}\u{323}", "\u{212B}", "\u{340}"]
        {
            assert!(!is_composed(text), "{text}");
            assert!(!unicode_normalization::is_nfc(text), "{text}");
        }
    }

    #[test]
    fn the_quick_way_agrees_with_the_long_way_on_every_pair_of_marks() {
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
                        is_composed(&text),
                        unicode_normalization::is_nfc(&text),
                        "{}",
                        text.escape_unicode()
                    );
                }
            }
        }
    }
}
