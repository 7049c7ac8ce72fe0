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
    /// Each open session once, at a time that is not after its lease ends: leases grow without being looked for here.
    leases: BTreeSet<(UnixMillis, SessionId)>,
    /// The position of the last event.
    position: u64,
    staged: Staged,
    /// Subscriptions without a connection, by the time until which they may come back.
    lost: BTreeSet<(UnixMillis, SubscriptionId)>,
    /// The state must be read again from the journal before the next turn, because a turn was not written.
    needs_rebuild: bool,
    /// After a failed write the hub does nothing on its own before this time.
    retry_at: UnixMillis,
    /// The last turn could not be written.
    last_write_failed: bool,
    counters: Arc<Counters>,
    /// Up to this position events may have been forgotten.
    floor: u64,
    /// When is looked again for what may be forgotten.
    trims_at: UnixMillis,
    room: Room,
}

/// How long the hub waits after a failed write before it acts on its own again, in milliseconds.
const WRITE_RETRY_BACKOFF_MS: i64 = 1_000;

/// Maximum number of further rounds in which one turn handles messages about the same question. Messages beyond that have no
/// effect, as if they had come after the answer.
const MAX_ROUNDS_PER_TURN: usize = 4;

/// What the handlers of a request need to know about the turn that they are part of.
#[derive(Clone, Copy, Debug)]
struct TurnContext {
    now: UnixMillis,
    /// The agent connection that the request came on.
    line: Option<LineId>,
    /// No round follows, so nothing can be deferred.
    is_last_round: bool,
}

/// A message about a question of which something else is being written. It is judged again when that is on disk.
struct Deferred;

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
            leases: BTreeSet::new(),
            position: 0,
            room: Room::default(),
            staged: Staged::default(),
            lost: BTreeSet::new(),
            needs_rebuild: false,
            retry_at: UnixMillis::MIN,
            last_write_failed: false,
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
        if self.needs_rebuild
            && let Err(error) = self.rebuild(now)
        {
            self.retry_at = now.saturating_add(WRITE_RETRY_BACKOFF_MS);
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
        let mut context = TurnContext { now, line: None, is_last_round: false };
        let mut deferred: Vec<_> =
            requests.into_iter().filter_map(|request| self.follow(request, &context)).collect();
        self.wake(&context);
        let mut outputs = self.finish(&context);
        for round in 1..=MAX_ROUNDS_PER_TURN {
            if deferred.is_empty() {
                break;
            }
            context.is_last_round = round == MAX_ROUNDS_PER_TURN;
            deferred = deferred.into_iter().filter_map(|request| self.follow(request, &context)).collect();
            outputs.extend(self.finish(&context));
        }
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
        let retry = (self.needs_rebuild || self.last_write_failed).then_some(self.retry_at);
        first.map(|at| at.max(self.retry_at)).into_iter().chain(retry).min()
    }

    /// Judges a request and stages its reply; gives the request back if it is deferred.
    fn follow(&mut self, request: Request, context: &TurnContext) -> Option<Request> {
        match self.judge(request.id, &request.who, &request.command, context) {
            Ok(Some(reply)) => self.staged.answers.push((request.id, reply)),
            Ok(None) => {}
            Err(Deferred) => return Some(request),
        }
        None
    }

    /// Judges a request. There is no reply where it comes later, or where nobody waits for one.
    fn judge(
        &mut self,
        id: RequestId,
        who: &Principal,
        command: &Command,
        context: &TurnContext,
    ) -> Result<Option<Reply>, Deferred> {
        if !self.known.hears(who) {
            return Ok(Some(Reply::Forbidden));
        }
        Ok(Some(match command {
            Command::Know { principals } => self.know(principals, context),
            Command::Subscribe { request } => self.subscribe(who, request.as_deref(), context),
            Command::Attach { subscription, last_event_id, listener } => {
                let since = last_event_id.clone().map_or(Since::Now, Since::Event);
                self.attach(who, subscription, since, *listener, context)
            }
            Command::AttachFromStart { subscription, listener } => {
                self.attach(who, subscription, Since::Start, *listener, context)
            }
            Command::Detached { listener, too_slow } => {
                self.detached(*listener, *too_slow, context);
                return Ok(None);
            }
            Command::Goodbye => {
                self.say_goodbye();
                Reply::Done
            }
            Command::Say { message } => self.say(who, None, message, context)?,
            Command::SayOver { subscription, message } => {
                self.say(who, Some(subscription), message, context)?
            }
            Command::Start { body, key } => self.start(who, body, key.as_deref(), context),
            Command::Publish { session, events, key } => {
                self.publish(who, session, events, key.as_deref(), context)
            }
            Command::Output { session, output_id, text, language, content_type, complete, stays, key } => {
                let (id, language) = (output_id.as_deref(), language.as_deref());
                let (content_type, complete, stays) = (content_type.as_deref(), *complete, *stays);
                let output = output::Piece { id, text, language, content_type, complete, stays };
                self.output(who, session, &output, key.as_deref(), context)
            }
            Command::Ask { session, body, clarify, key } => {
                self.ask(who, session, body, *clarify, key.as_deref(), context)
            }
            Command::Wait { session, token, until } => {
                return Ok(self.wait(id, who, session, token, *until, context));
            }
            Command::Withdraw { session, token } => {
                return Ok(self.withdraw(id, who, session, token, context));
            }
            Command::Forget { request } => {
                self.left_waiting(*request);
                return Ok(None);
            }
            // A line on a line is nothing, and a line is not followed to the end of the stack.
            Command::On { line, command } if !matches!(**command, Command::On { .. }) => {
                return self.on_line(id, who, *line, command, context);
            }
            Command::On { .. } => Malformed::NestedLine.into(),
            Command::Follow { session } => self.followed(who, session),
            Command::HungUp { line } => {
                self.hung_up(*line, context);
                return Ok(None);
            }
        }))
    }

    /// What is due by the clock alone.
    fn wake(&mut self, context: &TurnContext) {
        let decided = self.questions.wake(context.now);
        self.decide(decided, context);
        self.close_lost(context);
        self.close_full(context);
        self.end_leases(context);
        self.end_waits(context);
        self.trim(context);
    }

    /// Writes what was staged, lets it hold, and says what to tell whom.
    fn finish(&mut self, context: &TurnContext) -> Vec<Output> {
        let mut staged = std::mem::take(&mut self.staged);
        if let Err(error) = self.write(&staged.writes) {
            return self.undo(staged, error, context);
        }
        let mut outputs = std::mem::take(&mut self.room.outputs);
        self.count(&staged, &mut outputs);
        self.try_disk(context, &mut outputs);
        // Who comes in this turn is told all of it that it missed, so it joins when the turn has been heard.
        let mut coming = Vec::new();
        for after in staged.after.drain(..) {
            match after {
                After::Event { heard, agent, person } => {
                    self.lanes.hear(&heard, &agent, person.as_deref(), context.now, &mut outputs);
                }
                After::Decided(decided) => self.questions.commit(decided),
                After::Output(output) => outputs.push(output),
                After::Attach(attach) => coming.push(attach),
                After::Moved(subscription) => self.moved(&subscription, &mut outputs),
            }
        }
        self.lanes.pull(self.position, context.now, &mut outputs);
        for attach in coming {
            self.attached(attach, context, &mut outputs);
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
    fn undo(&mut self, staged: Staged, error: journal::Error, context: &TurnContext) -> Vec<Output> {
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
        self.retry_at = context.now.saturating_add(WRITE_RETRY_BACKOFF_MS);
        self.trims_at = context.now;
        self.needs_rebuild = true;
        self.last_write_failed = true;
        // What cannot be read now is read before the next turn: `needs_rebuild` stays set.
        if let Err(error) = self.rebuild(context.now) {
            outputs.push(Output::Note(Note::NotRead(error.to_string())));
        }
        outputs
    }

    /// Reads the state from the journal again. Agent connections stay: each learns that nothing was stored, and goes on.
    fn rebuild(&mut self, now: UnixMillis) -> Result<(), journal::Error> {
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
