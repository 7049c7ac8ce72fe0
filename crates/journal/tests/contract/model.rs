//! The contract once more, as simply as can be: lists that are searched from the front, and copied for every batch.

use journal::stored::{
    Alive, OpenQuestion, OpenSession, OpenSubscription, Spending, StoredDecision, StoredEvent, StoredSession,
};
use journal::{Conflict, Entry, Position, Reason};
use seal::UnixMillis;

#[derive(Clone, Default)]
pub(crate) struct Model {
    pub(crate) events: Vec<StoredEvent>,
    sessions: Vec<(OpenSession, bool)>,
    questions: Vec<(OpenQuestion, Option<StoredDecision>)>,
    subscriptions: Vec<OpenSubscription>,
    pub(crate) keys: Vec<(String, String)>,
    pub(crate) last: Position,
    floor: Position,
}

impl Model {
    pub(crate) fn commit(&mut self, batch: &[Entry<'_>]) -> Result<(), Conflict> {
        let mut next = self.clone();
        for (entry, it) in batch.iter().enumerate() {
            next.apply(it).map_err(|reason| Conflict { entry, reason })?;
        }
        *self = next;
        Ok(())
    }

    pub(crate) fn trim(&mut self, cutoff: i64) {
        let old = self.events.iter().filter(|event| event.position > self.floor);
        let old = old.take_while(|event| event.at < UnixMillis::new(cutoff)).last();
        self.floor = old.map_or(self.floor, |event| event.position);
        let Self { events, sessions, questions, floor, .. } = self;
        let open = |id: &str| sessions.iter().any(|(session, ended)| session.id == id && !ended);
        events.retain(|event| event.position > *floor || open(&event.session));
        questions.retain(|(question, decision)| {
            open(&question.session) || decision.as_ref().is_none_or(|it| it.at >= UnixMillis::new(cutoff))
        });
        sessions.retain(|(session, ended)| {
            !ended
                || events.iter().any(|event| event.session == session.id)
                || questions.iter().any(|(question, _)| question.session == session.id)
        });
    }

    pub(crate) fn alive(&self) -> Alive {
        let open = self.sessions.iter().filter(|(_, ended)| !ended);
        let undecided = self.questions.iter().filter(|(_, decision)| decision.is_none());
        let decided = self.questions.iter().filter_map(|(_, decision)| decision.as_ref());
        let mut alive = Alive {
            sessions: open.map(|(session, _)| session.clone()).collect(),
            questions: undecided.map(|(question, _)| question.clone()).collect(),
            unspent: decided
                .filter(|it| it.spent.is_none() && self.open(&it.session).is_ok())
                .cloned()
                .collect(),
            subscriptions: self.subscriptions.clone(),
            last: self.last,
            floor: self.floor,
        };
        alive.questions.sort_by(|a, b| a.token.cmp(&b.token));
        alive.unspent.sort_by(|a, b| a.token.cmp(&b.token));
        alive.subscriptions.sort_by(|a, b| a.id.cmp(&b.id));
        alive
    }

    pub(crate) fn session(&self, id: &str) -> Option<StoredSession> {
        let (session, ended) = self.sessions.iter().find(|(session, _)| session.id == id)?;
        Some(StoredSession { opened: session.clone(), ended: *ended })
    }

    pub(crate) fn decision(&self, token: &str) -> Option<StoredDecision> {
        self.questions.iter().find(|(question, _)| question.token == token)?.1.clone()
    }

    fn open(&self, id: &str) -> Result<usize, Reason> {
        let place = self.sessions.iter().position(|(session, ended)| session.id == id && !ended);
        place.ok_or(Reason::SessionNotOpen)
    }

    fn asked(&self, token: &str) -> Result<usize, Reason> {
        let place = self.questions.iter().position(|(question, _)| question.token == token);
        place.ok_or(Reason::QuestionUnknown)
    }

    fn undecided(&self, token: &str) -> Result<usize, Reason> {
        let place = self.asked(token)?;
        if self.questions[place].1.is_some() { Err(Reason::AlreadyDecided) } else { Ok(place) }
    }

    fn subscribed(&self, id: &str) -> Result<usize, Reason> {
        self.subscriptions.iter().position(|open| open.id == id).ok_or(Reason::SubscriptionNotOpen)
    }

    fn apply(&mut self, entry: &Entry<'_>) -> Result<(), Reason> {
        match *entry {
            Entry::Event { position, session, event_id, at, critical, body } => {
                must(position == self.last.next(), Reason::Gap { expected: self.last.next() })?;
                must(self.events.iter().all(|event| event.event_id != event_id), Reason::EventKnown)?;
                self.open(session)?;
                let (session, event_id) = (session.to_owned(), event_id.to_owned());
                let body = body.to_vec();
                self.events.push(StoredEvent { position, session, event_id, at, critical, body });
                self.last = position;
            }
            Entry::SessionOpened { id, agent, principal, lease, record } => {
                must(self.sessions.iter().all(|(session, _)| session.id != id), Reason::SessionKnown)?;
                let (id, agent, principal) = (id.to_owned(), agent.to_owned(), principal.to_owned());
                self.sessions
                    .push((OpenSession { id, agent, principal, lease, record: record.to_vec() }, false));
            }
            Entry::SessionTouched { id, lease, record } => {
                let place = self.open(id)?;
                self.sessions[place].0.lease = lease;
                if let Some(record) = record {
                    self.sessions[place].0.record = record.to_vec();
                }
            }
            Entry::SessionEnded { id, .. } => {
                let place = self.open(id)?;
                let asks = |(question, decision): &(OpenQuestion, Option<StoredDecision>)| {
                    question.session == id && decision.is_none()
                };
                must(!self.questions.iter().any(asks), Reason::SessionStillAsks)?;
                self.sessions[place].1 = true;
            }
            Entry::QuestionOpened { token, session, deadline, record } => {
                must(self.asked(token).is_err(), Reason::QuestionKnown)?;
                self.open(session)?;
                let (token, session) = (token.to_owned(), session.to_owned());
                self.questions
                    .push((OpenQuestion { token, session, deadline, record: record.to_vec() }, None));
            }
            Entry::DeadlineMoved { token, deadline } => {
                let place = self.undecided(token)?;
                self.questions[place].0.deadline = deadline;
            }
            Entry::Decided { token, decision, by, receipt, at } => {
                let place = self.undecided(token)?;
                let OpenQuestion { token, session, deadline, record } = self.questions[place].0.clone();
                let (decision, by, receipt) = (decision.to_owned(), by.to_owned(), receipt.to_vec());
                let spent = None;
                self.questions[place].1 = Some(StoredDecision {
                    token,
                    session,
                    deadline,
                    record,
                    decision,
                    by,
                    receipt,
                    at,
                    spent,
                });
            }
            Entry::Spent { token, call, at } => {
                let place = self.asked(token)?;
                let session = self.questions[place].0.session.clone();
                let open = self.open(&session);
                let decision = self.questions[place].1.as_mut().ok_or(Reason::NotDecided)?;
                must(decision.spent.is_none(), Reason::AlreadySpent)?;
                open?;
                decision.spent = Some(Spending { call: call.to_vec(), at });
            }
            Entry::SubscriptionOpened { id, principal, record } => {
                must(self.subscribed(id).is_err(), Reason::SubscriptionKnown)?;
                let (id, principal) = (id.to_owned(), principal.to_owned());
                let (record, cursor) = (record.to_vec(), Position::START);
                self.subscriptions.push(OpenSubscription { id, principal, record, cursor });
            }
            Entry::SubscriptionChanged { id, record } => {
                let place = self.subscribed(id)?;
                self.subscriptions[place].record = record.to_vec();
            }
            Entry::SubscriptionClosed { id } => drop(self.subscriptions.remove(self.subscribed(id)?)),
            Entry::Cursor { subscription, position } => {
                let place = self.subscribed(subscription)?;
                must(position <= self.last, Reason::BeyondLast)?;
                let cursor = &mut self.subscriptions[place].cursor;
                *cursor = position.max(*cursor);
            }
            Entry::Idempotent { principal, key, .. } => {
                let name = (principal.to_owned(), key.to_owned());
                must(!self.keys.contains(&name), Reason::KeyUsed)?;
                self.keys.push(name);
            }
            Entry::Attempt { .. } => {}
            _ => panic!("the model does not know this entry"),
        }
        Ok(())
    }
}

fn must(holds: bool, reason: Reason) -> Result<(), Reason> {
    if holds { Ok(()) } else { Err(reason) }
}
