//! Outputs in Markdown: their text is made speakable before it is cut into sentences, so that no element is split.

use std::sync::Arc;

use aaep::event::{CoalesceHint, Event, OutputStreaming, Payload, Urgency};
use aaep::{OutputId, SessionId};
use seal::UnixMillis;

use super::Subscriber;
use crate::markdown::{MarkdownStream, ReleaseReason};
use crate::{Announcement, AnnouncementKind, sanitize};

/// One unfinished output in Markdown.
#[derive(Debug)]
pub(super) struct MarkdownOutput {
    session_id: SessionId,
    agent_id: Box<str>,
    output_id: Option<OutputId>,
    stream: MarkdownStream,
    /// The number of characters of speakable text so far. It replaces the position in the agent's text.
    spoken_chars: u64,
    /// When the current block began to be held.
    held_since: Option<UnixMillis>,
    /// The latest chunk, used as a template for events with text that is released later.
    last_event: Event,
}

impl MarkdownOutput {
    /// Turns an event into one with this speakable text.
    fn fill(&mut self, event: &mut Event, text: String, hint: Option<CoalesceHint>) {
        let Payload::OutputStreaming(chunk) = &mut event.payload else { return };
        chunk.position = self.spoken_chars;
        self.spoken_chars =
            self.spoken_chars.saturating_add(u64::try_from(text.chars().count()).unwrap_or(u64::MAX));
        // At the end of a block, nothing that follows can continue the sentence.
        let hint = if text.ends_with("\n\n") { Some(CoalesceHint::Paragraph) } else { hint };
        chunk.coalesce_hint = Some(hint.unwrap_or(CoalesceHint::None));
        chunk.chunk = text;
    }

    /// Returns an event with text that was held.
    fn held_text_event(&mut self, text: String) -> Event {
        let mut event = self.last_event.clone();
        self.fill(&mut event, text, None);
        event
    }

    fn update_held_since(&mut self, now: UnixMillis) {
        self.held_since = if self.stream.holds_block() { self.held_since.or(Some(now)) } else { None };
    }
}

impl Subscriber {
    /// Makes the text of an event speakable, and releases held text that must be heard before the event.
    pub(super) fn make_speakable(&mut self, event: &mut Event, is_after_gap: bool, now: UnixMillis) {
        match &event.payload {
            Payload::ProgressUpdated(_) => {}
            Payload::OutputStreaming(chunk) => {
                let is_markdown = self.preferences.markdown.applies_to(chunk.content_type.as_deref());
                let index = self.markdown_outputs.iter().position(|output| output.matches(event, chunk));
                match index {
                    Some(index) if is_after_gap => {
                        self.finish_markdown(index);
                        if is_markdown {
                            self.push_markdown(event, now);
                        }
                    }
                    Some(index) if !is_markdown => self.finish_markdown(index),
                    _ if is_markdown => self.push_markdown(event, now),
                    _ => {}
                }
            }
            _ => {
                let is_terminal = event.envelope.event_type.is_terminal();
                let session = &event.envelope.session_id;
                for index in (0..self.markdown_outputs.len()).rev() {
                    if self.markdown_outputs.get(index).is_none_or(|output| output.session_id != *session) {
                        continue;
                    }
                    if is_terminal {
                        self.finish_markdown(index);
                    } else {
                        self.release_markdown(index, ReleaseReason::Pause, now);
                    }
                }
            }
        }
    }

    /// Releases the blocks that have been held for too long.
    pub(super) fn release_overdue_markdown(&mut self, now: UnixMillis) {
        for index in 0..self.markdown_outputs.len() {
            if self.markdown_deadlines().nth(index).flatten().is_some_and(|due| due <= now) {
                self.release_markdown(index, ReleaseReason::Limit, now);
            }
        }
    }

    /// Returns when the next held block is released.
    pub(super) fn next_markdown_deadline(&self) -> Option<UnixMillis> {
        self.markdown_deadlines().flatten().min()
    }

    /// Returns the latest code block from any agent, or the code block with this number.
    pub fn read_code(&self, number: Option<u32>) -> Announcement {
        let Some(code) = self.code_blocks.get(number) else {
            let text = match number {
                Some(number) => self.phrases.no_such_code(number),
                None => self.phrases.no_code.to_owned(),
            };
            return Announcement::new(AnnouncementKind::Status, text);
        };
        let mut lines: Vec<_> = code.text.lines().map(code_line).collect();
        lines.retain(|line| !line.is_empty());
        if code.was_cut {
            lines.push(self.phrases.code_was_cut.to_owned());
        }
        Announcement::new(AnnouncementKind::Agent, lines.join("\n"))
    }

    fn markdown_deadlines(&self) -> impl Iterator<Item = Option<UnixMillis>> {
        let hold_ms = i64::try_from(self.limits.markdown_hold.as_millis()).unwrap_or(i64::MAX);
        self.markdown_outputs.iter().map(move |output| Some(output.held_since?.saturating_add(hold_ms)))
    }

    fn push_markdown(&mut self, event: &mut Event, now: UnixMillis) {
        let is_critical = event.envelope.urgency == Some(Urgency::Critical);
        let Payload::OutputStreaming(chunk) = &event.payload else { return };
        let index = self.markdown_output_index(event, chunk);
        let Some(output) = self.markdown_outputs.get_mut(index) else { return };
        let (phrases, code_blocks) = (self.phrases, &mut self.code_blocks);
        let mut text = output.stream.push(&chunk.chunk, phrases, code_blocks);
        let hint = chunk
            .coalesce_hint
            .clone()
            .filter(|hint| matches!(hint, CoalesceHint::Sentence | CoalesceHint::Paragraph));
        let is_complete = chunk.complete;
        if is_complete || is_critical {
            text.push_str(&output.stream.finish(phrases, code_blocks));
        } else if hint.is_some() {
            text.push_str(&output.stream.end_sentence(phrases, code_blocks));
        }
        let hint = hint.filter(|_| !output.stream.holds_block());
        output.update_held_since(now);
        output.last_event = event.clone();
        output.fill(event, text, hint);
        if let Payload::OutputStreaming(template) = &mut output.last_event.payload {
            template.complete = false;
        }
        if is_complete {
            self.markdown_outputs.remove(index);
        }
    }

    /// Returns the index of a chunk's output. Adds the output if it is new.
    fn markdown_output_index(&mut self, event: &Event, chunk: &OutputStreaming) -> usize {
        if let Some(index) = self.markdown_outputs.iter().position(|output| output.matches(event, chunk)) {
            return index;
        }
        if self.markdown_outputs.len() >= self.limits.markdown_outputs && !self.markdown_outputs.is_empty() {
            self.finish_markdown(0);
        }
        self.markdown_outputs.push(MarkdownOutput {
            session_id: event.envelope.session_id.clone(),
            agent_id: event.envelope.producer.agent_id.as_str().into(),
            output_id: chunk.output_id.clone(),
            stream: MarkdownStream::new(self.limits.markdown_hold_bytes),
            spoken_chars: chunk.position,
            held_since: None,
            last_event: event.clone(),
        });
        self.markdown_outputs.len() - 1
    }

    /// Passes on the rest of an output, and forgets the output.
    fn finish_markdown(&mut self, index: usize) {
        let mut output = self.markdown_outputs.remove(index);
        let text = output.stream.finish(self.phrases, &mut self.code_blocks);
        if !text.is_empty() {
            self.shaper.push(&Arc::new(output.held_text_event(text)));
        }
    }

    fn release_markdown(&mut self, index: usize, reason: ReleaseReason, now: UnixMillis) {
        let Some(output) = self.markdown_outputs.get_mut(index) else { return };
        let text = output.stream.release(reason, self.phrases, &mut self.code_blocks);
        // If nothing could be released, the next attempt is after another hold period.
        output.held_since = None;
        output.update_held_since(now);
        if !text.is_empty() {
            let event = output.held_text_event(text);
            self.shaper.push(&Arc::new(event));
        }
    }
}

impl MarkdownOutput {
    fn matches(&self, event: &Event, chunk: &OutputStreaming) -> bool {
        self.session_id == event.envelope.session_id
            && self.output_id == chunk.output_id
            && (self.output_id.is_some() || *self.agent_id == *event.envelope.producer.agent_id)
    }
}

/// Returns a line of code that is safe to print. Its indentation is kept up to a limit, so that spaces cannot push text to the start
/// of a screen row.
fn code_line(line: &str) -> String {
    let text = sanitize(line, true);
    let indentation = line.chars().take_while(|c| c.is_whitespace()).map(|c| if c == '\t' { 4 } else { 1 });
    let spaces = indentation.sum::<usize>().min(MAX_INDENTATION);
    if text.is_empty() { text } else { format!("{}{text}", " ".repeat(spaces)) }
}

/// Maximum number of spaces in front of a line of code.
const MAX_INDENTATION: usize = 16;
