//! The core of a listener: events in, announcements and questions out.
//!
//! - `question`: what is open; `answer`: what the person says to it; `time`: what the hub says of its time.
//! - `track`: what is known of a session, and how far its outputs were heard.
//! - `tell`: what is said of each event, and when; `words`: the sentences.
//! - `away`: the connection is lost, and back.
//! - `standing`: who is heard, as far as that is known; `flood`: more than was agreed.

mod answer;
mod away;
mod flood;
mod question;
mod standing;
mod tell;
#[cfg(test)]
mod tests;
mod time;
mod track;
mod words;

use std::collections::VecDeque;
use std::sync::Arc;

use aaep::event::{Event, Payload, Verbosity};
use aaep::json::{Kind as JsonKind, Tape};
use aaep::message::{Boundary, EventFilters, Message};
use aaep::shape::{self, Shaper, Wants};
use aaep::{SessionId, SubscriptionId};
use seal::UnixMillis;

pub use answer::NotAnswered;
pub use question::{Question, Subject};
pub use track::Session;

use crate::{Announcement, Kind, Limits, Phrases, RecentIds, Standing, plain};
use flood::Flood;

seal::defaults! {
    /// What a person wants to hear.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Tastes {
        /// How much.
        pub verbosity: Verbosity = Verbosity::Normal,
        /// In which languages, the dearest first.
        pub languages: Vec<String> = vec!["en".to_owned()],
        /// At most so many events in a second, where the producer does not see to that.
        pub rate: Option<u64> = None,
    }
}

/// Hears events and messages, and says what a person should be told of them, each thing once.
///
/// Give it everything that comes, in the order in which it comes, with [`hear`](Self::hear); then drain
/// [`next`](Self::next). Do the same, without hearing, when [`next_deadline`](Self::next_deadline) has come. Neither calling too
/// early nor too late nor twice does harm. Time is in milliseconds since 1970.
///
/// ```
/// use aaep::UnixMillis;
/// use listen::{Ear, Limits, Tastes};
/// let now = UnixMillis::new(0);
/// let mut ear = Ear::new(Tastes::default(), Limits::default());
/// ear.hear(r#"{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.tool.invoked",
///   "event_id":"evt_1","session_id":"sess_1","timestamp":"2026-05-24T14:22:11.342Z",
///   "producer":{"agent_id":"bank"},"tool":"fetch_balance","summary_normal":"Looking up the balance."}"#, now);
/// let said = ear.next(now).unwrap();
/// assert_eq!(said.lines().collect::<Vec<_>>(), ["tool: Looking up the balance."]);
/// assert!(ear.next(now).is_none());
/// ```
#[derive(Debug)]
pub struct Ear {
    tastes: Tastes,
    /// In which sayso itself speaks.
    phrases: &'static Phrases,
    limits: Limits,
    shaper: Shaper<Event>,
    seen: RecentIds,
    sessions: Vec<Session>,
    sessions_known: u32,
    questions: Vec<Question>,
    questions_known: u32,
    /// Tokens of questions that are closed.
    closed: RecentIds,
    /// Deadlines that were told of questions before the questions themselves.
    moved: VecDeque<(String, UnixMillis)>,
    /// When a question was last closed by something else than this person's answer.
    surprised: Option<UnixMillis>,
    subscription: Option<SubscriptionId>,
    /// Who is heard, where that was looked at.
    standing: Option<Standing>,
    flood: Flood,
    /// What is heard is over: nothing of it can be answered.
    history: bool,
    /// The session of the latest announcement.
    spoke: Option<SessionId>,
    out: VecDeque<Announcement>,
}

/// After its deadline, a question is held to be over, should the producer not say so.
const OVERDUE: i64 = 5000;

impl Ear {
    /// Begins with nothing heard.
    pub fn new(tastes: Tastes, limits: Limits) -> Self {
        let shaper = Shaper::new(Arc::new(wants(&tastes)), shape::Limits::default()).trusting();
        Self {
            shaper,
            seen: RecentIds::new(limits.ids),
            closed: RecentIds::new(limits.ids),
            phrases: Phrases::of(&tastes.languages),
            tastes,
            limits,
            sessions: Vec::new(),
            sessions_known: 0,
            questions: Vec::new(),
            questions_known: 0,
            moved: VecDeque::new(),
            surprised: None,
            subscription: None,
            standing: None,
            flood: Flood::default(),
            history: false,
            spoke: None,
            out: VecDeque::new(),
        }
    }

    /// For a recording: its questions are told as what was asked, and how they were answered. Time is the recording's own.
    #[must_use]
    pub fn of_history(mut self) -> Self {
        self.history = true;
        self
    }

    /// What the person wants to hear.
    pub fn tastes(&self) -> &Tastes {
        &self.tastes
    }

    /// Takes other wishes, for all that comes from now on.
    pub fn set_tastes(&mut self, tastes: Tastes) {
        self.shaper.renegotiate(Arc::new(wants(&tastes)));
        self.phrases = Phrases::of(&tastes.languages);
        self.tastes = tastes;
        self.flood.forgive();
    }

    /// What sayso itself says to this person.
    pub fn phrases(&self) -> &'static Phrases {
        self.phrases
    }

    /// The subscription by which it is heard, and for which answers are given.
    pub fn subscribe(&mut self, subscription: SubscriptionId) {
        self.subscription = Some(subscription);
        self.flood.forgive();
    }

    /// The sessions that go on, in the order in which they were heard first.
    pub fn sessions(&self) -> impl Iterator<Item = &Session> {
        self.sessions.iter().filter(|session| !session.ended)
    }

    /// Whether a session was heard to its end.
    pub fn has_ended(&self, id: &SessionId) -> bool {
        self.sessions.iter().any(|session| session.id == *id && session.ended)
    }

    /// The questions that can be answered, the oldest first.
    pub fn questions(&self) -> impl Iterator<Item = &Question> {
        self.questions.iter()
    }

    /// Takes one event or message, as JSON.
    pub fn hear(&mut self, text: &str, now: UnixMillis) {
        let mut tape = Tape::default();
        let Some(doc) = tape.read(text).ok().filter(|doc| doc.root().kind() == JsonKind::Object) else {
            return self.say(Announcement::own(Kind::Error, self.phrases.no_event));
        };
        let kind = doc.root().member("type").and_then(|kind| kind.text()).unwrap_or_default();
        if kind == "sayso:gap" {
            self.begin_anew(now);
            return self.say(Announcement::own(Kind::Notice, self.phrases.gap));
        }
        if let Some(event) = Event::read(&doc) {
            self.hear_event(event, now);
        } else if let Some(message) = Message::parse(text) {
            self.hear_message(&message);
        } else {
            let kind =
                if kind.is_empty() { self.phrases.unknown_type.to_owned() } else { plain(&kind, true) };
            let text = self.phrases.not_understood_type(&kind);
            self.say(Announcement::own(Kind::Error, text));
        }
    }

    /// The next thing to be said; drain it until there is none.
    pub fn next(&mut self, now: UnixMillis) -> Option<Announcement> {
        if self.out.is_empty() {
            self.drain(now);
            self.wake(now);
        }
        let mut next = self.out.pop_front()?;
        self.introduce(&mut next, now);
        Some(next)
    }

    /// When there may be something to say, should nothing else come.
    pub fn next_deadline(&self) -> Option<UnixMillis> {
        if !self.out.is_empty() {
            return Some(UnixMillis::MIN);
        }
        let held = self.sessions.iter().flat_map(|session| {
            let held = session.held_state.iter().chain(&session.held_progress).map(|(due, _)| *due);
            held.chain(session.unsure)
        });
        let questions = self.questions.iter().flat_map(|question| {
            question
                .reminders
                .first()
                .copied()
                .into_iter()
                .chain(question.unsure)
                .chain(question.wished)
                .chain([question.deadline.saturating_add(OVERDUE)])
        });
        held.chain(questions).chain(self.shaper.next_deadline()).min()
    }

    fn say(&mut self, announcement: Announcement) {
        self.out.push_back(announcement);
    }

    /// Where several sessions speak, one that was not the last to speak says which it is.
    fn introduce(&mut self, next: &mut Announcement, now: UnixMillis) {
        let Some(id) = &next.session else { return };
        if let Some(session) = self.sessions.iter_mut().find(|session| session.id == *id) {
            session.spoke = now;
        }
        let others = self.sessions.iter().filter(|session| !session.ended && session.id != *id).count();
        if others > 0
            && self.spoke.as_ref() != Some(id)
            && let Some(session) = self.sessions.iter().find(|session| session.id == *id)
        {
            next.text.insert_str(0, &format!("{} ", self.phrases.in_session(session.number)));
        }
        self.spoke = Some(id.clone());
    }

    fn hear_message(&mut self, message: &Message) {
        if self.history {
            return self.hear_answer(message);
        }
        if let Message::SubscriptionClose(close) = message {
            let why = match close.reason_code.as_deref() {
                Some("slow_consumer") => self.phrases.hub_lets_go.to_owned(),
                Some("producer_shutdown") => self.phrases.hub_stops.to_owned(),
                Some("replaced") => self.phrases.hub_replaces.to_owned(),
                Some("token_removed") => self.phrases.hub_forgets_token.to_owned(),
                Some(other) => self.phrases.hub_ends_because(&plain(other, true)),
                None => self.phrases.hub_ends.to_owned(),
            };
            self.say(Announcement::own(Kind::Notice, why));
        }
    }

    fn hear_event(&mut self, mut event: Event, now: UnixMillis) {
        self.make_sure(&event);
        if !self.seen.insert(event.envelope.event_id.as_str()) {
            return;
        }
        self.watch_rate(&event, now);
        let index = self.session_of(&event, now);
        let agent = event.envelope.producer.agent_id.clone();
        let outputs = self.limits.outputs;
        let mut disorder = false;
        if let Some(session) = self.sessions.get_mut(index) {
            session.heard = now;
            if let Some(number) = event.envelope.sequence_number {
                let earlier = session.sequence.is_some_and(|latest| number <= latest);
                disorder = earlier && !session.told_disorder;
                session.told_disorder |= earlier;
                session.sequence = session.sequence.max(Some(number));
            }
            if let Payload::OutputStreaming(chunk) = &mut event.payload {
                let (repeated, gap) = session.fresh(&agent, chunk, outputs);
                if gap {
                    session.missing_at = Some(chunk.position);
                }
                if repeated > 0 {
                    chunk.position += u64::try_from(chunk.chunk.chars().count()).unwrap_or(0);
                    chunk.chunk.drain(..repeated);
                    chunk.position -= u64::try_from(chunk.chunk.chars().count()).unwrap_or(0);
                }
            }
        }
        if disorder {
            self.notice(&event, self.phrases.wrong_order);
        }
        if self.takes_time(&event, now) {
            return;
        }
        self.shaper.push(&Arc::new(event));
        self.drain(now);
    }

    /// What is told, also again, is not over.
    fn make_sure(&mut self, event: &Event) {
        if let Some(session) = self.session(&event.envelope.session_id) {
            session.unsure = None;
        }
        let token = match &event.payload {
            Payload::AwaitingConfirmation(asked) => &asked.reply_token,
            Payload::AwaitingClarification(asked) => &asked.reply_token,
            _ => return,
        };
        if let Some(question) = self.questions.iter_mut().find(|question| question.token == *token) {
            question.unsure = None;
        }
    }

    fn notice(&mut self, event: &Event, text: &str) {
        let mut notice = Announcement::own(Kind::Notice, text);
        notice.session = Some(event.envelope.session_id.clone());
        self.say(notice);
    }

    /// What the shaper lets go, in words.
    fn drain(&mut self, now: UnixMillis) {
        while let Some(out) = self.shaper.pull(now) {
            self.tell(out.event(), now);
        }
    }

    /// The place of an event's session, which is made known if it is new.
    fn session_of(&mut self, event: &Event, now: UnixMillis) -> usize {
        let id = &event.envelope.session_id;
        if let Some(at) = self.sessions.iter().position(|session| session.id == *id) {
            return at;
        }
        if self.sessions.len() >= self.limits.sessions {
            let asks = |id: &SessionId| self.questions.iter().any(|question| question.session == *id);
            let oldest = (0..self.sessions.len())
                .filter_map(|at| self.sessions.get(at).map(|session| (at, session)))
                .min_by_key(|(_, session)| (!session.ended, asks(&session.id), session.heard));
            if let Some((at, _)) = oldest {
                self.sessions.remove(at);
            }
        }
        self.sessions_known += 1;
        self.sessions.push(Session::new(self.phrases, self.sessions_known, event, now));
        self.sessions.len() - 1
    }

    fn session(&mut self, id: &SessionId) -> Option<&mut Session> {
        self.sessions.iter_mut().find(|session| session.id == *id)
    }
}

/// Texts that the hub itself has put into `extensions.sayso`, which no agent can set (design, decision 15).
fn hub_texts<const N: usize>(event: &Event, names: [&str; N]) -> [Option<String>; N] {
    let mut tape = Tape::default();
    let extensions = event.envelope.extensions.as_ref();
    let root = extensions.and_then(|extensions| Some(tape.read(extensions.as_str()).ok()?.root()));
    let sayso = root.and_then(|root| root.member("sayso"));
    names.map(|name| Some(sayso.as_ref()?.member(name)?.text()?.into_owned()))
}

/// What is asked of the shaper: everything, in the person's words, text in sentences.
fn wants(tastes: &Tastes) -> Wants {
    let mut filters = EventFilters::new();
    filters.include = Some(vec!["*".to_owned()]);
    Wants {
        verbosity: tastes.verbosity.clone(),
        languages: tastes.languages.clone(),
        boundaries: vec![Boundary::Sentence, Boundary::Completion],
        filters,
        rate: tastes.rate,
        confirmations: true,
        clarifications: true,
        ..Wants::default()
    }
}
