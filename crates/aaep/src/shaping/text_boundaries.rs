//! Boundaries in text: after words, sentences and paragraphs (UAX #29), never inside a grapheme
//! cluster.
//!
//! A cut is reported only when no following text can change it. So the cuts do not depend on how
//! the text is divided into chunks.

use unicode_normalization::char::is_combining_mark;
use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

use super::abbreviations::{self, SENTENCE_TERMINATORS};
use super::code_spans::{self, CodeContext, CodePosition};

/// The granularity at which output is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CutGranularity {
    Word,
    Sentence,
    Paragraph,
    Completion,
}

/// A text to be split, and its context.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingText<'t> {
    pub(super) text: &'t str,
    pub(super) context: CodeContext,
    /// The language tag, which determines the known abbreviations.
    pub(super) language: &'t str,
    pub(super) is_ended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CutSearch {
    /// The position of the first cut.
    At(usize),
    /// There is no cut until more text arrives.
    Nothing {
        /// Whether only a chunk that passes [`may_create_cut`] can create a cut.
        needs_boundary_character: bool,
    },
}

enum CutVerdict {
    /// The text may be split here.
    Cut,
    /// The text must not be split here.
    Join,
    /// More text is needed to decide.
    Wait,
}

/// Returns whether a chunk contains a boundary character, after which text may be cut. Other chunks only
/// confirm cuts before them.
pub(super) fn may_create_cut(chunk: &str, granularity: CutGranularity) -> bool {
    chunk.chars().any(|c| is_boundary_character(c, granularity))
}

fn is_boundary_character(c: char, granularity: CutGranularity) -> bool {
    match granularity {
        CutGranularity::Word => c.is_whitespace() || !c.is_ascii(),
        CutGranularity::Sentence => {
            matches!(c, '.' | '!' | '?' | '`') || is_line_end(c) || !c.is_ascii() && !c.is_alphanumeric()
        }
        CutGranularity::Paragraph => is_line_end(c) || c == '`',
        CutGranularity::Completion => false,
    }
}

impl PendingText<'_> {
    /// Returns the first position at which the text may be split.
    pub(super) fn first_cut(&self, granularity: CutGranularity) -> CutSearch {
        let first_cut = match granularity {
            CutGranularity::Word => self.first_of(self.word_cuts(), |_, _| CutVerdict::Cut),
            CutGranularity::Sentence => {
                self.first_of(self.sentence_cuts(), |at, next| self.judge_sentence_end(at, next))
            }
            CutGranularity::Paragraph => self.first_of(self.paragraph_cuts(), |_, _| CutVerdict::Cut),
            CutGranularity::Completion => Err(true),
        };
        match first_cut {
            Ok(at) => CutSearch::At(at),
            Err(all_decided) => {
                let mut after =
                    self.text.chars().rev().take_while(|c| !is_boundary_character(*c, granularity));
                CutSearch::Nothing { needs_boundary_character: all_decided && after.any(is_letter) }
            }
        }
    }

    /// Returns the first candidate that is a cut. If there is no cut, the error says whether all
    /// candidates are decided.
    fn first_of(
        &self,
        candidates: impl Iterator<Item = usize>,
        judge: impl Fn(usize, char) -> CutVerdict,
    ) -> Result<usize, bool> {
        for at in candidates {
            let (before, after) = self.text.split_at(at);
            let Some(next) = after.chars().next() else { break };
            if before.trim_start().is_empty() {
                continue;
            }
            let verdict = match judge(at, next) {
                CutVerdict::Cut => self.judge_outside_code(at),
                other => other,
            };
            match verdict {
                CutVerdict::Cut if is_grapheme_boundary(self.text, at) => return Ok(at),
                CutVerdict::Cut | CutVerdict::Join => {}
                CutVerdict::Wait => return Err(false),
            }
        }
        Err(true)
    }

    /// Returns the positions before words: after white space, or between letters of scripts without
    /// spaces.
    fn word_cuts(&self) -> impl Iterator<Item = usize> {
        self.text.split_word_bound_indices().map(|(at, _)| at).filter(|at| {
            let (before, after) = self.text.split_at(*at);
            match (before.chars().next_back(), after.chars().next()) {
                (Some(last), Some(next)) if last.is_whitespace() => !next.is_whitespace(),
                (Some(last), Some(next)) => {
                    !last.is_ascii()
                        && (last.is_alphanumeric()
                            || SENTENCE_TERMINATORS.contains(&last)
                            || is_cjk_mark(last))
                        && next.is_alphanumeric()
                }
                _ => false,
            }
        })
    }

    /// Returns the ends of sentences according to UAX #29, including the white space that follows.
    fn sentence_cuts(&self) -> impl Iterator<Item = usize> {
        self.text.split_sentence_bound_indices().skip(1).map(|(at, _)| {
            let after = &self.text[at..];
            at + after.len() - after.trim_start().len()
        })
    }

    /// Returns the positions after blank lines.
    fn paragraph_cuts(&self) -> impl Iterator<Item = usize> {
        let mut from = 0;
        std::iter::from_fn(move || {
            loop {
                let start = from + self.text[from..].find(is_line_end)?;
                let after = &self.text[start..];
                from = start + after.len() - after.trim_start().len();
                if contains_blank_line(&self.text[start..from]) {
                    return Some(from);
                }
            }
        })
    }

    /// Decides whether a sentence end according to UAX #29 really ends a sentence.
    fn judge_sentence_end(&self, at: usize, next: char) -> CutVerdict {
        let (before, after) = self.text.split_at(at);
        let stem = before.trim_end();
        let gap = &before[stem.len()..];
        let has_line_end = gap.contains(is_line_end);
        if !has_line_end && !self.is_ended && !after.chars().any(|c| is_letter(c) || is_line_end(c)) {
            // A lower-case letter would continue the sentence (SB8).
            return CutVerdict::Wait;
        }
        let without_closers = stem.trim_end_matches(is_closer);
        let is_sentence_end = match without_closers.chars().next_back() {
            // Without a space, the stop is part of an address, a version or a file name.
            Some('.' | '!' | '?') if gap.is_empty() => false,
            Some('.') => !abbreviations::is_abbreviation_stop(without_closers, next, self.language),
            Some(stop) if SENTENCE_TERMINATORS.contains(&stop) => true,
            // A line break within a sentence is followed by a lower-case letter.
            _ => !(has_line_end && next.is_lowercase() && !contains_blank_line(gap)),
        };
        if is_sentence_end { CutVerdict::Cut } else { CutVerdict::Join }
    }

    fn judge_outside_code(&self, at: usize) -> CutVerdict {
        let position = if self.is_ended && self.text.contains(['`', '~']) {
            // The end of the text ends the paragraph. A code span that is still open there is not
            // code.
            code_spans::locate(&format!("{}\n\n", self.text), at, self.context)
        } else {
            code_spans::locate(self.text, at, self.context)
        };
        match position {
            CodePosition::OutsideCode => CutVerdict::Cut,
            CodePosition::InsideCode => CutVerdict::Join,
            CodePosition::Unknown { .. } if self.is_ended => CutVerdict::Join,
            CodePosition::Unknown { .. } => CutVerdict::Wait,
        }
    }

    /// Returns whether the text up to a word boundary ends a sentence.
    pub(super) fn ends_sentence(&self, at: usize) -> bool {
        let (before, after) = self.text.split_at(at);
        let (Some(next), stem) = (after.chars().next(), before.trim_end()) else { return false };
        let has_terminator = stem.trim_end_matches(is_closer).ends_with(SENTENCE_TERMINATORS);
        let has_full_stop = stem.trim_end_matches(is_closer).ends_with('.');
        let gap = &before[stem.len()..];
        (has_terminator && !(has_full_stop && next.is_lowercase()) || gap.contains(is_line_end))
            && matches!(PendingText { is_ended: true, ..*self }.judge_sentence_end(at, next), CutVerdict::Cut)
    }

    /// Returns whether the text is complete, assuming that the agent continues with something else
    /// now.
    pub(super) fn is_complete(&self, granularity: CutGranularity) -> bool {
        let stem = self.text.trim_end();
        let without_closers = stem.trim_end_matches(is_closer);
        let is_complete = match granularity {
            CutGranularity::Word => !stem.is_empty(),
            CutGranularity::Sentence => {
                without_closers.ends_with(SENTENCE_TERMINATORS)
                    && !without_closers.trim_end_matches('.').ends_with(|c: char| c.is_numeric())
                    && !abbreviations::is_abbreviation_stop(without_closers, 'A', self.language)
            }
            CutGranularity::Paragraph => !stem.is_empty() && contains_blank_line(&self.text[stem.len()..]),
            CutGranularity::Completion => false,
        };
        is_complete
            && code_spans::locate(self.text, self.text.len(), self.context) == CodePosition::OutsideCode
    }

    /// Returns where to split a text that is too long: before its last word, or at least before its
    /// last character.
    pub(super) fn forced_cut(&self) -> usize {
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

/// Returns whether white space contains a blank line or a paragraph separator.
pub(super) fn contains_blank_line(space: &str) -> bool {
    let line_ends = space.chars().filter(|c| is_line_end(*c)).count();
    space.contains('\u{2029}') || line_ends - space.matches("\r\n").count() >= 2
}

/// Returns whether this is a boundary between grapheme clusters.
fn is_grapheme_boundary(text: &str, at: usize) -> bool {
    GraphemeCursor::new(at, text.len(), true).is_boundary(text, 0).unwrap_or(false)
}

/// Returns whether a character is a letter as in UAX #29, which excludes marks.
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
