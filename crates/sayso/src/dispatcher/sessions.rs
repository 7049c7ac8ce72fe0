//! The dispatcher itself. [`Dispatcher::handle`] and [`Dispatcher::receive`] are its inputs. After either of them,
//! [`Dispatcher::send_outgoing`] sends the resulting calls, and [`Dispatcher::take_replies`] returns the replies to deliver.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Instant;

use aaep::{ReplyToken, SessionId};
use rustc_hash::FxHashMap;
use tokio::sync::{oneshot, watch};

use super::command_queue::WeakCommandQueue;
use super::progress_merger::{ProgressMerger, ProgressStep};
use super::{
    ABANDONED_TOOL_SUMMARY, OpenSession, ReplySender, SessionCommand, SpeakerKey, StartReplySender,
    abandon_intent,
};
use crate::abandon::AbandonReason;
use crate::error::{Error, MalformedInput, StopReason, UnreachableReason};
use crate::member::Document;
use crate::redact::CountingRedactor;
use crate::session_state::{FinalEvent, Intent, SessionState};
use crate::transport::{CallNumber, CallReply, HubCall, HubMessage, Transport};

/// The dispatcher of all sessions of a hub.
pub(crate) struct Dispatcher {
    commands: WeakCommandQueue,
    last_call_number: CallNumber,
    sessions: FxHashMap<SpeakerKey, SessionEntry>,
    pending_calls: FxHashMap<CallNumber, PendingCall>,
    /// Open questions, by their reply tokens.
    open_questions: HashMap<ReplyToken, (SpeakerKey, Option<ReplySender>)>,
    flush_waiters: Vec<oneshot::Sender<()>>,
    /// When held progress updates must be sent, and whose. An entry is outdated if the update was sent earlier.
    progress_deadlines: BTreeMap<(Instant, u64), SpeakerKey>,
    progress_deadline_count: u64,
    /// Whether the connection to the hub is lost.
    is_disconnected: bool,
    /// Calls to send to the hub next.
    outgoing_calls: Vec<(CallNumber, HubCall)>,
    /// Ended sessions, which the transport must stop following.
    ended_sessions: Vec<SessionId>,
    replies: Vec<PendingReply>,
}

/// The result of a command. It is delivered after the dispatcher is unlocked, because the recipient may send a command immediately.
pub(super) enum PendingReply {
    Submit(ReplySender, Result<CallReply, Error>),
    Start(StartReplySender, Result<OpenSession, Error>),
}

impl PendingReply {
    pub(super) fn deliver(self) {
        match self {
            Self::Submit(reply, result) => drop(reply.send(result)),
            // If nobody is waiting for the session, `send` returns it. Dropping it ends the session.
            Self::Start(reply, result) => drop(reply.send(result)),
        }
    }
}

struct SessionEntry {
    state: SessionState,
    progress: ProgressMerger,
    queue: VecDeque<QueuedIntent>,
    is_busy: bool,
    is_awaiting_stop_reason: bool,
    stop: watch::Sender<Option<StopReason>>,
}

impl SessionEntry {
    fn new(state: SessionState, stop: watch::Sender<Option<StopReason>>) -> Self {
        Self {
            state,
            progress: ProgressMerger::default(),
            queue: VecDeque::new(),
            is_busy: false,
            is_awaiting_stop_reason: false,
            stop,
        }
    }

    fn queue_event(&mut self, event: Option<Document>, reply: Option<ReplySender>) {
        if event.is_some() {
            self.queue.push_back(QueuedIntent { intent: Intent::Event(event), reply });
        }
    }

    /// Queues the progress update that is held, because something else follows it. Nobody waits for its reply.
    fn queue_held_progress(&mut self) {
        if self.progress.is_holding() {
            let event = self.progress.release(Instant::now());
            self.queue_event(event, None);
        }
    }
}

struct QueuedIntent {
    intent: Intent,
    reply: Option<ReplySender>,
}

enum PendingCall {
    /// Starts or joins a session.
    Start(CountingRedactor, StartReplySender),
    Invite(ReplySender),
    Intent(SpeakerKey, QueuedIntent),
}

impl Dispatcher {
    pub(crate) fn new(commands: WeakCommandQueue) -> Self {
        Self {
            commands,
            last_call_number: 0,
            sessions: FxHashMap::default(),
            pending_calls: FxHashMap::default(),
            open_questions: HashMap::new(),
            flush_waiters: Vec::new(),
            progress_deadlines: BTreeMap::new(),
            progress_deadline_count: 0,
            is_disconnected: false,
            outgoing_calls: Vec::new(),
            ended_sessions: Vec::new(),
            replies: Vec::new(),
        }
    }

    /// Sends the outgoing calls over the transport.
    pub(super) fn send_outgoing(&mut self, transport: &mut impl Transport) {
        for (number, call) in self.outgoing_calls.drain(..) {
            transport.send(number, call);
        }
        for session in self.ended_sessions.drain(..) {
            transport.unfollow(&session);
        }
    }

    /// Returns the replies since the last call. One reply is the usual case, and then the vector's memory is reused.
    pub(super) fn take_replies(&mut self) -> impl Iterator<Item = PendingReply> + use<> {
        let (one, many) = match self.replies.len() {
            0 | 1 => (self.replies.pop(), Vec::new()),
            _ => (None, std::mem::take(&mut self.replies)),
        };
        one.into_iter().chain(many)
    }

    /// Whether replies are outstanding.
    pub(super) fn has_pending_calls(&self) -> bool {
        !self.pending_calls.is_empty() && !self.is_disconnected
    }

    pub(super) fn is_disconnected(&self) -> bool {
        self.is_disconnected
    }

    /// Whether somebody is waiting for a flush, and the flush is complete because every call has been answered.
    pub(super) fn has_completed_flush(&self) -> bool {
        self.pending_calls.is_empty() && !self.flush_waiters.is_empty()
    }

    pub(super) fn notify_flushed(&mut self) {
        for waiter in self.flush_waiters.drain(..) {
            let _ = waiter.send(());
        }
    }

    pub(super) fn handle(&mut self, command: SessionCommand) {
        match command {
            SessionCommand::Start { reply, .. } | SessionCommand::Join { reply, .. }
                if self.is_disconnected =>
            {
                self.replies.push(PendingReply::Start(reply, Err(connection_lost())));
            }
            SessionCommand::Start { body, redactor, reply } => {
                self.send_call(PendingCall::Start(redactor, reply), HubCall::Start { body });
            }
            SessionCommand::Join { session, body, redactor, reply } => {
                self.send_call(PendingCall::Start(redactor, reply), HubCall::Join { session, body });
            }
            SessionCommand::Invite { reply, .. } if self.is_disconnected => {
                self.reply(Some(reply), Err(connection_lost()));
            }
            SessionCommand::Invite { session, body, reply } => {
                self.send_call(PendingCall::Invite(reply), HubCall::Invite { session, body });
            }
            SessionCommand::Submit { session, intent, reply } => self.submit(&session, intent, reply),
            SessionCommand::Withdraw { session } => self.withdraw(&session),
            SessionCommand::Flush(reply) => {
                self.release_progress(self.sessions.keys().cloned().collect());
                self.flush_waiters.push(reply);
            }
        }
    }

    fn submit(&mut self, session: &SpeakerKey, intent: Intent, reply: Option<ReplySender>) {
        self.add_producer(session, &intent);
        if session.producer.is_none() && matches!(intent, Intent::End { .. }) {
            // The session ends for all its speakers.
            self.release_progress(self.keys_of(&session.session));
        }
        let Some(entry) = self.sessions.get_mut(session).filter(|entry| !entry.is_awaiting_stop_reason)
        else {
            let error =
                if self.is_disconnected { connection_lost() } else { Error::Stopped(StopReason::Other) };
            return self.reply(reply, Err(error));
        };
        match intent {
            Intent::Progress(event, mark) => match entry.progress.push(event, mark, Instant::now()) {
                ProgressStep::Hold { new_deadline } => {
                    if let Some(at) = new_deadline {
                        self.progress_deadline_count += 1;
                        self.progress_deadlines.insert((at, self.progress_deadline_count), session.clone());
                    }
                    return self.reply(reply, Ok(CallReply::Done));
                }
                ProgressStep::Send { earlier, update } => {
                    entry.queue_event(earlier, None);
                    entry.queue_event(Some(update), reply);
                }
            },
            intent => {
                entry.queue_held_progress();
                entry.queue.push_back(QueuedIntent { intent, reply });
            }
        }
        self.send_next(session);
    }

    /// Sends the progress updates of these speakers that are held.
    fn release_progress(&mut self, speakers: Vec<SpeakerKey>) {
        for speaker in speakers {
            if let Some(entry) = self.sessions.get_mut(&speaker) {
                entry.queue_held_progress();
                self.send_next(&speaker);
            }
        }
    }

    /// Returns when a progress update that is held must be sent. It may have been sent already.
    pub(super) fn next_progress_deadline(&self) -> Option<Instant> {
        self.progress_deadlines.first_key_value().map(|((at, _), _)| *at)
    }

    /// Sends the progress updates whose time is over.
    pub(super) fn send_due_progress(&mut self, now: Instant) {
        while let Some(due) = self.progress_deadlines.first_entry().filter(|due| due.key().0 <= now) {
            let speaker = due.remove();
            if let Some(entry) = self.sessions.get_mut(&speaker) {
                let event = entry.progress.release_due(now);
                entry.queue_event(event, None);
                self.send_next(&speaker);
            }
        }
    }

    fn send_call(&mut self, pending: PendingCall, call: HubCall) {
        self.last_call_number += 1;
        self.pending_calls.insert(self.last_call_number, pending);
        self.outgoing_calls.push((self.last_call_number, call));
    }

    /// Starts to track a producer of one of this agent's own sessions when it speaks for the first time.
    fn add_producer(&mut self, key: &SpeakerKey, intent: &Intent) {
        if key.producer.is_none() || self.sessions.contains_key(key) || matches!(intent, Intent::Leave) {
            return;
        }
        let Some(main) = self.sessions.get(&SpeakerKey::main(key.session.clone())) else { return };
        let state = SessionState::new(key.clone(), main.state.redactor().clone());
        let entry = SessionEntry::new(state, main.stop.clone());
        self.sessions.insert(key.clone(), entry);
    }

    /// Sends the next queued intents of a session, unless one of its calls is in flight.
    fn send_next(&mut self, session: &SpeakerKey) {
        let Some(entry) = self.sessions.get_mut(session) else { return };
        let mut has_left = false;
        while !entry.is_busy
            && let Some(queued) = entry.queue.pop_front()
        {
            let mut queued = match entry.state.prerequisite(&queued.intent) {
                None => queued,
                Some(intent) => {
                    entry.queue.push_front(queued);
                    QueuedIntent { intent, reply: None }
                }
            };
            let Some(call) = entry.state.build_hub_call(&mut queued.intent) else {
                has_left |= matches!(queued.intent, Intent::Leave);
                self.replies
                    .extend(queued.reply.map(|reply| PendingReply::Submit(reply, Ok(CallReply::Done))));
                continue;
            };
            entry.is_busy = true;
            self.last_call_number += 1;
            self.pending_calls.insert(self.last_call_number, PendingCall::Intent(session.clone(), queued));
            self.outgoing_calls.push((self.last_call_number, call));
        }
        if has_left {
            self.end_session(session, StopReason::Other);
        }
    }

    /// Removes or withdraws the questions whose answers nobody is waiting for.
    fn withdraw(&mut self, session: &SpeakerKey) {
        let Some(entry) = self.sessions.get_mut(session) else { return };
        let is_abandoned =
            |reply: &Option<ReplySender>| reply.as_ref().is_some_and(oneshot::Sender::is_closed);
        entry.queue.retain(|queued| !(awaits_outcome(&queued.intent) && is_abandoned(&queued.reply)));
        for (token, (owner, reply)) in &mut self.open_questions {
            if owner == session && is_abandoned(reply) {
                *reply = None;
                // The withdrawal goes before everything that was queued since the question was asked, because a session with an open question cannot be finished.
                entry.queue.push_front(QueuedIntent {
                    intent: Intent::Withdraw { token: token.clone() },
                    reply: None,
                });
            }
        }
        self.send_next(session);
    }

    pub(super) fn receive(&mut self, message: HubMessage) {
        match message {
            HubMessage::Reply(number, result) => match self.pending_calls.remove(&number) {
                Some(PendingCall::Start(redactor, reply)) => self.on_session_started(redactor, reply, result),
                Some(PendingCall::Invite(reply)) => self.reply(Some(reply), result),
                Some(PendingCall::Intent(session, queued)) => self.on_reply(&session, queued, result),
                None => {}
            },
            HubMessage::Resolved { token, outcome } => {
                if let Some((session, reply)) = self.open_questions.remove(&token) {
                    if let Some(entry) = self.sessions.get_mut(&session) {
                        entry.state.resolve(&outcome);
                    }
                    self.reply(reply, Ok(CallReply::QuestionResolved(outcome)));
                }
            }
            HubMessage::Stopped { session, stop } => self.stop_session(&session, stop),
        }
    }

    fn on_session_started(
        &mut self,
        redactor: CountingRedactor,
        reply: StartReplySender,
        result: Result<CallReply, Error>,
    ) {
        let key = match result {
            Ok(CallReply::SessionStarted(id)) => SpeakerKey::main(id),
            Ok(CallReply::SessionJoined(session, producer)) => {
                SpeakerKey { session, producer: Some(producer) }
            }
            Ok(other) => {
                let error =
                    Error::Malformed(MalformedInput::Hub(format!("the hub sent no session id: {other:?}")));
                return self.replies.push(PendingReply::Start(reply, Err(error)));
            }
            Err(error) => return self.replies.push(PendingReply::Start(reply, Err(error))),
        };
        let (stop_sender, stop) = watch::channel(None);
        let state = SessionState::new(key.clone(), redactor);
        self.sessions.insert(key.clone(), SessionEntry::new(state, stop_sender));
        if let Some(commands) = self.commands.upgrade() {
            let session = OpenSession { key, stop, commands, started_at: Instant::now(), is_ended: false };
            self.replies.push(PendingReply::Start(reply, Ok(session)));
        } else {
            let intent = if key.producer.is_some() { Intent::Leave } else { abandon_intent() };
            self.handle(SessionCommand::Submit { session: key, intent, reply: None });
        }
    }

    fn on_reply(&mut self, session: &SpeakerKey, queued: QueuedIntent, result: Result<CallReply, Error>) {
        let Some(entry) = self.sessions.get_mut(session) else {
            return self.reply(queued.reply, result);
        };
        entry.is_busy = false;
        match (&result, &queued.intent) {
            (Ok(call_reply), intent) => {
                entry.state.apply(intent);
                if matches!(intent, Intent::End { .. } | Intent::Leave) {
                    self.end_session(session, StopReason::Other);
                } else if awaits_outcome(intent)
                    && let CallReply::QuestionOpened(token) = call_reply
                {
                    self.open_questions.insert(token.clone(), (session.clone(), queued.reply));
                    return self.withdraw(session);
                } else if let Intent::Withdraw { token } = intent
                    && self.open_questions.remove(token).is_some()
                {
                    // The reply contains the outcome, so the next intent need not wait for the notification of it.
                    if let CallReply::QuestionResolved(outcome) = call_reply {
                        entry.state.resolve(outcome);
                    } else {
                        entry.state.resolve_question(false);
                    }
                }
            }
            (Err(Error::Stopped(_)), _) => self.await_stop_reason(session),
            // The agent is gone or assumes that it has ended the session, so the dispatcher ends it on the agent's behalf.
            (Err(_), Intent::End { final_event, .. })
                if !matches!(final_event, FinalEvent::Abandoned(AbandonReason::FinalEventRejected)) =>
            {
                let intent = Intent::End {
                    final_event: FinalEvent::Abandoned(AbandonReason::FinalEventRejected),
                    open_tool_summary: ABANDONED_TOOL_SUMMARY,
                };
                entry.queue.push_front(QueuedIntent { intent, reply: None });
            }
            // The fallback `End` was rejected too. The hub ends the session when its lease expires.
            (Err(_), Intent::End { .. } | Intent::Leave) => self.end_session(session, StopReason::Other),
            // Held-back text must be sent before the next intent. If that fails, the next intent fails.
            (Err(error), Intent::Output { .. }) if queued.reply.is_none() => {
                // The intent that required this output may have been withdrawn, and the next one may not require it.
                let dependent =
                    entry.queue.front().filter(|next| entry.state.prerequisite(&next.intent).is_some());
                match dependent.map(|next| matches!(next.intent, Intent::End { .. })) {
                    // The session ends even if its output could not be sent.
                    Some(true) => entry.state.discard_output(),
                    Some(false) => {
                        if let Some(next) = entry.queue.pop_front() {
                            let error_reply = Err(error.clone());
                            self.reply(next.reply, error_reply);
                        }
                    }
                    None => {}
                }
            }
            (Err(_), _) => {}
        }
        self.reply(queued.reply, result);
        self.send_next(session);
    }

    /// Ends a session that somebody other than its agent has stopped.
    fn stop_session(&mut self, session: &SessionId, stop: StopReason) {
        for key in self.keys_of(session) {
            if let Some(entry) = self.sessions.get(&key) {
                entry.stop.send_replace(Some(stop));
            }
            self.end_session(&key, stop);
        }
    }

    fn keys_of(&self, session: &SessionId) -> Vec<SpeakerKey> {
        self.sessions.keys().filter(|key| key.session == *session).cloned().collect()
    }

    /// Fails everything queued in a session that the hub no longer knows, and waits for the notification with the reason.
    fn await_stop_reason(&mut self, session: &SpeakerKey) {
        let Some(entry) = self.sessions.get_mut(session) else { return };
        entry.is_awaiting_stop_reason = true;
        for queued in std::mem::take(&mut entry.queue) {
            self.reply(queued.reply, Err(Error::Stopped(StopReason::Other)));
        }
    }

    /// Removes a session that is over, or a producer that left, and fails everything that is still waiting. A session
    /// that its main producer has ended is over for all of them.
    fn end_session(&mut self, session: &SpeakerKey, stop: StopReason) {
        let Some((id, entry)) = self.sessions.remove_entry(session) else { return };
        let redacted = entry.state.redaction_count();
        if redacted > 0 && id.producer.is_none() {
            tracing::info!(session = %id.session, redacted, "secrets were removed from what people heard");
        }
        let others = self.keys_of(&id.session);
        if id.producer.is_none() {
            for other in &others {
                self.end_session(other, stop);
            }
        }
        if id.producer.is_none() || others.is_empty() {
            self.ended_sessions.push(id.session.clone());
        }
        for queued in entry.queue {
            self.reply(queued.reply, Err(Error::Stopped(stop)));
        }
        let tokens: Vec<_> = self
            .open_questions
            .iter()
            .filter(|(_, (owner, _))| *owner == id)
            .map(|(token, _)| token.clone())
            .collect();
        for token in tokens {
            if let Some((_, reply)) = self.open_questions.remove(&token) {
                self.reply(reply, Err(Error::Stopped(stop)));
            }
        }
    }

    fn reply(&mut self, reply: Option<ReplySender>, result: Result<CallReply, Error>) {
        self.replies.extend(reply.map(|reply| PendingReply::Submit(reply, result)));
    }

    /// Handles the loss of the connection to the hub.
    pub(super) fn disconnect(&mut self) {
        self.is_disconnected = true;
        for call in std::mem::take(&mut self.pending_calls).into_values() {
            match call {
                PendingCall::Start(_, reply) => {
                    self.replies.push(PendingReply::Start(reply, Err(connection_lost())));
                }
                PendingCall::Invite(reply) => self.reply(Some(reply), Err(connection_lost())),
                PendingCall::Intent(_, queued) => self.reply(queued.reply, Err(connection_lost())),
            }
        }
        let sessions: Vec<_> = self.sessions.keys().map(|key| key.session.clone()).collect();
        for session in sessions {
            self.stop_session(&session, StopReason::Unreachable);
        }
    }
}

/// Whether the agent waits until somebody has answered.
fn awaits_outcome(intent: &Intent) -> bool {
    matches!(intent, Intent::Ask { .. } | Intent::HandOff { .. })
}

fn connection_lost() -> Error {
    Error::Unreachable(UnreachableReason::ConnectionLost)
}
