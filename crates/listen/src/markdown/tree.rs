//! The tree of a Markdown text as JSON, for the listening page. The page creates one element for each node.

use pulldown_cmark::{CodeBlockKind, Event, Tag};
use seal::json::JsonWriter;

use super::render::{self, html_tag_name, is_silent_tag, language_name, math_text};

/// Writes the blocks as an array of nodes: strings, and objects with `kind` and `children`.
pub(super) fn write_tree(source: &str, writer: &mut JsonWriter) {
    let mut tree = TreeWriter { writer, open: Vec::new(), code: None, code_count: 0 };
    tree.writer.open_array();
    for (event, range) in render::parse(source) {
        tree.write(event, source.get(range).unwrap_or_default());
    }
    tree.writer.close_array();
}

struct TreeWriter<'w> {
    writer: &'w mut JsonWriter,
    /// Whether each open element was written. Kinds of elements that the page does not know are not written.
    open: Vec<bool>,
    /// The text of the current code block.
    code: Option<CodeText>,
    code_count: i64,
}

struct CodeText {
    language: String,
    text: String,
}

impl TreeWriter<'_> {
    fn write(&mut self, event: Event<'_>, source: &str) {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                self.start_code(language_name(&info));
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Indented)) => self.start_code(String::new()),
            Event::Start(Tag::HtmlBlock) => self.start_code("HTML".to_owned()),
            Event::Start(tag) => self.start(&tag),
            Event::End(_) if self.code.is_some() => self.end_code(),
            Event::End(_) => self.end(),
            Event::Text(text) | Event::Html(text) => match &mut self.code {
                Some(code) => code.text.push_str(&text),
                None => self.writer.text(&text),
            },
            Event::Code(text) => self.leaf("code", |writer| writer.key("text").text(&text)),
            Event::InlineMath(math) | Event::DisplayMath(math) => self.writer.text(math_text(&math, source)),
            Event::InlineHtml(tag) => match html_tag_name(&tag) {
                Some(name) if name.eq_ignore_ascii_case("br") => self.leaf("break", |_| ()),
                Some(name) if is_silent_tag(name) => {}
                _ if tag.starts_with("<!--") => {}
                _ => self.writer.text(&tag),
            },
            Event::SoftBreak => self.writer.text(" "),
            Event::HardBreak => self.leaf("break", |_| ()),
            Event::Rule => self.leaf("rule", |_| ()),
            Event::TaskListMarker(is_done) => {
                self.leaf("task", |writer| writer.key("done").boolean(is_done));
            }
            Event::FootnoteReference(_) => {}
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        let kind = match tag {
            Tag::Paragraph => "paragraph",
            Tag::Heading { .. } => "heading",
            Tag::BlockQuote(_) => "quote",
            Tag::List(_) => "list",
            Tag::Item => "item",
            Tag::Table(_) => "table",
            Tag::TableHead => "head",
            Tag::TableRow => "row",
            Tag::TableCell => "cell",
            Tag::Emphasis => "emphasis",
            Tag::Strong => "strong",
            Tag::Strikethrough => "deleted",
            Tag::Link { .. } => "link",
            Tag::Image { .. } => "image",
            _ => "",
        };
        let is_written = !kind.is_empty();
        self.open.push(is_written);
        if !is_written {
            return;
        }
        self.writer.open_object();
        self.writer.key("kind").text(kind);
        match tag {
            Tag::Heading { level, .. } => self.writer.key("level").integer(i64::from(*level as u8)),
            Tag::List(Some(first)) => {
                self.writer.key("start").integer(i64::try_from(*first).unwrap_or(i64::MAX));
            }
            Tag::Link { dest_url, .. } => self.writer.key("href").text(dest_url),
            _ => {}
        }
        self.writer.key("children").open_array();
    }

    fn end(&mut self) {
        if self.open.pop() == Some(true) {
            self.writer.close_array();
            self.writer.close_object();
        }
    }

    fn leaf(&mut self, kind: &str, members: impl FnOnce(&mut JsonWriter)) {
        self.writer.object(|writer| {
            writer.key("kind").text(kind);
            members(writer);
        });
    }

    fn start_code(&mut self, language: String) {
        self.code = Some(CodeText { language, text: String::new() });
    }

    /// Writes a code block with the number by which it is announced. Comments in HTML have no number and are left out.
    fn end_code(&mut self) {
        let Some(CodeText { language, text }) = self.code.take() else { return };
        if language == "HTML" && text.trim_start().starts_with("<!--") {
            return;
        }
        self.code_count += 1;
        let number = self.code_count;
        self.leaf("code_block", |writer| {
            writer.key("number").integer(number);
            writer.key("language").text(&language);
            writer.key("text").text(&text);
        });
    }
}
