//! Text for people: its script, its direction, what must not stand in it (chapters 10 and 11).

use unicode_normalization::char::is_combining_mark;
use unicode_normalization::is_nfc;

use super::path::Path;
use super::secret::find_secret;
use crate::json::Value;
use crate::rule::{self, Findings};

/// What has been said so far in one event.
#[derive(Default)]
pub(super) struct Speech {
    /// There is text for people.
    pub(super) any: bool,
    /// Where text of both directions stands without any sign of it; a fault unless the event says `auto`.
    pub(super) mixed: Vec<String>,
}

/// Checks one text.
pub(super) fn check(
    value: Value<'_>,
    name: &str,
    path: &Path<'_>,
    speech: &mut Speech,
    findings: &mut Findings,
) {
    let written = value.written_len();
    if written == 0 {
        return;
    }
    let Some(text) = value.text() else { return };
    speech.any = true;
    if value.maybe_unusual() {
        unusual(&text, path, speech, findings);
    }
    let signs = signs(text.as_bytes());
    if signs.secret
        && let Some(kind) = find_secret(&text)
    {
        let rule = match name {
            "args_summary" => rule::SECRET_IN_ARGS,
            "request_text" => rule::SECRET_IN_REQUEST,
            _ => rule::SECRET,
        };
        findings.push(rule, path.pointer(), format!("this looks like {kind}"));
    }
    if signs.markup && has_language_markup(&text) {
        findings.push(rule::LANGUAGE_MARKUP, path.pointer(), String::new());
    }
}

struct Signs {
    secret: bool,
    markup: bool,
}

/// Characters without which there can be no secret and no markup: one pass without a branch, so that the usual text
/// is let through quickly.
#[inline]
fn signs(bytes: &[u8]) -> Signs {
    let mut mark = false;
    let mut angle = false;
    let mut digits = 0_usize;
    for chunk in bytes.chunks(64) {
        let mut some = 0_u8;
        for byte in chunk {
            mark |= matches!(byte, b'-' | b'_' | b':' | b'=' | b'.' | b'K' | b'B');
            angle |= *byte == b'<';
            some += u8::from(byte.is_ascii_digit());
        }
        digits += usize::from(some);
    }
    Signs { secret: mark || digits >= 12, markup: angle }
}

#[cold]
fn unusual(text: &str, path: &Path<'_>, speech: &mut Speech, findings: &mut Findings) {
    if let Some(control) = text.chars().find(|c| is_harmful(*c)) {
        findings.push(rule::CONTROLS, path.pointer(), format!("found U+{:04X}", u32::from(control)));
    }
    if text.is_ascii() {
        return;
    }
    if !is_nfc(text) {
        findings.push(rule::NFC, path.pointer(), String::new());
    }
    if text.chars().next().is_some_and(is_combining_mark) {
        findings.push(rule::BARE_MARK, path.pointer(), String::new());
    }
    let right_to_left = text.chars().any(is_right_to_left);
    if right_to_left
        && text.chars().any(|c| c.is_alphabetic() && !is_right_to_left(c))
        && !text.chars().any(is_bidi_control)
    {
        speech.mixed.push(path.pointer());
    }
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
    c.is_alphabetic()
        && matches!(c, '\u{590}'..='\u{8FF}' | '\u{FB1D}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFF}'
            | '\u{10800}'..='\u{10FFF}' | '\u{1E800}'..='\u{1EFFF}')
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
