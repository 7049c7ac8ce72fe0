//! Questions: asked, answered, waited for.

use aaep::consent::{Action, By, Decided, NotAsked, Outcome, Resolution, Status};
use aaep::event::{Event, EventType, State};
use aaep::json::{Kind, Tape};
use aaep::rule::Finding;
use aaep::{ReplyToken, SessionId, SubscriptionId};
use seal::{Digest, UnixMillis};

use super::publish::{Said, Source};
use super::told;
use super::tongues::{self, End};
use super::{After, Core, TurnContext, Write};
use crate::Principal;
use crate::command::{LimitReached, Malformed, Output, QuestionOutcome, Reply, RequestBody, RequestId};
use crate::compose::SaysoExtension;
use crate::reply::answer_word;

impl Core {
    /// `POST /agent/v1/sessions/{id}/confirmations` and `…/clarifications`
    pub(super) fn ask(
        &mut self,
        who: &Principal,
        session: &SessionId,
        body: &RequestBody,
        clarify: bool,
        key: Option<&str>,
        context: &TurnContext,
    ) -> Reply {
        let keyed = key.map(|key| {
            let parts = [session.as_str().as_bytes(), body.source().as_bytes(), &[u8::from(clarify)]];
            (key, Digest::of_all(parts))
        });
        if let Some(answer) = self.remembered(who, keyed.as_ref()) {
            return answer;
        }
        let Some(live) = self.own(who, session) else { return Reply::NotFound };
        live.seen = Some(context.now);
        let agent = live.agent_and_person();
        let most = self.limits.questions_per_minute;
        if !self.asked.has_room(&agent, most, context.now) {
            return LimitReached::QuestionsPerMinute { most }.into();
        }
        match self.put_question(session, body, clarify, context) {
            Ok((reply_token, deadline)) => {
                self.asked.take(&agent, 1, most, context.now);
                let reply = Reply::QuestionOpened { reply_token, deadline };
                self.remember(who, keyed.as_ref(), &reply, context);
                reply
            }
            Err(refusal) => refusal,
        }
    }

    fn put_question(
        &mut self,
        session: &SessionId,
        body: &RequestBody,
        clarify: bool,
        context: &TurnContext,
    ) -> Result<(ReplyToken, UnixMillis), Reply> {
        let mut tape = Tape::default();
        let doc = body.doc(&mut tape)?;
        let root = doc.root();
        if root.kind() != Kind::Object {
            return Err(Malformed::QuestionForm.into());
        }
        let mut random = [0; 16];
        self.fill(&mut random);
        let token =
            ReplyToken::generate(&mut |bytes: &mut [u8]| bytes.copy_from_slice(&random[..bytes.len()]));
        let tool = root.member("tool").and_then(|tool| tool.text());
        let binding = match (&tool, root.member("arguments")) {
            (Some(tool), Some(arguments)) => {
                let action = Action::new(tool, arguments.source()).map_err(Malformed::Action)?;
                Some(SaysoExtension::Call { tool, digest: Some(action.digest()) })
            }
            (Some(tool), None) => Some(SaysoExtension::Call { tool, digest: None }),
            (None, Some(_)) => return Err(Malformed::NoTool.into()),
            (None, None) => None,
        };
        let kind = if clarify { EventType::AwaitingClarification } else { EventType::AwaitingConfirmation };
        let said = Said { doc: &doc, source: Source::Question(&kind, &token), extension: binding.as_ref() };
        let mut savepoint = self.savepoint(true);
        if let Some(live) = self.sessions.get(session) {
            savepoint.keep(live);
        }
        let asked = self.stage_question(session, &said, context);
        match asked {
            Ok(deadline) => Ok((token, deadline)),
            Err(answer) => {
                self.roll_back(session, savepoint);
                Err(answer)
            }
        }
    }

    fn stage_question(
        &mut self,
        session: &SessionId,
        said: &Said<'_>,
        context: &TurnContext,
    ) -> Result<UnixMillis, Reply> {
        let waits = self.sessions.get(session).is_some_and(|live| *live.state() == State::AwaitingInput);
        if !waits {
            let waiting = tongues::state(&mut self.room, None, &State::AwaitingInput);
            self.emit_own(session, waiting, None, context)?;
        }
        self.emit_doc(session, said, None, context)?;
        let Some(After::Event { heard, agent, person }) = self.staged.after.last() else {
            return Err(Reply::NotFound);
        };
        let (heard, agent, person) = (heard.clone(), agent.clone(), person.clone());
        let repliers = self.repliers(&heard.event, &agent, person.as_deref());
        let decided =
            self.questions.ask(&heard.event, repliers, context.now).map_err(|why| not_asked(&why))?;
        let deadline = decided.outcomes().iter().find_map(|outcome| match outcome {
            Outcome::Asked(asked) => Some(asked.deadline),
            _ => None,
        });
        self.decide(decided, context);
        Ok(deadline.unwrap_or(UnixMillis::MAX))
    }

    /// Those who will be sent this question and may answer it.
    fn repliers(&self, event: &Event, agent: &str, person: Option<&str>) -> Vec<SubscriptionId> {
        let confirms = matches!(event.payload, aaep::event::Payload::AwaitingConfirmation(_));
        self.subscriptions
            .values()
            .filter(|one| one.scope.covers(agent, person))
            .filter(|one| if confirms { one.wants.confirmations } else { one.wants.clarifications })
            .map(|one| one.id.clone())
            .collect()
    }

    /// Stages what was decided about questions: the ledger's entries, and the events that tell of it.
    pub(super) fn decide(&mut self, decided: Decided, context: &TurnContext) {
        if decided.is_empty() {
            return;
        }
        for outcome in decided.outcomes() {
            match outcome {
                Outcome::Asked(asked) => {
                    let record = decided.questions().iter().find(|question| question.token == asked.token);
                    self.staged.writes.push(Write::QuestionOpened {
                        token: asked.token.clone(),
                        session: asked.session.clone(),
                        deadline: asked.deadline,
                        record: record.map(aaep::consent::Question::to_record).unwrap_or_default(),
                    });
                }
                Outcome::Resolved(resolution) => self.stage_resolution(resolution),
                Outcome::Extended(extended) => self.staged.writes.push(Write::DeadlineMoved {
                    token: extended.token.clone(),
                    deadline: extended.deadline,
                }),
                Outcome::Spent(spent) => self.staged.writes.push(Write::Spent {
                    token: spent.token.clone(),
                    call: spent.digest.map(|digest| digest.to_string()).unwrap_or_default(),
                    at: context.now,
                }),
                _ => {}
            }
        }
        let told: Vec<_> = decided.outcomes().to_vec();
        self.staged.after.push(After::Decided(decided));
        for outcome in told {
            match outcome {
                Outcome::Resolved(resolution) => self.tell_resolution(&resolution, context),
                Outcome::Reminder(reminder) => {
                    self.say_itself(&reminder.session, told::reminder(&reminder), context);
                }
                Outcome::Extended(extended) => {
                    let more_time = told::more_time(&extended, context.now);
                    self.say_itself(&extended.session, more_time, context);
                }
                Outcome::Stopped(stopped) => {
                    let unused_yes = self.has_unused_yes(&stopped.session);
                    self.end_with(&stopped.session, End::Stopped { unused_yes }, context);
                }
                _ => {}
            }
        }
    }

    fn stage_resolution(&mut self, resolution: &Resolution) {
        self.staged.writes.push(Write::Decided {
            token: resolution.token.clone(),
            decision: answer_word(&resolution.answer).to_owned(),
            by: resolution.by,
            receipt: resolution.receipt().to_json().to_owned(),
            at: resolution.at,
        });
    }

    /// The event that tells everybody how a question was resolved, and the end of the agent's wait.
    fn tell_resolution(&mut self, resolution: &Resolution, context: &TurnContext) {
        let outcome = QuestionOutcome::of(resolution);
        let away = self.is_away(&resolution.session, &resolution.token, context);
        self.tell_followers(&resolution.session, &resolution.token, &outcome);
        self.waits.resolve(&resolution.token, &Reply::QuestionResolved(outcome.clone()));
        self.staged.resolved.push((resolution.token.clone(), resolution.session.clone(), outcome));
        let session = &resolution.session;
        let asks = self.still_asks(&resolution.session);
        let Some(live) = self.sessions.get_mut(session).filter(|live| live.machine.is_open()) else { return };
        if resolution.by == By::Timeout
            && let Some(deadline) = live.machine.deadline_of(resolution.token.as_str())
        {
            // By a clock that went back, the time that listeners were told would not be over yet (§6.4).
            live.stamped = live.stamped.max(deadline);
        }
        let to = match () {
            () if asks => State::AwaitingInput,
            () if live.machine.open_tools().next().is_none() => State::Thinking,
            () => State::CallingTool,
        };
        self.say_itself(session, told::resolution(resolution, &to), context);
        if away {
            self.tell_away(resolution, context);
        }
    }

    /// Whether a session has an open question, once this turn is on disk.
    fn still_asks(&self, session: &aaep::SessionId) -> bool {
        let resolved = |token: &ReplyToken| self.staged.resolved.iter().any(|(one, ..)| one == token);
        let mut known = self.questions.of_session(session).filter(|question| question.is_open());
        let mut new = self.staged.writes.iter().filter_map(|write| match write {
            Write::QuestionOpened { token, session: of, .. } if of == session => Some(token),
            _ => None,
        });
        known.any(|question| !resolved(&question.token)) || new.any(|token| !resolved(token))
    }

    /// `GET /agent/v1/sessions/{id}/replies/{token}`: answered at once, or when it is resolved, or when its time is over.
    pub(super) fn wait(
        &mut self,
        request: RequestId,
        who: &Principal,
        session: &SessionId,
        token: &ReplyToken,
        until: UnixMillis,
        context: &TurnContext,
    ) -> Option<Reply> {
        let until = until.min(context.now.saturating_add(self.limits.longest_wait));
        let own = self.own(who, session).map(|live| {
            live.lease = live.lease.max(until.max(context.now).saturating_add(1000));
            live.seen = Some(until.max(context.now));
        });
        // Resolved in this very turn: the book says so only when it is on disk, and so does this answer.
        let now_resolved = self.staged.resolved.iter().find(|(resolved, ..)| resolved == token);
        if let Some((_, of, outcome)) = now_resolved {
            return Some(if of == session && own.is_some() {
                Reply::QuestionResolved(outcome.clone())
            } else {
                Reply::NotFound
            });
        }
        match self.questions.question(token) {
            Some(question) if question.session != *session => return Some(Reply::NotFound),
            Some(question) if question.is_open() && own.is_some() => {
                if until <= context.now {
                    return Some(Reply::QuestionPending);
                }
                if self.waits.of_principal(&who.name) >= self.limits.waits_of_principal {
                    return Some(LimitReached::Waits.into());
                }
                self.waits.insert(request, until, token.clone(), who.name.clone());
                return None;
            }
            _ => {}
        }
        let own = match own {
            Some(()) => Ok(true),
            None => self.owned(who, session),
        };
        let decision = own.and_then(|own| if own { self.journal.decision(token.as_str()) } else { Ok(None) });
        Some(match decision {
            Ok(Some(decision)) if decision.session == session.as_str() => {
                Reply::QuestionResolved(QuestionOutcome::of_stored(&decision))
            }
            Ok(_) => Reply::NotFound,
            Err(error) => error.into(),
        })
    }

    /// `DELETE /agent/v1/sessions/{id}/replies/{token}`: says what it came to, as a wait does.
    pub(super) fn withdraw(
        &mut self,
        request: RequestId,
        who: &Principal,
        session: &SessionId,
        token: &ReplyToken,
        context: &TurnContext,
    ) -> Option<Reply> {
        if self.own(who, session).is_some()
            && self.questions.question(token).is_some_and(|question| question.session == *session)
            // Where it is resolved already, or is in this very turn, that holds.
            && let Ok(decided) = self.questions.cancel(token, context.now)
        {
            self.decide(decided, context);
        }
        self.wait(request, who, session, token, context.now, context)
    }

    /// Whether a session that is over was this principal's: its agent's name alone is no proof.
    fn owned(&mut self, who: &Principal, session: &SessionId) -> Result<bool, journal::Error> {
        if !who.speaks() || self.sessions.contains_key(session) {
            return Ok(false);
        }
        let known = self.journal.session(session.as_str())?;
        Ok(known.is_some_and(|known| known.opened.principal == *who.name))
    }

    pub(super) fn end_waits(&mut self, context: &TurnContext) {
        if self.waits.next_deadline().is_some_and(|at| at <= context.now) {
            self.waits.expire(context.now, &Reply::QuestionPending);
        }
    }

    pub(super) fn answer_waits(&mut self, outputs: &mut Vec<Output>) {
        let answered = self.waits.take_answered();
        outputs.extend(answered.into_iter().map(|(request, answer)| Output::Reply(request, answer)));
    }
}

fn not_asked(why: &NotAsked) -> Reply {
    match (why, why.rule()) {
        (NotAsked::TooMany(_), _) => LimitReached::Questions(why.clone()).into(),
        (NotAsked::Unlawful(findings), _) => Reply::Unlawful(findings.clone()),
        (_, Some(rule)) => Reply::Unlawful(vec![broken(rule, "", why.to_string())]),
        _ => Malformed::Question(why.clone()).into(),
    }
}

/// A rule that is broken.
pub(super) fn broken(rule: aaep::rule::Rule, pointer: &str, found: String) -> Finding {
    Finding { rule, severity: aaep::rule::Severity::Error, pointer: pointer.to_owned(), found }
}

/// How a question that was decided stands, as far as the ledger tells.
pub(super) fn status_of(decision: &journal::stored::StoredDecision) -> Status {
    if decision.spent.is_some() {
        Status::Spent
    } else if decision.decision == "accept" {
        Status::Accepted { silent: decision.by != "reply" }
    } else {
        Status::Refused { modified: false }
    }
}
