//! Asking questions, deciding them and waiting for answers.

use std::ops::ControlFlow;
use std::sync::Arc;

use aaep::check::has_visible_character;
use aaep::consent::{
    AskError, BoundAction, ConsentOutcome, IgnoreReason, LimitScope, Question, QuestionStatus, Resolution,
    ResolvedBy, StagedChange,
};
use aaep::event::{AgentState, Event, EventType};
use aaep::json::{JsonKind, JsonValue, Tape};
use aaep::rule::{Finding, Rule};
use aaep::{ReplyToken, SessionId, SubscriptionId};
use journal::DamageLocation;
use seal::{Digest, UnixMillis};

use super::handoffs;
use super::hub_messages::{self, SessionEnd};
use super::notifications::{self, HubEvent};
use super::producers::SessionRole;
use super::publish::{EventDraft, EventOrigin, refuse_duplicate_members};
use super::restore::unreadable;
use super::sessions::LiveSession;
use super::{Core, DeferToNextTurn, OwnedEntry, PostCommit, TurnContext};
use crate::Principal;
use crate::bound_arguments;
use crate::command::{
    HubReply, LimitReached, MalformedRequest, QuestionOutcome, RequestBody, RequestId, TurnOutput,
};
use crate::compose::{self, InvalidEvent, SaysoExtension};
use crate::reply::answer_code;
use crate::shards::{CountGuard, CountKind, CountRequest};

impl Core {
    /// Handles `POST /agent/v1/sessions/{id}/confirmations` and `…/clarifications`.
    pub(super) fn ask(
        &mut self,
        principal: &Principal,
        session: &SessionId,
        body: &RequestBody,
        is_clarification: bool,
        key: Option<&str>,
        context: &TurnContext,
    ) -> HubReply {
        let keyed_request = key.map(|key| {
            let parts =
                [session.as_str().as_bytes(), body.source().as_bytes(), &[u8::from(is_clarification)]];
            (key, Digest::of_parts(parts))
        });
        let account = match self.begin_request(principal, session, keyed_request.as_ref(), context) {
            Ok(account) => account,
            Err(reply) => return reply,
        };
        let Some(role) = self.session_role(principal, session) else {
            return self.missing_session(principal, session);
        };
        let Some(live) = self.sessions.get_mut(session) else { return HubReply::NotFound };
        live.last_seen = Some(context.now);
        let limits = self.question_limits(session, &role, is_clarification);
        if let Err(reached) = self.shard.limits.questions.acquire(&limits, 1, context.now) {
            return reached.refusal.clone().into();
        }
        match self.open_question(session, &role, body, is_clarification, context) {
            Ok((reply_token, deadline)) => {
                let reply = HubReply::QuestionOpened { reply_token, deadline };
                self.finish_request(principal, &account, keyed_request.as_ref(), &reply, context);
                reply
            }
            Err(refusal) => {
                self.shard.limits.questions.release(&limits, 1, context.now);
                refusal
            }
        }
    }

    fn open_question(
        &mut self,
        session: &SessionId,
        role: &SessionRole,
        body: &RequestBody,
        is_clarification: bool,
        context: &TurnContext,
    ) -> Result<(ReplyToken, UnixMillis), HubReply> {
        let mut tape = Tape::default();
        let doc = body.doc(&mut tape)?;
        let root = doc.root();
        if root.kind() != JsonKind::Object {
            return Err(MalformedRequest::QuestionNotObject.into());
        }
        let token = self.new_reply_token();
        refuse_duplicate_members(&root)?;
        if root.member("reply_token").is_some() {
            let name = "reply_token".to_owned();
            return Err(MalformedRequest::InvalidEvent(InvalidEvent::ReservedMember(name)).into());
        }
        let producer = self.resolve_producer(session, role, root.member("producer").as_ref())?;
        refuse_blank_texts(&root, is_clarification)?;
        let tool = root.member("tool").and_then(|tool| tool.text());
        let call_id = match root.member("tool_call_id") {
            Some(id) => Some(compose::call_id(&id).ok_or(MalformedRequest::InvalidCallId)?),
            None => None,
        };
        let binding = match (&tool, root.member("arguments")) {
            (Some(tool), Some(arguments)) => {
                let action =
                    BoundAction::new(tool, arguments.source()).map_err(MalformedRequest::InvalidAction)?;
                let is_dangerous = bound_arguments::is_dangerous_question(&root);
                let limits = self.limits.arguments.for_question(is_dangerous);
                let arguments = bound_arguments::copy_for_listeners(&arguments, &limits)?;
                Some(SaysoExtension::Call {
                    tool,
                    call_id,
                    digest: Some(action.digest()),
                    arguments: Some(arguments),
                })
            }
            (Some(tool), None) => Some(SaysoExtension::Call { tool, call_id, digest: None, arguments: None }),
            (None, Some(_)) => return Err(missing_tool(&root, "arguments")),
            (None, None) if call_id.is_some() => return Err(missing_tool(&root, "tool_call_id")),
            (None, None) => None,
        };
        let kind =
            if is_clarification { EventType::AwaitingClarification } else { EventType::AwaitingConfirmation };
        let draft = EventDraft {
            doc: &doc,
            origin: EventOrigin::Question(&kind, &token),
            extension: binding.as_ref(),
            producer: Some(&producer),
            replaces_from_state: false,
        };
        let mut savepoint = self.create_savepoint(true);
        if let Some(live) = self.sessions.get(session) {
            savepoint.save_machine(live);
        }
        let staged = self.stage_question(session, &producer, &draft, context);
        match staged {
            Ok(deadline) => Ok((token, deadline)),
            Err(reply) => {
                self.roll_back(session, savepoint);
                Err(reply)
            }
        }
    }

    fn stage_question(
        &mut self,
        session: &SessionId,
        producer: &Arc<str>,
        draft: &EventDraft<'_>,
        context: &TurnContext,
    ) -> Result<UnixMillis, HubReply> {
        let live = self.sessions.get(session);
        let is_waiting = live.is_some_and(|live| *live.state_of(producer) == AgentState::AwaitingInput);
        if !is_waiting {
            let state_change =
                hub_messages::state_changed_event(&mut self.scratch, None, &AgentState::AwaitingInput)
                    .with_producer(producer.clone());
            self.emit_hub_event(session, state_change, None, context)?;
        }
        self.emit_draft(session, draft, None, context)?;
        let Some(PostCommit::Event { committed, agent, person }) = self.staged.post_commit.last() else {
            return Err(HubReply::NotFound);
        };
        let (committed, agent, person) = (committed.clone(), agent.clone(), person.clone());
        let count = self.count_question(&committed.event.envelope.producer.agent_id)?;
        let repliers = self.find_repliers(&committed.event, &agent, person.as_deref());
        let change = self
            .questions
            .ask(&committed.event, repliers, context.now)
            .map_err(|error| question_refusal(&error))?;
        let deadline = change.outcomes().iter().find_map(|outcome| match outcome {
            ConsentOutcome::Opened(opened) => Some(opened.deadline),
            _ => None,
        });
        if let Some((token, count)) =
            change.questions().last().map(|question| &question.token).cloned().zip(count)
        {
            self.question_counts.insert(token, count);
        }
        self.stage_question_change(change, context);
        Ok(deadline.unwrap_or(UnixMillis::MAX))
    }

    /// Counts a new question together with those of the other shards. Its own shard also checks the limits.
    fn count_question(&self, agent: &str) -> Result<Option<CountGuard>, HubReply> {
        let limits = &self.limits.questions;
        let requests = [
            CountRequest { kind: CountKind::QuestionsOfAgent, key: agent, max: limits.max_open_per_agent },
            CountRequest { kind: CountKind::Questions, key: "", max: limits.max_open_total },
        ];
        self.count_with_other_shards(&requests).map_err(|kind| {
            let is_of_agent = kind == CountKind::QuestionsOfAgent;
            let scope = if is_of_agent { LimitScope::Agent } else { LimitScope::Total };
            question_refusal(&AskError::TooMany(scope))
        })
    }

    /// Returns the subscriptions that receive this question and may answer it.
    fn find_repliers(&self, event: &Event, agent: &str, person: Option<&str>) -> Vec<SubscriptionId> {
        let is_confirmation = matches!(event.payload, aaep::event::Payload::AwaitingConfirmation(_));
        self.subscriptions
            .values()
            .filter(|subscription| subscription.scope.covers(agent, person))
            .filter(|subscription| {
                if is_confirmation {
                    subscription.shaping_terms.answers_confirmations
                } else {
                    subscription.shaping_terms.answers_clarifications
                }
            })
            .map(|subscription| subscription.id.clone())
            .collect()
    }

    /// Stages changes to questions: the entries for the ledger, and the events about them.
    pub(super) fn stage_question_change(&mut self, change: StagedChange, context: &TurnContext) {
        if change.is_empty() {
            return;
        }
        for outcome in change.outcomes() {
            match outcome {
                ConsentOutcome::Opened(opened) => {
                    let record = change.questions().iter().find(|question| question.token == opened.token);
                    self.staged.writes.push(OwnedEntry::QuestionOpened {
                        token: opened.token.clone(),
                        session: opened.session_id.clone(),
                        deadline: opened.deadline,
                        record: record.map(aaep::consent::Question::to_record).unwrap_or_default(),
                    });
                }
                ConsentOutcome::Resolved(resolution) => self.stage_resolution(resolution),
                ConsentOutcome::DeadlineExtended(extended) => {
                    self.staged.writes.push(OwnedEntry::DeadlineMoved {
                        token: extended.token.clone(),
                        deadline: extended.deadline,
                    });
                }
                ConsentOutcome::ConsentSpent(spent) => self.staged.writes.push(OwnedEntry::DecisionSpent {
                    token: spent.token.clone(),
                    call: spent.digest.map(|digest| digest.to_string()).unwrap_or_default(),
                    at: context.now,
                }),
                _ => {}
            }
        }
        let outcomes: Vec<_> = change.outcomes().to_vec();
        self.staged.post_commit.push(PostCommit::ApplyQuestionChange(change));
        for outcome in outcomes {
            match outcome {
                ConsentOutcome::Resolved(resolution) => self.announce_resolution(&resolution, context),
                ConsentOutcome::Reminder(reminder) => {
                    let event = notifications::reminder_event(&reminder);
                    let event = self.attribute_to_asker(event, &reminder.token);
                    self.announce(&reminder.session_id, event, context);
                }
                ConsentOutcome::DeadlineExtended(extended) => {
                    let event = notifications::deadline_extended_event(&extended, context.now);
                    let event = self.attribute_to_asker(event, &extended.token);
                    self.announce(&extended.session_id, event, context);
                }
                ConsentOutcome::SessionStopped(stopped) => {
                    let has_unused_consent = self.has_unused_consent(&stopped.session_id);
                    self.end_session_with(
                        &stopped.session_id,
                        SessionEnd::Stopped { has_unused_consent },
                        context,
                    );
                }
                _ => {}
            }
        }
    }

    /// Sets the producer of an event about a question: the one that asked it.
    fn attribute_to_asker(&self, event: HubEvent, token: &ReplyToken) -> HubEvent {
        match self.questions.question(token) {
            Some(question) => event.with_producer(&*question.agent_id),
            None => event,
        }
    }

    fn stage_resolution(&mut self, resolution: &Resolution) {
        self.question_counts.remove(&resolution.token);
        self.staged.writes.push(OwnedEntry::QuestionDecided {
            token: resolution.token.clone(),
            decision: answer_code(&resolution.answer).to_owned(),
            by: resolution.resolved_by,
            receipt: resolution.receipt().to_json().to_owned(),
            at: resolution.resolved_at,
        });
    }

    /// Stages the event about a resolved question, and replies to the waits for its answer.
    fn announce_resolution(&mut self, resolution: &Resolution, context: &TurnContext) {
        let outcome = QuestionOutcome::from_resolution(resolution);
        let is_agent_away = self.is_agent_away(resolution, context);
        self.notify_followers(resolution, &outcome);
        self.pending_waits.resolve(&resolution.token, &HubReply::QuestionResolved(outcome.clone()));
        self.staged.resolved.push((resolution.token.clone(), resolution.session_id.clone(), outcome));
        let session = &resolution.session_id;
        let has_open_question = self.has_open_question(&resolution.session_id, &resolution.agent_id);
        let Some(live) = self.sessions.get_mut(session).filter(|live| live.machine.is_open()) else { return };
        if resolution.resolved_by == ResolvedBy::Timeout
            && let Some(deadline) = live.machine.deadline_of(resolution.token.as_str())
        {
            // If the clock went back, the deadline that listeners know would still be in the future (§6.4).
            live.last_timestamp = live.last_timestamp.max(deadline);
        }
        let to = match () {
            () if has_open_question => AgentState::AwaitingInput,
            () if live.machine.open_tools().any(|open| *open.agent_id == *resolution.agent_id) => {
                AgentState::CallingTool
            }
            () => AgentState::Thinking,
        };
        let event = notifications::resolution_event(resolution, &to).with_producer(&*resolution.agent_id);
        self.announce(session, event, context);
        if is_agent_away {
            self.announce_agent_away(resolution, context);
        }
    }

    /// Whether a producer of a session will still have an open question after this turn.
    pub(super) fn has_open_question(&self, session: &aaep::SessionId, agent_id: &str) -> bool {
        let is_resolved =
            |token: &ReplyToken| self.staged.resolved.iter().any(|(resolved, ..)| resolved == token);
        let mut open_questions = self
            .questions
            .session_questions(session)
            .filter(|question| question.is_open() && *question.agent_id == *agent_id);
        // Questions of this turn are not in the registry yet.
        let mut new_questions = self.staged.post_commit.iter().flat_map(|action| match action {
            PostCommit::ApplyQuestionChange(change) => change.questions(),
            _ => &[],
        });
        open_questions.any(|question| !is_resolved(&question.token))
            || new_questions.any(|question| {
                question.is_open()
                    && question.session_id == *session
                    && *question.agent_id == *agent_id
                    && !is_resolved(&question.token)
            })
    }

    /// Handles `GET /agent/v1/sessions/{id}/replies/{token}`: replies immediately if the question is resolved;
    /// otherwise as soon as it is resolved or the wait ends.
    pub(super) fn wait(
        &mut self,
        request: RequestId,
        principal: &Principal,
        session: &SessionId,
        token: &ReplyToken,
        until: UnixMillis,
        context: &TurnContext,
    ) -> Option<HubReply> {
        let until = until.min(context.now.saturating_add(self.limits.max_wait_ms));
        let is_member = self
            .accessible_session(principal, session)
            .map(|live| {
                live.lease_until = live.lease_until.max(until.max(context.now).saturating_add(1000));
                live.last_seen = Some(until.max(context.now));
            })
            .is_some();
        if let ControlFlow::Break(reply) =
            self.wait_for_handoff(request, principal, session, token, until, context)
        {
            return reply;
        }
        // An agent learns only the answers to its own questions, not those of agents that share its session.
        if is_member && !self.may_know(principal, session, token) {
            return Some(HubReply::QuestionNotFound);
        }
        // If the question was resolved in this turn, the registry learns that only after the commit. This reply is also
        // sent only then.
        let resolved_now = self.staged.resolved.iter().find(|(resolved, ..)| resolved == token);
        if let Some((_, asking_session, outcome)) = resolved_now {
            let (is_asking, outcome) = (asking_session == session, outcome.clone());
            return Some(match (is_member, is_asking) {
                (true, true) => HubReply::QuestionResolved(outcome),
                (true, false) => HubReply::QuestionNotFound,
                // The same turn may have ended the session, for example because a person stopped it.
                (false, true) if self.asked_in_stored(principal, session, token) => {
                    HubReply::QuestionResolved(outcome)
                }
                (false, _) => HubReply::NotFound,
            });
        }
        match self.questions.question(token) {
            Some(question) if question.session_id != *session => {
                return Some(if is_member { HubReply::QuestionNotFound } else { HubReply::NotFound });
            }
            Some(question) if question.is_open() && is_member => {
                if until <= context.now {
                    return Some(HubReply::QuestionPending);
                }
                return self.start_wait(request, principal, token, until).err();
            }
            _ => {}
        }
        let access = match self.stored_access(principal, session) {
            Ok(Some(access)) => access,
            Ok(None) => return Some(HubReply::NotFound),
            Err(error) => return Some(error.into()),
        };
        Some(match self.journal.decision(token.as_str()) {
            Ok(Some(decision)) if decision.session == session.as_str() => {
                let (live, role) = &access;
                match handoffs::stored_outcome(&decision) {
                    // Only the owner of a session hands it off.
                    Some(outcome) if *role == SessionRole::Owner => HubReply::HandoffResolved(outcome),
                    None if asker_of(&decision).is_some_and(|agent| live.speaks_as(role, &agent)) => {
                        HubReply::QuestionResolved(QuestionOutcome::from_stored(&decision))
                    }
                    _ => HubReply::QuestionNotFound,
                }
            }
            Ok(_) => HubReply::QuestionNotFound,
            Err(error) => error.into(),
        })
    }

    /// Adds a wait, unless the principal has too many.
    pub(super) fn start_wait(
        &mut self,
        request: RequestId,
        principal: &Principal,
        token: &ReplyToken,
        until: UnixMillis,
    ) -> Result<(), HubReply> {
        let max = self.limits.waits_per_principal;
        if self.pending_waits.count_for_principal(&principal.name) >= max {
            return Err(LimitReached::Waits.into());
        }
        let count = self
            .count_with_other_shards(&[CountRequest {
                kind: CountKind::WaitsOfPrincipal,
                key: &principal.name,
                max,
            }])
            .map_err(|_| LimitReached::Waits)?;
        self.pending_waits.insert(request, until, token.clone(), principal.name.clone(), count);
        Ok(())
    }

    /// Whether a principal asked this question in a session that this turn has ended, so that only the journal has it.
    fn asked_in_stored(&mut self, principal: &Principal, session: &SessionId, token: &ReplyToken) -> bool {
        let Ok(Some((live, role))) = self.stored_access(principal, session) else { return false };
        self.questions.question(token).is_some_and(|question| live.speaks_as(&role, &question.agent_id))
    }

    /// Whether a principal of an open session may know the answer to a question. Questions that the registry does not hold
    /// are checked when they are read from the journal.
    pub(super) fn may_know(&self, principal: &Principal, session: &SessionId, token: &ReplyToken) -> bool {
        let Some(question) =
            self.questions.question(token).filter(|question| question.session_id == *session)
        else {
            return true;
        };
        let live = self.sessions.get(session);
        let role = live.and_then(|live| Some((live, live.role_of(principal)?)));
        role.is_some_and(|(live, role)| live.speaks_as(&role, &question.agent_id))
    }

    /// Handles `DELETE /agent/v1/sessions/{id}/replies/{token}`: replies with the outcome, like a wait.
    pub(super) fn withdraw(
        &mut self,
        request: RequestId,
        principal: &Principal,
        session: &SessionId,
        token: &ReplyToken,
        context: &TurnContext,
    ) -> Result<Option<HubReply>, DeferToNextTurn> {
        if self.session_role(principal, session).is_some()
            && self.questions.question(token).is_some_and(|question| question.session_id == *session)
            && self.may_know(principal, session, token)
        {
            let is_resolved = self.staged.resolved.iter().any(|(resolved, ..)| resolved == token);
            match self.questions.cancel_question(token, context.now) {
                Ok(change) => self.stage_question_change(change, context),
                // Another change to the question, such as an extension, is committed first.
                Err(IgnoreReason::ChangeStaged) if !is_resolved => return Err(DeferToNextTurn),
                // The question is already resolved, or was resolved in this turn. That outcome counts.
                Err(_) => {}
            }
        }
        if self.session_role(principal, session) == Some(SessionRole::Owner) {
            self.withdraw_handoff(session, token, context);
        }
        Ok(self.wait(request, principal, session, token, context.now, context))
    }

    /// Returns the reply to a request for a session that this principal does not have open.
    pub(super) fn missing_session(&mut self, principal: &Principal, session: &SessionId) -> HubReply {
        if self.sessions.contains_key(session) {
            return HubReply::NotFound;
        }
        match self.stored_access(principal, session) {
            Ok(Some(_)) => HubReply::SessionEnded,
            Ok(None) => HubReply::NotFound,
            Err(error) => error.into(),
        }
    }

    /// Returns a session as it is stored, and what the principal may do in it. Returns `None` if the principal neither owned
    /// nor joined it. Having the same agent name is not enough.
    pub(super) fn stored_access(
        &mut self,
        principal: &Principal,
        session: &SessionId,
    ) -> Result<Option<(LiveSession, SessionRole)>, journal::JournalError> {
        if !principal.can_publish() {
            return Ok(None);
        }
        let Some(stored) = self.journal.session(session.as_str())? else { return Ok(None) };
        let live =
            LiveSession::from_stored(&stored.session, self.limits.open_items_per_session, 0, UnixMillis::MIN)
                .ok_or_else(|| unreadable(DamageLocation::Session, session.as_str()))?;
        let role = live.role_of(principal);
        Ok(role.map(|role| (live, role)))
    }

    pub(super) fn expire_waits(&mut self, context: &TurnContext) {
        if self.pending_waits.next_deadline().is_some_and(|at| at <= context.now) {
            self.pending_waits.expire(context.now, &HubReply::QuestionPending);
        }
    }

    pub(super) fn push_wait_replies(&mut self, outputs: &mut Vec<TurnOutput>) {
        let replies = self.pending_waits.take_ready();
        outputs.extend(replies.into_iter().map(|(request, reply)| TurnOutput::Reply(request, reply)));
    }
}

fn question_refusal(error: &AskError) -> HubReply {
    match (error, error.rule()) {
        (AskError::TooMany(_), _) => LimitReached::Questions(error.clone()).into(),
        (AskError::RuleViolations(findings), _) => HubReply::RuleViolations(findings.clone()),
        (_, Some(rule)) => HubReply::RuleViolations(vec![violation(rule, "", error.to_string())]),
        _ => MalformedRequest::InvalidQuestion(error.clone()).into(),
    }
}

/// Returns the refusal of a question that has a member of a call, but no tool.
fn missing_tool(question: &JsonValue<'_>, member: &'static str) -> HubReply {
    let names = question.members().filter_map(|(name, _)| name.text().map(std::borrow::Cow::into_owned));
    let misspelled = { names }.find(|name| seal::closest_name(name, ["tool"]).is_some());
    MalformedRequest::NoTool { member, misspelled }.into()
}

/// Creates an error finding for a broken rule.
pub(super) fn violation(rule: aaep::rule::Rule, pointer: &str, actual: String) -> Finding {
    Finding { rule, severity: aaep::rule::Severity::Error, pointer: pointer.to_owned(), actual }
}

/// Refuses a question with a text that nobody can see or hear. The rules only require that it has a character.
fn refuse_blank_texts(question: &JsonValue<'_>, is_clarification: bool) -> Result<(), HubReply> {
    let form = if is_clarification { Rule::CLARIFICATION_FORM } else { Rule::CONFIRMATION_FORM };
    for (name, value) in question.members() {
        let name = name.text().unwrap_or_default();
        let blank = if SPOKEN_TEXTS.iter().any(|text| is_text_or_variant(&name, text)) {
            is_blank(&value).then(|| (form, format!("/{name}")))
        } else if is_text_or_variant(&name, "choices") && value.kind() == JsonKind::Array {
            let has_blank_label = |choice: &JsonValue<'_>| {
                choice.kind() == JsonKind::Object
                    && choice.member("label").is_some_and(|label| is_blank(&label))
            };
            let index = value.items().position(|choice| has_blank_label(&choice));
            index.map(|index| (Rule::CHOICES, format!("/{name}/{index}/label")))
        } else {
            None
        };
        if let Some((rule, pointer)) = blank {
            let found = "the text has no visible character".to_owned();
            return Err(HubReply::RuleViolations(vec![violation(rule, &pointer, found)]));
        }
    }
    Ok(())
}

/// Whether a member is this text or its variant in another language: `action`, `action_es`.
fn is_text_or_variant(name: &str, text: &str) -> bool {
    name.strip_prefix(text).is_some_and(|suffix| suffix.is_empty() || suffix.starts_with('_'))
}

/// Whether a text has characters, but none that people can see. The rules refuse an empty text, and an empty variant is not used.
fn is_blank(value: &JsonValue<'_>) -> bool {
    value.text().is_some_and(|text| !text.is_empty() && !has_visible_character(&text))
}

/// The members of a question that people hear.
const SPOKEN_TEXTS: [&str; 6] =
    ["action", "consequence", "question", "summary_terse", "summary_normal", "summary_detailed"];

/// Returns the agent that asked a decided question; `None` if the question cannot be read.
fn asker_of(decision: &journal::stored::StoredDecision) -> Option<Box<str>> {
    Some(Question::parse_record(std::str::from_utf8(&decision.record).ok()?)?.agent_id)
}

/// Returns the status of a decided question, according to the ledger.
pub(super) fn status_of(decision: &journal::stored::StoredDecision) -> QuestionStatus {
    if decision.spent_on.is_some() {
        QuestionStatus::Spent
    } else if decision.decision == "accept" {
        QuestionStatus::Accepted { by_default: decision.decided_by != "reply" }
    } else {
        QuestionStatus::Refused { modified: false }
    }
}
