//! Agents' lines: connections that follow sessions. Who follows a session hears how its questions were resolved and that it
//! ended; and as long as somebody does, its agent counts as there (design, decision 16).

use std::collections::HashSet;

use aaep::event::{CancelledBy, Event, Payload};
use aaep::{ReplyToken, SessionId};
use journal::Position;
use rustc_hash::FxHashMap;

use super::agent::GONE;
use super::{After, Core, Deferred, TurnContext};
use crate::command::{Command, EndReason, LimitReached, Notice, QuestionOutcome, Reply, RequestId};
use crate::{LineId, Principal};

#[derive(Default)]
pub(super) struct Lines {
    followers: FxHashMap<SessionId, Vec<LineId>>,
    follows: FxHashMap<LineId, HashSet<SessionId>>,
}

impl Lines {
    pub(super) fn of(&self, session: &SessionId) -> &[LineId] {
        self.followers.get(session).map_or(&[], Vec::as_slice)
    }

    fn follow(&mut self, line: LineId, session: &SessionId) {
        if self.follows.entry(line).or_default().insert(session.clone()) {
            self.followers.entry(session.clone()).or_default().push(line);
        }
    }

    /// A session is over.
    pub(super) fn end(&mut self, session: &SessionId) {
        for line in self.followers.remove(session).unwrap_or_default() {
            if let Some(sessions) = self.follows.get_mut(&line) {
                sessions.remove(session);
                if sessions.is_empty() {
                    self.follows.remove(&line);
                }
            }
        }
    }

    /// A line is gone; returns what it followed.
    pub(super) fn hang_up(&mut self, line: LineId) -> HashSet<SessionId> {
        let sessions = self.follows.remove(&line).unwrap_or_default();
        for session in &sessions {
            if let Some(lines) = self.followers.get_mut(session) {
                lines.retain(|one| *one != line);
                if lines.is_empty() {
                    self.followers.remove(session);
                }
            }
        }
        sessions
    }

    /// Lets go of sessions that are not there, after a turn that did not happen.
    pub(super) fn keep(&mut self, is_there: impl Fn(&SessionId) -> bool) {
        let gone: Vec<_> = self.followers.keys().filter(|session| !is_there(session)).cloned().collect();
        for session in gone {
            self.end(&session);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.follows.len()
    }
}

impl Core {
    /// Something that comes on a line: its session is followed from then on.
    pub(super) fn on_line(
        &mut self,
        id: RequestId,
        who: &Principal,
        line: LineId,
        command: &Command,
        context: &TurnContext,
    ) -> Result<Option<Reply>, Deferred> {
        if let Some(session) = session_of(command)
            && let Err(answer) = self.touch(who, line, session, context)
        {
            return Ok(Some(answer));
        }
        let on_line = TurnContext { line: Some(line), ..*context };
        let reply = self.judge(id, who, command, &on_line)?;
        match (&reply, command) {
            (Some(Reply::SessionStarted { session_id }), _) => {
                if let Err(refusal) = self.touch(who, line, session_id, context) {
                    return Ok(Some(refusal));
                }
            }
            (Some(Reply::QuestionOpened { reply_token, .. }), Command::Ask { session, key: Some(_), .. }) => {
                self.tell_again(line, session, reply_token);
            }
            _ => {}
        }
        Ok(reply)
    }

    /// `session.follow`
    pub(super) fn followed(&mut self, who: &Principal, session: &SessionId) -> Reply {
        let Some(live) = self.own(who, session) else { return Reply::NotFound };
        Reply::SessionFollowed { session_id: live.id.clone(), state: live.state().clone() }
    }

    /// A line follows a session, if it is its principal's. The first time it is told what it may have missed.
    fn touch(
        &mut self,
        who: &Principal,
        line: LineId,
        session: &SessionId,
        context: &TurnContext,
    ) -> Result<(), Reply> {
        let lease = context.now.saturating_add(self.limits.lease);
        let Some(live) = self.own(who, session) else {
            self.tell_over(who, line, session);
            return Ok(());
        };
        live.lease = live.lease.max(lease);
        let id = live.id.clone();
        let followers = self.lines.of(session);
        if followers.contains(&line) {
            return Ok(());
        }
        if followers.len() >= self.limits.followers {
            return Err(LimitReached::Followers.into());
        }
        self.lines.follow(line, session);
        let unspent = |status| !matches!(status, aaep::consent::Status::Open | aaep::consent::Status::Spent);
        let resolved: Vec<_> = self
            .questions
            .of_session(&id)
            .filter(|question| unspent(question.status))
            .map(|question| question.token.clone())
            .collect();
        for token in resolved {
            self.tell_stored(line, &id, &token);
        }
        // Resolved in this very turn, before the line was there.
        let late = self.staged.resolved.iter().filter(|(_, of, _)| *of == id);
        let late = late.map(|(token, _, outcome)| (line, resolved_notice(&id, token, outcome.clone())));
        self.staged.notices.extend(late);
        Ok(())
    }

    /// A question is resolved: all who follow its session are told so when that is on disk.
    pub(super) fn tell_followers(
        &mut self,
        session: &SessionId,
        token: &ReplyToken,
        outcome: &QuestionOutcome,
    ) {
        for line in self.lines.of(session) {
            self.staged.notices.push((*line, resolved_notice(session, token, outcome.clone())));
        }
    }

    /// The session said its last word in this turn: all who follow it are told, except on the line that it came from.
    pub(super) fn tell_session_end(&mut self, session: &SessionId, context: &TurnContext) {
        let last = self.staged.after.iter().rev().find_map(|after| match after {
            After::Event { heard, .. } if heard.event.envelope.session_id == *session => ending(&heard.event),
            _ => None,
        });
        let reason = last.unwrap_or(EndReason::Ended);
        for line in self.lines.of(session).iter().filter(|line| Some(**line) != context.line) {
            let notice = Notice::Stopped { session: session.clone(), reason };
            self.staged.notices.push((*line, notice));
        }
        self.staged.ended.push(session.clone());
    }

    /// A question was asked before with the same key: if it is resolved by now, the line is told again.
    fn tell_again(&mut self, line: LineId, session: &SessionId, token: &ReplyToken) {
        if self.questions.question(token).is_some_and(aaep::consent::Question::is_open) {
            return;
        }
        self.tell_stored(line, session, token);
    }

    fn tell_stored(&mut self, line: LineId, session: &SessionId, token: &ReplyToken) {
        let told = |(to, notice): &(LineId, Notice)| {
            *to == line && matches!(notice, Notice::Resolved { token: of, .. } if of == token)
        };
        if self.staged.notices.iter().any(told) {
            return;
        }
        // What cannot be read now is told at the next touch, or found with GET.
        if let Ok(Some(decision)) = self.journal.decision(token.as_str())
            && decision.session == session.as_str()
        {
            self.staged
                .notices
                .push((line, resolved_notice(session, token, QuestionOutcome::of_stored(&decision))));
        }
    }

    /// Why a session of this principal is over, if it is: who comes back to it has not heard.
    fn tell_over(&mut self, who: &Principal, line: LineId, session: &SessionId) {
        if who.speaks()
            && let Ok(Some(known)) = self.journal.session(session.as_str())
            && known.ended
            && known.opened.principal == *who.name
        {
            let reason = self.last_event(session).as_ref().and_then(ending).unwrap_or(EndReason::Ended);
            let notice = Notice::Stopped { session: session.clone(), reason };
            self.staged.notices.push((line, notice));
        }
    }

    /// The last event of a session, looked for by halves: the journal reads forwards.
    fn last_event(&mut self, session: &SessionId) -> Option<Event> {
        let (mut from, mut to) = (0, self.position);
        let mut last = None;
        while from < to {
            let middle = from + (to - from) / 2;
            match self.journal.events_of(session.as_str(), Position::new(middle), 1).ok()?.pop() {
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

/// Why a session is over, by its last word.
fn ending(event: &Event) -> Option<EndReason> {
    match &event.payload {
        Payload::SessionCompleted(_) => Some(EndReason::Completed),
        Payload::SessionErrored(errored) if errored.error_code.as_deref() == Some(GONE) => {
            Some(EndReason::Gone)
        }
        Payload::SessionErrored(_) => Some(EndReason::Errored),
        Payload::SessionCancelled(cancelled) => Some(match cancelled.cancelled_by {
            CancelledBy::User => EndReason::User,
            CancelledBy::Producer => EndReason::Producer,
            CancelledBy::Timeout => EndReason::Timeout,
            CancelledBy::System => EndReason::System,
            _ => EndReason::Ended,
        }),
        _ => None,
    }
}

fn resolved_notice(session: &SessionId, token: &ReplyToken, outcome: QuestionOutcome) -> Notice {
    Notice::Resolved { session: session.clone(), token: token.clone(), outcome }
}

fn session_of(command: &Command) -> Option<&SessionId> {
    match command {
        Command::Publish { session, .. }
        | Command::Output { session, .. }
        | Command::Ask { session, .. }
        | Command::Follow { session }
        | Command::Wait { session, .. }
        | Command::Withdraw { session, .. } => Some(session),
        _ => None,
    }
}
