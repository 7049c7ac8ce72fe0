//! Measures, wraps and escapes text for SVG diagrams.

use crate::output::printable;

/// Truncates the text to at most `max_width` columns. A truncated text ends with an ellipsis.
pub(crate) fn truncate(text: &str, max_width: usize) -> String {
    if fitting_len(text, max_width) == text.len() {
        return text.to_owned();
    }
    format!("{}…", &text[..fitting_len(text, max_width - 1)])
}

/// Returns the length in bytes of the longest prefix of at most `max_width` columns. Every character from U+1100 on counts as two columns.
pub(crate) fn fitting_len(text: &str, max_width: usize) -> usize {
    let mut width = 0;
    let first_outside = text.char_indices().find(|(_, character)| {
        width += if *character < '\u{1100}' { 1 } else { 2 };
        width > max_width
    });
    first_outside.map_or(text.len(), |(at, _)| at)
}

/// Wraps the text at spaces into at most `max_lines` lines of `max_width` columns. The last line is truncated.
pub(crate) fn wrap(text: &str, max_width: usize, max_lines: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = text;
    while fitting_len(rest, max_width) < rest.len() && lines.len() + 1 < max_lines {
        let fits = fitting_len(rest, max_width);
        let head = rest.get(..fits).unwrap_or_default();
        let cut = head.rfind(' ').filter(|at| *at > 0).unwrap_or(fits.max(1));
        let (line, after) = rest.split_at_checked(cut).unwrap_or((rest, ""));
        lines.push(line.to_owned());
        rest = after.trim_start();
    }
    if !rest.is_empty() {
        lines.push(truncate(rest, max_width));
    }
    lines
}

/// Escapes text for XML, including control characters and bidi overrides. Omits characters that XML cannot contain.
pub(crate) fn escape_xml(text: &str) -> String {
    let text = printable(text);
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\u{FFFE}' | '\u{FFFF}' => {}
            character => out.push(character),
        }
    }
    out
}

/// Like [`escape_xml`], but keeps newlines.
pub(crate) fn escape_xml_lines(text: &str) -> String {
    text.lines().map(escape_xml).collect::<Vec<_>>().join("\n")
}
