//! The thread that speaks for all sessions of a hub.
//!
//! Orders come in from sessions; each session has one call on its way at a time, and the others wait in their order. What is
//! open in a session is noted when the hub has answered, here and not in the agent's futures: whatever becomes of those, the
//! desk knows how to end a session honestly.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use seal::json::Tape;
use tokio::sync::{mpsc, oneshot, watch};

use crate::error::{Error, Stop};
use crate::line::{Call, Line, Number, Told};
use crate::redact::Cleaner;
use crate::track::{Intent, Track, english};

/// Who is told what came of an order: the hub's words, or for a question its outcome.
pub(crate) type Reply = oneshot::Sender<Result<String, Error>>;

type StartReply = oneshot::Sender<Result<Started, Error>>;

/// What the desk is asked for.
pub(crate) enum Order {
    /// Starts a session.
    Start { body: String, cleaner: Cleaner, reply: StartReply },
    /// Says something in a session.
    Do { session: Arc<str>, intent: Intent, reply: Option<Reply> },
    /// Takes back what is asked in a session and nobody waits for.
    Withdraw { session: Arc<str> },
    /// Tells when all that was ordered is done.
    Settle(oneshot::Sender<()>),
}

/// A session that has begun. Who lets it go ends it.
pub(crate) struct Started {
    pub(crate) id: Arc<str>,
    pub(crate) stop: watch::Receiver<Option<Stop>>,
    pub(crate) orders: Orders,
    pub(crate) at: Instant,
    /// Its agent has ended it, or is about to.
    pub(crate) ended: bool,
}

impl Drop for Started {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        self.orders.order(Order::Do { session: self.id.clone(), intent: left(), reply: None });
    }
}

/// A question whose asker may stop waiting.
pub(crate) struct Asking<'s>(pub(crate) &'s Started);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.orders.order(Order::Withdraw { session: self.0.id.clone() });
    }
}

/// The end of a session whose agent has let it go.
fn left() -> Intent {
    let (code, says) = if std::thread::panicking() {
        ("AGENT_PANICKED", "The agent broke down; its session was ended.")
    } else {
        ("AGENT_LEFT", "The agent stopped in the middle of its work; its session was ended.")
    };
    Intent::End { event: errored(code, says), why: LEFT }
}

/// What is said of a tool that its agent did not wait for.
pub(crate) const LEFT: &str = "The agent did not wait for the tool's end; whether it was done is not known.";

/// The way to the desk.
#[derive(Clone, Debug)]
pub(crate) struct Orders(mpsc::UnboundedSender<Order>);

impl Orders {
    /// Orders; who waits for something learns from the end of its channel that the desk is gone.
    pub(crate) fn order(&self, order: Order) {
        let _ = self.0.send(order);
    }

    /// Says something in a session and waits for what comes of it. A future that is dropped takes nothing back.
    pub(crate) async fn say(&self, session: &Arc<str>, intent: Intent) -> Result<String, Error> {
        fits(intent.len())?;
        let (reply, answer) = oneshot::channel();
        self.order(Order::Do { session: session.clone(), intent, reply: Some(reply) });
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    pub(crate) async fn start(&self, body: String, cleaner: Cleaner) -> Result<Started, Error> {
        fits(body.len())?;
        let (reply, answer) = oneshot::channel();
        self.order(Order::Start { body, cleaner, reply });
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    /// For the desk itself, which ends when nobody else can order anything.
    pub(crate) fn downgrade(&self) -> mpsc::WeakUnboundedSender<Order> {
        self.0.downgrade()
    }

    /// A channel for a desk's inbox.
    pub(crate) fn channel() -> (Self, mpsc::UnboundedReceiver<Order>) {
        let (orders, inbox) = mpsc::unbounded_channel();
        (Self(orders), inbox)
    }
}

/// The longest event that any hub takes, in bytes (§3.7).
pub(crate) const LONGEST: usize = 1024 * 1024;

/// What is longer goes nowhere.
fn fits(bytes: usize) -> Result<(), Error> {
    if bytes <= LONGEST {
        return Ok(());
    }
    Err(Error::TooMuch(format!("{bytes} bytes at once; an event has {LONGEST} at most")))
}

pub(crate) fn gone() -> Error {
    Error::Unreachable("the thread that speaks to the hub has ended".to_owned())
}

/// The desk.
pub(crate) struct Desk<L> {
    line: L,
    orders: mpsc::WeakUnboundedSender<Order>,
    number: Number,
    sessions: HashMap<Arc<str>, Live>,
    calls: HashMap<Number, OnItsWay>,
    /// Questions that are not resolved, by their tokens.
    asked: HashMap<String, (Arc<str>, Option<Reply>)>,
    settling: Vec<oneshot::Sender<()>>,
    /// The line is dead.
    lost: bool,
}

struct Live {
    track: Track,
    waiting: VecDeque<Job>,
    busy: bool,
    over: bool,
    stop: watch::Sender<Option<Stop>>,
}

struct Job {
    intent: Intent,
    reply: Option<Reply>,
}

enum OnItsWay {
    Start(Cleaner, StartReply),
    Job(Arc<str>, Job),
}

impl<L: Line> Desk<L> {
    pub(crate) fn new(line: L, orders: mpsc::WeakUnboundedSender<Order>) -> Self {
        Self {
            line,
            orders,
            number: 0,
            sessions: HashMap::new(),
            calls: HashMap::new(),
            asked: HashMap::new(),
            settling: Vec::new(),
            lost: false,
        }
    }

    /// Until nobody can order anything and all is said.
    pub(crate) async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Order>) {
        let mut open = true;
        while open || (!self.calls.is_empty() && !self.lost) {
            tokio::select! {
                order = inbox.recv(), if open => match order {
                    Some(order) => self.take(order),
                    None => open = false,
                },
                told = self.line.told(), if !self.lost => match told {
                    Some(told) => self.hear(told),
                    None => self.lose(),
                },
            }
            if self.calls.is_empty() && !self.settling.is_empty() {
                self.line.farewell().await;
                for settled in self.settling.drain(..) {
                    let _ = settled.send(());
                }
            }
        }
        self.line.farewell().await;
    }

    fn take(&mut self, order: Order) {
        match order {
            Order::Start { reply, .. } if self.lost => drop(reply.send(Err(lost()))),
            Order::Start { body, cleaner, reply } => {
                self.number += 1;
                self.calls.insert(self.number, OnItsWay::Start(cleaner, reply));
                self.line.say(self.number, Call::Start { body });
            }
            Order::Do { session, intent, reply } => {
                let Some(live) = self.sessions.get_mut(&session).filter(|live| !live.over) else {
                    let why = if self.lost { lost() } else { Error::Stopped(Stop::Other) };
                    return answer(reply, Err(why));
                };
                live.waiting.push_back(Job { intent, reply });
                self.go_on(&session);
            }
            Order::Withdraw { session } => self.withdraw(&session),
            Order::Settle(reply) => self.settling.push(reply),
        }
    }

    /// Says what a session has waiting, if nothing of it is on its way.
    fn go_on(&mut self, session: &Arc<str>) {
        let Some(live) = self.sessions.get_mut(session) else { return };
        while !live.busy
            && let Some(job) = live.waiting.pop_front()
        {
            let job = match live.track.before(&job.intent) {
                None => job,
                Some(intent) => {
                    live.waiting.push_front(job);
                    Job { intent, reply: None }
                }
            };
            let Some(call) = live.track.call(&job.intent) else {
                answer(job.reply, Ok(String::new()));
                continue;
            };
            live.busy = true;
            self.number += 1;
            self.calls.insert(self.number, OnItsWay::Job(session.clone(), job));
            self.line.say(self.number, call);
        }
    }

    /// Questions that nobody waits for are not asked, or are taken back.
    fn withdraw(&mut self, session: &Arc<str>) {
        let Some(live) = self.sessions.get_mut(session) else { return };
        let unheard = |reply: &Option<Reply>| reply.as_ref().is_some_and(oneshot::Sender::is_closed);
        live.waiting.retain(|job| !(matches!(job.intent, Intent::Ask { .. }) && unheard(&job.reply)));
        for (token, (of, reply)) in &mut self.asked {
            if of == session && unheard(reply) {
                *reply = None;
                // In front of what was said meanwhile: a session with an open question cannot be finished.
                live.waiting
                    .push_front(Job { intent: Intent::Withdraw { token: token.clone() }, reply: None });
            }
        }
        self.go_on(session);
    }

    fn hear(&mut self, told: Told) {
        match told {
            Told::Answer(number, result) => match self.calls.remove(&number) {
                Some(OnItsWay::Start(cleaner, reply)) => self.started(cleaner, reply, result),
                Some(OnItsWay::Job(session, job)) => self.said(&session, job, result),
                None => {}
            },
            Told::Resolved { token, outcome } => {
                if let Some((session, reply)) = self.asked.remove(&token) {
                    if let Some(live) = self.sessions.get_mut(&session) {
                        live.track.resolved();
                    }
                    answer(reply, Ok(outcome));
                }
            }
            Told::Stopped { session, reason } => self.stop(&session, Stop::of(&reason)),
        }
    }

    fn started(&mut self, cleaner: Cleaner, reply: StartReply, result: Result<String, Error>) {
        let id = result.and_then(|json| {
            let id = member(&json, "session_id").map(Arc::<str>::from);
            id.ok_or_else(|| Error::Malformed(format!("the hub named no session: {json}")))
        });
        let id = match id {
            Ok(id) => id,
            Err(error) => return drop(reply.send(Err(error))),
        };
        let (tell, stop) = watch::channel(None);
        let track = Track::new(id.to_string(), cleaner);
        let live = Live { track, waiting: VecDeque::new(), busy: false, over: false, stop: tell };
        self.sessions.insert(id.clone(), live);
        if let Some(orders) = self.orders.upgrade().map(Orders) {
            // One that nobody waits for any more comes back, is dropped, and so is ended.
            let _ = reply.send(Ok(Started { id, stop, orders, at: Instant::now(), ended: false }));
        } else {
            let (session, intent) = (id, left());
            self.take(Order::Do { session, intent, reply: None });
        }
    }

    fn said(&mut self, session: &Arc<str>, job: Job, result: Result<String, Error>) {
        let Some(live) = self.sessions.get_mut(session) else {
            return answer(job.reply, result);
        };
        live.busy = false;
        match (&result, &job.intent) {
            (Ok(json), intent) => {
                live.track.done(intent);
                if matches!(intent, Intent::End { .. }) {
                    self.over(session, Stop::Other);
                } else if matches!(intent, Intent::Ask { .. })
                    && let Some(token) = member(json, "reply_token")
                {
                    self.asked.insert(token, (session.clone(), job.reply));
                    return self.withdraw(session);
                }
            }
            (Err(Error::Stopped(_)), _) => self.doubt(session),
            // The agent is gone, or believes that it has ended the session: it is ended for it.
            (Err(_), Intent::End { event, .. }) if !event.contains(REFUSED) => {
                let event = errored(REFUSED, "The agent ended its session in a way that breaks the rules.");
                let last = Job { intent: Intent::End { event, why: LEFT }, reply: None };
                live.waiting.push_front(last);
            }
            // Not even that was taken; the hub's lease ends it.
            (Err(_), Intent::End { .. }) => self.over(session, Stop::Other),
            // Text that was held is told before whatever comes next; who wanted that learns that it could not be.
            (Err(error), Intent::Output { .. }) if job.reply.is_none() => {
                // What wanted that may have been taken back, and what comes now may not.
                let wanted = live.waiting.front().filter(|next| live.track.before(&next.intent).is_some());
                match wanted.map(|next| matches!(next.intent, Intent::End { .. })) {
                    // A session is ended in any case.
                    Some(true) => live.track.give_up_output(),
                    Some(false) => {
                        if let Some(next) = live.waiting.pop_front() {
                            answer(next.reply, Err(error.clone()));
                        }
                    }
                    None => {}
                }
            }
            (Err(_), _) => {}
        }
        answer(job.reply, result);
        self.go_on(session);
    }

    /// A session is over by another's word.
    fn stop(&mut self, session: &str, stop: Stop) {
        if let Some(live) = self.sessions.get(session) {
            live.stop.send_replace(Some(stop));
        }
        self.over(session, stop);
    }

    /// The hub knows no such session any more. Why is told next; until then nothing is said in it.
    fn doubt(&mut self, session: &str) {
        if let Some(live) = self.sessions.get_mut(session) {
            live.over = true;
            live.waiting.drain(..).for_each(|job| answer(job.reply, Err(Error::Stopped(Stop::Other))));
        }
    }

    /// A session is over: nothing of it waits any more.
    fn over(&mut self, session: &str, stop: Stop) {
        let Some((id, live)) = self.sessions.remove_entry(session) else { return };
        let redacted = live.track.redacted();
        if redacted > 0 {
            log::info!("{id}: {redacted} secrets were taken out of what people heard");
        }
        self.line.forget(&id);
        live.waiting.into_iter().for_each(|job| answer(job.reply, Err(Error::Stopped(stop))));
        let asked: Vec<_> =
            self.asked.iter().filter(|(_, (of, _))| *of == id).map(|(token, _)| token.clone()).collect();
        for token in asked {
            if let Some((_, reply)) = self.asked.remove(&token) {
                answer(reply, Err(Error::Stopped(stop)));
            }
        }
    }

    /// The hub cannot be reached any more.
    fn lose(&mut self) {
        self.lost = true;
        for call in std::mem::take(&mut self.calls).into_values() {
            match call {
                OnItsWay::Start(_, reply) => drop(reply.send(Err(lost()))),
                OnItsWay::Job(_, job) => answer(job.reply, Err(lost())),
            }
        }
        let sessions: Vec<_> = self.sessions.keys().cloned().collect();
        for session in sessions {
            self.stop(&session, Stop::Unreachable);
        }
    }
}

/// The error code of a session whose own last word was refused.
const REFUSED: &str = "LAST_WORD_REFUSED";

fn lost() -> Error {
    Error::Unreachable("the connection is lost".to_owned())
}

fn answer(reply: Option<Reply>, result: Result<String, Error>) {
    if let Some(reply) = reply {
        let _ = reply.send(result);
    }
}

/// The last event of a session that was left.
fn errored(code: &str, says: &str) -> String {
    let mut out = seal::json::Writer::default();
    out.open_object();
    for (name, text) in [
        ("type", "aaep:agent.session.errored"),
        ("error_category", "unknown"),
        ("error_code", code),
        ("summary_normal", says),
    ] {
        out.key(name);
        out.text(text);
    }
    out.key("recoverable");
    out.boolean(false);
    english(&mut out);
    out.close_object();
    out.finish()
}

/// A text member of JSON that the hub sent.
pub(crate) fn member(json: &str, name: &str) -> Option<String> {
    let mut tape = Tape::default();
    let doc = tape.read(json).ok()?;
    Some(doc.root().member(name)?.text()?.into_owned())
}
