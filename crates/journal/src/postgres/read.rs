//! Reads the live state, events, sessions, responses and decisions.

use seal::UnixMillis;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

use super::PostgresJournal;
use super::database::Session;
use super::live_index::{LiveIndex, LiveSubscription, ShardCounters};
use super::plan::{position_from_sql, position_to_sql};
use super::schema::expand_keys;
use super::write::index_key;
use crate::stored::{
    DecisionUse, LiveState, OpenQuestion, OpenSession, OpenSubscription, StoredDecision, StoredEvent,
    StoredManifest, StoredResponse, StoredSession,
};
use crate::{JournalError, Position};

const EVENT_COLUMNS: &str = "event.position, session.id, event.id, event.at, event.critical, event.body
    FROM sayso.event JOIN sayso.session ON session.shard = event.shard AND session.number = event.session";

const DECISION_COLUMNS: &str = "question.token, session.id, deadline, question.record, decision, decided_by, receipt,
    decided, call, spent
    FROM sayso.question JOIN sayso.session ON session.shard = question.shard AND session.number = question.session";

impl PostgresJournal {
    /// Reads the live state and replaces the index with it.
    pub(super) fn read_live_state(&mut self) -> Result<LiveState, JournalError> {
        let (shard, mut index) = (self.lease.shard(), LiveIndex::default());
        let found = self.read(&async |session: &Session| {
            let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
            session.client.batch_execute(begin).await?;
            let found = read_shard(&session.client, shard).await;
            session.client.batch_execute("COMMIT").await?;
            found
        })?;
        // Another owner may have taken the shard before its state was read.
        let Some(ShardContent { epoch, counters, sessions, live_state }) = found else {
            return Err(self.lease.mark_lost());
        };
        if epoch != self.lease.epoch() {
            return Err(self.lease.mark_lost());
        }
        for (session, number) in live_state.sessions.iter().zip(sessions) {
            index.add_session(&session.id, number);
        }
        for question in &live_state.questions {
            index.add_question(&question.token, &question.session, false);
        }
        for decision in &live_state.unspent_decisions {
            index.add_question(&decision.token, &decision.session, true);
        }
        for subscription in &live_state.subscriptions {
            let OpenSubscription { id, principal, record, cursor } = subscription;
            let size = |bytes: usize| i64::try_from(bytes).unwrap_or(i64::MAX);
            let live = LiveSubscription {
                cursor: *cursor,
                bytes: size(id.len() + principal.len() + record.len()),
                record_bytes: size(record.len()),
            };
            index.subscriptions.insert(id.as_str().into(), live);
        }
        index.counters = counters;
        self.index = index;
        Ok(live_state)
    }

    pub(super) fn read_events(
        &mut self,
        after: Position,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, JournalError> {
        let sql = format!(
            "SELECT {EVENT_COLUMNS} WHERE event.shard = $1 AND event.position > $2 ORDER BY event.position LIMIT $3"
        );
        let (shard, after, limit) = (self.lease.shard(), position_to_sql(after), sql_limit(limit));
        let rows = self.query(&sql, &[(&shard, Type::INT4), (&after, Type::INT8), (&limit, Type::INT8)])?;
        Ok(rows.iter().map(event_from_row).collect())
    }

    pub(super) fn read_session_events(
        &mut self,
        session: &str,
        after: Position,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, JournalError> {
        // The number of the session comes first, so that the events are found by their index.
        let sql = expand_keys(&format!(
            "SELECT {EVENT_COLUMNS} WHERE event.shard = $1 AND event.session =
             (SELECT number FROM sayso.session WHERE shard = $1 AND KEY(id) = $2)
             AND event.position > $3 ORDER BY event.position LIMIT $4"
        ));
        let (shard, after, limit) = (self.lease.shard(), position_to_sql(after), sql_limit(limit));
        let rows = self.query(
            &sql,
            &[
                (&shard, Type::INT4),
                (&index_key(session), Type::BYTEA),
                (&after, Type::INT8),
                (&limit, Type::INT8),
            ],
        )?;
        Ok(rows.iter().map(event_from_row).collect())
    }

    pub(super) fn find_event(&mut self, id: &str) -> Result<Option<Position>, JournalError> {
        let sql = expand_keys("SELECT position FROM sayso.event WHERE shard = $1 AND KEY(id) = $2");
        let shard = self.lease.shard();
        let rows = self.query(&sql, &[(&shard, Type::INT4), (&index_key(id), Type::BYTEA)])?;
        Ok(rows.first().map(|row| position_from_sql(row.get(0))))
    }

    pub(super) fn find_session(&mut self, id: &str) -> Result<Option<StoredSession>, JournalError> {
        let sql = expand_keys(
            "SELECT id, agent, principal, lease, record, ended IS NOT NULL FROM sayso.session
             WHERE shard = $1 AND KEY(id) = $2",
        );
        let shard = self.lease.shard();
        let rows = self.query(&sql, &[(&shard, Type::INT4), (&index_key(id), Type::BYTEA)])?;
        Ok(rows.first().map(|row| StoredSession { session: session_from_row(row), is_ended: row.get(5) }))
    }

    pub(super) fn find_response(
        &mut self,
        principal: &str,
        key: &str,
    ) -> Result<Option<StoredResponse>, JournalError> {
        let sql = expand_keys(
            "SELECT request, response, at FROM sayso.idempotency_key
             WHERE shard = $1 AND KEY(principal) = $2 AND KEY(key) = $3",
        );
        let shard = self.lease.shard();
        let rows = self.query(
            &sql,
            &[(&shard, Type::INT4), (&index_key(principal), Type::BYTEA), (&index_key(key), Type::BYTEA)],
        )?;
        Ok(rows.first().map(|row| StoredResponse {
            request: row.get(0),
            response: row.get(1),
            at: UnixMillis::new(row.get(2)),
        }))
    }

    pub(super) fn find_decision(&mut self, token: &str) -> Result<Option<StoredDecision>, JournalError> {
        let sql = expand_keys(&format!(
            "SELECT {DECISION_COLUMNS} WHERE question.shard = $1 AND KEY(token) = $2 AND decided IS NOT NULL"
        ));
        let shard = self.lease.shard();
        let rows = self.query(&sql, &[(&shard, Type::INT4), (&index_key(token), Type::BYTEA)])?;
        Ok(rows.first().map(decision_from_row))
    }

    /// Runs a query in one round trip, without preparing it first.
    fn query(
        &mut self,
        sql: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, JournalError> {
        self.read(&async |session: &Session| session.client.query_typed(sql, parameters).await)
    }
}

struct ShardContent {
    epoch: i64,
    counters: ShardCounters,
    /// The numbers of the open sessions, in the order of the live state.
    sessions: Vec<i64>,
    live_state: LiveState,
}

async fn read_shard(client: &Client, shard: i32) -> Result<Option<ShardContent>, tokio_postgres::Error> {
    let sql = "SELECT epoch, commit_number, last_position, trimmed_up_to, last_session, stored_bytes
               FROM sayso.shard WHERE id = $1";
    let Some(row) = client.query_opt(sql, &[&shard]).await? else { return Ok(None) };
    let counters = ShardCounters {
        commit_number: row.get(1),
        last_position: position_from_sql(row.get(2)),
        trimmed_up_to: position_from_sql(row.get(3)),
        last_session: row.get(4),
        stored_bytes: row.get(5),
    };
    let sql = "SELECT id, agent, principal, lease, record, number FROM sayso.session
               WHERE shard = $1 AND ended IS NULL ORDER BY number";
    let sessions = client.query(sql, &[&shard]).await?;
    let sql = "SELECT question.token, session.id, deadline, question.record
               FROM sayso.question JOIN sayso.session ON session.shard = question.shard AND session.number = question.session
               WHERE question.shard = $1 AND decided IS NULL ORDER BY question.token";
    let questions = client.query(sql, &[&shard]).await?;
    // Questions are found through the open sessions, because there may be many old decisions.
    let sql = format!(
        "SELECT {DECISION_COLUMNS} WHERE session.shard = $1 AND session.ended IS NULL AND question.shard = $1
         AND decided IS NOT NULL AND spent IS NULL ORDER BY question.token"
    );
    let decisions = client.query(&sql, &[&shard]).await?;
    let sql = "SELECT id, principal, record, cursor FROM sayso.subscription WHERE shard = $1 ORDER BY id";
    let subscriptions = client.query(sql, &[&shard]).await?;
    let sql = "SELECT agent, record FROM sayso.manifest WHERE shard = $1 ORDER BY agent";
    let manifests = client.query(sql, &[&shard]).await?;
    let live_state = LiveState {
        sessions: sessions.iter().map(session_from_row).collect(),
        questions: questions.iter().map(question_from_row).collect(),
        unspent_decisions: decisions.iter().map(decision_from_row).collect(),
        subscriptions: subscriptions.iter().map(subscription_from_row).collect(),
        manifests: manifests
            .iter()
            .map(|row| StoredManifest { agent: text_from_sql(row.get(0)), record: row.get(1) })
            .collect(),
        last_position: counters.last_position,
        trimmed_up_to: counters.trimmed_up_to,
        must_void_consents: false,
    };
    let numbers = sessions.iter().map(|row| row.get(5)).collect();
    Ok(Some(ShardContent { epoch: row.get(0), counters, sessions: numbers, live_state }))
}

fn event_from_row(row: &Row) -> StoredEvent {
    StoredEvent {
        position: position_from_sql(row.get(0)),
        session: text_from_sql(row.get(1)),
        event_id: text_from_sql(row.get(2)),
        at: UnixMillis::new(row.get(3)),
        is_critical: row.get(4),
        body: row.get(5),
    }
}

fn session_from_row(row: &Row) -> OpenSession {
    OpenSession {
        id: text_from_sql(row.get(0)),
        agent: text_from_sql(row.get(1)),
        principal: text_from_sql(row.get(2)),
        lease_expires_at: UnixMillis::new(row.get(3)),
        record: row.get(4),
    }
}

fn question_from_row(row: &Row) -> OpenQuestion {
    OpenQuestion {
        token: text_from_sql(row.get(0)),
        session: text_from_sql(row.get(1)),
        deadline: UnixMillis::new(row.get(2)),
        record: row.get(3),
    }
}

fn decision_from_row(row: &Row) -> StoredDecision {
    // The schema cannot forbid that these are missing, and a missing decision must not be an acceptance.
    let optional = |column: usize| row.get::<_, Option<&[u8]>>(column).unwrap_or_default();
    let spent_at: Option<i64> = row.get(9);
    StoredDecision {
        token: text_from_sql(row.get(0)),
        session: text_from_sql(row.get(1)),
        deadline: UnixMillis::new(row.get(2)),
        record: row.get(3),
        decision: text_from_sql(optional(4)),
        decided_by: text_from_sql(optional(5)),
        receipt: optional(6).to_vec(),
        decided_at: UnixMillis::new(row.get(7)),
        spent_on: spent_at.map(|at| DecisionUse { call: optional(8).to_vec(), at: UnixMillis::new(at) }),
    }
}

fn subscription_from_row(row: &Row) -> OpenSubscription {
    OpenSubscription {
        id: text_from_sql(row.get(0)),
        principal: text_from_sql(row.get(1)),
        record: row.get(2),
        cursor: position_from_sql(row.get(3)),
    }
}

/// Converts stored bytes to text. Only UTF-8 is ever stored.
pub(super) fn text_from_sql(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(super) fn sql_limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}
