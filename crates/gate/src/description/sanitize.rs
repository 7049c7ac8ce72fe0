//! Characters that hide, reorder or imitate text.
//!
//! A command can look or sound different from what a shell executes: control characters move the cursor, bidirectional
//! controls reorder text, invisible characters split words, and letters of other scripts imitate Latin ones. All of them are
//! replaced with their code points, and the person is told.

use std::fmt::Write as _;

use crate::phrases::{Language, Phrase, texts};

/// Kinds of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextKind {
    /// A command, a path or an argument, in which look-alike letters are suspicious.
    Technical,
    /// Sentences, in which other scripts are normal.
    Prose,
}

/// Text without dangerous characters, and what was found in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SanitizedText {
    /// The text. Dangerous characters are replaced with `[U+202E]` and the like.
    pub text: String,
    /// Number of control characters other than line breaks and tabs.
    pub controls: usize,
    /// Number of characters that reorder text.
    pub reordering: usize,
    /// Number of invisible characters.
    pub invisible: usize,
    /// Words with letters that look like Latin letters, or punctuation that looks like shell syntax.
    pub look_alikes: Vec<String>,
}

impl SanitizedText {
    /// Returns what was found, as sentences.
    pub fn warnings(&self, language: Language) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut warn = |count: usize, one: &Phrase, several: &Phrase| match count {
            0 => {}
            1 => warnings.push(one.fill(language, &[])),
            count => warnings.push(several.fill(language, &[&count.to_string()])),
        };
        warn(self.controls, &texts::ONE_CONTROL, &texts::CONTROLS);
        warn(self.reordering, &texts::ONE_REORDERING, &texts::REORDERING);
        warn(self.invisible, &texts::ONE_INVISIBLE, &texts::INVISIBLE);
        if !self.look_alikes.is_empty() {
            let words: Vec<&str> = self.look_alikes.iter().take(3).map(String::as_str).collect();
            warnings.push(texts::LOOK_ALIKES.fill(language, &[&words.join(", ")]));
        }
        warnings
    }
}

/// Replaces dangerous characters.
///
/// ```
/// use gate::description::sanitize::{TextKind, sanitize_text};
/// use gate::phrases::Language;
/// let found = sanitize_text("echo \u{202e}fdp.exe", TextKind::Technical);
/// assert_eq!(found.text, "echo [U+202E]fdp.exe");
/// assert_eq!(found.warnings(Language::English), ["Warning: it contains 1 text-reordering character."]);
/// ```
pub fn sanitize_text(text: &str, kind: TextKind) -> SanitizedText {
    let mut found = SanitizedText::default();
    for c in text.chars() {
        match classify(c) {
            Class::Plain => found.text.push(c),
            Class::LineBreak => found.text.push('\n'),
            Class::Control => {
                found.controls += 1;
                push_code_point(&mut found.text, c);
            }
            Class::Reordering => {
                found.reordering += 1;
                push_code_point(&mut found.text, c);
            }
            Class::Invisible => {
                found.invisible += 1;
                push_code_point(&mut found.text, c);
            }
        }
    }
    if kind == TextKind::Technical && !found.text.is_ascii() {
        let text = std::mem::take(&mut found.text);
        found.text = mark_look_alikes(&text, &mut found.look_alikes);
    }
    found
}

enum Class {
    Plain,
    LineBreak,
    Control,
    Reordering,
    Invisible,
}

fn classify(c: char) -> Class {
    match c {
        '\t' | ' '..='~' => Class::Plain,
        '\n' => Class::LineBreak,
        '\u{2028}' | '\u{2029}' => Class::Control,
        '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => {
            Class::Reordering
        }
        '\u{AD}'
        | '\u{34F}'
        | '\u{115F}'
        | '\u{1160}'
        | '\u{17B4}'
        | '\u{17B5}'
        | '\u{180B}'..='\u{180F}'
        | '\u{200B}'..='\u{200D}'
        | '\u{2060}'..='\u{2065}'
        | '\u{206A}'..='\u{206F}'
        | '\u{3164}'
        | '\u{FE00}'..='\u{FE0F}'
        | '\u{FEFF}'
        | '\u{FFA0}'
        | '\u{FFF0}'..='\u{FFFB}'
        | '\u{1D173}'..='\u{1D17A}'
        | '\u{E0000}'..='\u{E0FFF}' => Class::Invisible,
        c if c.is_control() => Class::Control,
        _ => Class::Plain,
    }
}

fn push_code_point(out: &mut String, c: char) {
    // Writing to a string cannot fail.
    let _ = write!(out, "[U+{:04X}]", u32::from(c));
}

/// Replaces look-alike characters, word by word. A word of another script is left alone unless each of its letters imitates
/// a Latin one.
fn mark_look_alikes(text: &str, words: &mut Vec<String>) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_inclusive(|c: char| c.is_ascii_whitespace()) {
        if word.is_ascii() {
            out.push_str(word);
            continue;
        }
        let has_latin = word.chars().any(|c| c.is_ascii_alphabetic());
        let could_pass_as_latin = |c: char| !c.is_alphabetic() || imitates_latin(c) || c.is_ascii();
        let is_whole_imitation = word.chars().all(could_pass_as_latin);
        let is_suspicious =
            |c: char| imitates_punctuation(c) || (imitates_latin(c) && (has_latin || is_whole_imitation));
        if word.chars().any(is_suspicious) {
            let start = out.len();
            for c in word.chars() {
                if is_suspicious(c) { push_code_point(&mut out, c) } else { out.push(c) }
            }
            let marked = out.get(start..).unwrap_or_default().trim().to_owned();
            if !words.contains(&marked) {
                words.push(marked);
            }
        } else {
            out.push_str(word);
        }
    }
    out
}

/// Whether a letter of another script looks like a Latin letter or a digit.
fn imitates_latin(c: char) -> bool {
    matches!(c,
        // Cyrillic
        'а' | 'е' | 'о' | 'р' | 'с' | 'у' | 'х' | 'і' | 'ј' | 'ѕ' | 'һ' | 'ԁ' | 'ԛ' | 'ԝ' | 'ӏ' | 'ѵ' | 'г' | 'п' | 'к'
        | 'А' | 'В' | 'Е' | 'К' | 'М' | 'Н' | 'О' | 'Р' | 'С' | 'Т' | 'Х' | 'І' | 'Ј' | 'Ѕ' | 'У' | 'З' | 'Ѵ'
        // Greek
        | 'α' | 'ο' | 'ν' | 'ρ' | 'υ' | 'ι' | 'κ' | 'ϲ' | 'ϳ' | 'χ'
        | 'Α' | 'Β' | 'Ε' | 'Ζ' | 'Η' | 'Ι' | 'Κ' | 'Μ' | 'Ν' | 'Ο' | 'Ρ' | 'Τ' | 'Υ' | 'Χ'
        // Armenian, IPA, click letters and Roman numerals that fonts draw like Latin
        | 'օ' | 'ո' | 'ս' | 'հ' | 'ց' | 'զ' | 'ɑ' | 'ɡ' | 'ı' | 'ǀ' | 'ⅼ' | 'ⅰ' | 'ⅴ' | 'ⅹ' | 'ⅽ' | 'ⅾ' | 'ⅿ'
        // Full-width and mathematical letters
        | '\u{FF10}'..='\u{FF19}' | '\u{FF21}'..='\u{FF3A}' | '\u{FF41}'..='\u{FF5A}' | '\u{1D400}'..='\u{1D7FF}')
}

/// Whether a character looks like punctuation that means something to a shell or in a path.
fn imitates_punctuation(c: char) -> bool {
    matches!(c,
        '\u{A0}' | '\u{2000}'..='\u{200A}' | '\u{202F}' | '\u{205F}' | '\u{3000}'
        | '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{2044}' | '\u{2215}' | '\u{29F8}' | '\u{37E}' | '\u{2024}'
        | '\u{2223}' | '\u{2236}' | '\u{A789}' | '\u{FF01}'..='\u{FF0F}' | '\u{FF1A}'..='\u{FF20}'
        | '\u{FF3B}'..='\u{FF40}' | '\u{FF5B}'..='\u{FF5E}')
}
