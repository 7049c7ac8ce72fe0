//! Text in pictures: how wide it is, and how it stays text.

use crate::print::printable;

/// The text, cut to be so wide at most.
pub(crate) fn short(text: &str, longest: usize) -> String {
    if fitting(text, longest) == text.len() {
        return text.to_owned();
    }
    format!("{}…", &text[..fitting(text, longest - 1)])
}

/// Where a text must be cut to be so wide at most; letters of the wide scripts take the room of two.
pub(crate) fn fitting(text: &str, widest: usize) -> usize {
    let mut width = 0;
    let over = text.char_indices().find(|(_, letter)| {
        width += if *letter < '\u{1100}' { 1 } else { 2 };
        width > widest
    });
    over.map_or(text.len(), |(at, _)| at)
}

/// The text in lines that are so wide at most, cut between words; what is too much for the last one is cut off.
pub(crate) fn wrapped(text: &str, letters: usize, most: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = text;
    while fitting(rest, letters) < rest.len() && lines.len() + 1 < most {
        let fits = fitting(rest, letters);
        let head = rest.get(..fits).unwrap_or_default();
        let cut = head.rfind(' ').filter(|at| *at > 0).unwrap_or(fits.max(1));
        let (line, after) = rest.split_at_checked(cut).unwrap_or((rest, ""));
        lines.push(line.to_owned());
        rest = after.trim_start();
    }
    if !rest.is_empty() {
        lines.push(short(rest, letters));
    }
    lines
}

/// Text can never become markup, nor turn a line around; what XML cannot hold is left out.
pub(crate) fn escape(text: &str) -> String {
    let text = printable(text);
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\u{FFFE}' | '\u{FFFF}' => {}
            letter => out.push(letter),
        }
    }
    out
}

/// The same, line by line.
pub(crate) fn escape_lines(text: &str) -> String {
    text.lines().map(escape).collect::<Vec<_>>().join("\n")
}
