//! The hub without clock, disk or sockets of its own: requests in, answers and frames out, a turn at a time.
//!
//! [`Core::turn`] takes all requests that have come in, and the time. It judges each, stages what follows from it, writes
//! all of that to the journal in one batch, and only then lets it hold and says what to tell whom. If the batch cannot be
//! written, nothing of the turn happened: the state is made again from the journal and everybody is told so.
//! [`Core::next_deadline`] says when to take a turn though nobody asks.

mod agent;
mod ask;
mod attach;
mod full;
mod known;
mod lanes;
mod lines;
mod listener;
mod minutes;
mod name;
mod onward;
mod output;
mod presence;
mod publish;
mod restore;
mod room;
mod running;
mod subscription;
mod told;
mod tongues;
mod trim;
mod waits;
mod watch;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::RandomState;
use std::sync::Arc;

use aaep::check::Validator;
use aaep::consent::{Decided, Questions};
use aaep::event::{Event, Producer};
use aaep::negotiate::Offer;
use aaep::{ReplyToken, SessionId, SubscriptionId};
use journal::Journal;
use rustc_hash::FxHashMap;
use seal::{Random, UnixMillis};

use crate::command::{
    Command, Malformed, Notice, Output, QuestionOutcome, Reply, Request, RequestId, Unavailable,
};
use crate::delivery::Frame;
use crate::watch::{Counters, Note};
use crate::write::Write;
use crate::{Limits, LineId, Principal};
use attach::Since;
use known::Known;
use lanes::Lanes;
use lines::Lines;
use listener::Way;
use minutes::Minutes;
use room::{Dice, Room};
use subscription::Subscription;
use waits::Waits;

/// An event that is on disk.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) event: Event,
    pub(crate) frame: Arc<Frame>,
}

impl AsRef<Event> for Heard {
    fn as_ref(&self) -> &Event {
        &self.event
    }
}

/// The hub.
pub struct Core {
    journal: Box<dyn Journal>,
    random: Dice,
    limits: Limits,
    offer: Offer,
    validator: Validator,
    sessions: FxHashMap<SessionId, agent::Live>,
    subscriptions: HashMap<SubscriptionId, Subscription>,
    known: Known,
    /// Sessions that were left when the process before this one ended.
    orphans: HashSet<SessionId>,
    /// Which subscription each connection listens on.
    listeners: HashMap<crate::ListenerId, SubscriptionId>,
    lanes: Lanes,
    questions: Questions<RandomState>,
    criticals: Minutes,
    asked: Minutes,
    waits: Waits,
    lines: Lines,
    /// The line on which what is being judged was said.
    speaking: Option<LineId>,
    /// Each open session once, at a time that is not after its lease ends: leases grow without being looked for here.
    leases: BTreeSet<(UnixMillis, SessionId)>,
    /// Messages about questions of which something else is being written: they are heard after it.
    later: Vec<Request>,
    /// What is being judged is such a message.
    too_early: bool,
    /// Nothing is heard after this.
    last_round: bool,
    /// The position of the last event.
    position: u64,
    staged: Staged,
    /// Subscriptions without a connection, by the time until which they may come back.
    lost: BTreeSet<(UnixMillis, SubscriptionId)>,
    /// What holds could not be read after a turn that was not written; it is tried again at the next.
    stale: bool,
    /// After a turn that was not written, nothing is tried before this without being asked.
    rests_until: UnixMillis,
    /// The last turn could not be written.
    doubtful: bool,
    counters: Arc<Counters>,
    /// Up to this position events may have been forgotten.
    floor: u64,
    /// When is looked again for what may be forgotten.
    trims_at: UnixMillis,
    room: Room,
}

/// For so long, in milliseconds, the hub does nothing of itself after it could not write.
const REST: i64 = 1_000;

/// So often in one turn messages are heard that came together about one question. What is said beyond that has no effect, as
/// if it had come after the answer.
const AGAIN: usize = 4;

/// What a turn will have done once it is on disk.
#[derive(Default)]
struct Staged {
    writes: Vec<Write>,
    /// In the order in which it is to hold.
    after: Vec<After>,
    /// Questions that were resolved, for agents who ask about them in the same turn.
    resolved: Vec<(ReplyToken, SessionId, QuestionOutcome)>,
    /// Answers to requests that waited on nothing.
    answers: Vec<(RequestId, Reply)>,
    /// What is told on lines.
    notices: Vec<(LineId, Notice)>,
    /// Sessions that have ended.
    ended: Vec<SessionId>,
}

enum After {
    /// An event is heard by whoever may hear it.
    Event { heard: Arc<Heard>, agent: Arc<str>, person: Option<Arc<str>> },
    /// A decision holds.
    Decided(Decided),
    /// An output that is ready.
    Output(Output),
    /// A connection listens, and is told what it missed.
    Attach(attach::Attach),
    /// The terms of a subscription are others from here on.
    Moved(SubscriptionId),
}

impl Core {
    /// The hub over a journal, as it was when it stopped.
    pub fn new(
        journal: Box<dyn Journal>,
        producer: Producer,
        limits: Limits,
        random: impl FnMut(&mut [u8]) + Send + 'static,
        now: UnixMillis,
    ) -> Result<Self, journal::Error> {
        let mut core = Self {
            journal,
            random: Dice::new(random),
            limits,
            offer: Offer::new(producer),
            validator: Validator::new(),
            sessions: FxHashMap::default(),
            subscriptions: HashMap::new(),
            known: Known::default(),
            orphans: HashSet::new(),
            listeners: HashMap::new(),
            lanes: Lanes::new(limits.shape),
            questions: Questions::new(limits.questions, RandomState::new()),
            criticals: Minutes::default(),
            asked: Minutes::default(),
            waits: Waits::default(),
            lines: Lines::default(),
            speaking: None,
            leases: BTreeSet::new(),
            later: Vec::new(),
            too_early: false,
            last_round: false,
            position: 0,
            room: Room::default(),
            staged: Staged::default(),
            lost: BTreeSet::new(),
            stale: false,
            rests_until: UnixMillis::MIN,
            doubtful: false,
            counters: Arc::default(),
            floor: 0,
            trims_at: now,
        };
        core.restore(now)?;
        Ok(core)
    }

    /// From now on everybody is told where the manifest is, and whoever takes only a signed one gets it (C-F2).
    pub fn publish_manifest(&mut self, uri: Option<String>, signed: String) {
        self.offer.manifest_uri = uri;
        self.offer.signed_manifest = Some(signed);
    }

    /// What it takes on.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Takes a turn.
    pub fn turn(&mut self, requests: impl IntoIterator<Item = Request>, now: UnixMillis) -> Vec<Output> {
        if self.stale
            && let Err(error) = self.make_again(now)
        {
            self.rests_until = now.saturating_add(REST);
            let why = Unavailable::NotRead(Arc::new(error));
            let mut outputs = Vec::new();
            for request in requests {
                if let Command::HungUp { line } = request.command {
                    self.lines.hang_up(line);
                }
                if !request.command.is_quiet() {
                    outputs.push(Output::Reply(request.id, Reply::Unavailable(why.clone())));
                }
            }
            return outputs;
        }
        for request in requests {
            self.follow(request, now);
        }
        self.wake(now);
        let mut outputs = self.finish(now);
        for round in 1..=AGAIN {
            self.last_round = round == AGAIN;
            let later = std::mem::take(&mut self.later);
            if later.is_empty() {
                break;
            }
            for request in later {
                self.follow(request, now);
            }
            outputs.extend(self.finish(now));
        }
        self.last_round = false;
        outputs
    }

    /// Takes back the list that a turn gave, when all in it is done: the next turn writes into it.
    pub(crate) fn reuse(&mut self, mut outputs: Vec<Output>) {
        outputs.clear();
        self.room.outputs = outputs;
    }

    /// When the next turn is due though nobody asks.
    pub fn next_deadline(&self) -> Option<UnixMillis> {
        let parts = [
            self.questions.next_deadline(),
            self.lanes.next_deadline(),
            self.waits.next_deadline(),
            self.next_trim(),
            self.leases.first().map(|(at, _)| *at),
            self.lost.first().map(|(until, _)| *until),
        ];
        let first = parts.into_iter().flatten().min();
        let rests = (self.stale || self.doubtful).then_some(self.rests_until);
        first.map(|at| at.max(self.rests_until)).into_iter().chain(rests).min()
    }

    fn follow(&mut self, request: Request, now: UnixMillis) {
        let said = matches!(request.command, Command::Say { .. } | Command::SayOver { .. });
        let again = said.then(|| request.clone());
        let Request { id, who, command } = request;
        let answer = self.judge(id, &who, command, now);
        if std::mem::take(&mut self.too_early) {
            self.later.extend(again);
        } else if let Some(answer) = answer {
            self.staged.answers.push((id, answer));
        }
    }

    /// Judges a request; it has no answer yet, or never will, if there is none.
    fn judge(&mut self, id: RequestId, who: &Principal, command: Command, now: UnixMillis) -> Option<Reply> {
        if !self.known.hears(who) {
            return Some(Reply::Forbidden);
        }
        match command {
            Command::Know { principals } => Some(self.know(principals, now)),
            Command::Subscribe { text } => Some(self.subscribe(who, &text, now)),
            Command::Attach { subscription, last_event_id, listener } => {
                let since = last_event_id.map_or(Since::Now, Since::Event);
                Some(self.attach(who, &subscription, since, listener, now))
            }
            Command::AttachFromStart { subscription, listener } => {
                Some(self.attach(who, &subscription, Since::Start, listener, now))
            }
            Command::Detached { listener, too_slow } => {
                self.detached(listener, too_slow, now);
                None
            }
            Command::Goodbye => {
                self.say_goodbye();
                Some(Reply::Done)
            }
            Command::Say { text } => Some(self.say(who, Way::Alone, &text, now)),
            Command::SayOver { subscription, text } => {
                Some(self.say(who, Way::Over(&subscription), &text, now))
            }
            Command::Start { text, key } => Some(self.start(who, &text, key.as_deref(), now)),
            Command::Publish { session, events, key } => {
                Some(self.publish(who, &session, &events, key.as_deref(), now))
            }
            Command::Output { session, output_id, text, language, content_type, complete, stays, key } => {
                let (id, language) = (output_id.as_deref(), language.as_deref());
                let content_type = content_type.as_deref();
                let output = output::Piece { id, text: &text, language, content_type, complete, stays };
                Some(self.output(who, &session, &output, key.as_deref(), now))
            }
            Command::Ask { session, text, clarify, key } => {
                Some(self.ask(who, &session, &text, clarify, key.as_deref(), now))
            }
            Command::Wait { session, token, until } => self.wait(id, who, &session, &token, until, now),
            Command::Withdraw { session, token } => self.withdraw(id, who, &session, &token, now),
            Command::Forget { request } => {
                self.left_waiting(request);
                None
            }
            // A line on a line is nothing, and a line is not followed to the end of the stack.
            Command::On { line, command } if !matches!(*command, Command::On { .. }) => {
                self.on_line(id, who, line, *command, now)
            }
            Command::On { .. } => Some(Malformed::NestedLine.into()),
            Command::Follow { session } => Some(self.followed(who, &session)),
            Command::HungUp { line } => {
                self.hung_up(line, now);
                None
            }
        }
    }

    /// What is due by the clock alone.
    fn wake(&mut self, now: UnixMillis) {
        let decided = self.questions.wake(now);
        self.decide(decided, now);
        self.close_lost(now);
        self.close_full(now);
        self.end_leases(now);
        self.end_waits(now);
        self.trim(now);
    }

    /// Writes what was staged, lets it hold, and says what to tell whom.
    fn finish(&mut self, now: UnixMillis) -> Vec<Output> {
        let mut staged = std::mem::take(&mut self.staged);
        if let Err(error) = self.write(&staged.writes) {
            return self.undo(staged, error, now);
        }
        let mut outputs = std::mem::take(&mut self.room.outputs);
        self.count(&staged, &mut outputs);
        self.try_disk(now, &mut outputs);
        // Who comes in this turn is told all of it that it missed, so it joins when the turn has been heard.
        let mut coming = Vec::new();
        for after in staged.after.drain(..) {
            match after {
                After::Event { heard, agent, person } => {
                    self.lanes.hear(&heard, &agent, person.as_deref(), now, &mut outputs);
                }
                After::Decided(decided) => self.questions.commit(decided),
                After::Output(output) => outputs.push(output),
                After::Attach(attach) => coming.push(attach),
                After::Moved(subscription) => self.moved(&subscription, &mut outputs),
            }
        }
        self.lanes.pull(self.position, now, &mut outputs);
        for attach in coming {
            self.attached(attach, now, &mut outputs);
        }
        outputs.extend(staged.answers.drain(..).map(|(id, answer)| Output::Reply(id, answer)));
        self.answer_waits(&mut outputs);
        outputs.extend(staged.notices.drain(..).map(|(line, notice)| Output::Notice(line, notice)));
        for session in staged.ended.drain(..) {
            self.lines.end(&session);
        }
        for write in staged.writes.drain(..) {
            if let Write::Event { body, .. } = write {
                self.room.keep(body);
            }
        }
        staged.resolved.clear();
        // The next turn has its room.
        self.staged = staged;
        outputs
    }

    /// One batch of the journal.
    fn write(&mut self, writes: &[Write]) -> Result<(), journal::Error> {
        match writes {
            [] => Ok(()),
            [one] => self.journal.commit(&[one.entry()]),
            many => self.journal.commit(&many.iter().map(Write::entry).collect::<Vec<_>>()),
        }
    }

    /// Nothing of the turn happened. What is on disk is what holds; whoever asked for something may ask again.
    fn undo(&mut self, staged: Staged, error: journal::Error, now: UnixMillis) -> Vec<Output> {
        let mut outputs = Vec::new();
        for after in staged.after {
            match after {
                After::Decided(decided) => self.questions.abandon(decided),
                // One that was to be let go is not among those that are known, and must go with them.
                After::Output(close @ Output::Close(_)) => outputs.push(close),
                _ => {}
            }
        }
        let note = Note::NotStored(error.to_string());
        let why = Unavailable::NotStored(Arc::new(error));
        let unavailable = |(id, _)| Output::Reply(id, Reply::Unavailable(why.clone()));
        outputs.extend(staged.answers.into_iter().map(unavailable));
        for request in self.waits.take_all() {
            outputs.push(Output::Reply(request, Reply::Unavailable(why.clone())));
        }
        // Connections are let go: they come back and resume from what is on disk.
        outputs.extend(std::mem::take(&mut self.listeners).into_keys().map(Output::Close));
        outputs.push(Output::Note(note));
        self.rests_until = now.saturating_add(REST);
        self.trims_at = now;
        self.stale = true;
        self.doubtful = true;
        // What cannot be read now is read again before the next turn: `stale` stays set.
        drop(self.make_again(now));
        outputs
    }

    /// Makes the state again from the journal. Lines stay: whoever is on one is told that nothing was stored, and goes on.
    fn make_again(&mut self, now: UnixMillis) -> Result<(), journal::Error> {
        self.restore(now)?;
        self.lines.keep(|session| self.sessions.contains_key(session));
        Ok(())
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        self.random.fill(bytes);
    }
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core")
            .field("sessions", &self.sessions.len())
            .field("subscriptions", &self.subscriptions.len())
            .field("listeners", &self.listeners.len())
            .field("lanes", &self.lanes.len())
            .field("waiting", &self.waits.len())
            .field("lines", &self.lines.len())
            .field("lost", &self.lost.len())
            .field("questions", &self.questions.questions().count())
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}
