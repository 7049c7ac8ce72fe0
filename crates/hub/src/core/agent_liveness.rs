//! Tracks whether a session's agent is present, and informs listeners if it is not.

use aaep::SessionId;
use aaep::consent::{QuestionAnswer, QuestionStatus, Resolution, ResolvedBy};
use seal::UnixMillis;

use super::hub_messages::{self, SessionEnd};
use super::{Core, TurnContext};
use crate::command::RequestId;

/// How long an agent counts as present after a single request, in milliseconds.
const REQUEST_PRESENCE_MS: i64 = 10_000;

impl Core {
    /// Marks the sessions of this owner as orphaned, because their agents ran in the previous process. From the next
    /// turn on, these agents count as gone.
    pub fn orphan_sessions_of(&mut self, owner: &str, now: UnixMillis) {
        let orphaned: Vec<_> = self
            .sessions
            .iter()
            .filter(|(_, live)| *live.owner == *owner)
            .map(|(id, _)| id.clone())
            .collect();
        for id in orphaned {
            self.expire_lease(&id, now);
            self.orphans.insert(id);
        }
    }

    /// Makes the lease of a session expire now.
    pub(super) fn expire_lease(&mut self, id: &SessionId, now: UnixMillis) {
        let Some(live) = self.sessions.get_mut(id) else { return };
        self.lease_checks.remove(&(live.lease_check_at, id.clone()));
        (live.lease_until, live.lease_check_at) = (now, now);
        self.lease_checks.insert((now, id.clone()));
    }

    /// Whether no connection of the agent that asked follows the session, no request waits for the question, and no agent
    /// of the session sent a request recently.
    pub(super) fn is_agent_away(&self, resolution: &Resolution, context: &TurnContext) -> bool {
        let is_recent = |at: UnixMillis| context.now.millis_since(at) <= REQUEST_PRESENCE_MS;
        let session = &resolution.session_id;
        self.followers_as(session, &resolution.agent_id).next().is_none()
            && !self.pending_waits.has_waiter(&resolution.token)
            && self.sessions.get(session).is_some_and(|live| !live.last_seen.is_some_and(is_recent))
    }

    /// Removes a wait whose client disconnected. The agent no longer counts as recently seen.
    pub(super) fn cancel_wait(&mut self, request: RequestId) {
        let token = self.pending_waits.token_of(request).cloned();
        self.pending_waits.remove(request);
        let Some(token) = token else { return };
        let question = self.questions.question(&token).map(|question| &question.session_id);
        let session = question.or_else(|| self.handoffs.open(&token).map(|handoff| &handoff.session));
        if let Some(live) = session.and_then(|session| self.sessions.get_mut(session)) {
            live.last_seen = None;
        }
    }

    /// Tells listeners that the agent has not received the answer yet, so that a person who accepted does not think
    /// that the action was performed.
    pub(super) fn announce_agent_away(&mut self, resolution: &Resolution, context: &TurnContext) {
        let is_rejected =
            matches!(resolution.answer, QuestionAnswer::Decision(_)) && !resolution.is_accepted();
        if resolution.resolved_by != ResolvedBy::Reply || is_rejected {
            return;
        }
        let event = hub_messages::agent_away_event().with_producer(&*resolution.agent_id);
        self.announce(&resolution.session_id, event, context);
    }

    /// Ends a session whose agent is gone.
    pub(super) fn end_abandoned_session(&mut self, id: &SessionId, context: &TurnContext) {
        let Some(live) = self.sessions.get(id) else { return };
        let end = SessionEnd::AgentGone {
            has_open_tool: live.machine.open_tools().next().is_some(),
            has_unused_consent: self.has_unused_consent(&live.id),
        };
        self.end_session_with(id, end, context);
    }

    /// Whether a person accepted an action that the agent has not yet reported as started.
    pub(super) fn has_unused_consent(&self, session: &SessionId) -> bool {
        let is_accepted = |status| matches!(status, QuestionStatus::Accepted { .. });
        self.questions.session_questions(session).any(|question| is_accepted(question.status))
    }
}
