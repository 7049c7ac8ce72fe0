//! Shortening of texts that are read aloud.

use crate::phrases::{Language, texts};

/// Returns at most about `max_chars` characters of a text: its beginning and its end, because both matter in a command. The
/// result says how many characters are left out.
///
/// ```
/// use gate::description::shorten;
/// use gate::phrases::Language;
/// assert_eq!(shorten("cargo test", 20, Language::English), "cargo test");
/// let text = shorten(&"abcdefghij".repeat(10), 40, Language::English);
/// assert_eq!(text.matches("60 characters left out").count(), 1);
/// ```
pub fn shorten(text: &str, max_chars: usize, language: Language) -> String {
    let count = text.chars().count();
    if count <= max_chars {
        return text.to_owned();
    }
    let tail = max_chars / 4;
    let head: String = text.chars().take(max_chars - tail).collect();
    let end: String = text.chars().skip(count - tail).collect();
    let left_out = (count - max_chars).to_string();
    texts::LEFT_OUT.fill(language, &[head.trim_end(), &left_out, end.trim_start()])
}
