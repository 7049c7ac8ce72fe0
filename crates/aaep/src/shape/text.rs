//! The text of one output, held until it may be cut.

use std::sync::Arc;

use super::code::{self, Context};
use super::cut::{self, Found, Grain, Waiting, is_blank_line};
use super::held::{Out, count, name_text, same_voice, settle_direction};
use crate::event::{CoalesceHint, Event, OutputStreaming, Payload};
use crate::id::OutputId;
use seal::{Digest, Timestamp};

/// How text is cut for one subscription.
#[derive(Clone, Debug)]
pub(super) struct Cutter {
    pub(super) grain: Grain,
    /// Bytes in one event.
    pub(super) limit: usize,
    pub(super) sentences: bool,
    pub(super) paragraphs: bool,
    /// What a chunk's hint says of its end is believed.
    pub(super) trusts: bool,
    pub(super) key: Digest,
}

/// What is held of one output.
#[derive(Clone, Debug)]
pub(super) struct Text<T> {
    output: Option<OutputId>,
    agent: Box<str>,
    held: String,
    /// How many characters it has.
    length: u64,
    /// The position of its first character.
    position: u64,
    context: Context,
    /// Only a piece that stirs can bring a cut.
    settled: bool,
    /// The piece that begins where the held text does.
    first: Option<Arc<T>>,
    /// The latest piece, and where it begins in the held text.
    last: Arc<T>,
    last_at: Option<usize>,
    /// The place of the piece with which the held text begins, or of an earlier one.
    pub(super) since: u64,
}

/// Most sentences have fewer bytes: room for one is made when an output begins, and is not made larger while it is cut.
const USUAL: usize = 256;

impl<T: AsRef<Event>> Text<T> {
    pub(super) fn new(piece: &Arc<T>, chunk: &OutputStreaming, since: u64) -> Self {
        Self {
            output: chunk.output_id.clone(),
            agent: (**piece).as_ref().envelope.producer.agent_id.as_str().into(),
            held: String::with_capacity(USUAL),
            length: 0,
            position: chunk.position,
            context: Context::default(),
            settled: true,
            first: None,
            last: Arc::clone(piece),
            last_at: None,
            since,
        }
    }

    pub(super) fn is_of(&self, event: &Event, chunk: &OutputStreaming) -> bool {
        self.output == chunk.output_id
            && (self.output.is_some() || *self.agent == *event.envelope.producer.agent_id)
    }

    /// Whether there is nothing that would have to be remembered.
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty() && self.context.fence.is_none()
    }

    /// Whether what is held begins with the latest piece, or inside it.
    pub(super) fn begins_with_last(&self) -> bool {
        self.last_at.is_none_or(|at| at == 0)
    }

    /// The boundaries are others now: every one has to be looked for again.
    pub(super) fn unsettle(&mut self) {
        self.settled = false;
    }

    /// Takes the next chunk, and says what may leave now.
    pub(super) fn take(
        &mut self,
        piece: &Arc<T>,
        chunk: &OutputStreaming,
        cutter: &Cutter,
        leave: &mut Vec<Out<T>>,
    ) {
        let event = (**piece).as_ref();
        let time = event.envelope.timestamp;
        let expected = self.position + self.length;
        if expected != chunk.position || !same_voice((*self.last).as_ref(), event) {
            self.empty(cutter, time, leave);
            self.position = chunk.position;
        }
        self.last_at = Some(self.held.len());
        if self.held.is_empty() {
            self.first = Some(Arc::clone(piece));
        }
        self.last = Arc::clone(piece);
        self.held.push_str(&chunk.chunk);
        self.length += count(&chunk.chunk);
        if cut::stirs(&chunk.chunk, cutter.grain) {
            self.settled = false;
        }
        self.cut(chunk.complete, cutter, time, leave);
        if chunk.complete {
            leave.push(self.release(self.held.len(), CoalesceHint::Completion, true, cutter, time));
        } else if cutter.trusts
            && matches!(chunk.coalesce_hint, Some(CoalesceHint::Sentence | CoalesceHint::Paragraph))
        {
            self.empty(cutter, time, leave);
        }
    }

    /// Releases all that is held, at a boundary or not.
    pub(super) fn empty(&mut self, cutter: &Cutter, time: Timestamp, leave: &mut Vec<Out<T>>) {
        self.cut(false, cutter, time, leave);
        if !self.held.is_empty() {
            leave.push(self.release(self.held.len(), CoalesceHint::None, false, cutter, time));
        }
    }

    /// The agent has turned to something else: what is whole as it is need not wait for what comes next.
    pub(super) fn pause(&mut self, cutter: &Cutter, time: Timestamp, leave: &mut Vec<Out<T>>) {
        if !self.held.is_empty() && self.waiting(self.held.len(), false).is_whole(cutter.grain) {
            let hint = self.hint(self.held.len(), cutter);
            leave.push(self.release(self.held.len(), hint, false, cutter, time));
        }
    }

    fn waiting(&self, length: usize, ended: bool) -> Waiting<'_> {
        let event = (*self.last).as_ref();
        let language = match &event.payload {
            Payload::OutputStreaming(chunk) => chunk.language.as_deref(),
            _ => None,
        };
        let hints = event.envelope.localization_hints.as_ref();
        let language = language.or_else(|| hints?.primary_language.as_deref()).unwrap_or_default();
        Waiting {
            text: self.held.get(..length).unwrap_or(&self.held),
            context: self.context,
            language,
            ended,
        }
    }

    fn cut(&mut self, ended: bool, cutter: &Cutter, time: Timestamp, leave: &mut Vec<Out<T>>) {
        loop {
            let long = self.held.len() > cutter.limit;
            if self.settled && !long && !ended {
                return;
            }
            // What does not fit does not count, so that the cuts are the same in whichever pieces it came.
            let length = if long { self.held.floor_char_boundary(cutter.limit) } else { self.held.len() };
            let waiting = self.waiting(length, ended && !long);
            let (at, hint) = match waiting.first(cutter.grain) {
                Found::At(at) => (at, self.hint(at, cutter)),
                Found::Nothing { .. } if long => (waiting.brink(), CoalesceHint::None),
                Found::Nothing { settled } => {
                    self.settled = settled;
                    return;
                }
            };
            if at == 0 {
                // A limit that is smaller than a character.
                self.settled = true;
                return;
            }
            leave.push(self.release(at, hint, false, cutter, time));
            self.settled = false;
        }
    }

    /// The widest boundary that is reached there and wanted.
    fn hint(&self, at: usize, cutter: &Cutter) -> CoalesceHint {
        let before = &self.held[..at];
        let space = &before[before.trim_end().len()..];
        match cutter.grain {
            _ if cutter.paragraphs && is_blank_line(space) => CoalesceHint::Paragraph,
            Grain::Word if cutter.sentences && self.waiting(self.held.len(), false).ends_sentence(at) => {
                CoalesceHint::Sentence
            }
            Grain::Word => CoalesceHint::Word,
            Grain::Sentence => CoalesceHint::Sentence,
            Grain::Paragraph => CoalesceHint::Paragraph,
            Grain::Completion => CoalesceHint::None,
        }
    }

    fn release(
        &mut self,
        at: usize,
        hint: CoalesceHint,
        complete: bool,
        cutter: &Cutter,
        time: Timestamp,
    ) -> Out<T> {
        self.context = code::context_after(&self.held[..at], self.context);
        let text = &self.held[..at];
        let (position, length) = (self.position, count(text));
        self.position += length;
        self.length -= length;
        let whole = self.first.take().filter(|piece| match &(**piece).as_ref().payload {
            Payload::OutputStreaming(chunk) => {
                chunk.chunk == *text
                    && chunk.position == position
                    && chunk.complete == complete
                    && chunk.coalesce_hint.as_ref() == Some(&hint)
            }
            _ => false,
        });
        let text = if whole.is_none() { text.to_owned() } else { String::new() };
        // What is held next finds its room here.
        self.held.drain(..at);
        self.last_at = self.last_at.and_then(|last| last.checked_sub(at));
        if self.last_at == Some(0) && !self.held.is_empty() {
            self.first = Some(Arc::clone(&self.last));
        }
        if let Some(piece) = whole {
            return Out::Same(piece);
        }
        let Event { envelope, payload } = (*self.last).as_ref();
        let payload = match payload {
            Payload::OutputStreaming(last) => Payload::OutputStreaming(OutputStreaming {
                chunk: text,
                position,
                complete,
                coalesce_hint: Some(hint),
                output_id: last.output_id.clone(),
                content_type: last.content_type.clone(),
                language: last.language.clone(),
                other: last.other.clone(),
            }),
            // What is held is of outputs only.
            other => other.clone(),
        };
        let mut event = Event { envelope: envelope.clone(), payload };
        event.envelope.timestamp = time;
        settle_direction(&mut event);
        name_text(&mut event, &cutter.key);
        Out::Made(Box::new(event))
    }
}
