//! Whether a session's agent is there: what is said of an answer that nobody takes, and of a session that was left.

use aaep::consent::{Answer, By, Call, Resolution, Status};
use aaep::{ReplyToken, SessionId};
use seal::UnixMillis;

use super::tongues::{self, End};
use super::{Core, TurnContext};
use crate::command::RequestId;

/// An agent that comes and goes by single requests counts as there for so long, in milliseconds.
const BETWEEN: i64 = 10_000;

impl Core {
    /// Sessions of this owner have nobody any more: he lived in the process that ran the hub before. Their agents count as
    /// gone from the next turn on.
    pub fn orphan(&mut self, owner: &str, now: UnixMillis) {
        let left: Vec<_> = self
            .sessions
            .iter()
            .filter(|(_, live)| *live.owner == *owner)
            .map(|(id, _)| id.clone())
            .collect();
        for id in left {
            self.end_lease(&id, now);
            self.orphans.insert(id);
        }
    }

    /// The lease of a session is over, whatever it was.
    pub(super) fn end_lease(&mut self, id: &SessionId, now: UnixMillis) {
        let Some(live) = self.sessions.get_mut(id) else { return };
        self.leases.remove(&(live.looked_at, id.clone()));
        (live.lease, live.looked_at) = (now, now);
        self.leases.insert((now, id.clone()));
    }

    /// Whether nobody follows a session, waits for the question or was there just now.
    pub(super) fn is_away(&self, session: &SessionId, token: &ReplyToken, context: &TurnContext) -> bool {
        let seen = |at: UnixMillis| context.now.millis_since(at) <= BETWEEN;
        self.lines.of(session).is_empty()
            && !self.waits.has(token)
            && self.sessions.get(session).is_some_and(|live| !live.seen.is_some_and(seen))
    }

    /// Who waited for an answer has hung up.
    pub(super) fn left_waiting(&mut self, request: RequestId) {
        let token = self.waits.token_of(request).cloned();
        self.waits.forget(request);
        let question = token.and_then(|token| self.questions.question(&token));
        if let Some(live) = question.and_then(|question| self.sessions.get_mut(&question.session)) {
            live.seen = None;
        }
    }

    /// A person who has said yes is not to believe that it is done: nobody has taken it yet.
    pub(super) fn tell_away(&mut self, resolution: &Resolution, context: &TurnContext) {
        let refused = matches!(resolution.answer, Answer::Decision(_)) && !resolution.is_accepted();
        if resolution.by != By::Reply || refused {
            return;
        }
        self.say_itself(&resolution.session, tongues::away(), context);
    }

    /// Ends a session whose agent is gone.
    pub(super) fn end_for_it(&mut self, id: &SessionId, context: &TurnContext) {
        let Some(live) = self.sessions.get(id) else { return };
        let end = End::Gone {
            under_way: live.machine.open_tools().next().is_some(),
            unused_yes: self.has_unused_yes(&live.id),
        };
        self.end_with(id, end, context);
    }

    /// Whether a person has said yes to something that was never said to be begun.
    pub(super) fn has_unused_yes(&self, session: &SessionId) -> bool {
        let used = |token| self.sessions.get(session).is_some_and(|live| live.used.contains(token));
        let accepted = |status| matches!(status, Status::Accepted { .. });
        self.questions.of_session(session).any(|question| accepted(question.status) && !used(&question.token))
    }

    /// A call that needs no consent was made on one.
    pub(super) fn note_use(&mut self, call: &Call<'_>) {
        if let Some(token) = self.questions.covering(call).cloned()
            && let Some(live) = self.sessions.get_mut(call.session)
        {
            live.used.push(token);
        }
    }
}
