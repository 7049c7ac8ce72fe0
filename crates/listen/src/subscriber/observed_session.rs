//! The state of one session.

use std::collections::VecDeque;

use aaep::event::{Event, OutputStreaming};
use aaep::{OutputId, SessionId};
use seal::UnixMillis;

use super::agent_identity::{AgentIdentity, VerifiedManifest};
use super::held_output::HeldOutput;
use super::hub_extension_texts;
use super::question_call::QuestionCall;
use super::session_facts::SessionFacts;
use crate::Announcement;

/// A session that the listener observes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ObservedSession {
    /// The number by which the person refers to it. Numbers are not reused.
    pub number: u32,
    /// Its id.
    pub id: SessionId,
    /// The agent's display name, with its id if nobody confirms the name.
    pub agent_name: String,
    /// The latest activity of the agent, as text.
    pub activity: String,
    /// The start of the first text about the task, without a full stop. Empty if there was none.
    pub topic: String,
    /// The session that this one is a part of.
    pub parent: Option<SessionId>,
    /// Who the agent is. A verified identity replaces an unverified one.
    pub(super) identity: AgentIdentity,
    /// The agent's manifest, if the hub has verified it.
    pub(super) manifest: Option<VerifiedManifest>,
    /// The labels of the other agents that speak in the session, by id.
    speakers: VecDeque<(Box<str>, String)>,
    /// The id of the agent that spoke last in an announcement.
    pub(super) last_speaker: Box<str>,
    pub(super) is_ended: bool,
    /// Whether the person has stopped it. If so, changes of its state are not announced.
    pub(super) is_stopping: bool,
    /// The call that the person has just accepted, after hearing that it cannot be undone.
    pub(super) accepted_call: Option<QuestionCall>,
    /// When the session counts as ended, unless one of its events arrives first.
    pub(super) stale_at: Option<UnixMillis>,
    pub(super) last_event_at: UnixMillis,
    /// When something about it was last announced.
    pub(super) last_announced_at: UnixMillis,
    /// The highest sequence number received.
    pub(super) last_sequence_number: Option<u64>,
    pub(super) disorder_reported: bool,
    /// The position in an output where text resumes after a gap.
    pub(super) gap_position: Option<u64>,
    /// A state that will be announced if it lasts.
    pub(super) held_state: Option<(UnixMillis, Announcement)>,
    /// Recently announced texts about states.
    pub(super) recent_states: VecDeque<(UnixMillis, String)>,
    pub(super) held_progress: Option<(UnixMillis, Announcement)>,
    pub(super) last_progress: Option<(UnixMillis, String)>,
    outputs: VecDeque<OutputCursor>,
    /// Facts from the agent's events that are not announced; `details` and `tools` read them.
    pub(super) facts: SessionFacts,
    /// Whether text of an output was received.
    pub(super) has_output: bool,
    /// Output text held back in case the agent summarizes it.
    pub(super) held_output: HeldOutput,
}

impl ObservedSession {
    pub(super) fn new(
        number: u32,
        event: &Event,
        agent_name: String,
        identity: AgentIdentity,
        now: UnixMillis,
    ) -> Self {
        let [parent] = hub_extension_texts(event, ["parent_session_id"]);
        Self {
            number,
            id: event.envelope.session_id.clone(),
            agent_name,
            activity: String::new(),
            topic: String::new(),
            parent: parent.and_then(|parent| SessionId::parse(&parent).ok()),
            speakers: VecDeque::new(),
            last_speaker: identity.id().into(),
            identity,
            manifest: None,
            is_ended: false,
            is_stopping: false,
            accepted_call: None,
            stale_at: None,
            last_event_at: now,
            last_announced_at: now,
            last_sequence_number: None,
            disorder_reported: false,
            gap_position: None,
            held_state: None,
            recent_states: VecDeque::new(),
            held_progress: None,
            last_progress: None,
            outputs: VecDeque::new(),
            facts: SessionFacts::default(),
            has_output: false,
            held_output: HeldOutput::default(),
        }
    }

    /// Whether the session's state is known, that is, no gap is pending. After a gap, it is unknown until one of its events arrives.
    pub(crate) fn is_current(&self) -> bool {
        self.stale_at.is_none()
    }

    /// Remembers the label of an agent other than the session's own. If there are too many, the oldest one is forgotten.
    pub(super) fn set_speaker(&mut self, id: &str, label: String) {
        self.speakers.retain(|(known, _)| **known != *id);
        if self.speakers.len() >= MAX_SPEAKERS {
            self.speakers.pop_front();
        }
        self.speakers.push_back((id.into(), label));
    }

    /// Returns the label of an agent that speaks in the session.
    pub(super) fn speaker_label(&self, id: &str) -> &str {
        let known = self.speakers.iter().find(|(known, _)| **known == *id);
        known.map_or(&self.agent_name, |(_, label)| label)
    }

    /// Marks the session as ended and discards its held announcements.
    pub(super) fn end(&mut self) {
        self.is_ended = true;
        self.discard_held();
    }

    pub(super) fn discard_held(&mut self) {
        (self.held_state, self.held_progress) = (None, None);
    }

    /// Sets the topic unless it is known.
    pub(super) fn set_topic(&mut self, text: &str) {
        if self.topic.is_empty() {
            self.topic = super::wording::topic_excerpt(text);
        }
    }

    #[cfg(test)]
    pub(super) fn output_count(&self) -> usize {
        self.outputs.len()
    }

    /// Records a chunk. Returns how many of its bytes were already received, and whether text before it is missing.
    pub(super) fn track_chunk(
        &mut self,
        agent: &str,
        chunk: &OutputStreaming,
        limit: usize,
    ) -> (usize, bool) {
        let known = self.outputs.iter().position(|output| {
            output.id == chunk.output_id && (output.id.is_some() || *output.agent == *agent)
        });
        let index = known.unwrap_or_else(|| {
            if self.outputs.len() >= limit {
                self.outputs.pop_front();
            }
            self.outputs.push_back(OutputCursor::new(agent, chunk));
            self.outputs.len() - 1
        });
        let Some(output) = self.outputs.get_mut(index) else { return (0, false) };
        let is_after_gap = chunk.position > output.next_position && !output.gap_reported;
        output.gap_reported |= is_after_gap;
        let repeated = output.repeated_bytes(chunk);
        output.advance(chunk, repeated);
        if chunk.complete && chunk.output_id.is_none() {
            self.outputs.remove(index);
        }
        (repeated, is_after_gap)
    }
}

/// Maximum number of agents other than the session's own whose labels are remembered.
const MAX_SPEAKERS: usize = 64;

/// Tracks which part of an output was received.
#[derive(Clone, Debug)]
struct OutputCursor {
    id: Option<OutputId>,
    agent: Box<str>,
    /// The next expected position, in code points.
    next_position: u64,
    /// The end of the received text.
    tail: String,
    /// Whether the gap was announced.
    gap_reported: bool,
}

/// Maximum number of bytes stored from the end of an output, to detect repeated text. It equals the maximum size of a chunk.
const MAX_TAIL_BYTES: usize = 16_384;

impl OutputCursor {
    fn new(agent: &str, chunk: &OutputStreaming) -> Self {
        // A late joiner is informed about the missing start by the session's catch-up, so it is not reported as a gap.
        Self {
            id: chunk.output_id.clone(),
            agent: agent.into(),
            next_position: chunk.position,
            tail: String::new(),
            gap_reported: false,
        }
    }

    /// Returns how many bytes of a chunk were already received. Position and text must both match, because the position alone could
    /// be wrong.
    fn repeated_bytes(&self, chunk: &OutputStreaming) -> usize {
        let Some(overlap) = self.next_position.checked_sub(chunk.position).filter(|overlap| *overlap > 0)
        else {
            return 0;
        };
        let overlap = usize::try_from(overlap).unwrap_or(usize::MAX);
        let bytes = chunk.chunk.char_indices().nth(overlap).map_or(chunk.chunk.len(), |(at, _)| at);
        let (repeated, _) = chunk.chunk.split_at(bytes);
        let tail_at = self.tail.char_indices().rev().nth(overlap.saturating_sub(1)).map(|(at, _)| at);
        let received = tail_at.and_then(|at| self.tail.get(at..));
        if received.is_some_and(|received| received.starts_with(repeated)) { bytes } else { 0 }
    }

    fn advance(&mut self, chunk: &OutputStreaming, repeated: usize) {
        let new = chunk.chunk.get(repeated..).unwrap_or_default();
        let end =
            chunk.position.saturating_add(u64::try_from(chunk.chunk.chars().count()).unwrap_or(u64::MAX));
        if repeated == 0 && chunk.position != self.next_position {
            self.tail.clear();
        }
        self.tail.push_str(new);
        if self.tail.len() > MAX_TAIL_BYTES {
            let from = self.tail.ceil_char_boundary(self.tail.len() - MAX_TAIL_BYTES);
            self.tail.drain(..from);
        }
        self.next_position = if repeated > 0 { self.next_position.max(end) } else { end };
    }
}
