//! Shortening of texts that are read aloud.

/// Returns at most about `max_chars` characters of a text: its beginning and its end, because both matter in a command. The
/// result says how many characters are left out.
///
/// ```
/// use gate::description::shorten;
/// assert_eq!(shorten("cargo test", 20), "cargo test");
/// assert_eq!(shorten(&"abcdefghij".repeat(10), 40).matches("60 characters left out").count(), 1);
/// ```
pub fn shorten(text: &str, max_chars: usize) -> String {
    let count = text.chars().count();
    if count <= max_chars {
        return text.to_owned();
    }
    let tail = max_chars / 4;
    let head: String = text.chars().take(max_chars - tail).collect();
    let end: String = text.chars().skip(count - tail).collect();
    let left_out = count - max_chars;
    format!("{} … {left_out} characters left out … {}", head.trim_end(), end.trim_start())
}
