//! The core of a listener: events go in, announcements and questions come out.
//!
//! - `agent_identity`: who an agent is, and whether its name is confirmed.
//! - `announce`: decides what to announce about each event, and when; `wording`: composes the sentences.
//! - `question`: open questions; `question_call`: the call that a question is about; `call_text`: its texts and numbers;
//!   `answer`: replies to questions; `deadline_notices`: the hub's notices about deadlines.
//! - `markdown_output`: makes outputs in Markdown speakable.
//! - `observed_session`: the state of one session, and which part of its outputs was received.
//! - `session_facts`: what agents say about their sessions, for `details` and `tools`; `held_output`: text that waits for its summary.
//! - `gap_recovery`: handles a lost connection and the recovery after it.
//! - `handoff`: hand-offs, and how the person takes over.
//! - `hub_trust`: whether the hub's manifest is trusted; `flood_detector`: detects producers that exceed the agreed rate.

mod agent_identity;
mod announce;
mod answer;
mod call_text;
mod deadline_notices;
mod flood_detector;
mod gap_recovery;
mod handoff;
mod held_output;
mod hub_trust;
mod markdown_output;
mod observed_session;
mod question;
mod question_call;
mod session_facts;
#[cfg(test)]
mod tests;
mod wording;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use aaep::event::{Event, Payload, Verbosity};
use aaep::json::{JsonKind, JsonValue, Tape};
use aaep::message::{Boundary, EventFilters, Message};
use aaep::shaping::{self, Shaper, ShapingTerms};
use aaep::{SessionId, SubscriptionId};
use seal::UnixMillis;

use agent_identity::{AgentIdentity, VerifiedManifest};
pub use answer::AnswerError;
pub use handoff::ListenerHandoff;
pub use observed_session::ObservedSession;
pub use question::{ListenerQuestion, QuestionBody};
pub use question_call::QuestionCall;

use crate::markdown::CodeBlockStore;
use crate::{
    Announcement, AnnouncementKind, EmojiMode, ManifestStatus, MarkdownMode, Phrases, RecentIds,
    SubscriberLimits, sanitize,
};
use flood_detector::FloodDetector;
use markdown_output::MarkdownOutput;

seal::defaults! {
    /// A person's preferences.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Preferences {
        /// How much to announce.
        pub verbosity: Verbosity = Verbosity::Normal,
        /// Languages, the preferred one first.
        pub languages: Vec<String> = vec!["en".to_owned()],
        /// Maximum number of events per second. The subscriber enforces it if the producer does not.
        pub max_events_per_second: Option<u64> = None,
        /// How long a question must be open before an answer that does not name it counts.
        pub answer_grace: Duration = ANSWER_GRACE,
        /// Which outputs are read as Markdown.
        pub markdown: MarkdownMode = MarkdownMode::Labelled,
        /// What is announced for emoji in outputs.
        pub emoji: EmojiMode = EmojiMode::Keep,
    }
}

/// Default of [`Preferences::answer_grace`]. An answer that arrives earlier was probably meant for what was heard before.
pub const ANSWER_GRACE: Duration = Duration::from_secs(1);

/// Receives events and messages and produces announcements for a person. It announces each event once.
///
/// Pass everything that arrives to [`receive`](Self::receive), in order, then drain
/// [`next_announcement`](Self::next_announcement). Drain it again when [`next_deadline`](Self::next_deadline) has passed. A call
/// that is early, late or repeated does no harm.
///
/// ```
/// use aaep::UnixMillis;
/// use listen::{Subscriber, SubscriberLimits, Preferences};
/// let now = UnixMillis::new(0);
/// let mut subscriber = Subscriber::new(Preferences::default(), SubscriberLimits::default());
/// subscriber.receive(r#"{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.tool.invoked",
///   "event_id":"evt_1","session_id":"sess_1","timestamp":"2026-05-24T14:22:11.342Z",
///   "producer":{"agent_id":"bank"},"tool":"fetch_balance","summary_normal":"Looking up the balance."}"#, now);
/// let announcement = subscriber.next_announcement(now).unwrap();
/// assert_eq!(announcement.lines().collect::<Vec<_>>(), ["tool: Looking up the balance."]);
/// assert!(subscriber.next_announcement(now).is_none());
/// ```
#[derive(Debug)]
pub struct Subscriber {
    preferences: Preferences,
    /// sayso's own texts in the person's language.
    phrases: &'static Phrases,
    limits: SubscriberLimits,
    shaper: Shaper<Event>,
    seen_event_ids: RecentIds,
    sessions: Vec<ObservedSession>,
    last_session_number: u32,
    /// The open hand-offs with the rank of their urgency, in the order in which they are listed.
    handoffs: Vec<(usize, ListenerHandoff)>,
    last_handoff_number: u32,
    /// Whether the hub lets the person take over from agents.
    takes_handoffs: bool,
    questions: Vec<ListenerQuestion>,
    last_question_number: u32,
    /// Reply tokens of closed questions.
    closed_reply_tokens: RecentIds,
    /// Extended deadlines that arrived before their questions.
    early_deadlines: VecDeque<(String, UnixMillis)>,
    /// When a question was last closed for a reason other than this person's answer.
    last_unexpected_close: Option<UnixMillis>,
    /// The question that an answer without a number is for, and since when.
    answer_target: Option<(u32, UnixMillis)>,
    subscription_id: Option<SubscriptionId>,
    /// Whether a hub wrote `extensions.sayso`. A producer without a hub could write anything into it.
    has_hub: bool,
    /// The result of checking the hub's manifest, if it was checked.
    manifest_status: Option<ManifestStatus>,
    flood_detector: FloodDetector,
    /// Whether this is a recording, whose questions cannot be answered.
    is_replay: bool,
    /// The session of the latest announcement.
    last_announced_session: Option<SessionId>,
    pending_announcements: VecDeque<Announcement>,
    /// Unfinished outputs in Markdown.
    markdown_outputs: Vec<MarkdownOutput>,
    /// Code from outputs, which is read on request.
    code_blocks: CodeBlockStore,
}

/// How long after its deadline a question is closed if the producer does not report its outcome, in milliseconds.
const OVERDUE_GRACE_MS: i64 = 5000;

impl Subscriber {
    /// Creates a subscriber that has received nothing.
    pub fn new(preferences: Preferences, limits: SubscriberLimits) -> Self {
        let shaper =
            Shaper::new(Arc::new(shaper_terms(&preferences)), shaping::ShaperLimits::default()).trust_hints();
        Self {
            shaper,
            seen_event_ids: RecentIds::new(limits.event_ids),
            closed_reply_tokens: RecentIds::new(limits.event_ids),
            phrases: Phrases::for_languages(&preferences.languages),
            preferences,
            limits,
            sessions: Vec::new(),
            last_session_number: 0,
            handoffs: Vec::new(),
            last_handoff_number: 0,
            takes_handoffs: false,
            questions: Vec::new(),
            last_question_number: 0,
            early_deadlines: VecDeque::new(),
            last_unexpected_close: None,
            answer_target: None,
            subscription_id: None,
            has_hub: true,
            manifest_status: None,
            flood_detector: FloodDetector::default(),
            is_replay: false,
            last_announced_session: None,
            pending_announcements: VecDeque::new(),
            markdown_outputs: Vec::new(),
            code_blocks: CodeBlockStore::new(limits.code_blocks, limits.code_block_bytes),
        }
    }

    /// Switches to replay of a recording: questions are announced as past, with their recorded answers. The caller passes the
    /// recording's time.
    #[must_use]
    pub fn for_replay(mut self) -> Self {
        self.is_replay = true;
        self
    }

    /// Returns the person's preferences.
    pub fn preferences(&self) -> &Preferences {
        &self.preferences
    }

    /// Sets preferences for everything that arrives from now on.
    pub fn set_preferences(&mut self, preferences: Preferences) {
        self.shaper.renegotiate(Arc::new(shaper_terms(&preferences)));
        self.phrases = Phrases::for_languages(&preferences.languages);
        if preferences.verbosity != Verbosity::Terse {
            self.release_outputs(|_| true);
        }
        self.preferences = preferences;
        self.flood_detector.restart_with_grace();
    }

    /// Returns sayso's own texts in the person's language.
    pub fn phrases(&self) -> &'static Phrases {
        self.phrases
    }

    /// Sets the subscription. Replies contain its id.
    pub fn set_subscription(&mut self, subscription: SubscriptionId) {
        self.subscription_id = Some(subscription);
        self.flood_detector.restart_with_grace();
    }

    /// Sets whether there is a hub. Without one, only a verified manifest confirms an agent's name, and no answer is bound to
    /// a call.
    pub fn set_has_hub(&mut self, has_hub: bool) {
        self.has_hub = has_hub;
    }

    /// Returns the sessions that have not ended, in order of their first event.
    pub fn sessions(&self) -> impl Iterator<Item = &ObservedSession> {
        self.sessions.iter().filter(|session| !session.is_ended)
    }

    /// Returns the number of the session that a session is a part of, if both are known and the parent has not ended.
    pub fn parent_number(&self, id: &SessionId) -> Option<u32> {
        let parent = self.sessions.iter().find(|session| session.id == *id)?.parent.as_ref()?;
        self.sessions().find(|session| session.id == *parent).map(|session| session.number)
    }

    /// Whether a session has ended.
    pub fn has_ended(&self, id: &SessionId) -> bool {
        self.sessions.iter().any(|session| session.id == *id && session.is_ended)
    }

    /// Returns the open questions, the oldest first.
    pub fn questions(&self) -> impl Iterator<Item = &ListenerQuestion> {
        self.questions.iter()
    }

    /// Receives one event or message as JSON.
    pub fn receive(&mut self, text: &str, now: UnixMillis) {
        let mut tape = Tape::default();
        let Some(doc) = tape.read(text).ok().filter(|doc| doc.root().kind() == JsonKind::Object) else {
            return self
                .announce(Announcement::new(AnnouncementKind::Error, self.phrases.unreadable_message));
        };
        let kind = doc.root().member("type").and_then(|kind| kind.text()).unwrap_or_default();
        if let Some(event) = Event::read(&doc) {
            self.receive_event(event, now);
        } else if kind == "sayso:gap" {
            self.begin_gap_recovery(now);
            self.announce(Announcement::new(AnnouncementKind::Notice, self.phrases.gap));
        } else if let Some(message) = Message::parse(text) {
            self.receive_message(&message);
        } else {
            let kind =
                if kind.is_empty() { self.phrases.unknown_type.to_owned() } else { sanitize(&kind, true) };
            let text = self.phrases.unreadable_event_type(&kind);
            self.announce(Announcement::new(AnnouncementKind::Error, text));
        }
    }

    /// Returns the next announcement. Call it until it returns `None`.
    pub fn next_announcement(&mut self, now: UnixMillis) -> Option<Announcement> {
        if self.pending_announcements.is_empty() {
            self.release_overdue_markdown(now);
            self.drain_shaper(now);
            self.announce_due(now);
        }
        let mut next = self.pending_announcements.pop_front()?;
        self.prefix_session(&mut next, now);
        Some(next)
    }

    /// Returns when the next announcement may be due, if nothing arrives before.
    pub fn next_deadline(&self) -> Option<UnixMillis> {
        if !self.pending_announcements.is_empty() {
            return Some(UnixMillis::MIN);
        }
        let held = self.sessions.iter().flat_map(|session| {
            let held = session.held_state.iter().chain(&session.held_progress).map(|(due, _)| *due);
            held.chain(session.stale_at).chain(session.held_output.due_at())
        });
        let questions = self.questions.iter().flat_map(|question| {
            question
                .reminders
                .first()
                .copied()
                .into_iter()
                .chain(question.stale_at)
                .chain(question.more_time_reply_due)
                .chain(question.more_time_notice_due)
                .chain([question.deadline.saturating_add(OVERDUE_GRACE_MS)])
        });
        held.chain(questions).chain(self.shaper.next_deadline()).chain(self.next_markdown_deadline()).min()
    }

    fn announce(&mut self, announcement: Announcement) {
        self.pending_announcements.push_back(announcement);
    }

    /// Puts the agent's name in front of the text if several sessions are active and the last announcement was about another one. The
    /// session's number is added if several agents have the same name. Questions and their outcomes need neither, because they have numbers.
    /// If the speaker has changed since the last announcement about this session, puts the agent's name in front.
    fn prefix_session(&mut self, next: &mut Announcement, now: UnixMillis) {
        let Some(id) = &next.session_id else { return };
        let mut names_agent = false;
        if let Some(session) = self.sessions.iter_mut().find(|session| session.id == *id) {
            session.last_announced_at = now;
            if let Some(speaker) = &next.agent_id
                && *speaker != session.last_speaker
            {
                session.last_speaker.clone_from(speaker);
                let label = session.speaker_label(speaker);
                if !next.text.to_string().contains(label) {
                    next.text.prepend(&format!("{label}: "));
                }
                names_agent = true;
            }
        }
        let has_others = self.sessions.iter().any(|session| !session.is_ended && session.id != *id);
        let has_number = matches!(next.kind, AnnouncementKind::Ask | AnnouncementKind::Answer);
        if has_others
            && !has_number
            && self.last_announced_session.as_ref() != Some(id)
            && let Some(session) = self.sessions.iter().find(|session| session.id == *id)
        {
            let (phrases, agent, number) = (self.phrases, &session.agent_name, session.number);
            names_agent |= next.text.is_said_by_sayso(agent);
            let is_ambiguous = self.sessions().any(|other| other.id != *id && other.agent_name == *agent);
            let says_number = next.text.is_said_by_sayso(&phrases.session_started_as(agent, number));
            let prefix = match (names_agent, is_ambiguous && !says_number) {
                (true, false) => String::new(),
                (false, false) => format!("{agent}:"),
                (true, true) => phrases.in_session(number),
                (false, true) => phrases.agent_in_session(agent, number),
            };
            if !prefix.is_empty() {
                // A name could look like the label of a line.
                next.text.prepend(&format!("{} ", sanitize(&prefix, true)));
            }
        }
        self.last_announced_session = Some(id.clone());
    }

    fn receive_message(&mut self, message: &Message) {
        if self.is_replay {
            return self.receive_recorded_reply(message);
        }
        if let Message::SubscriptionClose(close) = message {
            let text = match close.reason_code.as_deref() {
                Some("slow_consumer") => self.phrases.hub_closed_slow_consumer.to_owned(),
                Some("producer_shutdown") => self.phrases.hub_shutting_down.to_owned(),
                Some("replaced") => self.phrases.hub_replaced_connection.to_owned(),
                Some("token_removed") => self.phrases.hub_revoked_token.to_owned(),
                Some(other) => self.phrases.hub_ended_subscription_because(&sanitize(other, true)),
                None => self.phrases.hub_ended_subscription.to_owned(),
            };
            self.announce(Announcement::new(AnnouncementKind::Notice, text));
        }
    }

    fn receive_event(&mut self, mut event: Event, now: UnixMillis) {
        self.clear_stale(&event);
        if !self.seen_event_ids.insert(event.envelope.event_id.as_str()) {
            return;
        }
        self.check_rate(&event, now);
        let identity = self.identify_agent(&event);
        let index = self.session_index(&event, identity, now);
        let agent_id = event.envelope.producer.agent_id.clone();
        let max_outputs = self.limits.outputs_per_session;
        let mut is_out_of_order = false;
        let mut text_is_missing = false;
        let manifest = Some(&event).filter(|_| self.has_hub).and_then(VerifiedManifest::read);
        if let Some(session) = self.sessions.get_mut(index) {
            session.last_event_at = now;
            session.manifest = manifest.or(session.manifest.take());
            if let Some(number) = event.envelope.sequence_number {
                let is_earlier = session.last_sequence_number.is_some_and(|latest| number <= latest);
                is_out_of_order = is_earlier && !session.disorder_reported;
                session.disorder_reported |= is_earlier;
                session.last_sequence_number = session.last_sequence_number.max(Some(number));
            }
            if let Payload::OutputStreaming(chunk) = &mut event.payload {
                let (repeated_bytes, is_after_gap) = session.track_chunk(&agent_id, chunk, max_outputs);
                text_is_missing = is_after_gap;
                if is_after_gap {
                    session.gap_position = Some(chunk.position);
                }
                if repeated_bytes > 0 {
                    // Moves the position by the number of removed characters.
                    chunk.position += u64::try_from(chunk.chunk.chars().count()).unwrap_or(0);
                    chunk.chunk.drain(..repeated_bytes);
                    chunk.position -= u64::try_from(chunk.chunk.chars().count()).unwrap_or(0);
                }
            }
        }
        if is_out_of_order {
            self.announce_notice(&event, self.phrases.out_of_order);
        }
        if self.handle_deadline_notice(&event, now) {
            return;
        }
        self.make_speakable(&mut event, text_is_missing, now);
        self.shaper.push(&Arc::new(event));
        self.drain_shaper(now);
    }

    /// Marks the event's session and question as still active, because the producer reports them.
    fn clear_stale(&mut self, event: &Event) {
        if let Some(session) = self.session_mut(&event.envelope.session_id) {
            session.stale_at = None;
        }
        let token = match &event.payload {
            Payload::AwaitingConfirmation(request) => &request.reply_token,
            Payload::AwaitingClarification(request) => &request.reply_token,
            _ => return,
        };
        if let Some(question) = self.questions.iter_mut().find(|question| question.reply_token == *token) {
            question.stale_at = None;
        }
    }

    fn announce_notice(&mut self, event: &Event, text: &str) {
        let mut notice = Announcement::new(AnnouncementKind::Notice, text);
        notice.session_id = Some(event.envelope.session_id.clone());
        self.announce(notice);
    }

    /// Announces every event that the shaper releases.
    fn drain_shaper(&mut self, now: UnixMillis) {
        while let Some(shaped) = self.shaper.pull(now) {
            let event = shaped.event();
            if let Payload::OutputStreaming(chunk) = &event.payload
                && let Cow::Owned(text) = self.preferences.emoji.apply(&chunk.chunk, self.phrases)
            {
                let mut event = event.clone();
                if let Payload::OutputStreaming(chunk) = &mut event.payload {
                    chunk.chunk = text;
                }
                self.announce_event(&event, now);
            } else {
                self.announce_event(event, now);
            }
        }
    }

    /// Returns the index of the event's session. Adds the session if it is new.
    fn session_index(&mut self, event: &Event, identity: AgentIdentity, now: UnixMillis) -> usize {
        let id = &event.envelope.session_id;
        if let Some(index) = self.sessions.iter().position(|session| session.id == *id) {
            let label = identity.label(self.phrases);
            let Some(session) = self.sessions.get_mut(index) else { return index };
            if !identity.is_main() {
                session.set_speaker(identity.id(), label);
            } else if identity.is_verified {
                session.agent_name = label;
                session.identity = identity;
            }
            return index;
        }
        if self.sessions.len() >= self.limits.sessions {
            let has_question =
                |id: &SessionId| self.questions.iter().any(|question| question.session_id == *id);
            let oldest = (0..self.sessions.len())
                .filter_map(|index| self.sessions.get(index).map(|session| (index, session)))
                .min_by_key(|(_, session)| {
                    (!session.is_ended, has_question(&session.id), session.last_event_at)
                });
            if let Some((index, _)) = oldest {
                let forgotten = self.sessions.remove(index).held_output.take();
                self.pending_announcements.extend(forgotten);
            }
        }
        self.last_session_number += 1;
        let main = identity.main_producer_identity();
        let label = main.label(self.phrases);
        let mut session = ObservedSession::new(self.last_session_number, event, label, main, now);
        if !identity.is_main() {
            session.set_speaker(identity.id(), identity.label(self.phrases));
        }
        self.sessions.push(session);
        self.sessions.len() - 1
    }

    fn session_mut(&mut self, id: &SessionId) -> Option<&mut ObservedSession> {
        self.sessions.iter_mut().find(|session| session.id == *id)
    }
}

/// Reads texts from `extensions.sayso`, which only the hub can set (decision 15).
fn hub_extension_texts<const N: usize>(event: &Event, names: [&str; N]) -> [Option<String>; N] {
    let read = |sayso: &JsonValue<'_>| Some(names.map(|name| Some(sayso.member(name)?.text()?.into_owned())));
    read_hub_extension(event, read).unwrap_or([const { None }; N])
}

/// Reads `extensions.sayso`, if the event has it.
fn read_hub_extension<T>(event: &Event, read: impl FnOnce(&JsonValue<'_>) -> Option<T>) -> Option<T> {
    let mut tape = Tape::default();
    let doc = tape.read(event.envelope.extensions.as_ref()?.as_str()).ok()?;
    read(&doc.root().member("sayso")?)
}

/// Returns the terms for the shaper: every event type, the person's preferences, and output in complete sentences.
fn shaper_terms(preferences: &Preferences) -> ShapingTerms {
    let mut filters = EventFilters::new();
    filters.include = Some(vec!["*".to_owned()]);
    ShapingTerms {
        verbosity: preferences.verbosity.clone(),
        languages: preferences.languages.clone(),
        boundaries: vec![Boundary::Sentence, Boundary::Completion],
        filters,
        max_events_per_second: preferences.max_events_per_second,
        answers_confirmations: true,
        answers_clarifications: true,
        ..ShapingTerms::default()
    }
}
