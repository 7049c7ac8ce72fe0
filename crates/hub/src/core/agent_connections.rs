//! Agent connections and the sessions they follow.
//!
//! A connection that follows a session receives a notice when a question is resolved or the session ends. While a
//! session has a follower, its agent counts as present (decision 16).

use std::collections::HashSet;

use aaep::consent::Resolution;
use aaep::event::{CancelledBy, Event, Payload};
use aaep::json::Tape;
use aaep::{ReplyToken, SessionId};
use journal::Position;
use rustc_hash::FxHashMap;

use super::producers::SessionRole;
use super::{Core, DeferToNextTurn, PostCommit, TurnContext, handoffs};
use crate::command::{
    AgentNotice, EndReason, HubCommand, HubReply, LimitReached, QuestionOutcome, RequestId,
};
use crate::compose::{ENDED_BY, ENDED_BY_HUB, ENDED_BY_USER};
use crate::{AgentConnectionId, Principal};

#[derive(Default)]
pub(super) struct AgentConnections {
    followers: FxHashMap<SessionId, Vec<Follower>>,
    followed_sessions: FxHashMap<AgentConnectionId, HashSet<SessionId>>,
}

/// A connection that follows a session, and what its principal may do in the session.
pub(super) struct Follower {
    connection: AgentConnectionId,
    role: SessionRole,
}

impl AgentConnections {
    pub(super) fn followers_of(&self, session: &SessionId) -> &[Follower] {
        self.followers.get(session).map_or(&[], Vec::as_slice)
    }

    fn follow(&mut self, connection: AgentConnectionId, role: SessionRole, session: &SessionId) {
        if self.followed_sessions.entry(connection).or_default().insert(session.clone()) {
            self.followers.entry(session.clone()).or_default().push(Follower { connection, role });
        }
    }

    /// Removes a session that ended.
    pub(super) fn remove_session(&mut self, session: &SessionId) {
        for Follower { connection, .. } in self.followers.remove(session).unwrap_or_default() {
            if let Some(sessions) = self.followed_sessions.get_mut(&connection) {
                sessions.remove(session);
                if sessions.is_empty() {
                    self.followed_sessions.remove(&connection);
                }
            }
        }
    }

    /// Removes a closed connection, and returns the sessions it followed.
    pub(super) fn remove_connection(&mut self, connection: AgentConnectionId) -> HashSet<SessionId> {
        let sessions = self.followed_sessions.remove(&connection).unwrap_or_default();
        for session in &sessions {
            if let Some(followers) = self.followers.get_mut(session) {
                followers.retain(|follower| follower.connection != connection);
                if followers.is_empty() {
                    self.followers.remove(session);
                }
            }
        }
        sessions
    }

    /// Removes sessions that no longer exist after a turn was discarded.
    pub(super) fn retain_sessions(&mut self, exists: impl Fn(&SessionId) -> bool) {
        let ended: Vec<_> = self.followers.keys().filter(|session| !exists(session)).cloned().collect();
        for session in ended {
            self.remove_session(&session);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.followed_sessions.len()
    }
}

impl Core {
    /// Handles a command on an agent connection, which follows the command's session from then on.
    pub(super) fn handle_on_connection(
        &mut self,
        id: RequestId,
        principal: &Principal,
        connection: AgentConnectionId,
        command: &HubCommand,
        context: &TurnContext,
    ) -> Result<Option<HubReply>, DeferToNextTurn> {
        if let Some(session) = session_of(command)
            && let Err(refusal) = self.follow_and_renew_lease(principal, connection, session, context)
        {
            return Ok(Some(refusal));
        }
        let connection_context = TurnContext { connection: Some(connection), ..*context };
        let reply = self.handle(id, principal, command, &connection_context)?;
        match (&reply, command) {
            (
                Some(HubReply::SessionStarted { session_id } | HubReply::SessionJoined { session_id, .. }),
                _,
            ) => {
                if let Err(refusal) = self.follow_and_renew_lease(principal, connection, session_id, context)
                {
                    return Ok(Some(refusal));
                }
            }
            (
                Some(HubReply::QuestionOpened { reply_token, .. }),
                HubCommand::Ask { session, idempotency_key: Some(_), .. }
                | HubCommand::HandOff { session, idempotency_key: Some(_), .. },
            ) => {
                self.notify_if_resolved(connection, session, reply_token);
            }
            _ => {}
        }
        Ok(reply)
    }

    /// Returns the reply to `session.follow`. The connection already follows the session, because
    /// [`handle_on_connection`](Self::handle_on_connection) makes it follow the session of every command.
    pub(super) fn follow_reply(&mut self, principal: &Principal, session: &SessionId) -> HubReply {
        let Some(role) = self.session_role(principal, session) else {
            return self.missing_session(principal, session);
        };
        let Some(live) = self.sessions.get(session) else { return HubReply::NotFound };
        let producer = match &role {
            SessionRole::Owner => &live.agent,
            SessionRole::Joined(id) => id,
        };
        HubReply::SessionFollowed { session_id: live.id.clone(), state: live.state_of(producer).clone() }
    }

    /// Makes a connection follow a session and renews the session's lease, if the session belongs to the principal.
    /// When a connection starts to follow, it receives the notices that it may have missed. If the session has already
    /// ended, the connection receives a notice about that.
    fn follow_and_renew_lease(
        &mut self,
        principal: &Principal,
        connection: AgentConnectionId,
        session: &SessionId,
        context: &TurnContext,
    ) -> Result<(), HubReply> {
        let Some(role) = self.session_role(principal, session) else {
            self.notify_already_ended(principal, connection, session);
            return Ok(());
        };
        let Some(live) = self.sessions.get_mut(session) else { return Ok(()) };
        live.renew_lease(context.now);
        let id = live.id.clone();
        let followers = self.agent_connections.followers_of(session);
        if followers.iter().any(|follower| follower.connection == connection) {
            return Ok(());
        }
        if followers.len() >= self.limits.followers_per_session {
            return Err(LimitReached::Followers.into());
        }
        let is_owner = role == SessionRole::Owner;
        self.agent_connections.follow(connection, role, session);
        let is_resolved_and_unspent = |status| {
            !matches!(status, aaep::consent::QuestionStatus::Open | aaep::consent::QuestionStatus::Spent)
        };
        let resolved: Vec<_> = self
            .questions
            .session_questions(&id)
            .filter(|question| is_resolved_and_unspent(question.status))
            .filter(|question| self.may_know(principal, &id, &question.token))
            .map(|question| question.token.clone())
            .collect();
        for token in resolved {
            self.notify_stored_decision(connection, &id, &token);
        }
        let handoffs = if is_owner { self.handoffs.resolved_in(&id) } else { &[] };
        for (token, outcome) in handoffs {
            let (session, outcome) = (id.clone(), outcome.clone());
            let notice = AgentNotice::HandoffResolved { session, token: token.clone(), outcome };
            self.staged.notices.push((connection, notice));
        }
        // Some questions may have been resolved in this turn, before the connection followed the session.
        let same_turn: Vec<_> = self
            .staged
            .resolved
            .iter()
            .filter(|(token, asking_session, _)| {
                *asking_session == id && self.may_know(principal, &id, token)
            })
            .map(|(token, _, outcome)| (connection, resolved_notice(&id, token, outcome.clone())))
            .collect();
        self.staged.notices.extend(same_turn);
        Ok(())
    }

    /// Stages a notice that a question is resolved, for every follower that speaks as the producer that asked.
    pub(super) fn notify_followers(&mut self, resolution: &Resolution, outcome: &QuestionOutcome) {
        let session = &resolution.session_id;
        for connection in self.followers_as(session, &resolution.agent_id).collect::<Vec<_>>() {
            let notice = resolved_notice(session, &resolution.token, outcome.clone());
            self.staged.notices.push((connection, notice));
        }
    }

    /// Returns the connections that follow a session and whose principal speaks as this producer.
    pub(super) fn followers_as(
        &self,
        session: &SessionId,
        agent_id: &str,
    ) -> impl Iterator<Item = AgentConnectionId> {
        let live = self.sessions.get(session);
        self.agent_connections
            .followers_of(session)
            .iter()
            .filter(move |follower| live.is_some_and(|live| live.speaks_as(&follower.role, agent_id)))
            .map(|follower| follower.connection)
    }

    /// Stages a notice that the session ended, for every follower except the connection that ended it.
    pub(super) fn notify_session_end(&mut self, session: &SessionId, context: &TurnContext) {
        let reason = self.staged.post_commit.iter().rev().find_map(|action| match action {
            PostCommit::Event { committed, .. } if committed.event.envelope.session_id == *session => {
                end_reason(&committed.event)
            }
            _ => None,
        });
        let reason = reason.unwrap_or(EndReason::Unknown);
        for Follower { connection, .. } in self
            .agent_connections
            .followers_of(session)
            .iter()
            .filter(|follower| Some(follower.connection) != context.connection)
        {
            let notice = AgentNotice::SessionEnded { session: session.clone(), reason };
            self.staged.notices.push((*connection, notice));
        }
        self.staged.ended_sessions.push(session.clone());
    }

    /// Repeats the notice if an agent asks a resolved question again with the same idempotency key.
    fn notify_if_resolved(&mut self, connection: AgentConnectionId, session: &SessionId, token: &ReplyToken) {
        if self.questions.question(token).is_some_and(aaep::consent::Question::is_open)
            || self.handoffs.open(token).is_some()
        {
            return;
        }
        self.notify_stored_decision(connection, session, token);
    }

    fn notify_stored_decision(
        &mut self,
        connection: AgentConnectionId,
        session: &SessionId,
        token: &ReplyToken,
    ) {
        let is_already_staged = |(target, notice): &(AgentConnectionId, AgentNotice)| {
            *target == connection
                && matches!(
                    notice,
                    AgentNotice::QuestionResolved { token: resolved, .. }
                    | AgentNotice::HandoffResolved { token: resolved, .. } if resolved == token
                )
        };
        if self.staged.notices.iter().any(is_already_staged) {
            return;
        }
        // If the journal cannot be read now, this notice is not sent. The agent can query the question with GET.
        if let Ok(Some(decision)) = self.journal.decision(token.as_str())
            && decision.session == session.as_str()
        {
            let notice = match handoffs::stored_outcome(&decision) {
                Some(outcome) => {
                    let (session, token) = (session.clone(), token.clone());
                    AgentNotice::HandoffResolved { session, token, outcome }
                }
                None => resolved_notice(session, token, QuestionOutcome::from_stored(&decision)),
            };
            self.staged.notices.push((connection, notice));
        }
    }

    /// Notifies a connection that a session of its principal has already ended.
    fn notify_already_ended(
        &mut self,
        principal: &Principal,
        connection: AgentConnectionId,
        session: &SessionId,
    ) {
        if !self.sessions.contains_key(session)
            && let Ok(Some(_)) = self.stored_access(principal, session)
        {
            let reason = self.last_event(session).as_ref().and_then(end_reason).unwrap_or(EndReason::Unknown);
            let notice = AgentNotice::SessionEnded { session: session.clone(), reason };
            self.staged.notices.push((connection, notice));
        }
    }

    /// Finds the last event of a session by binary search, because the journal only reads forwards.
    fn last_event(&mut self, session: &SessionId) -> Option<Event> {
        let (mut from, mut to) = (0, self.last_position);
        let mut last = None;
        while from < to {
            let middle = from + (to - from) / 2;
            match self.journal.session_events(session.as_str(), Position::new(middle), 1).ok()?.pop() {
                Some(event) => {
                    from = event.position.get();
                    last = Some(event);
                }
                None => to = middle,
            }
        }
        Event::parse(std::str::from_utf8(&last?.body).ok()?)
    }
}

/// Returns why a session ended, from its last event. Only the hub's mark shows that a person or the hub ended it, because
/// an agent can claim either.
fn end_reason(event: &Event) -> Option<EndReason> {
    let ended_by = ended_by(event);
    match &event.payload {
        Payload::SessionCompleted(_) => Some(EndReason::Completed),
        Payload::SessionErrored(_) if ended_by.as_deref() == Some(ENDED_BY_HUB) => Some(EndReason::AgentGone),
        Payload::SessionErrored(_) => Some(EndReason::Errored),
        Payload::SessionCancelled(_) if ended_by.as_deref() == Some(ENDED_BY_USER) => Some(EndReason::User),
        Payload::SessionCancelled(cancelled) => Some(match cancelled.cancelled_by {
            CancelledBy::User | CancelledBy::Producer => EndReason::Producer,
            CancelledBy::Timeout => EndReason::Timeout,
            CancelledBy::System => EndReason::System,
            _ => EndReason::Unknown,
        }),
        _ => None,
    }
}

/// Returns the hub's mark on the end of a session.
fn ended_by(event: &Event) -> Option<String> {
    let mut tape = Tape::default();
    let doc = tape.read(event.envelope.extensions.as_ref()?.as_str()).ok()?;
    Some(doc.root().member("sayso")?.member(ENDED_BY)?.text()?.into_owned())
}

fn resolved_notice(session: &SessionId, token: &ReplyToken, outcome: QuestionOutcome) -> AgentNotice {
    AgentNotice::QuestionResolved { session: session.clone(), token: token.clone(), outcome }
}

fn session_of(command: &HubCommand) -> Option<&SessionId> {
    match command {
        HubCommand::Publish { session, .. }
        | HubCommand::StreamOutput { session, .. }
        | HubCommand::Ask { session, .. }
        | HubCommand::HandOff { session, .. }
        | HubCommand::Invite { session, .. }
        | HubCommand::Follow { session }
        | HubCommand::Wait { session, .. }
        | HubCommand::Withdraw { session, .. } => Some(session),
        _ => None,
    }
}
