//! The text of an announcement, with its authors.

use std::fmt;
use std::ops::{Deref, Range};

use unicode_normalization::char::is_combining_mark;

/// The text of an announcement. It records which parts an agent wrote; sayso wrote the rest.
///
/// The author is known from how the text was composed and never from what it says, so an agent cannot have sayso's sentences
/// treated as its own by repeating them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnnouncementText {
    text: String,
    /// The byte ranges of the parts that an agent wrote: ascending, not empty and not adjacent.
    agent_ranges: Vec<Range<usize>>,
}

/// Who wrote a part of an announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// An agent.
    Agent,
    /// sayso.
    Sayso,
}

/// A part from which a text is composed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TextPart<'t> {
    /// An agent's text.
    Agent(&'t str),
    /// sayso's own text.
    Sayso(&'t str),
    /// A text with its own authors.
    Composed(&'t AnnouncementText),
}

impl AnnouncementText {
    /// Creates a text that an agent wrote.
    pub fn from_agent(text: impl Into<String>) -> Self {
        let text = text.into();
        let agent_ranges = Some(0..text.len()).filter(|range| !range.is_empty()).into_iter().collect();
        Self { text, agent_ranges }
    }

    /// Joins sentences and adds a full stop to each one that lacks it. The full stop belongs to the sentence.
    pub(crate) fn from_sentences(parts: &[TextPart<'_>]) -> Self {
        let mut out = Self::default();
        for part in parts {
            let (text, author) = match *part {
                TextPart::Agent(text) => (text.trim(), Author::Agent),
                TextPart::Sayso(text) => (text.trim(), Author::Sayso),
                TextPart::Composed(text) => (text.as_str(), text.last_author()),
            };
            if text.is_empty() {
                continue;
            }
            if !out.is_empty() {
                out.push(" ", Author::Sayso);
            }
            match part {
                TextPart::Composed(text) => out.append(text),
                TextPart::Agent(_) | TextPart::Sayso(_) => out.push(text, author),
            }
            let lacks_punctuation = |last: char| last.is_alphanumeric() || is_combining_mark(last);
            if text.chars().next_back().is_some_and(lacks_punctuation) {
                out.push(".", author);
            }
        }
        out
    }

    /// Joins lines.
    pub(crate) fn from_lines(lines: &[Self]) -> Self {
        let mut out = Self::default();
        for (index, line) in lines.iter().enumerate() {
            if index > 0 {
                out.push("\n", Author::Sayso);
            }
            out.append(line);
        }
        out
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the parts of each line, with their authors. No part is empty.
    pub(crate) fn parts_by_line(&self) -> impl Iterator<Item = Vec<(&str, Author)>> {
        let mut start = 0;
        self.text.split_inclusive('\n').map(move |line| {
            let range = start..start + line.trim_end_matches(['\r', '\n']).len();
            start += line.len();
            self.parts(range)
        })
    }

    /// Whether sayso's own part of the text contains these words.
    pub(crate) fn is_said_by_sayso(&self, words: &str) -> bool {
        let parts = self.parts(0..self.len());
        parts.iter().any(|(part, author)| *author == Author::Sayso && part.contains(words))
    }

    /// Returns the text with every part sanitized.
    pub(crate) fn sanitized(&self) -> Self {
        let mut out = Self::default();
        let mut space = "";
        for (part, author) in self.parts(0..self.len()) {
            let clean = crate::sanitize(part, false);
            let unspaced = part.trim_start();
            let before = part.len() - unspaced.len();
            space = separator(space, part.get(..before).unwrap_or_default());
            if clean.is_empty() {
                continue;
            }
            if !out.is_empty() {
                out.push(space, Author::Sayso);
            }
            out.push(&clean, author);
            space = separator("", unspaced.get(unspaced.trim_end().len()..).unwrap_or_default());
        }
        out
    }

    /// Returns the first line.
    pub(crate) fn first_line(&self) -> Self {
        let mut line = Self::default();
        for (part, author) in self.parts_by_line().next().unwrap_or_default() {
            line.push(part, author);
        }
        line
    }

    /// Adds a line at the end.
    pub(crate) fn push_line(&mut self, line: &Self) {
        if !self.is_empty() {
            self.push("\n", Author::Sayso);
        }
        self.append(line);
    }

    /// Puts sayso's own text in front.
    pub(crate) fn prepend(&mut self, own: &str) {
        self.text.insert_str(0, own);
        for range in &mut self.agent_ranges {
            *range = range.start + own.len()..range.end + own.len();
        }
    }

    fn append(&mut self, other: &Self) {
        for (part, author) in other.parts(0..other.len()) {
            self.push(part, author);
        }
    }

    fn push(&mut self, text: &str, author: Author) {
        let start = self.text.len();
        self.text.push_str(text);
        if author == Author::Sayso || text.is_empty() {
            return;
        }
        match self.agent_ranges.last_mut() {
            Some(last) if last.end == start => last.end = self.text.len(),
            _ => self.agent_ranges.push(start..self.text.len()),
        }
    }

    fn last_author(&self) -> Author {
        match self.agent_ranges.last() {
            Some(range) if range.end == self.text.len() => Author::Agent,
            _ => Author::Sayso,
        }
    }

    /// Returns the parts of a range of the text.
    fn parts(&self, range: Range<usize>) -> Vec<(&str, Author)> {
        let mut parts = Vec::new();
        let mut push = |range: Range<usize>, author| {
            if let Some(part) = self.text.get(range).filter(|part| !part.is_empty()) {
                parts.push((part, author));
            }
        };
        let mut start = range.start;
        for agent in &self.agent_ranges {
            let agent = agent.start.clamp(start, range.end)..agent.end.clamp(start, range.end);
            push(start..agent.start, Author::Sayso);
            start = agent.end;
            push(agent, Author::Agent);
        }
        push(start..range.end, Author::Sayso);
        parts
    }
}

impl From<String> for AnnouncementText {
    /// Creates a text of sayso's own.
    fn from(text: String) -> Self {
        Self { text, agent_ranges: Vec::new() }
    }
}

impl From<&str> for AnnouncementText {
    /// Creates a text of sayso's own.
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl Deref for AnnouncementText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for AnnouncementText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq<str> for AnnouncementText {
    fn eq(&self, other: &str) -> bool {
        self.text == other
    }
}

impl PartialEq<&str> for AnnouncementText {
    fn eq(&self, other: &&str) -> bool {
        self.text == *other
    }
}

/// Returns what separates two parts, given the separator so far and further white space: nothing, a space or a line end.
fn separator(so_far: &'static str, white_space: &str) -> &'static str {
    match white_space {
        _ if so_far == "\n" || white_space.contains('\n') => "\n",
        "" => so_far,
        _ => " ",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Author::{Agent, Sayso};

    fn parts(text: &AnnouncementText) -> Vec<Vec<(&str, Author)>> {
        text.parts_by_line().collect()
    }

    #[test]
    fn sentences_keep_their_authors() {
        let outcome =
            AnnouncementText::from_sentences(&[TextPart::Sayso("Otherwise:"), TextPart::Agent("Lagos")]);
        let text = AnnouncementText::from_sentences(&[
            TextPart::Sayso("One"),
            TextPart::Agent(" One "),
            TextPart::Agent(""),
            TextPart::Composed(&outcome),
            TextPart::Sayso("End"),
        ]);
        assert_eq!(text, "One. One. Otherwise: Lagos. End.");
        assert_eq!(
            parts(&text),
            [[
                ("One. ", Sayso),
                ("One.", Agent),
                (" Otherwise: ", Sayso),
                ("Lagos.", Agent),
                (" End.", Sayso)
            ]]
        );
    }

    #[test]
    fn lines_keep_their_authors() {
        let agent = AnnouncementText::from_agent("one\ntwo");
        let mut text = AnnouncementText::from_lines(&["own".into(), agent.clone()]);
        text.push_line(&"é".into());
        text.prepend("é ");
        assert_eq!(text, "é own\none\ntwo\né");
        assert_eq!(parts(&text), [[("é own", Sayso)], [("one", Agent)], [("two", Agent)], [("é", Sayso)]]);
        assert_eq!(text.first_line(), AnnouncementText::from("é own"));
        assert_eq!(agent.first_line(), AnnouncementText::from_agent("one"));
        assert_eq!(AnnouncementText::default().first_line(), AnnouncementText::default());
    }
}
