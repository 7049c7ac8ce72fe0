//! One batch, one transaction, one synchronisation.

use std::collections::HashMap;

use rusqlite::{Connection, TransactionBehavior};
use seal::UnixMillis;

use super::fault::fault;
use super::rows::{self, Decision, Question, Session};
use super::tail::Tail;
use super::{Sqlite, number, sum};
use crate::stored::{OpenSession, Remembered, Spending};
use crate::{Conflict, Entry, Error, Position, Reason};

impl Sqlite {
    pub(super) fn write(&mut self, batch: &[Entry<'_>]) -> Result<(), Error> {
        let outcome = self.transact(batch);
        match &outcome {
            Ok(last) => self.last = *last,
            Err(error) => {
                self.tail.shorten(self.last);
                self.numbers.clear();
                if !matches!(error, Error::Conflict(_)) {
                    self.settle();
                }
            }
        }
        outcome.map(drop)
    }

    fn transact(&mut self, batch: &[Entry<'_>]) -> Result<Position, Error> {
        let Self { connection, tail, numbers, last, .. } = self;
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fault)?;
        let catches_up = tail.is_long();
        if catches_up {
            tail.store(&transaction)?;
        }
        let mut writer = Writer { connection: &transaction, tail, numbers, last: *last };
        for (entry, it) in batch.iter().enumerate() {
            match writer.apply(it) {
                Ok(()) => {}
                Err(Refusal::Conflict(reason)) => return Err(Error::Conflict(Conflict { entry, reason })),
                Err(Refusal::Failed(error)) => return Err(error),
            }
        }
        let reached = writer.last;
        transaction.commit().map_err(fault)?;
        if catches_up {
            self.tail.clear(self.last);
        }
        Ok(reached)
    }

    /// After a write that failed: nothing half done stays open, and the log begins anew, so that what the failed batch left
    /// in it cannot be taken for an acknowledged one. If that fails too, the next write will say so.
    fn settle(&mut self) {
        if !self.connection.is_autocommit() {
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()));
    }
}

enum Refusal {
    Conflict(Reason),
    Failed(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Reason> for Refusal {
    fn from(reason: Reason) -> Self {
        Self::Conflict(reason)
    }
}

struct Writer<'a> {
    connection: &'a Connection,
    tail: &'a mut Tail,
    numbers: &'a mut HashMap<String, i64>,
    last: Position,
}

impl Writer<'_> {
    fn apply(&mut self, entry: &Entry<'_>) -> Result<(), Refusal> {
        let connection = self.connection;
        match *entry {
            Entry::Event { position, session, event_id, at, critical, body } => {
                self.event(position, session, event_id, at, critical, body)?;
            }
            Entry::SessionOpened { id, agent, principal, lease, record } => {
                if Session::named(connection, id)?.is_some() {
                    return Err(Reason::SessionKnown.into());
                }
                let of = OpenSession {
                    id: id.to_owned(),
                    agent: agent.to_owned(),
                    principal: principal.to_owned(),
                    lease,
                    record: record.to_vec(),
                };
                let number = Session::next_number(connection)?;
                Session { number, of, ended: None, oldest: None }.write(connection)?;
                self.numbers.insert(id.to_owned(), number);
            }
            Entry::SessionTouched { id, lease, record } => {
                let mut session = self.open_session(id)?;
                session.of.lease = lease;
                if let Some(record) = record {
                    session.of.record = record.to_vec();
                }
                session.write(connection)?;
            }
            Entry::SessionEnded { id, at } => {
                let mut session = self.open_session(id)?;
                if Question::of(connection, session.number)?.iter().any(|asked| asked.decided.is_none()) {
                    return Err(Reason::SessionStillAsks.into());
                }
                session.ended = Some(at);
                let places = self.tail.places(connection, session.number, Position::START, 1)?;
                session.oldest = Some(places.first().copied().unwrap_or(0));
                session.write(connection)?;
                self.numbers.remove(id);
            }
            Entry::QuestionOpened { token, session, deadline, record } => {
                if Question::named(connection, token)?.is_some() {
                    return Err(Reason::QuestionKnown.into());
                }
                let session = self.number_of(session)?;
                let (token, record) = (token.to_owned(), record.to_vec());
                Question { token, session, deadline, record, decided: None }.write(connection)?;
            }
            Entry::DeadlineMoved { token, deadline } => {
                let mut question = self.undecided(token)?;
                question.deadline = deadline;
                question.write(connection)?;
            }
            Entry::Decided { token, decision, by, receipt, at } => {
                let mut question = self.undecided(token)?;
                let (answer, by, receipt) = (decision.to_owned(), by.to_owned(), receipt.to_vec());
                question.decided = Some(Decision { answer, by, receipt, at, spent: None });
                question.write(connection)?;
            }
            Entry::Spent { token, call, at } => self.spend(token, Spending { call: call.to_vec(), at })?,
            Entry::SubscriptionOpened { id, principal, record } => {
                if rows::subscription(connection, id)?.is_some() {
                    return Err(Reason::SubscriptionKnown.into());
                }
                rows::set_subscription(connection, id, principal, record)?;
                rows::set_cursor(connection, id, Position::START)?;
            }
            Entry::SubscriptionChanged { id, record } => {
                let open = rows::subscription(connection, id)?.ok_or(Reason::SubscriptionNotOpen)?;
                rows::set_subscription(connection, id, &open.principal, record)?;
            }
            Entry::SubscriptionClosed { id } => {
                rows::subscription(connection, id)?.ok_or(Reason::SubscriptionNotOpen)?;
                rows::remove_subscription(connection, id)?;
            }
            Entry::Cursor { subscription, position } => {
                let cursor = rows::cursor(connection, subscription)?.ok_or(Reason::SubscriptionNotOpen)?;
                if position > self.last {
                    return Err(Reason::BeyondLast.into());
                }
                if position > cursor {
                    rows::set_cursor(connection, subscription, position)?;
                }
            }
            Entry::Idempotent { principal, key, request, response, at } => {
                if rows::key(connection, principal, key)?.is_some() {
                    return Err(Reason::KeyUsed.into());
                }
                let kept = Remembered { request: request.to_vec(), response: response.to_vec(), at };
                rows::set_key(connection, principal, key, &kept)?;
            }
            Entry::Attempt { at, subscription, what } => {
                let sql = "INSERT INTO attempts VALUES (NULL, ?, ?, ?)";
                rows::run(connection, sql, (at.get(), subscription, what))?;
            }
        }
        Ok(())
    }

    fn event(
        &mut self,
        position: Position,
        session: &str,
        id: &str,
        at: UnixMillis,
        critical: bool,
        body: &[u8],
    ) -> Result<(), Refusal> {
        if position != self.last.next() || i64::try_from(position.get()).is_err() {
            return Err(Reason::Gap { expected: self.last.next() }.into());
        }
        if self.tail.find(self.connection, id)?.is_some() {
            return Err(Reason::EventKnown.into());
        }
        let session = self.number_of(session)?;
        let place = number(position);
        let sum = sum::event(place, session, at.get(), critical, id, body);
        let sql = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)";
        let mut statement = self.connection.prepare_cached(sql).map_err(fault)?;
        statement.execute((place, session, at.get(), critical, sum, id, body)).map_err(fault)?;
        self.tail.add(id.to_owned(), position, session);
        self.last = position;
        Ok(())
    }

    fn spend(&mut self, token: &str, spending: Spending) -> Result<(), Refusal> {
        let mut question = Question::named(self.connection, token)?.ok_or(Reason::QuestionUnknown)?;
        let decided = question.decided.as_mut().ok_or(Reason::NotDecided)?;
        if decided.spent.is_some() {
            return Err(Reason::AlreadySpent.into());
        }
        decided.spent = Some(spending);
        if Session::numbered(self.connection, question.session)?.ended.is_some() {
            return Err(Reason::SessionNotOpen.into());
        }
        Ok(question.write(self.connection)?)
    }

    fn undecided(&self, token: &str) -> Result<Question, Refusal> {
        let question = Question::named(self.connection, token)?.ok_or(Reason::QuestionUnknown)?;
        if question.decided.is_some() { Err(Reason::AlreadyDecided.into()) } else { Ok(question) }
    }

    fn open_session(&self, id: &str) -> Result<Session, Refusal> {
        let session = Session::named(self.connection, id)?.ok_or(Reason::SessionNotOpen)?;
        if session.ended.is_some() { Err(Reason::SessionNotOpen.into()) } else { Ok(session) }
    }

    fn number_of(&mut self, id: &str) -> Result<i64, Refusal> {
        if let Some(number) = self.numbers.get(id) {
            return Ok(*number);
        }
        let number = self.open_session(id)?.number;
        self.numbers.insert(id.to_owned(), number);
        Ok(number)
    }
}
