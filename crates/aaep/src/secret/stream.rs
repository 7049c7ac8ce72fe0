//! Texts that arrive in pieces: what may be the beginning of a secret must wait for the rest.

use super::pattern::{BEARER, KEY_NAMES, PASSWORD_NAMES, PEM, TOKEN_NAME, is_open_quote};
use super::{Signs, secret_at};

/// Returns how many bytes of a text that continues can be judged already. The rest may be the beginning of a secret. It is at
/// most `most` bytes, unless it is a private key.
pub fn judged_prefix(text: &str, most: usize) -> usize {
    let mut cut = last_word(text, text.len());
    // The words before belong to it where they could begin a secret that has blanks in it.
    while cut > 0
        && let Some(before) = text.get(..cut)
    {
        let start = last_word(before, before.trim_end().len());
        let word = text.get(start..cut).unwrap_or_default().trim_end();
        if start < cut && leads_on(word) { cut = start } else { break }
    }
    if let Some(begin) = text.rfind(PEM)
        && !text.get(begin + PEM.len()..).is_some_and(|label| label.contains("-----"))
    {
        cut = cut.min(begin);
    }
    if Signs::of(text.as_bytes()).secret() {
        cut = whole_secrets(text, cut);
    }
    let is_private_key = text.get(cut..).is_some_and(|rest| rest.starts_with(PEM));
    if is_private_key || text.len() - cut <= most {
        return cut;
    }
    let end = text.len();
    (end.saturating_sub(most)..=end).find(|at| text.is_char_boundary(*at)).unwrap_or(end).max(cut)
}

/// Moves a cut to the beginning of the first secret that crosses it or that may continue after the end of the text.
fn whole_secrets(text: &str, cut: usize) -> usize {
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

/// Where the word begins that ends at `end`.
fn last_word(text: &str, end: usize) -> usize {
    let before = text.get(..end).unwrap_or_default();
    before
        .char_indices()
        .rev()
        .find(|(_, one)| one.is_whitespace())
        .map_or(0, |(at, one)| at + one.len_utf8())
}

/// Whether a secret may continue after this word and a blank.
fn leads_on(word: &str) -> bool {
    let name = word.trim_matches(['"', '\'', ':', '=', '(', '{', ',']);
    let ends_in = |one: &&str| {
        name.len() >= one.len()
            && name.get(name.len() - one.len()..).is_some_and(|end| end.eq_ignore_ascii_case(one))
    };
    let mut names = PASSWORD_NAMES.iter().chain(&KEY_NAMES).chain(&[TOKEN_NAME, BEARER, "api", "key"]);
    word.is_empty()
        || word.ends_with([':', '='])
        // A number begins after whatever is no letter, and be it a mark on one.
        || word.ends_with(|one: char| one.is_ascii_digit() || one == '-')
        || names.any(ends_in)
}
