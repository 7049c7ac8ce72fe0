//! Names for sessions, agents, questions and hand-offs, and the time of each session's last item.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use super::texts::{DocumentTexts, short_name};
use super::{LONG_WAIT_MS, LaneChange, SessionLabel, TimelineLane};
use crate::svg_text::truncate;

/// Maximum number of numbered sessions, of named agents and of tracked questions. Further sessions and
/// questions are named by their ids, and further agents are not introduced.
const MAX_TRACKED: usize = 65_536;

/// Longer names are shortened and distinguished by a hash.
const MAX_NAME_CHARS: usize = 128;

/// The names of everything in a recording. Stores hashes and shortened labels of untrusted names, so that long names use no
/// more memory than short ones.
#[derive(Default)]
pub(super) struct NameRegistry {
    hasher: RandomState,
    sessions: HashMap<SessionHash, TrackedSession>,
    /// The label of each agent, by the hashes of its session and id.
    agents: HashMap<(SessionHash, u64), String>,
    /// The agent that uses a label in a session, by the hashes of session and label.
    label_owners: HashMap<(SessionHash, u64), u64>,
    /// The questions and hand-offs, by the hash of the token.
    questions: HashMap<u64, TrackedQuestion>,
    question_count: usize,
    handoff_count: usize,
}

pub(super) struct TrackedQuestion {
    pub(super) session: SessionLabel,
    pub(super) session_hash: SessionHash,
    /// Such as `question 1`.
    pub(super) name: String,
}

/// The hash of a session's id.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SessionHash(u64);

struct TrackedSession {
    number: u32,
    first_agent: u64,
    last_offset_ms: Option<i64>,
}

impl NameRegistry {
    pub(super) fn session_hash(&self, id: &str) -> SessionHash {
        SessionHash(self.hasher.hash_one(id))
    }

    pub(super) fn is_tracked(&self, session_hash: SessionHash) -> bool {
        self.sessions.contains_key(&session_hash)
    }

    /// Returns the question or hand-off with this token.
    pub(super) fn question(&self, token: &str) -> Option<&TrackedQuestion> {
        self.questions.get(&self.hasher.hash_one(token))
    }

    /// Returns the label of the session, and starts to track it.
    pub(super) fn track_session(&mut self, id: &str, agent: &str) -> SessionLabel {
        let (hash, first_agent) = (self.session_hash(id), self.hasher.hash_one(agent));
        let number = u32::try_from(self.sessions.len()).unwrap_or(u32::MAX).saturating_add(1);
        if self.sessions.len() < MAX_TRACKED {
            self.sessions.entry(hash).or_insert(TrackedSession { number, first_agent, last_offset_ms: None });
        }
        self.label_session(id)
    }

    /// Names a session by its number, or by its id if it has no event so far.
    pub(super) fn label_session(&self, id: &str) -> SessionLabel {
        match self.sessions.get(&self.session_hash(id)) {
            Some(session) => SessionLabel(format!("session {}", session.number)),
            None => SessionLabel(format!("session {}", short_name(id))),
        }
    }

    /// Stores the time of a session's item. Returns the time since the previous one, if it is a long wait.
    pub(super) fn note_time(&mut self, session_hash: SessionHash, offset_ms: Option<i64>) -> Option<i64> {
        let session = self.sessions.get_mut(&session_hash)?;
        let previous = session.last_offset_ms.replace(offset_ms.or(session.last_offset_ms)?);
        Some(offset_ms?.saturating_sub(previous?)).filter(|wait| *wait >= LONG_WAIT_MS)
    }

    /// Returns the agent's label in this session, and its name with its id if this is its first event.
    pub(super) fn label_agent(
        &mut self,
        session_hash: SessionHash,
        agent_id: &str,
        texts: DocumentTexts<'_>,
    ) -> (String, Option<String>) {
        let agent_hash = self.hasher.hash_one(agent_id);
        if let Some(label) = self.agents.get(&(session_hash, agent_hash)) {
            return (label.clone(), None);
        }
        let id = quote_if_ambiguous(short_name(agent_id));
        let id = if id.is_empty() { "unknown agent".to_owned() } else { id };
        let name =
            texts.object("producer").text("agent_name").map(|name| quote_if_ambiguous(short_name(&name)));
        let full_name = match &name {
            Some(name) if *name != id => format!("{name} ({id})"),
            _ => id.clone(),
        };
        // Two agents with the same name must not share a lane.
        let mut label = name.unwrap_or(id);
        let label_hash = self.hasher.hash_one(&label);
        if self.label_owners.get(&(session_hash, label_hash)).is_some_and(|owner| *owner != agent_hash) {
            label.clone_from(&full_name);
        }
        if self.agents.len() >= MAX_TRACKED {
            return (label, None);
        }
        self.label_owners.entry((session_hash, self.hasher.hash_one(&label))).or_insert(agent_hash);
        self.agents.insert((session_hash, agent_hash), label.clone());
        (label, Some(full_name))
    }

    pub(super) fn is_first_agent(&self, session_hash: SessionHash, agent_id: &str) -> bool {
        let hash = self.hasher.hash_one(agent_id);
        self.sessions.get(&session_hash).is_none_or(|session| session.first_agent == hash)
    }

    /// Returns a unique name of bounded length.
    pub(super) fn short_key(&self, text: &str) -> String {
        if text.len() <= MAX_NAME_CHARS {
            return text.to_owned();
        }
        format!("{} {:x}", truncate(text, MAX_NAME_CHARS), self.hasher.hash_one(text))
    }

    /// Numbers a new question or hand-off. Returns its name.
    pub(super) fn name_question(
        &mut self,
        lane: TimelineLane,
        change: LaneChange,
        token: &str,
        session: &SessionLabel,
        session_hash: SessionHash,
    ) -> Option<String> {
        let (noun, count) = match (lane, change) {
            (TimelineLane::Question, _) => ("question", &mut self.question_count),
            (TimelineLane::Handoff, LaneChange::Begins) => ("hand-off", &mut self.handoff_count),
            _ => return None,
        };
        let hash = self.hasher.hash_one(token);
        if self.questions.len() < MAX_TRACKED && !self.questions.contains_key(&hash) {
            *count += 1;
            let name = format!("{noun} {count}");
            self.questions.insert(hash, TrackedQuestion { session: session.clone(), session_hash, name });
        }
        Some(self.question_label(token))
    }

    /// Names a question or hand-off by its number. One that was not asked in this recording is called a question, and named by its token.
    pub(super) fn question_label(&self, token: &str) -> String {
        match self.question(token) {
            Some(question) => question.name.clone(),
            None => format!("question {}", short_name(token)),
        }
    }
}

/// Quotes a name that could be taken for another part of the line, such as `rule broken: …`.
fn quote_if_ambiguous(name: String) -> String {
    if name.contains([',', ':', '“', '”']) { format!("“{name}”") } else { name }
}
