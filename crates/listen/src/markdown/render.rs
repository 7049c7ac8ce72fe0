//! Turns complete Markdown into sentences.

use std::ops::Range;

use pulldown_cmark::{BrokenLink, CodeBlockKind, CowStr, Event, LinkType, Options, Parser, Tag, TagEnd};
use unicode_normalization::char::is_combining_mark;

use super::CodeBlockStore;
use super::math::formula_in_words;
use crate::Phrases;

/// The extensions of CommonMark that agents use.
const EXTENSIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS)
    .union(Options::ENABLE_MATH);

/// Text in front of a source that continues a paragraph, so that it is parsed as a continuation. It is not spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Guard {
    /// The source starts a block.
    #[default]
    None,
    /// The source continues a line.
    MidLine,
    /// The source continues a paragraph on a new line.
    NextLine,
}

impl Guard {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::None => "",
            Self::MidLine => "x ",
            Self::NextLine => "x\n",
        }
    }

    pub(super) fn len(self) -> usize {
        self.text().len()
    }
}

/// The context of a source that continues text, a part of which was already spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RenderContext {
    pub(super) guard: Guard,
    /// Whether the list at the start continues, or will continue, so that its number of items is unknown.
    pub(super) is_partial_list: bool,
    /// Whether the end of the table has not arrived.
    pub(super) is_partial_table: bool,
    /// Whether the table at the start was announced.
    pub(super) table_was_announced: bool,
}

/// Maximum depth of elements inside each other. The content of deeper ones belongs to the element at this depth. Rendering is
/// recursive, and an agent could nest thousands of quotes.
const MAX_DEPTH: usize = 32;

/// Parses Markdown into events with their positions. A link to a definition elsewhere counts as a link, because
/// definitions may arrive after the text was spoken.
pub(super) fn parse(source: &str) -> impl Iterator<Item = (Event<'_>, Range<usize>)> {
    let mut depth = 0_usize;
    parse_all(source).filter(move |(event, _)| match event {
        Event::Start(_) => {
            depth += 1;
            depth <= MAX_DEPTH
        }
        Event::End(_) => {
            depth = depth.saturating_sub(1);
            depth < MAX_DEPTH
        }
        _ => true,
    })
}

fn parse_all(source: &str) -> impl Iterator<Item = (Event<'_>, Range<usize>)> {
    let resolve = |link: BrokenLink<'_>| {
        matches!(link.link_type, LinkType::ReferenceUnknown | LinkType::Reference)
            .then(|| (CowStr::from(""), CowStr::from("")))
    };
    Parser::new_with_broken_link_callback(source, EXTENSIONS, Some(resolve)).into_offset_iter()
}

/// Renders complete blocks. Each line of the result is one block, item or row, and has a blank line after it.
pub(super) fn render(
    source: &str,
    context: RenderContext,
    phrases: &Phrases,
    code_blocks: &mut CodeBlockStore,
) -> String {
    let events: Vec<_> = parse(source).collect();
    let mut renderer =
        Renderer { source, context, phrases, code_blocks, events: events.into_iter(), list_depth: 0 };
    let mut text = String::new();
    for line in renderer.blocks() {
        text.push_str(&line);
        text.push_str("\n\n");
    }
    text
}

/// Adds a full stop to a text that ends with a letter or a digit.
fn end_sentence(mut text: String) -> String {
    text.truncate(text.trim_end().len());
    if text.chars().next_back().is_some_and(|last| last.is_alphanumeric() || is_combining_mark(last)) {
        text.push('.');
    }
    text
}

struct Renderer<'s, 'c> {
    source: &'s str,
    context: RenderContext,
    phrases: &'s Phrases,
    code_blocks: &'c mut CodeBlockStore,
    events: std::vec::IntoIter<(Event<'s>, Range<usize>)>,
    list_depth: usize,
}

impl Renderer<'_, '_> {
    /// Renders blocks up to the end of the enclosing block, as lines.
    fn blocks(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        // The text of a list item without blank lines is not inside a paragraph.
        let mut inline = String::new();
        while let Some((event, range)) = self.events.next() {
            match event {
                Event::End(end) if !is_inline_end(end) => break,
                Event::Start(tag) if !is_inline(&tag) => {
                    push_line(&mut lines, std::mem::take(&mut inline));
                    self.block(tag, &range, &mut lines);
                }
                Event::Rule => push_line(&mut lines, std::mem::take(&mut inline)),
                Event::TaskListMarker(is_done) => {
                    let label = if is_done { self.phrases.task_done } else { self.phrases.task_open };
                    inline.push_str(label);
                    inline.push(' ');
                }
                event => self.inline(event, &range, &mut inline, "\n"),
            }
        }
        push_line(&mut lines, inline);
        lines
    }

    fn block(&mut self, tag: Tag<'_>, range: &Range<usize>, lines: &mut Vec<String>) {
        match tag {
            Tag::Heading { .. } => {
                // The text of a setext heading may have been spoken before its underline arrived.
                let is_setext = !self.source.get(range.start..).unwrap_or_default().starts_with('#');
                let text = self.line_text(if is_setext { "\n" } else { " " });
                let text = if text.trim().is_empty() || is_setext {
                    text
                } else {
                    self.phrases.heading(&end_sentence(text))
                };
                push_line(lines, text);
            }
            Tag::List(first_number) => self.list(first_number, lines),
            Tag::Table(_) => self.table(lines),
            Tag::CodeBlock(kind) => {
                let language = match &kind {
                    CodeBlockKind::Fenced(info) => language_name(info),
                    CodeBlockKind::Indented => String::new(),
                };
                let text = self.raw_text();
                lines.push(self.code(&text, &language));
            }
            Tag::HtmlBlock => {
                let text = self.raw_text();
                if !text.trim_start().starts_with("<!--") {
                    lines.push(self.code(&text, "HTML"));
                }
            }
            Tag::BlockQuote(_) => {
                let mut quoted = self.blocks();
                if let Some(first) = quoted.first_mut() {
                    *first = self.phrases.quote(first);
                }
                if let Some(last) = quoted.last_mut() {
                    *last = end_sentence(std::mem::take(last));
                }
                if quoted.len() > 1 {
                    quoted.push(self.phrases.quote_ends.to_owned());
                }
                lines.append(&mut quoted);
            }
            _ => lines.append(&mut self.blocks()),
        }
    }

    fn list(&mut self, first_number: Option<u64>, lines: &mut Vec<String>) {
        let is_partial = self.list_depth == 0 && self.context.is_partial_list;
        self.list_depth += 1;
        let mut items = Vec::new();
        let mut item_count = 0_u64;
        while let Some((Event::Start(Tag::Item), _)) = self.events.next() {
            let mut item: Vec<_> = self.blocks().into_iter().map(end_sentence).collect();
            if let Some(first_number) = first_number {
                let number = first_number.saturating_add(item_count);
                match item.first_mut() {
                    Some(first) => *first = format!("{number}: {first}"),
                    None => item.push(format!("{number}.")),
                }
            }
            item_count += 1;
            items.append(&mut item);
        }
        self.list_depth -= 1;
        let count = i64::try_from(item_count).unwrap_or(i64::MAX);
        if !is_partial {
            lines.push(if self.list_depth == 0 {
                self.phrases.list_items(count)
            } else {
                self.phrases.nested_list_items(count)
            });
        }
        lines.append(&mut items);
    }

    fn table(&mut self, lines: &mut Vec<String>) {
        let (mut columns, mut rows) = (Vec::new(), Vec::new());
        loop {
            match self.events.next() {
                Some((Event::Start(Tag::TableHead), _)) => columns = self.cells(),
                Some((Event::Start(Tag::TableRow), _)) => rows.push(self.cells()),
                _ => break,
            }
        }
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        if self.context.is_partial_table && !self.context.table_was_announced {
            lines.push(self.phrases.table_columns(count(columns.len())));
        } else if !self.context.table_was_announced {
            lines.push(self.phrases.table_size(count(rows.len()), count(columns.len())));
            if rows.is_empty() {
                push_line(lines, end_sentence(columns.join("; ")));
            }
        }
        for row in rows {
            let cells = columns.iter().zip(row).filter(|(_, cell)| !cell.is_empty());
            let named = cells
                .map(|(column, cell)| if column.is_empty() { cell } else { format!("{column}: {cell}") });
            push_line(lines, end_sentence(named.collect::<Vec<_>>().join("; ")));
        }
    }

    /// Returns the texts of a row's cells.
    fn cells(&mut self) -> Vec<String> {
        let mut cells = Vec::new();
        while let Some((Event::Start(Tag::TableCell), _)) = self.events.next() {
            cells.push(self.line_text(" ").trim().to_owned());
        }
        cells
    }

    fn code(&mut self, text: &str, language: &str) -> String {
        let number = self.code_blocks.add(text);
        let lines = i64::try_from(text.lines().count()).unwrap_or(i64::MAX);
        if language.is_empty() {
            self.phrases.code_lines(number, lines)
        } else {
            self.phrases.code_lines_in(number, lines, language)
        }
    }

    /// Returns the text of a heading or a cell.
    fn line_text(&mut self, line_break: &str) -> String {
        let mut text = String::new();
        while let Some((event, range)) = self.events.next() {
            if matches!(event, Event::End(end) if !is_inline_end(end)) {
                break;
            }
            self.inline(event, &range, &mut text, line_break);
        }
        text
    }

    /// Returns the text of a code block or of HTML.
    fn raw_text(&mut self) -> String {
        let mut text = String::new();
        for (event, _) in self.events.by_ref() {
            match event {
                Event::Text(part) | Event::Html(part) => text.push_str(&part),
                Event::End(_) => break,
                _ => {}
            }
        }
        text
    }

    fn inline(&mut self, event: Event<'_>, range: &Range<usize>, text: &mut String, line_break: &str) {
        let spoken_from = self.context.guard.len();
        match event {
            Event::Text(part) if range.start < spoken_from => {
                text.push_str(part.get(spoken_from - range.start..).unwrap_or_default());
            }
            Event::SoftBreak | Event::HardBreak
                if range.start < spoken_from && self.context.guard == Guard::NextLine => {}
            Event::Text(part) | Event::Code(part) => text.push_str(&part),
            Event::SoftBreak => text.push(' '),
            Event::HardBreak => text.push_str(line_break),
            Event::InlineHtml(tag) => match html_tag_name(&tag) {
                Some(name) if name.eq_ignore_ascii_case("br") => text.push_str(line_break),
                Some(name) if is_silent_tag(name) => {}
                _ if tag.starts_with("<!--") => {}
                _ => text.push_str(&tag),
            },
            Event::InlineMath(math) | Event::DisplayMath(math) => {
                let written = math_text(&math, self.source.get(range.clone()).unwrap_or_default());
                let words = formula_in_words(written, self.phrases);
                text.push_str(words.as_deref().unwrap_or(written));
            }
            Event::Start(tag @ (Tag::Image { .. } | Tag::Strikethrough)) => {
                let inner = self.inline_until_end(line_break);
                text.push_str(&match (tag, inner.trim()) {
                    (Tag::Image { .. }, "") => self.phrases.image_without_text.to_owned(),
                    (Tag::Image { .. }, inner) => self.phrases.image(inner),
                    (_, inner) => self.phrases.struck_through(inner),
                });
            }
            Event::Start(_) => text.push_str(&self.inline_until_end(line_break)),
            _ => {}
        }
    }

    /// Returns the text of an inline element whose start was read.
    fn inline_until_end(&mut self, line_break: &str) -> String {
        let mut text = String::new();
        while let Some((event, range)) = self.events.next() {
            if matches!(event, Event::End(_)) {
                break;
            }
            self.inline(event, &range, &mut text, line_break);
        }
        text
    }
}

fn push_line(lines: &mut Vec<String>, line: String) {
    if !line.trim().is_empty() {
        lines.push(line);
    }
}

fn is_inline(tag: &Tag<'_>) -> bool {
    matches!(
        tag,
        Tag::Emphasis
            | Tag::Strong
            | Tag::Strikethrough
            | Tag::Link { .. }
            | Tag::Image { .. }
            | Tag::Superscript
            | Tag::Subscript
    )
}

fn is_inline_end(end: TagEnd) -> bool {
    matches!(
        end,
        TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Strikethrough
            | TagEnd::Link
            | TagEnd::Image
            | TagEnd::Superscript
            | TagEnd::Subscript
    )
}

/// HTML tags that are not spoken. The text between them is. Other tags are spoken, because they are probably not HTML, as in
/// `Vec<T>`.
const SILENT_TAGS: [&str; 27] = [
    "a", "abbr", "b", "cite", "code", "del", "details", "div", "em", "font", "i", "img", "ins", "kbd",
    "mark", "p", "q", "s", "samp", "small", "span", "strong", "sub", "summary", "sup", "u", "wbr",
];

pub(super) fn is_silent_tag(name: &str) -> bool {
    SILENT_TAGS.iter().any(|silent| name.eq_ignore_ascii_case(silent))
}

pub(super) fn html_tag_name(tag: &str) -> Option<&str> {
    let name = tag.trim_start_matches('<').trim_start_matches('/');
    name.split(|c: char| !c.is_ascii_alphanumeric()).next().filter(|name| !name.is_empty())
}

/// Returns the name of a programming language as people say it, from the info string of a code block.
pub(super) fn language_name(info: &str) -> String {
    let tag =
        info.split(|c: char| c.is_whitespace() || matches!(c, ',' | '{' | ':')).next().unwrap_or_default();
    let known = LANGUAGE_NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(tag));
    let mut name: String =
        known.map_or(tag, |(_, name)| name).chars().take(MAX_LANGUAGE_NAME_CHARS).collect();
    if known.is_none()
        && let Some(first) = name.chars().next()
    {
        name.replace_range(..first.len_utf8(), &first.to_uppercase().to_string());
    }
    name
}

/// Maximum length of the name of a code block's language, in characters. Longer names are cut.
const MAX_LANGUAGE_NAME_CHARS: usize = 30;

/// Language tags of code blocks, and the names that are spoken for them. Any other tag is spoken with a capital first letter.
const LANGUAGE_NAMES: [(&str, &str); 32] = [
    ("bash", "shell"),
    ("console", "shell"),
    ("cpp", "C++"),
    ("c++", "C++"),
    ("cs", "C sharp"),
    ("csharp", "C sharp"),
    ("css", "CSS"),
    ("golang", "Go"),
    ("html", "HTML"),
    ("js", "JavaScript"),
    ("javascript", "JavaScript"),
    ("json", "JSON"),
    ("jsx", "JavaScript"),
    ("kt", "Kotlin"),
    ("md", "Markdown"),
    ("php", "PHP"),
    ("ps1", "PowerShell"),
    ("powershell", "PowerShell"),
    ("py", "Python"),
    ("rb", "Ruby"),
    ("rs", "Rust"),
    ("sh", "shell"),
    ("shell", "shell"),
    ("sql", "SQL"),
    ("text", ""),
    ("toml", "TOML"),
    ("ts", "TypeScript"),
    ("typescript", "TypeScript"),
    ("txt", ""),
    ("xml", "XML"),
    ("yaml", "YAML"),
    ("yml", "YAML"),
];

/// Returns a formula without its delimiters, or the source if it may be amounts of money: `between $5 and 6$`.
pub(super) fn math_text<'t>(math: &'t str, source: &'t str) -> &'t str {
    let is_name = math.chars().count() == 1 && math.chars().all(char::is_alphabetic);
    if is_name || math.contains(['\\', '^', '_', '=', '+', '*', '<', '>', '{']) {
        math.trim()
    } else {
        source
    }
}
