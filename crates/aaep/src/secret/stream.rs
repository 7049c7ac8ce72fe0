//! Secrets in text that arrives in chunks: text that may be the start of a secret must be held
//! until the rest arrives.

use super::pattern::{BEARER, KEY_NAMES, PASSWORD_NAMES, PEM_BEGIN, TOKEN_NAME, is_open_quote};
use super::{SecretHints, secret_at};

/// Returns the length of the prefix of an unfinished text that can already be classified as secret
/// or not secret. The remaining bytes may be the start of a secret. At most `max_undecided` bytes
/// remain, unless they start a private key.
pub fn decidable_prefix_len(text: &str, max_undecided: usize) -> usize {
    let mut cut = last_word_start(text, text.len());
    // Earlier words are held back too if they could start a secret that contains spaces.
    while cut > 0
        && let Some(before) = text.get(..cut)
    {
        let start = last_word_start(before, before.trim_end().len());
        let word = text.get(start..cut).unwrap_or_default().trim_end();
        if start < cut && may_continue(word) { cut = start } else { break }
    }
    if let Some(begin) = text.rfind(PEM_BEGIN)
        && !text.get(begin + PEM_BEGIN.len()..).is_some_and(|label| label.contains("-----"))
    {
        cut = cut.min(begin);
    }
    if SecretHints::of(text.as_bytes()).may_contain_secret() {
        cut = cut_before_secret(text, cut);
    }
    let is_private_key = text.get(cut..).is_some_and(|rest| rest.starts_with(PEM_BEGIN));
    if is_private_key || text.len() - cut <= max_undecided {
        return cut;
    }
    let end = text.len();
    (end.saturating_sub(max_undecided)..=end).find(|at| text.is_char_boundary(*at)).unwrap_or(end).max(cut)
}

/// Moves a cut to the start of the first secret that crosses the cut or may continue after the end
/// of the text.
fn cut_before_secret(text: &str, cut: usize) -> usize {
    let mut at = 0;
    while at < cut {
        match secret_at(text, at) {
            Some(secret) if secret.range.end > cut || secret.range.end == text.len() => return at,
            Some(secret) => at = secret.range.end,
            None if is_open_quote(text, at) => return at,
            None => at += 1,
        }
    }
    cut
}

/// Returns where the word that ends at `end` starts.
fn last_word_start(text: &str, end: usize) -> usize {
    let before = text.get(..end).unwrap_or_default();
    before.char_indices().rev().find(|(_, c)| c.is_whitespace()).map_or(0, |(at, c)| at + c.len_utf8())
}

/// Returns whether a secret may continue after this word and a space.
fn may_continue(word: &str) -> bool {
    let name = word.trim_matches(['"', '\'', ':', '=', '(', '{', ',']);
    let ends_in = |suffix: &&str| {
        name.len() >= suffix.len()
            && name.get(name.len() - suffix.len()..).is_some_and(|end| end.eq_ignore_ascii_case(suffix))
    };
    let mut names = PASSWORD_NAMES.iter().chain(&KEY_NAMES).chain(&[TOKEN_NAME, BEARER, "api", "key"]);
    word.is_empty()
        || word.ends_with([':', '='])
        // The word may be the start of a card number that contains spaces or hyphens. Only its end is
        // checked, because the digits may follow any character that is not a letter.
        || word.ends_with(|c: char| c.is_ascii_digit() || c == '-')
        || names.any(ends_in)
}
