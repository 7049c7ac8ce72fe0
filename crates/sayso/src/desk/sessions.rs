//! The desk itself. [`Desk::take`] and [`Desk::hear`] feed it; after either, [`Desk::speak`] hands on what is to be said, and
//! [`Desk::answers`] is what to tell whom.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use aaep::{ReplyToken, SessionId};
use rustc_hash::FxHashMap;
use tokio::sync::{oneshot, watch};

use super::orders::WeakOrders;
use super::{LEFT, Order, ReplySender, StartReply, Started, left};
use crate::error::{Error, Malformed, Stop, Unreachable};
use crate::left::Left;
use crate::line::{Call, Line, Number, Reply, Told};
use crate::redact::Cleaner;
use crate::track::{Intent, Last, Track};

/// The desk.
pub(crate) struct Desk {
    orders: WeakOrders,
    number: Number,
    sessions: FxHashMap<SessionId, Live>,
    calls: FxHashMap<Number, OnItsWay>,
    /// Questions that are not resolved, by their tokens.
    asked: HashMap<ReplyToken, (SessionId, Option<ReplySender>)>,
    settling: Vec<oneshot::Sender<()>>,
    /// The line is dead.
    lost: bool,
    /// What the hub is to be told next.
    saying: Vec<(Number, Call)>,
    /// Sessions that are over.
    over: Vec<SessionId>,
    answered: Vec<Answered>,
}

/// What came of an order. It is told when the desk is free again: who is told may order something at once.
pub(super) enum Answered {
    Said(ReplySender, Result<Reply, Error>),
    Started(StartReply, Result<Started, Error>),
}

impl Answered {
    pub(super) fn tell(self) {
        match self {
            Self::Said(reply, result) => drop(reply.send(result)),
            // One that nobody waits for any more comes back, is dropped, and so is ended.
            Self::Started(reply, result) => drop(reply.send(result)),
        }
    }
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
    reply: Option<ReplySender>,
}

enum OnItsWay {
    Start(Cleaner, StartReply),
    Job(SessionId, Job),
}

impl Desk {
    pub(crate) fn new(orders: WeakOrders) -> Self {
        Self {
            orders,
            number: 0,
            sessions: FxHashMap::default(),
            calls: FxHashMap::default(),
            asked: HashMap::new(),
            settling: Vec::new(),
            lost: false,
            saying: Vec::new(),
            over: Vec::new(),
            answered: Vec::new(),
        }
    }

    /// Hands the line what is to be said.
    pub(super) fn speak(&mut self, line: &mut impl Line) {
        for (number, call) in self.saying.drain(..) {
            line.say(number, call);
        }
        for session in self.over.drain(..) {
            line.forget(&session);
        }
    }

    /// What came of orders since this was asked last. Of one order comes one thing mostly, and the list is kept for the next.
    pub(super) fn answers(&mut self) -> impl Iterator<Item = Answered> + use<> {
        let (one, many) = match self.answered.len() {
            0 | 1 => (self.answered.pop(), Vec::new()),
            _ => (None, std::mem::take(&mut self.answered)),
        };
        one.into_iter().chain(many)
    }

    /// Whether an answer is to come.
    pub(super) fn expects(&self) -> bool {
        !self.calls.is_empty() && !self.lost
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost
    }

    /// Whether somebody waits for all to be said, and it is.
    pub(super) fn is_settled(&self) -> bool {
        self.calls.is_empty() && !self.settling.is_empty()
    }

    pub(super) fn settle(&mut self) {
        for settled in self.settling.drain(..) {
            let _ = settled.send(());
        }
    }

    pub(super) fn take(&mut self, order: Order) {
        match order {
            Order::Start { reply, .. } if self.lost => {
                self.answered.push(Answered::Started(reply, Err(lost())));
            }
            Order::Start { body, cleaner, reply } => {
                self.number += 1;
                self.calls.insert(self.number, OnItsWay::Start(cleaner, reply));
                self.saying.push((self.number, Call::Start { body }));
            }
            Order::Do { session, intent, reply } => {
                let Some(live) = self.sessions.get_mut(&session).filter(|live| !live.over) else {
                    let why = if self.lost { lost() } else { Error::Stopped(Stop::Other) };
                    return self.answer(reply, Err(why));
                };
                live.waiting.push_back(Job { intent, reply });
                self.go_on(&session);
            }
            Order::Withdraw { session } => self.withdraw(&session),
            Order::Settle(reply) => self.settling.push(reply),
        }
    }

    /// Says what a session has waiting, if nothing of it is on its way.
    fn go_on(&mut self, session: &SessionId) {
        let Some(live) = self.sessions.get_mut(session) else { return };
        while !live.busy
            && let Some(job) = live.waiting.pop_front()
        {
            let mut job = match live.track.before(&job.intent) {
                None => job,
                Some(intent) => {
                    live.waiting.push_front(job);
                    Job { intent, reply: None }
                }
            };
            let Some(call) = live.track.call(&mut job.intent) else {
                self.answered.extend(job.reply.map(|reply| Answered::Said(reply, Ok(Reply::Done))));
                continue;
            };
            live.busy = true;
            self.number += 1;
            self.calls.insert(self.number, OnItsWay::Job(session.clone(), job));
            self.saying.push((self.number, call));
        }
    }

    /// Questions that nobody waits for are not asked, or are taken back.
    fn withdraw(&mut self, session: &SessionId) {
        let Some(live) = self.sessions.get_mut(session) else { return };
        let unheard = |reply: &Option<ReplySender>| reply.as_ref().is_some_and(oneshot::Sender::is_closed);
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

    pub(super) fn hear(&mut self, told: Told) {
        match told {
            Told::Answer(number, result) => match self.calls.remove(&number) {
                Some(OnItsWay::Start(cleaner, reply)) => self.started(cleaner, reply, result),
                Some(OnItsWay::Job(session, job)) => self.said(&session, job, result),
                None => {}
            },
            Told::Resolved { token, outcome } => {
                if let Some((session, reply)) = self.asked.remove(&token) {
                    if let Some(live) = self.sessions.get_mut(&session) {
                        live.track.resolved(outcome.is_accepted);
                    }
                    self.answer(reply, Ok(Reply::Resolved(outcome)));
                }
            }
            Told::Stopped { session, stop } => self.stop(&session, stop),
        }
    }

    fn started(&mut self, cleaner: Cleaner, reply: StartReply, result: Result<Reply, Error>) {
        let id = match result {
            Ok(Reply::Started(id)) => id,
            Ok(other) => {
                let error = Error::Malformed(Malformed::Hub(format!("the hub named no session: {other:?}")));
                return self.answered.push(Answered::Started(reply, Err(error)));
            }
            Err(error) => return self.answered.push(Answered::Started(reply, Err(error))),
        };
        let (tell, stop) = watch::channel(None);
        let track = Track::new(id.clone(), cleaner);
        let live = Live { track, waiting: VecDeque::new(), busy: false, over: false, stop: tell };
        self.sessions.insert(id.clone(), live);
        if let Some(orders) = self.orders.upgrade() {
            let started = Started { id, stop, orders, at: Instant::now(), ended: false };
            self.answered.push(Answered::Started(reply, Ok(started)));
        } else {
            let (session, intent) = (id, left());
            self.take(Order::Do { session, intent, reply: None });
        }
    }

    fn said(&mut self, session: &SessionId, job: Job, result: Result<Reply, Error>) {
        let Some(live) = self.sessions.get_mut(session) else {
            return self.answer(job.reply, result);
        };
        live.busy = false;
        match (&result, &job.intent) {
            (Ok(told), intent) => {
                live.track.done(intent);
                if matches!(intent, Intent::End { .. }) {
                    self.over(session, Stop::Other);
                } else if matches!(intent, Intent::Ask { .. })
                    && let Reply::Asked(token) = told
                {
                    self.asked.insert(token.clone(), (session.clone(), job.reply));
                    return self.withdraw(session);
                } else if let Intent::Withdraw { token } = intent
                    && self.asked.remove(token).is_some()
                {
                    // The answer says how it was resolved; what is said next need not wait until that is told once more.
                    live.track.resolved(matches!(told, Reply::Resolved(outcome) if outcome.is_accepted));
                }
            }
            (Err(Error::Stopped(_)), _) => self.doubt(session),
            // The agent is gone, or believes that it has ended the session: it is ended for it.
            (Err(_), Intent::End { last, .. }) if !matches!(last, Last::Left(Left::Refused)) => {
                let intent = Intent::End { last: Last::Left(Left::Refused), why: LEFT };
                live.waiting.push_front(Job { intent, reply: None });
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
                            let refused = Err(error.clone());
                            self.answer(next.reply, refused);
                        }
                    }
                    None => {}
                }
            }
            (Err(_), _) => {}
        }
        self.answer(job.reply, result);
        self.go_on(session);
    }

    /// A session is over by another's word.
    fn stop(&mut self, session: &SessionId, stop: Stop) {
        if let Some(live) = self.sessions.get(session) {
            live.stop.send_replace(Some(stop));
        }
        self.over(session, stop);
    }

    /// The hub knows no such session any more. Why is told next; until then nothing is said in it.
    fn doubt(&mut self, session: &SessionId) {
        let Some(live) = self.sessions.get_mut(session) else { return };
        live.over = true;
        for job in std::mem::take(&mut live.waiting) {
            self.answer(job.reply, Err(Error::Stopped(Stop::Other)));
        }
    }

    /// A session is over: nothing of it waits any more.
    fn over(&mut self, session: &SessionId, stop: Stop) {
        let Some((id, live)) = self.sessions.remove_entry(session) else { return };
        let redacted = live.track.redacted();
        if redacted > 0 {
            tracing::info!(session = %id, redacted, "secrets were removed from what people heard");
        }
        self.over.push(id.clone());
        for job in live.waiting {
            self.answer(job.reply, Err(Error::Stopped(stop)));
        }
        let asked: Vec<_> =
            self.asked.iter().filter(|(_, (of, _))| *of == id).map(|(token, _)| token.clone()).collect();
        for token in asked {
            if let Some((_, reply)) = self.asked.remove(&token) {
                self.answer(reply, Err(Error::Stopped(stop)));
            }
        }
    }

    fn answer(&mut self, reply: Option<ReplySender>, result: Result<Reply, Error>) {
        self.answered.extend(reply.map(|reply| Answered::Said(reply, result)));
    }

    /// The hub cannot be reached any more.
    pub(super) fn lose(&mut self) {
        self.lost = true;
        for call in std::mem::take(&mut self.calls).into_values() {
            match call {
                OnItsWay::Start(_, reply) => self.answered.push(Answered::Started(reply, Err(lost()))),
                OnItsWay::Job(_, job) => self.answer(job.reply, Err(lost())),
            }
        }
        let sessions: Vec<_> = self.sessions.keys().cloned().collect();
        for session in sessions {
            self.stop(&session, Stop::Unreachable);
        }
    }
}

fn lost() -> Error {
    Error::Unreachable(Unreachable::Lost)
}
