//! Hand-offs (§4.4.3) that wait until somebody takes over.
//!
//! A hand-off is stored like a question, but it is not one: its answer permits nothing. The registry is changed while
//! the turn is staged; if the turn cannot be written, the registry is rebuilt from the journal.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use aaep::consent::{HandoffReply, IgnoreReason};
use aaep::event::{AgentState, EventType, HandoffTarget};
use aaep::json::{JsonKind, JsonValue, JsonWriter, Tape, TapeWriter};
use aaep::{ReplyToken, SessionId, SubscriptionId};
use seal::{Digest, UnixMillis};

use super::hub_messages;
use super::notifications::HubEvent;
use super::producers::{SessionRole, producer_refusal};
use super::publish::EventBatch;
use super::supplied_summary::SuppliedSummary;
use super::{Core, OwnedEntry, TurnContext};
use crate::command::{
    AgentNotice, HandoffOutcome, HandoffResult, HubReply, LimitReached, MalformedRequest, RequestBody,
    RequestId,
};
use crate::compose::SaysoExtension;
use crate::shards::{CountGuard, CountKind, CountRequest};
use crate::{HandoffLimits, Principal};

/// How many outcomes of a session are repeated to an agent that reconnects. Older ones are read from the journal.
const MAX_REMEMBERED_PER_SESSION: usize = 16;

/// The open hand-offs, and the outcomes of those that open sessions have had.
#[derive(Default)]
pub(super) struct HandoffRegistry {
    open: BTreeMap<ReplyToken, OpenHandoff>,
    deadlines: BTreeSet<(UnixMillis, ReplyToken)>,
    resolved: HashMap<SessionId, Vec<(ReplyToken, HandoffOutcome)>>,
}

/// A hand-off that nobody has answered yet.
#[derive(Clone, Debug)]
pub(super) struct OpenHandoff {
    pub(super) session: SessionId,
    pub(super) deadline: UnixMillis,
    /// The event that requests it.
    pub(super) event_id: Arc<str>,
    agent: Arc<str>,
    /// Counts the hand-off, if there are several shards.
    _count: Option<Arc<CountGuard>>,
}

impl HandoffRegistry {
    fn insert(&mut self, token: ReplyToken, handoff: OpenHandoff) {
        self.deadlines.insert((handoff.deadline, token.clone()));
        self.open.insert(token, handoff);
    }

    fn remove(&mut self, token: &ReplyToken) -> Option<OpenHandoff> {
        let handoff = self.open.remove(token)?;
        self.deadlines.remove(&(handoff.deadline, token.clone()));
        Some(handoff)
    }

    fn resolve(&mut self, session: SessionId, token: ReplyToken, outcome: HandoffOutcome) {
        let resolved = self.resolved.entry(session).or_default();
        if resolved.len() == MAX_REMEMBERED_PER_SESSION {
            resolved.remove(0);
        }
        resolved.push((token, outcome));
    }

    fn outcome(&self, session: &SessionId, token: &ReplyToken) -> Option<&HandoffOutcome> {
        let resolved = self.resolved.get(session)?.iter().find(|(known, _)| known == token);
        resolved.map(|(_, outcome)| outcome)
    }

    pub(super) fn open(&self, token: &ReplyToken) -> Option<&OpenHandoff> {
        self.open.get(token)
    }

    /// Returns the open hand-offs of a session.
    pub(super) fn open_in(&self, session: &SessionId) -> impl Iterator<Item = (&ReplyToken, &OpenHandoff)> {
        self.open.iter().filter(move |(_, handoff)| handoff.session == *session)
    }

    /// Returns the outcomes of a session's hand-offs.
    pub(super) fn resolved_in(&self, session: &SessionId) -> &[(ReplyToken, HandoffOutcome)] {
        self.resolved.get(session).map_or(&[], Vec::as_slice)
    }

    pub(super) fn next_deadline(&self) -> Option<UnixMillis> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Core {
    /// Handles `POST /agent/v1/sessions/{id}/handoffs`.
    pub(super) fn hand_off(
        &mut self,
        principal: &Principal,
        session: &SessionId,
        body: &RequestBody,
        key: Option<&str>,
        context: &TurnContext,
    ) -> HubReply {
        let keyed_request = key.map(|key| {
            let parts = [session.as_str().as_bytes(), body.source().as_bytes(), b"handoff"];
            (key, Digest::of_parts(parts))
        });
        let account = match self.begin_request(principal, session, keyed_request.as_ref(), context) {
            Ok(account) => account,
            Err(reply) => return reply,
        };
        // Only the owner of a session hands it off, because the session is its task.
        match self.session_role(principal, session) {
            Some(SessionRole::Owner) => {}
            Some(SessionRole::Joined(_)) => return HubReply::Forbidden,
            None => return self.missing_session(principal, session),
        }
        match self.open_handoff(session, body, context) {
            Ok((reply_token, deadline)) => {
                let reply = HubReply::QuestionOpened { reply_token, deadline };
                self.finish_request(principal, &account, keyed_request.as_ref(), &reply, context);
                reply
            }
            Err(refusal) => refusal,
        }
    }

    fn open_handoff(
        &mut self,
        session: &SessionId,
        body: &RequestBody,
        context: &TurnContext,
    ) -> Result<(ReplyToken, UnixMillis), HubReply> {
        let mut tape = Tape::default();
        let doc = body.doc(&mut tape)?;
        let root = doc.root();
        if root.kind() != JsonKind::Object {
            return Err(MalformedRequest::HandoffNotObject.into());
        }
        if root.member("producer").is_some() {
            // Only the main producer hands off.
            let found = "a hand-off always belongs to the main producer; leave producer out".to_owned();
            return Err(producer_refusal("/producer", found));
        }
        let timeout_ms = self.handoff_timeout_ms(&root)?;
        let count = self.check_handoff_limits(session, &root)?;
        let token = self.new_reply_token();
        let deadline = context.now.saturating_add(timeout_ms);
        let Some(live) = self.sessions.get(session) else { return Err(HubReply::NotFound) };
        let (agent, person) = (live.agent.clone(), live.person.clone());
        // Leaving awaiting_input would mean that an open question is resolved.
        let needs_state =
            !matches!(live.state_of(&live.agent), AgentState::HandingOff | AgentState::AwaitingInput);
        let request = request_event(&root)
            .with_extension(SaysoExtension::HandoffRequested { token: token.clone(), deadline });
        let state = needs_state
            .then(|| hub_messages::state_changed_event(&mut self.scratch, None, &AgentState::HandingOff));
        let events = state.into_iter().chain([request]).collect();
        let emitted = self.emit(session, EventBatch::ForAgent(events, &SessionRole::Owner), context)?;
        let event_id = emitted.last_id().ok_or(HubReply::NotFound)?;
        self.staged.writes.push(OwnedEntry::HandoffOpened {
            token: token.clone(),
            session: session.clone(),
            deadline,
            record: write_record(&event_id, &agent),
        });
        let target = root.member("target_kind").and_then(|target| target.text());
        let is_queue = target.is_some_and(|target| *target == *HandoffTarget::EscalationQueue.as_str());
        let handoff =
            OpenHandoff { session: session.clone(), deadline, event_id, agent: agent.clone(), _count: count };
        self.handoffs.insert(token.clone(), handoff);
        let has_receiver = self
            .subscriptions
            .values()
            .any(|live| live.takes_handoffs && live.scope.covers(&agent, person.as_deref()));
        // Somebody may look at a queue later. A hand-off to a person or an agent needs somebody who is connected now.
        if !has_receiver && !is_queue {
            self.resolve_handoff(&token, &HandoffOutcome::of(HandoffResult::Unreachable), None, context);
        }
        Ok((token, deadline))
    }

    /// Returns how long a hand-off stays open, in milliseconds.
    fn handoff_timeout_ms(&self, request: &JsonValue<'_>) -> Result<i64, HubReply> {
        let limits = &self.limits.handoffs;
        let Some(given) = request.member("timeout_seconds") else { return Ok(limits.timeout_ms) };
        let seconds = given.as_number().and_then(|number| number.as_i64());
        let max_seconds = limits.max_timeout_ms / 1000;
        match seconds.filter(|seconds| (1..=max_seconds).contains(seconds)) {
            Some(seconds) => Ok(seconds.saturating_mul(1000)),
            None => Err(MalformedRequest::HandoffTimeout { max_seconds }.into()),
        }
    }

    /// Checks the limits, and counts the hand-off together with those of the other shards.
    fn check_handoff_limits(
        &self,
        session: &SessionId,
        request: &JsonValue<'_>,
    ) -> Result<Option<Arc<CountGuard>>, HubReply> {
        let limits = &self.limits.handoffs;
        if self.handoffs.open_in(session).next().is_some() {
            return Err(LimitReached::HandoffsPerSession.into());
        }
        let agent = self.sessions.get(session).map(|live| live.agent.clone());
        let of_agent = self.handoffs.open.values().filter(|handoff| Some(&handoff.agent) == agent.as_ref());
        if of_agent.count() >= limits.max_open_per_agent {
            return Err(LimitReached::HandoffsPerAgent { max: limits.max_open_per_agent }.into());
        }
        if self.handoffs.open.len() >= limits.max_open_total {
            return Err(LimitReached::Handoffs.into());
        }
        let max = limits.max_context_bytes;
        if request.member("packaged_context").is_some_and(|context| context.source().len() > max) {
            return Err(MalformedRequest::HandoffContextTooLarge { max }.into());
        }
        self.count_handoff(agent.as_deref().unwrap_or_default(), limits).map_err(|kind| match kind {
            CountKind::HandoffsOfAgent => {
                LimitReached::HandoffsPerAgent { max: limits.max_open_per_agent }.into()
            }
            _ => LimitReached::Handoffs.into(),
        })
    }

    /// Counts a hand-off together with those of the other shards.
    fn count_handoff(
        &self,
        agent: &str,
        limits: &HandoffLimits,
    ) -> Result<Option<Arc<CountGuard>>, CountKind> {
        let requests = [
            CountRequest { kind: CountKind::HandoffsOfAgent, key: agent, max: limits.max_open_per_agent },
            CountRequest { kind: CountKind::Handoffs, key: "", max: limits.max_open_total },
        ];
        Ok(self.count_with_other_shards(&requests)?.map(Arc::new))
    }

    /// Handles `sayso:handoff.acknowledge` and `sayso:handoff.reject`. The first valid answer counts.
    pub(super) fn answer_handoff(
        &mut self,
        principal: &Principal,
        via: Option<&SubscriptionId>,
        reply: &HandoffReply,
        context: &TurnContext,
    ) -> Result<(), IgnoreReason> {
        if via.is_some_and(|connected| *connected != reply.subscription_id) {
            return Err(IgnoreReason::WrongConnection);
        }
        let Some(live) = self.subscriptions.get(&reply.subscription_id) else {
            return Err(IgnoreReason::SubscriptionNotOpen);
        };
        if *live.principal != *principal.name || !live.accepts_token_of(principal) {
            return Err(IgnoreReason::WrongPrincipal);
        }
        if live.is_expired(context.now) {
            return Err(IgnoreReason::SubscriptionNotOpen);
        }
        // The role of the token that sends the message decides, whatever the subscription was granted.
        if !principal.role.can_take_handoffs() || !live.takes_handoffs {
            return Err(IgnoreReason::NotEntitled);
        }
        let Some(handoff) = self.handoffs.open(&reply.reply_token) else {
            let is_resolved = self
                .handoffs
                .resolved
                .values()
                .any(|resolved| resolved.iter().any(|(token, _)| *token == reply.reply_token));
            return Err(if is_resolved { IgnoreReason::AlreadyResolved } else { IgnoreReason::UnknownToken });
        };
        let is_in_scope = self
            .sessions
            .get(&handoff.session)
            .is_some_and(|session| live.scope.covers(&session.agent, session.person.as_deref()));
        if !is_in_scope {
            return Err(IgnoreReason::NotEntitled);
        }
        if context.now >= handoff.deadline {
            return Err(IgnoreReason::Late);
        }
        if reply.timestamp.unix_millis() >= handoff.deadline {
            return Err(IgnoreReason::LateTimestamp);
        }
        let result =
            if reply.is_acknowledged { HandoffResult::Acknowledged } else { HandoffResult::Rejected };
        let outcome =
            HandoffOutcome { result, note: reply.note.clone(), principal: Some(principal.name.clone()) };
        self.resolve_handoff(&reply.reply_token, &outcome, Some(&reply.subscription_id), context);
        Ok(())
    }

    /// Resolves the hand-offs whose deadlines have passed.
    pub(super) fn expire_handoffs(&mut self, context: &TurnContext) {
        while let Some((_, token)) =
            self.handoffs.deadlines.first().filter(|(at, _)| *at <= context.now).cloned()
        {
            self.resolve_handoff(&token, &HandoffOutcome::of(HandoffResult::Timeout), None, context);
        }
    }

    /// Withdraws the open hand-offs of a session that is about to end.
    pub(super) fn end_handoffs(&mut self, session: &SessionId, context: &TurnContext) {
        let open: Vec<_> = self.handoffs.open_in(session).map(|(token, _)| token.clone()).collect();
        for token in open {
            self.resolve_handoff(&token, &HandoffOutcome::of(HandoffResult::Withdrawn), None, context);
        }
        self.handoffs.resolved.remove(session);
    }

    /// Withdraws all open hand-offs, because the journal was restored from a backup or has lost entries: one that looks
    /// open may have been taken.
    pub(super) fn withdraw_all_handoffs(&mut self, context: &TurnContext) {
        let open: Vec<_> = self.handoffs.open.keys().cloned().collect();
        for token in open {
            self.resolve_handoff(&token, &HandoffOutcome::of(HandoffResult::Withdrawn), None, context);
        }
    }

    /// Withdraws a hand-off on behalf of its agent. Has no effect if it is not open in this session.
    pub(super) fn withdraw_handoff(
        &mut self,
        session: &SessionId,
        token: &ReplyToken,
        context: &TurnContext,
    ) {
        if self.handoffs.open(token).is_some_and(|handoff| handoff.session == *session) {
            self.resolve_handoff(token, &HandoffOutcome::of(HandoffResult::Withdrawn), None, context);
        }
    }

    /// Stages the outcome of a hand-off: its entry in the journal, the event for listeners, and what the agent gets.
    fn resolve_handoff(
        &mut self,
        token: &ReplyToken,
        outcome: &HandoffOutcome,
        subscription: Option<&SubscriptionId>,
        context: &TurnContext,
    ) {
        let Some(handoff) = self.handoffs.remove(token) else { return };
        self.staged.writes.push(OwnedEntry::HandoffDecided {
            token: token.clone(),
            result: outcome.result,
            receipt: outcome.to_journal(),
            at: context.now,
        });
        for connection in self.followers_as(&handoff.session, &handoff.agent).collect::<Vec<_>>() {
            let (session, outcome) = (handoff.session.clone(), outcome.clone());
            let notice = AgentNotice::HandoffResolved { session, token: token.clone(), outcome };
            self.staged.notices.push((connection, notice));
        }
        self.pending_waits.resolve(token, &HubReply::HandoffResolved(outcome.clone()));
        self.handoffs.resolve(handoff.session.clone(), token.clone(), outcome.clone());
        let has_open_question = self.has_open_question(&handoff.session, &handoff.agent);
        let Some(live) = self.sessions.get(&handoff.session).filter(|live| live.machine.is_open()) else {
            return;
        };
        let to = match () {
            () if has_open_question => AgentState::AwaitingInput,
            // The agent still has to end its session (§4.2.1).
            () if outcome.result == HandoffResult::Acknowledged => AgentState::HandingOff,
            () if live.machine.open_tools().any(|open| *open.agent_id == *live.agent) => {
                AgentState::CallingTool
            }
            () => AgentState::Thinking,
        };
        let replier = subscription.map(|id| Digest::of(id.as_str().as_bytes()));
        let event = hub_messages::handoff_outcome_event(token, outcome, replier, &to);
        self.announce(&handoff.session, event, context);
    }

    /// Replies to a wait for a hand-off, or registers the wait. Continues if the token belongs to no hand-off of an
    /// open session.
    pub(super) fn wait_for_handoff(
        &mut self,
        request: RequestId,
        principal: &Principal,
        session: &SessionId,
        token: &ReplyToken,
        until: UnixMillis,
        context: &TurnContext,
    ) -> ControlFlow<Option<HubReply>> {
        let is_owner = self.session_role(principal, session) == Some(SessionRole::Owner);
        if let Some(outcome) = self.handoffs.outcome(session, token).filter(|_| is_owner) {
            return ControlFlow::Break(Some(HubReply::HandoffResolved(outcome.clone())));
        }
        let Some(handoff) = self.handoffs.open(token) else { return ControlFlow::Continue(()) };
        if !is_owner {
            return ControlFlow::Break(Some(HubReply::NotFound));
        }
        if handoff.session != *session {
            return ControlFlow::Break(Some(HubReply::QuestionNotFound));
        }
        if until <= context.now {
            return ControlFlow::Break(Some(HubReply::QuestionPending));
        }
        ControlFlow::Break(self.start_wait(request, principal, token, until).err())
    }

    /// Restores a hand-off from the ledger. Returns whether the record describes a hand-off.
    pub(super) fn restore_open_handoff(&mut self, stored: &journal::stored::OpenQuestion) -> bool {
        let Some((event_id, agent)) = read_record(&stored.record) else { return false };
        let (Ok(token), Ok(session)) = (ReplyToken::parse(&stored.token), SessionId::parse(&stored.session))
        else {
            return false;
        };
        // Stored hand-offs count, even if the limits are lower now.
        let unlimited = HandoffLimits {
            max_open_per_agent: usize::MAX,
            max_open_total: usize::MAX,
            ..self.limits.handoffs
        };
        let count = self.count_handoff(&agent, &unlimited).ok().flatten();
        let handoff = OpenHandoff { session, deadline: stored.deadline, event_id, agent, _count: count };
        self.handoffs.insert(token, handoff);
        true
    }

    /// Like [`Self::restore_open_handoff`], for a hand-off that is resolved.
    pub(super) fn restore_resolved_handoff(&mut self, stored: &journal::stored::StoredDecision) -> bool {
        let Some(outcome) = stored_outcome(stored) else { return false };
        if let (Ok(token), Ok(session)) =
            (ReplyToken::parse(&stored.token), SessionId::parse(&stored.session))
        {
            self.handoffs.resolve(session, token, outcome);
        }
        true
    }
}

/// Returns the outcome of a hand-off; `None` if the decision is about a question.
pub(super) fn stored_outcome(stored: &journal::stored::StoredDecision) -> Option<HandoffOutcome> {
    read_record(&stored.record)?;
    // A result that this version does not know does not mean that somebody took over.
    let outcome = std::str::from_utf8(&stored.receipt).ok().and_then(HandoffOutcome::from_journal);
    Some(outcome.unwrap_or(HandoffOutcome::of(HandoffResult::Withdrawn)))
}

/// Creates the event that requests a hand-off: the agent's request without the members that the hub sets or keeps.
fn request_event(request: &JsonValue<'_>) -> HubEvent {
    HubEvent::new(TapeWriter::default(), &EventType::HandoffRequested, &[], |out| {
        for (name, value) in request.members() {
            if !["type", "timeout_seconds"].iter().any(|hub_member| name.is_text(hub_member)) {
                out.copy_key(&name);
                out.copy(&value);
            }
        }
        if let Some(summary) = SuppliedSummary::for_event(&EventType::HandoffRequested, request, "") {
            summary.write(out);
        }
    })
}

fn write_record(event_id: &str, agent: &str) -> String {
    let mut writer = JsonWriter::default();
    writer.object(|writer| {
        writer.key("handoff").object(|writer| {
            writer.key("event_id").text(event_id);
            writer.key("agent").text(agent);
        });
    });
    writer.finish()
}

/// Reads the record of a hand-off. Returns `None` for the record of a question.
fn read_record(record: &[u8]) -> Option<(Arc<str>, Arc<str>)> {
    let mut tape = Tape::default();
    let doc = tape.read(std::str::from_utf8(record).ok()?).ok()?;
    let handoff = doc.root().member("handoff")?;
    let text = |name| handoff.member(name)?.text().map(|text| Arc::from(&*text));
    Some((text("event_id")?, text("agent")?))
}
