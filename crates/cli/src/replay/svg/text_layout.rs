//! Estimates the width of text, so that it can be wrapped and placed without overlaps. The reader's font is not known, so the
//! estimate follows DejaVu Sans, which is wider than most.

/// Returns the estimated width of a text in pixels.
pub(super) fn text_width(text: &str, font_px: i32) -> i32 {
    let hundredths: i32 = text.chars().map(char_width).fold(0, i32::saturating_add);
    hundredths.saturating_mul(font_px) / 100 + 1
}

/// Truncates the text to at most this width. A truncated text ends with an ellipsis.
pub(super) fn truncate_to_width(text: &str, font_px: i32, max_px: i32) -> String {
    if fitting_len(text, font_px, max_px) == text.len() {
        return text.to_owned();
    }
    let end = fitting_len(text, font_px, max_px - font_px);
    format!("{}…", text.get(..end).unwrap_or_default().trim_end())
}

/// Wraps the text at spaces into at most `max_lines` lines of this width. The last line is truncated.
pub(super) fn wrap_to_width(text: &str, font_px: i32, max_px: i32, max_lines: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = text;
    while lines.len() + 1 < max_lines {
        let fits = fitting_len(rest, font_px, max_px);
        if fits == rest.len() {
            break;
        }
        let head = rest.get(..fits).unwrap_or_default();
        // Takes at least one character, so that the loop also ends if not even one character fits.
        let min = rest.chars().next().map_or(0, char::len_utf8);
        let cut = head.rfind(' ').filter(|at| *at > 0).unwrap_or(fits.max(min));
        let (line, after) = rest.split_at_checked(cut).unwrap_or((rest, ""));
        lines.push(line.to_owned());
        rest = after.trim_start();
    }
    if !rest.is_empty() {
        lines.push(truncate_to_width(rest, font_px, max_px));
    }
    lines
}

/// Returns the length in bytes of the longest prefix of at most this width.
fn fitting_len(text: &str, font_px: i32, max_px: i32) -> usize {
    let limit = i64::from(max_px) * 100;
    let mut width = 0;
    let first_outside = text.char_indices().find(|(_, character)| {
        width += i64::from(char_width(*character) * font_px);
        width > limit
    });
    first_outside.map_or(text.len(), |(at, _)| at)
}

/// Returns the estimated width of a character in hundredths of the font size.
fn char_width(character: char) -> i32 {
    match character {
        ' ' | 'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | '‘' | '’' => 33,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' | '/' | '\\' => 41,
        's' | 'z' | 'c' | 'k' | 'x' | 'v' | 'y' | '“' | '”' | '_' | '"' => 57,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '…' | '—' => 100,
        'A'..='Z' | '~' | '+' | '=' | '<' | '>' | '#' => 78,
        '\u{1100}'..='\u{200f}' | '\u{2030}'.. => 105,
        _ => 64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_lines_keep_every_word_and_fit() {
        let text = "A WIDE LINE, then a narrow one: illicit fillings; and 漢字 with ,,,,,,,,,, and averyveryverylongword.";
        for max_px in [10, 60, 100, 300, 2000] {
            let lines = wrap_to_width(text, 13, max_px, 1000);
            let joined: String = lines.concat();
            assert_eq!(joined.replace(' ', ""), text.replace(' ', ""), "{max_px}");
            assert!(max_px < 20 || lines.iter().all(|line| text_width(line, 13) <= max_px + 1), "{lines:?}");
        }
    }

    #[test]
    fn a_text_that_is_too_long_ends_with_an_ellipsis() {
        assert_eq!(truncate_to_width("short", 13, 100), "short");
        let cut = truncate_to_width("a text that is far too long for this", 13, 100);
        assert!(cut.ends_with('…') && text_width(&cut, 13) <= 101, "{cut}");
        let lines = wrap_to_width(&"word ".repeat(100), 13, 100, 3);
        assert_eq!(lines.len(), 3);
        assert!(lines.last().is_some_and(|line| line.ends_with('…')));
        assert!(wrap_to_width("", 13, 100, 3).is_empty());
    }
}
