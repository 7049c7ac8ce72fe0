//! What is known of one session.

use std::collections::VecDeque;

use aaep::event::{Event, OutputStreaming};
use aaep::{OutputId, SessionId};
use seal::UnixMillis;

use crate::{Announcement, Phrases};

/// A session that goes on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Session {
    /// By this number the person names it. It is given once and never again.
    pub number: u32,
    /// Its id.
    pub id: SessionId,
    /// The agent's name for people.
    pub agent: String,
    /// What it is doing, in words.
    pub doing: String,
    /// The beginning of what was said first of what it is about, without a stop; nothing where that was not heard.
    pub about: String,
    pub(super) ended: bool,
    /// The person has stopped it: what it does until it ends is of no interest.
    pub(super) stopping: bool,
    /// Unless it is heard of by then, it is over.
    pub(super) unsure: Option<UnixMillis>,
    pub(super) heard: UnixMillis,
    /// When something of it was last said.
    pub(super) spoke: UnixMillis,
    /// The latest sequence number.
    pub(super) sequence: Option<u64>,
    pub(super) told_disorder: bool,
    /// In front of this place of an output, something did not arrive.
    pub(super) missing_at: Option<u64>,
    /// A change of state that is said if it lasts.
    pub(super) held_state: Option<(UnixMillis, Announcement)>,
    /// What was said of states lately.
    pub(super) said_states: VecDeque<(UnixMillis, String)>,
    pub(super) held_progress: Option<(UnixMillis, Announcement)>,
    pub(super) said_progress: Option<(UnixMillis, String)>,
    outputs: VecDeque<Output>,
}

impl Session {
    pub(super) fn new(phrases: &Phrases, number: u32, event: &Event, now: UnixMillis) -> Self {
        Self {
            number,
            id: event.envelope.session_id.clone(),
            agent: super::words::agent(phrases, event),
            doing: String::new(),
            about: String::new(),
            ended: false,
            stopping: false,
            unsure: None,
            heard: now,
            spoke: now,
            sequence: None,
            told_disorder: false,
            missing_at: None,
            held_state: None,
            said_states: VecDeque::new(),
            held_progress: None,
            said_progress: None,
            outputs: VecDeque::new(),
        }
    }

    /// It is over, and what is held of it is not said any more.
    pub(super) fn end(&mut self) {
        self.ended = true;
        self.hold_nothing();
    }

    pub(super) fn hold_nothing(&mut self) {
        (self.held_state, self.held_progress) = (None, None);
    }

    /// Notes what it is about, unless that is known.
    pub(super) fn is_about(&mut self, text: &str) {
        if self.about.is_empty() {
            self.about = super::words::beginning(text);
        }
    }

    #[cfg(test)]
    pub(super) fn outputs(&self) -> usize {
        self.outputs.len()
    }

    /// What of a chunk was not heard before; whether something in front of it was never heard.
    pub(super) fn fresh(&mut self, agent: &str, chunk: &OutputStreaming, limit: usize) -> (usize, bool) {
        let known = self.outputs.iter().position(|output| {
            output.id == chunk.output_id && (output.id.is_some() || *output.agent == *agent)
        });
        let at = known.unwrap_or_else(|| {
            if self.outputs.len() >= limit {
                self.outputs.pop_front();
            }
            self.outputs.push_back(Output::new(agent, chunk));
            self.outputs.len() - 1
        });
        let Some(output) = self.outputs.get_mut(at) else { return (0, false) };
        let missing = chunk.position > output.heard && !output.told;
        output.told |= missing;
        let repeated = output.repeated(chunk);
        output.take(chunk, repeated);
        if chunk.complete && chunk.output_id.is_none() {
            self.outputs.remove(at);
        }
        (repeated, missing)
    }
}

/// How far an output was heard.
#[derive(Clone, Debug)]
struct Output {
    id: Option<OutputId>,
    agent: Box<str>,
    /// Up to which code point.
    heard: u64,
    /// The end of what was heard.
    tail: String,
    /// That something is missing was said.
    told: bool,
}

/// So much of an output's end is kept, to know again what comes twice: as much as a chunk may be.
const TAIL: usize = 16_384;

impl Output {
    fn new(agent: &str, chunk: &OutputStreaming) -> Self {
        // Who joins in the middle is told so by the session's catch-up, not by a gap here.
        Self {
            id: chunk.output_id.clone(),
            agent: agent.into(),
            heard: chunk.position,
            tail: String::new(),
            told: false,
        }
    }

    /// How many bytes of a chunk are what was heard already: same place, same words. A producer that only says that it is
    /// the same place is not believed.
    fn repeated(&self, chunk: &OutputStreaming) -> usize {
        let Some(overlap) = self.heard.checked_sub(chunk.position).filter(|overlap| *overlap > 0) else {
            return 0;
        };
        let overlap = usize::try_from(overlap).unwrap_or(usize::MAX);
        let bytes = chunk.chunk.char_indices().nth(overlap).map_or(chunk.chunk.len(), |(at, _)| at);
        let (again, _) = chunk.chunk.split_at(bytes);
        let from_end = overlap;
        let tail_at = self.tail.char_indices().rev().nth(from_end.saturating_sub(1)).map(|(at, _)| at);
        let heard = tail_at.and_then(|at| self.tail.get(at..));
        if heard.is_some_and(|heard| heard.starts_with(again)) { bytes } else { 0 }
    }

    fn take(&mut self, chunk: &OutputStreaming, repeated: usize) {
        let new = chunk.chunk.get(repeated..).unwrap_or_default();
        let end =
            chunk.position.saturating_add(u64::try_from(chunk.chunk.chars().count()).unwrap_or(u64::MAX));
        if repeated == 0 && chunk.position != self.heard {
            self.tail.clear();
        }
        self.tail.push_str(new);
        if self.tail.len() > TAIL {
            let from = self.tail.ceil_char_boundary(self.tail.len() - TAIL);
            self.tail.drain(..from);
        }
        self.heard = if repeated > 0 { self.heard.max(end) } else { end };
    }
}
