//! What listeners and agent connections of this node have in one shard, so that it can be set up again at the shard's next
//! owner.

use aaep::{ReplyToken, SessionId, SubscriptionId};
use hub::command::{AgentNotice, HubCommand, HubReply, Request, RequestId, TurnOutput};
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
    /// The questions and hand-offs whose outcomes the connection has received. A new owner sends all outcomes again.
    reported: FxHashSet<ReplyToken>,
}

/// Maximum number of outcomes that are remembered for each session and connection. Beyond it, outcomes may arrive twice after a
/// move.
const MAX_REPORTED: usize = 1_024;

#[derive(Clone, Copy)]
enum Repair {
    Attach(ListenerId),
    Follow,
}

/// What the reply to a request decides.
pub(super) enum RequestEffect {
    /// Nothing here.
    None,
    /// Whether a listener is attached.
    Attach(ListenerId),
    /// What an agent connection follows from then on.
    Follow(ConnectionRequest),
}

/// A request on an agent connection.
pub(super) struct ConnectionRequest {
    connection: AgentConnectionId,
    principal: Principal,
    /// The session that the request names.
    session: Option<SessionId>,
}

impl RequestEffect {
    pub(super) fn of(request: &Request) -> Self {
        match &request.command {
            HubCommand::Attach { listener, .. } | HubCommand::AttachFromStart { listener, .. } => {
                Self::Attach(*listener)
            }
            HubCommand::OnConnection { connection, command } => Self::Follow(ConnectionRequest {
                connection: *connection,
                principal: request.principal.clone(),
                session: command.session().cloned(),
            }),
            _ => Self::None,
        }
    }
}

impl Standing {
    /// Records what a request changes. Returns `false` if it ends something that this shard does not have.
    pub(super) fn note_request(&mut self, request: &Request) -> bool {
        let (listener, subscription, start) = match &request.command {
            HubCommand::Attach { subscription, last_event_id, listener } => {
                (listener, subscription, ListenerStart::After(last_event_id.clone()))
            }
            HubCommand::AttachFromStart { subscription, listener } => {
                (listener, subscription, ListenerStart::SessionStarts)
            }
            HubCommand::OnConnection { connection, .. } => {
                self.connections.entry(*connection).or_default();
                return true;
            }
            HubCommand::Detach { listener, .. } => return self.listeners.remove(listener).is_some(),
            HubCommand::DisconnectAgent { connection } => {
                return self.connections.remove(connection).is_some();
            }
            _ => return true,
        };
        let standing = StandingListener {
            principal: request.principal.clone(),
            subscription: subscription.clone(),
            start,
            request: Some(request.id),
        };
        self.listeners.insert(*listener, standing);
        true
    }

    /// Forgets what a request that was not handled would have set up.
    pub(super) fn forget_request(&mut self, request: &Request) {
        if let RequestEffect::Attach(listener) = RequestEffect::of(request) {
            self.listeners.remove(&listener);
        }
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
    pub(super) fn note_output(&mut self, output: &TurnOutput, effect: &RequestEffect) -> RepairResult {
        match output {
            TurnOutput::Reply(id, reply) => {
                if let Some(repair) = self.repairs.remove(id) {
                    return self.finish_repair(repair, reply);
                }
                match effect {
                    RequestEffect::Attach(listener) if *reply != HubReply::Done => {
                        self.listeners.remove(listener);
                    }
                    RequestEffect::Follow(request) => self.note_reply(request, reply),
                    _ => {}
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
            TurnOutput::Notify(connection, notice) if !self.note_notice(*connection, notice) => {
                return RepairResult::Done;
            }
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
        // The connection may have been closed meanwhile.
        let Some(of_connection) = self.connections.get_mut(&request.connection) else { return };
        of_connection.entry(session.clone()).or_insert_with(|| FollowedSession {
            principal: request.principal.clone(),
            reported: FxHashSet::default(),
        });
    }

    /// Records a notice. Returns `false` if the connection has received it already.
    fn note_notice(&mut self, connection: AgentConnectionId, notice: &AgentNotice) -> bool {
        let Some(sessions) = self.connections.get_mut(&connection) else { return true };
        match notice {
            AgentNotice::QuestionResolved { session, token, .. }
            | AgentNotice::HandoffResolved { session, token, .. } => {
                let Some(followed) = sessions.get_mut(session) else { return true };
                if followed.reported.len() >= MAX_REPORTED {
                    followed.reported.clear();
                }
                followed.reported.insert(token.clone())
            }
            AgentNotice::SessionEnded { session, .. } => {
                sessions.remove(session);
                true
            }
            _ => true,
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
                self.repairs.insert(request.id, Repair::Follow);
                requests.push(request);
            }
        }
        requests
    }

    /// Whether the listener or connection of a repair still exists.
    pub(super) fn is_current(&self, repair: &Request) -> bool {
        match &repair.command {
            HubCommand::Attach { listener, .. } | HubCommand::AttachFromStart { listener, .. } => {
                self.listeners.contains_key(listener)
            }
            HubCommand::OnConnection { connection, .. } => self.connections.contains_key(connection),
            _ => false,
        }
    }

    fn finish_repair(&mut self, repair: Repair, reply: &HubReply) -> RepairResult {
        match repair {
            Repair::Attach(listener) if *reply != HubReply::Done => {
                self.listeners.remove(&listener);
                RepairResult::Close(listener)
            }
            // The owner itself sends the outcomes that a connection has missed.
            Repair::Attach(_) | Repair::Follow => RepairResult::Done,
        }
    }
}

/// What the reply to a repair means.
pub(super) enum RepairResult {
    /// The output is not the reply to a repair.
    None,
    /// The output is of no use to anybody else.
    Done,
    /// The listener cannot be attached again, so it must be disconnected.
    Close(ListenerId),
}
