//! Escaping of untrusted text for terminals and logs.

/// Escapes every character that could affect a terminal: control characters, bidirectional controls, and the Unicode line
/// and paragraph separators. `escape` formats the code point of such a character.
///
/// ```
/// assert_eq!(seal::escape_controls("a\u{1b}[2J", |c| format!("\\u{{{c:x}}}")), "a\\u{1b}[2J");
/// ```
pub fn escape_controls(text: &str, escape: impl Fn(u32) -> String) -> String {
    let is_unsafe = |c: char| {
        c.is_control()
            || matches!(c, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
            || matches!(c, '\u{2028}' | '\u{2029}')
    };
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(index) = rest.find(is_unsafe) {
        out.push_str(&rest[..index]);
        let mut chars = rest[index..].chars();
        if let Some(c) = chars.next() {
            out.push_str(&escape(u32::from(c)));
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    out
}
