//! Where text may be cut: after words, sentences and paragraphs (UAX #29), never inside a character as people see it.
//!
//! A cut is found only when nothing that may follow can change it. So it does not matter in which pieces the text came.

use unicode_normalization::char::is_combining_mark;
use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

use super::code::{self, Context, Place};
use super::stops::{self, STOPS};

/// How fine output is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Grain {
    Word,
    Sentence,
    Paragraph,
    Completion,
}

/// A text that waits to be cut, and what is known about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting<'t> {
    pub(super) text: &'t str,
    pub(super) context: Context,
    /// The language's tag; it decides which full stops are abbreviations.
    pub(super) language: &'t str,
    pub(super) ended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The first cut is here.
    At(usize),
    /// There is none before something more comes.
    Nothing {
        /// Only a piece that [`stirs`] can change that.
        settled: bool,
    },
}

enum Verdict {
    Cut,
    Join,
    Wait,
}

/// Whether a piece can bring a cut by itself; others only settle what stood before them.
pub(super) fn stirs(piece: &str, grain: Grain) -> bool {
    piece.chars().any(|c| is_stirring(c, grain))
}

fn is_stirring(c: char, grain: Grain) -> bool {
    match grain {
        Grain::Word => c.is_whitespace() || !c.is_ascii(),
        Grain::Sentence => {
            matches!(c, '.' | '!' | '?' | '`') || is_line_end(c) || !c.is_ascii() && !c.is_alphanumeric()
        }
        Grain::Paragraph => is_line_end(c) || c == '`',
        Grain::Completion => false,
    }
}

impl Waiting<'_> {
    /// The first place at which the text may be cut.
    pub(super) fn first(&self, grain: Grain) -> Found {
        let verdict = match grain {
            Grain::Word => self.first_of(self.words(), |_, _| Verdict::Cut),
            Grain::Sentence => self.first_of(self.sentences(), |at, next| self.judge(at, next)),
            Grain::Paragraph => self.first_of(self.paragraphs(), |_, _| Verdict::Cut),
            Grain::Completion => Err(true),
        };
        match verdict {
            Ok(at) => Found::At(at),
            Err(settled) => {
                let mut after = self.text.chars().rev().take_while(|c| !is_stirring(*c, grain));
                Found::Nothing { settled: settled && after.any(is_letter) }
            }
        }
    }

    /// The first candidate that is a cut; else whether none was left open.
    fn first_of(
        &self,
        candidates: impl Iterator<Item = usize>,
        judge: impl Fn(usize, char) -> Verdict,
    ) -> Result<usize, bool> {
        for at in candidates {
            let (before, after) = self.text.split_at(at);
            let Some(next) = after.chars().next() else { break };
            if before.trim_start().is_empty() {
                continue;
            }
            let verdict = match judge(at, next) {
                Verdict::Cut => self.outside_code(at),
                other => other,
            };
            match verdict {
                Verdict::Cut if is_grapheme_boundary(self.text, at) => return Ok(at),
                Verdict::Cut | Verdict::Join => {}
                Verdict::Wait => return Err(false),
            }
        }
        Err(true)
    }

    /// Before a word: after white space, or between letters of scripts that write none.
    fn words(&self) -> impl Iterator<Item = usize> {
        self.text.split_word_bound_indices().map(|(at, _)| at).filter(|at| {
            let (before, after) = self.text.split_at(*at);
            match (before.chars().next_back(), after.chars().next()) {
                (Some(last), Some(next)) if last.is_whitespace() => !next.is_whitespace(),
                (Some(last), Some(next)) => {
                    !last.is_ascii()
                        && (last.is_alphanumeric() || STOPS.contains(&last) || is_cjk_mark(last))
                        && next.is_alphanumeric()
                }
                _ => false,
            }
        })
    }

    /// The ends of sentences by UAX #29, with all white space that follows.
    fn sentences(&self) -> impl Iterator<Item = usize> {
        self.text.split_sentence_bound_indices().skip(1).map(|(at, _)| {
            let after = &self.text[at..];
            at + after.len() - after.trim_start().len()
        })
    }

    /// After blank lines.
    fn paragraphs(&self) -> impl Iterator<Item = usize> {
        let mut from = 0;
        std::iter::from_fn(move || {
            loop {
                let start = from + self.text[from..].find(is_line_end)?;
                let after = &self.text[start..];
                from = start + after.len() - after.trim_start().len();
                if is_blank_line(&self.text[start..from]) {
                    return Some(from);
                }
            }
        })
    }

    /// Whether an end of a sentence by UAX #29 is one.
    fn judge(&self, at: usize, next: char) -> Verdict {
        let (before, after) = self.text.split_at(at);
        let stem = before.trim_end();
        let gap = &before[stem.len()..];
        let line_end = gap.contains(is_line_end);
        if !line_end && !self.ended && !after.chars().any(|c| is_letter(c) || is_line_end(c)) {
            // A small letter would say that the sentence goes on (SB8).
            return Verdict::Wait;
        }
        let core = stem.trim_end_matches(is_closer);
        let ends = match core.chars().next_back() {
            // Not after a space: part of an address, a version, a name of a file.
            Some('.' | '!' | '?') if gap.is_empty() => false,
            Some('.') => !stops::is_no_end(core, next, self.language),
            Some(stop) if STOPS.contains(&stop) => true,
            // A line that ends within a sentence goes on in small letters.
            _ => !(line_end && next.is_lowercase() && !is_blank_line(gap)),
        };
        if ends { Verdict::Cut } else { Verdict::Join }
    }

    fn outside_code(&self, at: usize) -> Verdict {
        let place = if self.ended && self.text.contains(['`', '~']) {
            // The end closes what is open: a paragraph, and with it code that is none.
            code::place(&format!("{}\n\n", self.text), at, self.context)
        } else {
            code::place(self.text, at, self.context)
        };
        match place {
            Place::Plain => Verdict::Cut,
            Place::Code => Verdict::Join,
            Place::Unknown { .. } if self.ended => Verdict::Join,
            Place::Unknown { .. } => Verdict::Wait,
        }
    }

    /// Whether the text up to a cut ends a sentence, for one that was found between words.
    pub(super) fn ends_sentence(&self, at: usize) -> bool {
        let (before, after) = self.text.split_at(at);
        let (Some(next), stem) = (after.chars().next(), before.trim_end()) else { return false };
        let stops = stem.trim_end_matches(is_closer).ends_with(STOPS);
        let full_stop = stem.trim_end_matches(is_closer).ends_with('.');
        let gap = &before[stem.len()..];
        (stops && !(full_stop && next.is_lowercase()) || gap.contains(is_line_end))
            && matches!(Waiting { ended: true, ..*self }.judge(at, next), Verdict::Cut)
    }

    /// Whether the text is whole as it is, should the agent turn to something else now.
    pub(super) fn is_whole(&self, grain: Grain) -> bool {
        let stem = self.text.trim_end();
        let core = stem.trim_end_matches(is_closer);
        let whole = match grain {
            Grain::Word => !stem.is_empty(),
            Grain::Sentence => {
                core.ends_with(STOPS)
                    && !core.trim_end_matches('.').ends_with(|c: char| c.is_numeric())
                    && !stops::is_no_end(core, 'A', self.language)
            }
            Grain::Paragraph => !stem.is_empty() && is_blank_line(&self.text[stem.len()..]),
            Grain::Completion => false,
        };
        whole && code::place(self.text, self.text.len(), self.context) == Place::Plain
    }

    /// Where to cut a text that has grown too long: before its last word, or at least its last character.
    pub(super) fn brink(&self) -> usize {
        let text = self.text;
        let word = text
            .char_indices()
            .rev()
            .take_while(|(at, _)| *at > text.len() / 2)
            .find(|(at, c)| !c.is_whitespace() && text[..*at].ends_with(char::is_whitespace))
            .map(|(at, _)| at)
            .filter(|at| is_grapheme_boundary(text, *at));
        word.or_else(|| text.grapheme_indices(true).next_back().map(|(at, _)| at).filter(|at| *at > 0))
            .unwrap_or(text.len())
    }
}

pub(super) fn is_blank_line(space: &str) -> bool {
    let ends = space.chars().filter(|c| is_line_end(*c)).count();
    space.contains('\u{2029}') || ends - space.matches("\r\n").count() >= 2
}

/// Whether text can be cut here without breaking what people see as one character.
fn is_grapheme_boundary(text: &str, at: usize) -> bool {
    GraphemeCursor::new(at, text.len(), true).is_boundary(text, 0).unwrap_or(false)
}

/// A letter in the sense of UAX #29: marks only belong to one.
fn is_letter(c: char) -> bool {
    c.is_alphabetic() && !is_combining_mark(c)
}

fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_closer(c: char) -> bool {
    matches!(
        c,
        '"' | '\''
            | ')'
            | ']'
            | '}'
            | '»'
            | '«'
            | '”'
            | '’'
            | '“'
            | '」'
            | '』'
            | '）'
            | '】'
            | '》'
            | '*'
            | '_'
    )
}

fn is_cjk_mark(c: char) -> bool {
    matches!(c, '，' | '、' | '；' | '：' | '」' | '』' | '）')
}
