//! The thread that owns the journal. It writes all batches that wait in one commit, so that many sessions share the cost of
//! making their facts durable.

use std::collections::VecDeque;

use asp::message::Authenticator;
use asp::{SessionId, StoredStep};
use journal::{Journal, JournalEntry, JournalError, Position, Retention, TrimReport};
use seal::{Digest, SystemRandom, UnixMillis};
use tokio::sync::{mpsc, oneshot};

use crate::crash_point;
use crate::records::{NODE_SESSION, NodeRecord, RecordError, SessionInfo, SessionRecord};

/// Maximum number of batches in one commit.
const MAX_BATCHES_PER_COMMIT: usize = 1024;
/// Number of events that are read at once.
const READ_CHUNK: usize = 1024;

/// Facts that become durable together or not at all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    /// The session that begins with this batch.
    pub(crate) opened: Option<SessionInfo>,
    pub(crate) session: Option<SessionId>,
    pub(crate) session_records: Vec<SessionRecord>,
    pub(crate) node_records: Vec<NodeRecord>,
    /// Whether the session ends with this batch.
    pub(crate) ends_session: bool,
}

impl Batch {
    pub(crate) fn of_session(session: SessionId, records: Vec<SessionRecord>) -> Self {
        Self { session: Some(session), session_records: records, ..Self::default() }
    }

    pub(crate) fn of_node(records: Vec<NodeRecord>) -> Self {
        Self { node_records: records, ..Self::default() }
    }

    fn is_empty(&self) -> bool {
        self.session_records.is_empty()
            && self.node_records.is_empty()
            && self.opened.is_none()
            && !self.ends_session
    }
}

/// The stored facts of one session.
#[derive(Debug)]
pub(crate) struct StoredSession {
    pub(crate) info: SessionInfo,
    pub(crate) records: Vec<SessionRecord>,
    pub(crate) is_ended: bool,
}

enum Command {
    Append { batch: Batch, at: UnixMillis, reply: oneshot::Sender<Result<(), JournalError>> },
    Contains { session: SessionId, reply: oneshot::Sender<Result<bool, JournalError>> },
    PauseCheckpoints { is_paused: bool, reply: oneshot::Sender<Result<(), JournalError>> },
    Trim { retention: Retention, now: UnixMillis, reply: oneshot::Sender<Result<TrimReport, JournalError>> },
    Read { session: SessionId, reply: oneshot::Sender<Result<Option<StoredSession>, JournalError>> },
}

/// A handle to the journal's thread.
#[derive(Clone, Debug)]
pub(crate) struct JournalWriter {
    commands: mpsc::UnboundedSender<Command>,
}

/// The facts with which a node starts.
#[derive(Debug, Default)]
pub(crate) struct StoredState {
    pub(crate) open_sessions: Vec<StoredSession>,
    /// Open sessions whose facts cannot be read, and why.
    pub(crate) unreadable_sessions: Vec<(SessionId, String)>,
    pub(crate) node_records: Vec<NodeRecord>,
}

impl JournalWriter {
    /// Reads the stored state, then starts the thread.
    pub(crate) fn start(mut journal: Box<dyn Journal>) -> Result<(Self, StoredState), JournalError> {
        let live = journal.restore()?;
        let mut state = StoredState::default();
        for session in &live.sessions {
            if session.id == NODE_SESSION {
                let events = read_events(&mut *journal, NODE_SESSION)?;
                let records = events.iter().map(|body| parse(body, NodeRecord::parse));
                state.node_records = records.collect::<Result<_, _>>().map_err(malformed)?;
            } else if let Ok(id) = SessionId::parse(&session.id) {
                match read_session(&mut *journal, id)? {
                    Some(Ok(session)) => state.open_sessions.push(session),
                    Some(Err(error)) => state.unreadable_sessions.push((id, error.to_string())),
                    None => {}
                }
            }
        }
        let mut thread = WriterThread { position: live.last_position, journal };
        if !live.sessions.iter().any(|session| session.id == NODE_SESSION) {
            thread.open_node_session()?;
        }
        let (commands, receiver) = mpsc::unbounded_channel();
        std::thread::Builder::new()
            .name("asp-journal".to_owned())
            .spawn(move || thread.run(receiver))
            .map_err(|error| JournalError::Io(error.into()))?;
        Ok((Self { commands }, state))
    }

    /// Makes a batch durable.
    pub(crate) async fn append(&self, batch: Batch, at: UnixMillis) -> Result<(), JournalError> {
        if batch.is_empty() {
            return Ok(());
        }
        let (reply, result) = oneshot::channel();
        self.request(Command::Append { batch, at, reply }, result).await
    }

    /// Returns whether a session is stored, open or ended.
    pub(crate) async fn contains(&self, session: SessionId) -> Result<bool, JournalError> {
        let (reply, result) = oneshot::channel();
        self.request(Command::Contains { session, reply }, result).await
    }

    /// Reads a session, open or ended.
    pub(crate) async fn read(&self, session: SessionId) -> Result<Option<StoredSession>, JournalError> {
        let (reply, result) = oneshot::channel();
        self.request(Command::Read { session, reply }, result).await
    }

    /// Keeps the journal file unchanged until the next call with `false`, so that it can be copied.
    pub(crate) async fn pause_checkpoints(&self, is_paused: bool) -> Result<(), JournalError> {
        let (reply, result) = oneshot::channel();
        self.request(Command::PauseCheckpoints { is_paused, reply }, result).await
    }

    /// Deletes old records of ended sessions, in one bounded step. Returns whether there may be more to delete.
    pub(crate) async fn trim(&self, retention: Retention, now: UnixMillis) -> Result<bool, JournalError> {
        let (reply, result) = oneshot::channel();
        Ok(self.request(Command::Trim { retention, now, reply }, result).await?.has_more)
    }

    async fn request<T>(
        &self,
        command: Command,
        result: oneshot::Receiver<Result<T, JournalError>>,
    ) -> Result<T, JournalError> {
        let stopped = || JournalError::Io(std::io::Error::other("the journal's thread has stopped").into());
        self.commands.send(command).map_err(|_| stopped())?;
        result.await.map_err(|_| stopped())?
    }
}

fn parse<T>(body: &[u8], parse: impl Fn(&str) -> Result<T, RecordError>) -> Result<T, RecordError> {
    let text = std::str::from_utf8(body).map_err(|_| RecordError("is malformed, because it is not UTF-8"))?;
    parse(text)
}

fn malformed(error: RecordError) -> JournalError {
    JournalError::Io(std::io::Error::other(error).into())
}

fn read_events(journal: &mut dyn Journal, session: &str) -> Result<Vec<Vec<u8>>, JournalError> {
    let mut bodies = Vec::new();
    let mut after = Position::START;
    loop {
        let events = journal.session_events(session, after, READ_CHUNK)?;
        let Some(last) = events.last() else { return Ok(bodies) };
        after = last.position;
        bodies.extend(events.into_iter().map(|event| event.body));
    }
}

/// Returns whether the records of a session begin with its invitation, which links to nothing. Old records of ended sessions are
/// deleted, the oldest first.
fn is_complete(records: &[SessionRecord]) -> bool {
    let Some(SessionRecord::Step(StoredStep::Sent { text } | StoredStep::Received { text })) =
        records.first()
    else {
        return false;
    };
    let envelope = Authenticator::default().parse_unauthenticated(text);
    envelope.is_ok_and(|envelope| envelope.integrity.previous_hash == Digest::ZERO)
}

/// Reads a session. An ended session of which records were deleted does not exist any more. The inner error says that its facts are malformed.
fn read_session(
    journal: &mut dyn Journal,
    id: SessionId,
) -> Result<Option<Result<StoredSession, RecordError>>, JournalError> {
    let name = id.to_string();
    let Some(stored) = journal.session(&name)? else { return Ok(None) };
    let events = read_events(journal, &name)?;
    let read = || {
        let info = parse(&stored.session.record, |text| SessionInfo::parse(id, text))?;
        let records =
            events.iter().map(|body| parse(body, SessionRecord::parse)).collect::<Result<_, _>>()?;
        Ok(StoredSession { info, records, is_ended: stored.is_ended })
    };
    match read() {
        Ok(session) if session.is_ended && !is_complete(&session.records) => Ok(None),
        result => Ok(Some(result)),
    }
}

struct WriterThread {
    journal: Box<dyn Journal>,
    position: Position,
}

/// A batch with the texts that its entries borrow.
struct PreparedBatch {
    opened: Option<(String, String, String)>,
    session: Option<String>,
    events: Vec<(String, String, String)>,
    ends_session: bool,
    at: UnixMillis,
}

impl WriterThread {
    fn run(mut self, mut commands: mpsc::UnboundedReceiver<Command>) {
        let mut waiting = VecDeque::new();
        while let Some(first) = commands.blocking_recv() {
            waiting.push_back(first);
            while waiting.len() < MAX_BATCHES_PER_COMMIT
                && let Ok(next) = commands.try_recv()
            {
                waiting.push_back(next);
            }
            let mut appends = Vec::new();
            for command in waiting.drain(..) {
                match command {
                    Command::Append { batch, at, reply } => appends.push((prepare(&batch, at), reply)),
                    Command::Contains { session, reply } => {
                        let found = self.journal.session(&session.to_string());
                        let _ = reply.send(found.map(|found| found.is_some()));
                    }
                    Command::PauseCheckpoints { is_paused, reply } => {
                        let result = if is_paused {
                            self.journal.pause_checkpoints()
                        } else {
                            self.journal.resume_checkpoints()
                        };
                        let _ = reply.send(result);
                    }
                    Command::Trim { retention, now, reply } => {
                        let _ = reply.send(self.journal.trim(&retention, now));
                    }
                    Command::Read { session, reply } => {
                        let result = read_session(&mut *self.journal, session);
                        let _ = reply.send(result.and_then(|found| found.transpose().map_err(malformed)));
                    }
                }
            }
            self.write(appends);
        }
    }

    /// Writes all batches in one commit. If a batch conflicts with what is stored, writes each on its own, so that it does not fail
    /// the others. After any other error, all of them fail.
    fn write(&mut self, appends: Vec<(PreparedBatch, oneshot::Sender<Result<(), JournalError>>)>) {
        if appends.is_empty() {
            return;
        }
        let batches: Vec<&PreparedBatch> = appends.iter().map(|(batch, _)| batch).collect();
        match self.commit(&batches) {
            Ok(()) => {
                for (_, reply) in appends {
                    let _ = reply.send(Ok(()));
                }
            }
            Err(JournalError::Conflict(_)) if appends.len() > 1 => {
                for (batch, reply) in appends {
                    let result = self.commit(&[&batch]);
                    let _ = reply.send(result);
                }
            }
            Err(error) => {
                let description = error.to_string();
                let mut first = Some(error);
                for (_, reply) in appends {
                    let error = first.take().unwrap_or_else(|| {
                        JournalError::Io(std::io::Error::other(description.clone()).into())
                    });
                    let _ = reply.send(Err(error));
                }
            }
        }
    }

    fn commit(&mut self, batches: &[&PreparedBatch]) -> Result<(), JournalError> {
        let mut position = self.position;
        let mut entries = Vec::new();
        for batch in batches {
            if let Some((id, agent, record)) = &batch.opened {
                entries.push(JournalEntry::SessionOpened {
                    id,
                    agent,
                    principal: NODE_SESSION,
                    lease_expires_at: UnixMillis::MAX,
                    record: record.as_bytes(),
                });
            }
            for (session, event_id, body) in &batch.events {
                position = position.next();
                entries.push(JournalEntry::Event {
                    position,
                    session,
                    event_id,
                    at: batch.at,
                    is_critical: false,
                    body: body.as_bytes(),
                });
            }
            if let (true, Some(id)) = (batch.ends_session, &batch.session) {
                entries.push(JournalEntry::SessionEnded { id, at: batch.at });
            }
        }
        crash_point::pass("store.before");
        self.journal.commit(&entries)?;
        crash_point::pass("store.after");
        self.position = position;
        Ok(())
    }

    fn open_node_session(&mut self) -> Result<(), JournalError> {
        self.journal.commit(&[JournalEntry::SessionOpened {
            id: NODE_SESSION,
            agent: NODE_SESSION,
            principal: NODE_SESSION,
            lease_expires_at: UnixMillis::MAX,
            record: b"{}",
        }])
    }
}

fn prepare(batch: &Batch, at: UnixMillis) -> PreparedBatch {
    let session = batch.session.map(|id| id.to_string());
    let opened = batch
        .opened
        .as_ref()
        .map(|info| (info.id.to_string(), info.peer.agent_id().to_string(), info.to_json()));
    let mut events = Vec::with_capacity(batch.session_records.len() + batch.node_records.len());
    if let Some(session) = &session {
        let records = batch.session_records.iter().map(SessionRecord::to_json);
        events.extend(records.map(|body| (session.clone(), event_id(at), body)));
    }
    let records = batch.node_records.iter().map(NodeRecord::to_json);
    events.extend(records.map(|body| (NODE_SESSION.to_owned(), event_id(at), body)));
    PreparedBatch { opened, session, events, ends_session: batch.ends_session, at }
}

/// Generates a time-ordered id, which keeps journal inserts append-only.
fn event_id(at: UnixMillis) -> String {
    asp::MessageId::generate(at, &mut SystemRandom).to_string()
}
