//! What listeners and agent connections of this node have in one shard, so that it can be set up again at the shard's next
//! owner.

use aaep::{ReplyToken, SessionId, SubscriptionId, UnixMillis};
use hub::command::{AgentNotice, EndReason, HubCommand, HubReply, Request, RequestId, TurnOutput};
use hub::{AgentConnectionId, ListenerId, Principal};
use rustc_hash::{FxHashMap, FxHashSet};

/// The listeners and agent connections of this node that are attached to one shard.
#[derive(Default)]
pub(super) struct Standing {
    listeners: FxHashMap<ListenerId, StandingListener>,
    connections: FxHashMap<AgentConnectionId, FxHashMap<SessionId, FollowedSession>>,
    /// The requests that set these up again.
    repairs: FxHashMap<RequestId, Repair>,
}

struct StandingListener {
    principal: Principal,
    subscription: SubscriptionId,
    start: ListenerStart,
    /// The request that attaches it, until it has a reply.
    request: Option<RequestId>,
}

enum ListenerStart {
    /// After this id, or with new events only.
    After(Option<String>),
    SessionStarts,
}

struct FollowedSession {
    principal: Principal,
    /// The questions and hand-offs that the connection opened and that are not resolved yet.
    open: FxHashSet<ReplyToken>,
}

enum Repair {
    Attach(ListenerId),
    Follow(AgentConnectionId, SessionId),
    /// Asks for the outcome of a question, which may have been resolved while the connection followed nothing.
    FindOutcome(AgentConnectionId, SessionId, ReplyToken),
}

/// A request on an agent connection, whose reply says what the connection follows from then on.
#[derive(Clone)]
pub(super) struct ConnectionRequest {
    connection: AgentConnectionId,
    principal: Principal,
    /// The session that the request names.
    session: Option<SessionId>,
}

impl ConnectionRequest {
    pub(super) fn of(request: &Request) -> Option<Self> {
        let HubCommand::OnConnection { connection, command } = &request.command else { return None };
        let session = command.session().cloned();
        Some(Self { connection: *connection, principal: request.principal.clone(), session })
    }
}

impl Standing {
    /// Records what a request changes.
    pub(super) fn note_request(&mut self, request: &Request) {
        let (listener, subscription, start) = match &request.command {
            HubCommand::Attach { subscription, last_event_id, listener } => {
                (listener, subscription, ListenerStart::After(last_event_id.clone()))
            }
            HubCommand::AttachFromStart { subscription, listener } => {
                (listener, subscription, ListenerStart::SessionStarts)
            }
            HubCommand::Detach { listener, .. } => {
                self.listeners.remove(listener);
                return;
            }
            HubCommand::DisconnectAgent { connection } => {
                self.connections.remove(connection);
                return;
            }
            _ => return,
        };
        let standing = StandingListener {
            principal: request.principal.clone(),
            subscription: subscription.clone(),
            start,
            request: Some(request.id),
        };
        self.listeners.insert(*listener, standing);
    }

    /// Returns the request that attaches a listener, if it has no reply yet.
    pub(super) fn attach_request(&self, listener: ListenerId) -> Option<RequestId> {
        self.listeners.get(&listener)?.request
    }

    /// Returns the subscriptions of the listeners.
    pub(super) fn subscriptions(&self) -> impl Iterator<Item = (ListenerId, &SubscriptionId)> {
        self.listeners.iter().map(|(id, listener)| (*id, &listener.subscription))
    }

    /// Returns the commands that detach everything from an owner.
    pub(super) fn departures(&self) -> Vec<HubCommand> {
        let detach = |listener: &ListenerId| HubCommand::Detach { listener: *listener, is_too_slow: false };
        let disconnect = |id: &AgentConnectionId| HubCommand::DisconnectAgent { connection: *id };
        self.listeners.keys().map(detach).chain(self.connections.keys().map(disconnect)).collect()
    }

    /// Records what an output changes. If it is the reply to a repair, returns what it means.
    pub(super) fn note_output(
        &mut self,
        output: &TurnOutput,
        connection_request: Option<&ConnectionRequest>,
    ) -> RepairResult {
        match output {
            TurnOutput::Reply(id, reply) => {
                if let Some(repair) = self.repairs.remove(id) {
                    return self.finish_repair(repair, reply);
                }
                if let Some(request) = connection_request {
                    self.note_reply(request, reply);
                }
            }
            TurnOutput::Join { listener, .. } => {
                if let Some(listener) = self.listeners.get_mut(listener) {
                    listener.request = None;
                }
            }
            TurnOutput::Close(listener) => {
                self.listeners.remove(listener);
            }
            TurnOutput::Notify(connection, notice) => self.note_notice(*connection, notice),
            _ => {}
        }
        RepairResult::None
    }

    fn note_reply(&mut self, request: &ConnectionRequest, reply: &HubReply) {
        let session = match reply {
            HubReply::SessionStarted { session_id } => Some(session_id),
            HubReply::NotFound
            | HubReply::Forbidden
            | HubReply::SessionEnded
            | HubReply::Malformed(_)
            | HubReply::Unavailable(_) => return,
            _ => request.session.as_ref(),
        };
        let Some(session) = session else { return };
        let of_connection = self.connections.entry(request.connection).or_default();
        let followed = of_connection.entry(session.clone()).or_insert_with(|| FollowedSession {
            principal: request.principal.clone(),
            open: FxHashSet::default(),
        });
        if let HubReply::QuestionOpened { reply_token, .. } = reply {
            followed.open.insert(reply_token.clone());
        }
    }

    fn note_notice(&mut self, connection: AgentConnectionId, notice: &AgentNotice) {
        let Some(sessions) = self.connections.get_mut(&connection) else { return };
        match notice {
            AgentNotice::QuestionResolved { session, token, .. }
            | AgentNotice::HandoffResolved { session, token, .. } => {
                if let Some(followed) = sessions.get_mut(session) {
                    followed.open.remove(token);
                }
            }
            AgentNotice::SessionEnded { session, .. } => {
                sessions.remove(session);
            }
            _ => {}
        }
    }

    /// Returns the requests that attach the listeners and connections to a new owner. `positions` are the ids after which the
    /// listeners resume, if they have heard something of this shard. Requests that still wait are not repeated.
    pub(super) fn repairs(
        &mut self,
        positions: &FxHashMap<ListenerId, Option<String>>,
        is_waiting: impl Fn(RequestId) -> bool,
        mut next_id: impl FnMut() -> RequestId,
    ) -> Vec<Request> {
        self.repairs.clear();
        let mut requests = Vec::new();
        for (id, listener) in &mut self.listeners {
            if listener.request.is_some_and(&is_waiting) {
                continue;
            }
            listener.request = None;
            if let Some(Some(position)) = positions.get(id) {
                listener.start = ListenerStart::After(Some(position.clone()));
            }
            let subscription = listener.subscription.clone();
            let command = match &listener.start {
                ListenerStart::After(after) => {
                    HubCommand::Attach { subscription, last_event_id: after.clone(), listener: *id }
                }
                ListenerStart::SessionStarts => HubCommand::AttachFromStart { subscription, listener: *id },
            };
            let request = Request { id: next_id(), principal: listener.principal.clone(), command };
            self.repairs.insert(request.id, Repair::Attach(*id));
            requests.push(request);
        }
        for (connection, sessions) in &self.connections {
            for (session, followed) in sessions {
                let command = Box::new(HubCommand::Follow { session: session.clone() });
                let command = HubCommand::OnConnection { connection: *connection, command };
                let request = Request { id: next_id(), principal: followed.principal.clone(), command };
                self.repairs.insert(request.id, Repair::Follow(*connection, session.clone()));
                requests.push(request);
                for token in &followed.open {
                    let (session, token) = (session.clone(), token.clone());
                    let repair = Repair::FindOutcome(*connection, session.clone(), token.clone());
                    let command = HubCommand::Wait { session, token, until: UnixMillis::MIN };
                    let request = Request { id: next_id(), principal: followed.principal.clone(), command };
                    self.repairs.insert(request.id, repair);
                    requests.push(request);
                }
            }
        }
        requests
    }

    fn finish_repair(&mut self, repair: Repair, reply: &HubReply) -> RepairResult {
        match (repair, reply) {
            (Repair::Attach(_), HubReply::Done)
            | (_, HubReply::Unavailable(_) | HubReply::QuestionPending | HubReply::SessionFollowed { .. }) => {
                RepairResult::Done
            }
            (Repair::Attach(listener), _) => {
                self.listeners.remove(&listener);
                RepairResult::Close(listener)
            }
            (Repair::Follow(connection, session), _) => {
                let sessions = self.connections.get_mut(&connection);
                // The outcomes of its questions are still on their way.
                let has_ended = sessions.is_some_and(|sessions| sessions.contains_key(&session));
                if !has_ended {
                    return RepairResult::Done;
                }
                RepairResult::Notify(
                    connection,
                    AgentNotice::SessionEnded { session, reason: EndReason::Unknown },
                )
            }
            (Repair::FindOutcome(connection, session, token), reply) => {
                let sessions = self.connections.get_mut(&connection);
                let followed = sessions.and_then(|sessions| sessions.get_mut(&session));
                if !followed.is_some_and(|followed| followed.open.remove(&token)) {
                    return RepairResult::Done;
                }
                match reply {
                    HubReply::QuestionResolved(outcome) => RepairResult::Notify(
                        connection,
                        AgentNotice::QuestionResolved { session, token, outcome: outcome.clone() },
                    ),
                    HubReply::HandoffResolved(outcome) => RepairResult::Notify(
                        connection,
                        AgentNotice::HandoffResolved { session, token, outcome: outcome.clone() },
                    ),
                    _ => RepairResult::Done,
                }
            }
        }
    }
}

/// What the reply to a repair means.
pub(super) enum RepairResult {
    /// The output is not the reply to a repair.
    None,
    /// The repair is complete.
    Done,
    /// The listener cannot be attached again, so it must be disconnected.
    Close(ListenerId),
    /// The agent connection missed this notice.
    Notify(AgentConnectionId, AgentNotice),
}
