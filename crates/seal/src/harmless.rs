//! Text from strangers, made fit for terminals and logs.

/// The text with everything that could act on a terminal spelled out: control characters, what turns a line around, and ends
/// of lines that only some see.
///
/// ```
/// assert_eq!(seal::harmless("a\u{1b}[2J", |c| format!("\\u{{{c:x}}}")), "a\\u{1b}[2J");
/// ```
pub fn harmless(text: &str, spell: impl Fn(u32) -> String) -> String {
    let risky = |c: char| {
        c.is_control()
            || matches!(c, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
            || matches!(c, '\u{2028}' | '\u{2029}')
    };
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(risky) {
        out.push_str(&rest[..at]);
        let mut after = rest[at..].chars();
        if let Some(c) = after.next() {
            out.push_str(&spell(u32::from(c)));
        }
        rest = after.as_str();
    }
    out.push_str(rest);
    out
}
