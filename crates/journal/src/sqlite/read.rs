//! What is alive, events, decisions.

use std::collections::HashMap;

use super::rows::{self, Event, Question, Session};
use super::{Sqlite, tail};
use crate::stored::{Alive, OpenQuestion, StoredDecision, StoredEvent};
use crate::{Error, Place, Position};

impl Sqlite {
    pub(super) fn alive(&self) -> Result<Alive, Error> {
        let connection = &self.connection;
        let sessions = Session::open(connection)?;
        let ids: HashMap<i64, &str> = sessions.iter().map(|it| (it.number, &*it.of.id)).collect();
        let name = |number: i64| {
            ids.get(&number).map(|id| (*id).to_owned()).ok_or_else(|| Error::damaged(Place::Question))
        };
        let mut questions = Vec::new();
        for Question { token, session, deadline, record, decided } in Question::undecided(connection)? {
            if decided.is_some() {
                return Err(Error::damaged(Place::Question));
            }
            questions.push(OpenQuestion { token, session: name(session)?, deadline, record });
        }
        let mut unspent: Vec<StoredDecision> = Vec::new();
        for session in &sessions {
            let asked = Question::of(connection, session.number)?;
            let decided = asked.into_iter().filter_map(|it| it.decision(session.of.id.clone()));
            unspent.extend(decided.filter(|it| it.spent.is_none()));
        }
        unspent.sort_by(|one, other| one.token.cmp(&other.token));
        let subscriptions = rows::subscriptions(connection)?;
        if subscriptions.iter().any(|open| open.cursor > self.last) {
            return Err(Error::damaged(Place::Event));
        }
        let sessions = sessions.into_iter().map(|session| session.of).collect();
        Ok(Alive { sessions, questions, unspent, subscriptions, last: self.last, floor: self.floor })
    }

    pub(super) fn read_events(&self, after: Position, limit: usize) -> Result<Vec<StoredEvent>, Error> {
        let events = Event::after(&self.connection, after, limit)?;
        let mut names = HashMap::new();
        let mut before = after.max(self.floor);
        let mut stored = Vec::with_capacity(events.len());
        let full = events.len() == limit;
        for event in events {
            if event.position > self.floor {
                if event.position != before.next() {
                    return Err(tail::missing());
                }
                before = event.position;
            }
            stored.push(self.named(event, &mut names)?);
        }
        if !full && before < self.last {
            return Err(tail::missing());
        }
        Ok(stored)
    }

    pub(super) fn read_events_of(
        &self,
        session: &str,
        after: Position,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, Error> {
        let Some(session) = Session::named(&self.connection, session)? else { return Ok(Vec::new()) };
        let mut names = HashMap::from([(session.number, session.of.id)]);
        let places = self.tail.places(&self.connection, session.number, after, limit)?;
        let mut stored = Vec::with_capacity(places.len());
        for place in places {
            let event = Event::at(&self.connection, place)?.ok_or_else(tail::missing)?;
            if event.session != session.number {
                return Err(tail::missing());
            }
            stored.push(self.named(event, &mut names)?);
        }
        Ok(stored)
    }

    pub(super) fn read_decision(&self, token: &str) -> Result<Option<StoredDecision>, Error> {
        let Some(question) = Question::named(&self.connection, token)? else { return Ok(None) };
        let session = Session::numbered(&self.connection, question.session)?;
        Ok(question.decision(session.of.id))
    }

    fn named(&self, event: Event, names: &mut HashMap<i64, String>) -> Result<StoredEvent, Error> {
        let session = if let Some(name) = names.get(&event.session) {
            name.clone()
        } else {
            let name = Session::numbered(&self.connection, event.session)?.of.id;
            names.insert(event.session, name.clone());
            name
        };
        let Event { position, at, critical, id: event_id, body, .. } = event;
        Ok(StoredEvent { position, session, event_id, at, critical, body })
    }
}
