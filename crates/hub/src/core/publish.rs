//! Validating and staging events.

use std::sync::Arc;

use aaep::check::CheckedDocument;
use aaep::consent::{BoundAction, GuardedCall, Question, QuestionStatus, SpendError};
use aaep::event::{Event, EventType};
use aaep::json::{Doc, JsonValue, Tape};
use aaep::rule::{Finding, Findings, Rule, Severity, ValidationMode};
use aaep::session::{OpenTool, SessionEvent, SessionEventBody, SessionMachine};
use aaep::{ReplyToken, SessionId};
use journal::Position;
use seal::Digest;

use super::hub_messages;
use super::notifications::{self, HubEvent};
use super::producers::{SessionRole, producer_refusal};
use super::questions::violation;
use super::sessions::LiveSession;
use super::supplied_states::SuppliedStates;
use super::supplied_summary::SuppliedSummary;
use super::{CommittedEvent, Core, OwnedEntry, PostCommit, TurnContext};
use crate::command::{ClosedItem, HubReply, MalformedRequest, ReplacedCallId, RequestBody, TurnOutput};
use crate::compose::{self, EnvelopeFields, SaysoExtension};
use crate::delivery::{Frame, OrderingClass};
use crate::telemetry::LogEvent;
use crate::{Principal, agent_findings, bound_arguments};

impl Core {
    /// Handles `POST /agent/v1/sessions/{id}/events`: publishes all events or none.
    pub(super) fn publish(
        &mut self,
        principal: &Principal,
        session: &SessionId,
        events: &[RequestBody],
        key: Option<&str>,
        context: &TurnContext,
    ) -> HubReply {
        let keyed_request = key.map(|key| {
            let events = events.iter().map(RequestBody::source).collect::<Vec<_>>().join("\n");
            (key, Digest::of_parts([session.as_str().as_bytes(), events.as_bytes(), b"events"]))
        });
        // Comes before the session lookup, because the original request may have ended the session.
        let account = match self.begin_request(principal, session, keyed_request.as_ref(), context) {
            Ok(account) => account,
            Err(reply) => return reply,
        };
        let Some(role) = self.session_role(principal, session) else {
            return self.missing_session(principal, session);
        };
        if events.is_empty() || events.len() > self.limits.events_per_request {
            return MalformedRequest::EventCount { max: self.limits.events_per_request }.into();
        }
        match self.emit(session, EventBatch::FromAgent(events, &role), context) {
            Ok(emitted) => {
                let reply = emitted.into_reply();
                self.finish_request(principal, &account, keyed_request.as_ref(), &reply, context);
                reply
            }
            Err(reply) => reply,
        }
    }

    /// Stages events of a session, all or none. Critical events of an agent are rate limited. If an agent's event ends
    /// the session, open tools and outputs are closed first, because otherwise the end would break the rules.
    pub(super) fn emit(
        &mut self,
        session: &SessionId,
        events: EventBatch<'_>,
        context: &TurnContext,
    ) -> Result<EmittedEvents, HubReply> {
        let (count, agent_role) = match &events {
            EventBatch::FromAgent(bodies, role) => (bodies.len(), Some(*role)),
            EventBatch::ForAgent(events, role) => (events.len(), Some(*role)),
            EventBatch::FromHub(events) => (events.len(), None),
        };
        let mut savepoint = self.create_savepoint(count > 1);
        let mut emitted = EmittedEvents { ids: Vec::with_capacity(count), ..EmittedEvents::default() };
        let staged = match events {
            EventBatch::FromAgent(bodies, role) => bodies.iter().zip(1..).try_for_each(|(body, number)| {
                self.emit_agent_event(session, role, body, &mut savepoint, &mut emitted, context)
                    .map_err(|refusal| name_event(refusal, number, count))?;
                self.check_request_bytes().map_err(HubReply::from)
            }),
            EventBatch::ForAgent(events, _) => events.into_iter().try_for_each(|event| {
                emitted.ids.push(self.emit_hub_event(session, event, Some(&mut savepoint), context)?);
                self.check_request_bytes().map_err(HubReply::from)
            }),
            EventBatch::FromHub(events) => events.into_iter().try_for_each(|event| {
                emitted.ids.push(self.emit_hub_event(session, event, Some(&mut savepoint), context)?);
                Ok(())
            }),
        };
        let staged = staged.and_then(|()| match agent_role {
            Some(role) => self.check_critical_limit(session, role, &savepoint, context),
            None => Ok(()),
        });
        if staged.is_err() {
            self.roll_back(session, savepoint);
        }
        let mut has_ended = false;
        if let Some(live) = self.sessions.get_mut(session) {
            live.renew_lease(context.now);
            // An agent whose request is refused is present, too.
            if agent_role.is_some() {
                live.last_seen = Some(context.now);
            }
            has_ended = !live.machine.is_open();
        }
        if staged.is_ok() && has_ended {
            self.end_session(session, context);
        }
        staged.map(|()| emitted)
    }

    /// Records what is staged so far.
    pub(super) fn create_savepoint(&self, has_several_events: bool) -> Savepoint {
        Savepoint {
            writes: self.staged.writes.len(),
            bytes: self.staged.bytes,
            post_commit: self.staged.post_commit.len(),
            position: self.last_position,
            has_several_events,
            machine: None,
        }
    }

    /// Removes what was staged for a session since the savepoint.
    pub(super) fn roll_back(&mut self, session: &SessionId, savepoint: Savepoint) {
        self.staged.writes.truncate(savepoint.writes);
        self.staged.bytes = savepoint.bytes;
        for action in self.staged.post_commit.split_off(savepoint.post_commit) {
            if let PostCommit::ApplyQuestionChange(change) = action {
                self.questions.abandon(change);
            }
        }
        self.last_position = savepoint.position;
        if let (Some(live), Some((machine, states))) = (self.sessions.get_mut(session), savepoint.machine) {
            live.machine = machine;
            live.supplied_states = states;
        }
    }

    /// Checks the rate limit for the critical events that an agent staged since the savepoint.
    fn check_critical_limit(
        &mut self,
        session: &SessionId,
        role: &SessionRole,
        savepoint: &Savepoint,
        context: &TurnContext,
    ) -> Result<(), HubReply> {
        let new_writes = self.staged.writes.get(savepoint.writes..).unwrap_or_default();
        let critical_count = new_writes
            .iter()
            .filter(|write| matches!(write, OwnedEntry::Event { is_critical: true, .. }))
            .count();
        if critical_count == 0 {
            return Ok(());
        }
        let limits = self.critical_limits(session, role);
        let counted = self.shard.limits.criticals.acquire(&limits, critical_count, context.now);
        counted.map_err(|reached| reached.refusal.clone().into())
    }

    /// Stages one event from an agent.
    fn emit_agent_event(
        &mut self,
        session: &SessionId,
        role: &SessionRole,
        body: &RequestBody,
        savepoint: &mut Savepoint,
        emitted: &mut EmittedEvents,
        context: &TurnContext,
    ) -> Result<(), HubReply> {
        let mut tape = std::mem::take(&mut self.scratch.request_tape);
        let doc = body.doc(&mut tape)?;
        let producer = self.resolve_producer(session, role, doc.root().member("producer").as_ref())?;
        if is_session_end(&doc) {
            self.check_may_end(session, &producer)?;
            self.close_open_items(session, savepoint, emitted, context)?;
        }
        self.check_state_change(session, &producer, &doc.root())?;
        self.supply_state(session, &producer, &doc, savepoint, context)?;
        let replaces_from_state = self.end_supplied_states(session, &producer, &doc, savepoint);
        let bare_state_change =
            notifications::complete_bare_state_change(&doc, replaces_from_state, &mut self.scratch);
        let id = if let Some(hub_event) = bare_state_change {
            let hub_event = hub_event.with_producer(producer.clone());
            self.emit_hub_event(session, hub_event, Some(savepoint), context)?
        } else {
            let draft = EventDraft {
                doc: &doc,
                origin: EventOrigin::Agent,
                extension: None,
                producer: Some(&producer),
                replaces_from_state,
            };
            self.emit_draft(session, &draft, Some(savepoint), context)?
        };
        emitted.ids.push(id);
        self.end_supplied_state(session, &producer, &doc, savepoint, context)?;
        let call_id = doc.root().member("tool_call_id");
        if let Some((given, id)) = call_id.and_then(|id| compose::foreign_call_id(&id))
            && !emitted.replaced_call_ids.iter().any(|replaced| replaced.id == id)
        {
            emitted.replaced_call_ids.push(ReplacedCallId { given: given.as_ref().into(), id });
        }
        self.scratch.request_tape = tape;
        Ok(())
    }

    /// Refuses a change of state out of `awaiting_input` while one of the producer's questions is open, because listeners take
    /// that change for the outcome of the question (decision 15).
    fn check_state_change(
        &self,
        session: &SessionId,
        producer: &str,
        event: &JsonValue<'_>,
    ) -> Result<(), HubReply> {
        let is_state_change =
            event.member("type").is_some_and(|kind| kind.is_text(EventType::StateChanged.as_str()));
        let leaves =
            is_state_change && event.member("to_state").is_some_and(|to| !to.is_text("awaiting_input"));
        if !leaves || !self.has_open_question(session, producer) {
            return Ok(());
        }
        let found = "a question is still open; withdraw the question first".to_owned();
        Err(HubReply::RuleViolations(vec![violation(Rule::AWAITING_INPUT_LEFT, "/to_state", found)]))
    }

    /// Refuses the end of a session by a producer other than the main one, because the session ends for all of them.
    fn check_may_end(&self, session: &SessionId, producer: &str) -> Result<(), HubReply> {
        let Some(live) = self.sessions.get(session) else { return Err(HubReply::NotFound) };
        if *live.agent == *producer {
            return Ok(());
        }
        let found = format!("only the main producer {:?} can end the session", live.agent);
        Err(producer_refusal("/producer", found))
    }

    /// Closes the tools and outputs that are open in a session whose agent is about to end it.
    fn close_open_items(
        &mut self,
        session: &SessionId,
        savepoint: &mut Savepoint,
        emitted: &mut EmittedEvents,
        context: &TurnContext,
    ) -> Result<(), HubReply> {
        let Some(live) = self.sessions.get(session) else { return Err(HubReply::NotFound) };
        let open_items = live.closing_events(hub_messages::tool_without_result_event);
        if !open_items.is_empty() {
            savepoint.save_machine(live);
        }
        for (mut item, event) in open_items {
            let id = self.emit_hub_event(session, event, Some(savepoint), context)?;
            let (ClosedItem::Tool { event_id, .. } | ClosedItem::Output { event_id, .. }) = &mut item;
            *event_id = id;
            emitted.closed.push(item);
        }
        Ok(())
    }

    /// Stages one event that the hub created.
    pub(super) fn emit_hub_event(
        &mut self,
        session: &SessionId,
        event: HubEvent,
        savepoint: Option<&mut Savepoint>,
        context: &TurnContext,
    ) -> Result<Arc<str>, HubReply> {
        let doc = event.payload.doc()?;
        let draft = EventDraft {
            doc: &doc,
            origin: EventOrigin::Hub,
            extension: event.extension.as_ref(),
            producer: event.producer.as_deref(),
            replaces_from_state: false,
        };
        let id = self.emit_draft(session, &draft, savepoint, context)?;
        self.scratch.recycle_writer(event.payload);
        Ok(id)
    }

    /// Stages one parsed event.
    pub(super) fn emit_draft(
        &mut self,
        session: &SessionId,
        draft: &EventDraft<'_>,
        savepoint: Option<&mut Savepoint>,
        context: &TurnContext,
    ) -> Result<Arc<str>, HubReply> {
        let id = self.new_id("evt_", context);
        let Some(live) = self.sessions.get_mut(session) else { return Err(HubReply::NotFound) };
        // If the clock goes back, the session's timestamps must not go back (§3.2.5).
        let at = context.now.max(live.last_timestamp);
        let producer = draft.producer.and_then(|id| live.producers.get(id));
        let producer = producer.unwrap_or(live.producers.main());
        let mut event = std::mem::take(&mut self.scratch.event_writer);
        let timestamp = self.scratch.format_timestamp(at);
        let envelope = EnvelopeFields {
            event_id: &id,
            session_id: session.as_str(),
            timestamp,
            producer: &producer.envelope,
            question: match draft.origin {
                EventOrigin::Question(kind, token) => Some((kind, token.as_str())),
                EventOrigin::Agent | EventOrigin::Hub => None,
            },
            hints: live.hints.as_ref(),
            default_language: &self.default_language,
            state: Some(live.state_of(&producer.id)),
            own_states: &live.own_states,
            correlation_id: live.correlation_id.as_deref(),
            marks: live.marks(producer, !live.machine.is_open()),
            summary: None,
        };
        let root = draft.doc.root();
        let kind = match draft.origin {
            EventOrigin::Agent => {
                draft.doc.type_value().and_then(|kind| Some(EventType::parse(&kind.text()?)))
            }
            EventOrigin::Hub | EventOrigin::Question(..) => None,
        };
        let described_kind = match draft.origin {
            EventOrigin::Question(kind, _) => Some(kind),
            EventOrigin::Agent | EventOrigin::Hub => kind.as_ref(),
        };
        let summary = described_kind.and_then(|kind| {
            let language = compose::primary_language(root.member("localization_hints"), &envelope);
            SuppliedSummary::for_event(kind, &root, &language)
        });
        let envelope = EnvelopeFields { summary: summary.as_ref(), ..envelope };
        // A question that is published as an event could not be answered.
        if matches!(kind, Some(EventType::AwaitingConfirmation | EventType::AwaitingClarification)) {
            return Err(MalformedRequest::QuestionPublished.into());
        }
        let is_call = kind == Some(EventType::ToolInvoked);
        if is_call {
            refuse_duplicate_members(&root)?;
        }
        let call_member = |name| if is_call { root.member(name) } else { None };
        let token = call_member("reply_token").and_then(|token| ReplyToken::parse(&token.text()?).ok());
        let arguments = call_member("arguments").map(|arguments| arguments.source());
        // The members that bind a call to its question are not sent to listeners.
        let hidden: &[&str] = match draft.origin {
            EventOrigin::Question(..) => &["reply_token", "tool", "tool_call_id", "arguments"],
            EventOrigin::Agent if is_call => &["reply_token", "arguments"],
            EventOrigin::Agent if draft.replaces_from_state => &["from_state"],
            EventOrigin::Agent | EventOrigin::Hub => &[],
        };
        let tool = call_member("tool").and_then(|tool| tool.text());
        let binding = match (&tool, arguments) {
            (Some(tool), Some(arguments)) => {
                let action = BoundAction::new(tool, arguments).map_err(MalformedRequest::InvalidAction)?;
                Some(SaysoExtension::Call {
                    tool,
                    call_id: None,
                    digest: Some(action.digest()),
                    arguments: None,
                })
            }
            _ => None,
        };
        let extension = draft.extension.or(binding.as_ref());
        let is_critical = compose::write_event(&root, &envelope, extension, hidden, &mut event)
            .map_err(MalformedRequest::InvalidEvent)?;
        let doc = event.doc()?;
        let composed = ComposedEvent { id: &id, doc, is_critical, token: token.as_ref(), arguments };
        let session_id = self.validate_and_stage(session, &composed, savepoint, context)?;
        let body = event.take(self.scratch.spare_texts.pop());
        self.scratch.event_writer = event;
        self.staged.bytes += body.len();
        self.staged.writes.push(OwnedEntry::Event {
            position: self.last_position,
            session: session_id,
            event_id: id.clone(),
            at: context.now,
            is_critical,
            body,
        });
        Ok(id)
    }

    /// Stages an event from the hub, and logs it if the rules reject it.
    pub(super) fn announce(&mut self, session: &SessionId, event: HubEvent, context: &TurnContext) {
        let result = self.emit_hub_event(session, event, None, context).map(drop);
        self.log_if_rejected(session, result);
    }

    /// Logs that one of the hub's own events was rejected, because listeners will miss it. Ignores sessions that have ended.
    pub(super) fn log_if_rejected(&mut self, session: &SessionId, result: Result<(), HubReply>) {
        let rules = match result {
            Ok(()) | Err(HubReply::NotFound) => return,
            Err(HubReply::RuleViolations(findings)) => {
                findings.iter().map(|finding| finding.rule.id()).collect()
            }
            Err(_) => Vec::new(),
        };
        let log_event = LogEvent::HubEventRejected { session: session.clone(), rules };
        self.staged.post_commit.push(PostCommit::Emit(TurnOutput::Log(log_event)));
    }

    /// Validates an event and stages its effects, except the journal entry of the event itself. Returns the event's
    /// session.
    fn validate_and_stage(
        &mut self,
        session: &SessionId,
        composed: &ComposedEvent<'_>,
        savepoint: Option<&mut Savepoint>,
        context: &TurnContext,
    ) -> Result<SessionId, HubReply> {
        let doc = &composed.doc;
        let mut findings = Findings::new(ValidationMode::Strict);
        let checked = self.validator.check(doc, &mut findings);
        let errors = |list: Vec<Finding>| -> Vec<Finding> {
            list.into_iter().filter(|finding| finding.severity == Severity::Error).collect()
        };
        if findings.has_error() {
            let mut found = errors(findings.take());
            agent_findings::adapt_to_request(&mut found, doc);
            return Err(HubReply::RuleViolations(found));
        }
        let CheckedDocument::Event(step) = checked else { return Err(MalformedRequest::UnknownEvent.into()) };
        let step = step.borrow();
        let Some(live) = self.sessions.get_mut(session) else { return Err(HubReply::NotFound) };
        let is_critical = composed.is_critical;
        if live.producers.has_others()
            && let Some(refusal) = refuse_item_of_other_producer(&live.machine, &step)
        {
            return Err(refusal);
        }
        // Without listeners, only questions and session ends are parsed, because the hub itself examines them.
        let event = if needs_parsing(&step.body)
            || self.delivery_groups.has_listener_for(&live.agent, live.person.as_deref())
        {
            Some(Event::read(doc).ok_or(MalformedRequest::UnknownEvent)?)
        } else {
            None
        };
        let needs_consent = match step.body {
            SessionEventBody::ToolInvoked { high_risk, irreversible, .. } => high_risk || irreversible,
            _ => false,
        };
        if let Some(savepoint) = savepoint
            && (savepoint.has_several_events || is_critical || needs_consent)
        {
            savepoint.save_machine(live);
        }
        if let Err(found) = live.machine.try_apply(&step) {
            let id = live.id.clone();
            let call = guarded_call(&step, &id, composed).filter(GuardedCall::needs_consent);
            let mut found = errors(found);
            // The machine does not know the answers that cover no call any more, so it cannot say why one is missing.
            let lacks_reason = found.iter().any(|finding| finding.actual == SpendError::NotAsked.to_string());
            let other_consent = call.and_then(|call| {
                let difference = self.describe_other_consent(&call);
                if difference.is_none() && lacks_reason {
                    self.explain_missing_consent(&call, context)
                } else {
                    difference
                }
            });
            if let Some((pointer, text)) = other_consent {
                for finding in found.iter_mut().filter(|finding| is_consent_rule(finding.rule)) {
                    *finding = violation(finding.rule, pointer, text.clone());
                }
            }
            return Err(HubReply::RuleViolations(found));
        }
        live.last_timestamp =
            step.timestamp.map_or(live.last_timestamp, |at| live.last_timestamp.max(at.unix_millis()));
        let (id, agent, person) = (live.id.clone(), live.agent.clone(), live.person.clone());
        // A call that needs no consent also uses up the answer that covers it, so that the answer permits one call only.
        if let Some(call) = guarded_call(&step, &id, composed)
            && (needs_consent || self.has_unused_consent(&id))
        {
            match self.questions.spend(&call, context.now) {
                Ok(change) => self.stage_question_change(change, context),
                Err(error) if needs_consent => {
                    let finding = match self.describe_other_consent(&call) {
                        Some((pointer, text)) => {
                            violation(SpendError::WrongAction.rule(call.irreversible), pointer, text)
                        }
                        None => violation(error.rule(call.irreversible), "/tool", error.to_string()),
                    };
                    return Err(HubReply::RuleViolations(vec![finding]));
                }
                Err(_) => {}
            }
        }
        self.last_position += 1;
        if let Some(event) = event {
            // The state change before a question overtakes other frames, as the question itself does (decision 10).
            let ordering = OrderingClass::of(&event);
            let frame = Frame::event(
                composed.id,
                doc.source(),
                self.last_position,
                is_critical || ordering == OrderingClass::Question,
            );
            let committed =
                CommittedEvent { event, frame: Arc::new(frame.with_session(session.as_str(), ordering)) };
            self.staged.post_commit.push(PostCommit::Event { committed: Arc::new(committed), agent, person });
        }
        Ok(id)
    }

    /// Says why a dangerous call is not permitted, if somebody was asked. Returns `None` if nobody was.
    fn explain_missing_consent(
        &mut self,
        call: &GuardedCall<'_>,
        context: &TurnContext,
    ) -> Option<(&'static str, String)> {
        match self.questions.spend(call, context.now) {
            Ok(change) => {
                self.questions.abandon(change);
                None
            }
            Err(SpendError::NotAsked) => None,
            Err(error) => Some(("/tool", error.to_string())),
        }
    }

    /// Says how a call differs from the latest unused consent, and where. A consent for the same tool is preferred. Returns
    /// `None` if there is no such consent, or if the call does not differ from it.
    fn describe_other_consent(&mut self, call: &GuardedCall<'_>) -> Option<(&'static str, String)> {
        let is_candidate = |question: &&Question| {
            question.status == QuestionStatus::Accepted { by_default: false }
                && *question.agent_id == *call.agent_id
                && question.tool().is_some()
                && call.token.is_none_or(|token| question.token == *token)
        };
        let candidates = self.questions.session_questions(call.session_id).filter(is_candidate);
        let question = candidates.max_by_key(|question| question.tool() == Some(call.tool))?;
        if let Some(tool) = question.tool().filter(|tool| *tool != call.tool) {
            let text = format!("the consent was for the tool {tool:?}; this call is of {:?}", call.tool);
            return Some(("/tool", text));
        }
        let (digest, event_id) = (question.action_digest()?, question.event_id.clone());
        if let Some(asked) = question.call_id().filter(|asked| call.call_id != Some(asked)) {
            let given = call.call_id.unwrap_or("no tool_call_id");
            let text = format!("the consent was for the call {asked}; this call has {given}");
            return Some(("/tool_call_id", text));
        }
        let Some(arguments) = call.arguments else {
            return Some(("", "the consent was for a call with arguments; this call has none".to_owned()));
        };
        if BoundAction::new(call.tool, arguments).ok()?.digest() == digest {
            return None;
        }
        // The question's event contains the arguments as the person heard them.
        let position = self.journal.event_position(event_id.as_str()).ok()??;
        let before = Position::new(position.get().checked_sub(1)?);
        let asked = self.journal.events(before, 1).ok()?.pop()?;
        let mut tape = Tape::default();
        let asked = tape.read(std::str::from_utf8(&asked.body).ok()?).ok()?;
        let accepted = asked.root().member("extensions")?.member("sayso")?.member("arguments")?;
        let is_dangerous = bound_arguments::is_dangerous_question(&asked.root());
        let mut tape = Tape::default();
        let actual = tape.read(arguments).ok()?;
        let limits = self.limits.arguments.for_question(is_dangerous);
        let actual = bound_arguments::copy_for_listeners(&actual.root(), &limits).ok()?;
        Some(("/arguments", bound_arguments::describe_difference(&accepted, &actual.doc().root())))
    }

    /// Ends a session after its last event: refuses its open questions and removes it.
    fn end_session(&mut self, session: &SessionId, context: &TurnContext) {
        let Some(live) = self.sessions.get(session) else { return };
        let change = self.questions.end_session(&live.id.clone(), context.now);
        self.end_handoffs(session, context);
        self.stage_question_change(change, context);
        self.staged.writes.push(OwnedEntry::SessionEnded { id: session.clone(), at: context.now });
        self.forget_session(session);
        self.notify_session_end(session, context);
    }
}

/// The events that a request has staged.
#[derive(Default)]
pub(super) struct EmittedEvents {
    /// Their ids, in the order of the request.
    ids: Vec<Arc<str>>,
    replaced_call_ids: Vec<ReplacedCallId>,
    closed: Vec<ClosedItem>,
}

impl EmittedEvents {
    /// Returns the id of the last event.
    pub(super) fn last_id(&self) -> Option<Arc<str>> {
        self.ids.last().cloned()
    }

    pub(super) fn into_reply(self) -> HubReply {
        let Self { ids, replaced_call_ids, closed } = self;
        HubReply::EventsPublished { event_ids: ids, replaced_call_ids, closed }
    }
}

/// The events of one request, without envelopes.
pub(super) enum EventBatch<'e> {
    /// Events from an agent, as received, and the agent's role in the session.
    FromAgent(&'e [RequestBody], &'e SessionRole),
    /// Events that the hub created from an agent's request, and the agent's role in the session.
    ForAgent(Vec<HubEvent>, &'e SessionRole),
    /// Events that the hub created.
    FromHub(Vec<HubEvent>),
}

/// An event without its envelope.
pub(super) struct EventDraft<'s> {
    pub(super) doc: &'s Doc<'s>,
    pub(super) origin: EventOrigin<'s>,
    /// The extension that the hub adds.
    pub(super) extension: Option<&'s SaysoExtension<'s>>,
    /// The id of the producer; the session's main producer if absent.
    pub(super) producer: Option<&'s str>,
    /// Whether the hub writes the `from_state` of a state change, because it has changed the state since.
    pub(super) replaces_from_state: bool,
}

/// The origin of an event.
#[derive(Clone, Copy)]
pub(super) enum EventOrigin<'s> {
    /// An agent published it.
    Agent,
    /// The hub created it.
    Hub,
    /// An agent asked a question; the hub sets the type and the token.
    Question(&'s EventType, &'s ReplyToken),
}

/// A complete event, ready for validation.
struct ComposedEvent<'n> {
    id: &'n Arc<str>,
    doc: Doc<'n>,
    is_critical: bool,
    /// The reply token of the consent that a call spends.
    token: Option<&'n ReplyToken>,
    /// The arguments of a call.
    arguments: Option<&'n str>,
}

/// The state of the staged turn before a request, so that a refused request leaves nothing behind.
pub(super) struct Savepoint {
    /// Number of staged writes.
    writes: usize,
    /// Size of the staged events, and of the replies to be stored under an idempotency key.
    bytes: usize,
    /// Number of staged actions.
    post_commit: usize,
    position: u64,
    /// Whether there is more than one event, each of which may be refused.
    has_several_events: bool,
    /// The session's state machine, and the states that the hub announced, saved if an event may be refused after the
    /// machine has applied it or an earlier one.
    machine: Option<(SessionMachine, SuppliedStates)>,
}

impl Savepoint {
    pub(super) fn save_machine(&mut self, live: &LiveSession) {
        self.machine.get_or_insert_with(|| (live.machine.clone(), live.supplied_states.clone()));
    }
}

/// Returns the call that an event announces; `None` for other events.
fn guarded_call<'c>(
    event: &'c SessionEvent<&str>,
    session_id: &'c SessionId,
    composed: &'c ComposedEvent<'_>,
) -> Option<GuardedCall<'c>> {
    let SessionEventBody::ToolInvoked { tool, call_id, irreversible, high_risk, .. } = &event.body else {
        return None;
    };
    Some(GuardedCall {
        session_id,
        agent_id: event.agent_id,
        token: composed.token,
        tool,
        call_id: *call_id,
        arguments: composed.arguments,
        irreversible: *irreversible,
        high_risk: *high_risk,
    })
}

/// Refuses the result of a call, or a part of an output, that belongs to another producer. Otherwise an agent that joined
/// could report another agent's call as done, or add text to its output.
fn refuse_item_of_other_producer(machine: &SessionMachine, event: &SessionEvent<&str>) -> Option<HubReply> {
    match &event.body {
        SessionEventBody::ToolCompleted { tool, call_id } => {
            let is_same_call = |open: &OpenTool<'_>| match call_id {
                Some(id) => open.call_id == Some(id),
                None => open.tool == *tool && open.call_id.is_none(),
            };
            let mut calls = machine.open_tools().filter(is_same_call).peekable();
            let other = calls.peek()?.agent_id;
            let is_own = calls.any(|open| open.agent_id == event.agent_id);
            let found = format!("{other:?} made this call");
            (!is_own).then(|| producer_refusal("/tool_call_id", found))
        }
        SessionEventBody::OutputStreaming { output_id: Some(id), .. } => {
            let output = machine.open_outputs().find(|open| open.id == Some(id))?;
            let found = format!("{:?} writes this output", output.agent_id);
            (output.agent_id != event.agent_id).then(|| producer_refusal("/output_id", found))
        }
        _ => None,
    }
}

/// Adds to a refusal which event of a request it is about.
fn name_event(refusal: HubReply, number: usize, count: usize) -> HubReply {
    if count < 2 {
        return refusal;
    }
    match refusal {
        HubReply::RuleViolations(mut findings) => {
            for finding in &mut findings {
                let separator = if finding.actual.is_empty() { "" } else { ": " };
                finding.actual = format!("event {number} of {count}{separator}{}", finding.actual);
            }
            HubReply::RuleViolations(findings)
        }
        HubReply::Malformed(reason) => {
            MalformedRequest::EventOfBatch { number, count, reason: Box::new(reason) }.into()
        }
        other => other,
    }
}

/// Whether the rule says that a call needs a person's consent.
fn is_consent_rule(rule: Rule) -> bool {
    [true, false].iter().any(|irreversible| SpendError::WrongAction.rule(*irreversible) == rule)
}

/// Whether an agent's event ends its session.
fn is_session_end(event: &Doc<'_>) -> bool {
    let kind = event.type_value().and_then(|kind| Some(EventType::parse(&kind.text()?)));
    matches!(
        kind,
        Some(EventType::SessionCompleted | EventType::SessionErrored | EventType::SessionCancelled)
    )
}

/// Refuses a request with two values for a member that binds a call to its question, because the two could differ.
pub(super) fn refuse_duplicate_members(request: &JsonValue<'_>) -> Result<(), MalformedRequest> {
    for name in ["tool", "tool_call_id", "arguments", "reply_token", "producer"] {
        if request.members().filter(|(key, _)| key.is_text(name)).count() > 1 {
            return Err(MalformedRequest::DuplicateMember(name));
        }
    }
    Ok(())
}

fn needs_parsing(body: &SessionEventBody<&str>) -> bool {
    matches!(
        body,
        SessionEventBody::Confirmation(_)
            | SessionEventBody::Clarification(_)
            | SessionEventBody::Completed
            | SessionEventBody::Errored
            | SessionEventBody::Cancelled
    )
}
