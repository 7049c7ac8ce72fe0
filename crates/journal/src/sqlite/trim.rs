//! What may go, oldest first, and the space that it took.

use std::collections::HashSet;

use rusqlite::{Connection, Params, Row, Transaction, TransactionBehavior};
use seal::UnixMillis;

use super::fault::fault;
use super::rows::{self, Event, FLOOR, Session, run};
use super::tail::{Tail, missing};
use super::{Sqlite, number, position};
use crate::{Error, Position, Retention, Trimmed};

/// How many events go between two looks at the size.
const HANDFUL: usize = 64;

impl Sqlite {
    pub(super) fn forget(&mut self, keep: &Retention, now: UnixMillis) -> Result<Trimmed, Error> {
        let mut done = Trimmed::default();
        let Self { connection, tail, floor, .. } = self;
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fault)?;
        let open = Session::open(&transaction)?.iter().map(|session| session.number).collect();
        let mut step = Step {
            transaction: &transaction,
            tail,
            open,
            keep,
            now,
            floor: number(*floor),
            gone: HashSet::new(),
            done: &mut done,
        };
        step.events()?;
        step.sessions()?;
        step.attempts()?;
        step.decisions()?;
        step.keys()?;
        let Step { floor: reached, gone, .. } = step;
        if reached != number(*floor) {
            rows::set_mark(&transaction, FLOOR, reached)?;
        }
        done.over = !done.more && is_over(&transaction, keep)?;
        transaction.commit().map_err(fault)?;
        tail.forget(&gone);
        *floor = position(reached);
        done.floor = *floor;
        done.more |= self.give_back(keep.step)?;
        Ok(done)
    }

    /// Shortens the file by free pages, and the log to nothing. Says whether free pages are left.
    fn give_back(&mut self, step: usize) -> Result<bool, Error> {
        let connection = &self.connection;
        if pragma(connection, "freelist_count")? > 0 {
            let mut statement =
                connection.prepare(&format!("PRAGMA incremental_vacuum({})", step.max(1))).map_err(fault)?;
            let mut rows = statement.query(()).map_err(fault)?;
            while rows.next().map_err(fault)?.is_some() {}
        }
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(())).map_err(fault)?;
        Ok(pragma(connection, "freelist_count")? > 0)
    }
}

struct Step<'a> {
    transaction: &'a Transaction<'a>,
    /// Not stored here, because that takes space, and a trim must be possible when there is none.
    tail: &'a Tail,
    /// Numbers of open sessions.
    open: HashSet<i64>,
    keep: &'a Retention,
    now: UnixMillis,
    floor: i64,
    /// The places of events that were forgotten; the tail does not know of it yet.
    gone: HashSet<i64>,
    done: &'a mut Trimmed,
}

struct Oldest {
    position: i64,
    session: i64,
    at: i64,
    id: String,
}

impl Step<'_> {
    fn cutoff(&self, age: Option<i64>) -> i64 {
        age.map_or(i64::MIN, |age| self.now.saturating_sub(age).get())
    }

    /// Raises the floor over what is too old or too much, and forgets what is below unless its session is open.
    fn events(&mut self) -> Result<(), Error> {
        let cutoff = self.cutoff(self.keep.events);
        let mut left = self.keep.step.max(1);
        loop {
            let over = is_over(self.transaction, self.keep)?;
            let oldest = self.oldest(left.min(HANDFUL))?;
            if oldest.is_empty() {
                return Ok(());
            }
            for event in oldest {
                if event.at >= cutoff && !over {
                    return Ok(());
                }
                if left == 0 {
                    self.done.more = true;
                    return Ok(());
                }
                left -= 1;
                self.floor = event.position;
                if !self.open.contains(&event.session) {
                    self.forget_event(event.position, event.session, &event.id)?;
                }
            }
        }
    }

    /// The next ones above the floor; one at least, to see whether there is more to do.
    fn oldest(&self, most: usize) -> Result<Vec<Oldest>, Error> {
        let sql = "SELECT position, session, at, id FROM events WHERE position > ? ORDER BY position LIMIT ?";
        self.list(sql, (self.floor, limit(most.max(1))), |row| {
            Ok(Oldest { position: row.get(0)?, session: row.get(1)?, at: row.get(2)?, id: row.get(3)? })
        })
    }

    /// What ended sessions left below the floor, then the sessions themselves once nothing of them is left.
    fn sessions(&mut self) -> Result<(), Error> {
        let mut left = self.keep.step.max(1);
        let sql =
            "SELECT number FROM sessions WHERE ended IS NOT NULL AND oldest <= ? ORDER BY oldest LIMIT ?";
        let ended: Vec<i64> = self.list(sql, (self.floor, limit(left)), |row| row.get(0))?;
        self.done.more |= ended.len() == left;
        for session in ended {
            let most = left + self.gone.len() + 1;
            let mut places = self.tail.places(self.transaction, session, Position::START, most)?;
            places.retain(|place| !self.gone.contains(place));
            let below = places.partition_point(|place| *place <= self.floor).min(left);
            for place in places.drain(..below) {
                let event = Event::at(self.transaction, place)?.ok_or_else(missing)?;
                self.forget_event(place, session, &event.id)?;
            }
            left -= below;
            if left == 0 {
                self.done.more = true;
                return Ok(());
            }
            let mut kept = Session::numbered(self.transaction, session)?;
            kept.oldest = places.first().copied();
            kept.write(self.transaction)?;
            self.forget_session(session)?;
        }
        Ok(())
    }

    fn attempts(&mut self) -> Result<(), Error> {
        let cutoff = self.cutoff(self.keep.events);
        self.done.attempts = self.forget_oldest("attempts", cutoff)?;
        while !self.done.more && is_over(self.transaction, self.keep)? {
            let sql =
                "DELETE FROM attempts WHERE number IN (SELECT number FROM attempts ORDER BY at LIMIT 64)";
            let gone = run(self.transaction, sql, ())? as u64;
            if gone == 0 {
                return Ok(());
            }
            self.done.attempts += gone;
            self.done.more = self.done.attempts >= self.keep.step as u64;
        }
        Ok(())
    }

    fn decisions(&mut self) -> Result<(), Error> {
        let most = self.keep.step.max(1);
        let sql = "SELECT number, session FROM questions WHERE decided IS NOT NULL AND decided < ?
                   AND session IN (SELECT number FROM sessions WHERE ended IS NOT NULL) ORDER BY decided LIMIT ?";
        let cutoff = self.cutoff(self.keep.decisions);
        let old = self.list(sql, (cutoff, limit(most)), |row| Ok((row.get(0)?, row.get(1)?)))?;
        self.done.more |= old.len() == most;
        for (question, session) in old {
            let question: i64 = question;
            run(self.transaction, "DELETE FROM questions WHERE number = ?", [question])?;
            self.forget_session(session)?;
            self.done.decisions += 1;
        }
        Ok(())
    }

    fn keys(&mut self) -> Result<(), Error> {
        self.done.keys = self.forget_oldest("keys", self.cutoff(self.keep.keys))?;
        Ok(())
    }

    fn forget_oldest(&mut self, table: &str, cutoff: i64) -> Result<u64, Error> {
        let sql = format!(
            "DELETE FROM {table} WHERE number IN (SELECT number FROM {table} WHERE at < ? ORDER BY at LIMIT ?)"
        );
        let most = self.keep.step.max(1);
        let gone = run(self.transaction, &sql, (cutoff, limit(most)))?;
        self.done.more |= gone == most;
        Ok(gone as u64)
    }

    /// An ended session goes when its events have gone, which the missing `oldest` says, and its questions.
    fn forget_session(&self, session: i64) -> Result<(), Error> {
        let sql = "DELETE FROM sessions WHERE number = ?1 AND ended IS NOT NULL AND oldest IS NULL
                   AND NOT EXISTS (SELECT 1 FROM questions WHERE session = ?1)";
        run(self.transaction, sql, [session]).map(drop)
    }

    fn forget_event(&mut self, place: i64, session: i64, id: &str) -> Result<(), Error> {
        run(self.transaction, "DELETE FROM events WHERE position = ?", [place])?;
        run(self.transaction, "DELETE FROM event_ids WHERE id = ?", [id])?;
        run(
            self.transaction,
            "DELETE FROM session_events WHERE session = ? AND position = ?",
            (session, place),
        )?;
        self.gone.insert(place);
        self.done.events += 1;
        Ok(())
    }

    fn list<T>(
        &self,
        sql: &str,
        parameters: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, Error> {
        let mut statement = self.transaction.prepare_cached(sql).map_err(fault)?;
        let rows = statement.query_map(parameters, read).map_err(fault)?;
        rows.collect::<Result<_, _>>().map_err(fault)
    }
}

fn limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

/// Whether what is in use, free pages aside, is more than may be.
fn is_over(connection: &Connection, keep: &Retention) -> Result<bool, Error> {
    let Some(most) = keep.bytes else { return Ok(false) };
    let pages = pragma(connection, "page_count")? - pragma(connection, "freelist_count")?;
    let bytes = pages.saturating_mul(pragma(connection, "page_size")?);
    Ok(u64::try_from(bytes).unwrap_or(0) > most)
}

fn pragma(connection: &Connection, name: &str) -> Result<i64, Error> {
    connection.pragma_query_value(None, name, |row| row.get(0)).map_err(fault)
}
