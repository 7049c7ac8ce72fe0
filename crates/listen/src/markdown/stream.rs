//! Decides how much of an unfinished output can be spoken.

use pulldown_cmark::{CodeBlockKind, Event, Tag, TagEnd};

use super::CodeBlockStore;
use super::render::{self, Guard, RenderContext, language_name};
use crate::Phrases;

/// Turns the Markdown of one output into sentences.
///
/// Pass every chunk to [`push`](Self::push), and call [`finish`](Self::finish) at the end of the output. The text that they return
/// depends only on the characters of the output, not on how they are divided into chunks. While [`holds_block`](Self::holds_block)
/// is true, text is held back; [`release`](Self::release) returns what can be spoken of it when it has waited too long.
#[derive(Clone, Debug)]
pub(crate) struct MarkdownStream {
    /// The guard, and the text that was not spoken yet. It starts at a block, or inside a paragraph.
    source: String,
    context: RenderContext,
    /// Code that was announced before its end arrived.
    open_code: Option<u32>,
    /// The end of the last sentence in the held paragraph.
    last_sentence_end: Option<usize>,
    /// The kind of the last block, if it is known.
    open_block: BlockKind,
    /// The length at which the text is re-parsed.
    parse_at: usize,
    max_held_bytes: usize,
}

/// Why held text is spoken before its block is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReleaseReason {
    /// It has waited too long, or too much is held.
    Limit,
    /// The agent continues with something else.
    Pause,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum BlockKind {
    /// There is no block yet.
    #[default]
    None,
    Paragraph,
    Heading,
    List,
    Table,
    FencedCode,
    IndentedCode,
    Quote,
    Html,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    kind: BlockKind,
    /// The start of its first line.
    start: usize,
}

impl MarkdownStream {
    pub(crate) fn new(max_held_bytes: usize) -> Self {
        Self {
            source: String::new(),
            context: RenderContext::default(),
            open_code: None,
            last_sentence_end: None,
            open_block: BlockKind::None,
            parse_at: 0,
            max_held_bytes: max_held_bytes.max(MIN_HELD_BYTES),
        }
    }

    /// Adds a chunk and returns the text that can be spoken now.
    pub(crate) fn push(
        &mut self,
        chunk: &str,
        phrases: &Phrases,
        code_blocks: &mut CodeBlockStore,
    ) -> String {
        let mut spoken = String::new();
        for c in chunk.chars() {
            self.source.push(c);
            if (c == '\n' || self.ends_sentence(c)) && self.is_worth_parsing() {
                self.advance(phrases, code_blocks, &mut spoken);
            }
            if self.source.len() >= self.max_held_bytes {
                self.release_into(true, phrases, code_blocks, &mut spoken);
            }
        }
        spoken
    }

    /// Returns the rest of a paragraph, if the producer says that the text ends with a complete sentence.
    pub(crate) fn end_sentence(&mut self, phrases: &Phrases, code_blocks: &mut CodeBlockStore) -> String {
        let mut spoken = String::new();
        if !self.source.ends_with(char::is_whitespace) {
            self.advance(phrases, code_blocks, &mut spoken);
        }
        spoken
    }

    /// Returns the rest of the output, which ends here.
    pub(crate) fn finish(&mut self, phrases: &Phrases, code_blocks: &mut CodeBlockStore) -> String {
        let mut spoken = String::new();
        if !self.source.is_empty() {
            let end = self.source.len();
            self.speak_blocks(end, phrases, code_blocks, &mut spoken);
        }
        *self = Self::new(self.max_held_bytes);
        spoken
    }

    /// Returns what can be spoken of the held text.
    pub(crate) fn release(
        &mut self,
        reason: ReleaseReason,
        phrases: &Phrases,
        code_blocks: &mut CodeBlockStore,
    ) -> String {
        let mut spoken = String::new();
        if reason == ReleaseReason::Pause && self.ends_at_boundary() && self.open_block == BlockKind::List {
            // The items that follow, if any, belong to the same list.
            let end = self.source.len();
            self.speak_blocks(end, phrases, code_blocks, &mut spoken);
            self.context.is_partial_list = true;
            return spoken;
        }
        if reason == ReleaseReason::Pause && self.open_block == BlockKind::Paragraph {
            self.advance(phrases, code_blocks, &mut spoken);
        }
        self.release_into(false, phrases, code_blocks, &mut spoken);
        spoken
    }

    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.source.len()
    }

    /// Whether complete sentences are held because their block is not complete.
    pub(crate) fn holds_block(&self) -> bool {
        match self.open_block {
            BlockKind::None | BlockKind::Heading => false,
            BlockKind::Paragraph => self.last_sentence_end.is_some(),
            BlockKind::FencedCode => self.open_code.is_none(),
            BlockKind::List => !self.context.is_partial_list,
            BlockKind::Table => !self.context.table_was_announced,
            BlockKind::IndentedCode | BlockKind::Quote | BlockKind::Html => true,
        }
    }

    /// Whether a sentence may end before the last character, which was just added.
    fn ends_sentence(&self, last: char) -> bool {
        if FULL_WIDTH_TERMINATORS.contains(&last) {
            return true;
        }
        if !last.is_whitespace() || !matches!(self.open_block, BlockKind::None | BlockKind::Paragraph) {
            return false;
        }
        let line = self.source.strip_suffix(last).unwrap_or_default();
        let line = line.rsplit('\n').next().unwrap_or_default();
        let stem = line.trim_end_matches(CLOSERS);
        // The number of a list item ends with a full stop, too.
        stem.ends_with(TERMINATORS) && stem.chars().any(char::is_alphabetic)
    }

    /// Whether the text ends at the end of a line or of a sentence.
    fn ends_at_boundary(&self) -> bool {
        self.source.ends_with('\n') || self.source.trim_end().trim_end_matches(CLOSERS).ends_with(TERMINATORS)
    }

    /// Whether the text has grown enough to be re-parsed, or the last line surely ends a block. Without this rule, the time for a
    /// long block would grow with the square of its length.
    fn is_worth_parsing(&self) -> bool {
        if self.source.len() >= self.parse_at {
            return true;
        }
        let mut lines = self.source.strip_suffix('\n').unwrap_or_default().rsplit('\n');
        let last = lines.next().unwrap_or_default();
        match self.open_block {
            BlockKind::Paragraph | BlockKind::Table | BlockKind::Quote => {
                self.source.ends_with('\n') && last.trim().is_empty()
            }
            BlockKind::List => {
                last.starts_with(char::is_alphabetic)
                    && lines.next().is_some_and(|line| line.trim().is_empty())
            }
            BlockKind::FencedCode => self.last_line_may_close_code(),
            _ => false,
        }
    }

    /// Speaks the blocks that are complete, and the complete sentences of a paragraph.
    fn advance(&mut self, phrases: &Phrases, code_blocks: &mut CodeBlockStore, spoken: &mut String) {
        let length = self.source.len();
        self.speak_complete(phrases, code_blocks, spoken);
        let has_progress = self.source.len() < length;
        self.parse_at = if has_progress || length < ALWAYS_PARSED_BYTES { 0 } else { length + length / 16 };
    }

    fn speak_complete(&mut self, phrases: &Phrases, code_blocks: &mut CodeBlockStore, spoken: &mut String) {
        if self.open_block == BlockKind::FencedCode && !self.last_line_may_close_code() {
            if self.open_code.is_some() {
                self.store_open_code(code_blocks);
            }
            return;
        }
        let blocks = self.blocks();
        let Some(last) = blocks.last().copied() else {
            // Only blank lines, or definitions of links.
            if self.source.trim().is_empty() {
                self.source.clear();
            }
            return;
        };
        self.open_block = last.kind;
        if self.is_complete(last) {
            let end = self.source.len();
            return self.speak_blocks(end, phrases, code_blocks, spoken);
        }
        if blocks.len() > 1 {
            self.speak_blocks(last.start, phrases, code_blocks, spoken);
            self.open_block = last.kind;
        }
        match last.kind {
            BlockKind::Paragraph => self.speak_sentences(phrases, code_blocks, spoken),
            BlockKind::List if self.context.is_partial_list => {
                self.release_into(false, phrases, code_blocks, spoken);
            }
            BlockKind::Table if self.context.table_was_announced => {
                self.release_into(false, phrases, code_blocks, spoken);
            }
            _ => {}
        }
    }

    /// Speaks the complete blocks before `end`, which is the start of a block or the end of the text.
    fn speak_blocks(
        &mut self,
        end: usize,
        phrases: &Phrases,
        code_blocks: &mut CodeBlockStore,
        spoken: &mut String,
    ) {
        let blocks: Vec<_> = self.blocks().into_iter().filter(|block| block.start < end).collect();
        let starts = blocks.iter().skip(1).map(|block| block.start).chain([end]);
        let mut start = 0;
        for (block, next_start) in blocks.iter().zip(starts) {
            if let Some(number) = self.open_code.take() {
                // It was announced when it started.
                let code = self.source.get(start..next_start).unwrap_or_default();
                code_blocks.append(number, &code_text(code));
            } else {
                let context = RenderContext {
                    guard: self.context.guard,
                    is_partial_list: self.context.is_partial_list && block.kind == BlockKind::List,
                    is_partial_table: self.context.is_partial_table && block.kind == BlockKind::Table,
                    table_was_announced: self.context.table_was_announced && block.kind == BlockKind::Table,
                };
                let source = self.source.get(start..next_start).unwrap_or_default();
                if self.context.guard != Guard::None && block.kind == BlockKind::Table {
                    // The start of the line was spoken before it became the head of a table.
                    spoken.push_str("\n\n");
                }
                spoken.push_str(&render::render(source, context, phrases, code_blocks));
                if self.context.guard != Guard::None {
                    spoken.push_str("\n\n");
                }
            }
            self.context = RenderContext::default();
            start = next_start;
        }
        self.source.drain(..end);
        self.last_sentence_end = None;
        self.open_block = BlockKind::None;
    }

    /// Speaks the start of a paragraph, if nothing that follows can change it.
    fn speak_sentences(&mut self, phrases: &Phrases, code_blocks: &mut CodeBlockStore, spoken: &mut String) {
        let mut end = self.source.len();
        let text = self.source.trim_end_matches('\n');
        let line_start = text.rfind('\n').map_or(self.context.guard.len(), |at| at + 1);
        if text.get(line_start..).is_some_and(|line| line.contains('|')) {
            // The line may be the head of a table.
            end = line_start;
        }
        if end <= self.context.guard.len() {
            return;
        }
        let start = self.source.get(..end).unwrap_or_default();
        if start.ends_with("\\\n") {
            // The backslash is a line break if the paragraph continues.
            return;
        }
        if has_open_element(start) {
            self.last_sentence_end = Some(end);
            return;
        }
        self.speak_start(end, phrases, code_blocks, spoken);
    }

    /// Speaks the start of a paragraph. The rest continues the paragraph.
    fn speak_start(
        &mut self,
        end: usize,
        phrases: &Phrases,
        code_blocks: &mut CodeBlockStore,
        spoken: &mut String,
    ) {
        let start = self.source.get(..end).unwrap_or_default();
        if start.ends_with(char::is_whitespace) {
            // The parser drops white space at the end of a paragraph, so a letter follows it here.
            let text = render::render(&format!("{start}x"), self.context, phrases, code_blocks);
            let text = text.trim_end();
            spoken.push_str(text.strip_suffix('x').unwrap_or(text));
        } else {
            spoken.push_str(render::render(start, self.context, phrases, code_blocks).trim_end());
        }
        let guard = if start.ends_with('\n') { Guard::NextLine } else { Guard::MidLine };
        self.source.replace_range(..end, guard.text());
        self.context = RenderContext { guard, ..RenderContext::default() };
        self.last_sentence_end = None;
    }

    /// Speaks what is complete in the last block. If `must_shrink` is set, at least half of the text is spoken.
    fn release_into(
        &mut self,
        must_shrink: bool,
        phrases: &Phrases,
        code_blocks: &mut CodeBlockStore,
        spoken: &mut String,
    ) {
        let length = self.source.len();
        self.parse_at = 0;
        let Some(last) = self.blocks().last().copied() else {
            if must_shrink {
                // A definition of a link that never ends is not spoken.
                self.source.clear();
            }
            return;
        };
        if last.start > 0 {
            self.speak_blocks(last.start, phrases, code_blocks, spoken);
        }
        self.open_block = last.kind;
        match last.kind {
            BlockKind::Paragraph => {
                if let Some(end) = self.last_sentence_end {
                    self.speak_start(end, phrases, code_blocks, spoken);
                }
            }
            BlockKind::List => self.release_items(phrases, code_blocks, spoken),
            BlockKind::Table => self.release_rows(phrases, code_blocks, spoken),
            BlockKind::FencedCode => self.announce_open_code(phrases, code_blocks, spoken),
            BlockKind::None | BlockKind::Heading => {}
            BlockKind::IndentedCode | BlockKind::Quote | BlockKind::Html => {
                if self.source.ends_with('\n') {
                    let end = self.source.len();
                    self.speak_blocks(end, phrases, code_blocks, spoken);
                }
            }
        }
        if must_shrink && self.source.len() > length / 2 {
            self.speak_all_words(phrases, code_blocks, spoken);
        }
    }

    /// Speaks everything up to the last space, even if that breaks a block in two.
    fn speak_all_words(&mut self, phrases: &Phrases, code_blocks: &mut CodeBlockStore, spoken: &mut String) {
        let held = self.source.len();
        let space = self.source.rfind(char::is_whitespace).filter(|at| *at > held / 2);
        let end = space.map_or(held, |at| self.source.ceil_char_boundary(at + 1));
        let rest = self.source.split_off(end);
        let is_mid_line = !self.source.ends_with('\n');
        self.speak_blocks(end, phrases, code_blocks, spoken);
        spoken.truncate(spoken.trim_end().len());
        spoken.push(' ');
        let guard = if is_mid_line { Guard::MidLine } else { Guard::None };
        self.context.guard = guard;
        self.source = format!("{}{rest}", guard.text());
    }

    /// Speaks all items of a list except the last one, which may continue.
    fn release_items(&mut self, phrases: &Phrases, code_blocks: &mut CodeBlockStore, spoken: &mut String) {
        let Some(last_item) = last_item_start(&self.source).filter(|start| *start > 0) else { return };
        let items = self.source.get(..last_item).unwrap_or_default();
        let context = RenderContext { is_partial_list: true, ..self.context };
        spoken.push_str(&render::render(items, context, phrases, code_blocks));
        self.source.drain(..last_item);
        self.context.is_partial_list = true;
    }

    /// Speaks the complete rows of a table. Its head stays, because later rows need the names of the columns.
    fn release_rows(&mut self, phrases: &Phrases, code_blocks: &mut CodeBlockStore, spoken: &mut String) {
        let mut line_ends = self.source.match_indices('\n').map(|(at, _)| at + 1);
        let guard_lines = usize::from(self.context.guard == Guard::NextLine);
        let Some(head_end) = line_ends.nth(guard_lines + 1) else { return };
        let rows_end = self.source.rfind('\n').map_or(head_end, |at| at + 1);
        if rows_end <= head_end {
            return;
        }
        let table = self.source.get(..rows_end).unwrap_or_default();
        let context = RenderContext { is_partial_table: true, ..self.context };
        spoken.push_str(&render::render(table, context, phrases, code_blocks));
        self.source.drain(head_end..rows_end);
        self.context.is_partial_table = true;
        self.context.table_was_announced = true;
    }

    /// Announces code whose end has not arrived, and stores the lines that have.
    fn announce_open_code(
        &mut self,
        phrases: &Phrases,
        code_blocks: &mut CodeBlockStore,
        spoken: &mut String,
    ) {
        if self.open_code.is_none() {
            let language = render::parse(&self.source).find_map(|(event, _)| match event {
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => Some(language_name(&info)),
                _ => None,
            });
            let number = code_blocks.add("");
            self.open_code = Some(number);
            let text = match language.filter(|name| !name.is_empty()) {
                Some(language) => phrases.code_starts_in(number, &language),
                None => phrases.code_starts(number),
            };
            spoken.push_str(&text);
            spoken.push_str("\n\n");
        }
        self.store_open_code(code_blocks);
    }

    /// Moves the complete lines of announced code to the store. The line that opened the code stays.
    fn store_open_code(&mut self, code_blocks: &mut CodeBlockStore) {
        let (Some(number), Some(first_end)) = (self.open_code, self.source.find('\n')) else { return };
        let end = self.source.rfind('\n').map_or(first_end, |at| at);
        if end > first_end {
            code_blocks.append(number, &code_text(self.source.get(..=end).unwrap_or_default()));
            self.source.drain(first_end + 1..=end);
        }
    }

    /// Whether the last line, or what there is of it, could close a code block.
    fn last_line_may_close_code(&self) -> bool {
        let text = self.source.strip_suffix('\n').unwrap_or(&self.source);
        let line = text.rsplit('\n').next().unwrap_or_default().trim();
        line.starts_with("```") || line.starts_with("~~~")
    }

    /// Whether a block is complete although no other block follows.
    fn is_complete(&self, last: Block) -> bool {
        if !self.source.ends_with('\n') {
            return false;
        }
        let ends_with_blank_line = last_line_is_blank(&self.source);
        match last.kind {
            BlockKind::None | BlockKind::List | BlockKind::IndentedCode => false,
            BlockKind::Quote if !ends_with_blank_line => false,
            BlockKind::Paragraph => ends_with_blank_line,
            // Other blocks are complete if text on the next line would not belong to them.
            _ => {
                let probe = blocks_of(&format!("{}x\n", self.source));
                probe.last().is_some_and(|next| next.start > last.start && next.start >= self.source.len())
            }
        }
    }

    fn blocks(&self) -> Vec<Block> {
        blocks_of(&self.source)
    }
}

/// Text up to this length, in bytes, is parsed at the end of each sentence and line. Longer text is parsed when it has grown by a sixteenth.
const ALWAYS_PARSED_BYTES: usize = 1024;

/// The smallest number of bytes that may be held. With less, every list would be broken.
const MIN_HELD_BYTES: usize = 256;

const TERMINATORS: [char; 7] = ['.', '!', '?', '…', '؟', '۔', ':'];
const FULL_WIDTH_TERMINATORS: [char; 3] = ['。', '！', '？'];
/// Characters that may follow the end of a sentence.
const CLOSERS: [char; 12] = ['"', '\'', ')', ']', '}', '»', '”', '’', '*', '_', '`', '~'];

/// Returns the blocks that are in no other block.
fn blocks_of(source: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut depth = 0_usize;
    for (event, range) in render::parse(source) {
        match event {
            Event::Start(tag) => {
                if depth == 0 {
                    let start = source
                        .get(..range.start)
                        .and_then(|before| before.rfind('\n'))
                        .map_or(0, |at| at + 1);
                    blocks.push(Block { kind: block_kind(&tag), start });
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::Rule if depth == 0 => {
                let start =
                    source.get(..range.start).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
                blocks.push(Block { kind: BlockKind::Heading, start });
            }
            _ => {}
        }
    }
    blocks
}

fn block_kind(tag: &Tag<'_>) -> BlockKind {
    match tag {
        Tag::Heading { .. } => BlockKind::Heading,
        Tag::List(_) => BlockKind::List,
        Tag::Table(_) => BlockKind::Table,
        Tag::CodeBlock(CodeBlockKind::Fenced(_)) => BlockKind::FencedCode,
        Tag::CodeBlock(CodeBlockKind::Indented) => BlockKind::IndentedCode,
        Tag::BlockQuote(_) => BlockKind::Quote,
        Tag::HtmlBlock => BlockKind::Html,
        _ => BlockKind::Paragraph,
    }
}

/// Returns the start of the last item of the list at the start of the text.
fn last_item_start(source: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut last_item = None;
    for (event, range) in render::parse(source) {
        match event {
            Event::Start(Tag::List(_)) => depth += 1,
            Event::End(TagEnd::List(_)) => depth = depth.saturating_sub(1),
            Event::Start(Tag::Item) if depth == 1 => last_item = Some(range.start),
            _ => {}
        }
    }
    let start = last_item?;
    Some(source.get(..start)?.rfind('\n').map_or(0, |at| at + 1))
}

/// Returns the text of the code block at the start of a source.
fn code_text(source: &str) -> String {
    let mut text = String::new();
    for (event, _) in render::parse(source) {
        match event {
            Event::Text(part) => text.push_str(&part),
            Event::End(TagEnd::CodeBlock) => break,
            _ => {}
        }
    }
    text
}

fn last_line_is_blank(source: &str) -> bool {
    let text = source.strip_suffix('\n').unwrap_or(source);
    text.rsplit('\n').next().is_some_and(|line| line.trim().is_empty())
}

/// Whether text that follows could change how this start of a paragraph is spoken, because it contains the start of an
/// element such as a link, an image, emphasis or code.
fn has_open_element(source: &str) -> bool {
    let mut open_brackets = 0_usize;
    for (event, range) in render::parse(source) {
        let Event::Text(text) = event else { continue };
        // A character after a backslash starts nothing.
        let is_escaped = source.get(..range.start).is_some_and(|before| before.ends_with('\\'));
        for (at, c) in text.char_indices().skip(usize::from(is_escaped)) {
            // The text of an entity differs from its source.
            let at = range.start + at;
            if source.get(at..).is_none_or(|rest| !rest.starts_with(c)) {
                continue;
            }
            let before = source.get(..at).and_then(|before| before.chars().next_back());
            let after = source.get(at..).unwrap_or_default().trim_start_matches(c).chars().next();
            let has_text_after = after.is_some_and(|after| !after.is_whitespace());
            match c {
                '`' => return true,
                '*' | '~' if has_text_after => return true,
                '_' if has_text_after && !before.is_some_and(char::is_alphanumeric) => return true,
                '<' if after
                    .is_some_and(|after| after.is_ascii_alphabetic() || matches!(after, '/' | '!' | '?')) =>
                {
                    return true;
                }
                // Two dollar signs start a formula, whatever follows.
                '$' if source.get(at..).is_some_and(|rest| rest.starts_with("$$")) => return true,
                // A dollar sign in front of a digit is a price.
                '$' if has_text_after && !after.is_some_and(|after| after.is_ascii_digit()) => return true,
                '[' => open_brackets += 1,
                ']' => open_brackets = open_brackets.saturating_sub(1),
                _ => {}
            }
        }
    }
    open_brackets > 0
}
